// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/builder.h"

#include <algorithm>

#include "lib/base/text.h"
#include "lib/graph/fold.h"
#include "lib/graph/late.h"
#include "lib/graph/onnxruntime.h"
#include "lib/graph/ops.h"

namespace vartml::onnx {
namespace {

std::string clean(std::string_view name) {
    if (is_clean_name(name)) return std::string(name);
    std::string out;
    for (const char c : name) out += c > 0x20 && c < 0x7f ? c : '_';
    return out;
}

}  // namespace

bool is_clean_name(std::string_view name) {
    return name.size() <= 4096 && is_plain_text(name);
}

std::string Builder::unique(std::unordered_set<std::string>& taken, std::string_view stem) {
    const std::string base = stem.empty() ? "unnamed" : clean(stem.substr(0, 4000));
    std::string name = base;
    for (int i = 1; !taken.insert(name).second; ++i) name = base + '_' + std::to_string(i);
    return name;
}

void Builder::begin_node(const std::string& name) {
    node_ = unique_node_name(name);
    node_name_used_ = false;
}

void Builder::fail(ErrorCode code, std::string_view text) {
    if (!error_)
        error_ =
            Error{code, file_ + ": node '" + node_ + "' " + printable(text, std::string::npos)};
}

void Builder::fail(const Error& error) {
    if (!error_) error_ = Error{error.code, file_ + ": " + error.message};
}

void Builder::warn(std::string_view text) {
    warnings.push_back(file_ + ": node '" + node_ + "' " + std::string(text));
}

bool counts_outputs(std::string_view kind) {
    const graph::OpInfo* row = graph::find_onnx_op(kind);
    return row && row->max_outputs < 0;
}

ValueIds Builder::emit_named(std::string kind, ValueIds inputs, Attributes attributes,
                             std::string domain, const std::vector<std::string>& names) {
    if (error_) return ValueIds(names.size(), graph::none);
    graph::Node node;
    node.kind = std::move(kind);
    node.domain = std::move(domain);
    node.name = node_name_used_ ? unique_node_name(node_ + '/' + node.kind) : node_;
    node_name_used_ = true;
    node.sources = {node_};
    node.inputs = std::move(inputs);
    while (!node.inputs.empty() && node.inputs.back() == graph::none) node.inputs.pop_back();
    node.attributes = std::move(attributes);
    const bool all_count = counts_outputs(node.kind);
    for (const std::string& name : names)
        node.outputs.push_back(
            name.empty() && !all_count
                ? graph::none
                : graph.add_value(unique_value_name(name.empty() ? node.name : name), {}));
    ValueIds outputs = node.outputs;
    while (!node.outputs.empty() && node.outputs.back() == graph::none) node.outputs.pop_back();
    std::vector<std::optional<graph::Type>> bounds;
    for (const std::string& name : names) {
        const auto found = declared.find(name);
        bounds.push_back(found == declared.end() ? std::nullopt : std::optional(found->second));
    }
    const bool of_four_bits =
        (graph::has_trait(node, graph::Trait::reshapes) ||
         graph::has_trait(node, graph::Trait::permutes) ||
         graph::has_trait(node, graph::Trait::picks) ||
         graph::has_trait(node, graph::Trait::repeats) || node.kind == "Concat" ||
         node.kind == "Split" || node.kind == "Identity") &&
        std::ranges::any_of(node.inputs, [this](ValueId id) { return four_bits.contains(id); });
    auto appended = cpu::append_node(graph, node, bounds);
    if (!appended && appended.error().code == ErrorCode::unsupported &&
        graph::must_be_late(graph, node)) {
        if (auto guess = graph::guess_bound(graph, node, declared_outputs)) {
            warnings.push_back(file_ + ": node '" + node.name + "' (" + node.kind +
                               "): nothing says how large its output can be; it gets room for " +
                               to_string(*guess) +
                               ", runs that need more fail; give the tensor a shape in the model");
            bounds.assign(1, std::move(guess));
            appended = cpu::append_node(graph, std::move(node), bounds);
        }
    }
    if (!appended) fail(appended.error());
    if (!error_)
        for (ValueId& id : outputs) id = without_elements(id);
    if (of_four_bits && !error_) four_bits.insert(outputs.begin(), outputs.end());
    four_bits.erase(graph::none);
    return outputs;
}

// A tensor that never has an element is a constant, so that nobody hands it on: exporters split
// off what a model has none of.
ValueId Builder::without_elements(ValueId id) {
    if (id == graph::none) return id;
    const graph::Value value = graph.value(id);
    if (value.constant || value.data_dependent || value.type.data_type == DataType::unknown ||
        value.type.elements() != 0)
        return id;
    return constant(value.name, value.type, graph::make_constant({}));
}

ValueId Builder::emit(std::string kind, ValueIds inputs, Attributes attributes,
                      std::string domain) {
    const std::string name = node_ + '/' + kind;
    const ValueId id = emit_named(std::move(kind), std::move(inputs), std::move(attributes),
                                  std::move(domain), {name})[0];
    if (!error_) unnamed_.insert(id);
    return id;
}

void Builder::emit_foreign(const std::string& model, const ValueIds& inputs,
                           const std::vector<std::string>& names,
                           const std::vector<graph::Type>& types, bool data_dependent,
                           const std::string& why) {
    if (error_) return;
    graph::Node node;
    node.kind = std::string(graph::onnxruntime_kind);
    node.domain = "vartml";
    node.name = node_;
    node_name_used_ = true;
    node.sources = {node_};
    const auto bytes = std::as_bytes(std::span(model));
    node.inputs = {constant(node_ + "/model",
                            {DataType::uint8, {static_cast<int64_t>(bytes.size())}},
                            graph::make_constant(bytes))};
    node.inputs.insert(node.inputs.end(), inputs.begin(), inputs.end());
    graph::Strings texts;
    for (size_t i = 0; i < names.size(); ++i) {
        const ValueId id = graph.add_value(unique_value_name(names[i]), types[i]);
        graph.value(id).data_dependent = data_dependent;
        node.outputs.push_back(id);
        texts.push_back(to_string(types[i]));
    }
    node.attributes = {{"types", texts}, {"why", why}};
    if (data_dependent) node.attributes["data_dependent"] = int64_t{1};
    if (auto good = graph::infer_types(graph, node); !good)
        return fail(good.error().code, "is refused: " + good.error().message);
    for (size_t i = 0; i < names.size(); ++i) bind(names[i], node.outputs[i]);
    graph.nodes.push_back(std::move(node));
}

void Builder::go_back(Mark mark) {
    error_.reset();
    node_ = std::move(mark.node);
    if (!mark.scope.empty()) scope = std::move(mark.scope);
    for (size_t i = mark.values; i < graph.values.size(); ++i) {
        value_names_.erase(graph.values[i].name);
        unnamed_.erase(static_cast<ValueId>(i));
        four_bits.erase(static_cast<ValueId>(i));
    }
    for (size_t i = mark.nodes; i < graph.nodes.size(); ++i)
        if (graph.nodes[i].name != node_) node_names_.erase(graph.nodes[i].name);
    graph.values.resize(mark.values);
    graph.nodes.resize(mark.nodes);
    node_name_used_ = mark.node_name_used;
}

ValueId Builder::constant(std::string name, graph::Type type, graph::Constant constant) {
    return graph.add_constant(unique_value_name(name), std::move(type), std::move(constant));
}

ValueId Builder::floats(std::vector<int64_t> shape, const std::vector<float>& values) {
    return constant(node_ + "/constant", {DataType::float32, std::move(shape)},
                    graph::make_constant(std::span<const float>(values)));
}

ValueId Builder::ints(const std::vector<int64_t>& values) {
    return constant(node_ + "/constant", {DataType::int64, {static_cast<int64_t>(values.size())}},
                    graph::make_constant(std::span<const int64_t>(values)));
}

const graph::Type& Builder::type(ValueId id) const {
    static const graph::Type unknown;
    return id == graph::none ? unknown : graph.value(id).type;
}

std::optional<std::vector<int64_t>> Builder::int_values(ValueId id) const {
    if (id == graph::none || !graph.value(id).constant) return std::nullopt;
    const graph::Constant& c = *graph.value(id).constant;
    if (type(id).data_type == DataType::int64) {
        const auto v = c.as<int64_t>();
        return std::vector<int64_t>(v.begin(), v.end());
    }
    if (type(id).data_type == DataType::int32) {
        const auto v = c.as<int32_t>();
        return std::vector<int64_t>(v.begin(), v.end());
    }
    return std::nullopt;
}

std::optional<std::vector<float>> Builder::float_values(ValueId id) const {
    if (id == graph::none || !graph.value(id).constant || type(id).data_type != DataType::float32)
        return std::nullopt;
    const auto v = graph.value(id).constant->as<float>();
    return std::vector<float>(v.begin(), v.end());
}

void Builder::bind(const std::string& tensor, ValueId id) {
    if (tensor.empty() || id == graph::none) return;
    if (unnamed_.erase(id) != 0) graph.value(id).name = unique_value_name(tensor);
    scope[tensor] = id;
}

ValueId Builder::find(const std::string& tensor) const {
    const auto found = scope.find(tensor);
    return found == scope.end() ? graph::none : found->second;
}

}  // namespace vartml::onnx
