// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/ops.h"

#include <algorithm>

#include "lib/graph/attribute_values.h"
#include "lib/graph/late.h"
#include "lib/graph/onnxruntime.h"

namespace vartml::graph {
namespace {

// A late node keeps the attributes of ONNX until it runs.
Result<Types> infer_late(const Graph& graph, const Node& node) {
    Types types;
    for (const ValueId id : node.outputs)
        types.push_back(id == none ? Type() : graph.value(id).type);
    return types;
}
constexpr OpInfo late_op{late_kind, 1,          -1,         1,       -1,
                         "*",       infer_late, count_none, nullptr, Trait::internal};

// The types are what the importer found out.
Result<Types> infer_onnxruntime(const Graph& graph, const Node& node) {
    const Value& model = graph.value(node.inputs[0]);
    if (!model.constant || model.type.data_type != DataType::uint8 || model.type.shape.size() != 1)
        return bad_node(node, "has the model " + to_string(model.type) +
                                  ", expected constant bytes: u8 of one dimension");
    const auto found = node.attributes.find("types");
    const auto* texts =
        found == node.attributes.end() ? nullptr : std::get_if<graph::Strings>(&found->second);
    if (!texts || texts->size() != node.outputs.size())
        return bad_node(node, "does not have a type for each of its " +
                                  std::to_string(node.outputs.size()) + " outputs");
    Types types;
    for (const std::string& text : *texts) {
        auto type = parse_type(text);
        if (!type) return bad_node(node, "has the type '" + text + "', expected one like f32[1,3]");
        types.push_back(std::move(*type));
    }
    return types;
}
constexpr OpInfo onnxruntime_op{onnxruntime_kind,
                                1,
                                -1,
                                1,
                                -1,
                                "data_dependent:i types:ss* why:s",
                                infer_onnxruntime,
                                count_output,
                                nullptr,
                                Trait::internal};

// Operators of ONNX that canonicalise() makes others of.
constexpr OpInfo upsample_op{"Upsample", 1,
                             2,          1,
                             1,          "mode:s/nearest|linear|bilinear|cubic scales:fs-@1",
                             nullptr,    nullptr,
                             nullptr,    Trait::keeps_rank | Trait::follows_shape};

std::vector<OpInfo> build_table() {
    std::vector<OpInfo> table = {late_op, onnxruntime_op};
    for (const auto& part :
         {attention_ops(), einsum_ops(), elementwise_ops(), fill_ops(), index_ops(), matrix_ops(),
          movement_ops(), normalisation_ops(), picture_ops(), pool_ops(), quantised_ops(),
          recurrent_ops(), reduction_ops(), resize_ops(), select_ops(), window_ops()}) {
        table.insert(table.end(), part.begin(), part.end());
    }
    std::ranges::sort(table, {}, &OpInfo::kind);
    return table;
}

std::string_view attribute_kind(const Attribute& value) {
    constexpr std::string_view names[] = {"i", "f", "s", "is", "fs", "ss"};
    return names[value.index()];
}

// What stands in front of one of these characters, which stays.
std::string_view take_until(std::string_view& text, std::string_view characters) {
    const std::string_view taken = text.substr(0, text.find_first_of(characters));
    text.remove_prefix(taken.size());
    return taken;
}
bool take(std::string_view& text, char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
}

AttributeRule read_rule(std::string_view entry) {
    AttributeRule rule;
    rule.name = take_until(entry, ":");
    take(entry, ':');
    rule.kind = take_until(entry, "*-@=|/");
    rule.is_required = take(entry, '*');
    rule.is_canonical = !take(entry, '-');
    if (take(entry, '@')) {
        rule.input = entry[0] - '0';
        entry.remove_prefix(1);
    }
    if (take(entry, '=')) {
        rule.choices = take_until(entry, "/");
        rule.fallback = rule.choices.substr(0, rule.choices.find('|'));
    } else if (take(entry, '|')) {
        rule.choices = take_until(entry, "/");
    }
    if (take(entry, '/')) rule.rewritten = entry;
    return rule;
}

bool is_absurd(int64_t number) {
    return number > max_elements || number < -max_elements;
}

// Of one operation of a node.
Result<void> check_attributes(const Node& node, const Operation& operation, const OpInfo& op) {
    if (op.attributes == "*") return {};
    const std::vector<AttributeRule> rules = attribute_rules(op);
    const std::string prefix = &operation == &node ? "" : operation.kind + '.';
    for (const auto& [name, value] : operation.attributes) {
        const std::string key = prefix + name;
        const auto rule = std::ranges::find(rules, name, &AttributeRule::name);
        if (rule == rules.end() || !rule->is_canonical) {
            return bad_node(node, "has the attribute '" + key + "', which " + std::string(op.kind) +
                                      " does not have");
        }
        if (rule->kind != attribute_kind(value)) {
            return bad_node(node, "attribute '" + key + "' is of kind " +
                                      std::string(attribute_kind(value)) + ", expected " +
                                      std::string(rule->kind));
        }
        const auto* list = std::get_if<std::vector<int64_t>>(&value);
        if (list && std::ranges::any_of(*list, is_absurd)) {
            return bad_node(node, "attribute '" + key + "' is " + to_string(*list) +
                                      ", expected numbers of at most 2^40");
        }
    }
    for (const AttributeRule& rule : rules) {
        if (rule.is_required && !operation.has(rule.name))
            return bad_node(node, "lacks the attribute '" + prefix + std::string(rule.name) + "'");
    }
    return {};
}

// Operands that a fused part takes besides the running result.
int extra_operands(const OpInfo& op) {
    return op.min_inputs - 1;
}

Result<void> check_count(const Node& node, const char* what, size_t found, int low, int high) {
    if (static_cast<int>(found) >= low && (high < 0 || static_cast<int>(found) <= high)) return {};
    std::string expected = std::to_string(low);
    if (high < 0)
        expected += " or more";
    else if (high != low)
        expected += " to " + std::to_string(high);
    return bad_node(node, "has " + std::to_string(found) + ' ' + what + ", expected " + expected);
}

Result<void> check_inputs(const Graph& graph, const Node& node, size_t required) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == none) {
            if (i < required) return bad_node(node, "lacks input " + std::to_string(i));
        } else if (graph.value(node.inputs[i]).type.data_type == DataType::unknown) {
            return bad_node(node,
                            "input '" + graph.value(node.inputs[i]).name + "' has no type yet");
        } else if (!is_reasonable(graph.value(node.inputs[i]).type)) {
            return bad_node(node, "input '" + graph.value(node.inputs[i]).name + "' is " +
                                      unreasonable(graph.value(node.inputs[i]).type));
        }
    }
    return {};
}

// The first operation as a node of its own, with the leading inputs only.
Node first_alone(const Node& node, size_t inputs) {
    Node first = node;
    first.fused.clear();
    first.inputs.resize(inputs);
    return first;
}

Result<Types> infer_fused(const Graph& graph, const Node& node, const OpInfo& op) {
    size_t operands = 0;
    for (const Operation& part : node.fused) {
        const OpInfo* info = find_op(part.kind);
        if (!info || !has_trait(part.kind, Trait::part))
            return bad_node(node, "part '" + part.kind + "' cannot follow another operator");
        if (auto ok = check_attributes(node, part, *info); !ok) return ok.error();
        operands += static_cast<size_t>(extra_operands(*info));
    }
    if (node.inputs.size() < operands) return bad_node(node, "lacks operands of its fused parts");
    const size_t leading = node.inputs.size() - operands;
    // The fused form of a product always has three leading inputs.
    const bool is_product = has_trait(op.kind, Trait::product);
    const int most = is_product ? 3 : op.max_inputs;
    const int least = is_product ? 3 : op.min_inputs;
    if (auto ok = check_count(node, "leading inputs", leading, least, most); !ok) return ok.error();
    auto types = op.infer(graph, first_alone(node, leading));
    if (!types) return types;
    for (size_t i = leading; i < node.inputs.size(); ++i) {
        if (!has_input(node, i)) return bad_node(node, "lacks input " + std::to_string(i));
        const Type& operand = input_type(graph, node, i);
        const auto shape = broadcast(types->front().shape, operand.shape);
        if (operand.data_type != types->front().data_type || shape != types->front().shape) {
            return bad_node(node, "fused operand '" + graph.value(node.inputs[i]).name + "' is " +
                                      to_string(operand) + ", which does not broadcast to " +
                                      to_string(types->front()));
        }
    }
    return types;
}

Result<void> check_size(const Node& node, const Type& type) {
    if (is_reasonable(type)) return {};
    return bad_node(node, "output would be " + unreasonable(type));
}

}  // namespace

std::span<const OpInfo> all_ops() {
    static const std::vector<OpInfo> table = build_table();
    return table;
}

const OpInfo* find_op(std::string_view kind) {
    const auto table = all_ops();
    const auto found = std::ranges::lower_bound(table, kind, {}, &OpInfo::kind);
    return found != table.end() && found->kind == kind ? &*found : nullptr;
}

const OpInfo* find_onnx_op(std::string_view kind) {
    return kind == upsample_op.kind ? &upsample_op : find_op(kind);
}

std::vector<AttributeRule> attribute_rules(const OpInfo& op) {
    std::vector<AttributeRule> rules;
    for (std::string_view row = op.attributes; !row.empty() && row != "*"; take(row, ' '))
        rules.push_back(read_rule(take_until(row, " ")));
    return rules;
}

bool has_trait(std::string_view kind, Traits traits) {
    const OpInfo* op = find_onnx_op(kind);
    return op && (op->traits.bits & traits.bits) != 0;
}
bool has_trait(const Node& node, Traits traits) {
    return has_trait(node.kind, traits);
}
bool has_input_trait(const Node& node, Trait first, size_t input) {
    constexpr size_t inputs = 3;
    return input < inputs &&
           has_trait(node, static_cast<Trait>(static_cast<uint32_t>(first) << input));
}

Result<Types> infer_types(const Graph& graph, const Node& node) {
    const OpInfo* op = find_op(node.kind);
    if (!op) {
        return Error{ErrorCode::unsupported, "node '" + node.name + "' uses " + node.type() +
                                                 ", an operator that the compiler does not know"};
    }
    if (auto ok =
            check_count(node, "outputs", node.outputs.size(), op->min_outputs, op->max_outputs);
        !ok) {
        return ok.error();
    }
    const bool needs_first = op->max_outputs == 1 || node.kind == "MaxPool";
    if (needs_first && node.outputs[0] == none) return bad_node(node, "has no output");
    if (auto ok = check_attributes(node, node, *op); !ok) return ok.error();
    const Form form = is_late(node) ? Form::onnx : Form::canonical;
    if (auto ok = check_attribute_values(node, form); !ok) return ok.error();
    // Of any number of inputs none may be absent.
    const size_t required = op->max_inputs < 0 && !is_late(node)
                                ? node.inputs.size()
                                : static_cast<size_t>(op->min_inputs);
    if (auto ok = check_inputs(graph, node, required); !ok) return ok.error();
    const bool fused = !node.fused.empty();
    if (!fused) {
        if (auto ok =
                check_count(node, "inputs", node.inputs.size(), op->min_inputs, op->max_inputs);
            !ok) {
            return ok.error();
        }
    }
    auto types = fused ? infer_fused(graph, node, *op) : op->infer(graph, node);
    if (!types) return types;
    types->resize(node.outputs.size());
    for (const Type& type : *types) {
        if (auto ok = check_size(node, type); !ok) return ok.error();
    }
    return types;
}

bool has_data_dependent_shape(const Graph& graph, const Node& node) {
    if (has_trait(node, Trait::finds_shape)) return true;
    if ((node.kind == "Slice" || node.kind == "TopK") && node.inputs.size() > 1) return true;
    if (is_late(node) && !has_trait(node.get("op", ""), Trait::keeps_shape)) return true;
    if (is_onnxruntime(node)) return node.get("data_dependent", int64_t{0}) != 0;
    if (node.kind == "Shape" || node.kind == "Size") return false;
    return std::ranges::any_of(
        node.inputs, [&](ValueId id) { return id != none && graph.value(id).data_dependent; });
}

namespace {

struct Work {
    uint64_t macs = 0, others = 0;
};

Work count_work(const Graph& graph, const Node& node) {
    const OpInfo* op = find_op(node.kind);
    if (!op) return {};
    uint64_t of_parts = 0;
    size_t operands = 0;
    for (const Operation& part : node.fused) {
        const OpInfo* info = find_op(part.kind);
        if (!info) continue;
        operands += static_cast<size_t>(extra_operands(*info));
        of_parts += count_output(graph, node);
    }
    const auto count = [&](const Node& first) {
        return Work{op->macs ? op->macs(graph, first) : 0,
                    saturating_sum(op->count(graph, first), of_parts)};
    };
    return count(node.fused.empty() ? node : first_alone(node, node.inputs.size() - operands));
}

}  // namespace

uint64_t count_ops(const Graph& graph, const Node& node) {
    const Work work = count_work(graph, node);
    return saturating_sum(saturating_product(2, work.macs), work.others);
}

uint64_t count_macs(const Graph& graph, const Node& node) {
    return count_work(graph, node).macs;
}

Error bad_node(const Node& node, const std::string& sentence) {
    return {ErrorCode::bad_model, "node '" + node.name + "' (" + node.type() + ") " + sentence};
}

Error bad_inputs(const Graph& graph, const Node& node) {
    std::string list;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!list.empty()) list += ", ";
        list += has_input(node, i) ? to_string(input_type(graph, node, i)) : "nothing";
    }
    return bad_node(node, "has the inputs " + list + ", which do not go together");
}

Error needs_constant(const Node& node, const char* what) {
    return {
        ErrorCode::unsupported,
        "node '" + node.name + "' (" + node.kind + ") takes its " + what +
            " from a tensor that depends on the input data; export the model with static shapes"};
}

Result<std::vector<int64_t>> constant_ints(const Graph& graph, const Node& node, size_t index) {
    const Value& value = graph.value(node.inputs[index]);
    if (!value.constant || value.type.data_type != DataType::int64) {
        return bad_node(node, "takes its output shape from '" + value.name +
                                  "', which is no constant of type i64");
    }
    const auto values = value.constant->as<int64_t>();
    return std::vector<int64_t>(values.begin(), values.end());
}

std::string to_string(std::span<const int64_t> shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) {
        if (i) text += ',';
        text += std::to_string(shape[i]);
    }
    return text + ']';
}

std::optional<std::vector<int64_t>> broadcast(std::span<const int64_t> a,
                                              std::span<const int64_t> b) {
    if (a.size() < b.size()) std::swap(a, b);
    std::vector<int64_t> shape(a.begin(), a.end());
    const size_t shift = a.size() - b.size();
    for (size_t i = 0; i < b.size(); ++i) {
        int64_t& size = shape[shift + i];
        if (size == b[i] || b[i] == 1) continue;
        if (size != 1) return std::nullopt;
        size = b[i];
    }
    return shape;
}

int64_t wrap_axis(int64_t axis, size_t rank) {
    const auto n = static_cast<int64_t>(rank);
    if (axis < -n || axis >= n) return -1;
    return axis < 0 ? axis + n : axis;
}

bool is_reasonable(const Type& type) {
    if (type.shape.size() > cpu::max_rank) return false;
    int64_t elements = 1;
    for (const int64_t size : type.shape) {
        if (size < 0 || size > max_elements) return false;
        if (size > 0 && elements > max_elements / size) return false;
        elements *= std::max<int64_t>(size, 1);
    }
    return true;
}

std::string unreasonable(const Type& type) {
    if (const size_t rank = type.shape.size(); rank > cpu::max_rank)
        return to_string(type) + ", which has " + std::to_string(rank) +
               " dimensions, expected at most " + std::to_string(cpu::max_rank) +
               "; join some of them with a Reshape";
    return to_string(type) + ", expected sizes from 0 and at most 2^40 elements";
}

int64_t bounded_product(int64_t a, int64_t b) {
    constexpr int64_t bound = int64_t{1} << 62;
    int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) return (a < 0) != (b < 0) ? -bound : bound;
    return std::clamp(product, -bound, bound);
}

Result<Types> infer_same(const Graph& graph, const Node& node) {
    return Types{input_type(graph, node, 0)};
}

Result<Types> infer_broadcast(const Graph& graph, const Node& node) {
    Type type = input_type(graph, node, 0);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        const Type& other = input_type(graph, node, i);
        if (other.data_type != type.data_type) {
            return bad_node(node, "has inputs " + to_string(type) + " and " + to_string(other) +
                                      ", expected one type; put a Cast in front of one of them");
        }
        auto shape = broadcast(type.shape, other.shape);
        if (!shape) {
            return bad_node(node, "has inputs " + to_string(type) + " and " + to_string(other) +
                                      ", which do not broadcast");
        }
        type.shape = std::move(*shape);
    }
    return Types{type};
}

uint64_t count_none(const Graph&, const Node&) {
    return 0;
}

uint64_t count_output(const Graph& graph, const Node& node) {
    return static_cast<uint64_t>(output_type(graph, node).elements());
}

uint64_t count_input(const Graph& graph, const Node& node) {
    return static_cast<uint64_t>(input_type(graph, node, 0).elements());
}

}  // namespace vartml::graph
