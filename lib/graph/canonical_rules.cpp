// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/canonical_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lib/graph/ops.h"
#include "lib/graph/ops_window.h"

namespace vartml::graph {

namespace {

using Ints = std::vector<int64_t>;

// ---- windows

// Begin and end of `total` elements of padding along one axis.
void split_padding(int64_t total, bool more_at_end, size_t axis, Ints& pads) {
    const int64_t less = total / 2;
    pads[axis] = more_at_end ? less : total - less;
    pads[pads.size() / 2 + axis] = more_at_end ? total - less : less;
}

Result<void> fill_window(const Graph& graph, Node& node, Window& window) {
    auto found = window_of(graph, node);
    if (!found) return found.error();
    window = std::move(*found);
    node.attributes["strides"] = window.strides;
    node.attributes["dilations"] = window.dilations;
    Ints pads = window.pads_begin;
    pads.insert(pads.end(), window.pads_end.begin(), window.pads_end.end());
    node.attributes["pads"] = pads;
    return {};
}

Result<void> rule_window(const Graph& graph, Node& node) {
    const bool pool = node.kind.ends_with("Pool");
    if (node.kind == "QLinearAveragePool") {
        // The same attributes as the float operator, whose only input is the first.
        if (node.get("channels_last", int64_t{0}) != 0) {
            return bad_node(node,
                            "has channels_last=1, expected the ONNX layout; export without it");
        }
        node.attributes.erase("channels_last");
    }
    Window window;
    if (auto ok = fill_window(graph, node, window); !ok) return ok;
    const std::string auto_pad = node.get("auto_pad", "NOTSET");
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
        const Type& x = input_type(graph, node, 0);
        Ints pads(2 * window.rank());
        for (size_t i = 0; i < window.rank(); ++i) {
            const int64_t size = x.shape[i + 2], stride = window.strides[i];
            const int64_t positions = (size + stride - 1) / stride;
            const int64_t total =
                std::max<int64_t>((positions - 1) * stride + window.extent(i) - size, 0);
            split_padding(total, auto_pad == "SAME_UPPER", i, pads);
        }
        node.attributes["pads"] = pads;
    } else if (auto_pad == "VALID") {
        node.attributes["pads"] = Ints(2 * window.rank(), 0);
    }
    if (!pool) {
        node.attributes.erase("kernel_shape");
        node.attributes["group"] = window.group;
    }
    return {};
}

Result<void> rule_conv_transpose(const Graph& graph, Node& node) {
    Window window;
    if (auto ok = fill_window(graph, node, window); !ok) return ok;
    const Type& x = input_type(graph, node, 0);
    const size_t rank = window.rank();
    Ints output_padding = node.get("output_padding", Ints(rank, 0));
    Ints output_shape = node.get("output_shape", Ints());
    if (output_shape.size() == rank + 2)
        output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
    const std::string auto_pad = node.get("auto_pad", "NOTSET");
    if (output_shape.empty() && auto_pad.starts_with("SAME")) {
        for (size_t i = 0; i < rank; ++i)
            output_shape.push_back(x.shape[i + 2] * window.strides[i]);
    }
    if (output_padding.size() != rank || (!output_shape.empty() && output_shape.size() != rank)) {
        return bad_node(
            node,
            "has output_padding or output_shape of the wrong length for its input " + to_string(x));
    }
    if (!output_shape.empty()) {
        Ints pads(2 * rank);
        for (size_t i = 0; i < rank; ++i) {
            const int64_t total = window.strides[i] * (x.shape[i + 2] - 1) + output_padding[i] +
                                  window.extent(i) - output_shape[i];
            split_padding(std::max<int64_t>(total, 0), auto_pad == "SAME_UPPER", i, pads);
            if (total < 0)
                output_padding[i] -= total;  // asked for more than there is: zeros behind
        }
        node.attributes["pads"] = pads;
    } else if (auto_pad == "VALID") {
        node.attributes["pads"] = Ints(2 * rank, 0);
    }
    node.attributes["output_padding"] = output_padding;
    node.attributes["group"] = window.group;
    node.attributes.erase("kernel_shape");
    return {};
}

// ---- shapes

// A Reshape to the shape that the relative operator gives.
Result<void> to_reshape(const Graph& graph, Node& node) {
    if (graph.value(node.inputs[0]).data_dependent) return {};
    auto types = infer_types(graph, node);
    if (!types) return types.error();
    node.kind = "Reshape";
    node.attributes = {{"shape", types->front().shape}};
    return {};
}

// Without elements, any size in place of -1 gives as many; meant is the one that every other number
// of rows would give: x[n,2,3] by [0,-1] is [n,6], of no rows, too.
void solve_without_elements(const Ints& from, const Ints& given, Ints& shape) {
    if (std::ranges::count(shape, -1) != 1 || std::ranges::count(shape, 0) == 0) return;
    int64_t left = 1, taken = 1;
    for (size_t i = 0; i < from.size(); ++i)
        if (i >= given.size() || given[i] != 0) left *= from[i];
    for (size_t i = 0; i < shape.size(); ++i)
        if (given[i] != 0 && shape[i] != -1) taken *= shape[i];
    if (left > 0 && taken > 0 && left % taken == 0)
        std::ranges::replace(shape, int64_t{-1}, left / taken);
}

Result<void> rule_reshape(const Graph& graph, Node& node) {
    const Value& x = graph.value(node.inputs[0]);
    const Ints given = node.get("shape", Ints());
    Ints shape = given;
    if (!node.get("allowzero", int64_t{0})) {
        for (size_t i = 0; i < shape.size(); ++i) {
            if (shape[i] != 0) continue;
            if (i >= x.type.shape.size()) {
                return bad_node(node, "copies axis " + std::to_string(i) + ", which its input " +
                                          to_string(x.type) + " does not have");
            }
            shape[i] = x.type.shape[i];
        }
        solve_without_elements(x.type.shape, given, shape);
    }
    node.attributes["shape"] = shape;
    node.attributes.erase("allowzero");
    return to_reshape(graph, node);
}

Result<void> rule_squeeze(const Graph& graph, Node& node) {
    if (!node.has("axes")) {
        Ints axes;
        const Type& x = input_type(graph, node, 0);
        for (size_t i = 0; i < x.shape.size(); ++i) {
            if (x.shape[i] == 1) axes.push_back(static_cast<int64_t>(i));
        }
        node.attributes["axes"] = axes;
    }
    return to_reshape(graph, node);
}

Result<void> rule_unsqueeze(const Graph& graph, Node& node) {
    Ints axes = node.get("axes", Ints());
    const size_t rank = input_type(graph, node, 0).shape.size() + axes.size();
    for (int64_t& axis : axes) axis = wrap_axis(axis, rank);
    std::ranges::sort(axes);
    node.attributes["axes"] = axes;
    return to_reshape(graph, node);
}

Result<void> rule_flatten(const Graph& graph, Node& node) {
    int64_t axis = node.get("axis", int64_t{1});
    if (axis < 0) axis += static_cast<int64_t>(input_type(graph, node, 0).shape.size());
    node.attributes["axis"] = axis;
    return to_reshape(graph, node);
}

Result<void> rule_transpose(const Graph& graph, Node& node) {
    if (node.has("perm")) return {};
    Ints perm(input_type(graph, node, 0).shape.size());
    std::iota(perm.rbegin(), perm.rend(), 0);
    node.attributes["perm"] = perm;
    return {};
}

Result<void> rule_slice(const Graph& graph, Node& node) {
    const Type& x = input_type(graph, node, 0);
    const Ints starts = node.get("starts", Ints()), ends = node.get("ends", Ints());
    Ints axes = node.get("axes", Ints());
    const Ints steps = node.get("steps", Ints(starts.size(), 1));
    if (!node.has("axes")) {
        axes.resize(starts.size());
        std::iota(axes.begin(), axes.end(), 0);
    }
    if (ends.size() != starts.size() || axes.size() != starts.size() ||
        steps.size() != starts.size()) {
        return bad_node(node, "has starts, ends, axes and steps of different lengths");
    }
    struct Range {
        int64_t axis, start, end, step;
    };
    std::vector<Range> ranges;
    for (size_t i = 0; i < axes.size(); ++i) {
        const int64_t axis = wrap_axis(axes[i], x.shape.size());
        if (axis < 0 || steps[i] == 0) {
            return bad_node(node, "slices axes " + to_string(axes) + " with steps " +
                                      to_string(steps) + ", expected axes of " + to_string(x) +
                                      " and no step of 0");
        }
        const int64_t size = x.shape[static_cast<size_t>(axis)];
        const auto wrap = [size](int64_t at) { return at < 0 ? at + size : at; };
        Range range{axis, 0, 0, std::clamp<int64_t>(steps[i], -INT32_MAX, INT32_MAX)};
        if (range.step > 0) {
            range.start = std::clamp<int64_t>(wrap(starts[i]), 0, size);
            range.end = std::clamp<int64_t>(wrap(ends[i]), 0, size);
        } else {
            range.start = std::clamp<int64_t>(wrap(starts[i]), 0, std::max<int64_t>(size - 1, 0));
            range.end = std::clamp<int64_t>(wrap(ends[i]), -1, size);
        }
        ranges.push_back(range);
    }
    std::ranges::sort(ranges, {}, &Range::axis);
    Ints lists[4];
    for (const Range& range : ranges) {
        lists[0].push_back(range.axis);
        lists[1].push_back(range.start);
        lists[2].push_back(range.end);
        lists[3].push_back(range.step);
    }
    const char* names[] = {"axes", "starts", "ends", "steps"};
    for (size_t i = 0; i < 4; ++i) node.attributes[names[i]] = lists[i];
    return {};
}

Result<void> rule_split(const Graph& graph, Node& node) {
    if (node.has("split")) return {};
    const Type& x = input_type(graph, node, 0);
    const int64_t axis = wrap_axis(node.get("axis", int64_t{0}), x.shape.size());
    if (axis < 0 || node.outputs.empty()) return {};  // inference says what is wrong
    const int64_t size = x.shape[static_cast<size_t>(axis)];
    const auto parts = static_cast<int64_t>(node.outputs.size());
    const int64_t chunk = (size + parts - 1) / parts;
    Ints split(node.outputs.size(), chunk);
    split.back() = size - chunk * (parts - 1);
    node.attributes["split"] = split;
    return {};
}

Result<void> rule_pad(const Graph& graph, Node& node) {
    const size_t rank = input_type(graph, node, 0).shape.size();
    const Ints axes = node.get("axes", Ints()), some = node.get("pads", Ints());
    if (node.has("axes")) {
        Ints pads(2 * rank, 0);
        if (some.size() != 2 * axes.size()) {
            return bad_node(node, "pads by " + to_string(some) +
                                      ", expected two numbers for each of the axes " +
                                      to_string(axes));
        }
        for (size_t i = 0; i < axes.size(); ++i) {
            const auto axis = static_cast<size_t>(axes[i]);
            pads[axis] = some[i];
            pads[rank + axis] = some[axes.size() + i];
        }
        node.attributes["pads"] = pads;
        node.attributes.erase("axes");
    }
    return {};
}

Result<void> rule_expand(const Graph& graph, Node& node) {
    const Type& x = input_type(graph, node, 0);
    const Ints shape = node.get("shape", Ints());
    const auto result = broadcast(x.shape, shape);
    if (!result) {
        return bad_node(node, "expands " + to_string(x) + " to " + to_string(shape) +
                                  ", to which it does not broadcast");
    }
    node.attributes["shape"] = *result;
    return {};
}

// ---- resize

// Lists of one entry per axis from lists for `axes` only.
template <typename T>
std::vector<T> for_all_axes(const std::vector<T>& some, const Ints& axes, std::vector<T> all) {
    for (size_t i = 0; i < std::min(axes.size(), some.size()); ++i)
        all[static_cast<size_t>(axes[i])] = some[i];
    return all;
}

Result<void> rule_resize(const Graph& graph, Node& node) {
    const Type& x = input_type(graph, node, 0);
    const size_t rank = x.shape.size();
    Ints axes = node.get("axes", Ints());
    if (!node.has("axes")) {
        axes.resize(rank);
        std::iota(axes.begin(), axes.end(), 0);
    }
    Ints sizes = node.get("sizes", Ints());
    auto scales = node.get("scales", std::vector<float>());
    auto roi = node.get("roi", std::vector<float>());
    if (sizes.empty() == scales.empty() || std::max(sizes.size(), scales.size()) != axes.size()) {
        return bad_node(node, "resizes " + to_string(x) + " with " + std::to_string(scales.size()) +
                                  " scales and " + std::to_string(sizes.size()) +
                                  " sizes, expected one of the two for each axis");
    }
    const bool crop = node.get("coordinate_transformation_mode", "") == "tf_crop_and_resize";
    if (crop && roi.size() != 2 * axes.size()) {
        return bad_node(node, "has a region of " + std::to_string(roi.size()) +
                                  " numbers, expected two per axis");
    }
    if (!sizes.empty()) {
        Ints all = for_all_axes(sizes, axes, x.shape);
        scales.assign(rank, 1);
        for (const int64_t axis : axes) {
            const auto i = static_cast<size_t>(axis);
            scales[i] =
                static_cast<float>(all[i]) / static_cast<float>(std::max<int64_t>(x.shape[i], 1));
        }
        const std::string policy = node.get("keep_aspect_ratio_policy", "stretch");
        if (policy != "stretch") {
            float scale = scales[static_cast<size_t>(axes[0])];
            for (const int64_t axis : axes) {
                const float other = scales[static_cast<size_t>(axis)];
                scale = policy == "not_larger" ? std::min(scale, other) : std::max(scale, other);
            }
            for (const int64_t axis : axes) {
                const auto i = static_cast<size_t>(axis);
                scales[i] = scale;
                all[i] = std::lround(scale * static_cast<float>(x.shape[i]));
            }
        }
        sizes = std::move(all);
    } else {
        scales = for_all_axes(scales, axes, std::vector<float>(rank, 1));
        sizes = x.shape;
        for (size_t i = 0; i < rank; ++i) {
            const float extent = crop ? 1.0F : 0.0F;
            float length = static_cast<float>(x.shape[i]);
            if (extent > 0) {
                const auto at = std::ranges::find(axes, static_cast<int64_t>(i)) - axes.begin();
                const auto n = static_cast<size_t>(at);
                if (n < axes.size()) length *= roi[axes.size() + n] - roi[n];
            }
            const float size = std::floor(length * scales[i]);
            if (!(size >= 0 && size <= static_cast<float>(max_elements))) {
                return bad_node(node, "resizes axis " + std::to_string(i) + " of " + to_string(x) +
                                          " to " + std::to_string(size) +
                                          ", expected a size from 0 to 2^40");
            }
            sizes[i] = static_cast<int64_t>(size);
        }
    }
    if (crop) {
        std::vector<float> all(2 * rank, 0);
        std::fill(all.begin() + static_cast<ptrdiff_t>(rank), all.end(), 1.0F);
        for (size_t i = 0; i < axes.size(); ++i) {
            all[static_cast<size_t>(axes[i])] = roi[i];
            all[rank + static_cast<size_t>(axes[i])] = roi[axes.size() + i];
        }
        node.attributes["roi"] = all;
    } else {
        node.attributes.erase("roi");
    }
    node.attributes.erase("axes");
    node.attributes["sizes"] = sizes;
    node.attributes["scales"] = scales;
    return {};
}

// No shift of half a pixel; the nearest element is the one before, of an axis that shrinks the one
// behind.
Result<void> rule_upsample(const Graph& graph, Node& node) {
    const auto scales = node.get("scales", std::vector<float>());
    const bool shrinks = std::ranges::any_of(scales, [](float s) { return s < 1; });
    const bool grows = std::ranges::any_of(scales, [](float s) { return s > 1; });
    if (shrinks && grows && node.get("mode", "nearest") == "nearest") {
        return Error{ErrorCode::unsupported,
                     "node '" + node.name +
                         "' (Upsample or Resize of set 10) makes one axis larger and another "
                         "smaller in mode nearest; export it with opset 11 or later"};
    }
    node.kind = "Resize";
    if (node.get("mode", "nearest") == "bilinear") node.attributes["mode"] = "linear";
    node.attributes["coordinate_transformation_mode"] = "asymmetric";
    node.attributes["nearest_mode"] = shrinks ? "ceil" : "floor";
    return rule_resize(graph, node);
}

// ---- others

Result<void> rule_clip(const Graph&, Node& node) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    // Numbers between the bounds are none: all become the upper one.
    if (const float max = node.get("max", infinity); node.get("min", -infinity) > max)
        node.attributes["min"] = max;
    if (node.get("min", 0.0F) == -infinity) node.attributes.erase("min");
    if (node.get("max", 0.0F) == infinity) node.attributes.erase("max");
    return {};
}

Result<void> rule_reduce(const Graph& graph, Node& node) {
    Ints axes = node.get("axes", Ints());
    if (axes.empty() && node.get("noop_with_empty_axes", int64_t{0})) {
        // Of each element alone.
        constexpr std::pair<std::string_view, std::string_view> alone[] = {
            {"ReduceL1", "Abs"},
            {"ReduceL2", "Abs"},
            {"ReduceLogSum", "Log"},
            {"ReduceSumSquare", "Mul"}};
        const auto found = std::ranges::find(alone, node.kind,
                                             &std::pair<std::string_view, std::string_view>::first);
        node.kind = found == std::end(alone) ? "Identity" : found->second;
        node.attributes.clear();
        node.inputs.resize(1);
        if (node.kind == "Mul") node.inputs.push_back(node.inputs[0]);
        return {};
    }
    if (axes.empty()) {
        axes.resize(input_type(graph, node, 0).shape.size());
        std::iota(axes.begin(), axes.end(), 0);
    }
    node.attributes["axes"] = axes;
    return {};
}

Result<void> rule_cast_like(const Graph& graph, Node& node) {
    if (!has_input(node, 1)) return bad_node(node, "has no second input to take the type from");
    node.kind = "Cast";
    node.attributes = {{"to", std::string(short_name(input_type(graph, node, 1).data_type))}};
    node.inputs.resize(1);
    return {};
}

Result<void> rule_batch_normalisation(const Graph&, Node& node) {
    if (node.get("training_mode", int64_t{0}) != 0) {
        return Error{
            ErrorCode::unsupported,
            "node '" + node.name +
                "' (BatchNormalization) is in training mode; export the model in inference mode"};
    }
    node.outputs.resize(1);
    return {};
}

// Exporters write the largest int64 for "all"; the limit of a program is as good.
Result<void> rule_non_max_suppression(const Graph&, Node& node) {
    const int64_t most = node.get("max_output_boxes_per_class", int64_t{0});
    node.attributes["max_output_boxes_per_class"] =
        std::clamp<int64_t>(most, 0, std::numeric_limits<int32_t>::max());
    return {};
}

Result<void> rule_grid_sample(const Graph&, Node& node) {
    const std::string mode = node.get("mode", "linear");
    if (mode == "bilinear") node.attributes["mode"] = "linear";
    if (mode == "bicubic") node.attributes["mode"] = "cubic";
    return {};
}

Result<void> rule_mean_variance(const Graph&, Node& node) {
    if (!node.has("axes")) node.attributes["axes"] = Ints{0, 2, 3};
    return {};
}

// A diagonal that is outside stays outside.
Result<void> rule_trilu(const Graph&, Node& node) {
    using Limits = std::numeric_limits<int32_t>;
    node.attributes["k"] =
        std::clamp<int64_t>(node.get("k", int64_t{0}), Limits::min(), Limits::max());
    return {};
}

Result<void> rule_eye_like(const Graph& graph, Node& node) {
    if (auto ok = rule_trilu(graph, node); !ok) return ok;
    if (!node.has("dtype"))
        node.attributes["dtype"] = std::string(short_name(input_type(graph, node, 0).data_type));
    return {};
}

// Set 10: k < 0 and the like are the same; the axis comes as an attribute or a constant input.
Result<void> rule_shape(const Graph& graph, Node& node) {
    const auto rank = static_cast<int64_t>(input_type(graph, node, 0).shape.size());
    const auto wrap = [rank](int64_t at) {
        return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    node.attributes["start"] = wrap(node.get("start", int64_t{0}));
    node.attributes["end"] = wrap(node.get("end", rank));
    return {};
}

struct Rule {
    std::string_view kind;
    Result<void> (*apply)(const Graph&, Node&);
};
constexpr Rule rules[] = {
    {"AveragePool", rule_window},
    {"BatchNormalization", rule_batch_normalisation},
    {"CastLike", rule_cast_like},
    {"Clip", rule_clip},
    {"Conv", rule_window},
    {"ConvInteger", rule_window},
    {"ConvTranspose", rule_conv_transpose},
    {"Expand", rule_expand},
    {"EyeLike", rule_eye_like},
    {"Flatten", rule_flatten},
    {"GridSample", rule_grid_sample},
    {"LpPool", rule_window},
    {"MaxPool", rule_window},
    {"MeanVarianceNormalization", rule_mean_variance},
    {"NonMaxSuppression", rule_non_max_suppression},
    {"Pad", rule_pad},
    {"QLinearAveragePool", rule_window},
    {"QLinearConv", rule_window},
    {"Reshape", rule_reshape},
    {"Resize", rule_resize},
    {"Shape", rule_shape},
    {"Slice", rule_slice},
    {"Split", rule_split},
    {"Squeeze", rule_squeeze},
    {"Transpose", rule_transpose},
    {"Trilu", rule_trilu},
    {"Unsqueeze", rule_unsqueeze},
    {"Upsample", rule_upsample},
};

}  // namespace

Result<void> apply_rule(const Graph& graph, Node& node) {
    for (const Rule& rule : rules) {
        if (rule.kind == node.kind) return rule.apply(graph, node);
    }
    if (node.kind.starts_with("Reduce")) return rule_reduce(graph, node);
    return {};
}

}  // namespace vartml::graph
