// SPDX-License-Identifier: Apache-2.0
// The state of vartmlmetajoin and what it does with frames of both branches.
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <gst/gst.h>

#include "gst/support/placement.h"

namespace vartml::gst {

// Metadata that waits for its pictures.

struct UnrefBuffer {
    void operator()(GstBuffer* buffer) const { gst_buffer_unref(buffer); }
};

// Kept metadata by running time, at most 64. Thread-safety: none.
class Matcher {
public:
    static constexpr size_t most = 64;
    struct Kept {
        GstClockTime time;
        std::shared_ptr<GstBuffer> metadata;
        int width, height;  // of the picture that it was of
        int par_n, par_d;
    };

    bool full() const { return kept_.size() >= most; }
    bool empty() const { return kept_.empty(); }
    // The oldest gives way when it is full.
    void add(Kept kept);
    // The nearest within `tolerance`, ties to the earlier; `distance` gets that of the nearest at
    // all, GST_CLOCK_TIME_NONE where there is none.
    std::optional<Kept> match(GstClockTime time, GstClockTime tolerance,
                              GstClockTime& distance) const;
    // Lets go of what no picture from `time` on can match.
    void prune(GstClockTime time, GstClockTime tolerance);
    void clear() { kept_.clear(); }

private:
    std::deque<Kept> kept_;
};

// As the user set them. Thread-safety: none.
struct JoinSettings {
    uint64_t tolerance = GST_CLOCK_TIME_NONE;
    bool sync = true;
    uint64_t timeout = 0;
    std::string region;
};

struct JoinCounts {
    guint64 frames = 0, matched = 0, unmatched = 0, late = 0, timeouts = 0, copied = 0;
};

// What is known of a branch.
struct JoinBranch {
    GstSegment segment;
    bool eos = false, flushing = false;
    guint32 seek = GST_SEQNUM_INVALID;            // of which the segment is
    guint64 seeks = 0;                            // how many there were
    bool segment_done = false;                    // of a segment seek, until the next segment
    bool ended = false;                           // what it leads to takes no more
    bool untimed = false;                         // its last picture had no running time
    bool busy = false;                            // a picture is in the element or behind it
    GstClockTime position = GST_CLOCK_TIME_NONE;  // running time that it has reached
    int width = 0, height = 0, par_n = 1, par_d = 1;
    bool tensors = false;  // of a camera, which stretches
    GstClockTime frame_duration = GST_CLOCK_TIME_NONE;
    JoinBranch() { gst_segment_init(&segment, GST_FORMAT_TIME); }
    // Not caps: they outlive a flush.
    void restart() {
        position = GST_CLOCK_TIME_NONE;
        eos = segment_done = ended = untimed = busy = false;
    }
    // No frame comes before there is another segment, if any.
    bool at_end() const { return eos || segment_done; }
};

struct Joint {
    std::mutex
        mutex;  // guards all below; no other lock is taken and nothing called while it is held
    std::condition_variable changed;
    JoinBranch main, meta;
    Matcher matcher;
    JoinCounts counts;
    JoinSettings settings;            // since start
    std::optional<Placement> region;  // an empty one: the whole picture, stretched
    bool live = false, latency_known = false;
    GstClockTime latency = 0;
    GstClockTime wanted = GST_CLOCK_TIME_NONE;  // by the picture that waits
    bool deadline_passed = false;
    guint64 deadline = 0;           // number of the last
    bool seen_metadata = false;     // sink_meta had a frame
    bool unmatched_warned = false;  // since the last match
    bool pts_warned = false;
    unsigned unmatched_in_a_row = 0;
};

// pictures in a row without match that are worth a warning
inline constexpr unsigned unmatched_to_warn = 100;

// All but parse_region and find_metadata want the lock held.
// Of a frame, GST_CLOCK_TIME_NONE outside of the segment; one that reaches into it begins there.
// Without duration it lasts as long as the caps say.
GstClockTime running_time(const JoinBranch& branch, GstClockTime pts, GstClockTime duration);
// By property, else half a frame of sink_main at the rate at which it is played.
GstClockTime tolerance_of(const Joint& joint);
// Whether sink_meta has reached the time or has ended.
bool has_metadata(const Joint& joint, GstClockTime time);
// Whether sink_meta need not wait for the pictures that its frames belong to.
bool may_run_ahead(const Joint& joint);
// Whether a picture waits for more of sink_meta.
bool is_wanted(const Joint& joint);
// The part of the main picture that the metadata is of; nothing where the aspects differ and nobody
// said that the picture was stretched.
std::optional<Placement> geometry_of(const Joint& joint, const Matcher::Kept& kept);
// The metadata of a picture, and whether to warn that there has been none for long.
std::optional<Matcher::Kept> find_metadata(Joint& joint, GstClockTime time, bool& warn,
                                           GstClockTime& distance, GstClockTime& tolerance);
// False for what is no video with a size.
bool read_caps(JoinBranch& branch, GstCaps* caps);
// `x,y,w,h` of positive size; an empty part for `whole`; nothing for an empty text.
bool parse_region(const std::string& text, std::optional<Placement>& region);
// What an event changes; wakes who waits.
void follow(Joint& joint, JoinBranch& branch, GstEvent* event);

}  // namespace vartml::gst
