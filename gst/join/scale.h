// SPDX-License-Identifier: Apache-2.0
// Metadata of a small picture on a large one.
#pragma once
#include <gst/gst.h>

#include <vector>

namespace vartml::gst {

// What a small picture shows of a large one, pixels of either.
struct JoinGeometry {
    int meta_width = 0, meta_height = 0;
    int main_width = 0, main_height = 0;
    double x = 0, y = 0, width = 0, height = 0;  // the part of the main picture
    double scale_x() const { return width / meta_width; }
    double scale_y() const { return height / meta_height; }
};

// A buffer with the analytics metadata and regions of `frame`, and nothing of its memory: pictures
// and tensors are let go.
GstBuffer* keep_metadata(GstBuffer* frame);

// Adds what `kept` holds to the main frame, behind what it has, with its relations: boxes with
// corners rounded and clipped, those left empty dropped. The main buffer must be writable; its
// memory is not touched.
void add_metadata(GstBuffer* kept, const JoinGeometry& geometry, GstBuffer* main);

}  // namespace vartml::gst
