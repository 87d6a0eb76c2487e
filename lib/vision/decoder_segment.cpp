// SPDX-License-Identifier: Apache-2.0
// Segmentation: a class for each cell of [1,C,h,w] or [1,h,w,C]. One channel: what reaches the mask
// threshold is class 0. Several: the greatest; or, where the sidecar says sigmoid, each class that
// reaches the threshold, in a map of its own. Integers in one channel are the classes themselves,
// and so is what an ArgMax gave, whatever its type. Several outputs of two channels, background and
// object, such as lanes and drivable area: each is a class, called like its tensor, in a map of its
// own.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>

#include "lib/vision/families.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

namespace {

// Pixels of a class map have 8 bits where these are enough, else 16.
constexpr uint32_t most_narrow = no_class<uint8_t>, most_classes = no_class<uint16_t>;
// ours: how far probabilities may lie outside of 0 to 1, as cubics that resize them overshoot
constexpr float overshoot = 0.25f;
// ours: published classes are fewer where bytes hold their numbers
constexpr float most_likely_class = 150;
constexpr std::string_view is_of_pictures =
    "vartmlpicture in the place of vartmldecode shows a measure such as depth, or a matte";

bool is_argmax(const HeadRequest& request, const TensorInfo& output) {
    return ends_in(request, output) == "argmax";
}

template <typename Pixel>
void set_pixel(uint8_t* map, size_t index, uint32_t value) {
    const auto pixel = static_cast<Pixel>(value);
    std::memcpy(map + index * sizeof pixel, &pixel, sizeof pixel);
}

class Segment final : public Head {
public:
    enum class Kind { threshold, greatest, labels };

    Segment(const HeadRequest& request, const MapForm& form, Kind kind)
        : form_(form),
          kind_(kind),
          activation_(activation_for(request, request.outputs[form.output], "sigmoid", "")),
          promised_(tensor_classes(request.info)),
          certain_(promised_ || is_argmax(request, request.outputs[form.output])),
          wide_((kind == Kind::labels ? promised_.value_or(0) : form.channels) > most_narrow),
          width_(static_cast<float>(request.width)),
          height_(static_cast<float>(request.height)) {}

    unsigned classes() const override { return kind_ == Kind::labels ? 0 : form_.channels; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        const OutputTensor& tensor = tensors[form_.output];
        auto values = view_.read(tensor);
        if (!values) return std::move(values).error();
        seen_ = {};
        sees_ = std::isinf(context.threshold);  // one of the first frames, which doubt() is about
        return wide_ ? add<uint16_t>(*values, tensor.name, context.mask_threshold, out)
                     : add<uint8_t>(*values, tensor.name, context.mask_threshold, out);
    }

    std::string doubt() const override {
        if (kind_ == Kind::threshold) return doubt_of_probabilities();
        const bool like_bytes =
            seen_.no_class && (seen_.greatest == 0 || seen_.greatest > most_likely_class);
        if (kind_ != Kind::labels || certain_ || wide_ || !like_bytes) return {};
        return "its numbers go up to 255 as those of bytes do, expected numbers of classes; " +
               std::string(is_of_pictures);
    }

private:
    // Of the last run that looked at all numbers.
    struct Seen {
        float least = 0, greatest = 0;  // finite, and no_class left out
        bool whole = true, no_class = false;
        void add(float value) {
            least = std::min(least, value);
            greatest = std::max(greatest, value);
            whole &= value == std::floor(value);
        }
    };

    std::string doubt_of_probabilities() const {
        if (activation_.is_sigmoid() ||
            (seen_.least >= -overshoot && seen_.greatest <= 1 + overshoot))
            return {};
        const std::string why =
            seen_.least < -overshoot
                ? "logits are told by x-vartml-activation=sigmoid in section [modelinfo]"
            : seen_.whole && seen_.greatest < most_narrow
                ? "numbers of classes are told by x-vartml-ends-in=argmax in the output's "
                  "section of the sidecar"
                : "";
        return "its numbers lie between " + number(seen_.least) + " and " + number(seen_.greatest) +
               ", expected probabilities of 0 to 1; " + (why.empty() ? "" : why + ", and ") +
               std::string(is_of_pictures);
    }

    static std::string number(float value) {
        char text[32];
        std::snprintf(text, sizeof text, "%.3g", static_cast<double>(value));
        return text;
    }

    size_t cells() const { return size_t{form_.width} * form_.height; }

    template <typename Pixel>
    Result<void> add(const float* values, std::string_view name, float threshold, Candidates& out) {
        switch (kind_) {
            case Kind::greatest:
                add_greatest<Pixel>(values, out);
                return {};
            case Kind::threshold:
                add_above<Pixel>(values, threshold, out);
                return {};
            case Kind::labels:
                return add_labels<Pixel>(values, name, out);
        }
        return {};
    }

    // All pixels are no_class.
    template <typename Pixel>
    uint8_t* add_map(Candidates& out) const {
        auto& pixels = out.picture.mask_pixels;
        const size_t first = pixels.size();
        pixels.resize(first + cells() * sizeof(Pixel), 0xff);
        out.picture.class_maps.push_back({.x1 = width_,
                                          .y1 = height_,
                                          .width = form_.width,
                                          .height = form_.height,
                                          .first = first,
                                          .pixel_bytes = sizeof(Pixel)});
        return pixels.data() + first;
    }

    template <typename Pixel>
    void add_greatest(const float* values, Candidates& out) {
        uint8_t* pixel = add_map<Pixel>(out);
        best_.resize(form_.width);
        chosen_.resize(form_.width);
        for (uint32_t row = 0; row < form_.height; ++row, pixel += form_.width * sizeof(Pixel)) {
            std::ranges::fill(best_, nothing);
            std::ranges::fill(chosen_, uint32_t{no_class<Pixel>});
            for (uint32_t c = 0; c < form_.channels; ++c) {
                const float* value = values + form_.at(c, row, 0);
                out.not_finite += form_.column_stride == 1
                                      ? take_greater(value, std::integral_constant<size_t, 1>(), c)
                                      : take_greater(value, form_.column_stride, c);
            }
            for (uint32_t x = 0; x < form_.width; ++x) set_pixel<Pixel>(pixel, x, chosen_[x]);
        }
    }

    // A channel of a row. Floats are compared as integers of the same order, of which the compiler
    // makes vectors; gives how many are not finite.
    template <typename Stride>
    unsigned take_greater(const float* value, Stride stride, uint32_t channel) {
        constexpr int32_t magnitude = 0x7fffffff, infinity = 0x7f800000;
        int32_t* const best = best_.data();
        uint32_t* const chosen = chosen_.data();
        const size_t width = form_.width;
        unsigned not_finite = 0;
        for (size_t x = 0; x < width; ++x) {
            const auto bits = std::bit_cast<int32_t>(value[x * stride] + 0.f);  // no -0
            const bool finite = (bits & magnitude) < infinity;
            const int32_t order = bits ^ (bits >> 31 & magnitude);
            const int32_t usable = finite ? order : nothing;
            chosen[x] = usable > best[x] ? channel : chosen[x];
            best[x] = std::max(usable, best[x]);
            not_finite += !finite;
        }
        return not_finite;
    }

    // A map per class; of several classes, only those that occur.
    template <typename Pixel>
    void add_above(const float* values, float threshold, Candidates& out) {
        const float least = activation_.stored_threshold(threshold);
        for (uint32_t c = 0; c < form_.channels; ++c) {
            uint8_t* const map = add_map<Pixel>(out);
            size_t cell = 0;
            bool any = false;
            for (uint32_t row = 0; row < form_.height; ++row) {
                const float* value = values + form_.at(c, row, 0);
                for (uint32_t x = 0; x < form_.width; ++x, value += form_.column_stride, ++cell) {
                    const bool finite = std::isfinite(*value);
                    out.not_finite += !finite;
                    if (sees_ && finite) seen_.add(*value);
                    if (!(*value >= least && activation_(*value) >= threshold) ||
                        std::isinf(*value)) {
                        continue;
                    }
                    set_pixel<Pixel>(map, cell, c);
                    any = true;
                }
            }
            if (any || form_.channels == 1) continue;
            out.picture.class_maps.pop_back();
            out.picture.mask_pixels.resize(out.picture.mask_pixels.size() -
                                           cells() * sizeof(Pixel));
        }
    }

    template <typename Pixel>
    Result<void> add_labels(const float* values, std::string_view name, Candidates& out) {
        uint8_t* const map = add_map<Pixel>(out);
        constexpr uint32_t most = no_class<Pixel>;
        const auto classes = static_cast<float>(std::min(promised_.value_or(most), most));
        for (size_t i = 0; i < cells(); ++i) {
            const float value = values[i];
            if (value == most) {  // what trainers write for "do not care"
                seen_.no_class = true;
                continue;
            }
            if (!(value >= 0 && value < classes)) return class_error(name, i, value, promised_);
            if (sees_) seen_.add(value);
            set_pixel<Pixel>(map, i, static_cast<uint32_t>(value));
        }
        return {};
    }

    MapForm form_;
    Kind kind_;
    Activation activation_;
    std::optional<unsigned> promised_;
    bool certain_;  // that whole numbers are those of classes
    bool wide_;
    Seen seen_;
    bool sees_ = false;
    float width_, height_;  // of the model's input
    FloatView view_;
    static constexpr int32_t nothing = std::numeric_limits<int32_t>::min();
    std::vector<int32_t> best_;     // of a row, floats as integers
    std::vector<uint32_t> chosen_;  // its classes
};

// A class per output.
class SegmentObjects final : public Head {
public:
    SegmentObjects(const HeadRequest& request, std::vector<MapForm> forms)
        : forms_(std::move(forms)),
          width_(static_cast<float>(request.width)),
          height_(static_cast<float>(request.height)),
          views_(forms_.size()) {
        for (const MapForm& form : forms_) names_.push_back(request.outputs[form.output].name);
    }

    unsigned classes() const override { return static_cast<unsigned>(forms_.size()); }
    std::vector<std::string> class_names() const override { return names_; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext&,
                     Candidates& out) override {
        for (size_t k = 0; k < forms_.size(); ++k) {
            auto values = views_[k].read(tensors[forms_[k].output]);
            if (!values) return std::move(values).error();
            add(forms_[k], *values, static_cast<uint8_t>(k), out);
        }
        return {};
    }

private:
    void add(const MapForm& form, const float* values, uint8_t class_id, Candidates& out) const {
        auto& pixels = out.picture.mask_pixels;
        const size_t first = pixels.size();
        pixels.resize(first + size_t{form.width} * form.height, no_class<uint8_t>);
        out.picture.class_maps.push_back({.x1 = width_,
                                          .y1 = height_,
                                          .width = form.width,
                                          .height = form.height,
                                          .first = first});
        uint8_t* pixel = pixels.data() + first;
        for (uint32_t row = 0; row < form.height; ++row) {
            for (uint32_t x = 0; x < form.width; ++x, ++pixel) {
                const float background = values[form.at(0, row, x)];
                const float object = values[form.at(1, row, x)];
                out.not_finite += !std::isfinite(background) || !std::isfinite(object);
                if (std::isfinite(object) && object > background) *pixel = class_id;
            }
        }
    }

    std::vector<MapForm> forms_;
    float width_, height_;  // of the model's input
    std::vector<FloatView> views_;
    std::vector<std::string> names_;
};

// Several outputs that are all maps of background and object; else empty.
std::vector<MapForm> object_maps(const HeadRequest& request) {
    std::vector<MapForm> forms;
    for (const TensorInfo& output : request.outputs) {
        const auto form = map_form(request, output);
        if (!form || form->channels != 2 || is_whole(output)) return {};
        forms.push_back(*form);
    }
    const bool usable = forms.size() > 1 && forms.size() < most_narrow;
    return usable ? forms : std::vector<MapForm>();
}

// Whether the maps are known to be classes: they are as large as the picture, as labels or sidecar
// count, or called so. Detectors have pairs of small maps as well.
bool are_objects(const HeadRequest& request, const std::vector<MapForm>& forms) {
    if (forms.empty()) return false;
    return promised_classes(request.info) == forms.size() ||
           std::ranges::all_of(forms, [&](const MapForm& form) {
               const std::string_view name = tensor_id(request, request.outputs[form.output]);
               return (form.width == request.width && form.height == request.height) ||
                      name.find("mask") != name.npos || name.find("seg") != name.npos;
           });
}

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
        const bool numbers = is_whole(*chosen.output) || is_argmax(request, *chosen.output);
        return numbers ? Segment::Kind::labels : Segment::Kind::threshold;
    }
    // Scores of each class by itself: a pixel may be of several, and of none.
    const std::string_view said = request.info.activation;
    const bool each =
        said == "sigmoid" || (said.empty() && ends_in(request, *chosen.output) == "sigmoid");
    return each ? Segment::Kind::threshold : Segment::Kind::greatest;
}

}  // namespace

bool may_be_objects(const HeadRequest& request) {
    return !object_maps(request).empty() && !output_with_role(request, "mask");
}

bool may_be_picture(const HeadRequest& request) {
    const auto chosen = choose(request);
    if (!chosen || request.outputs.size() != 1) return false;
    const auto& [output, form] = *chosen;
    return (form.channels == 2 || form.channels == 3) && form.width == request.width &&
           form.height == request.height && !promised_classes(request.info) &&
           request.info.activation.empty() && output_with_role(request, "mask") != output &&
           !is_whole(*output) && ends_in(request, *output) != "softmax";
}

unsigned times_the_picture(const HeadRequest& request) {
    if (request.outputs.size() != 1 || !request.width || !request.height) return 0;
    const auto& s = request.outputs[0].cpu.shape;
    if (s.size() != 4 || s[0] != 1) return 0;
    for (const auto& [channels, height, width] :
         {std::tuple(s[1], s[2], s[3]), std::tuple(s[3], s[1], s[2])}) {
        const unsigned times = width / request.width;
        if ((channels == 1 || channels == 3) && times > 1 && width == times * request.width &&
            height == times * request.height)
            return times;
    }
    return 0;
}

// Maps as large as the picture, of one channel, or of integers are nothing else; small ones of
// several channels may be heat maps, unless the classes are known. More channels than 8 bits tell
// are taken for classes only where there are known to be as many.
bool fits_segment(const HeadRequest& request) {
    if (are_objects(request, object_maps(request))) return true;
    const auto chosen = choose(request);
    if (!chosen || (request.outputs.size() != 1 && !output_with_role(request, "mask")))
        return false;
    const uint32_t classes = chosen->form.channels;
    return (classes <= most_narrow || tensor_classes(request.info) == classes) &&
           !is_known_heatmap(request, chosen->form) && !may_be_picture(request);
}

Result<std::unique_ptr<Head>> create_segment(const HeadRequest& request) {
    const auto chosen = choose(request);
    if (auto forms = object_maps(request); !chosen && !forms.empty()) {
        auto checked = check_classes(request, request.outputs[0].name, forms.size());
        if (!checked) return checked.error();
        return std::unique_ptr<Head>(std::make_unique<SegmentObjects>(request, std::move(forms)));
    }
    if (!chosen) return role_error(request, "mask", "[1,C,h,w] or [1,h,w,C]");
    const std::string& name = chosen->output->name;
    const auto kind = kind_of(request, *chosen);
    const uint32_t classes = kind == Segment::Kind::labels
                                 ? tensor_classes(request.info).value_or(0)
                                 : chosen->form.channels;
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
