// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/modelinfo_keys.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <type_traits>

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

// Pairs of different numbers, one or three.
bool set_ranges(std::vector<float>& field, std::string_view text) {
    if (!parse_numbers(text, field) || (field.size() != 2 && field.size() != 6)) return false;
    for (size_t i = 0; i < field.size(); i += 2) {
        if (!std::isfinite(255 / (field[i + 1] - field[i]))) return false;
    }
    return true;
}
std::string ranges_text(const std::vector<float>& ranges) {
    std::string text;
    for (size_t i = 0; i < ranges.size(); ++i)
        text += (i == 0 ? "" : i % 2 ? "," : ";") + number_text(ranges[i]);
    return text;
}

// A count of points, and how many values each has.
bool set_keypoints(std::vector<int>& field, std::string_view text) {
    return set_strides(field, text) && field.size() == 2 && (field[1] == 2 || field[1] == 3);
}

bool is_skeleton(std::string_view text) {
    const auto bones = parse_skeleton(text);
    return bones && !bones->empty();
}

template <typename Numbers>
std::string list_text(const Numbers& numbers) {
    std::string text;
    for (const auto number : numbers)
        text += (text.empty() ? "" : ",") + number_text(static_cast<float>(number));
    return text;
}
// Three equal numbers are written as one.
std::string channels_text(const std::vector<float>& v) {
    return v.size() == 3 && v[0] == v[1] && v[0] == v[2] ? number_text(v[0]) : list_text(v);
}
template <typename Number>
std::string number_or_none(const std::optional<Number>& value) {
    if (!value) return {};
    if constexpr (std::is_integral_v<Number>)
        return std::to_string(*value);
    else
        return number_text(static_cast<float>(*value));
}
template <typename T>
std::string nick_or_none(const std::optional<T>& value) {
    return value ? std::string(to_string(*value)) : std::string();
}
std::string labels_text(const std::vector<std::string>& labels) {
    std::string text;
    for (const std::string& label : labels) text += escape_item(label) + ";";
    return text;
}

using Input = ModelInfo::Input;
using Output = ModelInfo::Output;
using View = std::string_view;

constexpr View infer = "`vartmlinfer`", decode = "`vartmldecode`", both = "both", others = "–";
constexpr View picture = "`vartmlpicture`";
constexpr View of_family = "the decoder's", nothing = "none";

constexpr Key<ModelInfo> general[] = {
    {"version", "1.0", "1.0", both, "Version of GStreamer's own keys",
     [](ModelInfo&, View v) { return v.substr(0, v.find('.')) == "1"; },
     [](const ModelInfo&) { return std::string("1.0"); }},
    {"group-id", "a name", nothing, infer,
     "GStreamer's name for this group of output tensors, by which it chooses decoders",
     [](ModelInfo& m, View v) {
         m.group_id = v;
         return true;
     },
     [](const ModelInfo& m) { return m.group_id; }},
    {"x-vartml-version", "1", "1", both, "Version of the keys `x-vartml-…`",
     [](ModelInfo&, View v) { return v == "1"; },
     [](const ModelInfo&) { return std::string("1"); }},
    {"x-vartml-decoder", "a decoder family (`vartml compile --help` lists them)",
     "by the outputs' ids, then their shapes", both,
     "Who makes results of the outputs; it also says how pictures become the input",
     [](ModelInfo& m, View v) {
         m.decoder.clear();
         if (v == "auto") return true;
         const DecoderFamily* const family = find_decoder_family(v);
         if (family) m.decoder = family->nick;
         return family != nullptr;
     },
     [](const ModelInfo& m) { return m.decoder; }},
    {"x-vartml-labels", "a file beside the sidecar, or labels separated by ';'",
     "those of the data set that has so many classes, or `class-0`, `class-1` and so on", decode,
     "Names of the classes, one per line of the file; a `;` in a label is `\\;`",
     [](ModelInfo& m, View v) {
         m.labels = split_list(v, ';');
         return !m.labels.empty();
     },
     [](const ModelInfo& m) { return labels_text(m.labels); }},
    {"x-vartml-num-classes", "a count of at least 1", "as many as labels, else by the shapes",
     decode, "Number of classes, where neither labels nor shapes tell it",
     [](ModelInfo& m, View v) { return set_count(m.num_classes, v); },
     [](const ModelInfo& m) { return number_or_none(m.num_classes); }},
    {"x-vartml-class-offset", "a whole number such as -1", "0", decode,
     "Label of the model's class 0; -1: class 0 is the background, which has no label",
     [](ModelInfo& m, View v) {
         return parse_number(v, m.class_offset) && std::abs(m.class_offset) <= 1'000'000;
     },
     [](const ModelInfo& m) { return m.class_offset ? std::to_string(m.class_offset) : ""; }},
    {"x-vartml-background", "first, last or none",
     "none where as many classes are promised as the scores have columns, else first", decode,
     "Which class of the scores beside finished boxes is that of nothing (`ssd`)",
     [](ModelInfo& m, View v) {
         m.background = v;
         return one_of(v, {"first", "last", "none"});
     },
     [](const ModelInfo& m) { return m.background; }},
    {"x-vartml-score-threshold", "a number from 0 to 1", of_family, decode,
     "Least score of a result; the property `score-threshold` wins",
     [](ModelInfo& m, View v) { return set_unit(m.score_threshold, v); },
     [](const ModelInfo& m) { return number_or_none(m.score_threshold); }},
    {"x-vartml-iou-threshold", "a number from 0 to 1", of_family, decode,
     "Overlap from which the lesser of two boxes is dropped; the property `iou-threshold` wins",
     [](ModelInfo& m, View v) { return set_unit(m.iou_threshold, v); },
     [](const ModelInfo& m) { return number_or_none(m.iou_threshold); }},
    {"x-vartml-max-detections", "a count of at least 1", "100", decode,
     "Results of a frame at most, the best; the property `max-detections` wins",
     [](ModelInfo& m, View v) { return set_count(m.max_detections, v); },
     [](const ModelInfo& m) { return number_or_none(m.max_detections); }},
    {"x-vartml-anchors", "pairs of positive numbers", of_family, decode,
     "Widths and heights of the anchors or priors in pixels of the input, stride by stride; raw "
     "maps of `yolo-v5` need them",
     [](ModelInfo& m, View v) {
         return parse_numbers(v, m.anchors) && m.anchors.size() % 2 == 0 &&
                std::ranges::all_of(m.anchors, [](float side) { return side > 0; });
     },
     [](const ModelInfo& m) { return list_text(m.anchors); }},
    {"x-vartml-variance", "two positive numbers such as 1,1", "0.1,0.2", decode,
     "What offsets from priors are multiplied by, of the centre and of the size of a box (`ssd`); "
     "RetinaNet and EfficientDet have 1,1",
     [](ModelInfo& m, View v) {
         return parse_numbers(v, m.variance) && m.variance.size() == 2 &&
                std::ranges::all_of(m.variance, [](float factor) { return factor > 0; });
     },
     [](const ModelInfo& m) { return list_text(m.variance); }},
    {"x-vartml-strides", "whole numbers of at least 1 such as 8,16,32", of_family, decode,
     "Pixels of the input per cell of each grid, in the order of the positions",
     [](ModelInfo& m, View v) { return set_strides(m.strides, v); },
     [](const ModelInfo& m) { return list_text(m.strides); }},
    {"x-vartml-activation", "none, sigmoid or softmax", "by the graph, else by the numbers", decode,
     "What turns the model's class values into scores; `sigmoid` gives a pixel of `segment` "
     "several "
     "classes",
     [](ModelInfo& m, View v) {
         m.activation = v;
         return one_of(v, {"none", "sigmoid", "softmax"});
     },
     [](const ModelInfo& m) { return m.activation; }},
    {"x-vartml-skeleton",
     "coco17, openpose18, hand21, blazepose33, face68, face468, face478, or pairs such as 0-1;1-2",
     "the published one of so many points", decode,
     "Lines between keypoints, by their numbers from 0",
     [](ModelInfo& m, View v) {
         m.skeleton = v;
         return is_skeleton(v);
     },
     [](const ModelInfo& m) { return m.skeleton; }},
    {"x-vartml-keypoints", "a count and 2 or 3 such as 6,2", "by the columns behind the classes",
     decode,
     "Keypoints of a box, and whether each has two values or a score as the third "
     "(`yolo-v8-pose`)",
     [](ModelInfo& m, View v) { return set_keypoints(m.keypoints, v); },
     [](const ModelInfo& m) { return list_text(m.keypoints); }},
    {"x-vartml-peak", "quarter or centroid", "quarter", decode,
     "Where in a heat map the point is: a quarter of a cell from the peak towards its higher "
     "neighbour, or the middle of the cells around it that reach the score threshold",
     [](ModelInfo& m, View v) {
         m.peak = v;
         return one_of(v, {"quarter", "centroid"});
     },
     [](const ModelInfo& m) { return m.peak; }},
    {"x-vartml-blank", "the number of a class, or -1 for the last", "0", decode,
     "Class of `ctc-text` that is no character",
     [](ModelInfo& m, View v) {
         int blank = 0;
         if (!parse_number(v, blank) || blank < -1) return false;
         m.blank = blank;
         return true;
     },
     [](const ModelInfo& m) { return number_or_none(m.blank); }},
    {"x-vartml-columns",
     "the columns of a box: score, class, x0y0x1y1, y0x0y1x1 or cxcywh, and batch or (with cxcywh) "
     "angle if it is there, in their order and separated by ','",
     "by the output's name, else by its shape", decode,
     "What the columns of a table are whose rows are boxes (`yolo-end2end`)",
     [](ModelInfo& m, View v) {
         m.columns = v;
         return parse_box_columns(v).has_value();
     },
     [](const ModelInfo& m) { return m.columns; }},
    {"x-vartml-box-form", "v3 or v5", "v5", decode,
     "Formula by which raw YOLO maps become widths and heights (`yolo-v5`)",
     [](ModelInfo& m, View v) {
         m.box_form = v;
         return one_of(v, {"v3", "v5"});
     },
     [](const ModelInfo& m) { return m.box_form; }},
    {"x-vartml-box-order", "yxyx, xyxy or cxcywh", of_family, decode,
     "What the four numbers of a box are, finished or relative to priors: corners, or centre and "
     "size (`ssd`, `detr`, finished ones of `ultraface`)",
     [](ModelInfo& m, View v) {
         m.box_order = v;
         return one_of(v, {"yxyx", "xyxy", "cxcywh"});
     },
     [](const ModelInfo& m) { return m.box_order; }},
    {"x-vartml-box-unit", "picture or pixel", "picture, or what the inputs say of the frame's size",
     decode,
     "What the numbers of final boxes count: parts of the picture, from 0 to 1, or pixels of the "
     "input (`ssd`, `detr`, `ultraface`)",
     [](ModelInfo& m, View v) {
         m.box_unit = v;
         return one_of(v, {"picture", "pixel"});
     },
     [](const ModelInfo& m) { return m.box_unit; }},
};

constexpr View of_the_model = "as the model has it";
constexpr View written_only =
    "Written for GStreamer's elements; the model itself is what counts here";

constexpr Key<Input> input[] = {
    {"dir", "input", "required", both, "What the section describes"},
    {"type", "a type such as uint8 or float32", of_the_model, others, written_only},
    {"dims", "numbers separated by ','", of_the_model, others, written_only},
    {"ranges", "min,max for all channels or for each, separated by ';'", nothing, infer,
     "GStreamer's way to say mean and scale: bytes from 0 to 255 become numbers from min to max"},
    {"x-vartml-resize", "stretch, letterbox, letterbox-top-left or crop", of_family, infer,
     "How a picture gets the size of the input: as it comes, with borders around it, with borders "
     "right and below, or its middle",
     [](Input& i, View v) { return set_nick(i.resize, parse_resize_mode(v)); },
     [](const Input& i) { return nick_or_none(i.resize); }},
    {"x-vartml-interpolation", "bilinear, nearest or area", of_family, infer,
     "How pixels are made when the size changes",
     [](Input& i, View v) { return set_nick(i.interpolation, parse_interpolation(v)); },
     [](const Input& i) { return nick_or_none(i.interpolation); }},
    {"x-vartml-channels", "rgb, bgr or gray", of_family, infer, "Order of the input's channels",
     [](Input& i, View v) { return set_nick(i.channels, parse_channel_order(v)); },
     [](const Input& i) { return nick_or_none(i.channels); }},
    {"x-vartml-mean", "1 or 3 numbers", of_family, infer,
     "Subtracted from the bytes, in the order of the channels: input = (byte − mean) · scale",
     [](Input& i, View v) { return set_channel_numbers(i.mean, v); },
     [](const Input& i) { return channels_text(i.mean); }},
    {"x-vartml-scale", "1 or 3 numbers other than 0", of_family, infer,
     "What the difference is multiplied with; 0.00392157 is 1/255",
     [](Input& i, View v) {
         return set_channel_numbers(i.scale, v) &&
                std::ranges::all_of(i.scale, [](float s) { return s != 0; });
     },
     [](const Input& i) { return channels_text(i.scale); }},
    {"x-vartml-pad", "1 or 3 numbers from 0 to 255", of_family, infer,
     "Colour of the borders, in the order of the channels",
     [](Input& i, View v) {
         return set_channel_numbers(i.pad, v) &&
                std::ranges::all_of(i.pad, [](float p) { return p >= 0 && p <= 255; });
     },
     [](const Input& i) { return channels_text(i.pad); }},
    {"x-vartml-crop-fraction", "a number above 0, at most 1", of_family, infer,
     "Share of the shorter side that `crop` keeps",
     [](Input& i, View v) { return set_unit(i.crop_fraction, v) && *i.crop_fraction > 0; },
     [](const Input& i) { return number_or_none(i.crop_fraction); }},
    {"x-vartml-feed", "frame-size or const:<values>", nothing, infer,
     "What an input gets that is no picture: width and height of the frame, or these numbers; "
     "`vartml compile` records it for `orig_target_sizes`, `im_shape`, `image_shape` and "
     "`scale_factor`",
     [](Input& i, View v) {
         i.feed = v;
         std::vector<float> values;
         return v == "frame-size" ||
                (v.starts_with("const:") && parse_numbers(v.substr(6), values));
     },
     [](const Input& i) { return i.feed; }},
    {"x-vartml-picture", "rgb, bgr or gray", nothing, infer,
     "The model takes the bytes of a picture with these channels and does the rest itself",
     [](Input& i, View v) {
         i.picture = v;
         return parse_channel_order(v).has_value();
     },
     [](const Input& i) { return i.picture; }},
    {"x-vartml-weights-for", "bytes or units",
     "`vartml compile` writes `units` where the weights show it and a decoder asks", infer,
     "What the first filters are made for: pixels from 0 to 255, or normalised ones of a few "
     "units, as the first release of YOLOX took them (`yolox`)",
     [](Input& i, View v) {
         i.weights_for = v;
         return one_of(v, {"bytes", "units"});
     },
     [](const Input& i) { return i.weights_for; }},
};

constexpr Key<Output> output[] = {
    {"dir", "output", "required", both, "What the section describes"},
    {"type", "a type such as uint8 or float32", of_the_model, others, written_only},
    {"dims", "numbers separated by ','", of_the_model, others, written_only},
    {"dims-order", "row-major or col-major", "row-major", infer,
     "GStreamer's name for the order, which some of its decoders look for; the values lie as the "
     "model has them",
     [](Output& o, View v) {
         o.column_major = v == "col-major";
         return one_of(v, {"row-major", "col-major"});
     },
     [](const Output& o) { return std::string(o.column_major ? "col-major" : "row-major"); }},
    {"id", "a tensor id", nothing, both,
     "GStreamer's name for what the tensor holds; `vartmldecode` knows those of its families",
     [](Output& o, View v) {
         o.id = unescape(v);
         return !v.empty();
     },
     [](const Output& o) { return escape_item(o.id); }},
    {"x-vartml-role",
     "boxes, scores, classes, count, objectness, landmarks, coefficients, prototypes, mask, "
     "heatmap, offsets or embedding",
     "by name and shape", decode, "What the output is, where its name does not tell",
     [](Output& o, View v) {
         o.role = v;
         return one_of(
             v, {"boxes", "scores", "classes", "count", "objectness", "landmarks", "coefficients",
                 "prototypes", "mask", "heatmap", "offsets", "embedding"});
     },
     [](const Output& o) { return o.role; }},
    {"x-vartml-stride", "a whole number from 1 to 4096", "by the shapes", decode,
     "Pixels of the input per cell of this output",
     [](Output& o, View v) {
         int stride = 0;
         if (!parse_number(v, stride) || stride < 1 || stride > 4096) return false;
         o.stride = stride;
         return true;
     },
     [](const Output& o) { return number_or_none(o.stride); }},
    {"x-vartml-quant-scale", "a number above 0", "the compiled model's, else 1", decode,
     "Of an output of whole numbers: value = (number − zero point) · scale",
     [](Output& o, View v) {
         double scale = 0;
         if (!parse_number(v, scale) || scale <= 0) return false;
         o.quant_scale = scale;
         return true;
     },
     [](const Output& o) { return number_or_none(o.quant_scale); }},
    {"x-vartml-zero-point", "a whole number from -32768 to 65535", "the compiled model's, else 0",
     decode, "Of the same",
     [](Output& o, View v) {
         int zero_point = 0;
         // of codes of at most 16 bits
         if (!parse_number(v, zero_point) || zero_point < -32768 || zero_point > 65535)
             return false;
         o.zero_point = zero_point;
         return true;
     },
     [](const Output& o) { return number_or_none(o.zero_point); }},
    {"x-vartml-ends-in",
     "softmax, log-softmax, sigmoid, relu, unit-length, argmax, product or linear",
     "`vartml compile` writes what the graph ends in", decode,
     "What made the values, so that scores are told from logits, and numbers of classes from both",
     [](Output& o, View v) {
         o.ends_in = v;
         return one_of(v, {"softmax", "log-softmax", "sigmoid", "relu", "unit-length", "argmax",
                           "product", "linear"});
     },
     [](const Output& o) { return o.ends_in; }},
    {"x-vartml-picture", "color, rgb, bgr, luma, map or alpha", "by the shape", picture,
     "What an output shows that is a picture: colours in that order, brightness alone, a measure "
     "such as depth, or how much of a pixel belongs to the object",
     [](Output& o, View v) {
         o.picture = v;
         return one_of(v, {"color", "rgb", "bgr", "luma", "map", "alpha"});
     },
     [](const Output& o) { return o.picture; }},
    {"ranges", "MIN,MAX for all channels or for each of three, separated by ';'",
     "0,1 by the graph, what 0 and 255 are in the input, or each frame's own", picture,
     "Values of black and white of such an output",
     [](Output& o, View v) { return set_ranges(o.ranges, v); },
     [](const Output& o) { return ranges_text(o.ranges); }},
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
