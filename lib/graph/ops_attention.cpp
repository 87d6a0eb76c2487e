// SPDX-License-Identifier: Apache-2.0
// Attention of com.microsoft: projection to q, k and v, and scaled dot products head by head.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/graph/kernel.h"
#include "lib/graph/ops.h"
#include "lib/graph/products.h"
#include "lib/graph/walk.h"

namespace vartml::graph {
namespace {

// What the node asks for beyond x, weight, bias, mask and a bias of the scores.
Result<void> check_attention_extras(const Node& node) {
    const std::pair<bool, const char*> extras[] = {
        {node.outputs.size() > 1, "makes the present state"},
        {has_input(node, 4) || has_input(node, 6), "reads a past state"},
        {node.get("do_rotary", int64_t{0}) != 0, "turns its inputs by their position (do_rotary)"},
        {node.get("past_present_share_buffer", int64_t{0}) != 0, "shares its state's buffer"},
    };
    for (const auto& [found, what] : extras) {
        if (!found) continue;
        return Error{ErrorCode::unsupported, "node '" + node.name + "' (" + node.kind + ") " +
                                                 what + ", which cannot be compiled"};
    }
    return {};
}

// com.microsoft: x [batch, sequence, width] times weight [width, q + k + v].
Result<Types> infer_attention(const Graph& graph, const Node& node) {
    if (auto ok = check_attention_extras(node); !ok) return ok.error();
    const Type &x = input_type(graph, node, 0), &w = input_type(graph, node, 1);
    if (x.shape.size() != 3 || w.shape.size() != 2 || x.shape[2] != w.shape[0]) {
        return bad_node(node, "has inputs " + to_string(x) + " and " + to_string(w) +
                                  ", expected rank 3 and rank 2 that go together");
    }
    const auto sizes = node.get("qkv_hidden_sizes", std::vector<int64_t>(3, w.shape[1] / 3));
    const int64_t heads = node.get("num_heads", int64_t{0});
    const bool split = sizes.size() == 3 && sizes[0] == sizes[1] && sizes[0] >= 1 &&
                       sizes[2] >= 1 && sizes[0] + sizes[1] + sizes[2] == w.shape[1];
    if (!split || heads < 1 || sizes[0] % heads != 0 || sizes[2] % heads != 0) {
        return bad_node(node, "splits the weight " + to_string(w) + " into " + to_string(sizes) +
                                  " and " + std::to_string(heads) +
                                  " heads, which do not go together");
    }
    const int64_t batch = x.shape[0], length = x.shape[1];
    const auto is_one_of = [&](size_t input, std::initializer_list<std::vector<int64_t>> shapes) {
        return !has_input(node, input) ||
               std::ranges::find(shapes, input_type(graph, node, input).shape) != shapes.end();
    };
    if (!is_one_of(2, {{w.shape[1]}}) ||
        !is_one_of(3, {{batch}, {2 * batch}, {batch, length}, {batch, length, length}}) ||
        !is_one_of(5, {{1, 1, length, length},
                       {1, heads, length, length},
                       {batch, 1, length, length},
                       {batch, heads, length, length}})) {
        return bad_node(node, "has a bias or a mask that does not fit its input " + to_string(x) +
                                  " and " + std::to_string(heads) + " heads");
    }
    return Types{{x.data_type, {batch, length, sizes[2]}}};
}

// The projection, then scores and their product with v.
uint64_t macs_attention(const Graph& graph, const Node& node) {
    const auto &x = input_type(graph, node, 0).shape, &w = input_type(graph, node, 1).shape;
    const uint64_t tokens = static_cast<uint64_t>(x[0] * x[1]);
    const uint64_t width = static_cast<uint64_t>(w[1] / 3);
    const uint64_t scores = saturating_product(tokens, static_cast<uint64_t>(x[1]));
    return saturating_sum(saturating_product(tokens, static_cast<uint64_t>(w[0] * w[1])),
                          saturating_product(saturating_product(2, scores), width));
}

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

// x [batch, length, inputs] times weight [inputs, q + k + v].
struct AttentionSizes {
    int64_t batch, length, inputs, q, k, v, heads;
    int64_t width() const { return q + k + v; }
    int64_t head() const { return q / heads; }
    int64_t v_head() const { return v / heads; }
};

AttentionSizes sizes_of(const Call& call) {
    const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
    const auto parts = call.node.get("qkv_hidden_sizes", std::vector<int64_t>(3, w[1] / 3));
    return {x[0], x[1], x[2], parts[0], parts[1], parts[2], call.node.get("num_heads", int64_t{1})};
}

// Whether the mask hides a column from a row of scores. A vector holds the ends of all sequences,
// then perhaps their starts; a matrix has a row for each, a stack of them a matrix.
bool is_hidden(const Shape& shape, const int64_t* mask, const AttentionSizes& s, int64_t batch,
               int64_t row, int64_t column) {
    switch (shape.size()) {
        case 1:
            return column >= mask[batch] ||
                   (shape[0] == 2 * s.batch && column < mask[batch + s.batch]);
        case 2:
            return mask[batch * s.length + column] <= 0;
        default:
            return mask[(batch * s.length + row) * s.length + column] <= 0;
    }
}

// What is added to the scores of one sequence, [length, length]: `filter` where they are hidden,
// the lowest number behind the diagonal of a unidirectional node.
template <typename T>
std::vector<T> additions(const Call& call, const AttentionSizes& s, const int64_t* mask,
                         int64_t batch) {
    const T filter = static_cast<T>(call.node.get("mask_filter_value", -10000.0F));
    const bool causal = call.node.get("unidirectional", int64_t{0}) != 0;
    std::vector<T> added;
    for (int64_t row = 0; row < s.length; ++row) {
        for (int64_t column = 0; column < s.length; ++column) {
            const bool hidden =
                mask && is_hidden(call.inputs[3].shape, mask, s, batch, row, column);
            added.push_back(causal && column > row ? std::numeric_limits<T>::lowest()
                            : hidden               ? filter
                                                   : T());
        }
    }
    return added;
}

template <typename T>
void softmax(T* row, int64_t n) {
    const auto largest = static_cast<double>(*std::max_element(row, row + n));
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double e = std::exp(static_cast<double>(row[i]) - largest);
        row[i] = static_cast<T>(e);
        sum += e;
    }
    for (int64_t i = 0; i < n; ++i) row[i] = static_cast<T>(static_cast<double>(row[i]) / sum);
}

// The operands at work.
template <typename T>
struct Attention {
    AttentionSizes sizes;
    T scale;
    std::vector<T> qkv;                     // [batch, length, q + k + v]
    const T* bias;                          // of the scores, or nullptr
    Strides bias_strides;                   // along batch, head, row and column
    std::vector<T> keys = {}, scores = {};  // [head, length] and [length, length] of one head

    // The probabilities of one head.
    void score(int64_t batch, int64_t head, const std::vector<T>& added) {
        const int64_t n = sizes.length, width = sizes.width(), size = sizes.head();
        const T* q = qkv.data() + batch * n * width + head * size;
        keys.resize(static_cast<size_t>(size * n));
        for (int64_t at = 0; at < n; ++at)
            for (int64_t i = 0; i < size; ++i)
                keys[static_cast<size_t>(i * n + at)] = q[at * width + sizes.q + i];
        scores.assign(static_cast<size_t>(n * n), T());
        add_product(n, n, size, q, width, keys.data(), n, scores.data(), n);
        const T* more = bias ? bias + batch * bias_strides[0] + head * bias_strides[1] : nullptr;
        for (int64_t row = 0; row < n; ++row) {
            T* s = scores.data() + row * n;
            for (int64_t column = 0; column < n; ++column) {
                s[column] = s[column] * scale + added[static_cast<size_t>(row * n + column)];
                if (more) s[column] += more[row * bias_strides[2] + column * bias_strides[3]];
            }
            softmax(s, n);
        }
    }
};

// x weight bias? mask? _ bias of the scores?
template <typename T>
void attention_as(const Call& call) {
    const AttentionSizes s = sizes_of(call);
    const int64_t n = s.length, width = s.width();
    const auto optional = [&](size_t i) { return call.has_input(i) ? call.inputs[i] : Array(); };
    const Numbers<T> x(call.inputs[0]), weight(call.inputs[1]), bias(optional(2));
    const Numbers<int64_t> mask(optional(3));
    const Numbers<T> score_bias(optional(5));
    const float scale = call.node.get("scale", 0.0F);
    Attention<T> work{
        .sizes = s,
        .scale = scale != 0 ? static_cast<T>(scale) : 1 / std::sqrt(static_cast<T>(s.head())),
        .qkv = std::vector<T>(static_cast<size_t>(s.batch * n * width)),
        .bias = score_bias.data(),
        .bias_strides = score_bias.data()
                            ? broadcast_strides(call.inputs[5].shape, {s.batch, s.heads, n, n})
                            : Strides{}};
    for (int64_t i = 0; bias.data() && i < s.batch * n; ++i)
        std::copy_n(bias.data(), width, work.qkv.data() + i * width);
    add_product(s.batch * n, width, s.inputs, x.data(), s.inputs, weight.data(), width,
                work.qkv.data(), width);
    Sums<T> y(call.outputs[0]);
    y.fill(T());
    for (int64_t b = 0; b < s.batch; ++b) {
        const std::vector<T> added = additions<T>(call, s, mask.data(), b);
        for (int64_t h = 0; h < s.heads; ++h) {
            work.score(b, h, added);
            const T* v = work.qkv.data() + b * n * width + s.q + s.k + h * s.v_head();
            add_product(n, s.v_head(), n, work.scores.data(), n, v, width,
                        y.data() + b * n * s.v + h * s.v_head(), s.v);
        }
    }
    y.store();
}

Result<void> attention(const Call& call) {
    const bool known = with_float(call.inputs[0].type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) attention_as<Computed<T>>(call);
    });
    if (!known) return no_type(call, call.inputs[0].type);
    return {};
}

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr OpInfo rows[] = {
    {"Attention",
     2,
     7,
     1,
     2,
     "do_rotary:i mask_filter_value:f num_heads:i* past_present_share_buffer:i qkv_hidden_sizes:is "
     "rotary_embedding_dim:i scale:f unidirectional:i",
     infer_attention,
     count_none,
     cpu::attention,
     {},
     macs_attention},
};

}  // namespace

std::span<const OpInfo> attention_ops() {
    return rows;
}

}  // namespace vartml::graph
