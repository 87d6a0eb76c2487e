// SPDX-License-Identifier: Apache-2.0
// What printing and parsing share; private to lib/graph.
#pragma once
#include <string>

#include "lib/graph/graph.h"

namespace vartml::graph {

// Constants up to this size are written out, larger ones as a hash.
inline constexpr size_t max_listed_elements = 16;

inline bool is_name_character(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == ':' || c == '-';
}
bool is_listable(const Value& value);
// Name of the first output: what a node is called when its line does not say.
std::string default_node_name(const Graph& graph, const Node& node);

}  // namespace vartml::graph
