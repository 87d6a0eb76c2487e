// SPDX-License-Identifier: Apache-2.0
// What a device is to the runtime: it loads programs and runs them on memory that the runner names.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

#include "lib/graph/graph.h"
#include "lib/graph/kernel.h"
#include "lib/run/exec/step_recorder.h"

namespace vartml::device {

// Type of float work.
enum class Numerics { automatic, f32, bf16 };

// One partition as a device sees it.
struct Program {
    std::string name;    // "vaiml_par_0"
    std::string target;  // "softnpu-1"
    graph::Graph graph;  // weights are spans into the mapped model
    // Border tensors in the graph's order; `hw` is set and describes the exact bytes that run()
    // gets, `cpu` says by its layout which axes are channels, height and width.
    std::vector<TensorInfo> inputs, outputs;
    std::shared_ptr<const void> owner;  // the mapping that the graph's constants point into
    std::string identity;  // equal for equal programs with equal weights; "" = not known
};

struct LoadOptions {
    Numerics numerics = Numerics::automatic;
    unsigned threads = 0;  // most that one run may use; 0 = processors of the process
    unsigned concurrent_runs =
        1;               // slots: runs that may go on at the same time, each in its memory
    unsigned batch = 1;  // most frames that the application hands over at once
    std::string weights_cache_dir = {};  // folder of packed weights; "" = keep them private
    // Gets one line for the log where that folder cannot be used; may be empty.
    std::function<void(const std::string&)> note = {};
};

// Real shapes of the data-dependent tensors of a border, by their index; those of static tensors
// are of no meaning. A run reads `inputs` and sets `outputs`.
struct RealShapes {
    std::vector<cpu::Shape> inputs, outputs;
};

// What one inference reads and writes: the bytes of the HW views, aligned to the element size, in
// place.
struct Frame {
    std::span<const void* const> inputs;
    std::span<void* const> outputs;
};

struct Run {
    std::span<const Frame> frames;  // 1 to frames_at_once()
    // Whose memory it uses: below LoadOptions::concurrent_runs, and of no other run that goes on.
    unsigned slot = 0;
    // Of its one frame; null: border tensors have the shapes of their upper bounds.
    RealShapes* shapes = nullptr;
    // recorders[i] gets the stamps of stamped()[i]; empty: no clock is read.
    std::span<StepRecorder* const> recorders = {};
};

// What a device can stamp of a partition.
struct StampedProgram {
    std::string name;                // of the partition
    std::vector<std::string> steps;  // the operator of each step: name of the node in the graph, or
                                     // "<partition>/in/<tensor>", "<partition>/out/<tensor>"
};

// A loaded program. Thread-safety: run() and time_steps() are called concurrently with different
// slots.
class Executable {
public:
    virtual ~Executable() = default;
    // Required. Blocks until the outputs are complete; after an error those of all frames are of no
    // meaning. Errors: device, out_of_memory, invalid_argument (data that an operator rejects;
    // names the node).
    virtual Result<void> run(const Run& run) noexcept = 0;
    // Optional: how many frames one run takes; absent means that it takes one.
    virtual unsigned frames_at_once() const { return 1; }
    // Optional: what Run::recorders stamp, in the order of execution; absent means nothing.
    virtual std::vector<StampedProgram> stamped() const { return {}; }
    // Required. "bf16", "fp16" or "fp32".
    virtual std::string compute_type() const = 0;
    // Required. Layout operators at the border per run, counted in `conversions`.
    virtual unsigned border_conversions() const = 0;
    // Required. Weight bytes held in private memory.
    virtual size_t private_weight_bytes() const = 0;
    // Optional: one line per step (operator, implementation, shapes) for reports and debugging;
    // absent means "".
    virtual std::string describe() const { return {}; }
    // Optional: shortest duration of each step in nanoseconds over `runs` runs on scratch data in
    // the memory of `slot`, in the order of describe(), NaN for one that cannot be measured alone;
    // absent means empty.
    virtual std::vector<double> time_steps(unsigned runs, unsigned slot) {
        (void)runs, (void)slot;
        return {};
    }
};

// Thread-safety: all members may be called concurrently. load() and run() are called on threads of
// the runtime only.
class Device {
public:
    virtual ~Device() = default;
    virtual std::string name() const = 0;                          // required
    virtual bool supports_target(const std::string& t) const = 0;  // required
    // Optional: how many runs go on at the same time; absent means one after another.
    virtual unsigned num_cores() const { return 1; }
    // Required. Errors: unsupported naming the node that the device cannot run, out_of_memory,
    // bad_model.
    virtual Result<std::unique_ptr<Executable>> load(std::shared_ptr<const Program> program,
                                                     const LoadOptions& options) = 0;
};

// The device of that name ("softnpu"; "auto" picks the one that runs `target`). The object
// lives as long as the process. Errors: not_found listing the devices of this build; unsupported
// naming the target and what each device lacks.
Result<Device*> find_device(const std::string& name, const std::string& target);

}  // namespace vartml::device
