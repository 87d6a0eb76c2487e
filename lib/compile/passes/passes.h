// SPDX-License-Identifier: Apache-2.0
// All passes, in the order of the table, and what they share. Each is a function of the graph
// alone; run_passes in pass_table.h runs them.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <vartml/tensor.h>

#include "lib/compile/passes/rewrite.h"
#include "lib/graph/graph.h"

namespace vartml::compiler {

// The first three passes belong to quantised models and run at every level, so that int8 results
// are the same at all of them.

// Lets operators that only move or select elements work on codes of 8 bits: DequantizeLinear sinks
// below them, QuantizeLinear rises above them, and where the two meet with the same parameters both
// disappear.
//   before  %a = DequantizeLinear %x, %s, %z : f32[1,4,8,8]
//           %b = Transpose %a {perm=[0,2,3,1]} : f32[1,8,8,4]
//           %y = QuantizeLinear %b, %s, %z : u8[1,8,8,4]
//   after   %y = Transpose %x {perm=[0,2,3,1]} : u8[1,8,8,4]
// Covers Reshape and its kin, Transpose, Slice, Split, Gather, Expand, Tile, MaxPool, nearest
// Resize, DepthToSpace, SpaceToDepth; Concat of equal parameters; Pad with a number that has a
// code; Transpose of weights with a scale per channel. Leaves alone: scales per channel elsewhere,
// 16 bits, parameters that are no constants.
Result<PassStats> sink_dequantise(graph::Graph& graph);

// Makes quantised operators of float ones between DequantizeLinear and QuantizeLinear.
//   before  %a = DequantizeLinear %x, %xs, %xz : f32[1,4,8,8]
//           %b = DequantizeLinear %w, %ws, %wz {axis=0} : f32[6,4,1,1]
//           %c = Conv %a, %b : f32[1,6,8,8]
//           %d = Relu %c : f32[1,6,8,8]
//           %y = QuantizeLinear %d, %ys, %yz : u8[1,6,8,8]
//   after   %y = QLinearConv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz : u8[1,6,8,8]
// Covers Conv, Gemm, MatMul with a row of bias, Add, Mul, Concat, average pools, LeakyRelu,
// Sigmoid; DequantizeLinear and QuantizeLinear of other parameters become a QLinearConcat of one.
// Relu and Clip become a Clip of codes, or nothing where zero point and range imply them: rounding
// and saturating are monotone, so the codes are the same. Another activation behind a Conv, and a
// Mul by positive constants per channel behind that, become attributes of the QLinearConv: the real
// numbers are rounded once, behind them. A bias is rounded to units of the sums.
// Leaves alone: operands that are not quantised per tensor (weights: or per output channel); types
// of codes that differ; a float result that somebody else reads.
Result<PassStats> quantise_operators(graph::Graph& graph);

// Replaces DequantizeLinear of constants, blocked ones too, by constants. Runs behind
// quantise_operators: what reads them stays float.
//   before  %b = DequantizeLinear %w, %s {axis=0, block_size=32} : f32[64,10]
//           %y = MatMul %x, %b : f32[1,10]
//   after   %y = MatMul %x, %b : f32[1,10]        with a constant %b
Result<PassStats> fold_dequantise(graph::Graph& graph);

// Replaces nodes whose inputs are all constant by constants, and takes inputs that have become
// constant into attributes.
//   before  %i = Add %c1, %c2 : i64[2]
//           %y = Reshape %x, %i : f32[1,192]
//   after   %y = Reshape %x {shape=[1,192]} : f32[1,192]
// Leaves alone: DequantizeLinear, which fold_dequantise folds; anything whose type would change;
// nodes that make an output of the graph, which no constant may be.
Result<PassStats> fold_constants(graph::Graph& graph);

// Removes nodes that give back their input, and joins neighbours that make one.
//   before  %a = Transpose %x {perm=[0,2,3,1]} : f32[1,8,8,3]
//           %y = Transpose %a {perm=[0,3,1,2]} : f32[1,3,8,8]
//   after   %x is read instead of %y
// Covers Identity, Cast to the same type, Reshape, Expand and Resize to the same shape, Pad by and
// Slice of nothing, Concat of one, adding 0, multiplying by 1, pools of 1x1, Reshape of Reshape,
// Transpose of Transpose, Relu and Clip of Relu and Clip; makes a product of the second power.
// Leaves alone: what lies between an input and an output of the graph.
Result<PassStats> remove_identity(graph::Graph& graph);

// Folds BatchNormalization into the linear operator before it, or the convolution behind it; else
// makes Mul and Add of it.
//   before  %a = Conv %x, %w : f32[1,16,8,8]
//           %y = BatchNormalization %a, %scale, %bias, %mean, %var : f32[1,16,8,8]
//   after   %y = Conv %x, %w_1, %a.bias : f32[1,16,8,8]
// Leaves alone: statistics that are no constants; floats of 16 bits that could not hold the new
// constants, or where input * scale and shift are far larger than their sum.
Result<PassStats> fold_batch_norm(graph::Graph& graph);

// Names activations and rearrangements that exporters spell as several nodes.
//   before  %s = Sigmoid %x : f32[1,16,8,8]
//           %y = Mul %x, %s : f32[1,16,8,8]
//   after   %y = vartml::SiLU %x : f32[1,16,8,8]
// Covers SiLU, HardSigmoid, HardSwish, Gelu, Mish; mean and maximum over all of height and width as
// global pools. Leaves alone: a gate that somebody else reads; integers.
Result<PassStats> recognise_patterns(graph::Graph& graph);

// Names the pixel shuffle that exporters spell as Reshape, Transpose, Reshape.
//   before  %a = Reshape %x {shape=[1,4,2,2,8,8]} : f32[1,4,2,2,8,8]
//           %b = Transpose %a {perm=[0,1,4,2,5,3]} : f32[1,4,8,2,8,2]
//           %y = Reshape %b {shape=[1,4,16,16]} : f32[1,4,16,16]
//   after   %y = DepthToSpace %x {blocksize=2, mode="CRD"} : f32[1,4,16,16]
// Covers both modes and SpaceToDepth. Leaves alone: channel shuffles, which move no pixels.
Result<PassStats> recognise_depth_to_space(graph::Graph& graph);

// Folds Mul, Div, Add and Sub by a constant per channel into the linear operator before it, and Mul
// and Div into a convolution behind it.
//   before  %a = Conv %x, %w : f32[1,8,28,28]
//           %y = Add %a, %b : f32[1,8,28,28]
//   after   %y = Conv %x, %w_1, %a.bias : f32[1,8,28,28]
// Positive factors go through a LeakyRelu that is fused already; scale and shift through a Relu or
// Clip whose bounds they move alike in all channels:
//   before  %a = Conv+Relu %x, %w : f32[1,8,28,28]
//           %b = Mul %a, %s : f32[1,8,28,28]     %s = {0.5}
//           %y = Add %b, %t : f32[1,8,28,28]     %t = {-1}
//   after   %y = Conv+Clip %x, %w_1, %a.bias {Clip.min=-1.0} : f32[1,8,28,28]
// Leaves alone: constants of another shape; a result that somebody else reads; weights that fp16
// could not hold.
Result<PassStats> fold_scale_bias(graph::Graph& graph);

// Swaps an activation with the Reshape or Transpose in front of it, up to the operator that can
// take it.
//   before  %a = Conv %x, %w, %b : f32[1,1,40,40]
//           %r = Reshape %a {shape=[1,1600]} : f32[1,1600]
//           %y = Sigmoid %r : f32[1,1600]
//   after   %a = Conv %x, %w, %b : f32[1,1,40,40]
//           %r = Sigmoid %a : f32[1,1,40,40]
//           %y = Reshape %r {shape=[1,1600]} : f32[1,1600]
// Leaves alone: views of anything but a linear operator without activation; views that somebody
// else reads.
Result<PassStats> hoist_activation(graph::Graph& graph);

// Makes one strided convolution of a space-to-depth in front of a convolution.
//   before  four strided Slices of %x : f32[1,3,416,416], then Concat : f32[1,12,208,208]
//           %y = Conv %c, %w {pads=[1,1,1,1]} : f32[1,16,208,208]     3x3 kernel
//   after   %y = Conv %x, %w_1 {pads=[2,2,2,2], strides=[2,2]} : f32[1,16,208,208]     6x6 kernel
// Covers SpaceToDepth as well, any block and any order of the pieces. The weights are rearranged,
// no arithmetic changes. Leaves alone: grouped or dilated convolutions; pieces that somebody else
// reads.
Result<PassStats> space_to_depth_conv(graph::Graph& graph);

// Moves a Pad with zeros into the window that reads it.
//   before  %a = Pad %x {pads=[0,0,1,1,0,0,1,1]} : f32[1,16,10,10]
//           %y = Conv %a, %w : f32[1,8,8,8]
//   after   %y = Conv %x, %w {pads=[1,1,1,1]} : f32[1,8,8,8]
// Covers Conv; AveragePool, which then counts the padding; MaxPool where no element of %x can be
// negative. Leaves alone: padded channels, negative pads, other modes; a MaxPool that gives
// indices.
Result<PassStats> fuse_pad(graph::Graph& graph);

// Makes the Add of a constant row behind a MatMul its bias.
//   before  %a = MatMul %x, %w : f32[1,10]
//           %y = Add %a, %b : f32[1,10]
//   after   %y = MatMul %x, %w, %b : f32[1,10]
// Leaves alone: a MatMul that has a bias.
Result<PassStats> gemm_from_matmul(graph::Graph& graph);

// Merges the addition of another tensor into the linear operator that makes one of the operands.
//   before  %a = Conv %x, %w, %b : f32[1,16,8,8]
//           %y = Add %a, %z : f32[1,16,8,8]
//   after   %y = Conv+Add %x, %w, %b, %z : f32[1,16,8,8]
// Takes the later one where both operands come from such operators; goes behind an activation that
// is fused already. Leaves alone: operands that broadcast; a result that somebody else reads.
Result<PassStats> fuse_residual(graph::Graph& graph);

// Merges Mul and Add by a constant per channel that no weight can take, behind the activation of a
// convolution.
//   before  %a = Conv+SiLU %x, %w, %b : f32[1,16,8,8]
//           %y = Add %a, %c : f32[1,16,8,8]        with %c : f32[1]
//   after   %y = Conv+SiLU+Add %x, %w, %b, %c_1 : f32[1,16,8,8]        with %c_1 : f32[1,16,1,1]
// Leaves alone: constants of another shape; a result that somebody else reads.
Result<PassStats> fuse_scale_bias(graph::Graph& graph);

// Merges an activation into the linear operator that feeds it.
//   before  %a = Conv %x, %w, %b {pads=[1,1,1,1]} : f32[1,16,112,112]
//           %y = Relu %a : f32[1,16,112,112]
//   after   %y = Conv+Relu %x, %w, %b {pads=[1,1,1,1]} : f32[1,16,112,112]
// Covers Relu, Clip with constant bounds, LeakyRelu, Elu, Sigmoid, HardSigmoid, HardSwish, SiLU,
// Tanh, Gelu, Mish. Leaves alone: a result that has another reader or is an output of the graph.
Result<PassStats> fuse_activation(graph::Graph& graph);

// Integer tensors at the border of an NPU partition: whoever fills or reads them works on codes.

// What the codes of a border tensor stand for.
struct EdgeCodes {
    DataType real = DataType::unknown;  // type of the CPU view
    Quantisation quantisation;
};
using QuantisedEdges = std::map<std::string, EdgeCodes>;  // by tensor name

// Takes away the QuantizeLinear behind inputs that nothing else reads, and the DequantizeLinear in
// front of outputs: these tensors hold the codes then. Those named in `keep` stay as they are, as
// do those with a scale per channel.
QuantisedEdges quantise_edges(graph::Graph& graph, bool inputs, bool outputs,
                              const std::set<std::string>& keep);

// What 8-bit codes mean, for the passes over quantised models. Private to the passes.

// Scale and zero point of a whole tensor of int8 or uint8: real = (code - zero) · scale.
struct Coding {
    DataType type = DataType::unknown;
    float scale = 1;
    int32_t zero = 0;
    graph::ValueId scale_id = graph::none, zero_id = graph::none;  // none: zero

    int32_t lowest() const { return type == DataType::int8 ? -128 : 0; }
    int32_t highest() const { return type == DataType::int8 ? 127 : 255; }
    int32_t code(double real) const;  // to nearest even, saturating
    double real(int32_t code) const { return static_cast<double>(code - zero) * scale; }
    bool operator==(const Coding& other) const {
        return type == other.type && scale == other.scale && zero == other.zero;
    }
};

// Of the codes that a DequantizeLinear reads or a QuantizeLinear writes; nullopt for other nodes,
// other types, a scale per channel or per block, parameters that are no constants.
std::optional<Coding> coding_of(const Rewriter& rewriter, const graph::Node* node);
// Of the codes behind a float value that a DequantizeLinear makes; `codes` becomes their value.
std::optional<Coding> codes_behind(Rewriter& rewriter, graph::ValueId real, graph::ValueId& codes);

// Scale (a float without axes) and zero point as operands of a QLinear operator.
graph::ValueId scale_operand(Rewriter& rewriter, const Coding& coding);
graph::ValueId zero_operand(Rewriter& rewriter, const Coding& coding);

// The numbers that a DequantizeLinear of constants gives; empty where something is no constant.
std::vector<double> dequantised(const Rewriter& rewriter, const graph::Node& node);

// Scale and shift per channel, absorbed into the weights of a linear operator. Private to the
// passes.

// Conv, ConvTranspose, Gemm or MatMul whose weight and bias are constant; fused parts may follow.
bool is_linear(const Rewriter& rewriter, const graph::Node& node);
// Axis of its result along which weights differ, and the size of that axis.
size_t channel_axis(const Rewriter& rewriter, const graph::Node& node);
size_t channels(const Rewriter& rewriter, const graph::Node& node);

// The numbers of a constant that varies along one axis of `shape` only, one for each index of it;
// empty otherwise.
std::vector<double> per_channel(const Rewriter& rewriter, graph::ValueId constant,
                                std::span<const int64_t> shape, size_t axis);

// Makes the node give y * scale + shift where it gave y, in front of fused parts. Its constants are
// replaced, not changed: others may use them. False, and nothing done, where the bias has a form
// that cannot take it, or fp16 does not hold the new numbers.
bool absorb_affine(Rewriter& rewriter, size_t node, std::span<const double> scale,
                   std::span<const double> shift);

// fold_scale_bias of one node.
bool fold_scale_bias_at(Rewriter& rewriter, size_t node);

// Makes a Conv read x where it read x * scale + shift, per input channel. False where padding
// or floats of 16 bits forbid it.
bool absorb_input_affine(Rewriter& rewriter, size_t node, std::span<const double> scale,
                         std::span<const double> shift);

}  // namespace vartml::compiler
