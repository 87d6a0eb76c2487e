// SPDX-License-Identifier: Apache-2.0
// What all families share: choice of the family, count checks, thresholds, geometry, odd numbers.
#include <gtest/gtest.h>

#include <limits>

#include "tests/vision/head_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr Affine identity;

TensorInfo output_of(const char* name, std::vector<uint32_t> shape) {
    TensorInfo info;
    info.name = name;
    info.cpu = make_view(DataType::float32, shape.size() == 3 ? Layout::NHW : Layout::GENERIC,
                         std::move(shape));
    return info;
}

std::vector<std::string> labels(size_t count) {
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) names.push_back("name " + std::to_string(i));
    return names;
}

struct ChoiceCase {
    const char* why;
    std::vector<std::vector<uint32_t>> shapes;
    uint32_t width, height;
    const char* family;      // nullptr: an error
    const char* words = "";  // of the error
    size_t label_count = 0;
};
const ChoiceCase choices[] = {
    {"the published YOLOX-nano", {{1, 3549, 85}}, 416, 416, "yolox"},
    {"lightperson: YOLOX with one class; 756 is exactly its grid, so it is no end-to-end head",
     {{1, 756, 6}},
     192,
     192,
     "yolox"},
    {"the published YOLO v8", {{1, 84, 8400}}, 640, 640, "yolo-v8"},
    {"the published YOLO v5", {{1, 25200, 85}}, 640, 640, "yolo-v5"},
    {"a YOLO v5 with a fourth level", {{1, 102000, 85}}, 1280, 1280, "yolo-v5"},
    {"the published YOLO v10", {{1, 300, 6}}, 640, 640, "yolo-end2end"},
    {"UltraFace 320", {{1, 4420, 2}, {1, 4420, 4}}, 320, 240, "ultraface"},
    {"UltraFace 640, boxes first", {{1, 17640, 4}, {1, 17640, 2}}, 640, 480, "ultraface"},
    {"ImageNet", {{1, 1000}}, 224, 224, "classify"},
    {"ImageNet before squeezing", {{1, 1000, 1, 1}}, 224, 224, "classify"},
    {"YOLOX with 79 classes, or YOLO v8 transposed with 80",
     {{1, 8400, 84}},
     640,
     640,
     nullptr,
     "yolo-v8, yolox"},
    {"the same with 79 labels", {{1, 8400, 84}}, 640, 640, "yolox", "", 79},
    {"the same with 80 labels: the commoner form, whose classes do not match",
     {{1, 8400, 84}},
     640,
     640,
     nullptr,
     "79 classes",
     80},
    {"YOLO v8 transposed with one class", {{1, 8400, 5}}, 640, 640, "yolo-v8"},
    {"two classes, not YOLOX transposed with one", {{1, 6, 8400}}, 640, 640, "yolo-v8"},
    {"a YOLO v5 transposed: nothing else has three anchors", {{1, 12, 25200}}, 640, 640, "yolo-v5"},
    {"NanoDet-m 320",
     {{1, 1600, 80}, {1, 400, 80}, {1, 100, 80}, {1, 1600, 32}, {1, 400, 32}, {1, 100, 32}},
     320,
     320,
     "nanodet"},
    {"SCRFD 10g of 640, exported without batch",
     {{12800, 1},
      {3200, 1},
      {800, 1},
      {12800, 4},
      {3200, 4},
      {800, 4},
      {12800, 10},
      {3200, 10},
      {800, 10}},
     640,
     640,
     "scrfd"},
    {"SCRFD without landmarks",
     {{1, 12800, 1}, {1, 3200, 1}, {1, 800, 1}, {1, 12800, 4}, {1, 3200, 4}, {1, 800, 4}},
     640,
     640,
     "scrfd"},
    {"YuNet of 2023",
     {{1, 6400, 1},
      {1, 1600, 1},
      {1, 400, 1},
      {1, 6400, 1},
      {1, 1600, 1},
      {1, 400, 1},
      {1, 6400, 4},
      {1, 1600, 4},
      {1, 400, 4},
      {1, 6400, 10},
      {1, 1600, 10},
      {1, 400, 10}},
     640,
     640,
     "yunet"},
    {"YuNet of 2022, which pools: 15, 7, 3 and 1 rows",
     {{1, 1076, 14}, {1, 1076, 2}, {1, 1076, 1}},
     160,
     120,
     "yunet"},
    {"a MobileNet-SSD of TensorFlow without its selection",
     {{1, 1917, 4}, {1, 1917, 91}},
     300,
     300,
     "ssd"},
    {"BlazeFace of the front camera", {{1, 896, 16}, {1, 896, 1}}, 128, 128, "blazeface"},
    {"the same before its levels are joined",
     {{1, 512, 1}, {1, 384, 1}, {1, 512, 16}, {1, 384, 16}},
     128,
     128,
     "blazeface"},
    {"BlazePalm", {{1, 2016, 18}, {1, 2016, 1}}, 192, 192, "blazeface"},
    {"RetinaFace 640", {{1, 16800, 4}, {1, 16800, 2}, {1, 16800, 10}}, 640, 640, "retinaface"},
    {"a map as large as the picture", {{1, 21, 512, 512}}, 512, 512, "segment"},
    {"channels last", {{1, 512, 896, 4}}, 896, 512, "segment"},
    {"one channel", {{1, 1, 64, 64}}, 256, 256, "segment"},
    {"small maps: classes or points",
     {{1, 17, 64, 48}},
     192,
     256,
     nullptr,
     "several decoders: segment, heatmap"},
    {"as many as there are labels", {{1, 19, 128, 128}}, 512, 512, "segment", "", 19},
    {"not as many: still either", {{1, 17, 64, 48}}, 192, 256, nullptr, "several", 3},
    {"a picture larger than the input", {{1, 1, 672, 672}}, 224, 224, nullptr, "fit no decoder"},
    {"a hand with its presence", {{1, 63}, {1, 1}, {1, 1}}, 224, 224, "landmarks"},
    {"a table of points", {{1, 106, 2}}, 192, 192, "landmarks"},
    {"a mere vector of 136 numbers is a classification", {{1, 136}}, 112, 112, "classify"},
    {"raw YOLO v5",
     {{1, 3, 80, 80, 85}, {1, 3, 40, 40, 85}, {1, 3, 20, 20, 85}},
     640,
     640,
     nullptr,
     "x-vartml-anchors"},
    {"raw YOLO v3", {{1, 255, 13, 13}, {1, 255, 26, 26}}, 416, 416, nullptr, "x-vartml-anchors"},
    {"turned boxes of DOTA, or 16 classes",
     {{1, 20, 8400}},
     640,
     640,
     nullptr,
     "yolo-v8, yolo-v8-obb"},
    {"turned boxes with labels", {{1, 20, 8400}}, 640, 640, "yolo-v8-obb", "", 15},
    {"no turned boxes with labels", {{1, 20, 8400}}, 640, 640, "yolo-v8", "", 16},
    {"poses of COCO, or 52 classes", {{1, 56, 8400}}, 640, 640, nullptr, "yolo-v8, yolo-v8-pose"},
    {"poses with a label", {{1, 56, 8400}}, 640, 640, "yolo-v8-pose", "", 1},
    {"no poses with labels", {{1, 56, 8400}}, 640, 640, "yolo-v8", "", 52},
    {"a YOLO v8 of another input size", {{1, 84, 8400}}, 416, 416, nullptr, "[1,84,8400]"},
    {"a segmenting YOLO v8: not decoded as boxes with more classes",
     {{1, 116, 8400}, {1, 32, 160, 160}},
     640,
     640,
     "yolo-v8-seg"},
    {"prototypes first, channels last",
     {{1, 160, 160, 32}, {1, 116, 8400}},
     640,
     640,
     "yolo-v8-seg"},
    {"a batch of two", {{2, 84, 8400}}, 640, 640, nullptr, "fit no decoder"},
    {"no output", {}, 640, 640, nullptr, "no outputs"},
};
class Choice : public testing::TestWithParam<ChoiceCase> {};
TEST_P(Choice, FollowsFromTheShapes) {
    const ChoiceCase& c = GetParam();
    std::vector<TensorInfo> outputs;
    for (const auto& shape : c.shapes)
        outputs.push_back(
            output_of(std::string(1, static_cast<char>('a' + outputs.size())).c_str(), shape));
    ModelInfo info;
    info.labels = labels(c.label_count);
    DecodeFault fault;
    const auto decoder = Decoder::create(info, outputs, c.width, c.height, {}, &fault);
    if (c.family) {
        ASSERT_TRUE(decoder) << c.why << ": " << decoder.error().message;
        EXPECT_EQ(decoder->family(), c.family) << c.why;
        EXPECT_EQ(decoder->reason(), "shapes");
    } else {
        ASSERT_FALSE(decoder) << c.why << ": " << decoder->family();
        EXPECT_NE(decoder.error().message.find(c.words), std::string::npos)
            << decoder.error().message;
        EXPECT_FALSE(fault.id.empty());
    }
}
INSTANTIATE_TEST_SUITE_P(Table, Choice, testing::ValuesIn(choices));

TEST(Choice, PrefersPropertyThenSidecarThenIds) {
    const TensorInfo outputs[] = {output_of("yolo-v8-out", {1, 84, 8400})};
    ModelInfo info;
    const auto chosen = [&](const char* property) {
        auto decoder = Decoder::create(info, outputs, 640, 640, {.decoder = property});
        return decoder ? std::string(decoder->family()) + " " + std::string(decoder->reason())
                       : decoder.error().message;
    };
    EXPECT_EQ(chosen(""), "yolo-v8 ids");
    info.decoder = "yolox";  // transposed, 79 classes: odd, but what the sidecar says
    EXPECT_EQ(chosen("auto"), "yolox sidecar");
    EXPECT_EQ(chosen("yolo-v8"), "yolo-v8 property");
    EXPECT_NE(chosen("yolo99").find("expected auto or one of classify, ssd, yolo-v5"),
              std::string::npos);
}

TEST(Choice, TakesIdsThatTheSidecarGives) {
    const TensorInfo outputs[] = {output_of("output0", {1, 84, 8400})};
    ModelInfo info;
    info.outputs.push_back({.name = "output0", .id = "yolo-v8-out", .role = ""});
    const auto decoder = Decoder::create(info, outputs, 640, 640, {});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->reason(), "ids");
}

TEST(Choice, IsGuessedForThePictureWhereItIsCertain) {
    const auto guessed = [](std::vector<uint32_t> shape, const ModelInfo& info = {}) {
        const TensorInfo output = output_of("out", std::move(shape));
        const DecoderFamily* family = guess_decoder_family(info, {&output, 1}, 416, 416);
        return family ? std::string(family->nick) : "";
    };
    EXPECT_EQ(guessed({1, 3549, 85}), "yolox");
    EXPECT_EQ(guessed({1, 3549, 84}), "");     // YOLOX or YOLO v8 transposed
    EXPECT_EQ(guessed({1, 256}), "");          // classes, or an embedding
    EXPECT_EQ(guessed({1, 3, 416, 416}), "");  // classes of pixels, or another picture
    ModelInfo info;
    info.decoder = "classify";
    EXPECT_EQ(guessed({1, 256}, info), "classify");
}

struct FaultCase {
    const char* why;
    const char* decoder;
    std::vector<std::vector<uint32_t>> shapes;
    void (*edit)(ModelInfo&);
    const char* id;  // "" = no error
    std::vector<const char*> words;
};
void eighty_labels(ModelInfo& info) {
    info.labels = labels(80);
    info.labels_file = "coco.names";
}
const FaultCase faults[] = {
    {"right", "yolox", {{1, 3549, 85}}, eighty_labels, "", {}},
    {"one class against 80 labels",
     "yolox",
     {{1, 3549, 6}},
     eighty_labels,
     "dec-classes",
     {"'a'", "1 classes", "coco.names", "80 labels"}},
    {"2 classes",
     "yolo-v8",
     {{1, 6, 3549}},
     eighty_labels,
     "dec-classes",
     {"2 classes", "80 labels"}},
    {"79 classes",
     "yolo-v5",
     {{1, 10647, 84}},
     eighty_labels,
     "dec-classes",
     {"79 classes", "80 labels"}},
    {"81 classes",
     "yolox",
     {{1, 3549, 86}},
     eighty_labels,
     "dec-classes",
     {"81 classes", "80 labels"}},
    {"81 classes, class 0 being the background",
     "yolox",
     {{1, 3549, 86}},
     [](ModelInfo& m) { eighty_labels(m), m.class_offset = -1; },
     "",
     {}},
    {"labels shorter than a classifier",
     "classify",
     {{1, 1000}},
     eighty_labels,
     "dec-classes",
     {"1000 classes", "80 labels"}},
    {"sidecar's count",
     "yolox",
     {{1, 3549, 85}},
     [](ModelInfo& m) { m.num_classes = 20, m.file = "m.modelinfo"; },
     "dec-classes",
     {"80 classes", "m.modelinfo", "x-vartml-num-classes=20"}},
    {"faces have one class",
     "ultraface",
     {{1, 5964, 2}, {1, 5964, 4}},
     eighty_labels,
     "dec-positions",
     {"5964"}},
    {"sidecar's strides",
     "yolox",
     {{1, 3549, 85}},
     [](ModelInfo& m) { m.strides = {8, 16}, m.file = "m.modelinfo"; },
     "dec-positions",
     {"[1,3549,85]", "416x416", "8,16", "3380", "m.modelinfo"}},
    {"sidecar's anchors: two per cell",
     "yolo-v5",
     {{1, 10647, 85}},
     [](ModelInfo& m) { m.strides = {8, 16, 32}, m.anchors = std::vector<float>(12, 1); },
     "dec-positions",
     {"7098"}},
    {"positions of another input",
     "yolo-v8",
     {{1, 84, 8400}},
     [](ModelInfo&) {},
     "dec-positions",
     {"[1,84,8400]", "3549"}},
    {"too few columns",
     "yolox",
     {{1, 3549, 5}},
     [](ModelInfo&) {},
     "dec-classes",
     {"5 values", "at least 6"}},
    {"no dense tensor", "yolox", {{1, 1000}}, [](ModelInfo&) {}, "dec-role", {"[1,1000]"}},
    {"no scores",
     "ultraface",
     {{1, 4420, 4}},
     [](ModelInfo&) {},
     "dec-role",
     {"scores", "[1,4420,4]"}},
    {"no rows of six", "yolo-end2end", {{1, 300, 7}}, [](ModelInfo&) {}, "dec-role", {"[1,300,7]"}},
    {"NanoDet of another input",
     "nanodet",
     {{1, 1600, 80}, {1, 1600, 32}},
     [](ModelInfo&) {},
     "dec-positions",
     {"stride 8", "2704"}},
    {"no boxes", "detr", {{1, 300}, {1, 300}}, [](ModelInfo&) {}, "dec-role", {"boxes", "[1,N,4]"}},
    {"classes and scores that nothing tells apart",
     "ssd",
     {{1, 10, 4}, {1, 10}, {1, 10}},
     [](ModelInfo&) {},
     "dec-role",
     {"scores", "x-vartml-role=scores"}},
    {"corners only",
     "ssd",
     {{1, 10, 4}, {1, 10}, {1, 10}},
     [](ModelInfo& m) { m.box_order = "cxcywh"; },
     "dec-role",
     {"cxcywh", "yxyx"}},
    {"a pose without points",
     "yolo-v8-pose",
     {{1, 6, 3549}},
     [](ModelInfo&) {},
     "dec-classes",
     {"6 values", "4+1+2K or 3K"}},
    {"a pose of other classes",
     "yolo-v8-pose",
     {{1, 56, 3549}},
     eighty_labels,
     "dec-classes",
     {"56 values", "4+80"}},
    {"masks without prototypes",
     "yolo-v8-seg",
     {{1, 116, 3549}},
     [](ModelInfo&) {},
     "dec-role",
     {"prototypes", "[1,M,h,w]"}},
    {"masks of other classes",
     "yolo-v8-seg",
     {{1, 117, 3549}, {1, 32, 104, 104}},
     eighty_labels,
     "dec-classes",
     {"81 classes", "80 labels"}},
    {"turned boxes of other classes",
     "yolo-v8-obb",
     {{1, 20, 3549}},
     eighty_labels,
     "dec-classes",
     {"15 classes", "80 labels"}},
    {"turned boxes of another input",
     "yolo-v8-obb",
     {{1, 20, 8400}},
     [](ModelInfo&) {},
     "dec-positions",
     {"3549"}},
    {"classes of pixels",
     "segment",
     {{1, 21, 104, 104}},
     eighty_labels,
     "dec-classes",
     {"21 classes", "80 labels"}},
    {"more classes than a pixel holds",
     "segment",
     {{1, 300, 104, 104}},
     [](ModelInfo&) {},
     "dec-classes",
     {"300 classes", "255"}},
    {"two maps",
     "segment",
     {{1, 21, 104, 104}, {1, 3, 104, 104}},
     [](ModelInfo&) {},
     "dec-role",
     {"mask", "x-vartml-role=mask"}},
    {"no map", "heatmap", {{1, 17}}, [](ModelInfo&) {}, "dec-role", {"heatmap", "[1,K,h,w]"}},
    {"offsets of other maps",
     "heatmap",
     {{1, 17, 52, 52}, {1, 30, 52, 52}},
     [](ModelInfo& m) {
         m.outputs = {{.name = "a", .id = "", .role = "heatmap"},
                      {.name = "b", .id = "", .role = "offsets"}};
     },
     "dec-role",
     {"offsets", "17 heat maps"}},
    {"neither pairs nor triples",
     "landmarks",
     {{1, 65}},
     [](ModelInfo&) {},
     "dec-role",
     {"landmarks", "[1,2K]"}},
    {"points of another model",
     "landmarks",
     {{1, 136}},
     eighty_labels,
     "dec-classes",
     {"136 values", "80 points"}},
    {"no vector for an embedding",
     "embedding",
     {{1, 3, 8, 8}},
     [](ModelInfo&) {},
     "dec-role",
     {"embedding", "[1,D]"}},
    {"raw maps with the anchors of another model",
     "yolo-v5",
     {{1, 255, 52, 52}, {1, 255, 26, 26}},
     [](ModelInfo& m) { m.anchors.assign(6, 1), m.file = "m.modelinfo"; },
     "dec-positions",
     {"names 3", "2 anchors", "x-vartml-anchors"}},
    {"raw maps of other strides",
     "yolo-v5",
     {{1, 3, 52, 52, 85}},
     [](ModelInfo& m) { m.strides = {16}, m.anchors.assign(6, 1), m.file = "m.modelinfo"; },
     "dec-positions",
     {"strides 8", "x-vartml-strides=16"}},
    {"raw maps of other classes",
     "yolo-v5",
     {{1, 3, 52, 52, 25}},
     [](ModelInfo& m) { eighty_labels(m), m.anchors.assign(6, 1); },
     "dec-classes",
     {"20 classes", "80 labels"}},
    {"no vector", "classify", {{1, 300, 7}}, [](ModelInfo&) {}, "dec-role", {"[1,300,7]"}},
};
class Fault : public testing::TestWithParam<FaultCase> {};
TEST_P(Fault, IsFoundBeforeTheFirstBox) {
    const FaultCase& c = GetParam();
    std::vector<TensorInfo> outputs;
    for (const auto& shape : c.shapes)
        outputs.push_back(
            output_of(std::string(1, static_cast<char>('a' + outputs.size())).c_str(), shape));
    ModelInfo info;
    c.edit(info);
    DecodeFault fault;
    const auto decoder = Decoder::create(info, outputs, 416, 416, {.decoder = c.decoder}, &fault);
    ASSERT_EQ(fault.id, c.id) << c.why << ": " << (decoder ? "" : decoder.error().message);
    ASSERT_EQ(decoder.has_value(), std::string(c.id).empty());
    if (decoder) return;
    EXPECT_EQ(decoder.error().code, ErrorCode::bad_model);
    for (const char* word : c.words) {
        EXPECT_NE(decoder.error().message.find(word), std::string::npos)
            << word << " in: " << decoder.error().message;
    }
    EXPECT_FALSE(fault.found.empty());
    EXPECT_FALSE(fault.expected.empty());
    EXPECT_FALSE(fault.fix.empty());
}
INSTANTIATE_TEST_SUITE_P(Table, Fault, testing::ValuesIn(faults));

// A YOLO v8 head of a 64x64 input: 64 + 16 + 4 positions, `classes` classes, boxes written one by
// one.
struct SmallHead {
    RefTensor tensor;
    explicit SmallHead(size_t classes)
        : tensor{std::vector<float>(84 * (4 + classes)), 84, 4 + classes, true} {}
    void set(size_t position, std::vector<float> values) {
        for (size_t a = 0; a < values.size(); ++a) tensor.data[a * 84 + position] = values[a];
    }
    Decoded decode(const DecodeOptions& options = {}, const Affine& map = identity,
                   uint32_t width = 64, uint32_t height = 64, const ModelInfo& info = {}) {
        const StoredTensor stored = stored_cpu(tensor, "out");
        DecodeOptions named = options;
        named.decoder = "yolo-v8";
        auto decoder = Decoder::create(info, {&stored.info, 1}, 64, 64, named);
        EXPECT_TRUE(decoder) << (decoder ? "" : decoder.error().message);
        Decoded decoded;
        const OutputTensor output = stored.output();
        EXPECT_TRUE(decoder && decoder->decode({&output, 1}, map, width, height, decoded));
        return decoded;
    }
};

TEST(Decode, DropsAndCountsNumbersThatAreNotFinite) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN(),
                    inf = std::numeric_limits<float>::infinity();
    SmallHead head(2);
    head.set(3, {10, 10, 8, 8, 0.9f, 0});
    head.set(10, {nan, 10, 8, 8, 0.9f, 0});
    head.set(11, {10, inf, 8, 8, 0.9f, 0});
    head.set(12, {10, 10, 8, 8, nan, 0.9f});
    head.set(13, {10, 10, 8, 8, 0, inf});
    head.set(14, {nan, nan, nan, nan, 0, 0});  // no candidate: nobody looks at its box
    const Decoded decoded = head.decode();
    EXPECT_EQ(decoded.detections.size(), 1u);
    EXPECT_EQ(decoded.not_finite, 4u);
}

TEST(Decode, BreaksTiesByLowerPosition) {
    SmallHead head(1);
    head.set(40, {30, 30, 20, 20, 0.8f});
    head.set(20, {32, 30, 20, 20, 0.8f});
    const Decoded decoded = head.decode();
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_EQ(decoded.detections[0].x0, 22);  // of position 20
    EXPECT_EQ(decoded.suppressed, 1u);
}

TEST(Decode, SuppressesAboveTheThresholdOnly) {
    SmallHead head(1);  // two boxes of 20x20, 10 apart: 200 / 600
    head.set(0, {20, 30, 20, 20, 0.9f});
    head.set(1, {30, 30, 20, 20, 0.8f});
    EXPECT_EQ(head.decode({.iou_threshold = 0.34}).detections.size(), 2u);
    EXPECT_EQ(head.decode({.iou_threshold = 0.33}).detections.size(), 1u);
    EXPECT_EQ(head.decode({.iou_threshold = 0.33, .nms = Nms::off}).detections.size(), 2u);
}

TEST(Decode, FindsNothingInZeros) {
    SmallHead head(80);
    const Decoded decoded = head.decode();
    EXPECT_TRUE(decoded.detections.empty());
    EXPECT_EQ(decoded.suppressed, 0u);
}

TEST(Decode, EndsWithTenThousandCandidates) {
    const RefTensor t = random_head(10654, 84, true, 4, 1, centred_value, 1.0);  // 720x720
    const StoredTensor stored = stored_cpu(t, "out");
    auto decoder = Decoder::create({}, {&stored.info, 1}, 720, 720, {.score_threshold = 0.5});
    ASSERT_TRUE(decoder) << decoder.error().message;
    Decoded decoded;
    const OutputTensor output = stored.output();
    ASSERT_TRUE(decoder->decode({&output, 1}, identity, 720, 720, decoded));
    EXPECT_EQ(decoded.detections.size(), 100u);
}

TEST(Decode, MapsCornersOfALetterboxBackToTheFrame) {
    // A frame of 128x72 in a 64x64 input: scaled by 1/2 to 64x36, 14 rows of border above.
    constexpr Affine map{.a = 2, .b = 0, .c = 0, .d = 0, .e = 2, .f = -28};
    SmallHead head(1);
    head.set(0, {4, 18, 8, 8, 0.9f});   // top left corner of the frame
    head.set(1, {60, 46, 8, 8, 0.8f});  // bottom right corner
    head.set(2, {32, 5, 8, 6, 0.7f});   // in the border: nothing is left of it
    head.set(3, {32, 12, 8, 8, 0.6f});  // half in the border
    const Decoded decoded = head.decode({}, map, 128, 72);
    ASSERT_EQ(decoded.detections.size(), 3u);
    const float want[][4] = {{0, 0, 16, 16}, {112, 56, 128, 72}, {56, 0, 72, 4}};
    for (size_t i = 0; i < 3; ++i) {
        const Detection& d = decoded.detections[i];
        EXPECT_EQ(d.x0, want[i][0]);
        EXPECT_EQ(d.y0, want[i][1]);
        EXPECT_EQ(d.x1, want[i][2]);
        EXPECT_EQ(d.y1, want[i][3]);
    }
}

TEST(Decode, MapsThroughATurnOfTheFrame) {
    SmallHead head(1);
    head.set(0, {10, 20, 4, 8, 0.9f});
    const Decoded decoded = head.decode({}, {.a = 0, .b = -1, .c = 64, .d = 1, .e = 0, .f = 0});
    ASSERT_EQ(decoded.detections.size(), 1u);
    const Detection& d = decoded.detections[0];  // x = 64 - v, y = u
    EXPECT_EQ(d.x0, 40);
    EXPECT_EQ(d.x1, 48);
    EXPECT_EQ(d.y0, 8);
    EXPECT_EQ(d.y1, 12);
}

TEST(Decode, KeepsTheClassesAskedFor) {
    SmallHead head(3);
    for (size_t c = 0; c < 3; ++c) {
        std::vector<float> values{10 + 16 * static_cast<float>(c), 10, 8, 8, 0, 0, 0};
        values[4 + c] = 0.9f;
        head.set(c, values);
    }
    ModelInfo info;
    info.labels = {"cat", "dog", "0"};
    const auto kept = [&](std::vector<std::string> classes) {
        std::vector<int> ids;
        for (const Detection& d :
             head.decode({.classes = classes}, identity, 64, 64, info).detections) {
            ids.push_back(d.class_id);
        }
        return ids;
    };
    EXPECT_EQ(kept({}), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(kept({"dog"}), std::vector<int>{1});
    EXPECT_EQ(kept({"2", "cat"}), (std::vector<int>{0, 2}));
    EXPECT_EQ(kept({"0"}), std::vector<int>{2});  // a label that is a number wins over the number
    const StoredTensor stored = stored_cpu(head.tensor, "out");
    const auto unknown = Decoder::create(info, {&stored.info, 1}, 64, 64,
                                         {.decoder = "yolo-v8", .classes = {"bird"}});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(unknown.error().message.find("'bird'"), std::string::npos);
}

TEST(Decode, DropsTheBackgroundClass) {
    SmallHead head(2);
    head.set(0, {10, 10, 8, 8, 0.9f, 0});
    head.set(1, {40, 40, 8, 8, 0, 0.8f});
    ModelInfo info;
    info.labels = {"cat"};
    info.class_offset = -1;
    const Decoded decoded = head.decode({}, identity, 64, 64, info);
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_EQ(decoded.detections[0].class_id, 0);
}

TEST(Decode, HoldsItsLimits) {
    SmallHead head(1);
    for (size_t i = 0; i < 8; ++i) {
        const auto k = static_cast<float>(i);
        head.set(i, {8 * k + 2, 8, 2 + k / 2, 4, 0.9f - 0.05f * k});
    }
    EXPECT_EQ(head.decode().detections.size(), 8u);
    EXPECT_EQ(head.decode({.max_detections = 3}).detections.size(), 3u);
    EXPECT_EQ(head.decode({.min_size = 4}).detections.size(), 4u);  // widths 2, 2.5 … 5.5
    EXPECT_EQ(head.decode({.score_threshold = 0.7}).detections.size(), 5u);
    ModelInfo info;
    info.score_threshold = 0.8;
    info.max_detections = 2;
    EXPECT_EQ(head.decode({}, identity, 64, 64, info).detections.size(), 2u);
    EXPECT_EQ(head.decode({.score_threshold = 0.1, .max_detections = 9}, identity, 64, 64, info)
                  .detections.size(),
              8u);
}

TEST(Decode, PutsTheSidecarsActivationBehindScores) {
    SmallHead head(2);
    for (size_t p = 0; p < 84; ++p) head.set(p, {10, 10, 8, 8, -9, -9});
    head.set(5, {10, 10, 8, 8, -9, 1.5f});   // sigmoid 0.8176
    head.set(6, {40, 10, 8, 8, -1.2f, -9});  // sigmoid 0.2315
    ModelInfo info;
    info.activation = "sigmoid";
    const Decoded decoded = head.decode({}, identity, 64, 64, info);
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_NEAR(decoded.detections[0].score, 0.817574f, 1e-6);
}

TEST(Decode, RefusesTensorsOfAnotherModel) {
    const TensorInfo outputs[] = {output_of("a", {1, 84, 8400})};
    auto decoder = Decoder::create({}, outputs, 640, 640, {});
    ASSERT_TRUE(decoder);
    const TensorInfo other = output_of("a", {1, 84, 3549});
    const std::vector<float> data(84 * 3549);
    const OutputTensor tensor{data.data(), "a", &other.cpu, &other.cpu};
    Decoded decoded;
    EXPECT_FALSE(decoder->decode({&tensor, 1}, identity, 64, 64, decoded));
    EXPECT_FALSE(decoder->decode({}, identity, 64, 64, decoded));
}

}  // namespace
