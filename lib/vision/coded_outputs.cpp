// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/coded_outputs.h"

#include <algorithm>

#include "lib/vision/tensor_access.h"

namespace vartml::vision {

std::vector<TensorInfo> with_quantisation(std::span<const TensorInfo> outputs,
                                          const ModelInfo& info) {
    std::vector<TensorInfo> known(outputs.begin(), outputs.end());
    for (const ModelInfo::Output& said : info.outputs) {
        const auto output = std::ranges::find(known, said.name, &TensorInfo::name);
        if (output == known.end() || (!said.quant_scale && !said.zero_point)) continue;
        Quantisation q = output->cpu.quantisation.value_or(Quantisation{});
        if (said.quant_scale) q.scale = *said.quant_scale;
        if (said.zero_point) q.zero_point = *said.zero_point;
        output->cpu.quantisation = q;
    }
    return known;
}

CodedOutputs::CodedOutputs(std::span<const TensorInfo> outputs) {
    for (const TensorInfo& output : outputs) {
        outputs_.push_back({output.cpu.quantisation, {}, {}});
        any_ = any_ || output.cpu.quantisation;
    }
}

std::span<const OutputTensor> CodedOutputs::with_codes(std::span<const OutputTensor> tensors) {
    if (!any_ || tensors.size() != outputs_.size()) return tensors;
    tensors_.assign(tensors.begin(), tensors.end());
    for (size_t i = 0; i < outputs_.size(); ++i) {
        Output& output = outputs_[i];
        const TensorView& view = *tensors[i].view;
        if (!output.quantisation || view.quantisation || !is_integer(view.data_type)) continue;
        if (output.view != view) {
            output.view = output.real = view;
            output.real.quantisation = output.quantisation;
        }
        tensors_[i].view = &output.real;
    }
    return tensors_;
}

}  // namespace vartml::vision
