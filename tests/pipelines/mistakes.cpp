// SPDX-License-Identifier: Apache-2.0
// The 20 commonest mistakes: each ends the pipeline with a stable id and one sentence that names
// what is wrong, and `vartml doctor` names it first, with the line to change.
#include <gst/gst.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<const char*>;

struct Finished {
    int status = -1;
    std::string out;  // of both streams
};

// One that has not ended after a minute and a half is killed, and where it waits is in the output.
std::string with_stacks(const std::string& command) {
    return command +
           " & stuck=$!; sleep 90 && { gdb -batch -p $stuck -ex 'thread apply all bt'; "
           "kill -KILL $stuck; } >&2 & watch=$!; wait $stuck; ended=$?; "
           "pkill -P $watch; (exit $ended)";
}

// In the folder of the models, so that paths are short. gst-launch-1.0 of GStreamer 1.26 sometimes
// misses an error at the start and waits for ever, with whatever elements: it may do so once.
Finished run(const std::string& folder, const std::string& command, bool again = true) {
    const TempDir dir;
    const int status = std::system(("cd '" + folder + "' && { " + with_stacks(command) + "; } >" +
                                    (dir / "out") + " 2>&1 </dev/null")
                                       .c_str());
    const Finished ended{WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(dir / "out")};
    if (ended.status != 128 + SIGKILL || !again) return ended;
    std::puts(ended.out.c_str());  // the stacks
    return run(folder, command, false);
}

std::string program() {
    const char* path = std::getenv("VARTML_PROGRAM");
    return path ? path : "vartml";
}

// A classifier of ten classes on pictures of 16x16.
TinyOnnx classifier() {
    TinyOnnx m;
    m.input("images", {1, 3, 16, 16}).weights("w", {10, 3, 3, 3});
    m.node("Conv", {"images", "w"}, {"c"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}})
        .node("GlobalAveragePool", {"c"}, {"p"});
    return m;
}

TinyOnnx with_last(TinyOnnx m, const char* op, const std::vector<std::string>& inputs) {
    m.node(op, inputs, {"scores"}).output("scores");
    return m;
}

// 336 positions of 84 numbers: YOLOX with 79 classes, or YOLO v8 transposed with 80.
TinyOnnx two_decoders() {
    TinyOnnx m;
    m.input("images", {1, 3, 128, 128})
        .weights("w", {3, 336 * 84})
        .ints("shape", {3}, {1, 336, 84});
    m.node("GlobalAveragePool", {"images"}, {"p"})
        .node("Flatten", {"p"}, {"f"})
        .node("MatMul", {"f", "w"}, {"s"});
    m.node("Reshape", {"s", "shape"}, {"head"}).output("head");
    return m;
}

// What the rows below use, made once.
class Kitchen {
public:
    Kitchen() {
        setenv("XDG_RUNTIME_DIR", dir_.path().c_str(), 1);  // columns of other tests
        with_last(classifier(), "Flatten", {"p"}).save(dir_ / "m.onnx");
        with_last(classifier(), "NoSuchOperator", {"p"}).save(dir_ / "odd.onnx");
        // No device of ours computes determinants: a CPU partition is at the end.
        with_last(classifier(), "Det", {"c"}).save(dir_ / "det.onnx");
        two_decoders().save(dir_ / "two.onnx");
        TinyOnnx sized = classifier();
        sized.input("size", {1, 10}).node("Flatten", {"p"}, {"f"});
        with_last(sized, "Add", {"f", "size"}).save(dir_ / "sized.onnx");
        for (const char* name : {"m", "det", "two", "sized"}) compile(name, name);
        compile("m", "bytes", "--embed-preprocess images:u8,rgb,hwc,mean=0,scale=0.00392157");
        compile("m", "bgrx", "--embed-preprocess images:u8,bgrx,hwc,mean=0,scale=0.00392157");
        const std::string whole = slurp(dir_ / "m.rai");
        spill(dir_ / "short.rai", whole.substr(0, whole.size() / 2));
        spill(dir_ / "empty/notes.txt", "");
        spill(dir_ / "foreign/vaiml_par_0/flexml.bin", "of another runtime");
        spill(dir_ / "pointer.onnx", "version https://git-lfs.github.com/spec/v1\n");
        spill(dir_ / "best.pt", "PK\x03\x04........best/data.pkl");
        spill(dir_ / "three.txt", "cat\ndog\ncow\n");
        spill(dir_ / "odd.modelinfo", "[modelinfo]\nversion=1.0\nx-vartml-decodr=classify\n");
        spill(dir_ / "xrt/lib/libxrt_coreutil.so.2.14.354", "");
        spill(dir_ / "broken/libgstvartml.so", "no library");
    }
    const std::string& folder() const { return dir_.path(); }
    const std::string& faults() const { return faults_; }

private:
    void compile(const std::string& from, const std::string& to, const std::string& options = "") {
        const Finished f =
            run(dir_.path(), program() + " compile " + from + ".onnx -o " + to + ".rai " + options);
        if (f.status != 0) faults_ += f.out;
    }
    TempDir dir_;
    std::string faults_;
};

const Kitchen& kitchen() {
    static const Kitchen all;
    return all;
}

struct Mistake {
    const char* name;
    const char* id;           // of the element's message; "" where there is no pipeline
    const char* environment;  // before both commands
    const char* pipeline;     // "" where there is none
    Words sentence;           // that the element posts, and the doctor's first finding
    Words change;             // the doctor's line to change
};

// The camera of every row.
constexpr const char* camera = "videotestsrc num-buffers=3 ! ";

const Mistake mistakes[] = {
    {"1 the model is not there",
     "infer-model-missing",
     "",
     "vartmlinfer model=n.rai ! fakesink",
     {"n.rai", "No such file"},
     {"vartmlinfer model=m.rai"}},
    {"2 a folder without vaiml_par_0",
     "infer-model-missing",
     "",
     "vartmlinfer model=empty ! fakesink",
     {"empty", "vaiml_par_0"},
     {"vartml compile MODEL.onnx -o empty"}},
    {"3 a truncated archive",
     "infer-model-bad",
     "",
     "vartmlinfer model=short.rai ! fakesink",
     {"short.rai", "truncated"},
     {"vartml compile MODEL.onnx -o short.rai"}},
    {"4 a model for another runtime",
     "infer-model-bad",
     "",
     "vartmlinfer model=foreign ! fakesink",
     {"foreign", "model.vmf"},
     {"vartml compile MODEL.onnx -o foreign"}},
    {"4b a checkpoint of PyTorch",
     "infer-model-bad",
     "",
     "vartmlinfer model=best.pt ! fakesink",
     {"best.pt: is a PyTorch checkpoint; export the model to ONNX"},
     {"vartml compile MODEL.onnx"}},
    {"4c a pointer of Git LFS",
     "infer-compile",
     "",
     "vartmlinfer model=pointer.onnx ! fakesink",
     {"pointer.onnx: is a pointer of Git LFS", "git lfs pull"},
     {"git lfs pull"}},
    {"5 an operator that cannot be compiled",
     "infer-compile",
     "",
     "vartmlinfer model=odd.onnx ! fakesink",
     {"odd.onnx", "NoSuchOperator"},
     {"change: replace it with standard operators, or split the model at tensor 'p'"}},
    {"6 no compiler",
     "infer-no-compiler",
     "VARTML_COMPILER=/nowhere/vartml",
     "vartmlinfer model=m.onnx ! fakesink",
     {"/nowhere/vartml", "VARTML_COMPILER"},
     {"export VARTML_COMPILER=", "vartml"}},
    {"6b a compiler that is another program",
     "infer-no-compiler",
     "VARTML_COMPILER=/bin/false",
     "vartmlinfer model=m.onnx ! fakesink",
     {"/bin/false", "not the program vartml", "VARTML_COMPILER"},
     {"export VARTML_COMPILER=", "vartml"}},
    {"7 a cache folder that cannot be written",
     "infer-cache",
     "",
     "vartmlinfer model=m.onnx cache-dir=/dev/null/x ! fakesink",
     {"/dev/null/x"},
     {"vartmlinfer model=m.onnx cache-dir=/var/tmp"}},
    {"7b the user's cache folder",
     "infer-cache",
     "XDG_CACHE_HOME=/dev/null/x",
     "vartmlinfer model=m.onnx ! fakesink",
     {"/dev/null/x"},
     {"export XDG_CACHE_HOME="}},
    {"8 a device that is not there",
     "infer-device-missing",
     "",
     "vartmlinfer model=m.rai device=npu9 ! fakesink",
     {"npu9", "softnpu"},
     {"vartmlinfer model=m.rai device=auto"}},
    // The software device is not held by processes; its columns are, as those of an array.
    {"9 a device that another holds",
     "infer-device-busy",
     "",
     "vartmlinfer model=m.rai "
     "runner-options=options,aie_columns_sharing=false,start_column=0 ! fakesink "
     "videotestsrc num-buffers=3 ! vartmlinfer model=m.rai "
     "runner-options=options,start_column=0 ! fakesink",
     {"in use", "columns 0-3"},
     {"vartmlinfer model=m.rai", "without runner-options"}},
    {"10 an XRT that does not fit",
     "",
     "XILINX_XRT=$PWD/xrt VARTML_XRT_MODULE=$PWD/broken/libgstvartml.so",
     "",
     {"XRT 2.14", "does not fit this package"},
     {"build this package where this XRT is installed"}},
    {"11 a plugin that is not on the path",
     "",
     "GST_PLUGIN_PATH= GST_REGISTRY=$PWD/none.bin",
     "",
     {"does not find vartmlinfer", "is not on its path"},
     {"export GST_PLUGIN_PATH=/"}},
    {"11b a plugin on the black list",
     "",
     "GST_PLUGIN_PATH=$PWD/broken GST_REGISTRY=$PWD/broken.bin GST_REGISTRY_FORK=yes",
     "",
     {"libgstvartml.so", "black list"},
     {"rm ", "registry"}},
    {"11c a plugin that is broken, and not yet on the black list",
     "",
     "GST_PLUGIN_PATH=$PWD/broken GST_REGISTRY=$PWD/fresh.bin GST_REGISTRY_FORK=no",
     "",
     {"problem  plugin: GStreamer 1.", "libgstvartml.so"},
     {"rm ", "registry"}},
    {"12 a second input that nothing feeds",
     "infer-inputs",
     "",
     "vartmlinfer model=sized.rai ! fakesink",
     {"input 'size'", "x-vartml-feed"},
     {"[size]\n", "dir=input\n", "x-vartml-feed=const:0"}},
    {"13 a larger batch than the model's",
     "infer-batch",
     "",
     "vartmlinfer model=m.rai batch-size=4 ! fakesink",
     {"'batch-size' is 4", "compiled for 1", "--batch-size 4"},
     {"vartmlinfer model=m.rai batch-size=1"}},
    {"14 one id, two models",
     "infer-instance-conflict",
     "",
     "vartmlinfer model=m.rai model-instance-id=a ! fakesink videotestsrc num-buffers=3 ! "
     "vartmlinfer model=two.rai model-instance-id=a ! fakesink",
     {"model-instance-id 'a'", "m.rai", "two.rai"},
     {"vartmlinfer model-instance-id=a model="}},
    {"15 a misspelt key in the sidecar",
     "infer-sidecar",
     "",
     "vartmlinfer model=m.rai modelinfo-file=odd.modelinfo ! fakesink",
     {"odd.modelinfo", "line 3", "x-vartml-decodr", "did you mean 'x-vartml-decoder'"},
     {"x-vartml-decoder=", "odd.modelinfo"}},
    {"16 frames of another channel order as the tensor",
     "infer-caps",
     "",
     "video/x-raw,format=BGR,width=16,height=16 ! vartmlinfer model=bytes.rai "
     "input-is-tensor=yes ! fakesink",
     {"input-is-tensor", "format BGR", "takes RGB"},
     {"videoconvertscale ! video/x-raw,format=RGB ! vartmlinfer"}},
    {"16b the same where a pixel has four bytes",
     "infer-caps",
     "",
     "video/x-raw,format=RGBx,width=16,height=16 ! vartmlinfer model=bgrx.rai "
     "input-is-tensor=yes ! fakesink",
     {"input-is-tensor", "format RGBx", "takes BGRx"},
     {"videoconvertscale ! video/x-raw,format=BGRx ! vartmlinfer"}},
    {"17 a copy where none may be",
     "infer-copy-forbidden",
     "",
     "vartmlinfer model=det.rai copy-policy=forbid on-fallback=allow ! fakesink",
     {"output-cpu-view", "bytes", "copy-policy=allow"},
     {"vartmlinfer", "copy-policy=warn"}},
    {"18 a label file with the wrong number of lines",
     "dec-classes",
     "",
     "vartmlinfer model=m.rai ! vartmldecode label-file=three.txt ! fakesink",
     {"10 classes", "three.txt", "3 labels"},
     {"vartmldecode label-file=", "10 lines"}},
    {"19 a head that fits several families",
     "dec-unknown",
     "",
     "vartmlinfer model=two.rai ! vartmldecode ! fakesink",
     {"[1,336,84]", "yolo-v8, yolox", "x-vartml-decoder="},
     {"vartmldecode decoder=yolo"}},
#if GST_CHECK_VERSION(1, 28, 0)  // boxes follow scalers
    {"20 a mirror between inference and decoding",
     "dec-geometry",
     "",
     "vartmlinfer model=m.rai ! videoflip method=horizontal-flip ! vartmldecode ! fakesink",
     {"mirrored", "vartmldecode directly after vartmlinfer"},
     {"vartmlinfer model=m.rai ! vartmldecode ! videoflip method=horizontal-flip"}},
#else
    {"20 borders between inference and decoding",
     "dec-geometry",
     "",
     "video/x-raw,width=64,height=48 ! vartmlinfer model=m.rai ! videoscale ! "
     "video/x-raw,width=64,height=64,pixel-aspect-ratio=1/1 ! vartmldecode ! fakesink",
     {"borders", "vartmldecode directly after vartmlinfer"},
     {"vartmlinfer model=m.rai ! vartmldecode ! videoscale"}},
#endif
};

bool contains(const std::string& text, const char* word) {
    return text.find(word) != text.npos;
}

std::string full_pipeline(const Mistake& m) {
    return *m.pipeline ? camera + std::string(m.pipeline) : "";
}

// The first finding's sentence, and its change of one line or more.
struct First {
    std::string sentence, change;
};
First first_finding(const std::string& report) {
    const size_t begin = report.find("problem  ");
    const size_t change = report.find("change: ", begin);
    if (begin == report.npos || change == report.npos) return {};
    size_t end = report.find('\n', change);
    // Further lines of a change are indented below it.
    while (end != report.npos && report.compare(end + 1, 10, std::string(10, ' ')) == 0)
        end = report.find('\n', end + 1);
    return {report.substr(begin, report.find('\n', begin) - begin),
            report.substr(change, end + 1 - change)};
}

class TheMistake : public testing::TestWithParam<Mistake> {
protected:
    void SetUp() override { ASSERT_EQ(kitchen().faults(), ""); }
};

// Rows of the doctor alone are not among them.
class ThePipeline : public TheMistake {};

TEST_P(ThePipeline, EndsInOneSentence) {
    const Mistake& m = GetParam();
    const Finished f = run(kitchen().folder(),
                           std::string(m.environment) + " gst-launch-1.0 -q " + full_pipeline(m));
    EXPECT_NE(f.status, 0);
    EXPECT_TRUE(contains(f.out, (std::string("id ") + m.id + ",").c_str())) << f.out;
    const size_t begin = f.out.find("Could not ");
    ASSERT_NE(begin, f.out.npos) << f.out;
    const std::string sentence = f.out.substr(begin, f.out.find('\n', begin) - begin);
    for (const char* word : m.sentence)
        EXPECT_TRUE(contains(sentence, word)) << word << "\n" << sentence;
}

TEST_P(TheMistake, IsTheFirstThingThatTheDoctorNames) {
    const Mistake& m = GetParam();
    std::string command = std::string(m.environment) + ' ' + program() + " doctor";
    if (*m.pipeline) command += " --pipeline '" + full_pipeline(m) + "' 2>/dev/null";
    const Finished f = run(kitchen().folder(), command);
    EXPECT_EQ(f.status, 1) << f.out;
    const First first = first_finding(f.out);
    for (const char* word : m.sentence)
        EXPECT_TRUE(contains(first.sentence, word)) << word << "\n" << f.out;
    for (const char* word : m.change)
        EXPECT_TRUE(contains(first.change, word)) << word << "\n" << f.out;
}

std::string name_of(const testing::TestParamInfo<Mistake>& info) {
    std::string name;
    for (const char* c = info.param.name; *c; ++c)
        name += std::isalnum(static_cast<unsigned char>(*c)) ? *c : '_';
    return name;
}
INSTANTIATE_TEST_SUITE_P(All, TheMistake, testing::ValuesIn(mistakes), name_of);

// A model that takes pixels of four bytes takes every frame, and its own without conversion.
TEST(PixelsOfFourBytes, AreAPicture) {
    ASSERT_EQ(kitchen().faults(), "");
    for (const char* pipeline :
         {"vartmlinfer model=bgrx.rai ! fakesink",
          "video/x-raw,format=BGRx,width=16,height=16 ! vartmlinfer model=bgrx.rai "
          "input-is-tensor=yes ! fakesink"}) {
        const Finished f =
            run(kitchen().folder(), std::string("gst-launch-1.0 -q ") + camera + pipeline);
        EXPECT_EQ(f.status, 0) << pipeline << '\n' << f.out;
    }
}

std::vector<Mistake> with_pipeline() {
    std::vector<Mistake> rows;
    for (const Mistake& m : mistakes)
        if (*m.pipeline) rows.push_back(m);
    return rows;
}
INSTANTIATE_TEST_SUITE_P(All, ThePipeline, testing::ValuesIn(with_pipeline()), name_of);

// The other side of the table: the same models, used rightly.
TEST(Doctor, FindsNothingWrongWithAHealthyPipeline) {
    ASSERT_EQ(kitchen().faults(), "");
    const Finished f =
        run(kitchen().folder(), program() + " doctor m.rai --pipeline '" + camera +
                                    "video/x-raw,width=64,height=48 ! vartmlinfer model=m.rai "
                                    "copy-policy=forbid on-fallback=error ! vartmldecode ! "
                                    "fakesink' 2>/dev/null");
    EXPECT_EQ(f.status, 0) << f.out;
    EXPECT_FALSE(contains(f.out, "problem  ")) << f.out;
    EXPECT_TRUE(contains(f.out, "ran on test pictures")) << f.out;
    EXPECT_TRUE(contains(f.out, "no problem\n")) << f.out;
}

TEST(Doctor, LooksAtALineOfOneElement) {
    ASSERT_EQ(kitchen().faults(), "");
    for (const char* line : {"identity", "videotestsrc", "vartmlinfer model=m.rai",
                             "pipeline.( identity )", "bin.( identity )"}) {
        const Finished f = run(kitchen().folder(),
                               program() + " doctor m.rai --pipeline '" + line + "' 2>/dev/null");
        EXPECT_TRUE(contains(f.out, "the line has 1 element ")) << line << '\n' << f.out;
    }
    EXPECT_EQ(run(kitchen().folder(), program() + " doctor --pipeline '' 2>/dev/null").status, 2);
}

TEST(Doctor, LeavesAFileOfRecordsAlone) {
    ASSERT_EQ(kitchen().faults(), "");
    const std::string file = kitchen().folder() + "/kept.jsonl";
    std::ofstream(file) << "of last night\n";
    const Finished f =
        run(kitchen().folder(), program() + " doctor m.rai --pipeline '" + camera +
                                    "video/x-raw,width=64,height=48 ! vartmlinfer model=m.rai ! "
                                    "vartmldecode ! vartmlpublish method=file location=" +
                                    file + " ! queue ! vartmloverlay ! fakesink' 2>/dev/null");
    EXPECT_EQ(f.status, 0) << f.out;
    EXPECT_TRUE(contains(f.out, "ran on test pictures")) << f.out;
    std::string line;
    std::getline(std::ifstream(file), line);
    EXPECT_EQ(line, "of last night");
}

}  // namespace
}  // namespace vartml::test
