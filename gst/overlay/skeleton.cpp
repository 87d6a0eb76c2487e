// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/skeleton.h"

#include <charconv>

namespace vartml::gst::overlay {
namespace {

// Reads a number from the front of the text.
bool take_number(std::string_view& text, unsigned& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
}

}  // namespace

std::span<const Limb> coco17() {
    // given: COCO keypoint annotations, "skeleton"
    static constexpr Limb limbs[] = {
        {15, 13}, {13, 11}, {16, 14}, {14, 12}, {11, 12}, {5, 11}, {6, 12}, {5, 6}, {5, 7}, {6, 8},
        {7, 9},   {8, 10},  {1, 2},   {0, 1},   {0, 2},   {1, 3},  {2, 4},  {3, 5}, {4, 6}};
    return limbs;
}

std::optional<std::vector<Limb>> parse_skeleton(std::string_view text) {
    std::vector<Limb> limbs;
    if (text.empty() || text == "none") return limbs;
    if (text == "coco17") {
        limbs.assign(coco17().begin(), coco17().end());
        return limbs;
    }
    while (!text.empty()) {
        Limb limb;
        if (!take_number(text, limb.first) || !text.starts_with('-')) return std::nullopt;
        text.remove_prefix(1);
        if (!take_number(text, limb.second)) return std::nullopt;
        limbs.push_back(limb);
        if (text.empty()) break;
        if (!text.starts_with(';')) return std::nullopt;
        text.remove_prefix(1);
    }
    return limbs;
}

}  // namespace vartml::gst::overlay
