// SPDX-License-Identifier: Apache-2.0
#include "lib/model/target.h"

#include <algorithm>
#include <new>
#include <utility>

#include <nlohmann/json.hpp>

#include "lib/graph/late.h"

namespace vartml::device {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

// Why a node with a supported operator is not run all the same.
using Reason = std::optional<Unsupported>;

const OperatorRule* find_rule(const Target& target, std::string_view kind) {
    const auto rule = std::ranges::lower_bound(target.operators, kind, {}, &OperatorRule::kind);
    return rule != target.operators.end() && rule->kind == kind ? &*rule : nullptr;
}

std::string list(const std::vector<std::string>& words) {
    std::string text;
    for (size_t i = 0; i < words.size(); ++i)
        text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
    return text;
}
std::string list(const std::vector<int64_t>& numbers) {
    std::vector<std::string> words;
    for (const int64_t n : numbers) words.push_back(std::to_string(n));
    return list(words);
}

Unsupported bad_attribute(const std::string& key, const std::string& value,
                          const std::string& accepted) {
    return {"unsupported-attribute", key + " is " + value + ", supported: " + accepted};
}

bool contains(std::string_view classes, DataType type) {
    return classes.find(type_class(type)) != std::string_view::npos;
}

// "float32, float16, bfloat16, int8 and uint8": types of the classes that the device has.
std::string accepted_types(const Target& target, const OperatorRule& rule) {
    std::vector<std::string> names;
    for (const DataType type : target.types)
        if (contains(rule.types, type)) names.emplace_back(to_string(type));
    return list(names);
}

Reason check_value(const Target& target, const OperatorRule& rule, const Value& value) {
    const std::string what = "tensor '" + value.name + "' ";
    if (value.data_dependent)
        return Unsupported{"data-dependent-shape", what + "has a shape known only at run time"};
    if (value.type.shape.size() > target.max_rank)
        return Unsupported{"unsupported-rank",
                           what + "has " + std::to_string(value.type.shape.size()) +
                               " dimensions, at most " + std::to_string(target.max_rank) +
                               " are supported"};
    const DataType type = value.type.data_type;
    if (!contains(rule.types, type) || std::ranges::find(target.types, type) == target.types.end())
        return Unsupported{"unsupported-type", what + "is " + std::string(to_string(type)) + ", " +
                                                   rule.kind + " takes " +
                                                   accepted_types(target, rule)};
    if (!rule.only.empty() && type_class(type) == 'f' && type != DataType::float32)
        return bad_attribute("the type of tensor '" + value.name + '\'',
                             std::string(to_string(type)), rule.only);
    return std::nullopt;
}

Reason check_values(const Target& target, const OperatorRule& rule, const Graph& graph,
                    const Node& node) {
    for (const auto* ids : {&node.inputs, &node.outputs})
        for (const graph::ValueId id : *ids) {
            if (id == graph::none) continue;
            if (auto reason = check_value(target, rule, graph.value(id))) return reason;
        }
    return std::nullopt;
}

Reason check_shape(const OperatorRule& rule, const Graph& graph, const Node& node) {
    if (node.inputs.empty() || node.inputs[0] == graph::none) return std::nullopt;
    const auto rank = static_cast<int64_t>(graph.value(node.inputs[0]).type.shape.size());
    if (!rule.ranks.empty() && std::ranges::find(rule.ranks, rank) == rule.ranks.end())
        return bad_attribute("the number of dimensions", std::to_string(rank), list(rule.ranks));
    if (!rule.spatial.empty() && std::ranges::find(rule.spatial, rank - 2) == rule.spatial.end())
        return bad_attribute("the number of spatial dimensions", std::to_string(rank - 2),
                             list(rule.spatial));
    return std::nullopt;
}

Reason check_attributes(const OperatorRule& rule, const Node& node) {
    for (const auto& [key, accepted] : rule.attributes) {
        const std::string value = node.get(key, accepted[0].c_str());
        if (std::ranges::find(accepted, value) == accepted.end())
            return bad_attribute(key, value, list(accepted));
    }
    for (const std::string& key : rule.fixed)
        if (!node.has(key))
            return Unsupported{"dynamic-shape", "its " + key + " are known only at run time"};
    if (rule.foldable_only)
        return Unsupported{"unsupported-attribute",
                           "its inputs are known only at run time, supported: constants"};
    return std::nullopt;
}

}  // namespace

char type_class(DataType type) {
    switch (type) {
        case DataType::float32:
        case DataType::fp16:
        case DataType::bf16:
            return 'f';
        case DataType::int8:
        case DataType::uint8:
            return 'q';
        case DataType::int16:
        case DataType::int32:
        case DataType::int64:
            return 'i';
        case DataType::uint16:
        case DataType::uint32:
        case DataType::uint64:
            return 'u';
        case DataType::boolean:
            return 'b';
        default:
            return '?';
    }
}

const Target* find_target(std::string_view device) {
    const auto targets = all_targets();
    const auto found = std::ranges::find(targets, device, &Target::device);
    return found == targets.end() ? nullptr : &*found;
}

std::vector<std::string_view> target_names() {
    std::vector<std::string_view> names;
    for (const Target& target : all_targets()) names.push_back(target.device);
    return names;
}

bool runs_operator(const Target& target, std::string_view kind) {
    return find_rule(target, kind) != nullptr;
}

static Unsupported why_late(const Target& target, const Graph& graph, const Node& node) {
    if (!find_rule(target, graph::op_type(node)))
        return {"unsupported-operator", "not implemented on the NPU"};
    for (const graph::ValueId id : node.inputs)
        if (id != graph::none && graph.value(id).data_dependent)
            return {"data-dependent-shape", "tensor '" + graph.value(id).name +
                                                "' has a shape that is known only at run time"};
    for (size_t i = 1; i < node.inputs.size(); ++i)
        if (node.inputs[i] != graph::none && !graph.value(node.inputs[i]).constant)
            return {"dynamic-shape", "its parameter '" + graph.value(node.inputs[i]).name +
                                         "' is known only at run time"};
    return {"dynamic-shape", "its shape is known only at run time"};
}

std::optional<Unsupported> why_unsupported(const Target& target, const Graph& graph,
                                           const Node& node) {
    if (graph::is_late(node)) return why_late(target, graph, node);
    for (const std::string_view part : node.kinds())
        if (!find_rule(target, part))
            return Unsupported{"unsupported-operator", "not implemented on the NPU"};
    const OperatorRule& rule = *find_rule(target, node.kind);
    if (auto reason = check_values(target, rule, graph, node)) return reason;
    if (auto reason = check_shape(rule, graph, node)) return reason;
    return check_attributes(rule, node);
}

// From the data files to targets.
namespace {

using Json = nlohmann::json;

struct TypeName {
    std::string_view name;
    DataType type;
};
constexpr TypeName type_names[] = {
    {"bfloat16", DataType::bf16},   {"bool", DataType::boolean},  {"float16", DataType::fp16},
    {"float32", DataType::float32}, {"int16", DataType::int16},   {"int32", DataType::int32},
    {"int64", DataType::int64},     {"int8", DataType::int8},     {"uint16", DataType::uint16},
    {"uint32", DataType::uint32},   {"uint64", DataType::uint64}, {"uint8", DataType::uint8},
};

DataType find_type(std::string_view name) {
    const auto row = std::ranges::find(type_names, name, &TypeName::name);
    return row == std::end(type_names) ? DataType::unknown : row->type;
}

OperatorRule read_rule(const Json& json) {
    OperatorRule rule;
    rule.kind = json.at("kind").get<std::string>();
    rule.types = json.at("types").get<std::string>();
    rule.spatial = json.value("spatial", rule.spatial);
    rule.ranks = json.value("ranks", rule.ranks);
    rule.fixed = json.value("fixed", rule.fixed);
    rule.attributes = json.value("attributes", rule.attributes);
    rule.only = json.value("only", rule.only);
    rule.foldable_only = json.value("foldable_only", false);
    return rule;
}

Target read_target(const Json& json, const std::map<std::string, std::string_view>& operators) {
    Target t;
    const auto text = [&](const char* key) { return json.at(key).get<std::string>(); };
    const auto number = [&]<typename T>(const char* key, T& into) { into = json.at(key).get<T>(); };
    t.device = text("device");
    t.title = text("title");
    t.program = text("program");
    number("columns", t.columns);
    number("footprint", t.footprint);
    number("max_rank", t.max_rank);
    number("memory_bytes", t.memory_bytes);
    number("on_chip_bytes", t.on_chip_bytes);
    number("bandwidth_bytes_per_second", t.bandwidth_bytes_per_second);
    number("clock_hz", t.clock_hz);
    number("macs_per_cycle", t.macs_per_cycle);
    number("elements_per_cycle", t.elements_per_cycle);
    number("bytes_per_cycle", t.bytes_per_cycle);
    for (const auto& name : json.at("types")) t.types.push_back(find_type(name.get<std::string>()));
    for (const auto& name : json.at("layouts"))
        t.layouts.push_back(parse_layout(name.get<std::string>()).value_or(Layout::unknown));
    number("sources", t.sources);
    number("assumptions", t.assumptions);
    const Json list = Json::parse(operators.at(text("operators")));
    for (const Json& rule : list.at("operators")) t.operators.push_back(read_rule(rule));
    std::ranges::sort(t.operators, {}, &OperatorRule::kind);
    return t;
}

std::vector<Target> read_all() {
    std::map<std::string, std::string_view> files;
    for (const EmbeddedFile& file : target_files()) files.emplace(file.name, file.text);
    std::vector<Target> targets;
    for (const auto& [name, text] : files) {
        if (name == "operators") continue;
        if (auto target = parse_target(text, files)) targets.push_back(std::move(*target));
    }
    std::ranges::stable_partition(targets, [](const Target& t) { return t.device == "softnpu"; });
    return targets;
}

}  // namespace

Result<Target> parse_target(std::string_view text,
                            const std::map<std::string, std::string_view>& operators) {
    try {
        return read_target(Json::parse(text), operators);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& e) {
        return Error{ErrorCode::bad_model, std::string("a target file is wrong: ") + e.what()};
    }
}

std::span<const Target> all_targets() {
    static const std::vector<Target> targets = read_all();
    return targets;
}

}  // namespace vartml::device
