// SPDX-License-Identifier: Apache-2.0
// Operators of the first ONNX that were never standardised: converters of WinML and Core ML models
// wrote them, and ONNX Runtime still runs them.
#include "lib/onnx/lower_rows.h"

namespace vartml::onnx {
namespace {

ValueId number(Builder& b, float value) {
    return b.floats({}, {value});
}

ValueId times(Builder& b, ValueId x, float factor) {
    return factor == 1 ? x : b.emit("Mul", {x, number(b, factor)});
}

// alpha * x + beta
void affine(Builder& b, ModelFile&, OnnxNode& n) {
    const ValueId scaled = b.emit("Mul", {n.input(0), number(b, n.get("alpha", 1.0F))});
    bind_first(b, n, b.emit("Add", {scaled, number(b, n.get("beta", 0.0F))}));
}

// Of a picture NCHW: `border` (left, top, right, bottom) goes; with `scale` (height, width) that
// much stays behind the left and the top one.
void crop(Builder& b, ModelFile&, OnnxNode& n) {
    using Ints = std::vector<int64_t>;
    const Ints border = n.get("border", Ints{}), scale = n.get("scale", Ints{});
    const Ints shape = b.type(n.input(0)).shape;
    if (shape.size() != 4 || border.size() != 4 || (!scale.empty() && scale.size() != 2))
        return b.fail(ErrorCode::bad_model, "(Crop) has " + std::to_string(border.size()) +
                                                " borders and " + std::to_string(scale.size()) +
                                                " sizes for a tensor of rank " +
                                                std::to_string(shape.size()) +
                                                ", expected 4 borders and 0 or 2 sizes for rank 4");
    Ints starts{border[1], border[0]}, ends{shape[2] - border[3], shape[3] - border[2]};
    if (!scale.empty()) ends = {starts[0] + scale[0], starts[1] + scale[1]};
    for (size_t i = 0; i < 2; ++i)
        if (starts[i] < 0 || starts[i] >= ends[i] || ends[i] > shape[i + 2])
            return b.fail(ErrorCode::bad_model, "(Crop) takes " + std::to_string(starts[i]) +
                                                    " to " + std::to_string(ends[i]) + " of axis " +
                                                    std::to_string(i + 2) + " of " +
                                                    to_string(b.type(n.input(0))));
    bind_first(b, n, b.emit("Slice", {n.input(0), b.ints(starts), b.ints(ends), b.ints({2, 3})}));
}

// x * scale + bias[c]
void image_scaler(Builder& b, ModelFile&, OnnxNode& n) {
    ValueId y = b.emit("Mul", {n.input(0), number(b, n.get("scale", 1.0F))});
    if (const auto bias = n.get("bias", std::vector<float>{}); !bias.empty())
        y = b.emit("Add", {y, b.floats({static_cast<int64_t>(bias.size()), 1, 1}, bias)});
    bind_first(b, n, y);
}

// alpha * ln(exp(beta * x) + 1)
void parametric_softplus(Builder& b, ModelFile&, OnnxNode& n) {
    const ValueId y = b.emit("Softplus", {times(b, n.input(0), n.get("beta", 1.0F))});
    bind_first(b, n, times(b, y, n.get("alpha", 1.0F)));
}

// alpha * tanh(beta * x)
void scaled_tanh(Builder& b, ModelFile&, OnnxNode& n) {
    const ValueId y = b.emit("Tanh", {times(b, n.input(0), n.get("beta", 1.0F))});
    bind_first(b, n, times(b, y, n.get("alpha", 1.0F)));
}

constexpr LowerRow rows[] = {
    {"", "Affine", affine, "alpha:f beta:f"},
    {"", "Crop", crop, "border:is scale:is"},
    {"", "ImageScaler", image_scaler, "bias:fs scale:f"},
    {"", "ParametricSoftplus", parametric_softplus, "alpha:f beta:f"},
    {"", "ScaledTanh", scaled_tanh, "alpha:f beta:f"},
};

}  // namespace

std::span<const LowerRow> experimental_rows() {
    return rows;
}

}  // namespace vartml::onnx
