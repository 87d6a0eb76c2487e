// SPDX-License-Identifier: Apache-2.0
// Metadata at other places: of a small picture on a large one, or of boxes that have moved.
#pragma once
#include <gst/gst.h>

#include <span>

namespace vartml::gst {

// What a small picture shows of a large one, pixels of either.
struct Placement {
    int meta_width = 0, meta_height = 0;
    int main_width = 0, main_height = 0;
    double x = 0, y = 0, width = 0, height = 0;  // the part of the main picture
    double scale_x() const { return width / meta_width; }
    double scale_y() const { return height / meta_height; }
    bool operator==(const Placement&) const = default;
};

// Pixels of a frame.
struct Rectangle {
    int x = 0, y = 0, width = 0, height = 0;
    bool empty() const { return width <= 0 || height <= 0; }
    bool operator==(const Rectangle&) const = default;
};

// A detection that is to be somewhere else.
struct BoxMove {
    guint od;
    Rectangle from, to;
};

// A buffer with the analytics metadata and regions of `frame`, and nothing of its memory: pictures
// and tensors are let go.
GstBuffer* keep_metadata(GstBuffer* frame);

// Adds what `kept` holds to the main frame, behind what it has, with its relations: boxes with
// corners rounded and clipped, those left empty dropped with what belongs to them alone. The main
// buffer must be writable; its memory is not touched.
void add_metadata(GstBuffer* kept, const Placement& placement, GstBuffer* main);

// Moves boxes of a frame of that size, with the masks and keypoints that belong to them; what ends
// outside of the frame is dropped with what belongs to it alone. Ids of Mtds change. The buffer
// must be writable.
void move_boxes(GstBuffer* frame, int width, int height, std::span<const BoxMove> moves);

}  // namespace vartml::gst
