// SPDX-License-Identifier: Apache-2.0
// Conversion of a tensor between two views of it: layout, padding and element type in one pass.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

#include "kernels/layout/cast.h"
#include "kernels/layout/pack.h"

namespace vartml {

// Rounding of float to integer. Only a model that names another mode differs from nearest_even.
enum class Rounding : uint8_t { nearest_even, toward_zero };

// A prepared conversion. Thread-safety: immutable; run() and run_part() may be called concurrently,
// allocate nothing and cannot fail.
class Conversion {
public:
    // `src` and `dst` describe the same tensor: any two of NCHW, NHWC, GENERIC and NHW (innermost
    // dimension padded to 8 or not), a blocked layout and NCHW or NHWC, or the same layout twice.
    // Padding of `dst` is written as zero, padding of `src` is ignored; between equal shapes
    // padding cannot be told from elements and is converted like them. Types: the same twice, or
    // two of fp32, bf16, fp16, int8, uint8, int16, uint16 of which at most one is an integer type;
    // the quantisation of its view counts (absent: scale 1, zero point 0). Errors: invalid_argument
    // (shapes that are not of one tensor, a scale that is not positive, a zero point outside the
    // type), unsupported (other pairs of types or layouts). The sentence names both views.
    static Result<Conversion> create(const TensorView& src, const TensorView& dst,
                                     Rounding rounding = Rounding::nearest_even);

    // Converts size_bytes of the one view into size_bytes of the other; no overlap, no alignment.
    void run(const void* src, void* dst) const { run_part(src, dst, 0, 1); }
    // Part `part` of `num_parts` parts of about equal work, so that threads of the caller can share
    // a tensor.
    void run_part(const void* src, void* dst, unsigned part, unsigned num_parts) const;

    // True where the bytes are the same in both views, so that run() is one memcpy.
    bool is_copy() const { return is_copy_; }

private:
    friend class ConversionPlanner;

    static constexpr size_t scratch_bytes =
        32768;  // of each run, on the stack; stays in the first-level cache

    static constexpr size_t most_loops = 8;

    // How the innermost run goes from one side to the other.
    enum class Form : uint8_t {
        rows,       // elements in order on both sides
        to_pixels,  // planes of src become channels of a dense pixel
        to_planes,  // the reverse
        repack,     // channels are innermost on both sides, in steps that differ
        gather,     // elements of dst in order, src by a stride
    };
    // A loop around it; strides in elements.
    struct Loop {
        size_t count = 1, src = 0, dst = 0;
    };
    struct Task;

    void convert_rows(const std::byte* src, size_t src_stride, std::byte* dst, size_t dst_stride,
                      size_t rows, size_t count, size_t padding) const;
    template <class Work>
    void each_row(const Task& task, size_t step, const Work& work) const;
    kernels::BlockRows block_rows(const Task& task, size_t step, size_t element) const;
    void run_task(const std::byte* src, std::byte* dst, const Task& task) const;

    Form form_ = Form::rows;
    bool is_copy_ = false;
    bool via_float_ = false;  // first_ gives floats, second_ takes them
    bool packs_ = false;      // to_pixels, to_planes: layout and cast in one pass
    kernels::Cast first_, second_;
    size_t src_bytes_ = 0, dst_bytes_ = 0;  // of an element
    std::array<Loop, most_loops>
        loops_;         // outermost first; the last is the loop over channel groups or rows
    size_t count_ = 1;  // elements (rows, gather) or pixels of the innermost run
    size_t chunk_ = 1, chunk_rows_ = 1;  // of one task
    size_t padding_ = 0;                 // zero elements of dst after each run, or each tail row
    // Rows of a dense dst whose padding is written apart from what is converted; 0: none.
    size_t tail_rows_ = 0, tail_row_ = 0;  // how many, and elements of each
    size_t channels_ = 0, group_ = 0;      // all channels; channels of a group
    size_t width_ = 1,
           row_ =
               0;  // to_pixels, to_planes: pixels of a row and elements between rows of that side
    size_t src_step_ = 0, dst_step_ = 0;  // elements from pixel to pixel, or from plane to plane
};

}  // namespace vartml
