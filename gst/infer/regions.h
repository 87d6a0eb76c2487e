// SPDX-License-Identifier: Apache-2.0
// Which parts of a frame are inferred: all of it, its tiles, or regions of interest and detections
// that an element before this one attached.
#pragma once
#include <gst/gst.h>

#include <string>
#include <vector>

#include <vartml/result.h>

#include "gst/infer/request.h"
#include "gst/infer/settings.h"
#include "gst/infer/track_results.h"

namespace vartml::gst::infer {

// How many inferences a frame has, or has at most where it brings its own regions. Errors:
// invalid_argument (tile-grid).
vartml::Result<unsigned> most_inferences(const Settings& settings);

// The regions of every frame of this size: the whole frame, or its tiles and, where that is wanted,
// the whole frame before them; none where frames bring their own. Errors: invalid_argument
// (tile-grid).
vartml::Result<std::vector<FrameRegion>> fixed_regions(const Settings& settings,
                                                       unsigned frame_width, unsigned frame_height);

struct RegionRules {
    RoiSource source = RoiSource::automatic;
    std::vector<std::string> classes = {};  // empty: all
    unsigned min_size = 16, most = 16;
    double expand = 0;
    ReinferRules reinfer = {};
    bool operator==(const RegionRules&) const = default;
};
RegionRules region_rules(const Settings& settings);

// Whether the regions of this frame are detections, whose labels are those of a model before.
bool regions_are_detections(GstBuffer* buffer, const RegionRules& rules);

// Regions of the frame by the rules, best score first: enlarged by `expand` of their size on each
// side, clipped to the frame, those with a side below `min_size` left out. `regions` is
// overwritten.
void find_regions(GstBuffer* buffer, const RegionRules& rules, unsigned frame_width,
                  unsigned frame_height, std::vector<FrameRegion>& regions);
// The same without those of tracked objects whose result in `known` is good for frame `seq`: they
// take no place of others. Returns how many these are.
unsigned find_due_regions(GstBuffer* buffer, const RegionRules& rules, unsigned frame_width,
                          unsigned frame_height, TrackResults& known, guint64 seq,
                          std::vector<FrameRegion>& regions);
// Those of tracked objects alone, however many.
void find_tracked_regions(GstBuffer* buffer, const RegionRules& rules, unsigned frame_width,
                          unsigned frame_height, std::vector<FrameRegion>& regions);

// The detection that stands for a region of interest, so that results can be related to it: one of
// its type and place that is there, else added with score 1. -1 where it is none, or there is no
// room. The buffer must be writable.
int detection_of(GstBuffer* buffer, const FrameRegion& region);

}  // namespace vartml::gst::infer
