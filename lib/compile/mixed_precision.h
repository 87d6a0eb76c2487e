// SPDX-License-Identifier: Apache-2.0
// Which operators of an int8 model stay float so that it does what the float model does.
#pragma once
#include <functional>
#include <set>
#include <string>

#include <vartml/result.h>

#include "lib/graph/graph.h"

namespace vartml::compiler {

// What quantising changed on a calibration set.
struct Verdict {
    double agreement = 1;  // with the float model: what a target is about, 1 = the same
    double loss = 0;       // of signal, finer: 0 = the same
};
// Of a model whose convolutions and products of these names stay float.
using Judge = std::function<Result<Verdict>(const std::set<std::string>& kept_float)>;

// The names to keep, none where int8 everywhere agrees as well as `target`. Each stretch of
// neighbours is judged by the loss of having it alone in int8; those that lose most for their
// multiply-adds are kept, as many as the target takes. All of them where nothing less does.
// Errors: those of the judge.
Result<std::set<std::string>> choose_floats(const graph::Graph& graph, double target,
                                            const Judge& judge);

}  // namespace vartml::compiler
