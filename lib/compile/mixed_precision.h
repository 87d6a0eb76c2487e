// SPDX-License-Identifier: Apache-2.0
// Which operators of an int8 model stay float so that it does what the float model does.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>

#include <vartml/result.h>

#include "lib/graph/graph.h"

namespace vartml::compiler {

// What quantising changed on a calibration set.
struct Verdict {
    double agreement = 1;  // with the float model: what a target is about, 1 = the same
    double loss = 0;       // of signal, finer: 0 = the same
    double excess = 0;     // what is lost of what may be where nobody says a target: 1 = just that
};
// Of models made of the graph.
struct Judge {
    // Int8, but for the convolutions and products of these names.
    std::function<Result<Verdict>(const std::set<std::string>& kept_float)> all_but;
    // Float, with codes at these tensors.
    std::function<Result<Verdict>(const std::vector<graph::ValueId>& values)> codes_at;
};

// The names to keep, none where int8 everywhere agrees as well as `target`, or as is usual. What
// the codes of each tensor lose is judged alone; a tensor has none where all that read or write it
// are float. Those are kept whose tensors lose most for their multiply-adds, as many as the target
// takes; all of them where nothing less does. Errors: those of the judge.
Result<std::set<std::string>> choose_floats(const graph::Graph& graph, std::optional<double> target,
                                            const Judge& judge);

}  // namespace vartml::compiler
