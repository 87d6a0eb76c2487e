// SPDX-License-Identifier: Apache-2.0
// Decoders in shared objects: the example beside the family that reads the same, and libraries that
// are wrong in one way each.
#include <vartml/decoder.h>

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/vision/head_tensors.h"

namespace {

using namespace vartml;
using namespace vartml::test;

std::string library(const std::string& name) {
    const char* const folder = std::getenv("VARTML_DECODER_LIBRARIES");
    return std::string(folder ? folder : ".") + "/" + name;
}
std::string example() {
    const char* const file = std::getenv("VARTML_EXAMPLE_DECODER");
    return file ? file : "./none.so";
}

TEST(CustomDecoder, OfTheExampleFindsWhatTheFamilyFinds) {
    const RefTensor head = random_head(84, 6, true, 4, 11, centred_value, 0.2);
    ModelInfo info;
    info.labels = {"cat", "dog"};
    for (const bool hw : {false, true}) {
        RefTensor values = head;
        const StoredTensor tensor =
            hw ? stored_hw(values, "out", DataType::bf16) : stored_cpu(values, "out");
        const OutputTensor output = tensor.output();
        Decoded own, family;
        for (const auto& [decoder, found] :
             {std::pair(example(), &own), std::pair(std::string("yolo-v8"), &family)}) {
            auto made = Decoder::create(info, {&tensor.info, 1}, 64, 64, {.decoder = decoder});
            ASSERT_TRUE(made) << made.error().message;
            const auto done = made->decode({&output, 1}, {}, 320, 320, *found);
            ASSERT_TRUE(done) << done.error().message;
        }
        ASSERT_FALSE(family.detections.empty());
        ASSERT_EQ(own.detections.size(), family.detections.size());
        for (size_t i = 0; i < own.detections.size(); ++i) {
            const Detection &a = own.detections[i], &b = family.detections[i];
            EXPECT_EQ(a.class_id, b.class_id);
            EXPECT_EQ(a.score, b.score);
            EXPECT_NEAR(a.x0, b.x0, 1e-3);
            EXPECT_NEAR(a.y1, b.y1, 1e-3);
        }
    }
}

// An output of four values; the first says what the library does.
StoredTensor told(float what) {
    StoredTensor tensor;
    tensor.info.name = "out";
    tensor.info.cpu = make_view(DataType::float32, Layout::NC, {1, 4});
    tensor.bytes.assign(16, 0);
    std::memcpy(tensor.bytes.data(), &what, 4);
    return tensor;
}

ModelInfo two_labels() {
    ModelInfo info;
    info.labels = {"cat", "dog"};
    return info;
}

TEST(CustomDecoder, MayGiveEveryKindOfResult) {
    const StoredTensor tensor = told(0);
    const OutputTensor output = tensor.output();
    auto made = Decoder::create(two_labels(), {&tensor.info, 1}, 64, 64,
                                {.decoder = library("good.so"), .score_threshold = 0.3});
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->family(), "custom");
    Decoded found;
    const Affine twice = {.a = 2, .b = 0, .c = 0, .d = 0, .e = 2, .f = 0};
    ASSERT_TRUE(made->decode({&output, 1}, twice, 128, 128, found));
    ASSERT_EQ(found.detections.size(), 2u);  // the third is below the threshold
    const Detection& box = found.detections[0];
    EXPECT_EQ(box.class_id, 1);
    EXPECT_EQ(box.x0, 16);
    EXPECT_EQ(box.y1, 32);
    ASSERT_EQ(box.keypoints, 2u);
    EXPECT_EQ(found.keypoints[box.first_keypoint + 1].x, 40);
    ASSERT_EQ(found.detections[1].keypoints, 1u);
    EXPECT_EQ(found.keypoints[found.detections[1].first_keypoint].x, 100);
    ASSERT_EQ(found.classes.size(), 1u);
    EXPECT_EQ(made->label(found.classes[0].class_id), "dog");
    EXPECT_EQ(found.text, "plate ä");
    EXPECT_EQ(found.text_score, 0.5f);
    EXPECT_EQ(found.embedding, (std::vector<float>{0.6f, 0.8f}));
}

TEST(CustomDecoder, ThatGivesNonsenseIsAnError) {
    const struct {
        float what;
        const char* words;  // of the error; nullptr: none
        unsigned not_finite;
    } cases[] = {{1, "it gave class 2, expected 0 to 1", 0},
                 {2, "it refused a run with 7", 0},
                 {3, "not UTF-8", 0},
                 {4, "more than 1000000 results", 0},
                 {5, nullptr, 4},
                 {6, nullptr, 0}};
    for (const auto& c : cases) {
        const StoredTensor tensor = told(c.what);
        const OutputTensor output = tensor.output();
        auto made = Decoder::create(two_labels(), {&tensor.info, 1}, 64, 64,
                                    {.decoder = library("good.so")});
        ASSERT_TRUE(made) << made.error().message;
        Decoded found;
        const auto done = made->decode({&output, 1}, {}, 64, 64, found);
        EXPECT_EQ(done.has_value(), c.words == nullptr) << c.what;
        if (c.words) {
            EXPECT_NE(done.error().message.find(c.words), std::string::npos)
                << done.error().message;
            EXPECT_NE(done.error().message.find("good.so"), std::string::npos);
            continue;
        }
        EXPECT_TRUE(found.detections.empty() && found.classes.empty() && found.text.empty() &&
                    found.embedding.empty());
        EXPECT_EQ(found.not_finite, c.not_finite);
    }
}

TEST(CustomDecoder, ThatCannotBeUsedIsRefusedByName) {
    const struct {
        const char *file, *words;
    } cases[] = {{"other_version.so", "has interface version 7, expected 1"},
                 {"no_function.so", "lacks one of the functions"},
                 {"no_decoder.so", "has no decoder for interface version 1"},
                 {"no_symbol.so", "exports no function vartml_decoder()"},
                 {"missing.so", "cannot be loaded"}};
    const StoredTensor tensor = told(0);
    for (const auto& c : cases) {
        DecodeFault fault;
        auto made = Decoder::create(two_labels(), {&tensor.info, 1}, 64, 64,
                                    {.decoder = library(c.file)}, &fault);
        ASSERT_FALSE(made) << c.file;
        EXPECT_EQ(fault.id, "dec-library");
        for (const char* word : {c.file, c.words})
            EXPECT_NE(made.error().message.find(word), std::string::npos) << made.error().message;
    }
}

TEST(CustomDecoder, SaysWhyItDoesNotTakeAModel) {
    const StoredTensor tensor = told(0);
    DecodeFault fault;
    auto of_example =
        Decoder::create({}, {&tensor.info, 1}, 64, 64, {.decoder = example()}, &fault);
    ASSERT_FALSE(of_example);
    EXPECT_NE(of_example.error().message.find("expected one output [1,4+C,N]"), std::string::npos);
    EXPECT_NE(of_example.error().message.find("out [1,4]"), std::string::npos);
    // A library that fills all of the sentence's room.
    const TensorInfo two[] = {tensor.info, tensor.info};
    auto of_two = Decoder::create({}, two, 64, 64, {.decoder = library("good.so")}, &fault);
    ASSERT_FALSE(of_two);
    EXPECT_NE(of_two.error().message.find("xxxx"), std::string::npos);
}

TEST(CustomDecoder, NamedBySidecarAloneAsksForItsLibrary) {
    const StoredTensor tensor = told(0);
    auto info = parse_modelinfo("[modelinfo]\nx-vartml-decoder=custom\n", "");
    ASSERT_TRUE(info);
    DecodeFault fault;
    auto made = Decoder::create(*info, {&tensor.info, 1}, 64, 64, {}, &fault);
    ASSERT_FALSE(made);
    EXPECT_EQ(fault.id, "dec-library");
    EXPECT_NE(made.error().message.find("decoder-library"), std::string::npos);
}

}  // namespace
