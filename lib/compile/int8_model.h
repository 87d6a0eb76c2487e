// SPDX-License-Identifier: Apache-2.0
// An int8 model of a float graph, chosen by what it does on a calibration set.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include <vartml/result.h>

#include "lib/compile/fit.h"
#include "lib/compile/mixed_precision.h"
#include "lib/compile/quantise.h"
#include "lib/graph/graph.h"
#include "lib/model/compiled_model.h"

namespace vartml::compiler {

// Makes an int8 model of a float one, by what its tensors hold over a calibration set.
struct QuantiseRequest {
    std::string set;  // names the content of the set; part of what decides freshness
    // Runs a model on the CPU over the whole set; what its inputs and outputs hold. Its outputs
    // are those of the model to quantise, then the other tensors to measure.
    std::function<Result<Statistics>(const artifact::CompiledModel& probe, size_t own_outputs)>
        measure;
    // Runs two models side by side on up to so many samples, spread over the set. Empty: weights
    // are rounded one by one.
    std::function<Result<void>(const artifact::CompiledModel& exact,
                               const artifact::CompiledModel& found, size_t most_samples,
                               const Take& take)>
        run_both;
    // What was kept under this key, which names all that it depends on, else what make() gives,
    // which is kept. Empty: nothing is kept.
    std::function<Result<std::string>(const std::string& key,
                                      const std::function<Result<std::string>()>& make)>
        remember;
    // The agreement with the float model that is to be reached, at most 1: what loses most then
    // stays float. 0: all that can be is int8. nullopt: the usual one of what `judge` compares,
    // which runs a trial on the set that was measured; where that is empty, nothing is kept.
    std::optional<double> target;
    std::function<Result<Verdict>(const artifact::CompiledModel& trial)> judge;
    // What came out: how much works on int8, and how many convolutions and products `target` keeps
    // in floats.
    std::function<void(const QuantisedShare& share, size_t kept_float)> report;
};

// A model to run on the set. `has_own_outputs`: its first outputs are those of the graph that is
// quantised, in their order.
using MakeTrial =
    std::function<Result<artifact::CompiledModel>(graph::Graph graph, bool has_own_outputs)>;

struct Int8Choice {
    QuantisedShare share;
    std::set<std::string> kept_float;  // names of convolutions and products
};
// Of a graph that check_quantisable() is content with: prepares, measures, equalises, fits and
// chooses what stays float, then puts codes into it. Errors: those of trials and of `request`.
Result<Int8Choice> make_int8(graph::Graph& graph, const QuantiseRequest& request,
                             const MakeTrial& make_trial);

}  // namespace vartml::compiler
