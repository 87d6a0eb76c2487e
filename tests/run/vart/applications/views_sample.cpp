// SPDX-License-Identifier: Apache-2.0
// An application that chooses the view of each tensor by its name, as public applications for
// VART-ML do, in C++17 and with the public headers alone. It lists the tensors of a direction view
// by view, those of the direction's own view first, and gives fewer inputs than the model's batch
// beside all of its outputs.
//
// usage: views_sample MODEL HW|CPU HW|CPU INPUT_FILE OUTPUT_FILE
// [in.NAME=HW|CPU|out.NAME=HW|CPU]... The views of inputs and of outputs; one frame in the order of
// the CPU views, each tensor in the view it has; all elements of the outputs in the same way.
#include <algorithm>
#include <any>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <vart/vart_npu_tensor.hpp>
#include <vart/vart_runner_factory.hpp>

// As applications write it that also use other libraries of that namespace.
namespace vart {
class Runner;
class VideoFrame;
}  // namespace vart

using namespace std;
using namespace vart;

namespace {

using Types = unordered_map<string, string>;
using Infos = vector<vart::NpuTensorInfo>;

struct Settings {
    string model, name = "views";
    string input_type = "HW", output_type = "HW";
    Types inputs, outputs;  // by tensor
    bool aie_columns_sharing = true, ai_analyzer_profiling = false, enable_xrt_run_pool = false;
    uint32_t start_column = 4, cma_index = 1;
};

vart::TensorType type_of(const string& text) {
    if (text == "HW") return vart::TensorType::HW;
    if (text == "CPU") return vart::TensorType::CPU;
    throw invalid_argument("view is '" + text + "', expected HW or CPU");
}

const char* short_name(vart::DataType type) {
    switch (type) {
        case vart::DataType::BOOLEAN:
            return "boolean";
        case vart::DataType::INT8:
            return "int8";
        case vart::DataType::UINT8:
            return "uint8";
        case vart::DataType::INT16:
            return "int16";
        case vart::DataType::UINT16:
            return "uint16";
        case vart::DataType::BF16:
            return "bf16";
        case vart::DataType::FP16:
            return "fp16";
        case vart::DataType::INT32:
            return "int32";
        case vart::DataType::UINT32:
            return "uint32";
        case vart::DataType::FLOAT32:
            return "fp32";
        case vart::DataType::INT64:
            return "int64";
        case vart::DataType::UINT64:
            return "uint64";
        case vart::DataType::UNKNOWN:
            return "unknown";
        default:
            return "unrecognised";
    }
}

bool is_picture(vart::MemoryLayout layout) {
    switch (layout) {
        case vart::MemoryLayout::NHW:
        case vart::MemoryLayout::NHWC:
        case vart::MemoryLayout::NCHW:
        case vart::MemoryLayout::NHWC4:
        case vart::MemoryLayout::NHWC8:
        case vart::MemoryLayout::NC4HW4:
        case vart::MemoryLayout::NC8HW8:
        case vart::MemoryLayout::HCWNC4:
        case vart::MemoryLayout::HCWNC8:
        case vart::MemoryLayout::HCWNC16:
        case vart::MemoryLayout::NHW16C4WC:
        case vart::MemoryLayout::NHW16WC4C:
            return true;
        case vart::MemoryLayout::NC:
        case vart::MemoryLayout::NCH:
        case vart::MemoryLayout::NHC:
        case vart::MemoryLayout::GENERIC:
        default:
            return false;
    }
}

shared_ptr<vart::Runner> open_model(const Settings& settings) {
    unordered_map<string, any> options = {
        {"name", settings.name},
        {"log_level", string("WARNING")},
        {"input_tensor_type", settings.input_type},
        {"output_tensor_type", settings.output_type},
        {"aie_columns_sharing", settings.aie_columns_sharing},
        {"ai_analyzer_profiling", settings.ai_analyzer_profiling},
        {"enable_xrt_run_pool", settings.enable_xrt_run_pool},
    };
    for (const auto& [tensor, type] : settings.inputs)
        options["input_tensor_type." + tensor] = type;
    for (const auto& [tensor, type] : settings.outputs)
        options["output_tensor_type." + tensor] = type;
    options["start_column"] = settings.start_column;
    options["cma_index"] = settings.cma_index;
    return vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, settings.model, options);
}

unordered_map<string, const vart::NpuTensorInfo*> by_name(const Infos& infos) {
    unordered_map<string, const vart::NpuTensorInfo*> index;
    for (const auto& info : infos) index[info.name] = &info;
    return index;
}

// The tensors of a direction, each in its view.
Infos choose(const vart::Runner& runner, vart::TensorDirection direction, const string& common,
             const Types& own) {
    const Infos cpu = runner.get_tensors_info(direction, vart::TensorType::CPU);
    const Infos hw = runner.get_tensors_info(direction, vart::TensorType::HW);
    const bool is_hw = type_of(common) == vart::TensorType::HW;
    vector<string> names;
    unordered_set<string> seen;
    for (const Infos* list : {is_hw ? &hw : &cpu, is_hw ? &cpu : &hw})
        for (const auto& info : *list)
            if (seen.insert(info.name).second) names.push_back(info.name);
    const auto of_cpu = by_name(cpu), of_hw = by_name(hw);
    Infos chosen;
    for (const string& name : names) {
        const auto found = own.find(name);
        const vart::TensorType type = type_of(found == own.end() ? common : found->second);
        const auto& index = type == vart::TensorType::HW ? of_hw : of_cpu;
        const auto info = index.find(name);
        if (info == index.end())
            throw runtime_error(name + " has no view " + vart::to_string(type).data());
        chosen.push_back(*info->second);
    }
    return chosen;
}

void show(const vart::Runner& runner, const Infos& infos) {
    unordered_map<string, vart::QuantParameters> quant;
    for (const auto& info : infos) quant[info.name] = runner.get_quant_parameters(info.name);
    for (const auto& info : infos) {
        const auto& [scale, zero_point, rounding] = quant[info.name];
        printf("%s %s %s %s%s, %zu elements, %zu bytes, scale %f, zero point %d, %s\n",
               info.name.c_str(), vart::to_string(info.tensor_type).data(),
               short_name(info.data_type), string(vart::to_string(info.memory_layout)).c_str(),
               is_picture(info.memory_layout) ? "" : " (no picture)", info.size, info.size_in_bytes,
               scale, zero_point, vart::to_string(rounding).data());
    }
}

vector<vector<vart::NpuTensor>> allocate(const vart::Runner& runner, const Infos& infos,
                                         size_t batch) {
    vector<vector<vart::NpuTensor>> tensors;
    tensors.resize(batch);
    for (auto& element : tensors) {
        element.reserve(infos.size());
        for (const auto& info : infos) {
            vart::NpuTensor tensor = runner.allocate_npu_tensor(info);
            element.push_back(std::move(tensor));
        }
    }
    return tensors;
}

vart::NpuTensor& find(vector<vart::NpuTensor>& element, const string& name) {
    for (auto& tensor : element)
        if (tensor.get_info().name == name) return tensor;
    throw runtime_error("no tensor " + name);
}

void run(const Settings& settings, const char* input_file, const char* output_file) {
    const auto runner = open_model(settings);
    if (!runner) throw runtime_error("no runner");
    const auto in =
        choose(*runner, vart::TensorDirection::INPUT, settings.input_type, settings.inputs);
    const auto out =
        choose(*runner, vart::TensorDirection::OUTPUT, settings.output_type, settings.outputs);
    if (in.size() != runner->get_num_input_tensors() ||
        out.size() != runner->get_num_output_tensors())
        throw runtime_error("tensors are missing");
    show(*runner, in);
    show(*runner, out);

    auto inputs = allocate(*runner, in, runner->get_batch_size(vart::TensorDirection::INPUT));
    auto outputs = allocate(*runner, out, runner->get_batch_size(vart::TensorDirection::OUTPUT));
    inputs.resize(1);
    ifstream file(input_file, ios::binary);
    for (const auto& info :
         runner->get_tensors_info(vart::TensorDirection::INPUT, vart::TensorType::CPU)) {
        auto& tensor = find(inputs[0], info.name);
        file.read(static_cast<char*>(tensor.get_virtual_address()),
                  static_cast<streamsize>(tensor.get_info().size_in_bytes));
    }
    if (!file) throw runtime_error("the input file is too short");

    const auto status = runner->execute(inputs, outputs);
    if (vart::StatusCode::SUCCESS != status)
        throw runtime_error("execute: " + to_string(static_cast<int>(status)));
    ofstream result(output_file, ios::binary);
    for (auto& element : outputs)
        for (const auto& info :
             runner->get_tensors_info(vart::TensorDirection::OUTPUT, vart::TensorType::CPU)) {
            const auto& tensor = find(element, info.name);
            result.write(static_cast<const char*>(tensor.get_virtual_address()),
                         static_cast<streamsize>(tensor.get_info().size_in_bytes));
        }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 6) {
        cerr << "usage: views_sample MODEL HW|CPU HW|CPU INPUT_FILE OUTPUT_FILE "
                "[in.NAME=HW|CPU|out.NAME=HW|CPU]...\n";
        return 2;
    }
    try {
        Settings settings;
        settings.model = argv[1];
        settings.input_type = argv[2];
        settings.output_type = argv[3];
        for (int i = 6; i < argc; ++i) {
            const string text = argv[i];
            const size_t dot = text.find('.'), equals = text.rfind('=');
            auto& types = text.compare(0, dot, "in") == 0 ? settings.inputs : settings.outputs;
            types[text.substr(dot + 1, equals - dot - 1)] = text.substr(equals + 1);
        }
        run(settings, argv[4], argv[5]);
        return 0;
    } catch (const std::exception& e) {
        cerr << e.what() << '\n';
        return 1;
    }
}
