// SPDX-License-Identifier: Apache-2.0
// A tensor at run time: what the kernels of the CPU operators read and write.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include <vartml/tensor.h>

namespace vartml::cpu {

inline constexpr size_t max_rank = 8;

// Sizes of up to eight axes; a value that needs no heap.
class Shape {
public:
    Shape() = default;
    Shape(std::initializer_list<int64_t> sizes) { assign(sizes.begin(), sizes.end()); }
    explicit Shape(std::span<const int64_t> sizes) { assign(sizes.begin(), sizes.end()); }

    size_t size() const { return rank_; }
    bool empty() const { return rank_ == 0; }
    int64_t& operator[](size_t axis) { return sizes_[axis]; }
    int64_t operator[](size_t axis) const { return sizes_[axis]; }
    int64_t* begin() { return sizes_.data(); }
    int64_t* end() { return sizes_.data() + rank_; }
    const int64_t* begin() const { return sizes_.data(); }
    const int64_t* end() const { return sizes_.data() + rank_; }
    int64_t back() const { return sizes_[rank_ - 1]; }
    operator std::span<const int64_t>() const { return {sizes_.data(), rank_}; }
    bool operator==(const Shape& other) const { return std::ranges::equal(*this, other); }

    int64_t elements() const {
        int64_t n = 1;
        for (const int64_t size : *this) n *= size;
        return n;
    }

private:
    template <typename Iterator>
    void assign(Iterator first, Iterator last) {
        for (; first != last && rank_ < max_rank; ++first) sizes_[rank_++] = *first;
    }

    std::array<int64_t, max_rank> sizes_{};
    size_t rank_ = 0;
};

// Dense row-major elements somewhere in memory, aligned to the element size. `data` is null for a
// tensor that is not there: an absent optional input, an output that nobody reads.
struct Array {
    DataType type = DataType::unknown;
    Shape shape;
    std::byte* data = nullptr;

    int64_t elements() const { return shape.elements(); }
    size_t size_bytes() const { return static_cast<size_t>(elements()) * vartml::size_bytes(type); }
    template <typename T>
    T* as() const {
        return reinterpret_cast<T*>(data);
    }
    // All elements. T is of the element's size: float, graph::Bf16, int8_t …
    template <typename T>
    std::span<T> span() const {
        return {as<T>(), static_cast<size_t>(elements())};
    }
};

}  // namespace vartml::cpu
