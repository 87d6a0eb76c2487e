// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/tracker.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <vector>

#include <vartml/track.h>

#include "lib/vision/assignment.h"

namespace vartml::vision {

// The tracks of a stream and how they begin, get lost and end.

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

namespace {

// Shares of the mean side. The first is that of SORT's successors (given: "Simple Online and
// Realtime Tracking with a Deep Association Metric", code), ours are the others, which say the same
// of seconds that it says of frames at 30 per second.
constexpr double seen = 1. / 20;       // standard deviation of a detected edge
constexpr double centre_velocity = 2;  // of an unknown velocity, per second
constexpr double size_velocity = 0.5;
constexpr double centre_change = 1;  // of the velocity, per second and root of a second
constexpr double size_change = 0.25;
constexpr double whole_pixels = 1. / 12;  // variance of rounding

double square(double value) {
    return value * value;
}

}  // namespace

void BoxMotion::Axis::pass(double t, double noise) {
    x += v * t;
    xx += 2 * t * xv + t * t * vv + noise * t * t * t / 3;
    xv += t * vv + noise * t * t / 2;
    vv += noise * t;
}

void BoxMotion::Axis::see(double z, double noise) {
    const double total = xx + noise, gain = xx / total, velocity_gain = xv / total;
    const double surprise = z - x;
    x += gain * surprise;
    v += velocity_gain * surprise;
    vv -= velocity_gain * xv;
    xv -= gain * xv;
    xx -= gain * xx;
}

BoxMotion::BoxMotion(const Detection& box) {
    cx_.x = (double{box.x0} + box.x1) / 2;
    cy_.x = (double{box.y0} + box.y1) / 2;
    w_.x = double{box.x1} - box.x0;
    h_.x = double{box.y1} - box.y0;
    const double s = scale();
    for (Axis* axis : {&cx_, &cy_, &w_, &h_}) axis->xx = square(seen * s) + whole_pixels;
    cx_.vv = cy_.vv = square(centre_velocity * s);
    w_.vv = h_.vv = square(size_velocity * s);
}

double BoxMotion::scale() const {
    return std::max(1., (w_.x + h_.x) / 2);
}

void BoxMotion::pass(double seconds) {
    const double s = scale();
    for (Axis* axis : {&cx_, &cy_}) axis->pass(seconds, square(centre_change * s));
    for (Axis* axis : {&w_, &h_}) axis->pass(seconds, square(size_change * s));
}

void BoxMotion::see(const Detection& box) {
    const double noise = square(seen * scale()) + whole_pixels;
    cx_.see((double{box.x0} + box.x1) / 2, noise);
    cy_.see((double{box.y0} + box.y1) / 2, noise);
    w_.see(double{box.x1} - box.x0, noise);
    h_.see(double{box.y1} - box.y0, noise);
}

void BoxMotion::hold_size() {
    w_.v = h_.v = 0;
}

Detection BoxMotion::expected(double seconds) const {
    const double x = cx_.x + cx_.v * seconds, y = cy_.x + cy_.v * seconds;
    const double w = std::max(1., w_.x + w_.v * seconds), h = std::max(1., h_.x + h_.v * seconds);
    return {.x0 = static_cast<float>(x - w / 2),
            .y0 = static_cast<float>(y - h / 2),
            .x1 = static_cast<float>(x + w / 2),
            .y1 = static_cast<float>(y + h / 2)};
}

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
