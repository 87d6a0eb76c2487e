// SPDX-License-Identifier: Apache-2.0
// A peer of the benchmarks: runs a model in MNN, in a process of its own; bench.py builds it
// against the MNN that it is given. Obeys lines on standard input:
//   run N      N inferences; answers with the wall time of each in nanoseconds, on one line
// usage: mnn_peer MODEL.mnn THREADS
#include <MNN/Interpreter.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::unique_ptr<MNN::Interpreter> net(MNN::Interpreter::createFromFile(argv[1]));
    if (!net) return 1;
    MNN::BackendConfig backend;
    backend.precision = MNN::BackendConfig::Precision_Normal;
    MNN::ScheduleConfig schedule;
    schedule.type = MNN_FORWARD_CPU;
    schedule.numThread = std::atoi(argv[2]);
    schedule.backendConfig = &backend;
    MNN::Session* const session = net->createSession(schedule);
    if (!session) return 1;
    for (const auto& [name, tensor] : net->getSessionInputAll(session)) {
        std::vector<int> shape = tensor->shape();
        for (int& size : shape) size = size < 1 ? 1 : size;
        net->resizeTensor(tensor, shape);
    }
    net->resizeSession(session);
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(0, 1);
    for (const auto& [name, tensor] : net->getSessionInputAll(session)) {
        MNN::Tensor host(tensor, MNN::Tensor::CAFFE);
        if (host.getType().code == halide_type_float)
            for (int i = 0; i < host.elementSize(); ++i) host.host<float>()[i] = uniform(random);
        tensor->copyFromHostTensor(&host);
    }
    std::puts("ready");
    std::fflush(stdout);
    std::string word;
    long runs = 0;
    while (std::cin >> word >> runs) {
        using clock = std::chrono::steady_clock;
        std::string line;
        for (long r = 0; r < runs; ++r) {
            const auto start = clock::now();
            if (net->runSession(session) != MNN::NO_ERROR) return 1;
            line += std::to_string(std::chrono::nanoseconds(clock::now() - start).count()) + " ";
        }
        std::puts(line.c_str());
        std::fflush(stdout);
    }
    return 0;
}
