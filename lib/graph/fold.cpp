// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/fold.h"

#include <algorithm>

#include "lib/graph/attribute_values.h"
#include "lib/graph/canonical.h"
#include "lib/graph/kernel.h"
#include "lib/graph/late.h"
#include "lib/graph/ops.h"

namespace vartml::cpu {

namespace {

using graph::Constant;
using graph::Graph;
using graph::Node;
using graph::ValueId;

// Of one constant, and of all of a graph where one of `large_bytes` comes on top.
constexpr size_t max_folded_bytes = size_t{64} << 20, max_constant_bytes = size_t{1} << 30,
                 large_bytes = size_t{1} << 20;

size_t constant_bytes(const Graph& graph) {
    size_t bytes = 0;
    for (const graph::Value& value : graph.values)
        if (value.constant) bytes += value.constant->bytes.size();
    return bytes;
}

bool can_fold(const Node& node) {
    // The quantised operators need the weights as they are.
    return node.kind != "DequantizeLinear" && find_kernel(node.kind);
}

// Kernels only read through it.
std::byte* memory_of(const Constant& constant) {
    static std::byte nothing;
    return constant.bytes.empty() ? &nothing : const_cast<std::byte*>(constant.bytes.data());
}

}  // namespace

Result<std::vector<Constant>> evaluate(const Graph& graph, const Node& node,
                                       std::vector<std::vector<int64_t>>* shapes) {
    std::vector<Array> inputs, outputs;
    for (const ValueId id : node.inputs) {
        Array& array = inputs.emplace_back();
        if (id == graph::none) continue;
        const graph::Value& value = graph.value(id);
        array = {value.type.data_type, Shape(value.type.shape), nullptr};
        if (value.constant) array.data = memory_of(*value.constant);
    }
    std::vector<std::vector<std::byte>> memory;
    memory.reserve(node.outputs.size());
    for (const ValueId id : node.outputs) {
        Array& array = outputs.emplace_back();
        std::vector<std::byte>& bytes = memory.emplace_back();
        if (id == graph::none) continue;
        const graph::Type& type = graph.value(id).type;
        bytes.resize(std::max<size_t>(type.size_bytes(), 1));
        array = {type.data_type, Shape(type.shape), bytes.data()};
    }
    if (auto ok = run({node, inputs, outputs}); !ok) return ok.error();
    std::vector<Constant> constants;
    for (size_t i = 0; i < outputs.size(); ++i) {
        memory[i].resize(outputs[i].data ? outputs[i].size_bytes() : 0);
        constants.push_back(graph::make_constant(std::move(memory[i])));
        if (shapes) shapes->emplace_back(outputs[i].shape.begin(), outputs[i].shape.end());
    }
    return constants;
}

Result<bool> fold_node(Graph& graph, const Node& node) {
    if (!can_fold(node)) return false;
    const bool of_shape = node.kind == "Shape" || node.kind == "Size";
    size_t bytes_read = 0, bytes_written = 0;
    for (const ValueId id : node.inputs) {
        if (id == graph::none) continue;
        const graph::Value& value = graph.value(id);
        if (of_shape ? value.data_dependent : !value.constant) return false;
        if (value.constant) bytes_read += value.constant->bytes.size();
    }
    for (const ValueId id : node.outputs) {
        if (id != graph::none) bytes_written += graph.value(id).type.size_bytes();
    }
    if (bytes_written > std::max(bytes_read, large_bytes) &&
        (bytes_written > max_folded_bytes ||
         bytes_written + constant_bytes(graph) > max_constant_bytes))
        return false;
    std::vector<std::vector<int64_t>> shapes;
    auto constants = evaluate(graph, node, &shapes);
    // A type that no kernel knows is no fault of the model.
    if (!constants && constants.error().code == ErrorCode::unsupported) return false;
    if (!constants) return constants.error();
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] == graph::none) continue;
        graph::Value& value = graph.value(node.outputs[i]);
        value.constant = std::move((*constants)[i]);
        value.data_dependent = false;
        if (i < shapes.size()) value.type.shape = shapes[i];
    }
    return true;
}

Result<Appended> append_node(Graph& graph, Node node,
                             std::span<const std::optional<graph::Type>> declared) {
    // Not only when it runs: a late node is settled then.
    if (auto ok = graph::check_attribute_values(node, graph::Form::onnx); !ok) return ok.error();
    const bool late = graph::must_be_late(graph, node);
    if (!late) {
        if (auto ok = graph::canonicalise(graph, node); !ok) return ok.error();
    }
    auto types = late ? graph::bound_types(graph, node, declared) : graph::infer_types(graph, node);
    if (!types) return types.error();
    if (late) graph::make_late(node);
    if (auto ok = graph::check_integers(node); !ok) return ok.error();
    const bool data_dependent = graph::has_data_dependent_shape(graph, node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] == graph::none) continue;
        graph.value(node.outputs[i]).type = (*types)[i];
        graph.value(node.outputs[i]).data_dependent = data_dependent;
    }
    auto folded = fold_node(graph, node);
    if (!folded) return folded.error();
    if (!*folded) graph.nodes.push_back(std::move(node));
    return *folded ? Appended::folded : Appended::node;
}

}  // namespace vartml::cpu
