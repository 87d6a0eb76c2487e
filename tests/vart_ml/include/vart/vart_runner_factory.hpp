// SPDX-License-Identifier: Apache-2.0
// Stand-in for the header of the same name of AMD's VART-ML, see vart_npu_tensor.hpp. What later
// releases add is left out, so that the plugins cannot come to need it: get_property,
// get_batch_size of a direction, allocate_npu_tensor in a bank.
#pragma once
#include <any>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vart_npu_tensor.hpp"

namespace vart {

enum class RunnerType { VAIML };
enum class RoundingMode { UNKNOWN, ROUND_TO_NEAREST_EVEN, ROUND_TOWARD_ZERO };
enum class StatusCode {
    SUCCESS = 0,
    FAILURE,
    INVALID_INPUT,
    INVALID_OUTPUT,
    OUT_OF_MEMORY,
    RUNTIME_ERROR,
    JOB_PENDING,
    INVALID_JOB_ID,
    RESOURCE_UNAVAILABLE,
    UNSUPPORTED
};
std::string_view to_string(StatusCode value) noexcept;

struct QuantParameters {
    double scale = 0.0;
    int32_t zero_point = 0;
    RoundingMode rounding_mode = RoundingMode::UNKNOWN;
};

struct JobHandle {
    StatusCode status;
    uint32_t job_id;
    JobHandle(StatusCode stat, uint32_t id) : status(stat), job_id(id) {}
    JobHandle() : JobHandle(StatusCode::FAILURE, 0) {}
};

class Runner {
public:
    using Tensors = std::vector<std::vector<NpuTensor>>;
    using ExecuteAsyncCallback = std::function<void(const JobHandle&)>;

    virtual ~Runner() = default;
    virtual const std::vector<NpuTensorInfo>& get_tensors_info(TensorDirection direction,
                                                               TensorType type) const = 0;
    virtual const NpuTensorInfo& get_tensor_info_by_name(const std::string& tensor_name,
                                                         TensorType type) const = 0;
    virtual const QuantParameters& get_quant_parameters(const std::string& tensor_name) const = 0;
    virtual size_t get_num_input_tensors() const = 0;
    virtual size_t get_num_output_tensors() const = 0;
    virtual size_t get_batch_size() const = 0;
    virtual StatusCode execute(const Tensors& inputs, Tensors& outputs) noexcept = 0;
    virtual JobHandle execute_async(const Tensors& inputs, Tensors& outputs) noexcept = 0;
    virtual JobHandle execute_async(const Tensors& inputs, Tensors& outputs,
                                    ExecuteAsyncCallback cb) noexcept = 0;
    virtual StatusCode wait(const JobHandle& job_handle,
                            std::chrono::milliseconds timeout) noexcept = 0;
    virtual NpuTensor allocate_npu_tensor(const NpuTensorInfo& info) const = 0;
    virtual NpuTensor allocate_sub_tensor(const NpuTensor& parent, const NpuTensorInfo& info,
                                          size_t offset) const = 0;
};

class RunnerFactory {
public:
    static std::shared_ptr<Runner> create_runner(
        RunnerType runner_type, const std::string& model_path,
        const std::unordered_map<std::string, std::any>& options = {});
};

}  // namespace vart
