// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/run.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include <vartml/model.h>

#include "lib/base/convert.h"
#include "lib/base/file.h"
#include "lib/model/compiled_model.h"
#include "lib/tools/arguments.h"
#include "lib/tools/tensor_file.h"
#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/reference.h"
#include "lib/tools/verify/session.h"

namespace vartml::tools {
namespace {

using vart::TensorDirection;
using vart::TensorType;

TensorView view_of(const vart::NpuTensorInfo& info, const vart::QuantParameters& quant) {
    TensorView view =
        make_view(static_cast<DataType>(info.data_type), static_cast<Layout>(info.memory_layout),
                  info.shape, info.memory_layout_order);
    if (quant.rounding_mode != vart::RoundingMode::UNKNOWN)
        view.quantisation = Quantisation{quant.scale, quant.zero_point};
    return view;
}

// Bytes of a tensor in one view to bytes in another.
Result<void> convert(const vart::Runner& runner, const std::string& name, TensorType from,
                     TensorType to, const void* src, void* dst) {
    const auto& quant = runner.get_quant_parameters(name);
    const auto view = [&](TensorType type) {
        return view_of(runner.get_tensor_info_by_name(name, type),
                       type == TensorType::HW ? quant : vart::QuantParameters{});
    };
    auto conversion = Conversion::create(view(from), view(to));
    if (!conversion) return conversion.error();
    conversion->run(src, dst);
    return {};
}

Result<std::vector<std::byte>> bytes_of_file(const std::string& file,
                                             const vart::NpuTensorInfo& info) {
    auto data = read_tensor(file);
    if (!data) return data.error();
    const auto type = static_cast<DataType>(info.data_type);
    if (!verify::fits(*data, type, info.shape))
        return Error{ErrorCode::invalid_argument,
                     file + ": holds " + verify::describe(data->type, data->shape) + ", input '" +
                         info.name + "' is " + verify::describe(type, info.shape)};
    return std::move(data->bytes);
}

Result<std::vector<std::byte>> input_bytes(const vart::NpuTensorInfo& cpu,
                                           const std::map<std::string, std::string>& files,
                                           unsigned seed) {
    if (const auto file = files.find(cpu.name); file != files.end())
        return bytes_of_file(file->second, cpu);
    return random_bytes(static_cast<DataType>(cpu.data_type), cpu.size_in_bytes, seed);
}

// A tensor of that view with the bytes of the CPU view.
Result<vart::NpuTensor> input_tensor(const vart::Runner& runner, const std::string& name,
                                     TensorType type, const std::vector<std::byte>& bytes) {
    vart::NpuTensor tensor = runner.allocate_npu_tensor(runner.get_tensor_info_by_name(name, type));
    void* const dst = tensor.get_virtual_address();
    if (type == TensorType::CPU) {
        std::memcpy(dst, bytes.data(), bytes.size());
    } else if (auto done =
                   convert(runner, name, TensorType::CPU, TensorType::HW, bytes.data(), dst);
               !done) {
        return done.error();
    }
    return tensor;
}

// Bytes of an output in its CPU view.
Result<TensorData> output_data(const RunOptions& o, const vart::Runner& runner,
                               vart::NpuTensor& tensor) {
    const auto& cpu = runner.get_tensor_info_by_name(tensor.get_info().name, TensorType::CPU);
    TensorData data;
    data.type = static_cast<DataType>(cpu.data_type);
    data.shape.assign(cpu.shape.begin(), cpu.shape.end());
    data.bytes.resize(cpu.size_in_bytes);
    const void* const src = tensor.get_virtual_address();
    if (o.output_view == TensorType::CPU) {
        std::memcpy(data.bytes.data(), src, data.bytes.size());
        return data;
    }
    if (auto done =
            convert(runner, cpu.name, TensorType::HW, TensorType::CPU, src, data.bytes.data());
        !done)
        return done.error();
    return data;
}

bool is_data_dependent(const artifact::CompiledModel& model, const std::string& output) {
    return std::ranges::any_of(model.outputs, [&](const auto& tensor) {
        return tensor.name == output && tensor.data_dependent;
    });
}

// STEM_0, STEM_1 … of the folder, one for each tensor, and none more.
Result<std::vector<std::string>> numbered_files(const std::string& option,
                                                const std::string& folder, const std::string& stem,
                                                const std::vector<vart::NpuTensorInfo>& infos) {
    std::vector<std::string> files;
    for (size_t i = 0; i < infos.size(); ++i) {
        const auto file = find_tensor_file(folder, stem, i);
        if (!file)
            return Error{ErrorCode::not_found, option + ": " + folder + " has no " + stem + "_" +
                                                   std::to_string(i) + ".npy or .pb for " + stem +
                                                   " '" + infos[i].name + "'"};
        files.push_back(*file);
    }
    if (const auto beyond = find_tensor_file(folder, stem, infos.size()))
        return Error{ErrorCode::invalid_argument,
                     option + ": " + *beyond + " is of no " + stem + ", the model has " +
                         std::to_string(infos.size()) + "; take it away, or give another folder"};
    return files;
}

Result<std::vector<std::string>> expected_files(const RunOptions& o, const vart::Runner& runner) {
    if (o.expect_dir.empty()) return std::vector<std::string>();
    return numbered_files("--expect", o.expect_dir, "output",
                          runner.get_tensors_info(TensorDirection::OUTPUT, o.output_view));
}

Error no_save_folder(const RunOptions& o) {
    return {ErrorCode::io, "--save-outputs: " + o.save_dir +
                               " cannot be made a folder that files are written to; name one"};
}

// Before the run: what the folder is, or is to be made in, takes files.
bool can_save(const RunOptions& o) {
    std::error_code error;
    std::filesystem::path folder = std::filesystem::absolute(o.save_dir, error);
    while (!std::filesystem::exists(folder, error) && folder.has_relative_path())
        folder = folder.parent_path();
    return static_cast<bool>(StagedFile::create(folder / "output"));
}

std::string saved_file(const RunOptions& o, size_t output) {
    return without_trailing_slashes(o.save_dir) + "/output_" + std::to_string(output) + ".npy";
}

}  // namespace

Result<std::map<std::string, std::string>> input_files(const RunOptions& o,
                                                       const vart::Runner& runner) {
    const auto& infos = runner.get_tensors_info(TensorDirection::INPUT, TensorType::CPU);
    std::map<std::string, std::string> files;
    if (!o.inputs_dir.empty()) {
        auto numbered = numbered_files("--inputs", o.inputs_dir, "input", infos);
        if (!numbered) return numbered.error();
        for (size_t i = 0; i < infos.size(); ++i) files[infos[i].name] = (*numbered)[i];
    }
    std::set<std::string_view> given;
    for (const std::string& text : o.input_files) {
        // Names and paths may have a '=', too: of the names that fit, the longest.
        std::string_view name;
        for (const auto& info : infos)
            if (text.starts_with(info.name + "=") && info.name.size() >= name.size())
                name = info.name;
        if (name.empty()) {
            std::string names;
            for (const auto& info : infos) names += (names.empty() ? "'" : ", '") + info.name + "'";
            return Error{ErrorCode::invalid_argument,
                         "--input: is '" + text + "', expected NAME=FILE with a NAME of " + names};
        }
        if (!given.insert(name).second)
            return Error{ErrorCode::invalid_argument,
                         "--input: is given twice for input '" + std::string(name) + "'"};
        files[std::string(name)] = text.substr(name.size() + 1);
    }
    return files;
}

Result<void> check_written(const RunOptions& o, const vart::Runner& runner,
                           const std::map<std::string, std::string>& inputs) {
    const size_t outputs = runner.get_tensors_info(TensorDirection::OUTPUT, o.output_view).size();
    std::vector<std::string> read{o.model};
    for (const auto& [name, file] : inputs) read.push_back(file);
    const auto expected = expected_files(o, runner);
    if (!expected) return expected.error();
    read.insert(read.end(), expected->begin(), expected->end());
    if (auto good = check_output("--json", o.json_file, read); !good) return good;
    for (size_t i = 0; !o.save_dir.empty() && i < outputs; ++i)
        if (auto good = check_output("--save-outputs", saved_file(o, i), read); !good) return good;
    if (!o.save_dir.empty() && !can_save(o)) return no_save_folder(o);
    return {};
}

Result<RunBuffers> make_buffers(const RunOptions& o, const vart::Runner& runner,
                                const std::map<std::string, std::string>& files) {
    const size_t batch = runner.get_batch_size();
    RunBuffers buffers{TensorBatch(batch), TensorBatch(batch)};
    unsigned seed = 1;
    for (const auto& cpu : runner.get_tensors_info(TensorDirection::INPUT, TensorType::CPU)) {
        auto bytes = input_bytes(cpu, files, seed++);
        if (!bytes) return bytes.error();
        for (auto& frame : buffers.inputs) {
            auto tensor = input_tensor(runner, cpu.name, o.input_view, *bytes);
            if (!tensor) return tensor.error();
            frame.push_back(std::move(*tensor));
        }
    }
    for (const auto& info : runner.get_tensors_info(TensorDirection::OUTPUT, o.output_view))
        for (auto& frame : buffers.outputs) frame.push_back(runner.allocate_npu_tensor(info));
    return buffers;
}

Result<void> save_outputs(const RunOptions& o, const std::string& path, const vart::Runner& runner,
                          TensorBatch& outputs) {
    const auto model = artifact::read(path);
    if (!model) return model.error();
    std::error_code error;
    std::filesystem::create_directories(o.save_dir, error);
    if (!std::filesystem::is_directory(o.save_dir, error)) return no_save_folder(o);
    for (size_t i = 0; i < outputs[0].size(); ++i) {
        const auto data = output_data(o, runner, outputs[0][i]);
        if (!data) return data.error();
        const std::string& name = outputs[0][i].get_info().name;
        const std::string file = saved_file(o, i);
        if (auto done = replace_file(file, npy_of(*data), Durability::none); !done)
            return Error{done.error().code, "--save-outputs: " + done.error().message};
        std::printf("output '%s': %s, %s%s\n", name.c_str(),
                    verify::describe(data->type, data->shape).c_str(), file.c_str(),
                    is_data_dependent(*model, name)
                        ? ", the largest shape that it may have; beyond that of this run there are "
                          "zeros, or -1 of signed integers"
                        : "");
    }
    return {};
}

Result<bool> check_outputs(const RunOptions& o, const std::string& path, vart::Runner& runner,
                           TensorBatch& outputs) {
    const auto model = artifact::read(path);
    if (!model) return model.error();
    const auto files = expected_files(o, runner);
    if (!files) return files.error();
    bool is_good = true;
    for (size_t i = 0; i < outputs[0].size(); ++i) {
        const std::string name = outputs[0][i].get_info().name;
        const std::string& file = (*files)[i];
        const auto read = read_tensor(file);
        if (!read) return read.error();
        // All frames of a batch had the same inputs.
        for (size_t frame = 0; frame < outputs.size(); ++frame) {
            auto found = output_data(o, runner, outputs[frame][i]);
            if (!found) return found.error();
            TensorInfo output;
            output.cpu.data_type = found->type;
            output.cpu.shape.assign(found->shape.begin(), found->shape.end());
            output.data_dependent = is_data_dependent(*model, name);
            const verify::Tolerance tolerance =
                verify::tolerance_of(found->type, verify::computed_type(runner, name),
                                     verify::step_of(*model, runner, name), o.tolerance);
            auto comparison =
                verify::compare(*found, verify::as_output(*read, output), tolerance, file);
            if (!comparison) return comparison.error();
            const std::string where =
                outputs.size() > 1 ? ", frame " + std::to_string(frame) : std::string();
            std::printf("output '%s'%s: %s: %s\n", name.c_str(), where.c_str(),
                        comparison->is_good ? "as expected" : "NOT as expected",
                        comparison->text.c_str());
            is_good = is_good && comparison->is_good;
        }
    }
    return is_good;
}

}  // namespace vartml::tools
