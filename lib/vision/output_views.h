// SPDX-License-Identifier: Apache-2.0
// Models that leave the batch axis out of their outputs: lists [N,A] and [N] are seen as [1,N,A]
// and [1,N], which is what the decoder families are written for.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include <vartml/postprocess.h>

namespace vartml::vision {

// The outputs with an axis of 1 before the others, those of one element as they are; nullopt where
// one of more has it already or more than two dimensions, or none has more.
std::optional<std::vector<TensorInfo>> with_batch_axis(std::span<const TensorInfo> outputs);

// The views of frames' tensors, seen so. Keeps memory over frames.
class BatchAxis {
public:
    // `outputs` as with_batch_axis gave them, and as long as this object.
    explicit BatchAxis(std::span<const TensorInfo> outputs);
    // Valid until the next call, and while the tensors are.
    std::span<const OutputTensor> see(std::span<const OutputTensor> tensors);

private:
    struct View {
        TensorView stored, seen;
    };
    std::span<const TensorInfo> outputs_;
    std::vector<View> views_;
    std::vector<OutputTensor> tensors_;
};

// Outputs that a model leaves as integer codes: what they stand for is said beside the tensors.

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
