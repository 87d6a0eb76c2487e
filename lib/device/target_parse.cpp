// SPDX-License-Identifier: Apache-2.0
// From the data files to targets.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/device/target.h"
#include "lib/device/target_files.h"

namespace vartml::device {
namespace {

using Json = nlohmann::json;

struct TypeName {
    std::string_view name;
    DataType type;
};
constexpr TypeName type_names[] = {
    {"bfloat16", DataType::bf16},   {"bool", DataType::boolean}, {"float16", DataType::fp16},
    {"float32", DataType::float32}, {"int16", DataType::int16},  {"int32", DataType::int32},
    {"int64", DataType::int64},     {"int8", DataType::int8},    {"uint8", DataType::uint8},
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
    for (const TargetFile& file : target_files()) files.emplace(file.name, file.text);
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
    } catch (const std::exception& e) {
        return Error{ErrorCode::bad_model, std::string("a target file is wrong: ") + e.what()};
    }
}

std::span<const Target> all_targets() {
    static const std::vector<Target> targets = read_all();
    return targets;
}

}  // namespace vartml::device
