// SPDX-License-Identifier: Apache-2.0
// The text form of the IR, one node per line; parse(print(g)) equals g, constants named by hash.
#pragma once
#include <string>
#include <string_view>

#include "lib/graph/graph.h"

namespace vartml::graph {

//   graph yolox_nano
//   input %images : f32[1,3,416,416]
//   const %w0 : f32[16,3,3,3] = #5f3a… (SHA-256 of the bytes), or = {1.0, 2.5} up to 16 elements
//   %y = Conv+Relu %images, %w0, _ {pads=[1,1,1,1], strides=[2,2]} : f32[1,16,208,208]
//   output %y
// Names with characters outside [A-Za-z0-9_./:-] are quoted. A kind of a domain has it in front
// (vartml::SiLU). Attributes: 1, 1.0, "text", [1,2], f[1.0,2.0], s["a","b"]. '?' behind a type: the
// shape is an upper bound. A node line may end in `@name from "a", "b"` when its name is not its
// first output or its sources are not just its name. When reading, one listed number may stand for
// all elements, and a line that starts with # is a comment.
std::string print(const Graph& graph);
// "pads=[1,1,1,1], strides=[2,2]", as between the braces.
std::string print(const Attributes& attributes);

// Constants given by hash get zeroed bytes of the right size unless `constants` (another graph)
// holds the same hash. Errors: bad_model with line number, found and expected.
Result<Graph> parse(std::string_view text, const Graph* constants = nullptr);

}  // namespace vartml::graph
