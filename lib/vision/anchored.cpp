// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/anchored.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

namespace vartml::vision {

AnchoredHead::AnchoredHead(AnchoredForm form)
    : form_(std::move(form)),
      activation_(form_.activation),
      softmax_(form_.activation == "softmax") {
    size_t most = 0;
    for (const Part& part : form_.parts) most = std::max(most, part.rows);
    found_.resize(most);
}

Result<AnchoredHead::Tensors> AnchoredHead::tensors_of(std::span<const OutputTensor> tensors,
                                                       const Part& part) const {
    Tensors t;
    for (const auto& [index, matrix] :
         {std::pair(form_.scores, &t.scores), std::pair(form_.boxes, &t.boxes),
          std::pair(form_.quality, &t.quality), std::pair(form_.landmarks, &t.landmarks)}) {
        if (index == absent || part.outputs[index] == absent) continue;
        auto found = table_matrix(tensors[part.outputs[index]]);
        if (!found) return std::move(found).error();
        const bool exchanged =
            std::ranges::find(form_.exchanged, part.outputs[index]) != form_.exchanged.end();
        *matrix = exchanged ? transposed(*found) : *found;
    }
    return t;
}

size_t AnchoredHead::find_rows(const Tensors& t, float threshold) {
    if (softmax_) {
        for (size_t row = 0; row < t.scores.rows; ++row) found_[row] = static_cast<uint32_t>(row);
        return t.scores.rows;
    }
    // A geometric mean with something of at most 1 reaches the threshold from its square on.
    if (form_.quality != absent && threshold > 0) threshold *= threshold * 0.9999f;
    return kernels::positions_above(scores_of(t.scores, form_.first_class, form_.classes),
                                    activation_.stored_threshold(threshold), found_.data());
}

AnchoredHead::Score AnchoredHead::score_of(const Tensors& t, uint32_t row, float threshold) const {
    if (softmax_) return softmax_score(t.scores, row, threshold);
    const kernels::BestClass best =
        best_class(scores_of(t.scores, form_.first_class, form_.classes), row);
    if (!best.finite) return {NAN, 0};
    float score = activation_(best.score);
    if (form_.quality != absent) {
        const float quality = t.quality.value(row, 0);
        if (!std::isfinite(quality)) return {NAN, 0};
        score = std::sqrt(std::clamp(score, 0.f, 1.f) * std::clamp(activation_(quality), 0.f, 1.f));
    }
    return {score, best.class_id};
}

// Exact where the score reaches the threshold; elsewhere it may be 0 without an exponential.
AnchoredHead::Score AnchoredHead::softmax_score(const Matrix& scores, uint32_t row,
                                                float threshold) const {
    const unsigned end = form_.first_class + form_.classes + (form_.background_last ? 1 : 0);
    const kernels::BestClass best =
        best_class(scores_of(scores, form_.first_class, form_.classes), row);
    const kernels::BestClass any =
        best_class(scores_of(scores, form_.first_score, end - form_.first_score), row);
    if (!any.finite) return {NAN, 0};
    // A class that is not the greatest has at most half of the sum.
    if (threshold > 0.5f && best.score < any.score) return {0, best.class_id};
    float sum = 0;
    for (size_t c = form_.first_score; c < end; ++c)
        sum += std::exp(scores.value(row, c) - any.score);
    return {std::exp(best.score - any.score) / sum, best.class_id};
}

Candidate AnchoredHead::box(const Tensors& t, const Prior& prior, uint32_t row) const {
    const auto value = [&](size_t i) { return t.boxes.value(row, form_.order[i]); };
    const float a = value(0), b = value(1), c = value(2), d = value(3);
    Candidate box{};
    if (form_.code == BoxCode::corners) {
        box.x0 = a * form_.unit.x, box.y0 = b * form_.unit.y;
        box.x1 = c * form_.unit.x, box.y1 = d * form_.unit.y;
        return box;
    }
    if (form_.code == BoxCode::centre) {
        box.x0 = (a - c / 2) * form_.unit.x, box.y0 = (b - d / 2) * form_.unit.y;
        box.x1 = (a + c / 2) * form_.unit.x, box.y1 = (b + d / 2) * form_.unit.y;
        return box;
    }
    if (form_.code == BoxCode::distances) {
        box.x0 = prior.cx - a * prior.width, box.y0 = prior.cy - b * prior.height;
        box.x1 = prior.cx + c * prior.width, box.y1 = prior.cy + d * prior.height;
        return box;
    }
    const float cx = prior.cx + a * form_.centre_variance * prior.width;
    const float cy = prior.cy + b * form_.centre_variance * prior.height;
    const bool exponent = form_.code == BoxCode::exponent;
    const float w = prior.width * (exponent ? std::exp(c * form_.size_variance) : c);
    const float h = prior.height * (exponent ? std::exp(d * form_.size_variance) : d);
    box.x0 = cx - w / 2, box.y0 = cy - h / 2;
    box.x1 = cx + w / 2, box.y1 = cy + h / 2;
    return box;
}

Keypoint AnchoredHead::point(const Tensors& t, const Prior& prior, uint32_t row,
                             unsigned index) const {
    const size_t column = form_.first_landmark + size_t{2} * index;
    return {
        .x = prior.cx + t.landmarks.value(row, column) * form_.centre_variance * prior.width,
        .y = prior.cy + t.landmarks.value(row, column + 1) * form_.centre_variance * prior.height};
}

bool AnchoredHead::points_finite(const Tensors& t, uint32_t row) const {
    for (size_t i = 0; i < size_t{2} * form_.landmark_count; ++i) {
        if (!std::isfinite(t.landmarks.value(row, form_.first_landmark + i))) return false;
    }
    return true;
}

Result<void> AnchoredHead::run(std::span<const OutputTensor> tensors, const RunContext& context,
                               Candidates& out) {
    of_last_class_ = 0;
    for (const Part& part : form_.parts) {
        auto t = tensors_of(tensors, part);
        if (!t) return std::move(t).error();
        const size_t count = find_rows(*t, context.threshold);
        for (size_t i = 0; i < count; ++i) {
            const uint32_t row = found_[i];
            const Score score = score_of(*t, row, context.threshold);
            if (score.value < context.threshold) continue;
            constexpr float certain = 0.5f;
            of_last_class_ +=
                score.value > certain && score.class_id + 1 == static_cast<int32_t>(form_.classes);
            if (std::isnan(score.value) || !points_finite(*t, row)) {
                ++out.not_finite;
                continue;
            }
            const size_t position = part.first + row;
            Candidate candidate = box(*t, form_.priors[position], row);
            candidate.score = score.value;
            candidate.class_id = score.class_id + form_.first_class_id;
            candidate.position = static_cast<uint32_t>(position);
            out.add(candidate);
        }
    }
    return {};
}

// Most of what a model asks itself has no answer.
std::string AnchoredHead::doubt() const {
    constexpr size_t few = 20;
    const size_t rows = form_.priors.size();
    if (!holds_corners() || form_.background_said || form_.classes < 2 || rows < few ||
        of_last_class_ * 10 < rows * 9)
        return {};
    return "of " + std::to_string(rows) + " positions " + std::to_string(of_last_class_) +
           " are of the last class, as where that is the class of nothing "
           "(x-vartml-background=last in section [modelinfo] says so)";
}

Result<void> AnchoredHead::add_details(std::span<const OutputTensor> tensors, const RunContext&,
                                       const Candidate& candidate, BoxDetails& details) {
    if (!form_.landmark_count) return {};
    const Part* part = form_.parts.data();
    while (candidate.position >= part->first + part->rows) ++part;
    auto t = tensors_of(tensors, *part);
    if (!t) return std::move(t).error();
    const auto row = static_cast<uint32_t>(candidate.position - part->first);
    for (unsigned i = 0; i < form_.landmark_count; ++i) {
        details.keypoints.push_back(point(*t, form_.priors[candidate.position], row, i));
    }
    return {};
}

std::vector<Prior> cell_priors(const Grid& grid, unsigned per_cell, float offset) {
    std::vector<Prior> priors;
    priors.reserve(grid.positions);
    for (const Level& level : grid.levels) {
        const auto stride = static_cast<float>(level.stride);
        for (uint32_t y = 0; y < level.height; ++y) {
            for (uint32_t x = 0; x < level.width; ++x) {
                priors.insert(priors.end(), per_cell,
                              {(static_cast<float>(x) + offset) * stride,
                               (static_cast<float>(y) + offset) * stride, stride, stride});
            }
        }
    }
    return priors;
}

std::vector<Rows> rows_of_levels(const Grid& grid) {
    std::vector<Rows> rows;
    for (size_t i = 0; i < grid.levels.size(); ++i) {
        const size_t end = i + 1 < grid.levels.size() ? grid.levels[i + 1].first : grid.positions;
        rows.push_back({grid.levels[i].stride, end - grid.levels[i].first});
    }
    return rows;
}

namespace {

struct Size {
    float width, height;
    float x = 0.5f, y = 0.5f;  // of the centre, in cells
};

// Sizes of the priors of each level.
// dec-positions: numbers of strides and anchors that do not fit.
Error anchors_error(const HeadRequest& request, const std::string& found,
                    const std::string& expected) {
    return head_error(request, "dec-positions",
                      source_of(request.info) + " has " + found + ", expected " + expected +
                          "; correct the lines x-vartml-strides and x-vartml-anchors",
                      found, expected, "x-vartml-anchors=…");
}

std::string anchors_text(size_t pairs, size_t levels) {
    return std::to_string(pairs) + " anchors for " + std::to_string(levels) + " strides";
}

// Sizes of the priors of each level.
Result<std::vector<std::vector<Size>>> sizes_of(const HeadRequest& request,
                                                std::span<const PriorLevel> published,
                                                size_t levels) {
    std::vector<std::vector<Size>> sizes(levels);
    const auto& anchors = request.info.anchors;
    const size_t pairs = anchors.size() / 2;
    if (anchors.empty() && levels != published.size()) {
        return anchors_error(request, std::to_string(levels) + " strides and no anchors",
                             std::to_string(published.size()) + " strides, or anchors");
    }
    if (pairs % levels != 0) {
        return anchors_error(request, anchors_text(pairs, levels), "as many for each stride");
    }
    for (size_t i = 0; i < levels; ++i) {
        if (anchors.empty()) {
            const PriorLevel& level = published[i];
            for (size_t k = 0; k < level.sides.size(); ++k) {
                const float side = level.sides[k];
                const unsigned density = level.density.empty() ? 1 : level.density[k];
                const auto at = [&](unsigned n) {
                    return density == 1 ? 0.5f
                                        : static_cast<float>(n) / static_cast<float>(density);
                };
                for (unsigned n = 0; n < density * density; ++n)
                    sizes[i].push_back({side, side, at(n % density), at(n / density)});
            }
        } else {
            for (size_t k = i * pairs / levels; k < (i + 1) * pairs / levels; ++k)
                sizes[i].push_back({anchors[2 * k], anchors[2 * k + 1]});
        }
    }
    return sizes;
}

}  // namespace

Result<GridPriors> grid_priors(const HeadRequest& request, std::span<const PriorLevel> published,
                               bool pools) {
    std::vector<int> strides = request.info.strides;
    if (strides.empty()) {
        for (const PriorLevel& level : published) strides.push_back(level.stride);
    }
    auto sizes = sizes_of(request, published, strides.size());
    if (!sizes) return std::move(sizes).error();
    GridPriors all;
    std::string strides_text, counts_text;
    for (size_t i = 0; i < strides.size(); ++i) {
        const auto stride = static_cast<uint32_t>(strides[i]);
        // The first convolution rounds up, pooling behind it down.
        const auto pooled = [&](uint32_t side) {
            return pools ? (side + 1) / stride * stride : side;
        };
        const Grid grid =
            make_grid(pooled(request.width), pooled(request.height), {&strides[i], 1}, 1);
        for (const Prior& cell : cell_priors(grid, 1, 0)) {
            for (const Size& size : (*sizes)[i])
                all.priors.push_back({cell.cx + size.x * cell.width, cell.cy + size.y * cell.height,
                                      size.width, size.height});
        }
        all.levels.push_back({strides[i], grid.positions * (*sizes)[i].size()});
        strides_text += (i ? "," : "") + std::to_string(strides[i]);
        counts_text += (i ? "," : "") + std::to_string((*sizes)[i].size());
    }
    const bool ours = request.info.strides.empty() && request.info.anchors.empty();
    all.origin = "the strides " + strides_text + " and " + counts_text + " anchors of " +
                 (ours ? "the published models" : source_of(request.info));
    return all;
}

void cut_to_input(std::vector<Prior>& priors, const HeadRequest& request) {
    const auto width = static_cast<float>(request.width);
    const auto height = static_cast<float>(request.height);
    for (Prior& prior : priors) {
        prior = {std::min(prior.cx, width), std::min(prior.cy, height),
                 std::min(prior.width, width), std::min(prior.height, height)};
    }
}

Result<unsigned> anchors_per_cell(const HeadRequest& request, unsigned published, size_t levels) {
    const size_t pairs = request.info.anchors.size() / 2;
    if (pairs == 0) return published;
    if (pairs % levels == 0) return static_cast<unsigned>(pairs / levels);
    return anchors_error(request, anchors_text(pairs, levels), "as many for each stride");
}

void take_box_order(AnchoredForm& form, const HeadRequest& request) {
    const std::string& order = request.info.box_order;
    form.code = order == "cxcywh" ? BoxCode::centre : BoxCode::corners;
    if (order == "yxyx") form.order = {1, 0, 3, 2};
    form.order_said = !order.empty();
}

bool fits_anchored(const HeadRequest& request, FindForm find) {
    HeadRequest silent = request;
    silent.fault = nullptr;
    const auto form = find(silent);
    return form && outputs_in(form->parts) == request.outputs.size();
}

namespace {

// As label files of published models do: "BACKGROUND", "__background__".
bool names_background(std::string_view label) {
    std::string letters;
    for (const char c : label)
        if (std::isalpha(static_cast<unsigned char>(c)))
            letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return letters == "background" || letters == "bg";
}

}  // namespace

Result<std::unique_ptr<Head>> create_anchored(const HeadRequest& request, FindForm find) {
    auto form = find(request);
    if (!form) return std::move(form).error();
    const size_t scores = form->parts.front().outputs[form->scores];
    if (form->classes == 0) {
        return head_error(request, "dec-classes",
                          "tensor '" + request.outputs[scores].name +
                              "' has no class beside the background that the sidecar's "
                              "x-vartml-background names; take that line out, or choose another "
                              "decoder",
                          "0", "1", "x-vartml-background=none");
    }
    // The background is class 0: with x-vartml-class-offset=-1 it has no label, and where labels
    // name it, it is the first of them.
    const int offset = request.info.class_offset;
    const std::vector<std::string>& labels = request.info.labels;
    const bool is_labelled =
        offset == 0 && labels.size() == form->classes + 1 && names_background(labels[0]);
    const bool has_background = form->first_class > form->first_score;
    if (has_background && (offset == -1 || is_labelled)) form->first_class_id = 1;
    // Where the sidecar counts the background as a class, so does the check.
    const unsigned background =
        form->first_class_id > 0 || (form->background_last && request.info.class_offset == 0 &&
                                     tensor_classes(request.info) == form->classes + 1)
            ? 1
            : 0;
    auto checked = check_classes(request, request.outputs[scores].name, form->classes + background);
    if (!checked) return checked.error();
    if (form->logits.empty()) form->logits = form->first_class ? "softmax" : "sigmoid";
    form->activation = std::string(
        activation_for(request, request.outputs[scores], form->logits, form->activation));
    form->unit = final_box_unit(request);
    form->background_said = !request.info.background.empty();
    return std::unique_ptr<Head>(std::make_unique<AnchoredHead>(std::move(*form)));
}

namespace {

const ModelInfo::Output* named(const HeadRequest& request, const TensorInfo& output) {
    const auto& outputs = request.info.outputs;
    const auto it = std::ranges::find(outputs, output.name, &ModelInfo::Output::name);
    return it == outputs.end() ? nullptr : &*it;
}

bool has_role(std::string_view role, const Column& column) {
    return role == column.role || (role == "offsets" && column.role == "boxes");
}

bool fits(const Table& table, const Column& column) {
    return column.columns ? table.columns == column.columns : table.columns >= 2;
}

std::string columns_text(const Column& column) {
    return column.columns ? std::to_string(column.columns) : "C";
}

std::string input_text(const HeadRequest& request) {
    return "an input of " + std::to_string(request.width) + "x" + std::to_string(request.height);
}

// The sidecar's roles of outputs against the columns of the family.
Result<void> check_roles(const HeadRequest& request, std::span<const Column> wanted) {
    for (const TensorInfo& output : request.outputs) {
        const std::string_view role = role_of(request, output);
        if (role.empty()) continue;
        const auto column = std::ranges::find_if(
            wanted, [&](const Column& candidate) { return has_role(role, candidate); });
        const auto table = table_of(output);
        if (column != wanted.end() && table && fits(*table, *column)) continue;
        std::string roles;
        for (const Column& known : wanted) {
            roles += (roles.empty() ? "" : ", ") + std::string(known.role) + " [1,N," +
                     columns_text(known) + "]";
        }
        const std::string line = "x-vartml-role=" + std::string(role);
        return head_error(request, "dec-role",
                          "output '" + output.name + "' has the shape " +
                              shape_text(output.cpu.shape) + ", but " + source_of(request.info) +
                              " says " + line + "; correct that line in section [" + output.name +
                              "], this decoder reads " + roles,
                          output.name + " " + shape_text(output.cpu.shape) + " " + line, roles,
                          "x-vartml-role=…");
    }
    return {};
}

// The sidecar's strides of outputs against the rows that they give.
Result<void> check_strides(const HeadRequest& request, std::span<const Rows> levels) {
    for (const TensorInfo& output : request.outputs) {
        const ModelInfo::Output* line = named(request, output);
        const auto table = table_of(output);
        if (!line || !line->stride || !table) continue;
        const auto level = std::ranges::find(levels, *line->stride, &Rows::stride);
        const size_t expected = level == levels.end() ? 0 : level->rows;
        if (expected == table->rows) continue;
        const std::string key = "x-vartml-stride=" + std::to_string(*line->stride);
        return head_error(
            request, "dec-positions",
            "output '" + output.name + "' has " + std::to_string(table->rows) + " positions, but " +
                source_of(request.info) + " says " + key + ", where " + input_text(request) +
                " has " + std::to_string(expected) + "; correct that line in section [" +
                output.name + "]",
            std::to_string(table->rows), std::to_string(expected), "x-vartml-stride=…");
    }
    return {};
}

// Outputs of one level for each column; `absent` where there is none. Columns that look alike take
// the outputs in their order; more outputs than columns of a look are nobody's.
std::vector<size_t> match(const HeadRequest& request, std::span<const Column> wanted, size_t rows) {
    std::vector<size_t> found(wanted.size(), absent);
    const auto suits = [&](size_t output, const Column& column, bool by_role) {
        const auto table = table_of(request.outputs[output]);
        const std::string_view role = role_of(request, request.outputs[output]);
        return table && table->rows == rows && fits(*table, column) &&
               (by_role ? has_role(role, column) : role.empty());
    };
    for (const bool by_role : {true, false}) {
        for (size_t c = 0; c < wanted.size(); ++c) {
            if (found[c] != absent) continue;
            std::vector<size_t> candidates;
            size_t rivals = 0;
            for (size_t k = c; k < wanted.size(); ++k)
                rivals += found[k] == absent && wanted[k].columns == wanted[c].columns;
            for (size_t output = 0; output < request.outputs.size(); ++output) {
                if (std::ranges::find(found, output) == found.end() &&
                    suits(output, wanted[c], by_role)) {
                    candidates.push_back(output);
                }
            }
            const auto unlike = [&](size_t output) {
                return request.outputs[output].name.find(wanted[c].hint) == std::string::npos;
            };
            if (candidates.size() > rivals) std::erase_if(candidates, unlike);
            const bool certain = by_role ? candidates.size() == 1 : candidates.size() <= rivals;
            if (!candidates.empty() && certain) found[c] = candidates.front();
        }
    }
    return found;
}

bool is_complete(std::span<const size_t> found, std::span<const Column> wanted) {
    for (size_t c = 0; c < wanted.size(); ++c) {
        if (found[c] == absent && !wanted[c].optional) return false;
    }
    return true;
}

// Why a level has no complete set of outputs.
Error missing(const HeadRequest& request, std::span<const Column> wanted,
              std::span<const size_t> found, const Rows& level, const std::string& origin) {
    size_t lost = 0;
    while (found[lost] != absent || wanted[lost].optional) ++lost;
    const Column& column = wanted[lost];
    const auto of_this_shape = [&](bool of_rows) {
        return std::ranges::find_if(request.outputs, [&](const TensorInfo& output) {
            const auto table = table_of(output);
            const auto index = static_cast<size_t>(&output - request.outputs.data());
            if (std::ranges::find(found, index) != found.end()) return false;
            return table && fits(*table, column) && (!of_rows || table->rows == level.rows);
        });
    };
    const auto other = of_this_shape(false);
    if (other != request.outputs.end() && of_this_shape(true) == request.outputs.end()) {
        if (level.stride == 0) return rows_error(request, *other, level.rows, origin);
        return rows_error(request, *other, level.rows,
                          "stride " + std::to_string(level.stride) + " and " + origin);
    }
    return role_error(request, std::string(column.role),
                      "[1," + std::to_string(level.rows) + "," + columns_text(column) + "]",
                      of_this_shape(true) != request.outputs.end());
}

// An output like the others that no level has takes positions that nobody would look at.
Result<void> check_left_over(const HeadRequest& request, std::span<const Column> wanted,
                             std::span<const Part> parts) {
    for (size_t i = 0; i < request.outputs.size(); ++i) {
        const TensorInfo& output = request.outputs[i];
        const auto table = table_of(output);
        const bool used = std::ranges::any_of(parts, [&](const Part& part) {
            return std::ranges::find(part.outputs, i) != part.outputs.end();
        });
        const auto alike = [&](const Column& column) { return table && fits(*table, column); };
        if (used || std::ranges::none_of(wanted, alike)) continue;
        const std::string found = output.name + " " + shape_text(output.cpu.shape);
        const std::string expected = std::to_string(parts.size()) + " strides";
        return head_error(request, "dec-positions",
                          "output '" + output.name + "' " + shape_text(output.cpu.shape) +
                              " belongs to none of the " + expected +
                              " of this model; name all of them with x-vartml-strides, or choose "
                              "another decoder",
                          found, expected, "x-vartml-strides=…");
    }
    return {};
}

}  // namespace

std::optional<Table> table_of(const TensorInfo& output) {
    const auto& shape = output.cpu.shape;
    if (shape.size() == 3 && shape[0] == 1) return Table{shape[1], shape[2]};
    if (shape.size() == 2) return Table{shape[0], shape[1]};
    return std::nullopt;
}

std::string_view role_of(const HeadRequest& request, const TensorInfo& output) {
    const ModelInfo::Output* line = named(request, output);
    return line ? std::string_view(line->role) : std::string_view();
}

Error rows_error(const HeadRequest& request, const TensorInfo& output, size_t expected,
                 const std::string& origin) {
    const auto table = table_of(output);
    const std::string rows = std::to_string(table ? table->rows : 0);
    return head_error(request, "dec-positions",
                      "output '" + output.name + "' has " + rows + " positions, but " +
                          input_text(request) + " gives " + std::to_string(expected) + " with " +
                          origin +
                          "; check x-vartml-strides and x-vartml-anchors, or choose another "
                          "decoder",
                      rows, std::to_string(expected), "x-vartml-strides=…");
}

Result<std::vector<Part>> find_parts(const HeadRequest& request, std::span<const Column> wanted,
                                     std::span<const Rows> levels, const std::string& origin) {
    if (auto checked = check_roles(request, wanted); !checked) return checked.error();
    const size_t all =
        std::accumulate(levels.begin(), levels.end(), size_t{0},
                        [](size_t sum, const Rows& level) { return sum + level.rows; });
    auto whole = match(request, wanted, all);
    if (is_complete(whole, wanted)) return std::vector<Part>{{0, all, std::move(whole)}};
    // Where an output has all positions, so have the others, or they are not there.
    const bool any = std::ranges::any_of(whole, [](size_t output) { return output != absent; });
    if (levels.size() < 2 || any) return missing(request, wanted, whole, {0, all}, origin);
    if (auto checked = check_strides(request, levels); !checked) return checked.error();
    std::vector<Part> parts;
    size_t first = 0;
    for (const Rows& level : levels) {
        auto found = match(request, wanted, level.rows);
        if (!is_complete(found, wanted)) return missing(request, wanted, found, level, origin);
        for (size_t c = 0; !parts.empty() && c < wanted.size(); ++c) {
            if ((found[c] == absent) != (parts.front().outputs[c] == absent)) {
                return role_error(request, std::string(wanted[c].role),
                                  "[1," + std::to_string(level.rows) + "," +
                                      columns_text(wanted[c]) + "] of stride " +
                                      std::to_string(level.stride));
            }
        }
        parts.push_back({first, level.rows, std::move(found)});
        first += level.rows;
    }
    if (auto checked = check_left_over(request, wanted, parts); !checked) return checked.error();
    return parts;
}

size_t outputs_in(std::span<const Part> parts) {
    size_t count = 0;
    for (const Part& part : parts) {
        count +=
            part.outputs.size() - static_cast<size_t>(std::ranges::count(part.outputs, absent));
    }
    return count;
}

}  // namespace vartml::vision
