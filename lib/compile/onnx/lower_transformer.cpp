// SPDX-License-Identifier: Apache-2.0
// The operators of transformers that sets 23 and 24 add, made of the older ones that they stand
// for.
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "lib/compile/onnx/lower.h"
#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"

namespace vartml::onnx {
namespace {

using Shape = std::vector<int64_t>;

ValueId reshape(Builder& b, ValueId x, const Shape& shape) {
    return b.type(x).shape == shape ? x : b.emit("Reshape", {x, b.ints(shape)});
}

// "(Attention) " and what is wrong with the node.
void refuse(Builder& b, const OnnxNode& n, const std::string& problem,
            ErrorCode code = ErrorCode::bad_model) {
    b.fail(code, "(" + n.proto.op_type() + ") " + problem);
}

// Whether as many inputs are there as the operator has, none of a shape that only the run knows.
bool has_inputs(Builder& b, const OnnxNode& n, size_t least, size_t most) {
    for (size_t i = 0; i < least; ++i)
        if (n.input(i) == graph::none || n.inputs.size() > most) {
            refuse(b, n,
                   "has " + std::to_string(n.inputs.size()) + " inputs, expected the first " +
                       std::to_string(least) + " of at most " + std::to_string(most));
            return false;
        }
    for (const ValueId id : n.inputs)
        if (id != graph::none && b.graph.value(id).data_dependent) {
            refuse(b, n,
                   "reads tensor '" + b.graph.value(id).name +
                       "', whose shape depends on the data; export the model with opset 22",
                   ErrorCode::unsupported);
            return false;
        }
    return true;
}

// x * sigmoid(alpha * x)
void swish(Builder& b, ModelFile&, OnnxNode& n) {
    ValueId gate = n.input(0);
    if (const float alpha = n.get("alpha", 1.0F); alpha != 1.0F)
        gate = b.emit("Mul", {gate, number(b, alpha, gate)});
    bind_first(b, n, b.emit("Mul", {n.input(0), b.emit("Sigmoid", {gate})}));
}

// Statistics are at least f32 whatever `stash_type` says. The result has the type of the scale.
void rms_normalization(Builder& b, ModelFile&, OnnxNode& n) {
    if (refuse_outputs(b, n, 1)) return;
    n.attributes.erase("stash_type");
    const DataType type = b.type(n.input(1)).data_type;
    const bool is_mixed = n.input(1) != graph::none && type != b.type(n.input(0)).data_type;
    for (size_t i = 0; is_mixed && i < 2; ++i)
        n.inputs[i] = cast_to(b, n.inputs[i], DataType::float32);
    const ValueId y = b.emit("RMSNormalization", n.inputs, n.attributes);
    if (!b.error()) bind_first(b, n, is_mixed ? cast_to(b, y, type) : y);
}

// ---- Attention

// Of the batch, heads of the query and of keys, tokens of the query, of the past and of all keys,
// and the widths of a head.
struct AttentionSizes {
    int64_t batch, heads, key_heads, tokens, past, keys, width, value_width;
    int64_t group() const { return heads / key_heads; }  // heads that share keys
};

// [batch, heads, tokens, width] of a tensor [batch, tokens, heads * width].
ValueId split_heads(Builder& b, ValueId x, int64_t heads) {
    const Shape shape = b.type(x).shape;
    if (shape.size() != 3) return x;
    const ValueId split =
        b.emit("Reshape", {x, b.ints({shape[0], shape[1], heads, shape[2] / heads})});
    return b.emit("Transpose", {split}, {{"perm", Shape{0, 2, 1, 3}}});
}

// The tensors in four dimensions, past keys and values joined to the new ones.
struct Operands {
    ValueId query, key, value;
    int64_t past = 0;  // of the keys
};
std::optional<Operands> operands_of(Builder& b, const OnnxNode& n) {
    const auto text = [&](size_t i) { return to_string(b.type(n.input(i))); };
    const size_t rank = b.type(n.input(0)).shape.size();
    const int64_t heads[] = {n.get("q_num_heads", int64_t{0}), n.get("kv_num_heads", int64_t{0}),
                             n.get("kv_num_heads", int64_t{0})};
    for (size_t i = 0; i < 3; ++i) {
        const Shape& shape = b.type(n.input(i)).shape;
        if (shape.size() != rank || (rank != 3 && rank != 4)) {
            refuse(b, n,
                   "has the inputs " + text(0) + ", " + text(1) + " and " + text(2) +
                       ", expected all of rank 3 or all of rank 4");
            return {};
        }
        if (rank == 3 && (heads[i] < 1 || shape[2] % heads[i] != 0)) {
            refuse(b, n,
                   "splits " + text(i) + " into " + std::to_string(heads[i]) + " heads (" +
                       (i == 0 ? "q_num_heads" : "kv_num_heads") + "), which do not divide it");
            return {};
        }
    }
    if ((n.input(4) == graph::none) != (n.input(5) == graph::none)) {
        refuse(b, n, "has one of past_key and past_value, expected both or none");
        return {};
    }
    // Scaled before it is split, where that joins the product that makes it.
    ValueId query = n.input(0);
    const Shape& shape = b.type(query).shape;
    const auto width = static_cast<float>(rank == 3 ? shape[2] / heads[0] : shape[3]);
    if (const float scale = n.get("scale", 1 / std::sqrt(width)); scale != 1.0F)
        query = b.emit("Mul", {query, number(b, scale, query)});
    Operands all{split_heads(b, query, heads[0]), split_heads(b, n.input(1), heads[1]),
                 split_heads(b, n.input(2), heads[2])};
    if (n.input(4) != graph::none && b.type(n.input(4)).elements() != 0) {
        if (b.error()) return {};
        const int64_t added = b.type(all.key).shape[2];
        all.key = b.emit("Concat", {n.input(4), all.key}, {{"axis", int64_t{2}}});
        all.value = b.emit("Concat", {n.input(5), all.value}, {{"axis", int64_t{2}}});
        if (!b.error()) all.past = b.type(all.key).shape[2] - added;
    }
    if (b.error()) return {};
    return all;
}

std::optional<AttentionSizes> sizes_of(Builder& b, const OnnxNode& n, const Operands& all) {
    const Shape &q = b.type(all.query).shape, &k = b.type(all.key).shape,
                &v = b.type(all.value).shape;
    const bool fits = q[0] == k[0] && q[0] == v[0] && k[1] == v[1] && k[1] >= 1 &&
                      q[1] % k[1] == 0 && k[2] == v[2] && q[3] == k[3];
    const bool is_empty = b.type(all.query).elements() == 0 || b.type(all.key).elements() == 0 ||
                          b.type(all.value).elements() == 0;
    if (fits && !is_empty)
        return AttentionSizes{q[0], q[1], k[1], q[2], all.past, k[2], q[3], v[3]};
    refuse(b, n,
           "has the query " + graph::to_string(q) + ", the keys " + graph::to_string(k) +
               " and the values " + graph::to_string(v) +
               (fits ? ", expected some of each" : ", which do not go together"));
    return {};
}

constexpr float hidden = -std::numeric_limits<float>::infinity();

// 0 where the condition holds, else minus infinity, in the type of `like`.
ValueId hide_others(Builder& b, ValueId condition, ValueId like) {
    return b.emit("Where", {condition, number(b, 0, like), number(b, hidden, like)});
}

// attn_mask as a tensor that is added. From set 24 on it may end before the last keys, which are
// hidden then.
ValueId mask_of(Builder& b, const OnnxNode& n, const AttentionSizes& s, ValueId like) {
    ValueId mask = n.input(3);
    const DataType type = b.type(like).data_type;
    mask = b.type(mask).data_type == DataType::boolean ? hide_others(b, mask, like)
                                                       : cast_to(b, mask, type);
    const Shape& shape = b.type(mask).shape;
    if (b.error() || n.opset < 24 || shape.empty() || shape.back() >= s.keys) return mask;
    Shape pads(2 * shape.size(), 0);
    pads.back() = s.keys - shape.back();
    return b.emit("Pad", {mask, b.ints(pads), number(b, hidden, mask)});
}

// first, first + 1, …
ValueId positions(Builder& b, int64_t first, int64_t count) {
    Shape numbers(static_cast<size_t>(count));
    std::iota(numbers.begin(), numbers.end(), first);
    return b.ints(numbers);
}

// [tokens, keys]: no key behind the token that asks, where the past comes first. Of keys of which
// only the first are there (nonpad_kv_seqlen) the tokens are the last: [batch, 1, tokens, keys].
// given: Attention of set 24.
ValueId causal_mask(Builder& b, const OnnxNode& n, const AttentionSizes& s, ValueId like) {
    ValueId rows = reshape(b, positions(b, s.past, s.tokens), {s.tokens, 1});
    if (n.input(6) != graph::none && s.past == 0) {
        const ValueId before = b.emit("Sub", {n.input(6), b.ints({s.tokens})});
        rows = b.emit("Add", {rows, reshape(b, before, {s.batch, 1, 1, 1})});
    }
    return hide_others(b, b.emit("GreaterOrEqual", {rows, positions(b, 0, s.keys)}), like);
}

// [batch, 1, 1, keys]: the first nonpad_kv_seqlen keys of each sequence.
ValueId padding_mask(Builder& b, const AttentionSizes& s, ValueId lengths, ValueId like) {
    const ValueId ends = reshape(b, lengths, {s.batch, 1, 1, 1});
    return hide_others(b, b.emit("Less", {positions(b, 0, s.keys), ends}), like);
}

// All that is added to the scores, or none.
ValueId bias_of(Builder& b, const OnnxNode& n, const AttentionSizes& s, ValueId scores) {
    ValueIds parts;
    const Shape all = b.type(scores).shape;
    if (n.input(3) != graph::none) {
        parts.push_back(mask_of(b, n, s, scores));
        const Shape shape = b.type(parts.back()).shape;
        if (!b.error() && graph::broadcast(all, shape) != all)
            refuse(b, n,
                   "has the attn_mask " + graph::to_string(b.type(n.input(3)).shape) +
                       ", which does not broadcast to the scores " + graph::to_string(all));
    }
    if (n.get("is_causal", int64_t{0}) != 0) parts.push_back(causal_mask(b, n, s, scores));
    if (n.input(6) != graph::none) parts.push_back(padding_mask(b, s, n.input(6), scores));
    ValueId bias = graph::none;
    for (const ValueId part : parts)
        bias = bias == graph::none ? part : b.emit("Add", {bias, part});
    return bias;
}

// softcap * tanh(scores / softcap)
ValueId soften(Builder& b, const OnnxNode& n, ValueId scores) {
    const float cap = n.get("softcap", 0.0F);
    if (!(cap > 0)) return scores;
    const ValueId factor = number(b, cap, scores);
    return b.emit("Mul", {b.emit("Tanh", {b.emit("Div", {scores, factor})}), factor});
}

ValueId probabilities(Builder& b, OnnxNode& n, ValueId scores) {
    const DataType own = b.type(scores).data_type;
    const auto precision = static_cast<int32_t>(n.get("softmax_precision", int64_t{0}));
    const DataType type = precision == 0 ? own : data_type(precision);
    if (!graph::is_float(type))
        refuse(b, n,
               "computes its softmax in " + elem_type_name(precision) +
                   " by its attribute 'softmax_precision', which is no float type here; export "
                   "it with FLOAT",
               ErrorCode::unsupported);
    const ValueId y = b.emit("Softmax", {cast_to(b, scores, type)}, {{"axis", int64_t{-1}}});
    return cast_to(b, y, own);
}

// softmax(soften(Q * scale * K^T) + masks) * V, head by head. Heads that share keys are rows of one
// product, so that no keys are copied.
void attention(Builder& b, ModelFile&, OnnxNode& n) {
    if (!has_inputs(b, n, 3, n.opset < 24 ? 6 : 7)) return;
    const int64_t mode = n.get("qk_matmul_output_mode", int64_t{0});
    if (mode < 0 || mode > 3)
        return refuse(b, n,
                      "has qk_matmul_output_mode " + std::to_string(mode) + ", expected 0 to 3");
    const auto all = operands_of(b, n);
    const auto sizes = all ? sizes_of(b, n, *all) : std::nullopt;
    if (!sizes) return;
    const AttentionSizes& s = *sizes;
    const Shape grouped{s.batch, s.key_heads, s.group() * s.tokens, s.width};
    Shape single = grouped;
    single[3] = s.keys;
    const ValueId product =
        b.emit("MatMul", {reshape(b, all->query, grouped), swap_last_two(b, all->key)});
    ValueId stages[4];  // by qk_matmul_output_mode
    stages[0] = reshape(b, product, {s.batch, s.heads, s.tokens, s.keys});
    const ValueId bias = b.error() ? graph::none : bias_of(b, n, s, stages[0]);
    // The mask comes last: softened, minus infinity would be a number. ONNX up to 1.21 had it
    // first.
    stages[1] = soften(b, n, stages[0]);
    stages[2] = bias == graph::none ? stages[1] : b.emit("Add", {stages[1], bias});
    stages[3] = probabilities(b, n, stages[2]);
    // A token that may see no key at all gets zeros. given: the same.
    const bool is_masked = n.input(3) != graph::none || n.input(6) != graph::none;
    if (is_masked && !b.error() && !b.type(bias).shape.empty()) {
        const ValueId most = b.emit("ReduceMax", {bias, b.ints({-1})});
        const ValueId sees_none = b.emit("Equal", {most, number(b, hidden, bias)});
        stages[3] = b.emit("Where", {sees_none, number(b, 0, stages[3]), stages[3]});
    }
    ValueId y = b.emit("MatMul", {reshape(b, stages[3], single), all->value});
    y = reshape(b, y, {s.batch, s.heads, s.tokens, s.value_width});
    if (b.type(n.input(0)).shape.size() == 3) {
        y = b.emit("Transpose", {y}, {{"perm", Shape{0, 2, 1, 3}}});
        y = reshape(b, y, {s.batch, s.tokens, s.heads * s.value_width});
    }
    bind_first(b, n, y);
    const ValueId others[] = {all->key, all->value, stages[mode]};
    for (size_t i = 0; i < 3 && !b.error(); ++i)
        if (n.has_output(i + 1)) b.bind(n.outputs[i + 1], others[i]);
}

// ---- RotaryEmbedding

ValueId slice(Builder& b, ValueId x, int64_t start, int64_t end, int64_t step = 1) {
    return b.emit("Slice", {x, b.ints({start}), b.ints({end}), b.ints({-1}), b.ints({step})});
}

ValueId join(Builder& b, ValueId x, ValueId y) {
    return b.emit("Concat", {x, y}, {{"axis", int64_t{-1}}});
}

// Pairs of the first `rotary_embedding_dim` elements of each head are turned by the angle of their
// token: halves are paired, or with `interleaved` neighbours.
void rotary_embedding(Builder& b, ModelFile&, OnnxNode& n) {
    if (!has_inputs(b, n, 3, 4)) return;
    const auto text = [&](size_t i) { return to_string(b.type(n.input(i))); };
    const Shape shape = b.type(n.input(0)).shape;
    const int64_t heads = n.get("num_heads", int64_t{0});
    ValueId x = n.input(0);
    if (shape.size() == 3 && heads >= 1 && shape[2] % heads == 0)
        x = b.emit("Reshape", {x, b.ints({shape[0], shape[1], heads, shape[2] / heads})});
    else if (shape.size() != 4)
        return refuse(b, n,
                      "splits " + text(0) + " into " + std::to_string(heads) +
                          " heads (num_heads), which it cannot");
    if (b.error()) return;
    const int64_t width = b.type(x).shape[3];
    int64_t turned = n.get("rotary_embedding_dim", int64_t{0});
    if (turned == 0) turned = width;
    const bool has_positions = n.input(3) != graph::none;
    const auto angles = [&](size_t i) {
        const size_t rank = has_positions ? 2 : 3;
        const Shape& given = b.type(n.input(i)).shape;
        if (given.size() != rank || 2 * given.back() != turned || turned > width)
            refuse(b, n,
                   "turns " + std::to_string(turned) + " of " + std::to_string(width) +
                       " elements by " + text(i) + ", expected rank " + std::to_string(rank) +
                       " with half as many in the last dimension");
        const ValueId of_token =
            has_positions ? b.emit("Gather", {n.input(i), n.input(3)}, {{"axis", int64_t{0}}})
                          : n.input(i);
        return b.emit("Unsqueeze", {of_token, b.ints({shape.size() == 4 ? 1 : 2})});
    };
    const ValueId cosine = angles(1), sine = angles(2);
    const bool interleaved = n.get("interleaved", int64_t{0}) != 0;
    const int64_t half = turned / 2;
    const ValueId first = interleaved ? slice(b, x, 0, turned, 2) : slice(b, x, 0, half);
    const ValueId second = interleaved ? slice(b, x, 1, turned, 2) : slice(b, x, half, turned);
    if (b.error()) return;
    for (const ValueId angle : {cosine, sine}) {
        const Shape& pairs = b.type(first).shape;
        if (graph::broadcast(pairs, b.type(angle).shape) != pairs)
            return refuse(
                b, n,
                "turns " + text(0) + " by the angles " + text(1) + ", which do not go together");
    }
    const auto times = [&](ValueId l, ValueId r) { return b.emit("Mul", {l, r}); };
    const ValueId real = b.emit("Sub", {times(cosine, first), times(sine, second)});
    const ValueId imaginary = b.emit("Add", {times(sine, first), times(cosine, second)});
    ValueId y;
    if (interleaved) {
        const auto column = [&](ValueId v) { return b.emit("Unsqueeze", {v, b.ints({-1})}); };
        Shape rows = b.type(x).shape;
        rows[3] = turned;
        y = reshape(b, join(b, column(real), column(imaginary)), rows);
    } else {
        y = join(b, real, imaginary);
    }
    if (turned < width) y = join(b, y, slice(b, x, turned, width));
    bind_first(b, n, reshape(b, y, shape));
}

constexpr LowerRow rows[] = {
    {"", "Attention", attention,
     "is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f "
     "softmax_precision:i"},
    {"", "RMSNormalization", rms_normalization, "axis:i epsilon:f stash_type:i"},
    {"", "RotaryEmbedding", rotary_embedding, "interleaved:i num_heads:i rotary_embedding_dim:i"},
    {"", "SimplifiedLayerNormalization", rms_normalization},
    {"", "Swish", swish, "alpha:f"},
    {microsoft, "SimplifiedLayerNormalization", rms_normalization},
};

}  // namespace

std::span<const LowerRow> transformer_rows() {
    return rows;
}

}  // namespace vartml::onnx
