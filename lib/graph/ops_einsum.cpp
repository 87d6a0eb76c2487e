// SPDX-License-Identifier: Apache-2.0
// Einsum: operand by operand, each pair as a product of matrices.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/graph/kernel.h"
#include "lib/graph/ops.h"
#include "lib/graph/products.h"
#include "lib/graph/walk.h"

namespace vartml::graph {
namespace {

// One label per axis; those of an ellipsis are '0', '1', … from the right.
struct Einsum {
    std::vector<std::string> terms;  // of the inputs
    std::string output;
    std::map<char, int64_t> sizes;  // of all labels; an input may have 1 instead, and repeats then
};

constexpr std::string_view ellipsis = "...";
constexpr size_t max_ellipsis = 10;  // axes with a digit each

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Letters and at most one ellipsis.
bool is_term(std::string term) {
    if (const size_t dots = term.find(ellipsis); dots != term.npos) term.erase(dots, 3);
    return std::ranges::all_of(term, is_letter);
}

std::string replace_ellipsis(std::string term, size_t axes) {
    const size_t dots = term.find(ellipsis);
    if (dots == term.npos) return term;
    std::string labels;
    for (size_t i = axes; i-- > 0;) labels += static_cast<char>('0' + i);
    return term.replace(dots, 3, labels);
}

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> terms;
    for (size_t begin = 0; begin <= list.size();) {
        const size_t comma = std::min(list.find(',', begin), list.size());
        terms.push_back(list.substr(begin, comma - begin));
        begin = comma + 1;
    }
    return terms;
}

// Whether the axes of a term agree with those of the terms before it.
bool add_sizes(const std::string& term, const std::vector<int64_t>& shape, Einsum& einsum) {
    for (size_t axis = 0; axis < term.size(); ++axis) {
        int64_t& size = einsum.sizes.try_emplace(term[axis], shape[axis]).first->second;
        if (size != shape[axis] && size != 1 && shape[axis] != 1) return false;
        if (size == 1) size = shape[axis];
    }
    return true;
}

// Without an arrow: the ellipsis, then the labels seen once, in alphabetical order.
std::string implied_output(const Einsum& einsum, size_t most_axes) {
    std::string output = replace_ellipsis(std::string(ellipsis), most_axes);
    for (const auto& [label, size] : einsum.sizes) {
        int64_t times = 0;
        for (const std::string& term : einsum.terms) times += std::ranges::count(term, label);
        if (times == 1 && is_letter(label)) output += label;
    }
    return output;
}

// nullopt where the equation is none, or does not fit the shapes of the inputs.
std::optional<Einsum> parse_einsum(std::string equation,
                                   std::span<const std::vector<int64_t>> shapes) {
    std::erase(equation, ' ');
    const size_t arrow = equation.find("->");
    Einsum einsum;
    einsum.terms = split(equation.substr(0, arrow));
    if (einsum.terms.size() != shapes.size()) return std::nullopt;
    size_t most_axes = 0;
    for (size_t i = 0; i < shapes.size(); ++i) {
        std::string& term = einsum.terms[i];
        if (!is_term(term)) return std::nullopt;
        if (term.find(ellipsis) != term.npos) {
            if (shapes[i].size() + 3 < term.size()) return std::nullopt;
            const size_t axes = shapes[i].size() + 3 - term.size();
            if (axes > max_ellipsis) return std::nullopt;
            most_axes = std::max(most_axes, axes);
            term = replace_ellipsis(term, axes);
        }
        if (term.size() != shapes[i].size() || !add_sizes(term, shapes[i], einsum))
            return std::nullopt;
    }
    if (arrow == equation.npos) {
        einsum.output = implied_output(einsum, most_axes);
        return einsum;
    }
    const std::string output = equation.substr(arrow + 2);
    if (!is_term(output)) return std::nullopt;
    einsum.output = replace_ellipsis(output, most_axes);
    for (const char label : einsum.output) {
        if (!einsum.sizes.contains(label) || std::ranges::count(einsum.output, label) != 1)
            return std::nullopt;
    }
    return einsum;
}

std::optional<Einsum> einsum_of(const Graph& graph, const Node& node) {
    std::vector<std::vector<int64_t>> shapes;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!has_input(node, i)) return std::nullopt;
        shapes.push_back(input_type(graph, node, i).shape);
    }
    return parse_einsum(node.get("equation", ""), shapes);
}

Result<Types> infer_einsum(const Graph& graph, const Node& node) {
    const auto einsum = einsum_of(graph, node);
    if (!einsum) {
        return bad_node(node, "has the equation '" + node.get("equation", "") +
                                  "', which does not fit its inputs");
    }
    Type y{input_type(graph, node, 0).data_type, {}};
    for (const char label : einsum->output) y.shape.push_back(einsum->sizes.at(label));
    return Types{y};
}

uint64_t macs_einsum(const Graph& graph, const Node& node) {
    const auto einsum = einsum_of(graph, node);
    if (!einsum || node.inputs.size() < 2) return 0;
    uint64_t terms = 1;
    for (const auto& [label, size] : einsum->sizes)
        terms = saturating_product(terms, static_cast<uint64_t>(size));
    return saturating_product(terms, node.inputs.size() - 1);
}

}  // namespace
}  // namespace vartml::graph

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

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr OpInfo rows[] = {
    {"Einsum", 1, -1, 1, 1, "equation:s*", infer_einsum, count_none, cpu::einsum,
     Trait::matrix_work, macs_einsum},
};

}  // namespace

std::span<const OpInfo> einsum_ops() {
    return rows;
}

}  // namespace vartml::graph
