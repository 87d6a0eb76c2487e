// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/ask_onnxruntime.h"

#include <sstream>

#include "lib/base/file.h"
#include "lib/base/places.h"
#include "lib/base/process.h"
#include "lib/model/entries.h"

namespace vartml::compiler {
namespace {

constexpr int exit_absent = 3;  // of the child where there is no ONNX Runtime

std::string last_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.substr(text.rfind('\n') + 1);
}

// ONNX Runtime's sentence without the name of the file that it was given.
std::string sentence(const std::string& text) {
    constexpr std::string_view failed = " failed:";
    const size_t at = text.starts_with("Load model from ") ? text.find(failed) : text.npos;
    return at == text.npos ? text : text.substr(at + failed.size());
}

// "1 fixed 1,3,4", "1 varies 2,0", "1 open" or "0".
onnx::ForeignOutput parse(std::string_view line) {
    onnx::ForeignOutput output;
    std::istringstream words{std::string(line)};
    std::string how, sizes;
    words >> output.elem_type >> how >> sizes;
    output.has_shape = how == "fixed" || how == "varies";
    output.varies = how == "varies";
    std::istringstream numbers(sizes);
    for (std::string size; output.has_shape && std::getline(numbers, size, ',');)
        if (size != "-") output.shape.push_back(std::stoll(size));
    return output;
}

}  // namespace

Result<std::vector<onnx::ForeignOutput>> ask_onnxruntime(const std::string& model) {
    Child child;
    child.arguments = {find_onnxruntime_program(), "describe"};
    if (child.arguments[0].empty())
        return Error{ErrorCode::not_found, "the program vartml-onnxruntime is not installed"};
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    const std::string path = folder->path() + "/model.onnx";
    const Bytes bytes = as_bytes(model);
    if (auto done = write_new_file(path, std::span(&bytes, 1)); !done) return done.error();
    child.arguments.push_back(path);
    std::vector<onnx::ForeignOutput> outputs;
    child.on_line = [&](std::string_view line) { outputs.push_back(parse(line)); };
    auto ended = run_child(child);
    if (!ended) return ended.error();
    if (ended->exit_status == exit_absent)
        return Error{ErrorCode::not_found, last_line(ended->stderr_tail)};
    if (ended->exit_status != 0)
        return Error{ErrorCode::unsupported,
                     ended->signal ? "it ended by signal " + std::to_string(ended->signal)
                                   : sentence(last_line(ended->stderr_tail))};
    return outputs;
}

}  // namespace vartml::compiler
