// SPDX-License-Identifier: Apache-2.0
// The float reference of `vartml verify`, which shares nothing with the code under test: tensors
// element by element, pictures in double precision, detection heads in plain loops.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <vartml/preprocess.h>
#include <vartml/result.h>
#include <vartml/tensor.h>

#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/decode_path.h"
#include "lib/tools/verify/session.h"
#include "lib/vision/head.h"

namespace vartml::verify {

// The tensor whose bytes lie as `view` says, dense in the order of its CPU view. Codes become
// (code - zero point) * scale where the CPU view is float. Errors: unsupported for views that are
// not of one tensor.
Result<TensorData> reference_values(const TensorView& view, const TensorView& cpu,
                                    const Buffer& bytes);

// Numbers as a tensor of the type given: integers rounded to the nearest even and limited.
TensorData tensor_of(DataType type, const std::vector<uint32_t>& shape,
                     const std::vector<double>& numbers);

// A tensor as `output` has it, to be compared with it. Of a data-dependent shape: as the leading
// corner of its bound, whose other elements are 0, those of signed integers -1. Floats as bf16
// where that is its type, which files of NumPy do not have. The tensor itself where it does not
// fit.
TensorData as_output(const TensorData& data, const TensorInfo& output);

// Pre-processing in double precision, pixel by pixel, from the documented formulas
// (vartml/preprocess.h): the reference for the fused kernels.

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

// Detection heads in plain loops over float tensors, from the published formulas.

// What has a score of at least the threshold, by ascending position; nothing for a family without a
// formula here, or for outputs that do not look like its own.
std::optional<vision::Candidates> plain_candidates(std::string_view family,
                                                   const vision::HeadRequest& request,
                                                   const std::vector<TensorData>& values,
                                                   float threshold);

// Of turned boxes by their polygons.
double plain_iou(const vision::Candidate& a, const vision::Candidate& b);
double plain_iou(const Detection& a, const Detection& b);

// Boxes, best first, as the weighted means of those of a class that overlap the best.
std::vector<vision::Candidate> plain_means(std::vector<vision::Candidate> boxes, double iou);

// The box in frame pixels, cut to the frame unless it is turned; nothing where it lies outside.
std::optional<Detection> plain_map(const vision::Candidate& box, const Frame& frame);

}  // namespace vartml::verify
