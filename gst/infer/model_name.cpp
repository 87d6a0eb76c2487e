// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/model_name.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace vartml::gst::infer {
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
