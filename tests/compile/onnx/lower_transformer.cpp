// SPDX-License-Identifier: Apache-2.0
// Attention, RotaryEmbedding, RMSNormalization and Swish beside their formulas in plain loops:
// their inputs are constants, so that the importer computes them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lib/compile/onnx/import.h"
#include "lib/graph/numbers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::onnx {
namespace {

using test::TinyOnnx;
using Ints = TinyOnnx::Ints;
using Numbers = std::vector<double>;
using Attributes = std::vector<std::pair<std::string, TinyOnnx::Attribute>>;

// "model.onnx" and what its outputs are, or the refusal without the folder.
struct Outcome {
    std::vector<Ints> shapes;
    std::vector<Numbers> outputs;
    std::string refusal;
};
Outcome import(const TinyOnnx& model) {
    const test::TempDir folder;
    model.save(folder / "model.onnx");
    const auto imported = import_onnx(folder / "model.onnx");
    if (!imported) {
        std::string text = imported.error().message;
        text.erase(0, text.find("model.onnx"));
        return {{}, {}, text};
    }
    Outcome outcome;
    for (const graph::ValueId id : imported->graph.outputs) {
        for (const graph::Node& node : imported->graph.nodes) {
            if (node.outputs[0] != id || node.kind != "Identity") continue;
            const graph::Value& value = imported->graph.value(node.inputs[0]);
            outcome.shapes.push_back(value.type.shape);
            outcome.outputs.push_back(graph::read_numbers<double>(value));
        }
    }
    return outcome;
}

int64_t product(const Ints& shape) {
    int64_t n = 1;
    for (const int64_t d : shape) n *= d;
    return n;
}

// Small numbers that differ from each other and by `seed`.
TinyOnnx::Floats some(const Ints& shape, int64_t seed) {
    TinyOnnx::Floats numbers;
    for (int64_t i = 0; i < product(shape); ++i)
        numbers.push_back(std::sin(static_cast<float>(i * 7 + seed * 13)));
    return numbers;
}

void expect_near(const Numbers& found, const Numbers& expected, const char* what) {
    ASSERT_EQ(found.size(), expected.size()) << what;
    for (size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], expected[i], 1e-5) << what << ", element " << i;
}

// ---- Attention

enum class Mask { none, floats, integers, booleans };
struct AttentionCase {
    const char* name;
    int64_t heads = 2, key_heads = 2, past = 0, value_width = 3;
    Mask mask = Mask::none;
    int64_t missing = 0;  // keys at the end that the mask does not have
    bool causal = false, three = false;
    float scale = 0, softcap = 0;
    int64_t mode = 0, precision = 0;
    Ints lengths = {};  // nonpad_kv_seqlen
};
constexpr int64_t batch = 2, tokens = 3, added = 4, width = 2;

// Index in [batch, heads, tokens, width], or in [batch, tokens, heads * width].
size_t at(bool three, int64_t b, int64_t h, int64_t t, int64_t i, int64_t heads, int64_t length,
          int64_t size) {
    return static_cast<size_t>(three ? ((b * length + t) * heads + h) * size + i
                                     : ((b * heads + h) * length + t) * size + i);
}

struct Expected {
    Numbers y, keys, scores;
};
Expected formula(const AttentionCase& c, const TinyOnnx::Floats& q, const TinyOnnx::Floats& k,
                 const TinyOnnx::Floats& v, const TinyOnnx::Floats& past_k,
                 const TinyOnnx::Floats& past_v, const TinyOnnx::Floats& mask) {
    const int64_t keys = c.past + added, columns = keys - c.missing;
    const auto stored = [&](const TinyOnnx::Floats& past, const TinyOnnx::Floats& now, int64_t b,
                            int64_t h, int64_t t, int64_t i, int64_t size) {
        return static_cast<double>(
            t < c.past ? past[at(false, b, h, t, i, c.key_heads, c.past, size)]
                       : now[at(c.three, b, h, t - c.past, i, c.key_heads, added, size)]);
    };
    Expected e;
    e.y.resize(static_cast<size_t>(batch * c.heads * tokens * c.value_width));
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < c.key_heads; ++h)
            for (int64_t t = 0; t < keys; ++t)
                for (int64_t i = 0; i < width; ++i)
                    e.keys.push_back(stored(past_k, k, b, h, t, i, width));
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < c.heads; ++h)
            for (int64_t t = 0; t < tokens; ++t) {
                const int64_t from = h / (c.heads / c.key_heads);
                Numbers p;
                double sum = 0;
                for (int64_t s = 0; s < keys; ++s) {
                    double score = 0;
                    for (int64_t i = 0; i < width; ++i)
                        score += static_cast<double>(
                                     q[at(c.three, b, h, t, i, c.heads, tokens, width)]) *
                                 stored(past_k, k, b, from, s, i, width);
                    score *= c.scale != 0 ? static_cast<double>(c.scale) : 1 / std::sqrt(2.0);
                    const double raw = score;
                    if (c.softcap > 0)
                        score = static_cast<double>(c.softcap) *
                                std::tanh(score / static_cast<double>(c.softcap));
                    const double softened = score;
                    // Of keys of which only the first are there the tokens are the last.
                    const int64_t before = c.past == 0 && !c.lengths.empty()
                                               ? c.lengths[static_cast<size_t>(b)] - tokens
                                               : c.past;
                    bool hidden = c.causal && s > before + t;
                    if (c.mask != Mask::none) {
                        const double m =
                            s < columns
                                ? static_cast<double>(mask[static_cast<size_t>(t * columns + s)])
                                : 0;
                        if (c.mask != Mask::booleans) score += m;
                        hidden |= s >= columns || (c.mask == Mask::booleans && m == 0);
                    }
                    if (!c.lengths.empty()) hidden |= s >= c.lengths[static_cast<size_t>(b)];
                    if (hidden) score = -std::numeric_limits<double>::infinity();
                    e.scores.push_back(c.mode == 0 ? raw : c.mode == 1 ? softened : score);
                    p.push_back(std::exp(score));
                    sum += p.back();
                }
                for (int64_t s = 0; s < keys; ++s) {
                    const double share = sum > 0 ? p[static_cast<size_t>(s)] / sum : 0;
                    if (c.mode == 3)
                        e.scores[e.scores.size() - p.size() + static_cast<size_t>(s)] = share;
                    for (int64_t i = 0; i < c.value_width; ++i)
                        e.y[at(c.three, b, h, t, i, c.heads, tokens, c.value_width)] +=
                            share * stored(past_v, v, b, from, s, i, c.value_width);
                }
            }
    return e;
}

// The node with all of its outputs; the mask is [tokens, keys].
TinyOnnx attention(const AttentionCase& c, Expected& expected) {
    TinyOnnx m(24, 11);
    const auto tensor = [&](const char* name, int64_t heads, int64_t length, int64_t size,
                            bool three, int seed) {
        const Ints shape =
            three ? Ints{batch, length, heads * size} : Ints{batch, heads, length, size};
        const auto numbers = some(shape, seed);
        m.floats(name, shape, numbers);
        return numbers;
    };
    const auto q = tensor("q", c.heads, tokens, width, c.three, 1);
    const auto k = tensor("k", c.key_heads, added, width, c.three, 2);
    const auto v = tensor("v", c.key_heads, added, c.value_width, c.three, 3);
    std::vector<std::string> inputs{"q", "k", "v", "", "", "", ""};
    TinyOnnx::Floats past_k, past_v, mask;
    if (c.past > 0) {
        past_k = tensor("past_k", c.key_heads, c.past, width, false, 4);
        past_v = tensor("past_v", c.key_heads, c.past, c.value_width, false, 5);
        inputs[4] = "past_k", inputs[5] = "past_v";
    }
    const Ints mask_shape{tokens, c.past + added - c.missing};
    if (c.mask != Mask::none) {
        mask = some(mask_shape, 6);
        if (c.mask == Mask::booleans)
            for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 != 1 ? 1.0F : 0.0F;
        if (c.mask == Mask::integers)
            for (size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<float>(i % 4);
        m.floats("mask", mask_shape, mask);
        inputs[3] = "mask";
        if (c.mask != Mask::floats) {
            const bool truths = c.mask == Mask::booleans;
            m.node("Cast", {"mask"}, {"cast"},
                   {{"to", int64_t{truths ? TinyOnnx::boolean : TinyOnnx::int32}}});
            inputs[3] = "cast";
        }
    }
    if (!c.lengths.empty()) {
        m.ints("lengths", {batch}, c.lengths);
        inputs[6] = "lengths";
    }
    while (inputs.back().empty()) inputs.pop_back();
    Attributes attributes{{"is_causal", int64_t{c.causal}}, {"qk_matmul_output_mode", c.mode}};
    if (c.scale != 0) attributes.emplace_back("scale", c.scale);
    if (c.softcap != 0) attributes.emplace_back("softcap", c.softcap);
    if (c.precision != 0) attributes.emplace_back("softmax_precision", c.precision);
    if (c.three) {
        attributes.emplace_back("q_num_heads", c.heads);
        attributes.emplace_back("kv_num_heads", c.key_heads);
    }
    m.node("Attention", inputs, {"y", "keys", "values", "scores"}, attributes);
    m.output("y").output("keys").output("scores");
    expected = formula(c, q, k, v, past_k, past_v, mask);
    return m;
}

const AttentionCase attention_cases[] = {
    {.name = "as it is"},
    {.name = "three dimensions", .three = true},
    {.name = "heads share keys", .heads = 6},
    {.name = "heads share keys, three dimensions", .heads = 6, .three = true},
    {.name = "all heads share keys", .heads = 3, .key_heads = 1},
    {.name = "scale", .scale = 0.3F},
    {.name = "causal", .causal = true},
    {.name = "causal behind a past", .past = 2, .causal = true},
    {.name = "past, three dimensions", .heads = 4, .past = 2, .three = true},
    {.name = "a float mask", .mask = Mask::floats},
    {.name = "a mask of whole numbers", .mask = Mask::integers},
    {.name = "a boolean mask", .mask = Mask::booleans},
    {.name = "a float mask, causal", .past = 1, .mask = Mask::floats, .causal = true},
    {.name = "a short float mask", .mask = Mask::floats, .missing = 2},
    {.name = "a short boolean mask", .mask = Mask::booleans, .missing = 1},
    {.name = "softcap", .softcap = 0.7F},
    {.name = "lengths", .lengths = {1, 3}},
    {.name = "lengths, causal", .causal = true, .lengths = {3, 4}},
    {.name = "lengths below the tokens, causal", .causal = true, .lengths = {1, 2}},
    {.name = "no key, probabilities", .mode = 3, .lengths = {0, 2}},
    {.name = "lengths and a mask", .mask = Mask::booleans, .lengths = {2, 4}},
    {.name = "softcap, causal", .causal = true, .softcap = 0.7F},
    {.name = "softcap and a boolean mask", .mask = Mask::booleans, .softcap = 0.7F},
    {.name = "scores in front of the mask", .mask = Mask::floats, .mode = 1},
    {.name = "softened scores", .mask = Mask::floats, .softcap = 2, .mode = 1},
    {.name = "masked scores", .mask = Mask::floats, .softcap = 2, .mode = 2},
    {.name = "probabilities", .heads = 4, .mode = 3},
    {.name = "softmax in double", .precision = TinyOnnx::float64},
};
TEST(LowerAttention, ComputesItsFormula) {
    for (const AttentionCase& c : attention_cases) {
        SCOPED_TRACE(c.name);
        Expected expected;
        const Outcome found = import(attention(c, expected));
        ASSERT_EQ(found.refusal, "");
        ASSERT_EQ(found.outputs.size(), 3u);
        const Ints shape = c.three ? Ints{batch, tokens, c.heads * c.value_width}
                                   : Ints{batch, c.heads, tokens, c.value_width};
        EXPECT_EQ(found.shapes[0], shape);
        EXPECT_EQ(found.shapes[2], (Ints{batch, c.heads, tokens, c.past + added}));
        expect_near(found.outputs[0], expected.y, "y");
        expect_near(found.outputs[1], expected.keys, "keys");
        expect_near(found.outputs[2], expected.scores, "scores");
    }
}

// Keys are not copied for the heads that share them.
TEST(LowerAttention, MakesOneProductOfTheHeadsThatShareKeys) {
    const test::TempDir folder;
    TinyOnnx m(23, 11);
    m.input("q", {1, 4, 5, 8}).input("k", {1, 2, 6, 8}).input("v", {1, 2, 6, 8});
    m.node("Attention", {"q", "k", "v"}, {"y"}).output("y");
    m.save(folder / "model.onnx");
    const auto imported = import_onnx(folder / "model.onnx");
    ASSERT_TRUE(imported) << imported.error().message;
    std::vector<std::string> kinds;
    for (const graph::Node& node : imported->graph.nodes) {
        kinds.push_back(node.kind);
        if (node.kind != "MatMul") continue;
        EXPECT_EQ(imported->graph.value(node.outputs[0]).type.shape[1], 2);
    }
    EXPECT_EQ(kinds, (std::vector<std::string>{"Mul", "Reshape", "Transpose", "MatMul", "Reshape",
                                               "Softmax", "Reshape", "MatMul", "Reshape"}));
}

struct Refused {
    const char* op;
    std::vector<std::string> inputs;
    Attributes attributes;
    int opset;
    const char* want;
};
const Refused refused[] = {
    {"Attention", {"q", "q"}, {}, 23, "has 2 inputs, expected the first 3 of at most 6"},
    {"Attention",
     {"q", "q", "q", "", "", "", "lengths"},
     {},
     23,
     "has 7 inputs, expected the first 3 of at most 6"},
    {"Attention",
     {"q", "q", "q"},
     {},
     22,
     "which operator set 22 does not have yet; it is there "
     "from set 23 on: export the model with opset 23"},
    {"Attention",
     {"q", "x", "q"},
     {},
     23,
     "has the inputs f32[1,2,4,6], f32[1,4,6] and f32[1,2,4,6], expected all of rank 3 or all of "
     "rank 4"},
    {"Attention",
     {"x", "x", "x"},
     {{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{4}}},
     23,
     "splits f32[1,4,6] into 4 heads (kv_num_heads), which do not divide it"},
    {"Attention", {"x", "x", "x"}, {}, 23, "splits f32[1,4,6] into 0 heads (q_num_heads)"},
    {"Attention",
     {"x", "x", "x"},
     {{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{3}}},
     23,
     "has the query [1,2,4,3], the keys [1,3,4,2] and the values [1,3,4,2], which do not go "
     "together"},
    {"Attention",
     {"q", "q", "q", "", "q"},
     {},
     23,
     "has one of past_key and past_value, expected both or none"},
    {"Attention",
     {"q", "q", "q", "short"},
     {},
     23,
     "has the attn_mask [4,3], which does not broadcast to the scores [1,2,4,4]"},
    {"Attention",
     {"q", "q", "q"},
     {{"qk_matmul_output_mode", int64_t{4}}},
     23,
     "has qk_matmul_output_mode 4, expected 0 to 3"},
    {"Attention",
     {"q", "q", "q"},
     {{"is_causal", int64_t{2}}},
     23,
     "has the attribute 'is_causal' with the value 2, known are 0 and 1"},
    {"Attention",
     {"q", "q", "q"},
     {{"softmax_precision", int64_t{17}}},
     23,
     "computes its softmax in FLOAT8E4M3FN by its attribute 'softmax_precision', which is no float "
     "type here; export it with FLOAT"},
    {"Attention",
     {"q", "q", "q"},
     {{"window", int64_t{1}}},
     23,
     "has the attribute 'window', whose meaning is not known here; export it without"},
    {"Attention",
     {"found", "found", "found"},
     {},
     23,
     "reads tensor 'found', whose shape depends on the data; export the model with opset 22"},
    {"RotaryEmbedding", {"q", "angles"}, {}, 23, "has 2 inputs, expected the first 3 of at most 4"},
    {"RotaryEmbedding", {"x", "angles", "angles"}, {}, 23, "splits f32[1,4,6] into 0 heads"},
    {"RotaryEmbedding",
     {"q", "angles", "angles"},
     {{"rotary_embedding_dim", int64_t{4}}},
     23,
     "turns 4 of 6 elements by f32[1,4,3], expected rank 3 with half as many in the last "
     "dimension"},
    {"RotaryEmbedding",
     {"q", "angles", "angles", "lengths"},
     {},
     23,
     "turns 6 of 6 elements by f32[1,4,3], expected rank 2"},
    {"RotaryEmbedding",
     {"q", "angles", "angles"},
     {{"interleaved", int64_t{3}}},
     23,
     "has the attribute 'interleaved' with the value 3, known are 0 and 1"},
    {"TensorScatter",
     {"q", "q"},
     {},
     24,
     "uses TensorScatter (opset 24), an operator on caches of keys and values that neither the "
     "NPU nor the CPU partition runs; export the model without the cache"},
    {"Swish", {"q"}, {{"beta", 1.0F}}, 24, "has the attribute 'beta', whose meaning is not known"},
};
TEST(LowerTransformer, RefusesWhatItDoesNotDoInOneSentence) {
    for (const Refused& row : refused) {
        TinyOnnx m(row.opset, 10);
        m.input("q", {1, 2, 4, 6}).input("x", {1, 4, 6}).input("angles", {1, 4, 3});
        m.floats("short", {4, 3}, some({4, 3}, 1)).ints("lengths", {1}, {2});
        m.node("NonZero", {"x"}, {"places"});
        m.node("Cast", {"places"}, {"found"}, {{"to", int64_t{1}}});
        m.node(row.op, row.inputs, {"y"}, row.attributes).output("y");
        const std::string text = import(m).refusal;
        EXPECT_TRUE(text.starts_with("model.onnx: node 'y_node' ")) << text;
        EXPECT_NE(text.find(row.want), std::string::npos) << text << "\nwanted: " << row.want;
        EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
}

// ---- RotaryEmbedding

struct RotaryCase {
    const char* name;
    bool three = false, interleaved = false, positions = false;
    int64_t turned = 0;
};
TEST(LowerRotaryEmbedding, TurnsPairsByTheAngleOfTheirToken) {
    constexpr int64_t heads = 2, length = 3, size = 6;
    for (const RotaryCase& c : {
             RotaryCase{.name = "halves"},
             RotaryCase{.name = "neighbours", .interleaved = true},
             RotaryCase{.name = "three dimensions", .three = true},
             RotaryCase{.name = "positions", .positions = true},
             RotaryCase{.name = "a part", .turned = 4},
             RotaryCase{.name = "all but halves",
                        .three = true,
                        .interleaved = true,
                        .positions = true,
                        .turned = 2},
         }) {
        SCOPED_TRACE(c.name);
        const int64_t turned = c.turned != 0 ? c.turned : size, half = turned / 2;
        const Ints shape =
            c.three ? Ints{batch, length, heads * size} : Ints{batch, heads, length, size};
        const Ints cache = c.positions ? Ints{8, half} : Ints{batch, length, half};
        const Ints positions{7, 0, 2, 5, 5, 1};
        const auto x = some(shape, 1), cosine = some(cache, 2), sine = some(cache, 3);
        TinyOnnx m(23, 11);
        m.floats("x", shape, x).floats("cos", cache, cosine).floats("sin", cache, sine);
        m.ints("positions", {batch, length}, positions);
        Attributes attributes{{"interleaved", int64_t{c.interleaved}},
                              {"rotary_embedding_dim", c.turned}};
        if (c.three) attributes.emplace_back("num_heads", heads);
        m.node("RotaryEmbedding", {"x", "cos", "sin", c.positions ? "positions" : ""}, {"y"},
               attributes);
        const Outcome found = import(m.output("y"));
        ASSERT_EQ(found.refusal, "");
        EXPECT_EQ(found.shapes[0], shape);
        Numbers expected(x.begin(), x.end());
        for (int64_t b = 0; b < batch; ++b)
            for (int64_t h = 0; h < heads; ++h)
                for (int64_t t = 0; t < length; ++t)
                    for (int64_t i = 0; i < half; ++i) {
                        const auto place = [&](int64_t at_i) {
                            return at(c.three, b, h, t, at_i, heads, length, size);
                        };
                        const size_t l = place(c.interleaved ? 2 * i : i),
                                     r = place(c.interleaved ? 2 * i + 1 : half + i);
                        const int64_t token = b * length + t;
                        const auto angle = static_cast<size_t>(
                            (c.positions ? positions[static_cast<size_t>(token)] : token) * half +
                            i);
                        const auto co = static_cast<double>(cosine[angle]),
                                   si = static_cast<double>(sine[angle]),
                                   xl = static_cast<double>(x[l]), xr = static_cast<double>(x[r]);
                        expected[l] = co * xl - si * xr;
                        expected[r] = si * xl + co * xr;
                    }
        expect_near(found.outputs[0], expected, "y");
    }
}

// ---- RMSNormalization, Swish

TEST(LowerRmsNormalization, DividesByTheRootOfTheMeanSquare) {
    for (const int64_t axis : {-1, 1, 0}) {
        const Ints shape{2, 3, 4};
        const auto x = some(shape, 1), scale = some({4}, 2);
        TinyOnnx m(23, 11);
        m.floats("x", shape, x).floats("s", {4}, scale);
        m.node("RMSNormalization", {"x", "s"}, {"y"},
               {{"axis", axis}, {"epsilon", 0.1F}, {"stash_type", int64_t{1}}});
        const Outcome found = import(m.output("y"));
        ASSERT_EQ(found.refusal, "");
        const size_t group = axis == 0 ? 24 : axis == 1 ? 12 : 4;
        Numbers expected;
        for (size_t i = 0; i < x.size(); ++i) {
            double sum = 0;
            for (size_t j = i / group * group; j < i / group * group + group; ++j)
                sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
            const double root = std::sqrt(sum / static_cast<double>(group) + 0.1);
            expected.push_back(static_cast<double>(x[i]) / root *
                               static_cast<double>(scale[i % 4]));
        }
        expect_near(found.outputs[0], expected, "y");
    }
}

TEST(LowerRmsNormalization, GivesTheTypeOfTheScale) {
    const test::TempDir folder;
    TinyOnnx m(23, 11);
    m.input("x", {2, 4}, TinyOnnx::fp16).floats("s", {4}, {1, 2, 3, 4});
    m.node("RMSNormalization", {"x", "s"}, {"y"}).output("y");
    m.save(folder / "model.onnx");
    const auto imported = import_onnx(folder / "model.onnx");
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(to_string(imported->graph.value(imported->graph.outputs[0]).type), "f32[2,4]");
}

TEST(LowerSwish, MultipliesByTheSigmoidOfAlphaTimesX) {
    for (const float alpha : {1.0F, -0.5F}) {
        const auto x = some({5}, 1);
        TinyOnnx m(24, 11);
        m.floats("x", {5}, x).node("Swish", {"x"}, {"y"}, {{"alpha", alpha}});
        const Outcome found = import(m.output("y"));
        ASSERT_EQ(found.refusal, "");
        Numbers expected;
        for (const float v : x)
            expected.push_back(static_cast<double>(v) /
                               (1 + std::exp(-static_cast<double>(alpha * v))));
        expect_near(found.outputs[0], expected, "y");
    }
}

}  // namespace
}  // namespace vartml::onnx
