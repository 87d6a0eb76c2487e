// SPDX-License-Identifier: Apache-2.0
// Draws a scene into a canvas.
#pragma once
#include "gst/overlay/mask.h"
#include "gst/overlay/scene.h"
#include "gst/overlay/text.h"

namespace vartml::gst::overlay {

// A label with its plate at `plate`, its text in the size of `text`.
void draw_label(Canvas& canvas, Text& text, const Rect& plate, Rgba color, std::string_view line);

// Thread-safety: one thread at a time.
class Painter {
public:
    void draw(Canvas& canvas, Text& text, const Scene& scene);

private:
    MaskPainter masks_;
};

}  // namespace vartml::gst::overlay
