// SPDX-License-Identifier: Apache-2.0
// A stats buffer whose trace is far larger than what may be in memory.
//
// usage: long_trace make FOLDER THREADS_PER_CORE   writes FOLDER/long.bin, sixteen cores
//        long_trace write FOLDER THREADS [HOST]    writes FOLDER/long.trace.json from it, joined
//        with a host trace;
//                                                  prints this process's peak resident memory in
//                                                  KiB
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "lib/tools/opstats/buffer_trace.h"
#include "tests/tools/opstats/large_captures.h"

namespace p = vartml::profiling;
using namespace vartml::test;

namespace {

constexpr uint32_t layers = 1000;
constexpr uint16_t cores = 16;

long peak_kib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::atol(line.c_str() + 6);
    return 0;
}

int fail(const vartml::Error& error) {
    std::fprintf(stderr, "long_trace: %s\n", error.message.c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    const std::string what = argv[1], folder = argv[2];
    const p::Descriptor descriptor = chain_descriptor(layers);
    if (what == "make") {
        const auto threads = static_cast<uint16_t>(std::atoi(argv[3]));
        const auto done = p::write_stats_buffer(chain_capture(descriptor, cores, threads),
                                                small_context(descriptor), folder + "/long.bin");
        return done ? 0 : fail(done.error());
    }
    auto buffer = p::BufferFile::open(folder + "/long.bin");
    if (!buffer) return fail(buffer.error());
    const p::TraceSource source{&*buffer, &descriptor, ""};
    const p::TraceOptions options{.merge_thread_groups = false,
                                  .flow_events = true,
                                  .barrier_events = true,
                                  .host_trace = argc > 4 ? argv[4] : ""};
    if (auto r = p::write_trace({&source, 1}, options, folder + "/long.trace.json"); !r)
        return fail(r.error());
    std::printf("%ld\n", peak_kib());
    return 0;
}
