// SPDX-License-Identifier: Apache-2.0
// Matrix products of codes of 8 bits: QLinearMatMul, MatMulInteger.
#include <algorithm>

#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/code_conv.h"
#include "lib/run/softnpu/codes.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/int8_products.h"
#include "lib/run/softnpu/operators.h"

namespace vartml::softnpu {
namespace {

using dnnl::memory;

// Where the two operators have their operands.
struct Inputs {
    size_t az, b, bz, bs;
};
constexpr Inputs qlinear{2, 3, 5, 4}, integer{2, 1, 3, 9};

const Inputs& inputs_of(const graph::Node& node) {
    return node.kind == "MatMulInteger" ? integer : qlinear;
}

struct Product {
    View a, b, dst;  // rows x depth, depth x columns, rows x columns
    Int8Numbers numbers;
    int32_t a_zero = 0, dst_zero = 0;
    View computed_zero = {};  // i32; buffer -1: a_zero holds
};

// What belongs to a range of the columns; one number belongs to all.
void cut(std::vector<float>& numbers, const Range& range) {
    if (numbers.size() < 2) return;
    numbers.erase(numbers.begin() + range.first + range.size, numbers.end());
    numbers.erase(numbers.begin(), numbers.begin() + range.first);
}

// Shared by rows where there are enough, else by columns.
struct Shares {
    size_t dim;
    std::vector<Range> ranges;
};
Shares shares(const Lowering& lowering, const Product& p) {
    const int64_t rows = p.dst.dims[0], columns = p.dst.dims[1];
    const int64_t cost_ns = std::max(p.dst.elements() * p.a.dims[1] / 120, p.b.elements() / 16);
    const uint32_t most = items_for({p.dst.elements(), cost_ns}, lowering.threads());
    const size_t dim = rows >= int64_t{8} * most ? 0 : 1;
    const int64_t least = dim == 1 ? 64 : 1;  // columns fill vectors
    const auto items = std::clamp<int64_t>((dim == 0 ? rows : columns) / least, 1, most);
    return {dim, ranges(dim == 0 ? rows : columns, static_cast<uint32_t>(items))};
}

// Some columns of the constant matrix, dense: oneDNN packs no others where codes are signed.
View columns(Lowering& lowering, const View& matrix, const Range& range) {
    const View part = slice(matrix, 1, range.first, range.size, 1);
    if (part.dims == matrix.dims) return matrix;
    return lowering.add_constant(part.type, part.dims, row_major(2), [&lowering, matrix, part] {
        Bytes bytes(static_cast<size_t>(part.elements()) * size_bytes(part.type));
        const View to{0, part.type, 0, part.dims, dense_strides(part.dims, row_major(2))};
        copy_now(part, lowering.constant_data(matrix), to, bytes.data());
        return bytes;
    });
}

// nullopt where oneDNN has only its reference.
std::optional<std::vector<OnednnCall>> primitives(Lowering& lowering, const Product& p,
                                                  bool adds = false) {
    std::vector<OnednnCall> calls;
    std::vector<WeightPacker> packers;
    const auto [dim, parts] = shares(lowering, p);
    for (const Range& range : parts) {
        const View a = dim == 0 ? softnpu::cut(p.a, 0, range) : p.a;
        const View dst = softnpu::cut(p.dst, dim, range);
        const View b = dim == 1 ? columns(lowering, p.b, range) : p.b;
        Int8Numbers numbers = p.numbers;
        if (dim == 1) {
            cut(numbers.scales, range);
            cut(numbers.bias, range);
        }
        Int8Scaling scaling = int8_scaling(lowering, numbers, p.a_zero, p.dst_zero);
        if (p.computed_zero.buffer >= 0) scaling.src_zero = p.computed_zero;
        View bias;
        if (!numbers.bias.empty())
            bias = *reshape(bias_view(lowering, numbers.bias), {1, dst.dims[1]});
        const memory::desc any(b.dims, onednn_type(b.type), memory::format_tag::any);
        const dnnl::matmul::primitive_desc desc(cpu_engine(), descriptor(a), any,
                                                bias.buffer < 0 ? memory::desc() : descriptor(bias),
                                                descriptor(dst), attributes(scaling, 2, adds));
        if (is_reference(desc.impl_info_str())) return std::nullopt;
        if (packers.empty() || dim == 1) packers.emplace_back(lowering, b);
        OnednnCall call = onednn_call<dnnl::matmul>(desc, a, dst);
        call.arguments.push_back(
            {DNNL_ARG_WEIGHTS, packers.back()(desc.weights_desc()), desc.weights_desc()});
        if (bias.buffer >= 0) call.arguments.push_back({DNNL_ARG_BIAS, bias, desc.bias_desc()});
        add_operands(scaling, call);
        calls.push_back(std::move(call));
    }
    return calls;
}

View constant(Lowering& lowering, DataType type, std::span<const std::byte> bytes,
              const Dims& dims) {
    return lowering.add_constant(type, dims, row_major(dims.size()),
                                 Bytes(bytes.begin(), bytes.end()));
}

// A product for each term of the matrix, the second added to the first; empty where oneDNN has none
// for these shapes.
std::vector<std::vector<OnednnCall>> sums_of_terms(Lowering& lowering, Product p,
                                                   const std::vector<std::vector<int8_t>>& terms) {
    std::vector<std::vector<OnednnCall>> sums;
    const Dims matrix = p.b.dims;
    try {
        for (const std::vector<int8_t>& weights : terms) {
            p.b = constant(lowering, DataType::int8, std::as_bytes(std::span(weights)), matrix);
            auto calls = primitives(lowering, p, !sums.empty());
            if (!calls) return {};
            sums.push_back(std::move(*calls));
        }
    } catch (const dnnl::error&) {
        return {};
    }
    return sums;
}

// In floats, whose sums are exact as long as they are below 2^24, and nearly so above; `weights`
// are centred.
Result<void> lower_as_floats(Lowering& lowering, const graph::Node& node, Product p,
                             const std::vector<int16_t>& weights, const Coding& a,
                             const std::optional<ComputedCoding>& computed,
                             const std::optional<Coding>& y, const View& result) {
    const Dims matrix = p.b.dims;
    // Whole numbers must be exact; a float counts to 2^24.
    if (!y && matrix[0] * 255 * 255 > int64_t{1} << 24) return lower_general(lowering, node);
    const View codes = p.a, dst = p.dst;
    p.a = lowering.new_buffer(DataType::float32, codes.dims, row_major(2));
    if (computed)
        emit_dequantise(lowering, codes, p.a, *computed, node.name);
    else
        emit_dequantise(lowering, codes, p.a, Coding{1, a.zero, a.is_signed}, node.name);
    p.computed_zero = {};
    const std::vector<float> floats(weights.begin(), weights.end());
    p.b = constant(lowering, DataType::float32, std::as_bytes(std::span(floats)), matrix);
    const Int8Numbers numbers = p.numbers;
    p.numbers.bias.clear();
    p.dst = lowering.new_buffer(DataType::float32, dst.dims, row_major(2));
    p.numbers.scales.assign(1, 1.0F);
    p.a_zero = p.dst_zero = 0;
    const auto calls = primitives(lowering, p);
    if (!calls) return lower_general(lowering, node);
    emit_onednn(lowering, node, *calls);
    if (y) {
        emit_requantise(lowering, p.dst, dst, matrix[1], numbers.scales, numbers.bias, *y,
                        node.name);
    } else {
        emit_round(lowering, p.dst, dst, node.name);
    }
    lowering.finish(node.outputs[0], result);
    return {};
}

// With leading dimensions of 1 up to `rank`.
View with_rank(View view, size_t rank) {
    view.dims.insert(view.dims.begin(), rank - view.dims.size(), 1);
    view.strides.insert(view.strides.begin(), rank - view.strides.size(), view.elements());
    return view;
}

// Codes less their zero point, in floats.
View centred(Lowering& lowering, const graph::Node& node, size_t input, const Coding& coding,
             size_t rank) {
    const View& codes = lowering.view(node.inputs[input]);
    const View floats =
        lowering.new_buffer(DataType::float32, codes.dims, row_major(codes.dims.size()));
    emit_dequantise(lowering, codes, floats, Coding{1, coding.zero, coding.is_signed}, node.name);
    return with_rank(floats, rank);
}

// A product of two computed operands.
Result<void> lower_computed(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId out = node.outputs[0];
    const Coding a = *coding_of(lowering.graph(), node, 0),
                 b = *coding_of(lowering.graph(), node, 3);
    const Coding y = *coding_of_result(lowering.graph(), node, 6);
    const Dims& shape = lowering.value(out).type.shape;
    const size_t rank = shape.size();
    const View left = centred(lowering, node, 0, a, rank),
               right = centred(lowering, node, 3, b, rank);
    const View sums = lowering.new_buffer(DataType::float32, shape, row_major(rank));
    const dnnl::matmul::primitive_desc desc(cpu_engine(), descriptor(left), descriptor(right),
                                            descriptor(sums), attributes({}, 0));
    OnednnCall call = onednn_call<dnnl::matmul>(desc, left, sums);
    call.arguments.push_back({DNNL_ARG_WEIGHTS, right, desc.weights_desc()});
    emit_onednn(lowering, node, {std::move(call)});
    const View dst = lowering.destination(out, row_major(rank), true);
    emit_quantise(lowering, sums, dst, Coding{y.scale / (a.scale * b.scale), y.zero, y.is_signed},
                  node.name);
    lowering.finish(out, dst);
    return {};
}

bool takes_computed(const graph::Graph& graph, const graph::Node& node) {
    return graph.value(node.inputs[3]).type.shape.size() >= 2 && node.inputs.size() == 8 &&
           coding_of(graph, node, 0) && coding_of(graph, node, 3) &&
           coding_of_result(graph, node, 6);
}

bool is_computed(const graph::Graph& graph, const graph::Node& node) {
    return node.kind == "QLinearMatMul" && !graph.value(node.inputs[3]).constant;
}

}  // namespace

bool takes_quantised_matmul(const graph::Graph& graph, const graph::Node& node) {
    const Inputs& at = inputs_of(node);
    const Dims& b = graph.value(node.inputs[at.b]).type.shape;
    if (!is_code(graph.value(node.inputs[0]).type.data_type)) return false;
    if (graph.value(node.inputs[0]).type.shape.size() >= 2 && is_computed(graph, node))
        return takes_computed(graph, node);
    if (graph.value(node.inputs[0]).type.shape.size() < 2 || b.size() != 2 ||
        !has_weights_of_codes(graph, node, at.b, at.bz, 1))
        return false;
    if (node.kind == "MatMulInteger") return has_one_zero_point(graph, node);
    const auto columns = static_cast<size_t>(b[1]);
    const size_t scales = floats_of(graph, node, at.bs).size();
    const bool bias = node.inputs.size() > 8 && node.inputs[8] != graph::none;
    return coding_of(graph, node, 0) && coding_of_result(graph, node, 6) &&
           (scales == 1 || scales == columns) &&
           (!bias || integers_of(graph, node, 8).size() == columns);
}

Result<void> lower_quantised_matmul(Lowering& lowering, const graph::Node& node) {
    const graph::Graph& graph = lowering.graph();
    if (is_computed(graph, node)) return lower_computed(lowering, node);
    const Inputs& at = inputs_of(node);
    const graph::Type& type = lowering.value(node.inputs[0]).type;
    const auto centred_b = centred_weights(graph, node, at.b, at.bz, 1);
    const auto terms = int8_terms(centred_b);
    Coding a{1, 0, type.data_type == DataType::int8};
    std::optional<Coding> y;
    Product p;
    p.numbers.scales.assign(1, 1.0F);
    std::optional<ComputedCoding> computed;
    if (node.kind == "MatMulInteger") {
        computed = computed_zero_point(lowering, node);
        const auto zero = integers_of(graph, node, at.az);
        a.zero = zero.empty() ? 0 : static_cast<int32_t>(zero[0]);
    } else {
        a = *coding_of(graph, node, 0);
        y = coding_of_result(graph, node, 6);
        p.numbers = int8_numbers(graph, node, a, *y, at.bs, 8);
    }
    p.a_zero = a.zero;
    p.dst_zero = y ? y->zero : 0;
    const Dims& matrix = lowering.value(node.inputs[at.b]).type.shape;
    const Dims& shape = lowering.value(node.outputs[0]).type.shape;
    const View rows = lowering.dense(node.inputs[0], row_major(type.shape.size()), type.data_type);
    const int64_t height = rows.elements() / matrix[0];
    p.a = *reshape(rows, {height, matrix[0]});
    const View dst = lowering.destination(node.outputs[0], row_major(shape.size()), false);
    p.dst = *reshape(dst, {height, matrix[1]});
    if (y && terms.size() == 1) {
        const CodeConv product{node, a, *y, p.numbers.scales, {}, {}};
        if (runs_code_product(lowering, product)) {
            lower_code_product(lowering, product, p.a, p.dst);
            lowering.finish(node.outputs[0], dst);
            return {};
        }
    }
    p.b.dims = matrix;
    const bool fits = terms.size() == 1 || (!y && terms.size() == 2);
    std::vector<std::vector<OnednnCall>> sums;
    if (has_int8_products() && fits) {
        if (computed) p.computed_zero = emit_widened(lowering, computed->zero, node.name);
        sums = sums_of_terms(lowering, p, terms);
    }
    if (sums.empty()) return lower_as_floats(lowering, node, p, centred_b, a, computed, y, dst);
    for (auto& calls : sums) emit_onednn(lowering, node, std::move(calls));
    lowering.finish(node.outputs[0], dst);
    return {};
}

}  // namespace vartml::softnpu
