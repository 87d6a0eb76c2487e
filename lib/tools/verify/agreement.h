// SPDX-License-Identifier: Apache-2.0
// Do the outputs of a model agree with ONNX Runtime's, by the rules of a whole collection?
//
// In f32 the largest difference of an output is at most 1e-3 of its range. In default numerics the
// cosine of each output is at least 0.999, its length within 10 %; 0.99 is enough where a device
// that computes exactly but rounds every tensor to bf16 does not reach 0.999 either. Of integers at
// most one in 1000 differs (one in 100 in default numerics), of 8 bits by more than 1. Where ONNX
// Runtime itself makes something else of a model, at another optimisation level or of an input that
// differs by one in a million (int8, fp16), a result within that spread of any of them agrees, too;
// of f32 outputs also one whose largest difference is up to twice that, if all together are within
// it.
#pragma once
#include <string>
#include <vector>

#include "lib/tools/verify/compare.h"

namespace vartml::verify {

enum class Rule { f32, standard };

// What ONNX Runtime gives for one output, all of one type and size.
struct ExpectedOutput {
    TensorData plain;                 // of the graph as it is written
    std::vector<TensorData> levels;   // of further levels, of a nudged input; empty = not asked
    std::vector<TensorData> rounded;  // of the ideal bf16 device; one, or empty = not asked
};

struct OutputAgreement {
    bool is_good = false;
    double cosine = 1, of_range = 0;  // to the plain one
    std::string text;                 // "cosine 0.98, at least 0.999"
};

OutputAgreement judge_agreement(const TensorData& found, const ExpectedOutput& expected, Rule rule);

}  // namespace vartml::verify
