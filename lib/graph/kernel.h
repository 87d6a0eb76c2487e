// SPDX-License-Identifier: Apache-2.0
// The operators of the IR as functions on arrays: plain loops, every element type and rank. What
// folds constants in the compiler, and what runs in a program where no faster step exists.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <vartml/result.h>
#include <vartml/tensor.h>

#include "lib/graph/graph.h"

namespace vartml::cpu {

// A tensor at run time: what the kernels of the CPU operators read and write.

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

// One execution of a node. The node is canonical (graph/ops.h): its parameters are attributes, and
// the inputs are those of ops.h in their order.
struct Call {
    const graph::Node& node;
    std::span<const Array> inputs;
    // Type, shape and memory are given. Kernels whose output shape depends on their data
    // (NonZero, NonMaxSuppression, Compress, Unique) find the largest shape there and put the real
    // one, never larger, in its place; elements are dense in the real shape.
    std::span<Array> outputs;

    bool has_input(size_t i) const { return i < inputs.size() && inputs[i].data != nullptr; }
    bool has_output(size_t i) const { return i < outputs.size() && outputs[i].data != nullptr; }
};

// Errors: unsupported for an element type that the operator does not have; bad_model for data that
// it rejects, such as an index outside of the tensor: the job fails, not the process. Memory that
// cannot be had may leave as bad_alloc. Inputs of zero elements are legal everywhere. Thread-safe.
using Kernel = Result<void> (*)(const Call& call);

// That of the operator's row (graph/ops.h); nullptr for an operator without. `kind` is one part,
// not a fused kind.
Kernel find_kernel(std::string_view kind);

// Runs a node: a fused kind part by part, in place on the first output. Errors: those of the
// kernels; unsupported where one is missing.
Result<void> run(const Call& call);

// "node 'x' (Gather) takes element 7 of 5": data that the operator rejects.
Error bad_data(const Call& call, const std::string& sentence);
// "node 'x' (Sin) has no implementation for i32[2,2]".
Error no_type(const Call& call, DataType type);

}  // namespace vartml::cpu
