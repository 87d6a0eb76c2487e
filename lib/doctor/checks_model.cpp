// SPDX-License-Identifier: Apache-2.0
// The model: readable, for which device, whether it fits, which device answers, which views it has.
#include <algorithm>
#include <any>
#include <exception>
#include <memory>

#include <vartml/compile.h>
#include <vart/vart_runner_factory.hpp>

#include "lib/artifact/compiled_model.h"
#include "lib/device/target.h"
#include "lib/doctor/checks.h"
#include "lib/doctor/checks_sidecar.h"
#include "lib/doctor/machine.h"
#include "lib/doctor/way_out.h"

namespace vartml::doctor {
namespace {

std::string mib(uint64_t bytes) {
    return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

// The compiled model of an ONNX file; "" after a problem.
std::string compiled(Examination& e, const std::string& model) {
    if (!model.ends_with(".onnx")) return model;
    CompileOptions options;
    options.cache_dir = e.request.surroundings.cache_folder;
    options.compiler = e.request.surroundings.compiler;
    e.request.progress("compiling " + model);
    const auto result = compile_onnx(model, options);
    if (result) return result->path;
    e.problem("cannot be compiled: " + result.error().message,
              way_out(result.error().message, model));
    return {};
}

std::string change_for(const Error& error, const std::string& model) {
    return error.code == ErrorCode::not_found || error.code == ErrorCode::io
               ? "ls -ld " + model
               : "vartml compile MODEL.onnx -o MODEL.rai";
}

// Weights and arenas of all partitions, or of those on the NPU.
uint64_t bytes_needed(const artifact::CompiledModel& model, bool npu_only = false) {
    uint64_t bytes = 0;
    for (const artifact::Partition& p : model.partitions) {
        if (npu_only && p.kind != artifact::PartitionKind::npu) continue;
        bytes += p.arena_size_bytes;
        for (const graph::Value& v : p.graph.values)
            if (v.constant) bytes += v.constant->bytes.size();
    }
    return bytes;
}

void check_size(Examination& e, const artifact::CompiledModel& model) {
    const uint64_t needed = bytes_needed(model), free = available_memory_bytes();
    const device::Target* const target = device::find_target(model.device);
    const uint64_t limit = target ? target->memory_bytes : 0;
    const std::string what = "weights and intermediate tensors take " + mib(needed);
    if (limit && bytes_needed(model, true) > limit)
        return e.problem("does not fit: " + what + ", and " + model.device + " has " + mib(limit),
                         "vartml compile MODEL.onnx --device softnpu --quantize FOLDER");
    if (free && needed > free)
        return e.problem("does not fit: " + what + ", and this machine has " + mib(free) + " free",
                         "ps -eo rss,pid,comm --sort=-rss | head");
    e.fine("fits: " + what + (limit ? " of " + mib(limit) : ""));
}

void check_views(Examination& e, const std::vector<TensorInfo>& tensors, const char* direction) {
    for (const TensorInfo& tensor : tensors)
        if (!tensor.hw)
            e.note(std::string(direction) + " '" + tensor.name +
                       "' has a CPU view only, because a CPU partition has it: it is copied",
                   "vartmlinfer " + std::string(direction) + "-tensor-type=cpu");
}

void check_partitions(Examination& e, const artifact::CompiledModel& model,
                      const std::string& path) {
    const artifact::Summary& s = model.summary;
    const uint32_t others = s.total.operators - s.offloaded.operators;
    if (others == 0) return e.fine("all operators run on the NPU");
    std::string first;
    if (!s.fallbacks.empty())
        first = ", the first " + s.fallbacks[0].op_type + " '" + s.fallbacks[0].node +
                "': " + s.fallbacks[0].text;
    e.note(std::to_string(others) + " of " + std::to_string(s.total.operators) +
               " operators run on the CPU" + first,
           "vartml inspect --summary " + path);
}

void check_batch(Examination& e, const artifact::CompiledModel& model, const std::string& path) {
    const std::string got = std::to_string(model.actual_batch_size);
    if (model.actual_batch_size >= model.desired_batch_size)
        return e.fine("batch " + got + ", the most frames of a run");
    const std::string wanted = std::to_string(model.desired_batch_size);
    e.note("batch " + wanted + " was asked for and " + got + " compiled, so frames run in " + got +
               "s",
           "vartml inspect " + path);
}

// The runtime has the last word.
void check_runner(Examination& e, const std::string& asked, const std::string& path,
                  const artifact::CompiledModel& model) {
    const auto view = [](const std::vector<TensorInfo>& tensors) {
        const bool all =
            std::ranges::all_of(tensors, [](const auto& t) { return t.hw.has_value(); });
        return std::any(std::string(all ? "HW" : "CPU"));
    };
    try {
        const auto runner =
            vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, path,
                                               {{"input_tensor_type", view(model.inputs)},
                                                {"output_tensor_type", view(model.outputs)}});
        const auto text = [&](const char* key) {
            return std::any_cast<std::string>(runner->get_property(key));
        };
        e.report.facts["model_compute_type"] = text("compute_type");
        e.fine("device " + text("backend") + " answers and runs it, float work in " +
               text("compute_type"));
    } catch (const std::exception& error) {
        const bool lacks_onnxruntime =
            std::string_view(error.what()).find("needs ONNX Runtime") != std::string_view::npos;
        e.problem(std::string("no device runs it: ") + error.what(),
                  lacks_onnxruntime          ? "apt install libonnxruntime1.21"
                  : asked.ends_with(".onnx") ? "vartml compile " + asked
                                             : "vartml compile MODEL.onnx -o MODEL.rai");
    }
}

void check_one(Examination& e, const std::string& asked) {
    const std::string path = compiled(e, asked);
    if (path.empty()) return;
    const auto model = artifact::read(path);
    if (!model) return e.problem(model.error().message, change_for(model.error(), path));
    e.report.facts["model"] = model->model_name;
    e.report.facts["model_device"] = model->device;
    e.report.facts["model_target"] = model->target;
    e.fine(path + " is a valid compiled model of '" + model->model_name + "' (" + model->format +
           ") for " + model->device + " (program target " + model->target + "), by " +
           model->tool_version);
    check_runner(e, asked, path, *model);
    check_size(e, *model);
    check_partitions(e, *model, path);
    check_batch(e, *model, path);
    const size_t before = e.report.findings.size();
    check_views(e, model->inputs, "input");
    check_views(e, model->outputs, "output");
    if (e.report.findings.size() == before) e.fine("every input and output has a HW view");
    check_sidecar(e, asked, path, *model);
}

}  // namespace

void check_model(Examination& e) {
    for (const std::string& model : e.request.models) {
        const size_t before = e.report.findings.size();
        check_one(e, model);
        if (e.request.models.size() == 1) continue;
        for (size_t i = before; i < e.report.findings.size(); ++i)
            e.report.findings[i].text.insert(0, model + ": ");
    }
}

}  // namespace vartml::doctor
