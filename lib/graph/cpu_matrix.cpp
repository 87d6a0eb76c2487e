// SPDX-License-Identifier: Apache-2.0
// Products of matrices of one type; determinants.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/graph/einsum.h"
#include "lib/graph/kernel.h"
#include "lib/graph/products.h"
#include "lib/graph/walk.h"

namespace vartml::cpu {

// Products of stacks of matrices by numpy's rule.

// y += a * b. The leading axes broadcast; a vector is a row on the left and a column on the right.
template <typename T>
void multiply(const Shape& a_shape, const T* a, const Shape& b_shape, const T* b, T* y) {
    const auto outer_of = [](const Shape& shape) {
        return Shape(
            std::span<const int64_t>(shape).first(shape.size() < 2 ? 0 : shape.size() - 2));
    };
    const bool column = b_shape.size() == 1;
    const int64_t depth = a_shape.back(), columns = column ? 1 : b_shape.back();
    const Shape left = outer_of(a_shape), right = outer_of(b_shape);
    int64_t rows = a_shape.size() == 1 ? 1 : a_shape[a_shape.size() - 2];
    if (right.elements() == 1 && left.size() >= right.size()) {
        // One matrix on the right: the rows of all on the left.
        rows *= left.elements();
        return add_product(rows, columns, depth, a, depth, b, columns, y, columns);
    }
    const Shape& longer = left.size() >= right.size() ? left : right;
    const Shape& shorter = left.size() >= right.size() ? right : left;
    Shape outer = longer;
    for (size_t i = 0; i < shorter.size(); ++i) {
        int64_t& size = outer[outer.size() - shorter.size() + i];
        if (shorter[i] != 1) size = shorter[i];
    }
    Walk<2> walk(outer, {broadcast_strides(left, outer), broadcast_strides(right, outer)});
    for (int64_t i = 0; i < outer.elements(); ++i, walk.next())
        add_product(rows, columns, depth, a + walk.offset(0) * rows * depth, depth,
                    b + walk.offset(1) * depth * columns, columns, y + i * rows * columns, columns);
}

namespace {

// The types that ONNX multiplies matrices of.
template <typename F>
bool with_factor(DataType type, F f) {
    return with_float(type, f) || with_one_of<int32_t, uint32_t, int64_t, uint64_t>(type, f);
}

template <typename T>
void matmul_as(const Call& call) {
    const Array &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
    const Numbers<T> as(a), bs(b), bias(call.has_input(2) ? call.inputs[2] : Array());
    Sums<T> sums(y);
    sums.fill(T());
    if (bias.data()) {
        const int64_t columns = y.shape.back();
        for (int64_t i = 0; i < y.elements(); ++i) sums.data()[i] = bias[i % columns];
    }
    multiply(a.shape, as.data(), b.shape, bs.data(), sums.data());
    sums.store();
}

Result<void> matmul(const Call& call) {
    const bool known = with_factor(call.inputs[0].type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) matmul_as<Computed<T>>(call);
    });
    if (!known) return no_type(call, call.inputs[0].type);
    return {};
}

// ---- Gemm
// ----------------------------------------------------------------------------------------------------------

// x * factor; integers round towards 0.
template <typename T>
T scaled(T x, float factor) {
    if (factor == 1) return x;
    if constexpr (std::is_integral_v<T>) {
        using Signed = std::make_signed_t<T>;
        const double product = static_cast<double>(static_cast<Signed>(x)) * factor;
        return static_cast<T>(graph::convert<Signed>(product));
    } else {
        return x * static_cast<T>(factor);
    }
}

// alpha * a * b + beta * c.
template <typename T>
void gemm_as(const Call& call) {
    const Array &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
    const bool trans_a = call.node.get("transA", int64_t{0}) != 0;
    const bool trans_b = call.node.get("transB", int64_t{0}) != 0;
    const int64_t rows = y.shape[0], columns = y.shape[1], depth = a.shape[trans_a ? 0 : 1];
    const Numbers<T> as(a), bs(b), cs(call.has_input(2) ? call.inputs[2] : Array());
    Sums<T> sums(y);
    sums.fill(T());
    std::vector<T> left, right;
    const T *l = as.data(), *r = bs.data();
    if (trans_a) {
        left.resize(static_cast<size_t>(rows * depth));
        transpose(depth, rows, l, left.data());
        l = left.data();
    }
    if (trans_b && rows == 1) {
        // The rows of b times a column.
        add_product(columns, 1, depth, r, depth, l, 1, sums.data(), 1);
    } else {
        if (trans_b) {
            right.resize(static_cast<size_t>(depth * columns));
            transpose(columns, depth, r, right.data());
            r = right.data();
        }
        add_product(rows, columns, depth, l, depth, r, columns, sums.data(), columns);
    }
    const float alpha = call.node.get("alpha", 1.0F), beta = call.node.get("beta", 1.0F);
    if (alpha != 1)
        for (int64_t i = 0; i < y.elements(); ++i) sums.data()[i] = scaled(sums.data()[i], alpha);
    if (cs.data()) {
        Walk<1> walk(y.shape, {broadcast_strides(call.inputs[2].shape, y.shape)});
        for (int64_t i = 0; i < y.elements(); ++i, walk.next())
            sums.data()[i] += scaled(cs[walk.offset()], beta);
    }
    sums.store();
}

Result<void> gemm(const Call& call) {
    const bool known = with_factor(call.inputs[0].type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) gemm_as<Computed<T>>(call);
    });
    if (!known) return no_type(call, call.inputs[0].type);
    return {};
}

// ---- determinants
// --------------------------------------------------------------------------------------------------

// By elimination with the largest pivot of each column.
double determinant(std::vector<double>& m, size_t n) {
    double product = 1;
    for (size_t column = 0; column < n; ++column) {
        size_t pivot = column;
        for (size_t row = column + 1; row < n; ++row)
            if (std::fabs(m[row * n + column]) > std::fabs(m[pivot * n + column])) pivot = row;
        const double head = m[pivot * n + column];
        product *= pivot == column ? head : -head;
        if (head == 0) break;
        for (size_t k = column; pivot != column && k < n; ++k)
            std::swap(m[pivot * n + k], m[column * n + k]);
        for (size_t row = column + 1; row < n; ++row) {
            const double factor = m[row * n + column] / head;
            for (size_t k = column + 1; k < n; ++k) m[row * n + k] -= factor * m[column * n + k];
        }
    }
    return product;
}

Result<void> det(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const int64_t n = x.shape.back();
    std::vector<double> matrix;
    const bool known = with_float(x.type, [&]<typename T>(T) {
        for (int64_t i = 0; i < y.elements(); ++i) {
            matrix.clear();
            for (const T v :
                 x.span<T>().subspan(static_cast<size_t>(i * n * n), static_cast<size_t>(n * n)))
                matrix.push_back(graph::convert<double>(v));
            y.as<T>()[i] = graph::convert<T>(determinant(matrix, static_cast<size_t>(n)));
        }
    });
    if (!known) return no_type(call, x.type);
    return {};
}

constexpr KernelRow kernels[] = {
    {"Det", det},
    {"Gemm", gemm},
    {"MatMul", matmul},
};

}  // namespace

std::span<const KernelRow> matrix_kernels() {
    return kernels;
}

// Attention of com.microsoft: projection to q, k and v, and scaled dot products head by head.

namespace {

// x [batch, length, inputs] times weight [inputs, q + k + v].
struct AttentionSizes {
    int64_t batch, length, inputs, q, k, v, heads;
    int64_t width() const { return q + k + v; }
    int64_t head() const { return q / heads; }
    int64_t v_head() const { return v / heads; }
};

AttentionSizes sizes_of(const Call& call) {
    const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
    const auto parts = call.node.get("qkv_hidden_sizes", std::vector<int64_t>(3, w[1] / 3));
    return {x[0], x[1], x[2], parts[0], parts[1], parts[2], call.node.get("num_heads", int64_t{1})};
}

// Whether the mask hides a column from a row of scores. A vector holds the ends of all sequences,
// then perhaps their starts; a matrix has a row for each, a stack of them a matrix.
bool is_hidden(const Shape& shape, const int64_t* mask, const AttentionSizes& s, int64_t batch,
               int64_t row, int64_t column) {
    switch (shape.size()) {
        case 1:
            return column >= mask[batch] ||
                   (shape[0] == 2 * s.batch && column < mask[batch + s.batch]);
        case 2:
            return mask[batch * s.length + column] <= 0;
        default:
            return mask[(batch * s.length + row) * s.length + column] <= 0;
    }
}

// What is added to the scores of one sequence, [length, length]: `filter` where they are hidden,
// the lowest number behind the diagonal of a unidirectional node.
template <typename T>
std::vector<T> additions(const Call& call, const AttentionSizes& s, const int64_t* mask,
                         int64_t batch) {
    const T filter = static_cast<T>(call.node.get("mask_filter_value", -10000.0F));
    const bool causal = call.node.get("unidirectional", int64_t{0}) != 0;
    std::vector<T> added;
    for (int64_t row = 0; row < s.length; ++row) {
        for (int64_t column = 0; column < s.length; ++column) {
            const bool hidden =
                mask && is_hidden(call.inputs[3].shape, mask, s, batch, row, column);
            added.push_back(causal && column > row ? std::numeric_limits<T>::lowest()
                            : hidden               ? filter
                                                   : T());
        }
    }
    return added;
}

template <typename T>
void softmax(T* row, int64_t n) {
    const auto largest = static_cast<double>(*std::max_element(row, row + n));
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double e = std::exp(static_cast<double>(row[i]) - largest);
        row[i] = static_cast<T>(e);
        sum += e;
    }
    for (int64_t i = 0; i < n; ++i) row[i] = static_cast<T>(static_cast<double>(row[i]) / sum);
}

// The operands at work.
template <typename T>
struct Attention {
    AttentionSizes sizes;
    T scale;
    std::vector<T> qkv;                     // [batch, length, q + k + v]
    const T* bias;                          // of the scores, or nullptr
    Strides bias_strides;                   // along batch, head, row and column
    std::vector<T> keys = {}, scores = {};  // [head, length] and [length, length] of one head

    // The probabilities of one head.
    void score(int64_t batch, int64_t head, const std::vector<T>& added) {
        const int64_t n = sizes.length, width = sizes.width(), size = sizes.head();
        const T* q = qkv.data() + batch * n * width + head * size;
        keys.resize(static_cast<size_t>(size * n));
        for (int64_t at = 0; at < n; ++at)
            for (int64_t i = 0; i < size; ++i)
                keys[static_cast<size_t>(i * n + at)] = q[at * width + sizes.q + i];
        scores.assign(static_cast<size_t>(n * n), T());
        add_product(n, n, size, q, width, keys.data(), n, scores.data(), n);
        const T* more = bias ? bias + batch * bias_strides[0] + head * bias_strides[1] : nullptr;
        for (int64_t row = 0; row < n; ++row) {
            T* s = scores.data() + row * n;
            for (int64_t column = 0; column < n; ++column) {
                s[column] = s[column] * scale + added[static_cast<size_t>(row * n + column)];
                if (more) s[column] += more[row * bias_strides[2] + column * bias_strides[3]];
            }
            softmax(s, n);
        }
    }
};

// x weight bias? mask? _ bias of the scores?
template <typename T>
void attention_as(const Call& call) {
    const AttentionSizes s = sizes_of(call);
    const int64_t n = s.length, width = s.width();
    const auto optional = [&](size_t i) { return call.has_input(i) ? call.inputs[i] : Array(); };
    const Numbers<T> x(call.inputs[0]), weight(call.inputs[1]), bias(optional(2));
    const Numbers<int64_t> mask(optional(3));
    const Numbers<T> score_bias(optional(5));
    const float scale = call.node.get("scale", 0.0F);
    Attention<T> work{
        .sizes = s,
        .scale = scale != 0 ? static_cast<T>(scale) : 1 / std::sqrt(static_cast<T>(s.head())),
        .qkv = std::vector<T>(static_cast<size_t>(s.batch * n * width)),
        .bias = score_bias.data(),
        .bias_strides = score_bias.data()
                            ? broadcast_strides(call.inputs[5].shape, {s.batch, s.heads, n, n})
                            : Strides{}};
    for (int64_t i = 0; bias.data() && i < s.batch * n; ++i)
        std::copy_n(bias.data(), width, work.qkv.data() + i * width);
    add_product(s.batch * n, width, s.inputs, x.data(), s.inputs, weight.data(), width,
                work.qkv.data(), width);
    Sums<T> y(call.outputs[0]);
    y.fill(T());
    for (int64_t b = 0; b < s.batch; ++b) {
        const std::vector<T> added = additions<T>(call, s, mask.data(), b);
        for (int64_t h = 0; h < s.heads; ++h) {
            work.score(b, h, added);
            const T* v = work.qkv.data() + b * n * width + s.q + s.k + h * s.v_head();
            add_product(n, s.v_head(), n, work.scores.data(), n, v, width,
                        y.data() + b * n * s.v + h * s.v_head(), s.v);
        }
    }
    y.store();
}

Result<void> attention(const Call& call) {
    const bool known = with_float(call.inputs[0].type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) attention_as<Computed<T>>(call);
    });
    if (!known) return no_type(call, call.inputs[0].type);
    return {};
}

constexpr KernelRow attention_table[] = {{"Attention", attention}};

}  // namespace

std::span<const KernelRow> attention_kernels() {
    return attention_table;
}

// Einsum: operand by operand, each pair as a product of matrices.

namespace {

using Sizes = std::map<char, int64_t>;

// More than any memory has, and still no overflow.
constexpr int64_t too_many = int64_t{1} << 56;

int64_t elements_of(const std::string& labels, const Sizes& sizes) {
    int64_t n = 1;
    for (const char label : labels) {
        const int64_t size = sizes.at(label);
        n = size > 0 && n > too_many / size ? too_many : n * size;
    }
    return n;
}

bool has(const std::string& labels, char label) {
    return labels.find(label) != labels.npos;
}

// An operand: elements, and a label per axis.
template <typename T>
struct Term {
    std::string labels;
    std::vector<int64_t> shape;
    const T* data = nullptr;
    std::vector<T> memory = {};  // where no tensor holds them

    // Elements to the next index of a label: the sum of the strides of its axes, which makes a
    // diagonal of labels that occur twice.
    int64_t stride(char label) const {
        int64_t stride = 1, sum = 0;
        for (size_t axis = labels.size(); axis-- > 0; stride *= shape[axis])
            if (labels[axis] == label && shape[axis] != 1) sum += stride;
        return sum;
    }
    // Its labels, once each, but for those of `others`.
    std::string labels_without(const std::string& others) const {
        std::string rest;
        for (const char label : labels)
            if (!has(others, label) && !has(rest, label)) rest += label;
        return rest;
    }
};

// Walks the indices of some labels of a term.
struct Steps {
    std::vector<int64_t> sizes, strides, index;
    int64_t offset = 0;
    template <typename T>
    Steps(const Term<T>& term, const std::string& labels, const Sizes& all)
        : index(labels.size(), 0) {
        for (const char label : labels) {
            sizes.push_back(all.at(label));
            strides.push_back(term.stride(label));
        }
    }
    void next() {
        for (size_t axis = sizes.size(); axis-- > 0;) {
            offset += strides[axis];
            if (++index[axis] < sizes[axis]) return;
            offset -= strides[axis] * sizes[axis];
            index[axis] = 0;
        }
    }
};

// Dense elements of the labels `kept`, in that order; the other labels are summed up.
template <typename T>
void gather(const Term<T>& term, const std::string& kept, const Sizes& sizes, T* to) {
    const std::string summed = term.labels_without(kept);
    Steps outer(term, kept, sizes), inner(term, summed, sizes);
    const int64_t count = elements_of(kept, sizes), terms = elements_of(summed, sizes);
    using Wide = std::conditional_t<std::is_integral_v<T>, T, double>;
    for (int64_t i = 0; i < count; ++i, outer.next()) {
        if (summed.empty()) {
            to[i] = term.data[outer.offset];
            continue;
        }
        Wide sum = 0;
        for (int64_t k = 0; k < terms; ++k, inner.next())
            sum += static_cast<Wide>(term.data[outer.offset + inner.offset]);
        to[i] = static_cast<T>(sum);
    }
}

template <typename T>
std::vector<T> gathered(const Term<T>& term, const std::string& kept, const Sizes& sizes) {
    std::vector<T> dense(static_cast<size_t>(elements_of(kept, sizes)));
    gather(term, kept, sizes, dense.data());
    return dense;
}

// The product of two terms, summed up over the labels that nobody else needs.
template <typename T>
Term<T> contract(const Term<T>& a, const Term<T>& b, const std::string& needed,
                 const Sizes& sizes) {
    std::string batch, depth, rows, columns;
    for (const char label : a.labels_without({})) {
        const bool kept = has(needed, label);
        if (has(b.labels, label))
            (kept ? batch : depth) += label;
        else if (kept)
            rows += label;
    }
    for (const char label : b.labels_without(a.labels))
        if (has(needed, label)) columns += label;
    const auto left = gathered(a, batch + rows + depth, sizes);
    const auto right = gathered(b, batch + depth + columns, sizes);
    Term<T> y{.labels = batch + rows + columns, .shape = {}};
    for (const char label : y.labels) y.shape.push_back(sizes.at(label));
    y.memory.resize(static_cast<size_t>(elements_of(y.labels, sizes)));
    y.data = y.memory.data();
    const int64_t m = elements_of(rows, sizes), n = elements_of(columns, sizes),
                  k = elements_of(depth, sizes);
    for (int64_t i = 0; !y.memory.empty() && i < elements_of(batch, sizes); ++i)
        add_product(m, n, k, left.data() + i * m * k, k, right.data() + i * k * n, n,
                    y.memory.data() + i * m * n, n);
    return y;
}

template <typename T>
void einsum_as(const Call& call, const graph::Einsum& einsum) {
    std::vector<std::unique_ptr<Numbers<T>>> numbers;
    std::vector<Term<T>> terms;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
        const Array& x = call.inputs[i];
        numbers.push_back(std::make_unique<Numbers<T>>(x));
        terms.push_back({.labels = einsum.terms[i],
                         .shape = {x.shape.begin(), x.shape.end()},
                         .data = numbers.back()->data()});
    }
    Term<T> result = std::move(terms[0]);
    for (size_t i = 1; i < terms.size(); ++i) {
        std::string needed = einsum.output;
        for (size_t later = i + 1; later < terms.size(); ++later) needed += terms[later].labels;
        result = contract(result, terms[i], needed, einsum.sizes);
    }
    Sums<T> y(call.outputs[0]);
    gather(result, einsum.output, einsum.sizes, y.data());
    y.store();
}

Result<void> einsum(const Call& call) {
    std::vector<std::vector<int64_t>> shapes;
    for (const Array& x : call.inputs) shapes.emplace_back(x.shape.begin(), x.shape.end());
    const auto parsed = graph::parse_einsum(call.node.get("equation", ""), shapes);
    if (!parsed) return bad_data(call, "has an equation that does not fit its inputs");
    const DataType type = call.inputs[0].type;
    const auto compute = [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) einsum_as<Computed<T>>(call, *parsed);
    };
    const bool known =
        with_float(type, compute) ||
        with_one_of<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>(
            type, compute);
    if (!known) return no_type(call, type);
    return {};
}

constexpr KernelRow einsum_table[] = {{"Einsum", einsum}};

}  // namespace

std::span<const KernelRow> einsum_kernels() {
    return einsum_table;
}

// Products of matrices of 8-bit integers.

namespace {

// A scale or zero point of a matrix: one for all, a list for the rows or columns (`axis`), or one
// that broadcasts. Its strides along the axes of `whole`.
Strides parameter_strides(const Shape& parameter, const Shape& whole, size_t axis) {
    if (parameter.elements() == 1) return {};
    if (parameter.size() != 1) return broadcast_strides(parameter, whole);
    Strides strides{};
    strides[axis] = 1;
    return strides;
}

size_t rows_of(const Shape& shape) {
    return shape.size() < 2 ? 0 : shape.size() - 2;
}
size_t columns_of(const Shape& shape) {
    return shape.size() - 1;
}

// Elements minus their zero points.
std::vector<uint32_t> centred(const Array& x, const Array* zero, size_t axis) {
    const Numbers<uint32_t> numbers(x);
    std::vector<uint32_t> centred(numbers.data(), numbers.data() + x.elements());
    if (!zero) return centred;
    const Numbers<uint32_t> zeros(*zero);
    Walk<1> walk(x.shape, {parameter_strides(zero->shape, x.shape, axis)});
    for (uint32_t& v : centred) {
        v -= zeros[walk.offset()];
        walk.next();
    }
    return centred;
}

const Array* input_or_null(const Call& call, size_t i) {
    return call.has_input(i) ? &call.inputs[i] : nullptr;
}

// (a - az) * (b - bz); the indices are those of the inputs.
void multiply_centred(const Call& call, size_t a, size_t az, size_t b, size_t bz, uint32_t* y) {
    const Shape &left = call.inputs[a].shape, &right = call.inputs[b].shape;
    const auto as = centred(call.inputs[a], input_or_null(call, az), rows_of(left));
    const auto bs = centred(call.inputs[b], input_or_null(call, bz), columns_of(right));
    std::fill_n(y, call.outputs[0].elements(), 0U);
    multiply(left, as.data(), right, bs.data(), y);
}

bool is_byte(DataType type) {
    return type == DataType::int8 || type == DataType::uint8;
}

Result<void> matmul_integer(const Call& call) {
    for (const Array& array : call.inputs.first(2))
        if (!is_byte(array.type)) return no_type(call, array.type);
    if (call.outputs[0].elements() > 0)
        multiply_centred(call, 0, 2, 1, 3, call.outputs[0].as<uint32_t>());
    return {};
}

// a as az b bs bz ys yz bias?
template <typename T>
void qlinear_matmul_as(const Call& call) {
    const Array& y = call.outputs[0];
    std::vector<uint32_t> sums(static_cast<size_t>(y.elements()));
    multiply_centred(call, 0, 2, 3, 5, sums.data());
    const Numbers<float> a_scale(call.inputs[1]), b_scale(call.inputs[4]), y_scale(call.inputs[6]);
    const Numbers<int32_t> y_zero(call.inputs[7]);
    const int32_t* const bias = call.has_input(8) ? call.inputs[8].as<int32_t>() : nullptr;
    const size_t columns = y.shape.empty() ? 0 : columns_of(y.shape);
    const size_t rows = rows_of(y.shape);
    const auto strides = [&](size_t input, size_t axis) {
        return parameter_strides(call.inputs[input].shape, y.shape, axis);
    };
    Walk<4> walk(y.shape,
                 {strides(1, rows), strides(4, columns), strides(6, rows), strides(7, rows)});
    for (int64_t i = 0; i < y.elements(); ++i, walk.next()) {
        const float scale =
            a_scale[walk.offset(0)] * b_scale[walk.offset(1)] / y_scale[walk.offset(2)];
        uint32_t wide = sums[static_cast<size_t>(i)];
        if (bias) wide += static_cast<uint32_t>(bias[i % y.shape.back()]);
        const auto sum = static_cast<int32_t>(wide);
        y.as<T>()[i] = quantised<T>(static_cast<float>(sum) * scale, y_zero[walk.offset(3)]);
    }
}

Result<void> qlinear_matmul(const Call& call) {
    for (const size_t i : {size_t{0}, size_t{3}})
        if (!is_byte(call.inputs[i].type)) return no_type(call, call.inputs[i].type);
    const DataType type = call.outputs[0].type;
    const bool known = with_one_of<int8_t, uint8_t>(type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) qlinear_matmul_as<T>(call);
    });
    if (!known) return no_type(call, type);
    return {};
}

constexpr KernelRow integer_table[] = {
    {"MatMulInteger", matmul_integer},
    {"QLinearMatMul", qlinear_matmul},
};

}  // namespace

std::span<const KernelRow> integer_matrix_kernels() {
    return integer_table;
}

}  // namespace vartml::cpu
