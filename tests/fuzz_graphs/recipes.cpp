// SPDX-License-Identifier: Apache-2.0
// Nodes of any operator: by its row of the table and ONNX's schema, or by a recipe of its own.
#include <algorithm>
#include <set>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/defs/schema.h>
#pragma GCC diagnostic pop

#include "tests/fuzz_graphs/draft.h"

namespace vartml::fuzz_graphs {
namespace {

using graph::AttributeRule;

// Operators whose operand must be in a range, which a new input of that range or a Sigmoid gives.
struct Domain {
    std::string_view kind;
    double low, high;
    bool takes_sigmoid;
};
constexpr Domain domains[] = {
    {"Acos", -1, 1, true},       {"Acosh", 1, 4, false},         {"Asin", -1, 1, true},
    {"Atanh", -0.9, 0.9, false}, {"Log", 0.1, 4, false},         {"Reciprocal", 0.2, 3, true},
    {"Sqrt", 0, 4, true},        {"ReduceLogSum", 0.1, 3, true}, {"Tan", -1, 1, true},
};

Types types_of(const ::onnx::OpSchema::FormalParameter& formal) {
    static const std::map<std::string, DataType> names = {
        {"tensor(float)", DataType::float32}, {"tensor(float16)", DataType::fp16},
        {"tensor(int8)", DataType::int8},     {"tensor(uint8)", DataType::uint8},
        {"tensor(int16)", DataType::int16},   {"tensor(uint16)", DataType::uint16},
        {"tensor(int32)", DataType::int32},   {"tensor(uint32)", DataType::uint32},
        {"tensor(int64)", DataType::int64},   {"tensor(bool)", DataType::boolean}};
    Types types;
    for (const auto& type : formal.GetTypes())
        if (const auto found = names.find(*type); found != names.end())
            types.push_back(found->second);
    return types;
}

std::vector<std::string> split(std::string_view list) {
    std::vector<std::string> words;
    while (!list.empty()) {
        const std::string_view word = list.substr(0, list.find('|'));
        words.emplace_back(word);
        list.remove_prefix(std::min(word.size() + 1, list.size()));
    }
    return words;
}

// Of a row: each that is optional in one of two nodes.
bool add_attributes(Draft& d, Request& request, const graph::OpInfo& op,
                    const ::onnx::OpSchema& schema, int64_t rank) {
    for (const AttributeRule& rule : graph::attribute_rules(op)) {
        const std::string name(rule.name);
        if (!schema.attributes().contains(name) || rule.input >= 0) continue;
        if (name == "axis" && rank == 0) return false;
        if (!rule.is_required && d.random.chance(0.5)) continue;
        if (rule.kind == "i" && name == "axis") {
            request.attributes.emplace_back(name, d.random.between(-rank, rank - 1));
        } else if (rule.kind == "i" && name == "p") {
            request.attributes.emplace_back(name, d.random.between(1, 2));
        } else if (rule.kind == "i") {
            request.attributes.emplace_back(name, d.random.between(0, 1));
        } else if (rule.kind == "f") {
            request.attributes.emplace_back(name, static_cast<float>(d.random.real(0.1, 1.5)));
        } else if (rule.kind == "s" && !rule.choices.empty()) {
            request.attributes.emplace_back(name, d.random.pick(split(rule.choices)));
        } else if (rule.is_required) {
            return false;
        }
    }
    return true;
}

bool add_by_table(Draft& d, const std::string& kind) {
    const auto* schema = ::onnx::OpSchemaRegistry::Schema(kind, d.opset, "");
    const graph::OpInfo* op = graph::find_onnx_op(kind);
    if (!schema || schema->Deprecated() || !op) return false;
    Request request{kind, {}};
    request.outputs = static_cast<size_t>(op->min_outputs);
    std::map<std::string, DataType> bound;
    const Tensor* first = nullptr;
    for (const auto& formal : schema->inputs()) {
        const bool is_variadic = formal.GetOption() == ::onnx::OpSchema::Variadic;
        if (formal.GetOption() == ::onnx::OpSchema::Optional && d.random.chance(0.5)) break;
        const int64_t count = is_variadic ? d.random.between(1, 4) : 1;
        for (int64_t i = 0; i < count; ++i) {
            const auto type = bound.find(formal.GetTypeStr());
            Types types = type != bound.end() ? Types{type->second} : types_of(formal);
            if (types.empty()) return false;
            const Tensor* tensor = nullptr;
            if (!first) {
                tensor = first = &d.operand(types, 0, 5);
            } else {
                tensor = &d.partner(d.random.pick(types), first->shape());
            }
            bound.emplace(formal.GetTypeStr(), tensor->type());
            request.inputs.push_back(tensor->name);
        }
    }
    if (!first || !add_attributes(d, request, *op, *schema, first->rank())) return false;
    // Either order of operands.
    if (schema->inputs().size() == 2 &&
        schema->inputs()[0].GetTypeStr() == schema->inputs()[1].GetTypeStr() && kind != "PRelu" &&
        d.random.chance(0.3))
        std::swap(request.inputs[0], request.inputs[1]);
    return d.one(request) != nullptr;
}

bool add_in_domain(Draft& d, const Domain& domain) {
    const std::string kind(domain.kind);
    const Tensor* x = nullptr;
    if (domain.takes_sigmoid && d.random.chance(0.7))
        x = d.one({"Sigmoid", {d.operand(f32, 0, 5).name}});
    else
        x = &d.input(DataType::float32, d.shape(0, 5), domain.low, domain.high);
    return x && d.one({kind, {x->name}});
}

std::vector<Recipe> all_recipes() {
    std::vector<Recipe> recipes;
    for (const auto& part : {picture_recipes(), shape_recipes(), number_recipes(), code_recipes()})
        recipes.insert(recipes.end(), part.begin(), part.end());
    return recipes;
}

}  // namespace

std::vector<std::string> drafted_operators() {
    std::vector<std::string> operators;
    const auto recipes = all_recipes();
    for (const graph::OpInfo& op : graph::all_ops()) {
        const std::string kind(op.kind);
        const auto* schema = ::onnx::OpSchemaRegistry::Schema(kind, 22, "");
        const bool has_recipe = std::ranges::find(recipes, op.kind, &Recipe::kind) != recipes.end();
        if (schema || has_recipe) operators.push_back(kind);
    }
    return operators;
}

bool add_operator(Draft& draft, const std::string& kind) {
    static const std::vector<Recipe> recipes = all_recipes();
    if (const auto own = std::ranges::find(recipes, kind, &Recipe::kind); own != recipes.end())
        return own->add(draft, kind);
    if (const auto domain = std::ranges::find(domains, kind, &Domain::kind);
        domain != std::end(domains))
        return add_in_domain(draft, *domain);
    return add_by_table(draft, kind);
}

}  // namespace vartml::fuzz_graphs
