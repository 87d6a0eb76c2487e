// SPDX-License-Identifier: Apache-2.0
// Our own convolutions as steps.
#include "lib/device/softnpu/direct_conv.h"

#include <algorithm>
#include <limits>

#include "kernels/conv/conv.h"
#include "lib/device/softnpu/border.h"
#include "lib/device/softnpu/copy_step.h"
#include "lib/device/softnpu/packed_weights.h"

namespace vartml::softnpu {
namespace {

using kernels::Activation;
using kernels::ConvShape;
using kernels::Epilogue;

struct Row {
    std::string_view kind;
    Activation activation;
};
constexpr Row activations[] = {
    {"Relu", Activation::relu},
    {"LeakyRelu", Activation::leaky},
    {"Clip", Activation::clip},
    {"Sigmoid", Activation::sigmoid},
    {"SiLU", Activation::silu},
    {"HardSigmoid", Activation::hard_sigmoid},
    {"HardSwish", Activation::hard_swish},
    {"Tanh", Activation::tanh},
};

// The parts behind the convolution: one activation and one addition at most, in either order.
struct Parts {
    Epilogue epilogue;
    bool residual = false;
};
std::optional<Parts> read_parts(const graph::Node& node) {
    Parts result;
    const auto parts = node.parts();
    for (size_t i = 1; i < parts.size(); ++i) {
        if (parts[i] == "Add") {
            if (result.residual) return std::nullopt;
            result.residual = true;
            result.epilogue.add_first = result.epilogue.activation == Activation::none;
            continue;
        }
        const auto row = std::ranges::find(activations, parts[i], &Row::kind);
        if (row == std::end(activations) || result.epilogue.activation != Activation::none) {
            return std::nullopt;
        }
        constexpr float most = std::numeric_limits<float>::max();
        const std::string prefix = std::string(parts[i]) + ".";
        Epilogue& e = result.epilogue;
        e.activation = row->activation;
        if (e.activation == Activation::leaky) e.alpha = node.get(prefix + "alpha", 0.01F);
        if (e.activation == Activation::clip) {
            e.alpha = node.get(prefix + "min", -most);
            e.beta = node.get(prefix + "max", most);
        }
        if (e.activation == Activation::hard_sigmoid) {
            e.alpha = node.get(prefix + "alpha", 0.2F);
            e.beta = node.get(prefix + "beta", 0.5F);
        }
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
    View dst = lowering.destination(out, channels_last(4), true);
    if (!contiguous_channels(dst)) {
        dst = lowering.new_buffer(DataType::float32, lowering.value(out).type.shape,
                                  channels_last(4));
    }
    const View weights = packed_weights(lowering, node.inputs[1], bias, shape);
    lowering.emit(
        std::make_unique<DirectConvStep>(shape, parts.epilogue, src, weights, residual, dst),
        node.name, {&src, &weights, &dst, parts.residual ? &residual : nullptr});
    lowering.finish(out, dst);
    return {};
}

}  // namespace vartml::softnpu
