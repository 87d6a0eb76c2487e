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

    // What ocsort remembers: boxes as they were seen, and what happened since.
    struct Observation {
        uint64_t age;  // of the track, in inferred frames
        Detection box;
    };
    std::vector<Observation> observations{};  // the last ones, the newest at the end
    uint64_t age = 0, seen_clock_ns = 0;
    double direction_x = 0, direction_y = 0;  // length 1, or 0 while it is not known
    std::optional<BoxMotion> at_loss{};       // at the first of `missed`
    std::vector<uint64_t> missed{};           // clocks of the frames since it was seen
    std::vector<float> looks{};               // length 1, or empty
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
    // The track was found at `box`; `anew`: what is not known of the time of its loss is a line.
    void found(Track& track, const Detection& box, const Moment& now, unsigned min_hits, bool anew);
    Identity begin(const Detection& box, const Moment& now, unsigned min_hits);
    // After all were found: the rest is lost, or ends where it has no id yet.
    void close(const std::vector<char>& was_found, const Moment& now);
    void rescale(double x, double y);
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

// given: OC-SORT, the frames between the two boxes that a direction is made of.
constexpr uint64_t direction_frames = 3;
// given: StrongSORT, the share of its looks that a track keeps.
constexpr float kept_looks = 0.9f;

struct Direction {
    double x, y;
};
// From the centre of one box to that of another; of length 1, a little less where they are near.
Direction direction(const Detection& from, const Detection& to) {
    const double x = (double{to.x0} + to.x1 - from.x0 - from.x1) / 2;
    const double y = (double{to.y0} + to.y1 - from.y0 - from.y1) / 2;
    const double length = std::sqrt(x * x + y * y) + 1e-6;
    return {x / length, y / length};
}

// The box that a track had `direction_frames` ago, else the next younger one, else the last.
const Detection& earlier_box(const Track& track) {
    for (uint64_t frames = direction_frames; frames > 0; --frames) {
        for (const Track::Observation& o : track.observations)
            if (o.age + frames == track.age) return o.box;
    }
    return track.observations.back().box;
}

void observe(Track& track, const Detection& box, const Moment& now) {
    if (!track.observations.empty()) {
        const Direction d = direction(earlier_box(track), box);
        track.direction_x = d.x, track.direction_y = d.y;
    }
    if (track.observations.size() > direction_frames)
        track.observations.erase(track.observations.begin());
    track.observations.push_back({track.age, box});
    track.seen_clock_ns = now.clock_ns;
    track.at_loss.reset();
    track.missed.clear();
}

// Between two boxes.
Detection between(const Detection& a, const Detection& b, double share) {
    const auto part = [share](float from, float to) {
        return static_cast<float>(from + share * (double{to} - from));
    };
    return {.x0 = part(a.x0, b.x0),
            .y0 = part(a.y0, b.y0),
            .x1 = part(a.x1, b.x1),
            .y1 = part(a.y1, b.y1)};
}

// As if the track had been seen on every frame of its loss, on the way to `box`.
void update_anew(Track& track, const Detection& box, const Moment& now) {
    const Detection last = track.observations.back().box;
    const auto span = static_cast<double>(now.clock_ns - track.seen_clock_ns);
    if (!track.at_loss || span <= 0) return;
    track.motion = *track.at_loss;
    for (size_t i = 0; i < track.missed.size(); ++i) {
        const uint64_t next = i + 1 < track.missed.size() ? track.missed[i + 1] : now.clock_ns;
        const auto passed = static_cast<double>(track.missed[i] - track.seen_clock_ns);
        track.motion.see(between(last, box, passed / span));
        track.motion.pass(static_cast<double>(next - track.missed[i]) * 1e-9);
    }
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

void BoxMotion::Axis::rescale(double by) {
    x *= by, v *= by;
    xx *= by * by, xv *= by * by, vv *= by * by;
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

void BoxMotion::rescale(double x, double y) {
    for (Axis* axis : {&cx_, &w_}) axis->rescale(x);
    for (Axis* axis : {&cy_, &h_}) axis->rescale(y);
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
        ++track.age;
    }
}

void TrackList::confirm(Track& track) {
    track.identity.id = next_id_++;
    track.stage = TrackStage::tracked;
    ++counts_.total;
}

void TrackList::found(Track& track, const Detection& box, const Moment& now, unsigned min_hits,
                      bool anew) {
    if (anew && track.stage == TrackStage::lost) update_anew(track, box, now);
    track.motion.see(box);
    observe(track, box, now);
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
    observe(tracks.back(), box, now);
    if (min_hits <= 1) confirm(tracks.back());
    return tracks.back().identity;
}

void TrackList::close(const std::vector<char>& was_found, const Moment& now) {
    for (size_t i = 0; i < was_found.size(); ++i) {
        Track& track = tracks[i];
        if (was_found[i] || track.stage == TrackStage::tentative) continue;
        if (!track.at_loss) track.at_loss = track.motion;
        track.missed.push_back(now.clock_ns);
        if (track.stage == TrackStage::lost) continue;
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

void TrackList::rescale(double x, double y) {
    for (Track& track : tracks) {
        track.motion.rescale(x, y);
        if (track.at_loss) track.at_loss->rescale(x, y);
        for (Track::Observation& o : track.observations) {
            for (float* edge : {&o.box.x0, &o.box.x1}) *edge = static_cast<float>(*edge * x);
            for (float* edge : {&o.box.y0, &o.box.y1}) *edge = static_cast<float>(*edge * y);
        }
        const double length = std::hypot(track.direction_x * x, track.direction_y * y);
        if (length == 0) continue;
        track.direction_x *= x / length, track.direction_y *= y / length;
    }
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
    if (options.algorithm != TrackAlgorithm::iou && options.low_score > options.high_score) {
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
    std::span<const std::span<const float>> looks;  // of the detections; may be none

    void look_at(uint64_t pts);
    void advance(uint64_t pts);
    double seconds_since_update(uint64_t pts) const;
    void associate(std::span<const Detection> detections, double least,
                   std::vector<Identity>& identities);
    void take_rows(std::initializer_list<TrackStage> stages);
    void take_columns(std::span<const Detection> detections, double from, double below);
    void collect_pairs(std::span<const Detection> detections, double least);
    float worth(const Track& track, const Detection& detection, uint32_t column, float share) const;
    std::optional<float> similarity(const Track& track, uint32_t column) const;
    void match(std::span<const Detection> detections, std::vector<Identity>& identities);
    void compare_last_boxes();
    void recognise(std::span<const Detection> detections, std::vector<Identity>& identities);
    void remember_looks(Track& track, uint32_t column) const;
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
            if (!(share > 0 && share >= static_cast<float>(least))) continue;
            pairs.push_back({r, c, worth(list.tracks[rows[r]], detection, columns[c], share)});
        }
    }
}

// The cosine; nothing where one of them has no looks, or those of another model.
std::optional<float> Tracker::State::similarity(const Track& track, uint32_t column) const {
    if (looks.empty() || track.looks.empty() || looks[column].size() != track.looks.size())
        return std::nullopt;
    float sum = 0;
    for (size_t i = 0; i < track.looks.size(); ++i) sum += track.looks[i] * looks[column][i];
    return std::clamp(sum, -1.f, 1.f);
}

// The overlap, and where they say something direction and looks: a number from 0 to 1.
// given: OC-SORT, equation 4: the angle between the direction of the track and that to the box is
// worth (pi / 2 - angle) / pi, by the score of the box.
float Tracker::State::worth(const Track& track, const Detection& detection, uint32_t column,
                            float share) const {
    const double momentum = options.algorithm == TrackAlgorithm::ocsort ? options.momentum : 0;
    const double appearance = looks.empty() ? 0 : options.appearance;
    if (momentum == 0 && appearance == 0) return share;
    constexpr double pi = 3.14159265358979323846;
    const vision::Direction d = vision::direction(vision::earlier_box(track), detection);
    const double cosine = std::clamp(d.x * track.direction_x + d.y * track.direction_y, -1., 1.);
    const double kept = (pi / 2 - std::acos(cosine)) / pi * detection.score;  // -0.5 to 0.5
    const double alike = (1 + double{similarity(track, column).value_or(0)}) / 2;
    const double sum = share + momentum * (kept + 0.5) + appearance * alike;
    return static_cast<float>(sum / (1 + momentum + appearance));
}

void Tracker::State::remember_looks(Track& track, uint32_t column) const {
    if (looks.empty() || looks[column].empty()) return;
    const auto seen = looks[column];
    if (track.looks.size() != seen.size()) {
        track.looks.assign(seen.begin(), seen.end());
        return;
    }
    float squares = 0;
    for (size_t i = 0; i < seen.size(); ++i) {
        track.looks[i] = vision::kept_looks * track.looks[i] + (1 - vision::kept_looks) * seen[i];
        squares += track.looks[i] * track.looks[i];
    }
    const float scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (float& v : track.looks) v *= scale;
}

// Of what is left, boxes where a track was seen last.
void Tracker::State::compare_last_boxes() {
    for (const uint32_t row : rows) expected[row] = list.tracks[row].observations.back().box;
}

// Of what is left, boxes that look like a track, wherever they are.
void Tracker::State::recognise(std::span<const Detection> detections,
                               std::vector<Identity>& identities) {
    pairs.clear();
    for (uint32_t r = 0; r < rows.size(); ++r) {
        const Track& track = list.tracks[rows[r]];
        for (uint32_t c = 0; c < columns.size(); ++c) {
            if (options.per_class && detections[columns[c]].class_id != track.class_id) continue;
            const auto alike = similarity(track, columns[c]);
            if (alike && *alike >= static_cast<float>(options.reid_similarity))
                pairs.push_back({r, c, *alike});
        }
    }
    match(detections, identities);
}

// Between `rows` and `columns`.
void Tracker::State::associate(std::span<const Detection> detections, double least,
                               std::vector<Identity>& identities) {
    collect_pairs(detections, least);
    match(detections, identities);
}

void Tracker::State::match(std::span<const Detection> detections,
                           std::vector<Identity>& identities) {
    if (options.algorithm == TrackAlgorithm::iou) {
        assigner.greedy(rows.size(), columns.size(), pairs, column_of_row);
    } else {
        assigner.optimal(rows.size(), columns.size(), pairs, column_of_row);
    }
    for (size_t r = 0; r < rows.size(); ++r) {
        if (column_of_row[r] == vision::Assigner::none) continue;
        const uint32_t detection = columns[static_cast<size_t>(column_of_row[r])];
        Track& track = list.tracks[rows[r]];
        list.found(track, detections[detection], now, options.min_hits,
                   options.algorithm == TrackAlgorithm::ocsort);
        remember_looks(track, detection);
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
                     std::vector<Identity>& identities,
                     std::span<const std::span<const float>> looks) {
    constexpr double any = HUGE_VAL;
    State& s = *state_;
    const TrackOptions& o = s.options;
    const bool bands = o.algorithm != TrackAlgorithm::iou;
    s.looks = looks.size() == detections.size() ? looks : std::span<const std::span<const float>>();
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
    if (o.algorithm == TrackAlgorithm::ocsort) {
        s.take_rows({TrackStage::tracked, TrackStage::lost});
        s.take_columns(detections, certain, any);
        s.compare_last_boxes();
        s.associate(detections, o.match_iou, identities);
    }
    s.take_rows({TrackStage::tentative});
    s.take_columns(detections, certain, any);
    s.associate(detections, o.match_iou, identities);
    if (o.reid_similarity > 0 && !s.looks.empty()) {
        s.take_rows({TrackStage::tracked, TrackStage::lost});
        s.take_columns(detections, certain, any);
        s.recognise(detections, identities);
    }

    s.list.close(s.found, s.now);
    s.take_columns(detections, std::max(certain, o.new_track_score), any);
    for (const uint32_t c : s.columns) {
        identities[c] = s.list.begin(detections[c], s.now, o.min_hits);
        s.remember_looks(s.list.tracks.back(), c);
    }
    s.looks = {};
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

void Tracker::rescale(double x, double y) {
    state_->list.rescale(x, y);
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
