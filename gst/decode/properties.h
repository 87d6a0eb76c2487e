// SPDX-License-Identifier: Apache-2.0
// The properties of vartmldecode.
#pragma once
#include <array>
#include <span>
#include <string>

#include <gst/gst.h>

#include <vartml/postprocess.h>

#include "gst/support/property_table.h"

namespace vartml::gst {

// As the user set them. Thread-safety: none.
struct DecodeProperties {
    int decoder = 0;  // 0 = auto, else 1 + index of decoder_families()
    std::string modelinfo_file, label_file, classes, library;
    double score_threshold = -1, iou_threshold = -1;
    double mask_threshold = 0.5, keypoint_threshold = 0;
    guint max_detections = 100;
    bool max_detections_set = false;  // the default gives way to the sidecar
    guint top_k = 1, min_size = 0;
    vartml::Nms nms = vartml::Nms::automatic;
    bool keep_tensors = false;

    bool label_file_written = true;  // since it was read

    std::string family() const;  // nick; "" = auto
    vartml::DecodeOptions options() const;
};

std::span<const Property<DecodeProperties>> decode_properties();
// Read from an element by the last rows of the table.
void list_decoded_labels(GObject* element, GValue* list);
GstStructure* decode_stats(GObject* element);

// What vartmldecode counts.

// One frame.
struct DecodedFrame {
    bool decoded = false;
    guint boxes = 0, suppressed = 0, not_finite = 0;
    guint reused = 0;  // results that an earlier frame was decoded to
    guint32 time_us = 0;
};

// Since start. Thread-safety: none.
class DecodeStats {
public:
    void add(const DecodedFrame& frame);
    // Structure vartml-decode-stats; the caller owns it.
    GstStructure* structure() const;

private:
    guint64 frames_ = 0, decoded_ = 0, boxes_ = 0, suppressed_ = 0, not_finite_ = 0, reused_ = 0,
            timed_ = 0;
    std::array<guint32, 1024> times_us_{};  // of the last decoded frames, as a ring
};

}  // namespace vartml::gst
