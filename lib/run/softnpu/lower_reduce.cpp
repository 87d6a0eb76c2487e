// SPDX-License-Identifier: Apache-2.0
// Softmax and reductions.
#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "kernels/ops/elementwise.h"
#include "kernels/ops/softmax.h"
#include "lib/graph/ops.h"
#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/lowering.h"
#include "lib/run/softnpu/operators.h"

namespace vartml::softnpu {

// The largest or smallest element of a whole tensor, shared out among threads.

// dst[0] = max or min of all elements of src, f32 and dense; NaN where one is NaN.
void lower_extreme(Lowering& lowering, kernels::Binary op, const View& src, const View& dst,
                   std::string_view name);

// Softmax of fp32 rows by our own kernel.

// `src` and `dst` hold `rows` rows of `count` elements, one behind the other.
void emit_softmax(Lowering& lowering, const graph::Node& node, const View& src, const View& dst,
                  int64_t rows, int64_t count);

Result<void> lower_softmax(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId out = node.outputs[0];
    const int axis = static_cast<int>(
        graph::wrap_axis(node.get("axis", int64_t{-1}), lowering.value(out).type.shape.size()));
    const DataType type = lowering.stored_type(out);
    const Order order = order_of(lowering.view(node.inputs[0]));
    const View dst = lowering.destination(out, order, false);
    const bool along_memory = !order.empty() && order.back() == axis;
    const bool is_own = type == DataType::float32 || type == DataType::bf16;
    if (node.kind == "Softmax" && is_own && along_memory) {
        const View src = lowering.dense(node.inputs[0], order, DataType::float32);
        const View made = dst.type == DataType::float32
                              ? dst
                              : lowering.new_buffer(DataType::float32, dst.dims, order);
        const int64_t count = src.dims[static_cast<size_t>(axis)];
        emit_softmax(lowering, node, src, made, src.elements() / count, count);
        lowering.copy_unless_there(made, dst, node.name);
        lowering.finish(out, dst);
        return {};
    }
    const View src = lowering.dense(node.inputs[0], order, type);
    const auto algorithm = node.kind == "LogSoftmax" ? dnnl::algorithm::softmax_log
                                                     : dnnl::algorithm::softmax_accurate;
    // Rows are shared out along the outermost dimension that is not the axis.
    const auto sliced = std::ranges::find_if(
        order, [&](int32_t d) { return d != axis && src.dims[static_cast<size_t>(d)] > 1; });
    const auto dim = static_cast<size_t>(sliced == order.end() ? 0 : *sliced);
    const uint32_t items = sliced != order.begin()
                               ? 1
                               : items_for({src.dims[dim], src.elements() * 2}, lowering.threads());
    std::vector<OnednnCall> calls;
    for (const Range& range : ranges(src.dims[dim], items)) {
        const View in = items == 1 ? src : cut(src, dim, range);
        const View result = items == 1 ? dst : cut(dst, dim, range);
        const dnnl::softmax_forward::primitive_desc desc(
            cpu_engine(), dnnl::prop_kind::forward_inference, algorithm, descriptor(in),
            descriptor(result), axis, attributes({}));
        calls.push_back(onednn_call<dnnl::softmax_forward>(desc, in, result));
    }
    emit_onednn(lowering, node, std::move(calls));
    lowering.finish(out, dst);
    return {};
}

Result<void> lower_reduce(Lowering& lowering, const graph::Node& node) {
    const std::string_view kind = node.kind;
    const auto algorithm = kind == "ReduceMean"  ? dnnl::algorithm::reduction_mean
                           : kind == "ReduceSum" ? dnnl::algorithm::reduction_sum
                           : kind == "ReduceMax" ? dnnl::algorithm::reduction_max
                                                 : dnnl::algorithm::reduction_min;
    const graph::ValueId out = node.outputs[0];
    const DataType type = lowering.stored_type(out);
    const Order order = order_of(lowering.view(node.inputs[0]));
    const View src = lowering.dense(node.inputs[0], order, type);
    View kept = src;  // with the reduced axes as size 1
    for (const int64_t axis : node.get("axes", Dims{}))
        kept.dims[static_cast<size_t>(graph::wrap_axis(axis, kept.dims.size()))] = 1;
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
    const dnnl::reduction::primitive_desc desc(cpu_engine(), algorithm, descriptor(src),
                                               descriptor(dst), 0.0F, 0.0F, attributes({}));
    emit_onednn(lowering, node, {onednn_call<dnnl::reduction>(desc, src, dst)});
    const auto result = reshape(dst, lowering.value(out).type.shape);
    if (result) {
        lowering.finish(out, *result);
        return {};
    }
    const View plain = lowering.dense(dst, row_major(dst.dims.size()), type, node.name);
    lowering.finish(out, *reshape(plain, lowering.value(out).type.shape));
    return {};
}

namespace {

using kernels::Binary;

// Item i takes part i of the elements into element i of the destination.
class ExtremeStep final : public Step {
public:
    ExtremeStep(Binary op, View src, View dst)
        : op_(op), src_(std::move(src)), dst_(std::move(dst)) {}

    Extent extent() const override { return {src_.elements(), 0}; }
    void share_among(unsigned) override { set_items(static_cast<uint32_t>(dst_.elements())); }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto [first, last] = part(item);
        const auto* const src = reinterpret_cast<const float*>(address(bases, src_));
        reinterpret_cast<float*>(address(bases, dst_))[item] =
            extreme(src + first, static_cast<size_t>(last - first));
    }

    std::string describe() const override {
        return std::string(op_ == Binary::max ? "largest of " : "smallest of ") + text(src_);
    }

private:
    void fold(float* into, const float* from, size_t count) const {
        kernels::binary_rows(op_, {into, 0, 1}, {from, 0, 1}, {into, 0}, 1, count);
    }

    // Lanes side by side, then halves of the lanes.
    float extreme(const float* src, size_t count) const {
        constexpr size_t lanes = 512;
        std::array<float, lanes> best;
        constexpr float inf = std::numeric_limits<float>::infinity();
        best[0] = op_ == Binary::max ? -inf : inf;  // of no element
        size_t width = std::min(count, lanes);
        std::copy_n(src, width, best.begin());
        for (size_t at = width; at < count; at += lanes)
            fold(best.data(), src + at, std::min(lanes, count - at));
        while (width > 1) {
            const size_t half = (width + 1) / 2;
            fold(best.data(), best.data() + half, width - half);
            width = half;
        }
        return best[0];
    }

    Binary op_;
    View src_, dst_;
};

}  // namespace

void lower_extreme(Lowering& lowering, Binary op, const View& src, const View& dst,
                   std::string_view name) {
    const uint32_t items = items_for({src.elements(), src.elements() / 4}, lowering.threads());
    if (items == 1) {
        lowering.emit(std::make_unique<ExtremeStep>(op, src, dst), name, {&src, &dst});
        return;
    }
    const View parts = lowering.new_buffer(DataType::float32, {items}, row_major(1));
    lowering.emit(std::make_unique<ExtremeStep>(op, src, parts), name, {&src, &parts});
    lowering.emit(std::make_unique<ExtremeStep>(op, parts, dst), name, {&parts, &dst});
}

namespace {

class SoftmaxStep final : public Step {
public:
    SoftmaxStep(View src, View dst, int64_t rows, int64_t count)
        : src_(std::move(src)), dst_(std::move(dst)), rows_(rows), count_(count) {}

    Extent extent() const override { return {rows_, rows_ * (count_ + 20)}; }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto [first, last] = part(item);
        kernels::softmax_rows(reinterpret_cast<const float*>(address(bases, src_)) + first * count_,
                              reinterpret_cast<float*>(address(bases, dst_)) + first * count_,
                              static_cast<size_t>(last - first), static_cast<size_t>(count_));
    }

    std::string describe() const override {
        return "Softmax rows " + text(src_) + " -> " + text(dst_);
    }

private:
    View src_, dst_;
    int64_t rows_, count_;
};

}  // namespace

void emit_softmax(Lowering& lowering, const graph::Node& node, const View& src, const View& dst,
                  int64_t rows, int64_t count) {
    lowering.emit(std::make_unique<SoftmaxStep>(src, dst, rows, count), node.name, {&src, &dst});
}

}  // namespace vartml::softnpu
