// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/doctor/doctor.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/base/test_seams.h"
#include "lib/model/compiled_model.h"
#include "lib/model/containers.h"
#include "lib/tools/doctor/checks.h"
#include "lib/trace/pmu.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::doctor {
namespace {

namespace fs = std::filesystem;
using test::TinyOnnx;

// Answers as gst-inspect-1.0 does where the plugin is found.
constexpr const char* finds = R"(#!/bin/sh
case $1 in
--version) echo "gst-inspect-1.0 version 1.26.2"; echo "GStreamer 1.26.2" ;;
esac
)";
constexpr const char* finds_nothing = R"(#!/bin/sh
case $1 in
--version) echo "gst-inspect-1.0 version 1.26.2"; echo "GStreamer 1.26.2" ;;
-b) echo "Total count: 0 blacklisted files" ;;
*) echo "No such element or plugin '$1'"; exit 255 ;;
esac
)";
constexpr const char* blacklists = R"(#!/bin/sh
case $1 in
--version) echo "gst-inspect-1.0 version 1.26.2"; echo "GStreamer 1.26.2" ;;
-b) echo "Blacklisted files:"; echo "  libgstvartml.so" ;;
*) exit 255 ;;
esac
)";

class Doctor : public testing::Test {
protected:
    void SetUp() override {
        const char* program = std::getenv("VARTML_PROGRAM");
        ASSERT_TRUE(program) << "set VARTML_PROGRAM to the program vartml";
        request_.surroundings = {.cache_folder = dir_ / "cache",
                                 .udmabuf = dir_ / "udmabuf",
                                 .gst_inspect = script(finds),
                                 .compiler = program,
                                 .plugin_folder = "/opt/plugins",
                                 .pipeline_program = "",
                                 .dev_folder = dir_ / "dev",
                                 .xrt_folders = {dir_ / "xrt"}};
        test::spill(dir_ / "udmabuf", "");
    }

    std::string script(const char* text) {
        test::spill(dir_ / "gst-inspect-1.0", text);
        fs::permissions(dir_ / "gst-inspect-1.0", fs::perms::owner_all);
        return dir_ / "gst-inspect-1.0";
    }

    // A picture model, with an operator of its own between in and out where one is named.
    std::string model(const std::string& kind = "Relu") {
        TinyOnnx m;
        m.input("images", {1, 3, 16, 16}).weights("w", {8, 3, 3, 3});
        m.node("Conv", {"images", "w"}, {"c"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}})
            .node(kind, {"c"}, {"r"})
            .output("r");
        m.save(dir_ / "shelf.onnx");
        return dir_ / "shelf.onnx";
    }

    // The only problem; an empty one where there is none, or more.
    Finding problem() {
        const Report report = examine(request_);
        text_ = text_of(report);
        if (report.problems() != 1) return {};
        return report.findings[0];  // problems come first
    }

    // The findings of a level and a check, one text per line.
    std::string findings(Level level, const std::string& check) {
        std::string all;
        const Report report = examine(request_);
        text_ = text_of(report);
        for (const Finding& f : report.findings)
            if (f.level == level && f.check == check) all += f.text + " | " + f.change + "\n";
        return all;
    }

    test::TempDir dir_;
    Request request_;
    std::string text_;  // of the last report
};

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST_F(Doctor, SaysNothingBesideItsReport) {
    request_.models = {model()};
    testing::internal::CaptureStderr();
    const Report report = examine(request_);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(report.problems(), 0u) << text_of(report);
}

TEST_F(Doctor, FindsNoProblemWhereAllIsWell) {
    request_.models = {model()};
    const Report report = examine(request_);
    EXPECT_EQ(report.problems(), 0U) << text_of(report);
    EXPECT_TRUE(text_of(report).ends_with("no problem\n"));
    EXPECT_EQ(report.facts.at("model_device"), "softnpu");
    EXPECT_EQ(report.facts.at("model_compute_type"), report.facts.at("compute_type"));
    for (const char* text : {"runs it", "fits:", "all operators run on the NPU",
                             "every input and output has a HW view", "GStreamer 1.26.2 finds"})
        EXPECT_TRUE(contains(text_of(report), text)) << text << "\n" << text_of(report);
}

// What an NPU partition takes is held against the device, what a CPU partition takes against this
// machine alone.
TEST_F(Doctor, HoldsMemoryAgainstWhomItIsOf) {
    const std::string program = request_.surroundings.compiler, onnx = model("Det");
    const std::string place = dir_ / "shelf.rai", other = dir_ / "large.rai";
    ASSERT_EQ(
        std::system(("'" + program + "' compile -q '" + onnx + "' -o '" + place + "'").c_str()), 0);
    const auto small = artifact::read(place);
    ASSERT_TRUE(small) << small.error().message;
    using Kind = artifact::PartitionKind;
    constexpr uint64_t above_the_device = uint64_t{3} << 30, above_all = uint64_t{1} << 39;
    struct Row {
        Kind kind;
        uint64_t arena;
        const char* words;  // of a problem, or
        const char* never;
    };
    const Row rows[] = {
        {Kind::npu, above_the_device, "does not fit: weights and intermediate tensors take",
         "none"},
        {Kind::npu, above_all, "and softnpu has 2048", "and this machine has"},
        {Kind::cpu, above_all, "and this machine has", "and softnpu has"},
        {Kind::cpu, above_the_device, "", "and softnpu has"},
    };
    for (const Row& row : rows) {
        artifact::CompiledModel large = *small;
        bool found = false;
        for (artifact::Partition& p : large.partitions) {
            if (p.kind != row.kind) continue;
            p.arena_size_bytes = row.arena;
            found = true;
        }
        ASSERT_TRUE(found) << "no such partition";
        fs::remove(other);
        const auto written = artifact::write_rai(large, other);
        ASSERT_TRUE(written) << written.error().message;
        request_.models = {other};
        const std::string text = text_of(examine(request_));
        EXPECT_TRUE(contains(text, row.words)) << text;
        EXPECT_FALSE(contains(text, row.never)) << text;
    }
}

// As a run will say it.
TEST_F(Doctor, SaysWhichCountersProfilingWillNotHave) {
    const auto refuse = [](perf_event_attr&, int) {
        errno = ENOENT;
        return -1;
    };
    test_seams.open_counter = refuse;
    EXPECT_EQ(findings(Level::note, "counters"),
              "profiling will not count cpu-cycles, instructions, ref-cycles, LLC-loads, "
              "LLC-load-misses, LLC-stores, LLC-store-misses: not supported by the processor or "
              "virtual machine | \n");
    EXPECT_EQ(findings(Level::fine, "counters"),
              "profiling counts context-switches, page-faults | \n");
    const auto forbid = [](perf_event_attr&, int) {
        errno = EACCES;
        return -1;
    };
    test_seams.open_counter = forbid;
    EXPECT_NE(findings(Level::note, "counters").find(profiling::pmu_reason(EACCES)),
              std::string::npos);
    test_seams.open_counter = nullptr;
    EXPECT_EQ(findings(Level::problem, "counters"), "");
}

TEST_F(Doctor, NamesAPluginThatIsNotOnThePath) {
    request_.surroundings.gst_inspect = script(finds_nothing);
    const Finding found = problem();
    EXPECT_EQ(found.check, "plugin") << text_;
    EXPECT_EQ(found.change, "export GST_PLUGIN_PATH=/opt/plugins");
}

TEST_F(Doctor, NamesAPluginOnTheBlackList) {
    request_.surroundings.gst_inspect = script(blacklists);
    const Finding found = problem();
    EXPECT_EQ(found.check, "plugin") << text_;
    EXPECT_TRUE(contains(found.text, "black list")) << found.text;
    EXPECT_TRUE(contains(found.change, "registry")) << found.change;
}

// A plugin that cannot be loaded makes GStreamer's own program warn first.
TEST_F(Doctor, BeginsNoSentenceWithAWarningOfGStreamer) {
    request_.surroundings.gst_inspect = script(
        (std::string("#!/bin/sh\necho '(gst-inspect-1.0:7): GStreamer-WARNING **: Failed to load "
                     "plugin'\n") +
         std::string(blacklists).substr(std::string(blacklists).find('\n') + 1))
            .c_str());
    const Finding found = problem();
    EXPECT_TRUE(found.text.starts_with("GStreamer 1.26.2 keeps libgstvartml.so")) << text_;
}

TEST_F(Doctor, IsContentWithoutGStreamer) {
    request_.surroundings.gst_inspect = dir_ / "nowhere";
    EXPECT_TRUE(contains(findings(Level::note, "plugin"), "gstreamer1.0-tools")) << text_;
    EXPECT_EQ(examine(request_).problems(), 0U);
}

TEST_F(Doctor, NamesACompilerThatIsNotThere) {
    request_.surroundings.compiler = "/nowhere/vartml";
    const Finding found = problem();
    EXPECT_EQ(found.check, "compiler") << text_;
    EXPECT_TRUE(contains(found.text, "/nowhere/vartml")) << found.text;
    EXPECT_TRUE(contains(found.change, "export VARTML_COMPILER=")) << found.change;
}

TEST_F(Doctor, NamesACompilerThatIsAnotherProgram) {
    request_.surroundings.compiler = "/bin/false";
    const Finding found = problem();
    EXPECT_EQ(found.check, "compiler") << text_;
    EXPECT_TRUE(contains(found.text, "/bin/false: is not the program vartml")) << found.text;
    EXPECT_TRUE(contains(found.change, "export VARTML_COMPILER=")) << found.change;
}

TEST_F(Doctor, NamesACacheFolderThatCannotBeWritten) {
    request_.surroundings.cache_folder = "/dev/null/cache";
    const Finding found = problem();
    EXPECT_EQ(found.check, "cache") << text_;
    EXPECT_TRUE(contains(found.text, "/dev/null/cache")) << found.text;
    EXPECT_TRUE(contains(found.change, "export XDG_CACHE_HOME=")) << found.change;
}

TEST_F(Doctor, SaysHowToExportDmaBufs) {
    fs::remove(dir_ / "udmabuf");
    EXPECT_TRUE(contains(findings(Level::note, "memory"), "sudo modprobe udmabuf")) << text_;
    EXPECT_EQ(examine(request_).problems(), 0U);
}

TEST_F(Doctor, NamesXrtThatDoesNotFit) {
    // No module: XRT is there, and nothing uses it. It is asked for again each time.
    unsetenv("VARTML_XRT_MODULE");
    EXPECT_TRUE(contains(findings(Level::fine, "xrt"), "not installed")) << text_;
    test::spill(dir_ / "xrt/libxrt_coreutil.so.2.14.354", "");
    test::spill(dir_ / "module.so", "no module");
    setenv("VARTML_XRT_MODULE", (dir_ / "module.so").c_str(), 1);
    const Finding found = problem();
    unsetenv("VARTML_XRT_MODULE");
    EXPECT_EQ(found.check, "xrt") << text_;
    EXPECT_TRUE(contains(found.text, "XRT 2.14 (")) << found.text;
    EXPECT_TRUE(contains(found.text, "does not fit this package: ")) << found.text;
    EXPECT_TRUE(contains(found.text, "module.so")) << found.text;
}

TEST_F(Doctor, ListsDeviceNodesAndWhoMayOpenThem) {
    EXPECT_TRUE(contains(findings(Level::fine, "nodes"), "no GPUs")) << text_;
    test::spill(dir_ / "dev/dri/renderD128", "");
    test::spill(dir_ / "dev/dma_heap/system", "");
    const std::string fine = findings(Level::fine, "nodes");
    EXPECT_TRUE(contains(fine, "GPUs: " + (dir_ / "dev/dri/renderD128"))) << text_;
    EXPECT_TRUE(contains(fine, "heaps of DMA-BUFs: " + (dir_ / "dev/dma_heap/system"))) << text_;
    // A link to nowhere is closed to every user, root too.
    fs::create_symlink("/nowhere/video", dir_ / "dev/video0");
    const std::string notes = findings(Level::note, "nodes");
    EXPECT_TRUE(contains(notes, "may not open: " + (dir_ / "dev/video0"))) << text_;
    EXPECT_TRUE(contains(notes, "sudo usermod -aG video")) << text_;
}

TEST_F(Doctor, NamesAPluginOfAnotherVersion) {
    request_.surroundings.gst_inspect = script(R"(#!/bin/sh
case $1 in
--version) echo "gst-inspect-1.0 version 1.26.2"; echo "GStreamer 1.26.2" ;;
*) echo "Plugin Details:"; echo "  Filename   /old/libgstvartml.so"; echo "  Version    0.1.0" ;;
esac
)");
    const Finding found = problem();
    EXPECT_EQ(found.check, "plugin") << text_;
    EXPECT_TRUE(contains(found.text, "/old/libgstvartml.so, which is of version 0.1.0"))
        << found.text;
}

TEST_F(Doctor, NamesAGStreamerThatIsTooOld) {
    request_.surroundings.gst_inspect = script(R"(#!/bin/sh
echo "gst-inspect-1.0 version 1.22.0"; echo "GStreamer 1.22.0"
)");
    const Finding found = problem();
    EXPECT_EQ(found.check, "gstreamer") << text_;
    EXPECT_TRUE(contains(found.text, "1.22.0 is too old")) << found.text;
}

TEST_F(Doctor, NamesTheTracerThatDeadlocks) {
    ::setenv("GST_TRACERS", "latency", 1);
    const Finding found = problem();
    ::unsetenv("GST_TRACERS");
    EXPECT_EQ(found.check, "gstreamer") << text_;
    EXPECT_EQ(found.change, "unset GST_TRACERS");
}

TEST_F(Doctor, LooksAtEveryModel) {
    request_.models = {model(), dir_ / "nowhere.rai"};
    const Finding found = problem();
    EXPECT_TRUE(contains(found.text, "nowhere.rai: ")) << text_;
    EXPECT_TRUE(contains(text_, "shelf.onnx: input 'images' is the picture, 16x16")) << text_;
}

TEST_F(Doctor, NamesAWrongKeyOfASidecarAndTheOneThatWasMeant) {
    request_.models = {model()};
    test::spill(dir_ / "shelf.modelinfo", "[modelinfo]\nversion=1.0\nx-vartml-decodr=ssd\n");
    const Finding found = problem();
    EXPECT_EQ(found.check, "model") << text_;
    EXPECT_TRUE(contains(found.text, "did you mean 'x-vartml-decoder'?")) << found.text;
}

// Of a model that cannot be compiled the change is the way out, not the command that failed.
TEST(WayOut, IsTheEndOfTheSentence) {
    struct Case {
        const char *sentence, *change;
    };
    const Case cases[] = {
        {"m.onnx: node 'x' uses Odd (opset 13), which nothing runs; replace it with standard "
         "operators, or split the model at tensor 'p'\nm.onnx: node 'y' uses Odder; split it",
         "replace it with standard operators, or split the model at tensor 'p'"},
        {"m.onnx: input 'images' has the symbolic dimension 'h' (axis 2); give --input-shape "
         "images:N,3,<h>,<w> to vartml compile",
         "vartml compile m.onnx --input-shape images:N,3,<h>,<w>"},
        {"m.onnx: ends after 7 bytes in the middle of the model; copy or export it again",
         "copy or export it again"},
        {"m.onnx: cannot be opened: No such file or directory", "ls -l m.onnx"},
    };
    for (const Case& c : cases) EXPECT_EQ(way_out(c.sentence, "m.onnx"), c.change);
    EXPECT_EQ(way_out("it's m.onnx: cannot be opened", "it's m.onnx"), "ls -l 'it'\\''s m.onnx'");
}

TEST_F(Doctor, NamesASectionOfASidecarThatIsOfNoTensor) {
    request_.models = {model()};
    test::spill(dir_ / "shelf.modelinfo", "[imagez]\ndir=input\nx-vartml-mean=1\n");
    const Finding found = problem();
    EXPECT_EQ(found.check, "model") << text_;
    EXPECT_TRUE(contains(found.text, "did you mean [images]?")) << found.text;
}

TEST_F(Doctor, NamesPixelsThatNobodyVouchesFor) {
    TinyOnnx m;
    m.input("images", {1, 3, 16, 16}).weights("w", {1000, 3, 16, 16});
    m.node("Conv", {"images", "w"}, {"c"}).node("Flatten", {"c"}, {"y"}).output("y");
    m.save(dir_ / "classes.onnx");
    request_.models = {dir_ / "classes.onnx"};
    const std::string notes = findings(Level::note, "model");
    EXPECT_TRUE(contains(notes, "pictures are fed as rgb, crop 0.875, mean 123.675")) << text_;
    EXPECT_TRUE(contains(notes, "[images]\ndir=input\nx-vartml-resize=")) << text_;
}

// [1,6,84] is a YOLO v8 head of 64x64 by its shape, whose models all take RGB from 0 to 1.
TEST_F(Doctor, NamesPixelsThatAreNotThoseOfTheDecoder) {
    TinyOnnx m;
    m.input("images", {1, 3, 64, 64}).weights("w", {6 * 84, 3, 64, 64});
    m.ints("head", {3}, {1, 6, 84});
    m.node("Conv", {"images", "w"}, {"c"}).node("Reshape", {"c", "head"}, {"y"}).output("y");
    m.save(dir_ / "like.onnx");
    request_.models = {dir_ / "like.onnx"};
    struct Case {
        const char *keys, *said;
    };
    const Case cases[] = {
        {"x-vartml-channels=bgr\n", "pictures are fed as bgr, letterbox, mean 0, scale 0.0039"},
        {"x-vartml-mean=127.5\nx-vartml-scale=0.0078\n",
         "pictures are fed as rgb, letterbox, mean 127.5, scale 0.0078"},
        {"x-vartml-mean=0\nx-vartml-scale=0.00390625\n", ""},
        {"", ""},
    };
    for (const Case& c : cases) {
        test::spill(dir_ / "like.modelinfo", std::string("[images]\ndir=input\n") + c.keys);
        const std::string notes = findings(Level::note, "model");
        EXPECT_EQ(contains(notes,
                           "models of decoder yolo-v8 take rgb, letterbox, mean 0, scale "
                           "0.0039"),
                  *c.said != 0)
            << c.keys << text_;
        EXPECT_TRUE(!*c.said || contains(notes, c.said)) << c.keys << text_;
    }
}

// [1,6,84] is a YOLO v8 head of 64x64 by its shape; its numbers are pixels in 0 to 3.
TEST_F(Doctor, NamesNumbersThatAreNotWhatTheShapesPromise) {
    TinyOnnx m;
    m.input("images", {1, 3, 64, 64}).ints("flat", {3}, {1, 3, 4096}).ints("head", {3}, {1, 6, 84});
    m.ints("begin", {1}, {0}).ints("end", {1}, {168}).ints("axis", {1}, {2});
    m.floats("three", {1}, {3});
    m.node("Mul", {"images", "three"}, {"bright"})
        .node("Reshape", {"bright", "flat"}, {"f"})
        .node("Slice", {"f", "begin", "end", "axis"}, {"s"})
        .node("Reshape", {"s", "head"}, {"y"})
        .output("y")
        .save(dir_ / "like.onnx");
    request_.models = {dir_ / "like.onnx"};
    const Finding found = problem();
    EXPECT_EQ(found.id, "dec-implausible") << text_;
    EXPECT_TRUE(contains(found.text, "decoder yolo-v8 does not fit the numbers")) << found.text;
}

// What the element warns of.
TEST_F(Doctor, NamesWhatNumbersAreTakenFor) {
    TinyOnnx m;
    m.input("images", {1, 3, 64, 64}).weights("w", {1, 3, 1, 1});
    m.node("Conv", {"images", "w"}, {"map"}).output("map").save(dir_ / "map.onnx");
    request_.models = {dir_ / "map.onnx"};
    const std::string notes = findings(Level::note, "model");
    EXPECT_TRUE(contains(notes, "the map of output 'map' is taken for the mask of one class"))
        << text_;
    EXPECT_TRUE(contains(notes, "put vartmlpicture in the place of vartmldecode")) << text_;
    test::spill(dir_ / "map.modelinfo", "[modelinfo]\nversion=1.0\nx-vartml-labels=road\n");
    EXPECT_FALSE(contains(findings(Level::note, "model"), "is taken for")) << text_;
}

// The change is what to run, not the end of the sentence once more.
TEST_F(Doctor, NamesThePictureThatAModelGives) {
    TinyOnnx m;
    m.input("images", {1, 1, 16, 16}).weights("w", {1, 1, 3, 3});
    m.node("ConvTranspose", {"images", "w"}, {"y"}, {{"strides", TinyOnnx::Ints{3, 3}}})
        .output("y")
        .save(dir_ / "larger.onnx");
    request_.models = {dir_ / "larger.onnx"};
    const std::string notes = findings(Level::note, "model");
    EXPECT_TRUE(contains(notes, "a picture 3 times as large as the input of 16x16")) << text_;
    EXPECT_TRUE(contains(notes, " | vartmlpicture")) << text_;
}

TEST_F(Doctor, NamesAnInputThatNothingFeeds) {
    TinyOnnx m;
    m.input("images", {1, 3, 16, 16}).input("size", {1, 3, 1, 1});
    m.node("Mul", {"images", "size"}, {"y"}).output("y").save(dir_ / "sized.onnx");
    request_.models = {dir_ / "sized.onnx"};
    const Finding found = problem();
    EXPECT_EQ(found.id, "infer-inputs") << text_;
    EXPECT_TRUE(contains(found.text, "input 'size'")) << found.text;
    EXPECT_TRUE(found.change.starts_with("[size]\ndir=input\nx-vartml-feed=")) << found.change;
}

// What vartmlinfer takes as a picture is one here.
TEST_F(Doctor, KnowsWhichInputIsAPicture) {
    const struct {
        std::vector<TinyOnnx::Dim> shape;
        const char* level;  // of what is said
    } rows[] = {{{1, 1, 16, 16}, "picture"}, {{1, 3, 16, 16}, "picture"},
                {{1, 2, 16, 16}, "note"},    {{1, 4, 16, 16}, "note"},
                {{2, 3, 16, 16}, "note"},    {{1, 16, 16, 3}, "picture"}};
    for (const auto& row : rows) {
        TinyOnnx m;
        m.input("x", row.shape).node("Relu", {"x"}, {"y"}).output("y").save(dir_ / "one.onnx");
        request_.models = {dir_ / "one.onnx"};
        text_ = text_of(examine(request_));
        EXPECT_EQ(contains(text_, "input 'x' is the picture"), row.level == std::string("picture"))
            << text_;
        EXPECT_EQ(contains(text_, "no input is a picture"), row.level == std::string("note"))
            << text_;
    }
    // Of two that are none, each is to be fed.
    TinyOnnx m;
    m.input("a", {1, 2, 16, 16}).input("b", {1, 2, 16, 16});
    m.node("Add", {"a", "b"}, {"y"}).output("y").save(dir_ / "two.onnx");
    request_.models = {dir_ / "two.onnx"};
    const Report report = examine(request_);
    EXPECT_EQ(report.problems(), 2u) << text_of(report);
    EXPECT_FALSE(contains(text_of(report), "no input is a picture")) << text_of(report);
}

TEST_F(Doctor, NamesAModelThatIsNotThere) {
    request_.models = {dir_ / "nowhere.rai"};
    const Finding found = problem();
    EXPECT_EQ(found.check, "model") << text_;
    EXPECT_TRUE(contains(found.text, "nowhere.rai")) << found.text;
    EXPECT_TRUE(contains(found.change, "nowhere.rai")) << found.change;
}

TEST_F(Doctor, NamesADamagedModel) {
    request_.models = {dir_ / "bad.rai"};
    test::spill(dir_ / "bad.rai", "nonsense");
    const Finding found = problem();
    EXPECT_EQ(found.check, "model") << text_;
    EXPECT_EQ(found.change, "vartml compile MODEL.onnx -o MODEL.rai");  // bad.rai may be a picture
}

TEST_F(Doctor, NamesAnOperatorThatCannotBeCompiled) {
    request_.models = {model("NoSuchOperator")};
    const Finding found = problem();
    EXPECT_EQ(found.check, "model") << text_;
    EXPECT_TRUE(contains(found.text, "NoSuchOperator")) << found.text;
}

TEST_F(Doctor, NamesOperatorsOnTheCpuAndViewsThatAreCopied) {
    request_.models = {model("Det")};  // an operator that goes into a CPU partition
    const std::string notes = findings(Level::note, "model");
    EXPECT_TRUE(contains(notes, "on the CPU, the first Det")) << text_;
    EXPECT_TRUE(contains(notes, "output 'r' has a CPU view only")) << text_;
    EXPECT_TRUE(contains(notes, "vartmlinfer output-tensor-type=auto")) << text_;
}

TEST_F(Doctor, NamesDamagedPeaksAndReadsGoodOnes) {
    const PeaksKey key = peaks_key();
    EXPECT_TRUE(contains(findings(Level::note, "peaks"), "vartml doctor --calibrate")) << text_;
    test::spill(peaks_path(key, dir_ / "cache"), "{");
    const Finding found = problem();
    EXPECT_EQ(found.check, "peaks") << text_;
    EXPECT_EQ(found.change, "vartml doctor --calibrate");
    ASSERT_TRUE(write_peaks({key, 2e11, {}, {}, 1e10}, dir_ / "cache"));
    EXPECT_TRUE(contains(findings(Level::fine, "peaks"), "bf16 absent, fp32 200.0 Gop/s")) << text_;
}

TEST_F(Doctor, SaysTheSameInJson) {
    request_.surroundings.compiler = "/nowhere/vartml";
    const Report report = examine(request_);
    const auto json = nlohmann::json::parse(json_of(report));
    EXPECT_EQ(json["problems"], 1);
    ASSERT_EQ(json["findings"].size(), report.findings.size());
    EXPECT_EQ(json["findings"][0]["level"], "problem");
    EXPECT_EQ(json["findings"][0]["check"], "compiler");
    EXPECT_EQ(json["findings"][0]["change"], report.findings[0].change);
    EXPECT_EQ(json["facts"]["threads"], report.facts.at("threads"));
}

}  // namespace
}  // namespace vartml::doctor
