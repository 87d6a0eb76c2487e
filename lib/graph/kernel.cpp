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

// Attributes of one part of a fused kind, without the part's name in front.
graph::Attributes attributes_of(const graph::Node& node, std::string_view part, bool is_base) {
    graph::Attributes attributes;
    for (const auto& [key, value] : node.attributes) {
        const size_t dot = key.find('.');
        if (is_base && dot == key.npos) attributes[key] = value;
        if (!is_base && dot != key.npos && std::string_view(key).substr(0, dot) == part)
            attributes[key.substr(dot + 1)] = value;
    }
    return attributes;
}

Result<void> run_fused(const Call& call, const std::vector<std::string_view>& parts) {
    size_t operands = 0;
    for (size_t i = 1; i < parts.size(); ++i) {
        const graph::OpInfo* op = graph::find_op(parts[i]);
        if (!op) return no_kernel(call, parts[i]);
        operands += static_cast<size_t>(op->min_inputs) - 1;
    }
    size_t next = call.inputs.size() - operands;
    for (size_t i = 0; i < parts.size(); ++i) {
        const Kernel kernel = find_kernel(parts[i]);
        if (!kernel) return no_kernel(call, parts[i]);
        graph::Node node = call.node;
        node.kind = std::string(parts[i]);
        node.attributes = attributes_of(call.node, parts[i], i == 0);
        std::vector<Array> inputs;
        if (i == 0) {
            inputs.assign(call.inputs.begin(), call.inputs.begin() + static_cast<ptrdiff_t>(next));
        } else {
            inputs.push_back(call.outputs[0]);
            const int more = graph::find_op(parts[i])->min_inputs - 1;
            for (int k = 0; k < more; ++k) inputs.push_back(call.inputs[next++]);
        }
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
        if (call.node.kind.find('+') != std::string::npos)
            return run_fused(call, call.node.parts());
        const Kernel kernel = find_kernel(call.node.kind);
        return kernel ? kernel(call) : no_kernel(call, call.node.kind);
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory,
                     "node '" + call.node.name + "' (" + call.node.kind + ") has no memory"};
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
