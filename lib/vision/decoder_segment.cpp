// SPDX-License-Identifier: Apache-2.0
// Segmentation: a class for each cell of [1,C,h,w] or [1,h,w,C]. One channel: what reaches the mask
// threshold is class 0. Several: the greatest; or, where the sidecar says sigmoid, each class that
// reaches the threshold, in a map of its own. Integers in one channel are the classes themselves.
#include <algorithm>
#include <cmath>

#include "lib/vision/families.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

namespace {

constexpr uint32_t most_classes = no_class;  // pixels of a class map have 8 bits

class Segment final : public Head {
public:
    enum class Kind { threshold, greatest, labels };

    Segment(const HeadRequest& request, const MapForm& form, Kind kind)
        : form_(form),
          kind_(kind),
          activation_(request.info.activation),
          promised_(tensor_classes(request.info)),
          width_(static_cast<float>(request.width)),
          height_(static_cast<float>(request.height)) {}

    unsigned classes() const override { return kind_ == Kind::labels ? 0 : form_.channels; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        const OutputTensor& tensor = tensors[form_.output];
        auto values = view_.read(tensor);
        if (!values) return std::move(values).error();
        switch (kind_) {
            case Kind::greatest:
                add_greatest(*values, out);
                return {};
            case Kind::threshold:
                add_above(*values, context.mask_threshold, out);
                return {};
            case Kind::labels:
                return add_labels(*values, tensor.name, out);
        }
        return {};
    }

private:
    size_t cells() const { return size_t{form_.width} * form_.height; }

    uint8_t* add_map(Candidates& out) const {
        auto& pixels = out.picture.mask_pixels;
        const size_t first = pixels.size();
        pixels.resize(first + cells(), no_class);
        out.picture.class_maps.push_back({.x1 = width_,
                                          .y1 = height_,
                                          .width = form_.width,
                                          .height = form_.height,
                                          .first = first});
        return pixels.data() + first;
    }

    void add_greatest(const float* values, Candidates& out) {
        uint8_t* pixel = add_map(out);
        best_.resize(form_.width);
        for (uint32_t row = 0; row < form_.height; ++row, pixel += form_.width) {
            std::ranges::fill(best_, -INFINITY);
            for (uint32_t c = 0; c < form_.channels; ++c) {
                const float* value = values + form_.at(c, row, 0);
                for (uint32_t x = 0; x < form_.width; ++x, value += form_.column_stride) {
                    out.not_finite += !std::isfinite(*value);
                    if (*value > best_[x] && *value < INFINITY) {
                        best_[x] = *value;
                        pixel[x] = static_cast<uint8_t>(c);
                    }
                }
            }
        }
    }

    // A map per class; of several classes, only those that occur.
    void add_above(const float* values, float threshold, Candidates& out) {
        const float least = activation_.stored_threshold(threshold);
        for (uint32_t c = 0; c < form_.channels; ++c) {
            uint8_t* pixel = add_map(out);
            bool any = false;
            for (uint32_t row = 0; row < form_.height; ++row) {
                const float* value = values + form_.at(c, row, 0);
                for (uint32_t x = 0; x < form_.width; ++x, value += form_.column_stride, ++pixel) {
                    out.not_finite += !std::isfinite(*value);
                    if (!(*value >= least && activation_(*value) >= threshold) ||
                        std::isinf(*value)) {
                        continue;
                    }
                    *pixel = static_cast<uint8_t>(c);
                    any = true;
                }
            }
            if (any || form_.channels == 1) continue;
            out.picture.class_maps.pop_back();
            out.picture.mask_pixels.resize(out.picture.mask_pixels.size() - cells());
        }
    }

    Result<void> add_labels(const float* values, std::string_view name, Candidates& out) const {
        uint8_t* pixel = add_map(out);
        const auto classes =
            static_cast<float>(std::min(promised_.value_or(no_class), most_classes));
        for (size_t i = 0; i < cells(); ++i) {
            const float value = values[i];
            if (value == no_class) continue;  // what trainers write for "do not care"
            if (!(value >= 0 && value < classes)) return class_error(name, i, value, promised_);
            pixel[i] = static_cast<uint8_t>(value);
        }
        return {};
    }

    MapForm form_;
    Kind kind_;
    Activation activation_;
    std::optional<unsigned> promised_;
    float width_, height_;  // of the model's input
    FloatView view_;
    std::vector<float> best_;  // of a row
};

struct Chosen {
    const TensorInfo* output = nullptr;
    MapForm form;
};

// The output with the role, else the only one that is a map.
std::optional<Chosen> choose(const HeadRequest& request) {
    std::optional<Chosen> chosen;
    const TensorInfo* named = output_with_role(request, "mask");
    for (const TensorInfo& output : request.outputs) {
        if (named && named != &output) continue;
        const auto form = map_form(request, output);
        if (!form) continue;
        if (chosen) return std::nullopt;
        chosen = Chosen{&output, *form};
    }
    return chosen;
}

Segment::Kind kind_of(const HeadRequest& request, const Chosen& chosen) {
    if (chosen.form.channels == 1) {
        return is_integer(chosen.output->cpu.data_type) ? Segment::Kind::labels
                                                        : Segment::Kind::threshold;
    }
    return request.info.activation == "sigmoid" ? Segment::Kind::threshold
                                                : Segment::Kind::greatest;
}

}  // namespace

// Maps as large as the picture, of one channel, or of integers are nothing else; small ones of
// several channels may be heat maps, unless the classes are known.
bool fits_segment(const HeadRequest& request) {
    const auto chosen = choose(request);
    if (!chosen || (request.outputs.size() != 1 && !output_with_role(request, "mask")))
        return false;
    return chosen->form.channels <= most_classes && !is_known_heatmap(request, chosen->form);
}

Result<std::unique_ptr<Head>> create_segment(const HeadRequest& request) {
    const auto chosen = choose(request);
    if (!chosen) return role_error(request, "mask", "[1,C,h,w] or [1,h,w,C]");
    const std::string& name = chosen->output->name;
    const uint32_t classes = chosen->form.channels;
    const auto kind = kind_of(request, *chosen);
    if (classes > most_classes) {
        const std::string found = std::to_string(classes), expected = std::to_string(most_classes);
        return head_error(request, "dec-classes",
                          "tensor '" + name + "' has " + found +
                              " classes, class maps have at most " + expected +
                              "; end the model in an ArgMax over fewer, or choose another "
                              "decoder",
                          found, expected, "decoder=…");
    }
    if (kind != Segment::Kind::labels) {
        auto checked = check_classes(request, name, classes);
        if (!checked) return checked.error();
    }
    return std::unique_ptr<Head>(std::make_unique<Segment>(request, chosen->form, kind));
}

}  // namespace vartml::vision
