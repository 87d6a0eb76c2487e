// SPDX-License-Identifier: Apache-2.0
// Graphs from text, for tests.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lib/graph/graph.h"
#include "lib/graph/text.h"
#include "lib/graph/verify.h"

namespace vartml::graph {

// The graph of a text that must be right; indentation and empty lines do not count.
inline Graph must_parse(std::string_view text) {
    auto graph = parse(text);
    if (!graph) {
        ADD_FAILURE() << graph.error().message;
        return {};
    }
    if (auto ok = verify(*graph); !ok) ADD_FAILURE() << ok.error().message << "\n" << text;
    return std::move(*graph);
}

// The one printed form of a text.
inline std::string normal_form(std::string_view text) {
    return print(must_parse(text));
}

}  // namespace vartml::graph
