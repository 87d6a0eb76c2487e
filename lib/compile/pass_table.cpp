// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/pass_table.h"

#include <string>

#include "lib/compile/passes/passes.h"
#include "lib/graph/verify.h"

namespace vartml::compiler {

namespace {

// Quantised operators are found before anything else changes, at every level: int8 results are the
// same at all of them. Patterns are recognised before the scales and biases inside them fold away;
// residuals are merged before activations, so that an activation behind the addition finds both.
constexpr Pass passes[] = {
    {"sink_dequantise", sink_dequantise, 0},
    {"quantise_operators", quantise_operators, 0},
    {"fold_dequantise", fold_dequantise, 0},
    {"fold_constants", fold_constants, 1},
    {"remove_identity", remove_identity, 1},
    {"fold_batch_norm", fold_batch_norm, 1},
    {"recognise_patterns", recognise_patterns, 2},
    {"recognise_depth_to_space", recognise_depth_to_space, 2},
    {"fold_scale_bias", fold_scale_bias, 2},
    {"space_to_depth_conv", space_to_depth_conv, 2},
    {"fuse_pad", fuse_pad, 2},
    {"gemm_from_matmul", gemm_from_matmul, 2},
    {"fuse_residual", fuse_residual, 2},
    {"hoist_activation", hoist_activation, 2},
    {"fuse_activation", fuse_activation, 2},
    {"fuse_scale_bias", fuse_scale_bias, 2},
};

// Each round removes nodes or names them better; two or three are usual.
constexpr int max_rounds = 10;

Result<void> check(const graph::Graph& graph, const std::string& when) {
    auto ok = graph::verify(graph);
    if (ok) return {};
    return Error{ErrorCode::internal, "the graph is broken " + when + ": " + ok.error().message};
}

}  // namespace

std::span<const Pass> pass_table() {
    return passes;
}

Result<std::vector<PassReport>> run_passes(graph::Graph& graph, const PassOptions& options) {
    std::vector<PassReport> reports;
    for (const Pass& pass : passes) {
        if (pass.level <= options.level) reports.push_back({pass.name, 0});
    }
    if (options.verify) {
        if (auto ok = check(graph, "before the first pass"); !ok) return ok.error();
    }
    bool changed = true;
    for (int round = 0; round < max_rounds && changed; ++round) {
        changed = false;
        auto report = reports.begin();
        for (const Pass& pass : passes) {
            if (pass.level > options.level) continue;
            auto stats = pass.run(graph);
            if (!stats) return stats.error();
            report->rewrites += stats->rewrites;
            changed |= stats->rewrites != 0;
            ++report;
            if (!options.verify || !stats->rewrites) continue;
            if (auto ok = check(graph, "after pass " + std::string(pass.name)); !ok)
                return ok.error();
        }
    }
    return reports;
}

}  // namespace vartml::compiler
