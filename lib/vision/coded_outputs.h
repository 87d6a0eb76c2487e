// SPDX-License-Identifier: Apache-2.0
// Outputs that a model leaves as integer codes: what they stand for is said beside the tensors.
#pragma once
#include <span>
#include <vector>

#include <vartml/postprocess.h>

namespace vartml::vision {

// The outputs, their CPU views with the quantisation that the sidecar gives them.
std::vector<TensorInfo> with_quantisation(std::span<const TensorInfo> outputs,
                                          const ModelInfo& info);

// Gives the tensors of a run views that say what their codes stand for, where their own do not.
// Keeps memory: one thread at a time.
class CodedOutputs {
public:
    // `outputs` as with_quantisation gives them.
    explicit CodedOutputs(std::span<const TensorInfo> outputs);
    // As many tensors as outputs. Valid until the next call.
    std::span<const OutputTensor> with_codes(std::span<const OutputTensor> tensors);

private:
    struct Output {
        std::optional<Quantisation> quantisation;
        TensorView view, real;  // of the tensors seen last, and with the quantisation
    };
    bool any_ = false;
    std::vector<Output> outputs_;
    std::vector<OutputTensor> tensors_;
};

}  // namespace vartml::vision
