// SPDX-License-Identifier: Apache-2.0
// Softmax and reductions.
#include <algorithm>

#include "lib/device/softnpu/bands.h"
#include "lib/device/softnpu/extreme.h"
#include "lib/device/softnpu/operators.h"
#include "lib/device/softnpu/softmax_step.h"

namespace vartml::softnpu {

Result<void> lower_softmax(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId out = node.outputs[0];
    const int axis = static_cast<int>(node.get("axis", int64_t{-1}));
    const DataType type = lowering.stored_type(out);
    const Order order = order_of(lowering.view(node.inputs[0]));
    const View src = lowering.dense(node.inputs[0], order, type);
    const View dst = lowering.destination(out, order, false);
    const bool along_memory = !order.empty() && order.back() == axis;
    if (node.base() == "Softmax" && type == DataType::float32 && along_memory) {
        const int64_t count = src.dims[static_cast<size_t>(axis)];
        emit_softmax(lowering, node, src, dst, src.elements() / count, count);
        lowering.finish(out, dst);
        return {};
    }
    const auto algorithm = node.base() == "LogSoftmax" ? dnnl::algorithm::softmax_log
                                                       : dnnl::algorithm::softmax_accurate;
    // Rows are shared out along the outermost dimension that is not the axis.
    const auto sliced = std::ranges::find_if(
        order, [&](int32_t d) { return d != axis && src.dims[static_cast<size_t>(d)] > 1; });
    const auto dim = static_cast<size_t>(sliced == order.end() ? 0 : *sliced);
    const uint32_t items = sliced != order.begin()
                               ? 1
                               : items_for({src.dims[dim], src.elements() * 2}, lowering.threads());
    std::vector<OnednnCall> calls;
    try {
        for (const Range& range : ranges(src.dims[dim], items)) {
            const View in = items == 1 ? src : cut(src, dim, range);
            const View result = items == 1 ? dst : cut(dst, dim, range);
            const dnnl::softmax_forward::primitive_desc desc(
                cpu_engine(), dnnl::prop_kind::forward_inference, algorithm, descriptor(in),
                descriptor(result), axis, attributes({}));
            calls.push_back(
                {dnnl::softmax_forward(desc),
                 desc.impl_info_str(),
                 {{DNNL_ARG_SRC, in, desc.src_desc()}, {DNNL_ARG_DST, result, desc.dst_desc()}},
                 desc.scratchpad_desc()});
        }
    } catch (const dnnl::error& e) {
        return onednn_error(node, e);
    }
    emit_onednn(lowering, node, std::move(calls));
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
    const bool is_extreme = kind == "ReduceMax" || kind == "ReduceMin";
    if (is_extreme && kept.elements() == 1 && type == DataType::float32) {
        lower_extreme(lowering, kind == "ReduceMax" ? kernels::Binary::max : kernels::Binary::min,
                      src, dst, node.name);
        lowering.finish(out, *reshape(dst, lowering.value(out).type.shape));
        return {};
    }
    try {
        const dnnl::reduction::primitive_desc desc(cpu_engine(), algorithm, descriptor(src),
                                                   descriptor(dst), 0.0F, 0.0F, attributes({}));
        emit_onednn(lowering, node,
                    {{dnnl::reduction(desc),
                      desc.impl_info_str(),
                      {{DNNL_ARG_SRC, src, desc.src_desc()}, {DNNL_ARG_DST, dst, desc.dst_desc()}},
                      desc.scratchpad_desc()}});
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
