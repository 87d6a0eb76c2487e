// SPDX-License-Identifier: Apache-2.0
// The bones between keypoints, by name and as pairs.
#include <gtest/gtest.h>

#include <set>

#include "tests/vision/map_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

TEST(Skeletons, JoinPointsThatTheyHaveAndEachPairOnce) {
    for (const Skeleton& skeleton : skeletons()) {
        std::set<Bone> seen;
        for (const Bone& bone : skeleton.bones) {
            EXPECT_LT(bone.first, skeleton.points) << skeleton.name;
            EXPECT_LT(bone.second, skeleton.points) << skeleton.name;
            EXPECT_NE(bone.first, bone.second) << skeleton.name;
            EXPECT_TRUE(seen.insert(std::minmax(bone.first, bone.second)).second)
                << skeleton.name << " " << bone.first << "-" << bone.second;
        }
        EXPECT_EQ(*parse_skeleton(skeleton.name),
                  std::vector(skeleton.bones.begin(), skeleton.bones.end()));
    }
}

// given: MediaPipe, hand_connections.py: the palm, then each finger from its root to its tip.
TEST(Skeletons, OfAHandJoinEachFingerToThePalm) {
    std::set<Bone> want = {{0, 1}, {0, 5}, {5, 9}, {9, 13}, {13, 17}, {0, 17}};
    for (const uint32_t root : {1u, 5u, 9u, 13u, 17u})
        for (uint32_t joint = root; joint < root + 3; ++joint) want.insert({joint, joint + 1});
    const auto bones = *parse_skeleton("hand21");
    EXPECT_EQ(std::set<Bone>(bones.begin(), bones.end()), want);
}

TEST(Skeletons, AreReadFromTheirText) {
    EXPECT_EQ(parse_skeleton("coco17")->size(), 19u);
    EXPECT_TRUE(parse_skeleton("")->empty());
    EXPECT_TRUE(parse_skeleton("none")->empty());
    EXPECT_EQ(*parse_skeleton("0-1;12-3"), (std::vector<Bone>{{0, 1}, {12, 3}}));
    EXPECT_EQ(*parse_skeleton("0-1;"), (std::vector<Bone>{{0, 1}}));
    for (const char* wrong :
         {"0", "0-", "-1", "0-1,2-3", "0-1;;", "a-b", "0-99999999999", "0 - 1", "coco"}) {
        EXPECT_FALSE(parse_skeleton(wrong)) << wrong;
    }
}

TEST(Skeletons, AreThoseOfTheModelsThatHaveSoManyPoints) {
    const struct {
        std::vector<uint32_t> shape;
        const char* skeleton;
        unsigned points;
    } rows[] = {
        {{1, 63}, "hand21", 21},     {{1, 21, 3}, "hand21", 21},
        {{1, 136}, "face68", 68},    {{1, 195}, "blazepose33", 33},
        {{1, 1404}, "face468", 468}, {{1, 1404, 1, 1}, "face468", 468},
        {{1, 212}, "", 106},
    };
    for (const auto& row : rows) {
        TensorInfo info;
        info.name = "landmarks";
        info.cpu = make_view(DataType::float32, Layout::GENERIC, row.shape);
        const auto decoder = Decoder::create({}, {&info, 1}, 224, 224, {.decoder = "landmarks"});
        ASSERT_TRUE(decoder) << decoder.error().message;
        EXPECT_EQ(decoder->skeleton(), row.skeleton);
    }
}

TEST(BlazePose, HasFiveValuesForEachOfItsPoints) {
    StoredTensor tensor;
    tensor.info.name = "ld_3d";
    tensor.info.cpu = make_view(DataType::float32, Layout::GENERIC, {1, 195});
    std::vector<float> values(195);
    for (size_t k = 0; k < 39; ++k) {
        values[k * 5] = static_cast<float>(k) + 10;
        values[k * 5 + 1] = static_cast<float>(k) + 20;
        values[k * 5 + 3] = k % 2 ? 4.f : -4.f;  // logit of being seen
    }
    tensor.bytes.resize(values.size() * sizeof(float));
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    const Decoded decoded =
        decode_tensors({tensor}, {}, 256, 256, {.decoder = "landmarks", .keypoint_threshold = 0.5});
    ASSERT_EQ(decoded.keypoints.size(), 33u);
    for (size_t k = 0; k < 33; ++k) {
        EXPECT_EQ(decoded.keypoints[k].x, static_cast<float>(k) + 10);
        EXPECT_EQ(decoded.keypoints[k].y, static_cast<float>(k) + 20);
        EXPECT_EQ(decoded.keypoints[k].visible, k % 2 == 1);
    }
}

}  // namespace
