// SPDX-License-Identifier: Apache-2.0
// Sums of products, and tensors as numbers of the type that they are computed in.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "lib/graph/kernel.h"
#include "lib/graph/numbers.h"

namespace vartml::cpu {

// c[r][j] += sum over k of a[r][k] * b[k][j], with rows so many elements apart. T is float, double,
// uint32_t or uint64_t (integers wrap). The order of the sum is fixed: up to 256 products, then the
// next 256, so that long sums of floats stay accurate.
template <typename T>
void add_product(int64_t rows, int64_t columns, int64_t depth, const T* a, int64_t a_stride,
                 const T* b, int64_t b_stride, T* c, int64_t c_stride);

// dst[c][r] = src[r][c], both dense.
template <typename T>
void transpose(int64_t rows, int64_t columns, const T* src, T* dst) {
    constexpr int64_t tile = 16;
    for (int64_t r0 = 0; r0 < rows; r0 += tile) {
        const int64_t r1 = std::min(r0 + tile, rows);
        for (int64_t c = 0; c < columns; ++c)
            for (int64_t r = r0; r < r1; ++r) dst[c * rows + r] = src[r * columns + c];
    }
}

// The type in which elements of type T are multiplied and added: narrow floats as float, integers
// without a sign, because those wrap.
template <typename T>
struct ComputedIn {
    using Type = float;
};
template <>
struct ComputedIn<double> {
    using Type = double;
};
template <typename T>
    requires(std::is_integral_v<T>)
struct ComputedIn<T> {
    using Type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};
template <typename T>
using Computed = typename ComputedIn<T>::Type;

// Calls f with a value of the element type where it is one of Ts; else returns false.
template <typename... Ts, typename F>
bool with_one_of(DataType type, F&& f) {
    bool known = false;
    graph::with_type(type, [&]<typename T>(T value) {
        if constexpr ((std::is_same_v<T, Ts> || ...)) {
            known = true;
            f(value);
        }
    });
    return known;
}
template <typename F>
bool with_float(DataType type, F&& f) {
    return with_one_of<_Float16, graph::Bf16, float, double>(type, std::forward<F>(f));
}

// Whether elements of the two types lie alike in memory.
template <typename A, typename B>
inline constexpr bool alike =
    std::is_same_v<A, B> ||
    (std::is_integral_v<A> && std::is_integral_v<B> && sizeof(A) == sizeof(B));

// All elements as T: in place where they are that already, else converted once.
template <typename T>
class Numbers {
public:
    explicit Numbers(const Array& array) {
        if (!array.data) return;
        graph::with_type(array.type, [&]<typename From>(From) {
            if constexpr (alike<From, T>) {
                data_ = array.as<const T>();
            } else {
                copy_.reserve(static_cast<size_t>(array.elements()));
                for (const From v : array.span<const From>()) copy_.push_back(graph::convert<T>(v));
                data_ = copy_.data();
            }
        });
    }
    Numbers(const Numbers&) = delete;
    Numbers& operator=(const Numbers&) = delete;

    const T* data() const { return data_; }  // nullptr for a tensor that is not there
    const T& operator[](int64_t i) const { return data_[i]; }

private:
    std::vector<T> copy_;
    const T* data_ = nullptr;
};

// Memory for the elements of an output as T: its own where they are that, else a buffer that
// store() rounds from.
template <typename T>
class Sums {
public:
    explicit Sums(const Array& array) : array_(array) {
        graph::with_type(array.type, [&]<typename To>(To) {
            if constexpr (alike<To, T>) data_ = array.as<T>();
        });
        if (data_) return;
        buffer_.resize(static_cast<size_t>(array.elements()));
        data_ = buffer_.data();
    }
    Sums(const Sums&) = delete;
    Sums& operator=(const Sums&) = delete;

    T* data() { return data_; }
    void fill(T value) { std::fill_n(data_, array_.elements(), value); }
    void store() {
        if (buffer_.empty()) return;
        graph::with_type(array_.type, [&]<typename To>(To) {
            To* to = array_.as<To>();
            for (const T v : buffer_) *to++ = graph::convert<To>(v);
        });
    }

private:
    const Array& array_;
    std::vector<T> buffer_;
    T* data_ = nullptr;
};

// The integer nearest to `real` (half to even) plus the zero point, within the range of T.
template <typename T>
T quantised(float real, int32_t zero) {
    using Limits = std::numeric_limits<T>;
    const float low = static_cast<float>(Limits::min() - zero);
    const float high = static_cast<float>(Limits::max() - zero);
    if (std::isnan(real)) real = 0;
    return static_cast<T>(static_cast<int32_t>(std::nearbyint(std::clamp(real, low, high))) + zero);
}

}  // namespace vartml::cpu
