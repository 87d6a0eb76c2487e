// SPDX-License-Identifier: Apache-2.0
// An application as it is written for VART-ML, of the interface description alone and in C++17:
// opens a model, runs one frame in the HW or the CPU view, writes the outputs one after the other.
//
// usage: sync_sample MODEL HW|CPU INPUT_FILE OUTPUT_FILE
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "vart/vart_runner_factory.hpp"

namespace {

std::vector<char> read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Tensors of one direction; `storage` keeps the bytes of CPU views.
std::vector<vart::NpuTensor> make_tensors(const vart::Runner& runner,
                                          vart::TensorDirection direction, vart::TensorType type,
                                          std::vector<std::vector<char>>& storage) {
    std::vector<vart::NpuTensor> tensors;
    for (const vart::NpuTensorInfo& info : runner.get_tensors_info(direction, type)) {
        info.print();
        if (type == vart::TensorType::HW) {
            tensors.push_back(runner.allocate_npu_tensor(info));
        } else {
            storage.emplace_back(info.size_in_bytes);
            tensors.emplace_back(info, static_cast<void*>(storage.back().data()),
                                 vart::MemoryType::USER_POINTER_NON_CMA);
        }
    }
    return tensors;
}

int run(const std::string& model, const std::string& view, const std::string& input_file,
        const std::string& output_file) {
    std::unordered_map<std::string, std::any> options = {
        {"input_tensor_type", view},
        {"output_tensor_type", view},
        {"log_level", std::string("WARNING")},
    };
    std::shared_ptr<vart::Runner> runner =
        vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, model, options);
    const auto type = view == "HW" ? vart::TensorType::HW : vart::TensorType::CPU;

    std::cout << "batch " << runner->get_batch_size() << ", inputs "
              << runner->get_num_input_tensors() << ", outputs " << runner->get_num_output_tensors()
              << '\n';
    std::vector<std::vector<char>> storage;
    storage.reserve(runner->get_num_input_tensors() + runner->get_num_output_tensors());
    std::vector<std::vector<vart::NpuTensor>> inputs(1), outputs(1);
    inputs[0] = make_tensors(*runner, vart::TensorDirection::INPUT, type, storage);
    outputs[0] = make_tensors(*runner, vart::TensorDirection::OUTPUT, type, storage);
    for (const vart::NpuTensor& tensor : inputs[0]) {
        const vart::QuantParameters& quant = runner->get_quant_parameters(tensor.get_info().name);
        std::cout << tensor.get_info().name << ": scale " << quant.scale << ", zero point "
                  << quant.zero_point << '\n';
    }

    std::vector<char> bytes = read_file(input_file);
    size_t offset = 0;
    for (vart::NpuTensor& tensor : inputs[0]) {
        const size_t size = tensor.get_info().size_in_bytes;
        if (offset + size > bytes.size()) throw std::runtime_error("the input file is too short");
        std::copy_n(bytes.data() + offset, size, static_cast<char*>(tensor.get_virtual_address()));
        offset += size;
    }

    const vart::StatusCode status = runner->execute(inputs, outputs);
    if (status != vart::StatusCode::SUCCESS) {
        std::cerr << "execute: " << vart::to_string(status) << '\n';
        return 1;
    }
    std::ofstream file(output_file, std::ios::binary);
    for (const vart::NpuTensor& tensor : outputs[0])
        file.write(static_cast<const char*>(tensor.get_virtual_address()),
                   static_cast<std::streamsize>(tensor.get_info().size_in_bytes));
    return file.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::cerr << "usage: sync_sample MODEL HW|CPU INPUT_FILE OUTPUT_FILE\n";
        return 2;
    }
    try {
        return run(argv[1], argv[2], argv[3], argv[4]);
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 1;
    }
}
