// SPDX-License-Identifier: Apache-2.0
// Which family a decoder is of, and the checks of counts before the first frame.
#include <gtest/gtest.h>

#include "tests/vision/head_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

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
    {"YOLO-FastestV2: two levels, rows of three anchors each",
     {{1, 605, 95}},
     352,
     352,
     nullptr,
     "fit no decoder"},
    {"features of a backbone: no map has so few cells",
     {{1, 288, 4, 4}},
     112,
     112,
     nullptr,
     "fit no decoder"},
    {"the published YOLO v8", {{1, 84, 8400}}, 640, 640, "yolo-v8"},
    {"the published YOLO v5", {{1, 25200, 85}}, 640, 640, "yolo-v5"},
    {"a YOLO v5 with a fourth level", {{1, 102000, 85}}, 1280, 1280, "yolo-v5"},
    {"the published YOLO v10", {{1, 300, 6}}, 640, 640, "yolo-end2end"},
    {"the same where 300 rows are cells of two strides, too",
     {{1, 300, 6}},
     320,
     192,
     "yolo-end2end"},
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
    {"SCRFD of five strides has one anchor per cell",
     {{1, 6400, 1},
      {1, 1600, 1},
      {1, 400, 1},
      {1, 100, 1},
      {1, 25, 1},
      {1, 6400, 4},
      {1, 1600, 4},
      {1, 400, 4},
      {1, 100, 4},
      {1, 25, 4}},
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
    {"RetinaFace 640 without points", {{1, 16800, 4}, {1, 16800, 2}}, 640, 640, "retinaface"},
    {"the same of plates", {{1, 16800, 4}, {1, 16800, 2}, {1, 16800, 8}}, 640, 640, "retinaface"},
    {"FaceBoxes 640", {{1, 8525, 4}, {1, 8525, 2}}, 640, 640, "faceboxes"},
    {"a map as large as the picture", {{1, 21, 512, 512}}, 512, 512, "segment"},
    {"channels last", {{1, 512, 896, 4}}, 896, 512, "segment"},
    {"three channels as large as the input: another picture, or classes",
     {{1, 3, 240, 320}},
     320,
     240,
     nullptr,
     "fit no decoder"},
    {"three channels with labels", {{1, 3, 240, 320}}, 320, 240, "segment", "", 3},
    {"boxes that two read, beside which others need not be told",
     {{1, 336, 84}},
     128,
     128,
     nullptr,
     "several decoders: yolo-v8, yolox; choose one"},
    {"maps of stride 16, which FastestDet has for any number of classes",
     {{1, 9, 32, 32}},
     512,
     512,
     nullptr,
     "several decoders: segment, heatmap; boxes in it are read by fastestdet with "
     "x-vartml-num-classes=4; choose one with the property decoder or the sidecar line "
     "x-vartml-decoder=…"},
    {"maps of stride 32, which YOLO has for its anchors",
     {{1, 75, 13, 13}},
     416,
     416,
     nullptr,
     "heatmap; boxes in it are read by yolo-v5 with x-vartml-anchors=…"},
    {"one channel", {{1, 1, 64, 64}}, 256, 256, "segment"},
    {"small maps: classes or points",
     {{1, 17, 64, 48}},
     192,
     256,
     nullptr,
     "several decoders: segment, heatmap"},
    {"as many as there are labels", {{1, 19, 128, 128}}, 512, 512, "segment", "", 19},
    {"not as many: still either", {{1, 17, 64, 48}}, 192, 256, nullptr, "several", 3},
    {"a picture larger than the input",
     {{1, 1, 672, 672}},
     224,
     224,
     nullptr,
     "is a picture 3 times as large as the input of 224x224, which no decoder reads; put "
     "vartmlpicture in the place of vartmldecode"},
    {"one of colours, channels last", {{1, 480, 640, 3}}, 320, 240, nullptr, "2 times as large"},
    {"neither", {{1, 5, 480, 640}}, 320, 240, nullptr, "fit no decoder"},
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
    {"raw YOLO v8",
     {{1, 144, 40, 40}, {1, 144, 20, 20}, {1, 144, 10, 10}},
     320,
     320,
     nullptr,
     "or choose yolo-v8, which reads maps of 64 channels and 80 classes"},
    {"NanoDet-Plus in one table is no YOLOX of 107 classes", {{1, 3598, 112}}, 416, 416, "nanodet"},
    {"unless somebody counts them", {{1, 3598, 112}}, 416, 416, "yolox", "", 107},
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
    {"YOLO v7 with its NMS in the model", {{1, 100, 7}}, 640, 640, "yolo-end2end"},
    {"the same without batch axis", {{100, 7}}, 640, 640, "yolo-end2end"},
    {"a YOLO v8 without batch axis", {{84, 8400}}, 640, 640, "yolo-v8"},
    {"classes without batch axis", {{1000}}, 224, 224, "classify"},
    {"a hand as a table without batch axis", {{21, 3}}, 224, 224, "landmarks"},
    {"BlazePose without its maps: five values of each point",
     {{1, 195}, {1, 1}},
     256,
     256,
     "landmarks"},
    {"OpenPose in one tensor, or classes",
     {{1, 57, 46, 54}},
     432,
     368,
     nullptr,
     "several decoders: segment, heatmap, openpose"},
    {"57 classes", {{1, 57, 46, 54}}, 432, 368, "segment", "", 57},
    {"OpenPose", {{1, 38, 32, 57}, {1, 19, 32, 57}}, 456, 256, "openpose"},
    {"lanes and drivable area", {{1, 2, 320, 320}, {1, 2, 320, 320}}, 320, 320, "segment"},
    {"smaller pairs: classes, or a detector of faces by maps",
     {{1, 2, 56, 56}, {1, 2, 56, 56}},
     224,
     224,
     nullptr,
     "fit no decoder for certain: maps of two channels that are not as large as the input may "
     "be a class of pixels each"},
    {"smaller pairs with labels", {{1, 2, 56, 56}, {1, 2, 56, 56}}, 224, 224, "segment", "", 2},
    {"edges of several scales are no classes",
     {{1, 1, 360, 640}, {1, 1, 360, 640}},
     640,
     360,
     nullptr,
     "fit no decoder"},
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
    info.decoder = "yolox";  // transposed, 79 classes: odd, but what the sidecar says twice
    info.num_classes = 79;
    EXPECT_EQ(chosen("auto"), "yolox sidecar");
    info.num_classes.reset();
    EXPECT_EQ(chosen("yolo-v8"), "yolo-v8 property");
    EXPECT_NE(chosen("yolo99").find("expected auto or one of classify, ssd, yolo-v5"),
              std::string::npos);
}

TEST(Choice, TakesSmallPairsOfMapsForClassesWhereTheyAreCalledSo) {
    const TensorInfo outputs[] = {output_of("seg_road", {1, 2, 80, 80}),
                                  output_of("lane_mask", {1, 2, 80, 80})};
    const auto decoder = Decoder::create({}, outputs, 320, 320, {});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->family(), "segment");
}

TEST(Choice, TakesIdsThatTheSidecarGives) {
    const TensorInfo outputs[] = {output_of("output0", {1, 84, 8400})};
    ModelInfo info;
    info.outputs.push_back({.name = "output0", .id = "yolo-v8-out", .role = ""});
    const auto decoder = Decoder::create(info, outputs, 640, 640, {});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->reason(), "ids");
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
    {"two tables, one of a branch for training",
     "yolo-v8",
     {{1, 84, 3549}, {1, 84, 3549}},
     [](ModelInfo&) {},
     "dec-role",
     {"boxes", "x-vartml-role=boxes"}},
    {"no dense tensor", "yolox", {{1, 1000}}, [](ModelInfo&) {}, "dec-role", {"[1,1000]"}},
    {"no scores",
     "ultraface",
     {{1, 4420, 4}},
     [](ModelInfo&) {},
     "dec-role",
     {"scores", "[1,4420,4]"}},
    {"no rows of six or seven",
     "yolo-end2end",
     {{1, 300, 8}},
     [](ModelInfo&) {},
     "dec-role",
     {"[1,300,8]"}},
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
     {{1, 70000, 13, 13}},
     [](ModelInfo&) {},
     "dec-classes",
     {"70000 classes", "65535"}},
    {"bones to a point that is not there",
     "heatmap",
     {{1, 17, 104, 104}},
     [](ModelInfo& m) { m.skeleton = "0-1;1-17"; },
     "dec-classes",
     {"names point 17", "17 points, from 0 to 16"}},
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

// MediaPipe keeps the aspect of the picture; stretched faces score less or are not found.
TEST(ChoiceOfBlazeFace, NamesItsClassAndKeepsTheAspect) {
    struct Case {
        uint32_t values, side, positions;
        const char* label;
        float mean;  // faces, and the first palms, are fed as -1 to 1, later palms as 0 to 1
    };
    for (const Case& c : {Case{16, 128, 896, "face", 127.5f}, Case{18, 128, 896, "palm", 0},
                          Case{18, 192, 2016, "palm", 0}, Case{18, 256, 2944, "palm", 127.5f}}) {
        SCOPED_TRACE(std::to_string(c.values) + " values of " + std::to_string(c.side));
        const std::vector<TensorInfo> outputs = {output_of("boxes", {1, c.positions, c.values}),
                                                 output_of("scores", {1, c.positions, 1})};
        const auto decoder = Decoder::create({}, outputs, c.side, c.side, {});
        ASSERT_TRUE(decoder) << decoder.error().message;
        EXPECT_EQ(decoder->labels(), std::vector<std::string>{c.label});
        TensorInfo input;
        input.name = "image";
        input.cpu = make_view(DataType::float32, Layout::NCHW, {1, 3, c.side, c.side});
        const PixelChoice pixels = choose_pixels({}, outputs, input, c.side, c.side);
        EXPECT_EQ(pixels.options.resize, ResizeMode::letterbox);
        EXPECT_EQ(pixels.options.mean[0], c.mean);
        EXPECT_EQ(pixels.options.scale[0], c.mean > 0 ? 1 / 127.5f : 1 / 255.f);
        EXPECT_EQ(pixels.options.pad[0], 0);
        // What `vartml compile --decoder` records is the same.
        ModelInfo named;
        named.decoder = "blazeface";
        const auto recorded = parse_modelinfo(print_modelinfo(named, {&input, 1}, outputs), "");
        ASSERT_TRUE(recorded) << recorded.error().message;
        EXPECT_EQ(preprocess_options(*recorded, nullptr, "image").mean[0], c.mean);
    }
}

}  // namespace
