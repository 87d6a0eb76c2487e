// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/canonical.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ranges>

#include "lib/graph/attribute_values.h"
#include "lib/graph/canonical_rules.h"
#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"

namespace vartml::graph {

namespace {

// An input that becomes an attribute of this name and kind when it is constant.
struct Parameter {
    std::string_view kind;
    size_t input;
    const char* attribute;
    char type;  // i, f, I (list of i), F (list of f)
};
constexpr Parameter parameters[] = {
    {"AffineGrid", 1, "size", 'I'},
    {"CenterCropPad", 1, "shape", 'I'},
    {"Clip", 1, "min", 'f'},
    {"Clip", 2, "max", 'f'},
    {"CumSum", 1, "axis", 'i'},
    {"Expand", 1, "shape", 'I'},
    {"NonMaxSuppression", 2, "max_output_boxes_per_class", 'i'},
    {"NonMaxSuppression", 3, "iou_threshold", 'f'},
    {"NonMaxSuppression", 4, "score_threshold", 'f'},
    {"OneHot", 1, "depth", 'i'},
    {"Pad", 1, "pads", 'I'},
    {"Pad", 2, "value", 'f'},
    {"Pad", 3, "axes", 'I'},
    {"Reduce", 1, "axes", 'I'},
    {"Reshape", 1, "shape", 'I'},
    {"Resize", 1, "roi", 'F'},
    {"Resize", 2, "scales", 'F'},
    {"Resize", 3, "sizes", 'I'},
    {"Slice", 1, "starts", 'I'},
    {"Slice", 2, "ends", 'I'},
    {"Slice", 3, "axes", 'I'},
    {"Slice", 4, "steps", 'I'},
    {"Split", 1, "split", 'I'},
    {"Squeeze", 1, "axes", 'I'},
    {"Tile", 1, "repeats", 'I'},
    {"TopK", 1, "k", 'i'},
    {"Trilu", 1, "k", 'i'},
    {"Unsqueeze", 1, "axes", 'I'},
    {"Upsample", 1, "scales", 'F'},
};

bool is_reduction(std::string_view kind) {
    return kind.starts_with("Reduce");
}

void take_parameter(const Value& value, const Parameter& parameter, Node& node) {
    const bool integral = parameter.type == 'i' || parameter.type == 'I';
    const auto ints = integral ? read_numbers<int64_t>(value) : std::vector<int64_t>();
    const auto floats = integral ? std::vector<float>() : read_numbers<float>(value);
    // Exporters write an empty tensor for an input that they leave out.
    if (integral ? ints.empty() : floats.empty()) {
        if (parameter.type == 'I' && std::string_view(parameter.attribute) != "sizes") {
            node.attributes[parameter.attribute] = ints;
        }
        return;
    }
    switch (parameter.type) {
        case 'i':
            node.attributes[parameter.attribute] = ints[0];
            break;
        case 'f':
            node.attributes[parameter.attribute] = floats[0];
            break;
        case 'I':
            node.attributes[parameter.attribute] = ints;
            break;
        default:
            node.attributes[parameter.attribute] = floats;
            break;
    }
}

bool is_parameter_of(const Node& node, const Parameter& parameter) {
    // Where the depth was is now what it stood in front of.
    if (node.kind == "OneHot" && node.inputs.size() < 3) return false;
    return parameter.kind == node.kind || (parameter.kind == "Reduce" && is_reduction(node.kind));
}

// The parameter inputs that the node has.
std::vector<const Parameter*> given_parameters(const Node& node) {
    std::vector<const Parameter*> given;
    for (const Parameter& parameter : parameters)
        if (is_parameter_of(node, parameter) && has_input(node, parameter.input))
            given.push_back(&parameter);
    return given;
}

// Whether a float is enough for a bound of a 64-bit type; at the ends of the range it clamps.
bool survives_float(const Value& value) {
    bool survives = true;
    with_type(value.type.data_type, [&]<typename T>(T number) {
        if constexpr (std::is_arithmetic_v<T>) {
            if (value.constant->bytes.size() < sizeof(T)) return;
            std::memcpy(&number, value.constant->bytes.data(), sizeof(T));
            survives = convert<T>(convert<float>(number)) == number ||
                       std::isnan(static_cast<double>(number));
        }
    });
    return survives;
}

bool is_constant(const Graph& graph, const Node& node, const Parameter& parameter) {
    const Value& value = graph.value(node.inputs[parameter.input]);
    return value.constant && (node.kind != "Clip" || survives_float(value));
}

// Makes attributes of the parameter inputs, when all that are given are constant. Returns whether
// none is left.
bool take_parameters(const Graph& graph, Node& node) {
    const auto given = given_parameters(node);
    const auto constant = [&](const Parameter* p) { return is_constant(graph, node, *p); };
    if (!std::ranges::all_of(given, constant)) return false;
    for (const Parameter* parameter : given) {
        take_parameter(graph.value(node.inputs[parameter->input]), *parameter, node);
    }
    // From the back, so that the indices stay right; an absent parameter leaves its place, too.
    for (const Parameter& parameter : std::views::reverse(parameters)) {
        if (is_parameter_of(node, parameter) && parameter.input < node.inputs.size()) {
            node.inputs.erase(node.inputs.begin() + static_cast<ptrdiff_t>(parameter.input));
        }
    }
    return true;
}

// ONNX's defaults, filled in where the attribute is absent.
struct Default {
    std::string_view kind;
    const char* attribute;
    char type;  // i, f, s
    double number;
    const char* text = "";
};
constexpr Default defaults[] = {
    {"AffineGrid", "align_corners", 'i', 0},
    {"ArgMax", "axis", 'i', 0},
    {"ArgMax", "keepdims", 'i', 1},
    {"ArgMax", "select_last_index", 'i', 0},
    {"ArgMin", "axis", 'i', 0},
    {"ArgMin", "keepdims", 'i', 1},
    {"ArgMin", "select_last_index", 'i', 0},
    {"AveragePool", "ceil_mode", 'i', 0},
    {"AveragePool", "count_include_pad", 'i', 0},
    {"BatchNormalization", "epsilon", 'f', 1e-5},
    {"Celu", "alpha", 'f', 1},
    {"CumSum", "exclusive", 'i', 0},
    {"CumSum", "reverse", 'i', 0},
    {"DepthToSpace", "mode", 's', 0, "DCR"},
    {"DequantizeLinear", "axis", 'i', 1},
    {"DequantizeLinear", "block_size", 'i', 0},
    {"Elu", "alpha", 'f', 1},
    {"EyeLike", "k", 'i', 0},
    {"Gather", "axis", 'i', 0},
    {"GatherElements", "axis", 'i', 0},
    {"GatherND", "batch_dims", 'i', 0},
    {"Gelu", "approximate", 's', 0, "none"},
    {"Gemm", "alpha", 'f', 1},
    {"Gemm", "beta", 'f', 1},
    {"Gemm", "transA", 'i', 0},
    {"Gemm", "transB", 'i', 0},
    {"GlobalLpPool", "p", 'i', 2},
    {"GridSample", "align_corners", 'i', 0},
    {"GridSample", "mode", 's', 0, "linear"},
    {"GridSample", "padding_mode", 's', 0, "zeros"},
    {"GroupNormalization", "epsilon", 'f', 1e-5},
    {"HardSigmoid", "alpha", 'f', 0.2},
    {"HardSigmoid", "beta", 'f', 0.5},
    {"Hardmax", "axis", 'i', -1},
    {"InstanceNormalization", "epsilon", 'f', 1e-5},
    {"IsInf", "detect_negative", 'i', 1},
    {"IsInf", "detect_positive", 'i', 1},
    {"LRN", "alpha", 'f', 1e-4},
    {"LRN", "beta", 'f', 0.75},
    {"LRN", "bias", 'f', 1},
    {"LayerNormalization", "axis", 'i', -1},
    {"LayerNormalization", "epsilon", 'f', 1e-5},
    {"LeakyRelu", "alpha", 'f', 0.01},
    {"LogSoftmax", "axis", 'i', -1},
    {"LpNormalization", "axis", 'i', -1},
    {"LpNormalization", "p", 'i', 2},
    {"LpPool", "ceil_mode", 'i', 0},
    {"LpPool", "p", 'i', 2},
    {"MaxPool", "ceil_mode", 'i', 0},
    {"MaxPool", "storage_order", 'i', 0},
    {"MaxRoiPool", "spatial_scale", 'f', 1},
    {"Mod", "fmod", 'i', 0},
    {"NonMaxSuppression", "center_point_box", 'i', 0},
    {"NonMaxSuppression", "iou_threshold", 'f', 0},
    {"NonMaxSuppression", "max_output_boxes_per_class", 'i', 0},
    {"OneHot", "axis", 'i', -1},
    {"Pad", "mode", 's', 0, "constant"},
    {"Pad", "value", 'f', 0},
    {"QLinearAveragePool", "ceil_mode", 'i', 0},
    {"QLinearAveragePool", "count_include_pad", 'i', 0},
    {"QLinearLeakyRelu", "alpha", 'f', 0.01},
    {"QLinearSoftmax", "axis", 'i', -1},
    {"QuantizeLinear", "axis", 'i', 1},
    {"QuantizeLinear", "block_size", 'i', 0},
    {"QuickGelu", "alpha", 'f', 1.702},
    {"RMSNormalization", "axis", 'i', -1},
    {"RMSNormalization", "epsilon", 'f', 1e-5},
    {"Reduce", "keepdims", 'i', 1},
    {"Resize", "antialias", 'i', 0},
    {"Resize", "coordinate_transformation_mode", 's', 0, "half_pixel"},
    {"Resize", "cubic_coeff_a", 'f', -0.75},
    {"Resize", "exclude_outside", 'i', 0},
    {"Resize", "extrapolation_value", 'f', 0},
    {"Resize", "mode", 's', 0, "nearest"},
    {"Resize", "nearest_mode", 's', 0, "round_prefer_floor"},
    {"ReverseSequence", "batch_axis", 'i', 1},
    {"ReverseSequence", "time_axis", 'i', 0},
    {"RoiAlign", "coordinate_transformation_mode", 's', 0, "half_pixel"},
    {"RoiAlign", "mode", 's', 0, "avg"},
    {"RoiAlign", "output_height", 'i', 1},
    {"RoiAlign", "output_width", 'i', 1},
    {"RoiAlign", "sampling_ratio", 'i', 0},
    {"RoiAlign", "spatial_scale", 'f', 1},
    {"ScatterElements", "axis", 'i', 0},
    {"ScatterElements", "reduction", 's', 0, "none"},
    {"ScatterND", "reduction", 's', 0, "none"},
    {"Selu", "alpha", 'f', 1.67326319217681884765625},
    {"Selu", "gamma", 'f', 1.05070102214813232421875},
    {"Shrink", "bias", 'f', 0},
    {"Shrink", "lambd", 'f', 0.5},
    {"Softmax", "axis", 'i', -1},
    {"Split", "axis", 'i', 0},
    {"ThresholdedRelu", "alpha", 'f', 1},
    {"TopK", "axis", 'i', -1},
    {"TopK", "largest", 'i', 1},
    {"TopK", "sorted", 'i', 1},
    {"Trilu", "k", 'i', 0},
    {"Trilu", "upper", 'i', 1},
    {"Unique", "sorted", 'i', 1},
};

void fill_defaults(Node& node) {
    for (const Default& row : defaults) {
        if (row.kind != node.kind && !(row.kind == "Reduce" && is_reduction(node.kind))) continue;
        if (node.has(row.attribute)) continue;
        switch (row.type) {
            case 'i':
                node.attributes[row.attribute] = static_cast<int64_t>(row.number);
                break;
            case 'f':
                node.attributes[row.attribute] = static_cast<float>(row.number);
                break;
            default:
                node.attributes[row.attribute] = std::string(row.text);
                break;
        }
    }
}

// `axis` and `axes` count from the front; the rank is that of the first data input.
Result<void> wrap_axes(const Graph& graph, Node& node) {
    if (node.inputs.empty() || node.inputs[0] == none || node.kind == "Unsqueeze") return {};
    const size_t data = node.kind == "QLinearConcat" ? 2 : 0;
    if (!has_input(node, data)) return {};
    const Type& x = input_type(graph, node, data);
    const size_t rank = x.shape.size() + (node.kind == "OneHot" ? 1 : 0);
    const auto wrap = [&](int64_t& axis) -> Result<void> {
        const int64_t wrapped = wrap_axis(axis, rank);
        // Per tensor, the axis has no meaning; the default of 1 may be outside.
        if (wrapped < 0 &&
            (node.kind.ends_with("quantizeLinear") || node.kind == "QuantizeLinear" || rank == 0)) {
            axis = 0;
            return {};
        }
        if (wrapped < 0 && !(node.kind == "Flatten" && axis == static_cast<int64_t>(rank))) {
            return bad_node(node, "has the axis " + std::to_string(axis) +
                                      ", outside of its input " + to_string(x));
        }
        if (wrapped >= 0) axis = wrapped;
        return {};
    };
    for (auto& [key, value] : node.attributes) {
        if (auto* axis = std::get_if<int64_t>(&value); axis && key == "axis") {
            if (auto ok = wrap(*axis); !ok) return ok;
        }
        if (auto* axes = std::get_if<std::vector<int64_t>>(&value); axes && key == "axes") {
            for (int64_t& axis : *axes) {
                if (auto ok = wrap(axis); !ok) return ok;
            }
            if (is_reduction(node.kind)) std::ranges::sort(*axes);
        }
    }
    return {};
}

// Attributes without meaning for inference, or whose meaning a rule has put elsewhere.
void drop_attributes(Node& node) {
    constexpr std::string_view dropped[] = {
        "allowzero",
        "auto_pad",
        "consumed_inputs",
        "is_test",
        "keep_aspect_ratio_policy",
        "momentum",
        "num_outputs",
        "noop_with_empty_axes",
        "output_shape",
        "precision",
        "saturate",
        "spatial",
        "stash_type",
        "training_mode",
    };
    std::erase_if(node.attributes, [&](const auto& entry) {
        return std::ranges::find(dropped, entry.first) != std::end(dropped);
    });
}

}  // namespace

bool has_computed_parameters(const Graph& graph, const Node& node) {
    return std::ranges::any_of(given_parameters(node), [&](const Parameter* p) {
        return !graph.value(node.inputs[p->input]).constant.has_value();
    });
}

bool has_constant_parameters(const Graph& graph, const Node& node) {
    const auto given = given_parameters(node);
    const auto constant = [&](const Parameter* p) { return is_constant(graph, node, *p); };
    return !given.empty() && std::ranges::all_of(given, constant);
}

Result<void> canonicalise(const Graph& graph, Node& node) {
    for (const ValueId id : node.inputs) {
        if (id != none && graph.value(id).type.data_type == DataType::unknown) {
            return bad_node(node, "reads '" + graph.value(id).name + "', which has no type yet");
        }
    }
    if (auto ok = check_attribute_values(node, Form::onnx); !ok) return ok;
    // A fused node is made of canonical ones; absent inputs keep their places in it.
    if (node.kind.find('+') != node.kind.npos) return {};
    const OpInfo* op = find_op(node.base());
    for (int i = 0; i < (op ? op->min_inputs : 1); ++i)
        if (!has_input(node, static_cast<size_t>(i)))
            return bad_node(node, "lacks input " + std::to_string(i));
    const bool all_known = take_parameters(graph, node);
    while (!node.inputs.empty() && node.inputs.back() == none) node.inputs.pop_back();
    if (auto ok = wrap_axes(graph, node); !ok) return ok;
    if (all_known) {
        if (auto ok = apply_rule(graph, node); !ok) return ok;
    }
    fill_defaults(node);
    if (auto ok = wrap_axes(graph, node); !ok) return ok;
    drop_attributes(node);
    return {};
}

}  // namespace vartml::graph
