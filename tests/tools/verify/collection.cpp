// SPDX-License-Identifier: Apache-2.0
// `vartml verify --all`: the rules of agreement, and a folder of models as a user checks it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/base/process.h"
#include "lib/tools/verify/agreement.h"
#include "lib/tools/verify/collection.h"
#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/made_input.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::verify {
namespace {

namespace fs = std::filesystem;
using test::TinyOnnx;

template <typename T>
TensorData tensor(DataType type, const std::vector<T>& values) {
    TensorData data{type, {static_cast<int64_t>(values.size())}, {}};
    data.bytes.resize(values.size() * sizeof(T));
    std::memcpy(data.bytes.data(), values.data(), data.bytes.size());
    return data;
}
TensorData floats(const std::vector<float>& values) {
    return tensor(DataType::float32, values);
}

// ---- the rules

TEST(Agreement, InF32IsAThousandthOfTheRange) {
    const ExpectedOutput expected{floats({0, 50, 100}), {}, {}};
    EXPECT_TRUE(judge_agreement(floats({0, 50.09f, 100}), expected, Rule::f32).is_good);
    const auto far = judge_agreement(floats({0, 50.2f, 100}), expected, Rule::f32);
    EXPECT_FALSE(far.is_good);
    EXPECT_EQ(far.text, "largest difference 0.002 of the range, at most 0.001");
    EXPECT_FALSE(judge_agreement(floats({0, NAN, 100}), expected, Rule::f32).is_good);
}

TEST(Agreement, InDefaultNumericsIsAnAngleAndALength) {
    const ExpectedOutput expected{floats({1, 0, 0}), {}, {}};
    EXPECT_TRUE(judge_agreement(floats({1, 0.03f, 0}), expected, Rule::standard).is_good);
    EXPECT_FALSE(judge_agreement(floats({1, 0.1f, 0}), expected, Rule::standard).is_good);
    EXPECT_FALSE(judge_agreement(floats({2, 0, 0}), expected, Rule::standard).is_good);
    EXPECT_FALSE(judge_agreement(floats({0, 0, 0}), expected, Rule::standard).is_good);
    EXPECT_FALSE(judge_agreement(floats({NAN, 0, 0}), expected, Rule::standard).is_good);
}

TEST(Agreement, NearZerosIsADifference) {
    const ExpectedOutput expected{floats({0, 0}), {}, {}};
    EXPECT_TRUE(judge_agreement(floats({1e-6f, 0}), expected, Rule::standard).is_good);
    EXPECT_FALSE(judge_agreement(floats({1, 0}), expected, Rule::standard).is_good);
}

TEST(Agreement, IsWiderWhereEvenAnIdealDeviceOfBf16IsOff) {
    ExpectedOutput expected{floats({1, 0}), {}, {floats({1, 0.05f})}};
    EXPECT_TRUE(judge_agreement(floats({1, 0.1f}), expected, Rule::standard).is_good);
    EXPECT_FALSE(judge_agreement(floats({1, 0.2f}), expected, Rule::standard).is_good);
    EXPECT_FALSE(judge_agreement(floats({1, 0.1f}), expected, Rule::f32).is_good);
    expected.rounded = {floats({1, 0.01f})};  // it is not off
    EXPECT_FALSE(judge_agreement(floats({1, 0.1f}), expected, Rule::standard).is_good);
}

TEST(Agreement, IsLongerOnlyWhereTheIdealDeviceIs) {
    ExpectedOutput expected{floats({1, 1}), {}, {}};
    EXPECT_FALSE(judge_agreement(floats({1.2f, 1.2f}), expected, Rule::standard).is_good);
    expected.rounded = {floats({1.15f, 1.15f})};
    EXPECT_TRUE(judge_agreement(floats({1.2f, 1.2f}), expected, Rule::standard).is_good);
    EXPECT_FALSE(judge_agreement(floats({1.3f, 1.3f}), expected, Rule::standard).is_good);
}

TEST(Agreement, IsWithinTheSpreadOfTheReferenceItself) {
    const ExpectedOutput expected{floats({0, 1}), {floats({0.1f, 1})}, {}};
    const OutputAgreement within = judge_agreement(floats({0.15f, 1}), expected, Rule::f32);
    EXPECT_TRUE(within.is_good);
    EXPECT_NE(within.text.find(", as far as ONNX Runtime's own results are from one another"),
              std::string::npos)
        << within.text;
    EXPECT_FALSE(judge_agreement(floats({0.3f, 1}), expected, Rule::f32).is_good);
}

TEST(Agreement, OfIntegersIsBeingTheSame) {
    std::vector<int64_t> many(1000, 7);
    const ExpectedOutput expected{tensor(DataType::int64, many), {}, {}};
    many[3] = 8;
    EXPECT_TRUE(judge_agreement(tensor(DataType::int64, many), expected, Rule::f32).is_good);
    many[4] = 8;
    EXPECT_FALSE(judge_agreement(tensor(DataType::int64, many), expected, Rule::f32).is_good);
    EXPECT_TRUE(judge_agreement(tensor(DataType::int64, many), expected, Rule::standard).is_good);
    const ExpectedOutput one{tensor<int64_t>(DataType::int64, {5}), {}, {}};
    EXPECT_FALSE(
        judge_agreement(tensor<int64_t>(DataType::int64, {6}), one, Rule::standard).is_good);
    const ExpectedOutput codes{tensor<uint8_t>(DataType::uint8, {10, 20}), {}, {}};
    EXPECT_TRUE(
        judge_agreement(tensor<uint8_t>(DataType::uint8, {11, 20}), codes, Rule::f32).is_good);
    EXPECT_FALSE(
        judge_agreement(tensor<uint8_t>(DataType::uint8, {12, 20}), codes, Rule::f32).is_good);
}

// A code more or less is how sums round, whichever range the codes of a picture happen to have.
TEST(Agreement, OfDequantisedCodesIsAStep) {
    ExpectedOutput expected{floats({0, 0.5f, 1}), {}, {}, 0.25};
    for (const Rule rule : {Rule::f32, Rule::standard}) {
        EXPECT_TRUE(judge_agreement(floats({0.25f, 0.5f, 1}), expected, rule).is_good);
        EXPECT_FALSE(judge_agreement(floats({0.5f, 0.5f, 1}), expected, rule).is_good);
    }
    expected.step.reset();
    EXPECT_FALSE(judge_agreement(floats({0.25f, 0.5f, 1}), expected, Rule::f32).is_good);
}

TEST(Agreement, OfWhatWasMadeInt8IsALargerAngle) {
    const ExpectedOutput expected{floats({1, 0}), {}, {}};
    EXPECT_TRUE(judge_agreement(floats({1, 0.1f}), expected, Rule::made_int8).is_good);
    EXPECT_FALSE(judge_agreement(floats({1, 0.2f}), expected, Rule::made_int8).is_good);
}

TEST(Limits, AreNamedWithTheirOptions) {
    const Limits limits{std::chrono::seconds(20), uint64_t{6} << 30};
    EXPECT_EQ(with_limits("not enough memory", limits),
              "not enough memory (the limit of each process is 6 GiB; --memory-limit GIB allows "
              "another, 0 any)");
    EXPECT_EQ(with_limits("not enough memory", {}), "not enough memory");
    EXPECT_EQ(with_limits("a node is unknown", limits), "a node is unknown");
    ChildResult late;
    late.timed_out = true;
    EXPECT_EQ(why_it_ended(late, limits), "takes longer than 20 s (--time-limit S allows more)");
}

TEST(Recommendation, IsWhatFollowsTheOption) {
    struct Case {
        const char *refusal, *shape;
    };
    const Case cases[] = {
        {"m.onnx: input 'x' has … (axis 2); give --input-shape x:1,3,<height>,<width> to vartml "
         "compile",
         "x:1,3,<height>,<width>"},
        {"give --input-shape images:0:1,3,640,640", "images:0:1,3,640,640"},  // a colon in the name
        {"give --input-shape data in:<batch size>,4, or another", "data in:<batch size>,4"},
        {"m.onnx: node 'a' is a LSTM", ""},
        {"--input-shape for input 'x' names no input", ""},
    };
    for (const Case& c : cases) EXPECT_EQ(recommended_shape(c.refusal), c.shape) << c.refusal;
}

TEST(MadeInput, IsAPictureFromZeroToOneWhereTheShapeIsOne) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{1, 3, 32, 48}, std::vector<int64_t>{1, 32, 48, 3}}) {
        const auto values = numbers_of(InputMaker{}.make("x", DataType::float32, shape));
        ASSERT_EQ(values.size(), 3u * 32 * 48);
        const auto [low, high] = std::ranges::minmax(values);
        EXPECT_GE(low, 0);
        EXPECT_LE(high, 1);
        EXPECT_GT(high - low, 0.5);
    }
    const auto bytes = numbers_of(InputMaker{}.make("x", DataType::uint8, {1, 32, 48, 3}));
    EXPECT_GT(std::ranges::max(bytes), 128);
    EXPECT_EQ(numbers_of(InputMaker{.side = 640}.make("im_shape", DataType::float32, {1, 2})),
              (std::vector<double>{640, 640}));
    EXPECT_EQ(numbers_of(InputMaker{}.make("x", DataType::float32, {1, 1, 16, 16}))[7],
              numbers_of(InputMaker{}.make("x", DataType::float32, {1, 1, 16, 16}))[7]);
}

TEST(MadeInput, TakesPixelsOfAPictureAsTheModelWantsThem) {
    const PictureData picture{2, 1, {255, 0, 0, 0, 0, 255}};  // red, blue
    InputMaker maker{.picture = &picture};
    EXPECT_EQ(numbers_of(maker.make("x", DataType::uint8, {1, 8, 8, 3}))[0], 255);
    EXPECT_EQ(numbers_of(maker.make("x", DataType::uint8, {1, 8, 8, 3}))[23], 255);
    maker.pixels = {.mean = {0, 0, 55}, .scale = {1, 1, 0.5f}, .is_bgr = true};
    const auto values = numbers_of(maker.make("x", DataType::float32, {1, 3, 8, 8}));
    EXPECT_EQ(values[0], 0);      // blue of the red half
    EXPECT_EQ(values[7], 255);    // of the blue half
    EXPECT_EQ(values[128], 100);  // red, shifted and scaled
    EXPECT_EQ(values[135], -27.5);
}

TEST(MadeInput, IsNudgedByNoMoreThanAnyRounding) {
    TensorData data = floats({1, -2, 0});
    ASSERT_TRUE(nudge(data));
    const auto values = numbers_of(data);
    EXPECT_NE(values[0], 1);
    EXPECT_NEAR(values[0], 1, 2e-6);
    EXPECT_NEAR(values[1], -2, 4e-6);
    EXPECT_EQ(values[2], 0);
    TensorData codes = tensor<uint8_t>(DataType::uint8, {1, 2});
    EXPECT_FALSE(nudge(codes));
}

// ---- a folder

std::string big_endian(uint32_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
    return bytes;
}

std::string png_chunk(const std::string& kind_and_data) {
    uint32_t crc = 0xFFFFFFFF;
    for (const char c : kind_and_data) {
        crc ^= static_cast<uint8_t>(c);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return big_endian(static_cast<uint32_t>(kind_and_data.size() - 4)) + kind_and_data +
           big_endian(~crc);
}

// 8x8 pixels of one grey, or of one that each column has `more` of; not compressed.
std::string png_of(int grey, int more = 0) {
    std::string row(1, '\0'), rows;
    for (int x = 0; x < 8; ++x) row += std::string(3, static_cast<char>(grey + x * more));
    for (int y = 0; y < 8; ++y) rows += row;
    uint32_t a = 1, b = 0;
    for (const char c : rows) {
        a = (a + static_cast<uint8_t>(c)) % 65521;
        b = (b + a) % 65521;
    }
    const auto size = static_cast<uint16_t>(rows.size());
    const auto low = [](uint16_t v) { return static_cast<char>(v & 0xFF); };
    const auto high = [](uint16_t v) { return static_cast<char>(v >> 8); };
    const auto inverse = static_cast<uint16_t>(~size);
    const std::string zlib = std::string("\x78\x01\x01") + low(size) + high(size) + low(inverse) +
                             high(inverse) + rows + big_endian(b << 16 | a);
    return "\x89PNG\r\n\x1a\n" +
           png_chunk("IHDR" + big_endian(8) + big_endian(8) + std::string("\x08\x02\0\0\0", 5)) +
           png_chunk("IDAT" + zlib) + png_chunk("IEND");
}

class VerifyAll : public testing::Test {
protected:
    void SetUp() override {
        const char* program = std::getenv("VARTML_PROGRAM");
        ASSERT_TRUE(program) << "set VARTML_PROGRAM to the program vartml";
        if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
            GTEST_SKIP() << "built without ONNX Runtime's headers";
        program_ = program;
        fs::create_directories(dir_ / "models/deep");
    }

    static TinyOnnx convolution(const std::vector<TinyOnnx::Dim>& shape) {
        TinyOnnx m;
        m.input("x", shape)
            .weights("w", {4, 3, 3, 3})
            .node("Conv", {"x", "w"}, {"c"})
            .node("Relu", {"c"}, {"y"})
            .output("y");
        return m;
    }

    int run(const std::string& arguments) {
        const int status = vartml("verify --all models --json results.json " + arguments);
        json_ = nlohmann::json::parse(test::slurp(dir_ / "results.json"), nullptr, false);
        return status;
    }
    int vartml(const std::string& arguments) {
        const std::string command = "cd '" + dir_.path() + "' && " + before_ + "'" + program_ +
                                    "' " + arguments + " >out.txt 2>err.txt";
        const int status = std::system(command.c_str());
        out_ = test::slurp(dir_ / "out.txt");
        err_ = test::slurp(dir_ / "err.txt");
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    bool says(const std::string& words) const { return out_.find(words) != std::string::npos; }
    nlohmann::json row(const std::string& name) const {
        for (const auto& row : json_.value("models", nlohmann::json::array()))
            if (row.value("name", "") == name) return row;
        return {};
    }

    test::TempDir dir_;
    std::string program_, out_, err_, before_;
    nlohmann::json json_;
};

TEST_F(VerifyAll, TellsWhatCompilesAndAgreesAtOnceAndAfterTheMessage) {
    convolution({1, 3, 32, 32}).save(dir_ / "models/plain.onnx");
    convolution({"N", 3, "height", "width"}).save(dir_ / "models/deep/open.onnx");
    ASSERT_EQ(run("--picture-size 40"), 0) << out_ << err_;
    EXPECT_EQ(row("plain.onnx").value("compiled", ""), "yes");
    EXPECT_EQ(row("plain.onnx")["f32"].value("verdict", ""), "agrees");
    EXPECT_EQ(row("plain.onnx")["default"].value("verdict", ""), "agrees");
    EXPECT_EQ(row("deep/open.onnx").value("compiled", ""), "followed");
    // What the refusal recommends, to the letter.
    EXPECT_EQ(row("deep/open.onnx").value("option", ""), "--input-shape x:1,3,640,640");
    EXPECT_EQ(row("deep/open.onnx")["default"].value("verdict", ""), "agrees");
    EXPECT_TRUE(says("2 models, 2 that ONNX Runtime ")) << out_;
    EXPECT_TRUE(says("1 of 2    50.0 %")) << out_;
    EXPECT_EQ(json_["summary"].value("compiled_and_default_agrees", 0), 2);
}

// A row of a table, by how bright the picture is: there is none for white.
TEST_F(VerifyAll, ShowsAModelThePicturesOfAFolderInTurn) {
    TinyOnnx m;
    m.input("x", {1, 3, 16, 16}).floats("twenty", {1}, {20}).weights("table", {10, 4});
    m.node("ReduceMean", {"x"}, {"mean"}, {{"keepdims", int64_t{0}}})
        .node("Mul", {"mean", "twenty"}, {"number"})
        .node("Cast", {"number"}, {"row"}, {{"to", int64_t{TinyOnnx::int64}}})
        .node("Gather", {"table", "row"}, {"y"})
        .output("y")
        .save(dir_ / "models/rows.onnx");
    test::spill(dir_ / "pictures/a black.png", png_of(0));
    test::spill(dir_ / "pictures/b grey.png", png_of(100));
    ASSERT_EQ(run("--picture pictures"), 0) << out_ << err_;
    test::spill(dir_ / "pictures/c white.png", png_of(255));
    ASSERT_EQ(run("--picture pictures"), 6) << out_ << err_;
    EXPECT_EQ(row("rows.onnx")["default"].value("text", "").find("c white.png: ONNX Runtime: "), 0U)
        << out_;
    ASSERT_EQ(run("--picture 'pictures/b grey.png'"), 0) << out_ << err_;
    fs::create_directories(dir_ / "empty");
    EXPECT_EQ(run("--picture empty"), 1);
    EXPECT_NE(err_.find("--picture: empty holds no picture"), std::string::npos) << err_;
}

// Small steps from column to column, which bf16 does not hold, and weights in a file of their own,
// with which no twin is written.
TEST_F(VerifyAll, SaysWhyTheIdealDeviceIsNotAsked) {
    TinyOnnx m;
    m.input("x", {1, 3, 16, 16}).node("Conv", {"x", "w"}, {"y"}).output("y");
    ::onnx::TensorProto weights;
    weights.set_name("w");
    weights.set_data_type(TinyOnnx::float32);
    for (const int64_t d : {1, 3, 1, 2}) weights.add_dims(d);
    weights.set_data_location(::onnx::TensorProto::EXTERNAL);
    auto& location = *weights.add_external_data();
    location.set_key("location");
    location.set_value("w.bin");
    m.initialiser(weights).save(dir_ / "models/steps.onnx");
    const float step[] = {1, -1, 1, -1, 1, -1};
    test::spill(dir_ / "models/w.bin",
                std::string(reinterpret_cast<const char*>(step), sizeof step));
    test::spill(dir_ / "models/steps.modelinfo", "[x]\ndir=input\nx-vartml-scale=0.01\n");
    test::spill(dir_ / "steps.png", png_of(200, 1));
    ASSERT_EQ(run("--picture steps.png"), 6) << out_ << err_;
    EXPECT_EQ(row("steps.onnx")["f32"].value("verdict", ""), "agrees") << out_;
    const std::string text = row("steps.onnx")["default"].value("text", "");
    EXPECT_NE(text.find("without the limits of an ideal bf16 device"), std::string::npos) << out_;
}

TEST_F(VerifyAll, ComparesTheNumbersOfAMap) {
    TinyOnnx m;
    m.input("x", {1, 8}).weights("w", {8, 3}).node("MatMul", {"x", "w"}, {"product"});
    m.node("Softmax", {"product"}, {"numbers"});
    m.node("ZipMap", {"numbers"}, {"scores"},
           {{"classlabels_strings", TinyOnnx::Strings{"dog", "cat", "bird"}}}, "ai.onnx.ml");
    m.opset("ai.onnx.ml", 1).output("scores");
    auto& scores = *m.proto().mutable_graph()->mutable_output(0)->mutable_type();
    auto& map = *scores.mutable_sequence_type()->mutable_elem_type()->mutable_map_type();
    map.set_key_type(TinyOnnx::string);
    map.mutable_value_type()->mutable_tensor_type()->set_elem_type(TinyOnnx::float32);
    m.save(dir_ / "models/map.onnx");
    ASSERT_EQ(run(""), 0) << out_ << err_;
    EXPECT_EQ(row("map.onnx")["f32"].value("verdict", ""), "agrees");
    EXPECT_EQ(row("map.onnx")["default"].value("verdict", ""), "agrees");
}

TEST_F(VerifyAll, FeedsPositiveNumbersWhereOthersLeadToNone) {
    TinyOnnx m;
    m.input("x", {1, 64}).node("Sqrt", {"x"}, {"root"}).node("Exp", {"root"}, {"y"}).output("y");
    m.save(dir_ / "models/root.onnx");
    ASSERT_EQ(run(""), 0) << out_ << err_;
    EXPECT_EQ(row("root.onnx")["default"].value("text", "").find("nan"), std::string::npos) << out_;
}

// In bf16 scores that are near each other would be equal, and come in another order.
TEST_F(VerifyAll, FindsTheOrderOfScoresThatAreAnInput) {
    TinyOnnx m;
    m.input("boxes", {1, 256, 4}).input("scores", {1, 1, 256});
    m.node("Sigmoid", {"scores"}, {"s"}).ints("most", {1}, {256}).floats("iou", {1}, {0.9F});
    m.floats("least", {1}, {0})
        .node("NonMaxSuppression", {"boxes", "s", "most", "iou", "least"}, {"y"});
    m.output("y", {}, TinyOnnx::int64).save(dir_ / "models/nms.onnx");
    ASSERT_EQ(run(""), 0) << out_ << err_;
    EXPECT_EQ(row("nms.onnx")["default"].value("verdict", ""), "agrees");
}

TEST_F(VerifyAll, ReportsApartWhatOnnxRuntimeRefusesToo) {
    convolution({1, 3, 32, 32}).save(dir_ / "models/plain.onnx");
    TinyOnnx m;
    m.input("x", {1, 4}).node("Nobody", {"x"}, {"y"}, {}, "elsewhere").output("y");
    m.opset("elsewhere", 1).save(dir_ / "models/foreign.onnx");
    test::spill(dir_ / "models/text.onnx", "this is no model");
    ASSERT_EQ(run(""), 0) << out_ << err_;
    EXPECT_EQ(row("foreign.onnx").value("onnxruntime", ""), "refuses");
    EXPECT_TRUE(row("foreign.onnx").value("refused", false)) << out_;
    EXPECT_TRUE(row("text.onnx").value("refused", false)) << out_;
    EXPECT_TRUE(says("2 that ONNX Runtime refuses: 2 refused with a sentence, 0 compiled")) << out_;
    EXPECT_TRUE(says("1 of 1   100.0 %")) << out_;
}

// An input of one number by which pictures are scaled: one that is made may be 0.
TEST_F(VerifyAll, DoesNotTakeItsOwnInputsForARefusal) {
    TinyOnnx m;
    m.input("x", {1, 3, 16, 16}).input("factor", {1}, TinyOnnx::int64).floats("ones", {2}, {1, 1});
    m.node("Cast", {"factor"}, {"scale"}, {{"to", int64_t{1}}})
        .node("Concat", {"ones", "scale", "scale"}, {"scales"}, {{"axis", int64_t{0}}})
        .node("Resize", {"x", "", "scales"}, {"y"})
        .output("y");
    m.save(dir_ / "models/scaled.onnx");
    ASSERT_EQ(run(""), 6) << out_ << err_;
    EXPECT_TRUE(says("nothing was compared")) << out_;
    EXPECT_EQ(row("scaled.onnx").value("onnxruntime", ""), "unfed") << out_;
    EXPECT_TRUE(says("1 that ONNX Runtime loads and does not run with the shapes and numbers made"))
        << out_;
    EXPECT_FALSE(says("refuses:")) << out_;
    ASSERT_EQ(run(""), 6) << out_ << err_;  // the row that was kept says the same
    EXPECT_EQ(row("scaled.onnx").value("onnxruntime", ""), "unfed") << out_;
}

// Weights that were to lie beside the file: an error of reading, in a sentence.
TEST_F(VerifyAll, CountsAModelWithoutItsWeightsAsRefused) {
    TinyOnnx m = convolution({1, 3, 32, 32});
    auto& weights = *m.proto().mutable_graph()->mutable_initializer(0);
    weights.clear_float_data();
    weights.clear_raw_data();
    weights.set_data_location(::onnx::TensorProto::EXTERNAL);
    auto& place = *weights.add_external_data();
    place.set_key("location");
    place.set_value("gone.bin");
    m.save(dir_ / "models/without.onnx");
    ASSERT_EQ(run(""), 6) << out_ << err_;
    EXPECT_TRUE(row("without.onnx").value("refused", false)) << out_;
    EXPECT_TRUE(says("1 that ONNX Runtime refuses: 1 refused with a sentence, 0 compiled, 0 ended"))
        << out_;
}

TEST_F(VerifyAll, GoesOnWhereItEndedAndDoesAgainWhatChanged) {
    convolution({1, 3, 32, 32}).save(dir_ / "models/first.onnx");
    convolution({1, 3, 32, 32}).save(dir_ / "models/second.onnx");
    ASSERT_EQ(run("--only first"), 0) << out_ << err_;
    ASSERT_EQ(run(""), 0) << out_ << err_;
    EXPECT_TRUE(says("1 row is of an earlier call")) << out_;
    convolution({1, 3, 24, 24}).save(dir_ / "models/first.onnx");
    ASSERT_EQ(run(""), 0) << out_ << err_;
    EXPECT_TRUE(says("1 row is of an earlier call")) << out_;
    ASSERT_EQ(run("--again all"), 0) << out_ << err_;
    EXPECT_FALSE(says("of an earlier call")) << out_;
    fs::remove(dir_ / "models/first.onnx");
    ASSERT_EQ(run(""), 0) << out_ << err_;
    EXPECT_EQ(json_["models"].size(), 1u);
}

TEST_F(VerifyAll, KeepsToItsLimitsAndGoesOn) {
    if (!can_limit_memory) GTEST_SKIP() << "a sanitizer reserves more than any limit";
    convolution({1, 3, 32, 32}).save(dir_ / "models/plain.onnx");
    EXPECT_EQ(run("--memory-limit 0.02"), 6) << out_ << err_;  // not enough for ONNX Runtime either
    EXPECT_EQ(row("plain.onnx").value("onnxruntime", ""), "refuses") << out_;
    EXPECT_EQ(json_.value("complete", false), true);
    // What a limit made is done again within another one.
    EXPECT_EQ(run(""), 0) << out_ << err_;
    EXPECT_FALSE(says("of an earlier call")) << out_;
    EXPECT_EQ(row("plain.onnx").value("onnxruntime", ""), "runs") << out_;
}

TEST_F(VerifyAll, HasARowForAModelThatCannotBeRead) {
    convolution({1, 3, 32, 32}).save(dir_ / "models/closed.onnx");
    convolution({1, 3, 32, 32}).save(dir_ / "models/plain.onnx");
    fs::permissions(dir_ / "models/closed.onnx", fs::perms::none);
    before_ = test::bound_by_modes();
    ASSERT_EQ(run(""), 6) << out_ << err_;
    EXPECT_EQ(json_["models"].size(), 2u) << out_;
    EXPECT_NE(row("closed.onnx").value("compile_text", "").find("Permission denied"),
              std::string::npos)
        << out_;
    EXPECT_EQ(row("plain.onnx").value("onnxruntime", ""), "runs") << out_;
}

// Another call may have written the file since this one read it.
TEST_F(VerifyAll, KeepsTheRowsOfOtherModels) {
    convolution({1, 3, 32, 32}).save(dir_ / "models/first.onnx");
    convolution({1, 3, 32, 32}).save(dir_ / "models/second.onnx");
    ASSERT_EQ(run("--only second"), 0) << out_ << err_;
    ASSERT_EQ(run("--only first"), 0) << out_ << err_;
    EXPECT_EQ(json_["models"].size(), 2u) << out_;
}

TEST_F(VerifyAll, IsExplainedByItsHelp) {
    ASSERT_EQ(vartml("verify --all --help"), 0) << err_;
    EXPECT_TRUE(says("--picture-size")) << out_;
}

// Who says how a picture is fed: an option over the sidecar, not the sidecar.
TEST_F(VerifyAll, NamesTheOptionThatSaysThePixels) {
    convolution({1, 3, 8, 8}).save(dir_ / "net.onnx");
    test::spill(dir_ / "grey.png", png_of(100, 1));
    ASSERT_EQ(vartml("verify net.onnx grey.png --mean 10"), 0) << out_ << err_;
    EXPECT_TRUE(says("as the command line (--mean) says")) << out_;
    test::spill(dir_ / "net.modelinfo", "[x]\ndir=input\nx-vartml-scale=0.01\n");
    ASSERT_EQ(vartml("verify net.onnx grey.png --mean 10"), 0) << out_ << err_;
    EXPECT_TRUE(says("as the command line (--mean) over the sidecar says")) << out_;
    ASSERT_EQ(vartml("verify net.onnx grey.png --scale 0.02"), 0) << out_ << err_;
    EXPECT_TRUE(says("as the command line (--scale) says")) << out_;
    ASSERT_EQ(vartml("verify net.onnx grey.png --mean 10 --scale 0.02"), 0) << out_ << err_;
    EXPECT_TRUE(says("as the command line (--mean and --scale) says")) << out_;
    ASSERT_EQ(vartml("verify net.onnx grey.png"), 0) << out_ << err_;
    EXPECT_TRUE(says("as the sidecar says")) << out_;
}

TEST_F(VerifyAll, SaysWhatIsMissing) {
    EXPECT_EQ(run(""), 1);
    EXPECT_NE(err_.find("models: holds no .onnx file"), std::string::npos) << err_;
    convolution({1, 3, 32, 32}).save(dir_ / "models/plain.onnx");
    EXPECT_EQ(run("--only nothing"), 1);
    EXPECT_NE(err_.find("--only"), std::string::npos) << err_;
    test::spill(dir_ / "results.json", "no JSON");
    EXPECT_EQ(run(""), 1);
    EXPECT_NE(err_.find("results.json: is not JSON"), std::string::npos) << err_;
    test::spill(dir_ / "results.json", R"({"name": "package"})");
    EXPECT_EQ(run(""), 1);
    EXPECT_NE(err_.find("results.json: is JSON of another kind"), std::string::npos) << err_;
    EXPECT_EQ(test::slurp(dir_ / "results.json"), R"({"name": "package"})");
    fs::remove(dir_ / "results.json");
    ASSERT_EQ(run(""), 0) << out_ << err_;
    fs::create_directory(dir_ / "others");
    convolution({1, 3, 32, 32}).save(dir_ / "others/plain.onnx");
    EXPECT_NE(vartml("verify --all others --json results.json"), 0);
    EXPECT_NE(err_.find("has the results of folder models, which would be lost"), std::string::npos)
        << err_;
}

}  // namespace
}  // namespace vartml::verify
