// SPDX-License-Identifier: Apache-2.0
// Statistics of a graph's tensors over one made input: what a calibration gives.
#pragma once
#include <gtest/gtest.h>

#include "lib/compile/quantise.h"
#include "tests/support/interpreter.h"

namespace vartml::test {

inline compiler::Statistics measure(const graph::Graph& graph) {
    graph::Graph probe = graph;
    probe.outputs.clear();
    for (const graph::ValueId id : compiler::values_to_quantise(graph)) probe.outputs.push_back(id);
    compiler::Statistics statistics;
    const auto measured = graph::interpret(probe);
    if (!measured) {
        ADD_FAILURE() << measured.error().message;
        return statistics;
    }
    for (size_t i = 0; i < probe.outputs.size(); ++i) {
        const graph::Value& value = probe.value(probe.outputs[i]);
        const std::vector<float> values((*measured)[i].begin(), (*measured)[i].end());
        size_t inner = 1;
        for (size_t axis = 2; axis < value.type.shape.size(); ++axis)
            inner *= static_cast<size_t>(value.type.shape[axis]);
        statistics[value.name].add(values, static_cast<size_t>(value.type.shape[1]), inner);
    }
    return statistics;
}

}  // namespace vartml::test
