// SPDX-License-Identifier: Apache-2.0
// Detections of a frame as the tracker takes them, and its tracks as upstream's analytics metadata.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <vartml/track.h>

#include "gst/metadata/inference.h"
#include "gst/support/in_place.h"

namespace vartml::gst {

// A turned box in the upright one around it, which is what is tracked.
struct Turn {
    float angle = 0;              // radians, clockwise
    float width = 1, height = 1;  // before the turn, as parts of the upright one's
};

// ODs that are to be tracked, in their order on the frame.
struct TrackableBoxes {
    std::vector<vartml::Detection> boxes;        // upright; class_id: the quark of the label
    std::vector<std::pair<size_t, Turn>> turns;  // of those that are turned, by index
    std::vector<guint> od_ids;                   // Mtd of each
    // The embedding of each, empty where it has none; of the metadata, until something is added to
    // it. No list at all where none has one.
    std::vector<std::span<const float>> looks;
    guint untracked = 0;  // ODs without a track, these and other classes
};

// Collects the ODs without a track whose label is in `classes` (empty: all). Keeps the memory of
// `found`.
void collect_boxes(GstBuffer* buffer, std::span<const GQuark> classes, TrackableBoxes& found);

// Per identity with an id: a track, and OD -> track RELATE_TO. Times are those of `clock`, the
// track gets their PTS. The buffer must be writable.
void add_tracks(GstBuffer* buffer, const FrameClock& clock, GstClockTime now,
                const TrackableBoxes& found, std::span<const vartml::Identity> identities);

// How the boxes of tracks were turned when they were seen last, by id.
using TrackTurns = std::vector<std::pair<guint64, Turn>>;
void note_turns(const TrackableBoxes& found, std::span<const vartml::Identity> identities,
                TrackTurns& turns);

// Per box: an OD in whole pixels inside the frame, turned as it was last, its class and its track;
// a box without a whole pixel in the frame is left out. The buffer must be writable.
void add_predicted(GstBuffer* buffer, const FrameClock& clock,
                   std::span<const vartml::PredictedBox> boxes, const TrackTurns& turns,
                   FrameSize size);

// What the elements before say of a frame.
struct Evidence {
    enum class Kind {
        none,         // no record of an inference
        inferred,     // at least one was made
        carried,      // the newest result is that of an earlier frame
        not_inferred  // all were skipped or failed
    };
    Kind kind = Kind::none;
    guint64 result_id = 0;  // of inferred and carried
    guint64 age_ns = 0;     // of carried
    bool still = false;     // of carried: the frame shows what that earlier one showed
    bool swapped = false;   // of not_inferred: by other models than found what is tracked
};

// Reads the records of inferences. Those count that detections of the frame are of; else those of
// elements that detections were of before; else all. Of them inferences of regions, which refine
// what is there, count only where there are no others. Thread-safety: none.
class EvidenceReader {
public:
    // `found`: the detections that are tracked.
    Evidence read(GstBuffer* buffer, const TrackableBoxes& found);
    void restart() { detectors_.clear(); }

private:
    enum class Weight { any, of_a_detector, of_a_detection };
    struct Detector {
        std::string infer_id;
        unsigned model_epoch;  // of its last result
    };
    struct Models {
        bool same = false, other = false;  // of detectors: that of their last result
    };
    Weight weigh(const Inference& inference, bool has_detection, Models& models);

    std::vector<Detector> detectors_;
};

// The boxes of a result and whose they are, for frames that carry it again.
struct KnownIdentities {
    guint64 result_id = 0;
    std::vector<vartml::Detection> boxes;
    std::vector<vartml::Identity> identities;

    // Whether boxes of that result are known, if there are any on the frame.
    bool has(guint64 result, std::span<const vartml::Detection> found) const {
        return result == result_id && (found.empty() || !boxes.empty());
    }
    // Those of the boxes on a frame that carries the result, as far as they are the same.
    void find(std::span<const vartml::Detection> found,
              std::vector<vartml::Identity>& identities_of) const;
};

// Moves the ODs to where their tracks are expected. The buffer must be writable.
void move_to_predicted(GstBuffer* buffer, const TrackableBoxes& found,
                       std::span<const vartml::Identity> identities,
                       std::span<const vartml::PredictedBox> predicted, FrameSize size);

}  // namespace vartml::gst
