// SPDX-License-Identifier: Apache-2.0
// The table of operators and what lowering functions share.
#include "lib/device/softnpu/operators.h"

#include <algorithm>

#include "lib/device/softnpu/copy_step.h"
#include "lib/device/softnpu/packed_weights.h"

namespace vartml::softnpu {
namespace {

struct Row {
    std::string_view kind;
    LowerFunction lower;
};

// Sorted by kind.
constexpr Row table[] = {
    {"Abs", lower_eltwise},
    {"Add", lower_binary},
    {"AveragePool", lower_pool},
    {"Clip", lower_eltwise},
    {"Concat", lower_concat},
    {"Conv", lower_conv},
    {"ConvTranspose", lower_conv_transpose},
    {"DepthToSpace", lower_depth_to_space},
    {"Div", lower_binary},
    {"Elu", lower_eltwise},
    {"Exp", lower_eltwise},
    {"Expand", lower_expand},
    {"Gelu", lower_eltwise},
    {"Gemm", lower_matmul},
    {"GlobalAveragePool", lower_pool},
    {"GlobalMaxPool", lower_pool},
    {"HardSigmoid", lower_eltwise},
    {"HardSwish", lower_eltwise},
    {"Identity", lower_reshape},
    {"LeakyRelu", lower_eltwise},
    {"Log", lower_eltwise},
    {"LogSoftmax", lower_softmax},
    {"MatMul", lower_matmul},
    {"Max", lower_binary},
    {"MaxPool", lower_pool},
    {"Min", lower_binary},
    {"Mish", lower_eltwise},
    {"Mul", lower_binary},
    {"Neg", lower_eltwise},
    {"PRelu", lower_binary},
    {"Pad", lower_pad},
    {"Pow", lower_binary},
    {"QuickGelu", lower_eltwise},
    {"Reciprocal", lower_eltwise},
    {"ReduceMax", lower_reduce},
    {"ReduceMean", lower_reduce},
    {"ReduceMin", lower_reduce},
    {"ReduceSum", lower_reduce},
    {"Relu", lower_eltwise},
    {"Reshape", lower_reshape},
    {"Resize", lower_resize},
    {"Round", lower_eltwise},
    {"SiLU", lower_eltwise},
    {"Sigmoid", lower_eltwise},
    {"Slice", lower_slice},
    {"Softmax", lower_softmax},
    {"Softplus", lower_eltwise},
    {"SpaceToDepth", lower_space_to_depth},
    {"Split", lower_split},
    {"Sqrt", lower_eltwise},
    {"Sub", lower_binary},
    {"Sum", lower_binary},
    {"Tanh", lower_eltwise},
    {"Transpose", lower_transpose},
};

}  // namespace

LowerFunction find_lowering(std::string_view base_kind) {
    const auto row = std::ranges::lower_bound(table, base_kind, {}, &Row::kind);
    return row != std::end(table) && row->kind == base_kind ? row->lower : nullptr;
}

View WeightPacker::operator()(const dnnl::memory::desc& wanted) {
    for (const auto& [desc, view] : packed_) {
        if (desc == wanted) return view;
    }
    const Packed packed = pack(lowering_.constant_data(weights_), descriptor(weights_), wanted,
                               lowering_.is_model_constant(weights_));
    packed_.emplace_back(wanted, lowering_.add_shared_constant(packed.bytes, packed.fresh));
    return packed_.back().second;
}

void emit_onednn(Lowering& lowering, const graph::Node& node, std::vector<OnednnCall> calls) {
    constexpr size_t alignment = 64;
    size_t scratch = 0;
    for (const OnednnCall& call : calls) {
        scratch += (call.scratchpad.get_size() + alignment - 1) / alignment * alignment;
    }
    View scratchpad = lowering.scratch_view(scratch);
    std::vector<int32_t> buffers;
    for (OnednnCall& call : calls) {
        call.arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, call.scratchpad});
        scratchpad.offset += static_cast<int64_t>((call.scratchpad.get_size() + alignment - 1) /
                                                  alignment * alignment);
        for (const OnednnCall::Argument& a : call.arguments) buffers.push_back(a.view.buffer);
    }
    std::string what = node.kind + " " + calls[0].implementation;
    if (calls.size() > 1) what += " x" + std::to_string(calls.size());
    for (const OnednnCall::Argument& a : calls[0].arguments) {
        if (a.id == DNNL_ARG_SRC || a.id == DNNL_ARG_DST) {
            what += (a.id == DNNL_ARG_DST ? " -> " : " ") + text(a.view);
        }
    }
    auto step = std::make_unique<OnednnStep>(std::move(what), calls);
    step->buffers = std::move(buffers);
    lowering.emit(std::move(step), node.name, {});
}

Error onednn_error(const graph::Node& node, const dnnl::error& error) {
    return {ErrorCode::unsupported, "node '" + node.name + "': oneDNN cannot run " + node.kind +
                                        " with these shapes (" + error.what() + ")"};
}

}  // namespace vartml::softnpu
