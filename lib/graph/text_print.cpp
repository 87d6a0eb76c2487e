// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>

#include "lib/common/sha256.h"
#include "lib/graph/numbers.h"
#include "lib/graph/text.h"
#include "lib/graph/text_rules.h"

namespace vartml::graph {

namespace {

// Shortest text that reads back as the same number; a float always has a point, an exponent or a
// name (inf, nan).
template <typename T>
std::string number_text(T number) {
    char buffer[32];
    const auto end = std::to_chars(std::begin(buffer), std::end(buffer), number).ptr;
    std::string text(buffer, end);
    if constexpr (std::is_floating_point_v<T>) {
        if (text.find_first_of(".einf") == text.npos) text += ".0";
    }
    return text;
}

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        if (c == '\n')
            result += "\\n";
        else
            result += c;
    }
    return result + '"';
}

std::string name_text(std::string_view name) {
    return !name.empty() && std::ranges::all_of(name, is_name_character) ? std::string(name)
                                                                         : quoted(name);
}

std::string attribute_text(const Attribute& value) {
    const auto list = [](const auto& items, auto text_of) {
        std::string text = "[";
        for (const auto& item : items) {
            if (text.size() > 1) text += ',';
            text += text_of(item);
        }
        return text + ']';
    };
    struct Visitor {
        decltype(list)& list_of;
        std::string operator()(int64_t v) const { return number_text(v); }
        std::string operator()(float v) const { return number_text(v); }
        std::string operator()(const std::string& v) const { return quoted(v); }
        std::string operator()(const std::vector<int64_t>& v) const {
            return list_of(v, number_text<int64_t>);
        }
        // The letter keeps an empty list apart from one of integers.
        std::string operator()(const std::vector<float>& v) const {
            return 'f' + list_of(v, number_text<float>);
        }
        std::string operator()(const std::vector<std::string>& v) const {
            return 's' + list_of(v, quoted);
        }
    };
    return std::visit(Visitor{list}, value);
}

std::string constant_text(const Value& value) {
    const Constant& constant = *value.constant;
    const DataType type = value.type.data_type;
    const auto elements = static_cast<size_t>(value.type.elements());
    if (elements > max_listed_elements || !is_listable(value))
        return '#' + to_hex(sha256(constant.bytes));
    std::string text = "{";
    const auto add = [&](const auto& numbers) {
        for (const auto number : numbers) {
            if (text.size() > 1) text += ", ";
            text += number_text(number);
        }
    };
    if (is_integral(type))
        add(read_numbers<int64_t>(value));
    else if (type == DataType::float64)
        add(read_numbers<double>(value));
    else
        add(read_numbers<float>(value));
    return text + '}';
}

std::string value_ref(const Graph& graph, ValueId id) {
    return id == none ? "_" : '%' + name_text(graph.value(id).name);
}

std::string list_text(const Graph& graph, const std::vector<ValueId>& ids) {
    std::string text;
    for (const ValueId id : ids) {
        if (!text.empty()) text += ", ";
        text += value_ref(graph, id);
    }
    return text;
}

std::string node_text(const Graph& graph, const Node& node) {
    std::string text = list_text(graph, node.outputs) + " = ";
    if (!node.domain.empty()) text += node.domain + "::";
    text += node.kind;
    if (!node.inputs.empty()) text += ' ' + list_text(graph, node.inputs);
    if (!node.attributes.empty()) text += " {" + print(node.attributes) + '}';
    text += " : ";
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (i) text += ", ";
        const ValueId id = node.outputs[i];
        text += id == none ? "_" : to_string(graph.value(id).type);
        if (id != none && graph.value(id).data_dependent) text += '?';
    }
    const bool own_name = node.name != default_node_name(graph, node);
    const bool own_sources = node.sources != std::vector<std::string>{node.name};
    if (own_name || own_sources) text += " @" + name_text(node.name);
    if (own_sources) {
        text += " from";
        for (size_t i = 0; i < node.sources.size(); ++i)
            text += (i ? ", " : " ") + quoted(node.sources[i]);
    }
    return text;
}

}  // namespace

std::string default_node_name(const Graph& graph, const Node& node) {
    for (const ValueId id : node.outputs) {
        if (id != none) return graph.value(id).name;
    }
    return {};
}

// Whether listing the numbers gives the same bytes back: no NaN with a payload, no bool but 0
// and 1.
bool is_listable(const Value& value) {
    const Constant& constant = *value.constant;
    if (value.type.data_type == DataType::uint64) return false;
    if (value.type.data_type == DataType::boolean) {
        return std::ranges::all_of(constant.bytes, [](std::byte b) { return b <= std::byte{1}; });
    }
    if (is_integral(value.type.data_type)) return true;
    const auto numbers = read_numbers<double>(value);
    return std::ranges::none_of(numbers, [](double v) { return std::isnan(v); });
}

std::string print(const Attributes& attributes) {
    std::string text;
    for (const auto& [key, value] : attributes)
        text += (text.empty() ? "" : ", ") + key + '=' + attribute_text(value);
    return text;
}

std::string print(const Graph& graph) {
    std::string text = "graph " + name_text(graph.name) + '\n';
    for (const ValueId id : graph.inputs) {
        const Value& value = graph.value(id);
        text += "input " + value_ref(graph, id) + " : " + to_string(value.type) +
                (value.data_dependent ? "?" : "") + '\n';
    }
    for (size_t i = 0; i < graph.values.size(); ++i) {
        const Value& value = graph.values[i];
        if (!value.constant) continue;
        text += "const " + value_ref(graph, static_cast<ValueId>(i)) + " : " +
                to_string(value.type) + " = " + constant_text(value) + '\n';
    }
    for (const Node& node : graph.nodes) text += node_text(graph, node) + '\n';
    for (const ValueId id : graph.outputs) text += "output " + value_ref(graph, id) + '\n';
    return text;
}

}  // namespace vartml::graph
