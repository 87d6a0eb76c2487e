// SPDX-License-Identifier: Apache-2.0
// Keeps the NPU busy: while it runs one frame, the application prepares the next. Each of the two
// jobs in flight has tensors of its own, because the buffers of a job must stay untouched until it
// is finished. Results come in the order of the frames: first in, first out.
//
//     infer-async MODEL [FRAMES]
#include <chrono>
#include <cstring>
#include <deque>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <vart/vart_runner_factory.hpp>

using vart::StatusCode;
using vart::TensorDirection;
using Batch = std::vector<std::vector<vart::NpuTensor>>;

constexpr size_t jobs_in_flight = 2;

// HW views in memory that the runner allocates: the NPU works in it, nothing is copied.
Batch allocate(const vart::Runner& runner, TensorDirection direction) {
    Batch batch(1);
    for (const auto& info : runner.get_tensors_info(direction, vart::TensorType::HW))
        batch[0].push_back(runner.allocate_npu_tensor(info));
    return batch;
}

struct Slot {
    Batch inputs, outputs;
    vart::JobHandle job{};
    size_t frame = 0;
};

// Stands for a camera: bytes that depend on the frame.
void fill(Slot& slot, size_t frame) {
    slot.frame = frame;
    for (vart::NpuTensor& input : slot.inputs[0])
        std::memset(input.get_virtual_address(), static_cast<int>(frame % 64),
                    input.get_info().size_in_bytes);
}

// Stands for what an application does with a result.
void use(const Slot& slot) {
    size_t sum = 0;
    for (const vart::NpuTensor& output : slot.outputs[0]) {
        const auto* bytes = static_cast<const unsigned char*>(output.get_virtual_address());
        for (size_t i = 0; i < output.get_info().size_in_bytes; ++i) sum += bytes[i];
    }
    std::cout << "frame " << slot.frame << ": bytes sum up to " << sum << '\n';
}

void finish(vart::Runner& runner, Slot& slot) {
    // JOB_PENDING only means that the time is up; a real application would look after itself then.
    StatusCode status;
    while ((status = runner.wait(slot.job, std::chrono::seconds(1))) == StatusCode::JOB_PENDING) {
    }
    if (status != StatusCode::SUCCESS) throw std::runtime_error(std::string(to_string(status)));
    use(slot);
}

int main(int argc, char** argv) {
    try {
        if (argc < 2) throw std::runtime_error("usage: infer-async MODEL [FRAMES]");
        const size_t frames = argc > 2 ? std::stoul(argv[2]) : 10;
        const auto runner = vart::RunnerFactory::create_runner(
            vart::RunnerType::VAIML, argv[1],
            {{"max_concurrent_runs", static_cast<uint32_t>(jobs_in_flight)}});
        std::deque<Slot> idle, running;
        for (size_t i = 0; i < jobs_in_flight; ++i)
            idle.push_back(Slot{allocate(*runner, TensorDirection::INPUT),
                                allocate(*runner, TensorDirection::OUTPUT)});
        const auto finish_oldest = [&] {
            finish(*runner, running.front());
            idle.push_back(std::move(running.front()));
            running.pop_front();
        };
        for (size_t frame = 0; frame < frames; ++frame) {
            if (idle.empty()) finish_oldest();
            Slot& slot = idle.front();
            fill(slot, frame);
            // RESOURCE_UNAVAILABLE: all slots of the runner are busy; make room and try again.
            while ((slot.job = runner->execute_async(slot.inputs, slot.outputs)).status ==
                   StatusCode::RESOURCE_UNAVAILABLE)
                if (!running.empty()) finish_oldest();
            if (slot.job.status != StatusCode::SUCCESS)
                throw std::runtime_error(std::string(to_string(slot.job.status)));
            running.push_back(std::move(slot));
            idle.pop_front();
        }
        while (!running.empty()) finish_oldest();
        return 0;
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 1;
    }
}
