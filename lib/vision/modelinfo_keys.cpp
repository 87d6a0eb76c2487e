// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/modelinfo_keys.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "lib/vision/box_columns.h"
#include "lib/vision/modelinfo_ini.h"

namespace vartml::vision {

namespace {

template <typename T>
struct Nick {
    std::string_view nick;
    T value;
};

constexpr Nick<ResizeMode> resize_nicks[] = {
    {"stretch", ResizeMode::stretch},
    {"letterbox", ResizeMode::letterbox},
    {"letterbox-top-left", ResizeMode::letterbox_top_left},
    {"crop", ResizeMode::crop},
};
constexpr Nick<Interpolation> interpolation_nicks[] = {
    {"bilinear", Interpolation::bilinear},
    {"nearest", Interpolation::nearest},
    {"area", Interpolation::area},
};
constexpr Nick<ChannelOrder> channel_nicks[] = {
    {"rgb", ChannelOrder::rgb},
    {"bgr", ChannelOrder::bgr},
    {"gray", ChannelOrder::gray},
};

template <typename T, size_t N>
std::optional<T> parse_nick(const Nick<T> (&nicks)[N], std::string_view text) {
    for (const Nick<T>& row : nicks) {
        if (row.nick == text) return row.value;
    }
    return std::nullopt;
}

template <typename T, size_t N>
std::string_view nick_of(const Nick<T> (&nicks)[N], T value) {
    for (const Nick<T>& row : nicks) {
        if (row.value == value) return row.nick;
    }
    return {};
}

bool one_of(std::string_view value, std::initializer_list<std::string_view> values) {
    return std::ranges::find(values, value) != values.end();
}

template <typename T>
bool set_nick(std::optional<T>& field, std::optional<T> value) {
    field = value;
    return field.has_value();
}

bool set_unit(std::optional<double>& field, std::string_view text) {
    double value = 0;
    if (!parse_number(text, value) || value < 0 || value > 1) return false;
    field = value;
    return true;
}

bool set_count(std::optional<unsigned>& field, std::string_view text) {
    int value = 0;
    if (!parse_number(text, value) || value < 1 || value > 1'000'000) return false;
    field = static_cast<unsigned>(value);
    return true;
}

bool set_channel_numbers(std::vector<float>& field, std::string_view text) {
    return parse_numbers(text, field) && (field.size() == 1 || field.size() == 3);
}

bool set_strides(std::vector<int>& field, std::string_view text) {
    field.clear();
    std::vector<float> values;
    if (!parse_numbers(text, values)) return false;
    for (const float value : values) {
        if (value < 1 || value > 4096 || value != std::floor(value)) return false;
        field.push_back(static_cast<int>(value));
    }
    return true;
}

bool is_skeleton(std::string_view text) {
    const auto bones = parse_skeleton(text);
    return bones && !bones->empty();
}

using Input = ModelInfo::Input;
using Output = ModelInfo::Output;

constexpr Key<ModelInfo> general[] = {
    {"x-vartml-version", "1", [](ModelInfo&, std::string_view v) { return v == "1"; }},
    {"x-vartml-decoder", "a decoder family (`vartml compile --help` lists them)",
     [](ModelInfo& m, std::string_view v) {
         m.decoder.clear();
         if (v == "auto") return true;
         const DecoderFamily* const family = find_decoder_family(v);
         if (family) m.decoder = family->nick;
         return family != nullptr;
     }},
    {"x-vartml-labels", "a file beside the sidecar, or labels separated by ';'",
     [](ModelInfo& m, std::string_view v) {
         m.labels = split_list(v, ';');
         return !m.labels.empty();
     }},
    {"x-vartml-num-classes", "a count of at least 1",
     [](ModelInfo& m, std::string_view v) { return set_count(m.num_classes, v); }},
    {"x-vartml-class-offset", "a whole number such as -1",
     [](ModelInfo& m, std::string_view v) {
         return parse_number(v, m.class_offset) && std::abs(m.class_offset) <= 1'000'000;
     }},
    {"x-vartml-score-threshold", "a number from 0 to 1",
     [](ModelInfo& m, std::string_view v) { return set_unit(m.score_threshold, v); }},
    {"x-vartml-iou-threshold", "a number from 0 to 1",
     [](ModelInfo& m, std::string_view v) { return set_unit(m.iou_threshold, v); }},
    {"x-vartml-max-detections", "a count of at least 1",
     [](ModelInfo& m, std::string_view v) { return set_count(m.max_detections, v); }},
    {"x-vartml-anchors", "pairs of positive numbers",
     [](ModelInfo& m, std::string_view v) {
         return parse_numbers(v, m.anchors) && m.anchors.size() % 2 == 0 &&
                std::ranges::all_of(m.anchors, [](float side) { return side > 0; });
     }},
    {"x-vartml-strides", "whole numbers of at least 1 such as 8,16,32",
     [](ModelInfo& m, std::string_view v) { return set_strides(m.strides, v); }},
    {"x-vartml-activation", "none, sigmoid or softmax",
     [](ModelInfo& m, std::string_view v) {
         m.activation = v;
         return one_of(v, {"none", "sigmoid", "softmax"});
     }},
    {"x-vartml-skeleton",
     "coco17, openpose18, hand21, blazepose33, face68, face468, face478, or pairs such as 0-1;1-2",
     [](ModelInfo& m, std::string_view v) {
         m.skeleton = v;
         return is_skeleton(v);
     }},
    {"x-vartml-peak", "quarter or centroid",
     [](ModelInfo& m, std::string_view v) {
         m.peak = v;
         return one_of(v, {"quarter", "centroid"});
     }},
    {"x-vartml-blank", "the number of a class, or -1 for the last",
     [](ModelInfo& m, std::string_view v) {
         int blank = 0;
         if (!parse_number(v, blank) || blank < -1) return false;
         m.blank = blank;
         return true;
     }},
    {"x-vartml-columns",
     "the columns of a box: score, class, x0y0x1y1 or y0x0y1x1, and batch if it is there, in their "
     "order and separated by ','",
     [](ModelInfo& m, std::string_view v) {
         m.columns = v;
         return parse_box_columns(v).has_value();
     }},
    {"x-vartml-box-form", "v3 or v5",
     [](ModelInfo& m, std::string_view v) {
         m.box_form = v;
         return one_of(v, {"v3", "v5"});
     }},
    {"x-vartml-box-order", "yxyx, xyxy or cxcywh",
     [](ModelInfo& m, std::string_view v) {
         m.box_order = v;
         return one_of(v, {"yxyx", "xyxy", "cxcywh"});
     }},
};

constexpr Key<Input> input[] = {
    {"x-vartml-resize", "stretch, letterbox, letterbox-top-left or crop",
     [](Input& i, std::string_view v) { return set_nick(i.resize, parse_resize_mode(v)); }},
    {"x-vartml-pad", "1 or 3 numbers from 0 to 255",
     [](Input& i, std::string_view v) {
         return set_channel_numbers(i.pad, v) &&
                std::ranges::all_of(i.pad, [](float p) { return p >= 0 && p <= 255; });
     }},
    {"x-vartml-crop-fraction", "a number above 0, at most 1",
     [](Input& i, std::string_view v) {
         return set_unit(i.crop_fraction, v) && *i.crop_fraction > 0;
     }},
    {"x-vartml-interpolation", "bilinear, nearest or area",
     [](Input& i, std::string_view v) {
         return set_nick(i.interpolation, parse_interpolation(v));
     }},
    {"x-vartml-channels", "rgb, bgr or gray",
     [](Input& i, std::string_view v) { return set_nick(i.channels, parse_channel_order(v)); }},
    {"x-vartml-mean", "1 or 3 numbers",
     [](Input& i, std::string_view v) { return set_channel_numbers(i.mean, v); }},
    {"x-vartml-scale", "1 or 3 numbers other than 0",
     [](Input& i, std::string_view v) {
         return set_channel_numbers(i.scale, v) &&
                std::ranges::all_of(i.scale, [](float s) { return s != 0; });
     }},
    {"x-vartml-picture", "rgb, bgr or gray",
     [](Input& i, std::string_view v) {
         i.picture = v;
         return parse_channel_order(v).has_value();
     }},
    {"x-vartml-feed", "frame-size or const:<values>",
     [](Input& i, std::string_view v) {
         i.feed = v;
         std::vector<float> values;
         return v == "frame-size" ||
                (v.starts_with("const:") && parse_numbers(v.substr(6), values));
     }},
};

constexpr Key<Output> output[] = {
    {"id", "a tensor id",
     [](Output& o, std::string_view v) {
         o.id = unescape(v);
         return !v.empty();
     }},
    {"x-vartml-role",
     "boxes, scores, classes, count, objectness, landmarks, coefficients, prototypes, mask, "
     "heatmap, offsets or embedding",
     [](Output& o, std::string_view v) {
         o.role = v;
         return one_of(
             v, {"boxes", "scores", "classes", "count", "objectness", "landmarks", "coefficients",
                 "prototypes", "mask", "heatmap", "offsets", "embedding"});
     }},
    {"x-vartml-stride", "a whole number from 1 to 4096",
     [](Output& o, std::string_view v) {
         int stride = 0;
         if (!parse_number(v, stride) || stride < 1 || stride > 4096) return false;
         o.stride = stride;
         return true;
     }},
    {"x-vartml-quant-scale", "a number above 0",
     [](Output& o, std::string_view v) {
         double scale = 0;
         if (!parse_number(v, scale) || scale <= 0) return false;
         o.quant_scale = scale;
         return true;
     }},
    {"x-vartml-zero-point", "a whole number",
     [](Output& o, std::string_view v) {
         int zero_point = 0;
         if (!parse_number(v, zero_point)) return false;
         o.zero_point = zero_point;
         return true;
     }},
    {"x-vartml-ends-in", "softmax, log-softmax, sigmoid, unit-length, product or linear",
     [](Output& o, std::string_view v) {
         o.ends_in = v;
         return one_of(v,
                       {"softmax", "log-softmax", "sigmoid", "unit-length", "product", "linear"});
     }},
};

}  // namespace

std::span<const Key<ModelInfo>> general_keys() {
    return general;
}
std::span<const Key<Input>> input_keys() {
    return input;
}
std::span<const Key<Output>> output_keys() {
    return output;
}

std::string_view to_string(ResizeMode mode) {
    return nick_of(resize_nicks, mode);
}
std::string_view to_string(Interpolation i) {
    return nick_of(interpolation_nicks, i);
}
std::string_view to_string(ChannelOrder order) {
    return nick_of(channel_nicks, order);
}
std::optional<ResizeMode> parse_resize_mode(std::string_view text) {
    return parse_nick(resize_nicks, text);
}
std::optional<Interpolation> parse_interpolation(std::string_view text) {
    return parse_nick(interpolation_nicks, text);
}
std::optional<ChannelOrder> parse_channel_order(std::string_view text) {
    return parse_nick(channel_nicks, text);
}

bool parse_number(std::string_view text, double& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

bool parse_number(std::string_view text, int& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

bool parse_numbers(std::string_view text, std::vector<float>& values) {
    values.clear();
    while (!text.empty()) {
        const size_t end = text.find_first_of(",;");
        double value = 0;
        if (!parse_number(trim(text.substr(0, end)), value)) return false;
        values.push_back(static_cast<float>(value));
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    return !values.empty() && std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

std::string number_text(float value) {
    std::array<char, 32> buffer;
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return std::string(buffer.data(), end);
}

}  // namespace vartml::vision
