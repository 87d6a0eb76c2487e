// SPDX-License-Identifier: Apache-2.0
// vartml density as a user calls it, and the video as its streams send it.
#include <gst/gst.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gst/density/clip.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::test {
namespace {

using nlohmann::json;

struct Finished {
    int status = -1;
    std::string out, err;
};

bool launch(const std::string& line) {
    return std::system(("gst-launch-1.0 -q " + line).c_str()) == 0;
}

// A model and a clip, made once.
class Kitchen {
public:
    Kitchen() {
        TinyOnnx m;
        m.input("images", {1, 3, 32, 32}).floats("scores", {1, 4}, {0, 0.25f, 0.75f, 0});
        m.floats("none", {1}, {0});
        m.node("ReduceMean", {"images"}, {"mean"}, {{"keepdims", int64_t{0}}})
            .node("Mul", {"mean", "none"}, {"nothing"})
            .node("Add", {"nothing", "scores"}, {"found"})
            .output("found");
        m.save(dir_ / "model.onnx");
        spill(dir_ / "notes.mp4", "this is no video\n");
        made = launch(
                   "videotestsrc num-buffers=10 ! video/x-raw,width=64,height=64,"
                   "framerate=20/1 ! videoconvert ! vp8enc ! webmmux ! filesink location=" +
                   (dir_ / "clip.webm")) &&
               launch(
                   "videotestsrc num-buffers=1 ! video/x-raw,width=64,height=64 ! pngenc ! "
                   "filesink location=" +
                   (dir_ / "picture.png"));
    }
    std::string path() const { return dir_.path(); }
    std::string operator/(const std::string& name) const { return dir_ / name; }
    bool made = false;

private:
    TempDir dir_;
};

const Kitchen& kitchen() {
    static const Kitchen it;
    return it;
}

Finished density(const std::string& arguments) {
    const TempDir said;
    const std::string command =
        "cd '" + kitchen().path() + "' && XDG_CACHE_HOME='" + kitchen().path() + "/cache' '" +
        std::getenv("VARTML_PROGRAM") + "' density model.onnx " +
        (arguments.find("--decoder") == arguments.npos ? "--decoder classify " : "") + arguments +
        " >" + (said / "out") + " 2>" + (said / "err") + " </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(said / "out"), slurp(said / "err")};
}

// However loaded the machine is.
constexpr const char* easy = "clip.webm --p95 30000 --time 0.5 --warm-up 0.1 --most 2 ";

class Density : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(kitchen().made) << "no model or clip could be made"; }
};

TEST_F(Density, FindsHowManyStreamsAreCarriedAndWritesWhatItSaw) {
    const Finished f = density(std::string(easy) + "--json found.json");
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(f.out, "2 streams\n");
    const json found = json::parse(slurp(kitchen() / "found.json"));
    EXPECT_EQ(found["density"], 2);
    EXPECT_EQ(found["rate"], 20);
    EXPECT_FALSE(found["machine"]["cpu"].get<std::string>().empty());
    EXPECT_FALSE(found["versions"]["vartml"].get<std::string>().empty());
    const json& last = found["trials"].back();
    EXPECT_EQ(last["streams"], 2);
    EXPECT_EQ(last["lost"], 0);
    // What 2 streams send in half a second at 20 frames per second, give or take one each.
    EXPECT_NEAR(last["frames"].get<double>(), 20, 2);
    EXPECT_EQ(last["refused"], "");
    EXPECT_GT(last["p95_ms"], 0);
}

TEST_F(Density, EachStreamMayHaveAProcessOfItsOwn) {
    const Finished f = density(std::string(easy) + "--apart --rate 10 --json apart.json");
    ASSERT_EQ(f.status, 0) << f.err;
    const json found = json::parse(slurp(kitchen() / "apart.json"));
    EXPECT_EQ(found["density"], 2);
    EXPECT_EQ(found["rate"], 10);
    EXPECT_NEAR(found["trials"].back()["frames"].get<double>(), 10, 2);
}

TEST_F(Density, OfATimeThatNobodyHoldsIsNone) {
    const Finished f = density("clip.webm --p95 0.1 --time 0.5 --warm-up 0");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(f.out, "0 streams\n");
    EXPECT_NE(f.err.find("too many: p95 is above 0.1 ms"), std::string::npos) << f.err;
    // Tried once more before it is believed.
    EXPECT_EQ(f.err.find("  1 streams"), 0u);
    EXPECT_NE(f.err.rfind("  1 streams"), 0u);
}

TEST_F(Density, IsComparedWithAnEarlierFigureOfTheSameConditionsAlone) {
    ASSERT_EQ(density(std::string(easy) + "--json before.json").status, 0);
    EXPECT_EQ(density(std::string(easy) + "--against before.json").status, 0);

    json better = json::parse(slurp(kitchen() / "before.json"));
    better["rows"][0]["ours"] = 4;
    spill(kitchen() / "better.json", better.dump());
    const Finished worse = density(std::string(easy) + "--against better.json");
    EXPECT_EQ(worse.status, 1);
    EXPECT_NE(worse.out.find("worse"), std::string::npos) << worse.out;

    const Finished other = density(std::string(easy) + "--rate 10 --against before.json");
    EXPECT_EQ(other.status, 2);
    EXPECT_NE(other.err.find("no row is in both"), std::string::npos) << other.err;
}

TEST_F(Density, WritesNoFigureOverTheOneThatItIsComparedWith) {
    spill(kitchen() / "kept.json", "{\"rows\": []}");
    const Finished f = density(std::string(easy) + "--against kept.json --json ./kept.json");
    EXPECT_EQ(f.status, 2);
    EXPECT_NE(f.err.find("--json: is kept.json itself"), std::string::npos) << f.err;
    EXPECT_EQ(slurp(kitchen() / "kept.json"), "{\"rows\": []}");
}

TEST_F(Density, TakesAFileWhoseNameIsNoUtf8) {
    std::filesystem::copy_file(kitchen() / "clip.webm", kitchen() / "\xff.webm");
    const Finished f = density("\xff.webm --p95 30000 --time 0.5 --warm-up 0.1 --most 1");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(f.out, "1 stream\n");
}

TEST_F(Density, RefusesInOneSentence) {
    struct Case {
        std::string arguments, says;
        int status;
    };
    const Case cases[] = {
        {"none.mp4 --p95 100", "none.mp4: there is no such file", 1},
        {"notes.mp4 --p95 100", "notes.mp4: is no picture or video", 1},
        {"picture.png --p95 100", "picture.png: has 1 frames", 2},
        {"clip.webm", "--p95", 2},
        {"clip.webm --p95 100 --against none.json", "--against: none.json", 1},
        {"clip.webm --p95 100 --against notes.mp4", "notes.mp4: has neither rows of JSON", 2},
        {"clip.webm --p95 100 --decoder ctc-text", "ctc-text", 4},
    };
    for (const Case& c : cases) {
        const Finished f = density(c.arguments);
        EXPECT_EQ(f.status, c.status) << c.arguments << ": " << f.err;
        EXPECT_NE(f.err.find(c.says), std::string::npos) << f.err;
    }
}

TEST_F(Density, AFrameCountsAsThereWhenItCanBeShownInItsTurn) {
    gst_init(nullptr, nullptr);
    const auto clip_of = [](const std::string& encoder) {
        const TempDir dir;
        const bool made = launch(
            "videotestsrc pattern=ball num-buffers=24 ! video/x-raw,width=64,height=64,"
            "framerate=20/1 ! videoconvert ! " +
            encoder + " ! filesink location=" + (dir / "clip.mp4"));
        return made ? gst::density::read_clip(dir / "clip.mp4", 0)
                    : Result<gst::density::Clip>(Error{ErrorCode::io, "no clip"});
    };
    const auto plain = clip_of("x264enc b-adapt=false bframes=0 ! h264parse ! mp4mux");
    if (!plain) GTEST_SKIP() << "x264enc is not installed";
    ASSERT_EQ(plain->frames.size(), 24u);
    for (const auto& frame : plain->frames) EXPECT_EQ(frame.waits_for, 0u);

    const auto reordered = clip_of("x264enc b-adapt=false bframes=2 ! h264parse ! mp4mux");
    ASSERT_TRUE(reordered);
    // In turn, one becomes ready with each frame that comes.
    std::vector<std::pair<GstClockTime, size_t>> ready;
    for (size_t i = 0; i < reordered->frames.size(); ++i)
        ready.emplace_back(reordered->frames[i].pts, i + reordered->frames[i].waits_for);
    std::ranges::sort(ready);
    EXPECT_GT(ready[0].second, 0u);
    for (size_t turn = 0; turn < ready.size(); ++turn)
        EXPECT_EQ(ready[turn].second, ready[0].second + turn);
    for (size_t i = 0; i < reordered->frames.size(); ++i)
        EXPECT_EQ(ready[i].first, i * GST_SECOND / 20);
}

}  // namespace
}  // namespace vartml::test
