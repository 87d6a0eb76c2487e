// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include <algorithm>

#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/conv_step.h"
#include "lib/run/softnpu/direct_conv.h"
#include "lib/run/softnpu/operators.h"

namespace vartml::softnpu {
namespace {

using dnnl::memory;

View swap_last_two(const View& view) {
    std::vector<int64_t> perm;
    for (size_t i = 0; i < view.dims.size(); ++i) perm.push_back(static_cast<int64_t>(i));
    std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
    return transpose(view, perm);
}

// With leading dimensions of 1 up to `rank`.
View with_rank(View view, size_t rank) {
    view.dims.insert(view.dims.begin(), rank - view.dims.size(), 1);
    view.strides.insert(view.strides.begin(), rank - view.strides.size(), view.elements());
    return view;
}

// Whether batch dimensions lie in their order, the first outermost.
bool has_nested_batch(const View& view) {
    int64_t outer = INT64_MAX;
    for (size_t d = 0; d + 2 < view.dims.size(); ++d) {
        if (view.dims[d] == 1) continue;
        if (view.strides[d] > outer) return false;
        outer = view.strides[d];
    }
    return true;
}

// The strides of dimensions of size 1 say nothing, but oneDNN 3.7 takes the order of dimensions
// from them, too, and reads another matrix: here they are those that the dimension would have with
// more elements, rows or columns in a batch, a batch around all that is inside of it.
memory::desc matrix_descriptor(View view) {
    const size_t rank = view.dims.size();
    Dims &dims = view.dims, &strides = view.strides;
    int64_t &row = strides[rank - 2], &column = strides[rank - 1];
    const bool by_columns = dims[rank - 2] != 1 && row == 1;
    if (dims[rank - 1] == 1) column = by_columns ? dims[rank - 2] : 1;
    if (dims[rank - 2] == 1) row = column * dims[rank - 1];
    int64_t inside = std::max(dims[rank - 2] * row, dims[rank - 1] * column);
    for (size_t d = rank - 2; d-- > 0;) {
        if (dims[d] == 1) strides[d] = inside;
        inside = std::max(inside, dims[d] * strides[d]);
    }
    return descriptor(view);
}

// An operand whose last two dimensions lie as rows or as columns; others are copied, and so are
// those whose batches are nested in another order, of which oneDNN 3.7 takes some for others.
View matrix(Lowering& lowering, graph::ValueId id, DataType type) {
    const size_t rank = lowering.value(id).type.shape.size();
    if (lowering.value(id).constant || rank < 2) {
        return lowering.dense(id, row_major(rank), type);
    }
    const View& view = lowering.view(id);
    const bool contiguous = view.strides[rank - 1] == 1 || view.strides[rank - 2] == 1;
    if (view.type == type && contiguous && has_nested_batch(view)) return view;
    return lowering.dense(id, row_major(rank), type);
}

struct Product {
    View a, b, dst;  // ranks equal
    View bias;       // buffer -1: none; broadcasts to dst
    bool constant_b = false, constant_bias = false;
};

// A batch of rows times one matrix is one product.
void fold_batch(Product& p) {
    const size_t rank = p.dst.dims.size();
    if (rank <= 2 || !p.constant_b) return;
    for (size_t i = 0; i + 2 < rank; ++i) {
        if (p.b.dims[i] != 1) return;
    }
    const auto flat = [&](const View& v) {
        const int64_t columns = v.dims[rank - 1];
        return reshape(v, {v.elements() / columns, columns});
    };
    const auto a = flat(p.a), dst = flat(p.dst);
    if (!a || !dst || a->strides[1] != 1) return;
    p.a = *a;
    p.dst = *dst;
    p.b.dims.erase(p.b.dims.begin(), p.b.dims.end() - 2);
    p.b.strides.erase(p.b.strides.begin(), p.b.strides.end() - 2);
}

// The dimension of the result that is shared out: the outermost batch, else rows, else columns.
size_t shared_dim(const Product& p, int64_t parts) {
    const size_t rank = p.dst.dims.size();
    for (size_t d = 0; d + 1 < rank; ++d) {
        if (p.dst.dims[d] >= parts * (d + 2 == rank ? 8 : 1)) return d;
    }
    return rank - 1;
}

Product part_of(const Product& p, size_t dim, const Range& range) {
    const size_t rank = p.dst.dims.size();
    Product part = p;
    part.dst = cut(p.dst, dim, range);
    if (dim != rank - 1) part.a = cut(p.a, dim, range);
    if (dim != rank - 2) part.b = cut(p.b, dim, range);
    if (p.bias.buffer >= 0) part.bias = cut(p.bias, dim, range);
    return part;
}

void emit(Lowering& lowering, const graph::Node& node, Product& p, std::vector<PostOp> post) {
    const size_t rank = p.dst.dims.size();
    for (PostOp& op : post) {
        if (op.operand.buffer >= 0 && op.operand.dims.size() != rank)
            op.operand = *reshape(op.operand, p.dst.dims);
    }
    const bool has_bias = p.bias.buffer >= 0;
    if (has_bias) {
        while (p.bias.dims.size() > rank) {
            p.bias.dims.erase(p.bias.dims.begin());
            p.bias.strides.erase(p.bias.strides.begin());
        }
        p.bias = with_rank(p.bias, rank);
    }
    const int64_t depth = p.a.dims[rank - 1];
    // A product with few rows reads its matrix once and is bound by that.
    const int64_t cost_ns = std::max(p.dst.elements() * depth / 40, p.b.elements() / 4);
    const uint32_t most = items_for({p.dst.elements(), cost_ns}, lowering.threads());
    const size_t dim = shared_dim(p, most);
    const int64_t least = dim == rank - 1 ? 32 : 1;  // columns fill vectors
    const auto items = static_cast<uint32_t>(
        std::clamp<int64_t>(p.dst.dims[dim] / least, 1, static_cast<int64_t>(most)));
    std::vector<OnednnCall> calls;
    std::vector<WeightPacker> packers;
    for (const Range& range : ranges(p.dst.dims[dim], items)) {
        const Product part = part_of(p, dim, range);
        std::vector<PostOp> own = post;
        for (PostOp& op : own) {
            if (op.operand.buffer >= 0) op.operand = cut(op.operand, dim, range);
        }
        const auto weights = p.constant_b
                                 ? memory::desc(part.b.dims, onednn_type(lowering.compute(node)),
                                                memory::format_tag::any)
                                 : matrix_descriptor(part.b);
        const dnnl::matmul::primitive_desc desc(cpu_engine(), matrix_descriptor(part.a), weights,
                                                has_bias ? descriptor(part.bias) : memory::desc(),
                                                matrix_descriptor(part.dst), attributes(own));
        // Pieces that share a matrix share its packing.
        if (packers.empty() || part.b != p.b) packers.emplace_back(lowering, part.b);
        const View b = p.constant_b ? packers.back()(desc.weights_desc()) : part.b;
        OnednnCall call = onednn_call<dnnl::matmul>(desc, part.a, part.dst);
        call.arguments.push_back({DNNL_ARG_WEIGHTS, b, desc.weights_desc()});
        if (has_bias) call.arguments.push_back({DNNL_ARG_BIAS, part.bias, desc.bias_desc()});
        add_operands(own, call);
        calls.push_back(std::move(call));
    }
    emit_onednn(lowering, node, std::move(calls));
}

bool is_conv_type(const View& view) {
    return view.type == DataType::float32 || view.type == DataType::bf16;
}

// A constant matrix is the weights of a 1x1 convolution, which needs no oneDNN and is faster where
// rows are few; larger matrices are better read by several threads.
bool is_convolution(const Lowering& lowering, const graph::Node& node, const Product& p) {
    constexpr int64_t most_weights = 512 * 1024;
    if (!multiplies_here(lowering, node) || !p.constant_b || p.dst.dims.size() != 2 ||
        p.b.dims.size() != 2 || !is_conv_type(p.a) || !is_conv_type(p.dst))
        return false;
    const bool has_rows =
        (p.a.strides[1] == 1 || p.a.dims[1] == 1) && (p.dst.strides[1] == 1 || p.dst.dims[1] == 1);
    const bool has_bias = p.bias.buffer >= 0;
    const bool is_row = p.bias.dims.empty() || p.bias.dims.back() == p.dst.dims[1];
    const bool bias_fits =
        !has_bias || (p.constant_bias && is_row && p.bias.elements() == p.dst.dims[1]);
    const auto parts = read_conv_parts(node);
    return has_rows && bias_fits && parts && !parts->residual && p.b.elements() <= most_weights;
}

// Rows of the product are pixels of a picture one pixel wide.
void emit_convolution(Lowering& lowering, const graph::Node& node, const Product& p) {
    const auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
    const int64_t rows = p.dst.dims[0], depth = p.b.dims[0], columns = p.b.dims[1];
    GroupedShape shape{{u(rows), 1, u(depth), u(rows), 1, u(columns)}};
    shape.shape.factors = factors_of(lowering, node);
    const View weights = pack_conv_weights(lowering, shape, [&lowering, b = p.b, bias = p.bias] {
        ConvWeights made;
        const auto* from = reinterpret_cast<const float*>(lowering.constant_data(b));
        for (int64_t n = 0; n < b.dims[1]; ++n)
            for (int64_t k = 0; k < b.dims[0]; ++k)
                made.weights.push_back(from[k * b.strides[0] + n * b.strides[1]]);
        if (bias.buffer >= 0) {
            const auto* add = reinterpret_cast<const float*>(lowering.constant_data(bias));
            made.biases.assign(add, add + b.dims[1]);
        }
        return made;
    });
    const auto picture = [](const View& rows_of) {
        View view = rows_of;
        view.dims = {1, rows_of.dims[1], rows_of.dims[0], 1};
        view.strides = {0, 1, rows_of.strides[0], rows_of.strides[0]};
        return view;
    };
    emit_direct_conv(lowering, node, shape, read_conv_parts(node)->epilogue, picture(p.a), weights,
                     {}, picture(p.dst));
}

// alpha · constant, in f32.
View scaled(Lowering& lowering, graph::ValueId id, float factor) {
    const Dims& dims = lowering.value(id).type.shape;
    const Order order = row_major(dims.size());
    if (factor == 1) return lowering.dense(id, order, DataType::float32);
    return lowering.add_constant(DataType::float32, dims, order, [&lowering, id, factor] {
        const std::byte* const from = lowering.constant_bytes(id, DataType::float32);
        Bytes bytes(from, from + lowering.value(id).type.elements() * sizeof(float));
        auto* values = reinterpret_cast<float*>(bytes.data());
        for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) values[i] *= factor;
        return bytes;
    });
}

}  // namespace

// Factors other than 1 are of constants (takes_gemm).
Result<void> lower_matmul(Lowering& lowering, const graph::Node& node) {
    const bool gemm = node.kind == "Gemm";
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    const float alpha = gemm ? node.get("alpha", 1.0F) : 1,
                beta = gemm ? node.get("beta", 1.0F) : 1;
    const graph::ValueId b = node.inputs[1];
    Product p;
    p.constant_b = lowering.value(b).constant.has_value();
    const DataType type = lowering.compute(node);
    p.a = matrix(lowering, node.inputs[0], type);
    p.b = p.constant_b ? scaled(lowering, b, alpha) : matrix(lowering, b, type);
    if (gemm && node.get("transA", int64_t{0}) != 0) p.a = swap_last_two(p.a);
    if (gemm && node.get("transB", int64_t{0}) != 0) p.b = swap_last_two(p.b);
    const Dims& shape = lowering.value(node.outputs[0]).type.shape;
    const size_t rank = shape.size();
    p.a = with_rank(p.a, rank);
    p.b = with_rank(p.b, rank);
    const Order order = row_major(rank);
    const View dst = lowering.destination(node.outputs[0], order, false);
    p.dst = dst;
    if (bias >= 0) {
        p.constant_bias = lowering.value(bias).constant.has_value();
        p.bias = p.constant_bias
                     ? scaled(lowering, bias, beta)
                     : lowering.dense(bias, row_major(lowering.value(bias).type.shape.size()),
                                      DataType::float32);
    }
    fold_batch(p);
    if (is_convolution(lowering, node, p)) {
        emit_convolution(lowering, node, p);
        lowering.finish(node.outputs[0], dst);
        return {};
    }
    auto post = make_post_ops(lowering, node, order);
    if (!post) return post.error();
    emit(lowering, node, p, std::move(*post));
    lowering.finish(node.outputs[0], dst);
    return {};
}

}  // namespace vartml::softnpu
