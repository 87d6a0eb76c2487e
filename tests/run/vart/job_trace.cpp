// SPDX-License-Identifier: Apache-2.0
// What a runner's jobs leave in the host trace, alone and beside a capture sink.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include <vartml/profile.h>

#include "lib/tools/opstats/buffer_trace.h"
#include "lib/trace/stats_buffer.h"
#include "tests/model/models.h"
#include "tests/support/captures.h"
#include "tests/support/fake_runner.h"
#include "tests/support/temp_dir.h"

namespace {
using namespace vart;
using namespace vartml::test;
using nlohmann::json;
using vartml::FrameScope;
using vartml::HostTrace;
using vartml::TraceFrame;
using vartml::runtime::Options;
using vartml::runtime::Tensors;
namespace profiling = vartml::profiling;
namespace trace_flag = vartml::trace_flag;

vartml::artifact::CompiledModel model() {
    auto model = connect(make_model({make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[1,3,8,8]
%a = Tanh %x : f32[1,3,8,8]
%y = Sigmoid %a : f32[1,3,8,8]
output %y
)")),
                                     make_partition("vaiml_cpu_subgraph_0", parse_graph(R"(graph g
input %y : f32[1,3,8,8]
%z = Neg %y : f32[1,3,8,8]
output %z
)"))}));
    model.stats_level = 70;
    return model;
}

// A traced run of the model, its events by name.
class JobTrace : public testing::Test {
protected:
    void run(uint32_t flags, std::shared_ptr<KeepingSink> sink = nullptr) {
        const std::string path = dir.path() + "/trace.json";
        auto net = model();
        Options options = cpu_views();
        descriptor = descriptor_of(net, 70);
        add_descriptor(net, descriptor);
        options.capture_sink = sink;
        const auto runner = make_runner(std::move(net), options);
        ASSERT_TRUE(runner);
        Tensors in = allocate(*runner, TensorDirection::INPUT);
        Tensors out = allocate(*runner, TensorDirection::OUTPUT);
        auto trace = HostTrace::open(path, {.flags = flags});
        ASSERT_TRUE(trace) << trace.error().message;
        {
            const TraceFrame frame{vartml::FrameKey(0, 5), 4, 1000};
            const FrameScope scope({&frame, 1});
            ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
        }
        const auto job = runner->execute_async(in, out);
        ASSERT_EQ(runner->wait(job, std::chrono::milliseconds::max()), StatusCode::SUCCESS);
        trace->close();
        events = json::parse(std::ifstream(path));
    }
    std::vector<json> named(const std::string& name) const {
        std::vector<json> found;
        for (const json& event : events)
            if (event.value("name", "") == name && event["ph"] != "M") found.push_back(event);
        return found;
    }
    TempDir dir;
    profiling::Descriptor descriptor;
    json events;
};

// What a slice of the device is: name, operator, partition, lane, begin and length.
using Slice = std::tuple<std::string, std::string, std::string, uint64_t, uint64_t, double, double>;

// Of one job, in whichever order they stand.
std::vector<Slice> device_slices(const json& events, const std::string& job) {
    std::vector<Slice> slices;
    for (const json& e : events) {
        if (e["ph"] != "X" || e["pid"] < (1U << 30) || e["args"]["jobKey"] != job) continue;
        const json& args = e["args"];
        slices.emplace_back(e["name"], args.value("opName", ""), args.value("partition", ""),
                            e["pid"], e["tid"], e["ts"], e["dur"]);
    }
    std::ranges::sort(slices);
    return slices;
}

double end_of(const json& event) {
    return event["ts"].get<double>() + event["dur"].get<double>();
}

TEST_F(JobTrace, HasTheStagesOfEachJobWithItsKeyAndItsFrame) {
    run(trace_flag::runs);
    for (const char* name : {"enqueue", "pre-process", "submit", "post-process"}) {
        const auto stages = named(name);
        ASSERT_EQ(stages.size(), 2U) << name;
        EXPECT_EQ(stages[0]["cat"], "host");
        EXPECT_EQ(stages[0]["args"]["frame"], "0:5");
        EXPECT_EQ(stages[0]["args"]["frameSeq"], 4);
        EXPECT_FALSE(stages[1]["args"].contains("frame"));
        EXPECT_TRUE(stages[0]["args"]["jobKey"].get<std::string>().ends_with("/0"));
        EXPECT_TRUE(stages[1]["args"]["jobKey"].get<std::string>().ends_with("/1"));
    }
    EXPECT_TRUE(named("Tanh").empty() && named("op").empty());
    EXPECT_TRUE(named("queue wait").empty());
}

TEST_F(JobTrace, HasOneExecutionPerJobOnTheLaneOfItsCore) {
    run(trace_flag::runs | trace_flag::ops);
    size_t executions = 0;
    for (const json& event : events) {
        if (!event.value("name", "").ends_with("-Execution")) continue;
        ++executions;
        EXPECT_GE(event["pid"].get<uint64_t>(), uint64_t{1} << 30);
        EXPECT_EQ(event["cat"], "npu");
        const std::string key = event["args"]["jobKey"];
        size_t inside = 0;
        for (const json& op : named("op")) {
            if (op["args"]["jobKey"] != key) continue;
            ++inside;
            EXPECT_GE(op["ts"].get<double>(), event["ts"].get<double>());
            EXPECT_LE(op["ts"].get<double>() + op["dur"].get<double>(), end_of(event) + 0.001);
            EXPECT_NE(op["tid"], event["tid"]);
            EXPECT_EQ(op["cat"], op["args"]["partition"] == "vaiml_cpu_subgraph_0" ? "cpu" : "npu");
        }
        EXPECT_EQ(inside, 3U);
    }
    EXPECT_EQ(executions, 2U);
    EXPECT_EQ(named("sync").size(), 4U);
    EXPECT_TRUE(named("barrier").empty());
}

TEST_F(JobTrace, HasThePairOfTheQueueAndTheCopies) {
    run(trace_flag::queues | trace_flag::copies);
    const auto pair = named("queue wait");
    ASSERT_EQ(pair.size(), 4U);
    EXPECT_EQ(pair[0]["cat"], "queue");
    ASSERT_EQ(named("copy").size(), 2U);
    EXPECT_EQ(named("copy")[0]["args"]["bytes"], 2 * 768);
    EXPECT_TRUE(named("enqueue").empty());
}

TEST_F(JobTrace, HasTheSlicesThatStatsBuffersGive) {
    const auto sink = std::make_shared<KeepingSink>(70U);
    run(trace_flag::all, sink);
    const auto captures = sink->captures();
    ASSERT_EQ(captures.size(), 2U);
    for (const profiling::Capture& capture : captures) {
        const profiling::BufferContext context{.descriptor = &descriptor,
                                               .boot_id = profiling::boot_id_of_kernel()};
        const auto written = profiling::write_stats_buffer(capture, context, dir / "job.bin");
        ASSERT_TRUE(written) << written.error().message;
        auto buffer = profiling::BufferFile::open(dir / "job.bin");
        ASSERT_TRUE(buffer) << buffer.error().message;
        const profiling::TraceSource source{&*buffer, &descriptor, ""};
        const auto merged = profiling::write_trace({&source, 1}, {.host_trace = dir / "trace.json"},
                                                   dir / "merged.json");
        ASSERT_TRUE(merged) << merged.error().message;
        const std::string job = "0/0/" + std::to_string(capture.inference_index);
        const auto alone = device_slices(events, job);
        // An execution, and a wait and the operators of each of the two partitions.
        EXPECT_EQ(alone.size(), 1U + 2U + 3U);
        EXPECT_EQ(device_slices(json::parse(slurp(dir / "merged.json"))["traceEvents"], job),
                  alone);
    }
}

TEST_F(JobTrace, LeavesTheSinkWhatItAskedFor) {
    const auto sink = std::make_shared<KeepingSink>(50U);
    run(trace_flag::runs | trace_flag::ops, sink);
    EXPECT_EQ(named("op").size(), 6U);
    const auto captures = sink->captures();
    ASSERT_EQ(captures.size(), 2U);
    EXPECT_EQ(captures[0].captured_level, 50);
    EXPECT_TRUE(captures[0].threads[0].ops.empty());
    ASSERT_EQ(captures[0].frames.size(), 1U);
    EXPECT_EQ(captures[0].frames[0].frame_number, 4U);
    EXPECT_EQ(captures[0].frames[0].flow_id, 5U);
    EXPECT_EQ(captures[0].frames[0].pts_ns, 1000);
    EXPECT_TRUE(captures[1].frames.empty());
    EXPECT_EQ(reason_of(captures[0], vartml::profiling::field::frames), "");
    EXPECT_NE(reason_of(captures[1], vartml::profiling::field::frames), "");
    EXPECT_EQ(named("enqueue")[0]["args"]["jobKey"], "0/0/0");
}

}  // namespace
