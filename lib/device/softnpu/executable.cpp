// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/executable.h"

#include "lib/device/executor.h"

namespace vartml::softnpu {

// A group that nobody else runs in, as long as this lives.
class SoftExecutable::Taken {
public:
    explicit Taken(SoftExecutable& owner) : owner_(owner) {
        std::unique_lock lock(owner_.mutex_);
        if (owner_.free_.empty()) {
            const device::Executor::Waiting waiting;
            owner_.returned_.wait(lock, [this] { return !owner_.free_.empty(); });
        }
        group_ = owner_.free_.back();
        owner_.free_.pop_back();
    }
    ~Taken() {
        {
            const std::lock_guard lock(owner_.mutex_);
            owner_.free_.push_back(group_);
        }
        owner_.returned_.notify_one();
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    FrameGroup* operator->() const { return group_; }

private:
    SoftExecutable& owner_;
    FrameGroup* group_;
};

SoftExecutable::SoftExecutable(std::vector<std::unique_ptr<FrameGroup>> groups, DataType compute,
                               size_t private_bytes)
    : groups_(std::move(groups)), compute_(compute), private_bytes_(private_bytes) {
    free_.reserve(groups_.size());
    for (const auto& group : groups_) free_.push_back(group.get());
}

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

Result<void> SoftExecutable::run(std::span<const void* const> inputs,
                                 std::span<void* const> outputs) noexcept {
    const device::Frame frame{inputs, outputs};
    return run_frames({&frame, 1});
}

Result<void> SoftExecutable::run(std::span<const void* const> inputs,
                                 std::span<void* const> outputs,
                                 device::RealShapes& shapes) noexcept {
    return Taken(*this)->run(device::Frame{inputs, outputs}, shapes);
}

Result<void> SoftExecutable::run_frames(std::span<const device::Frame> frames) noexcept {
    return Taken(*this)->run(frames);
}

std::vector<device::StampedProgram> SoftExecutable::stamped() const {
    device::StampedProgram program{groups_[0]->lane().program().name, {}};
    for (const auto& step : groups_[0]->lane().plan().steps) program.steps.push_back(step->op);
    return {std::move(program)};
}

Result<void> SoftExecutable::run_recorded(
    std::span<const device::Frame> frames, device::RealShapes* shapes,
    std::span<device::StepRecorder* const> recorders) noexcept {
    Taken group(*this);
    return shapes ? group->run(frames[0], *shapes, recorders[0]) : group->run(frames, recorders[0]);
}

std::vector<double> SoftExecutable::time_steps(unsigned runs) {
    return Taken(*this)->lane().time_steps(runs);
}

}  // namespace vartml::softnpu
