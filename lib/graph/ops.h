// SPDX-License-Identifier: Apache-2.0
// The operators that the IR knows, in one canonical form each: inputs, attributes, output types and
// cost.
//
// Semantics are those of ONNX operator set 22 except where a line below says more. Rules for every
// operator:
//   - Parameters that ONNX gives as a constant input are attributes of the same name, and the input
//     is gone. Where one of them is not constant, all of them stay inputs at their ONNX positions
//     and the attributes are absent.
//   - Optional attributes are present with their default, so that a reader need not know defaults;
//     exceptions are marked '?'. Axes are not negative. auto_pad, kernel_shape of convolutions and
//     the like are resolved.
//   - A type is a string as short_name() spells it: to="f16".
//   - A value whose shape is an upper bound has data_dependent set; operators that read it keep
//     their relative form (Squeeze{axes}, Unsqueeze{axes}, Flatten{axis}, Reshape with one -1).
// canonical.h brings a node from its ONNX form into this one.
//
// clang-format off
// Kind and inputs; attributes (i int, f float, s string, is and fs lists of them, ? may be absent):
//   Conv x w b?                      pads:is strides:is dilations:is group:i
//   ConvTranspose x w b?             pads:is strides:is dilations:is group:i output_padding:is
//   Gemm a b c?                      alpha:f beta:f transA:i transB:i
//   MatMul a b bias?                 the third input is ours: 1-D, one element per column
//   MaxPool x -> y indices?          kernel_shape:is pads:is strides:is dilations:is ceil_mode:i storage_order:i
//   AveragePool x                    kernel_shape:is pads:is strides:is dilations:is ceil_mode:i count_include_pad:i
//   LpPool x                         kernel_shape:is pads:is strides:is dilations:is ceil_mode:i p:i
//   GlobalAveragePool, GlobalMaxPool x;  GlobalLpPool x    p:i
//   Reshape x                        shape:is, the output shape, neither 0 nor -1; also Flatten, Squeeze, Unsqueeze
//   Transpose x                      perm:is
//   Slice x                          starts:is ends:is axes:is steps:is; axes ascending, 0 <= start, end <= size; for a
//                                    negative step start < size and -1 <= end (-1: down to and with element 0)
//   Split x -> y...                  axis:i split:is
//   Concat x...                      axis:i
//   Pad x                            pads:is (begin of all axes, then end) mode:s value:f
//   Resize x                         mode:s (nearest linear cubic) coordinate_transformation_mode:s nearest_mode:s
//                                    sizes:is and scales:fs for every axis; cubic_coeff_a:f exclude_outside:i antialias:i
//                                    extrapolation_value:f roi:fs? (tf_crop_and_resize only); also Upsample
//   Clip x                           min:f? max:f? (absent: unbounded); a bound that no float holds stays an input
//   ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
//   ReduceSumSquare x                axes:is (ascending) keepdims:i
//   ArgMax, ArgMin x                 axis:i keepdims:i select_last_index:i
//   Softmax, LogSoftmax, Hardmax x   axis:i, over this one axis. A model of opset < 13 flattens: the importer puts
//                                    Reshape around it unless all axes behind `axis` have size 1
//   Cast x                           to:s; also CastLike
//   QuantizeLinear x scale zero?     axis:i block_size:i output_dtype:s
//   DequantizeLinear x scale zero?   axis:i block_size:i output_dtype:s
//   QLinearConv x xs xz w ws wz ys yz b?      as Conv;  ConvInteger x w xz? wz?   as Conv
//   QLinearMatMul a as az b bs bz ys yz bias?       the last is ours: i32, 1-D, one element per column, in units of as·bs
//   MatMulInteger a b az? bz?
//   com.microsoft: QLinearAdd, QLinearMul a as az b bs bz ys yz;  QLinearConcat ys yz (x xs xz)...   axis:i; of one
//                  tensor: other scale and zero point
//   com.microsoft: QLinearSigmoid, QLinearLeakyRelu alpha:f, QLinearSoftmax axis:i, QLinearGlobalAveragePool,
//                  QLinearAveragePool (as AveragePool): x xs xz ys yz
//   BatchNormalization x scale bias mean var           epsilon:f
//   InstanceNormalization x scale bias                 epsilon:f
//   LayerNormalization x scale bias? -> y mean? inverse_deviation?      axis:i epsilon:f; the two are always f32
//   RMSNormalization x scale                           axis:i epsilon:f
//   GroupNormalization x scale bias                    num_groups:i epsilon:f; scale and bias per channel (opset 21)
//   LRN x                            size:i alpha:f beta:f bias:f
//   LpNormalization x                axis:i p:i;  MeanVarianceNormalization x   axes:is
//   Gather x i   axis:i;  GatherElements x i   axis:i;  GatherND x i   batch_dims:i
//   ScatterElements x i u   axis:i reduction:s;  ScatterND x i u   reduction:s
//   Expand x                         shape:is, the output shape;  Tile x   repeats:is
//   CenterCropPad x                  axes:is? shape:is, a size for each of the axes; only where it was not constant
//   DepthToSpace x                   blocksize:i mode:s;  SpaceToDepth x   blocksize:i
//   Elu, Celu, LeakyRelu, ThresholdedRelu, QuickGelu (com.microsoft) x   alpha:f;  Selu x   alpha:f gamma:f
//   HardSigmoid x                    alpha:f beta:f;  Shrink x   bias:f lambd:f;  Gelu x   approximate:s
//   PRelu x slope
//   Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor HardSwish Identity IsNaN Log Mish Neg
//   Not Reciprocal Relu Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh x
//   SiLU (vartml) x                  x * sigmoid(x)
//   IsInf x                          detect_negative:i detect_positive:i
//   Add Sub Mul Div Pow And Or Xor BitwiseAnd BitwiseOr BitwiseXor Equal Greater GreaterOrEqual Less LessOrEqual a b
//   Mod a b   fmod:i;  BitShift a b   direction:s;  Where c a b;  Max Min Sum Mean x...
//   TopK x -> values indices         k:i axis:i largest:i sorted:i
//   CumSum x                         axis:i exclusive:i reverse:i
//   OneHot indices values            axis:i depth:i;  NonZero x;  Compress x c   axis:i?
//   Unique x -> y i? inverse? counts?   axis:i? sorted:i
//   Einsum x...                      equation:s;  Trilu x   k:i upper:i
//   ReverseSequence x lengths        batch_axis:i time_axis:i
//   GridSample x grid                mode:s (linear nearest cubic) padding_mode:s align_corners:i
//   NonMaxSuppression boxes scores   center_point_box:i max_output_boxes_per_class:i iou_threshold:f score_threshold:f?
//   RoiAlign x rois batch            mode:s coordinate_transformation_mode:s output_height:i output_width:i
//                                    sampling_ratio:i spatial_scale:f
//   MaxRoiPool x rois                pooled_shape:is spatial_scale:f
//   EyeLike x   dtype:s k:i;  Det x;  AffineGrid theta   size:is align_corners:i
//   ConstantOfShape shape value?     the value is a second, constant input;  Range start limit delta;
//   Shape x   start:i end:i;  Size x  these four only where they could not be folded
//   Attention (com.microsoft), LSTM, GRU, RNN, DeformConv, Col2Im, MaxUnpool: attributes as in ONNX
// clang-format on
//
//   PictureInput (vartml) x          mean:fs scale:fs layout:s ("NCHW" "NHWC"): u8[1,H,W,B], B >= C
//   bytes per pixel, to
//                                    f32 of C channels: (x - mean[c]) * scale[c]; an embedded
//                                    pre-process
//   Late x...   op:s and the attributes of ONNX: late.h;  OnnxRuntime (vartml): onnxruntime.h
//
// The importer decomposes what is not listed (SkipLayerNormalization, BiasGelu, FastGelu,
// FusedConv, FusedMatMul, CenterCropPad, DynamicQuantizeLinear, Scaler …) into the above; Identity
// and Dropout become another name of their input.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/saturating.h"
#include "lib/graph/graph.h"

namespace vartml::graph {

using Types = std::vector<Type>;

struct OpInfo {
    std::string_view kind;         // ONNX type, or a type of ours
    int min_inputs, max_inputs;    // max_inputs -1: any number
    int min_outputs, max_outputs;  // max_outputs -1: any number
    // Accepted, separated by spaces, each with its kind as above: "pads:is group:i". A '*' after
    // the name: required.
    std::string_view attributes;
    // Types of the outputs from inputs and attributes; the error names the node.
    Result<Types> (*infer)(const Graph&, const Node&);
    // Operations besides multiply-accumulates, by the counting rule of the format document; output
    // types are known.
    uint64_t (*count)(const Graph&, const Node&);
    // Multiply-accumulates; nullptr for an operator without.
    uint64_t (*macs)(const Graph&, const Node&) = nullptr;
};

// nullptr for an operator that the IR does not know. `kind` is one part, not a fused kind.
const OpInfo* find_op(std::string_view kind);
// All of them, sorted by kind.
std::span<const OpInfo> all_ops();

// Types of all outputs of a node, fused parts included. Reads the types of the inputs only.
Result<Types> infer_types(const Graph& graph, const Node& node);
// Whether the shapes so inferred are only upper bounds.
bool has_data_dependent_shape(const Graph& graph, const Node& node);
// Operations by the counting rule: 2 per multiply-accumulate, and the others; beyond_count
// (lib/base/saturating.h) where 64 bits do not hold them. The output types of the node must be
// those of infer_types.
uint64_t count_ops(const Graph& graph, const Node& node);
// The multiply-accumulates alone.
uint64_t count_macs(const Graph& graph, const Node& node);

// What the files of the operator table share; private to lib/graph.

// "node 'conv1' (Conv): " and the sentence given.
Error bad_node(const Node& node, const std::string& sentence);
std::string to_string(std::span<const int64_t> shape);  // [1,3,416,416]

inline bool has_input(const Node& node, size_t index) {
    return index < node.inputs.size() && node.inputs[index] != none;
}
// Type of an input that is there.
inline const Type& input_type(const Graph& graph, const Node& node, size_t index) {
    return graph.value(node.inputs[index]).type;
}
inline const Type& output_type(const Graph& graph, const Node& node, size_t index = 0) {
    return graph.value(node.outputs[index]).type;
}

// Numpy's rule; nullopt where the shapes do not go together.
std::optional<std::vector<int64_t>> broadcast(std::span<const int64_t> a,
                                              std::span<const int64_t> b);
// From 0 to rank - 1, or -1 where `axis` is outside.
int64_t wrap_axis(int64_t axis, size_t rank);

// Larger than any tensor that fits a device. Sizes up to here and their sums stay within 64 bits.
inline constexpr int64_t max_elements = int64_t{1} << 40;
// Whether all sizes are from 0 and the tensor has at most max_elements.
bool is_reasonable(const Type& type);
// The product, or 2^62 with its sign where that is less: never overflows, and never reasonable.
int64_t bounded_product(int64_t a, int64_t b);

// Rules that several operators share.
Result<Types> infer_same(const Graph& graph, const Node& node);       // type of input 0
Result<Types> infer_broadcast(const Graph& graph, const Node& node);  // all inputs, their type
uint64_t count_none(const Graph& graph, const Node& node);
uint64_t count_output(const Graph& graph, const Node& node);  // 1 per element of output 0
uint64_t count_input(const Graph& graph, const Node& node);   // 1 per element of input 0

// The table, in parts; each sorted by nothing in particular.
std::span<const OpInfo> elementwise_ops();
std::span<const OpInfo> window_ops();
std::span<const OpInfo> matrix_ops();
std::span<const OpInfo> normalisation_ops();
std::span<const OpInfo> movement_ops();
std::span<const OpInfo> reduction_ops();
std::span<const OpInfo> index_ops();
std::span<const OpInfo> picture_ops();
std::span<const OpInfo> quantised_ops();
std::span<const OpInfo> recurrent_ops();

}  // namespace vartml::graph
