// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/plausibility.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace vartml::vision {
namespace {

// ours, all of them: what trained models stay well within
constexpr float score_rounding = 0.02f;  // beyond 0 to 1, for the sake of bf16 and int8
constexpr double most_inverted = 0.1;    // part of the boxes with corners in the wrong order
constexpr double most_outside = 0.5;     // part of what counts with its centre beyond the picture
constexpr double most_infinite = 0.1;    // part of a grid with NaN or infinity
constexpr double most_far = 0.5;         // part of a grid
constexpr double most_counting = 0.5;    // part of a grid
constexpr size_t least_grid = 500;       // positions
constexpr size_t least_boxes = 8;        // that tell something about geometry
constexpr float greatest_unit = 2;       // pixels: corners all within are in units of the picture
constexpr float rounded_side = 0.01f;    // of the picture: no rounding exchanges corners by more
constexpr float farthest_side = 4;       // sides of the picture: no box that counts reaches so far
constexpr float least_picture = 32;      // pixels
constexpr size_t least_table = 50;       // boxes that are many
constexpr float overlapping = 0.3f;      // intersection over union of boxes that lie on each other
constexpr size_t least_probabilities = 6;  // numbers that do not sum up to 1 by chance
constexpr size_t least_points = 5;         // that tell something about geometry
constexpr float cut_off = 0.5f;            // of a side: points of a thing at the border lie outside
constexpr float beside = 0.01f;            // of a side: outside by more than rounding
constexpr float most_huddled = 0.05f;      // of a side: points of a thing are not all as near
constexpr double most_crowded = 0.8;       // part of a full table at the border or on each other

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

std::string percent(size_t part, size_t whole) {
    return number(100. * static_cast<double>(part) / static_cast<double>(whole)) + " % of " +
           std::to_string(whole);
}

bool beyond(float part, float whole) {
    return part < -0.1f * whole || part > 1.1f * whole;
}

bool reaches_far(const Candidate& c, const Expectation& expected) {
    const float x = std::max(std::abs(c.x0), std::abs(c.x1));
    const float y = std::max(std::abs(c.y0), std::abs(c.y1));
    return x > farthest_side * expected.width || y > farthest_side * expected.height;
}

std::string doubt_of_scores(const std::vector<Candidate>& boxes, std::string_view activation) {
    float least = 0, greatest = 1;
    for (const Candidate& c : boxes) {
        least = std::min(least, c.score);
        greatest = std::max(greatest, c.score);
    }
    if (least >= -score_rounding && greatest <= 1 + score_rounding) return {};
    const bool logits = !activation.empty() && least < -score_rounding;
    const std::string lacks(activation);
    return "scores lie between " + number(least) + " and " + number(greatest) +
           ", expected 0 to 1" +
           (logits ? ", as logits do that lack their " + lacks + " (x-vartml-activation=" + lacks +
                         " in section [modelinfo])"
                   : "");
}

}  // namespace

std::string doubt_of_boxes(const Candidates& all, const Expectation& expected) {
    const auto& boxes = all.boxes;
    const size_t positions = boxes.size() + all.not_finite;
    if (positions >= least_grid &&
        static_cast<double>(all.not_finite) > most_infinite * static_cast<double>(positions))
        return percent(all.not_finite, positions) +
               " positions have numbers that are not finite, as has a box that is decoded twice";
    if (boxes.empty()) return {};
    if (std::string doubt = doubt_of_scores(boxes, expected.logits); !doubt.empty()) return doubt;

    // Rows that only fill a list have no size.
    size_t sized = 0, ordered = 0, inverted = 0, counting = 0, outside = 0, lost = 0;
    size_t found = 0, turned = 0, tiny = 0;  // that count and have a size
    float farthest = 0;
    for (const Candidate& c : boxes) {
        const bool empty = c.x0 == c.x1 || c.y0 == c.y1;
        const bool counts = c.score >= expected.threshold && c.score > 0;
        counting += counts;
        if (empty) continue;
        ++sized;
        if (counts || expected.corners) {
            ++ordered;
            inverted += c.x0 > c.x1 || c.y0 > c.y1;
        }
        farthest =
            std::max({farthest, std::abs(c.x0), std::abs(c.y0), std::abs(c.x1), std::abs(c.y1)});
        lost += counts && reaches_far(c, expected);
        found += counts;
        turned += counts && (c.x0 - c.x1 > rounded_side * expected.width ||
                             c.y0 - c.y1 > rounded_side * expected.height);
        tiny += counts && std::max({std::abs(c.x0), std::abs(c.y0), std::abs(c.x1),
                                    std::abs(c.y1)}) <= greatest_unit;
        outside += counts && (beyond((c.x0 + c.x1) / 2, expected.width) ||
                              beyond((c.y0 + c.y1) / 2, expected.height));
    }
    const auto part = [](size_t some, size_t whole) {
        return static_cast<double>(some) / static_cast<double>(std::max<size_t>(whole, 1));
    };
    if (ordered >= least_boxes && part(inverted, ordered) > most_inverted)
        return percent(inverted, ordered) +
               " boxes have their corners in the wrong order, as have numbers that are relative to "
               "priors (x-vartml-role=offsets in their section of the sidecar)";
    // One is enough: corners that a model has finished do not miss the picture.
    if (expected.corners && lost)
        return std::to_string(lost) + " of " + std::to_string(counting) +
               " boxes reach far beyond the picture of " + number(expected.width) + "x" +
               number(expected.height) +
               ", as numbers in pixels do that are taken for parts of the picture "
               "(x-vartml-box-unit=pixel in section [modelinfo])";
    if (expected.corners && turned)
        return std::to_string(turned) + " of " + std::to_string(found) +
               " boxes have their corners in the wrong order, as have centre and size that are "
               "taken for corners (x-vartml-box-order=cxcywh, or of a table with scores and "
               "classes x-vartml-columns=cxcywh,score,class, in section [modelinfo])";
    const bool all_tiny = sized >= least_boxes && farthest <= greatest_unit;
    if ((all_tiny || (expected.corners && found && tiny == found)) &&
        std::min(expected.width, expected.height) >= least_picture)
        return "all " + std::to_string(all_tiny ? sized : found) + " boxes lie within " +
               number(all_tiny ? farthest : greatest_unit) +
               " pixels of the corner of the picture, as have numbers in units of it";
    if (expected.sparse && boxes.size() >= least_grid &&
        part(counting, boxes.size()) > most_counting)
        return percent(counting, boxes.size()) + " positions reach the score threshold of " +
               number(expected.threshold);
    if (counting >= least_boxes && part(outside, counting) > most_outside)
        return percent(outside, counting) + " boxes lie beyond the picture of " +
               number(expected.width) + "x" + number(expected.height);
    return {};
}

namespace {

// Cells between a box and what would be its cell.
float cells_away(const Candidate& c, const Level& level, size_t cell) {
    const auto stride = static_cast<float>(level.stride);
    const float x = (static_cast<float>(cell % level.width) + 0.5f) * stride;
    const float y = (static_cast<float>(cell / level.width) + 0.5f) * stride;
    return std::max(std::abs((c.x0 + c.x1) / 2 - x), std::abs((c.y0 + c.y1) / 2 - y)) / stride;
}

}  // namespace

std::string doubt_of_class_score(float greatest) {
    if (!(greatest > 1 + score_rounding)) return {};
    return "scores of classes are up to " + number(greatest) + ", expected at most 1";
}

std::string doubt_of_places(std::span<const Candidate> all, const Grid& grid, float reach) {
    size_t cells = 0;
    for (const Level& level : grid.levels) cells += size_t{level.width} * level.height;
    const size_t per_cell = cells ? grid.positions / cells : 0;
    if (!per_cell) return {};
    std::vector<Level> levels = grid.levels;
    size_t sized = 0, far = 0;
    for (const bool reversed : {false, true}) {
        if (reversed) std::ranges::reverse(levels);
        size_t first = 0;
        for (Level& level : levels) {
            level.first = first;
            first += size_t{level.width} * level.height * per_cell;
        }
        size_t after = 0, beside = 0;  // boxes far from their cells, by the order of anchors
        sized = 0;
        for (const Candidate& c : all) {
            if (!(c.x0 < c.x1) || !(c.y0 < c.y1)) continue;
            ++sized;
            const Level* level = levels.data();
            const Level* const last = level + levels.size() - 1;
            while (level < last && c.position >= level[1].first) ++level;
            const size_t at = c.position - level->first;
            after += cells_away(c, *level, at % (size_t{level->width} * level->height)) > reach;
            beside += cells_away(c, *level, at / per_cell) > reach;
        }
        far = std::min({reversed ? far : sized, after, beside});
    }
    if (sized < least_grid || static_cast<double>(far) <= most_far * static_cast<double>(sized))
        return {};
    return percent(far, sized) +
           " boxes are far from their cells of the grid, as have numbers that the model leaves to "
           "be decoded, and such that are decoded already";
}

namespace {

bool at_border(const Detection& d, float width, float height) {
    return d.x0 <= 0 || d.y0 <= 0 || d.x1 >= width || d.y1 >= height;
}

bool overlap(const Detection& a, const Detection& b) {
    const float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    const float h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (w <= 0 || h <= 0) return false;
    const float both = w * h;
    const float all = (a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - both;
    return both > overlapping * all;
}

}  // namespace

std::string doubt_of_full_table(std::span<const Detection> kept, float width, float height) {
    if (kept.size() < least_table) return {};
    size_t crowded = 0;
    for (const Detection& d : kept) {
        crowded += at_border(d, width, height) || std::ranges::any_of(kept, [&](const auto& other) {
                       return &other != &d && overlap(d, other);
                   });
    }
    if (static_cast<double>(crowded) < most_crowded * static_cast<double>(kept.size())) return {};
    return "a frame has as many boxes as are kept, " + std::to_string(kept.size()) + ", and " +
           std::to_string(crowded) +
           " of them lie on each other or at the border of the frame, as numbers that are no boxes "
           "do";
}

bool are_probabilities(std::span<const float> values) {
    double sum = 0;
    for (const float value : values) {
        if (!(value >= -score_rounding && value <= 1 + score_rounding)) return false;
        sum += value;
    }
    return values.size() >= least_probabilities && std::abs(sum - 1) <= score_rounding;
}

namespace {

// What all but a tenth of the numbers lie within; puts them in order.
float extent(std::vector<float>& numbers) {
    std::ranges::sort(numbers);
    const size_t cut = numbers.size() / 20;
    return numbers[numbers.size() - 1 - cut] - numbers[cut];
}

}  // namespace

std::string doubt_of_points(std::span<const Keypoint> points, float width, float height) {
    std::vector<float> xs, ys;
    size_t far = 0, outside = 0;
    const auto is_out = [&](const Keypoint& p, float by) {
        return p.x < -by * width || p.x > (1 + by) * width || p.y < -by * height ||
               p.y > (1 + by) * height;
    };
    for (const Keypoint& p : points) {
        xs.push_back(p.x), ys.push_back(p.y);
        far += is_out(p, cut_off), outside += is_out(p, beside);
    }
    const auto most = [&](size_t some) {
        return std::to_string(some) + " of " + std::to_string(points.size());
    };
    if (2 * far > points.size()) return most(far) + " points lie beyond the picture";
    if (points.size() < least_points) return {};
    if (2 * outside > points.size())
        return most(outside) +
               " points lie outside of the picture, as numbers that are often negative do";
    const float wide = extent(xs), high = extent(ys);
    if (wide < most_huddled * width && high < most_huddled * height)
        return "nearly all " + std::to_string(points.size()) + " points lie within " +
               number(wide) + "x" + number(high) + " pixels of a picture of " + number(width) +
               "x" + number(height) + ", as numbers that are no coordinates do";
    return {};
}

std::string presumption_of(std::string_view family, const ModelInfo& info,
                           std::string_view first_output, unsigned classes) {
    if (family == "classify") {
        for (const ModelInfo::Output& output : info.outputs) {
            const bool scores = output.ends_in == "sigmoid";
            if (!scores && output.ends_in != "linear" && output.ends_in != "product" &&
                output.ends_in != "relu")
                continue;
            return "the " + std::to_string(classes) + " numbers of output '" + output.name +
                   "' are taken for " + (scores ? "scores" : "logits") +
                   " of classes, though neither model nor sidecar says so; if they are, name them "
                   "with label-file or x-vartml-labels, or say x-vartml-decoder=classify in "
                   "section [modelinfo]; landmarks and embedding read such outputs too; angles, "
                   "ages and other measures have no decoder, keep-tensors=true leaves them on the "
                   "frame";
        }
    }
    const auto has_role = [](const ModelInfo::Output& output) { return !output.role.empty(); };
    if (family != "segment" || classes != 1 || std::ranges::any_of(info.outputs, has_role))
        return {};
    return "the map of output '" + std::string(first_output) +
           "' is taken for the mask of one class, though neither model nor sidecar says so; if it "
           "is, name the class with label-file or x-vartml-labels, or say "
           "x-vartml-decoder=segment in section [modelinfo]; if it says where text is, choose "
           "db-text with the property decoder or x-vartml-decoder=db-text; if it is a measure "
           "such as depth, or a matte, put vartmlpicture in the place of vartmldecode";
}

}  // namespace vartml::vision
