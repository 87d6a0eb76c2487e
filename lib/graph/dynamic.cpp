// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/dynamic.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include "lib/base/saturating.h"
#include "lib/graph/canonical.h"
#include "lib/graph/late.h"
#include "lib/graph/ops.h"

namespace vartml::cpu {
namespace {

// The node alone in a graph: its inputs are constants with the bytes of the arrays.
struct Alone {
    graph::Graph graph;
    graph::Node node;
};

Alone isolate(const Call& call) {
    Alone alone{{}, call.node};
    for (size_t i = 0; i < call.inputs.size(); ++i) {
        const Array& array = call.inputs[i];
        if (!array.data) {
            alone.node.inputs[i] = graph::none;
            continue;
        }
        graph::Type type{array.type, {array.shape.begin(), array.shape.end()}};
        const graph::Constant bytes{{array.data, array.size_bytes()}, nullptr};
        alone.node.inputs[i] = alone.graph.add_constant(std::to_string(i), std::move(type), bytes);
    }
    for (graph::ValueId& id : alone.node.outputs)
        if (id != graph::none) id = alone.graph.add_value({}, {});
    return alone;
}

Error too_large(const Call& call, const graph::Type& found, const Array& bound) {
    const graph::Type type{bound.type, {bound.shape.begin(), bound.shape.end()}};
    return bad_data(call, "makes " + to_string(found) + ", the model allows for at most " +
                              to_string(type) + "; export it with the largest shape it can have");
}

// Into memory of the size that the real inputs bound, which may exceed what the model allows for.
Result<void> run_shrinking(const Call& call, const graph::Node& node, std::span<const Array> inputs,
                           const std::vector<graph::Type>& types) {
    std::vector<std::vector<std::byte>> memory(call.outputs.size());
    std::vector<Array> outputs(call.outputs.size());
    uint64_t needed = 0;
    for (const graph::Type& type : types) needed = saturating_sum(needed, type.size_bytes());
    if (needed > tensor_limit_bytes)
        return Error{ErrorCode::out_of_memory,
                     "node '" + call.node.name + "' (" + graph::op_type(call.node) + ") needs " +
                         std::to_string(needed) + " bytes in this run, limit " +
                         std::to_string(tensor_limit_bytes)};
    for (size_t i = 0; i < outputs.size() && i < types.size(); ++i) {
        if (!call.outputs[i].data) continue;
        memory[i].resize(std::max<size_t>(types[i].size_bytes(), 1));
        outputs[i] = {types[i].data_type, Shape(types[i].shape), memory[i].data()};
    }
    if (auto ok = run({node, inputs, outputs}); !ok) return ok;
    for (size_t i = 0; i < outputs.size(); ++i) {
        Array& output = call.outputs[i];
        if (!output.data) continue;
        if (outputs[i].type != output.type || outputs[i].size_bytes() > output.size_bytes() ||
            outputs[i].shape.size() != output.shape.size()) {
            const Shape& found = outputs[i].shape;
            return too_large(call, {outputs[i].type, {found.begin(), found.end()}}, output);
        }
        output.shape = outputs[i].shape;
        std::memcpy(output.data, outputs[i].data, output.size_bytes());
    }
    return {};
}

Result<void> run_settled(const Call& call) {
    Alone alone = isolate(call);
    if (graph::is_late(alone.node)) graph::settle(alone.node);
    if (auto ok = graph::canonicalise(alone.graph, alone.node); !ok) return ok.error();
    const auto types = graph::infer_types(alone.graph, alone.node);
    if (!types) return Error{ErrorCode::bad_model, types.error().message};
    // Before the kernel has run, only a bound is known.
    const bool finds_shape = has_trait(alone.node, graph::Trait::finds_shape);
    for (size_t i = 0; i < call.outputs.size() && i < types->size(); ++i) {
        Array& output = call.outputs[i];
        if (!output.data) continue;
        const graph::Type& type = (*types)[i];
        if (finds_shape) continue;
        if (type.data_type != output.type || type.size_bytes() > output.size_bytes() ||
            type.shape.size() != output.shape.size())
            return too_large(call, type, output);
        output.shape = Shape(type.shape);
    }
    std::vector<Array> inputs;
    for (const graph::ValueId id : alone.node.inputs) {
        Array& input = inputs.emplace_back();
        if (id == graph::none) continue;
        const graph::Value& value = alone.graph.value(id);
        input = {value.type.data_type, Shape(value.type.shape),
                 const_cast<std::byte*>(value.constant->bytes.data())};
    }
    if (finds_shape) return run_shrinking(call, alone.node, inputs, *types);
    return run({alone.node, inputs, call.outputs});
}

}  // namespace

Result<void> run_dynamic(const Call& call) {
    try {
        return run_settled(call);
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory, "node '" + call.node.name + "' (" +
                                                   graph::op_type(call.node) + ") has no memory"};
    }
}

}  // namespace vartml::cpu
