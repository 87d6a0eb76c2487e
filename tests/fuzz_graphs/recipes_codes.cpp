// SPDX-License-Identifier: Apache-2.0
// Recipes: operators on codes of 8 bits.
#include <algorithm>
#include <cmath>

#include "tests/fuzz_graphs/draft.h"

namespace vartml::fuzz_graphs {
namespace {

// Scale and zero point of codes of that type.
struct Coding {
    std::string scale, zero;
};
Coding coding(Draft& d, DataType type, double low = 0.005, double high = 0.05) {
    const double zero = type == DataType::uint8 ? static_cast<double>(d.random.between(90, 160))
                                                : static_cast<double>(d.random.between(-20, 20));
    const double scale = d.random.chance(0.2) ? 1.0 / 64 : d.random.real(low, high);
    return {d.numbers(DataType::float32, {}, {scale}).name, d.numbers(type, {}, {zero}).name};
}

bool quantise(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand(f32, 0, 4);
    const DataType type = d.random.pick(codes);
    const bool per_axis = d.opset >= 13 && x.rank() > 0 && d.random.chance(0.3);
    if (!per_axis) {
        const Coding c = coding(d, type);
        return !d.add({kind, {x.name, c.scale, c.zero}}).empty();
    }
    const int64_t axis = d.random.between(0, x.rank() - 1);
    const Ints shape = {x.size(axis)};
    return !d.add({kind,
                   {x.name, d.constant(DataType::float32, shape, 0.01, 0.05).name,
                    d.constant(type, shape, 0, 20).name},
                   {{"axis", axis}}})
                .empty();
}

bool dequantise(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand(codes, 0, 4);
    const bool per_axis = d.opset >= 13 && x.rank() > 0 && d.random.chance(0.3);
    if (!per_axis) {
        const Coding c = coding(d, x.type());
        Request request{kind, {x.name, c.scale, c.zero}};
        if (d.random.chance(0.2)) request.inputs.pop_back();
        return !d.add(request).empty();
    }
    const int64_t axis = d.random.between(0, x.rank() - 1);
    const Ints shape = {x.size(axis)};
    return !d.add({kind,
                   {x.name, d.constant(DataType::float32, shape, 0.01, 0.05).name,
                    d.constant(x.type(), shape, 0, 20).name},
                   {{"axis", axis}}})
                .empty();
}

// A window of stride 1 or 2 that fits, its weights as codes.
struct Filters {
    Ints shape, pads, strides;
    int64_t groups = 1;
};
Filters filters_for(Draft& d, const Tensor& x) {
    Filters f;
    f.groups = d.random.chance(0.3) ? x.size(1) : 1;
    const int64_t k = std::min({d.random.between(1, 4), x.size(2), x.size(3)});
    f.shape = {f.groups * d.random.between(1, 6), x.size(1) / f.groups, k, k};
    for (int i = 0; i < 4; ++i) f.pads.push_back(d.random.between(0, k - 1));
    f.strides = {d.random.between(1, 2), d.random.between(1, 3)};
    return f;
}
std::vector<std::pair<std::string, test::TinyOnnx::Attribute>> attributes_of(const Filters& f) {
    return {{"pads", f.pads}, {"strides", f.strides}, {"group", f.groups}};
}

bool conv_integer(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand({DataType::uint8}, 4, 4);
    if (x.is_empty()) return false;
    const Filters f = filters_for(d, x);
    Request request{kind, {x.name, d.constant(DataType::uint8, f.shape).name}, attributes_of(f)};
    if (d.random.chance(0.7)) request.inputs.push_back(d.constant(x.type(), {}).name);
    if (request.inputs.size() > 2 && d.random.chance(0.7))
        request.inputs.push_back(d.constant(DataType::uint8, {}).name);
    return !d.add(request).empty();
}

bool qlinear_conv(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand(codes, 4, 4);
    if (x.is_empty()) return false;
    const Filters f = filters_for(d, x);
    const bool per_channel = d.random.chance(0.5);
    const Coding from = coding(d, x.type()), to = coding(d, x.type(), 0.02, 0.2);
    const Ints channels = per_channel ? Ints{f.shape[0]} : Ints{};
    const DataType weights =
        x.type() == DataType::uint8 && d.random.chance(0.3) ? DataType::uint8 : DataType::int8;
    const std::vector<double> zeros(static_cast<size_t>(count_elements(channels)),
                                    weights == DataType::uint8 ? 128 : 0);
    Request request{kind,
                    {x.name, from.scale, from.zero, d.constant(weights, f.shape).name,
                     d.constant(DataType::float32, channels, 0.002, 0.02).name,
                     d.numbers(weights, channels, zeros).name, to.scale, to.zero},
                    attributes_of(f)};
    if (d.random.chance(0.6))
        request.inputs.push_back(d.constant(DataType::int32, {f.shape[0]}, -2000, 2000).name);
    return !d.add(request).empty();
}

bool matmul(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand(kind == "MatMulInteger" ? Types{DataType::uint8} : codes, 2, 3);
    if (x.is_empty()) return false;
    const Ints shape = {x.shape().back(), d.random.between(1, 9)};
    const Tensor& w = d.constant(
        x.type() == DataType::int8 || d.random.chance(0.5) ? DataType::int8 : DataType::uint8,
        shape);
    if (kind == "MatMulInteger") {
        Request request{kind, {x.name, w.name}};
        if (d.random.chance(0.7)) request.inputs.push_back(d.constant(x.type(), {}).name);
        return !d.add(request).empty();
    }
    const Coding from = coding(d, x.type()), by = coding(d, w.type(), 0.002, 0.02),
                 to = coding(d, x.type(), 0.02, 0.2);
    return !d.add({kind,
                   {x.name, from.scale, from.zero, w.name, by.scale, by.zero, to.scale, to.zero}})
                .empty();
}

bool of_microsoft(Draft& d, const std::string& kind) {
    const bool is_picture = kind.ends_with("AveragePool");
    const Tensor& x = is_picture ? d.operand(codes, 4, 4) : d.operand(codes, 1, 4);
    if (x.is_empty()) return false;
    const Coding from = coding(d, x.type()), to = coding(d, x.type());
    Request request{kind, {x.name, from.scale, from.zero}};
    request.domain = "com.microsoft";
    if (kind == "QLinearAdd" || kind == "QLinearMul") {
        const Coding by = coding(d, x.type());
        const Tensor& y = d.partner(x.type(), x.shape());
        request.inputs.insert(request.inputs.end(), {y.name, by.scale, by.zero});
    }
    if (kind == "QLinearConcat") {
        const Coding by = coding(d, x.type());
        request.inputs = {to.scale,   to.zero,   x.name,
                          from.scale, from.zero, d.input(x.type(), x.shape()).name,
                          by.scale,   by.zero};
        request.attributes = {{"axis", d.random.between(0, x.rank() - 1)}};
        return !d.add(request).empty();
    }
    request.inputs.insert(request.inputs.end(), {to.scale, to.zero});
    if (kind == "QLinearAveragePool") {
        const Filters f = filters_for(d, x);
        request.attributes = {{"kernel_shape", Ints{f.shape[2], f.shape[3]}},
                              {"pads", f.pads},
                              {"strides", f.strides},
                              {"count_include_pad", d.random.between(0, 1)}};
    }
    if (kind == "QLinearLeakyRelu")
        request.attributes = {{"alpha", static_cast<float>(d.random.real(0.01, 0.5))}};
    if (kind == "QLinearSoftmax")
        request.attributes = {{"axis", d.random.between(0, x.rank() - 1)}, {"opset", int64_t{13}}};
    return !d.add(request).empty();
}

constexpr Recipe recipes[] = {
    {"ConvInteger", conv_integer},
    {"DequantizeLinear", dequantise},
    {"MatMulInteger", matmul},
    {"QLinearAdd", of_microsoft},
    {"QLinearAveragePool", of_microsoft},
    {"QLinearConcat", of_microsoft},
    {"QLinearConv", qlinear_conv},
    {"QLinearGlobalAveragePool", of_microsoft},
    {"QLinearLeakyRelu", of_microsoft},
    {"QLinearMatMul", matmul},
    {"QLinearMul", of_microsoft},
    {"QLinearSigmoid", of_microsoft},
    {"QLinearSoftmax", of_microsoft},
    {"QuantizeLinear", quantise},
};

}  // namespace

std::span<const Recipe> code_recipes() {
    return recipes;
}

}  // namespace vartml::fuzz_graphs
