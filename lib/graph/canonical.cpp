// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/canonical.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <ranges>

#include "lib/graph/attribute_values.h"
#include "lib/graph/canonical_rules.h"
#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"

namespace vartml::graph {

namespace {

// An input that becomes an attribute when it is constant.
using Parameter = AttributeRule;

void take_parameter(const Value& value, const Parameter& parameter, Node& node) {
    const auto set = [&](Attribute attribute) {
        node.attributes.insert_or_assign(std::string(parameter.name), std::move(attribute));
    };
    const bool is_list = parameter.kind.ends_with('s');
    if (parameter.kind.starts_with('i')) {
        const auto ints = read_numbers<int64_t>(value);
        // Exporters write an empty tensor for an input that they leave out.
        if (is_list && (!ints.empty() || parameter.name != "sizes")) set(ints);
        if (!is_list && !ints.empty()) set(ints[0]);
    } else {
        const auto floats = read_numbers<float>(value);
        if (!floats.empty()) is_list ? set(floats) : set(floats[0]);
    }
}

// The parameter inputs of the operator, in their order.
std::vector<Parameter> parameters_of(const Node& node) {
    std::vector<Parameter> parameters;
    // Where the depth of a OneHot was is now what it stood in front of.
    const OpInfo* op =
        node.kind == "OneHot" && node.inputs.size() < 3 ? nullptr : find_onnx_op(node.kind);
    if (op) parameters = attribute_rules(*op);
    std::erase_if(parameters, [](const Parameter& p) { return p.input < 0; });
    std::ranges::sort(parameters, {}, &Parameter::input);
    return parameters;
}

size_t input_of(const Parameter& parameter) {
    return static_cast<size_t>(parameter.input);
}

// Those that the node has.
std::vector<Parameter> given_parameters(const Node& node) {
    std::vector<Parameter> given = parameters_of(node);
    std::erase_if(given, [&](const Parameter& p) { return !has_input(node, input_of(p)); });
    return given;
}

bool is_constant(const Graph& graph, const Node& node, const Parameter& parameter) {
    const Value& value = graph.value(node.inputs[input_of(parameter)]);
    return value.constant && (node.kind != "Clip" || survives_float(value));
}

// Makes attributes of the parameter inputs, when all that are given are constant. Returns whether
// none is left.
bool take_parameters(const Graph& graph, Node& node) {
    const auto given = given_parameters(node);
    const auto constant = [&](const Parameter& p) { return is_constant(graph, node, p); };
    if (!std::ranges::all_of(given, constant)) return false;
    for (const Parameter& parameter : given)
        take_parameter(graph.value(node.inputs[input_of(parameter)]), parameter, node);
    // From the back, so that the indices stay right; an absent parameter leaves its place, too.
    const auto all = parameters_of(node);
    for (const Parameter& parameter : std::views::reverse(all)) {
        if (input_of(parameter) < node.inputs.size())
            node.inputs.erase(node.inputs.begin() + parameter.input);
    }
    return true;
}

// A default as a row writes it.
Attribute read_default(const AttributeRule& rule) {
    if (rule.kind == "s") return std::string(rule.fallback);
    double number = 0;
    std::from_chars(rule.fallback.data(), rule.fallback.data() + rule.fallback.size(), number);
    if (rule.kind == "i") return static_cast<int64_t>(number);
    return static_cast<float>(number);
}

void fill_defaults(Node& node) {
    const OpInfo* op = find_op(node.kind);
    if (!op) return;
    for (const AttributeRule& rule : attribute_rules(*op)) {
        if (!rule.fallback.empty() && !node.has(rule.name))
            node.attributes.emplace(rule.name, read_default(rule));
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
        if (wrapped < 0 && (has_trait(node, Trait::coding) || rank == 0)) {
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
            if (has_trait(node, Trait::reduces)) std::ranges::sort(*axes);
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

// At the ends of the range of a 64-bit type a float clamps.
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

Result<void> check_integers(const Node& node) {
    using Limits = std::numeric_limits<int32_t>;
    for (const auto& [key, value] : node.attributes) {
        std::vector<int64_t> numbers;
        if (const auto* number = std::get_if<int64_t>(&value)) numbers = {*number};
        if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) numbers = *list;
        for (const int64_t number : numbers) {
            if (number < Limits::min() || number > Limits::max()) {
                return bad_node(node, "has the attribute '" + key + "' with the number " +
                                          std::to_string(number) + ", expected " +
                                          std::to_string(Limits::min()) + " to " +
                                          std::to_string(Limits::max()));
            }
        }
    }
    return {};
}

bool has_computed_parameters(const Graph& graph, const Node& node) {
    return std::ranges::any_of(given_parameters(node), [&](const Parameter& p) {
        return !graph.value(node.inputs[input_of(p)]).constant.has_value();
    });
}

bool has_constant_parameters(const Graph& graph, const Node& node) {
    const auto given = given_parameters(node);
    const auto constant = [&](const Parameter& p) { return is_constant(graph, node, p); };
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
    if (!node.fused.empty()) return {};
    const OpInfo* op = find_op(node.kind);
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
