// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/head.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vartml::vision {

namespace {

std::string list_text(std::span<const int> values) {
    std::string text;
    for (const int value : values) {
        if (!text.empty()) text += ',';
        text += std::to_string(value);
    }
    return text;
}

// Strides of the published models, the commonest first.
const std::vector<int> usual_strides[] = {{8, 16, 32}, {8, 16, 32, 64}, {16, 32}, {4, 8, 16, 32}};

std::vector<Grid> possible_grids(const HeadRequest& request, unsigned per_cell) {
    const ModelInfo& info = request.info;
    std::vector<Grid> grids;
    if (!info.strides.empty()) {
        if (per_cell > 1 && !info.anchors.empty()) {
            per_cell = static_cast<unsigned>(info.anchors.size() / 2 / info.strides.size());
        }
        grids.push_back(make_grid(request.width, request.height, info.strides, per_cell));
        return grids;
    }
    for (const auto& strides : usual_strides) {
        grids.push_back(make_grid(request.width, request.height, strides, per_cell));
    }
    return grids;
}

bool is_dense(const TensorInfo& output) {
    return output.cpu.shape.size() == 3 && output.cpu.shape[0] == 1;
}

// The grid with the number of positions given, if one has it.
const Grid* grid_with(const std::vector<Grid>& grids, size_t positions) {
    const auto it = std::ranges::find(grids, positions, &Grid::positions);
    return it == grids.end() || positions == 0 ? nullptr : &*it;
}

Error positions_error(const HeadRequest& request, const TensorInfo& output, const Grid& grid) {
    std::vector<int> strides;
    for (const Level& level : grid.levels) strides.push_back(level.stride);
    const std::string size = std::to_string(request.width) + "x" + std::to_string(request.height);
    const std::string shape = shape_text(output.cpu.shape);
    const std::string origin = request.info.strides.empty()
                                   ? "the usual strides"
                                   : "the strides of " + source_of(request.info);
    return head_error(
        request, "dec-positions",
        "tensor '" + output.name + "' has the shape " + shape + ", but an input of " + size +
            " with " + origin + " (" + list_text(strides) + ") gives " +
            std::to_string(grid.positions) +
            " positions; check x-vartml-strides and x-vartml-anchors, or choose another decoder",
        shape, std::to_string(grid.positions), "x-vartml-strides=…");
}

}  // namespace

std::string source_of(const ModelInfo& info) {
    return info.file.empty() ? "the sidecar in the compiled model" : "sidecar '" + info.file + "'";
}

std::optional<unsigned> promised_classes(const ModelInfo& info) {
    if (!info.labels.empty()) return static_cast<unsigned>(info.labels.size());
    return info.num_classes;
}

std::string_view tensor_id(const HeadRequest& request, const TensorInfo& output) {
    for (const ModelInfo::Output& named : request.info.outputs) {
        if (named.name == output.name && !named.id.empty()) return named.id;
    }
    return output.name;
}

const TensorInfo* output_with_role(const HeadRequest& request, std::string_view role) {
    for (const ModelInfo::Output& named : request.info.outputs) {
        if (named.role != role) continue;
        const auto it = std::ranges::find(request.outputs, named.name, &TensorInfo::name);
        if (it != request.outputs.end()) return &*it;
    }
    return nullptr;
}

const TensorInfo* find_output(const HeadRequest& request, std::string_view role,
                              std::span<const std::string_view> hints,
                              bool (*fits)(const TensorInfo&)) {
    if (const TensorInfo* named = output_with_role(request, role))
        return fits(*named) ? named : nullptr;
    const TensorInfo *hinted = nullptr, *fitting = nullptr;
    unsigned hinted_count = 0, fitting_count = 0;
    for (const TensorInfo& output : request.outputs) {
        if (!fits(output)) continue;
        fitting = &output;
        ++fitting_count;
        const std::string name = output.name + " " + std::string(tensor_id(request, output));
        if (std::ranges::any_of(
                hints, [&](std::string_view hint) { return name.find(hint) != name.npos; })) {
            hinted = &output;
            ++hinted_count;
        }
    }
    if (hinted_count) return hinted_count == 1 ? hinted : nullptr;
    return fitting_count == 1 ? fitting : nullptr;
}

Error role_error(const HeadRequest& request, const std::string& role, const std::string& shape,
                 bool has_candidates) {
    const std::string found = outputs_text(request.outputs), line = "x-vartml-role=" + role;
    const bool can_name = has_candidates && request.outputs.size() > 1;
    return head_error(request, "dec-role",
                      "no " + std::string(can_name ? "single " : "") + "output is the " + role +
                          " " + shape + ", found " + found + "; " +
                          (can_name ? "name it in the sidecar with " + line + ", or " : "") +
                          "choose another decoder",
                      found, role + " " + shape, can_name ? line : "decoder=…");
}

std::string outputs_text(std::span<const TensorInfo> outputs) {
    std::string text;
    for (const TensorInfo& output : outputs) {
        if (!text.empty()) text += ", ";
        text += output.name + " " + shape_text(output.cpu.shape);
    }
    return text.empty() ? "no outputs" : text;
}

Error head_error(const HeadRequest& request, std::string_view id, const std::string& sentence,
                 const std::string& found, const std::string& expected, const std::string& fix) {
    if (request.fault) *request.fault = {std::string(id), found, expected, fix};
    return {ErrorCode::bad_model, sentence};
}

Result<void> check_classes(const HeadRequest& request, std::string_view tensor, size_t classes) {
    const ModelInfo& info = request.info;
    const auto count = static_cast<int64_t>(classes) + info.class_offset;
    const std::string offset =
        info.class_offset ? " (x-vartml-class-offset " + std::to_string(info.class_offset) + ")"
                          : "";
    const auto error = [&](size_t promised, const std::string& what, const std::string& fix) {
        return head_error(request, "dec-classes",
                          "tensor '" + std::string(tensor) + "' has " + std::to_string(classes) +
                              " classes" + offset + ", but " + what + "; " + fix,
                          std::to_string(count), std::to_string(promised), fix);
    };
    if (!info.labels.empty() && count != static_cast<int64_t>(info.labels.size())) {
        const std::string file =
            info.labels_file.empty() ? source_of(info) : "label file '" + info.labels_file + "'";
        return error(info.labels.size(),
                     file + " has " + std::to_string(info.labels.size()) + " labels",
                     "give the labels that the model was trained with, or choose another decoder");
    }
    if (info.num_classes && count != static_cast<int64_t>(*info.num_classes)) {
        return error(
            *info.num_classes,
            source_of(info) + " says x-vartml-num-classes=" + std::to_string(*info.num_classes),
            "correct that line, or choose another decoder");
    }
    return {};
}

std::optional<unsigned> tensor_classes(const ModelInfo& info) {
    const auto promised = promised_classes(info);
    if (!promised) return std::nullopt;
    return static_cast<unsigned>(std::max<int64_t>(0, int64_t{*promised} - info.class_offset));
}

Error class_error(std::string_view tensor, size_t row, double class_value,
                  std::optional<unsigned> promised) {
    const std::string number = std::to_string(class_value);
    return {ErrorCode::bad_model,
            "tensor '" + std::string(tensor) + "' row " + std::to_string(row) + " names class " +
                number.substr(0, number.find('.')) +
                (promised ? ", but labels or sidecar have " + std::to_string(*promised) + " classes"
                          : ", which is no class number") +
                "; give the labels that the model was trained with, or choose another decoder"};
}

Grid make_grid(uint32_t width, uint32_t height, std::span<const int> strides, unsigned per_cell) {
    Grid grid;
    for (const int stride : strides) {
        const auto s = static_cast<uint32_t>(stride);
        grid.levels.push_back({stride, (width + s - 1) / s, (height + s - 1) / s, grid.positions});
        grid.positions += size_t{grid.levels.back().width} * grid.levels.back().height * per_cell;
    }
    return grid;
}

// given: DETR and YOLOS ask 100 times, DETR's followers 300, 500 or 900. Cells of some pictures are
// as many (300 of 640x384 with strides of 32 and 64), but hardly ever of a model that ends like
// this.
bool is_count_of_queries(size_t rows) {
    return rows == 100 || rows == 300 || rows == 500 || rows == 900;
}

Result<DenseHead> locate_dense_head(const HeadRequest& request, const DenseForm& form) {
    const auto grids = possible_grids(request, form.per_cell);
    const TensorInfo* named = output_with_role(request, "boxes");
    const TensorInfo* dense = nullptr;
    std::optional<DenseHead> head;
    for (const TensorInfo& output : request.outputs) {
        if (!is_dense(output) || (named && named != &output)) continue;
        // Of a branch that was for training alone: nothing but a name tells which is right.
        if (head && output.cpu.shape == request.outputs[head->output].cpu.shape)
            return role_error(request, "boxes", shape_text(output.cpu.shape));
        if (head) continue;
        if (!dense) dense = &output;
        const size_t published = form.attributes_first ? 2 : 1, other = 3 - published;
        for (const size_t axis : {published, other}) {
            const Grid* grid = grid_with(grids, output.cpu.shape[axis]);
            if (!grid) continue;
            head = DenseHead{static_cast<size_t>(&output - request.outputs.data()), axis == 2,
                             output.cpu.shape[3 - axis], *grid};
            break;
        }
    }
    if (head) return *std::move(head);
    if (dense) return positions_error(request, *dense, grids.front());
    return head_error(request, "dec-role",
                      "no output has the shape [1,positions,values] of a detection head, found " +
                          outputs_text(request.outputs) + "; choose another decoder",
                      outputs_text(request.outputs), "[1,positions,values]", "decoder=…");
}

Result<DenseHead> find_dense_head(const HeadRequest& request, const DenseForm& form) {
    auto head = locate_dense_head(request, form);
    if (!head) return head;
    const std::string& name = request.outputs[head->output].name;
    const size_t others = form.box_attributes + form.extra;
    if (head->attributes <= others) {
        const std::string found = std::to_string(head->attributes),
                          expected = std::to_string(others + 1);
        return head_error(request, "dec-classes",
                          "tensor '" + name + "' has " + found +
                              " values per position, expected at least " + expected +
                              " of this decoder; choose another decoder",
                          found, expected, "decoder=…");
    }
    auto checked = check_classes(request, name, head->attributes - others);
    if (!checked) return checked.error();
    return head;
}

bool fits_dense_form(const HeadRequest& request, const DenseForm& form) {
    if (request.outputs.size() != 1 || !is_dense(request.outputs[0])) return false;
    const auto grids = possible_grids(request, form.per_cell);
    const auto& shape = request.outputs[0].cpu.shape;
    const size_t positions = form.attributes_first ? 2 : 1, attributes = 3 - positions;
    if (grid_with(grids, shape[positions])) return shape[attributes] > form.box_attributes;
    if (!grid_with(grids, shape[attributes]) || shape[positions] <= form.box_attributes)
        return false;
    // Five values leave no room for an objectness, and no other family has several anchors per
    // cell.
    const bool unique = shape[positions] == 5 || form.per_cell > 1;
    const size_t classes = shape[positions] - form.box_attributes;
    return unique || (classes == 80 && !promised_classes(request.info));
}

bool is_grid(const HeadRequest& request, size_t positions) {
    return grid_with(possible_grids(request, 1), positions) ||
           grid_with(possible_grids(request, 3), positions);
}

Result<Matrix> dense_matrix(std::span<const OutputTensor> tensors, const DenseHead& head) {
    auto matrix = matrix_of(tensors[head.output]);
    if (!matrix || !head.attributes_first) return matrix;
    return transposed(*matrix);
}

Candidate centred_box(const Matrix& m, uint32_t position, float score, int32_t class_id) {
    const float cx = m.value(position, 0), cy = m.value(position, 1);
    const float w = m.value(position, 2), h = m.value(position, 3);
    return {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, class_id, position};
}

void PictureDetails::clear() {
    keypoints.clear();
    class_maps.clear();
    mask_pixels.clear();
    embedding.clear();
    text.clear();
    text_score = 0;
}

void BoxDetails::clear() {
    keypoints.clear();
    mask.reset();
    mask_pixels.clear();
    not_finite = 0;
}

void Candidates::clear() {
    boxes.clear();
    classes.clear();
    picture.clear();
    not_finite = 0;
}

void Candidates::add(const Candidate& c) {
    if (std::isfinite(c.x0) && std::isfinite(c.y0) && std::isfinite(c.x1) && std::isfinite(c.y1) &&
        std::isfinite(c.score)) {
        boxes.push_back(c);
    } else {
        ++not_finite;
    }
}

std::string_view ends_in(const HeadRequest& request, const TensorInfo& output) {
    const auto said =
        std::ranges::find(request.info.outputs, output.name, &ModelInfo::Output::name);
    return said == request.info.outputs.end() ? std::string_view() : said->ends_in;
}

bool is_linear(std::string_view end) {
    return end == "linear" || end == "product";
}

std::string_view activation_for(const HeadRequest& request, const TensorInfo& output,
                                std::string_view logits, std::string_view unknown) {
    const std::string_view end = ends_in(request, output), said = request.info.activation;
    if (!said.empty()) return said == end ? std::string_view("none") : said;  // the graph has it
    if (end.empty() || end == "unit-length" || end == "relu") return unknown;
    // The exponential of a logarithm of probabilities, made to sum up to 1, is itself.
    return is_linear(end) || end == "log-softmax" ? logits : std::string_view("none");
}

std::string_view activation_of_table(const HeadRequest& request, const TensorInfo& output) {
    if (!request.info.activation.empty()) return request.info.activation;
    return ends_in(request, output) == "product" ? "sigmoid" : "none";
}

BoxUnit final_box_unit(const HeadRequest& request) {
    if (request.info.box_unit == "pixel") return {1, 1};
    return {static_cast<float>(request.width), static_cast<float>(request.height)};
}

float Activation::operator()(float value) const {
    return sigmoid_ ? 1 / (1 + std::exp(-value)) : value;
}

float Activation::stored_threshold(float threshold) const {
    if (!sigmoid_) return threshold;
    if (threshold <= 0) return -std::numeric_limits<float>::infinity();
    const double t = std::min<double>(threshold, 1 - 1e-7);
    return static_cast<float>(std::log(t / (1 - t)) - 1e-3);
}

}  // namespace vartml::vision
