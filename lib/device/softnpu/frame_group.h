// SPDX-License-Identifier: Apache-2.0
// Frames of a batch that go through a program together: each step is made for all of them before
// the next one, so that its weights are fetched once and threads meet once per step, not once per
// step and frame.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "lib/device/device.h"
#include "lib/device/shared_run.h"
#include "lib/device/softnpu/lane.h"

namespace vartml::softnpu {

// Thread-safety: one run at a time.
class FrameGroup final : device::SharedRun::Work {
public:
    // A lane per frame; up to `threads` threads share a run.
    FrameGroup(std::vector<std::unique_ptr<Lane>> lanes, unsigned threads);

    // At least one frame, at most frames(). `recorder` may be null. Errors: the first of a frame,
    // by their order; the others have run.
    Result<void> run(std::span<const device::Frame> frames,
                     device::StepRecorder* recorder = nullptr) noexcept;
    // One frame with real shapes at its border.
    Result<void> run(const device::Frame& frame, device::RealShapes& shapes,
                     device::StepRecorder* recorder = nullptr) noexcept;

    unsigned frames() const { return static_cast<unsigned>(lanes_.size()); }
    Lane& lane() { return *lanes_[0]; }

private:
    void run_item(size_t step, size_t item) noexcept override;

    std::vector<std::unique_ptr<Lane>> lanes_;
    // By the number of frames - 1; last, because its end waits for helpers.
    std::vector<std::unique_ptr<device::SharedRun>> shared_;
};

}  // namespace vartml::softnpu
