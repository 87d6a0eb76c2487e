// SPDX-License-Identifier: Apache-2.0
// What a runner knows of its model's border: every tensor in both views.
#pragma once
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>
#include <vart/vart_runner_factory.hpp>

namespace vartml::runtime {

// Thread-safety: immutable.
class TensorTables {
public:
    TensorTables(std::vector<TensorInfo> inputs, std::vector<TensorInfo> outputs);

    const std::vector<TensorInfo>& tensors(vart::TensorDirection direction) const {
        return tensors_[static_cast<size_t>(direction)];
    }
    // Empty for HW if a tensor of that direction has no HW view.
    const std::vector<vart::NpuTensorInfo>& infos(vart::TensorDirection direction,
                                                  vart::TensorType type) const {
        return infos_[static_cast<size_t>(direction)][static_cast<size_t>(type)];
    }
    // Errors: not_found listing the names, or naming the view that the tensor does not have.
    Result<const vart::NpuTensorInfo*> find(const std::string& name, vart::TensorType type) const;
    // Errors: not_found listing the names.
    Result<const vart::QuantParameters*> quantisation(const std::string& name) const;

private:
    struct Place {
        vart::TensorDirection direction;
        size_t index;
        vart::QuantParameters quantisation;
    };
    Error unknown(const char* call, const std::string& name) const;

    std::array<std::vector<TensorInfo>, 2> tensors_;
    std::array<std::array<std::vector<vart::NpuTensorInfo>, 2>, 2> infos_;
    std::unordered_map<std::string, Place> places_;
};

}  // namespace vartml::runtime
