// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/code_conv.h"

#include <algorithm>
#include <cmath>

#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/direct_conv.h"

namespace vartml::softnpu {
namespace {

constexpr size_t weights_at = 3, weight_zero_at = 5, bias_at = 8;

// The picture as it lies where the kernels can read it. Where one group reads a blocked border
// tensor, its padding channels become channels of `shape`, whose weights are 0.
View source(Lowering& lowering, const graph::Node& node, GroupedShape& shape) {
    const View& view = lowering.view(node.inputs[0]);
    if (is_code_picture(view) && node.get("group", int64_t{1}) == 1) {
        const auto padded = with_padding_channels(view);
        if (padded && padded->dims[1] - view.dims[1] < 4 && view.offset == 0) {
            shape.shape.in_channels = static_cast<uint32_t>(padded->dims[1]);
            return *padded;
        }
    }
    return is_code_picture(view)
               ? view
               : lowering.dense(node.inputs[0], channels_last(4), DataType::uint8);
}

// Weights [O, I, k…] with channels of zeros behind the last input channel.
std::vector<float> with_channels(std::vector<float> weights, const Dims& dims, size_t channels) {
    const auto outputs = static_cast<size_t>(dims[0]), own = static_cast<size_t>(dims[1]);
    if (own == channels) return weights;
    const size_t from = weights.size() / outputs, to = from / own * channels;
    std::vector<float> result(outputs * to);
    for (size_t o = 0; o < outputs; ++o)
        std::copy_n(weights.data() + o * from, from, result.data() + o * to);
    return result;
}

// Whether the kernels multiply such codes and add such biases.
bool takes_codes(const Lowering& lowering, const CodeConv& conv) {
    // A float counts to 2^24.
    constexpr int64_t most_bias = 1 << 24;
    return kernels::has_code_products() && !conv.x.is_signed && !conv.y.is_signed &&
           std::ranges::all_of(integers_of(lowering.graph(), conv.node, bias_at),
                               [](int64_t b) { return std::abs(b) <= most_bias; });
}

CodesOfSums codes_of(Lowering& lowering, const CodeConv& conv, int64_t outputs) {
    const std::vector<float> ones(1, 1.0F);
    return codes_of_sums(lowering, conv.scales, conv.activation ? conv.factors : ones, outputs,
                         static_cast<uint8_t>(conv.y.zero));
}

void set_codes(kernels::ConvShape& shape, const CodeConv& conv) {
    shape.source = shape.result = shape.factors = kernels::Element::u8;
    shape.source_zero = static_cast<uint8_t>(conv.x.zero);
}

}  // namespace

bool runs_code_conv(const Lowering& lowering, const CodeConv& conv) {
    return takes_codes(lowering, conv) &&
           fits_kernels(lowering.value(conv.node.inputs[weights_at]).type.shape);
}

void lower_code_conv(Lowering& lowering, const CodeConv& conv) {
    const graph::Node& node = conv.node;
    const graph::ValueId out = node.outputs[0];
    GroupedShape shape = conv_shape(lowering, node, weights_at);
    set_codes(shape.shape, conv);
    const View src = source(lowering, node, shape);
    const View stored = lowering.destination(out, channels_last(4), true);
    const View dst = is_code_picture(stored)
                         ? stored
                         : lowering.new_buffer(DataType::uint8, stored.dims, channels_last(4));
    const View weights = pack_conv_weights(lowering, shape, [&lowering, &node, shape] {
        const auto centred = centred_weights(lowering.graph(), node, weights_at, weight_zero_at, 0);
        const auto bias = integers_of(lowering.graph(), node, bias_at);
        const Dims& dims = lowering.value(node.inputs[weights_at]).type.shape;
        const int64_t groups = node.get("group", int64_t{1});
        std::vector<float> floats(centred.begin(), centred.end());
        return ConvWeights{groups == 1
                               ? with_channels(std::move(floats), dims, shape.shape.in_channels)
                               : spread_groups(std::move(floats), dims, groups, shape),
                           {bias.begin(), bias.end()}};
    });
    emit_direct_conv(lowering, node, shape, conv.activation.value_or(kernels::Epilogue{}), src,
                     weights, {}, dst, codes_of(lowering, conv, dst.dims[1]));
    lowering.copy_unless_there(dst, stored, node.name);
    lowering.finish(out, stored);
}

bool runs_code_product(const Lowering& lowering, const CodeConv& conv) {
    return takes_codes(lowering, conv);
}

void lower_code_product(Lowering& lowering, const CodeConv& conv, const View& a, const View& dst) {
    const graph::Node& node = conv.node;
    const auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
    const int64_t rows = dst.dims[0], depth = a.dims[1], columns = dst.dims[1];
    GroupedShape shape{{u(rows), 1, u(depth), u(rows), 1, u(columns)}};
    set_codes(shape.shape, conv);
    const View weights = pack_conv_weights(lowering, shape, [&lowering, &node, depth, columns] {
        const auto centred = centred_weights(lowering.graph(), node, weights_at, weight_zero_at, 1);
        const auto bias = integers_of(lowering.graph(), node, bias_at);
        ConvWeights made{{}, {bias.begin(), bias.end()}};
        for (int64_t n = 0; n < columns; ++n)
            for (int64_t k = 0; k < depth; ++k)
                made.weights.push_back(centred[static_cast<size_t>(k * columns + n)]);
        return made;
    });
    const auto picture = [](const View& rows_of) {
        View view = rows_of;
        view.dims = {1, rows_of.dims[1], rows_of.dims[0], 1};
        view.strides = {0, 1, rows_of.strides[0], rows_of.strides[0]};
        return view;
    };
    emit_direct_conv(lowering, node, shape, {}, picture(a), weights, {}, picture(dst),
                     codes_of(lowering, conv, columns));
}

}  // namespace vartml::softnpu
