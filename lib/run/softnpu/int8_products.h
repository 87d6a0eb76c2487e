// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products of codes in oneDNN: the numbers around them.
#pragma once
#include <string_view>
#include <vector>

#include "lib/run/softnpu/codes.h"
#include "lib/run/softnpu/onednn.h"
#include "lib/run/softnpu/post_ops.h"
#include "lib/run/softnpu/processor.h"

namespace vartml::softnpu {

bool is_reference(std::string_view implementation);

// What a sum of products of centred codes is multiplied by, one number or one per channel, and what
// is added then, empty or one per channel; in steps of the result.
struct Int8Numbers {
    std::vector<float> scales, bias;
};
// Of a QLinear operator: `scale` and `bias` are the inputs with the scale of the weights and the
// bias.
Int8Numbers int8_numbers(const graph::Graph& graph, const graph::Node& node, const Coding& x,
                         const Coding& y, size_t scale, size_t bias);

// The coding of the result, of which `scale` is the input with the scale.
std::optional<Coding> coding_of_result(const graph::Graph& graph, const graph::Node& node,
                                       size_t scale);

// The same as operands of a primitive; buffer -1: none.
struct Int8Scaling {
    View scales, src_zero, dst_zero;
    // What happens behind scales and bias: an activation, then factors, one number or one per
    // channel in the rank of the result; buffer -1: none.
    std::optional<Eltwise> activation;
    View factors;
};
// Whether the zero point of the data of ConvInteger or MatMulInteger, input 2, is absent or one.
bool has_one_zero_point(const graph::Graph& graph, const graph::Node& node);
// That zero point where a run computes it, as a coding with scale 1; nullopt where it is constant.
std::optional<ComputedCoding> computed_zero_point(Lowering& lowering, const graph::Node& node);
Int8Scaling int8_scaling(Lowering& lowering, const Int8Numbers& numbers, int32_t src_zero,
                         int32_t dst_zero);
View bias_view(Lowering& lowering, const std::vector<float>& bias);

// `mask` of the dimensions of the weights along which scales differ. `adds`: to what the result
// holds already.
dnnl::primitive_attr attributes(const Int8Scaling& scaling, int mask, bool adds = false);
void add_operands(const Int8Scaling& scaling, OnednnCall& call);

}  // namespace vartml::softnpu
