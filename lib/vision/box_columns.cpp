// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/box_columns.h"

#include <algorithm>

namespace vartml::vision {

namespace {

enum class Kind : uint8_t { batch, class_id, score, angle, corners };

struct Name {
    std::string_view text;
    Kind kind;
    std::array<uint8_t, 4> corners{};  // where x0, y0, x1, y1 are among the four
    bool centred = false;
};
constexpr Name names[] = {
    {"batch", Kind::batch},
    {"batchno", Kind::batch},
    {"class", Kind::class_id},
    {"classid", Kind::class_id},
    {"score", Kind::score},
    {"angle", Kind::angle},
    {"x0y0x1y1", Kind::corners, {0, 1, 2, 3}},
    {"x1y1x2y2", Kind::corners, {0, 1, 2, 3}},
    {"y0x0y1x1", Kind::corners, {1, 0, 3, 2}},
    {"y1x1y2x2", Kind::corners, {1, 0, 3, 2}},
    {"cxcywh", Kind::corners, {0, 1, 2, 3}, true},
};

}  // namespace

std::optional<BoxColumns> parse_box_columns(std::string_view text) {
    BoxColumns columns{};
    std::array<unsigned, 5> seen{};
    while (!text.empty()) {
        const size_t end = std::min(text.find_first_of(",_"), text.size());
        const auto* name = std::ranges::find(names, text.substr(0, end), &Name::text);
        if (name == std::end(names)) return std::nullopt;
        ++seen[static_cast<size_t>(name->kind)];
        const uint8_t first = columns.count;
        columns.count = static_cast<uint8_t>(first + (name->kind == Kind::corners ? 4 : 1));
        if (name->kind == Kind::class_id) columns.class_id = first;
        if (name->kind == Kind::score) columns.score = first;
        if (name->kind == Kind::batch) columns.batch = first;
        if (name->kind == Kind::angle) columns.angle = first;
        if (name->kind == Kind::corners) {
            columns.centred = name->centred;
            for (size_t i = 0; i < 4; ++i)
                columns.corners[i] = static_cast<uint8_t>(first + name->corners[i]);
        }
        text.remove_prefix(std::min(end + 1, text.size()));
        if (seen[static_cast<size_t>(name->kind)] > 1) return std::nullopt;
    }
    const bool complete =
        seen[static_cast<size_t>(Kind::class_id)] && seen[static_cast<size_t>(Kind::score)] &&
        seen[static_cast<size_t>(Kind::corners)] && (columns.centred || !columns.angle);
    return complete ? std::optional(columns) : std::nullopt;
}

}  // namespace vartml::vision
