// SPDX-License-Identifier: Apache-2.0
// The operators that the IR knows, a row each: inputs and attributes in one canonical form, output
// types, work, a kernel of plain loops, and what others ask of an operator.
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
// What differs from ONNX, beside (its inputs and attributes are in its row, in the files ops_*):
//   MatMul a b bias?            the third input is ours: 1-D, one element per column
//   QLinearMatMul … bias?       the ninth, likewise: i32, in units of as·bs
//   Reshape, Flatten, Squeeze, Unsqueeze become Reshape{shape}, the output shape, neither 0 nor -1
//   Expand, Tile                shape is the output shape
//   Slice                       axes ascending, 0 <= start, end <= size; for a negative step
//                               start < size and -1 <= end (-1: down to and with element 0)
//   Pad                         pads of the beginnings of all axes, then of the ends
//   Resize                      sizes and scales for every axis, roi for tf_crop_and_resize only;
//                               also Upsample
//   Clip                        a bound that is absent is none; one that no float holds stays an
//                               input
//   Reduce…                     axes ascending
//   Softmax, LogSoftmax, Hardmax  over one axis. A model of opset < 13 flattens: the importer puts
//                               Reshape around it unless all axes behind `axis` have size 1
//   Cast                        also CastLike
//   LayerNormalization          the second and third output are f32
//   GroupNormalization          scale and bias per channel (opset 21)
//   CenterCropPad               a size for each of the axes; only where it was not constant
//   ConstantOfShape shape value?  the value is a second, constant input
//   Shape, Size, Range, ConstantOfShape  only where they could not be folded
//   com.microsoft: QLinear…, Attention, QuickGelu
//   SiLU (vartml) x             x * sigmoid(x)
//   PictureInput (vartml) x     u8[1,H,W,B], B >= C bytes per pixel, to f32 of C channels:
//                               (x - mean[c]) * scale[c]; an embedded pre-process
//   Late (late.h), OnnxRuntime (onnxruntime.h)
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
#include "lib/graph/kernel.h"

namespace vartml::graph {

using Types = std::vector<Type>;

// What passes, devices and reports ask of an operator, so that none has a list of its own.
enum class Trait : uint32_t {
    product = 1U << 0,       // of floats, weights in input 1, a bias in input 2: others fuse behind
    convolution = 1U << 1,   // a window with weights
    matrix_work = 1U << 2,   // what a matrix unit computes, on codes too
    picture_work = 1U << 3,  // where channels come last in memory
    linear = 1U << 4,        // sums of products, and means of them
    part = 1U << 5,          // one element from one of each operand, of one type: may be fused
    activation = 1U << 6,    // what devices apply to the result of a product
    cuts_off = 1U << 7,      // at constant bounds
    never_negative = 1U << 8,
    reshapes = 1U << 9,     // the same elements in the same order
    permutes = 1U << 10,    // the same elements in another order
    picks = 1U << 11,       // elements of input 0
    repeats = 1U << 12,     // elements of input 0, several times
    neutral = 1U << 13,     // of a single input does nothing where the type is the same
    comparison = 1U << 14,  // of two tensors
    carries = 1U << 15,     // moves, scales and joins coordinates: coordinates.h
    exact_0 = 1U << 16,     // the result hangs on the digits of input 0,
    exact_1 = 1U << 17,     // input 1,
    exact_2 = 1U << 18,     // input 2
    codes = 1U << 19,       // reads or makes codes of 8 bits
    coding = 1U << 20,      // between floats and codes
    reduces = 1U << 21,     // over axes
    // Shapes.
    finds_shape = 1U << 22,    // the kernel tells how much there is
    follows_shape = 1U << 23,  // canonical attributes follow from the shape of the data
    sized_by_0 = 1U << 24,     // the shape follows from the values of input 0 and those behind it,
    sized_by_1 = 1U << 25,     // of input 1 and those behind it,
    sized_by_2 = 1U << 26,     // of input 2 and those behind it
    keeps_rank = 1U << 27,     // of input 0
    keeps_shape = 1U << 28,    // of input 0, whatever the parameters
    internal = 1U << 29,       // ours alone: no model brings it
};
struct Traits {
    uint32_t bits = 0;
    constexpr Traits() = default;
    constexpr Traits(Trait trait) : bits(static_cast<uint32_t>(trait)) {}
};
constexpr Traits operator|(Traits a, Traits b) {
    a.bits |= b.bits;
    return a;
}
constexpr Traits operator|(Trait a, Trait b) {
    return Traits(a) | Traits(b);
}

struct OpInfo {
    std::string_view kind;         // ONNX type, or a type of ours
    int min_inputs, max_inputs;    // max_inputs -1: any number
    int min_outputs, max_outputs;  // max_outputs -1: any number
    // Accepted, separated by spaces: name:kind, then, in this order, what there is of
    //   *     required
    //   -     of the ONNX form only: canonicalise() puts it elsewhere
    //   @1    given as input 1, which becomes the attribute where it is constant
    //   =a    the default of ONNX
    //   |b|c  the other values that a text may have; without a default, all of them
    //   /d|e  values that ONNX has besides and canonicalise() rewrites
    // Kinds are i int, f float, s string, is fs ss lists. "*" alone: any.
    std::string_view attributes;
    // Types of the outputs from inputs and attributes; the error names the node.
    Result<Types> (*infer)(const Graph&, const Node&);
    // Operations besides multiply-accumulates, an element each as a rule; output
    // types are known.
    uint64_t (*count)(const Graph&, const Node&);
    cpu::Kernel kernel;  // nullptr for an operator without
    Traits traits = {};
    // Multiply-accumulates; nullptr for an operator without.
    uint64_t (*macs)(const Graph&, const Node&) = nullptr;
};

// An attribute of a row.
struct AttributeRule {
    std::string_view name, kind;
    bool is_required = false, is_canonical = true;
    int input = -1;              // -1: no input becomes the attribute
    std::string_view fallback;   // empty: none
    std::string_view choices;    // separated by '|', the default first; empty: any value
    std::string_view rewritten;  // likewise: those of ONNX besides
};
std::vector<AttributeRule> attribute_rules(const OpInfo& op);

// nullptr for an operator that the IR does not know. `kind` is one part, not a fused kind.
const OpInfo* find_op(std::string_view kind);
// All of them, sorted by kind.
std::span<const OpInfo> all_ops();
// The row of an operator in the form of ONNX: of those above, and of what canonicalise() rewrites.
const OpInfo* find_onnx_op(std::string_view kind);

// Whether an operator has one of these traits; of a fused node, its first part.
bool has_trait(std::string_view kind, Traits traits);
bool has_trait(const Node& node, Traits traits);
// The same for one of the traits that tell of an input: of `first`, the trait of input 0.
bool has_input_trait(const Node& node, Trait first, size_t input);

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
// Likewise, of inputs whose types do not go together.
Error bad_inputs(const Graph& graph, const Node& node);
// Likewise, of a parameter that is computed from the data.
Error needs_constant(const Node& node, const char* what);
// The numbers of an input of type i64 that must be constant, since shapes depend on them.
Result<std::vector<int64_t>> constant_ints(const Graph& graph, const Node& node, size_t index);
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
// Whether all sizes are from 0, and the tensor has at most cpu::max_rank dimensions and
// max_elements.
bool is_reasonable(const Type& type);
// Of one that is not, what it is and what was expected.
std::string unreasonable(const Type& type);
// The product, or 2^62 with its sign where that is less: never overflows, and never reasonable.
int64_t bounded_product(int64_t a, int64_t b);

// Rules that several operators share.
Result<Types> infer_same(const Graph& graph, const Node& node);       // type of input 0
Result<Types> infer_broadcast(const Graph& graph, const Node& node);  // all inputs, their type
uint64_t count_none(const Graph& graph, const Node& node);
uint64_t count_output(const Graph& graph, const Node& node);  // 1 per element of output 0
uint64_t count_input(const Graph& graph, const Node& node);   // 1 per element of input 0

// The table, in parts; each sorted by nothing in particular.
std::span<const OpInfo> attention_ops();
std::span<const OpInfo> einsum_ops();
std::span<const OpInfo> elementwise_ops();
std::span<const OpInfo> fill_ops();
std::span<const OpInfo> index_ops();
std::span<const OpInfo> matrix_ops();
std::span<const OpInfo> movement_ops();
std::span<const OpInfo> normalisation_ops();
std::span<const OpInfo> picture_ops();
std::span<const OpInfo> pool_ops();
std::span<const OpInfo> quantised_ops();
std::span<const OpInfo> recurrent_ops();
std::span<const OpInfo> reduction_ops();
std::span<const OpInfo> resize_ops();
std::span<const OpInfo> select_ops();
std::span<const OpInfo> window_ops();

}  // namespace vartml::graph
