// SPDX-License-Identifier: Apache-2.0
// Detection heads in plain loops over float tensors, from the published formulas.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/decode_path.h"
#include "lib/vision/head.h"

namespace vartml::verify {

// What has a score of at least the threshold, by ascending position; nothing for a family without a
// formula here, or for outputs that do not look like its own.
std::optional<vision::Candidates> plain_candidates(std::string_view family,
                                                   const vision::HeadRequest& request,
                                                   const std::vector<TensorData>& values,
                                                   float threshold);

double plain_iou(const vision::Candidate& a, const vision::Candidate& b);
double plain_iou(const Detection& a, const Detection& b);

// Boxes, best first, as the weighted means of those of a class that overlap the best.
std::vector<vision::Candidate> plain_means(std::vector<vision::Candidate> boxes, double iou);

// The box in frame pixels, cut to the frame; nothing where it lies outside.
std::optional<Detection> plain_map(const vision::Candidate& box, const Frame& frame);

}  // namespace vartml::verify
