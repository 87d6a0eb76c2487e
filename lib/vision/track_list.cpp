// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/track_list.h"

#include <algorithm>

namespace vartml::vision {

void TrackList::move(const Moment& now, uint64_t max_lost_ns) {
    std::erase_if(tracks, [&](const Track& track) {
        return track.stage == TrackStage::lost && now.clock_ns - track.lost_ns > max_lost_ns;
    });
    for (Track& track : tracks) {
        track.motion.pass(static_cast<double>(now.clock_ns - track.moved_ns) * 1e-9);
        track.moved_ns = now.clock_ns;
    }
}

void TrackList::confirm(Track& track) {
    track.identity.id = next_id_++;
    track.stage = TrackStage::tracked;
    ++counts_.total;
}

void TrackList::found(Track& track, const Detection& box, const Moment& now, unsigned min_hits) {
    track.motion.see(box);
    track.score = box.score;
    track.class_id = box.class_id;
    track.last_seen_ns = now.pts_ns;
    ++track.hits;
    ++counts_.matched;
    if (track.stage == TrackStage::lost) track.stage = TrackStage::tracked;
    if (track.stage == TrackStage::tentative && track.hits >= min_hits) confirm(track);
}

Identity TrackList::begin(const Detection& box, const Moment& now, unsigned min_hits) {
    tracks.push_back({.identity = {.id = 0, .first_seen_ns = now.pts_ns},
                      .last_seen_ns = now.pts_ns,
                      .moved_ns = now.clock_ns,
                      .motion = BoxMotion(box),
                      .score = box.score,
                      .class_id = box.class_id});
    if (min_hits <= 1) confirm(tracks.back());
    return tracks.back().identity;
}

void TrackList::close(const std::vector<char>& was_found, const Moment& now) {
    for (size_t i = 0; i < was_found.size(); ++i) {
        Track& track = tracks[i];
        if (was_found[i] || track.stage != TrackStage::tracked) continue;
        track.stage = TrackStage::lost;
        track.lost_ns = now.clock_ns;
        track.motion.hold_size();
        ++counts_.lost;
    }
    size_t index = 0;
    std::erase_if(tracks, [&](const Track& track) {
        const bool missed = index < was_found.size() && !was_found[index];
        ++index;
        return missed && track.stage == TrackStage::tentative;
    });
}

void TrackList::end_all() {
    tracks.clear();
}

void TrackList::restart() {
    tracks.clear();
    next_id_ = 1;
}

TrackCounts TrackList::counts() const {
    TrackCounts counts = counts_;
    counts.live = static_cast<uint64_t>(std::ranges::count_if(
        tracks, [](const Track& track) { return track.stage == TrackStage::tracked; }));
    return counts;
}

}  // namespace vartml::vision
