// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/frame_group.h"

namespace vartml::softnpu {

FrameGroup::FrameGroup(std::vector<std::unique_ptr<Lane>> lanes, unsigned threads)
    : lanes_(std::move(lanes)) {
    for (uint32_t frames = 1; frames <= lanes_.size(); ++frames) {
        std::vector<uint32_t> items;
        for (const auto& step : lanes_[0]->plan().steps) items.push_back(step->items() * frames);
        shared_.emplace_back(new device::SharedRun(*this, items, threads));
    }
}

Result<void> FrameGroup::run(std::span<const device::Frame> frames,
                             device::StepRecorder* recorder) noexcept {
    if (recorder) recorder->begin();
    for (size_t i = 0; i < frames.size(); ++i) lanes_[i]->bind(frames[i].inputs, frames[i].outputs);
    shared_[frames.size() - 1]->run(recorder);
    if (recorder) recorder->end();
    for (size_t i = 0; i < frames.size(); ++i)
        if (RunState& state = lanes_[i]->state(); state.error) return std::move(*state.error);
    return {};
}

Result<void> FrameGroup::run(const device::Frame& frame, device::RealShapes& shapes,
                             device::StepRecorder* recorder) noexcept {
    RunState& state = lanes_[0]->state();
    for (size_t i = 0; i < state.input_shapes.size(); ++i)
        if (const int32_t at = state.input_shapes[i]; at >= 0)
            state.shapes[static_cast<size_t>(at)] = shapes.inputs[i];
    auto done = run({&frame, 1}, recorder);
    for (size_t i = 0; i < state.output_shapes.size(); ++i)
        if (const int32_t at = state.output_shapes[i]; at >= 0)
            shapes.outputs[i] = state.shapes[static_cast<size_t>(at)];
    return done;
}

// Items of a frame follow each other, so that a thread stays with its frames.
void FrameGroup::run_item(size_t step, size_t item) noexcept {
    const uint32_t own = lanes_[0]->plan().steps[step]->items();
    lanes_[item / own]->run_item(step, item % own);
}

}  // namespace vartml::softnpu
