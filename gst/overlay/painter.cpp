// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/painter.h"

#include <array>
#include <cstring>
#include <ranges>
#include <utility>

namespace vartml::gst::overlay {

void draw_label(Canvas& canvas, Text& text, const Rect& plate, Rgba color, std::string_view line) {
    fill(canvas, plate, color);
    const int left = plate.x + label_padding(text.line_height());
    const int top = plate.y + (plate.h - text.line_height()) / 2;
    const Rgba ink = text_color(color);
    // All pieces in one pass: they stand side by side.
    constexpr size_t most = 128;
    std::array<std::pair<int, const Text::Piece*>, most> pieces;
    size_t count = 0;
    int width = 0;
    text.lay_out(line, [&](int x, const Text::Piece& piece) {
        if (count < most) pieces[count++] = {left + x, &piece};
        width = x + piece.width;
    });
    const Rect place = {left, top, width, text.line_height()};
    canvas.cover(place, ink, [&](int y, int x0, int x1, uint8_t* coverage) {
        std::memset(coverage, 0, static_cast<size_t>(x1 - x0));
        for (size_t i = 0; i < count; ++i) {
            const auto& [x, piece] = pieces[i];
            const int from = std::max(x, x0), to = std::min(x + piece->width, x1);
            if (from >= to || y - top >= piece->height) continue;
            const size_t row = static_cast<size_t>(y - top) * static_cast<size_t>(piece->width);
            std::memcpy(coverage + (from - x0),
                        piece->coverage.data() + row + static_cast<size_t>(from - x),
                        static_cast<size_t>(to - from));
        }
    });
}

void Painter::draw(Canvas& canvas, Text& text, const Scene& scene) {
    for (const MaskItem& mask : std::views::reverse(scene.masks)) {
        masks_.draw(canvas, MaskPixels(mask.pixels), mask.rect, scene.colors_of(mask));
    }
    for (const Outline& outline : std::views::reverse(scene.outlines))
        overlay::draw(canvas, outline);
    for (const Stroke& stroke : scene.strokes) overlay::draw(canvas, stroke);
    for (const LabelItem& label : std::views::reverse(scene.labels)) {
        draw_label(canvas, text, label.plate, label.color, scene.text(label));
    }
}

}  // namespace vartml::gst::overlay
