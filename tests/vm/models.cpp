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
    return 0;
}
