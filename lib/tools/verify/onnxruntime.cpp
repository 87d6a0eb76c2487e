// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/onnxruntime.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "lib/base/places.h"
#include "lib/base/process.h"
#include "lib/compile/onnx/exact_products.h"
#include "lib/compile/onnx/import.h"
#include "lib/model/entries.h"

namespace vartml::verify {
namespace {

namespace fs = std::filesystem;

constexpr const char* child_name = "vartml-onnxruntime";

std::string last_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.substr(text.rfind('\n') + 1);
}

}  // namespace

std::string why_it_ended(const ChildResult& ended, const Limits& limits) {
    if (ended.timed_out)
        return "takes longer than " + std::to_string(limits.time.count() / 1000) +
               " s (--time-limit S allows more)";
    if (ended.cancelled) return "was interrupted";
    const std::string said = last_line(ended.stderr_tail);
    if (ended.signal != 0)
        return "ended by signal " + std::to_string(ended.signal) +
               (said.empty() ? "" : " (" + said + ")");
    return said.empty() ? "ended with status " + std::to_string(ended.exit_status) : said;
}

std::string with_limits(std::string text, const Limits& limits) {
    // As this program, ONNX Runtime and the C++ library say it.
    constexpr std::string_view out_of_memory[] = {"not enough memory", "Failed to allocate memory",
                                                  "std::bad_alloc"};
    const bool is_memory = std::ranges::any_of(
        out_of_memory, [&](std::string_view words) { return text.find(words) != text.npos; });
    if (!is_memory || limits.memory == 0) return text;
    char gib[40];
    std::snprintf(gib, sizeof gib, "%.3g",
                  static_cast<double>(limits.memory) / (uint64_t{1} << 30));
    return text + " (the limit of each process is " + gib +
           " GiB; --memory-limit GIB allows another, 0 any)";
}

Result<OnnxRuntime> OnnxRuntime::find() {
    const std::string how = "; " + std::string(how_to_get_onnxruntime);
    OnnxRuntime found;
    found.program_ = find_onnxruntime_program();
    if (found.program_.empty())
        return Error{
            ErrorCode::not_found,
            std::string("the program ") + child_name +
                ", which runs ONNX Runtime, is not beside this one; it is built with `ninja "
                "-C build user` where ONNX Runtime's headers are (Debian: "
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

Result<void> OnnxRuntime::run_program(const std::string& model, const std::string& file,
                                      Child& child) const {
    std::error_code error;
    child.arguments.insert(child.arguments.begin(), program_);
    child.arguments.insert(child.arguments.begin() + 2, fs::absolute(file, error).string());
    child.time_limit = limits_.time;
    child.memory_limit = limits_.memory;
    child.cancel = cancel_;
    auto ended = run_child(child);
    if (!ended) return ended.error();
    if (ended->exit_status != 0)
        return Error{ErrorCode::device,
                     model + ": ONNX Runtime " + version_ +
                         " does not run it: " + with_way_out(why_it_ended(*ended, limits_))};
    return {};
}

Result<std::vector<NamedTensor>> OnnxRuntime::inputs(const std::string& model) const {
    std::vector<NamedTensor> inputs;
    bool understood = true;
    Child child;
    child.arguments = {"inputs"};
    child.on_line = [&](std::string_view line) {
        understood = parse_tensor_line(line, inputs.emplace_back()) && understood;
    };
    if (auto done = run_program(model, model, child); !done) return done.error();
    if (!understood)
        return Error{ErrorCode::device,
                     model + ": has an input of a type that no tensor of ours has"};
    return inputs;
}

Result<void> OnnxRuntime::run_folder(const std::string& model, const std::string& folder,
                                     const std::string& level, const std::string& out) const {
    Child child;
    child.arguments = {"run", folder, level, out};
    // A model without such a twin runs as it is.
    const fs::path twin = fs::path(out) / "exact.onnx";
    const auto is_written = onnx::write_exact_products(model, twin.string());
    if (!is_written || !*is_written) return run_program(model, model, child);
    auto ran = run_program(model, twin.string(), child);
    std::error_code error;
    fs::remove(twin, error);
    return ran;
}

Result<OnnxRuntime::Timed> OnnxRuntime::time(const std::string& model, const std::string& folder,
                                             double seconds, unsigned threads) const {
    Timed timed;
    Child child;
    child.arguments = {"time", folder, std::to_string(seconds), std::to_string(threads)};
    child.on_line = [&](std::string_view line) {
        const std::string text(line);
        unsigned long long runs = 0, ns = 0;
        if (std::sscanf(text.c_str(), "%llu %llu", &runs, &ns) == 2) timed = {runs, ns};
    };
    if (auto done = run_program(model, model, child); !done) return done.error();
    if (timed.runs == 0 || timed.median_ns == 0)
        return Error{ErrorCode::device, model + ": ONNX Runtime ran it and gave no times"};
    return timed;
}

Result<std::map<std::string, TensorData>> OnnxRuntime::run(const std::string& model,
                                                           const std::vector<Named>& inputs,
                                                           const std::vector<std::string>& keep,
                                                           const std::string& level) const {
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    const auto maps = onnx::map_outputs(model);
    if (!maps) return maps.error();
    std::vector<std::string> kept = keep;
    for (const std::string& numbers : maps->inside)
        if (std::ranges::find(kept, numbers) == kept.end()) kept.push_back(numbers);
    if (auto done = write_request(folder->path(), inputs, kept); !done) return done.error();
    if (auto done = run_folder(model, folder->path(), level, folder->path()); !done)
        return done.error();
    auto outputs = read_outputs(folder->path());
    if (outputs) name_numbers_of_maps(maps->numbers, *outputs);
    return outputs;
}

}  // namespace vartml::verify
