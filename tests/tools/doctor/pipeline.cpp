// SPDX-License-Identifier: Apache-2.0
// What the doctor says of a line of gst-launch, from what its child says of it.
#include "lib/tools/doctor/pipeline.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lib/tools/doctor/doctor.h"
#include "tests/support/temp_dir.h"

namespace vartml::doctor {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json element(const std::string& name, const std::string& factory, const std::string& kind,
             const std::vector<std::string>& feeds, const Json& properties = Json::object()) {
    return {{"kind", "element"}, {"name", name},   {"factory", factory},
            {"class", kind},     {"feeds", feeds}, {"properties", properties}};
}
Json source(const std::string& feeds) {
    return element("src", "videotestsrc", "Source/Video", {feeds});
}
Json infer(const std::string& feeds) {
    return element("infer", "vartmlinfer", "Filter/Video", {feeds}, {{"model", "m.rai"}});
}
Json decode(const std::string& feeds) {
    return element("decode", "vartmldecode", "Analyzer/Video", {feeds});
}
Json sink(const std::string& name = "sink") {
    return element(name, "fakesink", "Sink", {});
}
Json fault(const std::string& kind, const std::string& text,
           const std::vector<std::string>& names) {
    return {{"kind", "fault"}, {"fault", kind}, {"text", text}, {"names", names}};
}
Json known(const std::vector<std::string>& names) {
    return {{"kind", "known"}, {"names", names}};
}
Json message(bool error, const std::string& id, const std::string& text) {
    return {{"kind", "message"},        {"error", error}, {"element", "infer"}, {"text", text},
            {"factory", "vartmlinfer"}, {"id", id},       {"debug", ""}};
}

struct Case {
    const char* name;
    const char* line;
    std::vector<Json> said;  // by the child
    const char* level;       // of the first finding of the check; "ok": nothing is wrong
    const char* text;
    const char* change;
    const char* gstreamer = "";  // what gst-inspect calls itself; "": there is none
};

const Case cases[] = {
    {"nothing",
     "videotestsrc ! vartmlinfer model=m.rai ! vartmldecode ! fakesink",
     {source("infer"), infer("decode"), decode("sink"), sink()},
     "ok",
     "4 elements",
     ""},
    {"copied from a script",
     "gst-launch-1.0 -e -v videotestsrc ! \\\n fakesink",
     {source("sink"), sink()},
     "ok",
     "2 elements",
     ""},
    {"an element of a package",
     "x264enc",
     {fault("no-element", "no element", {"x264enc"})},
     "problem",
     "gstreamer1.0-plugins-ugly",
     "sudo apt-get install gstreamer1.0-plugins-ugly"},
    {"a misspelt element of a package that is there",
     "rtph264dpay",
     {known({"rtph264depay", "queue"}), fault("no-element", "", {"rtph264dpay"})},
     "problem",
     "did you mean 'rtph264depay'?",
     "rtph264depay"},
    {"an element of another vendor",
     "nvtracker",
     {fault("no-element", "", {"nvtracker"})},
     "problem",
     "another vendor",
     "vartmltrack"},
    {"a misspelt element",
     "vartmlinfr",
     {known({"queue", "vartmlinfer"}), fault("no-element", "", {"vartmlinfr"})},
     "problem",
     "did you mean 'vartmlinfer'?",
     "vartmlinfer"},
    {"a misspelt property",
     "",
     {known({"model", "device"}), fault("no-property", "", {"modl", "vartmlinfer"})},
     "problem",
     "vartmlinfer has no property 'modl'; did you mean 'model'?",
     "vartmlinfer model=…"},
    {"a misspelt value",
     "",
     {known({"allow", "warn", "forbid"}),
      fault("value", "", {"copy-policy", "vartmlinfer", "forbit"})},
     "problem",
     "cannot be 'forbit', expected allow, warn, forbid",
     "vartmlinfer copy-policy=forbid"},
    {"formats that do not meet",
     "",
     {fault("link", "could not link a to b", {})},
     "problem",
     "could not link a to b",
     "videoconvert"},
    {"a file that is not there",
     "",
     {element("f", "filesrc", "Source/File", {}, {{"location", "/nowhere.mp4"}})},
     "problem",
     "/nowhere.mp4",
     "filesrc location=FILE"},
    {"a camera that is not there",
     "",
     {element("c", "v4l2src", "Source/Video", {}, {{"device", "/dev/nowhere"}})},
     "problem",
     "/dev/nowhere",
     "v4l2src device="},
    {"a camera that fills dma bufs which nobody can make",
     "v4l2src device=/dev/null io-mode=dmabuf-import",
     {element("c", "v4l2src", "Source/Video", {"infer"},
              {{"device", "/dev/null"}, {"io-mode", "dmabuf-import"}}),
      infer("decode"), decode("sink"), sink()},
     "problem",
     "v4l2src 'c' fills dma-bufs of vartmlinfer, and this user may use neither",
     "v4l2src device=/dev/null io-mode=dmabuf"},
    {"a camera that gives dma bufs of its own",
     "v4l2src io-mode=dmabuf",
     {element("c", "v4l2src", "Source/Video", {"infer"},
              {{"device", "/dev/null"}, {"io-mode", "dmabuf"}}),
      infer("decode"), decode("sink"), sink()},
     "ok",
     "4 elements",
     ""},
    {"a crop between inference and decoding",
     "videocrop left=8 model=",
     {source("infer"), infer("crop"),
      element("crop", "videocrop", "Filter/Effect/Video", {"decode"}, {{"left", "8"}}),
      decode("sink"), sink()},
     "problem",
     "videocrop 'crop' stands between vartmlinfer and",
     "videocrop left=8 ! vartmlinfer model=m.rai ! vartmldecode"},
    {"a crop that tells what it does",
     "videocrop left=8 model=",
     {source("infer"), infer("crop"),
      element("crop", "videocrop", "Filter/Effect/Video", {"decode"}, {{"left", "8"}}),
      decode("sink"), sink()},
     "ok",
     "5 elements",
     "",
     "GStreamer 1.28.0"},
    {"a turn that is told",
     "videoflip method=clockwise model=",
     {source("infer"), infer("turn"),
      element("turn", "videoflip", "Filter/Effect/Video", {"decode"}, {{"method", "clockwise"}}),
      decode("sink"), sink()},
     "ok",
     "5 elements",
     "",
     "GStreamer 1.28.0"},
    {"a crop that crops nothing",
     "videocrop model=",
     {source("infer"), infer("crop"),
      element("crop", "videocrop", "Filter/Effect/Video", {"decode"}), decode("sink"), sink()},
     "ok",
     "5 elements",
     ""},
    {"a crop before inference",
     "videocrop left=8",
     {source("crop"),
      element("crop", "videocrop", "Filter/Effect/Video", {"infer"}, {{"left", "8"}}),
      infer("decode"), decode("sink"), sink()},
     "ok",
     "5 elements",
     ""},
    {"an element that makes pictures of its own",
     "compositor model=",
     {source("infer"), infer("decode"), decode("mix"),
      element("mix", "compositor", "Filter/Editor/Video/Compositor", {"draw"}),
      element("draw", "vartmloverlay", "Filter/Editor/Video", {"sink"}), sink()},
     "problem",
     "compositor 'mix' stands between vartmlinfer and vartmloverlay",
     "compositor ! vartmlinfer model=m.rai ! vartmldecode ! vartmloverlay"},
    {"an element that makes pictures of fields",
     "deinterlace model=",
     {source("infer"), infer("fields"),
      element("fields", "deinterlace", "Filter/Effect/Video/Deinterlace", {"decode"}),
      decode("sink"), sink()},
     "note",
     "where it is interlaced",
     "deinterlace ! vartmlinfer model=m.rai ! vartmldecode"},
    {"a scaler that may add borders",
     "model=",
     {source("infer"), infer("scale"),
      element("scale", "videoscale", "Filter/Video/Scaler", {"decode"}), decode("sink"), sink()},
     "note",
     "adds borders",
     "videoscale add-borders=false"},
    {"a scaler that tells of its borders",
     "model=",
     {source("infer"), infer("scale"),
      element("scale", "videoscale", "Filter/Video/Scaler", {"decode"}), decode("sink"), sink()},
     "ok",
     "5 elements",
     "",
     "GStreamer 1.28.0"},
    {"a decoder without inference",
     "",
     {source("decode"), decode("sink"), sink()},
     "problem",
     "no vartmlinfer stands before vartmldecode 'decode'",
     "vartmlinfer model=MODEL ! vartmldecode"},
    {"an overlay of another vendor",
     "videotestsrc ! nvdsosd ! fakesink",
     {fault("no-element", "no element \"nvdsosd\"", {"nvdsosd"})},
     "problem",
     "there is no element 'nvdsosd', it is of another vendor's plugins; here vartmloverlay does "
     "its "
     "work",
     "vartmloverlay"},
    {"branches without queue",
     "",
     {source("t"), element("t", "tee", "Generic", {"a", "b"}), sink("a"), sink("b")},
     "problem",
     "2 of the 2 branches of tee 't' have no queue",
     "t. ! queue ! fakesink"},
    {"branches without queue whose sinks do not wait",
     "",
     {source("t"), element("t", "tee", "Generic", {"a", "b"}),
      element("a", "fakesink", "Sink", {}, {{"async", "false"}}), sink("b")},
     "note",
     "they hold up each other",
     "t. ! queue ! fakesink"},
    {"branches with queues",
     "",
     {source("t"), element("t", "tee", "Generic", {"q", "infer"}),
      element("q", "queue", "Generic", {"b"}), infer("a"), sink("a"), sink("b")},
     "ok",
     "6 elements",
     ""},
    {"an error of an element",
     "model=",
     {infer("sink"), sink(),
      message(true, "infer-device-missing", "Could not load the model: no device 'npu'")},
     "problem",
     "no device 'npu'",
     "vartmlinfer model=m.rai device=auto"},
    {"zones in pixels that test pictures do not have",
     "model=",
     {infer("sink"), sink(),
      message(true, "zones-shape",
              "'a' has the point 900,0, expected 0,0 to 320,240 of units=pixels")},
     "note",
     "yours may differ",
     ""},
    {"a warning of an element",
     "model=",
     {infer("sink"), sink(), message(false, "infer-fallback", "3 of 4 nodes on the CPU")},
     "note",
     "3 of 4 nodes",
     "on-fallback=allow"},
    {"a value in the quotes of a shell",
     "videotestsrc ! vartmlzones zones='a=0,0 1,0 1,1' ! fakesink",
     {{{"kind", "end"}, {"trial", "timeout"}}},
     "problem",
     "stood still",
     "vartmlzones zones=\"a=0,0 1,0 1,1\" ! fakesink"},
    {"blanks within quotes",
     "gst-launch-1.0 -v  filesrc location=\"a  b.mp4\"  ! fakesink ",
     {{{"kind", "end"}, {"trial", "timeout"}}},
     "problem",
     "stood still",
     " filesrc location=\"a  b.mp4\"  ! fakesink"},
    {"a standstill",
     "",
     {{{"kind", "end"}, {"trial", "timeout"}}},
     "problem",
     "stood still",
     "GST_DEBUG="},
};

class Line : public testing::TestWithParam<Case> {
protected:
    // A child that writes what the case says, and nothing of GStreamer anywhere.
    Report examined(const Case& c) {
        std::string script = "#!/bin/sh\ncat >&3 <<'END'\n";
        for (const Json& json : c.said) script += json.dump() + "\n";
        if (c.said.back()["kind"] != "end")
            script += R"({"kind":"end","trial":"done"})"
                      "\n";
        test::spill(dir_ / "child", script + "END\n");
        fs::permissions(dir_ / "child", fs::perms::owner_all);
        Request request;
        request.pipeline = *c.line ? c.line : "fakesrc";
        request.surroundings.cache_folder = dir_ / "cache";
        request.surroundings.udmabuf = dir_ / "nowhere";
        request.surroundings.dev_folder = dir_ / "dev";
        test::spill(dir_ / "inspect", std::string("#!/bin/sh\necho '") + c.gstreamer + "'\n");
        fs::permissions(dir_ / "inspect", fs::perms::owner_all);
        request.surroundings.gst_inspect = dir_ / (*c.gstreamer ? "inspect" : "nowhere");
        request.surroundings.compiler = "/bin/true";
        request.surroundings.pipeline_program = dir_ / "child";
        request.surroundings.xrt_folders = {dir_ / "xrt"};
        return examine(request);
    }
    test::TempDir dir_;
};

TEST_P(Line, IsJudged) {
    const Case& c = GetParam();
    const Report report = examined(c);
    for (const Finding& f : report.findings) {
        if (f.check != "pipeline") continue;
        const char* levels[] = {"problem", "note", "ok"};
        // Notes come behind what is fine of other checks, and before it of this one.
        EXPECT_STREQ(levels[static_cast<int>(f.level)], c.level) << text_of(report);
        EXPECT_NE(f.text.find(c.text), f.text.npos) << f.text;
        EXPECT_NE(f.change.find(c.change), f.change.npos) << f.change;
        return;
    }
    FAIL() << "the doctor says nothing of the line";
}
INSTANTIATE_TEST_SUITE_P(All, Line, testing::ValuesIn(cases), [](const auto& info) {
    std::string name = info.param.name;
    std::ranges::replace(name, ' ', '_');
    return name;
});

TEST(ReadPipeline, SaysThatAnElementEndedItsProcess) {
    const test::TempDir dir;
    test::spill(dir / "child", "#!/bin/sh\nkill -SEGV $$\n");
    fs::permissions(dir / "child", fs::perms::owner_all);
    const auto pipeline = read_pipeline(dir / "child", "fakesrc");
    ASSERT_FALSE(pipeline);
    EXPECT_NE(pipeline.error().message.find("signal 11"), std::string::npos)
        << pipeline.error().message;
}

TEST(Packages, AreThoseOfDebian) {
    EXPECT_EQ(package_of("avdec_h264").name, "gstreamer1.0-libav");
    EXPECT_EQ(package_of("objectdetectionoverlay").name, "gstreamer1.0-plugins-bad");
    EXPECT_EQ(package_of("vapostproc").name, "gstreamer1.0-plugins-bad");
    EXPECT_EQ(package_of("vartmloverlay").name, "");
    EXPECT_EQ(package_of("nosuchelement").name, "");
}

// Each element of another vendor that draws, and one of each other kind.
TEST(Packages, OfOtherVendorsHaveTheirReplacementsHere) {
    constexpr std::pair<const char*, const char*> rows[] = {
        {"nvdsosd", "vartmloverlay"},
        {"gvawatermark", "vartmloverlay"},
        {"hailooverlay", "vartmloverlay"},
        {"vvas_xoverlay", "vartmloverlay"},
        {"nvinfer", "vartmlinfer ! vartmldecode"},
        {"nvinferserver", "vartmlinfer ! vartmldecode"},
        {"gvaclassify", "vartmlinfer inference-region=roi ! vartmldecode"},
        {"hailotracker", "vartmltrack"},
        {"hailotilecropper", "vartmlinfer inference-region=tiles"},
        {"nvdsanalytics", "vartmlzones"},
        {"tensor_decoder", "vartmldecode"},
        {"vartmloverlay", ""},
        {"textoverlay", ""},
        {"nvdsosd2", ""},
    };
    for (const auto& [element, other] : rows) EXPECT_EQ(replacement_of(element), other) << element;
}

}  // namespace
}  // namespace vartml::doctor
