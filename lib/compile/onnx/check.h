// SPDX-License-Identifier: Apache-2.0
// Which operators, domains and operator sets are accepted, before any shape is known.
#pragma once
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <vartml/result.h>

#include "lib/compile/onnx/import.h"
#include "lib/compile/onnx/model_file.h"

namespace vartml::onnx {

// Ways out of an operator that nothing runs; {}: the tensor to split the model at. The second for
// one on which no output of the model depends.
inline constexpr std::string_view replace_or_split =
    "replace it with standard operators, or split the model at tensor '{}'";
inline constexpr std::string_view take_out =
    "no output of the model depends on it: take it out of the file";

// The tensors on which an output of the graph depends.
std::unordered_set<std::string_view> read_for_outputs(const pb::GraphProto& graph);

// Versions that the model declares, by domain; "" is the default domain.
using Opsets = std::unordered_map<std::string, int>;

// The operator sets of the default domain that are accepted. Those behind `schema_opset` add
// operators, types and attributes to it and change nothing that it has: nodes are checked by it,
// whichever newer one the model declares and the ONNX at hand knows. The IR versions are those
// that ONNX had with the last two.
inline constexpr int min_opset = 7, max_opset = 25, schema_opset = 22;
inline constexpr int max_ir_version = 13, schema_ir_version = 10;
// The set of a domain that schemas are asked for.
inline int checked_opset(const std::string& domain, int declared) {
    return domain.empty() && declared > schema_opset ? schema_opset : declared;
}

// Operators of the default domain that no partition runs, by class.
struct RefusedClass {
    std::string_view problem, way_out;  // {} in the way out: the tensor to split the model at
    std::initializer_list<std::string_view> operators;
};
std::span<const RefusedClass> refused_classes();

// The functions of a model, before they are inlined: one that calls itself has no end, and few that
// call each other twice make more nodes than memory holds.
Result<void> check_functions(const std::string& file, const pb::ModelProto& model);

// IR version and operator sets. Adds a warning for an IR version newer than known.
Result<Opsets> check_versions(const std::string& file, const pb::ModelProto& model,
                              std::vector<Message>& messages);

// Whether the operator of the node means the same in these two sets of its domain; false where that
// is not known.
bool is_as_in(const pb::NodeProto& node, int one, int other);

// Whether some set of ONNX, also a newer one than ours, has an operator of that name.
bool is_in_default_domain(std::string_view op);

// The name of a node in messages and reports: its own, or that of its first output.
const std::string& node_name(const pb::NodeProto& node);
// "" for the default domain however the file spells it.
std::string domain_of(const pb::NodeProto& node);
// "Conv", "onnx.brevitas::Quant".
std::string operator_name(const pb::NodeProto& node);

// What a refused node is told: `model.onnx: node 'x' uses Loop (opset 13), a control-flow operator
// that …; way out`.
std::string refusal(const std::string& file, const pb::NodeProto& node, int opset,
                    std::string_view problem, std::string_view way_out, const std::string& tensor);

// Whether the node is no operator of ours.
bool is_foreign(const pb::NodeProto& node);
// "which is a control-flow operator of ONNX": why it is none, to be read behind its name.
std::string why_foreign(const pb::NodeProto& node);

// A line for each further node that is refused like this one: of its operator, or of its domain
// where that is nobody's but the model's. Each begins with a line break.
std::string refused_like(const std::string& file, const pb::GraphProto& graph,
                         const pb::NodeProto& refused, const Opsets& opsets,
                         const std::set<std::string>& constants);

// Every node of the list: the operator exists in the declared set, is one that can be compiled, and
// has the inputs and attributes of its schema. Branches of If are not looked at: the one taken is
// checked when it is known. `constants` are names that no sentence should propose to split at.
// `outer` are names that subgraphs may read. With `foreign` operators that are none of ours pass,
// as long as the declared set has them. Errors: unsupported with a line per refused node,
// bad_model for a node against its schema.
Result<void> check_nodes(const std::string& file, const pb::GraphProto& graph, const Opsets& opsets,
                         const std::set<std::string>& constants, const std::set<std::string>& outer,
                         bool foreign);

}  // namespace vartml::onnx
