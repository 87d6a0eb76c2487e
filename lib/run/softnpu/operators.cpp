// SPDX-License-Identifier: Apache-2.0
// The table of operators and what lowering functions share.
#include "lib/run/softnpu/operators.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lib/graph/ops.h"
#include "lib/model/target.h"
#include "lib/run/softnpu/copy_step.h"

namespace vartml::softnpu {
namespace {

using graph::Graph;
using graph::Node;

bool is_constant(const Graph& graph, const Node& node, size_t input) {
    return has_input(node, input) && graph.value(node.inputs[input]).constant.has_value();
}
size_t rank(const Graph& graph, const Node& node, size_t input) {
    return graph.value(node.inputs[input]).type.shape.size();
}

// Where a fast lowering does not cover all that the operator can be.
bool takes_picture(const Graph& graph, const Node& node) {
    return rank(graph, node, 0) == 3 || rank(graph, node, 0) == 4;
}
bool takes_conv(const Graph& graph, const Node& node) {
    return takes_picture(graph, node) && is_constant(graph, node, 1) &&
           (!has_input(node, 2) || is_constant(graph, node, 2));
}
bool takes_pool(const Graph& graph, const Node& node) {
    const bool indices = node.outputs.size() > 1 && node.outputs[1] != graph::none;
    const bool counts_what_is_not_there =
        node.get("ceil_mode", int64_t{0}) != 0 && node.get("count_include_pad", int64_t{0}) != 0;
    return takes_picture(graph, node) && !indices && !counts_what_is_not_there;
}
bool takes_matmul(const Graph& graph, const Node& node) {
    return rank(graph, node, 0) >= 2 && rank(graph, node, 1) >= 2;
}
bool takes_gemm(const Graph& graph, const Node& node) {
    const bool scaled = node.get("alpha", 1.0f) != 1 && !is_constant(graph, node, 1);
    const bool scaled_bias =
        node.get("beta", 1.0f) != 1 && has_input(node, 2) && !is_constant(graph, node, 2);
    return !scaled && !scaled_bias;
}
bool has_codes(const Graph& graph, const Node& node) {
    return size_bytes(graph.value(node.inputs[0]).type.data_type) == 1;
}
bool takes_resize(const Graph& graph, const Node& node) {
    const std::string coordinates = node.get("coordinate_transformation_mode", "half_pixel");
    const auto& from = graph.value(node.inputs[0]).type.shape;
    const auto& to = graph.value(node.outputs[0]).type.shape;
    if (has_codes(graph, node) && node.get("mode", "nearest") != "nearest") return false;
    // An axis may keep its size by rounding and be resampled all the same.
    const auto scales = node.get("scales", std::vector<float>{});
    if (scales.size() != 4 || from.size() != 4) return false;
    for (size_t axis = 0; axis < 2; ++axis)
        if (scales[axis] != 1 && from[axis] != 1) return false;
    return node.get("mode", "nearest") != "cubic" && coordinates != "tf_crop_and_resize" &&
           node.get("antialias", int64_t{0}) == 0 && from[0] == to[0] && from[1] == to[1];
}
bool takes_pad(const Graph& graph, const Node& node) {
    const auto pads = node.get("pads", Dims{});
    return node.has("pads") && node.get("mode", "constant") == "constant" &&
           (node.get("value", 0.0f) == 0 || has_codes(graph, node)) &&
           std::ranges::none_of(pads, [](int64_t p) { return p < 0; });
}

bool takes_slice(const Graph&, const Node& node) {
    const Dims starts = node.get("starts", Dims{}), axes = node.get("axes", Dims{});
    return node.has("starts") && axes.size() == starts.size() &&
           node.get("steps", Dims{}).size() == starts.size() &&
           std::ranges::none_of(axes, [](int64_t axis) { return axis < 0; });
}
bool takes_clip(const Graph&, const Node& node) {
    return node.inputs.size() == 1;
}
bool takes_quantised_pool(const Graph& graph, const Node& node) {
    return takes_pool(graph, node) && takes_quantised_unary(graph, node);
}

// Element types of the tensors: f float32, float16, bfloat16; q int8, uint8; i int16, int32, int64;
// b bool.
struct Row {
    std::string_view kind;
    LowerFunction lower;
    std::string_view types;
    bool (*takes)(const Graph&, const Node&) = nullptr;
};

// Operators with steps of their own, sorted by kind; all others, and what a row does not take, run
// through the kernels of lib/graph.
constexpr Row table[] = {
    {"Abs", lower_eltwise, "f"},
    {"Add", lower_binary, "f"},
    {"AveragePool", lower_pool, "f", takes_pool},
    {"Cast", lower_cast, "fi", takes_cast},
    {"Clip", lower_clip, "fq", takes_clip},
    {"Concat", lower_concat, "fiqb"},
    {"Conv", lower_conv, "f", takes_conv},
    {"ConvInteger", lower_quantised_conv, "qi", takes_quantised_conv},
    {"ConvTranspose", lower_conv_transpose, "f", takes_conv},
    {"DepthToSpace", lower_depth_to_space, "fiqb"},
    {"DequantizeLinear", lower_dequantise, "fq", takes_dequantise},
    {"Div", lower_binary, "f"},
    {"Elu", lower_eltwise, "f"},
    {"Exp", lower_eltwise, "f"},
    {"Expand", lower_expand, "fiqb"},
    {"Gelu", lower_eltwise, "f"},
    {"Gemm", lower_matmul, "f", takes_gemm},
    {"GlobalAveragePool", lower_pool, "f", takes_pool},
    {"GlobalMaxPool", lower_pool, "f", takes_pool},
    {"GridSample", lower_grid_sample, "f", takes_grid_sample},
    {"HardSigmoid", lower_eltwise, "f"},
    {"HardSwish", lower_eltwise, "f"},
    {"Identity", lower_reshape, "fiqb"},
    {"LeakyRelu", lower_eltwise, "f"},
    {"Log", lower_eltwise, "f"},
    {"LogSoftmax", lower_softmax, "f"},
    {"MatMul", lower_matmul, "f", takes_matmul},
    {"MatMulInteger", lower_quantised_matmul, "qi", takes_quantised_matmul},
    {"Max", lower_binary, "f"},
    {"MaxPool", lower_pool, "fq", takes_pool},
    {"Min", lower_binary, "f"},
    {"Mish", lower_eltwise, "f"},
    {"Mul", lower_binary, "f"},
    {"Neg", lower_eltwise, "f"},
    {"PRelu", lower_binary, "f"},
    {"Pad", lower_pad, "fq", takes_pad},
    {"PictureInput", lower_picture_input, "fq"},
    {"Pow", lower_binary, "f"},
    {"QLinearAdd", lower_quantised_binary, "fq", takes_quantised_binary},
    {"QLinearAveragePool", lower_quantised_pool, "fq", takes_quantised_pool},
    {"QLinearConcat", lower_quantised_concat, "fq", takes_quantised_concat},
    {"QLinearConv", lower_quantised_conv, "fiq", takes_quantised_conv},
    {"QLinearGlobalAveragePool", lower_quantised_pool, "fq", takes_quantised_pool},
    {"QLinearLeakyRelu", lower_quantised_unary, "fq", takes_quantised_unary},
    {"QLinearMatMul", lower_quantised_matmul, "fiq", takes_quantised_matmul},
    {"QLinearMul", lower_quantised_binary, "fq", takes_quantised_binary},
    {"QLinearSigmoid", lower_quantised_unary, "fq", takes_quantised_unary},
    {"QuantizeLinear", lower_quantise, "fq", takes_quantise},
    {"QuickGelu", lower_eltwise, "f"},
    {"Reciprocal", lower_eltwise, "f"},
    {"ReduceMax", lower_reduce, "f"},
    {"ReduceMean", lower_reduce, "f"},
    {"ReduceMin", lower_reduce, "f"},
    {"ReduceSum", lower_reduce, "f"},
    {"Relu", lower_eltwise, "f"},
    {"Reshape", lower_reshape, "fiqb"},
    {"Resize", lower_resize, "fq", takes_resize},
    {"Round", lower_eltwise, "f"},
    {"SiLU", lower_eltwise, "f"},
    {"Sigmoid", lower_eltwise, "f"},
    {"Slice", lower_slice, "fiqb", takes_slice},
    {"Softmax", lower_softmax, "f"},
    {"Softplus", lower_eltwise, "f"},
    {"SpaceToDepth", lower_space_to_depth, "fiqb"},
    {"Split", lower_split, "fiqb"},
    {"Sqrt", lower_eltwise, "f"},
    {"Sub", lower_binary, "f"},
    {"Sum", lower_binary, "f"},
    {"Tanh", lower_eltwise, "f"},
    {"Transpose", lower_transpose, "fiqb"},
};

const Row* find_row(std::string_view kind) {
    const auto row = std::ranges::lower_bound(table, kind, {}, &Row::kind);
    return row != std::end(table) && row->kind == kind ? row : nullptr;
}

std::string name_of(dnnl::memory::desc desc) {
    const std::vector<uint8_t> blob = desc.get_blob();
    return {blob.begin(), blob.end()};
}

// How far each index along an axis is from the first element; those of the axes add up. Formula:
// dnnl_memory_desc_query, "blocked format".
using AxisOffsets = std::vector<std::vector<int64_t>>;
AxisOffsets axis_offsets(const dnnl::memory::desc& desc) {
    const auto dims = desc.get_dims(), strides = desc.get_strides();
    const auto blocks = desc.get_inner_blks(), axes = desc.get_inner_idxs();
    AxisOffsets result(dims.size());
    for (size_t axis = 0; axis < dims.size(); ++axis) {
        result[axis].resize(static_cast<size_t>(dims[axis]));
        for (int64_t i = 0; i < dims[axis]; ++i) {
            int64_t outer = i, offset = 0, stride = 1;
            for (size_t b = blocks.size(); b-- > 0; stride *= blocks[b]) {
                if (axes[b] != static_cast<int64_t>(axis)) continue;
                offset += outer % blocks[b] * stride;
                outer /= blocks[b];
            }
            result[axis][static_cast<size_t>(i)] = offset + outer * strides[axis];
        }
    }
    return result;
}

template <typename From, typename To, typename Convert>
void place_elements(const From* from, const AxisOffsets& at, To* to, const AxisOffsets& wanted,
                    Convert&& convert, size_t axis = 0) {
    const bool is_last = axis + 1 == at.size();
    for (size_t i = 0; i < at[axis].size(); ++i) {
        if (is_last)
            to[wanted[axis][i]] = convert(from[at[axis][i]]);
        else
            place_elements(from + at[axis][i], at, to + wanted[axis][i], wanted, convert, axis + 1);
    }
}

// Into a blocked format, whose padding is zeros already. Not dnnl::reorder: its generated code
// ("jit:uni" of 3.7.2) puts numbers of blocks that are padded in wrong places on some processors
// (AMD, family 26 model 2). False where the format holds more than the elements.
bool pack_blocked(const std::byte* source, const dnnl::memory::desc& from,
                  const dnnl::memory::desc& wanted, std::byte* packed) {
    using Type = dnnl::memory::data_type;
    const auto is_blocked = [](const dnnl::memory::desc& desc) {
        size_t elements = 1;
        for (const int64_t size : desc.get_padded_dims()) elements *= static_cast<size_t>(size);
        return desc.get_format_kind() == dnnl::memory::format_kind::blocked &&
               desc.get_submemory_offset() == 0 &&
               desc.get_size() <= elements * dnnl::memory::data_type_size(desc.get_data_type());
    };
    const Type type = from.get_data_type(), to = wanted.get_data_type();
    if (!is_blocked(wanted) || from.get_format_kind() != dnnl::memory::format_kind::blocked ||
        from.get_submemory_offset() != 0 || from.get_ndims() == 0)
        return false;
    const AxisOffsets at = axis_offsets(from), there = axis_offsets(wanted);
    const auto same = [](auto x) { return x; };
    if (type == Type::f32 && to == Type::f32)
        place_elements(reinterpret_cast<const float*>(source), at, reinterpret_cast<float*>(packed),
                       there, same);
    else if (type == Type::f32 && to == Type::bf16)
        place_elements(reinterpret_cast<const float*>(source), at,
                       reinterpret_cast<uint16_t*>(packed), there, [](float x) {
                           const auto bits = std::bit_cast<uint32_t>(x);
                           if (std::isnan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40);
                           return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
                       });
    else if (type == Type::bf16 && to == Type::bf16)
        place_elements(reinterpret_cast<const uint16_t*>(source), at,
                       reinterpret_cast<uint16_t*>(packed), there, same);
    else if (type == to && (type == Type::s8 || type == Type::u8))
        place_elements(source, at, packed, there, same);
    else
        return false;
    return true;
}

// The format whose elements lie as in this one and that has nothing behind them. oneDNN makes
// blocked ones by their tags alone, so that all are tried: a hundred microseconds.
std::optional<dnnl::memory::desc> without_sums(const dnnl::memory::desc& wanted,
                                               dnnl::memory::data_type type) {
    const dnnl::memory::dims dims = wanted.get_dims();
    if (wanted.get_inner_nblks() == 0) return dnnl::memory::desc(dims, type, wanted.get_strides());
    for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag) {
        dnnl_memory_desc_t made = nullptr;
        if (dnnl_memory_desc_create_with_tag(&made, wanted.get_ndims(), dims.data(),
                                             static_cast<dnnl_data_type_t>(type),
                                             static_cast<dnnl_format_tag_t>(tag)) != dnnl_success)
            continue;
        dnnl::memory::desc plain(made);  // owns it
        if (plain.get_strides() == wanted.get_strides() &&
            plain.get_inner_blks() == wanted.get_inner_blks() &&
            plain.get_inner_idxs() == wanted.get_inner_idxs() &&
            plain.get_padded_dims() == wanted.get_padded_dims())
            return plain;
    }
    return std::nullopt;
}

constexpr size_t max_fast_rank = 6;

bool takes_value(const graph::Value& value, const Row& row) {
    const bool static_shape = !value.data_dependent && value.type.elements() > 0;
    return static_shape && value.type.shape.size() <= max_fast_rank &&
           row.types.find(device::type_class(value.type.data_type)) != std::string_view::npos;
}

// What the compiler makes: parts behind products, whose operands are of the shape of the result, a
// number for each channel, or one. Those of others go the general way.
bool takes_fused(const graph::Graph& graph, const graph::Node& node) {
    if (node.fused.empty()) return true;
    if (!graph::has_trait(node, graph::Trait::product)) return false;
    const Dims& shape = graph.value(node.outputs[0]).type.shape;
    const bool is_conv = node.kind == "Conv" || node.kind == "ConvTranspose";
    const size_t channels = is_conv ? 1 : shape.size() - 1;
    for (size_t i = 3; i < node.inputs.size(); ++i) {  // behind the two factors and the bias
        const Dims& operand = graph.value(node.inputs[i]).type.shape;
        if (operand == shape) continue;
        if (operand.size() != shape.size()) return false;
        for (size_t d = 0; d < shape.size(); ++d)
            if (operand[d] != 1 && !(d == channels && operand[d] == shape[d])) return false;
    }
    return true;
}

}  // namespace

LowerFunction find_lowering(const graph::Graph& graph, const graph::Node& node) {
    const Row* row = find_row(node.kind);
    if (!row || !takes_fused(graph, node)) return lower_general;
    for (const auto* ids : {&node.inputs, &node.outputs})
        for (const graph::ValueId id : *ids)
            if (id != graph::none && !takes_value(graph.value(id), *row)) return lower_general;
    const bool takes = !row->takes || row->takes(graph, node);
    return takes ? row->lower : lower_general;
}

View WeightPacker::operator()(const dnnl::memory::desc& wanted) {
    for (const auto& [desc, view] : packed_) {
        if (desc == wanted) return view;
    }
    const dnnl::memory::desc from = descriptor(weights_);
    const auto make = [&lowering = lowering_, weights = weights_, from, wanted] {
        Bytes bytes(wanted.get_size());
        if (pack_blocked(lowering.constant_data(weights), from, wanted, bytes.data())) return bytes;
        // With sums behind the elements: from elements that lie as there, so that none is moved.
        // Reorders only read their source.
        auto* source = const_cast<std::byte*>(lowering.constant_data(weights));
        dnnl::memory::desc lies = from;
        Bytes elements;
        using Way = dnnl::reorder::primitive_desc;
        const auto way_from = [&wanted](const dnnl::memory::desc& desc) {
            return Way(cpu_engine(), desc, cpu_engine(), wanted, {}, true);
        };
        Way way;
        if (const auto there = without_sums(wanted, from.get_data_type())) {
            elements.resize(there->get_size());
            if (pack_blocked(source, from, *there, elements.data()) && (way = way_from(*there))) {
                lies = *there;
                source = elements.data();
            }
        }
        if (!way) way = way_from(from);
        dnnl::memory plain(lies, cpu_engine(), source);
        dnnl::memory packed(wanted, cpu_engine(), bytes.data());
        dnnl::stream stream(cpu_engine());
        dnnl::reorder(way).execute(stream, plain, packed);
        stream.wait();
        return bytes;
    };
    packed_.emplace_back(
        wanted, lowering_.add_packed(wanted.get_size(), name_of(from) + name_of(wanted), make));
    return packed_.back().second;
}

void emit_onednn(Lowering& lowering, const graph::Node& node, std::vector<OnednnCall> calls) {
    constexpr size_t alignment = 64;
    size_t scratch = 0;
    for (const OnednnCall& call : calls) {
        scratch += (call.scratchpad.get_size() + alignment - 1) / alignment * alignment;
    }
    View scratchpad = lowering.scratch_view(scratch);
    std::vector<int32_t> buffers;
    for (OnednnCall& call : calls) {
        call.arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, call.scratchpad});
        scratchpad.offset += static_cast<int64_t>((call.scratchpad.get_size() + alignment - 1) /
                                                  alignment * alignment);
        for (const OnednnCall::Argument& a : call.arguments) buffers.push_back(a.view.buffer);
    }
    std::string what = node.type() + " " + calls[0].implementation;
    if (calls.size() > 1) what += " x" + std::to_string(calls.size());
    for (const OnednnCall::Argument& a : calls[0].arguments) {
        if (a.id == DNNL_ARG_SRC || a.id == DNNL_ARG_DST) {
            what += (a.id == DNNL_ARG_DST ? " -> " : " ") + text(a.view);
        }
    }
    auto step = std::make_unique<OnednnStep>(std::move(what), calls, lowering.state());
    step->buffers = std::move(buffers);
    lowering.emit_onednn(std::move(step), node.name);
}

}  // namespace vartml::softnpu
