// SPDX-License-Identifier: Apache-2.0
// Channels of a tensor brought to ranges alike before it is quantised: one scale then fits all.
#pragma once
#include "lib/compile/tensor_statistics.h"
#include "lib/graph/graph.h"

namespace vartml::compiler {

// Multiplies the channels of tensors between convolutions by factors and divides the weights that
// read them: the model computes what it did. Convolutions take the factors into their weights, by
// way of an activation that multiplies by positive numbers as it does (Relu, LeakyRelu); behind any
// other activation stands a Mul. Tensors that are joined by additions, poolings and gates have the
// same factors; what anything else reads or writes stays as it is. Returns how many tensors it
// changed; statistics are then to be taken anew.
size_t equalise(graph::Graph& graph, const Statistics& statistics);

}  // namespace vartml::compiler
