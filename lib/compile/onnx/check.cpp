// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/check.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <new>
#include <optional>
#include <string_view>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#pragma GCC diagnostic pop

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/compile/onnx/lower.h"
#include "lib/graph/ops.h"

namespace vartml::onnx {
namespace {

constexpr int min_ir_version = 3;
constexpr size_t max_listed = 20;

constexpr std::string_view that_nothing_runs = " that neither the NPU nor the CPU partition runs";
constexpr std::string_view which_nothing_runs = "which neither the NPU nor the CPU partition runs";
const RefusedClass classes[] = {
    {"a control-flow operator",
     "export the model with the loop unrolled, or split it at tensor '{}'",
     {"Loop", "Scan", "SequenceMap"}},
    {"a sequence operator",
     "keep this part in the application",
     {"SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
      "SequenceLength", "SplitToSequence", "ConcatFromSequence"}},
    {"an operator on optional values",
     "keep this part in the application",
     {"Optional", "OptionalGetElement", "OptionalHasElement"}},
    {"an operator on strings",
     "keep this part in the application",
     {"StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch", "TfIdfVectorizer"}},
    {"a random operator",
     "export the model in inference mode",
     {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial",
      "Bernoulli"}},
    {"an operator on signals or coded pictures",
     "do this step before the model",
     {"DFT", "STFT", "MelWeightMatrix", "HannWindow", "HammingWindow", "BlackmanWindow",
      "ImageDecoder"}},
    {"an operator on caches of keys and values",
     "export the model without the cache, or with opset 23, which does without this operator",
     {"TensorScatter"}},
    {"a removed experimental operator",
     "convert the model to opset 7 or later with current operators",
     {"DynamicSlice", "GivenTensorFill", "GRUUnit", "Scale"}},
};

// What the sets behind schema_opset add: no schema is asked for these operators, and no ONNX
// Runtime, whose models declare schema_opset.
struct NewerOperator {
    std::string_view op;
    int since;
};
constexpr NewerOperator newer_operators[] = {
    {"Attention", 23}, {"RMSNormalization", 23}, {"RotaryEmbedding", 23},
    {"Swish", 24},     {"TensorScatter", 24},
};
// lower() looks at these, or they are of 8-bit floats only.
struct NewerAttribute {
    std::string_view op, attribute;
    int since;
};
constexpr NewerAttribute newer_attributes[] = {
    {"Cast", "round_mode", 24},
    {"CastLike", "round_mode", 24},
    {"DequantizeLinear", "output_dtype", 23},
    {"QuantizeLinear", "precision", 23},
};

bool is_newer_attribute(const pb::NodeProto& node, const pb::AttributeProto& attribute, int opset) {
    return std::ranges::any_of(newer_attributes, [&](const NewerAttribute& n) {
        return n.op == node.op_type() && n.attribute == attribute.name() && n.since <= opset;
    });
}

// nullptr for an operator that schema_opset has.
const NewerOperator* find_newer(std::string_view op) {
    const auto* const found = std::ranges::find(newer_operators, op, &NewerOperator::op);
    return found == std::end(newer_operators) ? nullptr : found;
}

const RefusedClass* find_refused(std::string_view op) {
    for (const RefusedClass& c : classes)
        if (std::ranges::find(c.operators, op) != c.operators.end()) return &c;
    return nullptr;
}

const ::onnx::OpSchema* find_schema(const std::string& op, int version) {
    return ::onnx::OpSchemaRegistry::Schema(op, checked_opset("", version), "");
}

// Why a default-domain operator is not in the declared set, or nothing.
std::optional<std::string> outside_opset(const std::string& file, const pb::NodeProto& node,
                                         int opset) {
    const std::string& op = node.op_type();
    const NewerOperator* const newer = find_newer(op);
    const auto exists = [&](int version) {
        if (newer) return version >= newer->since;
        const auto* schema = find_schema(op, version);
        return schema && !schema->Deprecated();
    };
    if (exists(opset)) return std::nullopt;
    int first = 1;
    while (first <= max_opset && !exists(first)) ++first;
    if (first > max_opset)
        return std::nullopt;  // in no set: an unknown operator, which is said in other words
    const std::string begin = file + ": node '" + node_name(node) + "' uses " + op +
                              ", which operator set " + std::to_string(opset);
    if (first > opset)
        return begin + " does not have yet; it is there from set " + std::to_string(first) +
               " on: export the model with opset " + std::to_string(std::max(first, min_opset));
    int last = opset;
    while (!exists(last)) --last;
    return begin + " does not have any more; set " + std::to_string(last) +
           " is the last that has it: convert the model with onnx.version_converter";
}

// What a node reads, its bodies included.
void add_read(const pb::NodeProto& node, std::vector<std::string_view>& names) {
    names.insert(names.end(), node.input().begin(), node.input().end());
    const auto body = [&](const pb::GraphProto& graph) {
        for (const auto& output : graph.output()) names.push_back(output.name());
        for (const auto& inner : graph.node()) add_read(inner, names);
    };
    for (const auto& a : node.attribute()) {
        if (a.has_g()) body(a.g());
        for (const auto& graph : a.graphs()) body(graph);
    }
}

// Whether an output of the graph depends on it.
bool is_read(const pb::NodeProto& node, const std::unordered_set<std::string_view>& read) {
    return std::ranges::any_of(node.output(),
                               [&](const std::string& output) { return read.contains(output); });
}

std::string split_tensor(const pb::NodeProto& node, const std::set<std::string>& constants) {
    for (const std::string& input : node.input())
        if (!input.empty() && !constants.contains(input)) return input;
    return node.output_size() > 0 ? node.output(0) : std::string();
}

// The line for a node that is refused for its operator, or nothing.
std::optional<std::string> refuse_operator(const std::string& file, const pb::NodeProto& node,
                                           const Opsets& opsets,
                                           const std::set<std::string>& constants, bool foreign,
                                           bool is_read) {
    const std::string domain = domain_of(node);
    const auto declared = opsets.find(domain);
    const int opset = declared == opsets.end() ? 1 : declared->second;
    const std::string tensor = split_tensor(node, constants);
    if (!domain.empty()) {
        // ONNX Runtime alone knows the layout of these tensors.
        if (domain == "com.microsoft.nchwc" || domain == "com.ms.internal.nhwc")
            return refusal(file, node, opset,
                           "which ONNX Runtime's optimiser makes for one processor",
                           "save it at optimisation level basic (ORT_ENABLE_BASIC), or give "
                           "the model that was optimised",
                           tensor);
        if (foreign || can_lower(domain, node.op_type())) return std::nullopt;
        return refusal(file, node, opset, which_nothing_runs, is_read ? replace_or_split : take_out,
                       tensor);
    }
    // Optimisers write some operators into sets that do not have them.
    constexpr std::string_view in_any_set[] = {"LayerNormalization", "RMSNormalization", "Swish"};
    if (std::ranges::find(in_any_set, node.op_type()) != std::end(in_any_set)) return std::nullopt;
    if (const RefusedClass* c = find_refused(node.op_type());
        c && (!foreign || find_newer(node.op_type())))
        return refusal(file, node, opset, std::string(c->problem).append(that_nothing_runs),
                       is_read ? c->way_out : take_out, tensor);
    if (auto line = outside_opset(file, node, opset)) return line;
    if (foreign || can_lower(domain, node.op_type())) return std::nullopt;
    return refusal(file, node, opset, which_nothing_runs, is_read ? replace_or_split : take_out,
                   tensor);
}

// Whether all operators of the default domain mean the same in both sets.
bool is_as_in(const pb::GraphProto& graph, int older, int newer) {
    return std::ranges::all_of(graph.node(), [&](const pb::NodeProto& node) {
        return !domain_of(node).empty() || onnx::is_as_in(node, older, newer);
    });
}

// Operators that no set of ONNX has, each once; what converts models stops at them.
std::string unknown_operators(const pb::GraphProto& graph) {
    constexpr size_t most = 5;  // ours: that the sentence names
    std::set<std::string> names;
    for (const auto& node : graph.node()) {
        const std::string domain = domain_of(node);
        const bool is_known = domain.empty()
                                  ? is_in_default_domain(node.op_type())
                                  : !!::onnx::OpSchemaRegistry::Schema(node.op_type(), domain);
        if (!is_known) names.insert(operator_name(node));
    }
    std::string text;
    size_t count = 0;
    for (const std::string& name : names) {
        if (++count > most) break;
        text += (count == 1 ? "" : count == names.size() ? " and " : ", ") + name;
    }
    if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
    return text;
}

// The name of a node, in bodies too, whose operator is one of ONNX; "" where there is none.
std::string node_of_default_domain(const pb::GraphProto& graph) {
    for (const auto& node : graph.node()) {
        if (domain_of(node).empty())
            return node_name(node).empty() ? node.op_type() : node_name(node);
        for (const auto& a : node.attribute())
            if (std::string name = node_of_default_domain(a.g()); !name.empty()) return name;
    }
    return {};
}

std::string first_line(const char* text) {
    const std::string_view all(text);
    return std::string(all.substr(0, all.find('\n')));
}

}  // namespace

bool is_as_in(const pb::NodeProto& node, int one, int other) {
    const std::string domain = domain_of(node);
    if (const NewerOperator* newer = find_newer(node.op_type()); domain.empty() && newer)
        return std::min(one, other) >= newer->since;
    const auto schema = [&](int version) {
        return ::onnx::OpSchemaRegistry::Schema(node.op_type(), checked_opset(domain, version),
                                                domain);
    };
    const auto *a = schema(one), *b = schema(other);
    return a && b && a->SinceVersion() == b->SinceVersion();
}

bool is_in_default_domain(std::string_view op) {
    return ::onnx::OpSchemaRegistry::Schema(std::string(op), "") || find_newer(op);
}

std::unordered_set<std::string_view> read_for_outputs(const pb::GraphProto& graph) {
    std::unordered_map<std::string_view, const pb::NodeProto*> makers;
    for (const auto& node : graph.node())
        for (const std::string& output : node.output()) makers.emplace(output, &node);
    std::unordered_set<std::string_view> read;
    std::vector<std::string_view> names;
    for (const auto& output : graph.output()) names.push_back(output.name());
    while (!names.empty()) {
        const std::string_view name = names.back();
        names.pop_back();
        if (!read.insert(name).second) continue;
        if (const auto maker = makers.find(name); maker != makers.end())
            add_read(*maker->second, names);
    }
    return read;
}

std::span<const RefusedClass> refused_classes() {
    return classes;
}

Result<Opsets> check_versions(const std::string& file, const pb::ModelProto& model,
                              std::vector<Message>& messages) {
    if (model.ir_version() < min_ir_version)
        return Error{ErrorCode::unsupported,
                     file + ": has the IR version " + std::to_string(model.ir_version()) +
                         ", expected 3 or newer; export it with a current exporter"};
    if (model.ir_version() > max_ir_version)
        messages.push_back({LogLevel::warning,
                            file + ": has the IR version " + std::to_string(model.ir_version()) +
                                ", the newest known is " + std::to_string(max_ir_version)});
    Opsets opsets;
    for (const auto& set : model.opset_import())
        opsets[short_domain(set.domain())] = static_cast<int>(
            std::clamp<int64_t>(set.version(), 0, std::numeric_limits<int>::max()));
    const auto found = opsets.find("");
    if (found == opsets.end()) {
        // A model whose operators are all custom declares no default set.
        if (const std::string name = node_of_default_domain(model.graph()); !name.empty())
            return Error{ErrorCode::bad_model,
                         file + ": declares no operator set of the domain ai.onnx, which node '" +
                             printable(name) + "' is of; add it to the model's opset_import"};
        opsets[""] = max_opset;
    } else if (found->second < min_opset && is_as_in(model.graph(), found->second, min_opset)) {
        found->second = min_opset;
    } else if (found->second < min_opset || found->second > max_opset) {
        const std::string unknown = unknown_operators(model.graph());
        const std::string way_out =
            unknown.empty() ? "; convert it with onnx.version_converter"
                            : ", and uses " + printable(unknown, std::string::npos) +
                                  ", which no set of ONNX has, so that onnx.version_converter "
                                  "stops there; export the model anew without them";
        return Error{ErrorCode::unsupported, file + ": declares operator set " +
                                                 std::to_string(found->second) + ", accepted are " +
                                                 std::to_string(min_opset) + " to " +
                                                 std::to_string(max_opset) + way_out};
    }
    return opsets;
}

const std::string& node_name(const pb::NodeProto& node) {
    if (!node.name().empty()) return node.name();
    for (const std::string& output : node.output())
        if (!output.empty()) return output;
    return node.name();
}

namespace {

// How many nodes a graph has once its functions are inlined.
class InlinedNodes {
public:
    explicit InlinedNodes(const pb::ModelProto& model) {
        for (const auto& f : model.functions())
            functions_[name_of(f.domain(), f.name(), f.overload())] = {&f, {}};
    }

    // Of `nodes`, and of the bodies in them; `most` where they are more. "" in `fault` is none.
    uint64_t count(const google::protobuf::RepeatedPtrField<pb::NodeProto>& nodes, size_t depth) {
        uint64_t sum = 0;
        for (const auto& node : nodes) {
            sum += 1 + count_call(node, depth);
            for (const auto& a : node.attribute()) {
                if (a.has_g()) sum += count(a.g().node(), depth);
                for (const auto& g : a.graphs()) sum += count(g.node(), depth);
            }
            if (sum > most || !fault.empty()) return most + 1;
        }
        return sum;
    }

    static constexpr uint64_t most = 1'000'000;
    static constexpr size_t deepest = 200;
    std::string fault;

private:
    struct Function {
        const pb::FunctionProto* proto;
        std::optional<uint64_t> nodes;
        bool open = false;
    };

    static std::string name_of(const std::string& domain, const std::string& name,
                               const std::string& overload) {
        const std::string known = short_domain(domain);
        return (known.empty() ? "" : known + "::") + name + (overload.empty() ? "" : ":") +
               overload;
    }

    uint64_t count_call(const pb::NodeProto& node, size_t depth) {
        const auto found = functions_.find(name_of(node.domain(), node.op_type(), node.overload()));
        if (found == functions_.end()) return 0;
        Function& f = found->second;
        if (f.open)
            fault = "its function '" + found->first + "' calls itself; write it without";
        else if (depth >= deepest)
            fault = "its functions call each other " + std::to_string(depth) +
                    " deep; inline some of them";
        if (!fault.empty()) return 0;
        if (!f.nodes) {
            f.open = true;
            f.nodes = count(f.proto->node(), depth + 1);
            f.open = false;
        }
        return *f.nodes;
    }

    std::unordered_map<std::string, Function> functions_;
};

}  // namespace

Result<void> check_functions(const std::string& file, const pb::ModelProto& model) {
    InlinedNodes inlined(model);
    const uint64_t nodes = inlined.count(model.graph().node(), 0);
    if (inlined.fault.empty() && nodes > InlinedNodes::most)
        inlined.fault = "with its functions inlined it has more than " +
                        std::to_string(InlinedNodes::most) + " nodes; split the model";
    if (inlined.fault.empty()) return {};
    return Error{ErrorCode::bad_model, file + ": " + printable(inlined.fault, std::string::npos)};
}

std::string domain_of(const pb::NodeProto& node) {
    return short_domain(node.domain());
}

std::string operator_name(const pb::NodeProto& node) {
    const std::string domain = domain_of(node);
    return domain.empty() ? node.op_type() : domain + "::" + node.op_type();
}

bool is_foreign(const pb::NodeProto& node) {
    const std::string domain = domain_of(node);
    return !can_lower(domain, node.op_type()) || (domain.empty() && find_refused(node.op_type()));
}

std::string why_foreign(const pb::NodeProto& node) {
    const RefusedClass* c = domain_of(node).empty() ? find_refused(node.op_type()) : nullptr;
    return c ? std::string(c->problem) : "an operator that is none of ours";
}

std::string refusal(const std::string& file, const pb::NodeProto& node, int opset,
                    std::string_view problem, std::string_view way_out, const std::string& tensor) {
    std::string out(way_out);
    if (const size_t at = out.find("{}"); at != std::string::npos) out.replace(at, 2, tensor);
    return file + ": node '" + node_name(node) + "' uses " + operator_name(node) + " (opset " +
           std::to_string(opset) + "), " + std::string(problem) + "; " + out;
}

std::string refused_like(const std::string& file, const pb::GraphProto& graph,
                         const pb::NodeProto& refused, const Opsets& opsets,
                         const std::set<std::string>& constants) {
    constexpr std::string_view known[] = {"", "ai.onnx.ml", "com.microsoft"};
    const std::string domain = domain_of(refused);
    const bool all_of_domain = std::ranges::find(known, domain) == std::end(known);
    const auto read = read_for_outputs(graph);
    std::string text;
    size_t count = 1;
    for (const auto& node : graph.node()) {
        if (&node == &refused || domain_of(node) != domain ||
            (!all_of_domain && node.op_type() != refused.op_type()))
            continue;
        const auto line =
            refuse_operator(file, node, opsets, constants, false, is_read(node, read));
        if (line && ++count <= max_listed) text += '\n' + printable(*line, std::string::npos);
    }
    if (count > max_listed)
        text += "\n" + file + ": " + std::to_string(count - max_listed) + " more nodes like these";
    return text;
}

Result<void> check_nodes(const std::string& file, const pb::GraphProto& graph, const Opsets& opsets,
                         const std::set<std::string>& constants, const std::set<std::string>& outer,
                         bool foreign) {
    const auto read = read_for_outputs(graph);
    std::vector<std::string> refused;
    for (const auto& node : graph.node())
        if (auto line =
                refuse_operator(file, node, opsets, constants, foreign, is_read(node, read)))
            refused.push_back(std::move(*line));
    if (!refused.empty()) {
        std::string text;
        for (size_t i = 0; i < std::min(refused.size(), max_listed); ++i)
            text += (i == 0 ? "" : "\n") + printable(refused[i], std::string::npos);
        if (refused.size() > max_listed)
            text += "\n" + file + ": " + std::to_string(refused.size() - max_listed) +
                    " more nodes like these";
        return Error{ErrorCode::unsupported, text};
    }

    ::onnx::checker::CheckerContext context;
    context.set_ir_version(schema_ir_version);
    Opsets checked = opsets;
    for (auto& [domain, version] : checked) version = checked_opset(domain, version);
    context.set_opset_imports(checked);
    context.set_is_main_graph(false);
    context.set_model_dir(parent_of(file));  // where data of bodies and Constants lie
    ::onnx::checker::LexicalScopeContext names;
    for (const std::string& name : outer) names.add(name);
    for (const auto& node : graph.node()) {
        // What lower() or ONNX Runtime knows without ONNX.
        const std::string domain = domain_of(node);
        if (domain.empty() &&
            (node.op_type() == "If" || !find_schema(node.op_type(), opsets.at(domain))))
            continue;
        // Whose bodies may have what its schema does not know.
        const bool has_body = std::ranges::any_of(
            node.attribute(), [](const auto& attribute) { return attribute.has_g(); });
        if (has_body && opsets.at("") > schema_opset) continue;
        const auto later = [&](const auto& a) {
            return is_newer_attribute(node, a, opsets.at(""));
        };
        std::optional<pb::NodeProto> without;
        if (domain.empty() && std::ranges::any_of(node.attribute(), later)) {
            without = node;
            auto& attributes = *without->mutable_attribute();
            attributes.erase(std::remove_if(attributes.begin(), attributes.end(), later),
                             attributes.end());
        }
        try {
            ::onnx::checker::check_node(without ? *without : node, context, names);
        } catch (const std::bad_alloc&) {
            throw;
        } catch (const std::exception& e) {
            const std::string text = "node '" + node_name(node) + "' (" + operator_name(node) +
                                     ") is not valid: " + first_line(e.what());
            return Error{ErrorCode::bad_model, file + ": " + printable(text, std::string::npos)};
        }
    }
    return {};
}

}  // namespace vartml::onnx
