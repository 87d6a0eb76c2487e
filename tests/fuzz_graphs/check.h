// SPDX-License-Identifier: Apache-2.0
// One model through the compiler and the runner, in every way that may change a result, beside the
// plain loops and ONNX Runtime.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/tools/verify/onnxruntime.h"
#include "tests/fuzz_graphs/evaluate.h"

namespace vartml::fuzz_graphs {

// How a model is compiled and run.
struct Way {
    const char* name;
    int optimize_level;
    const char* numerics;
    bool npu = true;
    bool through_file = false;
    unsigned frames = 1;  // in a call; what the last one gives is compared
};
std::span<const Way> ways();

enum class Verdict {
    agrees,
    refused,   // by the compiler or the runner, in one sentence
    unsteady,  // rounding decides the result
    differs,
};
struct Finding {
    Verdict verdict = Verdict::agrees;
    std::string way;   // "level 2 f32", "plain loops"
    std::string text;  // the sentence, or what differs
};

// What differs first between outputs and the reference, or "". Larger shapes may be upper bounds:
// what is expected lies in their corner.
std::string difference(const Values& found, const Reference& expected);

class Checker {
public:
    // `folder` is written to. Without `ort` the plain loops are the only reference.
    Checker(std::string folder, const verify::OnnxRuntime* ort);

    // A finding per way that does not agree. `only`: this way alone; "" = all.
    std::vector<Finding> check(const Model& model, const std::string& only = {});
    // Whether ONNX Runtime has run the last model.
    bool had_onnxruntime() const { return had_onnxruntime_; }
    const std::string& onnxruntime_sentence() const { return ort_sentence_; }

    bool prints_steps = false;  // what the software NPU does, for each way

private:
    std::string folder_;
    const verify::OnnxRuntime* ort_;
    bool had_onnxruntime_ = false;
    std::string ort_sentence_;
};

}  // namespace vartml::fuzz_graphs
