// SPDX-License-Identifier: Apache-2.0
// Names: of decoder families as people call them, and of classes that nothing names.
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "tests/vision/head_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

std::string family_of(const char* name) {
    const DecoderFamily* family = find_decoder_family(name);
    return family ? std::string(family->nick) : "";
}

TEST(FamilyNames, AreUnderstoodAsPeopleWriteThem) {
    const struct {
        const char *name, *nick;
    } cases[] = {
        {"yolov8", "yolo-v8"},
        {"yolo8", "yolo-v8"},
        {"YOLOv8n", "yolo-v8"},
        {"yolo_v8", "yolo-v8"},
        {"yolo v8", "yolo-v8"},
        {"yolov9", "yolo-v8"},
        {"yolo11", "yolo-v8"},
        {"yolo11s", "yolo-v8"},
        {"yolov12", "yolo-v8"},
        {"yolov8-seg", "yolo-v8-seg"},
        {"YOLO11n-seg", "yolo-v8-seg"},
        {"yolov8n-pose", "yolo-v8-pose"},
        {"yolo11x-obb", "yolo-v8-obb"},
        {"yolov8n-cls", "classify"},
        {"yolov5", "yolo-v5"},
        {"yolov5s", "yolo-v5"},
        {"yolov3", "yolo-v5"},
        {"yolov7", "yolo-v5"},
        {"yolov10", "yolo-end2end"},
        {"yolo26n", "yolo-end2end"},
        {"YOLOX", "yolox"},
        {"yolo-x", "yolox"},
        {"yolov5-face", "yolo-face"},
        {"yolov5n-face", "yolo-face"},
        {"NanoDet", "nanodet"},
        {"rt-detr", "detr"},
        {"classification", "classify"},
        // No family of ours, or none that is certain.
        {"", ""},
        {"auto", ""},
        {"yolo", ""},
        {"yolov", ""},
        {"yolov1", ""},
        {"yolov88", ""},
        {"yolov8q", ""},
        {"yolov5-seg", ""},
        {"yolo26-seg", ""},
        {"yolo/v8", ""},
    };
    for (const auto& c : cases) EXPECT_EQ(family_of(c.name), c.nick) << c.name;
    for (const DecoderFamily& family : decoder_families())
        EXPECT_EQ(family_of(std::string(family.nick).c_str()), family.nick);
}

TEST(FamilyNames, OfASidecarBecomeTheNick) {
    const auto info =
        parse_modelinfo("[modelinfo]\nversion=1.0\nx-vartml-decoder=YOLOv8n-seg\n", "a.modelinfo");
    ASSERT_TRUE(info) << info.error().message;
    EXPECT_EQ(info->decoder, "yolo-v8-seg");
}

struct LabelCase {
    const char* why;
    const char* family;
    std::vector<std::vector<uint32_t>> shapes;
    size_t labels;  // of the decoder
    std::vector<std::pair<int, const char*>> names;
    const char* source;
};

// The expected names are those of the lists that the data sets publish.
TEST(ClassNames, AreThoseOfTheCommonDataSetsWhereTheirNumberFits) {
    const LabelCase cases[] = {
        {"COCO",
         "yolo-v8",
         {{1, 84, 8400}},
         80,
         {{0, "person"}, {2, "car"}, {16, "dog"}, {79, "toothbrush"}},
         "the 80 classes of COCO"},
        {"COCO too", "yolox", {{1, 8400, 85}}, 80, {{62, "tv"}}, "the 80 classes of COCO"},
        {"ImageNet",
         "classify",
         {{1, 1000}},
         1000,
         {{0, "tench"},
          {1, "goldfish"},
          {207, "golden retriever"},
          {281, "tabby"},
          {999, "toilet tissue"}},
         "the 1000 classes of ImageNet"},
        {"ImageNet behind the background",
         "classify",
         {{1, 1001}},
         1001,
         {{0, "background"}, {2, "goldfish"}},
         "background and the 1000 classes of ImageNet"},
        {"another number", "yolo-v8", {{1, 83, 8400}}, 0, {{0, "class-0"}}, ""},
        {"80 classes of the whole picture are not objects",
         "classify",
         {{1, 80}},
         0,
         {{0, "class-0"}},
         ""},
    };
    for (const LabelCase& c : cases) {
        std::vector<TensorInfo> outputs;
        for (const auto& shape : c.shapes) outputs.push_back(output_of("out", shape));
        const auto decoder = Decoder::create({}, outputs, 640, 640, {.decoder = c.family});
        ASSERT_TRUE(decoder) << c.why << ": " << decoder.error().message;
        EXPECT_EQ(decoder->labels().size(), c.labels) << c.why;
        for (const auto& [id, name] : c.names) EXPECT_EQ(decoder->label(id), name) << c.why;
        EXPECT_EQ(decoder->labels_source(), c.source) << c.why;
        const std::set<std::string> all(decoder->labels().begin(), decoder->labels().end());
        EXPECT_EQ(all.size(), c.labels) << c.why << ": every name is there once";
    }
}

// COCO numbers its 80 categories up to 90; where a number is left out there is no name.
TEST(ClassNames, OfCocoAreKnownByTheirIdsToo) {
    const struct {
        unsigned classes;
        int first;  // id of class 0
    } cases[] = {{91, 0}, {92, 0}, {90, 1}};
    for (const auto& c : cases) {
        const TensorInfo outputs[] = {output_of("boxes", {1, 300, 4}),
                                      output_of("scores", {1, 300}), output_of("labels", {1, 300})};
        ModelInfo info;
        info.num_classes = c.classes;
        const auto decoder = Decoder::create(info, outputs, 640, 640, {.decoder = "detr"});
        ASSERT_TRUE(decoder) << decoder.error().message;
        EXPECT_EQ(decoder->labels().size(), c.classes);
        const std::pair<int, const char*> names[] = {{1, "person"},     {11, "fire hydrant"},
                                                     {13, "stop sign"}, {16, "bird"},
                                                     {44, "bottle"},    {90, "toothbrush"}};
        for (const auto& [id, name] : names) EXPECT_EQ(decoder->label(id - c.first), name);
        EXPECT_EQ(decoder->label(12 - c.first), "class-" + std::to_string(12 - c.first));
        EXPECT_EQ(decoder->labels_source(), "the 80 classes of COCO by their ids, which go to 90");
    }
}

TensorInfo map_of(uint32_t channels, uint32_t side) {
    TensorInfo info;
    info.name = "map";
    info.cpu = make_view(DataType::float32, Layout::NCHW, {1, channels, side, side});
    return info;
}

TEST(ClassNames, OfSegmentationsBeginWithTheBackgroundWhereTheyHaveOne) {
    const struct {
        uint32_t channels;
        const char *first, *last, *source;
    } cases[] = {
        {21, "background", "tvmonitor", "background and the 20 classes of PASCAL VOC"},
        {2, "background", "object", "models that tell an object from the background"},
        {19, "class-0", "class-18", ""},  // of Cityscapes, where a road is something
    };
    for (const auto& c : cases) {
        const TensorInfo output = map_of(c.channels, 128);
        const auto decoder = Decoder::create({}, {&output, 1}, 256, 256, {.decoder = "segment"});
        ASSERT_TRUE(decoder) << decoder.error().message;
        EXPECT_EQ(decoder->label(0), c.first);
        EXPECT_EQ(decoder->label(static_cast<int32_t>(c.channels) - 1), c.last);
        EXPECT_EQ(decoder->labels_source(), c.source);
    }
}

// Colours of a grey picture: two channels, or 313 bins of them.
TEST(Families, OfColoursAreAsked) {
    for (const auto& [channels, side, says] :
         {std::tuple(2u, 256u, "if they are classes, choose segment"),
          std::tuple(313u, 64u, "fit no decoder"),
          std::tuple(2u, 64u, "fit several decoders: segment, heatmap")}) {
        const TensorInfo output = map_of(channels, side);
        const auto decoder = Decoder::create({}, {&output, 1}, 256, 256, {});
        ASSERT_FALSE(decoder) << decoder->family();
        EXPECT_NE(decoder.error().message.find(says), std::string::npos) << decoder.error().message;
    }
    // Probabilities are of classes, and who names them knows.
    const TensorInfo output = map_of(2, 256);
    ModelInfo info = *parse_modelinfo("[map]\ndir=output\nx-vartml-ends-in=softmax\n", "");
    EXPECT_TRUE(Decoder::create(info, {&output, 1}, 256, 256, {}));
    info = {};
    info.labels = {"background", "line"};
    EXPECT_TRUE(Decoder::create(info, {&output, 1}, 256, 256, {}));
}

TEST(ClassNames, OfFaceDetectorsAreFace) {
    const TensorInfo outputs[] = {output_of("boxes", {1, 4420, 4}),
                                  output_of("scores", {1, 4420, 2})};
    const auto decoder = Decoder::create({}, outputs, 320, 240, {.decoder = "ultraface"});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->label(0), "face");
}

TEST(ClassNames, GiveWayToLabels) {
    const TensorInfo output = output_of("out", {1, 84, 8400});
    ModelInfo info;
    for (int i = 0; i < 80; ++i) info.labels.push_back("part " + std::to_string(i));
    const auto decoder = Decoder::create(info, {&output, 1}, 640, 640, {.decoder = "yolov8"});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->label(3), "part 3");
    EXPECT_EQ(decoder->labels_source(), "");
}

}  // namespace
