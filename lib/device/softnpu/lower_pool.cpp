// SPDX-License-Identifier: Apache-2.0
// Pooling over windows and over whole pictures.
#include <algorithm>

#include "lib/device/softnpu/bands.h"
#include "lib/device/softnpu/column_sums.h"
#include "lib/device/softnpu/max_pool_step.h"
#include "lib/device/softnpu/operators.h"

namespace vartml::softnpu {
namespace {

// Whether each window lies on the picture in part.
bool covers_pixels(const Dims& begin, const Dims& end, const Dims& kernel) {
    for (size_t i = 0; i < kernel.size(); ++i)
        if (begin[i] >= kernel[i] || end[i] >= kernel[i]) return false;
    return true;
}

}  // namespace

Result<void> lower_pool(Lowering& lowering, const graph::Node& node) {
    const Order order = channels_last(lowering.value(node.inputs[0]).type.shape.size());
    const DataType type = lowering.stored_type(node.outputs[0]);
    const View src = lowering.dense(node.inputs[0], order, type);
    const View dst = lowering.destination(node.outputs[0], order, false);
    if (node.base() == "GlobalAveragePool" && type == DataType::float32) {
        const int64_t positions = src.elements() / (src.dims[0] * src.dims[1]);
        const View rows = *reshape(src, {src.dims[0], src.dims[1], positions});
        lower_column_sums(lowering, rows, 1.0F / static_cast<float>(positions),
                          *reshape(dst, {dst.dims[0], dst.dims[1], 1}), node.name);
        lowering.finish(node.outputs[0], dst);
        return {};
    }
    const size_t spatial = src.dims.size() - 2;
    const bool global = node.base().starts_with("Global");
    const Dims extent(src.dims.begin() + 2, src.dims.end());
    const Dims kernel = global ? extent : node.get("kernel_shape", Dims{});
    const Dims strides = global ? Dims(spatial, 1) : node.get("strides", Dims(spatial, 1));
    Dims dilations = global ? Dims(spatial, 1) : node.get("dilations", Dims(spatial, 1));
    const Dims pads = global ? Dims(2 * spatial, 0) : node.get("pads", Dims(2 * spatial, 0));
    const bool count_padding = !global && node.get("count_include_pad", int64_t{0}) != 0;
    const bool max = node.base().ends_with("MaxPool");
    if (node.outputs.size() > 1 && node.outputs[1] >= 0) {
        return Error{ErrorCode::unsupported, "node '" + node.name +
                                                 "': the software NPU does not compute the indices "
                                                 "of MaxPool"};
    }
    Dims begin, end;
    for (size_t i = 0; i < spatial; ++i) {
        const int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
        begin.push_back(pads[i]);
        end.push_back((dst.dims[i + 2] - 1) * strides[i] + reach - extent[i] - pads[i]);
        // With ceil_mode the last window may hang over the padding; ONNX does not count that part.
        if (count_padding && !max && end.back() > pads[spatial + i]) {
            return Error{ErrorCode::unsupported,
                         "node '" + node.name +
                             "': the software NPU does not run AveragePool with count_include_pad "
                             "where ceil_mode goes beyond the padding"};
        }
        --dilations[i];
    }
    const bool is_dilated = std::ranges::any_of(dilations, [](int64_t d) { return d != 0; });
    if (max && spatial == 2 && type == DataType::float32 && !is_dilated &&
        covers_pixels(begin, end, kernel)) {
        const auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
        emit_max_pool(lowering, node,
                      {u(extent[0]), u(extent[1]), u(dst.dims[2]), u(dst.dims[3]), u(src.dims[1]),
                       u(kernel[0]), u(kernel[1]), u(strides[0]), u(strides[1]),
                       static_cast<int32_t>(pads[0]), static_cast<int32_t>(pads[1])},
                      src, dst);
        lowering.finish(node.outputs[0], dst);
        return {};
    }
    const auto algorithm = max             ? dnnl::algorithm::pooling_max
                           : count_padding ? dnnl::algorithm::pooling_avg_include_padding
                                           : dnnl::algorithm::pooling_avg_exclude_padding;
    int64_t window = 1;
    for (const int64_t k : kernel) window *= k;
    std::vector<OnednnCall> calls;
    try {
        for (const Band& band : bands(dst.dims, dst.elements() * window / 16, lowering.threads())) {
            const int64_t reach = (kernel[0] - 1) * (dilations[0] + 1);
            const int64_t first = band.rows.first * strides[0] - pads[0];
            const int64_t last =
                (band.rows.first + band.rows.size - 1) * strides[0] - pads[0] + reach;
            const int64_t from = std::max<int64_t>(first, 0), to = std::min(last, extent[0] - 1);
            const View in = slice(cut(src, 0, band.images), 2, from, to - from + 1, 1);
            const View out = cut(dst, band);
            begin[0] = std::max<int64_t>(-first, 0);
            end[0] = std::max<int64_t>(last - (extent[0] - 1), 0);
            const dnnl::pooling_forward::primitive_desc desc(
                cpu_engine(), dnnl::prop_kind::forward_inference, algorithm, descriptor(in),
                descriptor(out), strides, kernel, dilations, begin, end, attributes({}));
            calls.push_back(
                {dnnl::pooling_forward(desc),
                 desc.impl_info_str(),
                 {{DNNL_ARG_SRC, in, desc.src_desc()}, {DNNL_ARG_DST, out, desc.dst_desc()}},
                 desc.scratchpad_desc()});
        }
    } catch (const dnnl::error& e) {
        return onednn_error(node, e);
    }
    emit_onednn(lowering, node, std::move(calls));
    lowering.finish(node.outputs[0], dst);
    return {};
}

}  // namespace vartml::softnpu
