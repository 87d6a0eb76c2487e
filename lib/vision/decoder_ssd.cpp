// SPDX-License-Identifier: Apache-2.0
// SSD. With its selection in the model: lists of boxes, scores, classes and a count
// (decoder_listed). Without: boxes [1,N,4] relative to priors, or finished, in 0 to 1, and scores
// [1,N,C+1], the background first. N tells whose priors they are; others need the sidecar.
// Finished boxes are corners, or with x-vartml-box-order=cxcywh centre and size.
//   TensorFlow   MobileNet-SSD v1, v2 of any input size, values y, x, h, w
//   Caffe        MobileNet-SSD of 300x300; as many, so x-vartml-box-order=cxcywh names it
//   PyTorch      MobileNet-SSD of 300x300, published with its boxes decoded
// Finished boxes and class scores are what many others end in, too, without a background: where
// the sidecar calls the boxes so and promises as many classes as there are columns of scores. Their
// tables may also be [1,4,N] and [1,C,N], or one, [1,N,4+C]. DETR has its background behind the
// classes, which x-vartml-background=last says.
#include <algorithm>
#include <array>
#include <cmath>

#include "lib/vision/anchored.h"

namespace vartml::vision {

namespace {

constexpr unsigned any_number = 0;
// Scores of one class alone have no background, and are scores where somebody promises one class.
std::array<Column, 2> columns_of(const HeadRequest& request) {
    const bool has_column = std::ranges::any_of(request.outputs, [](const TensorInfo& output) {
        const auto table = table_of(output);
        return table && table->columns == 1;
    });
    const bool one_class =
        has_column && output_with_role(request, "boxes") && tensor_classes(request.info) == 1;
    return {Column{"boxes", 4, false, "box"},
            Column{"scores", one_class ? 1 : any_number, false, "score"}};
}

struct Shape {
    float width, height;
};
// Priors of all cells of a grid over the input, row by row.
void add_cells(std::vector<Prior>& priors, uint32_t columns, uint32_t rows, float step_x,
               float step_y, std::span<const Shape> shapes) {
    for (uint32_t y = 0; y < rows; ++y) {
        for (uint32_t x = 0; x < columns; ++x) {
            for (const Shape& shape : shapes) {
                priors.push_back({(static_cast<float>(x) + 0.5f) * step_x,
                                  (static_cast<float>(y) + 0.5f) * step_y, shape.width,
                                  shape.height});
            }
        }
    }
}

Shape shaped(float scale, float ratio) {
    return {scale * std::sqrt(ratio), scale / std::sqrt(ratio)};
}

// Six levels of strides 16 to 512, scales 0.2 to 0.95 of the shorter side; five aspect ratios and a
// square of the scale between two levels. The first level has three priors.
std::vector<Prior> tensorflow_priors(uint32_t width, uint32_t height) {
    constexpr float ratios[] = {1, 2, 0.5f, 3, 0.3333f};
    const auto side = static_cast<float>(std::min(width, height));
    const auto scale = [&](int level) {
        return level == 6 ? side : side * (0.2f + 0.15f * static_cast<float>(level));
    };
    std::vector<Prior> priors;
    for (int level = 0; level < 6; ++level) {
        std::vector<Shape> shapes;
        if (level == 0) {
            shapes = {shaped(side * 0.1f, 1), shaped(scale(0), 2), shaped(scale(0), 0.5f)};
        } else {
            for (const float ratio : ratios) shapes.push_back(shaped(scale(level), ratio));
            shapes.push_back(shaped(std::sqrt(scale(level) * scale(level + 1)), 1));
        }
        const uint32_t stride = 16u << level;
        const uint32_t cells_x = (width + stride - 1) / stride;
        const uint32_t cells_y = (height + stride - 1) / stride;
        add_cells(priors, cells_x, cells_y, static_cast<float>(width) / static_cast<float>(cells_x),
                  static_cast<float>(height) / static_cast<float>(cells_y), shapes);
    }
    return priors;
}

// Square of `least`, square between `least` and `most` (0: none), then each ratio and its inverse.
struct SquareLevel {
    uint32_t cells;
    float step, least, most;
    std::vector<float> ratios;
};
std::vector<Prior> square_priors(std::span<const SquareLevel> levels) {
    std::vector<Prior> priors;
    for (const SquareLevel& level : levels) {
        std::vector<Shape> shapes{{level.least, level.least}};
        if (level.most > 0) shapes.push_back(shaped(std::sqrt(level.least * level.most), 1));
        for (const float ratio : level.ratios) {
            shapes.push_back(shaped(level.least, ratio));
            shapes.push_back(shaped(level.least, 1 / ratio));
        }
        add_cells(priors, level.cells, level.cells, level.step, level.step, shapes);
    }
    return priors;
}

std::vector<Prior> caffe_priors() {
    const SquareLevel levels[] = {
        {19, 300 / 19.f, 60, 0, {2}}, {10, 30, 105, 150, {2, 3}}, {5, 60, 150, 195, {2, 3}},
        {3, 100, 195, 240, {2, 3}},   {2, 150, 240, 285, {2, 3}}, {1, 300, 285, 300, {2, 3}},
    };
    return square_priors(levels);
}

std::vector<Prior> pytorch_priors() {
    const SquareLevel levels[] = {
        {19, 16, 60, 105, {2, 3}},  {10, 32, 105, 150, {2, 3}}, {5, 64, 150, 195, {2, 3}},
        {3, 100, 195, 240, {2, 3}}, {2, 150, 240, 285, {2, 3}}, {1, 300, 285, 330, {2, 3}},
    };
    return square_priors(levels);
}

// Whose priors a head of this many positions has.
struct Priors {
    std::vector<Prior> priors;
    bool finished = false;  // published with decoded boxes
    bool y_first = false;
};
std::optional<Priors> published_priors(const HeadRequest& request, size_t rows) {
    Priors found;
    const bool x_first = request.info.box_order == "cxcywh" || request.info.box_order == "xyxy";
    if (request.width == 300 && request.height == 300) {
        found.priors = pytorch_priors();
        cut_to_input(found.priors, request);
        found.finished = true;
        if (found.priors.size() == rows) return found;
        found.priors = caffe_priors();
        found.finished = false;
        if (found.priors.size() == rows && x_first) return found;
    }
    found.priors = tensorflow_priors(request.width, request.height);
    found.y_first = true;
    if (found.priors.size() == rows) return found;
    return std::nullopt;
}

// The number of positions: what the only table of four columns has, or the one called boxes.
size_t rows_of_boxes(const HeadRequest& request) {
    size_t rows = 0;
    for (const TensorInfo& output : request.outputs) {
        const auto table = table_of(output);
        const std::string_view role = role_of(request, output);
        if (!table || table->columns != 4) continue;
        if (role == "boxes" || role == "offsets") return table->rows;
        if (rows == 0) rows = table->rows;
    }
    return rows;
}

Error unknown_priors(const HeadRequest& request, size_t rows) {
    const std::string expected =
        std::to_string(tensorflow_priors(request.width, request.height).size());
    const std::string input = std::to_string(request.width) + "x" + std::to_string(request.height);
    return head_error(
        request, "dec-positions",
        "the boxes have " + std::to_string(rows) +
            " positions, whose priors are not known: MobileNet-SSD with an input of " + input +
            " has " + expected +
            "; give x-vartml-strides and x-vartml-anchors (and x-vartml-variance where it is not "
            "SSD's 0.1,0.2), or x-vartml-role=boxes if the model "
            "decodes its boxes",
        std::to_string(rows), expected, "x-vartml-anchors=…");
}

Result<Priors> find_priors(const HeadRequest& request, size_t rows, std::string_view role) {
    const ModelInfo& info = request.info;
    Priors priors;
    if (role == "boxes") {
        priors.priors.resize(rows);
        priors.finished = true;
    } else if (!info.anchors.empty()) {
        const PriorLevel strides[] = {{8, {}}, {16, {}}, {32, {}}};
        auto given = grid_priors(request, strides);
        if (!given) return std::move(given).error();
        priors.priors = std::move(given->priors);
    } else {
        auto published = published_priors(request, rows);
        if (!published || !info.strides.empty()) return unknown_priors(request, rows);
        priors = std::move(*published);
        priors.finished = priors.finished && role.empty();
    }
    if (!info.box_order.empty()) priors.y_first = info.box_order == "yxyx";
    return priors;
}

// Whether scores of the finished boxes of an output that the sidecar calls so have no background in
// front. Probabilities of classes alone would sum up to 1 where nothing is.
bool lacks_background(const HeadRequest& request, const TensorInfo& scores, size_t columns) {
    if (!output_with_role(request, "boxes") || request.info.background == "first") return false;
    if (!request.info.background.empty()) return true;
    const std::string_view end = ends_in(request, scores);
    return request.info.class_offset >= 0 && tensor_classes(request.info) == columns &&
           end != "softmax" && end != "log-softmax";
}

// Outputs of finished boxes and of scores, with positions as rows.
struct Upright {
    std::vector<TensorInfo> outputs;
    std::vector<size_t> exchanged;  // by index
};
Upright upright(const HeadRequest& request) {
    Upright seen{{request.outputs.begin(), request.outputs.end()}, {}};
    const TensorInfo* const boxes = output_with_role(request, "boxes");
    if (!boxes || boxes->cpu.shape.size() != 3) return seen;
    const std::vector<uint32_t>& box = boxes->cpu.shape;
    const bool first = box[1] == 4 && box[2] != 4;  // [1,4,N]
    const uint32_t rows = first ? box[2] : box[1];
    for (size_t i = 0; i < seen.outputs.size(); ++i) {
        TensorView& view = seen.outputs[i].cpu;
        const bool table = view.shape.size() == 3 && view.shape[0] == 1;
        if (!table || view.shape[1] == rows || view.shape[2] != rows) continue;
        view = make_view(view.data_type, view.layout, {1, view.shape[2], view.shape[1]});
        seen.exchanged.push_back(i);
    }
    return seen;
}

// Whether so many rows are cells of strides that halve from one to the next.
bool are_cells(const HeadRequest& request, size_t rows) {
    constexpr std::array<int, 5> strides = {8, 16, 32, 64, 128};
    constexpr size_t coarse = 2;  // not alone
    for (size_t first = 0; first < strides.size(); ++first)
        for (size_t count = first < coarse ? 1 : 2; first + count <= strides.size(); ++count)
            if (make_grid(request.width, request.height, std::span(strides).subspan(first, count),
                          1)
                    .positions == rows)
                return true;
    return is_grid(request, rows);
}

// What the models have in common that end in finished boxes and `columns` of scores, with no
// background in front.
AnchoredForm form_without_background(const HeadRequest& request, size_t rows, size_t columns) {
    AnchoredForm form;
    form.priors.resize(rows);
    take_box_order(form, request);
    form.background_last = request.info.background == "last";
    form.classes = static_cast<unsigned>(columns - (form.background_last ? 1 : 0));
    if (form.background_last) form.logits = "softmax";
    constexpr size_t most_selected = 1000;  // ours: no model asks itself more questions
    form.selected = is_count_of_queries(rows) ||
                    (rows <= most_selected && (form.background_last || !are_cells(request, rows)));
    return form;
}

// One table of boxes and scores: the decoders of YOLO read it where it has a row per cell.
std::optional<AnchoredForm> one_table(const HeadRequest& request) {
    const TensorInfo* const output = output_with_role(request, "boxes");
    const auto table = output ? table_of(*output) : std::nullopt;
    if (request.outputs.size() != 1 || !table || table->columns <= 4 ||
        !lacks_background(request, *output, table->columns - 4))
        return std::nullopt;
    AnchoredForm form = form_without_background(request, table->rows, table->columns - 4);
    form.parts = {{0, table->rows, {0, 0}}};
    form.first_score = form.first_class = 4;
    if (form.logits.empty()) form.logits = "sigmoid";
    return form;
}

Result<AnchoredForm> find_upright_form(const HeadRequest& request);

Result<AnchoredForm> find_form(const HeadRequest& request) {
    if (auto form = one_table(request)) return *std::move(form);
    Upright seen = upright(request);
    auto form = find_upright_form(
        {request.info, seen.outputs, request.width, request.height, request.fault});
    if (form) form->exchanged = std::move(seen.exchanged);
    return form;
}

Result<AnchoredForm> find_upright_form(const HeadRequest& request) {
    const size_t rows = rows_of_boxes(request);
    const Rows all[] = {{0, rows}};
    auto parts = find_parts(request, columns_of(request), all, "its boxes");
    if (!parts) return std::move(parts).error();
    AnchoredForm form;
    form.boxes = 0;
    form.scores = 1;
    const TensorInfo& boxes = request.outputs[parts->front().outputs[form.boxes]];
    const TensorInfo& classes = request.outputs[parts->front().outputs[form.scores]];
    if (role_of(request, boxes) == "boxes" &&
        lacks_background(request, classes, table_of(classes)->columns)) {
        form = form_without_background(request, rows, table_of(classes)->columns);
        form.boxes = 0;
        form.scores = 1;
        form.parts = std::move(*parts);
        return form;
    }
    auto priors = find_priors(request, rows, role_of(request, boxes));
    if (!priors) return std::move(priors).error();
    if (priors->priors.size() != rows) {
        return rows_error(request, boxes, priors->priors.size(), source_of(request.info));
    }
    form.priors = std::move(priors->priors);
    if (const std::vector<float>& said = request.info.variance; !said.empty())
        form.centre_variance = said[0], form.size_variance = said[1];
    if (priors->finished)
        form.code = request.info.box_order == "cxcywh" ? BoxCode::centre : BoxCode::corners;
    if (priors->y_first) form.order = {1, 0, 3, 2};
    form.order_said = !request.info.box_order.empty();
    const auto scores = table_of(classes);
    form.parts = std::move(*parts);
    const std::string& background = request.info.background;
    form.background_last = background == "last";
    form.first_class = background.empty() || background == "first" ? 1 : 0;
    form.classes = static_cast<unsigned>(scores->columns - (background == "none" ? 0 : 1));
    if (form.background_last) form.logits = "softmax";
    if (priors->y_first) form.logits = "sigmoid";  // as TensorFlow trains them
    return form;
}

bool is_listed(const HeadRequest& request) {
    return std::ranges::any_of(request.outputs, [](const TensorInfo& output) {
        return output.cpu.shape.size() == 2 && output.cpu.shape[0] == 1;
    });
}

}  // namespace

bool fits_ssd(const HeadRequest& request) {
    return fits_ssd_listed(request) || fits_anchored(request, find_form);
}

// Those of TensorFlow. Many models end in boxes and scores, and take different pixels.
bool knows_pixels_of_ssd(const HeadRequest& request) {
    HeadRequest silent = request;
    silent.fault = nullptr;
    if (is_listed(request)) return !is_of_selection(request);
    const auto form = find_form(silent);
    return form && form->first_class == 1 && form->logits == "sigmoid";
}

Result<std::unique_ptr<Head>> create_ssd(const HeadRequest& request) {
    if (is_listed(request)) return create_ssd_listed(request);
    return create_anchored(request, find_form);
}

}  // namespace vartml::vision
