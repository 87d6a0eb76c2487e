// SPDX-License-Identifier: Apache-2.0
// A fault at each stage of `vartml verify` is found at that stage and nowhere else.
#include "lib/tools/verify/stages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "lib/compile/compile.h"
#include "lib/tools/verify/verify.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::verify {
namespace {

using test::TinyOnnx;
using Ints = TinyOnnx::Ints;

// A detector of the YOLOX family for 64x64 pixels and two classes: a convolution per stride.
void save_detector(const std::string& path) {
    TinyOnnx m;
    m.input("images", {1, 3, 64, 64}).ints("rows", {3}, {1, 7, -1});
    for (const int stride : {8, 16, 32}) {
        const std::string s = std::to_string(stride);
        m.weights("w" + s, {7, 3, stride, stride})
            .node("Conv", {"images", "w" + s}, {"c" + s}, {{"strides", Ints{stride, stride}}})
            .node("Sigmoid", {"c" + s}, {"s" + s})
            .node("Reshape", {"s" + s, "rows"}, {"r" + s});
    }
    m.node("Concat", {"r8", "r16", "r32"}, {"all"}, {{"axis", int64_t{2}}})
        .node("Transpose", {"all"}, {"output"}, {{"perm", Ints{0, 2, 1}}})
        .output("output")
        .save(path);
}

// Colours that differ from place to place.
PictureData picture(uint32_t width, uint32_t height, double phase) {
    PictureData p{width, height, {}};
    for (uint32_t y = 0; y < height; ++y)
        for (uint32_t x = 0; x < width; ++x)
            for (int c = 0; c < 3; ++c)
                p.rgb.push_back(static_cast<uint8_t>(
                    127.5 + 127.4 * std::sin(phase + 0.13 * x * (c + 1) + 0.21 * y - c)));
    return p;
}

using Break = void (*)(Stages&);
struct Row {
    const char* name;
    const char* stage;  // to be named; "" = none
    Break damage;
};

// A Preprocessor that was made with other options.
void feed_other_pixels(Stages& stages, void (*change)(PreprocessOptions&)) {
    stages.preprocess = [good = stages.preprocess, change](
                            const PictureData& p, const TensorView& cpu, const TensorView& view,
                            PreprocessOptions options) {
        change(options);
        return good(p, cpu, view, options);
    };
}

// Candidates that the decoder gives, changed.
void decode_otherwise(Stages& stages, void (*change)(vision::Candidates&)) {
    stages.decode = [good = stages.decode, change](DecodePath& path,
                                                   std::span<const OutputTensor> tensors,
                                                   const Frame& frame) {
        auto found = good(path, tensors, frame);
        if (found) change(*found);
        return found;
    };
}

void keep_otherwise(Stages& stages, void (*change)(Decoded&)) {
    stages.suppress = [good = stages.suppress, change](DecodePath& path,
                                                       std::span<const OutputTensor> tensors,
                                                       const Frame& frame) {
        auto found = good(path, tensors, frame);
        if (found) change(*found);
        return found;
    };
}

void change_output(Stages& stages, float (*change)(float)) {
    stages.run = [good = stages.run, change](Session& session, const std::vector<Buffer>& inputs) {
        auto outputs = good(session, inputs);
        if (outputs)
            for (size_t i = 0; i + 4 <= (*outputs)[0].size(); i += 4) {
                float value = 0;
                std::memcpy(&value, &(*outputs)[0][i], 4);
                value = change(value);
                std::memcpy(&(*outputs)[0][i], &value, 4);
            }
        return outputs;
    };
}

const Row rows[] = {
    {"nothing", "", [](Stages&) {}},
    {"swapped colours", "pre-process",
     [](Stages& s) {
         feed_other_pixels(s, [](PreprocessOptions& o) { o.channels = ChannelOrder::rgb; });
     }},
    {"stretched instead of letterboxed", "pre-process",
     [](Stages& s) {
         feed_other_pixels(s, [](PreprocessOptions& o) { o.resize = ResizeMode::stretch; });
     }},
    {"nearest instead of bilinear", "pre-process",
     [](Stages& s) {
         feed_other_pixels(s,
                           [](PreprocessOptions& o) { o.interpolation = Interpolation::nearest; });
     }},
    {"a way back to the frame that is a pixel off", "pre-process",
     [](Stages& s) {
         s.preprocess = [good = s.preprocess](const PictureData& p, const TensorView& cpu,
                                              const TensorView& view,
                                              const PreprocessOptions& options) {
             auto made = good(p, cpu, view, options);
             if (made) made->to_frame.c += 1;
             return made;
         };
     }},
    {"outputs of another scale", "model",
     [](Stages& s) { change_output(s, [](float v) { return 1.2f * v; }); }},
    {"outputs that lost their low half", "model",
     [](Stages& s) { change_output(s, [](float v) { return v < 0.5f ? 0 : v; }); }},
    {"a wrong zero point", "dequantisation",
     [](Stages& s) {
         s.dequantise = [good = s.dequantise](const TensorView& hw, const TensorView& cpu,
                                              const Buffer& bytes) {
             auto values = good(hw, cpu, bytes);
             if (values) (*values)[values->size() / 2] ^= std::byte{0x40};
             return values;
         };
     }},
    {"padding taken for elements", "dequantisation",
     [](Stages& s) {
         s.dequantise = [](const TensorView&, const TensorView& cpu, const Buffer& bytes) {
             return Result<Buffer>(
                 Buffer(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(cpu.size_bytes)));
         };
     }},
    {"centres half a cell off", "decode",
     [](Stages& s) {
         decode_otherwise(s, [](vision::Candidates& c) {
             for (auto& box : c.boxes) box.x0 += 4, box.x1 += 4;
         });
     }},
    {"scores without objectness", "decode",
     [](Stages& s) {
         decode_otherwise(s, [](vision::Candidates& c) {
             for (auto& box : c.boxes) box.score = std::sqrt(box.score);
         });
     }},
    {"a position left out", "decode",
     [](Stages& s) {
         decode_otherwise(s, [](vision::Candidates& c) { c.boxes.erase(c.boxes.begin()); });
     }},
    {"a box that stays twice", "NMS",
     [](Stages& s) {
         keep_otherwise(s, [](Decoded& d) { d.detections.push_back(d.detections.front()); });
     }},
    {"a box that goes with its neighbour", "NMS",
     [](Stages& s) { keep_otherwise(s, [](Decoded& d) { d.detections.pop_back(); }); }},
    {"no NMS at all", "NMS",
     [](Stages& s) {
         s.suppress = [](DecodePath& path, std::span<const OutputTensor> tensors,
                         const Frame& frame) {
             auto all = path.candidates(tensors, frame);
             Decoded decoded;
             for (const auto& c : all->boxes)
                 decoded.detections.push_back({c.x0, c.y0, c.x1, c.y1, c.score, c.class_id});
             return Result<Decoded>(decoded);
         };
     }},
};

class Stage : public testing::TestWithParam<Row> {
protected:
    // Compiled once for all rows.
    static void SetUpTestSuite() {
        folder_ = new test::TempDir;
        save_detector(*folder_ / "net.onnx");
        compiler::CompileRequest request;
        request.model = *folder_ / "net.onnx";
        request.output = *folder_ / "net.rai";
        const auto compiled = compiler::compile(request);
        ASSERT_TRUE(compiled) << compiled.error().message;
    }
    static void TearDownTestSuite() {
        delete folder_;
        folder_ = nullptr;
    }
    void SetUp() override {
        if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
            GTEST_SKIP() << "built without ONNX Runtime's headers";
    }

    static Request request() {
        Request r;
        r.model = *folder_ / "net.onnx";
        r.compiled = *folder_ / "net.rai";
        r.info.decoder = "yolox";
        r.info.score_threshold = 0.2;
        ModelInfo::Input input;
        input.name = "images";
        input.scale = {1 / 128.f};
        input.mean = {128};
        r.info.inputs = {input};
        r.num_samples = 2;
        r.sample = [](size_t i) {
            return Result<Sample>(
                Sample{"picture " + std::to_string(i), picture(90, 50, 2.0 * i), {}, {}});
        };
        return r;
    }

    static test::TempDir* folder_;
};
test::TempDir* Stage::folder_ = nullptr;

TEST_P(Stage, IsNamedForItsFaultAlone) {
    Stages stages = product_stages();
    GetParam().damage(stages);
    const auto report = verify(request(), stages);
    ASSERT_TRUE(report) << report.error().message;
    const std::string stage = GetParam().stage;
    std::string all;
    bool covered = stage.empty();
    for (const Finding& f : report->findings) {
        all += std::string(to_string(f.stage)) + ": " + f.text + "\n";
        EXPECT_EQ(f.is_good, to_string(f.stage) != stage) << to_string(f.stage) << ": " << f.text;
        covered = covered || to_string(f.stage) == stage;
    }
    EXPECT_TRUE(covered) << all;
    EXPECT_EQ(report->findings.size(), 5u) << all;  // one per stage: nothing was left out
    ASSERT_TRUE(report->effect);
    EXPECT_GT(report->effect->expected, 5u);
    const Finding* fault = report->first_fault();
    EXPECT_EQ(fault ? to_string(fault->stage) : "", stage);
    EXPECT_EQ(report->is_good(), stage.empty()) << console_text(*report);
    const std::string words = console_text(*report);
    const std::string begin = stage.empty() ? "The compiled model agrees with ONNX Runtime"
                                            : "The compiled model does NOT agree with ONNX Runtime";
    EXPECT_EQ(words.substr(0, begin.size()), begin);
    if (!stage.empty()) {
        EXPECT_NE(words.find("beyond tolerance is "), words.npos) << words;
        EXPECT_NE(json_text(*report).find("\"first_stage_beyond_tolerance\": \"" + stage + '"'),
                  std::string::npos);
    }
}
INSTANTIATE_TEST_SUITE_P(Verify, Stage, testing::ValuesIn(rows));

// Every stage is right by itself, but the pre-process of the pipeline is not that of the check.
TEST_F(Stage, SaysWhenStagesTogetherLoseDetections) {
    Stages stages = product_stages();
    stages.run = [good = stages.run, calls = 0](Session& session,
                                                const std::vector<Buffer>& inputs) mutable {
        auto outputs = good(session, inputs);
        // The second run of a frame is that of the chain.
        if (outputs && ++calls % 2 == 0)
            std::fill((*outputs)[0].begin(), (*outputs)[0].end(), std::byte{0});
        return outputs;
    };
    const auto report = verify(request(), stages);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->first_fault(), nullptr);
    EXPECT_FALSE(report->is_good());
    EXPECT_EQ(report->effect->found, 0u);
    EXPECT_NE(console_text(*report).find("together they change what is detected"),
              std::string::npos);
}

// ---- an output of one number

// The difference of two inputs that are near each other: what bf16 keeps of the larger one is as
// much as that. 4/3 of it is what an ideal device gives.
TEST(OneNumber, MayBeAsLongAsAnIdealDeviceMakesIt) {
    if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
        GTEST_SKIP() << "built without ONNX Runtime's headers";
    const test::TempDir folder;
    TinyOnnx m;
    m.input("x", {1, 2}).floats("w", {2, 1}, {1, -1}).node("MatMul", {"x", "w"}, {"y"});
    m.output("y").save(folder / "net.onnx");
    compiler::CompileRequest compile;
    compile.model = folder / "net.onnx";
    compile.output = folder / "net.rai";
    compile.convert_floats = false;
    const auto compiled = compiler::compile(compile);
    ASSERT_TRUE(compiled) << compiled.error().message;
    Request r;
    r.model = compile.model;
    r.compiled = compile.output;
    r.num_samples = 1;
    r.sample = [](size_t) {
        const float x[] = {1 + 0.75f / 128, 1};
        TensorData data{DataType::float32, {1, 2}, std::vector<std::byte>(sizeof x)};
        std::memcpy(data.bytes.data(), x, sizeof x);
        return Result<Sample>(Sample{"near", {}, {std::move(data)}, {}});
    };
    struct Row {
        const char* numerics;
        float (*change)(float);
        bool is_good;
    };
    const Row rows[] = {
        {"auto", [](float) { return 1 / 128.f; }, true},
        {"auto", [](float) { return 2 / 128.f; }, false},
        {"f32", [](float) { return 1 / 128.f; }, false},
    };
    for (const Row& row : rows) {
        Stages stages = product_stages();
        change_output(stages, row.change);
        r.numerics = row.numerics;
        const auto report = verify(r, stages);
        ASSERT_TRUE(report) << report.error().message;
        EXPECT_EQ(report->is_good(), row.is_good) << console_text(*report);
    }
}

Report on_one_picture() {
    Report report;
    report.reference = "ONNX Runtime";
    report.kind = "picture";
    report.samples = 1;
    return report;
}

TEST(Words, SayWhatALargeDifferenceOfOneNumberMeans) {
    Report report = on_one_picture();
    Finding& found = report.findings.emplace_back();
    found.subject = "output 'y'";
    found.text = "cosine 0.9995, at least 0.999";
    found.of_range = 0.22;
    const std::string words = console_text(report);
    EXPECT_NE(words.find("agrees with ONNX Runtime on 1 picture: each output as a whole is as near "
                         "as it must be.\n"),
              words.npos)
        << words;
    EXPECT_NE(words.find("differs by 22 % of that output's range (its greatest less its least "
                         "number; of a single number the number itself). That is no fault where "
                         "the output as a whole is near: cosine 0.9995, at least 0.999.\n"),
              words.npos)
        << words;
    found.of_range = 0.002;
    EXPECT_NE(
        console_text(report).find("no number is farther off than 0.2 % of its output's range, "
                                  "which is in output 'y'.\n"),
        std::string::npos)
        << console_text(report);
}

TEST(Words, SayWhereItCannotBeToldWhetherAModelAgrees) {
    Report report = on_one_picture();
    Finding& unclear = report.findings.emplace_back();
    unclear.subject = "output 'y'";
    unclear.text = "cannot be judged: why";
    unclear.sample = "a.jpg";
    unclear.is_good = false, unclear.is_undecided = true;
    const std::string words = console_text(report);
    EXPECT_TRUE(words.starts_with(
        "Whether the compiled model agrees with ONNX Runtime on 1 picture cannot be told.\n"
        "Output 'y': cannot be judged: why (a.jpg).\n"))
        << words;
    EXPECT_NE(words.find("  unclear  "), words.npos) << words;
    EXPECT_FALSE(report.is_good());
    EXPECT_NE(json_text(report).find("\"undecided\": true"), std::string::npos);

    Finding& differs = report.findings.emplace_back();
    differs.subject = "output 'z'";
    differs.is_good = false;
    EXPECT_TRUE(
        console_text(report).starts_with("The compiled model does NOT agree with ONNX "
                                         "Runtime on 1 picture.\n"))
        << console_text(report);
    EXPECT_NE(json_text(report).find("\"undecided\": false"), std::string::npos);
}

TEST(Words, SayPartsOfAHundredAsTheyAre) {
    Report report;
    Finding& found = report.findings.emplace_back();
    found.of_range = 1.04;
    EXPECT_NE(console_text(report).find("differs by 104 % of"), std::string::npos);
    report.effect.emplace().picture = {.maps = 1, .same_pixels = 0.99999};
    EXPECT_NE(console_text(report).find("99.99 % of the class map's pixels"), std::string::npos);
}

// ---- quantised models

::onnx::TensorProto codes(const std::string& name, const Ints& shape, const std::string& bytes) {
    ::onnx::TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(TinyOnnx::uint8);
    for (const int64_t d : shape) tensor.add_dims(d);
    tensor.set_raw_data(bytes);
    return tensor;
}

// An input that is quantised, a convolution between codes, and its dequantised output.
void save_quantised(const std::string& path) {
    TinyOnnx m;
    m.input("x", {1, 3, 16, 16}).floats("s", {}, {0.01f}).floats("t", {}, {0.02f});
    m.initialiser(codes("zero", {}, "\x64"));
    m.floats("ws", {}, {0.01f}).initialiser(codes("wz", {}, "\x80"));
    std::string weights(8 * 3 * 3 * 3, '\0');
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<char>(37 * i % 251);
    m.initialiser(codes("w", {8, 3, 3, 3}, weights));
    m.node("QuantizeLinear", {"x", "s", "zero"}, {"q"})
        .node("QLinearConv", {"q", "s", "zero", "w", "ws", "wz", "t", "zero"}, {"c"})
        .node("DequantizeLinear", {"c", "t", "zero"}, {"y"})
        .output("y")
        .save(path);
}

// One rule for `vartml verify` and `vartml verify --all`: more than a step is no fault by itself.
TEST(Quantised, AreJudgedByTheRuleOfCollections) {
    if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
        GTEST_SKIP() << "built without ONNX Runtime's headers";
    const test::TempDir folder;
    save_quantised(folder / "net.onnx");
    compiler::CompileRequest compile;
    compile.model = folder / "net.onnx";
    compile.output = folder / "net.rai";
    compile.convert_floats = false;
    const auto compiled = compiler::compile(compile);
    ASSERT_TRUE(compiled) << compiled.error().message;
    Request r;
    r.model = compile.model;
    r.compiled = compile.output;
    r.num_samples = 1;
    r.kind = "stored input";
    r.sample = [](size_t) {
        Sample sample;
        TensorData x{DataType::float32, {1, 3, 16, 16}, std::vector<std::byte>(4 * 768)};
        for (size_t i = 0; i < 768; ++i) {
            const float value = std::sin(0.37f * static_cast<float>(i));
            std::memcpy(&x.bytes[4 * i], &value, 4);
        }
        sample.name = "waves";
        sample.inputs = {std::move(x)};
        return Result<Sample>(std::move(sample));
    };
    struct Row {
        float (*change)(float);
        bool is_good;
    };
    const Row changes[] = {
        {[](float v) { return v; }, true},
        // Two steps on the largest: the cosine hardly sees it.
        {[](float v) { return v > 1.5f ? v + 0.04f : v; }, true},
        {[](float v) { return v > 0 ? 0 : v; }, false},
    };
    for (const Row& row : changes) {
        Stages stages = product_stages();
        change_output(stages, row.change);
        const auto report = verify(r, stages);
        ASSERT_TRUE(report) << report.error().message;
        EXPECT_EQ(report->is_good(), row.is_good) << console_text(*report);
        // A tolerance that the user gives is kept to.
        Request strict = r;
        strict.tolerance = 1;
        const auto kept = verify(strict, stages);
        ASSERT_TRUE(kept) << kept.error().message;
        EXPECT_EQ(kept->is_good(), &row == changes) << console_text(*kept);
    }
}

}  // namespace
}  // namespace vartml::verify
