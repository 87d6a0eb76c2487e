// SPDX-License-Identifier: Apache-2.0
// One lowering function per family of operators, and what several of them share.
#pragma once
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "lib/run/softnpu/lowering.h"
#include "lib/run/softnpu/onednn.h"
#include "lib/run/softnpu/post_ops.h"

namespace vartml::softnpu {

Result<void> lower_conv(Lowering& lowering, const graph::Node& node);
Result<void> lower_conv_transpose(Lowering& lowering, const graph::Node& node);
Result<void> lower_matmul(Lowering& lowering, const graph::Node& node);  // MatMul, Gemm
Result<void> lower_pool(Lowering& lowering, const graph::Node& node);    // windows and global
Result<void> lower_eltwise(Lowering& lowering, const graph::Node& node);
Result<void> lower_cast(Lowering& lowering, const graph::Node& node);
Result<void> lower_binary(Lowering& lowering, const graph::Node& node);  // also n-ary Max, Min, Sum
Result<void> lower_softmax(Lowering& lowering, const graph::Node& node);
Result<void> lower_reduce(Lowering& lowering, const graph::Node& node);
Result<void> lower_resize(Lowering& lowering, const graph::Node& node);
Result<void> lower_grid_sample(Lowering& lowering, const graph::Node& node);
Result<void> lower_reshape(Lowering& lowering, const graph::Node& node);
Result<void> lower_transpose(Lowering& lowering, const graph::Node& node);
Result<void> lower_slice(Lowering& lowering, const graph::Node& node);
Result<void> lower_split(Lowering& lowering, const graph::Node& node);
Result<void> lower_concat(Lowering& lowering, const graph::Node& node);
Result<void> lower_expand(Lowering& lowering, const graph::Node& node);
Result<void> lower_depth_to_space(Lowering& lowering, const graph::Node& node);
Result<void> lower_space_to_depth(Lowering& lowering, const graph::Node& node);
Result<void> lower_clip(Lowering& lowering, const graph::Node& node);  // of floats and of codes
// Codes of 8 bits.
Result<void> lower_quantise(Lowering& lowering, const graph::Node& node);
Result<void> lower_dequantise(Lowering& lowering, const graph::Node& node);
Result<void> lower_quantised_conv(Lowering& lowering, const graph::Node& node);
Result<void> lower_quantised_matmul(Lowering& lowering, const graph::Node& node);
Result<void> lower_quantised_unary(Lowering& lowering, const graph::Node& node);
Result<void> lower_quantised_binary(Lowering& lowering, const graph::Node& node);
Result<void> lower_quantised_concat(Lowering& lowering, const graph::Node& node);
Result<void> lower_quantised_pool(Lowering& lowering, const graph::Node& node);
// Whether these cover a node: element types, constant parameters and weights.
bool takes_grid_sample(const graph::Graph& graph, const graph::Node& node);
bool takes_cast(const graph::Graph& graph, const graph::Node& node);
bool takes_quantise(const graph::Graph& graph, const graph::Node& node);
bool takes_dequantise(const graph::Graph& graph, const graph::Node& node);
bool takes_quantised_conv(const graph::Graph& graph, const graph::Node& node);
bool takes_quantised_matmul(const graph::Graph& graph, const graph::Node& node);
bool takes_quantised_unary(const graph::Graph& graph, const graph::Node& node);
bool takes_quantised_binary(const graph::Graph& graph, const graph::Node& node);
bool takes_quantised_concat(const graph::Graph& graph, const graph::Node& node);
// Any operator that lib/graph has a kernel for, in any form.
Result<void> lower_general(Lowering& lowering, const graph::Node& node);
Result<void> lower_picture_input(Lowering& lowering, const graph::Node& node);
Result<void> lower_pad(Lowering& lowering, const graph::Node& node);

// Weights in the layouts that the primitives of a step ask for, each packed once.
class WeightPacker {
public:
    WeightPacker(Lowering& lowering, View weights)
        : lowering_(lowering), weights_(std::move(weights)) {}
    View operator()(const dnnl::memory::desc& wanted);

private:
    Lowering& lowering_;
    View weights_;
    std::vector<std::pair<dnnl::memory::desc, View>> packed_;
};

// Appends a step that executes these primitives, each an item.
void emit_onednn(Lowering& lowering, const graph::Node& node, std::vector<OnednnCall> calls);

}  // namespace vartml::softnpu
