// SPDX-License-Identifier: Apache-2.0
// YOLO v8, v9, v11, v12: [1,4+C,N] of centre and size in model pixels and class scores.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/postprocess/masks.h"
#include "lib/vision/dense_detector.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

// What the heads of the YOLO v8 line share: [1,4+C+extra,N] of centre and size in model pixels,
// class scores, and columns that one task adds.

struct YoloV8 {
    static constexpr DenseForm form{.attributes_first = true, .box_attributes = 4, .per_cell = 1};
    static constexpr float reach = 8;  // sides are up to 15 cells away
    static Candidate box(const DenseFrame& frame, uint32_t position, float score,
                         int32_t class_id) {
        return final_box(frame, position, score, class_id);
    }
};

// Columns behind the box of the only output, where it has the published form; else 0.
unsigned yolo_v8_columns(const HeadRequest& request);

// How keypoints lie behind the classes: `count` of `values` (x, y, perhaps a score).
struct PoseColumns {
    unsigned count = 0, values = 0;
    unsigned all() const { return count * values; }
};
// Of `columns` behind the box: what the sidecar says, if it leaves as many classes as are promised.
// Else as many classes as labels or sidecar promise, else one; three values per point where that
// goes, unless the sidecar's skeleton names points that there would not be. Nothing where no number
// of points fits.
std::optional<PoseColumns> pose_columns(const ModelInfo& info, unsigned columns);

// The task that the only output is for. A turned box has one column more than its classes,
// keypoints have the published 17 points, or the sidecar tells of them. Without a count of classes,
// the published shapes (15 classes of turned boxes, one class with 17 points) fit several.
bool is_yolo_v8_obb(const HeadRequest& request);
bool is_yolo_v8_pose(const HeadRequest& request);

unsigned yolo_v8_columns(const HeadRequest& request) {
    if (!fits_dense_form(request, YoloV8::form)) return 0;
    const auto head = locate_dense_head(
        {request.info, request.outputs, request.width, request.height, nullptr}, YoloV8::form);
    return head ? static_cast<unsigned>(head->attributes) - YoloV8::form.box_attributes : 0;
}

bool fits_yolo_v8(const HeadRequest& request) {
    const unsigned columns = yolo_v8_columns(request);
    // Who knows the classes knows whether there is more than classes.
    const auto classes = tensor_classes(request.info);
    const bool other_task =
        classes && *classes != columns && (is_yolo_v8_obb(request) || is_yolo_v8_pose(request));
    return columns && !other_task;
}

// The maps of a model that was exported without its last operators, [1,64+C+extra,h,w] for each
// stride: 16 bins for each of four distances, logits of the classes, and what a task adds. Maps of
// anchors may have the same shape, so they are read where the decoder is named.

namespace {

constexpr unsigned bins = 16;  // of a distance, published

// A point that is not finite keeps its place in the list, as the others are known by their numbers.
void add_keypoint(Keypoint point, const Candidate& box, BoxDetails& details) {
    if (!std::isfinite(point.x) || !std::isfinite(point.y) || !std::isfinite(point.score)) {
        point = {(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, 0, false};
        ++details.not_finite;
    }
    details.keypoints.push_back(point);
}

struct RawMap {
    size_t output;
    Level level;
};

// By ascending strides; empty where an output is no such map.
std::vector<RawMap> raw_maps(const HeadRequest& request) {
    std::vector<RawMap> maps;
    for (const TensorInfo& output : request.outputs) {
        const auto& s = output.cpu.shape;
        if (s.size() != 4 || s[0] != 1 || s[1] <= 4 * bins || s[3] == 0) return {};
        if (s[1] != request.outputs[0].cpu.shape[1]) return {};
        const double cells = static_cast<double>(request.width) / s[3];
        if (!(cells > 1 && cells < 1024)) return {};
        const int stride = 1 << static_cast<int>(std::lround(std::log2(cells)));
        if (stride < 2) return {};
        const Level level =
            make_grid(request.width, request.height, {&stride, 1}, 1).levels.front();
        if (level.height != s[2] || level.width != s[3]) return {};
        maps.push_back({static_cast<size_t>(&output - request.outputs.data()), level});
    }
    if (maps.size() < 2) return {};
    std::ranges::sort(maps, {}, [](const RawMap& map) { return map.level.stride; });
    for (size_t i = 1; i < maps.size(); ++i) {
        if (maps[i].level.stride == maps[i - 1].level.stride) return {};
        maps[i].level.first =
            maps[i - 1].level.first + size_t{maps[i - 1].level.width} * maps[i - 1].level.height;
    }
    return maps;
}

class YoloV8Maps final : public Head {
public:
    YoloV8Maps(std::vector<RawMap> maps, unsigned classes, PoseColumns points,
               std::string_view activation)
        : maps_(std::move(maps)),
          classes_(classes),
          points_(points),
          activation_(activation.empty() ? "sigmoid" : activation),
          cells_(maps_.size()),
          matrices_(maps_.size()),
          found_(size_t{maps_[0].level.width} * maps_[0].level.height) {}

    unsigned classes() const override { return classes_; }
    unsigned keypoints() const override { return points_.count; }
    std::string_view skeleton() const override { return skeleton_of(points_.count); }
    std::string_view logits() const override { return "sigmoid"; }
    std::string_view activation() const override {
        return activation_.is_sigmoid() ? "sigmoid" : "none";
    }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        for (size_t i = 0; i < maps_.size(); ++i) {
            auto m = cells_[i].read(tensors[maps_[i].output]);
            if (!m) return std::move(m).error();
            matrices_[i] = *m;
            const kernels::Scores list = scores_of(*m, 4 * bins, classes_);
            const size_t count = kernels::positions_above(
                list, activation_.stored_threshold(context.threshold), found_.data());
            for (size_t k = 0; k < count; ++k) {
                const kernels::BestClass best = best_class(list, found_[k]);
                const float score = activation_(best.score);
                if (!best.finite)
                    ++out.not_finite;
                else if (score >= context.threshold)
                    out.add(box(*m, maps_[i].level, found_[k], score, best.class_id));
            }
        }
        return {};
    }

    // Points count cells of the level: twice the value from the corner of the box's cell.
    Result<void> add_details(std::span<const OutputTensor>, const RunContext&, const Candidate& box,
                             BoxDetails& details) override {
        size_t i = maps_.size() - 1;
        while (maps_[i].level.first > box.position) --i;
        const Level& level = maps_[i].level;
        const Matrix& m = matrices_[i];
        const auto cell = static_cast<uint32_t>(box.position - level.first);
        const auto stride = static_cast<float>(level.stride);
        for (unsigned k = 0; k < points_.count; ++k) {
            const size_t column = 4 * bins + classes_ + size_t{k} * points_.values;
            Keypoint point{
                (2 * m.value(cell, column) + static_cast<float>(cell % level.width)) * stride,
                (2 * m.value(cell, column + 1) + static_cast<float>(cell / level.width)) * stride};
            if (points_.values == 3) point.score = sigmoid_(m.value(cell, column + 2));
            add_keypoint(point, box, details);
        }
        return {};
    }

private:
    static Candidate box(const Matrix& m, const Level& level, uint32_t cell, float score,
                         int32_t class_id) {
        const auto stride = static_cast<float>(level.stride);
        const float cx = (static_cast<float>(cell % level.width) + 0.5f) * stride;
        const float cy = (static_cast<float>(cell / level.width) + 0.5f) * stride;
        float side[4];
        for (unsigned k = 0; k < 4; ++k) side[k] = expectation(m, cell, k * bins) * stride;
        return {cx - side[0],
                cy - side[1],
                cx + side[2],
                cy + side[3],
                score,
                class_id,
                static_cast<uint32_t>(level.first) + cell};
    }

    static float expectation(const Matrix& m, uint32_t cell, unsigned first) {
        float greatest = m.value(cell, first);
        for (unsigned b = 1; b < bins; ++b) greatest = std::max(greatest, m.value(cell, first + b));
        float sum = 0, weighted = 0;
        for (unsigned b = 0; b < bins; ++b) {
            const float weight = std::exp(m.value(cell, first + b) - greatest);
            sum += weight;
            weighted += weight * static_cast<float>(b);
        }
        return weighted / sum;
    }

    std::vector<RawMap> maps_;
    unsigned classes_;
    PoseColumns points_;
    Activation activation_, sigmoid_{"sigmoid"};  // of the classes; of the points
    std::vector<Cells> cells_;
    std::vector<Matrix> matrices_;  // of the last run
    std::vector<uint32_t> found_;
};

}  // namespace

Result<std::unique_ptr<Head>> create_yolo_v8(const HeadRequest& request) {
    auto maps = raw_maps(request);
    if (maps.empty()) return DenseDetector<YoloV8>::create(request);
    const unsigned classes = request.outputs[0].cpu.shape[1] - 4 * bins;
    auto checked = check_classes(request, request.outputs[0].name, classes);
    if (!checked) return checked.error();
    return std::unique_ptr<Head>(std::make_unique<YoloV8Maps>(
        std::move(maps), classes, PoseColumns{}, request.info.activation));
}

// YOLO v8, v11 for turned boxes: [1,4+C+1,N]; the last column is the angle in radians, clockwise on
// the screen.

namespace {

constexpr unsigned published_classes = 15;  // DOTA

struct YoloV8Obb {
    static constexpr DenseForm form{
        .attributes_first = true, .box_attributes = 4, .per_cell = 1, .extra = 1};
    static constexpr float reach = 12;  // turned
    static Candidate box(const DenseFrame& frame, uint32_t position, float score,
                         int32_t class_id) {
        const Matrix& m = frame.matrix;
        Candidate box = centred_box(m, position, score, class_id);
        box.angle = m.value(position, m.columns - 1);
        if (!std::isfinite(box.angle)) box.score = box.angle;  // dropped and counted
        return box;
    }
};

}  // namespace

bool is_yolo_v8_obb(const HeadRequest& request) {
    const unsigned columns = yolo_v8_columns(request);
    return columns > 1 && columns - 1 == tensor_classes(request.info).value_or(published_classes);
}

bool fits_yolo_v8_obb(const HeadRequest& request) {
    return is_yolo_v8_obb(request);
}

Result<std::unique_ptr<Head>> create_yolo_v8_obb(const HeadRequest& request) {
    return DenseDetector<YoloV8Obb>::create(request);
}

// YOLO v8, v11 for poses: [1,4+C+3K,N] or [1,4+C+2K,N]; each box brings K keypoints in model
// pixels, x, y and perhaps a score.

namespace {

constexpr unsigned coco_points = 17;

class YoloV8Pose final : public DenseDetector<YoloV8> {
public:
    YoloV8Pose(DenseHead head, std::string_view activation, PoseColumns columns)
        : DenseDetector(std::move(head), activation, columns.all()), columns_(columns) {}

    std::string_view skeleton() const override {
        return columns_.count == coco_points ? "coco17" : "";
    }
    unsigned keypoints() const override { return columns_.count; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        if (auto done = DenseDetector::run(tensors, context, out); !done) return done;
        auto m = matrix(tensors);
        if (!m) return std::move(m).error();
        for (const Candidate& box : out.boxes) look_at_scores(*m, box.position);
        return {};
    }

    std::string doubt() const override {
        if (!odd_score_) return DenseDetector::doubt();
        return "the score of a point is " + std::to_string(*odd_score_) +
               ", expected 0 to 1, as if it were a coordinate (x-vartml-keypoints in section "
               "[modelinfo] says how many values a point has)";
    }

    Result<void> add_details(std::span<const OutputTensor> tensors, const RunContext&,
                             const Candidate& box, BoxDetails& details) override {
        auto m = matrix(tensors);
        if (!m) return std::move(m).error();
        const BoxUnit unit = this->unit();
        for (unsigned k = 0; k < columns_.count; ++k) {
            const size_t column = first_extra() + size_t{k} * columns_.values;
            Keypoint point{m->value(box.position, column) * unit.x,
                           m->value(box.position, column + 1) * unit.y};
            if (columns_.values == 3) point.score = m->value(box.position, column + 2);
            add_keypoint(point, box, details);
        }
        return {};
    }

private:
    void look_at_scores(const Matrix& m, uint32_t position) {
        constexpr float rounding = 0.02f;  // of bf16 and int8
        if (columns_.values != 3 || odd_score_) return;
        for (unsigned k = 0; k < columns_.count; ++k) {
            const float score = m.value(position, first_extra() + size_t{k} * 3 + 2);
            if (score < -rounding || score > 1 + rounding) odd_score_ = score;
        }
    }

    PoseColumns columns_;
    std::optional<float> odd_score_;
};

}  // namespace

std::optional<PoseColumns> pose_columns(const ModelInfo& info, unsigned columns) {
    if (!info.keypoints.empty()) {
        const PoseColumns said{static_cast<unsigned>(info.keypoints[0]),
                               static_cast<unsigned>(info.keypoints[1])};
        if (columns <= said.all()) return std::nullopt;
        const unsigned left = columns - said.all();
        return tensor_classes(info).value_or(left) == left ? std::optional(said) : std::nullopt;
    }
    const unsigned classes = tensor_classes(info).value_or(1);
    if (classes < 1 || columns <= classes) return std::nullopt;
    const unsigned rest = columns - classes, least = points_named(info.skeleton);
    for (const unsigned values : {3u, 2u}) {
        if (rest % values == 0 && rest / values >= least) return PoseColumns{rest / values, values};
    }
    return std::nullopt;
}

bool is_yolo_v8_pose(const HeadRequest& request) {
    const auto columns = pose_columns(request.info, yolo_v8_columns(request));
    return columns && (columns->count == coco_points || !request.info.skeleton.empty() ||
                       !request.info.keypoints.empty());
}

// dec-positions, where an output has rows of boxes that the model selected, with `behind` numbers
// after score and class; nullopt where none has.
std::optional<Error> selected_error(const HeadRequest& request, unsigned behind,
                                    const std::string& what) {
    constexpr unsigned selected_columns = 6, most_selected = 1000;
    for (const TensorInfo& output : request.outputs) {
        const auto& shape = output.cpu.shape;
        if (shape.size() != 3 || shape[0] != 1 || shape[2] != selected_columns + behind ||
            shape[1] > most_selected || is_grid(request, shape[1]))
            continue;
        const std::string found = shape_text(shape),
                          expected = "[1,4+C+" + std::to_string(behind) + ",N]";
        return head_error(request, "dec-positions",
                          "output '" + output.name + "' " + found + " lists boxes that the model " +
                              "selected itself, with " + std::to_string(behind) + " numbers of " +
                              what + " behind each, expected " + expected +
                              " of all positions; export the model without its selection "
                              "(nms=False, of YOLO26 end2end=False)",
                          found, expected, "nms=False");
    }
    return std::nullopt;
}

bool fits_yolo_v8_pose(const HeadRequest& request) {
    return is_yolo_v8_pose(request);
}

Result<std::unique_ptr<Head>> create_yolo_v8_pose(const HeadRequest& request) {
    const std::vector<int>& said = request.info.keypoints;
    const unsigned numbers =
        said.size() == 2 ? static_cast<unsigned>(said[0] * said[1]) : coco_points * 3;
    if (auto error = selected_error(request, numbers, "keypoints")) return *std::move(error);
    auto maps = raw_maps(request);
    auto head = maps.empty()
                    ? locate_dense_head(request, YoloV8::form)
                    : Result<DenseHead>(DenseHead{
                          .output = 0, .attributes = request.outputs[0].cpu.shape[1], .grid = {}});
    if (!head) return std::move(head).error();
    const unsigned box = maps.empty() ? YoloV8::form.box_attributes : 4 * bins;
    const auto attributes = static_cast<unsigned>(head->attributes);
    const auto columns = pose_columns(request.info, attributes > box ? attributes - box : 0);
    if (!columns) {
        const unsigned classes = tensor_classes(request.info).value_or(1);
        const std::string found = std::to_string(attributes),
                          expected =
                              std::to_string(box) + "+" + std::to_string(classes) + "+2K or 3K";
        return head_error(
            request, "dec-classes",
            "tensor '" + request.outputs[head->output].name + "' has " + found +
                " values per position, expected " + expected +
                " of a box, its classes and K keypoints; check labels, "
                "x-vartml-num-classes, x-vartml-keypoints and x-vartml-skeleton, or choose another "
                "decoder",
            found, expected, "x-vartml-num-classes=…");
    }
    if (!maps.empty())
        return std::unique_ptr<Head>(std::make_unique<YoloV8Maps>(
            std::move(maps), attributes - box - columns->all(), *columns, request.info.activation));
    return std::unique_ptr<Head>(
        std::make_unique<YoloV8Pose>(std::move(*head), request.info.activation, *columns));
}

// YOLO v8, v11 with masks: [1,4+C+M,N], the last M columns being coefficients, and prototypes
// [1,M,h,w]; the mask of a box is sigmoid(coefficients * prototypes), cut to the box.

namespace {

// Cells whose centres lie in [low, high); at least the one that the middle is in.
struct CellRange {
    uint32_t first, count;
};
CellRange cells_in(float low, float high, uint32_t cells, uint32_t pixels) {
    const double scale = double(cells) / pixels, limit = cells;
    const double first = std::clamp(std::ceil(low * scale - 0.5), 0., limit);
    const double last = std::clamp(std::ceil(high * scale - 0.5), 0., limit);
    if (first < last) return {static_cast<uint32_t>(first), static_cast<uint32_t>(last - first)};
    const double middle = std::floor((double(low) + high) / 2 * scale);
    return {static_cast<uint32_t>(std::clamp(middle, 0., limit - 1)), 1};
}

// The least sum whose sigmoid reaches the threshold.
float logit(float threshold) {
    if (threshold <= 0) return -std::numeric_limits<float>::infinity();
    if (threshold >= 1) return std::numeric_limits<float>::infinity();
    return static_cast<float>(std::log(double(threshold) / (1 - double(threshold))));
}

class YoloV8Seg final : public DenseDetector<YoloV8> {
public:
    YoloV8Seg(DenseHead head, const HeadRequest& request, const MapForm& prototypes)
        : DenseDetector(std::move(head), request.info.activation, prototypes.channels),
          width_(request.width),
          height_(request.height),
          form_(prototypes),
          coefficients_(prototypes.channels) {}

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        prototypes_ = nullptr;
        return DenseDetector::run(tensors, context, out);
    }

    Result<void> add_details(std::span<const OutputTensor> tensors, const RunContext& context,
                             const Candidate& box, BoxDetails& details) override {
        auto m = matrix(tensors);
        if (!m) return std::move(m).error();
        if (!prototypes_) {  // of the first box of a run
            auto read = prototypes_view_.read(tensors[form_.output]);
            if (!read) return std::move(read).error();
            prototypes_ = *read;
        }
        for (size_t k = 0; k < coefficients_.size(); ++k) {
            coefficients_[k] = m->value(box.position, first_extra() + k);
            if (std::isfinite(coefficients_[k])) continue;
            ++details.not_finite;
            return {};  // a box without a mask
        }
        const CellRange columns = cells_in(box.x0, box.x1, form_.width, width_);
        const CellRange rows = cells_in(box.y0, box.y1, form_.height, height_);
        const float cell_x = static_cast<float>(width_) / static_cast<float>(form_.width);
        const float cell_y = static_cast<float>(height_) / static_cast<float>(form_.height);
        details.mask = Mask{.x0 = static_cast<float>(columns.first) * cell_x,
                            .y0 = static_cast<float>(rows.first) * cell_y,
                            .x1 = static_cast<float>(columns.first + columns.count) * cell_x,
                            .y1 = static_cast<float>(rows.first + rows.count) * cell_y,
                            .width = columns.count,
                            .height = rows.count};
        details.mask_pixels.resize(size_t{columns.count} * rows.count);
        const kernels::WeightedMaps maps{prototypes_ + form_.at(0, rows.first, columns.first),
                                         coefficients_.data(),
                                         coefficients_.size(),
                                         form_.channel_stride,
                                         form_.row_stride,
                                         form_.column_stride};
        kernels::mask_above(maps, rows.count, columns.count, logit(context.mask_threshold),
                            details.mask_pixels.data());
        return {};
    }

private:
    uint32_t width_, height_;  // of the model's input
    MapForm form_;             // of the prototypes
    FloatView prototypes_view_;
    const float* prototypes_ = nullptr;  // of this run
    std::vector<float> coefficients_;
};

// The map that can be the prototypes: by role, else the only one of rank 4.
std::optional<MapForm> find_prototypes(const HeadRequest& request) {
    constexpr std::string_view hints[] = {"proto"};
    const TensorInfo* output =
        find_output(request, "prototypes", hints,
                    [](const TensorInfo& info) { return info.cpu.shape.size() == 4; });
    return output ? map_form(request, *output) : std::nullopt;
}

DenseForm form_with(const MapForm& prototypes) {
    DenseForm form = YoloV8::form;
    form.extra = prototypes.channels;
    return form;
}

}  // namespace

bool fits_yolo_v8_seg(const HeadRequest& request) {
    HeadRequest silent = request;
    silent.fault = nullptr;
    const auto prototypes = find_prototypes(request);
    if (request.outputs.size() != 2 || !prototypes) return false;
    const auto head = locate_dense_head(silent, YoloV8::form);
    const unsigned others = YoloV8::form.box_attributes + prototypes->channels;
    return head && head->attributes > others;
}

Result<std::unique_ptr<Head>> create_yolo_v8_seg(const HeadRequest& request) {
    const auto prototypes = find_prototypes(request);
    if (!prototypes) return role_error(request, "prototypes", "[1,M,h,w]");
    if (auto error = selected_error(request, prototypes->channels, "masks"))
        return *std::move(error);
    const TensorInfo* const alone = output_with_role(request, "coefficients");
    const auto is_number = [&](uint32_t size) { return size == prototypes->channels; };
    if (alone && std::ranges::any_of(alone->cpu.shape, is_number)) {
        const std::string found = shape_text(alone->cpu.shape),
                          expected = "[1,4+C+" + std::to_string(prototypes->channels) + ",N]";
        return head_error(request, "dec-role",
                          "output '" + alone->name + "' " + found +
                              " has the coefficients of the masks by itself, expected them behind "
                              "the classes of one table " +
                              expected + "; export the model with both joined, as its makers do",
                          found, expected, "x-vartml-role=coefficients");
    }
    auto head = find_dense_head(request, form_with(*prototypes));
    if (!head) return std::move(head).error();
    return std::unique_ptr<Head>(
        std::make_unique<YoloV8Seg>(std::move(*head), request, *prototypes));
}

}  // namespace vartml::vision
