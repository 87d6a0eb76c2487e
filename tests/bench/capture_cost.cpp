// SPDX-License-Identifier: Apache-2.0
// What capturing costs: a runner with a capture sink against one without, in blocks that take
// turns. Obeys `pairs N`; answers with 2 N medians in nanoseconds, without and with, on one line.
// usage: capture_cost MODEL THREADS LEVEL
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vart/vart_runner_factory.hpp>
#include <vector>

#include "lib/trace/capture.h"

namespace {

using clock_type = std::chrono::steady_clock;

class Sink final : public vartml::profiling::CaptureSink {
public:
    explicit Sink(unsigned level) : level_(level) {}
    unsigned level_of(uint64_t) noexcept override { return level_; }
    void take(const vartml::profiling::Capture& capture) noexcept override {
        records += capture.record_count;
    }
    uint64_t records = 0;

private:
    const unsigned level_;
};

struct Side {
    Side(const char* model, uint32_t threads, std::shared_ptr<Sink> sink) {
        std::unordered_map<std::string, std::any> options{{"vartml_threads", threads}};
        if (sink)
            options[vartml::profiling::capture_sink_option] =
                std::shared_ptr<vartml::profiling::CaptureSink>(std::move(sink));
        runner = vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, model, options);
        for (const auto& info :
             runner->get_tensors_info(vart::TensorDirection::INPUT, vart::TensorType::HW))
            inputs[0].push_back(runner->allocate_npu_tensor(info));
        for (const auto& info :
             runner->get_tensors_info(vart::TensorDirection::OUTPUT, vart::TensorType::HW))
            outputs[0].push_back(runner->allocate_npu_tensor(info));
    }
    // Median of a block of at least 20 inferences and 100 ms.
    long long block() {
        std::vector<long long> times;
        const auto end = clock_type::now() + std::chrono::milliseconds(100);
        while (times.size() < 20 || clock_type::now() < end) {
            const auto start = clock_type::now();
            if (runner->execute(inputs, outputs) != vart::StatusCode::SUCCESS) std::exit(1);
            times.push_back(std::chrono::nanoseconds(clock_type::now() - start).count());
        }
        const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
        std::nth_element(times.begin(), middle, times.end());
        return *middle;
    }
    std::shared_ptr<vart::Runner> runner;
    std::vector<std::vector<vart::NpuTensor>> inputs{1}, outputs{1};
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    try {
        const auto threads = static_cast<uint32_t>(std::atoi(argv[2]));
        const auto sink = std::make_shared<Sink>(static_cast<unsigned>(std::atoi(argv[3])));
        Side without(argv[1], threads, nullptr), with(argv[1], threads, sink);
        without.block();
        with.block();
        std::puts("ready");
        std::fflush(stdout);
        std::string word;
        long pairs = 0;
        while (std::cin >> word >> pairs) {
            std::string line;
            for (long p = 0; p < pairs; ++p) {
                // ABBA: what drifts over time falls on both.
                long long off = 0, on = 0;
                if (p % 2 == 0) off = without.block();
                on = with.block();
                if (p % 2 != 0) off = without.block();
                line += std::to_string(off) + " " + std::to_string(on) + " ";
            }
            std::puts(line.c_str());
            std::fflush(stdout);
        }
    } catch (const std::exception& e) {
        std::fprintf(stderr, "capture_cost: %s\n", e.what());
        return 1;
    }
    return 0;
}
