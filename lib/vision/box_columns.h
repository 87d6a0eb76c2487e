// SPDX-License-Identifier: Apache-2.0
// The order of the columns of a table that has a box per row, written as a list of their names.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace vartml::vision {

struct BoxColumns {
    std::array<uint8_t, 4> corners;  // x0, y0, x1, y1
    uint8_t score, class_id, count;
};

// Reads names separated by ',' or '_': batch or batchno, class or classid, score, and the corners
// as x1y1x2y2 or y1x1y2x2 (x0y0x1y1, y0x0y1x1). Exporters name tensors so:
// batchno_classid_score_x1y1x2y2. nullopt unless score, class and corners occur once each, and
// nothing else but the batch.
std::optional<BoxColumns> parse_box_columns(std::string_view text);

}  // namespace vartml::vision
