// SPDX-License-Identifier: Apache-2.0
// The equation of an Einsum.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vartml::graph {

// One label per axis; those of an ellipsis are '0', '1', … from the right.
struct Einsum {
    std::vector<std::string> terms;  // of the inputs
    std::string output;
    std::map<char, int64_t> sizes;  // of all labels; an input may have 1 instead, and repeats then
};

// nullopt where the equation is none, or does not fit the shapes of the inputs.
std::optional<Einsum> parse_einsum(std::string equation,
                                   std::span<const std::vector<int64_t>> shapes);

}  // namespace vartml::graph
