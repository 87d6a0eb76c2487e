// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/attribute_values.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lib/graph/late.h"
#include "lib/graph/ops.h"

namespace vartml::graph {

namespace {

// Values are separated by '|'. `rewritten` are those that ONNX has besides and canonicalise()
// rewrites; an attribute without values is one that it drops.
struct Choice {
    std::string_view values, rewritten;
};

// Those that mean the same in every operator; the others are in the operators' rows.
struct Common {
    std::string_view attribute;
    Choice choice;
};
constexpr Common common[] = {
    {"activations",
     {"Affine|Elu|HardSigmoid|LeakyRelu|Relu|ScaledTanh|Sigmoid|Softplus|Softsign|Tanh|"
      "ThresholdedRelu",
      ""}},
    {"auto_pad", {"", "NOTSET|SAME_LOWER|SAME_UPPER|VALID"}},
    {"keep_aspect_ratio_policy", {"", "stretch|not_larger|not_smaller"}},
};

// Switches: off and on, and nothing else.
constexpr std::string_view switches[] = {
    "align_corners",
    "allowzero",
    "antialias",
    "ceil_mode",
    "center_point_box",
    "channels_last",
    "count_include_pad",
    "data_dependent",
    "detect_negative",
    "detect_positive",
    "do_rotary",
    "exclude_outside",
    "exclusive",
    "fmod",
    "input_forget",
    "interleaved",
    "is_causal",
    "is_test",
    "keepdims",
    "largest",
    "layout",
    "linear_before_reset",
    "noop_with_empty_axes",
    "past_present_share_buffer",
    "reverse",
    "select_last_index",
    "sorted",
    "storage_order",
    "training_mode",
    "transA",
    "transB",
    "unidirectional",
    "upper",
};

std::optional<Choice> find_choice(std::string_view kind, std::string_view attribute) {
    const auto of_all = std::ranges::find(common, attribute, &Common::attribute);
    if (of_all != std::end(common)) return of_all->choice;
    const OpInfo* op = find_onnx_op(kind);
    if (!op) return std::nullopt;
    for (const AttributeRule& rule : attribute_rules(*op)) {
        const bool is_choice = !rule.choices.empty() || !rule.rewritten.empty();
        if (rule.name == attribute && rule.kind.starts_with('s') && is_choice)
            return Choice{rule.choices, rule.rewritten};
    }
    return std::nullopt;
}

bool is_listed(std::string_view list, std::string_view value) {
    while (!list.empty()) {
        const std::string_view entry = list.substr(0, list.find('|'));
        if (entry == value) return true;
        list.remove_prefix(std::min(entry.size() + 1, list.size()));
    }
    return false;
}

std::string with_commas(std::string_view first, std::string_view second) {
    std::string text(first);
    if (!first.empty() && !second.empty()) text += '|';
    text += second;
    for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.replace(at, 1, ", ");
    return text;
}

Error unknown_value(const Node& node, std::string_view key, const std::string& value,
                    const std::string& known) {
    return {ErrorCode::unsupported, "node '" + node.name + "' (" + op_type(node) +
                                        ") has the attribute '" + std::string(key) +
                                        "' with the value " + value + ", known are " + known};
}

Result<void> check_texts(const Node& node, std::string_view key, const Choice& choice,
                         std::span<const std::string> texts, Form form) {
    const std::string_view other = form == Form::onnx ? choice.rewritten : std::string_view();
    for (const std::string& text : texts) {
        if (is_listed(choice.values, text) || is_listed(other, text)) continue;
        if (text.empty() && key == "auto_pad") continue;  // some exporters mean NOTSET
        return unknown_value(node, key, "'" + text + "'", with_commas(choice.values, other));
    }
    return {};
}

}  // namespace

static Result<void> check_operation(const Node& node, std::string_view kind,
                                    const std::string& prefix, const Attributes& attributes,
                                    Form form) {
    for (const auto& [name, value] : attributes) {
        const std::string key = prefix + name;
        if (const auto* number = std::get_if<int64_t>(&value)) {
            const bool is_switch = std::ranges::find(switches, name) != std::end(switches);
            if (is_switch && *number != 0 && *number != 1)
                return unknown_value(node, key, std::to_string(*number), "0 and 1");
            continue;
        }
        const auto choice = find_choice(kind, name);
        if (!choice) continue;
        if (const auto* text = std::get_if<std::string>(&value)) {
            if (auto ok = check_texts(node, key, *choice, {text, 1}, form); !ok) return ok;
        } else if (const auto* texts = std::get_if<Strings>(&value)) {
            if (auto ok = check_texts(node, key, *choice, *texts, form); !ok) return ok;
        }
    }
    return {};
}

Result<void> check_attribute_values(const Node& node, Form form) {
    const std::string kind = is_late(node) ? op_type(node) : node.kind;
    if (auto ok = check_operation(node, kind, "", node.attributes, form); !ok) return ok;
    for (const Operation& part : node.fused) {
        auto ok = check_operation(node, part.kind, part.kind + '.', part.attributes, form);
        if (!ok) return ok;
    }
    return {};
}

std::string_view choices_of(std::string_view kind, std::string_view attribute) {
    const auto choice = find_choice(kind, attribute);
    return choice ? choice->values : std::string_view();
}

}  // namespace vartml::graph
