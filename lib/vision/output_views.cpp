// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/output_views.h"

#include <algorithm>

#include "lib/vision/tensor_access.h"

namespace vartml::vision {
namespace {

TensorView with_batch_axis(TensorView view) {
    const auto size = static_cast<uint32_t>(view.size);
    view.strides.insert(view.strides.begin(),
                        view.strides.empty() ? size : view.strides[0] * view.shape[0]);
    view.shape.insert(view.shape.begin(), 1);
    if (!view.order.empty()) {
        for (uint32_t& dimension : view.order) ++dimension;
        view.order.insert(view.order.begin(), 0);
    }
    return view;
}

bool lacks_batch_axis(const TensorInfo& output) {
    const auto& shape = output.cpu.shape;
    return (shape.size() == 1 || shape.size() == 2) && shape[0] != 1;
}

// How many rows of another are valid has no batch axis, or nothing else: it does not tell.
bool is_number(const TensorInfo& output) {
    return std::ranges::all_of(output.cpu.shape, [](uint32_t dimension) { return dimension == 1; });
}

}  // namespace

std::optional<std::vector<TensorInfo>> with_batch_axis(std::span<const TensorInfo> outputs) {
    const auto open = [](const TensorInfo& output) {
        return is_number(output) || lacks_batch_axis(output);
    };
    if (std::ranges::none_of(outputs, lacks_batch_axis) || !std::ranges::all_of(outputs, open))
        return std::nullopt;
    std::vector<TensorInfo> seen(outputs.begin(), outputs.end());
    for (TensorInfo& output : seen) {
        if (is_number(output)) continue;
        output.cpu = with_batch_axis(std::move(output.cpu));
        // A table is NHW, whose dimensions are in order.
        if (output.cpu.shape.size() == 3) {
            output.cpu.layout = Layout::NHW;
            output.cpu.order.clear();
        }
        if (output.hw) output.hw = with_batch_axis(std::move(*output.hw));
    }
    return seen;
}

BatchAxis::BatchAxis(std::span<const TensorInfo> outputs)
    : outputs_(outputs), views_(outputs.size()), tensors_(outputs.size()) {}

std::span<const OutputTensor> BatchAxis::see(std::span<const OutputTensor> tensors) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
        tensors_[i] = tensors[i];
        const bool as_it_is = outputs_[i].cpu.shape == tensors[i].cpu->shape;
        if (as_it_is) continue;
        View& view = views_[i];
        if (view.stored != *tensors[i].view)
            view = {*tensors[i].view, with_batch_axis(*tensors[i].view)};
        tensors_[i].view = &view.seen;
        tensors_[i].cpu = &outputs_[i].cpu;
    }
    return tensors_;
}

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
