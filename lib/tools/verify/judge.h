// SPDX-License-Identifier: Apache-2.0
// Is what a stage gave what the reference gives?
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <vartml/preprocess.h>
#include <vartml/result.h>

#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/decode_path.h"
#include "lib/tools/verify/onnxruntime.h"
#include "lib/tools/verify/reference.h"
#include "lib/tools/verify/report.h"
#include "lib/tools/verify/session.h"
#include "lib/tools/verify/stages.h"

namespace vartml::verify {

struct Judgement {
    bool is_good = true;
    double excess = 0;    // the difference as a part of the tolerance
    double of_range = 0;  // Stage::model
    std::string text;
    bool is_empty = false;      // neither side has anything to compare
    bool is_undecided = false;  // not good, and no fault: the reference is too far from itself
};

// Beside the rounding of the tensor's type an eighth of a grey level: the kernels work in steps of
// 1/64. Corners must come back to the frame within half a pixel. Errors: those of reference_values.
Result<Judgement> judge_preprocess(const Preprocessed& found, const ReferenceInput& expected,
                                   const TensorView& view, const TensorView& cpu,
                                   const PreprocessOptions& options);

// Errors: those of compare.
Result<Judgement> judge_output(const TensorData& found, const TensorData& expected,
                               const Tolerance& tolerance, const std::string& what);

// Exact, but for the last bit of a product.
Judgement judge_dequantised(const TensorData& found, const TensorData& expected);

// The same candidates, but for those at the threshold; corners within 0.05 pixels or 0.1 % of the
// box, scores within 1e-4.
Judgement judge_candidates(const vision::Candidates& found, const vision::Candidates& expected,
                           float threshold);

// The same detections as plain NMS keeps of `candidates`, whatever side a box takes whose overlap
// is at the threshold.
Judgement judge_selection(const Decoded& found, const vision::Candidates& candidates,
                          const DecodePath& path, const Frame& frame);

// Adds a frame's detections and classes of both sides.
void add_effect(Effect& effect, const Decoded& found, const Decoded& expected, float threshold,
                const std::string& sample);

// Adds what both sides give of the whole picture beside boxes and classes.
void add_picture(PictureEffect& effect, const vision::PictureDetails& found,
                 const vision::PictureDetails& expected);

// The first tensor inside a model that differs.

// Runs the compiled model once more with what its operators hand to one another as outputs, beside
// ONNX Runtime with the same. `inputs` in the order of the model; `was_quantised` of
// connect.h. Errors: those of keep_tensors, Session and OnnxRuntime.
Result<Layers> compare_layers(const std::string& onnx_file, const std::string& compiled,
                              const Session::Options& options, const OnnxRuntime& reference,
                              const std::vector<TensorData>& inputs,
                              std::optional<double> tolerance, bool was_quantised);

}  // namespace vartml::verify
