// SPDX-License-Identifier: Apache-2.0
// CenterNet: three maps of the same cells, a quarter of the input's sides: classes [1,C,h,w],
// whose peaks are the centres of objects, their width and height [1,2,h,w] in cells, and how far
// the centre lies behind its cell's corner [1,2,h,w]. A peak is no less than the eight cells around
// it, of its class. Centre (cell + offset) * s, size * s.
#include <algorithm>
#include <cmath>

#include "lib/vision/families.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

namespace {

constexpr uint32_t published_stride = 4;
constexpr std::string_view heat_hints[] = {"hm", "heat"}, size_hints[] = {"wh", "size"},
                           offset_hints[] = {"reg", "off"};

struct Form {
    MapForm heat, sizes, offsets;
    std::string_view activation;
};

class CenterNet final : public Head {
public:
    CenterNet(const HeadRequest& request, const Form& form)
        : form_(form),
          activation_(form.activation),
          cell_x_(static_cast<float>(request.width) / static_cast<float>(form.heat.width)),
          cell_y_(static_cast<float>(request.height) / static_cast<float>(form.heat.height)) {}

    unsigned classes() const override { return form_.heat.channels; }
    std::string_view activation() const override { return form_.activation; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        auto heat = heat_.read(tensors[form_.heat.output]);
        if (!heat) return std::move(heat).error();
        auto sizes = sizes_.read(tensors[form_.sizes.output]);
        if (!sizes) return std::move(sizes).error();
        auto offsets = offsets_.read(tensors[form_.offsets.output]);
        if (!offsets) return std::move(offsets).error();
        const float least = activation_.stored_threshold(context.threshold);
        const MapForm& form = form_.heat;
        uint32_t position = 0;
        for (uint32_t k = 0; k < form.channels; ++k) {
            for (uint32_t y = 0; y < form.height; ++y) {
                for (uint32_t x = 0; x < form.width; ++x, ++position) {
                    const float value = (*heat)[form.at(k, y, x)];
                    if (value < least) continue;
                    if (!std::isfinite(value)) {
                        ++out.not_finite;
                        continue;
                    }
                    const float score = activation_(value);
                    if (score < context.threshold || !is_peak(*heat, k, y, x)) continue;
                    const float w = (*sizes)[form_.sizes.at(0, y, x)] * cell_x_;
                    const float h = (*sizes)[form_.sizes.at(1, y, x)] * cell_y_;
                    const float cx =
                        (static_cast<float>(x) + (*offsets)[form_.offsets.at(0, y, x)]) * cell_x_;
                    const float cy =
                        (static_cast<float>(y) + (*offsets)[form_.offsets.at(1, y, x)]) * cell_y_;
                    out.add({cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score,
                             static_cast<int32_t>(k), position});
                }
            }
        }
        return {};
    }

private:
    // Of equal neighbours the first: coarse numbers have plateaus.
    bool is_peak(const float* heat, uint32_t k, uint32_t row, uint32_t column) const {
        const MapForm& form = form_.heat;
        const float value = heat[form.at(k, row, column)];
        for (uint32_t y = row - (row > 0); y <= row + 1 && y < form.height; ++y)
            for (uint32_t x = column - (column > 0); x <= column + 1 && x < form.width; ++x) {
                const float other = heat[form.at(k, y, x)];
                const bool is_before = y < row || (y == row && x < column);
                if (other > value || (other == value && is_before)) return false;
            }
        return true;
    }

    Form form_;
    Activation activation_;
    float cell_x_, cell_y_;  // pixels of the model's input
    FloatView heat_, sizes_, offsets_;
};

bool is_map(const TensorInfo& output) {
    return output.cpu.shape.size() == 4;
}

// Two channels do not say whether they are sizes or offsets: the name or the sidecar does.
Result<Form> find_form(const HeadRequest& request) {
    const auto find = [&](std::string_view role, std::span<const std::string_view> hints) {
        const TensorInfo* output = find_output(request, role, hints, is_map);
        return output ? map_form(request, *output) : std::nullopt;
    };
    const auto heat = find("heatmap", heat_hints);
    if (!heat) return role_error(request, "heatmap", "[1,C,h,w]");
    const auto pairs = [&](std::string_view role, std::span<const std::string_view> hints) {
        auto form = find(role, hints);
        const bool good = form && form->channels == 2 && form->output != heat->output &&
                          form->width == heat->width && form->height == heat->height;
        return good ? form : std::nullopt;
    };
    const auto sizes = pairs("boxes", size_hints), offsets = pairs("offsets", offset_hints);
    const std::string shape =
        "[1,2," + std::to_string(heat->height) + "," + std::to_string(heat->width) + "]";
    if (!sizes) return role_error(request, "boxes", shape + " of width and height");
    if (!offsets || offsets->output == sizes->output) return role_error(request, "offsets", shape);
    return Form{*heat, *sizes, *offsets,
                activation_for(request, request.outputs[heat->output], "sigmoid", "none")};
}

}  // namespace

bool fits_centernet(const HeadRequest& request) {
    HeadRequest silent = request;
    silent.fault = nullptr;
    const auto form = find_form(silent);
    return form && request.outputs.size() == 3 &&
           form->heat.width * published_stride == request.width &&
           form->heat.height * published_stride == request.height;
}

Result<std::unique_ptr<Head>> create_centernet(const HeadRequest& request) {
    auto form = find_form(request);
    if (!form) return std::move(form).error();
    auto checked =
        check_classes(request, request.outputs[form->heat.output].name, form->heat.channels);
    if (!checked) return checked.error();
    return std::unique_ptr<Head>(std::make_unique<CenterNet>(request, *form));
}

}  // namespace vartml::vision
