// SPDX-License-Identifier: Apache-2.0
// Softmax and reductions.
#include "lib/device/softnpu/operators.h"

namespace vartml::softnpu {

Result<void> lower_softmax(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId out = node.outputs[0];
    const int axis = static_cast<int>(node.get("axis", int64_t{-1}));
    const DataType type = lowering.stored_type(out);
    const Order order = order_of(lowering.view(node.inputs[0]));
    const View src = lowering.dense(node.inputs[0], order, type);
    const View dst = lowering.destination(out, order, false);
    const auto algorithm = node.base() == "LogSoftmax" ? dnnl::algorithm::softmax_log
                                                       : dnnl::algorithm::softmax_accurate;
    try {
        const dnnl::softmax_forward::primitive_desc desc(
            cpu_engine(), dnnl::prop_kind::forward_inference, algorithm, descriptor(src),
            descriptor(dst), axis, user_scratchpad());
        const View scratch = lowering.scratch_view(desc.scratchpad_desc().get_size());
        emit_onednn(lowering, node, dnnl::softmax_forward(desc), desc.impl_info_str(),
                    {{DNNL_ARG_SRC, src, desc.src_desc()},
                     {DNNL_ARG_DST, dst, desc.dst_desc()},
                     {DNNL_ARG_SCRATCHPAD, scratch, desc.scratchpad_desc()}},
                    {});
    } catch (const dnnl::error& e) {
        return onednn_error(node, e);
    }
    lowering.finish(out, dst);
    return {};
}

Result<void> lower_reduce(Lowering& lowering, const graph::Node& node) {
    const std::string_view kind = node.base();
    const auto algorithm = kind == "ReduceMean"  ? dnnl::algorithm::reduction_mean
                           : kind == "ReduceSum" ? dnnl::algorithm::reduction_sum
                           : kind == "ReduceMax" ? dnnl::algorithm::reduction_max
                                                 : dnnl::algorithm::reduction_min;
    const graph::ValueId out = node.outputs[0];
    const DataType type = lowering.stored_type(out);
    const Order order = order_of(lowering.view(node.inputs[0]));
    const View src = lowering.dense(node.inputs[0], order, type);
    View kept = src;  // with the reduced axes as size 1
    for (const int64_t axis : node.get("axes", Dims{})) kept.dims[static_cast<size_t>(axis)] = 1;
    if (kept.dims == src.dims) {
        lowering.finish(out, *reshape(src, lowering.value(out).type.shape));
        return {};
    }
    const View dst = lowering.new_buffer(type, kept.dims, order);
    try {
        const dnnl::reduction::primitive_desc desc(cpu_engine(), algorithm, descriptor(src),
                                                   descriptor(dst), 0.0F, 0.0F, user_scratchpad());
        const View scratch = lowering.scratch_view(desc.scratchpad_desc().get_size());
        emit_onednn(lowering, node, dnnl::reduction(desc), desc.impl_info_str(),
                    {{DNNL_ARG_SRC, src, desc.src_desc()},
                     {DNNL_ARG_DST, dst, desc.dst_desc()},
                     {DNNL_ARG_SCRATCHPAD, scratch, desc.scratchpad_desc()}},
                    {});
    } catch (const dnnl::error& e) {
        return onednn_error(node, e);
    }
    const auto result = reshape(dst, lowering.value(out).type.shape);
    if (result) {
        lowering.finish(out, *result);
        return {};
    }
    const View plain = lowering.dense(dst, row_major(dst.dims.size()), type, node.name);
    lowering.finish(out, *reshape(plain, lowering.value(out).type.shape));
    return {};
}

}  // namespace vartml::softnpu
