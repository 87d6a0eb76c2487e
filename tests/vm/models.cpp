// SPDX-License-Identifier: Apache-2.0
// Writes the models of the camera tests: small, because the guest has an emulated processor.
#include <cstdio>

#include "tests/support/tiny_onnx.h"

using vartml::test::TinyOnnx;

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
    // Of the size of a picture, for frames that are the input tensor.
    TinyOnnx picture;
    picture.input("images", {1, 3, 480, 640}).weights("w", {4, 3, 16, 16});
    picture.node("Conv", {"images", "w"}, {"y"}, {{"strides", TinyOnnx::Ints{16, 16}}});
    picture.output("y", {1, 4, 30, 40}).save(folder + "/picture.onnx");
    // Its input is bytes, in blocks of four channels on the device, and no whole number of pages.
    TinyOnnx codes;
    codes.input("images", {1, 3, 180, 320}, TinyOnnx::uint8).weights("w", {4, 3, 16, 16});
    codes.floats("scale", {}, {1.0f / 256});
    codes.node("DequantizeLinear", {"images", "scale"}, {"x"});
    codes.node("Conv", {"x", "w"}, {"y"}, {{"strides", TinyOnnx::Ints{16, 16}}});
    codes.output("y", {1, 4, 11, 20}).save(folder + "/codes.onnx");
    // What a board's pre-processor gives: 640x640, signed bytes, normalised and quantised.
    TinyOnnx board;
    board.input("images", {1, 3, 640, 640}, TinyOnnx::int8).weights("w", {4, 3, 32, 32});
    board.floats("scale", {}, {1.0f / 64});
    board.node("DequantizeLinear", {"images", "scale"}, {"x"});
    board.node("Conv", {"x", "w"}, {"y"}, {{"strides", TinyOnnx::Ints{32, 32}}});
    board.output("y", {1, 4, 20, 20}).save(folder + "/board.onnx");
    return 0;
}
