// SPDX-License-Identifier: Apache-2.0
// The program vartml-demo as a user runs it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace {

namespace fs = std::filesystem;

struct Outcome {
    int status = -1;
    std::string text;  // both streams
};

Outcome run_demo(const std::string& arguments) {
    const std::string command = std::string(std::getenv("VARTML_DEMO")) + " " + arguments + " 2>&1";
    Outcome outcome;
    FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) return outcome;
    std::array<char, 4096> chunk;
    while (size_t n = fread(chunk.data(), 1, chunk.size(), pipe))
        outcome.text.append(chunk.data(), n);
    const int status = pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
}

fs::path fresh_folder(const std::string& name) {
    static const vartml::test::TempDir all;
    return all / name;
}

// Found and known of the line "codes found       12 of 13 (92.3 %)".
bool read_found(const std::string& text, unsigned& found, unsigned& known) {
    const size_t at = text.find("codes found");
    return at != std::string::npos &&
           std::sscanf(text.c_str() + at, "codes found %u of %u", &found, &known) == 2;
}

TEST(DemoProgram, SaysInOneSentenceWhatIsMissing) {
    struct Case {
        const char* arguments;
        const char* words;
        int status;
    };
    const Case cases[] = {
        {"--video nowhere.mp4", "nowhere.mp4: there is no such file", 1},
        {"--camera /dev/no-camera", "there is no camera /dev/no-camera", 1},
        {"--model nowhere.onnx", "nowhere.onnx: there is no such file", 1},
        {"--labels nowhere.txt", "nowhere.txt: there is no such file", 1},
        {"--out /proc/nothing", "/proc/nothing", 1},
        {"--what", "there is no option '--what'", 2},
    };
    for (const Case& c : cases) {
        const Outcome outcome = run_demo(c.arguments);
        EXPECT_EQ(outcome.status, c.status) << c.arguments;
        EXPECT_NE(outcome.text.find(c.words), std::string::npos) << outcome.text;
        EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
    }
}

TEST(DemoProgram, WritesOverNothingThatItReads) {
    const fs::path out = fresh_folder("own");
    fs::create_directories(out);
    for (const char* name : {"demo.mp4", "demo.png", "scene.mp4"})
        std::ofstream(out / name) << "as it was";
    for (const std::string& arguments :
         {"--video " + (out / "demo.mp4").string(), "--background " + (out / "scene.mp4").string(),
          "--background " + (out / "demo.png").string()}) {
        const Outcome outcome = run_demo(arguments + " --out " + out.string());
        EXPECT_EQ(outcome.status, 1) << arguments;
        EXPECT_NE(outcome.text.find("would be lost"), std::string::npos) << outcome.text;
        for (const char* name : {"demo.mp4", "demo.png", "scene.mp4"})
            EXPECT_EQ(fs::file_size(out / name), 9u) << name;
    }
}

TEST(DemoProgram, FindsTheCodesOfItsScene) {
    const fs::path out = fresh_folder("scene");
    const Outcome outcome = run_demo("--seconds 3 --out " + out.string());
    ASSERT_EQ(outcome.status, 0) << outcome.text;
    unsigned found = 0, known = 0;
    ASSERT_TRUE(read_found(outcome.text, found, known)) << outcome.text;
    EXPECT_GE(known, 150u);
    EXPECT_GE(found, known * 0.9) << outcome.text;
    EXPECT_GT(fs::file_size(out / "demo.mp4"), 10'000u);
    EXPECT_LT(fs::file_size(out / "demo.mp4"), 3u * 330'000) << "small enough for a mail";
    EXPECT_GT(fs::file_size(out / "demo.png"), 10'000u);
    EXPECT_NE(outcome.text.find("frames            90, inferred 90"), std::string::npos)
        << outcome.text;
}

// Photographs and clips are neither drawn by the trainer's renderer nor is the code: libqrencode
// and another warp.
TEST(DemoProgram, FindsCodesOverPicturesItWasNotTrainedOn) {
    const fs::path models = fs::path(std::getenv("VARTML_SHARED")) / "models";
    if (!fs::exists(models)) GTEST_SKIP() << models << " is absent";
    unsigned found = 0, known = 0;
    for (const char* file : {"images/yolox_dog.jpg", "images/goldfish.jpg", "images/ocr_sample.jpg",
                             "video/bottle_detection.mp4"}) {
        const Outcome outcome = run_demo("--seconds 2 --background " + (models / file).string() +
                                         " --out " + fresh_folder("background").string());
        ASSERT_EQ(outcome.status, 0) << outcome.text;
        unsigned f = 0, k = 0;
        ASSERT_TRUE(read_found(outcome.text, f, k)) << outcome.text;
        found += f, known += k;
    }
    RecordProperty("found", std::to_string(found) + " of " + std::to_string(known));
    EXPECT_GE(found, known * 0.9);
}

TEST(DemoProgram, TakesAVideoAndAModelOfTheUser) {
    const fs::path models = fs::path(std::getenv("VARTML_SHARED")) / "models";
    if (!fs::exists(models)) GTEST_SKIP() << models << " is absent";
    const Outcome outcome = run_demo(
        "--seconds 8 --video " + (models / "video/person_one_by_one.mp4").string() + " --model " +
        (models / "yolox_nano_416/model.onnx").string() + " --decoder yolox --labels " +
        (models / "images/coco.names").string() + " --out " + fresh_folder("video").string());
    ASSERT_EQ(outcome.status, 0) << outcome.text;
    EXPECT_NE(outcome.text.find("\nperson "), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("\nfound             "), std::string::npos) << outcome.text;
    // The video goes on behind the eight seconds.
    unsigned frames = 0, inferred = 0;
    const size_t line = outcome.text.find("frames            ");
    ASSERT_NE(line, std::string::npos) << outcome.text;
    EXPECT_EQ(
        std::sscanf(outcome.text.c_str() + line, "frames %u, inferred %u", &frames, &inferred), 2);
    EXPECT_EQ(frames, inferred);
}

// A folder with picture.png, drawn by these elements.
fs::path folder_with_picture(const std::string& name, const std::string& elements) {
    const fs::path folder = fresh_folder(name);
    fs::create_directories(folder);
    const std::string draw = "gst-launch-1.0 -q " + elements +
                             " ! pngenc ! filesink location=" + (folder / "picture.png").string();
    EXPECT_EQ(std::system(draw.c_str()), 0) << draw;
    return folder;
}

// An export says itself what it is: no option but the model.
TEST(DemoProgram, RunsAnUltralyticsExportWithNothingButItsName) {
    const char* const model = std::getenv("VARTML_YOLOV8_SHAPED");
    if (!model) GTEST_SKIP() << "Python has no module onnx, which makes the model";
    // A white square of 80 pixels on black, at (400, 120).
    const fs::path folder = folder_with_picture(
        "yolov8",
        "videotestsrc pattern=white num-buffers=1 ! video/x-raw,format=RGB,width=80,height=80 ! "
        "videobox left=-400 top=-120 right=-160 bottom=-280 fill=black");
    const Outcome outcome =
        run_demo("--model " + std::string(model) + " --video " + (folder / "picture.png").string() +
                 " --out " + (folder / "out").string());
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    unsigned boxes = 0;
    const size_t at = outcome.text.find("lamp ");
    ASSERT_NE(at, std::string::npos) << outcome.text;
    ASSERT_EQ(std::sscanf(outcome.text.c_str() + at, "lamp %u", &boxes), 1) << outcome.text;
    EXPECT_GE(boxes, 1u);
    EXPECT_LE(boxes, 9u) << "boxes where it is dark\n" << outcome.text;
    EXPECT_EQ(outcome.text.find("fog"), std::string::npos) << outcome.text;
}

enum class Kind { classes, map, classes_by_the_processor };

// A model of three classes: of the picture, or of each pixel. No device of ours computes Det.
std::string model_of(const fs::path& folder, const char* name, Kind kind) {
    vartml::test::TinyOnnx m;
    m.input("images", {1, 3, 16, 16}).weights("w", {3, 3, 3, 3});
    m.node("Conv", {"images", "w"}, {"c"}, {{"pads", vartml::test::TinyOnnx::Ints{1, 1, 1, 1}}});
    if (kind == Kind::map) {
        m.output("c");
    } else if (kind == Kind::classes_by_the_processor) {
        m.node("Det", {"c"}, {"s"}).output("s");
    } else {
        m.node("GlobalAveragePool", {"c"}, {"p"}).node("Flatten", {"p"}, {"s"}).output("s");
    }
    m.save(folder / name);
    return folder / name;
}

// Whatever a model finds is counted and drawn, not boxes alone.
TEST(DemoProgram, CountsClassesAndPixelsToo) {
    const fs::path folder = folder_with_picture(
        "kinds", "videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=64,height=48");
    vartml::test::spill(folder / "names", "sky\nroad\ngrass\n");
    const std::string common = " --video " + (folder / "picture.png").string() + " --labels " +
                               (folder / "names").string() + " --out " + (folder / "out").string();
    struct Case {
        Kind kind;
        const char *file, *decoder, *words;
    };
    const Case cases[] = {
        {Kind::classes, "classes.onnx", "classify", "the picture is"},
        {Kind::map, "map.onnx", "segment", "pixels of"},
        // Its outputs have a CPU view only.
        {Kind::classes_by_the_processor, "det.onnx", "classification", "the picture is"},
    };
    for (const Case& c : cases) {
        const std::string model = model_of(folder, c.file, c.kind);
        const Outcome outcome = run_demo("--model " + model + " --decoder " + c.decoder + common);
        EXPECT_EQ(outcome.status, 0) << outcome.text;
        EXPECT_NE(outcome.text.find(c.words), std::string::npos) << outcome.text;
        EXPECT_EQ(outcome.text.find("nothing was found"), std::string::npos) << outcome.text;
        EXPECT_TRUE(outcome.text.find("\nsky ") != std::string::npos ||
                    outcome.text.find("\nroad ") != std::string::npos ||
                    outcome.text.find("\ngrass ") != std::string::npos)
            << outcome.text;
        EXPECT_GT(fs::file_size(folder / "out" / "demo.png"), 0u);
    }
}

// The last good output stays, nothing is beside it.
TEST(DemoProgram, ChangesNothingWhereItFails) {
    const fs::path folder = folder_with_picture(
        "failure", "videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=64,height=48");
    const std::string model = model_of(folder, "m.onnx", Kind::classes);
    vartml::test::spill(folder / "names", "only one\n");
    vartml::test::spill(folder / "out" / "demo.png", "of another run");
    vartml::test::spill(folder / "out" / "demo.mp4", "of another run");
    const Outcome outcome = run_demo(
        "--model " + model + " --decoder classify --labels " + (folder / "names").string() +
        " --video " + (folder / "picture.png").string() + " --out " + (folder / "out").string());
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    EXPECT_NE(outcome.text.find("1 labels"), std::string::npos) << outcome.text;
    for (const char* file : {"demo.png", "demo.mp4"}) {
        EXPECT_EQ(vartml::test::slurp(folder / "out" / file), "of another run");
        EXPECT_FALSE(fs::exists(folder / "out" / (file + std::string(".part"))));
    }
}

TEST(DemoProgram, TakesPicturesOfOddSize) {
    const fs::path folder = folder_with_picture(
        "odd", "videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=333,height=201");
    const Outcome outcome =
        run_demo("--model " + std::string(std::getenv("VARTML_DEMO_MODEL")) + " --video " +
                 (folder / "picture.png").string() + " --out " + (folder / "out").string());
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    EXPECT_TRUE(fs::exists(folder / "out" / "demo.png"));
}

}  // namespace
