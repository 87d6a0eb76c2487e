// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a host trace and joins them with a buffer. With VARTML_FUZZ_SEEDS=DIR it
// writes its seeds there.
#include <cstdlib>
#include <fstream>
#include <string>

#include "lib/base/file.h"
#include "lib/tools/opstats/host_events.h"
#include "tests/support/temp_dir.h"

using namespace vartml;

namespace {

constexpr const char* seeds[] = {
    R"([{"ph":"M","name":"vartml_capture","pid":1,"tid":1,"args":{"clock":"CLOCK_MONOTONIC","boot_id":"00"}},
{"ph":"X","name":"a","cat":"gst","pid":1,"tid":2,"ts":1.500,"dur":2.000,"args":{"frame":"0:1","jobKey":"0/0/0"}},
{"ph":"s","name":"frame","cat":"frame","pid":1,"tid":2,"ts":1.500,"id":1},
{"ph":"b","name":"w","cat":"queue","pid":1,"tid":2,"ts":1.000,"id":7},
{"ph":"e","name":"w","cat":"queue","pid":1,"tid":2,"ts":2.000,"id":7}]
)",
    R"({"x":[{"y":null}],"traceEvents":[{"ph":"B","name":"a","ts":1,"pid":1,"tid":1},{"ph":"E","ts":-1e3}]})",
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    if (const char* dir = std::getenv("VARTML_FUZZ_SEEDS"))
        for (const char* seed : seeds)
            std::ofstream(std::string(dir) + "/host" + seed[0], std::ios::binary) << seed;
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static test::TempDir* const folder = new test::TempDir;
    const std::string path = *folder / "host.json";
    test::spill(path, {reinterpret_cast<const char*>(data), size});
    (void)profiling::host_clock_shift(path, {}, {});
    profiling::MergedJobs jobs;
    jobs.begin_ns = 1000;
    jobs.end_ns = 2'000'000;
    jobs.job_keys.insert("0/0/0");
    jobs.flow_ids[1];
    auto out = profiling::TraceFile::create(*folder / "out.json", "");
    if (out) (void)profiling::merge_host_trace(path, 17, jobs, *out);
    return 0;
}
