// SPDX-License-Identifier: Apache-2.0
// YOLO v8, v11 for poses: [1,4+C+3K,N] or [1,4+C+2K,N]; each box brings K keypoints in model
// pixels, x, y and perhaps a score.
#include "lib/vision/yolo_v8.h"

namespace vartml::vision {

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

    Result<void> add_details(std::span<const OutputTensor> tensors, const RunContext&,
                             const Candidate& box, BoxDetails& details) override {
        auto m = matrix(tensors);
        if (!m) return std::move(m).error();
        const BoxUnit unit = box_unit(*m, head());
        for (unsigned k = 0; k < columns_.count; ++k) {
            const size_t column = first_extra() + size_t{k} * columns_.values;
            Keypoint point{m->value(box.position, column) * unit.x,
                           m->value(box.position, column + 1) * unit.y};
            if (columns_.values == 3) point.score = m->value(box.position, column + 2);
            if (!std::isfinite(point.x) || !std::isfinite(point.y) || !std::isfinite(point.score)) {
                // Keeps its place in the list: the others are known by their numbers.
                point = {(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, 0, false};
                ++details.not_finite;
            }
            details.keypoints.push_back(point);
        }
        return {};
    }

private:
    PoseColumns columns_;
};

}  // namespace

std::optional<PoseColumns> pose_columns(const ModelInfo& info, unsigned columns) {
    const unsigned classes = tensor_classes(info).value_or(1);
    if (columns <= classes) return std::nullopt;
    const unsigned rest = columns - classes, least = points_named(info.skeleton);
    for (const unsigned values : {3u, 2u}) {
        if (rest % values == 0 && rest / values >= least) return PoseColumns{rest / values, values};
    }
    return std::nullopt;
}

bool is_yolo_v8_pose(const HeadRequest& request) {
    const auto columns = pose_columns(request.info, yolo_v8_columns(request));
    return columns && (columns->count == coco_points || !request.info.skeleton.empty());
}

bool fits_yolo_v8_pose(const HeadRequest& request) {
    return is_yolo_v8_pose(request);
}

Result<std::unique_ptr<Head>> create_yolo_v8_pose(const HeadRequest& request) {
    auto head = locate_dense_head(request, YoloV8::form);
    if (!head) return std::move(head).error();
    const unsigned box = YoloV8::form.box_attributes;
    const auto attributes = static_cast<unsigned>(head->attributes);
    const auto columns = pose_columns(request.info, attributes > box ? attributes - box : 0);
    if (!columns) {
        const unsigned classes = tensor_classes(request.info).value_or(1);
        const std::string found = std::to_string(attributes),
                          expected = "4+" + std::to_string(classes) + "+2K or 3K";
        return head_error(
            request, "dec-classes",
            "tensor '" + request.outputs[head->output].name + "' has " + found +
                " values per position, expected " + expected +
                " of a box, its classes and K keypoints; check labels, "
                "x-vartml-num-classes and x-vartml-skeleton, or choose another decoder",
            found, expected, "x-vartml-num-classes=…");
    }
    return std::unique_ptr<Head>(
        std::make_unique<YoloV8Pose>(std::move(*head), request.info.activation, *columns));
}

}  // namespace vartml::vision
