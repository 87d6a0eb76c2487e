// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/point_conv.h"

#include <algorithm>

#include "kernels/conv/bf16_point.h"
#include "lib/device/softnpu/conv_step.h"
#include "lib/device/softnpu/copy_step.h"
#include "lib/device/softnpu/rounded_weights.h"

namespace vartml::softnpu {
namespace {

using kernels::PointShape;

PointShape shape_of(const Lowering& lowering, const graph::Node& node) {
    const Dims& w = lowering.value(node.inputs[1]).type.shape;
    return {static_cast<uint32_t>(w[1]), static_cast<uint32_t>(w[0])};
}

// Channels of a pixel follow each other.
bool has_pixels(const View& view) {
    return view.strides[1] == 1 || view.dims[1] == 1;
}

class PointStep final : public Step {
public:
    PointStep(const PointShape& shape, const kernels::Epilogue& epilogue, View src, View packed,
              View residual, View dst)
        : shape_(shape),
          epilogue_(epilogue),
          src_(std::move(src)),
          packed_(std::move(packed)),
          residual_(std::move(residual)),
          dst_(std::move(dst)),
          is_flat_(flat(src_) && flat(dst_) && (residual_.buffer < 0 || flat(residual_))) {}

    // Rows of all pictures. 60 multiply-adds or 1.5 activations take a nanosecond.
    Extent extent() const override {
        return {dst_.dims[0] * dst_.dims[2], dst_.elements() * (shape_.in_channels + 40) / 60};
    }

    void run(const Bases& bases, size_t item) noexcept override {
        const int64_t height = dst_.dims[2], width = dst_.dims[3];
        const auto [first, last] = part(item);
        for (int64_t at = first; at < last;) {
            const int64_t n = at / height, row = at % height;
            const int64_t rows = is_flat_ ? std::min(height - row, last - at) : 1;
            const auto pixels = static_cast<size_t>(rows * width);
            dst_.type == DataType::bf16 ? run_pixels<kernels::bf16>(bases, n, row, pixels)
                                        : run_pixels<float>(bases, n, row, pixels);
            at += rows;
        }
    }

    std::string describe() const override {
        return "conv point 1x1 " + text(src_) + " -> " + text(dst_);
    }

private:
    // Rows follow each other without a gap.
    static bool flat(const View& view) {
        return view.dims[2] == 1 || view.strides[2] == view.strides[3] * view.dims[3];
    }
    template <typename T>
    static T* row_of(const Bases& bases, const View& view, int64_t n, int64_t row) {
        return reinterpret_cast<T*>(address(bases, view)) + n * view.strides[0] +
               row * view.strides[2];
    }
    static kernels::Bf16Line line(const Bases& bases, const View& view, int64_t n, int64_t row) {
        if (view.buffer < 0) return {nullptr, 0};
        return {row_of<const kernels::bf16>(bases, view, n, row),
                static_cast<size_t>(view.strides[3])};
    }
    template <typename T>
    void run_pixels(const Bases& bases, int64_t n, int64_t row, size_t pixels) const {
        kernels::bf16_point(shape_, line(bases, src_, n, row), address(bases, packed_), epilogue_,
                            line(bases, residual_, n, row), row_of<T>(bases, dst_, n, row),
                            static_cast<size_t>(dst_.strides[3]), pixels);
    }

    PointShape shape_;
    kernels::Epilogue epilogue_;
    View src_, packed_, residual_, dst_;
    bool is_flat_;
};

View bf16_picture(Lowering& lowering, graph::ValueId id) {
    const View& view = lowering.view(id);
    if (view.type == DataType::bf16 && has_pixels(view)) return view;
    return lowering.dense(id, channels_last(4), DataType::bf16);
}

View destination(Lowering& lowering, graph::ValueId out) {
    const View dst = lowering.destination(out, channels_last(4), true);
    const bool is_written = dst.type == DataType::bf16 || dst.type == DataType::float32;
    if (is_written && has_pixels(dst)) return dst;
    return lowering.new_buffer(lowering.stored_type(out), lowering.value(out).type.shape,
                               channels_last(4));
}

}  // namespace

bool runs_point_conv(const Lowering& lowering, const graph::Node& node) {
    if (lowering.compute(node) != DataType::bf16) return false;
    const auto& weight = lowering.value(node.inputs[1]);
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    if (!weight.constant || (bias >= 0 && !lowering.value(bias).constant)) return false;
    const Dims& w = weight.type.shape;
    const auto is_all = [&node](const char* name, int64_t value) {
        return std::ranges::all_of(node.get(name, Dims{}),
                                   [value](int64_t v) { return v == value; });
    };
    const DataType stored = lowering.stored_type(node.outputs[0]);
    return w.size() == 4 && w[2] * w[3] == 1 && node.get("group", int64_t{1}) == 1 &&
           is_all("strides", 1) && is_all("pads", 0) && read_conv_parts(node) &&
           (stored == DataType::bf16 || stored == DataType::float32) &&
           kernels::has_bf16_point(shape_of(lowering, node));
}

Result<void> lower_point_conv(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    const PointShape shape = shape_of(lowering, node);
    const ConvParts parts = *read_conv_parts(node);
    const View src = bf16_picture(lowering, node.inputs[0]);
    const View residual = parts.residual ? bf16_picture(lowering, node.inputs[3]) : View{};
    const View dst = destination(lowering, node.outputs[0]);
    const size_t size = kernels::packed_bf16_point_size(shape);
    const std::string layout = "bf16 point " + std::to_string(shape.in_channels) + ' ' +
                               std::to_string(shape.out_channels);
    const View weights = lowering.add_packed(size, layout, [&lowering, &node, bias, shape, size] {
        std::vector<float> biases = floats(lowering, bias);
        biases.resize(shape.out_channels, 0.0F);
        Bytes packed(size);
        kernels::pack_bf16_point(shape, rounded_weights(lowering, node.inputs[1]).data(),
                                 biases.data(), packed.data());
        return packed;
    });
    lowering.emit(std::make_unique<PointStep>(shape, parts.epilogue, src, weights, residual, dst),
                  node.name, {&src, &weights, &dst, residual.buffer >= 0 ? &residual : nullptr});
    lowering.finish(node.outputs[0], dst);
    return {};
}

}  // namespace vartml::softnpu
