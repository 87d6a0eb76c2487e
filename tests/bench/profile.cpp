// SPDX-License-Identifier: Apache-2.0
// Where the time of a model goes: shortest time of each step of the software NPU on one thread,
// slowest first, and the whole run on THREADS, per frame. usage: profile MODEL.rai [f32|bf16|auto]
// [THREADS] [RUNS] [BATCH]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "lib/model/compiled_model.h"
#include "lib/run/exec/executor.h"
#include "lib/run/softnpu/softnpu.h"

namespace {

using namespace vartml;

// Sorted; of one frame, where each run makes as many as the program takes at once.
std::vector<double> times_us(device::Executable& executable, const device::Program& program,
                             unsigned runs) {
    const unsigned frames = executable.frames_at_once();
    std::vector<std::vector<std::byte>> memory;
    std::vector<std::vector<const void*>> inputs(frames);
    std::vector<std::vector<void*>> outputs(frames);
    std::vector<device::Frame> all;
    for (unsigned f = 0; f < frames; ++f) {
        for (const TensorInfo& info : program.inputs)
            inputs[f].push_back(memory.emplace_back(info.hw->size_bytes).data());
        for (const TensorInfo& info : program.outputs)
            outputs[f].push_back(memory.emplace_back(info.hw->size_bytes).data());
        all.push_back({inputs[f], outputs[f]});
    }
    std::vector<double> times;
    for (unsigned r = 0; r < runs; ++r) {
        const auto start = std::chrono::steady_clock::now();
        if (!executable.run({.frames = all})) std::exit(1);
        const auto took = std::chrono::steady_clock::now() - start;
        times.push_back(std::chrono::duration<double, std::micro>(took).count() / frames);
    }
    std::ranges::sort(times);
    return times;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    auto model = artifact::read(argv[1]);
    if (!model) {
        std::fprintf(stderr, "profile: %s\n", model.error().message.c_str());
        return 1;
    }
    const std::string numerics = argc > 2 ? argv[2] : "auto";
    const unsigned threads = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 2;
    const unsigned runs = argc > 4 ? static_cast<unsigned>(std::atoi(argv[4])) : 50;
    artifact::Partition& partition = model->partitions[0];
    auto program = std::make_shared<device::Program>();
    program->name = partition.name;
    program->target = partition.target;
    program->graph = partition.graph;
    program->inputs = partition.inputs;
    program->outputs = partition.outputs;
    program->owner = model->owner;
    device::LoadOptions options;
    options.threads = threads;
    options.batch = argc > 5 ? static_cast<unsigned>(std::atoi(argv[5])) : 1;
    options.numerics = numerics == "f32"    ? device::Numerics::f32
                       : numerics == "bf16" ? device::Numerics::bf16
                                            : device::Numerics::automatic;
    auto executable = device::softnpu_device().load(program, options);
    if (!executable) {
        std::fprintf(stderr, "profile: %s\n", executable.error().message.c_str());
        return 1;
    }
    device::Executor executor("profile", threads);
    std::vector<double> whole;
    executor.call([&] { whole = times_us(**executable, *program, runs); });
    const std::vector<double> steps = (*executable)->time_steps(runs, 0);
    std::vector<std::string> names;
    std::istringstream lines((*executable)->describe());
    for (std::string line; std::getline(lines, line);) names.push_back(line);
    std::vector<size_t> order(steps.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, [&](size_t a, size_t b) { return steps[a] > steps[b]; });
    for (const size_t i : order) std::printf("%9.1f us  %s\n", steps[i] / 1e3, names[i].c_str());
    const double sum = std::accumulate(steps.begin(), steps.end(), 0.0) / 1e3;
    std::printf(
        "%9.1f us  sum of %zu steps; whole run %.1f us (median; best %.1f), %u threads, %s\n", sum,
        steps.size(), whole[whole.size() / 2], whole[0], threads,
        (*executable)->compute_type().c_str());
    return 0;
}
