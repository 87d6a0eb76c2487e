// SPDX-License-Identifier: Apache-2.0
// The VART-ML interface: RunnerFactory opens a compiled model, Runner runs it. The only include an
// application needs. Compiles as C++17 and C++20. Source-compatible with the public header of the
// same name.
#pragma once

#include <any>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vart_npu_tensor.hpp"

namespace vart {

enum class RunnerType {
    VAIML,
};

enum class RoundingMode {
    UNKNOWN,
    ROUND_TO_NEAREST_EVEN,
    ROUND_TOWARD_ZERO,
};

/// Affine quantisation of an integer HW view: real = (q - zero_point) * scale. {1.0, 0, UNKNOWN}
/// for a tensor that is not quantised.
struct QuantParameters {
    double scale = 0.0;
    int32_t zero_point = 0;
    RoundingMode rounding_mode = RoundingMode::UNKNOWN;
};

/// Outcome of the calls that run the model; none of them throws. The runner's property `last_error`
/// holds the sentence of the calling thread's last failure.
enum class StatusCode {
    SUCCESS = 0,
    FAILURE,         ///< an operator rejected its data
    INVALID_INPUT,   ///< the inputs do not fit the model; nothing was touched
    INVALID_OUTPUT,  ///< the outputs do not fit the model; nothing was touched
    OUT_OF_MEMORY,
    RUNTIME_ERROR,         ///< the device reported a fault
    JOB_PENDING,           ///< not finished yet; wait again
    INVALID_JOB_ID,        ///< no such job, or its final status was already returned
    RESOURCE_UNAVAILABLE,  ///< all slots are busy; nothing was queued, try again
    UNSUPPORTED,
};

std::string_view to_string(RoundingMode value) noexcept;
std::string_view to_string(StatusCode value) noexcept;

/// A submitted job: SUCCESS and its number (from 1), or why it was refused and 0.
struct JobHandle {
    StatusCode status;
    uint32_t job_id;

    JobHandle(StatusCode stat, uint32_t id) : status(stat), job_id(id) {}
    JobHandle() : status(StatusCode::FAILURE), job_id(0) {}
};

/// A model that is ready to run. RunnerFactory::create_runner makes it.
/// Thread-safety: every member may be called concurrently. Destruction waits for accepted jobs and
/// their callbacks.
class Runner {
protected:
    explicit Runner(const std::string& /*model_path*/,
                    const std::unordered_map<std::string, std::any>& /*options*/ = {}) {}

public:
    virtual ~Runner() = default;

    /// The model's tensors in the order of the ONNX graph; for HW those that have a HW view. The
    /// reference stays valid for the runner's life.
    virtual const std::vector<NpuTensorInfo>& get_tensors_info(TensorDirection direction,
                                                               TensorType type) const = 0;

    /// \throws std::runtime_error if no tensor has that name or it has no such view; the text lists
    /// the names.
    virtual const NpuTensorInfo& get_tensor_info_by_name(const std::string& tensor_name,
                                                         TensorType type) const = 0;

    /// \throws std::runtime_error if no tensor has that name.
    virtual const QuantParameters& get_quant_parameters(const std::string& tensor_name) const = 0;

    virtual size_t get_num_input_tensors() const = 0;
    virtual size_t get_num_output_tensors() const = 0;

    /// Largest outer vector that execute() accepts.
    virtual size_t get_batch_size() const = 0;
    virtual size_t get_batch_size(TensorDirection direction) const = 0;

    /// A fact about the runner; the key `supported_keys` (std::vector<std::string>) lists the
    /// others, the documentation their types. \throws std::invalid_argument for an unknown key.
    virtual std::any get_property(const std::string& key) const = 0;

    /// Runs the model and blocks until the outputs are complete. Both vectors are [batch][tensor],
    /// the outer size 1 to get_batch_size(), each inner vector one tensor per model input (output)
    /// in the order of get_tensors_info(). Outputs behind the last of the inputs are not written.
    virtual StatusCode execute(const std::vector<std::vector<NpuTensor>>& inputs,
                               std::vector<std::vector<NpuTensor>>& outputs) noexcept = 0;

    /// Submits a run. The vectors and NpuTensor objects may go away after the call, the buffers
    /// must stay valid until the job is finished; two jobs in flight must not share an output.
    /// {RESOURCE_UNAVAILABLE, 0} if all slots are busy.
    virtual JobHandle execute_async(const std::vector<std::vector<NpuTensor>>& inputs,
                                    std::vector<std::vector<NpuTensor>>& outputs) noexcept = 0;

    /// Final status of a job, or JOB_PENDING if it is not finished within `timeout` (zero: look and
    /// return). The job is forgotten when its final status was returned.
    virtual StatusCode wait(const JobHandle& job_handle,
                            std::chrono::milliseconds timeout) noexcept = 0;

    /// Gets the final status and the number of a job, on a thread of the runtime. Every Runner
    /// member may be called inside, the last reference to the runner may be dropped.
    using ExecuteAsyncCallback = std::function<void(const JobHandle&)>;

    /// As above, and calls `cb` when the job is finished; not if it was refused.
    virtual JobHandle execute_async(const std::vector<std::vector<NpuTensor>>& inputs,
                                    std::vector<std::vector<NpuTensor>>& outputs,
                                    ExecuteAsyncCallback cb) noexcept = 0;

    /// Zeroed, page-aligned memory that the device reaches, of type XRT_BO, in the bank
    /// `cma_index`. Lives until the tensor, its copies and sub-tensors are gone, also after the
    /// runner.
    /// \throws std::invalid_argument for an inconsistent description, std::runtime_error if there
    /// is no memory.
    virtual NpuTensor allocate_npu_tensor(const NpuTensorInfo& info) const = 0;

    /// As above in the bank named. \throws std::invalid_argument also for a bank that does not
    /// exist.
    virtual NpuTensor allocate_npu_tensor(const NpuTensorInfo& info,
                                          uint32_t memory_bank) const = 0;

    /// A tensor whose bytes begin `offset` bytes into `parent`, which must come from
    /// allocate_npu_tensor. Allocates nothing.
    /// \throws std::invalid_argument if the parent is empty, wrapped or a sub-tensor itself, or the
    /// range or alignment does not fit.
    virtual NpuTensor allocate_sub_tensor(const NpuTensor& parent, const NpuTensorInfo& info,
                                          size_t offset) const = 0;
};

class RunnerFactory {
public:
    /// Opens a compiled model (directory, .rai, .tar.gz) and prepares it on a device. Unknown
    /// options are errors. `input_tensor_type.NAME` is the view of one tensor, also for outputs.
    /// \throws std::invalid_argument for the options, std::runtime_error for everything else.
    static std::shared_ptr<Runner> create_runner(
        RunnerType runner_type, const std::string& model_path,
        const std::unordered_map<std::string, std::any>& options = {});
};

}  // namespace vart
