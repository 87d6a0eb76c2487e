// SPDX-License-Identifier: Apache-2.0
// Resizing of rows of colour values (read_row.h), and their way to a model's numbers.
//
// A quad is the four 16-bit values of one pixel: up to three colours, the rest 0.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vartml::kernels {

// quads[p] = a + (b - a) * weight per colour; the product is fixed-point (steps of 2^-15) and
// rounded. a and b have `planes` planes of `count` values plus row_slack. One plane: the colour
// goes into the first `copies` (1 or 3) values of the quad.
//   quads  room for count + row_slack quads; quad `count` is written as 0, those after it are
//   undefined
// Every instruction set gives the values of blend_rows_ref.
void blend_rows(const int16_t* const* a, const int16_t* const* b, int16_t weight, size_t planes,
                size_t copies, size_t count, int16_t* quads);
void blend_rows_ref(const int16_t* const* a, const int16_t* const* b, int16_t weight, size_t planes,
                    size_t copies, size_t count, int16_t* quads);

// dst[p] = a + (b - a) * weight where a is quad offsets[p] of src and b the one after it.
//   weights  four equal values for each pixel
// Every instruction set gives the values of sample_columns_ref.
void sample_columns(const int16_t* src, const uint32_t* offsets, const int16_t* weights,
                    size_t count, int16_t* dst);
void sample_columns_ref(const int16_t* src, const uint32_t* offsets, const int16_t* weights,
                        size_t count, int16_t* dst);

// sums[i] += quads[i] * weight in f32, over `count` quads; `begin` starts from 0 instead.
// Every instruction set gives the values of accumulate_rows_ref.
void accumulate_rows(const int16_t* quads, float weight, bool begin, size_t count, float* sums);
void accumulate_rows_ref(const int16_t* quads, float weight, bool begin, size_t count, float* sums);

// Part of the pixels of a row that make one pixel.
struct Span {
    uint32_t first, count, weights;  // weights: index of the first weight
};
// For each span: the sum of its float quads times their weights in order, added to `sums` (`begin`:
// instead of it). Every instruction set gives the values of sum_columns_ref.
void sum_columns(const float* rows, const Span* spans, const float* weights, bool begin,
                 size_t count, float* sums);
void sum_columns_ref(const float* rows, const Span* spans, const float* weights, bool begin,
                     size_t count, float* sums);

// Float quads rounded to nearest even and limited to 0...colour_max.
void round_quads(const float* sums, size_t count, int16_t* quads);
void round_quads_ref(const float* sums, size_t count, int16_t* quads);

// (value / 64 - mean[c]) * scale[c] for each of the four values of each quad, as f32 or rounded to
// bf16 (nearest even). Neither result may be NaN. Every instruction set gives the bytes of the _ref
// function.
void normalise(const int16_t* quads, const float* mean, const float* scale, size_t count,
               float* dst);
void normalise_ref(const int16_t* quads, const float* mean, const float* scale, size_t count,
                   float* dst);
void normalise_bf16(const int16_t* quads, const float* mean, const float* scale, size_t count,
                    uint16_t* dst);
void normalise_bf16_ref(const int16_t* quads, const float* mean, const float* scale, size_t count,
                        uint16_t* dst);

}  // namespace vartml::kernels
