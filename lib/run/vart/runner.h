// SPDX-License-Identifier: Apache-2.0
// The runner of this library: vart::Runner over a loaded program.
#pragma once
#include <any>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>
#include <vart/vart_runner_factory.hpp>

#include "lib/model/compiled_model.h"
#include "lib/run/exec/device.h"
#include "lib/run/vart/analyzer.h"
#include "lib/run/vart/columns.h"
#include "lib/run/vart/engine.h"
#include "lib/run/vart/jobs.h"
#include "lib/run/vart/options.h"
#include "lib/run/vart/tensor_info.h"

namespace vartml::runtime {

// Everything of a runner but its interface. Lives until its last job and callback are done.
struct RunnerState {
    RunnerState(std::string path, Options runner_options, artifact::CompiledModel compiled);
    ~RunnerState();  // not on one of its own callback threads

    // ---- fixed at creation ----
    const uint64_t id;  // of this process; never used again
    const std::string model_path;
    const Options options;
    const Logger logger;
    artifact::CompiledModel model;  // without its graphs
    TensorTables tables;
    std::shared_ptr<MemoryProvider> memory;  // of option vartml_memory
    std::optional<ColumnReservation> columns;
    device::Device* device = nullptr;
    std::string target;
    std::shared_ptr<device::Executor> executor;
    std::shared_ptr<Analyzer> analyzer;     // where the option asks for it
    Traffic traffic;                        // of the graphs
    std::array<uint64_t, 2> activate_ns{};  // loading: of the NPU's partitions, of the CPU's
    std::unique_ptr<Engine> engine;         // goes on a thread of the executor
    std::unique_ptr<Jobs> jobs;             // goes first
};

// Where the options want tensors to come from. Errors: those of create_runner.
Result<std::shared_ptr<MemoryProvider>> open_memory(const Options& options);

// From a model in memory to a state that is ready to run. `path` is for messages and properties.
// Without `memory` it is open_memory(options). Errors: those of create_runner.
Result<std::unique_ptr<RunnerState>> prepare(const std::string& path, artifact::CompiledModel model,
                                             Options options,
                                             std::shared_ptr<MemoryProvider> memory = nullptr);

class VaimlRunner final : public vart::Runner {
public:
    explicit VaimlRunner(std::unique_ptr<RunnerState> state);
    ~VaimlRunner() override;

    const std::vector<vart::NpuTensorInfo>& get_tensors_info(vart::TensorDirection direction,
                                                             vart::TensorType type) const override;
    const vart::NpuTensorInfo& get_tensor_info_by_name(const std::string& tensor_name,
                                                       vart::TensorType type) const override;
    const vart::QuantParameters& get_quant_parameters(
        const std::string& tensor_name) const override;
    size_t get_num_input_tensors() const override;
    size_t get_num_output_tensors() const override;
    size_t get_batch_size() const override;
    size_t get_batch_size(vart::TensorDirection direction) const override;
    std::any get_property(const std::string& key) const override;
    vart::StatusCode execute(const Tensors& inputs, Tensors& outputs) noexcept override;
    vart::JobHandle execute_async(const Tensors& inputs, Tensors& outputs) noexcept override;
    vart::JobHandle execute_async(const Tensors& inputs, Tensors& outputs,
                                  ExecuteAsyncCallback cb) noexcept override;
    vart::StatusCode wait(const vart::JobHandle& job_handle,
                          std::chrono::milliseconds timeout) noexcept override;
    vart::NpuTensor allocate_npu_tensor(const vart::NpuTensorInfo& info) const override;
    vart::NpuTensor allocate_npu_tensor(const vart::NpuTensorInfo& info,
                                        uint32_t memory_bank) const override;
    vart::NpuTensor allocate_sub_tensor(const vart::NpuTensor& parent,
                                        const vart::NpuTensorInfo& info,
                                        size_t offset) const override;

private:
    Expected expected() const;
    vart::StatusCode refuse_inherited(const char* call) noexcept;
    vart::StatusCode fail(vart::StatusCode status, std::string_view text, bool is_logged) noexcept;
    void remember_refusal() noexcept;

    std::unique_ptr<RunnerState> state_;
};

// The value of a property. Errors: not_found naming the key.
Result<std::any> property(const RunnerState& state, const std::string& key);

// Text of the calling thread's last failure on the runner with that id; `text` is clean.
void set_last_error(uint64_t runner, std::string_view text);
std::string last_error(uint64_t runner);

}  // namespace vartml::runtime
