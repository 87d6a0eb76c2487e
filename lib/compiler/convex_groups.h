// SPDX-License-Identifier: Apache-2.0
// Joins items of a directed acyclic graph into groups that can run one after the other.
#pragma once
#include <cstddef>
#include <vector>

namespace vartml::compiler {

struct Item {
    std::vector<size_t> before;  // items that it reads from, each with a smaller index
    bool joins = false;          // false: stays alone
};

inline constexpr size_t no_group = static_cast<size_t>(-1);

// The group of each item, no_group for those that stay alone. Groups are convex, and no two of them
// wait for each other: with each group as one item the graph still has no cycle. Items are taken in
// their order; each enters the first group that it may enter, which need not be one that it reads
// from, else it begins a new one. No two groups of the result could be one.
std::vector<size_t> convex_groups(const std::vector<Item>& items);

// An order in which the items can run once those of a group are one: the leaders (first items of
// groups, and items of no group), each after all that its group reads from, otherwise by index.
std::vector<size_t> execution_order(const std::vector<Item>& items,
                                    const std::vector<size_t>& groups);

}  // namespace vartml::compiler
