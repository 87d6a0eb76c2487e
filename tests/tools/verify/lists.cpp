// SPDX-License-Identifier: Apache-2.0
// Models that list their boxes by score: rows of the same score have no order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "lib/compile/compile.h"
#include "lib/tools/verify/agreement.h"
#include "lib/tools/verify/folder_check.h"
#include "lib/tools/verify/session.h"
#include "lib/tools/verify/stages.h"
#include "lib/tools/verify/verify.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::verify {
namespace {

using test::TinyOnnx;

// Four rows, the last below the threshold of the family. Added to all is the mean of the input,
// which is nothing. `beside`: with an output that no decoder reads.
void save_list(const std::string& path, bool beside) {
    TinyOnnx m;
    m.input("images", {1, 3, 64, 64})
        .floats("b", {1, 4, 4},
                {.1f, .1f, .2f, .2f, .5f, .5f, .7f, .7f, .3f, .1f, .4f, .2f, 0, 0, 1, 1})
        .floats("s", {1, 4}, {.9f, .6f, .6f, .1f})
        .floats("l", {1, 4}, {3, 1, 2, 5})
        .ints("two", {2}, {1, 1})
        .node("ReduceMean", {"images"}, {"mean"})
        .node("Reshape", {"mean", "two"}, {"zero"})
        .node("Add", {"b", "zero"}, {"boxes"})
        .node("Add", {"s", "zero"}, {"scores"})
        .node("Add", {"l", "zero"}, {"l_sum"})
        .node("Cast", {"l_sum"}, {"labels"}, {{"to", int64_t{TinyOnnx::int64}}})
        .output("labels", {1, 4}, TinyOnnx::int64)
        .output("boxes")
        .output("scores");
    if (beside)
        m.floats("e", {1, 8}, {1, -2, 3, -4, 5, -6, 7, -8})
            .node("Add", {"e", "zero"}, {"embedding"})
            .output("embedding");
    m.save(path);
}

// Exchanges two rows of all outputs.
void exchange(Stages& stages, size_t a, size_t b) {
    stages.run = [good = stages.run, a, b](Session& session, const std::vector<Buffer>& inputs) {
        auto outputs = good(session, inputs);
        for (size_t i = 0; outputs && i < outputs->size(); ++i) {
            Buffer& bytes = (*outputs)[i];
            const size_t row = bytes.size() / 4;
            std::swap_ranges(&bytes[a * row], &bytes[a * row] + row, &bytes[b * row]);
        }
        return outputs;
    };
}

class Lists : public testing::Test {
protected:
    void SetUp() override {
        if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
            GTEST_SKIP() << "built without ONNX Runtime's headers";
        compile(folder_ / "net.onnx");
        r.model = folder_ / "net.onnx";
        r.compiled = folder_ / "net.rai";
        r.info.decoder = "detr";
        r.num_samples = 1;
        r.sample = [](size_t i) {
            return Result<Sample>(
                Sample{"zeros " + std::to_string(i),
                       {},
                       {{DataType::float32, {1, 3, 64, 64}, Buffer(size_t{4} * 3 * 64 * 64)}},
                       {}});
        };
    }

    void compile(const std::string& model, bool beside = false) {
        save_list(model, beside);
        compile_again(model);
    }
    void compile_again(const std::string& model) {
        compiler::CompileRequest compile;
        compile.model = model;
        compile.output = folder_ / "net.rai";
        compile.force = true;
        const auto compiled = compiler::compile(compile);
        ASSERT_TRUE(compiled) << compiled.error().message;
    }

    const test::TempDir folder_;
    Request r;
};

TEST_F(Lists, AreJudgedByTheRowsThatCount) {
    struct Row {
        size_t a, b;
        bool is_good;
    };
    const Row rows[] = {
        {0, 0, true},
        {1, 2, true},  // of the same score
        {0, 1, true},  // what is found is the same
    };
    for (const Row& row : rows) {
        Stages stages = product_stages();
        exchange(stages, row.a, row.b);
        const auto report = verify(r, stages);
        ASSERT_TRUE(report) << report.error().message;
        EXPECT_EQ(report->is_good(), row.is_good) << row.a << row.b << console_text(*report);
        ASSERT_TRUE(report->effect);
        EXPECT_EQ(report->effect->found, 3u) << console_text(*report);
    }
    // A label that changes is a fault, whatever the order.
    Stages stages = product_stages();
    stages.run = [good = stages.run](Session& session, const std::vector<Buffer>& inputs) {
        auto outputs = good(session, inputs);
        if (outputs) (*outputs)[0][0] = std::byte{4};
        return outputs;
    };
    const auto report = verify(r, stages);
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_NE(report->first_fault(), nullptr);
    EXPECT_EQ(report->first_fault()->subject, "output 'labels'");
}

// Boxes that are found again say nothing of an embedding beside them.
TEST_F(Lists, DoNotVouchForWhatNoDecoderReads) {
    compile(folder_ / "net.onnx", true);
    const auto good = verify(r);
    ASSERT_TRUE(good) << good.error().message;
    EXPECT_TRUE(good->is_good()) << console_text(*good);
    Stages stages = product_stages();
    stages.run = [run = stages.run](Session& session, const std::vector<Buffer>& inputs) {
        auto outputs = run(session, inputs);
        for (size_t i = 3; outputs && i < (*outputs)[3].size(); i += 4)
            (*outputs)[3][i] ^= std::byte{0x80};  // the signs
        return outputs;
    };
    const auto report = verify(r, stages);
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_NE(report->first_fault(), nullptr) << console_text(*report);
    EXPECT_EQ(report->first_fault()->subject, "output 'embedding'");
}

// Coordinates up to 600 hide scores up to 1 from the cosine of their tensor.
TEST_F(Lists, AreFaultyWhereNothingIsFoundAgain) {
    TinyOnnx m;
    m.input("images", {1, 3, 640, 640})
        .floats("t", {1, 2, 6}, {40, 40, 400, 600, .9f, 1, 80, 200, 600, 500, .8f, 0})
        .ints("three", {3}, {1, 1, 1})
        .node("ReduceMean", {"images"}, {"mean"})
        .node("Reshape", {"mean", "three"}, {"zero"})
        .node("Add", {"t", "zero"}, {"rows"})
        .output("rows")
        .save(folder_ / "net.onnx");
    compile_again(folder_ / "net.onnx");
    r.info.decoder = "yolo-end2end";
    r.sample = [](size_t) {
        return Result<Sample>(
            Sample{"zeros",
                   {},
                   {{DataType::float32, {1, 3, 640, 640}, Buffer(size_t{4} * 3 * 640 * 640)}},
                   {}});
    };
    const auto good = verify(r);
    ASSERT_TRUE(good) << good.error().message;
    EXPECT_TRUE(good->is_good()) << console_text(*good);
    Stages stages = product_stages();
    stages.run = [run = stages.run](Session& session, const std::vector<Buffer>& inputs) {
        auto outputs = run(session, inputs);
        if (!outputs) return outputs;
        Buffer& bytes = (*outputs)[0];
        const size_t element = size_bytes(session.output_view(0).data_type);
        for (size_t row = 0; row < 2; ++row)
            std::memset(&bytes[row * bytes.size() / 2 + 4 * element], 0, element);
        return outputs;
    };
    const auto report = verify(r, stages);
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_NE(report->first_fault(), nullptr) << console_text(*report);
    EXPECT_EQ(report->first_fault()->subject, "what is found") << console_text(*report);
    EXPECT_NE(console_text(*report).find("of 2 boxes 2 missing"), std::string::npos)
        << console_text(*report);
}

// Scores of 30 are none: what a decoder makes of them is noise, which differs as it likes.
TEST_F(Lists, OfADecoderThatDoesNotFitAreNotDecoded) {
    TinyOnnx m;
    m.input("images", {1, 3, 64, 64})
        .floats("b", {1, 2, 4}, {.1f, .1f, .2f, .2f, .5f, .5f, .7f, .7f})
        .floats("s", {1, 2}, {30, 20})
        .floats("l", {1, 2}, {3, 1})
        .ints("two", {2}, {1, 1})
        .node("ReduceMean", {"images"}, {"mean"})
        .node("Reshape", {"mean", "two"}, {"zero"})
        .node("Add", {"b", "zero"}, {"boxes"})
        .node("Add", {"s", "zero"}, {"scores"})
        .node("Add", {"l", "zero"}, {"l_sum"})
        .node("Cast", {"l_sum"}, {"labels"}, {{"to", int64_t{TinyOnnx::int64}}})
        .output("labels", {1, 2}, TinyOnnx::int64)
        .output("boxes")
        .output("scores")
        .save(folder_ / "net.onnx");
    compile_again(folder_ / "net.onnx");
    Stages stages = product_stages();
    stages.decode = [](DecodePath&, std::span<const OutputTensor>,
                       const Frame&) -> Result<vision::Candidates> {
        ADD_FAILURE() << "the decoder was asked";
        return vision::Candidates();
    };
    const auto report = verify(r, stages);
    ASSERT_TRUE(report) << report.error().message;
    const std::string words = console_text(*report);
    EXPECT_TRUE(report->is_good()) << words;
    EXPECT_NE(words.find("decoder detr does not fit the numbers"), words.npos) << words;
}

// One picture is bad by a number that is no larger than the one by which the next is good.
TEST_F(Lists, TellOfThePictureThatIsBad) {
    r.num_samples = 2;
    for (const size_t bad : {size_t{0}, size_t{1}}) {
        SCOPED_TRACE(bad);
        Stages stages = product_stages();
        stages.run = [good = stages.run, bad, calls = size_t{0}](
                         Session& session, const std::vector<Buffer>& inputs) mutable {
            auto outputs = good(session, inputs);
            if (!outputs) return outputs;
            if (calls++ != bad) {  // another order of rows
                for (Buffer& bytes : *outputs) {
                    const size_t row = bytes.size() / 4;
                    std::swap_ranges(&bytes[row], &bytes[row] + row, &bytes[2 * row]);
                }
                return outputs;
            }
            for (size_t i = 0; i + 4 <= (*outputs)[1].size(); i += 4) {  // other boxes
                float value = 0;
                std::memcpy(&value, &(*outputs)[1][i], 4);
                value *= 1.2f;
                std::memcpy(&(*outputs)[1][i], &value, 4);
            }
            return outputs;
        };
        const auto report = verify(r, stages);
        ASSERT_TRUE(report) << report.error().message;
        const Finding* fault = report->first_fault();
        ASSERT_NE(fault, nullptr) << console_text(*report);
        EXPECT_EQ(fault->subject, "output 'boxes'");
        EXPECT_EQ(fault->sample, "zeros " + std::to_string(bad)) << console_text(*report);
        EXPECT_NE(fault->text.find("1.2 times as long"), std::string::npos) << fault->text;
    }
}

template <typename T>
NamedTensor named(const std::string& name, DataType type, std::vector<int64_t> shape,
                  const std::vector<T>& numbers) {
    NamedTensor tensor{name, {type, std::move(shape), Buffer(numbers.size() * sizeof(T))}};
    std::memcpy(tensor.data.bytes.data(), numbers.data(), tensor.data.bytes.size());
    return tensor;
}

// As the process that runs ONNX Runtime leaves them.
void write_outputs(const std::string& folder, const std::vector<NamedTensor>& outputs) {
    namespace fs = std::filesystem;
    fs::create_directories(folder);
    ASSERT_TRUE(write_request(folder, outputs));
    fs::rename(folder + "/request", folder + "/outputs");
    for (size_t i = 0; i < outputs.size(); ++i)
        fs::rename(folder + "/input_" + std::to_string(i), folder + "/output_" + std::to_string(i));
}

// Which rows of noise come first is chance: no more of them may be off than on an ideal device.
TEST_F(Lists, OfNoObjectsAreJudgedByTheirScores) {
    const auto session = Session::open(r.compiled, {});
    ASSERT_TRUE(session) << session.error().message;
    ModelInfo info;
    info.decoder = "detr";
    info.score_threshold = 0.95;
    const DecoderUse use{info, session->outputs(), 64, 64, {64, 64, {}}};
    using Floats = std::vector<float>;
    const Floats boxes = {.1f, .1f, .2f, .2f, .5f, .5f, .7f, .7f, .3f, .1f, .4f, .2f, 0, 0, 1, 1},
                 others = {.6f, .1f, .9f, .2f, .1f, .5f, .3f, .7f, .3f, .1f, .4f, .2f, 0, 0, 1, 1};
    const auto outputs = [](const std::vector<int64_t>& labels, const Floats& corners,
                            const Floats& scores) {
        return std::vector<TensorData>{named("", DataType::int64, {1, 4}, labels).data,
                                       named("", DataType::float32, {1, 4, 4}, corners).data,
                                       named("", DataType::float32, {1, 4}, scores).data};
    };
    const Floats scores = {.3f, .29f, .28f, .27f};
    const auto plain = outputs({3, 1, 2, 5}, boxes, scores);
    const auto found = outputs({7, 8, 2, 5}, others, scores);
    const auto judge = [&](const std::vector<TensorData>& own,
                           const std::vector<TensorData>& ideal) {
        std::vector<ExpectedOutput> expected(3);
        for (size_t i = 0; i < 3; ++i) expected[i] = {plain[i], {}, {ideal[i]}};
        const ModelAgreement all = judge_model(own, expected, Rule::standard, &use);
        return all.outputs_are_good() && all.objects.empty();
    };
    EXPECT_TRUE(judge(plain, plain));
    EXPECT_TRUE(judge(found, found));
    EXPECT_FALSE(judge(found, plain));
    const auto louder = outputs({7, 8, 2, 5}, others, {.9f, .1f, .1f, .1f});
    EXPECT_FALSE(judge(louder, found));
    info.score_threshold = 0.1;  // they are objects
    EXPECT_FALSE(judge(found, plain));
}

// Coordinates hide the scores of a dense head from the cosine of their tensor.
TEST(DenseHeads, WithoutObjectsAreJudgedByTheirScores) {
    constexpr size_t positions = 84;  // of 64x64 pixels
    const auto values = [](float best, float other) {
        std::vector<float> numbers(6 * positions);
        for (size_t i = 0; i < positions; ++i) {
            numbers[i] = numbers[positions + i] = static_cast<float>(i % 60);
            numbers[2 * positions + i] = numbers[3 * positions + i] = 30;
            numbers[4 * positions + i] = other;
        }
        numbers[5 * positions + 7] = best;
        return named("", DataType::float32, {1, 6, positions}, numbers).data;
    };
    ModelInfo info;
    info.decoder = "yolo-v8";
    const std::vector<TensorInfo> outputs = {
        {"output0",
         make_view(DataType::float32, Layout::unknown, {1, 6, positions}),
         {},
         false,
         {}}};
    const DecoderUse use{info, outputs, 64, 64, {64, 64, {}}};
    struct Row {
        const char* what;
        float best, other;           // of the model, where the reference has 0.2 and 0.01
        std::vector<float> rounded;  // best and other of the ideal device
        bool is_good;
    };
    const Row rows[] = {
        {"the same", 0.2F, 0.01F, {}, true},
        {"nearly", 0.19F, 0.012F, {}, true},
        {"no scores", 0, 0, {}, false},
        {"half of them", 0.09F, 0.01F, {}, false},
        {"noise that is louder, but no object", 0.2F, 0.15F, {}, false},
        {"what an ideal device loses, too", 0.09F, 0.01F, {0.08F, 0.01F}, true},
        {"what an ideal device keeps", 0.09F, 0.01F, {0.2F, 0.01F}, false},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.what);
        std::vector<ExpectedOutput> expected(1);
        expected[0].plain = values(0.2F, 0.01F);
        if (!row.rounded.empty()) expected[0].rounded = {values(row.rounded[0], row.rounded[1])};
        const ModelAgreement all =
            judge_model({values(row.best, row.other)}, expected, Rule::standard, &use);
        EXPECT_TRUE(all.outputs_are_good()) << all.outputs[0].text;
        EXPECT_EQ(all.objects.empty(), row.is_good) << all.objects;
    }
}

// Boxes in the units of a second input, which takes the size of the picture.
void save_list_of_pixels(const std::string& path) {
    TinyOnnx m;
    m.input("images", {1, 3, 64, 64})
        .input("sizes", {1, 2})
        .floats("b", {1, 4, 4},
                {.1f, .1f, .2f, .2f, .5f, .5f, .7f, .7f, .3f, .1f, .4f, .2f, 0, 0, 1, 1})
        .floats("s", {1, 4}, {.9f, .8f, .1f, .1f})
        .floats("l", {1, 4}, {3, 1, 2, 5})
        .ints("two", {2}, {1, 1})
        .node("ReduceMean", {"images"}, {"mean"})
        .node("Reshape", {"mean", "two"}, {"zero"})
        .node("Concat", {"sizes", "sizes"}, {"units"}, {{"axis", int64_t{1}}})
        .node("Mul", {"b", "units"}, {"boxes"})
        .node("Add", {"s", "zero"}, {"scores"})
        .node("Add", {"l", "zero"}, {"l_sum"})
        .node("Cast", {"l_sum"}, {"labels"}, {{"to", int64_t{TinyOnnx::int64}}})
        .output("labels", {1, 4}, TinyOnnx::int64)
        .output("boxes")
        .output("scores");
    m.save(path);
}

// As `verify --all` does; a pipeline wants a sidecar, which the note says.
TEST(ListsInPixels, GetTheSizeOfAPictureByTheNameOfTheInput) {
    if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
        GTEST_SKIP() << "built without ONNX Runtime's headers";
    const test::TempDir folder;
    save_list_of_pixels(folder / "net.onnx");
    compiler::CompileRequest compile;
    compile.model = folder / "net.onnx";
    compile.output = folder / "net.rai";
    const auto compiled = compiler::compile(compile);
    ASSERT_TRUE(compiled) << compiled.error().message;
    Request r;
    r.model = folder / "net.onnx";
    r.compiled = folder / "net.rai";
    r.info.decoder = "detr";
    r.num_samples = 1;
    r.sample = [](size_t) {
        return Result<Sample>(
            Sample{"black", PictureData{100, 50, std::vector<uint8_t>(3 * 100 * 50)}, {}, {}});
    };
    const auto report = verify(r);
    ASSERT_TRUE(report) << report.error().message;
    const std::string words = console_text(*report);
    EXPECT_TRUE(report->is_good()) << words;
    EXPECT_EQ(report->effect->found, 2U) << words;
    EXPECT_NE(words.find("input 'sizes' was fed the size of the picture"), words.npos) << words;
}

// No sidecar says what the second input is for, but verify fed it.
TEST(ListsInPixels, AreInTheUnitsOfTheSizeThatIsFed) {
    const test::TempDir folder;
    save_list_of_pixels(folder / "net.onnx");
    compiler::CompileRequest compile;
    compile.model = folder / "net.onnx";
    compile.output = folder / "net.rai";
    const auto compiled = compiler::compile(compile);
    ASSERT_TRUE(compiled) << compiled.error().message;

    const std::vector<NamedTensor> inputs = {
        named("images", DataType::float32, {1, 3, 64, 64}, std::vector<float>(3 * 64 * 64)),
        named("sizes", DataType::float32, {1, 2}, std::vector<float>{320, 320})};
    // The two rows that are no objects are exchanged; then one is another object.
    for (const float right : {64.0F, 200.0F}) {
        SCOPED_TRACE(right);
        const std::vector<float> boxes = {32, 32, right, 64,  160, 160, 224, 224,
                                          0,  0,  320,   320, 96,  32,  128, 64};
        const std::vector<NamedTensor> outputs = {
            named("labels", DataType::int64, {1, 4}, std::vector<int64_t>{3, 1, 5, 2}),
            named("boxes", DataType::float32, {1, 4, 4}, boxes),
            named("scores", DataType::float32, {1, 4}, std::vector<float>{.9f, .8f, .1f, .1f})};
        const test::TempDir place;
        ASSERT_TRUE(write_request(place.path(), inputs));
        write_outputs(place / reference_levels[0], outputs);
        const auto verdict = check_folder({folder / "net.onnx", folder / "net.rai", place.path()});
        ASSERT_TRUE(verdict) << verdict.error().message;
        EXPECT_EQ(verdict->agrees, right == 64) << verdict->text;
    }
}

// What ONNX Runtime gives at another level is another thing: nobody knows which is right.
TEST(FolderCheck, IsUndecidedWhereTheReferenceIsFarFromItself) {
    TinyOnnx m;
    m.input("x", {1, 4}).node("Neg", {"x"}, {"y"}).output("y");
    const test::TempDir folder;
    m.save(folder / "net.onnx");
    compiler::CompileRequest compile;
    compile.model = folder / "net.onnx";
    compile.output = folder / "net.rai";
    const auto compiled = compiler::compile(compile);
    ASSERT_TRUE(compiled) << compiled.error().message;
    const auto four = [](const std::string& name, const std::vector<float>& numbers) {
        return std::vector<NamedTensor>{named(name, DataType::float32, {1, 4}, numbers)};
    };
    struct Row {
        std::vector<float> plain, level;
        bool agrees, is_undecided;
    };
    const Row rows[] = {
        {{-1, -2, -3, -4}, {-1, -2, -3, -4}, true, false},
        {{-4, -2, -3, -1}, {-4, -2, -3, -1}, false, false},
        {{-4, 2, 3, 1}, {4, 2, -3, 1}, false, true},
    };
    for (const Row& row : rows) {
        const test::TempDir place;
        ASSERT_TRUE(write_request(place.path(), four("x", {1, 2, 3, 4})));
        write_outputs(place / reference_levels[0], four("y", row.plain));
        write_outputs(place / reference_levels[1], four("y", row.level));
        const auto verdict =
            check_folder({folder / "net.onnx", folder / "net.rai", place.path(), "f32", Rule::f32});
        ASSERT_TRUE(verdict) << verdict.error().message;
        EXPECT_EQ(verdict->agrees, row.agrees) << verdict->text;
        EXPECT_EQ(verdict->is_undecided, row.is_undecided) << verdict->text;
        const auto read = verdict_of_json(to_json(*verdict));
        ASSERT_TRUE(read);
        EXPECT_EQ(read->is_undecided, row.is_undecided);
    }
}

// Scores of 30 are none: what a decoder makes of them is noise, whose differences say nothing.
TEST(ListsOfAnotherDecoder, AreJudgedByTheirNumbersAlone) {
    TinyOnnx m;
    m.input("images", {1, 3, 64, 64})
        .floats("b", {1, 4, 4},
                {.1f, .1f, .2f, .2f, .5f, .5f, .7f, .7f, .3f, .1f, .4f, .2f, 0, 0, 1, 1})
        .floats("s", {1, 4}, {30, 20, 10, 5})
        .floats("l", {1, 4}, {3, 1, 2, 5})
        .ints("two", {2}, {1, 1})
        .node("ReduceMean", {"images"}, {"mean"})
        .node("Reshape", {"mean", "two"}, {"zero"})
        .node("Add", {"b", "zero"}, {"boxes"})
        .node("Add", {"s", "zero"}, {"scores"})
        .node("Add", {"l", "zero"}, {"l_sum"})
        .node("Cast", {"l_sum"}, {"labels"}, {{"to", int64_t{TinyOnnx::int64}}})
        .output("labels", {1, 4}, TinyOnnx::int64)
        .output("boxes")
        .output("scores");
    const test::TempDir folder;
    m.save(folder / "net.onnx");
    test::spill(folder / "net.modelinfo", "[modelinfo]\nversion=1.0\nx-vartml-decoder=detr\n");
    compiler::CompileRequest compile;
    compile.model = folder / "net.onnx";
    compile.output = folder / "net.rai";
    const auto compiled = compiler::compile(compile);
    ASSERT_TRUE(compiled) << compiled.error().message;
    const test::TempDir place;
    ASSERT_TRUE(write_request(place.path(), {named("images", DataType::float32, {1, 3, 64, 64},
                                                   std::vector<float>(3 * 64 * 64))}));
    const std::vector<float> boxes = {.1f, .1f, .2f, .2f, .5f, .5f, .7f, .7f,
                                      .3f, .1f, .4f, .2f, 0,   0,   1,   1};
    write_outputs(place / reference_levels[0],
                  {named("labels", DataType::int64, {1, 4}, std::vector<int64_t>{3, 1, 2, 5}),
                   named("boxes", DataType::float32, {1, 4, 4}, boxes),
                   named("scores", DataType::float32, {1, 4},
                         std::vector<float>{30.3f, 20.2f, 10.1f, 5.05f})});
    const auto verdict = check_folder({folder / "net.onnx", folder / "net.rai", place.path()});
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_TRUE(verdict->agrees) << verdict->text;
}

}  // namespace
}  // namespace vartml::verify
