// SPDX-License-Identifier: Apache-2.0
// The bones between keypoints, by name and as pairs.
#include <gtest/gtest.h>

#include <set>

#include "tests/vision/map_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

std::set<Bone> without_direction(const std::vector<Bone>& bones) {
    std::set<Bone> set;
    for (const Bone& bone : bones) set.insert(std::minmax(bone.first, bone.second));
    return set;
}

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

// given: MediaPipe, face_mesh_connections.py, FACEMESH_CONTOURS as it is published.
TEST(Skeletons, OfAFaceMeshAreMediaPipesContours) {
    const std::vector<Bone> published = {
        {61, 146},  {146, 91},  {91, 181},  {181, 84},  {84, 17},   {17, 314},  {314, 405},
        {405, 321}, {321, 375}, {375, 291}, {61, 185},  {185, 40},  {40, 39},   {39, 37},
        {37, 0},    {0, 267},   {267, 269}, {269, 270}, {270, 409}, {409, 291}, {78, 95},
        {95, 88},   {88, 178},  {178, 87},  {87, 14},   {14, 317},  {317, 402}, {402, 318},
        {318, 324}, {324, 308}, {78, 191},  {191, 80},  {80, 81},   {81, 82},   {82, 13},
        {13, 312},  {312, 311}, {311, 310}, {310, 415}, {415, 308}, {263, 249}, {249, 390},
        {390, 373}, {373, 374}, {374, 380}, {380, 381}, {381, 382}, {382, 362}, {263, 466},
        {466, 388}, {388, 387}, {387, 386}, {386, 385}, {385, 384}, {384, 398}, {398, 362},
        {276, 283}, {283, 282}, {282, 295}, {295, 285}, {300, 293}, {293, 334}, {334, 296},
        {296, 336}, {33, 7},    {7, 163},   {163, 144}, {144, 145}, {145, 153}, {153, 154},
        {154, 155}, {155, 133}, {33, 246},  {246, 161}, {161, 160}, {160, 159}, {159, 158},
        {158, 157}, {157, 173}, {173, 133}, {46, 53},   {53, 52},   {52, 65},   {65, 55},
        {70, 63},   {63, 105},  {105, 66},  {66, 107},  {10, 338},  {338, 297}, {297, 332},
        {332, 284}, {284, 251}, {251, 389}, {389, 356}, {356, 454}, {454, 323}, {323, 361},
        {361, 288}, {288, 397}, {397, 365}, {365, 379}, {379, 378}, {378, 400}, {400, 377},
        {377, 152}, {152, 148}, {148, 176}, {176, 149}, {149, 150}, {150, 136}, {136, 172},
        {172, 58},  {58, 132},  {132, 93},  {93, 234},  {234, 127}, {127, 162}, {162, 21},
        {21, 54},   {54, 103},  {103, 67},  {67, 109},  {109, 10}};
    for (const char* name : {"face468", "face478"})
        EXPECT_EQ(without_direction(*parse_skeleton(name)), without_direction(published)) << name;
}

// given: COCO's annotations of people, its keypoints counted from 0.
TEST(Skeletons, OfABodyAreCocosLimbs) {
    const std::vector<Bone> limbs = {
        {15, 13}, {13, 11}, {16, 14}, {14, 12}, {11, 12}, {5, 11}, {6, 12}, {5, 6}, {5, 7}, {6, 8},
        {7, 9},   {8, 10},  {1, 2},   {0, 1},   {0, 2},   {1, 3},  {2, 4},  {3, 5}, {4, 6}};
    EXPECT_EQ(without_direction(*parse_skeleton("coco17")), without_direction(limbs));
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
