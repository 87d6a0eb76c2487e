// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/run_runner.h"

#include <algorithm>
#include <any>
#include <cstdio>
#include <filesystem>
#include <unordered_map>

#include <vartml/compile.h>
#include <vartml/model.h>

namespace vartml::tools {

using vart::TensorType;

Result<std::string> compiled_model(const std::string& model) {
    std::error_code error;
    if (!std::filesystem::exists(model, error))
        return Error{ErrorCode::not_found,
                     model + ": " + (error ? error.message() : "no such file")};
    if (!model.ends_with(".onnx")) return model;
    CompileOptions options;
    options.progress = [](int percent, const std::string& stage) {
        std::fprintf(stderr, "compiling: %d %% %s\n", percent, stage.c_str());
    };
    auto result = compile_onnx(model, options);
    if (!result) return result.error();
    return result->path;
}

Result<void> choose_views(RunOptions& o, const std::string& path) {
    const auto model = open_model(path);
    if (!model) return model.error();
    const auto choose = [&](const std::vector<TensorInfo>& tensors) {
        const bool all =
            std::ranges::all_of(tensors, [](const auto& t) { return t.hw.has_value(); });
        return o.view == "hw" || (o.view == "auto" && all) ? TensorType::HW : TensorType::CPU;
    };
    o.input_view = choose(model->inputs);
    o.output_view = choose(model->outputs);
    return {};
}

Result<std::shared_ptr<vart::Runner>> open_runner(
    const std::string& path, const RunOptions& o,
    const std::shared_ptr<profiling::CaptureSink>& sink) {
    const auto view = [](TensorType type) {
        return std::string(type == TensorType::HW ? "HW" : "CPU");
    };
    std::unordered_map<std::string, std::any> options = {
        {"input_tensor_type", view(o.input_view)},
        {"output_tensor_type", view(o.output_view)},
        {"max_concurrent_runs", std::max(2U, o.in_flight)},
        {"log_level", "WARNING"},
        {"name", "run"},
        {"vartml_numerics", o.numerics},
        {"vartml_threads", o.threads},
    };
    if (!o.device.empty()) options["vartml_device"] = o.device;
    if (sink) options["vartml_capture_sink"] = sink;
    try {
        return vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, path, options);
    } catch (const std::invalid_argument& e) {
        return Error{ErrorCode::invalid_argument, e.what()};
    } catch (const std::exception& e) {
        return Error{ErrorCode::bad_model, e.what()};
    }
}

Error run_error(const vart::Runner& runner) {
    return {ErrorCode::device, property<std::string>(runner, "last_error")};
}

}  // namespace vartml::tools
