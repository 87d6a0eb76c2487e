// SPDX-License-Identifier: Apache-2.0
// Which decoders read some of the outputs where none reads all, and what a named decoder says of
// outputs that are not its own.
#include <gtest/gtest.h>

#include "tests/vision/head_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

// The sentence, followed to the letter, gives a decoder.
TEST(ChoiceOfOneOutput, IsNamedWhereNoDecoderReadsAll) {
    struct Case {
        const char* why;
        std::vector<std::pair<const char*, std::vector<uint32_t>>> outputs;
        const char* ends;  // sidecar of what the graph ends in
        std::vector<const char*> words;
        const char *sidecar, *family;
        uint32_t width = 320, height = 240;
        uint32_t label_count = 0;
    };
    const Case cases[] = {
        {"BodyPix",
         {{"displacement_fwd", {1, 15, 20, 32}},
          {"heatmaps", {1, 15, 20, 17}},
          {"segments", {1, 15, 20, 1}},
          {"short_offsets", {1, 15, 20, 34}}},
         "",
         {"heatmap reads 'heatmaps',",
          "segment reads 'segments':", "x-vartml-decoder=heatmap in section [modelinfo]",
          "dir=output and x-vartml-role=heatmap in section [heatmaps]"},
         "[modelinfo]\nx-vartml-decoder=heatmap\n[heatmaps]\ndir=output\n"
         "x-vartml-role=heatmap\n",
         "heatmap"},
        {"a table of boxes beside the maps that it was made of",
         {{"table", {1, 5, 3549}},
          {"large", {1, 65, 52, 52}},
          {"middle", {1, 65, 26, 26}},
          {"small", {1, 65, 13, 13}}},
         "",
         {"as a whole; yolo-v8 reads 'table': choose",
          "x-vartml-decoder=yolo-v8 in section [modelinfo]",
          "dir=output and x-vartml-role=boxes in section [table]"},
         "[modelinfo]\nx-vartml-decoder=yolo-v8\n[table]\ndir=output\n"
         "x-vartml-role=boxes\n",
         "yolo-v8",
         416,
         416},
        {"boxes beside scores of classes: neither is anything without the other",
         {{"904", {1, 80, 8400}}, {"913", {1, 8400, 4}}},
         "",
         {"boxes that the model decoded in '913' and scores of 80 classes in '904'",
          "x-vartml-decoder=ssd and x-vartml-num-classes=80 in section [modelinfo]",
          "dir=output and x-vartml-role=boxes in section [913]"},
         "[modelinfo]\nx-vartml-decoder=ssd\nx-vartml-num-classes=80\n"
         "[913]\ndir=output\nx-vartml-role=boxes\n",
         "ssd",
         640,
         640},
        {"boxes beside scores of one class",
         {{"904", {1, 8400, 1}}, {"913", {1, 8400, 4}}},
         "",
         {"scores of 1 class in '904'", "x-vartml-num-classes=1 in section [modelinfo]"},
         "[modelinfo]\nx-vartml-decoder=ssd\nx-vartml-num-classes=1\n"
         "[913]\ndir=output\nx-vartml-role=boxes\n",
         "ssd",
         640,
         640},
        {"boxes beside logits, as DETR gives them",
         {{"logits", {1, 100, 92}}, {"pred_boxes", {1, 100, 4}}},
         "",
         {"scores of 92 classes in 'logits'",
          "x-vartml-background=last says that the last class is that of nothing",
          "boxes of the DETR line are x-vartml-box-order=cxcywh"},
         "[modelinfo]\nx-vartml-decoder=ssd\nx-vartml-num-classes=92\n"
         "x-vartml-background=last\nx-vartml-box-order=cxcywh\n"
         "[pred_boxes]\ndir=output\nx-vartml-role=boxes\n",
         "ssd",
         800,
         800},
        {"boxes beside probabilities, which sum up to 1 where nothing is, too",
         {{"logits", {1, 100, 92}}, {"pred_boxes", {1, 100, 4}}},
         "[logits]\ndir=output\nx-vartml-ends-in=softmax\n",
         {"one of which is that of nothing, ssd reads them",
          "x-vartml-decoder=ssd and x-vartml-background=last (or first) in section [modelinfo]"},
         "[modelinfo]\nx-vartml-decoder=ssd\nx-vartml-background=last\n"
         "[pred_boxes]\ndir=output\nx-vartml-role=boxes\n",
         "ssd",
         800,
         800},
        {"lists of boxes beside what they were made of, as TensorFlow's models give them",
         {{"detection_anchor_indices", {1, 100}},
          {"detection_boxes", {1, 100, 4}},
          {"detection_classes", {1, 100}},
          {"detection_scores", {1, 100}},
          {"num_detections", {1}},
          {"raw_detection_boxes", {1, 1917, 4}},
          {"raw_detection_scores", {1, 1917, 91}}},
         "",
         {"; ssd reads the list of boxes 'detection_boxes': choose",
          "x-vartml-role=boxes in section [detection_boxes]"},
         "[modelinfo]\nx-vartml-decoder=ssd\n[detection_boxes]\ndir=output\n"
         "x-vartml-role=boxes\n",
         "ssd",
         640,
         640},
        {"gestures beside the presence of a hand, which are no landmarks",
         {{"a", {1, 1}}, {"b", {1, 12}}},
         "[a]\ndir=output\nx-vartml-ends-in=sigmoid\n"
         "[b]\ndir=output\nx-vartml-ends-in=log-softmax\n",
         {"; classify reads 'b':", "x-vartml-role=scores in section [b]"},
         "[modelinfo]\nx-vartml-decoder=classify\n[b]\ndir=output\nx-vartml-role=scores\n",
         "classify"},
        {"a plate's text beside its colour",
         {{"text", {1, 40, 78}}, {"colour", {1, 5}}},
         "[text]\ndir=output\nx-vartml-ends-in=product\n"
         "[colour]\ndir=output\nx-vartml-ends-in=linear\n",
         {"; ctc-text reads 'text', classify reads 'colour'",
          "x-vartml-decoder=ctc-text in section [modelinfo]",
          "x-vartml-role=scores in section [text]"},
         "[modelinfo]\nx-vartml-decoder=ctc-text\n"
         "[text]\ndir=output\nx-vartml-role=scores\n",
         "ctc-text",
         320,
         96,
         77},
    };
    for (const Case& c : cases) {
        std::vector<TensorInfo> outputs;
        for (const auto& [name, shape] : c.outputs) outputs.push_back(output_of(name, shape));
        const auto seen = parse_modelinfo(std::string("[modelinfo]\nversion=1.0\n") + c.ends, "");
        ASSERT_TRUE(seen) << seen.error().message;
        const auto refused = Decoder::create(*seen, outputs, c.width, c.height, {});
        ASSERT_FALSE(refused) << c.why << ": " << refused->family();
        for (const char* word : c.words)
            EXPECT_NE(refused.error().message.find(word), std::string::npos)
                << word << ": " << refused.error().message;
        auto said = parse_modelinfo(c.sidecar, "");
        ASSERT_TRUE(said) << said.error().message;
        if (c.label_count) said->labels = labels(c.label_count);
        const auto decoder =
            Decoder::create(join_modelinfo(*said, *seen), outputs, c.width, c.height, {});
        ASSERT_TRUE(decoder) << decoder.error().message;
        EXPECT_EQ(decoder->family(), c.family);
    }
}

// What a head is made of has the shape of heat maps and class maps, too.
TEST(ChoiceOfOneOutput, AdvisesNoMapsThatArePartsOfAHead) {
    struct Case {
        const char* why;
        std::vector<std::pair<const char*, std::vector<uint32_t>>> outputs;
        bool segment;
    };
    const Case cases[] = {
        {"prototypes of YOLO v5",
         {{"output0", {1, 25200, 117}}, {"output1", {1, 32, 160, 160}}},
         false},
        {"prototypes beside selected boxes",
         {{"output0", {1, 300, 38}}, {"output1", {1, 32, 160, 160}}},
         false},
        {"boxes and classes of three levels",
         {{"reg0", {1, 64, 80, 80}},
          {"cls0", {1, 80, 80, 80}},
          {"reg1", {1, 64, 40, 40}},
          {"cls1", {1, 80, 40, 40}},
          {"reg2", {1, 64, 20, 20}},
          {"cls2", {1, 80, 20, 20}}},
         false},
        {"a mask of the whole picture and maps of another size",
         {{"a", {1, 195}}, {"b", {1, 1}}, {"c", {1, 640, 640, 1}}, {"d", {1, 160, 160, 39}}},
         true},
    };
    for (const Case& c : cases) {
        std::vector<TensorInfo> outputs;
        for (const auto& [name, shape] : c.outputs) outputs.push_back(output_of(name, shape));
        const auto refused = Decoder::create({}, outputs, 640, 640, {});
        ASSERT_FALSE(refused) << c.why << ": " << refused->family();
        const std::string& text = refused.error().message;
        EXPECT_EQ(text.find("heatmap"), std::string::npos) << c.why << ": " << text;
        EXPECT_EQ(text.find("segment") != std::string::npos, c.segment) << c.why << ": " << text;
    }
}

// Ultralytics' exports with nms=True, and YOLO26's own selection: no stride makes rows of cells.
TEST(NamedDecoders, SayWhatExportTheyReadInThePlaceOfSelectedBoxes) {
    const struct {
        const char* decoder;
        std::vector<TensorInfo> outputs;
    } cases[] = {
        {"yolo-v8-seg", {output_of("a", {1, 300, 38}), output_of("b", {1, 32, 160, 160})}},
        {"yolo-v8-pose", {output_of("a", {1, 300, 57})}},
        {"yolo-end2end", {output_of("a", {1, 300, 57})}},
    };
    for (const auto& c : cases) {
        const auto refused = Decoder::create({}, c.outputs, 640, 640, {.decoder = c.decoder});
        ASSERT_FALSE(refused) << c.decoder;
        EXPECT_NE(refused.error().message.find("nms=False"), std::string::npos)
            << refused.error().message;
        EXPECT_EQ(refused.error().message.find("x-vartml"), std::string::npos)
            << refused.error().message;
    }
}

// A role would be refused in its turn.
TEST(NamedDecoders, OfferNoRoleThatNoOutputCanPlay) {
    const TensorInfo masked[] = {output_of("scores", {1, 17640, 3}),
                                 output_of("boxes", {1, 17640, 4})};
    const auto refused = Decoder::create({}, masked, 640, 480, {.decoder = "ultraface"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "decoder ultraface: no output is the scores [1,17640,2], found scores [1,17640,3], "
              "boxes [1,17640,4]; choose another decoder");
    const TensorInfo twice[] = {output_of("a", {1, 17640, 2}), output_of("b", {1, 17640, 2}),
                                output_of("boxes", {1, 17640, 4})};
    const auto unnamed = Decoder::create({}, twice, 640, 480, {.decoder = "ultraface"});
    ASSERT_FALSE(unnamed);
    EXPECT_NE(unnamed.error().message.find("name it in the sidecar with x-vartml-role=scores"),
              std::string::npos)
        << unnamed.error().message;
}

// A decoder that somebody names must be the one that the outputs are of, where these tell it.
TEST(NamedDecoders, OfOtherOutputsAreRefused) {
    const struct {
        const char *why, *decoder;
        std::vector<uint32_t> shape;
        const char* better;  // "" = taken
        unsigned classes = 0;
    } cases[] = {
        {"YOLOX is no YOLO v8 with 81 classes", "yolo11", {1, 3549, 85}, "yolox"},
        {"nor one of two classes", "yolov8", {1, 3549, 7}, "yolox"},
        {"YOLO v8 with 80 classes is not YOLOX of 79", "yolox", {1, 84, 3549}, "yolo-v8"},
        {"nor turned boxes of 79", "yolo-v8-obb", {1, 84, 3549}, "yolo-v8"},
        {"the published form", "yolo11", {1, 84, 3549}, ""},
        {"exchanged, with the classes of COCO", "yolo11", {1, 3549, 84}, ""},
        {"exchanged, with classes that somebody counted", "yolo11", {1, 3549, 85}, "", 81},
        {"turned boxes of any classes", "yolo-v8-obb", {1, 8, 3549}, ""},
        {"poses of any points", "yolo-v8-pose", {1, 20, 3549}, ""},
    };
    for (const auto& c : cases) {
        SCOPED_TRACE(c.why);
        for (const bool sidecar : {false, true}) {
            ModelInfo info;
            if (c.classes) info.num_classes = c.classes;
            if (sidecar) info.decoder = c.decoder;
            DecodeFault fault;
            const TensorInfo output = output_of("out", c.shape);
            const auto decoder = Decoder::create(info, {&output, 1}, 416, 416,
                                                 {.decoder = sidecar ? "" : c.decoder}, &fault);
            ASSERT_EQ(bool(decoder), !*c.better) << (decoder ? "" : decoder.error().message);
            if (decoder) continue;
            const std::string& message = decoder.error().message;
            EXPECT_NE(message.find(std::string("are those of ") + c.better), message.npos)
                << message;
            EXPECT_EQ(fault.id, "dec-unfit");
            EXPECT_EQ(fault.fix, std::string("x-vartml-decoder=") + c.better);
        }
    }
}

}  // namespace
