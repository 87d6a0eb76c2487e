// SPDX-License-Identifier: Apache-2.0
// The order of the passes, and what runs them.
#pragma once
#include <span>
#include <vector>

#include "lib/compile/passes/rewrite.h"
#include "lib/graph/graph.h"

namespace vartml::compiler {

struct Pass {
    const char* name;
    Result<PassStats> (*run)(graph::Graph&);
    int level;  // the lowest optimisation level that runs it
};
std::span<const Pass> pass_table();

struct PassOptions {
    int level = 2;
#ifdef NDEBUG
    bool verify = false;
#else
    bool verify = true;
#endif
};
struct PassReport {
    const char* name;
    size_t rewrites;  // over all rounds
};

// Runs the passes of the level in the order of the table, and the whole table again while anything
// changes: one rewrite often makes room for another. With `verify` checks the graph before and
// after each pass. Errors: those of a pass; internal, naming the pass that broke the graph.
Result<std::vector<PassReport>> run_passes(graph::Graph& graph, const PassOptions& options = {});

}  // namespace vartml::compiler
