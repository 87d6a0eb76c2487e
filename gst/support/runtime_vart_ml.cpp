// SPDX-License-Identifier: Apache-2.0
// AMD's VART-ML: takes the models of its own compiler, whose format only it knows, and runs them on
// the NPU.
#include "gst/support/runtime.h"

namespace vartml::gst {
namespace {

using vart::TensorDirection;
using vart::TensorType;
using vartml::ErrorCode;

constexpr const char* only_compiled =
    ", and this plugin is built on AMD's VART-ML, which runs the models of its own compiler; "
    "compile it with Vitis AI and give the directory with vaiml_par_0 or the .rai file";

// given: VART ML architecture overview, "Model loading modes".
std::optional<Failure> refuse_model(const std::string& model, bool is_directory) {
    if (is_directory) return std::nullopt;
    for (const auto& [ending, kind] :
         {std::pair{".onnx", "an ONNX file"}, std::pair{".tar.gz", "a .tar.gz archive"}}) {
        if (!model.ends_with(ending)) continue;
        return Failure{{ErrorCode::unsupported, "model '" + model + "' is " + kind + only_compiled},
                       "infer-model-bad",
                       "model",
                       model};
    }
    return std::nullopt;
}

std::string stem(std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    path = path.substr(path.rfind('/') + 1);
    return path.ends_with(".rai") ? path.substr(0, path.size() - 4) : path;
}

vartml::Result<std::vector<vartml::TensorInfo>> tensor_infos(const vart::Runner& runner,
                                                             TensorDirection direction) {
    auto cpu = runner_tensors(runner, direction, TensorType::CPU);
    if (!cpu) return cpu.error();
    auto hw = runner_tensors(runner, direction, TensorType::HW);
    if (!hw) return hw.error();
    std::vector<vartml::TensorInfo> infos;
    for (size_t i = 0; i < cpu->size(); ++i) {
        vartml::TensorInfo info;
        info.name = (*cpu)[i].info.name;
        info.cpu = (*cpu)[i].view;
        // Empty where a tensor of this direction has no HW view.
        if (hw->size() == cpu->size()) info.hw = (*hw)[i].view;
        infos.push_back(std::move(info));
    }
    return infos;
}

}  // namespace

std::optional<Failure> refuse_request(const std::string& model, bool is_directory,
                                      const std::string& device, const RunnerOptions& options) {
    if (!device.empty() && device != "auto") {
        return Failure{{ErrorCode::not_found,
                        "device '" + device +
                            "' is not there: this plugin is built on AMD's VART-ML, which has the "
                            "NPU alone; leave property 'device' at auto, or build with "
                            "-Druntime=vartml"},
                       "infer-device-missing",
                       "device"};
    }
    for (const auto& [key, value] : options) {
        if (!key.starts_with("vartml_")) continue;
        return Failure{{ErrorCode::invalid_argument,
                        "property 'runner-options' sets '" + key +
                            "', which AMD's VART-ML, on which this plugin is built, does not have"},
                       "infer-option",
                       "runner-options"};
    }
    return refuse_model(model, is_directory);
}

// The runner is asked, because nobody else reads the format. It is one that is made for this alone:
// in CPU views every model can be loaded.
vartml::Result<vartml::ModelDescription> describe_model(const std::string& path,
                                                        const RunnerOptions& options) {
    RunnerOptions cpu = options;
    cpu["input_tensor_type"] = cpu["output_tensor_type"] = std::string("CPU");
    auto runner = create_runner(path, cpu);
    if (!runner) {
        const vartml::Error& error = runner.error();
        return vartml::Error{
            error.code == ErrorCode::invalid_argument ? error.code : ErrorCode::bad_model,
            "model '" + path + "': " + error.message};
    }
    vartml::ModelDescription description;
    description.path = path;
    description.format = path.ends_with(".rai") ? "rai" : "directory";
    description.name = stem(path);
    description.device = description.target = "vart-ml";
    description.desired_batch_size = description.actual_batch_size =
        static_cast<unsigned>((*runner)->get_batch_size());
    for (const auto& [direction, into] :
         {std::pair{TensorDirection::INPUT, &description.inputs},
          std::pair{TensorDirection::OUTPUT, &description.outputs}}) {
        auto infos = tensor_infos(**runner, direction);
        if (!infos) return infos.error();
        *into = *std::move(infos);
    }
    return description;
}

const char* operators_not_reported() {
    return "the runtime reports none";
}

}  // namespace vartml::gst
