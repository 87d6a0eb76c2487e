// SPDX-License-Identifier: Apache-2.0
// recognise_patterns and recognise_depth_to_space.
#include <algorithm>
#include <cmath>

#include "lib/compile/passes/passes.h"
#include "lib/graph/numbers.h"

namespace vartml::compiler {

namespace {

using graph::Node;
using graph::none;
using graph::Type;
using graph::ValueId;
using Ints = std::vector<int64_t>;

// What an operator with one tensor and one constant scalar does: x * scale + shift, chains of them
// joined. `input` is the tensor; the value itself where nothing was found.
struct Linear {
    ValueId input = none;
    double scale = 1, shift = 0;
};

Linear linear_of(Rewriter& rewriter, ValueId id) {
    Linear result{id};
    double constant = 0;
    const Node* node = rewriter.producer(id);
    if (!node) return result;
    const ValueId operand = operand_beside(rewriter, *node, constant);
    if (operand == none) return result;
    Linear step{operand};
    if (node->kind == "Add")
        step.shift = constant;
    else if (node->kind == "Sub")
        step.shift = -constant;
    else if (node->kind == "Mul")
        step.scale = constant;
    else if (node->kind == "Div" && constant != 0)
        step.scale = 1 / constant;
    else
        return result;
    const Linear inner = linear_of(rewriter, operand);
    return {inner.input, inner.scale * step.scale, inner.shift * step.scale + step.shift};
}

// The input of `id` if it is made by an operator of this kind with one input; none otherwise.
ValueId input_of(Rewriter& rewriter, ValueId id, std::string_view kind) {
    const Node* node = rewriter.producer(id, kind);
    return node && node->inputs.size() == 1 ? node->inputs[0] : none;
}

bool is_relu6(Rewriter& rewriter, ValueId id, double high) {
    const Node* clip = rewriter.producer(id, "Clip");
    if (!clip || clip->inputs.size() != 1 || clip->get("min", -1.0F) != 0.0F) return false;
    // Rounding apart: `high` may be far from 1, and what follows a multiple of the bound.
    return std::fabs(static_cast<double>(clip->get("max", 0.0F)) - high) <= 1e-6 * high;
}

// ---- x * gate(x)
// ---------------------------------------------------------------------------------------------------

struct Product {
    double scale = 1;
    std::vector<ValueId> factors;
};

// The factors of a product, through the Muls and Divs that nobody else reads.
void collect_factors(Rewriter& rewriter, ValueId id, bool root, Product& product) {
    const Node* node = rewriter.producer(id);
    const bool inside = node && (root || rewriter.has_one_use(id));
    if (inside && node->kind == "Mul") {
        for (const ValueId input : node->inputs) {
            if (const auto number = scalar(rewriter, input))
                product.scale *= *number;
            else
                collect_factors(rewriter, input, false, product);
        }
        return;
    }
    if (inside && node->kind == "Div") {
        if (const auto number = scalar(rewriter, node->inputs[1]); number && *number != 0) {
            product.scale /= *number;
            collect_factors(rewriter, node->inputs[0], false, product);
            return;
        }
    }
    product.factors.push_back(id);
}

struct Activation {
    const char* kind = nullptr;
    graph::Attributes attributes;
};

// softplus(x) = log(1 + exp(x)), as one operator or spelled out.
ValueId input_of_softplus(Rewriter& rewriter, ValueId id) {
    if (const ValueId x = input_of(rewriter, id, "Softplus"); x != none) return x;
    const ValueId sum = input_of(rewriter, id, "Log");
    if (sum == none) return none;
    const Linear linear = linear_of(rewriter, sum);
    return linear.scale == 1 && linear.shift == 1 ? input_of(rewriter, linear.input, "Exp") : none;
}

// The activation x * gate * scale, if `gate` is one of x.
Activation gated(Rewriter& rewriter, ValueId x, ValueId gate, double scale) {
    if (near(scale, 1) && input_of(rewriter, gate, "Sigmoid") == x) return {"SiLU", {}};
    if (near(scale, 1) && input_of(rewriter, gate, "HardSigmoid") == x) {
        const Node* node = rewriter.producer(gate);
        if (near(node->get("alpha", 0.2F), 1.0 / 6) && near(node->get("beta", 0.5F), 0.5))
            return {"HardSwish", {}};
    }
    if (near(scale, 1.0 / 6) && is_relu6(rewriter, gate, 6)) {
        const Linear linear = linear_of(rewriter, rewriter.producer(gate)->inputs[0]);
        if (linear.input == x && linear.scale == 1 && near(linear.shift, 3))
            return {"HardSwish", {}};
    }
    if (near(scale, 1)) {
        if (const ValueId plus = input_of(rewriter, gate, "Tanh");
            plus != none && input_of_softplus(rewriter, plus) == x) {
            return {"Mish", {}};
        }
    }
    const Linear one_plus = linear_of(rewriter, gate);
    if (near(scale * one_plus.scale, 0.5) && near(scale * one_plus.shift, 0.5)) {
        if (const ValueId argument = input_of(rewriter, one_plus.input, "Erf"); argument != none) {
            const Linear linear = linear_of(rewriter, argument);
            if (linear.input == x && linear.shift == 0 && near(linear.scale, M_SQRT1_2)) {
                return {"Gelu", {{"approximate", std::string("none")}}};
            }
        }
    }
    return {};
}

// Makes the node at `index` this operator of `input`, in the name of everything that it replaces.
void become(Rewriter& rewriter, size_t index, Activation activation, ValueId input) {
    Node& node = rewriter.node(index);
    // The sources of what only this node needed: everything between its input and itself.
    std::vector<ValueId> open = node.inputs;
    while (!open.empty()) {
        const ValueId id = open.back();
        open.pop_back();
        if (id == none || id == input || !rewriter.has_one_use(id)) continue;
        if (const Node* inner = rewriter.producer(id)) {
            Rewriter::merge_sources(node, *inner);
            open.insert(open.end(), inner->inputs.begin(), inner->inputs.end());
        }
    }
    node.kind = activation.kind;
    node.domain = node.kind == "SiLU" ? "vartml" : "";
    node.attributes = std::move(activation.attributes);
    node.inputs = {input};
    rewriter.refresh();
}

bool gate_at(Rewriter& rewriter, size_t index) {
    const Node& node = rewriter.node(index);
    if (node.kind != "Mul" && node.kind != "Div") return false;
    if (!graph::is_float(rewriter.type(node.outputs[0]).data_type)) return false;
    Product product;
    collect_factors(rewriter, node.outputs[0], true, product);
    if (product.factors.size() != 2) return false;
    for (size_t i = 0; i < 2; ++i) {
        const ValueId x = product.factors[i], gate = product.factors[1 - i];
        if (!rewriter.has_one_use(gate) || rewriter.type(x) != rewriter.type(node.outputs[0]))
            continue;
        Activation activation = gated(rewriter, x, gate, product.scale);
        if (!activation.kind) continue;
        become(rewriter, index, std::move(activation), x);
        return true;
    }
    return false;
}

// ---- HardSigmoid
// ---------------------------------------------------------------------------------------------------

// clip(x + 3, 0, 6) / 6, and clip(a x + b, 0, 1).
bool hard_sigmoid_at(Rewriter& rewriter, size_t index) {
    const Node& node = rewriter.node(index);
    if (!graph::is_float(rewriter.type(node.outputs[0]).data_type)) return false;
    double factor = 1;
    ValueId clipped = node.outputs[0];
    if (node.kind == "Mul" || node.kind == "Div") {
        double constant = 0;
        clipped = operand_beside(rewriter, node, constant);
        if (clipped == none || constant == 0) return false;
        factor = node.kind == "Mul" ? constant : 1 / constant;
        if (!rewriter.has_one_use(clipped)) return false;
    } else if (node.kind != "Clip") {
        return false;
    }
    if (!is_relu6(rewriter, clipped, 1 / factor)) return false;
    const ValueId sum = rewriter.producer(clipped)->inputs[0];
    const Linear linear = linear_of(rewriter, sum);
    const bool helps = factor != 1 || linear.scale != 1;  // a bare shift folds into the bias before
    if (linear.input == sum || !helps || !rewriter.has_one_use(sum)) return false;
    if (rewriter.type(linear.input) != rewriter.type(node.outputs[0])) return false;
    Activation activation{"HardSigmoid", {}};
    activation.attributes["alpha"] = static_cast<float>(linear.scale * factor);
    activation.attributes["beta"] = static_cast<float>(linear.shift * factor);
    become(rewriter, index, std::move(activation), linear.input);
    return true;
}

// ---- global pools
// --------------------------------------------------------------------------------------------------

bool covers_space(const Rewriter& rewriter, const Node& node) {
    const auto& shape = rewriter.type(node.inputs[0]).shape;
    // Rank 3 is as often tokens by features as it is a row of pixels.
    if (shape.size() < 4 || node.inputs.size() != 1) return false;
    if (node.kind == "AveragePool") {
        const Ints kernel = node.get("kernel_shape", Ints()), pads = node.get("pads", Ints());
        return std::equal(kernel.begin(), kernel.end(), shape.begin() + 2, shape.end()) &&
               std::ranges::all_of(pads, [](int64_t v) { return v == 0; });
    }
    Ints space;
    for (size_t i = 2; i < shape.size(); ++i) space.push_back(static_cast<int64_t>(i));
    return node.get("axes", Ints()) == space;
}

bool global_pool_at(Rewriter& rewriter, size_t index) {
    Node& node = rewriter.node(index);
    const bool maximum = node.kind == "ReduceMax";
    if (!maximum && node.kind != "ReduceMean" && node.kind != "AveragePool") return false;
    if (!covers_space(rewriter, node) || !graph::is_float(rewriter.type(node.outputs[0]).data_type))
        return false;
    if (rewriter.value(node.outputs[0]).data_dependent) return false;
    const bool keeps_axes = node.kind == "AveragePool" || node.get("keepdims", int64_t{1}) != 0;
    node.kind = maximum ? "GlobalMaxPool" : "GlobalAveragePool";
    node.attributes.clear();
    if (keeps_axes) return true;
    // Without the axes: pool, then Reshape.
    Type pooled = rewriter.type(node.inputs[0]);
    std::fill(pooled.shape.begin() + 2, pooled.shape.end(), 1);
    const ValueId result = node.outputs[0];
    Node pool = node;
    node.kind = "Reshape";
    node.attributes = {{"shape", rewriter.type(result).shape}};
    graph::Graph& graph = rewriter.graph();
    pool.name = graph.unique_name(pool.name + ".pool");
    pool.outputs = {graph.add_value(graph.unique_name(rewriter.value(result).name + ".pool"),
                                    std::move(pooled))};
    node.inputs = pool.outputs;
    rewriter.insert(index, std::move(pool));
    return true;
}

bool recognise_at(Rewriter& rewriter, size_t index) {
    return gate_at(rewriter, index) || hard_sigmoid_at(rewriter, index) ||
           global_pool_at(rewriter, index);
}

// ---- pixel shuffle
// -------------------------------------------------------------------------------------------------

struct Shuffle {
    const char* kind;
    const char* mode;
    Ints perm;
    size_t block_axes[2], channel_axis;  // in the shape of rank 6 between the Reshapes
};

bool depth_to_space_at(Rewriter& rewriter, size_t index) {
    static const Shuffle shuffles[] = {
        {"DepthToSpace", "CRD", {0, 1, 4, 2, 5, 3}, {2, 3}, 1},
        {"DepthToSpace", "DCR", {0, 3, 4, 1, 5, 2}, {1, 2}, 3},
        {"SpaceToDepth", "", {0, 3, 5, 1, 2, 4}, {3, 5}, 1},
    };
    Node& node = rewriter.node(index);
    if (node.kind != "Reshape" || node.inputs.size() != 1) return false;
    const Node* transpose = rewriter.producer(node.inputs[0], "Transpose");
    if (!transpose || !rewriter.has_one_use(node.inputs[0])) return false;
    const Node* split = rewriter.producer(transpose->inputs[0], "Reshape");
    if (!split || split->inputs.size() != 1 || !rewriter.has_one_use(transpose->inputs[0]))
        return false;
    const Ints& x = rewriter.type(split->inputs[0]).shape;
    const Ints& six = rewriter.type(split->outputs[0]).shape;
    const Ints& y = rewriter.type(node.outputs[0]).shape;
    for (const Shuffle& shuffle : shuffles) {
        if (transpose->get("perm", Ints()) != shuffle.perm || six.size() != 6 || x.size() != 4 ||
            y.size() != 4)
            continue;
        const int64_t block = six[shuffle.block_axes[0]], channels = six[shuffle.channel_axis];
        if (six[shuffle.block_axes[1]] != block || block < 2 || six[0] != x[0]) continue;
        const bool to_space = *shuffle.mode;
        // The finer of the two pictures, and the one with more channels, must be the four axes
        // around the six.
        const Ints& deep = to_space ? x : y;
        const Ints& wide = to_space ? y : x;
        const Ints expected_deep = {x[0], channels * block * block, wide[2] / block,
                                    wide[3] / block};
        const Ints expected_wide = {x[0], channels, deep[2] * block, deep[3] * block};
        if (deep != expected_deep || wide != expected_wide) continue;
        const Ints expected_six = shuffle.mode == std::string_view("CRD")
                                      ? Ints{x[0], channels, block, block, x[2], x[3]}
                                  : to_space ? Ints{x[0], block, block, channels, x[2], x[3]}
                                             : Ints{x[0], channels, y[2], block, y[3], block};
        if (six != expected_six) continue;
        Activation operation{shuffle.kind, {{"blocksize", block}}};
        if (to_space) operation.attributes["mode"] = std::string(shuffle.mode);
        become(rewriter, index, std::move(operation), split->inputs[0]);
        return true;
    }
    return false;
}

}  // namespace

Result<PassStats> recognise_patterns(graph::Graph& graph) {
    return rewrite_nodes(graph, recognise_at);
}
Result<PassStats> recognise_depth_to_space(graph::Graph& graph) {
    return rewrite_nodes(graph, depth_to_space_at);
}

}  // namespace vartml::compiler
