// SPDX-License-Identifier: Apache-2.0
// Which keypoints are joined by lines.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace vartml::gst::overlay {

using Limb = std::pair<unsigned, unsigned>;  // numbers of points

// The 17 points of COCO: nose, eyes, ears, shoulders, elbows, wrists, hips, knees, ankles.
std::span<const Limb> coco17();

// Reads "coco17", "none" or "", or pairs such as "0-1;1-2"; empty when it is none of them.
std::optional<std::vector<Limb>> parse_skeleton(std::string_view text);

}  // namespace vartml::gst::overlay
