// SPDX-License-Identifier: Apache-2.0
// The software NPU as a device.
#include "lib/run/softnpu/softnpu.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include <vartml/processors.h>

#include "lib/run/exec/device.h"
#include "lib/run/exec/executor.h"
#include "lib/run/exec/shared_run.h"
#include "lib/run/softnpu/lowering.h"
#include "lib/run/softnpu/onednn.h"
#include "lib/run/softnpu/plan.h"
#include "lib/run/softnpu/processor.h"
#include "lib/run/softnpu/weight_cache.h"

namespace vartml::softnpu {

// A plan with its arena: what one inference needs while it goes on.

class Lane {
public:
    // Errors: out_of_memory naming the arena's size.
    static Result<std::unique_ptr<Lane>> create(std::shared_ptr<const device::Program> program,
                                                Plan plan);

    // What the next run reads and writes; forgets the error of the run before.
    void bind(std::span<const void* const> inputs, std::span<void* const> outputs);
    void run_item(size_t step, size_t item) noexcept { plan_.steps[step]->run(bases_, item); }
    RunState& state() { return *plan_.state; }

    const Plan& plan() const { return plan_; }
    const device::Program& program() const { return *program_; }
    std::string describe() const;
    // Shortest duration of each step in nanoseconds over `runs` runs on scratch data.
    std::vector<double> time_steps(unsigned runs);

private:
    struct FreeArena {
        void operator()(std::byte* p) const;
        size_t size;
    };
    Lane(std::shared_ptr<const device::Program> program, Plan plan);

    std::shared_ptr<const device::Program> program_;  // keeps the constants alive
    Plan plan_;
    std::unique_ptr<std::byte, FreeArena> arena_;
    std::vector<std::byte*> bases_;
    std::vector<size_t> input_buffers_, output_buffers_;  // index into bases_, per border tensor
};

// Frames of a batch that go through a program together: each step is made for all of them before
// the next one, so that its weights are fetched once and threads meet once per step, not once per
// step and frame.

// Thread-safety: one run at a time.
class FrameGroup final : device::SharedRun::Work {
public:
    // A lane per frame; up to `threads` threads share a run.
    FrameGroup(std::vector<std::unique_ptr<Lane>> lanes, unsigned threads);

    // Errors: the first of a frame, by their order; the others have run.
    Result<void> run(const device::Run& run) noexcept;

    unsigned frames() const { return static_cast<unsigned>(lanes_.size()); }
    Lane& lane() { return *lanes_[0]; }

private:
    void run_item(size_t step, size_t item) noexcept override;
    void take_shapes(const device::RealShapes& shapes);
    void give_shapes(device::RealShapes& shapes);

    std::vector<std::unique_ptr<Lane>> lanes_;
    // By the number of frames - 1; last, because its end waits for helpers.
    std::vector<std::unique_ptr<device::SharedRun>> shared_;
};

// A loaded program: one plan, and memory for the runs that go on at the same time.

class SoftExecutable final : public device::Executable {
public:
    // For `runs` runs at the same time, each of up to `frames` frames together, on up to `threads`
    // threads. Errors: out_of_memory naming the size of an arena.
    static Result<std::unique_ptr<SoftExecutable>> create(
        const std::shared_ptr<const device::Program>& program, Plan plan, DataType compute,
        unsigned runs, unsigned frames, unsigned threads);

    Result<void> run(const device::Run& run) noexcept override {
        return groups_[run.slot]->run(run);
    }
    unsigned frames_at_once() const override { return groups_[0]->frames(); }
    std::vector<device::StampedProgram> stamped() const override;
    std::string compute_type() const override { return std::string(to_string(compute_)); }
    unsigned border_conversions() const override {
        return groups_[0]->lane().plan().border_conversions;
    }
    size_t private_weight_bytes() const override { return private_bytes_; }
    std::string describe() const override { return groups_[0]->lane().describe(); }
    std::vector<double> time_steps(unsigned runs, unsigned slot) override {
        return groups_[slot]->lane().time_steps(runs);
    }

private:
    SoftExecutable(std::vector<std::unique_ptr<FrameGroup>> groups, DataType compute,
                   size_t private_bytes);

    const std::vector<std::unique_ptr<FrameGroup>> groups_;  // by slot
    const DataType compute_;
    const size_t private_bytes_;
};

}  // namespace vartml::softnpu

namespace vartml::device {

namespace {

DataType compute_type(Numerics numerics) {
    if (numerics == Numerics::bf16) return DataType::bf16;
    if (numerics == Numerics::f32) return DataType::float32;
    return softnpu::prefers_bf16() ? DataType::bf16 : DataType::float32;
}

class SoftNpu final : public Device {
public:
    std::string name() const override { return "softnpu"; }
    // CPU partitions differ in nothing but the type of their float work.
    bool supports_target(const std::string& t) const override {
        return t == "softnpu-1" || t == "cpu-1";
    }
    unsigned num_cores() const override { return std::min(usable_processors(), 64U); }

    Result<std::unique_ptr<Executable>> load(std::shared_ptr<const Program> program,
                                             const LoadOptions& options) override {
        const unsigned all = options.threads ? options.threads : num_cores();
        const unsigned runs = std::max(options.concurrent_runs, 1U);
        const softnpu::OneThread one;
        softnpu::obey_instruction_limit();
        const DataType compute =
            program->target == "cpu-1" ? DataType::float32 : compute_type(options.numerics);
        try {
            std::optional<softnpu::WeightCache> cache;
            const auto open = [&](bool uses_onednn) -> const softnpu::WeightCache* {
                if (options.weights_cache_dir.empty()) return nullptr;
                const auto key = softnpu::WeightCache::key(*program, compute, all, uses_onednn);
                if (!key) return nullptr;
                return &cache.emplace(options.weights_cache_dir, *key, options.note);
            };
            auto plan = softnpu::Lowering(*program, compute, all).run(open);
            if (!plan) return std::move(plan).error();
            // More frames than threads would only push each other out of the caches.
            auto loaded = softnpu::SoftExecutable::create(program, std::move(*plan), compute, runs,
                                                          std::clamp(options.batch, 1U, all), all);
            if (!loaded) return std::move(loaded).error();
            return std::unique_ptr<Executable>(std::move(*loaded));
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

namespace vartml::softnpu {

SoftExecutable::SoftExecutable(std::vector<std::unique_ptr<FrameGroup>> groups, DataType compute,
                               size_t private_bytes)
    : groups_(std::move(groups)), compute_(compute), private_bytes_(private_bytes) {}

Result<std::unique_ptr<SoftExecutable>> SoftExecutable::create(
    const std::shared_ptr<const device::Program>& program, Plan plan, DataType compute,
    unsigned runs, unsigned frames, unsigned threads) {
    const size_t private_bytes = plan.private_bytes;
    std::vector<std::unique_ptr<FrameGroup>> groups;
    for (unsigned r = 0; r < runs; ++r) {
        std::vector<std::unique_ptr<Lane>> lanes;
        for (unsigned f = 0; f < frames; ++f) {
            const bool is_last = r + 1 == runs && f + 1 == frames;
            auto lane = Lane::create(program, is_last ? std::move(plan) : plan.for_another_run());
            if (!lane) return std::move(lane).error();
            lanes.push_back(std::move(*lane));
        }
        groups.push_back(std::make_unique<FrameGroup>(std::move(lanes), threads));
    }
    return std::unique_ptr<SoftExecutable>(
        new SoftExecutable(std::move(groups), compute, private_bytes));
}

std::vector<device::StampedProgram> SoftExecutable::stamped() const {
    device::StampedProgram program{groups_[0]->lane().program().name, {}};
    for (const auto& step : groups_[0]->lane().plan().steps) program.steps.push_back(step->op);
    return {std::move(program)};
}

FrameGroup::FrameGroup(std::vector<std::unique_ptr<Lane>> lanes, unsigned threads)
    : lanes_(std::move(lanes)) {
    for (uint32_t frames = 1; frames <= lanes_.size(); ++frames) {
        const Plan& plan = lanes_[0]->plan();
        std::vector<uint32_t> items;
        for (const auto& step : plan.steps) items.push_back(step->items() * frames);
        shared_.emplace_back(
            new device::SharedRun(*this, items, threads_worth(plan.steps, frames, threads)));
    }
}

void FrameGroup::take_shapes(const device::RealShapes& shapes) {
    RunState& state = lanes_[0]->state();
    for (size_t i = 0; i < state.input_shapes.size(); ++i)
        if (const int32_t at = state.input_shapes[i]; at >= 0)
            state.shapes[static_cast<size_t>(at)] = shapes.inputs[i];
}

void FrameGroup::give_shapes(device::RealShapes& shapes) {
    const RunState& state = lanes_[0]->state();
    for (size_t i = 0; i < state.output_shapes.size(); ++i)
        if (const int32_t at = state.output_shapes[i]; at >= 0)
            shapes.outputs[i] = state.shapes[static_cast<size_t>(at)];
}

Result<void> FrameGroup::run(const device::Run& run) noexcept {
    device::StepRecorder* const recorder = run.recorders.empty() ? nullptr : run.recorders[0];
    const size_t frames = run.frames.size();
    if (run.shapes) take_shapes(*run.shapes);
    if (recorder) recorder->begin();
    for (size_t i = 0; i < frames; ++i)
        lanes_[i]->bind(run.frames[i].inputs, run.frames[i].outputs);
    shared_[frames - 1]->run(recorder);
    if (recorder) recorder->end();
    if (run.shapes) give_shapes(*run.shapes);
    for (size_t i = 0; i < frames; ++i) {
        RunState& state = lanes_[i]->state();
        if (state.error) return std::move(*state.error);
        if (const int status = state.onednn_status.load(std::memory_order_relaxed))
            return status == dnnl_out_of_memory
                       ? Error{ErrorCode::out_of_memory, {}}
                       : Error{ErrorCode::device,
                               "oneDNN refused a step with status " + std::to_string(status)};
    }
    return {};
}

// Items of a frame follow each other, so that a thread stays with its frames.
void FrameGroup::run_item(size_t step, size_t item) noexcept {
    const uint32_t own = lanes_[0]->plan().steps[step]->items();
    lanes_[item / own]->run_item(step, item % own);
}

namespace {

constexpr size_t page = 4096;

size_t whole_pages(size_t size) {
    return std::max(page, (size + page - 1) / page * page);
}

// Zeros that take memory only where they are touched: the arena of a run that never goes on beside
// another costs nothing.
std::byte* reserve(size_t size) {
    void* const memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

Lane::Lane(std::shared_ptr<const device::Program> program, Plan plan)
    : program_(std::move(program)), plan_(std::move(plan)) {}

void Lane::FreeArena::operator()(std::byte* p) const {
    ::munmap(p, size);
}

Result<std::unique_ptr<Lane>> Lane::create(std::shared_ptr<const device::Program> program,
                                           Plan plan) {
    std::unique_ptr<Lane> self(new Lane(std::move(program), std::move(plan)));
    const Plan& p = self->plan_;
    const size_t size = whole_pages(p.arena_bytes);
    std::byte* const arena = reserve(size);
    if (!arena) {
        return Error{ErrorCode::out_of_memory, self->program_->name +
                                                   ": no memory for an arena of " +
                                                   std::to_string(size) + " bytes"};
    }
    self->arena_ = {arena, FreeArena{size}};
    self->input_buffers_.resize(self->program_->inputs.size());
    self->output_buffers_.resize(self->program_->outputs.size());
    for (size_t i = 0; i < p.buffers.size(); ++i) {
        const Buffer& b = p.buffers[i];
        std::byte* base = nullptr;
        if (b.place == Place::arena) base = arena + b.offset;
        if (b.place == Place::constant) base = const_cast<std::byte*>(b.data);
        if (b.place == Place::input) self->input_buffers_[static_cast<size_t>(b.index)] = i;
        if (b.place == Place::output) self->output_buffers_[static_cast<size_t>(b.index)] = i;
        self->bases_.push_back(base);
    }
    return self;
}

void Lane::bind(std::span<const void* const> inputs, std::span<void* const> outputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
        // Steps only read inputs.
        bases_[input_buffers_[i]] = static_cast<std::byte*>(const_cast<void*>(inputs[i]));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
        bases_[output_buffers_[i]] = static_cast<std::byte*>(outputs[i]);
    }
    plan_.state->error.reset();
    plan_.state->onednn_status.store(0, std::memory_order_relaxed);
}

std::string Lane::describe() const {
    std::string text;
    for (const auto& step : plan_.steps) text += step->name + ": " + step->describe() + "\n";
    return text;
}

std::vector<double> Lane::time_steps(unsigned runs) {
    using clock = std::chrono::steady_clock;
    std::vector<std::vector<std::byte>> memory;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const TensorInfo& info : program_->inputs) {
        memory.emplace_back(info.hw->size_bytes);
        inputs.push_back(memory.back().data());
    }
    for (const TensorInfo& info : program_->outputs) {
        memory.emplace_back(info.hw->size_bytes);
        outputs.push_back(memory.back().data());
    }
    bind(inputs, outputs);
    std::vector<double> best(plan_.steps.size(), std::numeric_limits<double>::infinity());
    for (unsigned r = 0; r < runs; ++r) {
        for (size_t s = 0; s < plan_.steps.size(); ++s) {
            const auto start = clock::now();
            for (uint32_t i = 0; i < plan_.steps[s]->items(); ++i) run_item(s, i);
            const double ns =
                std::chrono::duration<double, std::nano>(clock::now() - start).count();
            best[s] = std::min(best[s], ns);
        }
    }
    return best;
}

}  // namespace vartml::softnpu
