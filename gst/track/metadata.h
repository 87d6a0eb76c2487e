// SPDX-License-Identifier: Apache-2.0
// Detections of a frame as the tracker takes them, and its tracks as upstream's analytics metadata.
#pragma once
#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <span>
#include <vector>

#include <vartml/track.h>

namespace vartml::gst {

// The size of a frame; 0 = not known.
struct FrameSize {
    int width = 0, height = 0;
};

// ODs that are to be tracked, in their order on the frame.
struct TrackableBoxes {
    std::vector<vartml::Detection> boxes;  // class_id: the quark of the label
    std::vector<guint> od_ids;             // Mtd of each
    guint untracked = 0;                   // ODs without a track, these and other classes
};

// Collects the ODs without a track whose label is in `classes` (empty: all). Keeps the memory of
// `found`.
void collect_boxes(GstBuffer* buffer, std::span<const GQuark> classes, TrackableBoxes& found);

// Per identity with an id: a track, and OD -> track RELATE_TO. The buffer must be writable.
void add_tracks(GstBuffer* buffer, GstClockTime now, const TrackableBoxes& found,
                std::span<const vartml::Identity> identities);

// Per box: an OD in whole pixels inside the frame, its class and its track; a box without a whole
// pixel is left out. The buffer must be writable.
void add_predicted(GstBuffer* buffer, std::span<const vartml::PredictedBox> boxes, FrameSize size);

// What the elements before say of a frame.
enum class Evidence {
    none,         // no record of an inference
    inferred,     // at least one was made
    not_inferred  // all were skipped or failed
};
Evidence inference_evidence(GstBuffer* buffer);

}  // namespace vartml::gst
