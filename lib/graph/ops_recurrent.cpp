// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN.
#include "lib/graph/op_rules.h"

namespace vartml::graph {

namespace {

// x [sequence, batch, input], w [directions, gates * hidden, input], r [directions, gates * hidden,
// hidden]; layout 1 has the batch first.
Result<Types> infer_recurrent(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &r = input_type(graph, node, 2);
    if (x.shape.size() != 3 || r.shape.size() != 3) {
        return bad_node(
            node, "has inputs " + to_string(x) + " and " + to_string(r) + ", expected rank 3");
    }
    const bool batch_first = node.get("layout", int64_t{0}) != 0;
    const int64_t sequence = x.shape[batch_first ? 1 : 0], batch = x.shape[batch_first ? 0 : 1];
    const int64_t directions = r.shape[0], hidden = r.shape[2];
    const int64_t gates = node.kind == "LSTM" ? 4 : node.kind == "GRU" ? 3 : 1;
    const int64_t expected = node.get("direction", "forward") == "bidirectional" ? 2 : 1;
    const int64_t width = bounded_product(gates, hidden);
    const std::vector<int64_t> state = batch_first
                                           ? std::vector<int64_t>{batch, directions, hidden}
                                           : std::vector<int64_t>{directions, batch, hidden};
    // w, r, bias, lengths, states, peepholes.
    const std::vector<int64_t> shapes[] = {{directions, width, x.shape[2]},
                                           {directions, width, hidden},
                                           {directions, 2 * width},
                                           {batch},
                                           state,
                                           state,
                                           {directions, 3 * hidden}};
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        if (!has_input(node, i)) continue;
        const Type& found = input_type(graph, node, i);
        if (directions == expected && found.shape == shapes[i - 1]) continue;
        return bad_node(node, "has the input " + to_string(found) + ", expected the shape " +
                                  to_string(shapes[i - 1]) + " in " + std::to_string(expected) +
                                  (expected == 1 ? " direction" : " directions"));
    }
    Type y{x.data_type, {sequence, directions, batch, hidden}};
    Type last{x.data_type, {directions, batch, hidden}};
    if (batch_first) {
        y.shape = {batch, sequence, directions, hidden};
        last.shape = {batch, directions, hidden};
    }
    return Types{y, last, last};
}

// 1 per gate element, per step.
uint64_t count_recurrent(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &r = input_type(graph, node, 2);
    return saturating_product(static_cast<uint64_t>(x.shape[0] * x.shape[1]),
                              static_cast<uint64_t>(r.shape[0] * r.shape[1]));
}

// Both matrices, per step.
uint64_t macs_recurrent(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &w = input_type(graph, node, 1),
               &r = input_type(graph, node, 2);
    return saturating_product(static_cast<uint64_t>(x.shape[0] * x.shape[1]),
                              static_cast<uint64_t>(w.elements() + r.elements()));
}

constexpr OpInfo ops[] = {
    {"LSTM", 3, 8, 1, 3,
     "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i "
     "input_forget:i layout:i",
     infer_recurrent, count_recurrent, macs_recurrent},
    {"GRU", 3, 6, 1, 2,
     "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i "
     "layout:i "
     "linear_before_reset:i",
     infer_recurrent, count_recurrent, macs_recurrent},
    {"RNN", 3, 6, 1, 2,
     "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i "
     "layout:i",
     infer_recurrent, count_recurrent, macs_recurrent},
};

}  // namespace

std::span<const OpInfo> recurrent_ops() {
    return ops;
}

}  // namespace vartml::graph
