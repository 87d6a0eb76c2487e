// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/tensor_tables.h"

#include <algorithm>

#include "lib/runtime/tensor_info.h"
#include "lib/runtime/vart_errors.h"

namespace vartml::runtime {
namespace {

using vart::TensorDirection;
using vart::TensorType;

vart::QuantParameters quantisation_of(const TensorInfo& tensor) {
    vart::QuantParameters quant;
    quant.scale = 1.0;
    if (tensor.hw && tensor.hw->quantisation && tensor.hw->quantisation->scale > 0) {
        quant.scale = tensor.hw->quantisation->scale;
        quant.zero_point = tensor.hw->quantisation->zero_point;
        quant.rounding_mode = vart::RoundingMode::ROUND_TO_NEAREST_EVEN;
    }
    return quant;
}

}  // namespace

TensorTables::TensorTables(std::vector<TensorInfo> inputs, std::vector<TensorInfo> outputs)
    : tensors_{std::move(inputs), std::move(outputs)} {
    for (const auto direction : {TensorDirection::INPUT, TensorDirection::OUTPUT}) {
        const auto& all = tensors(direction);
        auto& [cpu, hw] = infos_[static_cast<size_t>(direction)];
        const bool has_hw =
            std::ranges::all_of(all, [](const auto& t) { return t.hw.has_value(); });
        for (size_t i = 0; i < all.size(); ++i) {
            cpu.push_back(to_npu_info(all[i], direction, TensorType::CPU));
            if (has_hw) hw.push_back(to_npu_info(all[i], direction, TensorType::HW));
            places_.emplace(all[i].name, Place{direction, i, quantisation_of(all[i])});
        }
    }
}

Error TensorTables::unknown(const char* call, const std::string& name) const {
    std::string text =
        std::string(call) + ": the model has no tensor " + in_quotes(name) + "; it has";
    const char* separator = " ";
    for (const auto& list : tensors_)
        for (const TensorInfo& tensor : list) {
            text += separator + in_quotes(tensor.name);
            separator = ", ";
        }
    return {ErrorCode::not_found, text};
}

Result<const vart::NpuTensorInfo*> TensorTables::find(const std::string& name,
                                                      TensorType type) const {
    const auto found = places_.find(name);
    if (found == places_.end()) return unknown("get_tensor_info_by_name", name);
    const auto& list = infos(found->second.direction, type);
    if (found->second.index < list.size()) return &list[found->second.index];
    return Error{ErrorCode::not_found,
                 "get_tensor_info_by_name: tensor " + in_quotes(name) +
                     " has no HW view, a CPU partition produces or consumes it; ask for its CPU "
                     "view"};
}

Result<const vart::QuantParameters*> TensorTables::quantisation(const std::string& name) const {
    const auto found = places_.find(name);
    if (found == places_.end()) return unknown("get_quant_parameters", name);
    return &found->second.quantisation;
}

}  // namespace vartml::runtime
