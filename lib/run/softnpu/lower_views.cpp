// SPDX-License-Identifier: Apache-2.0
// Operators that move or rename elements: most of them only change a view.
#include "lib/graph/ops.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/operators.h"

namespace vartml::softnpu {

namespace {
// The axis of a Split or Concat, of a tensor's; verified, but perhaps counted from the last one.
size_t axis_of(const Lowering& lowering, const graph::Node& node, graph::ValueId id) {
    return static_cast<size_t>(
        graph::wrap_axis(node.get("axis", int64_t{0}), lowering.value(id).type.shape.size()));
}
}  // namespace

Result<void> lower_reshape(Lowering& lowering, const graph::Node& node) {
    const Dims& shape = lowering.value(node.outputs[0]).type.shape;
    auto view = reshape(lowering.view(node.inputs[0]), shape);
    if (!view && lowering.view(node.inputs[0]).type == lowering.stored_type(node.outputs[0])) {
        // What is written in the order of the result can be seen in the shape of the input.
        const View dst =
            lowering.destination(node.outputs[0], lowering.order(node.outputs[0]), true);
        if (const auto part = reshape(dst, lowering.value(node.inputs[0]).type.shape)) {
            lowering.copy(lowering.view(node.inputs[0]), *part, node.name);
            lowering.finish(node.outputs[0], dst);
            return {};
        }
    }
    if (!view) {
        const Order order = row_major(lowering.value(node.inputs[0]).type.shape.size());
        view = reshape(lowering.dense(node.inputs[0], order, lowering.view(node.inputs[0]).type),
                       shape);
    }
    lowering.finish(node.outputs[0], *view);
    return {};
}

Result<void> lower_transpose(Lowering& lowering, const graph::Node& node) {
    const auto perm = node.get("perm", Dims{});
    lowering.finish(node.outputs[0], transpose(lowering.view(node.inputs[0]), perm));
    return {};
}

Result<void> lower_slice(Lowering& lowering, const graph::Node& node) {
    View view = lowering.view(node.inputs[0]);
    const Dims starts = node.get("starts", Dims{}), axes = node.get("axes", Dims{});
    const Dims steps = node.get("steps", Dims{});
    const Dims& shape = lowering.value(node.outputs[0]).type.shape;
    for (size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<size_t>(axes[i]);
        view = slice(view, axis, starts[i], shape[axis], steps[i]);
    }
    lowering.finish(node.outputs[0], view);
    return {};
}

Result<void> lower_split(Lowering& lowering, const graph::Node& node) {
    const View view = lowering.view(node.inputs[0]);
    const auto axis = axis_of(lowering, node, node.inputs[0]);
    const auto sizes = node.get("split", std::vector<int64_t>());
    int64_t start = 0;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        // An output that nobody named has its elements, too.
        if (node.outputs[i] >= 0)
            lowering.finish(node.outputs[i], slice(view, axis, start, sizes[i], 1));
        start += sizes[i];
    }
    return {};
}

// Inputs that could be written in place are there already.
Result<void> lower_concat(Lowering& lowering, const graph::Node& node) {
    const auto axis = axis_of(lowering, node, node.outputs[0]);
    const View place = lowering.destination(node.outputs[0], lowering.order(node.outputs[0]), true);
    int64_t start = 0;
    for (const graph::ValueId in : node.inputs) {
        const int64_t size = lowering.value(in).type.shape[axis];
        lowering.copy_unless_there(lowering.view(in), slice(place, axis, start, size, 1),
                                   node.name);
        start += size;
    }
    lowering.finish(node.outputs[0], place);
    return {};
}

Result<void> lower_expand(Lowering& lowering, const graph::Node& node) {
    const Dims& shape = lowering.value(node.outputs[0]).type.shape;
    const View dst = lowering.destination(node.outputs[0], lowering.order(node.outputs[0]), true);
    lowering.copy(broadcast(lowering.view(node.inputs[0]), shape), dst, node.name);
    lowering.finish(node.outputs[0], dst);
    return {};
}

namespace {

// [N, C·b·b, H, W] as [N, C, H, b, W, b]: the order of the six dimensions of the result.
View blocks_of_depth(const View& src, int64_t block, bool column_row) {
    const int64_t n = src.dims[0], c = src.dims[1] / (block * block), h = src.dims[2],
                  w = src.dims[3];
    const int64_t s = src.strides[1];
    const int64_t channel = column_row ? s * block * block : s;
    const int64_t row = column_row ? s * block : s * c * block;
    const int64_t column = column_row ? s : s * c;
    return {src.buffer,
            src.type,
            src.offset,
            {n, c, h, block, w, block},
            {src.strides[0], channel, src.strides[2], row, src.strides[3], column}};
}

// [N, C, H·b, W·b] as [N, C, H, b, W, b].
View blocks_of_space(const View& v, int64_t block) {
    return {v.buffer,
            v.type,
            v.offset,
            {v.dims[0], v.dims[1], v.dims[2] / block, block, v.dims[3] / block, block},
            {v.strides[0], v.strides[1], v.strides[2] * block, v.strides[2], v.strides[3] * block,
             v.strides[3]}};
}

}  // namespace

Result<void> lower_depth_to_space(Lowering& lowering, const graph::Node& node) {
    const int64_t block = node.get("blocksize", int64_t{1});
    const bool column_row = node.get("mode", "DCR") == "CRD";
    const View dst = lowering.destination(node.outputs[0], channels_last(4), true);
    lowering.copy(blocks_of_depth(lowering.view(node.inputs[0]), block, column_row),
                  blocks_of_space(dst, block), node.name);
    lowering.finish(node.outputs[0], dst);
    return {};
}

Result<void> lower_space_to_depth(Lowering& lowering, const graph::Node& node) {
    const int64_t block = node.get("blocksize", int64_t{1});
    const View dst = lowering.destination(node.outputs[0], channels_last(4), true);
    lowering.copy(blocks_of_space(lowering.view(node.inputs[0]), block),
                  blocks_of_depth(dst, block, false), node.name);
    lowering.finish(node.outputs[0], dst);
    return {};
}

Result<void> lower_pad(Lowering& lowering, const graph::Node& node) {
    const float value = node.get("value", 0.0F);
    const Dims pads = node.get("pads", Dims{});
    const View src = lowering.view(node.inputs[0]);
    const View dst = lowering.destination(node.outputs[0], lowering.order(node.outputs[0]), true);
    const auto byte = static_cast<uint8_t>(static_cast<int>(value));
    // Axis by axis what lies before and behind the data; what is left is its place.
    View inside = dst;
    const auto fill = [&](size_t axis, int64_t first, int64_t count) {
        if (count == 0) return;
        const View border = slice(inside, axis, first, count, 1);
        lowering.emit(std::make_unique<ZeroStep>(border, byte), node.name, {&border});
    };
    for (size_t i = 0; i < src.dims.size(); ++i) {
        const int64_t behind = pads[i] + src.dims[i];
        fill(i, 0, pads[i]);
        fill(i, behind, dst.dims[i] - behind);
        inside = slice(inside, i, pads[i], src.dims[i], 1);
    }
    lowering.copy(src, inside, node.name);
    lowering.finish(node.outputs[0], dst);
    return {};
}

}  // namespace vartml::softnpu
