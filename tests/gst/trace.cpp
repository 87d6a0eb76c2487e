// SPDX-License-Identifier: Apache-2.0
// vartmltrace: what it writes of pipelines that run in processes of their own, read back by
// tests/support/trace_check.py and here.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

using nlohmann::json;
using vartml::test::slurp;
using vartml::test::TempDir;

namespace {

struct Outcome {
    int status = -1;  // of waitpid()
    std::string output;
    bool ended_well() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

// A hang is a failure of the tracer; the limit only bounds how long it shows.
Outcome shell(const std::string& command) {
    Outcome outcome;
    FILE* const pipe = popen(("timeout 100 env " + command + " 2>&1").c_str(), "r");
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;) outcome.output.append(part, n);
    outcome.status = pclose(pipe);
    return outcome;
}

class Traces : public testing::Test {
protected:
    std::string path() const { return dir_ / "trace.json"; }
    std::string with(const std::string& parameters) const {
        return "vartmltrace(file=" + path() + (parameters.empty() ? "" : "," + parameters) + ")";
    }
    static Outcome run(const std::string& tracers, const std::string& scenario) {
        return shell("GST_TRACERS='" + tracers + "' " VARTML_TRACE_PIPELINES " " + scenario);
    }
    // Runs it and checks the file by the rules of all traces.
    void record(const std::string& scenario, const std::string& parameters = "",
                const std::string& options = "") {
        const Outcome outcome = run(with(parameters), scenario);
        EXPECT_TRUE(outcome.ended_well()) << scenario << ": " << outcome.output;
        check(options);
    }
    void check(const std::string& options = "") const {
        const Outcome outcome = shell("python3 " VARTML_TRACE_CHECK " " + options + " " + path());
        EXPECT_TRUE(outcome.ended_well()) << outcome.output;
    }
    json events() const { return json::parse(slurp(path())); }
    template <typename Wanted>
    std::vector<json> events(const Wanted& wanted) const {
        std::vector<json> found;
        for (const json& e : events())
            if (wanted(e)) found.push_back(e);
        return found;
    }
    std::vector<json> spans(const std::string& name) const {
        return events([&](const json& e) { return e["ph"] == "X" && e["name"] == name; });
    }
    TempDir dir_;
};

double end_of(const json& e) {
    return e["ts"].get<double>() + e["dur"].get<double>();
}

struct Interval {
    double begin, end;
};

// The share of `whole` that the intervals cover.
double covered(std::vector<Interval> parts, const Interval& whole) {
    std::ranges::sort(parts, {}, &Interval::begin);
    double sum = 0, at = whole.begin;
    for (const Interval& part : parts) {
        const double begin = std::max(part.begin, at), end = std::min(part.end, whole.end);
        if (end > begin) sum += end - begin;
        at = std::max(at, part.end);
    }
    return sum / (whole.end - whole.begin);
}

// Of each frame, what its spans and waits cover of its way from the source to the sink `a`.
std::map<std::string, double> coverage(const json& events, const std::string& source) {
    std::map<std::string, std::vector<Interval>> parts;
    std::map<std::string, Interval> ways;
    std::map<uint64_t, double> ends;
    for (const json& e : events)
        if (e["ph"] == "e") ends[e["id"]] = e["ts"];
    for (const json& e : events) {
        if (!e.contains("args") || !e["args"].contains("frame") || !e.contains("ts")) continue;
        const std::string frame = e["args"]["frame"];
        const double begin = e["ts"];
        if (e["ph"] == "b") parts[frame].push_back({begin, ends.at(e["id"])});
        if (e["ph"] != "X" || e["cat"] != "gst") continue;
        parts[frame].push_back({begin, end_of(e)});
        if (e["name"] == source) ways[frame].begin = begin;
        if (e["name"] == "a") ways[frame].end = begin;
    }
    std::map<std::string, double> shares;
    for (const auto& [frame, way] : ways) shares[frame] = covered(parts[frame], way);
    return shares;
}

TEST_F(Traces, LeaveNoTimeOfAFrameOut) {
    record("file");
    const auto shares = coverage(events(), "videotestsrc0");
    EXPECT_EQ(shares.size(), 30U);
    for (const auto& [frame, share] : shares) EXPECT_NEAR(share, 1, 0.01) << frame;
}

TEST_F(Traces, FollowEachFrameFromSourceToBothSinks) {
    record("file", "", "--arrows 0:30");
    for (const char* sink : {"a", "b"}) {
        std::set<std::string> frames;
        for (const json& span : spans(sink)) frames.insert(span["args"]["frame"]);
        EXPECT_EQ(frames.size(), 30U) << sink;
    }
    // On the thread of the source, of `first`, and of each sink.
    std::map<int64_t, std::set<int64_t>> lanes_of;
    for (const json& e : events([](const json& e) { return e.value("cat", "") == "frame"; }))
        lanes_of[e["id"]].insert(e["tid"].get<int64_t>());
    ASSERT_EQ(lanes_of.size(), 30U);
    for (const auto& [frame, lanes] : lanes_of) EXPECT_EQ(lanes.size(), 4U) << frame;
}

TEST_F(Traces, SayWhatASpanIsOf) {
    record("file");
    const auto first = spans("first");
    ASSERT_EQ(first.size(), 60U);  // in by the source, out by its own thread
    for (const json& span : first) {
        EXPECT_EQ(span["cat"], "gst");
        const json& args = span["args"];
        EXPECT_EQ(args["element"], "first");
        EXPECT_TRUE(args["pad"] == "sink" || args["pad"] == "src");
        EXPECT_GT(args["bytes"], 0);
        EXPECT_EQ(args["flow"], "ok");
        EXPECT_TRUE(args["pts"].is_number_integer());
        EXPECT_GE(span["dur"].get<double>() + 0.0005, args["selfUs"].get<double>());
    }
}

TEST_F(Traces, CountTheTimeOfAnElementWithoutThoseBehindIt) {
    record("file");
    const json all = events();
    for (const json& outer : all) {
        if (outer["ph"] != "X" || outer["cat"] != "gst") continue;
        // Directly nested: longest first, those inside others are left out.
        double nested = 0, behind = 0;
        std::vector<json> inside;
        for (const json& e : all)
            if (e["ph"] == "X" && e["cat"] == "gst" && e["tid"] == outer["tid"] &&
                e["ts"] > outer["ts"] && end_of(e) < end_of(outer))
                inside.push_back(e);
        std::ranges::sort(inside, {}, [](const json& e) { return e["ts"].get<double>(); });
        for (const json& e : inside) {
            if (e["ts"].get<double>() < behind) continue;
            nested += e["dur"].get<double>();
            behind = end_of(e);
        }
        EXPECT_NEAR(outer["args"]["selfUs"].get<double>() + nested, outer["dur"].get<double>(),
                    0.01)
            << outer;
    }
}

TEST_F(Traces, HaveTheWaitOfEachFrameInEachQueue) {
    record("file");
    std::map<std::string, std::set<std::string>> frames_of;
    for (const json& e : events([](const json& e) { return e["ph"] == "b"; })) {
        EXPECT_EQ(e["cat"], "queue");
        frames_of[e["name"]].insert(e["args"]["frame"]);
    }
    EXPECT_EQ(frames_of.size(), 3U);
    for (const auto& [queue, frames] : frames_of) EXPECT_EQ(frames.size(), 30U) << queue;
    EXPECT_EQ(frames_of.count("identity0"), 0U);
}

TEST_F(Traces, KeepStreamsApart) {
    record("two-streams", "", "--arrows 0:30 --arrows 1:30");
    for (const char* sink : {"a", "b"}) {
        std::set<std::string> streams;
        for (const json& span : spans(sink)) {
            const std::string frame = span["args"]["frame"];
            streams.insert(frame.substr(0, frame.find(':')));
        }
        EXPECT_EQ(streams.size(), 1U) << sink;
    }
}

TEST_F(Traces, EndWithLiveSources) {
    record("live", "", "--arrows 0:10");
}

TEST_F(Traces, TellFramesOfTheSameTimeStampApartAfterASeek) {
    record("flush");
    std::map<std::string, unsigned> times_sent;
    for (const json& span : spans("videotestsrc0")) ++times_sent[span["args"]["frame"]];
    EXPECT_GT(times_sent.size(), 3U);
    for (const auto& [frame, times] : times_sent) EXPECT_EQ(times, 1U) << frame;
}

TEST_F(Traces, EndWhereCapsChangeAndEventsAreTaken) {
    record("caps-change", "", "--arrows 0:60");
    record("taken-events");
}

TEST_F(Traces, EndWherePadsAndPipelinesComeAndGo) {
    record("comings-and-goings");
    EXPECT_EQ(spans("identity0").size(), 10U);
}

TEST_F(Traces, TakeTheFrameOfTheThreadForBuffersWithoutTimeStamps) {
    record("no-time-stamps");
    std::set<std::string> frames;
    for (const json& span : spans("same")) {
        EXPECT_FALSE(span["args"].contains("pts"));
        frames.insert(span["args"]["frame"]);
    }
    EXPECT_EQ(frames.size(), 20U);
    // Behind the queue nobody knows.
    for (const json& span : spans("a")) EXPECT_FALSE(span["args"].contains("frame"));
    EXPECT_EQ(spans("a").size(), 20U);
}

TEST_F(Traces, AreReadableWhenTheProcessDies) {
    const Outcome outcome = run(with(""), "crash");
    EXPECT_FALSE(outcome.ended_well());
    EXPECT_FALSE(json::accept(slurp(path())));
    check();
}

TEST_F(Traces, EndWithAProcessThatDoesNotDeinitialise) {
    record("exit-without-deinit", "", "--arrows 0:30");
    EXPECT_FALSE(slurp(path() + ".txt").empty());
}

TEST_F(Traces, AreLeftAloneByAForkedChild) {
    const Outcome outcome = run(with(""), "forked");
    EXPECT_TRUE(outcome.ended_well()) << outcome.output;
    EXPECT_NE(outcome.output.find("child 0\n"), std::string::npos) << outcome.output;
    check();
}

TEST_F(Traces, CountWhatAFullRingLoses) {
    const Outcome outcome = run(with("ring-kb=16"), "flood");
    EXPECT_TRUE(outcome.ended_well()) << outcome.output;
    uint64_t lost = 0;
    for (const json& e : events([](const json& e) { return e["name"] == "lost events"; }))
        lost += e["args"]["events"].get<uint64_t>();
    const size_t written = events([](const json& e) { return e["ph"] == "X"; }).size();
    // A push and three chains for each buffer.
    EXPECT_EQ(written + lost, 400'000U);
}

TEST_F(Traces, StopAtTheWantedSize) {
    const Outcome outcome = run(with("max-bytes=200000"), "flood");
    EXPECT_TRUE(outcome.ended_well()) << outcome.output;
    EXPECT_EQ(events([](const json& e) { return e["name"] == "recording stopped"; }).size(), 1U);
    EXPECT_LT(slurp(path()).size(), 1'000'000U);
}

TEST_F(Traces, HaveOnlyTheElementsAndEventsThatWereAskedFor) {
    record("file", "elements=\"fi*,a\",flags=frames");
    std::set<std::string> names, categories;
    for (const json& e : events()) {
        if (e["ph"] == "X") names.insert(e["name"]);
        if (e.contains("cat")) categories.insert(e["cat"]);
    }
    EXPECT_EQ(names, (std::set<std::string>{"first", "a"}));
    EXPECT_EQ(categories, (std::set<std::string>{"frame", "gst", "meta"}));
}

TEST_F(Traces, HaveTheStatesOfThePipeline) {
    record("file");
    std::set<std::string> changes;
    for (const json& e : events([](const json& e) { return e["name"] == "state change"; }))
        changes.insert(e["args"]["change"]);
    EXPECT_TRUE(changes.contains("READY->PAUSED"));
    EXPECT_TRUE(changes.contains("PAUSED->PLAYING"));
}

TEST_F(Traces, ComeWithASummary) {
    record("file");
    const std::string text = slurp(path() + ".txt");
    for (const char* word : {"first", "self p50", "wait p50", "stream", "0 lost"})
        EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
    // Both sinks of 30 frames.
    EXPECT_NE(text.find("0             60"), std::string::npos) << text;
    std::remove((path() + ".txt").c_str());
    record("file", "summary=false");
    EXPECT_TRUE(slurp(path() + ".txt").empty());
}

TEST_F(Traces, HaveTheTimeOfFramesThatEndInAMuxer) {
    record("muxed");
    // The stream of the source: the frames that reach the muxer, but for those before it began.
    std::istringstream text(slurp(path() + ".txt"));
    std::string line;
    while (std::getline(text, line) && !line.starts_with("stream ")) continue;
    unsigned stream = 1, frames = 0;
    text >> stream >> frames;
    EXPECT_EQ(stream, 0u);
    EXPECT_GE(frames, 25u);
}

TEST_F(Traces, LeaveBuffersAsTheyAre) {
    const Outcome traced = run(with(""), "digest"), plain = run("", "digest");
    EXPECT_NE(plain.output.find("digest "), std::string::npos);
    EXPECT_EQ(traced.output, plain.output);
}

TEST_F(Traces, LeaveLeaksAsItIs) {
    for (const std::string& tracers : {"leaks;" + with(""), with("") + ";leaks"}) {
        const Outcome outcome = shell("G_DEBUG=fatal-warnings GST_TRACERS='" + tracers +
                                      "' " VARTML_TRACE_PIPELINES " file");
        EXPECT_TRUE(outcome.ended_well()) << outcome.output;
        EXPECT_EQ(outcome.output, "");
    }
}

TEST_F(Traces, AreNotReplacedWhereNothingRuns) {
    const Outcome recorded = run(with(""), "file");
    ASSERT_TRUE(recorded.ended_well()) << recorded.output;
    const std::string before = slurp(path());
    if (VARTML_SANITIZED) GTEST_SKIP() << "gst-inspect-1.0 cannot load an instrumented plugin";
    // gst-inspect-1.0 makes a tracer with the default file.
    const Outcome shown = shell("-C " + dir_.path() + " gst-inspect-1.0 vartmltrace");
    EXPECT_TRUE(shown.ended_well()) << shown.output;
    EXPECT_NE(shown.output.find("vartml-trace.json"), std::string::npos) << shown.output;
    EXPECT_NE(::access((dir_ / "vartml-trace.json").c_str(), F_OK), 0);
    EXPECT_TRUE(shell("GST_TRACERS='" + with("") + "' gst-inspect-1.0 --version").ended_well());
    EXPECT_EQ(slurp(path()), before);
}

TEST_F(Traces, RefuseWhatIsNoParameterOnceAndStayInactive) {
    struct Case {
        const char *parameters, *says;
    };
    const Case cases[] = {
        {"nonsense=3", "parameter 'nonsense' is unknown"},
        {"flags=frames+nonsense",
         "parameter 'flags' is frames+nonsense, expected one or more of frames+"},
        {"ring-kb=3", "parameter 'ring-kb' is 3, expected from 16 to "},
        {"max-bytes=-1", "parameter 'max-bytes' is -1, expected from "},
        {"params=3", "parameter 'params' is unknown"},
        {"flags=(int)0", "no flag of what to record is set"},
        {"what", "are not of the form"},
    };
    for (const Case& c : cases) {
        const Outcome outcome = run(with(c.parameters), "file");
        EXPECT_TRUE(outcome.ended_well()) << outcome.output;
        const size_t at = outcome.output.find(c.says);
        EXPECT_NE(at, std::string::npos) << outcome.output;
        EXPECT_EQ(outcome.output.find("WARNING", outcome.output.find("WARNING") + 1),
                  std::string::npos)
            << outcome.output;
        EXPECT_EQ(slurp(path()), "") << c.parameters;
    }
    const Outcome outcome = run("vartmltrace(file=/nowhere/trace.json)", "file");
    EXPECT_TRUE(outcome.ended_well());
    EXPECT_NE(outcome.output.find("/nowhere/trace.json"), std::string::npos) << outcome.output;
}

TEST_F(Traces, AllocateNothingInSteadyState) {
    if (VARTML_SANITIZED) GTEST_SKIP() << "a sanitizer's allocator cannot be counted";
    for (const std::string& tracers : {std::string(), with("ring-kb=4096")}) {
        const Outcome outcome = run(tracers, "allocations");
        EXPECT_TRUE(outcome.ended_well());
        EXPECT_EQ(outcome.output, "allocations 0\n");
    }
}

std::string make_model(const TempDir& dir) {
    const std::string path = dir / "tiny.onnx";
    vartml::test::TinyOnnx m;
    m.input("images", {1, 3, 16, 16}).weights("w", {4, 3, 3, 3});
    m.node("Conv", {"images", "w"}, {"c"}, {{"pads", vartml::test::TinyOnnx::Ints{1, 1, 1, 1}}});
    m.node("Sigmoid", {"c"}, {"y"}).output("y", {1, 4, 16, 16}).save(path);
    return path;
}

TEST_F(Traces, SayWhichFramesWereNotInferredAndWhatWasAllocated) {
    record("every-third " + make_model(dir_), "flags=frames+runs+allocs", "--arrows 0:30");
    std::map<std::string, unsigned> skipped;
    for (const json& e : events([](const json& e) { return e["name"] == "frame not inferred"; })) {
        EXPECT_EQ(e["cat"], "meta");
        EXPECT_EQ(e["args"]["element"], "infer");
        EXPECT_EQ(e["args"]["reason"], "skipped-interval");
        ++skipped[e["args"]["frame"]];
    }
    EXPECT_EQ(skipped.size(), 20U);
    std::set<std::string> inferred;
    for (const json& e : spans("pre-process"))  // without a frame: runs that warm up
        if (e["args"].contains("frame")) inferred.insert(e["args"]["frame"]);
    EXPECT_EQ(inferred.size(), 10U);
    const auto allocated = events([](const json& e) { return e["name"] == "allocation"; });
    EXPECT_FALSE(allocated.empty());
    for (const json& e : allocated) EXPECT_GT(e["args"]["bytes"], 0);
    const auto caps = events([](const json& e) { return e["name"] == "caps change"; });
    ASSERT_EQ(caps.size(), 1U);
    EXPECT_NE(caps[0]["args"]["caps"].get<std::string>().find("width=(int)64"), std::string::npos);
}

TEST_F(Traces, JoinElementsHostAndDeviceByFrame) {
    record("model " + make_model(dir_), "", "--arrows 0:30");

    struct Frame {
        double in = 0, out = 0;  // vartmlinfer's two spans
        std::map<std::string, json> host;
        std::vector<json> npu;
    };
    std::map<std::string, Frame> frames;
    for (const json& e : events()) {
        if (e["ph"] != "X") continue;
        const json& args = e["args"];
        if (e["name"] == "infer" && args["pad"] == "sink") frames[args["frame"]].in = e["ts"];
        if (e["name"] == "infer" && args["pad"] == "src") frames[args["frame"]].out = end_of(e);
        // The runtime's own stages are those of a job.
        if (e["cat"] == "host" && args.contains("frame") && !args.contains("jobKey"))
            frames[args["frame"]].host[e["name"]] = e;
        if (e["cat"] == "npu" && args.contains("frame")) frames[args["frame"]].npu.push_back(e);
    }
    for (const auto& [frame, share] : coverage(events(), "videotestsrc0"))
        EXPECT_NEAR(share, 1, 0.01) << frame;
    ASSERT_EQ(frames.size(), 30U);
    for (const auto& [key, frame] : frames) {
        ASSERT_GT(frame.in, 0) << key;
        for (const char* stage : {"pre-process", "submit", "post-process"}) {
            ASSERT_TRUE(frame.host.contains(stage)) << key << " " << stage;
            EXPECT_GT(frame.host.at(stage)["ts"].get<double>(), frame.in);
            // Frames are dropped nowhere: the element's own count is the number in the stream.
            EXPECT_EQ("0:" + frame.host.at(stage)["args"]["frameSeq"].dump(), key);
        }
        EXPECT_LT(end_of(frame.host.at("pre-process")), frame.host.at("submit")["ts"]);
        EXPECT_FALSE(frame.npu.empty()) << key;
        for (const json& e : frame.npu) {
            EXPECT_GT(e["ts"].get<double>(), frame.in) << e;
            EXPECT_LT(end_of(e), end_of(frame.host.at("post-process"))) << e;
        }
    }
}

}  // namespace
