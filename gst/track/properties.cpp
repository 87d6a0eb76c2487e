// SPDX-License-Identifier: Apache-2.0
#include "gst/track/properties.h"

namespace vartml::gst {
namespace {

GType algorithm_type() {
    static const GEnumValue values[] = {
        {static_cast<int>(vartml::TrackAlgorithm::iou), "One association, largest overlap first",
         "iou"},
        {static_cast<int>(vartml::TrackAlgorithm::bytetrack),
         "Certain boxes first, then uncertain ones, best sum of overlaps", "bytetrack"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_property_enum("GstVartmlTrackAlgorithm", values);
    return type;
}

}  // namespace

std::span<const Property<TrackSettings>> track_properties() {
    using S = TrackSettings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"algorithm", "Algorithm", "How boxes find their tracks", until_ready,
         P::choice<&S::algorithm>(algorithm_type)},
        {"high-score", "High score", "Least score of a box in bytetrack's first association",
         controlled, P::Real{&S::high_score, 0, 1}},
        {"low-score", "Low score",
         "Least score of a box in bytetrack's second association; iou: of any box", controlled,
         P::Real{&S::low_score, 0, 1}},
        {"new-track-score", "New track score",
         "Least score of a box that begins a track; bytetrack: high-score where that is more",
         controlled, P::Real{&S::new_track_score, 0, 1}},
        {"match-iou", "Overlap",
         "Least intersection over union of a box and the place where its track is expected; "
         "bytetrack: in the first association",
         controlled, P::Real{&S::match_iou, 0, 1}},
        {"low-match-iou", "Overlap of uncertain boxes",
         "The same in bytetrack's second association", controlled,
         P::Real{&S::low_match_iou, 0, 1}},
        {"max-lost", "Longest loss",
         "Nanoseconds of stream time after which a lost track ends; on frames that were not "
         "inferred no track is lost",
         any_time, P::Time{&S::max_lost_ns}},
        {"min-hits", "Least hits",
         "Boxes in successive inferred frames before a track is reported and has an id", any_time,
         P::Uint{&S::min_hits, 1, 1000}},
        {"per-class", "Per class", "Whether a track keeps its class", any_time,
         P::Flag{&S::per_class}},
        {"classes", "Classes", "Comma list of labels that are tracked; unset: all", any_time,
         P::Text{&S::classes}},
        {"predict", "Predict",
         "Add boxes of the tracks, at the place where they are expected, to frames that were not "
         "inferred",
         any_time, P::Flag{&S::predict}},
    };
    return all;
}

}  // namespace vartml::gst
