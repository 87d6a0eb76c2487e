// SPDX-License-Identifier: Apache-2.0
#include <vartml/model.h>

#include "lib/artifact/compiled_model.h"

namespace vartml {

Result<ModelDescription> open_model(const std::string& path) {
    auto model = artifact::read(path, {.programs = false});
    if (!model) return model.error();
    ModelDescription d;
    d.path = path;
    d.format = std::move(model->format);
    d.name = std::move(model->model_name);
    d.signature = std::move(model->model_signature);
    d.device = std::move(model->device);
    d.target = std::move(model->target);
    d.tool_version = std::move(model->tool_version);
    d.cpu_partitioned = model->compilation == artifact::Compilation::cpu_partition;
    d.desired_batch_size = model->desired_batch_size;
    d.actual_batch_size = model->actual_batch_size;
    // Operators that no partition holds are left to another runtime, which means the CPU.
    d.npu_operators = model->summary.offloaded.operators;
    if (model->summary.total.operators > d.npu_operators)
        d.cpu_operators = model->summary.total.operators - d.npu_operators;
    if (!model->summary.fallbacks.empty()) {
        const artifact::Fallback& f = model->summary.fallbacks.front();
        d.first_cpu_operator = f.op_type + " node '" + f.node + "' (" + f.code + ')';
    }
    d.inputs = std::move(model->inputs);
    d.outputs = std::move(model->outputs);
    if (const std::string* modelinfo = model->find_file("modelinfo")) d.modelinfo = *modelinfo;
    return d;
}

}  // namespace vartml
