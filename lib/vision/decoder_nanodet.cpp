// SPDX-License-Identifier: Apache-2.0
// NanoDet: per stride s class scores [1,n,C] and distances [1,n,4*(R+1)]; a distance is the
// expectation over the softmax of its R+1 bins, times s, from the cell's centre (g + 0.5) * s.
// So has PicoDet before its post-process, of four strides. NanoDet of three strides may be one
// table [1,N,C+4*(R+1)]; one of four is NanoDet-Plus, which counts from g * s. given:
// nanodet/model/head/gfl_head.py, nanodet_plus_head.py; PaddleDetection's pico_head.py.
#include <algorithm>
#include <cmath>

#include "lib/vision/families.h"

namespace vartml::vision {

namespace {

constexpr uint32_t published_bins = 8;                          // R + 1 of the published models
constexpr int three[] = {8, 16, 32}, four[] = {8, 16, 32, 64};  // and their strides

struct LevelOutputs {
    size_t scores, distances;  // indices of the outputs
};

struct NanodetForm {
    Grid grid;
    std::vector<LevelOutputs> outputs;  // one per level, or one table of all
    unsigned classes = 0, bins = 0;
    unsigned first_distance = 0;  // column
};

class Nanodet : public Head {
public:
    Nanodet(NanodetForm form, std::string_view activation)
        : form_(std::move(form)), activation_(activation), found_(form_.grid.positions) {}

    unsigned classes() const override { return form_.classes; }
    std::string_view logits() const override { return "sigmoid"; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        const bool is_table = form_.first_distance > 0;
        for (size_t i = 0; i < form_.outputs.size(); ++i) {
            auto scores = matrix_of(tensors[form_.outputs[i].scores]);
            if (!scores) return std::move(scores).error();
            auto distances = matrix_of(tensors[form_.outputs[i].distances]);
            if (!distances) return std::move(distances).error();
            const kernels::Scores list = scores_of(*scores, 0, form_.classes);
            const size_t count = kernels::positions_above(
                list, activation_.stored_threshold(context.threshold), found_.data());
            for (size_t k = 0; k < count; ++k) {
                kernels::BestClass best = best_class(list, found_[k]);
                best.score = activation_(best.score);
                if (!best.finite) {
                    ++out.not_finite;
                } else if (best.score >= context.threshold) {
                    out.add(box(*distances, is_table ? level_of(found_[k]) : form_.grid.levels[i],
                                found_[k], best));
                }
            }
        }
        return {};
    }

private:
    const Level& level_of(uint32_t position) const {
        size_t i = form_.grid.levels.size() - 1;
        while (form_.grid.levels[i].first > position) --i;
        return form_.grid.levels[i];
    }

    Candidate box(const Matrix& distances, const Level& level, uint32_t row,
                  const kernels::BestClass& best) const {
        const auto stride = static_cast<float>(level.stride);
        const bool is_table = form_.first_distance > 0;
        const uint32_t cell = is_table ? row - static_cast<uint32_t>(level.first) : row;
        const bool is_plus = is_table && form_.grid.levels.size() == std::size(four);
        const float middle = is_plus ? 0 : 0.5f;
        const float cx = (static_cast<float>(cell % level.width) + middle) * stride;
        const float cy = (static_cast<float>(cell / level.width) + middle) * stride;
        float side[4];
        for (unsigned k = 0; k < 4; ++k)
            side[k] = expectation(distances, row, form_.first_distance + k * form_.bins) * stride;
        return {cx - side[0],
                cy - side[1],
                cx + side[2],
                cy + side[3],
                best.score,
                best.class_id,
                static_cast<uint32_t>(level.first) + cell};
    }

    float expectation(const Matrix& distances, uint32_t cell, unsigned first) const {
        float greatest = distances.value(cell, first);
        for (unsigned b = 1; b < form_.bins; ++b)
            greatest = std::max(greatest, distances.value(cell, first + b));
        float sum = 0, weighted = 0;
        for (unsigned b = 0; b < form_.bins; ++b) {
            const float weight = std::exp(distances.value(cell, first + b) - greatest);
            sum += weight;
            weighted += weight * static_cast<float>(b);
        }
        return weighted / sum;
    }

    NanodetForm form_;
    Activation activation_;  // of the classes
    std::vector<uint32_t> found_;
};

bool has_cells(const TensorInfo& output, size_t cells) {
    const auto& shape = output.cpu.shape;
    return shape.size() == 3 && shape[0] == 1 && shape[1] == cells;
}

// Of the two outputs of a level, the one that holds distances: by role, else by the published
// number of bins, else the only one that can.
enum class Side { first, second, unknown };
Side distances_of(const HeadRequest& request, const TensorInfo& a, const TensorInfo& b) {
    for (const ModelInfo::Output& named : request.info.outputs) {
        if (named.name == a.name && named.role == "boxes") return Side::first;
        if (named.name == b.name && named.role == "boxes") return Side::second;
    }
    const uint32_t ca = a.cpu.shape[2], cb = b.cpu.shape[2];
    if ((ca == 4 * published_bins) != (cb == 4 * published_bins)) {
        return ca == 4 * published_bins ? Side::first : Side::second;
    }
    const bool fits_a = ca % 4 == 0 && ca >= 8, fits_b = cb % 4 == 0 && cb >= 8;
    if (fits_a == fits_b) return Side::unknown;
    return fits_a ? Side::first : Side::second;
}

// Fills the form for one set of strides; the error says what is missing.
Result<NanodetForm> form_of(const HeadRequest& request, std::span<const int> strides) {
    NanodetForm form;
    form.grid = make_grid(request.width, request.height, strides, 1);
    for (size_t i = 0; i < form.grid.levels.size(); ++i) {
        const Level& level = form.grid.levels[i];
        const size_t cells = size_t{level.width} * level.height;
        std::vector<size_t> pair;
        for (size_t k = 0; k < request.outputs.size(); ++k) {
            if (has_cells(request.outputs[k], cells)) pair.push_back(k);
        }
        if (pair.size() != 2) {
            const std::string found = outputs_text(request.outputs), wanted = std::to_string(cells);
            return head_error(request, "dec-positions",
                              "stride " + std::to_string(level.stride) + " of an input of " +
                                  std::to_string(request.width) + "x" +
                                  std::to_string(request.height) + " gives " + wanted +
                                  " positions, expected two outputs [1," + wanted + ",…], found " +
                                  found + "; check x-vartml-strides, or choose another decoder",
                              found, wanted, "x-vartml-strides=…");
        }
        const Side side = distances_of(request, request.outputs[pair[0]], request.outputs[pair[1]]);
        if (side == Side::unknown)
            return role_error(request, "boxes", "[1," + std::to_string(cells) + ",4*(R+1)]");
        if (side == Side::first) std::swap(pair[0], pair[1]);
        const uint32_t classes = request.outputs[pair[0]].cpu.shape[2];
        const uint32_t columns = request.outputs[pair[1]].cpu.shape[2];
        if (columns % 4 != 0 || columns < 8 ||
            (i > 0 && (classes != form.classes || columns / 4 != form.bins))) {
            return role_error(request, "boxes", "[1," + std::to_string(cells) + ",4*(R+1)]");
        }
        form.classes = classes;
        form.bins = columns / 4;
        form.outputs.push_back({pair[0], pair[1]});
    }
    return form;
}

// All levels in one table.
std::optional<NanodetForm> one_table(const HeadRequest& request, std::span<const int> strides) {
    if (request.outputs.size() != 1) return std::nullopt;
    const auto& shape = request.outputs[0].cpu.shape;
    NanodetForm form;
    form.grid = make_grid(request.width, request.height, strides, 1);
    if (!has_cells(request.outputs[0], form.grid.positions) || shape[2] <= 4 * published_bins)
        return std::nullopt;
    form.bins = published_bins;
    form.classes = form.first_distance = shape[2] - 4 * published_bins;
    form.outputs.push_back({0, 0});
    return form;
}

Result<NanodetForm> find_form(const HeadRequest& request) {
    const std::span<const int> said(request.info.strides);
    if (auto form = one_table(request, said.empty() ? std::span<const int>(four) : said))
        return *std::move(form);
    if (!said.empty()) return form_of(request, said);
    if (request.outputs.size() == 2 * std::size(four)) return form_of(request, four);
    return form_of(request, three);
}

}  // namespace

bool fits_nanodet(const HeadRequest& request) {
    HeadRequest silent = request;
    silent.fault = nullptr;
    const auto form = find_form(silent);
    if (!form || form->bins != published_bins) return false;
    // A table may be of another family with that many classes more: of the published ones, or of
    // those that somebody counts.
    constexpr unsigned published_classes = 80;
    if (form->first_distance > 0)
        return tensor_classes(request.info).value_or(published_classes) == form->classes;
    return request.outputs.size() == 2 * form->outputs.size();
}

// given: PaddleDetection's configs/picodet: RGB, where NanoDet takes BGR.
const PreprocessOptions* input_of_nanodet(const HeadRequest& request) {
    static constexpr PreprocessOptions picodet = {.mean = {123.675f, 116.28f, 103.53f},
                                                  .scale = {1 / 58.395f, 1 / 57.12f, 1 / 57.375f}};
    return request.outputs.size() == 2 * std::size(four) ? &picodet : nullptr;
}

Result<std::unique_ptr<Head>> create_nanodet(const HeadRequest& request) {
    auto form = find_form(request);
    if (!form) return std::move(form).error();
    const TensorInfo& scores = request.outputs[form->outputs.front().scores];
    auto checked = check_classes(request, scores.name, form->classes);
    if (!checked) return checked.error();
    return std::unique_ptr<Head>(std::make_unique<Nanodet>(
        std::move(*form), activation_for(request, scores, "sigmoid", "none")));
}

}  // namespace vartml::vision
