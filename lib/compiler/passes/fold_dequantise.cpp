// SPDX-License-Identifier: Apache-2.0
// fold_dequantise: what stays float reads its weights as floats.
#include "lib/compiler/passes/passes.h"
#include "lib/compiler/passes/quantisation.h"
#include "lib/graph/numbers.h"

namespace vartml::compiler {

Result<PassStats> fold_dequantise(graph::Graph& graph) {
    return rewrite_nodes(graph, [](Rewriter& rewriter, size_t index) {
        graph::Node& node = rewriter.node(index);
        if (node.kind != "DequantizeLinear" || rewriter.is_output(node.outputs[0])) return false;
        const std::vector<double> numbers = dequantised(rewriter, node);
        if (numbers.empty()) return false;
        graph::Value& result = rewriter.graph().value(node.outputs[0]);
        result.constant = graph::write_numbers<double>(result.type.data_type, numbers);
        rewriter.remove(node);
        return true;
    });
}

}  // namespace vartml::compiler
