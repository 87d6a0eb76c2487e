// SPDX-License-Identifier: Apache-2.0
// The order of the columns of a table that has a box per row, written as a list of their names.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace vartml::vision {

struct BoxColumns {
    std::array<uint8_t, 4> corners;  // x0, y0, x1, y1; `centred`: x, y, width, height
    uint8_t score, class_id, count;
    bool centred = false;
    std::optional<uint8_t> batch{}, angle{};  // the angle in radians, clockwise on the screen
};

// Reads names separated by ',' or '_': batch or batchno, class or classid, score, angle, and the
// box as x1y1x2y2 or y1x1y2x2 (x0y0x1y1, y0x0y1x1) or cxcywh. Exporters name tensors so:
// batchno_classid_score_x1y1x2y2. nullopt unless score, class and box occur once each, batch and
// angle at most once, and nothing else; only a box of centre and size has an angle.
std::optional<BoxColumns> parse_box_columns(std::string_view text);

}  // namespace vartml::vision
