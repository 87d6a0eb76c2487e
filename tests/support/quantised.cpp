// SPDX-License-Identifier: Apache-2.0
#include "tests/support/quantised.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "lib/graph/numbers.h"
#include "lib/graph/ops_window.h"

namespace vartml::test {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

class Expansion {
public:
    explicit Expansion(const Graph& from) : graph_(from) { graph_.nodes.clear(); }

    Graph run(const Graph& from) {
        for (const Node& node : from.nodes) expand(node);
        return std::move(graph_);
    }

private:
    // Where the quantised operators have their operands.
    struct Row {
        std::string_view kind, plain;
        std::vector<size_t> tensors;  // each with scale and zero point behind it
        size_t result;                // the scale of the result
    };
    static const Row* find(std::string_view kind) {
        static const std::vector<Row> rows = {
            {"QLinearConv", "Conv", {0, 3}, 6},
            {"QLinearMatMul", "MatMul", {0, 3}, 6},
            {"QLinearAdd", "Add", {0, 3}, 6},
            {"QLinearMul", "Mul", {0, 3}, 6},
            {"QLinearSigmoid", "Sigmoid", {0}, 3},
            {"QLinearLeakyRelu", "LeakyRelu", {0}, 3},
            {"QLinearAveragePool", "AveragePool", {0}, 3},
            {"QLinearGlobalAveragePool", "GlobalAveragePool", {0}, 3},
        };
        const auto row = std::ranges::find(rows, kind, &Row::kind);
        return row == rows.end() ? nullptr : &*row;
    }

    void expand(const Node& node) {
        if (node.kind == "QLinearConcat") {
            std::vector<size_t> tensors;
            for (size_t i = 2; i < node.inputs.size(); i += 3) tensors.push_back(i);
            return expand(node, {"QLinearConcat", "Concat", tensors, 0});
        }
        if (const Row* row = find(node.kind)) return expand(node, *row);
        if (node.kind == "ConvInteger" || node.kind == "MatMulInteger") return expand_integer(node);
        graph_.nodes.push_back(node);
    }

    ValueId real(const Node& like, ValueId value, std::vector<ValueId> parameters, int64_t axis) {
        const ValueId id = graph_.add_value(graph_.unique_name("real"),
                                            {DataType::float32, graph_.value(value).type.shape});
        Node node;
        node.kind = "DequantizeLinear";
        node.name = graph_.value(id).name + "_of_" + like.name;
        node.inputs = {value};
        node.inputs.insert(node.inputs.end(), parameters.begin(), parameters.end());
        node.outputs = {id};
        node.attributes["axis"] = axis;
        graph_.nodes.push_back(std::move(node));
        return id;
    }

    void expand(const Node& node, const Row& row) {
        Node plain = node;
        plain.kind = row.plain;
        plain.inputs.clear();
        for (const size_t i : row.tensors) {
            const int64_t axis = row.plain == "MatMul" ? 1 : 0;
            plain.inputs.push_back(
                real(node, node.inputs[i], {node.inputs[i + 1], node.inputs[i + 2]}, axis));
        }
        if (node.inputs.size() > 8 && (row.plain == "Conv" || row.plain == "MatMul"))
            plain.inputs.push_back(real_bias(node));
        const ValueId result = node.outputs[0];
        ValueId sum = graph_.add_value(graph_.unique_name("sum"),
                                       {DataType::float32, graph_.value(result).type.shape});
        plain.outputs = {sum};
        for (const char* name : {"activation", "alpha", "beta", "factors"})
            plain.attributes.erase(name);
        graph_.nodes.push_back(std::move(plain));
        if (row.plain == "Conv") sum = before_codes(node, sum);
        Node quantise;
        quantise.kind = "QuantizeLinear";
        quantise.name = node.name + "_quantise";
        quantise.inputs = {sum, node.inputs[row.result], node.inputs[row.result + 1]};
        quantise.outputs = {result};
        graph_.nodes.push_back(std::move(quantise));
    }

    // Behind the activation and the factors of a QLinearConv.
    ValueId before_codes(const Node& node, ValueId value) {
        const graph::BeforeCodes before = graph::read_before_codes(node);
        const graph::Type type = graph_.value(value).type;
        if (before.activation) {
            Node activation;
            static_cast<graph::Operation&>(activation) = *before.activation;
            value = append(std::move(activation), node.name + "_activation", {value}, type);
        }
        if (!before.factors.empty()) {
            std::vector<int64_t> shape(type.shape.size() - 1, 1);
            shape[0] = static_cast<int64_t>(before.factors.size());
            Node multiply;
            multiply.kind = "Mul";
            const ValueId factors =
                graph_.add_constant(graph_.unique_name("factors"), {DataType::float32, shape},
                                    graph::make_constant<float>(before.factors));
            value = append(std::move(multiply), node.name + "_factors", {value, factors}, type);
        }
        return value;
    }
    ValueId append(Node node, const std::string& name, std::vector<ValueId> inputs,
                   const graph::Type& type) {
        const ValueId id = graph_.add_value(graph_.unique_name(name), type);
        node.name = name;
        node.inputs = std::move(inputs);
        node.outputs = {id};
        graph_.nodes.push_back(std::move(node));
        return id;
    }

    ValueId real_bias(const Node& node) {
        const auto numbers = [&](size_t i) {
            return graph::read_numbers<float>(graph_.value(node.inputs[i]));
        };
        const auto x = numbers(1), w = numbers(4);
        auto bias = numbers(8);
        for (size_t i = 0; i < bias.size(); ++i) bias[i] *= x[0] * w[w.size() == 1 ? 0 : i];
        return graph_.add_constant(graph_.unique_name("bias"),
                                   {DataType::float32, {static_cast<int64_t>(bias.size())}},
                                   graph::make_constant<float>(bias));
    }

    void expand_integer(const Node& node) {
        const float one[] = {1};
        const ValueId scale = graph_.add_constant(
            graph_.unique_name("one"), {DataType::float32, {}}, graph::make_constant<float>(one));
        Node plain = node;
        plain.kind = node.kind == "ConvInteger" ? "Conv" : "MatMul";
        plain.inputs.clear();
        for (size_t i = 0; i < 2; ++i) {
            std::vector<ValueId> parameters = {scale};
            if (i + 2 < node.inputs.size()) parameters.push_back(node.inputs[i + 2]);
            plain.inputs.push_back(real(node, node.inputs[i], parameters, 0));
        }
        graph_.nodes.push_back(std::move(plain));
    }

    Graph graph_;
};

}  // namespace

Graph in_floats(const Graph& graph) {
    return Expansion(graph).run(graph);
}

void randomise_quantised(Graph& graph, unsigned seed, int most_weight) {
    std::mt19937 random(seed);
    for (graph::Value& value : graph.values) {
        if (!value.constant || value.type.elements() < 2) continue;
        auto numbers = graph::read_numbers<double>(value);
        if (std::ranges::any_of(numbers, [](double n) { return n != 0; })) continue;
        const bool zeros = value.name.find("zero") != std::string::npos;
        for (double& n : numbers) {
            const auto r = static_cast<double>(random() % 255);
            if (value.type.data_type == DataType::float32) n = 0.005 + r / 20000;
            if (value.type.data_type == DataType::int32) n = (r - 127) * 20;
            const double weight = std::trunc((r - 127) * most_weight / 127);
            if (value.type.data_type == DataType::int8) n = weight;
            if (value.type.data_type == DataType::uint8) n = 127 + weight;
            if (zeros) n = 0;
        }
        value.constant = graph::write_numbers<double>(value.type.data_type, numbers);
    }
}

}  // namespace vartml::test
