// SPDX-License-Identifier: Apache-2.0
// Names, shapes and sizes of what a run of a compiled model will be measured by.
#pragma once
#include "lib/model/compiled_model.h"
#include "lib/model/target.h"
#include "lib/trace/descriptor.h"

namespace vartml::compiler {

// What is asked for at compile time.
struct StatsRequest {
    unsigned level = profiling::level_inference;
    unsigned batchsize = 0;  // 0: the model's
    bool ddr = false;
    profiling::Pmu pmu;
};

// `model` is complete but for its files. Figures of an operator are of one inference of the actual
// batch; constants are read once for all its frames. Types and layouts inside a partition are the
// program's: how a device stores values between operators is known only when it has loaded them.
profiling::Descriptor make_descriptor(const artifact::CompiledModel& model,
                                      const device::Target& target, const StatsRequest& request);

// The border tensors that a step of their own brings into or out of a program's layout; others the
// first reader or the last writer handles where they lie.
std::vector<bool> inputs_with_layout_step(const artifact::Partition& partition);
std::vector<bool> outputs_with_layout_step(const artifact::Partition& partition);

}  // namespace vartml::compiler
