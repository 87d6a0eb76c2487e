// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/load_model.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include <glib.h>

#include <vartml/compile.h>

#include "gst/support/runtime.h"

namespace vartml::gst::infer {
namespace {

using vartml::ErrorCode;

bool is_directory(const std::string& path) {
    struct stat info{};
    return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool check_path(const Settings& settings, Failure& failure) {
    const std::string& path = settings.model;
    if (path.empty()) {
        return fail(failure, "infer-no-model",
                    {ErrorCode::invalid_argument,
                     "property 'model' is not set; set it to a directory with vaiml_par_0, a .rai "
                     "or .tar.gz file, a directory with "
                     "one .rai, or an .onnx file"},
                    "model");
    }
    const int mode = is_directory(path) ? R_OK | X_OK : R_OK;
    // With the rights that opening it will have: a service may have more than its user.
    if (faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0) return true;
    const int reason = errno;
    const std::string sentence = "model '" + path + "': " + std::strerror(reason);
    if (reason == ENOENT || reason == ENOTDIR) {
        return fail(failure, "infer-model-missing", {ErrorCode::not_found, sentence}, "model",
                    path);
    }
    return fail(failure, "infer-model-unreadable",
                {ErrorCode::io, sentence + "; make it readable for this user"}, "model", path);
}

// The library names the variable where it could not start the program.
bool compiler_missing(const vartml::Error& error) {
    return error.code == ErrorCode::io &&
           error.message.find("VARTML_COMPILER") != std::string::npos;
}

bool compile(const Settings& settings, const LoadProgress& progress, std::string& path,
             Instance& instance, Failure& failure) {
    vartml::CompileOptions options;
    options.cache_dir = settings.cache_dir;
    options.cancel = progress.cancel;
    options.progress = progress.compile;
    auto compiled = vartml::compile_onnx(settings.model, options);
    if (compiled) {
        path = compiled->path;
        instance.cache_hit = compiled->cache_hit;
        return true;
    }
    const vartml::Error& error = compiled.error();
    switch (error.code) {
        case ErrorCode::not_found:
            return fail(failure, "infer-model-missing", error, "model", settings.model);
        case ErrorCode::io:
            if (compiler_missing(error)) return fail(failure, "infer-no-compiler", error, nullptr);
            return fail(failure, "infer-cache", error, "cache-dir", settings.cache_dir);
        default:
            return fail(failure, "infer-compile", error, "model", settings.model);
    }
}

// "channels=bgr mean=0 pad=114,114,114" as the section of an input, so that the sidecar's reader
// checks it.
std::string preprocess_section(const std::string& text, const std::string& input) {
    std::string section = "[modelinfo]\nversion=1.0\n\n[" + input + "]\ndir=input\n";
    std::istringstream words(text);
    for (std::string word; words >> word;) section += "x-vartml-" + word + "\n";
    return section;
}

// What the reader says of that section, in words of the property: no line, no prefix of keys.
std::string preprocess_sentence(std::string sentence) {
    const size_t line = sentence.find(", line ");
    const size_t colon = line == std::string::npos ? line : sentence.find(": ", line);
    if (colon != std::string::npos) sentence.erase(0, colon + 2);
    constexpr std::string_view prefix = "x-vartml-";
    for (size_t at; (at = sentence.find(prefix)) != std::string::npos;)
        sentence.erase(at, prefix.size());
    return "property 'preprocess': " + sentence;
}

void overlay(const vartml::ModelInfo::Input& from, vartml::ModelInfo::Input& to) {
    if (from.resize) to.resize = from.resize;
    if (from.interpolation) to.interpolation = from.interpolation;
    if (from.channels) to.channels = from.channels;
    if (!from.mean.empty()) to.mean = from.mean;
    if (!from.scale.empty()) to.scale = from.scale;
    if (!from.pad.empty()) to.pad = from.pad;
    if (from.crop_fraction) to.crop_fraction = from.crop_fraction;
    if (!from.picture.empty()) to.picture = from.picture;
    if (!from.weights_for.empty()) to.weights_for = from.weights_for;
}

// Beside what is compiled; one folder per model, which later runs use again.
std::string unpack_folder(const Settings& settings, const vartml::ModelDescription& description) {
    const std::string parent = settings.cache_dir.empty()
                                   ? std::string(g_get_user_cache_dir()) + "/vartml"
                                   : settings.cache_dir;
    std::string name = description.name;
    for (char& c : name)
        if (!g_ascii_isalnum(c) && c != '-' && c != '.') c = '_';
    return parent + '/' + name + '-' + description.signature + ".unpacked";
}

RunnerOptions user_options(const Settings& settings) {
    RunnerOptions options;
    for (const auto& [key, value] : settings.runner_options)
        options[key] = std::visit([](const auto& v) { return std::any(v); }, value);
    return options;
}

constexpr const char* owned_options[] = {"input_tensor_type", "output_tensor_type",
                                         "max_concurrent_runs", "callback_order", "vartml_device"};

}  // namespace

unsigned concurrent_runs(const Settings& settings, unsigned batch) {
    // The API's default is 2.
    return std::max(2u, (frames_in_flight(settings, batch) + batch - 1) / batch);
}

bool needs_compiler(const std::string& model) {
    return model.ends_with(".onnx") && !is_directory(model);
}

bool open_description(const Settings& settings, const LoadProgress& progress, Instance& instance,
                      Failure& failure) {
    if (!check_path(settings, failure)) return false;
    std::string path = settings.model;
    const RunnerOptions user = user_options(settings);
    if (auto refused = refuse_request(path, is_directory(path), settings.device, user)) {
        failure = *std::move(refused);
        return false;
    }
    if (needs_compiler(path) && !compile(settings, progress, path, instance, failure)) return false;
    auto description = describe_model(path, user);
    if (description) {
        instance.description = *std::move(description);
        instance.description.name = model_name(instance.description.name, settings.model);
        return true;
    }
    const vartml::Error& error = description.error();
    if (error.code == ErrorCode::invalid_argument)
        return fail(failure, "infer-option", error, "runner-options");
    const char* id = "infer-model-bad";
    if (error.code == ErrorCode::not_found) id = "infer-model-missing";
    if (error.code == ErrorCode::io) id = "infer-model-unreadable";
    return fail(failure, id, error, "model", path);
}

bool find_sidecar(const Settings& settings, const Instance& instance, vartml::ModelInfo& info,
                  Failure& failure) {
    auto found = vartml::find_modelinfo(settings.modelinfo_file, settings.model,
                                        instance.description.modelinfo);
    if (!found)
        return fail(failure, "infer-sidecar", found.error(), "modelinfo-file",
                    settings.modelinfo_file);
    const vartml::ModelDescription& model = instance.description;
    if (auto fits = vartml::check_modelinfo(*found, model.inputs, model.outputs); !fits)
        return fail(failure, "infer-sidecar", fits.error(), "modelinfo-file",
                    settings.modelinfo_file);
    info = *std::move(found);
    return true;
}

bool overlay_preprocess(const Settings& settings, const std::string& picture_input,
                        vartml::ModelInfo& info, Failure& failure) {
    if (settings.preprocess.empty()) return true;
    auto own = vartml::parse_modelinfo(preprocess_section(settings.preprocess, picture_input),
                                       "property preprocess");
    if (!own || own->inputs.empty()) {
        return fail(failure, "infer-option",
                    {ErrorCode::invalid_argument, own ? "property 'preprocess' has no key"
                                                      : preprocess_sentence(own.error().message)},
                    "preprocess");
    }
    if (!own->inputs[0].feed.empty())
        return fail(failure, "infer-option",
                    {ErrorCode::invalid_argument,
                     "property 'preprocess' has feed, which is for inputs beside the picture; say "
                     "it in a sidecar"},
                    "preprocess");
    for (vartml::ModelInfo::Input& input : info.inputs) {
        if (input.name == picture_input) {
            overlay(own->inputs[0], input);
            return true;
        }
    }
    info.inputs.push_back(own->inputs[0]);
    return true;
}

bool runner_options(const Settings& settings, const vartml::ModelDescription& description,
                    unsigned batch, RunnerOptions& options, Failure& failure) {
    if (!settings.runner_options_error.empty()) {
        return fail(failure, "infer-option",
                    {ErrorCode::invalid_argument, settings.runner_options_error}, "runner-options");
    }
    options = user_options(settings);
    for (const auto& [key, value] : options) {
        for (const char* owned : owned_options) {
            if (key == owned || key.starts_with(owned + std::string("."))) {
                return fail(failure, "infer-option",
                            {ErrorCode::invalid_argument,
                             "property 'runner-options' sets '" + key +
                                 "', which the element sets itself from its properties"},
                            "runner-options");
            }
        }
    }
    const auto all_hw = [](const std::vector<vartml::TensorInfo>& tensors) {
        for (const vartml::TensorInfo& t : tensors) {
            if (!t.hw) return false;
        }
        return true;
    };
    options["input_tensor_type"] = std::string(all_hw(description.inputs) ? "HW" : "CPU");
    options["output_tensor_type"] = std::string(all_hw(description.outputs) ? "HW" : "CPU");
    const auto runs = uint32_t(concurrent_runs(settings, batch));
    options["max_concurrent_runs"] = runs;
    // The API's default is 10.
    if (runs > 10 && !options.contains("async_threadpool_depth"))
        options["async_threadpool_depth"] = std::min(runs, 256u);
    if (settings.device != "auto" && !settings.device.empty())
        options["vartml_device"] = settings.device;
    if (description.format == "tar" && !options.contains("cache_path"))
        options["cache_path"] = unpack_folder(settings, description);
    return true;
}

namespace {

// ours: what exporters and habits call every model, and the folders around them
constexpr std::string_view silent[] = {
    "",        "model",   "best",        "last",       "end2end",    "inference",
    "network", "weights", "saved_model", "onnx",       "onnx_model", "export",
    "models",  "exports", "output",      "model_fp16", "model_int8", "model_quantized",
    "detect",  "compiled"};

bool says_nothing(std::string_view name) {
    return std::ranges::find(silent, name) != std::end(silent);
}

}  // namespace

std::string model_name(const std::string& compiled_in, const std::string& path) {
    namespace fs = std::filesystem;
    if (!says_nothing(compiled_in)) return compiled_in;
    std::error_code failed;
    fs::path at = fs::absolute(path, failed).lexically_normal();
    if (failed) return compiled_in;
    if (!at.has_filename()) at = at.parent_path();  // a folder written with a slash
    std::string name = at.filename();
    for (const std::string_view ending : {".onnx", ".rai", ".tar.gz", ".tar"}) {
        if (name.ends_with(ending)) name.resize(name.size() - ending.size());
    }
    while (says_nothing(name) && at.has_relative_path()) {
        at = at.parent_path();
        name = at.filename();
    }
    return name.empty() ? compiled_in : name;
}

}  // namespace vartml::gst::infer
