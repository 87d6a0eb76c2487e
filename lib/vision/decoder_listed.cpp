// SPDX-License-Identifier: Apache-2.0
// Models that list their boxes: corners [1,N,4], a score and a class for each.
//   detr  corners x0,y0,x1,y1 in units of the frame size that the model is fed; no NMS
//   ssd   corners y0,x0,y1,x1 in 0 to 1 (what upstream's decoder reads), and how many rows are
//   valid
// MMDeploy writes the score behind the corners, [1,N,5], in pixels of the input; `detr` reads it.
// x-vartml-box-order and x-vartml-box-unit say otherwise of both: such lists have the same shapes.
// As many rows as a grid has cells are those of a model that leaves its selection to others.
#include <algorithm>
#include <array>
#include <cmath>

#include "lib/vision/families.h"
#include "lib/vision/modelinfo.h"

namespace vartml::vision {

namespace {

constexpr std::array<std::string_view, 1> box_hints{"box"}, score_hints{"score"},
    count_hints{"count"};
constexpr std::array<std::string_view, 2> class_hints{"label", "class"};

bool is_boxes(const TensorInfo& output) {
    const auto& shape = output.cpu.shape;
    return shape.size() == 3 && shape[0] == 1 && shape[2] == 4;
}
bool is_scored_boxes(const TensorInfo& output) {
    const auto& shape = output.cpu.shape;
    return shape.size() == 3 && shape[0] == 1 && shape[2] == 5;
}
bool is_list(const TensorInfo& output) {
    return output.cpu.shape.size() == 2 && output.cpu.shape[0] == 1 && output.cpu.shape[1] > 1;
}
bool is_real_list(const TensorInfo& output) {
    return is_list(output) && !is_whole(output);
}
bool is_integer_list(const TensorInfo& output) {
    return is_list(output) && is_whole(output);
}
bool is_single(const TensorInfo& output) {
    return std::ranges::all_of(output.cpu.shape, [](uint32_t dimension) { return dimension == 1; });
}

// The outputs by their roles; null where none is certain. Boxes with scores are both.
struct Roles {
    const TensorInfo *boxes, *scores, *classes, *count;
};

Roles roles_of(const HeadRequest& request) {
    Roles roles{find_output(request, "boxes", box_hints, is_boxes),
                find_output(request, "scores", score_hints, is_real_list),
                find_output(request, "classes", class_hints, is_integer_list),
                find_output(request, "count", count_hints, is_single)};
    if (!roles.boxes && !roles.scores && roles.classes) {
        roles.boxes = find_output(request, "boxes", {}, is_scored_boxes);
        roles.scores = roles.boxes;
        return roles;
    }
    // Some models give their classes as floats: told apart by name alone.
    if (!roles.classes) roles.classes = find_output(request, "classes", class_hints, is_real_list);
    return roles;
}

bool is_complete(const Roles& roles) {
    return roles.boxes && roles.scores && roles.classes && roles.scores != roles.classes &&
           roles.scores->cpu.shape[1] == roles.boxes->cpu.shape[1] &&
           roles.classes->cpu.shape[1] == roles.boxes->cpu.shape[1];
}

// given: TensorFlow's name of its boxes, which begin with y, also without their count. Its classes
// count from 1.
bool is_of_tensorflow(const TensorInfo* boxes) {
    return boxes && boxes->name.starts_with("detection_boxes");
}

struct ListedForm {
    std::array<uint8_t, 4> order{0, 1, 2, 3};  // where x0, y0, x1, y1 are
    bool centred = false;                      // x, y, width, height instead
    bool fed_units = false;                    // of the frame size that the model is fed
    BoxUnit unit;                              // else
    bool said = false;                         // the sidecar names the order
    float width = 0, height = 0;               // of the model's input
};

class ListedBoxes : public Head {
public:
    ListedBoxes(const HeadRequest& request, const Roles& roles, const ListedForm& form)
        : form_(form), promised_(tensor_classes(request.info)) {
        const auto index = [&](const TensorInfo* output) {
            return static_cast<size_t>(output - request.outputs.data());
        };
        boxes_ = index(roles.boxes);
        scores_ = index(roles.scores);
        classes_ = index(roles.classes);
        if (roles.count) count_ = index(roles.count);
        first_class_ = is_of_tensorflow(roles.boxes) && request.info.class_offset == 0 ? 1 : 0;
        if (promised_ && request.info.labels.empty()) *promised_ += first_class_;
        const size_t rows = roles.boxes->cpu.shape[1];
        selected_ = is_count_of_queries(rows) || !is_grid(request, rows);
    }

    unsigned classes() const override { return 0; }
    unsigned first_class() const override { return first_class_; }
    bool holds_corners() const override { return true; }
    bool needs_nms(bool) const override { return !selected_; }
    std::string_view note() const override {
        if (form_.said) return {};
        return form_.order[0] ? "; boxes are read as y0,x0,y1,x1, where x-vartml-box-order=xyxy or "
                                "cxcywh in section [modelinfo] says otherwise"
                              : "; boxes are read as x0,y0,x1,y1, where x-vartml-box-order=yxyx or "
                                "cxcywh in section [modelinfo] says otherwise";
    }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        auto boxes = matrix_of(tensors[boxes_]);
        if (!boxes) return std::move(boxes).error();
        auto scores = scores_ == boxes_ ? transposed(*boxes) : vector_of(tensors[scores_]);
        if (!scores) return std::move(scores).error();
        const size_t score_row = scores_ == boxes_ ? 4 : 0;
        // From the units of the boxes to pixels of the model's input.
        const BoxUnit unit = form_.fed_units ? BoxUnit{form_.width / context.fed_width,
                                                       form_.height / context.fed_height}
                                             : form_.unit;
        for (size_t row = 0; row < valid_rows(tensors, boxes->rows); ++row) {
            const float score = scores->value(score_row, row);
            if (score < context.threshold) continue;
            const double class_value = std::nearbyint(element(tensors[classes_], row));
            Candidate candidate = box(*boxes, row, unit);
            candidate.score = score;
            if (!std::isfinite(class_value)) {
                candidate.score = NAN;
            } else if (class_value >= 0 && class_value < promised_.value_or(1'000'000)) {
                candidate.class_id = static_cast<int32_t>(class_value);
            } else if (candidate.x0 < candidate.x1 && candidate.y0 < candidate.y1) {
                return class_error(tensors[classes_].name, row, class_value, promised_);
            } else {
                continue;  // a row that only fills the tensor
            }
            out.add(candidate);
        }
        return {};
    }

private:
    Candidate box(const Matrix& boxes, size_t row, const BoxUnit& unit) const {
        std::array<float, 4> v;
        for (size_t k = 0; k < v.size(); ++k)
            v[k] = boxes.value(row, form_.order[k]) * (k % 2 ? unit.y : unit.x);
        if (form_.centred) v = {v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
        return {v[0], v[1], v[2], v[3], 0, 0, static_cast<uint32_t>(row)};
    }

    size_t valid_rows(std::span<const OutputTensor> tensors, size_t rows) const {
        if (!count_) return rows;
        const double count = element(tensors[*count_], 0);
        return count >= 0 && count < static_cast<double>(rows) ? static_cast<size_t>(count) : rows;
    }

    ListedForm form_;
    std::optional<unsigned> promised_;
    unsigned first_class_ = 0;
    size_t boxes_ = 0, scores_ = 0, classes_ = 0;
    std::optional<size_t> count_;
    bool selected_ = true;  // the model made the list of its best boxes
};

Result<std::unique_ptr<Head>> create_listed(const HeadRequest& request, const ListedForm& form) {
    const Roles roles = roles_of(request);
    if (!roles.boxes) return role_error(request, "boxes", "[1,N,4]");
    const std::string list = "[1," + std::to_string(roles.boxes->cpu.shape[1]) + "]";
    if (!roles.scores) return role_error(request, "scores", list);
    if (!is_complete(roles)) return role_error(request, "classes", list);
    return std::unique_ptr<Head>(std::make_unique<ListedBoxes>(request, roles, form));
}

// In the order that the sidecar says, else the published one.
ListedForm listed_form(const HeadRequest& request, std::string_view published) {
    const std::string_view order =
        request.info.box_order.empty() ? published : std::string_view(request.info.box_order);
    ListedForm form;
    if (order == "yxyx") form.order = {1, 0, 3, 2};
    form.centred = order == "cxcywh";
    form.said = !request.info.box_order.empty();
    form.unit = final_box_unit(request);
    form.width = static_cast<float>(request.width);
    form.height = static_cast<float>(request.height);
    return form;
}

}  // namespace

bool fits_detr(const HeadRequest& request) {
    const Roles roles = roles_of(request);
    return request.outputs.size() == (roles.scores == roles.boxes ? 2 : 3) && is_complete(roles);
}

// given: MMDeploy's boxes have their scores behind them.
bool is_of_mmdeploy(const Roles& roles) {
    return roles.boxes && roles.scores == roles.boxes;
}

// Of the DETR line. MMDetection's models take different pixels, and so do TensorFlow's.
bool knows_pixels_of_detr(const HeadRequest& request) {
    const Roles roles = roles_of(request);
    return roles.boxes && !is_of_mmdeploy(roles) && !is_of_tensorflow(roles.boxes);
}

Result<std::unique_ptr<Head>> create_detr(const HeadRequest& request) {
    const Roles roles = roles_of(request);
    const bool y_first = is_of_tensorflow(roles.boxes);
    ListedForm form = listed_form(request, y_first ? "yxyx" : "xyxy");
    if (!request.info.box_unit.empty()) return create_listed(request, form);
    if (is_of_mmdeploy(roles)) {
        form.unit = {1, 1};
        return create_listed(request, form);
    }
    for (const ModelInfo::Input& input : request.info.inputs) {
        std::vector<float> values;
        if (input.feed == "frame-size") form.fed_units = true;
        if (input.feed.starts_with("const:") &&
            parse_numbers(std::string_view(input.feed).substr(6), values) && values.size() == 2 &&
            values[0] > 0 && values[1] > 0) {
            // given: PaddleDetection and the YOLO v3 of ONNX's model zoo, height first.
            const bool height_first = input.name == "im_shape" || input.name == "image_shape";
            form.unit = {form.width / values[height_first], form.height / values[!height_first]};
        }
    }
    return create_listed(request, form);
}

bool fits_ssd_listed(const HeadRequest& request) {
    const Roles roles = roles_of(request);
    return request.outputs.size() == 4 && is_complete(roles) && roles.count;
}

// given: the names that EfficientNMS and YOLO-NAS give to the counts of theirs. Models of many
// kinds end in them.
bool is_of_selection(const HeadRequest& request) {
    const TensorInfo* const count = roles_of(request).count;
    return count && (count->name == "num_dets" || count->name == "num_predictions");
}

Result<std::unique_ptr<Head>> create_ssd_listed(const HeadRequest& request) {
    return create_listed(request, listed_form(request, is_of_selection(request) ? "xyxy" : "yxyx"));
}

}  // namespace vartml::vision
