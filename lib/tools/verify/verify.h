// SPDX-License-Identifier: Apache-2.0
// The accuracy check: a compiled model beside ONNX Runtime, stage by stage. Each stage under test
// gets what the reference gave before it, so that a fault is seen at its stage and nowhere else;
// all stages one after another then show what it does to detections.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <vartml/postprocess.h>
#include <vartml/result.h>

#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/reference.h"
#include "lib/tools/verify/report.h"

namespace vartml::verify {

struct Stages;

// One frame: a picture, or the tensors of all inputs.
struct Sample {
    std::string name;
    std::optional<PictureData> picture;
    std::vector<TensorData> inputs;    // in the order of the model
    std::vector<TensorData> expected;  // stored outputs; empty where there are none
};

struct Request {
    std::string model;          // the ONNX file
    std::string compiled;       // of it
    std::string compiled_name;  // in the report; "" = `compiled`
    std::string numerics = "auto", device = {};
    std::optional<double> tolerance;  // of the model stage, instead of the one of the type
    ModelInfo info;                   // what the sidecar says, and options over it
    std::string pixels_from;          // who said mean and scale over the sidecar; "" = nobody
    std::string decoder;              // "" = by sidecar, ids or shapes
    bool layers = false;

    std::string kind = "picture";  // Report::kind
    bool judge_effect = true;      // false: what is detected is reported only
    size_t num_samples = 0;
    std::function<Result<Sample>(size_t)> sample;
};

// Errors: not_found where there is neither ONNX Runtime nor stored outputs; those of the stages.
Result<Report> verify(const Request& request);
Result<Report> verify(const Request& request, const Stages& stages);

}  // namespace vartml::verify
