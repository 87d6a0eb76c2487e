// SPDX-License-Identifier: Apache-2.0
// The parts of a fused operator behind the first, as post-operations of a oneDNN primitive.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/ops/activation.h"
#include "lib/run/softnpu/lowering.h"
#include "lib/run/softnpu/onednn.h"

namespace vartml::softnpu {

// An element-wise operator as oneDNN's algorithm with its two parameters.
struct Eltwise {
    dnnl::algorithm algorithm;
    float alpha = 0, beta = 0;
};
// nullopt where oneDNN has no such algorithm.
std::optional<Eltwise> find_eltwise(const graph::Operation& operation);

// A part behind the first: an element-wise operator, or one with a second operand.
struct PostOp {
    Eltwise op;
    View operand;  // buffer -1: none
};
// Operands lie in `order`, that of the destination. Errors: unsupported, naming node and part.
Result<std::vector<PostOp>> make_post_ops(Lowering& lowering, const graph::Node& node,
                                          const Order& order);

// The attribute of a primitive with these parts; its scratchpad is ours.
dnnl::primitive_attr attributes(const std::vector<PostOp>& post);
// What the parts read, as arguments of the call.
void add_operands(const std::vector<PostOp>& post, OnednnCall& call);

// Activations that our own kernels compute.

// nullopt where the kernels have no such activation.
std::optional<kernels::Epilogue> find_activation(const graph::Operation& operation);

// dst = activation of src, each fp32 or bf16, dense in one order; dst may be src.
void lower_activation(Lowering& lowering, const kernels::Epilogue& epilogue, const View& src,
                      const View& dst, std::string_view name);

}  // namespace vartml::softnpu
