// SPDX-License-Identifier: Apache-2.0
// The throwing calls of the vart API as Results, and its structures as the library's plain views.
// Nothing of the plugins catches elsewhere, and no exception leaves these functions.
#pragma once
#include <any>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>
#include <vart/vart_runner_factory.hpp>

namespace vartml::gst {

using RunnerOptions = std::unordered_map<std::string, std::any>;

// Errors: invalid_argument for an option, device for everything else; the runtime's own sentence.
using CreateRunner = vartml::Result<std::shared_ptr<vart::Runner>>(const std::string& model_path,
                                                                   const RunnerOptions& options);
// The runtime's. The one seam of the plugins: a test puts its own here before it makes an element.
extern CreateRunner* create_runner;

// A tensor of the model as the runner takes or gives it.
struct RunnerTensor {
    vart::NpuTensorInfo info;  // of the effective view
    vartml::TensorView view;   // the same
    vartml::TensorView cpu;    // as the ONNX model declares it
    bool hw = false;
};
vartml::Result<std::vector<RunnerTensor>> runner_tensors(const vart::Runner& runner,
                                                         vart::TensorDirection direction,
                                                         vart::TensorType type);

// Memory for a tensor with its NpuTensor object, made once and reused. HW views lie in memory of
// the runner, CPU views in plain memory (other runtimes refuse to allocate them).
struct TensorMemory {
    vart::NpuTensor tensor;
    void* data = nullptr;         // mapped bytes
    std::shared_ptr<void> owner;  // plain memory; empty for memory of the runner
};
vartml::Result<TensorMemory> allocate_tensor(const vart::Runner& runner,
                                             const RunnerTensor& tensor);

// A property of the runner; nothing where the runtime does not have it, or has no properties at
// all.
template <typename T, typename Runner>
std::optional<T> runner_property(const Runner& runner, const char* key) {
    if constexpr (requires { runner.get_property(key); }) {
        try {
            const std::any value = runner.get_property(key);
            if (const T* typed = std::any_cast<T>(&value)) return *typed;
        } catch (const std::exception&) {
            return std::nullopt;
        }
    }
    return std::nullopt;
}

vartml::TensorView tensor_view(const vart::NpuTensorInfo& info);
// Name of a status and what it means to a user, as a library error.
vartml::Error status_error(vart::StatusCode status, const std::string& text);

}  // namespace vartml::gst
