// SPDX-License-Identifier: Apache-2.0
// vartml detect as a user calls it: a picture, a video, what it says and what it draws.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::test {
namespace {

namespace fs = std::filesystem;

struct Finished {
    int status = -1;
    std::string out, err;
};

// Whatever the picture is, the outputs are these numbers.
void save_fixed(const std::string& path, const TinyOnnx::Ints& shape,
                const TinyOnnx::Floats& numbers) {
    TinyOnnx m;
    m.input("images", {1, 3, 32, 32}).floats("numbers", shape, numbers).floats("none", {1}, {0});
    m.node("ReduceMean", {"images"}, {"mean"}, {{"keepdims", int64_t{0}}})
        .node("Mul", {"mean", "none"}, {"nothing"})
        .node("Add", {"nothing", "numbers"}, {"found"})
        .output("found");
    m.save(path);
}

// Models, pictures and clips, made once.
class Kitchen {
public:
    Kitchen() {
        // A box from 8,8 to 24,16 of 32x32, and rows that are none.
        TinyOnnx::Floats rows(6 * 6, 0);
        std::ranges::copy(TinyOnnx::Floats{8, 8, 24, 16, 0.9f, 1}, rows.begin());
        save_fixed(dir_ / "boxes.onnx", {1, 6, 6}, rows);
        save_fixed(dir_ / "classes.onnx", {1, 4}, {0, 0.25f, 0.75f, 0});
        save_fixed(dir_ / "thousand.onnx", {1, 1000}, TinyOnnx::Floats(1000, 0.5f));
        save_fixed(dir_ / "odd.onnx", {1, 2, 3, 5, 7}, TinyOnnx::Floats(210, 0.5f));
        spill(dir_ / "names.txt", "cat\nbox\n");
        spill(dir_ / "four.txt", "a\nb\nc\nd\n");
        spill(dir_ / "notes.jpg", "this is no picture\n");
        spill(dir_ / "empty.png", "");
        fs::create_directory(dir_ / "folder.png");
        ::mkfifo((dir_ / "pipe.png").c_str(), 0666);
        const std::string grey =
            "videotestsrc pattern=white num-buffers=%d ! "
            "video/x-raw,width=64,height=64,framerate=10/1 ! "
            "videoconvert ! ";
        const auto make = [&](const char* frames, const std::string& rest) {
            std::string line = grey;
            line.replace(line.find("%d"), 2, frames);
            return std::system(("gst-launch-1.0 -q " + line + rest).c_str()) == 0;
        };
        made = make("1", "pngenc ! filesink location=" + (dir_ / "white.png")) &&
               make("5", "vp8enc ! webmmux ! filesink location=" + (dir_ / "white.webm"));
    }
    std::string path() const { return dir_.path(); }
    bool made = false;

private:
    TempDir dir_;
};

const Kitchen& kitchen() {
    static const Kitchen it;
    return it;
}

Finished detect(const std::string& arguments) {
    const TempDir said;
    const std::string command = "cd '" + kitchen().path() + "' && XDG_CACHE_HOME='" +
                                kitchen().path() + "/cache' '" + std::getenv("VARTML_PROGRAM") +
                                "' detect " + arguments + " >" + (said / "out") + " 2>" +
                                (said / "err") + " </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(said / "out"), slurp(said / "err")};
}

constexpr const char* boxes = "boxes.onnx --decoder yolo-end2end --labels names.txt ";

class Detect : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(kitchen().made) << "no picture or clip could be made"; }
};

TEST_F(Detect, PrintsALinePerObjectOfAPicture) {
    const Finished f = detect(std::string(boxes) + "white.png");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(f.out, "box               0.90  at 16,16  size 32x16\n");
    EXPECT_NE(f.err.find("1 object: box 1\n"), std::string::npos) << f.err;
}

TEST_F(Detect, TakesAPictureByItsUri) {
    const Finished f = detect(std::string(boxes) + "file://" + kitchen().path() + "/white.png");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(f.out, "box               0.90  at 16,16  size 32x16\n");
}

TEST_F(Detect, SaysWhoseNamesClassesGet) {
    const Finished f = detect("thousand.onnx --decoder classify white.png");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_NE(f.err.find("note: model 'thousand' has no labels, so its classes get the names of "),
              std::string::npos)
        << f.err;
    EXPECT_NE(f.err.find("; --labels or x-vartml-labels gives others\n"), std::string::npos)
        << f.err;
}

TEST_F(Detect, PrintsTheTimeOfEachFrameOfAVideo) {
    const Finished f = detect(std::string(boxes) + "white.webm --frames 3");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(std::ranges::count(f.out, '\n'), 3) << f.out;
    EXPECT_NE(f.out.find("    0.100 s  box               0.90"), std::string::npos) << f.out;
    EXPECT_NE(f.err.find("3 frames"), std::string::npos) << f.err;
}

// Timestamps of what an encoder with reordered frames made begin later.
TEST_F(Detect, TimesAreThoseThatAPlayerShows) {
    ASSERT_EQ(detect(std::string(boxes) + "white.webm -o times.mp4").status, 0);
    const Finished f = detect(std::string(boxes) + "times.mp4 --frames 1");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_TRUE(f.out.starts_with("    0.000 s  ")) << f.out;
}

TEST_F(Detect, ReadsTheClassesOfAClassifier) {
    const Finished f = detect("classes.onnx --decoder classify --labels four.txt white.png");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_TRUE(f.out.starts_with("c  ")) << f.out;
}

TEST_F(Detect, DrawsIntoAFileThatIsThereWhenItIsComplete) {
    for (const char* files : {"white.png -o drawn.png", "white.png -o drawn.jpg",
                              "white.webm -o drawn.webm", "white.webm -o drawn.MP4"}) {
        const Finished f = detect(std::string(boxes) + files);
        EXPECT_EQ(f.status, 0) << files << f.err;
        const std::string file = std::string(files).substr(std::string(files).rfind(' ') + 1);
        EXPECT_NE(f.err.find("drawn into " + file), std::string::npos) << f.err;
        EXPECT_GT(fs::file_size(kitchen().path() + "/" + file), 100u) << files;
    }
    EXPECT_NE(slurp(kitchen().path() + "/drawn.png"), slurp(kitchen().path() + "/white.png"));
}

TEST_F(Detect, LeavesNothingBesideItsFileAndTouchesNothingThere) {
    const fs::path dir = fs::path(kitchen().path()) / "beside";
    fs::create_directory(dir);
    const std::string old = "what a killed run left, and files of others";
    for (const char* name : {".real.png.tmp-aB3xYz", "drawn.png.part", ".real.png.tmp-longer-one"})
        spill(dir / name, old);
    spill(dir / "real.png", old);
    fs::create_symlink("real.png", dir / "drawn.png");
    const Finished f = detect(std::string(boxes) + "white.png -o beside/drawn.png");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_TRUE(fs::is_symlink(dir / "drawn.png")) << "the link is gone";
    EXPECT_NE(slurp(dir / "real.png"), old) << "the file behind the link is not drawn";
    EXPECT_EQ(slurp(dir / "drawn.png.part"), old);
    EXPECT_EQ(slurp(dir / ".real.png.tmp-longer-one"), old);
    EXPECT_FALSE(fs::exists(dir / ".real.png.tmp-aB3xYz"));
    EXPECT_EQ(std::distance(fs::directory_iterator(dir), {}), 4) << "something is left";
}

TEST_F(Detect, WritesTheSameFileTwiceAtOnce) {
    std::string twice[2];
    const std::string arguments = std::string(boxes) + "white.webm -o twice.webm";
    {
        std::jthread other([&] { twice[0] = detect(arguments).err; });
        twice[1] = detect(arguments).err;
    }
    for (const std::string& err : twice)
        EXPECT_NE(err.find("drawn into twice.webm"), std::string::npos) << err;
    const Finished again = detect(std::string(boxes) + "twice.webm");
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_NE(again.err.find("5 frames"), std::string::npos) << again.err;
}

TEST_F(Detect, TakesNamesOfAnyBytes) {
    const std::string path = kitchen().path();
    fs::copy_file(path + "/white.png", path + "/caf\xe9 \xc3\xa9.png");
    const Finished f =
        detect(std::string(boxes) + "'caf\xe9 \xc3\xa9.png' -o 'dr\xe4wn.png' --json j\xff");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_TRUE(fs::exists(path + "/dr\xe4wn.png"));
    EXPECT_TRUE(fs::exists(path + "/j\xff"));
}

TEST_F(Detect, WritesRecordsInPlaceOfLines) {
    const Finished f = detect(std::string(boxes) + "white.webm --json -");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(std::ranges::count(f.out, '\n'), 5) << f.out;
    EXPECT_TRUE(f.out.starts_with("{\"schema\":\"vartml.frame/1\"")) << f.out;
    EXPECT_NE(f.out.find("\"box\":[16,16,32,16]"), std::string::npos) << f.out;
    const Finished both = detect(std::string(boxes) + "white.png --json found.jsonl");
    EXPECT_EQ(both.out, "box               0.90  at 16,16  size 32x16\n");
    EXPECT_EQ(std::ranges::count(slurp(kitchen().path() + "/found.jsonl"), '\n'), 1);
}

TEST_F(Detect, KeepsTheOldRecordsUntilThereAreNewOnes) {
    const std::string old = kitchen().path() + "/old.jsonl",
                      fresh = kitchen().path() + "/new.jsonl";
    spill(old, std::string(5000, 'x') + "\n");
    EXPECT_EQ(detect(std::string(boxes) + "notes.jpg --json old.jsonl").status, 1);
    EXPECT_EQ(detect(std::string(boxes) + "notes.jpg --json new.jsonl").status, 1);
    EXPECT_EQ(slurp(old).size(), 5001u);
    EXPECT_FALSE(fs::exists(fresh));
    EXPECT_EQ(detect(std::string(boxes) + "white.png --json old.jsonl").status, 0);
    EXPECT_TRUE(slurp(old).starts_with("{\"schema\":")) << slurp(old).substr(0, 100);
    EXPECT_EQ(std::ranges::count(slurp(old), '\n'), 1);
    EXPECT_EQ(detect(std::string(boxes) + "white.png --json /dev/null").status, 0);
}

TEST_F(Detect, SaysThatNothingIsFound) {
    const Finished f = detect(std::string(boxes) + "white.png --threshold 0.95");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(f.out, "");
    EXPECT_NE(f.err.find("nothing found"), std::string::npos) << f.err;
}

struct Refusal {
    std::string arguments;
    int status;
    const char* words;
};

TEST_F(Detect, RefusesInOneSentence) {
    const std::string b = boxes;
    const Refusal refusals[] = {
        {"boxes.onnx", 2, "SOURCE is required"},
        {b + "''", 2, "SOURCE: is ''"},
        {"'' white.png", 2, "MODEL: is ''"},
        {b + "nowhere.png", 1, "nowhere.png: there is no such file; give a picture"},
        {b + "/dev/video987", 1, "there is no camera /dev/video987"},
        {b + "987", 1, "there is no camera /dev/video987"},
        {b + "/dev/null", 1, "/dev/null: the camera gives no pictures"},
        {b + ".", 2, "a folder; give one of its files"},
        {b + "notes.jpg", 1, "notes.jpg: is no picture or video that can be decoded"},
        {b + "notes.jpg", 1, "; give a picture (JPEG, PNG), a video file, a camera or a URI"},
        {b + "empty.png", 1, "empty.png: is empty, expected a picture or a video"},
        {"nowhere.rai white.png", 1, "nowhere.rai: no such file"},
        {"notes.jpg white.png", 4, "notes.jpg"},
        {b + "white.png -o drawn.gif", 2, "expected a name that ends in .jpg or .png"},
        {b + "white.png -o nowhere/drawn.png", 1, "nowhere does not exist; make it first"},
        {b + "white.png -o white.png", 2, "-o: is white.png itself"},
        {b + "white.png -o folder.png", 2, "-o: is 'folder.png', which is a folder"},
        {b + "white.png -o pipe.png", 2, "-o: is 'pipe.png', which is a pipe or device"},
        {b + "white.webm --json white.webm", 2, "--json: is white.webm itself"},
        {b + "white.webm --json ./boxes.onnx", 2, "--json: is boxes.onnx itself"},
        {b + "white.webm --json names.txt", 2, "--json: is names.txt itself"},
        {b + "file://white.webm --json white.webm", 2, "--json: is white.webm itself"},
        {b + "file://localhost" + kitchen().path() + "/white%2Ewebm --json white.webm", 2,
         "white.webm itself"},
        {b + "rtsp://ann:secret@127.0.0.1:1/cam", 1, "rtsp://127.0.0.1:1/cam: "},
        {b + "white.webm -o new.mp4 --json ./new.mp4", 2, "--json: is ./new.mp4, which -o draws"},
        {b + "white.png -o drawn.mp4", 2, "let it end in .jpg or .png"},
        {b + "white.webm -o drawn.png", 2, "let it end in .mp4, .mkv or .webm"},
        {"boxes.onnx white.png --labels nowhere.txt", 1,
         "--labels: nowhere.txt: there is no such file"},
        {"boxes.onnx --decoder yolo-v99 white.png", 2, "--decoder: is 'yolo-v99', expected one of"},
        {"odd.onnx white.png", 4, "vartml run --save-outputs"},
    };
    for (const Refusal& r : refusals) {
        const Finished f = detect(r.arguments);
        EXPECT_EQ(f.status, r.status) << r.arguments << ": " << f.err;
        EXPECT_EQ(f.err.find("secret"), std::string::npos) << f.err;
        const size_t at = f.err.find("ERROR: ");
        ASSERT_NE(at, std::string::npos) << r.arguments << ": " << f.err;
        EXPECT_NE(f.err.find(r.words, at), std::string::npos) << r.arguments << ": " << f.err;
        EXPECT_EQ(f.err.find('\n', at), f.err.size() - 1) << f.err;
    }
    for (const auto& entry : fs::directory_iterator(kitchen().path()))
        EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << entry.path();
}

}  // namespace
}  // namespace vartml::test
