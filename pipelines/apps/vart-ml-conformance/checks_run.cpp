// SPDX-License-Identifier: Apache-2.0
// Checks of runs that block: views, memory types, batches, wrong arguments, threads.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "checks.h"

namespace conformance {
namespace {

using vart::MemoryType;
using vart::NpuTensor;
using vart::NpuTensorInfo;
using vart::StatusCode;
using vart::TensorDirection;
using vart::TensorType;

constexpr const char* no_hw = "the model has no HW view there";

Seen succeeds(vart::Runner& runner, Frame& frame) {
    return expect_status(runner.execute(frame.inputs, frame.outputs), StatusCode::SUCCESS);
}

// The outputs of the CPU path, to compare with.
std::string expected_outputs(Model& model) {
    Frame frame = plain_frame(model.runner());
    if (model.runner().execute(frame.inputs, frame.outputs) != StatusCode::SUCCESS)
        throw std::runtime_error("execute in CPU views does not succeed");
    return bytes_of(frame.outputs[0]);
}

// Runs the frame in the given views and compares the outputs with those in CPU views.
Seen agrees(Model& model, TensorType inputs, TensorType outputs) {
    if (inputs == TensorType::HW && !model.has_hw(TensorDirection::INPUT)) return not_shown(no_hw);
    if (outputs == TensorType::HW && !model.has_hw(TensorDirection::OUTPUT))
        return not_shown(no_hw);
    Frame cpu = plain_frame(model.runner());
    if (const Seen ran = succeeds(model.runner(), cpu); ran.verdict != Verdict::same) return ran;
    vart::Runner& runner = model.runner(inputs, outputs);
    Frame frame = device_frame(runner, inputs, outputs);
    if (const Seen ran = succeeds(runner, frame); ran.verdict != Verdict::same) return ran;
    double worst = 0;
    for (size_t t = 0; t < frame.outputs[0].size(); ++t) {
        const NpuTensor &a = cpu.outputs[0][t], &b = frame.outputs[0][t];
        const NpuTensorInfo &from = a.get_info(), &to = b.get_info();
        const auto places = places_in(to, from);
        if (!places) return differs("'" + to.name + "' has a layout that is not documented");
        const bool real = from.data_type == vart::DataType::FLOAT32;
        const vart::QuantParameters quant =
            real ? runner.get_quant_parameters(to.name) : vart::QuantParameters();
        for (size_t i = 0; i < places->size(); ++i) {
            const auto x = decode(from.data_type, a.get_virtual_address(), i, {});
            const auto y =
                decode(to.data_type, b.get_virtual_address(), (*places)[i],
                       to.tensor_type == TensorType::HW ? quant : vart::QuantParameters());
            if (!x || !y) return differs("'" + to.name + "' is of an undocumented type");
            if (std::isnan(*x) && std::isnan(*y)) continue;
            worst = std::max(worst,
                             *x == *y ? 0.0 : std::fabs(*x - *y) / std::max(1e-6, std::fabs(*x)));
        }
    }
    return same_if(worst <= 1e-5, "largest relative difference " + std::to_string(worst));
}

Seen pads_with_zeros(Model& model) {
    if (!model.has_hw(TensorDirection::OUTPUT)) return not_shown(no_hw);
    vart::Runner& runner = model.runner(TensorType::CPU, TensorType::HW);
    Frame frame = device_frame(runner, TensorType::CPU, TensorType::HW);
    if (const Seen ran = succeeds(runner, frame); ran.verdict != Verdict::same) return ran;
    size_t padding = 0;
    for (const NpuTensor& tensor : frame.outputs[0]) {
        const NpuTensorInfo& info = tensor.get_info();
        const auto places =
            places_in(info, runner.get_tensor_info_by_name(info.name, TensorType::CPU));
        if (!places) return differs("'" + info.name + "' has a layout that is not documented");
        std::vector<bool> used(info.size);
        for (const size_t place : *places) used[place] = true;
        const std::string bytes = bytes_of(tensor);
        const size_t size = bytes_of_element(info.data_type);
        for (size_t i = 0; i < used.size(); ++i) {
            if (used[i]) continue;
            ++padding;
            if (bytes.substr(i * size, size) != std::string(size, '\0'))
                return differs("'" + info.name + "' holds other bytes at element " +
                               std::to_string(i));
        }
    }
    return padding ? same(std::to_string(padding) + " elements") : not_shown("no output is padded");
}

// Inputs and outputs in memory that `wrap` makes of allocated tensors.
template <class Wrap>
Seen runs_in(Model& model, Wrap wrap) {
    if (!model.has_hw()) return not_shown(no_hw);
    vart::Runner& runner = model.runner(TensorType::HW, TensorType::HW);
    Frame own = device_frame(runner, TensorType::HW, TensorType::HW);
    if (const Seen ran = succeeds(runner, own); ran.verdict != Verdict::same) return ran;
    const std::string expected = bytes_of(own.outputs[0]);
    Frame frame = device_frame(runner, TensorType::HW, TensorType::HW);
    Frame wrapped;
    wrapped.inputs.emplace_back();
    wrapped.outputs.emplace_back();
    for (NpuTensor& tensor : frame.inputs[0]) wrapped.inputs[0].push_back(wrap(tensor));
    for (NpuTensor& tensor : frame.outputs[0]) wrapped.outputs[0].push_back(wrap(tensor));
    if (const Seen ran = succeeds(runner, wrapped); ran.verdict != Verdict::same) return ran;
    return same_if(bytes_of(frame.outputs[0]) == expected, "outputs compared");
}

NpuTensor as_dma_fd(NpuTensor& tensor) {
    // Stays open until the process ends.
    int fd = tensor.export_buffer();
    if (fd < 0) throw std::runtime_error("export_buffer gives -1");
    return NpuTensor(tensor.get_info(), &fd, MemoryType::DMA_FD);
}

// What is wrong with a frame, and the status that it should give.
Check wrong(const char* name, const char* expected, StatusCode status,
            std::function<void(Model&, Frame&)> spoil) {
    return {name, expected, false, [status, spoil](Model& model) {
                Frame frame = plain_frame(model.runner());
                spoil(model, frame);
                return expect_status(model.runner().execute(frame.inputs, frame.outputs), status);
            }};
}

// A batch in the sub-tensors of one parent, each element compared with its own run.
Seen runs_batch(Model& model, size_t count) {
    vart::Runner& runner = model.runner();
    if (runner.get_batch_size() < 2) return not_shown("the model's batch is 1");
    Frame batch;
    std::vector<std::string> expected;
    for (const auto direction : {TensorDirection::INPUT, TensorDirection::OUTPUT}) {
        Tensors& tensors = direction == TensorDirection::INPUT ? batch.inputs : batch.outputs;
        tensors.resize(count);
        for (const NpuTensorInfo& info : runner.get_tensors_info(direction, TensorType::CPU)) {
            NpuTensorInfo all = info;
            all.size_in_bytes *= count;
            const NpuTensor parent = runner.allocate_npu_tensor(all);
            for (size_t i = 0; i < count; ++i) {
                tensors[i].push_back(
                    runner.allocate_sub_tensor(parent, info, i * info.size_in_bytes));
                if (direction == TensorDirection::INPUT)
                    fill(runner, info, tensors[i].back().get_virtual_address(), unsigned(i));
            }
        }
    }
    for (size_t i = 0; i < count; ++i) {
        Frame one = plain_frame(runner, 1, unsigned(i));
        if (const Seen ran = succeeds(runner, one); ran.verdict != Verdict::same) return ran;
        expected.push_back(bytes_of(one.outputs[0]));
    }
    if (const Seen ran = succeeds(runner, batch); ran.verdict != Verdict::same) return ran;
    size_t equal = 0;
    for (size_t i = 0; i < count; ++i) equal += bytes_of(batch.outputs[i]) == expected[i];
    return same_if(equal == count,
                   std::to_string(equal) + " of " + std::to_string(count) + " elements as alone");
}

}  // namespace

std::vector<Check> execute_checks() {
    return {
        {"execute/CPU views", "SUCCESS in plain memory", true,
         [](Model& model) {
             Frame frame = plain_frame(model.runner());
             return succeeds(model.runner(), frame);
         }},
        {"execute/twice", "the same bytes", false,
         [](Model& model) {
             return same_if(expected_outputs(model) == expected_outputs(model), "outputs compared");
         }},
        {"execute/HW inputs", "the outputs of CPU views", true,
         [](Model& model) { return agrees(model, TensorType::HW, TensorType::CPU); }},
        {"execute/HW outputs", "the outputs of CPU views", true,
         [](Model& model) { return agrees(model, TensorType::CPU, TensorType::HW); }},
        {"execute/HW views", "the outputs of CPU views", true,
         [](Model& model) { return agrees(model, TensorType::HW, TensorType::HW); }},
        {"execute/padding", "zeros in the padding of HW outputs", true, pads_with_zeros},
        {"execute/CPU views in XRT_BO", "the same bytes as in plain memory", true,
         [](Model& model) {
             Frame frame = device_frame(model.runner(), TensorType::CPU, TensorType::CPU);
             if (const Seen ran = succeeds(model.runner(), frame); ran.verdict != Verdict::same)
                 return ran;
             return same_if(bytes_of(frame.outputs[0]) == expected_outputs(model),
                            "outputs compared");
         }},
        {"execute/DMA_FD", "SUCCESS in exported buffers", true,
         [](Model& model) { return runs_in(model, as_dma_fd); }},
        {"execute/USER_POINTER_CMA", "SUCCESS in the buffers' addresses", true,
         [](Model& model) {
             return runs_in(model, [](NpuTensor& tensor) {
                 return NpuTensor(tensor.get_info(), tensor.get_virtual_address(),
                                  MemoryType::USER_POINTER_CMA);
             });
         }},
        {"execute/XRT_BO", "SUCCESS in the buffer objects", true,
         [](Model& model) {
             return runs_in(model, [](NpuTensor& tensor) {
                 return NpuTensor(tensor.get_info(), tensor.get_buffer(), MemoryType::XRT_BO);
             });
         }},
        {"execute/own syncs", "skip_*_bo_sync with sync_buffer", true,
         [](Model& model) {
             if (!model.has_hw()) return not_shown(no_hw);
             const std::string hw = "HW";
             auto runner = model.open({{"input_tensor_type", hw},
                                       {"output_tensor_type", hw},
                                       {"skip_in_bo_sync", true},
                                       {"skip_out_bo_sync", true}});
             Frame frame = device_frame(*runner, TensorType::HW, TensorType::HW);
             for (const NpuTensor& tensor : frame.inputs[0]) tensor.sync_buffer();
             if (const Seen ran = succeeds(*runner, frame); ran.verdict != Verdict::same)
                 return ran;
             for (const NpuTensor& tensor : frame.outputs[0]) tensor.sync_buffer();
             vart::Runner& synced = model.runner(TensorType::HW, TensorType::HW);
             Frame other = device_frame(synced, TensorType::HW, TensorType::HW);
             if (const Seen ran = succeeds(synced, other); ran.verdict != Verdict::same) return ran;
             return same_if(bytes_of(frame.outputs[0]) == bytes_of(other.outputs[0]),
                            "outputs compared");
         }},
        wrong("execute/no inputs", "INVALID_INPUT", StatusCode::INVALID_INPUT,
              [](Model&, Frame& frame) { frame.inputs.clear(), frame.outputs.clear(); }),
        wrong("execute/above the batch", "INVALID_INPUT", StatusCode::INVALID_INPUT,
              [](Model& model, Frame& frame) {
                  const size_t count = model.runner().get_batch_size() + 1;
                  frame.inputs.resize(count, frame.inputs[0]);
                  frame.outputs.resize(count, frame.outputs[0]);
              }),
        wrong("execute/one input too many", "INVALID_INPUT", StatusCode::INVALID_INPUT,
              [](Model&, Frame& frame) { frame.inputs[0].push_back(frame.inputs[0][0]); }),
        wrong("execute/no outputs", "INVALID_OUTPUT", StatusCode::INVALID_OUTPUT,
              [](Model&, Frame& frame) { frame.outputs.clear(); }),
        wrong("execute/empty input", "INVALID_INPUT", StatusCode::INVALID_INPUT,
              [](Model&, Frame& frame) { frame.inputs[0][0] = NpuTensor(); }),
        wrong("execute/empty output", "INVALID_OUTPUT", StatusCode::INVALID_OUTPUT,
              [](Model&, Frame& frame) { frame.outputs[0][0] = NpuTensor(); }),
        wrong("execute/outputs as inputs", "INVALID_INPUT", StatusCode::INVALID_INPUT,
              [](Model&, Frame& frame) { frame.inputs[0][0] = frame.outputs[0][0]; }),
        wrong("execute/wrong shape", "INVALID_INPUT", StatusCode::INVALID_INPUT,
              [](Model&, Frame& frame) {
                  NpuTensorInfo info = frame.inputs[0][0].get_info();
                  info.shape.back() += 1;
                  info.size_in_bytes *= 2;
                  frame.memory.emplace_back(info.size_in_bytes);
                  frame.inputs[0][0] =
                      NpuTensor(info, static_cast<void*>(frame.memory.back().data()),
                                MemoryType::USER_POINTER_NON_CMA);
              }),
        {"execute/after an error", "SUCCESS, the runner stays usable", false,
         [](Model& model) {
             Tensors none;
             (void)model.runner().execute(none, none);
             Frame frame = plain_frame(model.runner());
             return succeeds(model.runner(), frame);
         }},
        {"batch/full", "each element as alone", true,
         [](Model& model) { return runs_batch(model, model.runner().get_batch_size()); }},
        {"batch/partial", "each element as alone", true,
         [](Model& model) { return runs_batch(model, model.runner().get_batch_size() - 1); }},
        {"threads/execute", "4 threads on one runner, each right", true,
         [](Model& model) {
             const std::string expected = expected_outputs(model);
             vart::Runner& runner = model.runner();
             std::atomic<int> right{0};
             std::vector<std::thread> threads;
             for (int t = 0; t < 4; ++t) {
                 threads.emplace_back([&] {
                     Frame frame = plain_frame(runner);
                     for (int i = 0; i < 8; ++i) {
                         const StatusCode status = runner.execute(frame.inputs, frame.outputs);
                         right += status == StatusCode::SUCCESS &&
                                  bytes_of(frame.outputs[0]) == expected;
                     }
                 });
             }
             for (std::thread& thread : threads) thread.join();
             return same_if(right == 32, std::to_string(right) + " of 32 runs");
         }},
        {"threads/queries", "4 threads allocate and ask", false,
         [](Model& model) {
             vart::Runner& runner = model.runner();
             std::atomic<int> right{0};
             std::vector<std::thread> threads;
             for (int t = 0; t < 4; ++t) {
                 threads.emplace_back([&] {
                     for (int i = 0; i < 8; ++i) {
                         const auto& info =
                             runner.get_tensors_info(TensorDirection::INPUT, TensorType::CPU).at(0);
                         right += runner.allocate_npu_tensor(info).get_virtual_address() != nullptr;
                     }
                 });
             }
             for (std::thread& thread : threads) thread.join();
             return same_if(right == 32, std::to_string(right) + " of 32");
         }},
    };
}

}  // namespace conformance
