// SPDX-License-Identifier: Apache-2.0
// One lowering function per family of operators, and what several of them share.
#pragma once
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "lib/device/softnpu/lowering.h"
#include "lib/device/softnpu/onednn.h"
#include "lib/device/softnpu/post_ops.h"

namespace vartml::softnpu {

Result<void> lower_conv(Lowering& lowering, const graph::Node& node);
Result<void> lower_conv_transpose(Lowering& lowering, const graph::Node& node);
Result<void> lower_matmul(Lowering& lowering, const graph::Node& node);  // MatMul, Gemm
Result<void> lower_pool(Lowering& lowering, const graph::Node& node);    // windows and global
Result<void> lower_eltwise(Lowering& lowering, const graph::Node& node);
Result<void> lower_binary(Lowering& lowering, const graph::Node& node);  // also n-ary Max, Min, Sum
Result<void> lower_softmax(Lowering& lowering, const graph::Node& node);
Result<void> lower_reduce(Lowering& lowering, const graph::Node& node);
Result<void> lower_resize(Lowering& lowering, const graph::Node& node);
Result<void> lower_reshape(Lowering& lowering, const graph::Node& node);
Result<void> lower_transpose(Lowering& lowering, const graph::Node& node);
Result<void> lower_slice(Lowering& lowering, const graph::Node& node);
Result<void> lower_split(Lowering& lowering, const graph::Node& node);
Result<void> lower_concat(Lowering& lowering, const graph::Node& node);
Result<void> lower_expand(Lowering& lowering, const graph::Node& node);
Result<void> lower_depth_to_space(Lowering& lowering, const graph::Node& node);
Result<void> lower_space_to_depth(Lowering& lowering, const graph::Node& node);
Result<void> lower_pad(Lowering& lowering, const graph::Node& node);

// Weights in the layout that a primitive asked for, packed once.
View pack_weights(Lowering& lowering, const View& weights, const dnnl::memory::desc& wanted);

// Appends a primitive with its arguments and the operands of its post-operations.
void emit_onednn(Lowering& lowering, const graph::Node& node, dnnl::primitive primitive,
                 const char* implementation, std::vector<OnednnStep::Argument> arguments,
                 const PostOps& post);

// A primitive that oneDNN refused to make, as a sentence.
Error onednn_error(const graph::Node& node, const dnnl::error& error);

}  // namespace vartml::softnpu
