// SPDX-License-Identifier: Apache-2.0
// quantise_operators: float operators between DequantizeLinear and QuantizeLinear become quantised
// ones.
#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/compile/passes/passes.h"
#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"
#include "lib/graph/ops_window.h"

namespace vartml::compiler {

namespace {

using graph::Node;
using graph::none;
using graph::Type;
using graph::ValueId;
using Ints = std::vector<int64_t>;

constexpr std::string_view microsoft = "com.microsoft";

// What a float operator is to become: kind, domain, inputs and attributes. Outputs, name and
// sources are those of the nodes that it replaces.
using Form = std::optional<Node>;

ValueId input_or_none(const Node& node, size_t index) {
    return index < node.inputs.size() ? node.inputs[index] : none;
}

// An operand: codes, scale, zero point.
struct Operand {
    Coding coding;
    ValueId codes = none;
};

std::optional<Operand> operand(Rewriter& rewriter, ValueId real) {
    Operand result;
    const auto coding = codes_behind(rewriter, real, result.codes);
    if (!coding) return std::nullopt;
    result.coding = *coding;
    return result;
}

void push(Rewriter& rewriter, std::vector<ValueId>& inputs, const Operand& x) {
    inputs.push_back(x.codes);
    inputs.push_back(scale_operand(rewriter, x.coding));
    inputs.push_back(zero_operand(rewriter, x.coding));
}

void push(Rewriter& rewriter, std::vector<ValueId>& inputs, const Coding& y) {
    inputs.push_back(scale_operand(rewriter, y));
    inputs.push_back(zero_operand(rewriter, y));
}

// Constant weights with one scale, or one per element of `axis`.
struct Weights {
    ValueId codes = none;
    std::vector<double> scales;
    Ints zeros;
};

std::optional<Weights> weights(Rewriter& rewriter, ValueId real, size_t axis) {
    const Node* node = rewriter.producer(real, "DequantizeLinear");
    if (!node || !rewriter.is_constant(node->inputs[0]) || !rewriter.is_constant(node->inputs[1]) ||
        node->get("block_size", int64_t{0}) != 0)
        return std::nullopt;
    const Type& type = rewriter.type(node->inputs[0]);
    if (type.data_type != DataType::int8 && type.data_type != DataType::uint8) return std::nullopt;
    Weights result{
        node->inputs[0], graph::read_numbers<double>(rewriter.value(node->inputs[1])), {}};
    const ValueId zero = input_or_none(*node, 2);
    if (zero != none && !rewriter.is_constant(zero)) return std::nullopt;
    if (zero != none) result.zeros = graph::read_numbers<int64_t>(rewriter.value(zero));
    result.zeros.resize(result.scales.size(), 0);
    if (result.scales.size() == 1) return result;
    const bool per_channel = node->get("axis", int64_t{1}) == static_cast<int64_t>(axis) &&
                             static_cast<int64_t>(result.scales.size()) == type.shape[axis];
    return per_channel ? std::optional(result) : std::nullopt;
}

ValueId add_numbers(Rewriter& rewriter, const std::string& stem, DataType type,
                    std::span<const double> numbers) {
    Type as{type, {}};
    if (numbers.size() != 1) as.shape = {static_cast<int64_t>(numbers.size())};
    return rewriter.add_constant(stem, as, numbers);
}

void push(Rewriter& rewriter, std::vector<ValueId>& inputs, const Weights& w) {
    const std::string stem = rewriter.value(w.codes).name;
    const DataType type = rewriter.type(w.codes).data_type;
    inputs.push_back(w.codes);
    inputs.push_back(add_numbers(rewriter, stem + ".scale", DataType::float32, w.scales));
    const std::vector<double> zeros(w.zeros.begin(), w.zeros.end());
    inputs.push_back(add_numbers(rewriter, stem + ".zero", type, zeros));
}

// Constant numbers, dequantised or not; empty where they are not constant.
std::vector<double> numbers_of(Rewriter& rewriter, ValueId id) {
    if (rewriter.is_constant(id)) return graph::read_numbers<double>(rewriter.value(id));
    const Node* node = rewriter.producer(id, "DequantizeLinear");
    return node ? dequantised(rewriter, *node) : std::vector<double>();
}

// A bias in units of what the sums count, a whole number each; nullopt where it is not constant,
// not one per channel or out of range.
std::optional<std::vector<double>> whole_bias(Rewriter& rewriter, ValueId bias, int64_t channels,
                                              const Coding& x, const Weights& w) {
    std::vector<double> numbers = numbers_of(rewriter, bias);
    if (static_cast<int64_t>(numbers.size()) != channels || rewriter.type(bias).shape.empty() ||
        rewriter.type(bias).shape.back() != channels)
        return std::nullopt;
    for (size_t i = 0; i < numbers.size(); ++i) {
        const double unit = x.scale * w.scales[w.scales.size() == 1 ? 0 : i];
        numbers[i] = std::nearbyint(numbers[i] / unit);
        if (!(std::fabs(numbers[i]) <= INT32_MAX)) return std::nullopt;
    }
    return numbers;
}

// ---- operators --------------------------------------------------------------------------------

Form quantise_conv(Rewriter& rewriter, const Node& node, const Coding& y) {
    const auto x = operand(rewriter, node.inputs[0]);
    const auto w = weights(rewriter, node.inputs[1], 0);
    if (!x || !w) return std::nullopt;
    Node form;
    form.kind = "QLinearConv";
    form.attributes = node.attributes;
    std::vector<double> bias;
    const ValueId real_bias = input_or_none(node, 2);
    if (real_bias != none) {
        const int64_t channels = rewriter.type(w->codes).shape[0];
        const auto whole = whole_bias(rewriter, real_bias, channels, x->coding, *w);
        if (!whole) return std::nullopt;
        bias = *whole;
    }
    push(rewriter, form.inputs, *x);
    push(rewriter, form.inputs, *w);
    push(rewriter, form.inputs, y);
    if (!bias.empty()) {
        const Type type{DataType::int32, {static_cast<int64_t>(bias.size())}};
        const std::string stem = rewriter.value(real_bias).name + ".codes";
        form.inputs.push_back(rewriter.add_constant(stem, type, bias));
    }
    return form;
}

// Where a convolution stands whose result is changed before it becomes codes, and how.
struct Changed {
    size_t conv = 0;
    graph::Attributes attributes;  // of the QLinearConv
    std::vector<ValueId> passed;   // what lies between the convolution and the codes
};

// An activation, and numbers per channel behind it.
std::optional<Changed> find_changed(Rewriter& rewriter, ValueId real) {
    Changed found;
    graph::BeforeCodes before;
    if (const Node* scaled = rewriter.producer(real, "Mul");
        scaled && rewriter.has_one_use(real) && rewriter.type(real).shape.size() > 2) {
        const size_t at = rewriter.is_constant(scaled->inputs[1]) ? 1 : 0;
        for (const double f :
             per_channel(rewriter, scaled->inputs[at], rewriter.type(real).shape, 1))
            before.factors.push_back(static_cast<float>(f));
        const auto bad = [](float f) { return !(f > 0) || !std::isfinite(f); };
        if (before.factors.empty() || std::ranges::any_of(before.factors, bad)) return std::nullopt;
        found.passed.push_back(real);
        const ValueId whole = std::exchange(real, scaled->inputs[1 - at]);
        // Factors of more channels than there are make them.
        if (rewriter.type(real).shape != rewriter.type(whole).shape) return std::nullopt;
    }
    const Node* activation = rewriter.producer(real);
    if (activation && activation->inputs.size() == 1 && activation->fused.empty() &&
        rewriter.has_one_use(real)) {
        before.activation = *activation;
        found.passed.push_back(real);
        real = activation->inputs[0];
    }
    const auto attributes = write_before_codes(before);
    if (found.passed.empty() || !attributes || !rewriter.has_one_use(real) ||
        !rewriter.producer(real, "Conv"))
        return std::nullopt;
    found.attributes = *attributes;
    found.conv = static_cast<size_t>(rewriter.producer_index(real));
    return found;
}

// A product of `a` by `b` with an optional bias per column.
Form product(Rewriter& rewriter, ValueId a, ValueId b, ValueId real_bias, const Coding& y) {
    const auto left = operand(rewriter, a);
    const Ints shape = rewriter.type(b).shape;
    if (!left || shape.size() < 2) return std::nullopt;
    Node form;
    form.kind = "QLinearMatMul";
    const auto w = weights(rewriter, b, shape.size() - 1);
    const auto right = operand(rewriter, b);
    if (!w && !right) return std::nullopt;
    // Scales of columns are for matrices.
    const bool matrices = shape.size() == 2 && rewriter.type(a).shape.size() > 1;
    if (w && w->scales.size() > 1 && !matrices) return std::nullopt;
    std::vector<double> bias;
    if (real_bias != none) {
        if (!w) return std::nullopt;
        const auto whole = whole_bias(rewriter, real_bias, shape.back(), left->coding, *w);
        if (!whole) return std::nullopt;
        bias = *whole;
    }
    push(rewriter, form.inputs, *left);
    if (w) {
        push(rewriter, form.inputs, *w);
    } else {
        push(rewriter, form.inputs, *right);
    }
    push(rewriter, form.inputs, y);
    if (!bias.empty()) {
        const Type type{DataType::int32, {static_cast<int64_t>(bias.size())}};
        const std::string stem = rewriter.value(real_bias).name + ".codes";
        form.inputs.push_back(rewriter.add_constant(stem, type, bias));
    }
    return form;
}

Form quantise_matmul(Rewriter& rewriter, const Node& node, const Coding& y) {
    return product(rewriter, node.inputs[0], node.inputs[1], input_or_none(node, 2), y);
}

// The weights of a Gemm in the order of a MatMul: behind a DequantizeLinear of their own.
ValueId transposed_weights(Rewriter& rewriter, ValueId real) {
    const Node* dequantise = rewriter.producer(real, "DequantizeLinear");
    if (!dequantise || !rewriter.is_constant(dequantise->inputs[0])) return none;
    const Node like = *dequantise;
    const Type type = rewriter.type(like.inputs[0]);
    if (type.shape.size() != 2 || size_bytes(type.data_type) != 1) return none;
    const auto rows = static_cast<size_t>(type.shape[0]),
               columns = static_cast<size_t>(type.shape[1]);
    const auto from = rewriter.value(like.inputs[0]).constant->bytes;
    std::vector<std::byte> bytes(from.size());
    for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < columns; ++c) bytes[c * rows + r] = from[r * columns + c];
    graph::Graph& graph = rewriter.graph();
    const std::string stem = rewriter.value(like.inputs[0]).name + "_transposed";
    const ValueId codes = graph.add_constant(graph.unique_name(stem),
                                             {type.data_type, {type.shape[1], type.shape[0]}},
                                             graph::make_constant(std::move(bytes)));
    const ValueId result =
        graph.add_value(graph.unique_name(stem + "_dequantised"),
                        {rewriter.type(real).data_type, {type.shape[1], type.shape[0]}});
    Node behind = like;
    behind.name = graph.unique_name(stem + "_dequantise");
    behind.inputs[0] = codes;
    behind.outputs = {result};
    behind.attributes["axis"] = 1 - like.get("axis", int64_t{1});
    const auto place = static_cast<size_t>(rewriter.producer_index(real));
    rewriter.insert(place, std::move(behind));
    return result;
}

Form quantise_gemm(Rewriter& rewriter, const Node& node, const Coding& y) {
    const ValueId bias = input_or_none(node, 2);
    ValueId b = node.inputs[1];
    const bool scaled =
        node.get("alpha", 1.0F) != 1 || (bias != none && node.get("beta", 1.0F) != 1);
    if (scaled || node.get("transA", int64_t{0}) != 0) return std::nullopt;
    if (!operand(rewriter, node.inputs[0]) ||
        !weights(rewriter, b, node.get("transB", int64_t{0}) ? 0 : 1))
        return std::nullopt;
    const ValueId a = node.inputs[0];
    // Before anything is changed: a refusal behind that would be met again without end.
    const bool turned = node.get("transB", int64_t{0}) != 0;
    if (bias != none) {
        const Ints shape = rewriter.type(b).shape;
        const auto w = weights(rewriter, b, turned ? 0 : 1);
        if (!whole_bias(rewriter, bias, shape[turned ? 0 : 1], operand(rewriter, a)->coding, *w))
            return std::nullopt;
    }
    if (turned) b = transposed_weights(rewriter, b);
    return b == none ? std::nullopt : product(rewriter, a, b, bias, y);
}

// Codes of one type everywhere: what the operators of com.microsoft take.
Form elementwise(Rewriter& rewriter, const Node& node, const Coding& y, std::string_view kind) {
    Node form;
    form.kind = kind;
    form.domain = microsoft;
    std::vector<Operand> operands;
    for (const ValueId input : node.inputs) {
        const auto x = operand(rewriter, input);
        if (!x || x->coding.type != y.type) return std::nullopt;
        operands.push_back(*x);
    }
    for (const Operand& x : operands) push(rewriter, form.inputs, x);
    push(rewriter, form.inputs, y);
    return form;
}

// A MatMul with a row of constants is a product with bias.
Form product_and_row(Rewriter& rewriter, const Node& node, const Coding& y) {
    for (size_t i = 0; i < 2; ++i) {
        const Node* matmul = rewriter.producer(node.inputs[i], "MatMul");
        const ValueId row = node.inputs[1 - i];
        if (!matmul || matmul->inputs.size() > 2 || !rewriter.has_one_use(node.inputs[i]) ||
            rewriter.type(node.inputs[i]) != rewriter.type(node.outputs[0]))
            continue;
        const std::vector<ValueId> inputs = matmul->inputs;
        if (auto form = product(rewriter, inputs[0], inputs[1], row, y)) return form;
    }
    return std::nullopt;
}

Form quantise_add(Rewriter& rewriter, const Node& node, const Coding& y) {
    if (auto form = product_and_row(rewriter, node, y)) return form;
    return elementwise(rewriter, node, y, "QLinearAdd");
}

Form quantise_mul(Rewriter& rewriter, const Node& node, const Coding& y) {
    return elementwise(rewriter, node, y, "QLinearMul");
}

Form quantise_concat(Rewriter& rewriter, const Node& node, const Coding& y) {
    auto form = elementwise(rewriter, node, y, "QLinearConcat");
    if (!form) return form;
    std::rotate(form->inputs.begin(), form->inputs.end() - 2, form->inputs.end());
    form->attributes = node.attributes;
    return form;
}

// One input and the attributes of the float operator.
template <const char* kind>
Form quantise_unary(Rewriter& rewriter, const Node& node, const Coding& y) {
    auto form = elementwise(rewriter, node, y, kind);
    if (form) form->attributes = node.attributes;
    return form;
}

Form quantise_mean(Rewriter& rewriter, const Node& node, const Coding& y) {
    const size_t rank = rewriter.type(node.inputs[0]).shape.size();
    const Ints axes = node.get("axes", Ints());
    if (node.inputs.size() != 1 || rank < 3 || axes.size() != rank - 2 || axes.front() != 2 ||
        node.get("keepdims", int64_t{1}) == 0)
        return std::nullopt;
    return elementwise(rewriter, node, y, "QLinearGlobalAveragePool");
}

constexpr char sigmoid[] = "QLinearSigmoid", leaky_relu[] = "QLinearLeakyRelu";
constexpr char average_pool[] = "QLinearAveragePool";
constexpr char global_average_pool[] = "QLinearGlobalAveragePool";

struct Row {
    std::string_view kind;
    Form (*make)(Rewriter&, const Node&, const Coding& y);
};
constexpr Row rows[] = {
    {"Add", quantise_add},
    {"AveragePool", quantise_unary<average_pool>},
    {"Concat", quantise_concat},
    {"Conv", quantise_conv},
    {"Gemm", quantise_gemm},
    {"GlobalAveragePool", quantise_unary<global_average_pool>},
    {"LeakyRelu", quantise_unary<leaky_relu>},
    {"MatMul", quantise_matmul},
    {"Mul", quantise_mul},
    {"ReduceMean", quantise_mean},
    {"Sigmoid", quantise_unary<sigmoid>},
};

// ---- what lies between operator and QuantizeLinear --------------------------------------------

// Relu and Clip, which only bound the codes: quantising is monotone.
struct Bounds {
    ValueId real = none;        // in front of them
    int32_t low = 0, high = 0;  // codes
    std::vector<ValueId> passed;
};

bool step_over_clip(Rewriter& rewriter, const Coding& y, Bounds& bounds) {
    const Node* clip = rewriter.producer(bounds.real);
    if (!clip || !has_trait(*clip, graph::Trait::cuts_off) || clip->inputs.size() != 1 ||
        !rewriter.has_one_use(bounds.real))
        return false;
    const bool relu = clip->kind == "Relu";
    const float low = relu ? 0 : clip->get("min", -INFINITY);
    const float high = relu ? INFINITY : clip->get("max", INFINITY);
    // The clips behind see what this one lets through.
    const int32_t low_code = y.code(low), high_code = y.code(high);
    bounds.low = std::clamp(low_code, bounds.low, bounds.high);
    bounds.high = std::clamp(high_code, bounds.low, bounds.high);
    bounds.passed.push_back(bounds.real);
    bounds.real = clip->inputs[0];
    return true;
}

// Codes with other scale and zero point: a QLinearConcat of one.
Form requantise(Rewriter& rewriter, const Operand& x, const Coding& y) {
    if (x.coding.type != y.type || rewriter.type(x.codes).shape.empty()) return std::nullopt;
    Node form;
    form.kind = "QLinearConcat";
    form.domain = microsoft;
    form.attributes["axis"] = int64_t{0};
    push(rewriter, form.inputs, y);
    push(rewriter, form.inputs, x);
    return form;
}

// Puts a Clip of `codes` in the place of the QuantizeLinear at `index`.
void clip_codes(Rewriter& rewriter, size_t index, ValueId codes, const Bounds& bounds) {
    Node& node = rewriter.node(index);
    node.kind = "Clip";
    node.domain.clear();
    node.inputs = {codes};
    node.attributes.clear();
    node.attributes["min"] = static_cast<float>(bounds.low);
    node.attributes["max"] = static_cast<float>(bounds.high);
    rewriter.refresh();
}

// The quantised form of what makes `bounds.real`; nullopt where it stays float.
Form form_of(Rewriter& rewriter, Bounds& bounds, const Coding& y) {
    if (const auto x = operand(rewriter, bounds.real)) return requantise(rewriter, *x, y);
    const Node* maker = rewriter.producer(bounds.real);
    if (!maker || !rewriter.has_one_use(bounds.real)) return std::nullopt;
    if (auto changed = find_changed(rewriter, bounds.real)) {
        const Node conv = rewriter.node(changed->conv);
        if (auto form = quantise_conv(rewriter, conv, y)) {
            form->attributes.merge(changed->attributes);
            Rewriter::merge_sources(*form, conv);
            bounds.passed.insert(bounds.passed.end(), changed->passed.begin(),
                                 changed->passed.end());
            bounds.real = conv.outputs[0];
            return form;
        }
        maker = rewriter.producer(bounds.real);
    }
    const auto* row = std::ranges::find(rows, maker->kind, &Row::kind);
    if (row == std::end(rows) || !maker->fused.empty()) return std::nullopt;
    const Node whole = *maker;
    auto form = row->make(rewriter, whole, y);
    if (form) Rewriter::merge_sources(*form, whole);
    return form;
}

bool quantise_at(Rewriter& rewriter, size_t index) {
    if (rewriter.node(index).kind != "QuantizeLinear") return false;
    const ValueId result = rewriter.node(index).outputs[0];
    const auto y = coding_of(rewriter, &rewriter.node(index));
    if (!y || rewriter.value(result).data_dependent) return false;
    Bounds bounds{rewriter.node(index).inputs[0], y->lowest(), y->highest(), {}};
    while (step_over_clip(rewriter, *y, bounds)) {
    }
    const bool bounded = bounds.low > y->lowest() || bounds.high < y->highest();
    if (const auto x = operand(rewriter, bounds.real); x && x->coding == *y) {
        if (!bounded) return rewriter.bypass(rewriter.node(index), x->codes);
        clip_codes(rewriter, index, x->codes, bounds);
        return true;
    }
    auto form = form_of(rewriter, bounds, *y);
    if (!form) return false;
    // Making the form may have put nodes in front.
    index = static_cast<size_t>(rewriter.producer_index(result));
    for (const ValueId passed : bounds.passed) {
        Rewriter::merge_sources(*form, *rewriter.producer(passed));
        rewriter.remove(*rewriter.producer(passed));
    }
    Rewriter::merge_sources(*form, rewriter.node(index));
    // The float operator would count as a reader of its operands until the pass ends.
    if (rewriter.producer(bounds.real)->kind != "DequantizeLinear")
        rewriter.remove(*rewriter.producer(bounds.real));
    form->name = rewriter.node(index).name;
    form->outputs = {result};
    if (!bounded) {
        rewriter.node(index) = std::move(*form);
        return true;
    }
    graph::Graph& graph = rewriter.graph();
    const std::string stem = graph.value(result).name + "_unbounded";
    const ValueId codes = graph.add_value(graph.unique_name(stem), graph.value(result).type);
    rewriter.refresh();
    form->name = graph.unique_name(stem + "_node");
    form->outputs = {codes};
    clip_codes(rewriter, index, codes, bounds);
    rewriter.insert(index, std::move(*form));
    return true;
}

}  // namespace

Result<PassStats> quantise_operators(graph::Graph& graph) {
    return rewrite_nodes(graph, quantise_at);
}

}  // namespace vartml::compiler
