// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vartml/postprocess.h>

#include "lib/compile/sidecar.h"
#include "tests/support/temp_dir.h"

namespace vartml::compiler {
namespace {

using Names = std::vector<std::string>;

struct Literal {
    std::string text;
    std::optional<Names> want;
};
const Literal literals[] = {
    {"{0: 'person', 1: 'bicycle'}", Names{"person", "bicycle"}},
    {"{0: 'person', 1: \"bird's nest\",}", Names{"person", "bird's nest"}},
    {R"({0: 'it\'s', 1: 'a\\b', 2: '\u00e4\x41', 3: '\q'})", Names{"it's", "a\\b",
                                                                   "\xc3\xa4"
                                                                   "A",
                                                                   "\\q"}},
    {" [ 'a' , \"b\" ] ", Names{"a", "b"}},
    {"{1: 'b', 0: 'a'}", Names{"a", "b"}},  // order does not matter
    {"{}", Names{}},
    {"{1: 'a', 2: 'b'}", std::nullopt},  // does not start at 0
    {"{0: 'a', 0: 'b'}", std::nullopt},  // twice
    {"{0: 'a' 1: 'b'}", std::nullopt},   // no comma
    {"{0: 'a'", std::nullopt},           // no end
    {"{0: 'a'} x", std::nullopt},        // more behind it
    {"{0: a}", std::nullopt},            // no string
    {"{'0': 'a'}", std::nullopt},        // JSON-like keys
    {"{99999999999999999999: 'a'}", std::nullopt},
    {"['\\ud800']", std::nullopt},  // half a pair
    {"['\\u12']", std::nullopt},
    {"", std::nullopt},
};
TEST(PythonLiteral, ReadsNamesAndRefusesOtherText) {
    for (const Literal& literal : literals)
        EXPECT_EQ(parse_python_names(literal.text), literal.want) << literal.text;
}
TEST(PythonLiteral, ReadsNumbers) {
    EXPECT_EQ(parse_python_ints("[640, 480]"), (std::vector<int64_t>{640, 480}));
    EXPECT_EQ(parse_python_ints("(640, 480,)"), (std::vector<int64_t>{640, 480}));
    EXPECT_EQ(parse_python_ints(" 32 "), (std::vector<int64_t>{32}));
    for (const char* text : {"", "[1 2]", "[1", "1]", "[a]", "1, 2"})
        EXPECT_EQ(parse_python_ints(text), std::nullopt) << text;
}

class Sidecar : public testing::Test {
protected:
    TensorInfo tensor(const std::string& name, Layout layout, std::vector<uint32_t> shape) {
        TensorInfo info;
        info.name = name;
        info.cpu = make_view(DataType::float32, layout, std::move(shape));
        info.hw =
            hw_view(info.cpu, layout == Layout::NCHW ? Layout::HCWNC4 : layout, DataType::bf16);
        return info;
    }
    void set_outputs(std::vector<uint32_t> shape) {
        const Layout layout = shape.size() == 3 ? Layout::NHW : Layout::GENERIC;
        outputs_ = {tensor("out", layout, std::move(shape))};
    }
    Result<std::string> run() {
        warnings_.clear();
        return make_modelinfo({.model = model_,
                               .decoder = decoder_,
                               .labels = labels_,
                               .metadata = metadata_,
                               .inputs = inputs_,
                               .outputs = outputs_,
                               .meanings = meanings_,
                               .weights = weights_,
                               .pixels = pixels_},
                              warnings_);
    }
    ModelInfo info() {
        const auto text = run();
        EXPECT_TRUE(text) << text.error().message;
        auto parsed = parse_modelinfo(text ? *text : "", "");
        EXPECT_TRUE(parsed) << parsed.error().message;
        return parsed ? std::move(*parsed) : ModelInfo{};
    }

    test::TempDir folder_;
    std::string model_ = folder_ / "model.onnx";
    std::string decoder_, labels_;
    std::map<std::string, std::string> metadata_;
    std::vector<TensorInfo> inputs_ = {tensor("images", Layout::NCHW, {1, 3, 64, 64})};
    std::vector<TensorInfo> outputs_ = {tensor("out", Layout::NHW, {1, 6, 84})};
    std::vector<ModelInfo::Input> weights_;
    std::vector<ModelInfo::Output> meanings_;
    ModelInfo::Input pixels_;
    std::vector<std::string> warnings_;
};

TEST_F(Sidecar, IsEmptyWhereNothingIsKnown) {
    const auto text = run();
    ASSERT_TRUE(text);
    EXPECT_EQ(*text, "");
}

TEST_F(Sidecar, PutsWhatTheGraphShowsBehindWhatIsKnown) {
    meanings_ = {{.name = "out",
                  .id = "",
                  .role = "",
                  .quant_scale = 0.25,
                  .zero_point = 3,
                  .ends_in = "linear"}};
    outputs_[0].cpu = make_view(DataType::uint8, Layout::NHW, {1, 6, 84});
    ASSERT_EQ(info().outputs.size(), 1u);  // also where nothing else is known
    EXPECT_EQ(info().outputs[0].ends_in, "linear");
    EXPECT_EQ(info().outputs[0].quant_scale, 0.25);
    EXPECT_EQ(info().outputs[0].zero_point, 3);
    test::spill(
        folder_ / "model.modelinfo",
        "[out]\ndir=output\nx-vartml-quant-scale=0.5\n[images]\ndir=input\nx-vartml-mean=1\n");
    EXPECT_EQ(info().outputs[0].ends_in, "linear");
    EXPECT_EQ(info().outputs[0].quant_scale, 0.5);  // the user's word
    EXPECT_EQ(info().outputs[0].zero_point, std::nullopt);
    EXPECT_EQ(info().inputs[0].mean, std::vector<float>{1});
}

TEST_F(Sidecar, SaysWhatTheWeightsShowWhereADecoderAsks) {
    weights_.emplace_back().name = "images";
    weights_[0].weights_for = "units";
    set_outputs({1, 84, 85});  // YOLOX: 8x8 + 4x4 + 2x2 positions
    inputs_ = {tensor("images", Layout::NCHW, {1, 3, 64, 64})};
    ASSERT_EQ(info().inputs.size(), 1u);
    EXPECT_EQ(info().inputs[0].weights_for, "units");
    EXPECT_TRUE(info().inputs[0].mean.empty());  // a decoder makes numbers of it
    set_outputs({1, 6, 84});                     // YOLO v8
    EXPECT_TRUE(info().inputs.empty());
    decoder_ = "yolo-v8";
    ASSERT_EQ(info().inputs.size(), 1u);
    EXPECT_EQ(info().inputs[0].weights_for, "");
}

TEST_F(Sidecar, FeedsInputsBesideThePictureByTheNamesOfExporters) {
    inputs_ = {tensor("images", Layout::NCHW, {1, 3, 48, 64}),
               tensor("orig_target_sizes", Layout::GENERIC, {1, 2}),
               tensor("im_shape", Layout::GENERIC, {1, 2}),
               tensor("image_shape", Layout::GENERIC, {1, 2}),
               tensor("scale_factor", Layout::GENERIC, {1, 2}),
               tensor("speed", Layout::GENERIC, {1, 2})};
    const auto feeds = [this] {
        std::map<std::string, std::string> feeds;
        for (const ModelInfo::Input& input : info().inputs) feeds[input.name] = input.feed;
        return feeds;
    };
    std::map<std::string, std::string> want = {{"orig_target_sizes", "frame-size"},
                                               {"im_shape", "const:48,64"},
                                               {"image_shape", "const:48,64"},
                                               {"scale_factor", "const:1"}};
    EXPECT_EQ(feeds(), want);
    test::spill(folder_ / "model.modelinfo",
                "[im_shape]\ndir=input\nx-vartml-feed=const:1,2\n[speed]\ndir=input\n"
                "x-vartml-feed=const:7\n");
    want["im_shape"] = "const:1,2";  // the user's word
    want["speed"] = "const:7";
    EXPECT_EQ(feeds(), want);
    inputs_[1] = tensor("orig_target_sizes", Layout::GENERIC, {1, 4});  // another meaning
    want.erase("orig_target_sizes");
    EXPECT_EQ(feeds(), want);
}

TEST_F(Sidecar, NamesTheColumnsOfPaddleDetectionsBoxes) {
    inputs_.push_back(tensor("scale_factor", Layout::GENERIC, {1, 2}));
    outputs_ = {tensor("multiclass_nms3_0.tmp_0", Layout::GENERIC, {100, 6}),
                tensor("multiclass_nms3_0.tmp_2", Layout::GENERIC, {1})};
    EXPECT_EQ(info().columns, "class,score,x0y0x1y1");
    const auto decoder = Decoder::create(info(), outputs_, 64, 64, {});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->family(), "yolo-end2end");
    // Not all of its models take the same pixels.
    const PixelChoice pixels = choose_pixels(info(), outputs_, inputs_[0], 64, 64);
    EXPECT_EQ(pixels.source, "");
    EXPECT_EQ(pixels.options.resize, ResizeMode::stretch);
    test::spill(folder_ / "model.modelinfo",
                "[modelinfo]\nx-vartml-columns=score,class,x0y0x1y1\n");
    EXPECT_EQ(info().columns, "score,class,x0y0x1y1");  // the user's word
    test::spill(folder_ / "model.modelinfo", "");
    outputs_[0] = tensor("multiclass_nms3_0.tmp_0", Layout::GENERIC, {100, 7});
    EXPECT_EQ(info().columns, "");
    outputs_ = {tensor("out", Layout::GENERIC, {100, 6})};  // no count
    EXPECT_EQ(info().columns, "");
}

TEST_F(Sidecar, KnowsTheQueriesOfUltralyticsRtDetr) {
    metadata_ = {{"task", "detect"}, {"names", "{0: 'a', 1: 'b'}"}};
    set_outputs({1, 300, 6});  // two classes; selected boxes would look the same
    EXPECT_EQ(info().decoder, "yolo-end2end");
    meanings_ = {{.name = outputs_[0].name, .id = "", .role = "", .ends_in = "sigmoid"}};
    EXPECT_EQ(info().decoder, "ssd") << "no number of a class comes out of a sigmoid";
    meanings_.clear();
    metadata_["names"] = "{0: 'a', 1: 'b', 2: 'c'}";
    set_outputs({1, 300, 7});
    EXPECT_EQ(info().decoder, "ssd");
    EXPECT_EQ(info().box_order, "cxcywh");
    EXPECT_EQ(info().inputs[0].resize, ResizeMode::stretch);
    EXPECT_TRUE(warnings_.empty());
}

TEST_F(Sidecar, WarnsOfPixelsThatADecoderDoesNotSay) {
    decoder_ = "classify";
    set_outputs({1, 10});
    EXPECT_EQ(info().inputs[0].mean.size(), 3u);
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("most models of decoder classify"), std::string::npos);
    decoder_ = "yolo-v8";
    set_outputs({1, 6, 84});
    (void)info();
    EXPECT_TRUE(warnings_.empty());
}

TEST_F(Sidecar, RecordsPixelsThatAreGivenWhateverElseIsKnown) {
    pixels_.mean = {127.5, 127.5, 127.5};
    pixels_.channels = ChannelOrder::bgr;
    ASSERT_EQ(info().inputs.size(), 1u);  // nothing else is known
    EXPECT_EQ(info().inputs[0].mean, std::vector<float>{127.5});
    EXPECT_EQ(info().inputs[0].channels, ChannelOrder::bgr);
    EXPECT_TRUE(info().inputs[0].scale.empty());
    decoder_ = "classify";  // whose pixels are others
    set_outputs({1, 10});
    EXPECT_EQ(info().inputs[0].mean, std::vector<float>{127.5});
    EXPECT_EQ(info().inputs[0].channels, ChannelOrder::bgr);
    EXPECT_EQ(info().inputs[0].scale.size(), 3u);  // the family's
    EXPECT_TRUE(warnings_.empty());                // the user's word needs none
    decoder_.clear();
    metadata_ = {{"names", "{0: 'a', 1: 'b', 2: 'c'}"}, {"task", "classify"}};
    set_outputs({1, 3});
    EXPECT_EQ(info().inputs[0].mean, std::vector<float>{127.5});
    EXPECT_EQ(info().inputs[0].scale, std::vector<float>{1 / 255.f});
}

TEST_F(Sidecar, AddsPixelsToAFileThatLeavesThemOpen) {
    const std::string text =
        "# mine\n[modelinfo]\nversion=1.0\n[images]\ndir=input\nx-vartml-scale=2\n";
    test::spill(folder_ / "model.modelinfo", text);
    pixels_.mean = {1, 2, 3};
    pixels_.scale = {2, 2, 2};
    EXPECT_EQ(*run(), text + "\n[images]\ndir=input\nx-vartml-mean=1,2,3\n");
    EXPECT_EQ(info().inputs[0].mean, (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(info().inputs[0].scale, std::vector<float>{2});
}

TEST_F(Sidecar, RefusesPixelsThatAFileContradicts) {
    pixels_.mean = {0, 0, 0};
    test::spill(folder_ / "model.modelinfo", "[images]\ndir=input\nx-vartml-mean=1\n");
    for (const char* decoder : {"", "yolo-v8"}) {
        decoder_ = decoder;
        const auto wrong = run();
        ASSERT_FALSE(wrong) << decoder;
        EXPECT_EQ(wrong.error().code, ErrorCode::invalid_argument);
        EXPECT_EQ(wrong.error().message,
                  "--mean: is 0, but " + (folder_ / "model.modelinfo") +
                      " says x-vartml-mean=1 of input 'images'; leave the option out, or correct "
                      "the file");
    }
}

TEST_F(Sidecar, RefusesPixelsWhereNoInputIsAPicture) {
    pixels_.scale = {1, 1, 1};
    inputs_ = {tensor("tokens", Layout::NHW, {1, 8, 64})};
    const auto wrong = run();
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find("--scale: " + model_ + " has no input that is a picture"),
              std::string::npos)
        << wrong.error().message;
}

TEST_F(Sidecar, WithASectionOfNoTensorIsRefused) {
    test::spill(folder_ / "model.modelinfo", "[imagez]\ndir=input\nx-vartml-mean=1\n");
    const auto wrong = run();
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(wrong.error().message.find("did you mean [images]?"), std::string::npos)
        << wrong.error().message;
}

// The program normalises: whoever fills the input gives it the bytes.
TEST_F(Sidecar, LeavesThePixelsToAnEmbeddedPreprocess) {
    decoder_ = "ultraface";
    outputs_ = {tensor("scores", Layout::NHW, {1, 4420, 2}),
                tensor("boxes", Layout::NHW, {1, 4420, 4})};
    inputs_ = {tensor("images", Layout::NCHW, {1, 3, 240, 320})};
    ASSERT_EQ(info().inputs.size(), 1u);
    EXPECT_NE(info().inputs[0].mean, std::vector<float>{0});
    inputs_[0].cpu = make_view(DataType::uint8, Layout::NHWC, {1, 240, 320, 3});
    inputs_[0].hw = inputs_[0].cpu;
    inputs_[0].picture = "bgr";
    EXPECT_EQ(info().inputs[0].mean, std::vector<float>{0});
    EXPECT_EQ(info().inputs[0].scale, std::vector<float>{1});
    EXPECT_EQ(info().inputs[0].channels, ChannelOrder::bgr);
    decoder_.clear();
    EXPECT_EQ(info().inputs[0].channels, ChannelOrder::bgr);
}

TEST_F(Sidecar, ChoosesTheFamilyOfAnUltralyticsExportByItsHead) {
    // 64x64 with strides 8, 16, 32: 64 + 16 + 4 = 84 positions; v5 has three anchors each.
    const std::pair<std::vector<uint32_t>, const char*> heads[] = {
        {{1, 4 + 2, 84}, "yolo-v8"}, {{1, 252, 5 + 2}, "yolo-v5"}, {{1, 300, 6}, "yolo-end2end"}};
    metadata_ = {{"names", "{0: 'person', 1: 'dog'}"},
                 {"task", "detect"},
                 {"stride", "32"},
                 {"imgsz", "[64, 64]"}};
    for (const auto& [shape, family] : heads) {
        set_outputs(shape);
        const ModelInfo read = info();
        EXPECT_EQ(read.decoder, family);
        EXPECT_EQ(read.labels, (Names{"person", "dog"}));
        ASSERT_EQ(read.inputs.size(), 1u);
        EXPECT_EQ(read.inputs[0].resize, ResizeMode::letterbox);
        EXPECT_EQ(read.inputs[0].channels, ChannelOrder::rgb);
        EXPECT_TRUE(warnings_.empty()) << warnings_[0];
    }
    // With one class, v5 has six columns too.
    metadata_["names"] = "{0: 'person'}";
    for (const auto& [shape, family] :
         {std::pair<std::vector<uint32_t>, const char*>{{1, 252, 6}, "yolo-v5"},
          {{1, 300, 6}, "yolo-end2end"}}) {
        set_outputs(shape);
        EXPECT_EQ(info().decoder, family);
        EXPECT_TRUE(warnings_.empty()) << warnings_[0];
    }
}

// The auxiliary branch of a YOLO v9, which is there first, is for training alone.
TEST_F(Sidecar, TakesTheLastOfTwoBranches) {
    metadata_ = {{"names", "{0: 'person', 1: 'dog'}"}, {"stride", "32"}};
    set_outputs({1, 4 + 2, 84});
    outputs_.push_back(outputs_[0]);
    outputs_[1].name = "main";
    const ModelInfo read = info();
    EXPECT_EQ(read.decoder, "yolo-v8");
    for (const ModelInfo::Output& output : read.outputs)
        EXPECT_EQ(output.role, output.name == "main" ? "boxes" : "") << output.name;
    EXPECT_FALSE(read.outputs.empty());
}

// With one class, whose six columns YOLO v5 has too, in a picture of which 300 rows are a grid.
TEST_F(Sidecar, TakesSelectedBoxesForThatWhereTheExportSaysSo) {
    inputs_ = {tensor("images", Layout::NCHW, {1, 3, 128, 160})};
    set_outputs({1, 300, 6});
    metadata_ = {{"names", "{0: 'person'}"}, {"stride", "32"}};
    EXPECT_EQ(info().decoder, "yolo-v5");  // tiny YOLO v3 of the same tool
    metadata_["task"] = "detect";
    EXPECT_EQ(info().decoder, "yolo-end2end");
    set_outputs({1, 1260, 6});
    EXPECT_EQ(info().decoder, "yolo-v5");
    const std::map<std::string, std::string> said[] = {
        {{"nms", "True"}}, {{"end2end", "True"}}, {{"args", "{'half': False, 'nms': True}"}}};
    for (const auto& more : said) {
        auto metadata = metadata_;
        metadata.insert(more.begin(), more.end());
        std::swap(metadata, metadata_);
        EXPECT_EQ(info().decoder, "yolo-end2end") << more.begin()->first;
        std::swap(metadata, metadata_);
    }
    metadata_["args"] = "{'nms': False}";
    EXPECT_EQ(info().decoder, "yolo-v5");
}

TEST_F(Sidecar, TakesGreyPicturesWhereTheExportDoes) {
    metadata_ = {{"names", "{0: 'a', 1: 'b'}"}, {"task", "detect"}};
    set_outputs({1, 6, 84});
    EXPECT_EQ(info().inputs.at(0).channels, ChannelOrder::rgb);
    inputs_ = {tensor("images", Layout::NCHW, {1, 1, 64, 64})};
    EXPECT_EQ(info().inputs.at(0).channels, ChannelOrder::gray);
}

// Its metadata are strides and names.
TEST_F(Sidecar, TakesTheNamesOfAYoloV5Export) {
    metadata_ = {{"names", "{0: 'person', 1: 'dog'}"}, {"stride", "32"}};
    set_outputs({1, 252, 5 + 2});
    const ModelInfo read = info();
    EXPECT_EQ(read.decoder, "yolo-v5");
    EXPECT_EQ(read.labels, (Names{"person", "dog"}));
    EXPECT_TRUE(warnings_.empty()) << warnings_[0];
    set_outputs({1, 252, 5 + 3});  // of another model
    const auto text = run();
    ASSERT_TRUE(text);
    EXPECT_EQ(*text, "");
    EXPECT_TRUE(warnings_.empty()) << warnings_[0];
}

TEST_F(Sidecar, RecordsTheKeypointsOfAPose) {
    metadata_ = {{"names", "{0: 'plate'}"}, {"task", "pose"}, {"kpt_shape", "[6, 2]"}};
    set_outputs({1, 4 + 1 + 12, 84});
    const ModelInfo read = info();
    EXPECT_EQ(read.decoder, "yolo-v8-pose");
    EXPECT_EQ(read.keypoints, (std::vector<int>{6, 2}));
    EXPECT_TRUE(warnings_.empty());
    metadata_["kpt_shape"] = "[12]";  // no shape of points
    EXPECT_TRUE(info().keypoints.empty());
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("'kpt_shape' is '[12]', expected a count and 2 or 3"),
              std::string::npos)
        << warnings_[0];
}

TEST_F(Sidecar, TellsTurnedBoxesThatTheModelSelected) {
    metadata_ = {{"names", "{0: 'cat', 1: 'dog'}"}, {"task", "obb"}};
    set_outputs({1, 300, 7});
    const ModelInfo read = info();
    EXPECT_EQ(read.decoder, "yolo-end2end");
    EXPECT_EQ(read.columns, "cxcywh,score,class,angle");
    EXPECT_TRUE(warnings_.empty());
    set_outputs({1, 4 + 2 + 1, 84});
    EXPECT_EQ(info().decoder, "yolo-v8-obb");
    EXPECT_EQ(info().columns, "");
}

TEST_F(Sidecar, LeavesNoTaskToTheDecoderOfAnother) {
    metadata_ = {{"names", "{0: 'person'}"}, {"task", "pose"}};
    set_outputs({1, 300, 7});  // which YOLO v7 has
    const ModelInfo read = info();
    EXPECT_EQ(read.decoder, "yolo-v8-pose");
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("choose another decoder"), std::string::npos) << warnings_[0];
    EXPECT_FALSE(Decoder::create(read, outputs_, 64, 64, {}));
}

TEST_F(Sidecar, GivesClassifiersACentreCropWithoutMean) {
    metadata_ = {{"names", "{0: 'a', 1: 'b', 2: 'c'}"}, {"task", "classify"}};
    set_outputs({1, 3});
    const ModelInfo read = info();
    EXPECT_EQ(read.decoder, "classify");
    EXPECT_EQ(read.inputs[0].resize, ResizeMode::crop);
    const PreprocessOptions pixels =
        preprocess_options(read, find_decoder_family("classify"), "images");
    EXPECT_EQ(pixels.mean[0], 0);
    EXPECT_NEAR(pixels.scale[0], 1 / 255.0, 1e-9);
    EXPECT_EQ(pixels.crop_fraction, 1.0);
}

TEST_F(Sidecar, WarnsAboutMetadataThatItCannotUse) {
    metadata_ = {{"names", "person, dog"}, {"task", "detect"}};
    EXPECT_EQ(*run(), "");
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("give --labels FILE"), std::string::npos);
    metadata_["names"] = "['person', 'dog', 'cat']";  // the head has two classes
    EXPECT_EQ(info().decoder, "");
    ASSERT_EQ(warnings_.size(), 1u);
}

TEST_F(Sidecar, TakesDecoderAndLabelsFromTheCommandLine) {
    metadata_ = {{"names", "{0: 'x'}"}, {"task", "detect"}};
    test::spill(folder_ / "labels.txt", "person\r\ndog\n");
    decoder_ = "yolo-v8";
    labels_ = folder_ / "labels.txt";
    const ModelInfo read = info();
    EXPECT_EQ(read.decoder, "yolo-v8");
    EXPECT_EQ(read.labels, (Names{"person", "dog"}));
}

TEST_F(Sidecar, RefusesWhatDoesNotFit) {
    decoder_ = "yolo-v99";
    EXPECT_NE(run().error().message.find("'yolo-v99' is not a decoder; known: classify, "),
              std::string::npos);
    decoder_ = "yolo-v8";
    labels_ = folder_ / "none.txt";
    EXPECT_FALSE(run());
    test::spill(folder_ / "labels.txt", "only one\n");
    labels_ = folder_ / "labels.txt";
    const auto wrong = run();
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code, ErrorCode::invalid_argument);
}

TEST_F(Sidecar, CopiesTheFileBesideTheModel) {
    const std::string text =
        "[modelinfo]\nversion=1.0\nx-vartml-decoder=yolo-v8\nx-vartml-labels=person;dog\n";
    for (const char* name : {"model.onnx.modelinfo", "model.modelinfo"}) {
        test::spill(folder_ / name, text);
        metadata_ = {{"names", "{0: 'x', 1: 'y'}"}, {"task", "detect"}};
        EXPECT_EQ(*run(), text) << name;
        std::filesystem::remove(folder_ / name);
    }
    // Labels in a file of their own come along inside.
    test::spill(folder_ / "coco.txt", "person\ndog\n");
    test::spill(folder_ / "model.modelinfo",
                "[modelinfo]\nversion=1.0\nx-vartml-decoder=yolo-v8\nx-vartml-labels=coco.txt\n");
    EXPECT_EQ(info().labels, (Names{"person", "dog"}));
    test::spill(folder_ / "model.modelinfo", "[modelinfo]\nx-vartml-decodr=yolo-v8\n");
    const auto wrong = run();
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace vartml::compiler
