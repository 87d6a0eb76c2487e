// SPDX-License-Identifier: Apache-2.0
// Zones and lines of a picture, and what tracked objects do there: who is in, since when, how many
// came and went, who crossed which way.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

namespace vartml {

struct ZonePoint {
    float x = 0, y = 0;
    bool operator==(const ZonePoint&) const = default;
};
/// A polygon whose last point is joined to the first, or a line of one or more pieces.
struct ZoneShape {
    std::string name;
    std::vector<ZonePoint> points;
    bool line = false;
    bool operator==(const ZoneShape&) const = default;
};
/// "NAME=X,Y X,Y …" and more of them behind semicolons: polygons of at least 3 points, lines of at
/// least 2. Names are what is before the `=`, without spaces around them; numbers have a point
/// whatever the locale. Errors: invalid_argument, naming the piece that was found and what was
/// expected.
Result<std::vector<ZoneShape>> parse_zones(std::string_view text, bool lines);

enum class ZoneEventKind : uint8_t {
    inside,    ///< was in the zone before and is now
    enter,     ///< came into the zone
    leave,     ///< is no longer in it
    cross_in,  ///< went over a line from its left to its right, seen from its first point
    cross_out  ///< the other way
};
/// "inside", "enter", "leave", "in", "out".
std::string_view to_string(ZoneEventKind kind);

/// Where a track is now: its anchor. Tracks of two labels are two, with whatever number.
struct ZoneVisitor {
    uint64_t track = 0;
    ZonePoint at;
    uint32_t label = 0;  ///< what it is; the same for all where a track may change it
};
struct ZoneEvent {
    size_t shape = 0;  ///< index of its zone or line
    ZoneEventKind kind = ZoneEventKind::inside;
    uint64_t track = 0;
    uint32_t label = 0;     ///< of the visitor
    int visitor = -1;       ///< its index on this frame; -1: the track is not on it
    uint64_t dwell_ns = 0;  ///< of inside and leave: how long it has been, or was, in the zone
};
struct ZoneCounts {
    uint64_t inside = 0;      ///< of a zone: tracks now
    uint64_t in = 0;          ///< tracks that entered, or crossings from left to right
    uint64_t out = 0;         ///< tracks that left, or crossings from right to left
    uint64_t longest_ns = 0;  ///< of a zone: the longest dwell so far
};

/// Counts the tracks of one stream. A point on the border of a polygon, or on a line, is on one
/// side of it. Thread-safety: none.
class ZoneCounter {
public:
    /// Shapes in any unit, which visitors are in as well. A track has left a zone when it was
    /// outside, or was not seen, for longer than `leave_after_ns`; its dwell ends when it was in
    /// last.
    explicit ZoneCounter(std::vector<ZoneShape> shapes = {}, uint64_t leave_after_ns = 0);
    /// Other shapes from the next frame on. Those that are as they were go on with their counts and
    /// visitors.
    void set_shapes(std::vector<ZoneShape> shapes, uint64_t leave_after_ns);
    /// Places that visitors had are those of another point from the next frame on: nobody crossed
    /// a line between them. Who is in a zone stays there.
    void forget_places();
    /// Places that visitors had are `x` and `y` times that from the next frame on, as where frames
    /// get another size; shapes stay as they are. Both are above 0.
    void rescale(double x, double y);
    /// The tracks of the frame at `time_ns`; `events` is overwritten, in the order of the shapes,
    /// those of tracks that ended before it first.
    /// Frames more than 10 s apart, in either direction, share no tracks. Time passes from
    /// frame to frame: one that is up to a second older than the newest adds none, after a longer
    /// step back it passes from there.
    void update(uint64_t time_ns, std::span<const ZoneVisitor> visitors,
                std::vector<ZoneEvent>& events);
    /// Forgets who is where: those that were in a zone have left it, which is added to `events`;
    /// counts go on.
    void end_tracks(std::vector<ZoneEvent>& events);
    const std::vector<ZoneShape>& shapes() const;
    std::span<const ZoneCounts> counts() const;  ///< one per shape

    ZoneCounter(ZoneCounter&&) noexcept;
    ZoneCounter& operator=(ZoneCounter&&) noexcept;
    ~ZoneCounter();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace vartml
