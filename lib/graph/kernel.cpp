// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/kernel.h"

#include <new>
#include <vector>

#include "lib/graph/late.h"
#include "lib/graph/ops.h"

namespace vartml::cpu {
namespace {

Error no_kernel(const Call& call, std::string_view kind) {
    return {ErrorCode::unsupported, "node '" + call.node.name + "' uses " + std::string(kind) +
                                        ", which the CPU partition does not run"};
}

Result<void> run_fused(const Call& call) {
    size_t operands = 0;
    for (const graph::Operation& part : call.node.fused) {
        const graph::OpInfo* op = graph::find_op(part.kind);
        if (!op) return no_kernel(call, part.kind);
        operands += static_cast<size_t>(op->min_inputs) - 1;
    }
    size_t next = call.inputs.size() - operands;
    graph::Node node = call.node;
    node.fused.clear();
    const Kernel first = find_kernel(node.kind);
    if (!first) return no_kernel(call, node.kind);
    if (auto ok = first({node, call.inputs.first(next), call.outputs}); !ok) return ok;
    for (const graph::Operation& part : call.node.fused) {
        const Kernel kernel = find_kernel(part.kind);
        if (!kernel) return no_kernel(call, part.kind);
        static_cast<graph::Operation&>(node) = part;
        std::vector<Array> inputs = {call.outputs[0]};
        const int more = graph::find_op(part.kind)->min_inputs - 1;
        for (int k = 0; k < more; ++k) inputs.push_back(call.inputs[next++]);
        if (auto ok = kernel({node, inputs, call.outputs}); !ok) return ok;
    }
    return {};
}

}  // namespace

Kernel find_kernel(std::string_view kind) {
    const graph::OpInfo* op = graph::find_op(kind);
    return op ? op->kernel : nullptr;
}

Result<void> run(const Call& call) {
    try {
        if (!call.node.fused.empty()) return run_fused(call);
        const Kernel kernel = find_kernel(call.node.kind);
        return kernel ? kernel(call) : no_kernel(call, call.node.kind);
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory,
                     "node '" + call.node.name + "' (" + call.node.type() + ") has no memory"};
    }
}

Error bad_data(const Call& call, const std::string& sentence) {
    return {ErrorCode::bad_model,
            "node '" + call.node.name + "' (" + graph::op_type(call.node) + ") " + sentence};
}

Error no_type(const Call& call, DataType type) {
    return {ErrorCode::unsupported, "node '" + call.node.name + "' (" + call.node.kind +
                                        ") has no implementation for elements of type " +
                                        std::string(graph::short_name(type))};
}

}  // namespace vartml::cpu
