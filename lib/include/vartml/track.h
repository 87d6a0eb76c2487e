// SPDX-License-Identifier: Apache-2.0
// Tracker: gives the boxes of a stream identities that last over frames.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <vartml/postprocess.h>
#include <vartml/result.h>

namespace vartml {

/// How boxes find their tracks. All compare a box with the place where a track is expected by
/// constant velocity.
enum class TrackAlgorithm : uint8_t {
    iou,        ///< one association, the largest overlap first
    bytetrack,  ///< certain boxes first, then uncertain ones for what is left; the best sum of
                ///< overlaps (given: ByteTrack, "Multi-Object Tracking by Associating Every
                ///< Detection Box")
    ocsort  ///< the same, by observations: boxes that keep the direction of a track's last ones are
            ///< better; a track that is found again is estimated anew along a straight line; and
            ///< what is left is compared with the last box that was seen (given: "Observation-
            ///< Centric SORT: Rethinking SORT for Robust Multi-Object Tracking")
};

struct TrackOptions {
    TrackAlgorithm algorithm = TrackAlgorithm::bytetrack;
    double high_score = 0.5;  ///< least score in the first association; iou: unused
    double low_score = 0.1;   ///< least score in the second association; iou: in its only one
    /// Least score of a box that begins a track. ByteTrack has a tenth more than high_score, which
    /// detectors whose scores are low never reach.
    double new_track_score = 0.5;
    double match_iou = 0.2;             ///< least overlap in the first association
    double low_match_iou = 0.5;         ///< least overlap in the second
    uint64_t max_lost_ns = 1000000000;  ///< a lost track ends after this time
    unsigned min_hits = 1;  ///< boxes in successive inferred frames before a track has an id
    bool per_class = true;  ///< never match across classes
    double momentum = 0.2;  ///< ocsort: weight of the direction beside the overlap
    /// Weight of the cosine beside the overlap, of boxes and tracks that have embeddings.
    double appearance = 0.5;
    /// Cosine from which a box continues a track that it does not overlap; 0 = never.
    double reid_similarity = 0;
};

/// Errors: invalid_argument when the bands contradict each other (`low_score` above `high_score`).
Result<void> check(const TrackOptions& options);

/// What a box belongs to.
struct Identity {
    uint64_t id = 0;             ///< from 1; 0 = no track, or not one with an id yet
    uint64_t first_seen_ns = 0;  ///< time of the track's first box
};

/// A track on a frame that was not inferred.
struct PredictedBox {
    Identity identity;
    uint64_t last_seen_ns = 0;
    Detection box;  ///< at the expected place, not clipped; score and class of the last box
};

struct TrackCounts {
    uint64_t live = 0;     ///< tracks with an id that the last inferred frame showed
    uint64_t total = 0;    ///< ids given
    uint64_t matched = 0;  ///< boxes that continued a track
    uint64_t lost = 0;     ///< times that a track with an id was not found on an inferred frame
};

/// Tracks the boxes of one stream. Equal calls give equal identities, on every machine. Ids are
/// never reused; frames more than 10 s apart, in either direction, share no tracks.
/// Thread-safety: none; one thread at a time.
class Tracker {
public:
    explicit Tracker(const TrackOptions& options);
    /// Applies from the next frame.
    void set_options(const TrackOptions& options);

    /// A frame that was inferred; `time_ns` is its PTS, which may lie before frames that were
    /// predicted: results come later than pictures. One identity per detection. Tracks without
    /// a detection are lost, and end when they stay so for longer than `max_lost_ns`. Detections
    /// without area get no track. `looks`, if there are any, are the embeddings of the detections,
    /// one each: of length 1, or empty.
    void update(uint64_t time_ns, std::span<const Detection> detections,
                std::vector<Identity>& identities,
                std::span<const std::span<const float>> looks = {});
    /// A frame that was not inferred: no track ages. `boxes` gets those tracks with an id that are
    /// not lost, by id.
    void predict(uint64_t time_ns, std::vector<PredictedBox>& boxes);

    /// Frames from the next one on show the same with `x` times the width and `y` times the height:
    /// tracks go on where they are in it. Both are above 0.
    void rescale(double x, double y);
    void end_tracks();  ///< ids go on
    void restart();     ///< a new stream: ids begin at 1
    /// Since construction, over restarts.
    TrackCounts counts() const;

    Tracker(Tracker&&) noexcept;
    Tracker& operator=(Tracker&&) noexcept;
    ~Tracker();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace vartml
