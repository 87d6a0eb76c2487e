// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include <vartml/profile.h>

#include "tests/support/temp_dir.h"

using namespace vartml;
using nlohmann::json;

namespace {

std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

class HostTraces : public testing::Test {
protected:
    HostTrace open(const HostTraceOptions& options = {}) {
        auto trace = HostTrace::open(path(), options);
        EXPECT_TRUE(trace.has_value());
        return *std::move(trace);
    }
    std::string path() const { return dir_.path() + "/trace.json"; }
    json events() const { return json::parse(text_of(path())); }
    // Those of a phase and name.
    std::vector<json> events(const std::string& phase, const std::string& name) const {
        std::vector<json> found;
        for (const json& e : events())
            if (e.at("ph") == phase && e.at("name") == name) found.push_back(e);
        return found;
    }
    test::TempDir dir_;
};

// Picoseconds would be invented: text has three decimals, so it is whole nanoseconds.
std::string id_of(uint32_t stream) {
    std::string id = "of another stream";
    HostTrace::stream_id(stream, id);
    return id;
}

uint64_t ns(const json& us) {
    return static_cast<uint64_t>(us.get<double>() * 1000 + 0.5);
}

TEST_F(HostTraces, RecordNothingWhenNoneIsOpen) {
    EXPECT_FALSE(HostTrace::is_open());
    EXPECT_EQ(HostTrace::flags(), 0U);
    {
        const Span span(trace_flag::runs, TraceCategory::host, "nobody looks");
    }
    HostTrace::instant({.name = "nor here"}, 1);
    EXPECT_FALSE(HostTrace::frame_key(TraceStream("s").index(), 5));
    // Without a trace the number is that of the element.
    EXPECT_EQ(HostTrace::frame(3, 5, 77).key, FrameKey(3, 77));
}

TEST_F(HostTraces, BeginWithWhatTheCaptureIs) {
    auto trace = open({.not_captured = {"operators: the runtime reports none"}});
    trace.close();
    const json all = events();
    ASSERT_GE(all.size(), 1U);
    const json& first = all[0];
    EXPECT_EQ(first["ph"], "M");
    EXPECT_EQ(first["name"], "vartml_capture");
    EXPECT_EQ(first["args"]["clock"], "CLOCK_MONOTONIC");
    EXPECT_EQ(first["args"]["pid"], getpid());
    EXPECT_EQ(first["args"]["not_captured"][0], "operators: the runtime reports none");
    for (const char* key : {"version", "boot_id", "start_monotonic_ns", "start_realtime_ns"})
        EXPECT_TRUE(first["args"].contains(key)) << key;
}

TEST_F(HostTraces, WriteASpanWithItsArguments) {
    auto trace = open();
    const uint64_t before = HostTrace::now_ns();
    {
        Span span(trace_flag::runs, TraceCategory::host, "submit");
        span.arg({"bytes", 12}).arg({"delta", -3}).arg({"share", 0.5}).arg({"where", "here"});
        span.arg(TraceArg::us("selfUs", 1'234'567)).arg(TraceArg::job("jobKey", 1, 2, 345));
        EXPECT_TRUE(span.is_recording());
    }
    const uint64_t after = HostTrace::now_ns();
    trace.close();
    const auto found = events("X", "submit");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0]["cat"], "host");
    EXPECT_EQ(found[0]["pid"], getpid());
    EXPECT_GE(ns(found[0]["ts"]), before);
    EXPECT_LE(ns(found[0]["ts"]) + ns(found[0]["dur"]), after + 1000);
    EXPECT_EQ(found[0]["args"], json::parse(R"({"bytes": 12, "delta": -3, "share": 0.5,
        "where": "here", "selfUs": 1234.567, "jobKey": "1/2/345"})"));
}

TEST_F(HostTraces, WriteTimesInMicrosecondsWithThreeDecimals) {
    auto trace = open();
    HostTrace::slice({.name = "exact"}, 1'000'000'007, 1'000'001'010);
    HostTrace::slice({.name = "no time"}, 2'000'000'000, 2'000'000'000);
    trace.close();
    const std::string text = text_of(path());
    EXPECT_NE(text.find(R"("ts":1000000.007,"dur":1.003)"), std::string::npos) << text;
    EXPECT_NE(text.find(R"("ts":2000000.000,"dur":0.001)"), std::string::npos) << text;
}

TEST_F(HostTraces, EscapeWhatNamesAndTextsHold) {
    auto trace = open();
    const std::string bad = "a\"b\\c\n\x01 \xC3\xBC \xFF end";
    const TraceArg text = TraceArg::copy("text", bad);
    const TraceArg none = {"none", std::nan("")};
    const TraceArg args[] = {none, text, none};
    HostTrace::instant({.name = TraceText::intern(bad), .args = args}, 5);
    HostTrace::instant({.name = "only nothing", .args = {&none, 1}}, 6);
    trace.close();
    const std::string good = "a\"b\\c\n\x01 \xC3\xBC \xEF\xBF\xBD end";
    const auto found = events("i", good);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0]["args"], json({{"text", good}}));
    EXPECT_EQ(found[0]["s"], "t");
    EXPECT_EQ(events("i", "only nothing")[0]["args"], json::object());
}

TEST_F(HostTraces, TakeAtMost256BytesOfCopiedText) {
    auto trace = open();
    const std::string text(1000, 'x');
    const TraceArg args[] = {TraceArg::copy("text", text)};
    HostTrace::instant({.name = "long", .args = args}, 5);
    trace.close();
    EXPECT_EQ(events("i", "long")[0]["args"]["text"], std::string(256, 'x'));
}

TEST_F(HostTraces, NestSpansOfAThreadStrictly) {
    auto trace = open();
    {
        const Span outer(trace_flag::runs, TraceCategory::host, "outer");
        const Span inner(trace_flag::runs, TraceCategory::host, "inner");
    }
    trace.close();
    const json outer = events("X", "outer")[0], inner = events("X", "inner")[0];
    const auto start = [](const json& e) { return ns(e["ts"]); };
    const auto end = [](const json& e) { return ns(e["ts"]) + ns(e["dur"]); };
    EXPECT_LT(start(outer), start(inner));
    EXPECT_LT(end(inner), end(outer));
}

TEST_F(HostTraces, StampsRiseOnEachThread) {
    uint64_t before = 0;
    for (int i = 0; i < 10000; ++i) {
        const uint64_t now = HostTrace::stamp_ns();
        ASSERT_GT(now, before);
        before = now;
    }
}

TEST_F(HostTraces, NameThreadsAndLanesOfDevicesOnceEach) {
    constexpr TraceLane core = TraceLane::of_device(1, 2, 3);
    static_assert(core.pid == (1U << 30) + (1U << 24) && core.tid == core.pid + 1 + 2 * 4096 + 3);
    HostTrace::name_lane(core, "softnpu 1", "net_Core_2_SNPU", 7);
    auto trace = open();
    for (int i = 0; i < 3; ++i) {
        HostTrace::slice({.category = TraceCategory::npu, .name = "conv", .lane = core},
                         10 + i * 10, 15 + i * 10);
        HostTrace::instant({.name = "mine"}, 5);
    }
    trace.close();
    std::vector<json> names;
    for (const json& e : events())
        if (e["name"] == "thread_name") names.push_back(e);
    ASSERT_EQ(names.size(), 2U);
    EXPECT_EQ(names[0]["args"]["name"], "net_Core_2_SNPU");
    EXPECT_EQ(names[0]["pid"], core.pid);
    EXPECT_EQ(names[0]["tid"], core.tid);
    EXPECT_EQ(names[1]["tid"], gettid());
    EXPECT_EQ(events("M", "process_name")[1]["args"]["name"], "HOST_PROC");
    EXPECT_EQ(events("M", "thread_sort_index")[0]["args"]["sort_index"], 7);
}

TEST_F(HostTraces, HoldTheEventsOfAllThreads) {
    constexpr int threads = 8, spans = 2000;
    auto trace = open({.ring_kb = 1024});
    {
        std::vector<std::jthread> all;
        for (int t = 0; t < threads; ++t) {
            all.emplace_back([] {
                for (int i = 0; i < spans; ++i) {
                    Span span(trace_flag::runs, TraceCategory::host, "work");
                    span.arg({"i", i});
                }
            });
        }
    }
    EXPECT_EQ(trace.totals().lost, 0U);
    trace.close();
    std::map<int64_t, std::set<int>> seen;
    for (const json& e : events("X", "work")) seen[e["tid"]].insert(e["args"]["i"].get<int>());
    EXPECT_EQ(seen.size(), size_t{threads});
    for (const auto& [tid, of_thread] : seen) EXPECT_EQ(of_thread.size(), size_t{spans});
}

TEST_F(HostTraces, CountWhatAFullRingLoses) {
    auto trace = open({.ring_kb = 16});
    constexpr uint64_t recorded = 200'000;
    for (uint64_t i = 0; i < recorded; ++i) HostTrace::instant({.name = "flood"}, i);
    trace.flush();
    const uint64_t lost = trace.totals().lost;
    EXPECT_GT(lost, 0U);
    trace.close();
    EXPECT_EQ(events("i", "flood").size() + lost, recorded);
    uint64_t told = 0;
    for (const json& e : events("i", "lost events")) {
        EXPECT_EQ(e["cat"], "meta");
        told += e["args"]["events"].get<uint64_t>();
    }
    EXPECT_EQ(told, lost);
}

TEST_F(HostTraces, KeepTheOrderOfRecordsAcrossTheEndOfTheRing) {
    auto trace = open({.ring_kb = 16});
    const std::string text(200, 'y');
    for (int i = 0; i < 3000; ++i) {
        const TraceArg args[] = {{"i", i}, TraceArg::copy("t", {text.data(), size_t(i % 200)})};
        HostTrace::instant({.name = "n", .args = args}, 1);
        if (i % 20 == 0) trace.flush();
    }
    EXPECT_EQ(trace.totals().lost, 0U);
    trace.close();
    int next = 0;
    for (const json& e : events("i", "n")) {
        ASSERT_EQ(e["args"]["i"], next);
        ASSERT_EQ(e["args"]["t"].get<std::string>().size(), size_t(next % 200));
        ++next;
    }
    EXPECT_EQ(next, 3000);
}

TEST_F(HostTraces, StopAtTheWantedSizeAndSaySo) {
    auto trace = open({.max_bytes = 100'000});
    for (int i = 0; i < 100; ++i) {
        for (int k = 0; k < 50; ++k) HostTrace::instant({.name = "event"}, 1);
        trace.flush();
    }
    EXPECT_TRUE(trace.totals().is_full);
    EXPECT_TRUE(HostTrace::is_open());
    EXPECT_EQ(HostTrace::flags() & trace_flag::all, 0U);
    trace.close();
    const auto stopped = events("i", "recording stopped");
    ASSERT_EQ(stopped.size(), 1U);
    EXPECT_EQ(stopped[0]["args"]["reason"], "max-bytes reached");
    EXPECT_LT(text_of(path()).size(), 120'000U);
}

TEST_F(HostTraces, AreReadableWhenTheProcessDies) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        auto trace = HostTrace::open(path());
        for (int i = 0; i < 100; ++i)
            const Span span(trace_flag::runs, TraceCategory::host, "before the crash");
        trace->flush();
        _exit(9);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::string text = text_of(path());
    EXPECT_FALSE(json::accept(text));
    const json all = json::parse(text + "]");  // as Perfetto reads an array that is not closed
    EXPECT_GT(all.size(), 100U);
}

TEST_F(HostTraces, HoldWholeEventsWhereTheFileTakesNoMore) {
    constexpr rlim_t most = 20'000;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const rlimit limit{most, most};
        std::signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        auto trace = HostTrace::open(path());
        for (int i = 0; i < 1000; ++i) HostTrace::instant({.name = "event"}, 1);
        trace->flush();
        const HostTraceTotals totals = trace->totals();
        _exit(totals.is_full && totals.written < 1000 && totals.written > 100 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    const std::string text = text_of(path());
    EXPECT_GT(text.size(), most - 200);
    EXPECT_TRUE(json::accept(text + "]")) << text.substr(text.size() - 200);
}

TEST_F(HostTraces, EndWithTheProcess) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        static auto trace = HostTrace::open(path());
        {
            const Span span(trace_flag::runs, TraceCategory::host, "last");
        }
        std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(events("X", "last").size(), 1U);
}

TEST_F(HostTraces, AreLeftAloneByAForkedChild) {
    auto trace = open();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        EXPECT_FALSE(HostTrace::is_open());
        {
            const Span span(trace_flag::runs, TraceCategory::host, "child");
        }
        trace.close();
        std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    {
        const Span span(trace_flag::runs, TraceCategory::host, "parent");
    }
    trace.close();
    EXPECT_EQ(events("X", "parent").size(), 1U);
    EXPECT_EQ(events("X", "child").size(), 0U);
}

// The writer of the trace is a thread of the parent's: nobody may wait for it in the child.
TEST_F(HostTraces, AreNotWaitedForInAForkedChild) {
    auto trace = open();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(20);
        trace.flush();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(HostTraces, AreOpenedAnewByAForkedChild) {
    auto trace = open();
    const std::string own = dir_.path() + "/child.json";
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(20);
        {
            auto mine = HostTrace::open(own);
            if (!mine || mine->path() != own) _exit(1);
            const Span span(trace_flag::runs, TraceCategory::host, "child");
        }
        _exit(HostTrace::is_open() ? 2 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_NE(text_of(own).find(R"("name":"child")"), std::string::npos) << text_of(own);
    {
        const Span span(trace_flag::runs, TraceCategory::host, "parent");
    }
    trace.close();
    EXPECT_EQ(events("X", "parent").size(), 1U);
    EXPECT_EQ(events("X", "child").size(), 0U);
}

TEST_F(HostTraces, AreJoinedByASecondOpen) {
    auto first = open({.flags = trace_flag::frames});
    auto second = HostTrace::open(dir_.path() + "/other.json", {.flags = trace_flag::ops});
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(second->path(), path());
    EXPECT_EQ(HostTrace::flags() & trace_flag::all, trace_flag::frames | trace_flag::ops);
    first.close();
    EXPECT_EQ(HostTrace::flags() & trace_flag::all, trace_flag::ops);
    {
        const Span span(trace_flag::ops, TraceCategory::npu, "still open");
    }
    second->close();
    EXPECT_FALSE(HostTrace::is_open());
    EXPECT_EQ(events("X", "still open").size(), 1U);
    EXPECT_NE(access((dir_.path() + "/other.json").c_str(), F_OK), 0);
}

TEST_F(HostTraces, AreOpenedOneAfterAnotherByTheSameThread) {
    for (int i = 0; i < 3; ++i) {
        auto trace = open();
        {
            const Span span(trace_flag::runs, TraceCategory::host, "again");
        }
        trace.close();
        EXPECT_EQ(events("X", "again").size(), 1U);
    }
}

TEST_F(HostTraces, NameThePathThatCannotBeWritten) {
    const auto trace = HostTrace::open("/nowhere/trace.json");
    ASSERT_FALSE(trace.has_value());
    EXPECT_EQ(trace.error().code, ErrorCode::not_found);
    EXPECT_NE(trace.error().message.find("/nowhere/trace.json"), std::string::npos);
    EXPECT_FALSE(HostTrace::is_open());
    EXPECT_EQ(HostTrace::open(path(), {.flags = 0}).error().code, ErrorCode::invalid_argument);
}

TEST_F(HostTraces, PairAsyncEndsByUniqueIds) {
    auto trace = open();
    std::set<uint64_t> ids;
    std::mutex mutex;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 1000; ++i) {
                    const uint64_t id = HostTrace::async_id();
                    const std::lock_guard lock(mutex);
                    ids.insert(id);
                }
            });
        }
    }
    EXPECT_EQ(ids.size(), 4000U);
    EXPECT_LT(*ids.rbegin(), uint64_t{1} << 53);
    HostTrace::async_begin({.category = TraceCategory::queue, .name = "wait"}, 7, 100);
    HostTrace::async_end({.category = TraceCategory::queue, .name = "wait"}, 7, 200);
    trace.close();
    EXPECT_EQ(events("b", "wait")[0]["id"], 7);
    EXPECT_EQ(events("e", "wait")[0]["id"], 7);
}

// ---- frames ----

TEST_F(HostTraces, NumberFramesByFirstSightOfTheirTimeStamp) {
    auto trace = open();
    const TraceStream numbers("numbers");
    const uint32_t stream = numbers.index();
    EXPECT_EQ(TraceStream("numbers").index(), stream);
    EXPECT_NE(TraceStream("others").index(), stream);
    EXPECT_EQ(id_of(stream), "numbers");
    const FrameKey a = HostTrace::frame_key(stream, 100, true);
    const FrameKey b = HostTrace::frame_key(stream, 50, true);
    EXPECT_EQ(a, FrameKey(stream, 0));
    EXPECT_EQ(b, FrameKey(stream, 1));
    EXPECT_EQ(HostTrace::frame_key(stream, 100), a);
    EXPECT_EQ(HostTrace::frame_key(stream, 50), b);
    EXPECT_FALSE(HostTrace::frame_key(stream, -1));
    // After a seek the source sends an old stamp again: another frame, for all behind it too.
    const FrameKey again = HostTrace::frame_key(stream, 100, true);
    EXPECT_EQ(again, FrameKey(stream, 2));
    EXPECT_EQ(HostTrace::frame_key(stream, 100), again);
    // Two buffers of one frame, and the first after a seek to the same place.
    EXPECT_EQ(HostTrace::frame_key(stream, 100, true), again);
    EXPECT_EQ(HostTrace::frame_key(stream, 100, true, true), FrameKey(stream, 3));
    EXPECT_EQ(HostTrace::frame_key(stream, 100, false, true), FrameKey(stream, 3));
    const TraceFrame frame = HostTrace::frame(stream, 50, 9);
    EXPECT_EQ(frame.key, b);
    EXPECT_EQ(frame.frame_seq, 9U);
}

TEST_F(HostTraces, RememberTheLast4096Frames) {
    auto trace = open();
    const TraceStream many("many");
    const uint32_t stream = many.index();
    for (int i = 0; i < 4096; ++i) HostTrace::frame_key(stream, i);
    EXPECT_EQ(HostTrace::frame_key(stream, 0).number(), 0U);
    EXPECT_EQ(HostTrace::frame_key(stream, 4096).number(), 4096U);
    EXPECT_EQ(HostTrace::frame_key(stream, 1).number(), 1U);
    EXPECT_EQ(HostTrace::frame_key(stream, 0).number(), 4097U);  // forgotten
}

// A camera that connects again has a new stream-id.
TEST_F(HostTraces, GiveTheIndexOfAStreamThatEndedToANewOne) {
    auto trace = open();
    const TraceStream stays("a camera that stays");
    TraceStream one("a camera that connects again, the first time");
    const uint32_t first = one.index();
    const FrameKey before = HostTrace::frame_key(first, 100, true);
    HostTrace::frame_key(first, 200, true);
    one = TraceStream();
    // What is on its way from it names it still, and it may come back.
    EXPECT_EQ(id_of(first), "a camera that connects again, the first time");
    EXPECT_EQ(TraceStream("a camera that connects again, the first time").index(), first);

    std::set<uint32_t> indexes;
    std::optional<FrameKey> after;
    for (int i = 0; i < 500; ++i) {
        const std::string id = "a camera that connects again " + std::to_string(i);
        const TraceStream next(id);
        ASSERT_NE(next.index(), stays.index());
        EXPECT_EQ(id_of(next.index()), id);
        indexes.insert(next.index());
        // The first frame is no frame of the stream that had the index.
        const FrameKey key = HostTrace::frame_key(next.index(), 150, true);
        if (next.index() == first && !after) after = key;
        EXPECT_EQ(HostTrace::frame_key(next.index(), 150), key);
        EXPECT_NE(HostTrace::frame_key(next.index(), 100), before);
    }
    EXPECT_LE(indexes.size(), 66U);
    ASSERT_TRUE(after);
    EXPECT_EQ(after->number(), 2U);
    EXPECT_EQ(id_of(stays.index()), "a camera that stays");
}

// Holders of one stream count: it ends with the last.
TEST_F(HostTraces, KeepTheIndexOfAStreamThatSomebodyHolds) {
    TraceStream element("held twice");
    const TraceStream other("held twice");
    EXPECT_EQ(other.index(), element.index());
    element = TraceStream("held by nobody else");
    for (int i = 0; i < 100; ++i)
        EXPECT_NE(TraceStream("passes by " + std::to_string(i)).index(), other.index());
    EXPECT_EQ(id_of(other.index()), "held twice");
    std::vector<TraceStream> all;
    while (all.size() < 9000) all.emplace_back("at once " + std::to_string(all.size()));
    EXPECT_EQ(all.back().index(), TraceStream::none);
    EXPECT_EQ(id_of(TraceStream::none), "");
    auto trace = open();
    EXPECT_FALSE(HostTrace::frame_key(TraceStream::none, 5));
    all.clear();
    EXPECT_LT(TraceStream("one more").index(), TraceStream::none);
}

TEST_F(HostTraces, GiveEachFrameOneArrow) {
    auto trace = open();
    const TraceStream arrows("arrows");
    const uint32_t stream = arrows.index();
    const TraceFrame frame{HostTrace::frame_key(stream, 7, true)};
    const auto span = [&](TraceText name) {
        Span s(trace_flag::frames, TraceCategory::gst, name);
        s.frames({&frame, 1});
    };
    span("source");
    span("same lane");
    std::jthread([&] { span("another lane"); }).join();
    HostTrace::slice({.category = TraceCategory::npu,
                      .name = "Core-0-Execution",
                      .lane = TraceLane::of_device(0, 0, 0),
                      .frames = {&frame, 1}},
                     HostTrace::now_ns(), HostTrace::now_ns() + 5);
    const uint64_t now = HostTrace::stamp_ns();
    const FrameArrow end = HostTrace::arrow(frame.key, now, true);
    HostTrace::slice({.name = "sink", .frames = {&frame, 1}, .arrows = &end}, now, now + 5);
    EXPECT_GT(HostTrace::frame_start_ns(frame.key), 0U);
    trace.close();

    std::map<uint64_t, std::string> by_time;  // the file has one thread after another
    json before;
    for (const json& e : events()) {
        if (e.contains("cat") && e["cat"] == "frame") {
            by_time[ns(e["ts"])] += e["ph"].get<std::string>();
            EXPECT_EQ(e["id"], frame.key.flow_id);
            EXPECT_EQ(e["name"], "frame");
            // Behind its slice, at its start.
            EXPECT_EQ(before["ph"], "X");
            EXPECT_EQ(before["ts"], e["ts"]);
            EXPECT_EQ(before["tid"], e["tid"]);
        }
        before = e;
    }
    std::string phases;
    for (const auto& [time, phase] : by_time) phases += phase;
    EXPECT_EQ(phases, "sttf");
}

TEST_F(HostTraces, ListTheFramesOfABatch) {
    auto trace = open();
    const TraceFrame frames[] = {{FrameKey(1, 5), 4, 0}, {FrameKey(2, 6), 5, 0}};
    HostTrace::slice({.name = "batch", .frames = frames}, 1, 2);
    HostTrace::slice({.name = "one", .frames = {frames, 1}}, 1, 2);
    trace.close();
    EXPECT_EQ(events("X", "batch")[0]["args"],
              json::parse(R"({"frames": ["1:5", "2:6"], "frameSeqs": [4, 5]})"));
    EXPECT_EQ(events("X", "one")[0]["args"], json::parse(R"({"frame": "1:5", "frameSeq": 4})"));
}

TEST(FrameScope, IsTakenByTheNextRunOnTheThread) {
    EXPECT_TRUE(FrameScope::take().empty());
    const TraceFrame outer[] = {{FrameKey(0, 1)}, {FrameKey(0, 2)}};
    const TraceFrame inner[] = {{FrameKey(3, 3)}};
    const FrameScope first(outer);
    {
        const FrameScope second(inner);
        std::jthread([] { EXPECT_TRUE(FrameScope::take().empty()); }).join();
        EXPECT_EQ(FrameScope::take().size(), 1U);
        EXPECT_TRUE(FrameScope::take().empty());
    }
    EXPECT_EQ(FrameScope::take().size(), 2U);
    EXPECT_TRUE(FrameScope::take().empty());
}

}  // namespace
