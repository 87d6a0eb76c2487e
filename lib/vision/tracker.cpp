// SPDX-License-Identifier: Apache-2.0
#include <vartml/track.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "lib/vision/assignment.h"
#include "lib/vision/track_list.h"

namespace vartml {
namespace {

using vision::Candidacy;
using vision::Moment;
using vision::Track;
using vision::TrackStage;

// A cut or a seek, not a gap of the camera.
constexpr uint64_t longest_step_ns = 10'000'000'000;

float area(const Detection& box) {
    return (box.x1 - box.x0) * (box.y1 - box.y0);
}

float overlap(const Detection& a, const Detection& b) {
    const float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    const float h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (w <= 0 || h <= 0) return 0;
    const float both = w * h;
    return std::min(1.f, both / (area(a) + area(b) - both));
}

bool has_area(const Detection& box) {
    return box.x0 < box.x1 && box.y0 < box.y1 && std::isfinite(area(box));
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

}  // namespace

Result<void> check(const TrackOptions& options) {
    if (options.algorithm == TrackAlgorithm::bytetrack && options.low_score > options.high_score) {
        return Error{ErrorCode::invalid_argument,
                     "low score " + number(options.low_score) + " is above high score " +
                         number(options.high_score) +
                         ", expected at most that: it begins the band below; lower the low score"};
    }
    return {};
}

struct Tracker::State {
    TrackOptions options;
    vision::TrackList list;
    vision::Assigner assigner;
    Moment now;
    std::optional<uint64_t> last_pts;    // of any frame
    std::optional<uint64_t> update_pts;  // of the last inferred one

    // of one update; kept for their memory
    std::vector<Detection> expected;  // of each track
    std::vector<char> found, taken;   // tracks, detections
    std::vector<uint32_t> rows, columns;
    std::vector<Candidacy> pairs;
    std::vector<int> column_of_row;

    void look_at(uint64_t pts);
    void advance(uint64_t pts);
    double seconds_since_update(uint64_t pts) const;
    void associate(std::span<const Detection> detections, double least,
                   std::vector<Identity>& identities);
    void take_rows(std::initializer_list<TrackStage> stages);
    void take_columns(std::span<const Detection> detections, double from, double below);
    void collect_pairs(std::span<const Detection> detections, double least);
};

void Tracker::State::look_at(uint64_t pts) {
    if (last_pts) {
        const uint64_t step = std::max(pts, *last_pts) - std::min(pts, *last_pts);
        if (step > longest_step_ns) list.end_all();
    }
    last_pts = pts;
}

double Tracker::State::seconds_since_update(uint64_t pts) const {
    return update_pts && pts > *update_pts ? static_cast<double>(pts - *update_pts) * 1e-9 : 0;
}

void Tracker::State::advance(uint64_t pts) {
    look_at(pts);
    if (update_pts && pts > *update_pts) now.clock_ns += pts - *update_pts;
    update_pts = now.pts_ns = pts;
}

void Tracker::State::take_rows(std::initializer_list<TrackStage> stages) {
    rows.clear();
    for (uint32_t i = 0; i < found.size(); ++i) {
        if (!found[i] && std::ranges::count(stages, list.tracks[i].stage)) rows.push_back(i);
    }
}

void Tracker::State::take_columns(std::span<const Detection> detections, double from,
                                  double below) {
    const auto low = static_cast<float>(from), high = static_cast<float>(below);
    columns.clear();
    for (uint32_t i = 0; i < detections.size(); ++i) {
        const float score = detections[i].score;
        if (!taken[i] && score >= low && score < high) columns.push_back(i);
    }
}

void Tracker::State::collect_pairs(std::span<const Detection> detections, double least) {
    pairs.clear();
    for (uint32_t r = 0; r < rows.size(); ++r) {
        const Detection& place = expected[rows[r]];
        const int32_t class_id = list.tracks[rows[r]].class_id;
        for (uint32_t c = 0; c < columns.size(); ++c) {
            const Detection& detection = detections[columns[c]];
            if (options.per_class && detection.class_id != class_id) continue;
            const float share = overlap(place, detection);
            if (share > 0 && share >= static_cast<float>(least)) pairs.push_back({r, c, share});
        }
    }
}

// Between `rows` and `columns`.
void Tracker::State::associate(std::span<const Detection> detections, double least,
                               std::vector<Identity>& identities) {
    collect_pairs(detections, least);
    if (options.algorithm == TrackAlgorithm::bytetrack) {
        assigner.optimal(rows.size(), columns.size(), pairs, column_of_row);
    } else {
        assigner.greedy(rows.size(), columns.size(), pairs, column_of_row);
    }
    for (size_t r = 0; r < rows.size(); ++r) {
        if (column_of_row[r] == vision::Assigner::none) continue;
        const uint32_t detection = columns[static_cast<size_t>(column_of_row[r])];
        Track& track = list.tracks[rows[r]];
        list.found(track, detections[detection], now, options.min_hits);
        found[rows[r]] = taken[detection] = 1;
        identities[detection] = track.identity;
    }
}

Tracker::Tracker(const TrackOptions& options) : state_(std::make_unique<State>()) {
    state_->options = options;
}
Tracker::Tracker(Tracker&&) noexcept = default;
Tracker& Tracker::operator=(Tracker&&) noexcept = default;
Tracker::~Tracker() = default;

void Tracker::set_options(const TrackOptions& options) {
    state_->options = options;
}

void Tracker::update(uint64_t time_ns, std::span<const Detection> detections,
                     std::vector<Identity>& identities) {
    constexpr double any = HUGE_VAL;
    State& s = *state_;
    const TrackOptions& o = s.options;
    const bool bands = o.algorithm == TrackAlgorithm::bytetrack;
    const double certain = bands ? o.high_score : o.low_score;
    s.advance(time_ns);
    s.list.move(s.now, o.max_lost_ns);
    s.expected.clear();
    for (const Track& track : s.list.tracks) s.expected.push_back(track.motion.expected());
    s.found.assign(s.list.tracks.size(), 0);
    s.taken.resize(detections.size());
    std::ranges::transform(detections, s.taken.begin(),
                           [](const Detection& d) { return static_cast<char>(!has_area(d)); });
    identities.assign(detections.size(), {});

    s.take_rows({TrackStage::tracked, TrackStage::lost});
    s.take_columns(detections, certain, any);
    s.associate(detections, o.match_iou, identities);
    if (bands) {  // an uncertain box does not bring a lost track back
        s.take_rows({TrackStage::tracked});
        s.take_columns(detections, o.low_score, o.high_score);
        s.associate(detections, o.low_match_iou, identities);
    }
    s.take_rows({TrackStage::tentative});
    s.take_columns(detections, certain, any);
    s.associate(detections, o.match_iou, identities);

    s.list.close(s.found, s.now);
    s.take_columns(detections, std::max(certain, o.new_track_score), any);
    for (const uint32_t c : s.columns)
        identities[c] = s.list.begin(detections[c], s.now, o.min_hits);
}

void Tracker::predict(uint64_t time_ns, std::vector<PredictedBox>& boxes) {
    State& s = *state_;
    s.look_at(time_ns);
    boxes.clear();
    const double ahead = s.seconds_since_update(time_ns);
    for (const Track& track : s.list.tracks) {
        if (track.stage != TrackStage::tracked) continue;
        const double moved = static_cast<double>(s.now.clock_ns - track.moved_ns) * 1e-9;
        Detection box = track.motion.expected(moved + ahead);
        box.score = track.score;
        box.class_id = track.class_id;
        boxes.push_back({track.identity, track.last_seen_ns, box});
    }
}

void Tracker::end_tracks() {
    state_->list.end_all();
    state_->last_pts.reset();
    state_->update_pts.reset();
}

void Tracker::restart() {
    end_tracks();
    state_->list.restart();
}

TrackCounts Tracker::counts() const {
    return state_->list.counts();
}

}  // namespace vartml
