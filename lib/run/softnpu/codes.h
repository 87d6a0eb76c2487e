// SPDX-License-Identifier: Apache-2.0
// What the lowering of quantised operators shares: parameters of codes, and steps over them.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "kernels/ops/activation.h"
#include "kernels/ops/codes.h"
#include "lib/run/softnpu/lowering.h"

namespace vartml::softnpu {

using kernels::Coding;

bool is_code(DataType type);  // int8, uint8

// Scale and zero point of a whole tensor of codes; nullopt where they are not constant, one per
// channel, or the tensor has another type. `scale` and `zero` are indices of inputs; a zero point
// may be absent.
std::optional<Coding> coding_of(const graph::Graph& graph, const graph::Node& node, DataType type,
                                size_t scale, size_t zero);
// Of an input whose scale and zero point are the two behind it.
std::optional<Coding> coding_of(const graph::Graph& graph, const graph::Node& node, size_t data);

// Elements of a constant; empty for an absent input and for one that is no constant.
std::vector<float> floats_of(const graph::Graph& graph, const graph::Node& node, size_t input);
std::vector<int64_t> integers_of(const graph::Graph& graph, const graph::Node& node, size_t input);

// Whether weights are constant codes with constant zero points: none, one, or one per element of
// `axis`.
bool has_weights_of_codes(const graph::Graph& graph, const graph::Node& node, size_t weights,
                          size_t zero, size_t axis);
// Such weights less their zero points.
std::vector<int16_t> centred_weights(const graph::Graph& graph, const graph::Node& node,
                                     size_t weights, size_t zero, size_t axis);
// Terms that fit int8 and whose sum the weights are: one where they fit, else two; none where a
// weight is too large for two.
std::vector<std::vector<int8_t>> int8_terms(const std::vector<int16_t>& weights);

// A float tensor of what the codes stand for, with any strides, and back. Float types: f32, and the
// narrower ones through it.
void emit_quantise(Lowering& lowering, const View& src, const View& dst, const Coding& to,
                   std::string_view name);
void emit_dequantise(Lowering& lowering, const View& src, const View& dst, const Coding& from,
                     std::string_view name);

// A coding that a run computes: one f32 and one code, read when the step runs. A view of buffer -1:
// the scale is 1, the zero point 0.
struct ComputedCoding {
    View scale, zero;
    bool is_signed = false;
};
// Of the inputs with these indices, each absent or of one element.
ComputedCoding computed_coding(Lowering& lowering, const graph::Node& node, DataType type,
                               size_t scale, size_t zero);
void emit_quantise(Lowering& lowering, const View& src, const View& dst, const ComputedCoding& to,
                   std::string_view name);
void emit_dequantise(Lowering& lowering, const View& src, const View& dst,
                     const ComputedCoding& from, std::string_view name);
// A code as the i32 that it stands for.
View emit_widened(Lowering& lowering, const View& code, std::string_view name);

// Whole numbers of 32 bits as floats.
void emit_floats_of_integers(Lowering& lowering, const View& src, const View& dst,
                             std::string_view name);

// dst = round(src · scale + bias) + zero per channel; one scale or one per channel, no bias or one
// per channel. Both views are dense with the channels, `channels` many, innermost.
void emit_requantise(Lowering& lowering, const View& src, const View& dst, int64_t channels,
                     std::vector<float> scales, std::vector<float> bias, const Coding& to,
                     std::string_view name);

// The same by way of an activation: dst = round(activation(src · scale + bias) · factor) + zero.
struct Activated {
    kernels::Epilogue activation;
    std::vector<float> factors;  // one per channel
};
void emit_requantise(Lowering& lowering, const View& src, const View& dst, int64_t channels,
                     std::vector<float> scales, std::vector<float> bias, Activated activated,
                     const Coding& to, std::string_view name);

// Whole floats as i32.
void emit_round(Lowering& lowering, const View& src, const View& dst, std::string_view name);

// dst = a + b or a · b, with any strides; a view with strides 0 is broadcast.
void emit_binary(Lowering& lowering, kernels::CodeBinary op, const View& a, const Coding& a_coding,
                 const View& b, const Coding& b_coding, const View& dst, const Coding& to,
                 std::string_view name);

// dst = table[src], with any strides.
using Table = std::array<uint8_t, 256>;
void emit_look_up(Lowering& lowering, const View& src, const View& dst, const Table& table,
                  std::string_view name);
// The table of a function of real numbers.
template <typename Function>
Table make_table(const Coding& from, const Coding& to, Function function) {
    Table table;
    for (int i = 0; i < 256; ++i) {
        const auto code = static_cast<uint8_t>(i);
        float real = 0;
        kernels::dequantise_row_ref(&code, from, &real, 1);
        real = function(real);
        kernels::quantise_row_ref(&real, to, &table[static_cast<size_t>(i)], 1);
    }
    return table;
}

}  // namespace vartml::softnpu
