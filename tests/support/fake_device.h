// SPDX-License-Identifier: Apache-2.0
// A device whose time, order and failures the test decides, and small models for it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lib/base/test_seams.h"
#include "lib/model/compiled_model.h"
#include "lib/run/exec/device.h"

namespace vartml::test {

// What a run of the fake does: gets its number (from 0) and the bytes.
using FakeRun = std::function<Result<void>(unsigned run, std::span<const void* const> inputs,
                                           std::span<void* const> outputs)>;

// Without a behaviour of its own a run copies the bytes of input i to output i, as many as both
// hold.
class FakeDevice final : public device::Device {
public:
    explicit FakeDevice(unsigned num_cores = 1) : num_cores_(num_cores) {
        before_ = test_seams.device.exchange(this);
    }
    ~FakeDevice() override { test_seams.device = before_; }

    std::string name() const override { return "fake"; }
    bool supports_target(const std::string& target) const override { return target == "fake-1"; }
    unsigned num_cores() const override { return num_cores_; }
    Result<std::unique_ptr<device::Executable>> load(std::shared_ptr<const device::Program> program,
                                                     const device::LoadOptions& options) override {
        if (load_error.code != ErrorCode::internal) return load_error;
        last_options = options;
        ++loads;
        return std::unique_ptr<device::Executable>(new FakeExecutable(*this, std::move(program)));
    }

    void set_run(FakeRun run) {
        const std::lock_guard lock(mutex_);
        run_ = std::move(run);
    }
    // Runs block at their start until release().
    void hold() {
        const std::lock_guard lock(mutex_);
        permits_ = 0;
        is_held_ = true;
    }
    void release(unsigned runs) {
        const std::lock_guard lock(mutex_);
        permits_ += runs;
        cv_.notify_all();
    }
    void release_all() {
        const std::lock_guard lock(mutex_);
        is_held_ = false;
        cv_.notify_all();
    }
    void wait_for_runs(unsigned count) {
        std::unique_lock lock(mutex_);
        cv_.wait(lock, [&] { return started_ >= count; });
    }
    unsigned started() const {
        const std::lock_guard lock(mutex_);
        return started_;
    }

    std::atomic<unsigned> loads{0}, alive{0};
    device::LoadOptions last_options;
    Error load_error{ErrorCode::internal, ""};  // any other code: load() fails with it

private:
    class FakeExecutable final : public device::Executable {
    public:
        FakeExecutable(FakeDevice& device, std::shared_ptr<const device::Program> program)
            : device_(device), program_(std::move(program)) {
            ++device_.alive;
        }
        ~FakeExecutable() override { --device_.alive; }
        Result<void> run(const device::Run& run) noexcept override {
            return device_.run(*program_, run.frames[0].inputs, run.frames[0].outputs);
        }
        std::string compute_type() const override { return "fp32"; }
        unsigned border_conversions() const override { return 0; }
        size_t private_weight_bytes() const override { return 0; }
        std::string describe() const override { return "copy\n"; }
        std::vector<double> time_steps(unsigned, unsigned) override { return {1000.0}; }

    private:
        FakeDevice& device_;
        std::shared_ptr<const device::Program> program_;
    };

    Result<void> run(const device::Program& program, std::span<const void* const> inputs,
                     std::span<void* const> outputs) {
        FakeRun behaviour;
        unsigned number;
        {
            std::unique_lock lock(mutex_);
            number = started_++;
            cv_.notify_all();
            cv_.wait(lock, [&] { return !is_held_ || permits_ > 0; });
            if (is_held_) --permits_;
            behaviour = run_;
        }
        if (behaviour) return behaviour(number, inputs, outputs);
        for (size_t i = 0; i < outputs.size() && i < inputs.size(); ++i)
            std::memcpy(
                outputs[i], inputs[i],
                std::min(program.inputs[i].hw->size_bytes, program.outputs[i].hw->size_bytes));
        return {};
    }

    const unsigned num_cores_;
    device::Device* before_ = nullptr;
    mutable std::mutex mutex_;
    std::condition_variable cv_;
    FakeRun run_;
    bool is_held_ = false;
    unsigned permits_ = 0, started_ = 0;
};

// A tensor with CPU view NCHW or NHW fp32 and a HW view of its own.
inline TensorInfo tensor(std::string name, TensorView cpu, Layout layout, DataType type) {
    TensorInfo info;
    info.name = std::move(name);
    info.hw = hw_view(cpu, layout, type);
    info.cpu = std::move(cpu);
    return info;
}

// One NPU partition with these tensors for the fake device.
inline artifact::CompiledModel fake_model(std::vector<TensorInfo> inputs,
                                          std::vector<TensorInfo> outputs) {
    artifact::CompiledModel model;
    model.tool_version = "1.0.0";
    model.device = "softnpu";
    model.target = "fake-1";
    model.model_name = "fake";
    model.model_signature = std::string(32, '0');
    model.format = "rai";
    artifact::Partition partition;
    partition.name = "vaiml_par_0";
    partition.target = "fake-1";
    partition.inputs = inputs;
    partition.outputs = outputs;
    model.partitions.push_back(std::move(partition));
    model.execution_order = {0};
    model.inputs = std::move(inputs);
    model.outputs = std::move(outputs);
    return model;
}

// Input `x` and output `y`, both NCHW [1,3,4,5] fp32, as HCWNC4 bf16 on the NPU.
inline artifact::CompiledModel picture_model() {
    const TensorView cpu = make_view(DataType::float32, Layout::NCHW, {1, 3, 4, 5});
    return fake_model({tensor("x", cpu, Layout::HCWNC4, DataType::bf16)},
                      {tensor("y", cpu, Layout::HCWNC4, DataType::bf16)});
}

}  // namespace vartml::test
