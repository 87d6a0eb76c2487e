// SPDX-License-Identifier: Apache-2.0
// YOLOv5-Face: box, objectness, five landmarks and a class score, 16 values per anchor. Decoded in
// the model, [1,N,16] in pixels; or three maps [1,A*16,h,w] or [1,A,h,w,16] of raw values: centre
// (2 sigmoid - 0.5 + g) * s, size (2 sigmoid)^2 * anchor, landmarks value * anchor + g * s.
#include <algorithm>
#include <array>
#include <cmath>

#include "lib/vision/anchored.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

namespace {

constexpr uint32_t attributes = 16;
constexpr size_t object_column = 4, first_landmark = 5, class_column = 15;
constexpr Column columns[] = {{"boxes", attributes}};
constexpr int published_strides[] = {8, 16, 32};
constexpr float published_anchors[] = {4,  5,  8,   10,  13,  16,  23,  29,  43,
                                       55, 73, 105, 146, 217, 231, 300, 335, 433};

// Positions that one anchor of one output makes.
struct Run {
    size_t first_row = 0, first_column = 0, rows = 0;
    Level level;  // stride 0: decoded in the model
    float anchor_width = 1, anchor_height = 1;
};
struct Source {
    size_t output = 0;
    std::vector<Run> runs;
};
struct Form {
    std::vector<Source> sources;
    size_t most_rows = 0;
};
using Values = std::array<float, attributes>;

class YoloFace final : public Head {
public:
    YoloFace(Form form, const std::string& activation)
        : form_(std::move(form)),
          cells_(form_.sources.size()),
          found_(form_.most_rows),
          activation_(form_.sources.front().runs.front().level.stride ? "sigmoid" : activation) {}

    unsigned classes() const override { return 1; }
    unsigned keypoints() const override { return std::tuple_size_v<Points>; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        positions_.clear();
        points_.clear();
        size_t first = 0;
        for (size_t i = 0; i < form_.sources.size(); ++i) {
            auto m = cells_[i].read(tensors[form_.sources[i].output]);
            if (!m) return std::move(m).error();
            for (const Run& r : form_.sources[i].runs) {
                Matrix part = *m;
                part.data = m->at(r.first_row, r.first_column);
                part.rows = r.rows;
                run_part(part, r, first, context.threshold, out);
                first += r.rows;
            }
        }
        return {};
    }

    Result<void> add_details(std::span<const OutputTensor>, const RunContext&,
                             const Candidate& candidate, BoxDetails& details) override {
        const auto at = std::ranges::lower_bound(positions_, candidate.position);
        const auto& points = points_[static_cast<size_t>(at - positions_.begin())];
        details.keypoints.assign(points.begin(), points.end());
        return {};
    }

private:
    using Points = std::array<Keypoint, 5>;

    void run_part(const Matrix& m, const Run& r, size_t first, float threshold, Candidates& out) {
        const size_t count = kernels::positions_above(
            scores_of(m, object_column, 1), activation_.stored_threshold(threshold), found_.data());
        for (size_t i = 0; i < count; ++i) {
            Values v;
            for (size_t c = 0; c < attributes; ++c) v[c] = m.value(found_[i], c);
            if (!std::ranges::all_of(v, [](float value) { return std::isfinite(value); })) {
                ++out.not_finite;
                continue;
            }
            const float score = activation_(v[object_column]) * activation_(v[class_column]);
            if (score < threshold) continue;
            Points points;
            Candidate box = r.level.stride ? raw_face(v, r, found_[i], points) : face(v, points);
            box.score = score;
            box.position = static_cast<uint32_t>(first + found_[i]);
            const size_t before = out.boxes.size();
            out.add(box);
            if (out.boxes.size() == before) continue;
            positions_.push_back(box.position);
            points_.push_back(points);
        }
    }

    static Candidate centred(float cx, float cy, float w, float h) {
        return {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, 0, 0, 0};
    }

    static Candidate face(const Values& v, Points& points) {
        for (size_t k = 0; k < points.size(); ++k)
            points[k] = {.x = v[first_landmark + 2 * k], .y = v[first_landmark + 2 * k + 1]};
        return centred(v[0], v[1], v[2], v[3]);
    }

    Candidate raw_face(const Values& v, const Run& r, uint32_t cell, Points& points) const {
        const auto stride = static_cast<float>(r.level.stride);
        const auto gx = static_cast<float>(cell % r.level.width);
        const auto gy = static_cast<float>(cell / r.level.width);
        for (size_t k = 0; k < points.size(); ++k) {
            points[k] = {.x = v[first_landmark + 2 * k] * r.anchor_width + gx * stride,
                         .y = v[first_landmark + 2 * k + 1] * r.anchor_height + gy * stride};
        }
        const auto twice = [this](float value) { return 2 * activation_(value); };
        const float w = twice(v[2]), h = twice(v[3]);
        return centred((twice(v[0]) - 0.5f + gx) * stride, (twice(v[1]) - 0.5f + gy) * stride,
                       w * w * r.anchor_width, h * h * r.anchor_height);
    }

    Form form_;
    std::vector<Cells> cells_;  // of each source
    std::vector<uint32_t> found_;
    Activation activation_;
    std::vector<uint32_t> positions_;  // of the candidates of a run, ascending
    std::vector<Points> points_;       // of each
};

bool is_map(const TensorInfo& output) {
    return output.cpu.shape.size() == 4 || output.cpu.shape.size() == 5;
}

bool is_map_of(const TensorInfo& output, const Level& level, uint32_t anchors) {
    const auto& s = output.cpu.shape;
    if (s.size() == 4) {
        return s == std::vector<uint32_t>{1, anchors * attributes, level.height, level.width};
    }
    return s == std::vector<uint32_t>{1, anchors, level.height, level.width, attributes};
}

// The sidecar's lines of a map against its level. Errors: dec-role, dec-positions.
Result<void> check_lines(const HeadRequest& request, const TensorInfo& output, int stride) {
    for (const ModelInfo::Output& line : request.info.outputs) {
        if (line.name != output.name) continue;
        const std::string section = "; correct that line in section [" + output.name + "]";
        if (!line.role.empty() && line.role != "boxes") {
            return head_error(request, "dec-role",
                              "output '" + output.name + "' holds all of a face, but " +
                                  source_of(request.info) + " says x-vartml-role=" + line.role +
                                  section,
                              line.role, "boxes", "x-vartml-role=boxes");
        }
        if (line.stride && *line.stride != stride) {
            const std::string found = std::to_string(*line.stride);
            const std::string expected = std::to_string(stride);
            return head_error(request, "dec-positions",
                              "output '" + output.name + "' has the stride " + expected + ", but " +
                                  source_of(request.info) + " says x-vartml-stride=" + found +
                                  section,
                              found, expected, "x-vartml-stride=" + expected);
        }
    }
    return {};
}

Result<Form> map_form(const HeadRequest& request, const Grid& grid, unsigned per_cell) {
    const auto& info = request.info;
    const std::span<const float> anchors =
        info.anchors.empty() ? std::span<const float>(published_anchors) : info.anchors;
    const auto maps = static_cast<size_t>(std::ranges::count_if(request.outputs, is_map));
    const std::string found = outputs_text(request.outputs);
    const std::string count = std::to_string(grid.levels.size());
    const auto error = [&](const std::string& what) {
        return head_error(request, "dec-positions",
                          what + ", found " + found +
                              "; check x-vartml-strides and x-vartml-anchors, or choose another "
                              "decoder",
                          found, count + " maps", "x-vartml-strides=…");
    };
    if (maps != grid.levels.size() || anchors.size() != 2 * per_cell * maps) {
        return error("expected " + count + " maps of " + std::to_string(per_cell) +
                     " anchors for as many strides");
    }
    Form form;
    for (size_t l = 0; l < maps; ++l) {
        const Level& level = grid.levels[l];
        const auto map = std::ranges::find_if(request.outputs, [&](const TensorInfo& output) {
            return is_map_of(output, level, per_cell);
        });
        if (map == request.outputs.end()) {
            return error("stride " + std::to_string(level.stride) + " has no map of " +
                         std::to_string(level.width) + "x" + std::to_string(level.height) +
                         " cells and " + std::to_string(per_cell) + " times 16 values");
        }
        if (auto checked = check_lines(request, *map, level.stride); !checked)
            return checked.error();
        const size_t rows = size_t{level.width} * level.height;
        const bool by_rows = map->cpu.shape.size() == 5;
        Source source{static_cast<size_t>(map - request.outputs.begin()), {}};
        for (unsigned a = 0; a < per_cell; ++a) {
            const size_t anchor = 2 * (l * per_cell + a);
            source.runs.push_back({by_rows ? a * rows : 0, by_rows ? 0 : a * size_t{attributes},
                                   rows, level, anchors[anchor], anchors[anchor + 1]});
        }
        form.sources.push_back(std::move(source));
        form.most_rows = std::max(form.most_rows, rows);
    }
    return form;
}

Result<Form> find_form(const HeadRequest& request) {
    const std::span<const int> strides = request.info.strides.empty()
                                             ? std::span<const int>(published_strides)
                                             : request.info.strides;
    auto per_cell = anchors_per_cell(request, 3, strides.size());
    if (!per_cell) return std::move(per_cell).error();
    const Grid grid = make_grid(request.width, request.height, strides, *per_cell);
    if (std::ranges::any_of(request.outputs, is_map)) return map_form(request, grid, *per_cell);
    const Rows all[] = {{0, grid.positions}};
    auto parts = find_parts(request, columns, all, std::to_string(*per_cell) + " anchors per cell");
    if (!parts) return std::move(parts).error();
    Run all_rows;
    all_rows.rows = grid.positions;
    return Form{{{parts->front().outputs[0], {all_rows}}}, grid.positions};
}

}  // namespace

bool fits_yolo_face(const HeadRequest& request) {
    HeadRequest silent = request;
    silent.fault = nullptr;
    const auto form = find_form(silent);
    return form && form->sources.size() == request.outputs.size() &&
           tensor_classes(request.info).value_or(1) == 1;
}

Result<std::unique_ptr<Head>> create_yolo_face(const HeadRequest& request) {
    auto form = find_form(request);
    if (!form) return std::move(form).error();
    const std::string& name = request.outputs[form->sources.front().output].name;
    if (auto checked = check_classes(request, name, 1); !checked) return checked.error();
    return std::unique_ptr<Head>(
        std::make_unique<YoloFace>(std::move(*form), request.info.activation));
}

}  // namespace vartml::vision
