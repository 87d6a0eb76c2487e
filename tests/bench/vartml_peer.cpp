// SPDX-License-Identifier: Apache-2.0
// Our side of the benchmarks: runs a compiled model through the public interface, HW views on both
// sides, or CPU views of the outputs where a CPU partition makes one. Obeys lines on standard
// input:
//   run N      N inferences; answers with the wall time of each in nanoseconds, on one line
//   load 1     one inference; answers with the nanoseconds that making the runner took, and with
//              the most memory that was resident so far, in bytes
// usage: vartml_peer MODEL THREADS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vart/vart_runner_factory.hpp>
#include <vector>

#include "tests/bench/resident.h"

namespace {

// Fixed pseudo-random values between 0 and 1 in the type of the tensor.
void fill(vart::NpuTensor& tensor, std::mt19937& random) {
    std::uniform_real_distribution<float> uniform(0, 1);
    const vart::NpuTensorInfo& info = tensor.get_info();
    auto* bytes = static_cast<unsigned char*>(tensor.get_virtual_address());
    for (size_t i = 0; i < info.size; ++i) {
        const float value = uniform(random);
        uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        if (info.data_type == vart::DataType::FLOAT32) std::memcpy(bytes + 4 * i, &bits, 4);
        if (info.data_type == vart::DataType::BF16)
            std::memcpy(bytes + 2 * i, reinterpret_cast<char*>(&bits) + 2, 2);
    }
}

std::shared_ptr<vart::Runner> open(const char* model, uint32_t threads, vart::TensorType outputs) {
    const bool is_hw = outputs == vart::TensorType::HW;
    return vart::RunnerFactory::create_runner(
        vart::RunnerType::VAIML, model,
        {{"vartml_threads", threads}, {"output_tensor_type", std::string(is_hw ? "HW" : "CPU")}});
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    using clock = std::chrono::steady_clock;
    try {
        const auto threads = static_cast<uint32_t>(std::atoi(argv[2]));
        auto view = vart::TensorType::HW;
        auto begin = clock::now();
        std::shared_ptr<vart::Runner> runner;
        try {
            runner = open(argv[1], threads, view);
        } catch (const std::exception&) {
            view = vart::TensorType::CPU;
            begin = clock::now();
            runner = open(argv[1], threads, view);
        }
        const std::chrono::nanoseconds load_time = clock::now() - begin;
        std::vector<std::vector<vart::NpuTensor>> inputs(1), outputs(1);
        std::mt19937 random(7);
        for (const auto& info :
             runner->get_tensors_info(vart::TensorDirection::INPUT, vart::TensorType::HW)) {
            inputs[0].push_back(runner->allocate_npu_tensor(info));
            fill(inputs[0].back(), random);
        }
        for (const auto& info : runner->get_tensors_info(vart::TensorDirection::OUTPUT, view)) {
            outputs[0].push_back(runner->allocate_npu_tensor(info));
        }
        std::puts("ready");
        std::fflush(stdout);
        std::string word;
        long runs = 0;
        while (std::cin >> word >> runs) {
            std::string line;
            for (long r = 0; r < runs; ++r) {
                const auto start = clock::now();
                if (runner->execute(inputs, outputs) != vart::StatusCode::SUCCESS) return 1;
                line +=
                    std::to_string(std::chrono::nanoseconds(clock::now() - start).count()) + " ";
            }
            if (word == "load")
                line = std::to_string(load_time.count()) + " " + std::to_string(most_resident());
            std::puts(line.c_str());
            std::fflush(stdout);
        }
    } catch (const std::exception& e) {
        std::fprintf(stderr, "vartml_peer: %s\n", e.what());
        return 1;
    }
    return 0;
}
