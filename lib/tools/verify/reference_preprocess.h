// SPDX-License-Identifier: Apache-2.0
// Pre-processing in double precision, pixel by pixel, from the documented formulas
// (vartml/preprocess.h): the reference for the fused kernels.
#pragma once
#include <cstdint>
#include <vector>

#include <vartml/preprocess.h>
#include <vartml/tensor.h>

namespace vartml::verify {

// Rows of RGB bytes, width * 3 to a row.
struct PictureData {
    uint32_t width = 0, height = 0;
    std::vector<uint8_t> rgb;
};

// The sides of a picture input, by its CPU view; width 0 where the tensor is no picture.
struct PictureShape {
    uint32_t width = 0, height = 0, channels = 0;
    bool channels_last = false;
};
PictureShape picture_shape(const TensorView& cpu);

struct ReferenceInput {
    std::vector<double> numbers;  // of the tensor, dense in the order of its CPU view
    Affine to_frame;
};
ReferenceInput reference_preprocess(const PictureData& picture, const TensorView& cpu,
                                    const PreprocessOptions& options);

}  // namespace vartml::verify
