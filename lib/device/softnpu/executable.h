// SPDX-License-Identifier: Apache-2.0
// A loaded program: one plan, and memory for the runs that go on at the same time.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/device/device.h"
#include "lib/device/softnpu/frame_group.h"

namespace vartml::softnpu {

class SoftExecutable final : public device::Executable {
public:
    // For `runs` runs at the same time, each of up to `frames` frames together, on up to `threads`
    // threads. Errors: out_of_memory naming the size of an arena.
    static Result<std::unique_ptr<SoftExecutable>> create(
        const std::shared_ptr<const device::Program>& program, Plan plan, DataType compute,
        unsigned runs, unsigned frames, unsigned threads);

    Result<void> run(std::span<const void* const> inputs,
                     std::span<void* const> outputs) noexcept override;
    Result<void> run(std::span<const void* const> inputs, std::span<void* const> outputs,
                     device::RealShapes& shapes) noexcept override;
    unsigned frames_at_once() const override { return groups_[0]->frames(); }
    Result<void> run_frames(std::span<const device::Frame> frames) noexcept override;
    std::vector<device::StampedProgram> stamped() const override;
    Result<void> run_recorded(std::span<const device::Frame> frames, device::RealShapes* shapes,
                              std::span<device::StepRecorder* const> recorders) noexcept override;
    std::string compute_type() const override { return std::string(to_string(compute_)); }
    unsigned border_conversions() const override {
        return groups_[0]->lane().plan().border_conversions;
    }
    size_t private_weight_bytes() const override { return private_bytes_; }
    std::string describe() const override { return groups_[0]->lane().describe(); }
    std::vector<double> time_steps(unsigned runs) override;

private:
    class Taken;

    SoftExecutable(std::vector<std::unique_ptr<FrameGroup>> groups, DataType compute,
                   size_t private_bytes);

    std::vector<std::unique_ptr<FrameGroup>> groups_;
    const DataType compute_;
    const size_t private_bytes_;
    std::mutex mutex_;  // guards free_; a leaf lock
    std::condition_variable returned_;
    std::vector<FrameGroup*> free_;  // room for all
};

}  // namespace vartml::softnpu
