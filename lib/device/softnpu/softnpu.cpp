// SPDX-License-Identifier: Apache-2.0
// The software NPU as a device.
#include "lib/device/softnpu/softnpu.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "lib/device/executor.h"
#include "lib/device/softnpu/executable.h"
#include "lib/device/softnpu/lowering.h"
#include "lib/device/softnpu/onednn.h"
#include "lib/device/softnpu/processor.h"

namespace vartml::device {
namespace {

// bf16 only where the processor multiplies it natively.
DataType compute_type(Numerics numerics) {
    if (numerics == Numerics::bf16) return DataType::bf16;
    if (numerics == Numerics::f32) return DataType::float32;
    return softnpu::has_bf16_products() ? DataType::bf16 : DataType::float32;
}

// As many plans as runs go on at the same time, each with its arena.
class Cores final : public Executable {
public:
    explicit Cores(std::vector<std::unique_ptr<softnpu::SoftExecutable>> cores)
        : cores_(std::move(cores)) {
        free_.reserve(cores_.size());
        for (const auto& core : cores_) free_.push_back(core.get());
    }

    Result<void> run(std::span<const void* const> inputs,
                     std::span<void* const> outputs) noexcept override {
        softnpu::SoftExecutable* const core = take();
        auto result = core->run(inputs, outputs);
        give_back(core);
        return result;
    }
    Result<void> run(std::span<const void* const> inputs, std::span<void* const> outputs,
                     RealShapes& shapes) noexcept override {
        softnpu::SoftExecutable* const core = take();
        auto result = core->run(inputs, outputs, shapes);
        give_back(core);
        return result;
    }
    std::string compute_type() const override { return cores_[0]->compute_type(); }
    unsigned border_conversions() const override { return cores_[0]->border_conversions(); }
    size_t private_weight_bytes() const override {
        size_t bytes = 0;
        for (const auto& core : cores_) bytes += core->private_weight_bytes();
        return bytes;
    }
    std::string describe() const override { return cores_[0]->describe(); }
    std::vector<double> time_steps(unsigned runs) override {
        softnpu::SoftExecutable* const core = take();
        auto times = core->time_steps(runs);
        give_back(core);
        return times;
    }

private:
    softnpu::SoftExecutable* take() {
        std::unique_lock lock(mutex_);
        if (free_.empty()) {
            const Executor::Waiting waiting;
            returned_.wait(lock, [this] { return !free_.empty(); });
        }
        softnpu::SoftExecutable* const core = free_.back();
        free_.pop_back();
        return core;
    }
    void give_back(softnpu::SoftExecutable* core) {
        {
            const std::lock_guard lock(mutex_);
            free_.push_back(core);
        }
        returned_.notify_one();
    }

    std::vector<std::unique_ptr<softnpu::SoftExecutable>> cores_;
    std::mutex mutex_;
    std::condition_variable returned_;
    std::vector<softnpu::SoftExecutable*> free_;  // guarded by mutex_; room for all
};

class SoftNpu final : public Device {
public:
    std::string name() const override { return "softnpu"; }
    // CPU partitions differ in nothing but the type of their float work.
    bool supports_target(const std::string& t) const override {
        return t == "softnpu-1" || t == "cpu-1";
    }
    unsigned num_cores() const override { return std::min(softnpu::usable_processors(), 64U); }

    Result<std::unique_ptr<Executable>> load(std::shared_ptr<const Program> program,
                                             const LoadOptions& options) override {
        const unsigned all = options.threads ? options.threads : num_cores();
        const unsigned runs = std::clamp(options.concurrent_runs, 1U, std::min(all, num_cores()));
        const softnpu::OneThread one;
        const DataType compute =
            program->target == "cpu-1" ? DataType::float32 : compute_type(options.numerics);
        try {
            std::vector<std::unique_ptr<softnpu::SoftExecutable>> cores;
            for (unsigned i = 0; i < runs; ++i) {
                auto plan = softnpu::Lowering(*program, compute, all).run();
                if (!plan) return std::move(plan).error();
                auto core =
                    softnpu::SoftExecutable::create(program, std::move(*plan), compute, all);
                if (!core) return std::move(core).error();
                cores.push_back(std::move(*core));
            }
            return std::unique_ptr<Executable>(std::make_unique<Cores>(std::move(cores)));
        } catch (const std::bad_alloc&) {
            return Error{ErrorCode::out_of_memory, "no memory to load the program"};
        } catch (const dnnl::error& e) {
            return Error{ErrorCode::device, std::string("oneDNN: ") + e.what()};
        }
    }
};

}  // namespace

Device& softnpu_device() {
    static SoftNpu device;
    return device;
}

}  // namespace vartml::device
