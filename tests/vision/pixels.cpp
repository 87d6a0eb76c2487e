// SPDX-License-Identifier: Apache-2.0
// How pictures become an input: who says so, and what is taken where nobody does.
#include <gtest/gtest.h>
#include <vartml/postprocess.h>

using namespace vartml;

namespace {

TensorInfo tensor(const char* name, DataType type, Layout layout, std::vector<uint32_t> shape) {
    TensorInfo info;
    info.name = name;
    info.cpu = make_view(type, layout, std::move(shape));
    return info;
}

TensorInfo picture(DataType type = DataType::float32, uint32_t channels = 3) {
    return tensor("images", type, Layout::NCHW, {1, channels, 224, 224});
}

PixelChoice choose(std::vector<uint32_t> output, const ModelInfo& info = {},
                   const TensorInfo& input = picture(), const std::string& decoder = "") {
    const TensorInfo out = tensor("out", DataType::float32, Layout::GENERIC, std::move(output));
    return choose_pixels(info, {&out, 1}, input, 224, 224, decoder);
}

ModelInfo sidecar(const std::string& text) {
    auto info = parse_modelinfo(text, "");
    EXPECT_TRUE(info) << (info ? "" : info.error().message);
    return info ? *std::move(info) : ModelInfo{};
}

TEST(Pixels, AreThoseOfTheFamilyThatDecodesTheOutputs) {
    // 28x28 + 14x14 + 7x7 positions
    for (const auto& [shape, decoder, family] :
         {std::tuple(std::vector<uint32_t>{1, 1029, 85}, "", "yolox"),
          std::tuple(std::vector<uint32_t>{1, 84, 1029}, "", "yolo-v8"),
          std::tuple(std::vector<uint32_t>{1, 1000}, "", "classify"),
          std::tuple(std::vector<uint32_t>{1, 21, 224, 224}, "", "segment"),
          std::tuple(std::vector<uint32_t>{1, 106, 2}, "", "landmarks"),
          std::tuple(std::vector<uint32_t>{1, 84, 1029}, "yolox", "yolox"),
          std::tuple(std::vector<uint32_t>{1, 1000}, "embedding", "embedding")}) {
        const PixelChoice choice = choose(shape, {}, picture(), decoder);
        ASSERT_TRUE(choice.family) << family;
        EXPECT_EQ(choice.family->nick, family);
        EXPECT_EQ(choice.options, choice.family->input) << family;
    }
}

TEST(Pixels, AreVouchedForByFamiliesWhoseModelsAllTakeTheSame) {
    EXPECT_EQ(choose({1, 1029, 85}).source, "decoder yolox");
    EXPECT_EQ(
        choose({1, 1029, 85}).sentence(),
        "pictures are fed as bgr, letterbox-top-left, mean 0, scale 1; as decoder yolox says");
    // Too many others have such outputs: nobody knows.
    EXPECT_EQ(choose({1, 1000}).source, "");
    EXPECT_EQ(choose({1, 21, 224, 224}).source, "");
    EXPECT_EQ(choose({1, 1000}, {}, picture(), "classify").source, "");
    EXPECT_EQ(choose({1, 77}, sidecar("[modelinfo]\nx-vartml-decoder=classify\n")).source, "");
    const std::string sentence = choose({1, 1000}).sentence();
    for (const char* word : {"rgb, crop 0.875", "mean 123.675,116.28,103.53", "neither model nor",
                             "most models of decoder classify"})
        EXPECT_NE(sentence.find(word), std::string::npos) << word << " in: " << sentence;
}

// YOLO v6, and YOLOX with its boxes decoded, end in the same table; three rows to a cell are YOLO
// v5's.
TEST(Pixels, OfRowsPerCellAreSaidByNobody) {
    EXPECT_EQ(choose({1, 1029, 85}, {}, picture(), "yolo-v5").source, "");
    EXPECT_EQ(choose({1, 3087, 85}, {}, picture(), "yolo-v5").source, "decoder yolo-v5");
}

// EfficientNMS stands behind models of many kinds, TensorFlow's lists behind its own; and MMDeploy
// writes its lists without a batch, too.
TEST(Pixels, OfListsAreThoseOfWhoSelected) {
    const auto source = [](const char* count) {
        const TensorInfo lists[] = {
            tensor("boxes", DataType::float32, Layout::GENERIC, {1, 100, 4}),
            tensor("scores", DataType::float32, Layout::GENERIC, {1, 100}),
            tensor("classes", DataType::float32, Layout::GENERIC, {1, 100}),
            tensor(count, DataType::float32, Layout::GENERIC, {1, 1})};
        return choose_pixels({}, lists, picture(), 224, 224).source;
    };
    EXPECT_EQ(source("num_detections"), "decoder ssd");
    EXPECT_EQ(source("num_dets"), "");
    const auto without_count = [](const char* boxes) {
        const TensorInfo lists[] = {
            tensor(boxes, DataType::float32, Layout::GENERIC, {1, 100, 4}),
            tensor("scores", DataType::float32, Layout::GENERIC, {1, 100}),
            tensor("classes", DataType::float32, Layout::GENERIC, {1, 100})};
        return choose_pixels({}, lists, picture(), 224, 224).source;
    };
    EXPECT_EQ(without_count("boxes"), "decoder detr");
    EXPECT_EQ(without_count("detection_boxes"), "") << "TensorFlow's";
    for (const bool batch : {true, false}) {
        const TensorInfo lists[] = {
            tensor("dets", DataType::float32, Layout::GENERIC,
                   batch ? std::vector<uint32_t>{1, 100, 5} : std::vector<uint32_t>{100, 5}),
            tensor("labels", DataType::int64, Layout::GENERIC,
                   batch ? std::vector<uint32_t>{1, 100} : std::vector<uint32_t>{100})};
        for (const char* named : {"", "detr"}) {
            const PixelChoice choice = choose_pixels({}, lists, picture(), 224, 224, named);
            ASSERT_TRUE(choice.family) << batch;
            EXPECT_EQ(choice.family->nick, "detr") << batch;
            EXPECT_EQ(choice.source, "") << batch << named;
        }
    }
}

// Finished boxes behind a background are those of many, priors of TensorFlow's its own.
TEST(Pixels, OfBoxesAndScoresAreThoseOfWhosePriorsTheyAre) {
    const auto source = [](std::vector<uint32_t> boxes, std::vector<uint32_t> scores) {
        const TensorInfo both[] = {
            tensor("boxes", DataType::float32, Layout::NHW, std::move(boxes)),
            tensor("scores", DataType::float32, Layout::NHW, std::move(scores))};
        return choose_pixels({}, both, picture(), 300, 300).source;
    };
    EXPECT_EQ(source({1, 1917, 4}, {1, 1917, 91}), "decoder ssd");
    EXPECT_EQ(source({1, 3000, 4}, {1, 3000, 21}), "") << "PyTorch's";
}

// YOLOX changed the pixels that it takes after its first release, and nothing else.
TEST(Pixels, OfYoloxAreThoseThatItsWeightsAreMadeFor) {
    const char* said = "[images]\ndir=input\nx-vartml-weights-for=units\n";
    EXPECT_EQ(choose({1, 1029, 85}).words(), "bgr, letterbox-top-left, mean 0, scale 1");
    const PixelChoice choice = choose({1, 1029, 85}, sidecar(said));
    EXPECT_TRUE(choice.words().starts_with(
        "rgb, letterbox-top-left, mean 123.675,116.28,103.53, scale 0.01712"))
        << choice.words();
    EXPECT_EQ(choice.source, "decoder yolox");
    EXPECT_EQ(choose({1, 84, 1029}, sidecar(said)).options, choose({1, 84, 1029}).options);
}

// PicoDet has the outputs of a NanoDet of four strides.
TEST(Pixels, OfPicoDetAreInTheOrderOfRgb) {
    std::vector<TensorInfo> outputs;
    for (const uint32_t columns : {80u, 32u})
        for (const uint32_t cells : {784u, 196u, 49u, 16u})
            outputs.push_back(tensor(("out" + std::to_string(outputs.size())).c_str(),
                                     DataType::float32, Layout::NHW, {1, cells, columns}));
    const PixelChoice pico = choose_pixels({}, outputs, picture(), 224, 224, "");
    EXPECT_TRUE(pico.words().starts_with("rgb, stretch, mean 123.675,116.28,103.53"))
        << pico.words();
    for (const size_t last : {7u, 3u}) outputs.erase(outputs.begin() + last);
    const PixelChoice nano = choose_pixels({}, outputs, picture(), 224, 224, "");
    EXPECT_TRUE(nano.words().starts_with("bgr, stretch, mean 103.53,116.28,123.675"))
        << nano.words();
}

TEST(Pixels, OfOneChannelAreGrayWhoeverSaysTheRest) {
    const TensorInfo one = picture(DataType::float32, 1);
    const char* said = "[images]\ndir=input\nx-vartml-mean=7\nx-vartml-channels=rgb\n";
    for (const auto& [output, text] :
         {std::pair(std::vector<uint32_t>{1, 1, 672, 672}, ""),  // no decoder reads it
          std::pair(std::vector<uint32_t>{1, 1029, 85}, ""),
          std::pair(std::vector<uint32_t>{1, 10}, ""),
          std::pair(std::vector<uint32_t>{1, 10}, said)}) {
        const PixelChoice choice = choose(output, sidecar(text), one);
        EXPECT_EQ(choice.options.channels, ChannelOrder::gray) << choice.sentence();
        EXPECT_TRUE(choice.words().starts_with("gray, ")) << choice.words();
    }
}

// The angles of a head (FSA-Net) are no scores of classes, and how its pictures are fed nobody
// says.
TEST(Pixels, OfAModelThatGivesAFewMeasuresAreSaidByNobody) {
    for (const char* end : {"", "linear", "product"}) {
        ModelInfo info;
        info.outputs = {{.name = "out", .id = "", .role = "", .ends_in = end}};
        const TensorInfo out = tensor("out", DataType::float32, Layout::GENERIC, {1, 3});
        const TensorInfo in = tensor("images", DataType::float32, Layout::NCHW, {1, 3, 64, 64});
        const PixelChoice choice = choose_pixels(info, {&out, 1}, in, 64, 64);
        EXPECT_EQ(choice.source, "") << end;
        EXPECT_NE(choice.sentence().find("neither model nor sidecar says so"), std::string::npos)
            << choice.sentence();
    }
}

TEST(Pixels, OfTheSidecarWinOverTheFamily) {
    const PixelChoice both =
        choose({1, 1000}, sidecar("[images]\ndir=input\nx-vartml-mean=1,2,3\nx-vartml-scale=1\n"));
    EXPECT_EQ(both.options.mean, (std::array<float, 3>{1, 2, 3}));
    EXPECT_EQ(both.source, "the sidecar");
    // A resize alone says nothing of the numbers.
    const PixelChoice resize =
        choose({1, 1000}, sidecar("[images]\ndir=input\nx-vartml-resize=letterbox\n"));
    EXPECT_EQ(resize.options.resize, ResizeMode::letterbox);
    EXPECT_EQ(resize.options.mean[0], 123.675f);
    EXPECT_EQ(resize.source, "");
}

// Of mean and scale one alone: the other as the type, the channels or the shapes have it.
TEST(Pixels, ThatTheSidecarSaysInPartAreOtherwiseAsWithoutIt) {
    const auto scale = [](const char* value) {
        return sidecar("[images]\ndir=input\nx-vartml-scale=" + std::string(value) + "\n");
    };
    const PixelChoice gray = choose({1, 10}, scale("0.00390625"), picture(DataType::float32, 1));
    EXPECT_TRUE(gray.words().starts_with("gray, stretch, mean 0, scale 0.00390625"))
        << gray.words();
    EXPECT_EQ(gray.source, "the sidecar");
    const PixelChoice bytes = choose({1, 1000}, scale("1"), picture(DataType::uint8));
    EXPECT_EQ(bytes.options.mean[0], 0);
    EXPECT_EQ(bytes.source, "the sidecar");
    EXPECT_EQ(choose({1, 1029, 85}, scale("1")).source, "the sidecar");  // yolox takes bytes
}

TEST(Pixels, AreBytesWhereTheInputHoldsBytes) {
    const PixelChoice bytes = choose({1, 1000}, {}, picture(DataType::uint8));
    EXPECT_EQ(bytes.options.mean, (std::array<float, 3>{0, 0, 0}));
    EXPECT_EQ(bytes.options.scale, (std::array<float, 3>{1, 1, 1}));
    EXPECT_EQ(bytes.source, "the input's type uint8");
    EXPECT_EQ(choose({1, 1000}, {}, picture(DataType::int8)).options.mean[0], 128);
    TensorInfo embedded = picture(DataType::uint8);
    embedded.picture = "bgr";
    EXPECT_EQ(choose({1, 1000}, {}, embedded).options.channels, ChannelOrder::bgr);
    EXPECT_EQ(choose({1, 1000}, {}, embedded).source, "the compiled model");
}

TEST(Pixels, OfOneChannelAreGrayInZeroToOne) {
    const PixelChoice gray = choose({1, 10}, {}, picture(DataType::float32, 1));
    EXPECT_EQ(gray.options.channels, ChannelOrder::gray);
    EXPECT_EQ(gray.options.mean[0], 0);
    EXPECT_EQ(gray.options.scale[0], 1 / 255.f);
    EXPECT_EQ(gray.source, "");
}

TEST(Pixels, SayThemselvesAsASidecar) {
    const PixelChoice choice = choose({1, 1000});
    const PixelChoice again = choose({1, 1000}, sidecar(choice.section("images")));
    EXPECT_EQ(again.options, choice.options);
    EXPECT_EQ(again.source, "the sidecar");
}

TEST(JoinedModelinfo, TakesFromTheSecondWhatTheFirstLeavesOpen) {
    const ModelInfo first = sidecar(
        "[modelinfo]\nx-vartml-decoder=yolox\n[in]\ndir=input\n"
        "x-vartml-mean=1\n");
    const ModelInfo second = sidecar(
        "[modelinfo]\nx-vartml-decoder=yolo-v8\nx-vartml-strides=8,16\nx-vartml-labels=a;b\n"
        "[in]\ndir=input\nx-vartml-mean=2\nx-vartml-scale=3\n"
        "[size]\ndir=input\nx-vartml-feed=frame-size\n[out]\ndir=output\nx-vartml-role=boxes\n");
    const ModelInfo both = join_modelinfo(first, second);
    EXPECT_EQ(both.decoder, "yolox");
    EXPECT_EQ(both.strides, (std::vector<int>{8, 16}));
    EXPECT_EQ(both.labels.size(), 2u);
    ASSERT_EQ(both.inputs.size(), 2u);
    EXPECT_EQ(both.inputs[0].mean, std::vector<float>{1});
    EXPECT_EQ(both.inputs[0].scale, std::vector<float>{3});
    EXPECT_EQ(both.inputs[1].feed, "frame-size");
    ASSERT_EQ(both.outputs.size(), 1u);
    EXPECT_EQ(both.outputs[0].role, "boxes");
}

}  // namespace
