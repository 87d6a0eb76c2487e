// SPDX-License-Identifier: Apache-2.0
// The partitions of a model as one executable: each runs on its device in execution order, tensors
// between them lie in buffers of ours.
#pragma once
#include <memory>
#include <vector>

#include <vartml/result.h>

#include "lib/model/compiled_model.h"
#include "lib/run/exec/device.h"

namespace vartml::runtime {

// A partition's program and what runs it.
struct LoadedPartition {
    std::shared_ptr<const device::Program> program;
    std::unique_ptr<device::Executable> executable;
};

// Where the border tensors of each partition lie: resolved from the model's edges.
struct Wiring {
    enum class Place : uint8_t { model_input, model_output, between };
    struct Tensor {
        Place place = Place::between;
        size_t index = 0;  // of the model's input or output, or of the buffer
    };
    struct Partition {
        std::vector<Tensor> inputs, outputs;
        std::vector<cpu::Shape> output_shape;  // upper bounds
    };
    std::vector<Partition> partitions;    // in execution order
    std::vector<size_t> buffer_bytes;     // tensors between partitions
    std::vector<cpu::Shape> input_shape;  // upper bounds of the model's inputs and outputs
    std::vector<cpu::Shape> output_shape;
};

// `programs` in execution order. Errors: bad_model naming the tensor whose two ends do not fit.
Result<Wiring> wire(const artifact::CompiledModel& model,
                    const std::vector<std::shared_ptr<const device::Program>>& programs);

// `partitions` in execution order; up to `concurrent_runs` runs go on at the same time. Errors:
// out_of_memory.
Result<std::unique_ptr<device::Executable>> join_partitions(std::vector<LoadedPartition> partitions,
                                                            Wiring wiring,
                                                            unsigned concurrent_runs);

}  // namespace vartml::runtime
