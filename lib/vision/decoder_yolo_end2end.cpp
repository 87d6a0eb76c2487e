// SPDX-License-Identifier: Apache-2.0
// YOLO with selection in the model: a row per box, in model pixels. No NMS.
//   [1,N,6]  x0, y0, x1, y1, score, class: v10, 26
//   [1,N,7]  batch, x0, y0, x1, y1, class, score: v7
// Another order is told by x-vartml-columns, or by the tensor's own name where that lists them all:
// batchno_classid_score_x1y1x2y2. Turned boxes have seven columns, too: cxcywh,score,class,angle.
// PaddleDetection lists class,score,x0y0x1y1 and says in an output of its own how many rows are
// valid.
#include <algorithm>
#include <array>
#include <cmath>

#include "lib/vision/box_columns.h"
#include "lib/vision/families.h"

namespace vartml::vision {

namespace {

struct Form {
    size_t output;  // index
    size_t positions;
    bool transposed;  // [1,columns,N]
    BoxColumns columns;
    std::optional<size_t> count{};  // the output that says how many rows are valid
};

class YoloEnd2end : public Head {
public:
    YoloEnd2end(const Form& form, std::optional<unsigned> promised)
        : form_(form), promised_(promised), found_(form.positions) {}

    unsigned classes() const override { return 0; }
    bool holds_corners() const override { return true; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        const BoxColumns& columns = form_.columns;
        auto matrix = matrix_of(tensors[form_.output]);
        if (!matrix) return std::move(matrix).error();
        Matrix m = form_.transposed ? transposed(*matrix) : *matrix;
        if (form_.count) m.rows = valid_rows(tensors[*form_.count], m.rows);
        const size_t count = kernels::positions_above(scores_of(m, columns.score, 1),
                                                      context.threshold, found_.data());
        for (size_t i = 0; i < count; ++i) {
            const uint32_t row = found_[i];
            const Candidate box = box_of(m, row);
            const float score = m.value(row, columns.score);
            const float stored_class = m.value(row, columns.class_id);
            const float class_value = std::nearbyint(stored_class);
            if (std::abs(class_value - stored_class) > 0.01f) odd_class_ = stored_class;
            const bool fills = score == 0 && class_value == 0 && box.x0 == 0 && box.y0 == 0 &&
                               box.x1 == 0 && box.y1 == 0;
            if (fills) continue;  // the rest of the tensor
            if (columns.batch && m.value(row, *columns.batch) != 0)
                odd_batch_ = m.value(row, *columns.batch);
            const bool finite = std::isfinite(class_value);
            if (finite && !known(class_value)) {
                return class_error(tensors[form_.output].name, row, class_value, promised_);
            }
            Candidate candidate = box;
            candidate.score = finite ? score : class_value;
            candidate.class_id = finite ? static_cast<int32_t>(class_value) : 0;
            out.add(candidate);
        }
        return {};
    }

    std::string doubt() const override {
        if (odd_batch_)
            return "column " + std::to_string(*form_.columns.batch) + " is " +
                   std::to_string(*odd_batch_) +
                   ", expected the number of a picture, 0, as boxes have it that are turned or "
                   "have "
                   "their columns in another order (x-vartml-columns in section [modelinfo], such "
                   "as "
                   "cxcywh,score,class,angle)";
        return odd_class_ ? "column " + std::to_string(form_.columns.class_id) + " is " +
                                std::to_string(*odd_class_) + ", expected the number of a class"
                          : std::string();
    }

private:
    static size_t valid_rows(const OutputTensor& count, size_t rows) {
        const double valid = element(count, 0);
        return valid >= 0 && valid < static_cast<double>(rows) ? static_cast<size_t>(valid) : rows;
    }
    Candidate box_of(const Matrix& m, uint32_t row) const {
        const BoxColumns& columns = form_.columns;
        std::array<float, 4> v;
        for (size_t k = 0; k < v.size(); ++k) v[k] = m.value(row, columns.corners[k]);
        if (columns.centred)
            v = {v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
        const float angle = columns.angle ? m.value(row, *columns.angle) : 0;
        // A box without a finite angle is dropped and counted.
        return {std::isfinite(angle) ? v[0] : angle, v[1], v[2], v[3], 0, 0, row, angle};
    }
    bool known(float class_value) const {
        return class_value >= 0 && class_value < static_cast<float>(promised_.value_or(1'000'000));
    }

    Form form_;
    std::optional<unsigned> promised_;  // classes of the tensor
    std::optional<float> odd_class_, odd_batch_;
    std::vector<uint32_t> found_;
};

constexpr size_t most_selected = 1000;  // rows, ours
constexpr BoxColumns six{{0, 1, 2, 3}, 4, 5, 6}, seven{{1, 2, 3, 4}, 6, 5, 7, false, 0};
// given: YOLO-NAS in the flat format of super-gradients, of that name: the score before the class.
constexpr BoxColumns flat{{1, 2, 3, 4}, 5, 6, 7, false, 0};
constexpr std::string_view flat_name = "flat_predictions";

// Columns in the order that sidecar or name say, else the published one.
std::optional<BoxColumns> columns_of(const HeadRequest& request, const TensorInfo& output,
                                     uint32_t count) {
    auto columns = parse_box_columns(request.info.columns);
    if (!columns) columns = parse_box_columns(output.name);
    if (!columns && count == six.count) return six;
    if (!columns && count == seven.count)
        return output.name.find(flat_name) == output.name.npos ? seven : flat;
    return columns && columns->count == count ? columns : std::nullopt;
}

// Of a tensor [1,N,columns] or its transpose.
std::optional<Form> form_of(const HeadRequest& request, const TensorInfo& output) {
    const auto& shape = output.cpu.shape;
    if (shape.size() != 3 || shape[0] != 1) return std::nullopt;
    const auto index = static_cast<size_t>(&output - request.outputs.data());
    for (const bool transposed : {false, true}) {
        const auto columns = columns_of(request, output, shape[transposed ? 1 : 2]);
        if (columns) return Form{index, shape[transposed ? 2 : 1], transposed, *columns};
    }
    return std::nullopt;
}

bool is_single(const TensorInfo& output) {
    return std::ranges::all_of(output.cpu.shape, [](uint32_t dimension) { return dimension == 1; });
}

// The only output of one element beside a table.
const TensorInfo* count_of(const HeadRequest& request) {
    if (request.outputs.size() != 2) return nullptr;
    return find_output(request, "count", {}, is_single);
}

}  // namespace

// The number of rows is whatever the export asked for, as a rule 300; a number that is exactly the
// cells of a grid is a raw head. Where names tell the columns, any number is, and there may be a
// count of the rows.
bool fits_yolo_end2end(const HeadRequest& request) {
    const TensorInfo* const count = count_of(request);
    if (request.outputs.size() != 1 && !count) return false;
    const TensorInfo& table = request.outputs[count == request.outputs.data() ? 1 : 0];
    const auto form = form_of(request, table);
    if (!form || form->transposed) return false;
    if (!request.info.columns.empty() || parse_box_columns(table.name)) return true;
    return !count && form->positions <= most_selected &&
           (is_count_of_queries(form->positions) || !is_grid(request, form->positions));
}

// PaddleDetection's models keep no aspect: they get how much each side was scaled.
const PreprocessOptions* input_of_yolo_end2end(const HeadRequest& request) {
    static constexpr PreprocessOptions stretched = {.scale = {1 / 255.f, 1 / 255.f, 1 / 255.f}};
    return count_of(request) ? &stretched : nullptr;
}

// Beside a count the table is of any model of a framework, and these take different pixels.
bool knows_pixels_of_yolo_end2end(const HeadRequest& request) {
    return !count_of(request);
}

Result<std::unique_ptr<Head>> create_yolo_end2end(const HeadRequest& request) {
    const TensorInfo* named = output_with_role(request, "boxes");
    for (const TensorInfo& output : request.outputs) {
        auto form = form_of(request, output);
        if (!form || (named && named != &output)) continue;
        if (const TensorInfo* const count = count_of(request); count && count != &output)
            form->count = static_cast<size_t>(count - request.outputs.data());
        return std::unique_ptr<Head>(
            std::make_unique<YoloEnd2end>(*form, tensor_classes(request.info)));
    }
    const std::string found = outputs_text(request.outputs);
    constexpr uint32_t most_columns = 8;  // that have names
    const bool has_more = std::ranges::any_of(request.outputs, [&](const TensorInfo& output) {
        const auto& shape = output.cpu.shape;
        return shape.size() == 3 && shape[1] > most_columns && shape[1] <= most_selected &&
               shape[2] > most_columns && !is_grid(request, shape[1]);
    });
    const auto columns = parse_box_columns(request.info.columns);
    const std::string expected =
        columns ? "[1,N," + std::to_string(columns->count) + "]" : "[1,N,6] or [1,N,7]";
    return head_error(
        request, "dec-role",
        "no output has the shape " + expected + " of corners, score and class of a box, found " +
            found +
            (has_more ? "; masks or points behind them are not read: export the model "
                        "without its selection (nms=False, of YOLO26 end2end=False), or "
                        "choose another decoder"
                      : "; name the columns with x-vartml-columns, or choose another "
                        "decoder"),
        found, expected, "x-vartml-columns=x0y0x1y1,score,class");
}

}  // namespace vartml::vision
