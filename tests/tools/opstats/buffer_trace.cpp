// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/buffer_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/temp_dir.h"
#include "tests/tools/opstats/captures.h"

using nlohmann::json;
namespace p = vartml::profiling;

namespace vartml::test {
namespace {

// A trace as its events, each number as it is written.
struct Trace {
    std::string text;
    json all;
    const json& events() const { return all["traceEvents"]; }

    std::vector<json> where(const std::function<bool(const json&)>& wanted) const {
        std::vector<json> found;
        std::ranges::copy_if(events(), std::back_inserter(found), wanted);
        return found;
    }
    std::vector<json> phase(const std::string& ph, const std::string& category = {}) const {
        return where([&](const json& e) {
            return e["ph"] == ph && (category.empty() || e.value("cat", "") == category);
        });
    }
    std::map<uint64_t, std::string> lanes() const {
        std::map<uint64_t, std::string> names;
        for (const json& e : phase("M"))
            if (e["name"] == "thread_name")
                names[e["tid"].get<uint64_t>()] = e["args"]["name"].get<std::string>();
        return names;
    }
    std::set<std::string> lane_names() const {
        std::set<std::string> names;
        for (const auto& [tid, name] : lanes()) names.insert(name);
        return names;
    }
    std::string lane_of(const json& event) const { return lanes().at(event["tid"]); }
    // Slices on a lane, as "<kind> <ns from start_ns>..<ns>".
    std::vector<std::string> slices(const std::string& lane) const {
        std::vector<std::string> found;
        for (const json& e : phase("X")) {
            if (lane_of(e) != lane) continue;
            const auto ns = [](const json& us) {
                return static_cast<int64_t>(std::llround(us.get<double>() * 1000));
            };
            const int64_t start = ns(e["ts"]) - static_cast<int64_t>(start_ns);
            found.push_back(e["name"].get<std::string>() + ' ' + std::to_string(start) + ".." +
                            std::to_string(start + ns(e["dur"])));
        }
        return found;
    }
};

class BufferTrace : public testing::Test {
protected:
    void TearDown() override {
        // What a reader that knows nothing of the writer says.
        const char* checker = std::getenv("VARTML_TRACE_CHECK");
        if (!checker || !written_) return;
        EXPECT_EQ(std::system(("python3 " + std::string(checker) + " " + path_).c_str()), 0);
    }

    p::BufferFile buffer(const p::Capture& capture, const std::string& name = "a.bin",
                         std::function<void(p::BufferContext&)> change = {}) {
        p::BufferContext context = small_context(descriptor_);
        if (change) change(context);
        const auto written = p::write_stats_buffer(capture, context, folder_ / name);
        EXPECT_TRUE(written) << written.error().message;
        auto file = p::BufferFile::open(folder_ / name);
        EXPECT_TRUE(file) << file.error().message;
        return std::move(*file);
    }

    Trace write(const std::vector<p::Capture>& captures, const p::TraceOptions& options = {},
                const std::vector<std::string>& labels = {""}) {
        std::vector<p::BufferFile> files;
        for (size_t i = 0; i < captures.size(); ++i)
            files.push_back(buffer(captures[i], std::to_string(i) + ".bin"));
        std::vector<p::TraceSource> sources;
        for (size_t i = 0; i < files.size(); ++i)
            sources.push_back({&files[i], &descriptor_, labels[i]});
        const auto done = p::write_trace(sources, options, path_);
        EXPECT_TRUE(done) << done.error().message;
        written_ = done.has_value();
        EXPECT_FALSE(has_temporaries(std::filesystem::path(path_).parent_path()));
        Trace trace{.text = slurp(path_), .all = {}};
        trace.all = json::parse(trace.text);
        return trace;
    }
    std::string refused(const p::Capture& capture, const p::TraceOptions& options) {
        auto file = buffer(capture);
        const p::TraceSource source{&file, &descriptor_, ""};
        std::filesystem::remove(path_);
        written_ = false;
        const auto done = p::write_trace({&source, 1}, options, path_);
        EXPECT_FALSE(done);
        EXPECT_FALSE(std::filesystem::exists(path_));
        EXPECT_FALSE(has_temporaries(std::filesystem::path(path_).parent_path()));
        return done ? "" : done.error().message;
    }

    TempDir folder_;
    p::Descriptor descriptor_ = small_descriptor();
    std::string path_ = folder_ / "out.trace.json";
    bool written_ = false;
};

TEST_F(BufferTrace, GivesAFileThatDoesNotChangeUnnoticed) {
    p::Capture capture = small_capture();
    std::erase_if(capture.threads, [](const auto& t) { return t.core != 0; });
    std::erase_if(capture.traffic, [](const auto& t) { return t.core != 0; });
    std::erase_if(capture.doorbells, [](const auto& t) { return t.core != 0; });
    std::erase_if(capture.semaphores, [](const auto& t) { return t.core != 0; });
    std::erase_if(capture.ports, [](const auto& t) { return t.core != 0; });
    capture.core_count = 1;
    const Trace trace = write({capture}, {.flow_events = true, .barrier_events = true});
    const char* folder = std::getenv("VARTML_GOLDEN");
    ASSERT_TRUE(folder);
    const std::string golden = std::string(folder) + "/golden.trace.json";
    if (std::getenv("VARTML_WRITE_GOLDEN")) spill(golden, trace.text);
    EXPECT_EQ(trace.text, slurp(golden));
}

TEST_F(BufferTrace, HasOneLanePerThreadGroupAndCore) {
    const Trace trace = write({small_capture()});
    EXPECT_EQ(
        trace.lane_names(),
        (std::set<std::string>{"small net_Core_0", "small net_Core_0_SNPU", "small net_Core_0_CPU",
                               "small net_Core_1", "small net_Core_1_SNPU", "small net_Core_1_CPU",
                               "program 0 activation 0"}));
    EXPECT_EQ(trace.slices("small net_Core_0"),
              std::vector<std::string>{"Core-0-Execution 0..200000"});
    // From the first start to the last end of the team; barriers are elsewhere.
    EXPECT_EQ(trace.slices("small net_Core_0_SNPU"),
              (std::vector<std::string>{"sync 0..10000", "conv 10000..90000", "conv 90000..140000",
                                        "to_nchw 140000..150000"}));
    EXPECT_EQ(trace.slices("small net_Core_1_CPU"),
              (std::vector<std::string>{"sync 155000..160000", "softmax 160000..190000"}));
}

TEST_F(BufferTrace, NumbersProcessesAndLanesAboveThoseOfThreads) {
    p::Capture capture = small_capture();
    capture.device_index = 2;
    const Trace trace = write({capture});
    const uint64_t pid = (uint64_t{1} << 30) + 2 * (uint64_t{1} << 24);
    const auto lanes = trace.lanes();
    EXPECT_EQ(lanes.at(pid + 1), "small net_Core_0");
    EXPECT_EQ(lanes.at(pid + 2), "small net_Core_0_SNPU");
    EXPECT_EQ(lanes.at(pid + 3), "small net_Core_0_CPU");
    EXPECT_EQ(lanes.at(pid + 1 + 4096 + 1), "small net_Core_1_SNPU");
    for (const json& e : trace.phase("X", "aic")) EXPECT_EQ(e["pid"], pid);
    for (const json& e : trace.phase("X", "host")) EXPECT_EQ(e["pid"], 4242);
}

TEST_F(BufferTrace, SplitsGroupsIntoThreads) {
    const Trace trace = write({small_capture()}, {.cores = {0}, .merge_thread_groups = false});
    EXPECT_EQ(
        trace.slices("small net_Core_0_SNPU_T2"),
        (std::vector<std::string>{"sync 200..10000", "conv 10000..90000", "conv 90000..140000"}));
    EXPECT_EQ(
        trace.slices("small net_Core_0_SNPU_T1"),
        (std::vector<std::string>{"sync 100..10000", "conv 10000..60000", "conv 90000..135000"}));
    EXPECT_TRUE(trace.lane_names().contains("small net_Core_0_CPU_T4"));
    EXPECT_FALSE(trace.lane_names().contains("small net_Core_0_SNPU"));
}

TEST_F(BufferTrace, ShowsBarriersOnALaneOfTheirThread) {
    for (const bool merged : {true, false}) {
        const Trace trace =
            write({small_capture()},
                  {.cores = {0}, .merge_thread_groups = merged, .barrier_events = true});
        EXPECT_EQ(trace.slices("small net_Core_0_SNPU_T0_Barrier"),
                  (std::vector<std::string>{"barrier 60000..90000", "barrier 140000..140001",
                                            "barrier 150000..150001"}));
        EXPECT_TRUE(trace.lane_names().contains("small net_Core_0_SNPU_T3_Barrier"));
        EXPECT_TRUE(trace.lane_names().contains("small net_Core_0_CPU_T4_Barrier"));
        for (const json& e : trace.phase("X", "aic"))
            EXPECT_EQ(e["name"] == "barrier",
                      trace.lane_of(e).find("_Barrier") != std::string::npos);
    }
}

TEST_F(BufferTrace, SelectsCores) {
    const Trace trace = write({small_capture()}, {.cores = {1, 7}});
    for (const json& e : trace.phase("X", "aic"))
        EXPECT_TRUE(trace.lane_of(e).starts_with("small net_Core_1"));
    EXPECT_TRUE(trace.where([](const json& e) { return e["name"] == "Core-0-Execution"; }).empty());
    EXPECT_NE(refused(small_capture(), {.cores = {7}}).find("--select-cores"), std::string::npos);
    EXPECT_NE(refused(small_capture(), {.devices = {1}}).find("--select-devices"),
              std::string::npos);
}

std::vector<p::Capture> two_devices() {
    std::vector<p::Capture> captures{small_capture(), small_capture()};
    captures[1].device_index = 1;
    return captures;
}

TEST_F(BufferTrace, JoinsTheDevicesOfAnInference) {
    const Trace trace = write(two_devices(), {.cores = {0}}, {"slice00", "slice01"});
    EXPECT_TRUE(trace.lane_names().contains("small net_slice00_Core_0_SNPU"));
    EXPECT_TRUE(trace.lane_names().contains("small net_slice01_Core_0_CPU"));
    std::set<uint64_t> pids;
    for (const json& e : trace.phase("X", "aic")) pids.insert(e["pid"].get<uint64_t>());
    EXPECT_EQ(pids.size(), 2U);
    const Trace one = write(two_devices(), {.devices = {1}}, {"slice00", "slice01"});
    for (const json& e : one.phase("X", "aic"))
        EXPECT_TRUE(one.lane_of(e).starts_with("small net_slice01_Core_"));
}

// Moved by some time, as the next inference of the same Runner.
p::Capture later(p::Capture c, uint64_t ns, uint64_t inference) {
    c.inference_index = inference;
    for (p::ThreadCapture& t : c.threads) {
        t.start += ns;
        t.end += ns;
        for (p::Stamp& s : t.ops)
            if (s.start != 0) s = {s.start + ns, s.end + ns};
    }
    for (p::Doorbell& bell : c.doorbells) bell.at += ns;
    for (p::Semaphore& s : c.semaphores)
        s = {s.core, s.thread, s.semaphore, s.start + ns, s.end + ns};
    for (uint64_t& at : c.host) at += ns;
    c.frames[0].flow_id = c.frames[0].frame_number = 12 + inference;
    return c;
}

TEST_F(BufferTrace, InferencesOfOneDeviceShareItsLanes) {
    const Trace trace = write(
        {later(small_capture(), 1'000'000, 5), small_capture(), later(small_capture(), 150'000, 4)},
        {.cores = {0}, .flow_events = true}, {"", "", ""});
    // The second begins its work on the host before the first has ended.
    EXPECT_EQ(trace.slices("small net_Core_0"),
              (std::vector<std::string>{"Core-0-Execution 0..200000",
                                        "Core-0-Execution 1000000..1200000"}));
    EXPECT_EQ(trace.slices("small net_Core_0~2"),
              std::vector<std::string>{"Core-0-Execution 150000..350000"});
    EXPECT_EQ(trace.slices("small net_Core_0_CPU").size(), 6U);
    EXPECT_EQ(trace.slices("program 0 activation 0").size(), 12U);
    EXPECT_EQ(trace.phase("s", "true").size(), 9U);
    EXPECT_EQ(trace.phase("s", "frame").size(), 3U);
    const auto names = trace.where([](const json& e) { return e["name"] == "process_name"; });
    EXPECT_EQ(names.size(), 2U);
}

// The same inference again, `by_ns` later.
p::Capture later(p::Capture capture, uint64_t by_ns) {
    ++capture.inference_index;
    const auto move = [&](uint64_t& at) { at += at == 0 || at == p::not_captured ? 0 : by_ns; };
    move(capture.begin_ns);
    move(capture.end_ns);
    for (auto& thread : capture.threads) {
        move(thread.start);
        move(thread.end);
        for (auto& op : thread.ops) {
            move(op.start);
            move(op.end);
        }
    }
    for (auto& bell : capture.doorbells) move(bell.at);
    for (auto& semaphore : capture.semaphores) {
        move(semaphore.start);
        move(semaphore.end);
    }
    for (auto& stamp : capture.host) move(stamp);
    for (auto& frame : capture.frames) ++frame.flow_id;
    return capture;
}

TEST_F(BufferTrace, ShowsInferencesOfOneDeviceOneAfterAnotherOnTheSameLanes) {
    const p::Capture first = small_capture();
    const Trace one = write({first});
    const Trace both = write({first, later(first, 1'000'000'000)}, {.flow_events = true}, {"", ""});
    EXPECT_EQ(both.lane_names(), one.lane_names());
    EXPECT_EQ(both.lanes().size(), one.lanes().size());
    EXPECT_EQ(both.phase("X").size(), 2 * one.phase("X").size());
    std::set<std::string> jobs;
    for (const json& e : both.phase("X", "aic")) jobs.insert(e["args"].value("jobKey", ""));
    EXPECT_EQ(jobs.size(), 2U);
}

TEST_F(BufferTrace, InferencesAtTheSameTimeDoNotCross) {
    const p::Capture first = small_capture();
    const size_t of_one = write({first}).phase("X").size();
    const Trace both = write({first, later(first, 1)}, {}, {"", ""});
    EXPECT_EQ(both.phase("X").size(), 2 * of_one);
}

TEST_F(BufferTrace, DrawsDependenciesWhereBothEndsAre) {
    EXPECT_TRUE(write({small_capture()}).phase("s", "true").empty());
    descriptor_.edges = {{1, 3, true}, {3, 5, false}, {5, 8, true}, {2, 3, false}, {1, 99, true}};
    for (const bool merged : {true, false}) {
        const Trace trace =
            write({small_capture()}, {.merge_thread_groups = merged, .flow_events = true});
        // Two cores, each with the edges between operators that are shown.
        EXPECT_EQ(trace.phase("s", "true").size(), 4U);
        EXPECT_EQ(trace.phase("f", "true").size(), 4U);
        EXPECT_EQ(trace.phase("s", "false").size(), 2U);
        std::set<uint64_t> ids;
        for (const json& e : trace.phase("s"))
            if (e["name"] == "dep") ids.insert(e["id"].get<uint64_t>());
        EXPECT_EQ(ids.size(), 6U);
        // Just before the end of the producer, at the start of the consumer.
        const json start = trace.phase("s", "true")[0], end = trace.phase("f", "true")[0];
        EXPECT_EQ(start["ts"], merged ? 1000089.999 : 1000059.999);
        EXPECT_EQ(end["ts"], 1000090.000);
        EXPECT_EQ(end["bp"], "e");
    }
    const Trace barriers =
        write({small_capture()}, {.cores = {0}, .flow_events = true, .barrier_events = true});
    EXPECT_EQ(barriers.phase("s", "false").size(), 2U);
}

TEST_F(BufferTrace, LeavesOutArrowsOfWhatWasNotExecuted) {
    p::Capture capture = small_capture();
    for (auto& thread : capture.threads)
        if (thread.group == 0) thread.ops[3] = {};
    const Trace trace = write({capture}, {.cores = {0}, .flow_events = true});
    ASSERT_EQ(trace.phase("s", "true").size(), 1U);  // 5 to 8
    EXPECT_EQ(trace.phase("s", "true")[0]["id"], 2);
}

TEST_F(BufferTrace, MovesSlicesThatCrossToAnotherLane) {
    p::Capture capture = small_capture();
    // t3 begins the next operator before t2 has ended this one.
    capture.threads[3].ops[3] = {start_ns + 70'000, start_ns + 95'000};
    const Trace trace = write({capture}, {.cores = {0}});
    EXPECT_EQ(
        trace.slices("small net_Core_0_SNPU"),
        (std::vector<std::string>{"sync 0..10000", "conv 10000..90000", "to_nchw 140000..150000"}));
    EXPECT_EQ(trace.slices("small net_Core_0_SNPU~2"),
              std::vector<std::string>{"conv 70000..140000"});
}

TEST_F(BufferTrace, ASliceWithinAnotherStaysOnItsLane) {
    p::Capture capture = small_capture();
    for (auto& thread : capture.threads)
        if (thread.group == 0) thread.ops[3] = {start_ns + 70'000, start_ns + 80'000};
    const Trace trace = write({capture}, {.cores = {0}});
    EXPECT_EQ(trace.lane_names().count("small net_Core_0_SNPU~2"), 0U);
}

TEST_F(BufferTrace, SaysOfAnOperatorWhatIsKnown) {
    const Trace trace = write({small_capture_at(p::level_pmu_per_operator)}, {.cores = {0}});
    const auto convs = trace.where([](const json& e) { return e["name"] == "conv"; });
    ASSERT_EQ(convs.size(), 2U);
    const json& args = convs[0]["args"];
    EXPECT_EQ(args["opName"], "conv_0");
    EXPECT_EQ(args["opKind"], "conv");
    EXPECT_EQ(args["opMemory"], "DDR");
    EXPECT_EQ(args["opUCycle"], "1536");  // 80 us of the late thread
    EXPECT_EQ(args["opPCycle"], "150000");
    EXPECT_EQ(args["effectiveFreq"], "3000.00");  // t0: 150000 in 50 us
    EXPECT_EQ(args["opSyncDurUs"], "30.000");
    EXPECT_EQ(args["UCyclesPerKB"], "24.00");
    EXPECT_EQ(args["opOutputSize"], "65536");
    EXPECT_EQ(args["macs"], 500'000);
    EXPECT_EQ(args["readBytes"], 131072);
    EXPECT_EQ(args["partition"], "vaiml_par_0");
    EXPECT_EQ(args["jobKey"], "0/0/3");
    EXPECT_EQ(args["frames"], json::array({"0:12"}));
    EXPECT_EQ(args["pmu.instructions"], 4);  // of four threads
    const auto softmax = trace.where([](const json& e) { return e["name"] == "softmax"; });
    EXPECT_FALSE(softmax[0]["args"].contains("opPCycle"));
    EXPECT_FALSE(softmax[0]["args"].contains("effectiveFreq"));
}

TEST_F(BufferTrace, ShowsWaitsAndTotalsOfAnExecution) {
    const Trace trace = write({small_capture()}, {.cores = {0}});
    const auto bells = trace.phase("i");
    ASSERT_EQ(bells.size(), 1U);
    EXPECT_EQ(bells[0]["ts"], 999999.0);
    EXPECT_EQ(bells[0]["s"], "t");
    const auto begins = trace.phase("b", "port"), ends = trace.phase("e", "port");
    ASSERT_EQ(begins.size(), 2U);
    EXPECT_EQ(begins[0]["name"], "p100 wait t0");
    EXPECT_EQ(begins[0]["ts"], 999949.0);  // 50 us until the doorbell
    EXPECT_EQ(ends[0]["ts"], 999999.0);
    EXPECT_EQ(begins[1]["ts"], 1000200.0);
    EXPECT_EQ(trace.phase("b", "hand-over").size(), 1U);
    const json run =
        trace.where([](const json& e) { return e["name"] == "Core-0-Execution"; }).at(0);
    EXPECT_EQ(run["args"]["ddrComputedReadBytes"], 200'000);
    EXPECT_EQ(run["args"]["pmu.t2.instructions"], 1'000'002);
    EXPECT_FALSE(run["args"].contains("pmu.t2.ref-cycles"));
}

TEST_F(BufferTrace, ShowsTheStagesOfTheHost) {
    const Trace trace = write({small_capture()});
    EXPECT_EQ(trace.slices("program 0 activation 0"),
              (std::vector<std::string>{"enqueue -60000..-55000", "pre-process -45000..-20000",
                                        "submit -20000..-10000", "post-process 210000..230000"}));
    const auto wait = trace.phase("b", "queue");
    ASSERT_EQ(wait.size(), 1U);
    EXPECT_EQ(wait[0]["ts"], 999945.0);
    const auto names = trace.where([](const json& e) { return e["name"] == "process_name"; });
    EXPECT_TRUE(std::ranges::any_of(
        names, [](const json& e) { return e["args"]["name"] == "HOST_PROC" && e["pid"] == 4242; }));
}

TEST_F(BufferTrace, FollowsAFrameFromEnqueueToPostProcessing) {
    const Trace trace = write({small_capture()});
    const auto is_frame = [](const json& e) { return e.value("cat", "") == "frame"; };
    std::string path;
    for (const json& e : trace.where(is_frame)) {
        EXPECT_EQ(e["id"], 12);
        path += e["ph"].get<std::string>() + " " + trace.lane_of(e) + "\n";
    }
    EXPECT_EQ(path,
              "s program 0 activation 0\nt small net_Core_0\nt small net_Core_1\n"
              "f program 0 activation 0\n");
}

TEST_F(BufferTrace, BelowLevel70HasExecutionsOnly) {
    for (const unsigned level : {p::level_inference, p::level_ports}) {
        const Trace trace = write({small_capture_at(level)});
        EXPECT_EQ(trace.lane_names(), (std::set<std::string>{"small net_Core_0", "small net_Core_1",
                                                             "program 0 activation 0"}));
        EXPECT_EQ(trace.phase("b", "port").empty(), level < p::level_ports);
    }
}

TEST_F(BufferTrace, NamesWhatWasNotCaptured) {
    const json other = write({small_capture()}).all["otherData"];
    EXPECT_EQ(other["clock"], "CLOCK_MONOTONIC");
    EXPECT_EQ(other["boot_id"], "b0b0b0b0-b0b0-b0b0-b0b0-b0b0b0b0b0b0");
    EXPECT_EQ(other["capturedLevel"], 70);
    const std::string list = other["notCaptured"].dump();
    EXPECT_NE(list.find("perf_event_paranoid=4"), std::string::npos) << list;
}

TEST_F(BufferTrace, KeepsNamesThatAreNoUtf8OrMarkup) {
    descriptor_.engines[0] = "n\xff\"\\\n</script>\xf0\x9f\x90\x9d";
    descriptor_.cores[0].groups[0].ops[1].name = "a\xc3(\x01";
    const Trace trace = write({small_capture()}, {.cores = {0}});
    EXPECT_TRUE(trace.lane_names().contains("small net_Core_0_n\ufffd\"\\\n</script>\U0001F41D"))
        << trace.text;
    EXPECT_NE(trace.text.find("a\ufffd(\\u0001"), std::string::npos);
}

TEST_F(BufferTrace, LeavesOutTimesThatCannotBe) {
    p::Capture capture = small_capture();
    capture.threads[4].ops[1] = {start_ns + 180'000, start_ns + 160'000};
    const Trace trace = write({capture}, {.cores = {0}});
    EXPECT_EQ(trace.slices("small net_Core_0_CPU"),
              std::vector<std::string>{"sync 150000..155000"});
}

}  // namespace
}  // namespace vartml::test
