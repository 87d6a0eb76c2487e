// SPDX-License-Identifier: Apache-2.0
// Writes the models of the camera tests: small, because the guest has an emulated processor.
#include <cstdio>

#include "tests/support/tiny_onnx.h"

using vartml::test::TinyOnnx;

static ::onnx::TensorProto zero_point() {
    ::onnx::TensorProto tensor;
    tensor.set_name("zero");
    tensor.set_data_type(TinyOnnx::int8);
    tensor.add_int32_data(0);
    return tensor;
}

// One box in the middle of every picture, half as wide and as high, as YOLOv8 gives boxes. The NPU
// reads codes in steps of 1/64.
static TinyOnnx boxes() {
    constexpr int numbers = 5, anchors = 84;
    TinyOnnx::Floats head(numbers * anchors, 32);
    for (int anchor = 0; anchor < anchors; ++anchor)
        head[4 * anchors + anchor] = anchor == 0 ? 0.9f : 0;  // scores
    TinyOnnx m;
    m.input("images", {1, 3, 64, 64}).weights("w", {4, 3, 16, 16}).floats("step", {}, {1.0f / 64});
    m.initialiser(zero_point()).node("QuantizeLinear", {"images", "step", "zero"}, {"codes"});
    m.node("DequantizeLinear", {"codes", "step", "zero"}, {"x"});
    m.node("Conv", {"x", "w"}, {"c"}, {{"strides", TinyOnnx::Ints{16, 16}}});
    m.node("GlobalAveragePool", {"c"}, {"p"}).node("Flatten", {"p"}, {"f"});
    m.floats("little", {4, numbers * anchors}, TinyOnnx::Floats(4 * numbers * anchors, 1e-6f));
    m.node("MatMul", {"f", "little"}, {"s"}).floats("head", {1, numbers * anchors}, head);
    m.node("Add", {"s", "head"}, {"a"}).ints("shape", {3}, {1, numbers, anchors});
    return m.node("Reshape", {"a", "shape"}, {"output0"}).output("output0", {1, numbers, anchors});
}

// models FOLDER
int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const std::string folder = argv[1];
    // y = -x, so that the output shows every value of the input.
    TinyOnnx negation;
    negation.input("images", {1, 3, 48, 64});
    negation.floats("w", {3, 3, 1, 1}, {-1, 0, 0, 0, -1, 0, 0, 0, -1});
    negation.node("Conv", {"images", "w"}, {"y"}).output("y", {1, 3, 48, 64});
    negation.save(folder + "/negation.onnx");
    // For frames that are the input tensor. Maxima of 2x2 show every row and column, and need no
    // products, which an emulated processor takes long for.
    const std::vector<std::pair<std::string, TinyOnnx::Attribute>> pairs = {
        {"kernel_shape", TinyOnnx::Ints{2, 2}}, {"strides", TinyOnnx::Ints{2, 2}}};
    TinyOnnx picture;
    picture.input("images", {1, 3, 180, 320}).node("MaxPool", {"images"}, {"y"}, pairs);
    picture.output("y", {1, 3, 90, 160}).save(folder + "/picture.onnx");
    // Its input is bytes, in blocks of four channels on the device, and no whole number of pages.
    TinyOnnx codes;
    codes.input("images", {1, 3, 180, 320}, TinyOnnx::uint8).floats("scale", {}, {1.0f / 256});
    codes.node("DequantizeLinear", {"images", "scale"}, {"x"});
    codes.node("MaxPool", {"x"}, {"m"}, pairs).node("QuantizeLinear", {"m", "scale"}, {"y"});
    codes.output("y", {1, 3, 90, 160}, TinyOnnx::uint8).save(folder + "/codes.onnx");
    // What a board's pre-processor gives: 640x640, signed bytes, normalised and quantised.
    TinyOnnx board;
    board.input("images", {1, 3, 640, 640}, TinyOnnx::int8).floats("scale", {}, {1.0f / 64});
    board.initialiser(zero_point());
    board.node("DequantizeLinear", {"images", "scale", "zero"}, {"x"});
    board.node("MaxPool", {"x"}, {"m"}, pairs)
        .node("QuantizeLinear", {"m", "scale", "zero"}, {"y"});
    board.output("y", {1, 3, 320, 320}, TinyOnnx::int8).save(folder + "/board.onnx");
    boxes().save(folder + "/boxes.onnx");
    return 0;
}
