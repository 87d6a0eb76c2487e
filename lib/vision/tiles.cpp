// SPDX-License-Identifier: Apache-2.0
#include <vartml/tiles.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <string>

#include "lib/vision/suppress.h"

namespace vartml {
namespace {

// ours
constexpr unsigned most_tiles = 256, least_side = 16;
constexpr double inside = 0.5;        // part of a fragment that lies in another box of the object
constexpr double alongside = 0.5;     // part that fragments on both sides of a seam share along it
constexpr double near_border = 0.05;  // of a box's side; detectors do not end at a border exactly
constexpr int model_pixels_near = 2;
constexpr uint32_t widest_mask = 640;  // of joined masks

// Where neighbours of one size begin on a side of `size` pixels.
struct Division {
    unsigned count;
    uint32_t size;
    int length;
    int begin(unsigned i) const {
        if (count < 2) return 0;
        return int(std::lround(double(i) * (double(size) - length) / (count - 1)));
    }
};

Division divide(unsigned count, double overlap, uint32_t size) {
    const double length = std::ceil(size / (count - (count - 1) * overlap));
    return {count, size, int(std::min<double>(length, size))};
}

}  // namespace

Result<TileGrid> parse_tile_grid(std::string_view text) {
    TileGrid grid;
    const char* const end = text.data() + text.size();
    const auto columns = std::from_chars(text.data(), end, grid.columns);
    const bool times = columns.ec == std::errc() && columns.ptr != end && *columns.ptr == 'x';
    const auto rows = times ? std::from_chars(columns.ptr + 1, end, grid.rows) : columns;
    const bool read = times && rows.ec == std::errc() && rows.ptr == end;
    const bool fits = read && grid.columns > 0 && grid.rows > 0 && grid.columns <= most_tiles &&
                      grid.rows <= most_tiles && grid.columns * grid.rows > 1 &&
                      grid.columns * grid.rows <= most_tiles;
    if (fits) return grid;
    return Error{ErrorCode::invalid_argument,
                 "'" + std::string(text) +
                     "' is no grid of tiles: expected COLUMNSxROWS of 2 to 256 tiles, such as 3x2"};
}

Result<std::vector<Tile>> tiles_of(const TileGrid& grid, uint32_t frame_width,
                                   uint32_t frame_height) {
    const Division across = divide(grid.columns, grid.overlap, frame_width);
    const Division down = divide(grid.rows, grid.overlap, frame_height);
    if (std::min(across.length, down.length) < int(least_side)) {
        return Error{ErrorCode::invalid_argument,
                     std::to_string(grid.columns) + "x" + std::to_string(grid.rows) +
                         " tiles of frames of " + std::to_string(frame_width) + "x" +
                         std::to_string(frame_height) + " would be of " +
                         std::to_string(across.length) + "x" + std::to_string(down.length) +
                         " pixels, expected sides of at least " + std::to_string(least_side)};
    }
    std::vector<Tile> tiles;
    for (unsigned row = 0; row < grid.rows; ++row) {
        for (unsigned column = 0; column < grid.columns; ++column)
            tiles.push_back({across.begin(column), down.begin(row), across.length, down.length});
    }
    return tiles;
}

// ---- what was found in tiles ----

namespace {

enum Side : unsigned { left = 1, top = 2, right = 4, bottom = 8 };
constexpr int of_several = -1;

struct Bounds {
    double x0, y0, x1, y1;
};

struct Found {
    Detection box;
    Bounds bounds;     // of the box after its turn
    unsigned cut = 0;  // sides that end at a border of the tile inside the frame
    int tile = 0;
};

vision::Candidate candidate_of(const Detection& d) {
    return {d.x0, d.y0, d.x1, d.y1, d.score, d.class_id, 0, d.angle};
}

Bounds bounds_of(const Detection& d) {
    if (d.angle == 0) return {d.x0, d.y0, d.x1, d.y1};
    const vision::Quad corners = vision::corners_of(candidate_of(d));
    Bounds b{corners[0].x, corners[0].y, corners[0].x, corners[0].y};
    for (const vision::Point& p : corners) {
        b = {std::min(b.x0, p.x), std::min(b.y0, p.y), std::max(b.x1, p.x), std::max(b.y1, p.y)};
    }
    return b;
}

double area_of(const Detection& d) {
    return (double(d.x1) - d.x0) * (double(d.y1) - d.y0);
}

// What two ranges have in common; below 0: the gap between them.
double common(double a0, double a1, double b0, double b1) {
    return std::min(a1, b1) - std::max(a0, b0);
}

double common_area_of(const Found& a, const Found& b) {
    const double w = common(a.bounds.x0, a.bounds.x1, b.bounds.x0, b.bounds.x1);
    const double h = common(a.bounds.y0, a.bounds.y1, b.bounds.y0, b.bounds.y1);
    if (w <= 0 || h <= 0) return 0;
    if (a.box.angle == 0 && b.box.angle == 0) return w * h;
    return vision::common_area(vision::corners_of(candidate_of(a.box)),
                               vision::corners_of(candidate_of(b.box)));
}

bool better(const Found& a, const Found& b) {
    return a.box.score > b.box.score;
}

// The box around both, in the direction of the larger one.
Detection around(const Detection& a, const Detection& b) {
    const Detection& larger = area_of(a) < area_of(b) ? b : a;
    Detection joined = a.score < b.score ? b : a;
    joined.angle = larger.angle;
    if (joined.angle == 0) {
        joined.x0 = std::min(a.x0, b.x0), joined.y0 = std::min(a.y0, b.y0);
        joined.x1 = std::max(a.x1, b.x1), joined.y1 = std::max(a.y1, b.y1);
        return joined;
    }
    const double c = std::cos(double(joined.angle)), s = std::sin(double(joined.angle));
    double u0 = 0, u1 = 0, v0 = 0, v1 = 0;
    bool first = true;
    for (const Detection* d : {&a, &b}) {
        for (const vision::Point& p : vision::corners_of(candidate_of(*d))) {
            const double u = c * p.x + s * p.y, v = c * p.y - s * p.x;
            u0 = first ? u : std::min(u0, u), u1 = first ? u : std::max(u1, u);
            v0 = first ? v : std::min(v0, v), v1 = first ? v : std::max(v1, v);
            first = false;
        }
    }
    const double u = (u0 + u1) / 2, v = (v0 + v1) / 2;
    const double x = c * u - s * v, y = s * u + c * v, w = (u1 - u0) / 2, h = (v1 - v0) / 2;
    joined.x0 = float(x - w), joined.x1 = float(x + w);
    joined.y0 = float(y - h), joined.y1 = float(y + h);
    return joined;
}

}  // namespace

struct TileJoiner::State {
    uint32_t width = 0, height = 0;
    double iou = 0;
    Nms nms = Nms::automatic;
    int tiles = 0;
    Decoded all;  // keypoints and masks of all tiles
    std::vector<Found> whole, fragments, kept;

    bool same_group(const Found& a, const Found& b) const {
        return nms == Nms::class_agnostic || a.box.class_id == b.box.class_id;
    }
    bool other_tile(const Found& a, const Found& b) const {
        return a.tile != b.tile || a.tile == of_several;
    }
    // Whether a kept box of another tile is the same object. `of_smaller`: also where the box is a
    // part of it.
    bool known(const Found& box, bool of_smaller) const {
        return std::ranges::any_of(kept, [&](const Found& other) {
            if (!same_group(box, other) || !other_tile(box, other)) return false;
            const double shared = common_area_of(box, other);
            if (shared <= 0) return false;
            const double own = area_of(box.box), together = own + area_of(other.box) - shared;
            return shared > iou * together || (of_smaller && shared >= inside * own);
        });
    }
    void keep_best(std::vector<Found>& boxes) {
        std::ranges::stable_sort(boxes, better);
        for (const Found& box : boxes) {
            if (!known(box, false)) kept.push_back(box);
        }
    }
    unsigned seam_of(const Found& a, const Found& b) const;
    void join_into(size_t i, size_t j, unsigned seam);
    void join_fragments();
    Detection join(const Found& a, const Found& b);
    void join_keypoints(const Detection& a, const Detection& b, Detection& joined);
    void join_masks(const Detection& a, const Detection& b, Detection& joined);
    void copy_details(const Detection& from, Decoded& to) const;
};

namespace {

// Whether `b` goes on where a border cut `a` off, on one axis.
bool goes_on(const Found& a, const Found& b, unsigned a_side, unsigned b_side) {
    if (!(a.cut & a_side) || !(b.cut & b_side)) return false;
    const Bounds &p = a.bounds, &q = b.bounds;
    const bool across = a_side == right;
    const double a0 = across ? p.x0 : p.y0, a1 = across ? p.x1 : p.y1;
    const double b0 = across ? q.x0 : q.y0, b1 = across ? q.x1 : q.y1;
    const double gap = near_border * std::max(a1 - a0, b1 - b0);
    if (a0 >= b0 || a1 >= b1 || b0 > a1 + gap) return false;
    const double beside = across ? common(p.y0, p.y1, q.y0, q.y1) : common(p.x0, p.x1, q.x0, q.x1);
    const double least =
        across ? std::min(p.y1 - p.y0, q.y1 - q.y0) : std::min(p.x1 - p.x0, q.x1 - q.x0);
    return beside >= alongside * least;
}

}  // namespace

// The sides at the seam that cuts one object into both, 0: they are no neighbours, or not of one
// object.
unsigned TileJoiner::State::seam_of(const Found& a, const Found& b) const {
    if (!same_group(a, b) || !other_tile(a, b)) return 0;
    if (goes_on(a, b, right, left) || goes_on(b, a, right, left)) return left | right;
    if (goes_on(a, b, bottom, top) || goes_on(b, a, bottom, top)) return top | bottom;
    return 0;
}

// The second becomes a part of the first.
void TileJoiner::State::join_into(size_t i, size_t j, unsigned seam) {
    const Found a = fragments[i], b = fragments[j];
    // Of the sides at the seam those outside of it stay as they are.
    const bool a_first = seam & left ? a.bounds.x0 < b.bounds.x0 : a.bounds.y0 < b.bounds.y0;
    const unsigned first = (a_first ? a : b).cut, second = (a_first ? b : a).cut;
    Found one{join(a, b), {}, 0, of_several};
    one.bounds = bounds_of(one.box);
    one.cut = ((first | second) & ~seam) | (first & seam & (left | top)) |
              (second & seam & (right | bottom));
    fragments[i] = one;
    fragments.erase(fragments.begin() + std::ptrdiff_t(j));
}

// Neighbours on both sides of a seam become one, until there are none: always the first of the list
// that has a neighbour, with its first. Those before `i` have none among themselves, so that after
// a join only the new one is compared with them.
void TileJoiner::State::join_fragments() {
    bool is_new = false;  // fragments[i] was joined
    for (size_t i = 0; i < fragments.size();) {
        size_t first = 0, second = i;
        unsigned seam = 0;
        for (; is_new && first < i; ++first)
            if ((seam = seam_of(fragments[first], fragments[i]))) break;
        if (!seam)
            for (first = i, second = i + 1; second < fragments.size(); ++second)
                if ((seam = seam_of(fragments[i], fragments[second]))) break;
        is_new = seam != 0;
        if (seam)
            join_into(i = first, second, seam);
        else
            ++i;
    }
}

Detection TileJoiner::State::join(const Found& a, const Found& b) {
    Detection joined = around(a.box, b.box);
    join_keypoints(a.box, b.box, joined);
    join_masks(a.box, b.box, joined);
    return joined;
}

void TileJoiner::State::join_keypoints(const Detection& a, const Detection& b, Detection& joined) {
    const Detection& larger = area_of(a) < area_of(b) ? b : a;
    joined.first_keypoint = larger.first_keypoint, joined.keypoints = larger.keypoints;
    if (!a.keypoints || a.keypoints != b.keypoints) return;
    const Detection& other = &larger == &a ? b : a;
    joined.first_keypoint = uint32_t(all.keypoints.size());
    for (uint32_t i = 0; i < a.keypoints; ++i) {
        const Keypoint p = all.keypoints[larger.first_keypoint + i];
        const Keypoint q = all.keypoints[other.first_keypoint + i];
        all.keypoints.push_back(p.score < q.score ? q : p);
    }
}

// A picture over both, as fine as the finer one, of which each pixel takes the one it lies in.
void TileJoiner::State::join_masks(const Detection& a, const Detection& b, Detection& joined) {
    joined.mask = a.mask < 0 ? b.mask : a.mask;
    if (a.mask < 0 || b.mask < 0) return;
    const Mask p = all.masks[size_t(a.mask)], q = all.masks[size_t(b.mask)];
    Mask m{.x0 = std::min(p.x0, q.x0),
           .y0 = std::min(p.y0, q.y0),
           .x1 = std::max(p.x1, q.x1),
           .y1 = std::max(p.y1, q.y1)};
    const auto pixels = [](float length, float cell) {
        return uint32_t(std::clamp(std::ceil(length / cell), 1.f, float(widest_mask)));
    };
    m.width = pixels(m.x1 - m.x0,
                     std::min((p.x1 - p.x0) / float(p.width), (q.x1 - q.x0) / float(q.width)));
    m.height = pixels(m.y1 - m.y0,
                      std::min((p.y1 - p.y0) / float(p.height), (q.y1 - q.y0) / float(q.height)));
    m.first = all.mask_pixels.size();
    const auto at = [&](const Mask& mask, float x, float y) {
        if (x < mask.x0 || x >= mask.x1 || y < mask.y0 || y >= mask.y1) return false;
        const auto column = uint32_t((x - mask.x0) / (mask.x1 - mask.x0) * float(mask.width));
        const auto row = uint32_t((y - mask.y0) / (mask.y1 - mask.y0) * float(mask.height));
        return all.mask_pixels[mask.first + size_t(std::min(row, mask.height - 1)) * mask.width +
                               std::min(column, mask.width - 1)] != 0;
    };
    for (uint32_t row = 0; row < m.height; ++row) {
        const float y = m.y0 + (float(row) + 0.5f) * (m.y1 - m.y0) / float(m.height);
        for (uint32_t column = 0; column < m.width; ++column) {
            const float x = m.x0 + (float(column) + 0.5f) * (m.x1 - m.x0) / float(m.width);
            const bool object = at(p, x, y) || at(q, x, y);
            all.mask_pixels.push_back(object);
        }
    }
    joined.mask = int32_t(all.masks.size());
    all.masks.push_back(m);
}

void TileJoiner::State::copy_details(const Detection& from, Decoded& to) const {
    Detection d = from;
    d.first_keypoint = uint32_t(to.keypoints.size());
    const auto points = std::span(all.keypoints).subspan(from.first_keypoint, from.keypoints);
    to.keypoints.insert(to.keypoints.end(), points.begin(), points.end());
    if (from.mask >= 0) {
        Mask mask = all.masks[size_t(from.mask)];
        const auto pixels =
            std::span(all.mask_pixels)
                .subspan(mask.first, size_t(mask.width) * mask.height * mask.pixel_bytes);
        mask.first = to.mask_pixels.size();
        to.mask_pixels.insert(to.mask_pixels.end(), pixels.begin(), pixels.end());
        d.mask = int32_t(to.masks.size());
        to.masks.push_back(mask);
    }
    to.detections.push_back(d);
}

void TileJoiner::begin(uint32_t frame_width, uint32_t frame_height, double iou, Nms nms) {
    State& s = *state_;
    s.width = frame_width, s.height = frame_height;
    s.iou = iou, s.nms = nms;
    s.tiles = 0;
    for (auto* list : {&s.whole, &s.fragments, &s.kept}) list->clear();
    s.all.keypoints.clear(), s.all.masks.clear(), s.all.mask_pixels.clear();
    s.all.suppressed = s.all.not_finite = 0;
}

void TileJoiner::add(const Decoded& decoded, const Tile& tile, double model_pixel) {
    State& s = *state_;
    const auto first_point = uint32_t(s.all.keypoints.size());
    const auto first_mask = int32_t(s.all.masks.size());
    const size_t first_pixel = s.all.mask_pixels.size();
    s.all.keypoints.insert(s.all.keypoints.end(), decoded.keypoints.begin(),
                           decoded.keypoints.end());
    s.all.mask_pixels.insert(s.all.mask_pixels.end(), decoded.mask_pixels.begin(),
                             decoded.mask_pixels.end());
    for (Mask mask : decoded.masks) {
        mask.first += first_pixel;
        s.all.masks.push_back(mask);
    }
    s.all.suppressed += decoded.suppressed;
    s.all.not_finite += decoded.not_finite;
    const double x1 = double(tile.x) + tile.width, y1 = double(tile.y) + tile.height;
    for (Detection d : decoded.detections) {
        d.first_keypoint += first_point;
        if (d.mask >= 0) d.mask += first_mask;
        if (d.angle == 0 && s.nms != Nms::off) {
            d.x0 = std::max(d.x0, float(tile.x)), d.y0 = std::max(d.y0, float(tile.y));
            d.x1 = std::min(d.x1, float(x1)), d.y1 = std::min(d.y1, float(y1));
            if (d.x0 >= d.x1 || d.y0 >= d.y1) continue;
        }
        Found found{d, bounds_of(d), 0, s.tiles};
        const Bounds& b = found.bounds;
        const auto slack = [&](double side) {
            return std::max(model_pixels_near * model_pixel, near_border * side);
        };
        const double dx = slack(b.x1 - b.x0), dy = slack(b.y1 - b.y0);
        if (tile.x > 0 && b.x0 <= tile.x + dx) found.cut |= left;
        if (tile.y > 0 && b.y0 <= tile.y + dy) found.cut |= top;
        if (x1 < s.width && b.x1 >= x1 - dx) found.cut |= right;
        if (y1 < s.height && b.y1 >= y1 - dy) found.cut |= bottom;
        (s.nms == Nms::off ? s.kept : found.cut ? s.fragments : s.whole).push_back(found);
    }
    ++s.tiles;
}

void TileJoiner::finish(Decoded& joined) {
    State& s = *state_;
    const size_t given = s.whole.size() + s.fragments.size() + s.kept.size();
    s.keep_best(s.whole);
    std::erase_if(s.fragments, [&](const Found& f) { return s.known(f, true); });
    std::ranges::stable_sort(s.fragments, better);
    s.join_fragments();
    // Now whole, the others by size: a part yields to what has more of the object.
    std::ranges::stable_sort(s.fragments, [](const Found& a, const Found& b) {
        if (!a.cut != !b.cut) return !a.cut;
        return area_of(a.box) > area_of(b.box);
    });
    for (const Found& fragment : s.fragments) {
        if (!s.known(fragment, true)) s.kept.push_back(fragment);
    }
    std::ranges::stable_sort(s.kept, better);

    joined.detections.clear(), joined.classes.clear(), joined.keypoints.clear();
    joined.masks.clear(), joined.class_maps.clear(), joined.mask_pixels.clear();
    joined.embedding.clear(), joined.text.clear();
    for (const Found& found : s.kept) s.copy_details(found.box, joined);
    joined.suppressed = s.all.suppressed + unsigned(given - s.kept.size());
    joined.not_finite = s.all.not_finite;
}

TileJoiner::TileJoiner() : state_(std::make_unique<State>()) {}
TileJoiner::TileJoiner(TileJoiner&&) noexcept = default;
TileJoiner& TileJoiner::operator=(TileJoiner&&) noexcept = default;
TileJoiner::~TileJoiner() = default;

}  // namespace vartml
