// SPDX-License-Identifier: Apache-2.0
// Pooling over windows and over whole pictures.
#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "kernels/conv/max_pool.h"
#include "kernels/ops/elementwise.h"
#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/conv_step.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/lowering.h"
#include "lib/run/softnpu/operators.h"

namespace vartml::softnpu {

namespace {

// MaxPool by our own kernel.
class MaxPoolStep final : public Step {
public:
    MaxPoolStep(const kernels::PoolShape& shape, View src, View dst)
        : shape_(shape), src_(std::move(src)), dst_(std::move(dst)) {}

    // Rows of all images.
    Extent extent() const override {
        const int64_t window = shape_.kernel_height + shape_.kernel_width;
        return {dst_.dims[0] * dst_.dims[2], dst_.elements() * window / 16};
    }

    // Scratch memory of one item lies behind that of another.
    size_t scratch_bytes(unsigned threads) const {
        return items_for(extent(), threads) * kernels::max_pool_scratch_size(shape_);
    }
    void set_scratch(View scratch) { scratch_ = std::move(scratch); }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto [first, last] = part(item);
        const int64_t rows = dst_.dims[2];
        std::byte* const scratch =
            address(bases, scratch_) + item * kernels::max_pool_scratch_size(shape_);
        for (int64_t at = first; at < last;) {
            const int64_t n = at / rows, y = at % rows, end = std::min(rows, y + last - at);
            kernels::max_pool_rows(shape_, picture_of<const void>(bases, src_, n),
                                   picture_of<void>(bases, dst_, n), scratch,
                                   static_cast<size_t>(y), static_cast<size_t>(end));
            at += end - y;
        }
    }

    std::string describe() const override {
        return "MaxPool " + std::to_string(shape_.kernel_height) + "x" +
               std::to_string(shape_.kernel_width) + " " + text(src_) + " -> " + text(dst_);
    }

private:
    kernels::PoolShape shape_;
    View src_, dst_, scratch_;
};

// `src` and `dst` are [N, C, H, W] with contiguous channels.
void emit_max_pool(Lowering& lowering, const graph::Node& node, const kernels::PoolShape& shape,
                   const View& src, const View& dst) {
    auto step = std::make_unique<MaxPoolStep>(shape, src, dst);
    const View scratch = lowering.scratch_view(step->scratch_bytes(lowering.threads()));
    step->set_scratch(scratch);
    lowering.emit(std::move(step), node.name, {&src, &dst, &scratch});
}

// Item i sums part i of the positions into position i of the destination.
class ColumnSumsStep final : public Step {
public:
    ColumnSumsStep(View src, float scale, View dst)
        : src_(std::move(src)), scale_(scale), dst_(std::move(dst)) {}

    Extent extent() const override { return {src_.dims[2], 0}; }
    void share_among(unsigned) override { set_items(static_cast<uint32_t>(dst_.dims[2])); }

    void run(const Bases& bases, size_t item) noexcept override {
        src_.type == DataType::bf16 ? sum<kernels::bf16>(bases, item) : sum<float>(bases, item);
    }

    std::string describe() const override { return "sum " + text(src_) + " -> " + text(dst_); }

private:
    template <typename T>
    void sum(const Bases& bases, size_t item) const {
        const auto* src = reinterpret_cast<const T*>(address(bases, src_));
        auto* dst = reinterpret_cast<float*>(address(bases, dst_));
        const auto [first, last] = part(item);
        for (int64_t n = 0; n < src_.dims[0]; ++n) {
            kernels::sum_of_rows(
                src + n * src_.strides[0] + first * src_.strides[2], src_.strides[2],
                static_cast<size_t>(last - first), scale_,
                dst + n * dst_.strides[0] + static_cast<int64_t>(item) * dst_.strides[2],
                static_cast<size_t>(src_.dims[1]));
        }
    }

    View src_;
    float scale_;
    View dst_;
};

// dst[n, c, 0] = scale · sum of src[n, c, …]; both [N, C, positions] with contiguous channels, src
// fp32 or bf16, dst fp32.
void lower_column_sums(Lowering& lowering, const View& src, float scale, const View& dst,
                       std::string_view name) {
    const uint32_t items = items_for({src.dims[2], src.elements() / 8}, lowering.threads());
    if (items == 1) {
        lowering.emit(std::make_unique<ColumnSumsStep>(src, scale, dst), name, {&src, &dst});
        return;
    }
    const View parts =
        lowering.new_buffer(DataType::float32, {src.dims[0], src.dims[1], items}, channels_last(3));
    lowering.emit(std::make_unique<ColumnSumsStep>(src, 1.0F, parts), name, {&src, &parts});
    lowering.emit(std::make_unique<ColumnSumsStep>(parts, scale, dst), name, {&parts, &dst});
}

// Means of windows whose elements all count: a depthwise convolution.
void lower_means(Lowering& lowering, const graph::Node& node, const Dims& kernel,
                 const Dims& strides, const Dims& pads, const View& src, const View& dst) {
    const auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
    const GroupedShape shape{{u(src.dims[2]), u(src.dims[3]), u(src.dims[1]), u(dst.dims[2]),
                              u(dst.dims[3]), u(dst.dims[1]), u(kernel[0]), u(kernel[1]),
                              u(strides[0]), u(strides[1]), 1, 1, static_cast<int32_t>(pads[0]),
                              static_cast<int32_t>(pads[1]), true}};
    const int64_t window = kernel[0] * kernel[1];
    const auto count = static_cast<size_t>(src.dims[1] * window);
    const View weights = pack_conv_weights(lowering, shape, [count, window] {
        return ConvWeights{std::vector<float>(count, 1.0F / static_cast<float>(window)), {}};
    });
    emit_direct_conv(lowering, node, shape, {}, src, weights, {}, dst);
}

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
    const Dims& result = lowering.value(node.outputs[0]).type.shape;
    const bool is_own = type == DataType::float32 || type == DataType::bf16;
    if (node.kind == "GlobalAveragePool" && is_own) {
        const View dst = lowering.destination(node.outputs[0], order, false);
        const int64_t positions = src.elements() / (src.dims[0] * src.dims[1]);
        const View rows = *reshape(src, {src.dims[0], src.dims[1], positions});
        const View means = dst.type == DataType::float32
                               ? dst
                               : lowering.new_buffer(DataType::float32, dst.dims, order);
        lower_column_sums(lowering, rows, 1.0F / static_cast<float>(positions),
                          *reshape(means, {dst.dims[0], dst.dims[1], 1}), node.name);
        lowering.copy_unless_there(means, dst, node.name);
        lowering.finish(node.outputs[0], dst);
        return {};
    }
    const size_t spatial = src.dims.size() - 2;
    const bool global = node.kind.starts_with("Global");
    const Dims extent(src.dims.begin() + 2, src.dims.end());
    const Dims kernel = global ? extent : node.get("kernel_shape", Dims{});
    const Dims strides = global ? Dims(spatial, 1) : node.get("strides", Dims(spatial, 1));
    Dims dilations = global ? Dims(spatial, 1) : node.get("dilations", Dims(spatial, 1));
    const Dims pads = global ? Dims(2 * spatial, 0) : node.get("pads", Dims(2 * spatial, 0));
    const bool count_padding = !global && node.get("count_include_pad", int64_t{0}) != 0;
    const bool max = node.kind.ends_with("MaxPool");
    Dims begin, end;
    for (size_t i = 0; i < spatial; ++i) {
        const int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
        begin.push_back(pads[i]);
        end.push_back((result[i + 2] - 1) * strides[i] + reach - extent[i] - pads[i]);
        --dilations[i];
    }
    const bool is_dilated = std::ranges::any_of(dilations, [](int64_t d) { return d != 0; });
    const auto has_kernel = [](const View& view) {
        return is_conv_picture(view) || (view.type == DataType::uint8 && view.strides[1] == 1);
    };
    if (max && spatial == 2 && has_kernel(src) && !is_dilated &&
        covers_pixels(begin, end, kernel)) {
        View dst = lowering.destination(node.outputs[0], order, true);
        if (!has_kernel(dst) || dst.type != type) dst = lowering.new_buffer(type, result, order);
        const auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
        emit_max_pool(
            lowering, node,
            {u(extent[0]), u(extent[1]), u(dst.dims[2]), u(dst.dims[3]), u(src.dims[1]),
             u(kernel[0]), u(kernel[1]), u(strides[0]), u(strides[1]),
             static_cast<int32_t>(pads[0]), static_cast<int32_t>(pads[1]), element_of(src)},
            src, dst);
        lowering.finish(node.outputs[0], dst);
        return {};
    }
    const View dst = lowering.destination(node.outputs[0], order, false);
    int64_t window = 1;
    for (const int64_t k : kernel) window *= k;
    Dims declared_end(pads.begin() + static_cast<ptrdiff_t>(spatial), pads.end());
    if (!count_padding) declared_end.assign(spatial, 0);
    const bool counts_all = (count_padding || begin == Dims(spatial, 0)) &&
                            std::ranges::equal(end, declared_end, std::less_equal());
    constexpr int64_t most_window = 121;  // of the kernels
    if (!max && spatial == 2 && window <= most_window && is_conv_picture(src) &&
        is_conv_picture(dst) && !is_dilated && counts_all) {
        lower_means(lowering, node, kernel, strides, pads, src, dst);
        lowering.finish(node.outputs[0], dst);
        return {};
    }
    const auto algorithm = max             ? dnnl::algorithm::pooling_max
                           : count_padding ? dnnl::algorithm::pooling_avg_include_padding
                                           : dnnl::algorithm::pooling_avg_exclude_padding;
    std::vector<OnednnCall> calls;
    for (const Band& band : bands(dst.dims, dst.elements() * window / 16, lowering.threads())) {
        const int64_t reach = (kernel[0] - 1) * (dilations[0] + 1);
        const int64_t first = band.rows.first * strides[0] - pads[0];
        const int64_t last = (band.rows.first + band.rows.size - 1) * strides[0] - pads[0] + reach;
        const int64_t from = std::max<int64_t>(first, 0), to = std::min(last, extent[0] - 1);
        const View in = slice(cut(src, 0, band.images), 2, from, to - from + 1, 1);
        const View out = cut(dst, band);
        begin[0] = std::max<int64_t>(-first, 0);
        end[0] = std::max<int64_t>(last - (extent[0] - 1), 0);
        const dnnl::pooling_forward::primitive_desc desc(
            cpu_engine(), dnnl::prop_kind::forward_inference, algorithm, descriptor(in),
            descriptor(out), strides, kernel, dilations, begin, end, attributes({}));
        calls.push_back(onednn_call<dnnl::pooling_forward>(desc, in, out));
    }
    emit_onednn(lowering, node, std::move(calls));
    lowering.finish(node.outputs[0], dst);
    return {};
}

}  // namespace vartml::softnpu
