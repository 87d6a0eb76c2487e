// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/verify.h"

#include <string>
#include <unordered_set>

#include "lib/graph/ops.h"

namespace vartml::graph {

namespace {

Error bad_value(const Value& value, const std::string& sentence) {
    return {ErrorCode::bad_model, "value '" + value.name + "' " + sentence};
}

Result<void> check_values(const Graph& graph) {
    std::unordered_set<std::string_view> names;
    for (const Value& value : graph.values) {
        if (value.name.empty()) return Error{ErrorCode::bad_model, "a value has no name"};
        if (!names.insert(value.name).second) return bad_value(value, "occurs twice");
        if (!is_reasonable(value.type)) {
            return bad_value(value, "is " + unreasonable(value.type));
        }
        if (value.constant && value.constant->bytes.size() != value.type.size_bytes()) {
            return bad_value(
                value, "is a constant of " + std::to_string(value.constant->bytes.size()) +
                           " bytes, expected " + std::to_string(value.type.size_bytes()) + " for " +
                           to_string(value.type));
        }
    }
    names.clear();
    for (const Node& node : graph.nodes) {
        if (node.name.empty()) return bad_node(node, "has no name");
        if (!names.insert(node.name).second) return bad_node(node, "has the name of another node");
    }
    return {};
}

// Which values are known while walking the nodes in order.
class Order {
public:
    explicit Order(const Graph& graph) : graph_(graph), known_(graph.values.size(), false) {}

    bool in_range(ValueId id) const { return id >= 0 && static_cast<size_t>(id) < known_.size(); }
    bool known(ValueId id) const {
        return known_[static_cast<size_t>(id)] || graph_.value(id).constant.has_value();
    }
    void add(ValueId id) { known_[static_cast<size_t>(id)] = true; }

private:
    const Graph& graph_;
    std::vector<bool> known_;
};

Result<void> check_inputs(const Graph& graph, const Node& node, const Order& order) {
    for (const ValueId id : node.inputs) {
        if (id == none) continue;
        if (!order.in_range(id))
            return bad_node(node,
                            "reads value number " + std::to_string(id) + ", which does not exist");
        if (!order.known(id))
            return bad_node(node, "reads '" + graph.value(id).name + "' before it is computed");
    }
    return {};
}

Result<void> check_outputs(const Graph& graph, const Node& node, Order& order) {
    auto types = infer_types(graph, node);
    if (!types) return types.error();
    const bool data_dependent = has_data_dependent_shape(graph, node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId id = node.outputs[i];
        if (id == none) continue;
        if (!order.in_range(id))
            return bad_node(node,
                            "writes value number " + std::to_string(id) + ", which does not exist");
        const Value& value = graph.value(id);
        if (order.known(id))
            return bad_node(node, "writes '" + value.name + "', which is known already");
        if (value.type != (*types)[i]) {
            return bad_node(node, "writes '" + value.name + "' as " + to_string((*types)[i]) +
                                      ", but the value is " + to_string(value.type));
        }
        if (data_dependent && !value.data_dependent) {
            return bad_node(
                node, "writes '" + value.name +
                          "', whose shape depends on the data, but the value does not say so");
        }
        order.add(id);
    }
    return {};
}

}  // namespace

Result<void> verify(const Graph& graph) {
    if (auto ok = check_values(graph); !ok) return ok;
    Order order(graph);
    for (const ValueId id : graph.inputs) {
        if (!order.in_range(id)) {
            return Error{ErrorCode::bad_model,
                         "input number " + std::to_string(id) + " does not exist"};
        }
        if (order.known(id))
            return bad_value(graph.value(id), "is an input twice, or an input and a constant");
        order.add(id);
    }
    for (const Node& node : graph.nodes) {
        if (auto ok = check_inputs(graph, node, order); !ok) return ok;
        if (auto ok = check_outputs(graph, node, order); !ok) return ok;
    }
    for (const ValueId id : graph.outputs) {
        if (!order.in_range(id)) {
            return Error{ErrorCode::bad_model,
                         "output number " + std::to_string(id) + " does not exist"};
        }
        if (!order.known(id))
            return bad_value(graph.value(id), "is an output that nothing computes");
    }
    return {};
}

}  // namespace vartml::graph
