// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/einsum.h"

#include <algorithm>
#include <string_view>

namespace vartml::graph {

namespace {

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

}  // namespace

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

}  // namespace vartml::graph
