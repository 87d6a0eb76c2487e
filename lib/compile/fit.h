// SPDX-License-Identifier: Apache-2.0
// The weights of an int8 model chosen so that its results are those of the float model.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <vartml/result.h>

#include "lib/compile/quantise.h"
#include "lib/graph/graph.h"

namespace vartml::compiler {

// What came out for a sample, an entry per output of the graph.
using Outputs = std::vector<std::span<const float>>;
// Is given what came out of two graphs for one of `samples`.
using Take =
    std::function<void(const Outputs& exact, const Outputs& found, size_t sample, size_t samples)>;
// Runs two graphs side by side on up to so many samples. Errors: those of running.
using RunBoth = std::function<Result<void>(graph::Graph exact, graph::Graph found,
                                           size_t most_samples, const Take& take)>;

// Goes through the products of `graph` in its order. Each is run in the float model and in the int8
// one, of which the products before it are fitted already: its weights are rounded so that their
// errors cancel in the sums over what it then reads, and its bias takes what is left on average of
// the difference to the float model. Products that stay float have a bias of their own alike.
// Products without a fit are rounded one weight at a time.
Result<Fits> fit_to_float(const graph::Graph& graph, const Statistics& statistics,
                          const std::set<std::string>& kept_float, const RunBoth& run);

std::string write_fits(const Fits& fits);
// nullopt: no such bytes.
std::optional<Fits> read_fits(std::string_view bytes);

}  // namespace vartml::compiler
