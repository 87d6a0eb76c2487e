// SPDX-License-Identifier: Apache-2.0
// Einsum: operand by operand, each pair as a product of matrices.
#include <memory>
#include <string>
#include <vector>

#include "lib/cpu/kernel.h"
#include "lib/cpu/products.h"
#include "lib/graph/einsum.h"

namespace vartml::cpu {

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

constexpr KernelRow kernels[] = {{"Einsum", einsum}};

}  // namespace

std::span<const KernelRow> einsum_kernels() {
    return kernels;
}

}  // namespace vartml::cpu
