// SPDX-License-Identifier: Apache-2.0
// Lines of text found by differentiable binarisation (DBNet, PaddleOCR's detectors): a probability
// for each cell, [1,1,h,w], or the first channel of [1,2,h,w]. Cells of at least 0.3 that hang
// together are the core of a line; the least rectangle around them, with the mean probability
// inside it as score, grows by the area that training took away.
// given: Liao et al., "Real-time Scene Text Detection with Differentiable Binarization"; limits of
// PaddleOCR's detectors.
#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/vision/families.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

namespace {

constexpr float least_probability = 0.3f;
constexpr double unclip_ratio = 1.5, least_side = 3;  // cells

struct Point {
    double x, y;
};
// Cells of a row that hang together: columns [first, last].
struct Run {
    uint32_t row, first, last;
    uint32_t group;  // index of a run that stands for all that it hangs together with
};
// A rectangle turned about its centre; `along` is the direction of its width.
struct Rectangle {
    Point centre{}, along{};
    double width = 0, height = 0;
};

double cross(Point o, Point a, Point b) {
    return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

// Andrew's monotone chain; sorts the points.
void convex_hull(std::vector<Point>& points, std::vector<Point>& hull) {
    std::ranges::sort(points, [](Point a, Point b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
    hull.clear();
    const auto add = [&](Point p, size_t floor) {
        while (hull.size() >= floor + 2 && cross(hull[hull.size() - 2], hull.back(), p) <= 0)
            hull.pop_back();
        hull.push_back(p);
    };
    for (const Point p : points) add(p, 0);
    const size_t lower = hull.size() - 1;
    for (size_t i = points.size() - 1; i-- > 0;) add(points[i], lower);
    if (hull.size() > 1) hull.pop_back();
}

// One side of the least rectangle lies on a side of the hull.
Rectangle least_rectangle(const std::vector<Point>& hull) {
    Rectangle best;
    double least_area = INFINITY;
    for (size_t i = 0; i < hull.size(); ++i) {
        const Point a = hull[i], b = hull[(i + 1) % hull.size()];
        const double length = std::hypot(b.x - a.x, b.y - a.y);
        if (!(length > 0)) continue;
        const Point u{(b.x - a.x) / length, (b.y - a.y) / length};
        double low_u = INFINITY, high_u = -INFINITY, low_v = INFINITY, high_v = -INFINITY;
        for (const Point p : hull) {
            const double along = p.x * u.x + p.y * u.y, across = p.y * u.x - p.x * u.y;
            low_u = std::min(low_u, along), high_u = std::max(high_u, along);
            low_v = std::min(low_v, across), high_v = std::max(high_v, across);
        }
        const double width = high_u - low_u, height = high_v - low_v;
        if (width * height >= least_area) continue;
        least_area = width * height;
        const double mu = (low_u + high_u) / 2, mv = (low_v + high_v) / 2;
        best = {{mu * u.x - mv * u.y, mu * u.y + mv * u.x}, u, width, height};
    }
    return best;
}

class DbText final : public Head {
public:
    DbText(const HeadRequest& request, const MapForm& form)
        : form_(form),
          activation_(activation_for(request, request.outputs[form.output], "sigmoid", "none")),
          least_(activation_.is_sigmoid() ? std::log(least_probability / (1 - least_probability))
                                          : least_probability),
          cell_x_(static_cast<double>(request.width) / form.width),
          cell_y_(static_cast<double>(request.height) / form.height) {}

    unsigned classes() const override { return 1; }
    std::vector<std::string> class_names() const override { return {"text"}; }
    std::string_view logits() const override { return "sigmoid"; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        auto values = view_.read(tensors[form_.output]);
        if (!values) return std::move(values).error();
        find_runs(*values, out.not_finite);
        by_group_.resize(runs_.size());
        for (uint32_t i = 0; i < runs_.size(); ++i) by_group_[i] = i;
        for (Run& run : runs_) run.group = root(run.group);
        std::ranges::sort(by_group_, {}, [&](uint32_t i) { return std::pair(runs_[i].group, i); });
        for (size_t first = 0; first < by_group_.size();) {
            const uint32_t group = runs_[by_group_[first]].group;
            size_t end = first;
            points_.clear();
            while (end < by_group_.size() && runs_[by_group_[end]].group == group) {
                const Run& run = runs_[by_group_[end++]];
                for (const double y : {0., 1.}) {  // the corners of the cells
                    points_.push_back({double(run.first), run.row + y});
                    points_.push_back({run.last + 1., run.row + y});
                }
            }
            first = end;
            convex_hull(points_, hull_);
            add_line(*values, least_rectangle(hull_), group, context.threshold, out);
        }
        return {};
    }

private:
    uint32_t root(uint32_t run) const {
        while (runs_[run].group != run) run = runs_[run].group;
        return run;
    }

    // Runs of all rows, each joined with those of the row above that touch it, by a corner too.
    void find_runs(const float* values, unsigned& not_finite) {
        runs_.clear();
        size_t above = 0, above_end = 0;
        for (uint32_t y = 0; y < form_.height; ++y) {
            const float* cell = values + form_.at(0, y, 0);
            const size_t row_begin = runs_.size();
            bool inside = false;
            for (uint32_t x = 0; x < form_.width; ++x, cell += form_.column_stride) {
                not_finite += !std::isfinite(*cell);
                const bool text = *cell >= least_ && std::isfinite(*cell);
                if (text && inside) runs_.back().last = x;
                if (text && !inside)
                    runs_.push_back({y, x, x, static_cast<uint32_t>(runs_.size())});
                inside = text;
            }
            for (size_t i = row_begin; i < runs_.size(); ++i) {
                while (above < above_end && runs_[above].last + 1 < runs_[i].first) ++above;
                for (size_t j = above; j < above_end && runs_[j].first <= runs_[i].last + 1; ++j)
                    join(static_cast<uint32_t>(i), static_cast<uint32_t>(j));
            }
            above = row_begin;
            above_end = runs_.size();
        }
    }
    void join(uint32_t a, uint32_t b) {
        a = root(a), b = root(b);
        runs_[std::max(a, b)].group = std::min(a, b);
    }

    // Mean of the cells whose middles lie in the rectangle.
    double mean_inside(const float* values, const Rectangle& r) const {
        const double reach_x = (r.width * std::abs(r.along.x) + r.height * std::abs(r.along.y)) / 2;
        const double reach_y = (r.width * std::abs(r.along.y) + r.height * std::abs(r.along.x)) / 2;
        const auto cell = [](double value, uint32_t cells) {
            return static_cast<uint32_t>(std::clamp(value, 0., double(cells)));
        };
        double sum = 0;
        size_t count = 0;
        for (uint32_t y = cell(r.centre.y - reach_y, form_.height);
             y < cell(std::ceil(r.centre.y + reach_y), form_.height); ++y) {
            for (uint32_t x = cell(r.centre.x - reach_x, form_.width);
                 x < cell(std::ceil(r.centre.x + reach_x), form_.width); ++x) {
                const double dx = x + 0.5 - r.centre.x, dy = y + 0.5 - r.centre.y;
                const double along = dx * r.along.x + dy * r.along.y;
                const double across = dy * r.along.x - dx * r.along.y;
                if (std::abs(along) > r.width / 2 || std::abs(across) > r.height / 2) continue;
                const float value = values[form_.at(0, y, x)];
                if (!std::isfinite(value)) continue;
                sum += activation_(value);
                ++count;
            }
        }
        return count ? sum / static_cast<double>(count) : 0;
    }

    void add_line(const float* values, Rectangle r, uint32_t position, float threshold,
                  Candidates& out) const {
        if (std::min(r.width, r.height) < least_side) return;
        const double score = mean_inside(values, r);
        if (!(score >= threshold)) return;
        const double grow =
            r.width * r.height * unclip_ratio / (2 * (r.width + r.height));  // on each side
        r.width += 2 * grow, r.height += 2 * grow;
        // The direction nearest to that of the rows, and upright where it nearly is.
        if (std::abs(r.along.y) > std::abs(r.along.x)) {
            r.along = {r.along.y, -r.along.x};
            std::swap(r.width, r.height);
        }
        if (r.along.x < 0) r.along = {-r.along.x, -r.along.y};
        // From cells to pixels of the input, whose sides may differ.
        const double ux = r.along.x * cell_x_, uy = r.along.y * cell_y_;
        const double vx = -r.along.y * cell_x_, vy = r.along.x * cell_y_;
        const double width = r.width * std::hypot(ux, uy), height = r.height * std::hypot(vx, vy);
        const double cx = r.centre.x * cell_x_, cy = r.centre.y * cell_y_;
        out.add({static_cast<float>(cx - width / 2), static_cast<float>(cy - height / 2),
                 static_cast<float>(cx + width / 2), static_cast<float>(cy + height / 2),
                 static_cast<float>(score), 0, position, static_cast<float>(std::atan2(uy, ux))});
    }

    MapForm form_;
    Activation activation_;
    float least_;             // stored value of a cell of text
    double cell_x_, cell_y_;  // pixels of the model's input
    FloatView view_;
    std::vector<Run> runs_;
    std::vector<uint32_t> by_group_;  // runs
    std::vector<Point> points_, hull_;
};

// The output with the role, else the only map of one or two channels.
std::optional<MapForm> find_map(const HeadRequest& request) {
    std::optional<MapForm> found;
    const TensorInfo* named = output_with_role(request, "mask");
    for (const TensorInfo& output : request.outputs) {
        if (named && named != &output) continue;
        const auto form = map_form(request, output);
        if (!form || form->channels > 2 || is_whole(output)) continue;
        if (found) return std::nullopt;
        found = form;
    }
    return found;
}

}  // namespace

// Such maps are masks as well: a decoder must be named.
bool fits_db_text(const HeadRequest&) {
    return false;
}

Result<std::unique_ptr<Head>> create_db_text(const HeadRequest& request) {
    const auto form = find_map(request);
    if (!form) return role_error(request, "mask", "[1,1,h,w] or [1,2,h,w]");
    return std::unique_ptr<Head>(std::make_unique<DbText>(request, *form));
}

}  // namespace vartml::vision
