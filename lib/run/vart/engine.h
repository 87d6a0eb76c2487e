// SPDX-License-Identifier: Apache-2.0
// A loaded program between the tensors of a call: conversion of CPU views, sync, the run itself.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <vartml/result.h>
#include <vart/vart_npu_tensor.hpp>

#include "lib/base/convert.h"
#include "lib/run/exec/device.h"
#include "lib/run/exec/shared_run.h"
#include "lib/run/vart/profiler.h"
#include "lib/run/vart/tensor_info.h"

namespace vartml::runtime {

struct EngineOptions {
    bool skip_input_sync = false, skip_output_sync = false;
    unsigned threads = 1;  // that share a conversion
    unsigned slots = 1;    // runs that may go on at the same time
};

// Monotonic; read at any time.
struct Counters {
    std::atomic<uint64_t> bytes_copied_in{0}, bytes_copied_out{0}, conversions{0};
};

// Thread-safety: run() and time_steps() may be called concurrently with different slots.
class Engine {
public:
    // `tables` is the model's border in ONNX order, `program` that of the executable in its own.
    // Errors: bad_model where the two do not match, unsupported from a conversion, out_of_memory.
    static Result<std::unique_ptr<Engine>> create(std::unique_ptr<device::Executable> executable,
                                                  const device::Program& program,
                                                  const TensorTables& tables,
                                                  const EngineOptions& options);

    // `batch` elements in the memory of `slot`, as many together as the program takes; element b
    // has inputs[b * number of inputs ...]. The tensors were checked. `recording` may be null.
    // Errors: those of Executable::run; later elements may not have run.
    Result<void> run(const vart::NpuTensor* inputs, const vart::NpuTensor* outputs, size_t batch,
                     unsigned slot, Recording* recording = nullptr) noexcept;

    // As Executable::time_steps.
    std::vector<double> time_steps(unsigned runs, unsigned slot) {
        return executable_->time_steps(runs, slot);
    }

    const device::Executable& executable() const { return *executable_; }
    unsigned slots() const { return options_.slots; }
    const Counters& counters() const { return counters_; }

private:
    // One tensor of the model's border.
    struct Port {
        std::optional<Conversion> conversion;  // CPU views only
        size_t cpu_size_bytes = 0, hw_size_bytes = 0;
        int program_index = -1;  // -1: the program does not use this input
    };
    struct FreeStaging {
        void operator()(std::byte* p) const;
    };
    using Staging = std::unique_ptr<std::byte, FreeStaging>;
    // A conversion that several threads share.
    class SharedConversion final : device::SharedRun::Work {
    public:
        SharedConversion(const Conversion& conversion, unsigned parts);
        void run(const void* src, void* dst);

    private:
        void run_item(size_t step, size_t item) noexcept override;
        const Conversion& conversion_;
        const unsigned parts_;
        const void* src_ = nullptr;
        void* dst_ = nullptr;
        device::SharedRun shared_;
    };
    struct Staged {
        Staging bytes;  // HW bytes of a CPU view, else null
        std::unique_ptr<SharedConversion> conversion;
    };
    // What an element needs while it runs.
    struct Element {
        std::vector<Staged> inputs, outputs;
        std::vector<const void*> input_addresses;
        std::vector<void*> output_addresses;
    };
    // The memory of a slot; a run allocates nothing.
    struct Lane {
        std::vector<Element> elements;
        std::vector<device::Frame> frames;  // of the elements
    };

    Engine() = default;
    Result<void> add_ports(const device::Program& program, const TensorTables& tables);
    Result<void> add_lane();
    Result<Element> make_element() const;
    // Both add up how many bytes they copied. Errors: those of the tensors' memory.
    Result<void> begin(Element& element, const vart::NpuTensor* inputs,
                       const vart::NpuTensor* outputs, uint64_t& copied);
    Result<void> run_group(device::Run run, Recording* recording) noexcept;
    Result<void> end(Element& element, const vart::NpuTensor* inputs,
                     const vart::NpuTensor* outputs, bool is_good, uint64_t& copied);

    std::unique_ptr<device::Executable> executable_;
    EngineOptions options_;
    std::vector<Port> inputs_, outputs_;
    std::vector<Lane> lanes_;  // by slot
    unsigned border_conversions_ = 0;
    Counters counters_;
};

}  // namespace vartml::runtime
