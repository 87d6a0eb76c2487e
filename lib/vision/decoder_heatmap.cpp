// SPDX-License-Identifier: Apache-2.0
// Keypoints as maps: [1,K,h,w] or [1,h,w,K], one map per point. A point is where its map is
// greatest, moved by what offsets [1,2K,h,w] (all y, then all x, in model pixels) say, else a
// quarter of a cell towards the larger neighbour; or, where the sidecar says so, the middle of the
// cells around the greatest that reach the threshold.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lib/vision/families.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

namespace {

class Heatmap final : public Head {
public:
    Heatmap(const HeadRequest& request, const MapForm& form, const std::optional<MapForm>& offsets,
            std::optional<int> stride)
        : form_(form), offsets_(offsets), activation_(request.info.activation) {
        // Where offsets count in pixels of the model and the sides are no multiples, the middles of
        // the first and the last cell are the first and the last pixel. given: PoseNet of
        // TensorFlow, 257 pixels with a stride of 16 are 17 cells.
        const auto cell = [&](uint32_t pixels, uint32_t cells) {
            if (stride) return static_cast<float>(*stride);
            const bool at_ends =
                offsets && cells > 1 && pixels % cells != 0 && (pixels - 1) % (cells - 1) == 0;
            return at_ends ? static_cast<float>((pixels - 1) / (cells - 1))
                           : static_cast<float>(pixels) / static_cast<float>(cells);
        };
        cell_x_ = cell(request.width, form.width);
        cell_y_ = cell(request.height, form.height);
        if (request.info.peak != "centroid") return;
        reached_.resize(size_t{form.width} * form.height);
        to_visit_.reserve(reached_.size());
    }

    unsigned classes() const override { return 0; }
    unsigned keypoints() const override { return form_.channels; }
    std::string_view skeleton() const override { return skeleton_of(form_.channels); }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        auto values = view_.read(tensors[form_.output]);
        if (!values) return std::move(values).error();
        const float* moves = nullptr;
        if (offsets_) {
            auto read = offsets_view_.read(tensors[offsets_->output]);
            if (!read) return std::move(read).error();
            moves = *read;
        }
        greatest_ = least_ = 0;
        sees_ = std::isinf(context.threshold);  // one of the first frames, which doubt() is about
        for (uint32_t k = 0; k < form_.channels; ++k) {
            Keypoint point = find(k, *values, moves, context.threshold, out.not_finite);
            greatest_ = std::max(greatest_, point.score);
            point.visible = point.visible && point.score >= context.threshold;
            out.picture.keypoints.push_back(point);
        }
        return {};
    }

    std::string doubt() const override {
        const char* const logits =
            "; logits are told by x-vartml-activation=sigmoid in section [modelinfo]";
        if (greatest_ > most_score)
            return "scores of points are up to " + std::to_string(greatest_) +
                   ", expected at most 1" + logits;
        if (least_ < least_score && !activation_.is_sigmoid())
            return "numbers go down to " + std::to_string(least_) +
                   ", expected about 0 where no point is" + logits;
        return {};
    }

private:
    // ours: maps that were trained towards peaks of 1 exceed them
    static constexpr float most_score = 1.5f, least_score = -0.5f;

    // In cells towards the larger neighbour along an axis; none at the ends.
    static float quarter(const float* cell, size_t stride, uint32_t index, uint32_t count) {
        if (index == 0 || index + 1 >= count) return 0;
        const float before = *(cell - stride), behind = *(cell + stride);
        return behind > before ? 0.25f : behind < before ? -0.25f : 0;
    }

    // Of the cells that reach the threshold and hang together with the greatest one by their sides,
    // the mean by their scores.
    void move_to_centroid(Keypoint& point, uint32_t k, const float* values, uint32_t row,
                          uint32_t column, float threshold) {
        double sum = 0, sum_x = 0, sum_y = 0;
        std::fill(reached_.begin(), reached_.end(), false);
        const auto visit = [&](uint32_t y, uint32_t x) {  // -1 wraps to more than any size
            if (y >= form_.height || x >= form_.width) return;
            const size_t cell = size_t{y} * form_.width + x;
            const float score = activation_(values[form_.at(k, y, x)]);
            if (reached_[cell] || !(score >= threshold) || !(score > 0) || std::isinf(score))
                return;
            reached_[cell] = true;
            to_visit_.push_back({y, x});
            sum += score, sum_x += double(score) * x, sum_y += double(score) * y;
        };
        visit(row, column);
        while (!to_visit_.empty()) {
            const auto [y, x] = to_visit_.back();
            to_visit_.pop_back();
            visit(y - 1, x), visit(y + 1, x), visit(y, x - 1), visit(y, x + 1);
        }
        if (!(sum > 0)) return;
        point.x = static_cast<float>(sum_x / sum) * cell_x_;
        point.y = static_cast<float>(sum_y / sum) * cell_y_;
    }

    Keypoint find(uint32_t k, const float* values, const float* moves, float threshold,
                  unsigned& not_finite) {
        float best = -INFINITY;
        uint32_t best_row = 0, best_column = 0;
        for (uint32_t row = 0; row < form_.height; ++row) {
            const float* value = values + form_.at(k, row, 0);
            for (uint32_t column = 0; column < form_.width;
                 ++column, value += form_.column_stride) {
                not_finite += !std::isfinite(*value);
                if (sees_ && std::isfinite(*value)) least_ = std::min(least_, *value);
                if (*value > best && *value < INFINITY) {
                    best = *value;
                    best_row = row;
                    best_column = column;
                }
            }
        }
        if (best == -INFINITY) return {0, 0, 0, false};
        Keypoint point{static_cast<float>(best_column) * cell_x_,
                       static_cast<float>(best_row) * cell_y_, activation_(best)};
        if (!reached_.empty()) {
            move_to_centroid(point, k, values, best_row, best_column, threshold);
            return point;
        }
        if (!moves) {
            const float* cell = values + form_.at(k, best_row, best_column);
            point.x += quarter(cell, form_.column_stride, best_column, form_.width) * cell_x_;
            point.y += quarter(cell, form_.row_stride, best_row, form_.height) * cell_y_;
            return point;
        }
        const float dy = moves[offsets_->at(k, best_row, best_column)];
        const float dx = moves[offsets_->at(k + form_.channels, best_row, best_column)];
        if (std::isfinite(dx) && std::isfinite(dy)) {
            point.x += dx, point.y += dy;
        } else {
            ++not_finite;
        }
        return point;
    }

    MapForm form_;
    std::optional<MapForm> offsets_;
    Activation activation_;
    float greatest_ = 0;  // score of a point in the last run
    float least_ = 0;     // number of it, if it was looked at
    bool sees_ = false;
    float cell_x_ = 1, cell_y_ = 1;  // pixels of the model's input
    FloatView view_, offsets_view_;
    struct Cell {
        uint32_t row, column;
    };
    std::vector<bool> reached_;  // of one map; empty: no centroids
    std::vector<Cell> to_visit_;
};

bool is_map(const TensorInfo& output) {
    return output.cpu.shape.size() == 4;
}

std::optional<MapForm> find_map(const HeadRequest& request, std::string_view role,
                                std::string_view hint) {
    const TensorInfo* output = find_output(request, role, {&hint, 1}, is_map);
    return output ? map_form(request, *output) : std::nullopt;
}

}  // namespace

bool is_known_heatmap(const HeadRequest& request, const MapForm& form) {
    const TensorInfo& output = request.outputs[form.output];
    if (output_with_role(request, "heatmap") == &output) return true;
    return !request.info.skeleton.empty() && form.channels > 1;
}

// Cells of a side that can tell places from each other; features of a backbone have fewer.
constexpr uint32_t least_cells = 8;
// More points has no data set: DeepFashion2 has 294. 313 are the bins of a model that gives
// colours.
constexpr uint32_t most_points = 300;

// A map per point at half the input's size or less, unless they are as many as there are classes.
bool fits_heatmap(const HeadRequest& request) {
    const auto form = find_map(request, "heatmap", "heatmap");
    const bool only = request.outputs.size() == 1 || output_with_role(request, "heatmap");
    if (!form || !only || is_whole(request.outputs[form->output])) return false;
    if (is_known_heatmap(request, *form)) return true;
    return form->channels > 1 && form->channels <= most_points &&
           std::min(form->width, form->height) >= least_cells &&
           2 * form->width <= request.width + 1 && 2 * form->height <= request.height + 1 &&
           promised_classes(request.info) != form->channels &&
           request.info.activation != "softmax" && !output_with_role(request, "mask");
}

Result<std::unique_ptr<Head>> create_heatmap(const HeadRequest& request) {
    auto form = find_map(request, "heatmap", "heatmap");
    if (!form) return role_error(request, "heatmap", "[1,K,h,w] or [1,h,w,K]");
    std::optional<MapForm> offsets;
    if (const TensorInfo* named = output_with_role(request, "offsets")) {
        if (request.info.peak == "centroid") {
            return head_error(request, "dec-role",
                              "output '" + named->name +
                                  "' says where points are, and so does x-vartml-peak=centroid; "
                                  "take that line out of section [modelinfo], or x-vartml-role=" +
                                  "offsets out of section [" + named->name + "]",
                              "x-vartml-peak=centroid", "offsets alone", "x-vartml-peak=quarter");
        }
        offsets = map_form(request, *named);
        // A cube does not show which of its axes are the channels; what is beside it does.
        const bool is_cube = form->channels == form->height && form->height == form->width;
        if (offsets && is_cube && offsets->channel_stride == 1) {
            form->row_stride = size_t{form->width} * form->channels;
            form->column_stride = form->channels;
            form->channel_stride = 1;
        }
        if (!offsets || offsets->channels != 2 * form->channels || offsets->width != form->width ||
            offsets->height != form->height) {
            return role_error(
                request, "offsets",
                "of two channels for each of the " + std::to_string(form->channels) + " heat maps");
        }
    }
    std::optional<int> stride;
    for (const ModelInfo::Output& output : request.info.outputs) {
        if (output.name == request.outputs[form->output].name) stride = output.stride;
    }
    return std::unique_ptr<Head>(std::make_unique<Heatmap>(request, *form, offsets, stride));
}

}  // namespace vartml::vision
