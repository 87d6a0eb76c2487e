// SPDX-License-Identifier: Apache-2.0
// Recipes: products, recurrent layers, normalisations, and arithmetic with rules of its own.
#include <algorithm>
#include <cmath>

#include "tests/fuzz_graphs/draft.h"

namespace vartml::fuzz_graphs {
namespace {

bool clip(Draft& d, const std::string& kind) {
    const Types types = d.opset < 12 ? f32
                                     : Types{DataType::float32, DataType::float32, DataType::int8,
                                             DataType::uint8, DataType::int32};
    const Tensor& x = d.operand(types, 0, 5);
    Request request{kind, {x.name}};
    const bool unsigned_ = x.type() == DataType::uint8;
    const double low = std::round(d.random.real(unsigned_ ? 0 : -3, 1) * 4) / 4;
    if (d.random.chance(0.8)) request.parameters.emplace_back("min", std::vector<double>{low});
    if (d.random.chance(0.8))
        request.parameters.emplace_back(
            "max", std::vector<double>{low + std::round(d.random.real(0, 24)) / 4});
    return d.one(request);
}

bool cast(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(any_type, 0, 5);
    const DataType to = d.random.pick(any_type);
    double low = 0, high = 0;
    for (const double v : all_numbers(x.data)) low = std::min(low, v), high = std::max(high, v);
    // What no number of the type holds is nobody's promise.
    const double most = to == DataType::int8 ? 127 : to == DataType::uint8 ? 255 : 30000;
    const bool is_unsigned =
        to == DataType::uint8 || to == DataType::uint16 || to == DataType::uint32;
    if (verify::is_float(x.type()) && !verify::is_float(to) && to != DataType::boolean &&
        (high > most || low < (is_unsigned ? 0 : -most)))
        return false;
    if (to == DataType::fp16 && (high > 500 || low < -500)) return false;
    return d.one({kind, {x.name}, {{"to", int64_t{elem_type(to)}}}});
}

bool power(Draft& d, const std::string& kind) {
    const auto* gate = d.one({"Sigmoid", {d.operand(f32, 0, 4).name}});
    // Of large negative numbers ONNX Runtime's Sigmoid is 0.
    const auto* base =
        gate ? d.one({"Add", {gate->name, d.numbers(DataType::float32, {}, {0.1}).name}}) : nullptr;
    if (!base) return false;
    return d.one(
        {kind,
         {base->name, d.second(DataType::float32, d.broadcast_to(base->shape()), -1, 3).name}});
}

bool square(Draft& d, const std::string& kind) {
    if (d.random.chance(0.5)) return power(d, kind);
    const Tensor& x = d.operand(f32, 0, 4);
    return d.one(
        {kind,
         {x.name,
          d.numbers(DataType::float32, {}, {static_cast<double>(d.random.between(0, 3))}).name}});
}

bool bit_shift(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand({DataType::uint8, DataType::uint32}, 0, 4);
    const Tensor& by = d.second(x.type(), d.broadcast_to(x.shape()), 0, 5);
    return d.one(
        {kind, {x.name, by.name}, {{"direction", d.random.pick<std::string>({"LEFT", "RIGHT"})}}});
}

// Not by zero, nor by what is nearly.
bool divide(Draft& d, const std::string& kind) {
    const bool is_mod = kind == "Mod";
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand({DataType::float32, DataType::int32, DataType::int64}, 0, 5);
    const bool is_float = x.type() == DataType::float32;
    const Tensor& by = d.second(x.type(), d.broadcast_to(x.shape()), is_float ? 0.4 : 1, 4);
    Request request{kind, {x.name, by.name}};
    if (is_mod) request.attributes = {{"fmod", is_float ? int64_t{1} : d.random.between(0, 1)}};
    return d.one(request);
}

bool gemm(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(f32, 2, 2);
    const bool turn_a = d.random.chance(0.3), turn_b = d.random.chance(0.5);
    const int64_t rows = x.size(turn_a ? 1 : 0), depth = x.size(turn_a ? 0 : 1),
                  columns = d.random.between(1, 20);
    if (x.is_empty()) return false;
    const Ints shape = turn_b ? Ints{columns, depth} : Ints{depth, columns};
    Request request{kind,
                    {x.name, d.random.chance(0.9) ? d.weights(x.type(), shape).name
                                                  : d.input(x.type(), shape).name}};
    if (d.random.chance(0.7) || d.opset < 11)
        request.inputs.push_back(
            d.second(x.type(),
                     d.broadcast_to(d.random.chance(0.7) ? Ints{columns} : Ints{rows, columns}), -1,
                     1)
                .name);
    request.attributes = {{"transA", int64_t{turn_a}}, {"transB", int64_t{turn_b}}};
    if (d.random.chance(0.3)) request.attributes.emplace_back("alpha", 0.5F);
    if (d.random.chance(0.3))
        request.attributes.emplace_back("beta", d.random.chance(0.3) ? 0.0F : 1.5F);
    return d.one(request);
}

bool matmul(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(f32, 1, 5);
    if (x.is_empty()) return false;
    const int64_t depth = x.shape().back();
    Ints shape;
    if (x.rank() > 2 && d.random.chance(0.4)) {
        shape.assign(x.shape().begin(), x.shape().end() - 2);
        shape = d.broadcast_to(shape);
    }
    shape.push_back(depth);
    if (shape.size() > 1 || d.random.chance(0.85)) shape.push_back(d.random.between(1, 12));
    if (d.random.chance(0.2))
        if (const Tensor* y = d.find(DataType::float32, shape))
            return d.one({kind, {x.name, y->name}});
    const Tensor& w = d.random.chance(0.5) ? d.weights(x.type(), shape) : d.input(x.type(), shape);
    return d.one({kind, {x.name, w.name}});
}

bool einsum(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    struct Form {
        const char* equation;
        Ints a, b;
    };
    const int64_t n = d.random.between(1, 3), i = d.random.between(1, 6),
                  j = d.random.between(1, 6), k = d.random.between(1, 6);
    const Form form = d.random.pick<Form>({{"ij,jk->ik", {i, j}, {j, k}},
                                           {"nij,njk->nik", {n, i, j}, {n, j, k}},
                                           {"bhid,bhjd->bhij", {n, 2, i, j}, {n, 2, k, j}},
                                           {"ij->ji", {i, j}, {}},
                                           {"nij->nj", {n, i, j}, {}},
                                           {"i,j->ij", {i}, {j}},
                                           {"ii->i", {i, i}, {}},
                                           {"...ij,...jk->...ik", {n, i, j}, {n, j, k}},
                                           {"nchw,nqc->nqhw", {n, i, j, k}, {n, 4, i}},
                                           {"ij,ij->", {i, j}, {i, j}}});
    const Tensor* x = d.find(DataType::float32, form.a);
    Request request{kind,
                    {(x ? *x : d.input(DataType::float32, form.a)).name},
                    {{"equation", std::string(form.equation)}}};
    if (!form.b.empty()) request.inputs.push_back(d.second(DataType::float32, form.b, -1, 1).name);
    return d.one(request);
}

bool determinant(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    Ints shape = d.shape(0, 2);
    const int64_t n = d.random.between(1, 4);
    shape.insert(shape.end(), {n, n});
    return d.one({kind, {d.input(DataType::float32, shape).name}});
}

bool recurrent(Draft& d, const std::string& kind) {
    const bool lstm = kind == "LSTM", gru = kind == "GRU";
    const int64_t gates = lstm ? 4 : gru ? 3 : 1;
    const Tensor& x = d.operand(f32, 3, 3);
    if (x.is_empty()) return false;
    const int64_t layout = d.opset >= 14 && d.random.chance(0.2);
    const int64_t hidden = d.random.between(1, 5), batch = x.size(layout ? 0 : 1),
                  depth = x.size(2);
    const std::string direction =
        d.random.pick<std::string>({"forward", "reverse", "bidirectional"});
    const int64_t ways = direction == "bidirectional" ? 2 : 1;
    Request request{kind,
                    {x.name, d.constant(x.type(), {ways, gates * hidden, depth}, -0.6, 0.6).name,
                     d.constant(x.type(), {ways, gates * hidden, hidden}, -0.6, 0.6).name}};
    if (d.random.chance(0.6))
        request.inputs.push_back(d.constant(x.type(), {ways, 2 * gates * hidden}, -0.5, 0.5).name);
    if (d.random.chance(0.4)) {
        while (request.inputs.size() < 5) request.inputs.emplace_back();
        const Ints state = layout ? Ints{batch, ways, hidden} : Ints{ways, batch, hidden};
        request.inputs.push_back(d.second(x.type(), state, -1, 1).name);
        if (lstm) request.inputs.push_back(d.second(x.type(), state, -1, 1).name);
    }
    request.attributes = {{"hidden_size", hidden}, {"direction", direction}};
    if (layout) request.attributes.emplace_back("layout", layout);
    if (gru && d.random.chance(0.5))
        request.attributes.emplace_back("linear_before_reset", d.random.between(0, 1));
    // ONNX Runtime does not cut off what the last activation of an LSTM reads.
    if (!lstm && d.random.chance(0.2)) request.attributes.emplace_back("clip", 0.7F);
    request.outputs = static_cast<size_t>(d.random.between(1, lstm ? 3 : 2));
    return !d.add(request).empty();
}

bool attention(Draft& d, const std::string& kind) {
    const int64_t heads = d.random.between(1, 3), hidden = heads * d.random.between(1, 4),
                  depth = d.random.between(2, 8), batch = d.random.between(1, 2),
                  length = d.random.between(1, 6);
    const Tensor& x = d.input(DataType::float32, {batch, length, depth});
    Request request{kind,
                    {x.name, d.constant(x.type(), {depth, 3 * hidden}, -0.6, 0.6).name,
                     d.constant(x.type(), {3 * hidden}, -0.5, 0.5).name},
                    {{"num_heads", heads}}};
    if (d.random.chance(0.3)) request.attributes.emplace_back("unidirectional", int64_t{1});
    request.domain = "com.microsoft";
    return d.one(request);
}

bool layer_norm(Draft& d, const std::string& kind) {
    const bool rms = kind == "RMSNormalization";
    const Tensor& x = d.operand(f32, 2, 4);
    if (x.is_empty() || (!rms && d.opset < 17)) return false;
    const int64_t axis =
        rms ? -1 : d.random.between(1, x.rank()) - x.rank() - (d.random.chance(0.5) ? 0 : 0);
    const int64_t from = axis < 0 ? axis + x.rank() : axis;
    const Ints shape(x.shape().begin() + from, x.shape().end());
    Request request{rms ? "SimplifiedLayerNormalization" : kind,
                    {x.name, d.constant(x.type(), shape, 0.3, 2).name}};
    if (!rms && d.random.chance(0.6)) request.inputs.push_back(d.constant(x.type(), shape).name);
    request.attributes = {{"axis", axis},
                          {"epsilon", static_cast<float>(d.random.real(1e-5, 1e-2))}};
    return d.one(request);
}

bool mean_variance(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(f32, 4, 4);
    if (x.is_empty()) return false;
    Request request{kind, {x.name}};
    if (d.random.chance(0.6))
        request.attributes = {
            {"axes", d.random.pick<Ints>({{0, 2, 3}, {2, 3}, {1}, {0, 1, 2, 3}})}};
    return d.one(request);
}

bool quick_gelu(Draft& d, const std::string& kind) {
    Request request{kind, {d.operand(f32, 1, 4).name}};
    if (d.random.chance(0.5)) request.attributes = {{"alpha", 1.0F}};
    request.domain = "com.microsoft";
    return d.one(request);
}

constexpr Recipe recipes[] = {
    {"Attention", attention},
    {"BitShift", bit_shift},
    {"Cast", cast},
    {"Clip", clip},
    {"Det", determinant},
    {"Div", divide},
    {"Einsum", einsum},
    {"GRU", recurrent},
    {"Gemm", gemm},
    {"LSTM", recurrent},
    {"LayerNormalization", layer_norm},
    {"MatMul", matmul},
    {"MeanVarianceNormalization", mean_variance},
    {"Mod", divide},
    {"Pow", square},
    {"QuickGelu", quick_gelu},
    {"RMSNormalization", layer_norm},
    {"RNN", recurrent},
};

}  // namespace

std::span<const Recipe> number_recipes() {
    return recipes;
}

}  // namespace vartml::fuzz_graphs
