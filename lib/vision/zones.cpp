// SPDX-License-Identifier: Apache-2.0
#include <vartml/zones.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

namespace vartml {
namespace {

constexpr uint64_t longest_step_ns = 10'000'000'000;     // as the tracker's
constexpr uint64_t longest_disorder_ns = 1'000'000'000;  // ours: longer than frames are reordered

std::string_view trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t\n");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// What is before the next `separator`, which goes with it.
std::string_view take(std::string_view& text, char separator) {
    const size_t end = text.find(separator);
    const std::string_view first = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    return first;
}

bool read_number(std::string_view text, float& number) {
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    return read.ec == std::errc() && read.ptr == end && std::isfinite(number);
}

bool read_point(std::string_view text, ZonePoint& point) {
    const std::string_view x = take(text, ',');
    return read_number(x, point.x) && read_number(text, point.y);
}

Error refuse(std::string_view found, const std::string& why, bool lines) {
    return {
        ErrorCode::invalid_argument,
        "'" + std::string(found) + "' " + why + "; expected " +
            (lines ? "NAME=X,Y X,Y of two points or more, lines separated by semicolons"
                   : "NAME=X,Y X,Y X,Y of three points or more, zones separated by semicolons")};
}

// Above 0: `p` is to the right of the way from `a` to `b`, on a screen whose y points down.
double side(ZonePoint a, ZonePoint b, ZonePoint p) {
    return (double(b.x) - a.x) * (double(p.y) - a.y) - (double(b.y) - a.y) * (double(p.x) - a.x);
}

// Whether anything can be in a zone, or cross a line: the points are not all in one place, those of
// a zone not all on a line.
bool has_extent(std::span<const ZonePoint> points, bool line) {
    const ZonePoint first = points.front();
    const auto other =
        std::ranges::find_if(points, [&](ZonePoint p) { return p.x != first.x || p.y != first.y; });
    if (other == points.end()) return false;
    return line ||
           std::ranges::any_of(points, [&](ZonePoint p) { return side(first, *other, p) != 0; });
}

}  // namespace

Result<std::vector<ZoneShape>> parse_zones(std::string_view text, bool lines) {
    std::vector<ZoneShape> shapes;
    while (!text.empty()) {
        const std::string_view piece = trimmed(take(text, ';'));
        if (piece.empty()) continue;
        std::string_view rest = piece;
        ZoneShape shape{std::string(trimmed(take(rest, '='))), {}, lines};
        if (shape.name.empty() || piece.find('=') == std::string_view::npos)
            return refuse(piece, "has no name", lines);
        if (std::ranges::find(shapes, shape.name, &ZoneShape::name) != shapes.end())
            return refuse(piece, "has the name of another one", lines);
        while (!(rest = trimmed(rest)).empty()) {
            const std::string_view word = take(rest, ' ');
            ZonePoint point;
            if (!read_point(word, point))
                return refuse(piece, "has '" + std::string(word) + "' where a point should be",
                              lines);
            shape.points.push_back(point);
        }
        if (shape.points.size() < (lines ? 2 : 3))
            return refuse(piece, "has " + std::to_string(shape.points.size()) + " points", lines);
        if (!has_extent(shape.points, lines))
            return refuse(piece, lines ? "has all its points in one place" : "has no area", lines);
        shapes.push_back(std::move(shape));
    }
    return shapes;
}

std::string_view to_string(ZoneEventKind kind) {
    constexpr std::string_view names[] = {"inside", "enter", "leave", "in", "out"};
    return names[static_cast<size_t>(kind)];
}

// ---- where a point is ----

namespace {

// Even-odd rule: a ray to the right meets an odd number of sides. Sides have their upper end and
// not their lower one.
bool contains(std::span<const ZonePoint> polygon, ZonePoint p) {
    bool inside = false;
    for (size_t i = 0, j = polygon.size() - 1; i < polygon.size(); j = i++) {
        const ZonePoint a = polygon[i], b = polygon[j];
        if ((a.y > p.y) == (b.y > p.y)) continue;
        const double x = a.x + (double(p.y) - a.y) / (double(b.y) - a.y) * (double(b.x) - a.x);
        inside ^= p.x < x;
    }
    return inside;
}

// 1: the way from `p` to `q` crosses the piece from its left to its right, -1: the other way, 0:
// not at all. What lies on a line is to its right.
int crossing(ZonePoint a, ZonePoint b, ZonePoint p, ZonePoint q) {
    const bool from = side(a, b, p) >= 0, to = side(a, b, q) >= 0;
    if (from == to || (side(p, q, a) >= 0) == (side(p, q, b) >= 0)) return 0;
    return to ? 1 : -1;
}

struct Track {
    ZonePoint at;
    uint64_t seen_ns = 0;
};
struct Stay {
    uint64_t since_ns = 0, last_ns = 0;
};
// In the order in which events are told.
struct Who {
    uint64_t track = 0;
    uint32_t label = 0;
    auto operator<=>(const Who&) const = default;
};
Who identity_of(const ZoneVisitor& visitor) {
    return {visitor.track, visitor.label};
}

}  // namespace

struct ZoneCounter::State {
    std::vector<ZoneShape> shapes;
    std::vector<ZoneCounts> counts;
    uint64_t leave_after_ns = 0;
    uint64_t now_ns = 0;                // time that passed in this stream; never goes back
    std::optional<uint64_t> newest_ns;  // time of the frame that `now_ns` is of
    std::map<Who, Track> tracks;
    std::vector<std::map<Who, Stay>> stays;  // by shape

    void pass(uint64_t time_ns);
    void visit_line(size_t i, std::span<const ZoneVisitor> visitors,
                    std::vector<ZoneEvent>& events);
    void visit_zone(size_t i, std::span<const ZoneVisitor> visitors,
                    std::vector<ZoneEvent>& events);
    void leave(size_t i, const Who& who, const Stay& stay, int visitor,
               std::vector<ZoneEvent>& events);
    void leave_zone(size_t i, std::span<const ZoneVisitor> visitors,
                    std::vector<ZoneEvent>& events);
};

// A frame that is a little older came in another order; with one that is much older the stream
// begins once more at an earlier time, and time passes from there.
void ZoneCounter::State::pass(uint64_t time_ns) {
    const uint64_t newest = newest_ns.value_or(time_ns);
    if (time_ns < newest && newest - time_ns <= longest_disorder_ns) return;
    if (time_ns > newest) now_ns += time_ns - newest;
    newest_ns = time_ns;
}

void ZoneCounter::State::visit_line(size_t i, std::span<const ZoneVisitor> visitors,
                                    std::vector<ZoneEvent>& events) {
    const std::vector<ZonePoint>& points = shapes[i].points;
    for (size_t v = 0; v < visitors.size(); ++v) {
        const auto known = tracks.find(identity_of(visitors[v]));
        if (known == tracks.end()) continue;
        int ways = 0;  // a line of several pieces may be crossed back and forth at once
        for (size_t k = 0; k + 1 < points.size(); ++k)
            ways += crossing(points[k], points[k + 1], known->second.at, visitors[v].at);
        if (ways == 0) continue;
        ++(ways > 0 ? counts[i].in : counts[i].out);
        events.push_back({i, ways > 0 ? ZoneEventKind::cross_in : ZoneEventKind::cross_out,
                          visitors[v].track, visitors[v].label, static_cast<int>(v), 0});
    }
}

void ZoneCounter::State::visit_zone(size_t i, std::span<const ZoneVisitor> visitors,
                                    std::vector<ZoneEvent>& events) {
    for (size_t v = 0; v < visitors.size(); ++v) {
        if (!contains(shapes[i].points, visitors[v].at)) continue;
        const auto [stay, came] =
            stays[i].try_emplace(identity_of(visitors[v]), Stay{now_ns, now_ns});
        stay->second.last_ns = now_ns;
        const uint64_t dwell = now_ns - stay->second.since_ns;
        counts[i].in += came;
        counts[i].longest_ns = std::max(counts[i].longest_ns, dwell);
        events.push_back({i, came ? ZoneEventKind::enter : ZoneEventKind::inside, visitors[v].track,
                          visitors[v].label, static_cast<int>(v), dwell});
    }
}

void ZoneCounter::State::leave(size_t i, const Who& who, const Stay& stay, int visitor,
                               std::vector<ZoneEvent>& events) {
    events.push_back(
        {i, ZoneEventKind::leave, who.track, who.label, visitor, stay.last_ns - stay.since_ns});
    ++counts[i].out;
}

void ZoneCounter::State::leave_zone(size_t i, std::span<const ZoneVisitor> visitors,
                                    std::vector<ZoneEvent>& events) {
    std::erase_if(stays[i], [&](const auto& one) {
        const auto& [left, stay] = one;
        if (now_ns - stay.last_ns <= leave_after_ns) return false;
        const auto visitor = std::ranges::find(visitors, left, identity_of);
        leave(i, left, stay, visitor == visitors.end() ? -1 : int(visitor - visitors.begin()),
              events);
        return true;
    });
    counts[i].inside = stays[i].size();
}

ZoneCounter::ZoneCounter(std::vector<ZoneShape> shapes, uint64_t leave_after_ns)
    : state_(std::make_unique<State>()) {
    set_shapes(std::move(shapes), leave_after_ns);
}

void ZoneCounter::set_shapes(std::vector<ZoneShape> shapes, uint64_t leave_after_ns) {
    State& s = *state_;
    std::vector<ZoneCounts> counts(shapes.size());
    std::vector<std::map<Who, Stay>> stays(shapes.size());
    for (size_t i = 0; i < shapes.size(); ++i) {
        const auto before = std::ranges::find(s.shapes, shapes[i]);
        if (before == s.shapes.end()) continue;
        const auto old = static_cast<size_t>(before - s.shapes.begin());
        counts[i] = s.counts[old];
        stays[i] = std::move(s.stays[old]);
    }
    s.shapes = std::move(shapes);
    s.counts = std::move(counts);
    s.stays = std::move(stays);
    s.leave_after_ns = leave_after_ns;
}

void ZoneCounter::forget_places() {
    state_->tracks.clear();
}

void ZoneCounter::rescale(double x, double y) {
    for (auto& [id, track] : state_->tracks) {
        track.at.x = static_cast<float>(track.at.x * x);
        track.at.y = static_cast<float>(track.at.y * y);
    }
}

void ZoneCounter::update(uint64_t time_ns, std::span<const ZoneVisitor> visitors,
                         std::vector<ZoneEvent>& events) {
    State& s = *state_;
    events.clear();
    const uint64_t newest = s.newest_ns.value_or(time_ns);
    if (std::max(time_ns, newest) - std::min(time_ns, newest) > longest_step_ns) end_tracks(events);
    s.pass(time_ns);
    for (size_t i = 0; i < s.shapes.size(); ++i) {
        if (s.shapes[i].line) {
            s.visit_line(i, visitors, events);
        } else {
            s.visit_zone(i, visitors, events);
            s.leave_zone(i, visitors, events);
        }
    }
    for (const ZoneVisitor& visitor : visitors)
        s.tracks[identity_of(visitor)] = {visitor.at, s.now_ns};
    std::erase_if(s.tracks,
                  [&](const auto& one) { return s.now_ns - one.second.seen_ns > longest_step_ns; });
}

void ZoneCounter::end_tracks(std::vector<ZoneEvent>& events) {
    State& s = *state_;
    s.tracks.clear();
    s.newest_ns.reset();
    for (size_t i = 0; i < s.stays.size(); ++i) {
        for (const auto& [left, stay] : s.stays[i]) s.leave(i, left, stay, -1, events);
        s.counts[i].inside = 0;
        s.stays[i].clear();
    }
}

const std::vector<ZoneShape>& ZoneCounter::shapes() const {
    return state_->shapes;
}
std::span<const ZoneCounts> ZoneCounter::counts() const {
    return state_->counts;
}

ZoneCounter::ZoneCounter(ZoneCounter&&) noexcept = default;
ZoneCounter& ZoneCounter::operator=(ZoneCounter&&) noexcept = default;
ZoneCounter::~ZoneCounter() = default;

}  // namespace vartml
