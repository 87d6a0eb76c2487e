// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/painter.h"

#include <ranges>

namespace vartml::gst::overlay {

void draw_label(Canvas& canvas, Text& text, const Rect& plate, Rgba color, std::string_view line) {
    fill(canvas, plate, color);
    const int left = plate.x + label_padding(text.line_height());
    const int top = plate.y + (plate.h - text.line_height()) / 2;
    const Rgba ink = text_color(color);
    text.lay_out(line, [&](int x, const Text::Piece& piece) {
        stamp(canvas, left + x, top, piece.width, piece.height, piece.coverage.data(), ink);
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
