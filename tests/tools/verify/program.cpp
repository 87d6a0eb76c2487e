// SPDX-License-Identifier: Apache-2.0
// `vartml verify` as a user runs it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml {
namespace {

namespace fs = std::filesystem;
using test::TinyOnnx;

class Verify : public testing::Test {
protected:
    void SetUp() override {
        const char* program = std::getenv("VARTML_PROGRAM");
        ASSERT_TRUE(program) << "set VARTML_PROGRAM to the program vartml";
        if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
            GTEST_SKIP() << "built without ONNX Runtime's headers";
        program_ = program;
        chain(1).save(dir_ / "net.onnx");
        chain(-1).save(dir_ / "damaged.onnx");
    }

    // Four convolutions; the weights of the third are multiplied.
    static TinyOnnx chain(float third) {
        TinyOnnx m;
        m.input("x", {1, 3, 8, 8});
        std::string from = "x";
        for (const std::string name : {"first", "second", "third", "fourth"}) {
            m.weights("w_" + name, {3, 3, 3, 3})
                .node("Conv", {from, "w_" + name}, {name + "_c"},
                      {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}})
                .node("Relu", {name + "_c"}, {name});
            from = name;
        }
        for (auto& tensor : *m.proto().mutable_graph()->mutable_initializer()) {
            if (tensor.name() != "w_third") continue;
            if (tensor.float_data_size() == 0) {
                auto* raw = tensor.mutable_raw_data();
                for (size_t i = 0; i + 4 <= raw->size(); i += 4) {
                    float v;
                    std::memcpy(&v, raw->data() + i, 4);
                    v *= third;
                    std::memcpy(raw->data() + i, &v, 4);
                }
            }
            for (float& v : *tensor.mutable_float_data()) v *= third;
        }
        m.output("fourth");
        return m;
    }

    // Exit status; the streams go to out and err.
    int run(const std::string& arguments, const std::string& setup = "") {
        const std::string command = "cd '" + dir_.path() + "' && " + setup + "'" + program_ + "' " +
                                    arguments + " >out.txt 2>err.txt";
        const int status = std::system(command.c_str());
        out_ = test::slurp(dir_ / "out.txt");
        err_ = test::slurp(dir_ / "err.txt");
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    bool says(const std::string& words) const { return out_.find(words) != std::string::npos; }

    void store(const std::string& path, const TinyOnnx::Ints& shape,
               const TinyOnnx::Floats& values) {
        test::spill(dir_ / path, test::float_tensor("t", shape, values).SerializeAsString());
    }

    test::TempDir dir_;
    std::string program_, out_, err_;
};

TEST_F(Verify, AgreesAndSaysThatTheNumbersAreRandom) {
    ASSERT_EQ(run("verify net.onnx --layers --json report.json"), 0) << out_ << err_;
    EXPECT_EQ(out_.find("The compiled model agrees with ONNX Runtime "), 0u) << out_;
    EXPECT_TRUE(says("on 1 frame of random numbers: ")) << out_;
    EXPECT_TRUE(says("note: random numbers are no pictures")) << out_;
    EXPECT_TRUE(says("Layers: 4 of 8 tensors inside the model compared")) << out_;
    EXPECT_TRUE(says("None is beyond tolerance")) << out_;
    const std::string json = test::slurp(dir_ / "report.json");
    EXPECT_NE(json.find("\"agrees\": true"), std::string::npos) << json;
    EXPECT_NE(json.find("\"first_stage_beyond_tolerance\": null"), std::string::npos) << json;
}

TEST_F(Verify, TakesOneShapePerOptionSoThatAModelMayFollow) {
    TinyOnnx m;
    m.input("x", {1, 3, "height", 8})
        .weights("w", {3, 3, 3, 3})
        .node("Conv", {"x", "w"}, {"y"})
        .output("y")
        .save(dir_ / "symbolic.onnx");
    EXPECT_EQ(run("verify --input-shape x:1,3,8,8 symbolic.onnx --layers"), 0) << err_;
    EXPECT_EQ(run("compile --input-shape x:1,3,8,8 symbolic.onnx"), 0) << err_;
    EXPECT_EQ(run("verify symbolic.onnx"), 3);
    EXPECT_NE(err_.find("--input-shape"), std::string::npos) << err_;
}

TEST_F(Verify, LeavesNothingBehind) {
    fs::create_directory(dir_ / "tmp");
    ASSERT_EQ(run("verify net.onnx --layers", "TMPDIR='" + dir_.path() + "/tmp' "), 0) << err_;
    EXPECT_TRUE(fs::is_empty(dir_ / "tmp"));
    EXPECT_FALSE(fs::exists(dir_ / "vartml-cache"));
}

TEST_F(Verify, NamesTheNodeWithOtherWeights) {
    ASSERT_EQ(run("compile damaged.onnx -o damaged.rai"), 0) << err_;
    ASSERT_EQ(run("verify net.onnx --compiled damaged.rai --layers --json report.json"), 6) << err_;
    EXPECT_TRUE(says("The first stage that is beyond tolerance is the model: output 'fourth': "))
        << out_;
    EXPECT_TRUE(says("The first that is beyond tolerance is tensor 'third' of node ")) << out_;
    EXPECT_TRUE(says("damaged.rai was not compiled of net.onnx: the signatures differ")) << out_;
    const std::string json = test::slurp(dir_ / "report.json");
    const size_t first = json.find("\"first\": {");
    ASSERT_NE(first, std::string::npos) << json;
    EXPECT_EQ(json.find("\"tensor\": \"third\"", first), json.find("\"tensor\"", first)) << json;
}

TEST_F(Verify, TakesStoredOutputsWhereThereIsNoOnnxRuntime) {
    const std::string absent = "VARTML_ONNXRUNTIME=/nowhere/libonnxruntime.so ";
    EXPECT_EQ(run("verify net.onnx", absent), 1);
    EXPECT_NE(err_.find("there is no ONNX Runtime to compare with"), std::string::npos) << err_;
    EXPECT_NE(err_.find("libonnxruntime1.21"), std::string::npos) << err_;
    // Of a picture of nothing comes nothing.
    store("good/input_0.pb", {1, 3, 8, 8}, TinyOnnx::Floats(192, 0));
    store("good/output_0.pb", {1, 3, 8, 8}, TinyOnnx::Floats(192, 0));
    store("bad/input_0.pb", {1, 3, 8, 8}, TinyOnnx::Floats(192, 0));
    store("bad/output_0.pb", {1, 3, 8, 8}, TinyOnnx::Floats(192, 1));
    EXPECT_EQ(run("verify net.onnx --inputs good", absent), 0) << err_;
    EXPECT_TRUE(says("agrees with the stored outputs on 1 stored input")) << out_;
    EXPECT_EQ(run("verify net.onnx --inputs bad", absent), 6) << err_;
    EXPECT_TRUE(says("does NOT agree with the stored outputs")) << out_;
    EXPECT_EQ(run("verify net.onnx --inputs good --layers", absent), 1);
}

// Stored outputs are as large as the data made them, the model's as it may make them.
TEST_F(Verify, TakesStoredOutputsOfAShapeThatDependsOnTheData) {
    TinyOnnx m;
    m.input("x", {4}).node("NonZero", {"x"}, {"places"}).output("places", {}, TinyOnnx::int64);
    m.save(dir_ / "places.onnx");
    store("seen/input_0.pb", {4}, {0, 1, 0, 1});
    const auto expect = [&](const TinyOnnx::Ints& places) {
        const auto stored = test::int_tensor("t", {1, int64_t(places.size())}, places);
        test::spill(dir_ / "seen/output_0.pb", stored.SerializeAsString());
    };
    expect({1, 3});
    EXPECT_EQ(run("run places.onnx -n 1 --inputs seen --expect seen"), 0) << out_ << err_;
    EXPECT_EQ(run("verify places.onnx --inputs seen", "VARTML_ONNXRUNTIME=/nowhere.so "), 0)
        << out_ << err_;
    expect({1, 2, 3});
    EXPECT_EQ(run("run places.onnx -n 1 --inputs seen --expect seen"), 6) << out_ << err_;
}

TEST_F(Verify, ReplacesTheToleranceOfOutputs) {
    ASSERT_EQ(run("compile damaged.onnx -o damaged.rai --numerics f32"), 0) << err_;
    EXPECT_EQ(run("verify net.onnx --compiled damaged.rai --numerics f32"), 6);
    EXPECT_EQ(run("verify net.onnx --compiled damaged.rai --numerics f32 --tolerance 1000"), 0)
        << out_;
}

TEST_F(Verify, RefusesWithASentenceAndItsStatus) {
    test::spill(dir_ / "bad.rai", "nonsense");
    test::spill(dir_ / "bad.onnx", "nonsense");
    test::spill(dir_ / "bad.npy", "nonsense");
    const std::string tensor = test::float_tensor("t", {1}, {1}).SerializeAsString();
    // A SequenceProto: elements of kind 1, one of them.
    test::spill(dir_ / "list.pb", "\x10\x01\x1a" + std::string(1, char(tensor.size())) + tensor);
    test::spill(dir_ / "notes.txt", "nonsense");
    fs::create_directory(dir_ / "empty");
    store("short/input_0.pb", {1, 3}, {1, 2, 3});
    store("frame/input_0.pb", {1, 3, 8, 8}, TinyOnnx::Floats(192));
    struct Row {
        const char* arguments;
        int status;
        const char* words;
    };
    const Row rows[] = {
        {"verify", 2, "MODEL"},
        {"verify net.onnx --numerics f16", 2, "--numerics"},
        {"verify net.onnx --compiled x.rai --device ve2", 2, "--device"},
        {"verify nowhere.onnx", 1, "nowhere.onnx"},
        {"verify bad.onnx", 3, "bad.onnx"},
        {"verify net.onnx --compiled bad.rai", 4, "bad.rai"},
        {"verify net.onnx nowhere.png", 1, "nowhere.png: no such file or folder"},
        {"verify net.onnx notes.txt", 2, "notes.txt: is no picture (.png, .jpg) and no folder"},
        {"verify net.onnx empty", 2, "empty: holds no frame"},
        {"verify net.onnx --inputs short", 2,
         "short: holds fp32 [1,3] for input 'x', which is fp32 [1,3,8,8]"},
        {"verify net.onnx --decoder yolo-v99 --inputs short", 2, "yolo-v99"},
        {"verify net.onnx --json net.onnx", 2, "--json: is net.onnx itself, which would be lost"},
        {"verify net.onnx --inputs frame --json frame/input_0.pb", 2,
         "--json: is frame/input_0.pb itself, which would be lost"},
        {"run net.onnx --inputs short", 2,
         "short/input_0.pb: holds fp32 [1,3], input 'x' is fp32 [1,3,8,8]"},
        {"run net.onnx --input x=bad.npy", 2, "bad.npy: is no .npy file"},
        {"run net.onnx --input x=list.pb", 2,
         "list.pb: holds a sequence, or a tensor in segments; expected one tensor"},
        {"run net.onnx --input x=notes.txt", 2, "notes.txt: is no tensor file"},
        {"run net.onnx --input x=nowhere.npy", 1, "nowhere.npy"},
        {"verify net.onnx --json nowhere/report.json", 1,
         "--json: nowhere/report.json: cannot create a file beside it"},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(run(row.arguments), row.status) << row.arguments << ": " << err_;
        EXPECT_NE(err_.find(row.words), std::string::npos) << row.arguments << ": " << err_;
    }
}

TEST_F(Verify, SaysWhichFolderCannotBeRead) {
    fs::create_directory(dir_ / "closed");
    fs::permissions(dir_ / "closed", fs::perms::none);
    for (const std::string arguments :
         {"verify net.onnx closed", "verify --all closed --json results.json",
          "verify --all . --picture closed --json results.json"}) {
        EXPECT_EQ(run(arguments, test::bound_by_modes()), 1) << arguments;
        EXPECT_NE(err_.find("closed: cannot read the folder: Permission denied"), std::string::npos)
            << arguments << ": " << err_;
    }
    fs::permissions(dir_ / "closed", fs::perms::owner_all);
}

TEST_F(Verify, FindsFacesAgain) {
    const std::string shared = std::getenv("VARTML_SHARED") ? std::getenv("VARTML_SHARED") : "";
    const std::string model = shared + "/models/ultraface_rfb_320/model.onnx";
    if (!fs::exists(model)) GTEST_SKIP() << "no models beside the project";
    ASSERT_EQ(run("verify '" + model + "' '" + shared + "/models/images/ultraface_1.jpg'"), 0)
        << out_ << err_;
    EXPECT_TRUE(says("All 19 detections are found again")) << out_;
    EXPECT_TRUE(
        says("note: pictures are fed as rgb, stretch, mean 127, scale 0.0078125; as "
             "decoder ultraface says"))
        << out_;
}

}  // namespace
}  // namespace vartml
