// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/output_meaning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lib/graph/ops.h"

namespace vartml::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::Trait;
using graph::ValueId;

// The same elements, in another order, shape or type.
constexpr graph::Traits movement = Trait::reshapes | Trait::permutes | Trait::coding;

bool is_movement(const Node& node) {
    return node.kind == "Cast" || has_trait(node, movement);
}

// A product with weights, bias included.
bool is_product(const Node& node) {
    return node.kind == "Gemm" || node.kind == "Conv" || node.kind == "QLinearConv";
}

constexpr std::string_view softmaxes[] = {"Softmax", "QLinearSoftmax"};
constexpr std::string_view sigmoids[] = {"Sigmoid", "HardSigmoid", "QLinearSigmoid"};

bool is_any_of(std::string_view kind, std::span<const std::string_view> kinds) {
    return std::ranges::find(kinds, kind) != kinds.end();
}

class Reader {
public:
    explicit Reader(const Graph& graph) : graph_(graph), uses_(find_uses(graph)) {}

    // Of parts that are joined (levels of a head): what all of them end in, "" where they differ.
    std::string ends_in(ValueId id) const {
        std::optional<std::string> common;
        std::vector<ValueId> open{id};
        std::set<ValueId> seen;
        while (!open.empty()) {
            const ValueId part = open.back();
            open.pop_back();
            if (part == graph::none || !seen.insert(part).second) continue;
            const Node* node = producer_behind_movement(part);
            if (node && node->fused.empty() && node->kind == "Concat") {
                open.insert(open.end(), node->inputs.begin(), node->inputs.end());
                continue;
            }
            const std::string meaning = node ? meaning_of(*node) : std::string();
            if (common && is_linear(*common) && is_linear(meaning))
                common = *common == meaning ? meaning : "linear";
            else if (common && *common != meaning)
                return {};
            else
                common = meaning;
        }
        return common.value_or("");
    }

    std::optional<Quantisation> quantisation(ValueId id) const {
        while (const Node* node = producer(id)) {
            const std::string_view kind = node->kind;
            if (kind == "QuantizeLinear") return codes(node->inputs, 1);
            if (kind == "QLinearConcat") return codes(node->inputs, 0);
            // Behind what it reads: the bias is optional.
            if (kind.starts_with("QLinear"))
                return codes(node->inputs,
                             static_cast<size_t>(graph::find_op(kind)->min_inputs) - 2);
            if (!has_trait(*node, Trait::reshapes | Trait::permutes)) return std::nullopt;
            id = node->inputs[0];
        }
        return std::nullopt;
    }

    // Of the integers of an output.
    std::optional<unsigned> class_count(ValueId id) const {
        const Node* const node = producer_behind_movement(id);
        if (!node || !node->fused.empty()) return std::nullopt;
        if (node->kind == "ArgMax") {
            const auto& dims = graph_.value(node->inputs[0]).type.shape;
            const int64_t axis = node->get("axis", int64_t{0});
            const auto at = static_cast<size_t>(axis < 0 ? axis + int64_t(dims.size()) : axis);
            return at < dims.size() ? count_of(dims[at]) : std::nullopt;
        }
        if (node->kind == "Mod") return constant(node->inputs[1]);
        if (node->kind != "Sub") return std::nullopt;
        // x - x / count * count
        const Node* const product = producer_behind_movement(node->inputs[1]);
        if (!product || product->kind != "Mul") return std::nullopt;
        for (const size_t factor : {0, 1}) {
            const auto count = constant(product->inputs[factor]);
            const Node* quotient = producer_behind_movement(product->inputs[1 - factor]);
            if (quotient && quotient->kind == "Floor")
                quotient = producer_behind_movement(quotient->inputs[0]);
            if (count && quotient && quotient->kind == "Div" &&
                constant(quotient->inputs[1]) == count)
                return count;
        }
        return std::nullopt;
    }

private:
    static std::optional<unsigned> count_of(int64_t number) {
        constexpr int64_t most = 1 << 16;
        if (number < 2 || number > most) return std::nullopt;
        return static_cast<unsigned>(number);
    }
    // A constant of one whole number.
    std::optional<unsigned> constant(ValueId id) const {
        if (id == graph::none) return std::nullopt;
        const graph::Value& value = graph_.value(id);
        if (!value.constant || value.type.elements() != 1) return std::nullopt;
        switch (value.type.data_type) {
            case DataType::int64:
                return count_of(value.constant->as<int64_t>()[0]);
            case DataType::int32:
                return count_of(value.constant->as<int32_t>()[0]);
            case DataType::float32: {
                const float number = value.constant->as<float>()[0];
                return number == std::floor(number) ? count_of(static_cast<int64_t>(number))
                                                    : std::nullopt;
            }
            default:
                return std::nullopt;
        }
    }

    static bool is_linear(std::string_view meaning) {
        return meaning == "linear" || meaning == "product";
    }

    std::string meaning_of(const Node& node) const {
        // With nothing behind it.
        if (node.fused.empty() && is_product(node)) return "product";
        // The last part is what the elements went through last.
        const std::string_view kind = node.last().kind;
        if (is_any_of(kind, softmaxes)) return "softmax";
        if (kind == "LogSoftmax") return "log-softmax";
        if (is_any_of(kind, sigmoids)) return "sigmoid";
        if (kind == "Relu") return "relu";
        if (kind == "LpNormalization") return "unit-length";
        if (kind == "ArgMax" || is_resized_argmax(node)) return "argmax";
        if (kind == "Div") return of_quotient(node);
        if (is_sum_of_scores(node)) return "";
        if (kind == "Mul") return is_scaled_sum(node) ? "linear" : "";
        return graph::has_trait(kind, Trait::linear) ? "linear" : "";
    }

    // The nearest of several numbers is one of them.
    bool is_resized_argmax(const Node& node) const {
        return node.fused.empty() && node.kind == "Resize" &&
               node.get("mode", "nearest") == "nearest" && reads_from(node, {"ArgMax"});
    }

    // Sums and means of what softmaxes or sigmoids gave, such as those of several networks, crops
    // or moments: none is missing there, and the numbers themselves show what they are.
    bool is_sum_of_scores(const Node& node, int depth = 0) const {
        constexpr std::string_view sums[] = {"Add",
                                             "Sub",
                                             "Sum",
                                             "Mean",
                                             "ReduceMean",
                                             "ReduceSum",
                                             "AveragePool",
                                             "Mul",
                                             "Div",
                                             "Concat",
                                             "GlobalAveragePool",
                                             "QLinearAdd",
                                             "QLinearAveragePool",
                                             "QLinearGlobalAveragePool"};
        constexpr int most = 6;
        if (depth == most || !node.fused.empty() || !is_any_of(node.kind, sums)) return false;
        bool is_score = false;
        for (const ValueId id : node.inputs) {
            if (id == graph::none || graph_.value(id).constant) continue;
            const Node* const from = producer_behind_movement(id);
            if (!from) return false;
            const std::string_view kind = from->last().kind;
            is_score = is_any_of(kind, softmaxes) || is_any_of(kind, sigmoids) ||
                       is_sum_of_scores(*from, depth + 1);
            if (!is_score) return false;
        }
        return is_score;
    }

    // A sum of products that was dynamically quantised has two scales at most, and a constant may
    // follow; a product of anything else is no sum.
    bool is_scaled_sum(const Node& node) const {
        const Node* at = &node;
        for (int steps = 0; steps < 4; ++steps) {
            if (reads_from(*at, {"Sigmoid", "HardSigmoid", "Tanh", "Softmax"})) return false;
            const Node* next = nullptr;
            for (const ValueId id : at->inputs) {
                const Node* from = id == graph::none ? nullptr : producer_behind_movement(id);
                if (!from) continue;
                if (graph::has_trait(from->last().kind, Trait::linear)) return true;
                if (from->last().kind == "Mul") next = from;
            }
            if (!next) return false;
            at = next;
        }
        return false;
    }

    const Node* producer(ValueId id) const {
        const int32_t at = uses_.producer[static_cast<size_t>(id)];
        return at < 0 ? nullptr : &graph_.nodes[static_cast<size_t>(at)];
    }

    const Node* producer_behind_movement(ValueId id) const {
        const Node* node = producer(id);
        while (node && node->fused.empty() && is_movement(*node)) node = producer(node->inputs[0]);
        return node;
    }

    bool reads_from(const Node& node, std::initializer_list<std::string_view> kinds) const {
        return std::ranges::any_of(node.inputs, [&](ValueId id) {
            const Node* from = id == graph::none ? nullptr : producer_behind_movement(id);
            return from && std::ranges::find(kinds, from->last().kind) != kinds.end();
        });
    }

    // Softmax and the length of a vector, written out.
    std::string of_quotient(const Node& node) const {
        if (reads_from(node, {"Exp"}) && reads_from(node, {"ReduceSum"})) return "softmax";
        constexpr std::string_view length[] = {"ReduceL2", "Clip", "Max", "Expand",
                                               "Sqrt",     "Pow",  "Add", "Sum"};
        const Node* divisor = producer_behind_movement(node.inputs[1]);
        for (int steps = 0; divisor && steps < 5; ++steps) {
            const std::string_view kind = divisor->last().kind;
            if (kind == "ReduceL2" || kind == "ReduceSumSquare") return "unit-length";
            if (kind == "Sqrt" || is_any_of(kind, length)) {
                divisor = producer_behind_movement(divisor->inputs[0]);
            } else {
                break;
            }
        }
        return {};
    }

    // Scale and zero point from the input `first` on, where they are one constant each.
    std::optional<Quantisation> codes(const std::vector<ValueId>& inputs, size_t first) const {
        if (inputs.size() <= first || inputs[first] == graph::none) return std::nullopt;
        const graph::Value& scale = graph_.value(inputs[first]);
        if (!scale.constant || scale.type.elements() != 1 ||
            scale.type.data_type != DataType::float32)
            return std::nullopt;
        Quantisation q{scale.constant->as<float>()[0], 0};
        if (inputs.size() <= first + 1 || inputs[first + 1] == graph::none) return q;
        const graph::Value& zero = graph_.value(inputs[first + 1]);
        if (!zero.constant || zero.type.elements() != 1) return std::nullopt;
        switch (zero.type.data_type) {
            case DataType::uint8:
                q.zero_point = zero.constant->as<uint8_t>()[0];
                return q;
            case DataType::int8:
                q.zero_point = zero.constant->as<int8_t>()[0];
                return q;
            case DataType::uint16:
                q.zero_point = zero.constant->as<uint16_t>()[0];
                return q;
            case DataType::int16:
                q.zero_point = zero.constant->as<int16_t>()[0];
                return q;
            default:
                return std::nullopt;
        }
    }

    const Graph& graph_;
    const graph::Uses uses_;
};

bool holds_codes(DataType type) {
    return type == DataType::int8 || type == DataType::uint8 || type == DataType::int16 ||
           type == DataType::uint16;
}

}  // namespace

std::vector<ModelInfo::Output> output_meanings(const Graph& graph) {
    const Reader reader(graph);
    std::vector<ModelInfo::Output> meanings;
    for (const ValueId id : graph.outputs) {
        ModelInfo::Output& meaning = meanings.emplace_back();
        meaning.name = graph.value(id).name;
        meaning.ends_in = reader.ends_in(id);
        if (!holds_codes(graph.value(id).type.data_type)) continue;
        const auto codes = reader.quantisation(id);
        if (!codes) continue;
        meaning.quant_scale = codes->scale;
        meaning.zero_point = codes->zero_point;
    }
    return meanings;
}

namespace {

// Other integers may be places of points in a map; a map of them is a segmentation, which needs no
// count.
bool lists_classes_of_boxes(const Graph& graph, ValueId id) {
    const auto& list = graph.value(id).type.shape;
    return list.size() == 2 && std::ranges::any_of(graph.outputs, [&](ValueId other) {
               const auto& boxes = graph.value(other).type.shape;
               return boxes.size() == 3 && boxes[0] == list[0] && boxes[1] == list[1] &&
                      (boxes[2] == 4 || boxes[2] == 5);
           });
}

}  // namespace

std::optional<unsigned> class_count(const Graph& graph) {
    const Reader reader(graph);
    std::optional<unsigned> found;
    for (const ValueId id : graph.outputs) {
        if (!lists_classes_of_boxes(graph, id)) continue;
        const auto count = reader.class_count(id);
        if (found && count && *found != *count) return std::nullopt;
        if (count) found = count;
    }
    return found;
}

}  // namespace vartml::compiler
