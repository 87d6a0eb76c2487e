// SPDX-License-Identifier: Apache-2.0
#include "tests/support/interpreter.h"

#include <random>

#include "lib/graph/fold.h"
#include "lib/graph/numbers.h"

namespace vartml::graph {

namespace {

std::vector<double> random_numbers(int64_t count, uint32_t seed, double range) {
    std::mt19937 random(seed);
    std::vector<double> numbers(static_cast<size_t>(count));
    // Not std::uniform_real_distribution: libraries differ.
    for (double& v : numbers) v = (random() / 4294967296.0 * 2 - 1) * range;
    return numbers;
}

}  // namespace

Result<std::vector<std::vector<double>>> interpret(const Graph& given, uint32_t seed,
                                                   double range) {
    Graph graph = given;  // known values become its constants
    for (const ValueId id : graph.inputs) {
        Value& value = graph.value(id);
        if (value.constant) continue;
        uint32_t hash = seed;
        for (const char c : value.name) hash = hash * 31 + static_cast<unsigned char>(c);
        value.constant = write_numbers<double>(value.type.data_type,
                                               random_numbers(value.type.elements(), hash, range));
    }
    for (const Node& node : graph.nodes) {
        auto constants = cpu::evaluate(graph, node);
        if (!constants) return constants.error();
        for (size_t i = 0; i < node.outputs.size(); ++i)
            if (node.outputs[i] != none) graph.value(node.outputs[i]).constant = (*constants)[i];
    }
    std::vector<std::vector<double>> results;
    for (const ValueId id : graph.outputs) results.push_back(read_numbers<double>(graph.value(id)));
    return results;
}

void randomise_constants(Graph& graph, uint32_t seed) {
    for (Value& value : graph.values) {
        if (!value.constant || !is_float(value.type.data_type) || uniform_number(value) != 0.0)
            continue;
        value.constant = write_numbers<double>(value.type.data_type,
                                               random_numbers(value.type.elements(), ++seed, 0.5));
    }
}

}  // namespace vartml::graph
