// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lib/tools/opstats/buffer_trace.h"
#include "lib/tools/opstats/host_events.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/opstats/captures.h"

using nlohmann::json;
namespace p = vartml::profiling;

namespace vartml::test {
namespace {

// The first event of a host trace; the boot is that of small_context.
constexpr const char* capture_event =
    R"({"ph":"M","name":"vartml_capture","pid":4242,"tid":4242,"args":{"version":1,)"
    R"("clock":"CLOCK_MONOTONIC","boot_id":"B0b0b0b0-b0b0-b0b0-b0b0-b0b0b0b0b0b0","pid":4242}})";

// Times are in microseconds; the inference lasts from 999940 to 1000240.
std::string slice(const std::string& name, const std::string& category, double ts, double dur,
                  const std::string& args = "", uint64_t tid = 4243) {
    char times[64];
    std::snprintf(times, sizeof times, "\"ts\":%.3f,\"dur\":%.3f", ts, dur);
    return R"({"ph":"X","name":")" + name + R"(","cat":")" + category + R"(","pid":4242,"tid":)" +
           std::to_string(tid) + "," + times + ",\"args\":{" + args + "}}";
}
std::string event(const std::string& phase, const std::string& name, const std::string& category,
                  const std::string& ts, const std::string& more = "", uint64_t tid = 4243,
                  uint64_t pid = 4242) {
    return R"({"ph":")" + phase + R"(","name":")" + name + R"(","cat":")" + category +
           R"(","pid":)" + std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) +
           ",\"ts\":" + ts + more + "}";
}

class TraceMerge : public testing::Test {
protected:
    std::string host(const std::vector<std::string>& events, const std::string& end = "\n]\n",
                     const std::string& begin = "[\n") {
        std::string text = begin;
        for (size_t i = 0; i < events.size(); ++i) text += (i == 0 ? "" : ",\n") + events[i];
        spill(folder_ / "host.json", text + end);
        return folder_ / "host.json";
    }
    Result<void> try_merge(const std::string& host_trace, std::optional<double> offset = {}) {
        const auto written =
            p::write_stats_buffer(small_capture(), small_context(descriptor_), folder_ / "a.bin");
        EXPECT_TRUE(written) << written.error().message;
        auto file = p::BufferFile::open(folder_ / "a.bin");
        EXPECT_TRUE(file) << file.error().message;
        const p::TraceSource source{&*file, &descriptor_, ""};
        return p::write_trace({&source, 1},
                              {.host_trace = host_trace, .host_clock_offset_us = offset}, path_);
    }
    // The events of the merged trace that came from the host trace.
    std::vector<json> merge(const std::string& host_trace, std::optional<double> offset = {},
                            bool check = true) {
        const auto done = try_merge(host_trace, offset);
        EXPECT_TRUE(done) << done.error().message;
        if (!done) return {};
        const char* checker = std::getenv("VARTML_TRACE_CHECK");
        if (checker && check) {
            EXPECT_EQ(std::system(("python3 " + std::string(checker) + " " + path_).c_str()), 0);
        }
        all_ = json::parse(slurp(path_))["traceEvents"].get<std::vector<json>>();
        std::vector<json> found;
        std::ranges::copy_if(all_, std::back_inserter(found), [](const json& e) {
            return e["pid"] == 4242 && e["tid"] < (1 << 22) && e["ph"] != "M";
        });
        return found;
    }
    static std::vector<std::string> names(const std::vector<json>& events) {
        std::vector<std::string> found;
        for (const json& e : events)
            found.push_back(e["ph"].get<std::string>() + ' ' + e["name"].get<std::string>());
        return found;
    }
    std::string message(const std::string& host_trace, std::optional<double> offset = {}) {
        const auto done = try_merge(host_trace, offset);
        EXPECT_FALSE(done);
        EXPECT_FALSE(std::filesystem::exists(path_));
        EXPECT_FALSE(has_temporaries(std::filesystem::path(path_).parent_path()));
        return done ? "" : done.error().message;
    }
    using Names = std::vector<std::string>;

    static constexpr const char* lane_name =
        R"({"ph":"M","name":"thread_name","pid":4242,"tid":4243,"args":{"name":"queue:src"}})";
    TempDir folder_;
    p::Descriptor descriptor_ = small_descriptor();
    std::string path_ = folder_ / "out.trace.json";
    std::vector<json> all_;
};

TEST_F(TraceMerge, KeepsWhatOverlapsTheInference) {
    const auto kept =
        merge(host({capture_event, lane_name, slice("early", "gst", 900000, 1000),
                    slice("touches", "gst", 999000, 940), slice("within", "gst", 1000000, 10.5),
                    slice("late", "gst", 1000241, 5)}));
    EXPECT_EQ(names(kept), (Names{"X touches", "X within"}));
    EXPECT_NE(slurp(path_).find("\"ts\":1000000.000,\"dur\":10.500"), std::string::npos);
}

TEST_F(TraceMerge, AnEventWithoutATimeHasNotThatOfTheOneBefore) {
    const auto kept =
        merge(host({capture_event, lane_name, slice("within", "gst", 1000000, 10.5),
                    R"({"ph":"i","name":"untimed","cat":"gst","pid":4242,"tid":4243})"}));
    EXPECT_EQ(names(kept), (Names{"X within"}));
}

TEST_F(TraceMerge, KeepsWhatHasTheKeyOfAFrameHoweverFar) {
    const auto kept =
        merge(host({capture_event, lane_name, slice("source", "gst", 100, 5, R"("frame":"0:12")"),
                    slice("other frame", "gst", 200, 5, R"("frame":"0:13")"),
                    slice("other stream", "gst", 300, 5, R"("frame":"1:12")"),
                    slice("batch", "gst", 5000000, 5, R"("frames":["0:11","0:12"])")}));
    EXPECT_EQ(names(kept), (Names{"X source", "X batch"}));
}

TEST_F(TraceMerge, TakesSlicesOfTheJobFromTheBuffer) {
    const auto kept =
        merge(host({capture_event, lane_name,
                    slice("submit", "host", 1000000, 5, R"("frame":"0:12","jobKey":"0/0/3")"),
                    slice("submit", "host", 1000010, 5, R"("jobKey":"0/0/4")"),
                    slice("Core-0-Execution", "npu", 1000020, 5, R"("jobKey":"0/0/3")"),
                    slice("softmax", "cpu", 1000030, 5, R"("jobKey":"0/0/3")"),
                    slice("vartmlinfer", "gst", 1000040, 5, R"("jobKey":"0/0/3")")}));
    EXPECT_EQ(names(kept), (Names{"X submit", "X vartmlinfer"}));
    EXPECT_EQ(kept[0]["args"]["jobKey"], "0/0/4");
}

TEST_F(TraceMerge, KeepsBothEndsOfAPairOrNone) {
    const auto kept = merge(host(
        {capture_event, lane_name, event("b", "wait", "queue", "900000.000", ",\"id\":1"),
         event("b", "wait", "queue", "900001.000", ",\"id\":2"),
         event("e", "wait", "queue", "900002.000", ",\"id\":2"),
         event("e", "wait", "queue", "2000000.000", ",\"id\":1"),
         event("B", "outer", "gst", "900000.000"), event("B", "gone", "gst", "900001.000"),
         event("E", "gone", "gst", "900002.000"), event("B", "inner", "gst", "1000000.000"),
         event("E", "inner", "gst", "1000001.000"), event("E", "outer", "gst", "2000000.000")}));
    EXPECT_EQ(names(kept), (Names{"b wait", "e wait", "B outer", "B inner", "E inner", "E outer"}));
}

TEST_F(TraceMerge, JoinsTheArrowOfTheFrame) {
    const auto kept = merge(
        host({capture_event, lane_name, slice("source", "gst", 100, 50, R"("frame":"0:12")"),
              event("s", "frame", "frame", "100.000", ",\"id\":12"),
              event("s", "frame", "frame", "120.000", ",\"id\":13"),
              slice("submit", "host", 1000000, 5, R"("frame":"0:12","jobKey":"0/0/3")", 4244),
              event("t", "frame", "frame", "1000000.000", ",\"id\":12", 4244),
              event("t", "frame", "frame", "1000000.000", ",\"id\":12", 1073741825, 1073741824),
              slice("sink", "gst", 1000300, 50, R"("frame":"0:12")"),
              event("f", "frame", "frame", "1000300.000", ",\"id\":12,\"bp\":\"e\"")}));
    EXPECT_EQ(names(kept), (Names{"X source", "s frame", "X sink", "f frame"}));
    std::string path;
    std::vector<json> arrow;
    std::ranges::copy_if(all_, std::back_inserter(arrow),
                         [](const json& e) { return e.value("cat", "") == "frame"; });
    std::ranges::stable_sort(arrow, {}, [](const json& e) { return e["ts"].get<double>(); });
    for (const json& e : arrow) path += e["ph"].get<std::string>();
    EXPECT_EQ(path, "stttf");  // source, enqueue, two cores, sink
}

TEST_F(TraceMerge, KeepsForeignArrowsThatLieInTheInference) {
    const auto kept =
        merge(host({capture_event, lane_name, slice("a", "gst", 1000000, 50),
                    event("s", "x", "flow", "1000001.000", ",\"id\":1"),
                    event("s", "x", "flow", "1000002.000", ",\"id\":2"),
                    event("f", "x", "flow", "1000003.000", ",\"id\":1,\"bp\":\"e\""),
                    event("f", "x", "flow", "2000000.000", ",\"id\":2,\"bp\":\"e\"")}));
    EXPECT_EQ(names(kept), (Names{"X a", "s x", "f x"}));
}

TEST_F(TraceMerge, ALongHostTraceLeavesLittle) {
    std::vector<std::string> events{capture_event, lane_name};
    for (int i = 0; i < 20000; ++i)
        events.push_back(slice("frame", "gst", 2000000 + i * 10, 5,
                               "\"frame\":\"0:" + std::to_string(100 + i) + '"'));
    EXPECT_TRUE(merge(host(events)).empty());
    EXPECT_LT(slurp(path_).size(), 60000U);
}

TEST_F(TraceMerge, RefusesAnotherBootOrClock) {
    std::string other = capture_event;
    other.replace(other.find("B0b0"), 4, "c0b0");
    EXPECT_NE(message(host({other})).find("another boot"), std::string::npos);
    std::string clock = capture_event;
    clock.replace(clock.find("CLOCK_MONOTONIC"), 15, "CLOCK_REALTIME");
    const std::string said = message(host({clock}));
    EXPECT_NE(said.find("CLOCK_REALTIME"), std::string::npos) << said;
    EXPECT_EQ(said.find("--host-clock-offset-us"), std::string::npos) << said;
}

TEST_F(TraceMerge, AHostTraceWithoutClockNeedsItsOffset) {
    const std::string foreign = host({slice("here", "x", 60.125, 5), slice("there", "x", 500, 5)},
                                     "]}", R"({"other":[1,{"traceEvents":2}],"traceEvents":[)");
    EXPECT_NE(message(foreign).find("--host-clock-offset-us"), std::string::npos);
    const auto kept = merge(foreign, 1'000'000.0, false);
    EXPECT_EQ(names(kept), Names{"X here"});
    EXPECT_NE(slurp(path_).find("\"ts\":1000060.125,\"dur\":5.000"), std::string::npos);
    std::filesystem::remove(path_);
    EXPECT_NE(message(host({capture_event}), 5.0).find("names its clock"), std::string::npos);
}

TEST_F(TraceMerge, AFileThatIsCutOffAnywhereGivesWhatIsWhole) {
    const std::string events[] = {capture_event,
                                  slice("één", "gst", 1000000, 5, R"("a":[1,-2.5,null,true])"),
                                  slice("two", "gst", 1000010, 5)};
    std::string whole = "[\n";
    std::vector<size_t> ends;
    for (const std::string& e : events) {
        whole += e;
        ends.push_back(whole.size());
        whole += ",\n";
    }
    whole += "]\n";  // some writers leave the comma
    for (size_t cut = 1; cut <= whole.size(); ++cut) {
        spill(folder_ / "cut.json", whole.substr(0, cut));
        std::ptrdiff_t count = 0;
        const auto read = p::for_each_host_event(folder_ / "cut.json", [&](const p::HostEvent&) {
            ++count;
            return true;
        });
        ASSERT_TRUE(read) << cut << ": " << read.error().message;
        EXPECT_EQ(count, std::ranges::count_if(ends, [&](size_t end) { return end <= cut; }))
            << whole.substr(0, cut);
    }
}

TEST_F(TraceMerge, SaysWhereAHostTraceIsMalformed) {
    const struct {
        std::string text, words;
    } cases[] = {
        {"", "neither an array"},
        {"{}", "neither an array"},
        {"[" + std::string(capture_event) + ", x]", "malformed at byte"},
        {"[{\"a\":NaN}]", "malformed at byte"},
        {"{\"traceEvents\":7}", "neither an array"},
    };
    for (const auto& [text, words] : cases) {
        spill(folder_ / "host.json", text);
        const std::string said = message(folder_ / "host.json");
        EXPECT_NE(said.find("host.json"), std::string::npos) << text;
        EXPECT_NE(said.find(words), std::string::npos) << text << ": " << said;
    }
    spill(folder_ / "deep.json", "[" + std::string(100000, '['));
    EXPECT_NE(message(folder_ / "deep.json").find("levels deep"), std::string::npos);
    EXPECT_NE(message(folder_ / "none.json").find("none.json"), std::string::npos);
    EXPECT_FALSE(try_merge(folder_.path()));
}

TEST_F(TraceMerge, AnEventThatDoesNotEndIsNotCollected) {
    spill(folder_ / "host.json", "[{\"a\":\"" + std::string(40 << 20, 'x'));
    EXPECT_NE(message(folder_ / "host.json").find("MiB"), std::string::npos);
}

// Sums of such times would leave 64 bits.
TEST_F(TraceMerge, LeavesOutTimesThatNoClockHas) {
    const std::string key = R"("frame":"0:12")";
    const auto found =
        merge(host({slice("near", "gst", 1e6 - 1e15, 1, key), slice("far", "gst", 9e15, 1, key),
                    slice("long", "gst", 1e6 - 1e15, 9e15)}),
              1e15, false);
    EXPECT_EQ(names(found), (Names{"X near", "X long"}));
    std::filesystem::remove(path_);
    EXPECT_NE(
        message(host({slice("near", "gst", 1e6, 1)}), 9e15 - 1).find("--host-clock-offset-us"),
        std::string::npos);
}

TEST_F(TraceMerge, KeepsTimesOfAMachineThatIsUpForYears) {
    spill(folder_ / "host.json", R"([{"ph":"i","name":"a","ts":94608000000123.457}])");
    int64_t at = 0;
    const auto read = p::for_each_host_event(folder_ / "host.json", [&](const p::HostEvent& e) {
        at = e.start_ns.value_or(0);
        return true;
    });
    ASSERT_TRUE(read);
    EXPECT_EQ(at, 94608000000123457);
}

}  // namespace
}  // namespace vartml::test
