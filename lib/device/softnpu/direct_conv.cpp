// SPDX-License-Identifier: Apache-2.0
// Our own convolutions as steps.
#include "lib/device/softnpu/direct_conv.h"

#include <algorithm>

#include "kernels/conv/conv.h"
#include "lib/device/softnpu/activation_step.h"
#include "lib/device/softnpu/border.h"
#include "lib/device/softnpu/copy_step.h"
#include "lib/device/softnpu/packed_weights.h"

namespace vartml::softnpu {
namespace {

using kernels::Activation;
using kernels::ConvShape;
using kernels::Epilogue;

// The parts behind the convolution: one activation and one addition at most, in either order.
struct Parts {
    Epilogue epilogue;
    bool residual = false;
};
std::optional<Parts> read_parts(const graph::Node& node) {
    Parts result;
    const auto parts = node.parts();
    for (size_t i = 1; i < parts.size(); ++i) {
        const bool has_activation = result.epilogue.activation != Activation::none;
        if (parts[i] == "Add") {
            if (result.residual) return std::nullopt;
            result.residual = true;
            result.epilogue.add_first = !has_activation;
            continue;
        }
        auto epilogue = find_activation(node, parts[i], std::string(parts[i]) + ".");
        if (!epilogue || has_activation) return std::nullopt;
        epilogue->add_first = result.epilogue.add_first;
        result.epilogue = *epilogue;
    }
    return result;
}

bool contiguous_channels(const View& view) {
    return view.type == DataType::float32 && (view.strides[1] == 1 || view.dims[1] == 1);
}

class DirectConvStep final : public Step {
public:
    DirectConvStep(const ConvShape& shape, const Epilogue& epilogue, View src, View packed,
                   View residual, View dst)
        : shape_(shape),
          epilogue_(epilogue),
          src_(std::move(src)),
          packed_(std::move(packed)),
          residual_(std::move(residual)),
          dst_(std::move(dst)) {}

    // Units are rows of all images.
    Extent extent() const override {
        const int64_t taps = int64_t{shape_.kernel_height} * shape_.kernel_width *
                             (shape_.depthwise ? 1 : shape_.in_channels);
        return {dst_.dims[0] * dst_.dims[2], dst_.elements() * (taps + 10) / 40};
    }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto* packed = reinterpret_cast<const float*>(address(bases, packed_));
        const auto [first, last] = part(item);
        const int64_t rows = dst_.dims[2];
        for (int64_t at = first; at < last;) {
            const int64_t n = at / rows, y = at % rows, end = std::min(rows, y + last - at);
            const auto out = picture(bases, dst_, n);
            const kernels::SrcPicture add = residual_.buffer < 0
                                                ? kernels::SrcPicture{nullptr, 0, 0}
                                                : picture(bases, residual_, n);
            const kernels::DstPicture dst{const_cast<float*>(out.data), out.row, out.pixel};
            kernels::conv_rows(shape_, picture(bases, src_, n), packed, epilogue_, add, dst,
                               static_cast<uint32_t>(y), static_cast<uint32_t>(end));
            at += end - y;
        }
    }

    std::string describe() const override {
        return std::string(shape_.depthwise ? "depthwise" : "conv") + " direct " +
               std::to_string(shape_.kernel_height) + "x" + std::to_string(shape_.kernel_width) +
               " " + text(src_) + " -> " + text(dst_);
    }

private:
    static kernels::SrcPicture picture(const Bases& bases, const View& view, int64_t n) {
        const auto* data =
            reinterpret_cast<const float*>(address(bases, view)) + n * view.strides[0];
        return {data, static_cast<size_t>(view.strides[2]), static_cast<size_t>(view.strides[3])};
    }

    ConvShape shape_;
    Epilogue epilogue_;
    View src_, packed_, residual_, dst_;
};

ConvShape shape_of(const Lowering& lowering, const graph::Node& node) {
    const Dims& x = lowering.value(node.inputs[0]).type.shape;
    const Dims& w = lowering.value(node.inputs[1]).type.shape;
    const Dims& y = lowering.value(node.outputs[0]).type.shape;
    const Dims strides = node.get("strides", Dims{1, 1}),
               dilations = node.get("dilations", Dims{1, 1});
    const Dims pads = node.get("pads", Dims{0, 0, 0, 0});
    const auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
    const bool depthwise = node.get("group", int64_t{1}) > 1;
    return {u(x[2]),
            u(x[3]),
            u(x[1]),
            u(y[2]),
            u(y[3]),
            u(y[1]),
            u(w[2]),
            u(w[3]),
            u(strides[0]),
            u(strides[1]),
            u(dilations[0]),
            u(dilations[1]),
            static_cast<int32_t>(pads[0]),
            static_cast<int32_t>(pads[1]),
            depthwise};
}

// The picture as it lies where channels are contiguous fp32, else copied. A blocked border tensor
// of another type is copied whole, with its padding channels, which costs less than leaving them
// out.
View source(Lowering& lowering, graph::ValueId id) {
    const View& view = lowering.view(id);
    if (contiguous_channels(view)) return view;
    const auto padded = lowering.is_border_input(view) ? with_padding_channels(view) : std::nullopt;
    if (!padded) return lowering.dense(id, channels_last(4), DataType::float32);
    const View copy =
        lowering.dense(*padded, channels_last(4), DataType::float32, lowering.value(id).name);
    return slice(copy, 1, 0, view.dims[1], 1);
}

// What decides how weights are packed, and which bias goes with them.
std::string layout_name(const ConvShape& s, const std::byte* bias) {
    std::string name = "direct";
    for (const uint32_t part :
         {s.in_channels, s.out_channels, s.kernel_height, s.kernel_width, s.stride_width,
          s.dilation_width, static_cast<uint32_t>(s.depthwise)}) {
        name += " " + std::to_string(part);
    }
    return name + " " + std::to_string(reinterpret_cast<uintptr_t>(bias));
}

View packed_weights(Lowering& lowering, graph::ValueId weight, graph::ValueId bias,
                    const ConvShape& shape) {
    const auto floats = [&](graph::ValueId id) {
        return reinterpret_cast<const float*>(lowering.constant_bytes(id, DataType::float32));
    };
    const View source = lowering.view(weight);
    bool shareable = lowering.is_model_constant(source);
    const std::byte* bias_source = nullptr;
    if (bias >= 0) {
        const View view = lowering.view(bias);
        shareable = shareable && lowering.is_model_constant(view);
        bias_source = lowering.constant_data(view);
    }
    const Packed packed =
        pack(lowering.constant_data(source), layout_name(shape, bias_source), shareable, [&] {
            Bytes bytes(kernels::packed_conv_size(shape) * sizeof(float));
            kernels::pack_conv(shape, floats(weight), bias >= 0 ? floats(bias) : nullptr,
                               reinterpret_cast<float*>(bytes.data()));
            return bytes;
        });
    return lowering.add_shared_constant(packed.bytes, packed.fresh);
}

// Where a value is written: its place if its channels are contiguous there.
View writable(Lowering& lowering, graph::ValueId out) {
    const View dst = lowering.destination(out, channels_last(4), true);
    if (contiguous_channels(dst)) return dst;
    return lowering.new_buffer(DataType::float32, lowering.value(out).type.shape, channels_last(4));
}

void emit_direct(Lowering& lowering, const graph::Node& node, const ConvShape& shape,
                 const Epilogue& epilogue, const View& src, const View& weights,
                 const View& residual, const View& dst) {
    lowering.emit(std::make_unique<DirectConvStep>(shape, epilogue, src, weights, residual, dst),
                  node.name, {&src, &weights, &dst, residual.buffer >= 0 ? &residual : nullptr});
}

}  // namespace

bool runs_direct_conv(const Lowering& lowering, const graph::Node& node) {
    if (lowering.compute() != DataType::float32) return false;
    const auto& weight = lowering.value(node.inputs[1]);
    if (!weight.constant || weight.type.shape.size() != 4 || !read_parts(node)) return false;
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    if (bias >= 0 && !lowering.value(bias).constant) return false;
    const Dims& w = weight.type.shape;
    const int64_t groups = node.get("group", int64_t{1});
    const bool depthwise = groups > 1 && w[0] == groups && w[1] == 1;
    if (groups > 1 && !depthwise) return false;
    return w[2] * w[3] <= 121;
}

Result<void> lower_direct_conv(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    const graph::ValueId out = node.outputs[0];
    const Parts parts = *read_parts(node);
    const ConvShape shape = shape_of(lowering, node);
    const View src = source(lowering, node.inputs[0]);
    View residual;
    if (parts.residual) {
        residual = lowering.view(node.inputs[3]);
        if (!contiguous_channels(residual)) {
            residual = lowering.dense(node.inputs[3], channels_last(4), DataType::float32);
        }
    }
    const View dst = writable(lowering, out);
    const View weights = packed_weights(lowering, node.inputs[1], bias, shape);
    emit_direct(lowering, node, shape, parts.epilogue, src, weights, residual, dst);
    lowering.finish(out, dst);
    return {};
}

// ---- transposed: one convolution per phase of the output, each with its part of the kernel
// ---------

namespace {

// Output rows (or columns) phase, phase + stride, … of a transposed convolution: a convolution with
// every stride-th tap, in reverse.
struct Phase {
    int64_t phase, outputs, first_tap, taps, pad;
};
std::vector<Phase> phases(int64_t outputs, int64_t stride, int64_t kernel, int64_t pad) {
    std::vector<Phase> result;
    for (int64_t p = 0; p < stride && p < outputs; ++p) {
        const int64_t first = (p + pad) % stride;
        const int64_t taps = first < kernel ? (kernel - first + stride - 1) / stride : 0;
        // Output t of the phase reads input t + (p + pad - first) / stride - j with tap j.
        result.push_back({p, (outputs - p + stride - 1) / stride, first, taps,
                          taps - 1 - (p + pad - first) / stride});
    }
    return result;
}

// Every stride-th pixel of a picture from (y, x) on.
View pixels_of(const View& picture, const Phase& y, const Phase& x, int64_t sy, int64_t sx) {
    return slice(slice(picture, 2, y.phase, y.outputs, sy), 3, x.phase, x.outputs, sx);
}

// [O][C][taps] of one phase from [C][O][kernel], taps reversed.
std::vector<float> phase_weights(const float* weights, const Dims& dims, const Phase& y,
                                 const Phase& x, int64_t sy, int64_t sx) {
    std::vector<float> result;
    for (int64_t o = 0; o < dims[1]; ++o) {
        for (int64_t c = 0; c < dims[0]; ++c) {
            const float* const filter = weights + (c * dims[1] + o) * dims[2] * dims[3];
            for (int64_t j = y.taps - 1; j >= 0; --j) {
                for (int64_t i = x.taps - 1; i >= 0; --i) {
                    result.push_back(
                        filter[(y.first_tap + j * sy) * dims[3] + x.first_tap + i * sx]);
                }
            }
        }
    }
    return result;
}

// Every input pixel makes a block of output pixels of its own.
bool is_upscaling(const Dims& weights, const Dims& strides, const Dims& pads, const View& dst,
                  const View& src) {
    return weights[2] == strides[0] && weights[3] == strides[1] && pads == Dims{0, 0, 0, 0} &&
           dst.dims[2] == src.dims[2] * strides[0] && dst.dims[3] == src.dims[3] * strides[1];
}

// All phases as the channels of one 1x1 convolution, then put in their places.
Result<void> lower_upscaling(Lowering& lowering, const graph::Node& node, const Epilogue& epilogue,
                             const View& src, const View& dst) {
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    const auto floats = [&](graph::ValueId id) {
        return reinterpret_cast<const float*>(lowering.constant_bytes(id, DataType::float32));
    };
    const Dims& w = lowering.value(node.inputs[1]).type.shape;  // [C][O][y][x]
    const int64_t channels = w[2] * w[3] * w[1], taps = w[2] * w[3];
    std::vector<float> weights, biases;  // [y][x][O][C]
    for (int64_t t = 0; t < taps; ++t) {
        for (int64_t o = 0; o < w[1]; ++o) {
            biases.push_back(bias >= 0 ? floats(bias)[o] : 0);
            for (int64_t c = 0; c < w[0]; ++c) {
                weights.push_back(floats(node.inputs[1])[(c * w[1] + o) * taps + t]);
            }
        }
    }
    const auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
    const ConvShape shape{u(src.dims[2]), u(src.dims[3]), u(w[0]),
                          u(src.dims[2]), u(src.dims[3]), u(channels)};
    Bytes bytes(kernels::packed_conv_size(shape) * sizeof(float));
    kernels::pack_conv(shape, weights.data(), biases.data(),
                       reinterpret_cast<float*>(bytes.data()));
    const auto count = static_cast<int64_t>(bytes.size() / sizeof(float));
    const View packed =
        lowering.add_constant(DataType::float32, {count}, row_major(1), std::move(bytes));
    const View made = lowering.new_buffer(
        DataType::float32, {src.dims[0], channels, src.dims[2], src.dims[3]}, channels_last(4));
    emit_direct(lowering, node, shape, epilogue, src, packed, {}, made);
    // Both as [N, O, H, y, W, x].
    const Dims blocks{src.dims[0], w[1], src.dims[2], w[2], src.dims[3], w[3]};
    View from = made, to = dst;
    from.dims = to.dims = blocks;
    from.strides = {made.strides[0], 1, made.strides[2], w[3] * w[1], made.strides[3], w[1]};
    to.strides = {dst.strides[0], dst.strides[1],        dst.strides[2] * w[2],
                  dst.strides[2], dst.strides[3] * w[3], dst.strides[3]};
    lowering.copy(from, to, node.name);
    lowering.finish(node.outputs[0], dst);
    return {};
}

}  // namespace

bool runs_direct_conv_transpose(const Lowering& lowering, const graph::Node& node) {
    if (lowering.compute() != DataType::float32) return false;
    const auto& weight = lowering.value(node.inputs[1]);
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    const auto parts = read_parts(node);
    if (!weight.constant || weight.type.shape.size() != 4 || !parts || parts->residual ||
        (bias >= 0 && !lowering.value(bias).constant) || node.get("group", int64_t{1}) != 1) {
        return false;
    }
    const Dims dilations = node.get("dilations", Dims{1, 1});
    const Dims strides = node.get("strides", Dims{1, 1});
    const Dims& w = weight.type.shape;
    return dilations == Dims{1, 1} && w[2] >= strides[0] && w[3] >= strides[1] &&
           w[2] * w[3] <= 121;
}

Result<void> lower_direct_conv_transpose(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    const graph::ValueId out = node.outputs[0];
    Parts parts = *read_parts(node);
    const View src = source(lowering, node.inputs[0]);
    const View dst = writable(lowering, out);
    const Dims& w = lowering.value(node.inputs[1]).type.shape;
    const Dims strides = node.get("strides", Dims{1, 1}), pads = node.get("pads", Dims{0, 0, 0, 0});
    const auto floats = [&](graph::ValueId id) {
        return reinterpret_cast<const float*>(lowering.constant_bytes(id, DataType::float32));
    };
    // Few channels leave vectors of a phase almost empty.
    constexpr int64_t few_channels = 16;
    if (w[1] < few_channels && is_upscaling(w, strides, pads, dst, src)) {
        return lower_upscaling(lowering, node, parts.epilogue, src, dst);
    }
    const bool apart = w[1] < few_channels && is_dense(dst, channels_last(4));
    const Epilogue own = apart ? Epilogue{} : parts.epilogue;
    for (const Phase& y : phases(dst.dims[2], strides[0], w[2], pads[0])) {
        for (const Phase& x : phases(dst.dims[3], strides[1], w[3], pads[1])) {
            const auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
            const ConvShape shape{u(src.dims[2]),
                                  u(src.dims[3]),
                                  u(w[0]),
                                  u(y.outputs),
                                  u(x.outputs),
                                  u(w[1]),
                                  u(y.taps),
                                  u(x.taps),
                                  1,
                                  1,
                                  1,
                                  1,
                                  static_cast<int32_t>(y.pad),
                                  static_cast<int32_t>(x.pad),
                                  false};
            Bytes bytes(kernels::packed_conv_size(shape) * sizeof(float));
            kernels::pack_conv(
                shape,
                phase_weights(floats(node.inputs[1]), w, y, x, strides[0], strides[1]).data(),
                bias >= 0 ? floats(bias) : nullptr, reinterpret_cast<float*>(bytes.data()));
            const auto count = static_cast<int64_t>(bytes.size() / sizeof(float));
            const View weights =
                lowering.add_constant(DataType::float32, {count}, row_major(1), std::move(bytes));
            emit_direct(lowering, node, shape, own, src, weights, {},
                        pixels_of(dst, y, x, strides[0], strides[1]));
        }
    }
    if (apart) lower_activation(lowering, parts.epilogue, dst, dst, node.name);
    lowering.finish(out, dst);
    return {};
}

}  // namespace vartml::softnpu
