// SPDX-License-Identifier: Apache-2.0
#include "lib/verify/onnxruntime.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "lib/artifact/extraction.h"
#include "lib/common/file.h"
#include "lib/common/process.h"

namespace vartml::verify {
namespace {

namespace fs = std::filesystem;

constexpr const char* child_name = "vartml-onnxruntime";
constexpr size_t max_file_bytes = size_t{8} << 30;

// By the numbers of ONNX's TensorProto.DataType.
constexpr DataType onnx_types[] = {
    DataType::unknown, DataType::float32, DataType::uint8,  DataType::int8,    DataType::uint16,
    DataType::int16,   DataType::int32,   DataType::int64,  DataType::unknown, DataType::boolean,
    DataType::fp16,    DataType::float64, DataType::uint32, DataType::uint64,  DataType::unknown,
    DataType::unknown, DataType::bf16};

// Beside the program in a build folder, in libexec once installed.
std::string find_child() {
    if (const char* given = std::getenv("VARTML_ONNXRUNTIME_CHILD"); given && *given) return given;
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const fs::path& place : {folder, folder / ".." / "libexec"})
        if (fs::exists(place / child_name, error)) return (place / child_name).string();
    return {};
}

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text;
    for (const int64_t d : shape) text += (text.empty() ? "" : ",") + std::to_string(d);
    return text.empty() ? "-" : text;
}

Result<void> write(const std::string& path, Bytes bytes) {
    return write_new_file(path, std::span(&bytes, 1));
}

Result<void> write_request(const std::string& folder, const std::vector<OnnxRuntime::Named>& inputs,
                           const std::vector<std::string>& keep) {
    std::string lines;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const auto type = std::ranges::find(onnx_types, inputs[i].data.type);
        lines += std::to_string(type - std::begin(onnx_types)) + ' ' +
                 shape_text(inputs[i].data.shape) + ' ' + inputs[i].name + '\n';
        if (auto done = write(folder + "/input_" + std::to_string(i), inputs[i].data.bytes); !done)
            return done;
    }
    for (const std::string& name : keep) lines += "keep " + name + '\n';
    return write(folder + "/request", as_bytes(lines));
}

// "1 1,3,416,416 images"
bool parse_line(std::string_view line, std::string& name, TensorData& data) {
    const size_t first = line.find(' '), second = line.find(' ', first + 1);
    if (first == line.npos || second == line.npos) return false;
    size_t type = 0;
    std::from_chars(line.data(), line.data() + first, type);
    if (type >= std::size(onnx_types) || onnx_types[type] == DataType::unknown) return false;
    data.type = onnx_types[type];
    const char* at = line.data() + first + 1;
    const char* const end = line.data() + second;
    while (at < end && *at != '-') {
        int64_t d = 0;
        const auto [next, error] = std::from_chars(at, end, d);
        if (error != std::errc()) return false;
        data.shape.push_back(d);
        at = next < end ? next + 1 : next;
    }
    name = line.substr(second + 1);
    return true;
}

Result<std::map<std::string, TensorData>> read_outputs(const std::string& folder) {
    auto lines = read_file(folder + "/outputs", max_file_bytes);
    if (!lines) return lines.error();
    std::map<std::string, TensorData> outputs;
    size_t index = 0;
    for (std::string_view rest = *lines; !rest.empty(); ++index) {
        const size_t end = rest.find('\n');
        std::string name;
        TensorData data;
        if (parse_line(rest.substr(0, end), name, data)) {
            auto bytes = read_file(folder + "/output_" + std::to_string(index), max_file_bytes);
            if (!bytes) return bytes.error();
            data.bytes.resize(bytes->size());
            if (!bytes->empty()) std::memcpy(data.bytes.data(), bytes->data(), bytes->size());
            outputs.emplace(std::move(name), std::move(data));
        }
        rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
    return outputs;
}

std::string last_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Result<OnnxRuntime> OnnxRuntime::find() {
    const std::string how =
        "; install it (Debian: libonnxruntime1.21), or name the library in the environment "
        "variable VARTML_ONNXRUNTIME";
    OnnxRuntime found;
    found.program_ = find_child();
    if (found.program_.empty())
        return Error{ErrorCode::not_found, std::string("the program ") + child_name +
                                               " is not installed, it is built where ONNX "
                                               "Runtime's headers are (Debian: "
                                               "libonnxruntime-dev)"};
    Child child;
    child.arguments = {found.program_, "version"};
    child.on_line = [&](std::string_view line) { found.version_ = line; };
    auto ended = run_child(child);
    if (!ended) return ended.error();
    if (ended->exit_status != 0 || found.version_.empty())
        return Error{ErrorCode::not_found, "there is no ONNX Runtime to compare with (" +
                                               last_line(ended->stderr_tail) + ")" + how};
    return found;
}

Result<std::map<std::string, TensorData>> OnnxRuntime::run(
    const std::string& model, const std::vector<Named>& inputs,
    const std::vector<std::string>& keep) const {
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    if (auto done = write_request(folder->path(), inputs, keep); !done) return done.error();
    std::error_code error;
    Child child;
    child.arguments = {program_, "run", fs::absolute(model, error).string(), folder->path()};
    auto ended = run_child(child);
    if (!ended) return ended.error();
    if (ended->exit_status != 0)
        return Error{ErrorCode::device,
                     model + ": ONNX Runtime " + version_ + " does not run it: " +
                         (ended->signal ? "ended by signal " + std::to_string(ended->signal)
                                        : last_line(ended->stderr_tail))};
    return read_outputs(folder->path());
}

}  // namespace vartml::verify
