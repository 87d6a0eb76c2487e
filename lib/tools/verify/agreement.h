// SPDX-License-Identifier: Apache-2.0
// Do the outputs of a model agree with ONNX Runtime's? The one rule of `vartml verify` and
// `vartml verify --all`.
//
// In f32 the largest difference of an output is at most 1e-3 of its range. In default numerics the
// cosine of each output is at least 0.999, its length within 10 %; 0.99 is enough where a device
// that computes exactly but rounds every tensor to bf16 does not reach 0.999 either, and of a float
// model that was made int8. Of integers at most one in 1000 differs (one in 100 in default
// numerics), of 8 bits by more than 1; of floats that are dequantised codes, none by more than one
// step. Where ONNX Runtime itself makes something else of a model, at another optimisation level or
// of an input that differs by one in a million (int8, fp16), a result within that spread of any of
// them agrees, too; of f32 outputs also one whose largest difference is up to twice that, if all
// together are within it. Where its own results are more than half of the range apart, or at a
// cosine below 0.5, it can judge none.
//
// Where a decoder takes the outputs, the top class is the same, and each box is found again with an
// IoU of at least 0.9 and a score within 0.1. Rows of a list of boxes may come in another order:
// there the boxes decide, and of a list without any the scores, where the rows are as near as an
// ideal bf16 device's. Of a dense head without any box the scores, by size, are within 0.1, or
// within half of the best one where that is less. Nothing is said by boxes of a decoder that does
// not fit the reference's numbers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vartml/model.h>
#include <vartml/postprocess.h>

#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/decode_path.h"

namespace vartml::verify {

enum class Rule {
    f32,
    standard,  // default numerics
    made_int8  // by `vartml compile --quantize`, of a float model
};

// What ONNX Runtime gives for one output, all of one type and size.
struct ExpectedOutput {
    TensorData plain;                 // of the graph as it is written
    std::vector<TensorData> levels;   // of further levels, of a nudged input; empty = not asked
    std::vector<TensorData> rounded;  // of the ideal bf16 device; one, or empty = not asked
    std::optional<double> step = {};  // of floats: the scale of the dequantise that made them
};

struct OutputAgreement {
    bool is_good = false;
    bool is_undecided = false;  // the reference is too far from itself; not good, and no fault
    double cosine = 1, of_range = 0;  // to the plain one
    double excess = 0;                // the difference as a part of what is allowed
    std::string text;                 // "cosine 0.98, at least 0.999"
};

OutputAgreement judge_agreement(const TensorData& found, const ExpectedOutput& expected, Rule rule);

// Where a decoder takes the outputs of a picture.
struct DecoderUse {
    const ModelInfo& info;
    const std::vector<TensorInfo>& outputs;
    uint32_t width = 0, height = 0;  // of the picture input
    Frame frame;
    std::string decoder = {};  // "" = by sidecar, ids or shapes
};

struct ModelAgreement {
    std::vector<OutputAgreement> outputs;  // in the order of the model
    std::string objects;  // what differs of boxes and classes; "" = nothing, or none to compare
    bool outputs_are_good() const;
};

// `use`: null where no decoder is to be looked for; one that does not read the outputs says
// nothing.
ModelAgreement judge_model(const std::vector<TensorData>& found,
                           const std::vector<ExpectedOutput>& expected, Rule rule,
                           const DecoderUse* use);

}  // namespace vartml::verify
