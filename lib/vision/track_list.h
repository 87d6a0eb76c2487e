// SPDX-License-Identifier: Apache-2.0
// The tracks of a stream and how they begin, get lost and end.
#pragma once
#include <cstdint>
#include <vector>

#include <vartml/track.h>

#include "lib/vision/motion.h"

namespace vartml::vision {

enum class TrackStage : uint8_t {
    tentative,  // seen in fewer frames than min_hits
    tracked,
    lost
};

struct Track {
    Identity identity;
    TrackStage stage = TrackStage::tentative;
    unsigned hits = 1;
    uint64_t last_seen_ns = 0;  // PTS
    uint64_t moved_ns = 0;      // clock of `motion`
    uint64_t lost_ns = 0;       // clock when it was first missed
    BoxMotion motion;
    float score = 0;
    int32_t class_id = 0;
};

// When the tracker looks at a frame.
struct Moment {
    uint64_t pts_ns = 0;
    uint64_t clock_ns = 0;  // time that passed since the first frame; never goes back
};

// Tracks by age, which is by id: a track without one is found, and so gets nearer to it, or ends on
// every frame, before others begin.
class TrackList {
public:
    std::vector<Track> tracks;

    // Ends what was lost for too long and moves the others to `now`.
    void move(const Moment& now, uint64_t max_lost_ns);
    // The track was found at `box`.
    void found(Track& track, const Detection& box, const Moment& now, unsigned min_hits);
    Identity begin(const Detection& box, const Moment& now, unsigned min_hits);
    // After all were found: the rest is lost, or ends where it has no id yet.
    void close(const std::vector<char>& was_found, const Moment& now);
    void end_all();
    void restart();
    TrackCounts counts() const;

private:
    void confirm(Track& track);

    uint64_t next_id_ = 1;
    TrackCounts counts_;
};

}  // namespace vartml::vision
