// SPDX-License-Identifier: Apache-2.0
// Skeletons of published models by name.
#include <algorithm>
#include <array>
#include <charconv>

#include <vartml/postprocess.h>

#include "lib/vision/head.h"

namespace vartml {

namespace {

// given: COCO keypoint annotations, "skeleton"; nose, eyes, ears, shoulders, elbows, wrists, hips,
// knees, ankles.
constexpr Bone coco17[] = {{15, 13}, {13, 11}, {16, 14}, {14, 12}, {11, 12}, {5, 11}, {6, 12},
                           {5, 6},   {5, 7},   {6, 8},   {7, 9},   {8, 10},  {1, 2},  {0, 1},
                           {0, 2},   {1, 3},   {2, 4},   {3, 5},   {4, 6}};

// given: OpenPose, the COCO model; nose, neck, right arm, left arm, right leg, left leg, eyes,
// ears.
constexpr Bone openpose18[] = {{1, 2}, {1, 5},  {2, 3},   {3, 4},  {5, 6},   {6, 7},
                               {1, 8}, {8, 9},  {9, 10},  {1, 11}, {11, 12}, {12, 13},
                               {1, 0}, {0, 14}, {14, 16}, {0, 15}, {15, 17}};

// given: MediaPipe hands; wrist, then each finger from its root.
constexpr Bone hand21[] = {{0, 1},   {1, 2},   {2, 3},   {3, 4},   {0, 5},   {5, 6},   {6, 7},
                           {7, 8},   {5, 9},   {9, 10},  {10, 11}, {11, 12}, {9, 13},  {13, 14},
                           {14, 15}, {15, 16}, {13, 17}, {0, 17},  {17, 18}, {18, 19}, {19, 20}};

// given: MediaPipe pose.
constexpr Bone blazepose33[] = {
    {0, 1},   {1, 2},   {2, 3},   {3, 7},   {0, 4},   {4, 5},   {5, 6},   {6, 8},   {9, 10},
    {11, 12}, {11, 13}, {13, 15}, {15, 17}, {15, 19}, {15, 21}, {17, 19}, {12, 14}, {14, 16},
    {16, 18}, {16, 20}, {16, 22}, {18, 20}, {11, 23}, {12, 24}, {23, 24}, {23, 25}, {24, 26},
    {25, 27}, {26, 28}, {27, 29}, {28, 30}, {29, 31}, {30, 32}, {27, 31}, {28, 32}};

// Points that follow each other; with `closed` the last is joined to the first.
struct Line {
    unsigned first, last;
    bool closed;
};
// given: iBUG 300-W; jaw, brows, bridge and base of the nose, eyes, lips outside and inside.
constexpr Line face68_lines[] = {{0, 16, false},  {17, 21, false}, {22, 26, false},
                                 {27, 30, false}, {31, 35, false}, {36, 41, true},
                                 {42, 47, true},  {48, 59, true},  {60, 67, true}};
constexpr auto face68 = [] {
    std::array<Bone, 63> bones{};
    size_t count = 0;
    for (const Line& line : face68_lines) {
        for (unsigned point = line.first; point < line.last; ++point)
            bones[count++] = {point, point + 1};
        if (line.closed) bones[count++] = {line.last, line.first};
    }
    return bones;
}();

// given: MediaPipe face mesh, contours: oval, lips, eyes, brows; each a line through points.
constexpr std::array mesh_lines = std::to_array<std::array<uint16_t, 38>>({
    {10,  338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377, 152,
     148, 176, 149, 150, 136, 172, 58,  132, 93,  234, 127, 162, 21,  54,  103, 67,  109, 10},
    {61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185, 61},
    {78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308, 415, 310, 311, 312, 13, 82, 81, 80, 191, 78},
    {263, 249, 390, 373, 374, 380, 381, 382, 362, 398, 384, 385, 386, 387, 388, 466, 263},
    {33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246, 33},
    {276, 283, 282, 295, 285},
    {300, 293, 334, 296, 336},
    {46, 53, 52, 65, 55},
    {70, 63, 105, 66, 107},
});
// Lines end where nothing follows but zeros; point 0 itself is never the last of one.
constexpr size_t length_of(const std::array<uint16_t, 38>& line) {
    size_t length = line.size();
    while (length && line[length - 1] == 0) --length;
    return length;
}
constexpr size_t mesh_bones = [] {
    size_t count = 0;
    for (const auto& line : mesh_lines) count += length_of(line) - 1;
    return count;
}();
constexpr auto face_mesh = [] {
    std::array<Bone, mesh_bones> bones{};
    size_t count = 0;
    for (const auto& line : mesh_lines) {
        for (size_t i = 0; i + 1 < length_of(line); ++i) bones[count++] = {line[i], line[i + 1]};
    }
    return bones;
}();

constexpr Skeleton table[] = {
    {"coco17", 17, coco17},           {"openpose18", 18, openpose18}, {"hand21", 21, hand21},
    {"blazepose33", 33, blazepose33}, {"face68", 68, face68},         {"face468", 468, face_mesh},
    {"face478", 478, face_mesh},
};

bool take_number(std::string_view& text, uint32_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
}

}  // namespace

std::span<const Skeleton> skeletons() {
    return table;
}

std::optional<std::vector<Bone>> parse_skeleton(std::string_view text) {
    for (const Skeleton& skeleton : table) {
        if (text == skeleton.name) return std::vector(skeleton.bones.begin(), skeleton.bones.end());
    }
    std::vector<Bone> bones;
    if (text == "none") return bones;
    while (!text.empty()) {
        Bone bone;
        if (!take_number(text, bone.first) || !text.starts_with('-')) return std::nullopt;
        text.remove_prefix(1);
        if (!take_number(text, bone.second)) return std::nullopt;
        bones.push_back(bone);
        if (text.empty()) break;
        if (!text.starts_with(';')) return std::nullopt;
        text.remove_prefix(1);
    }
    return bones;
}

namespace vision {

unsigned points_named(std::string_view skeleton) {
    for (const Skeleton& named : table) {
        if (skeleton == named.name) return named.points;
    }
    unsigned most = 0;
    for (const Bone& bone : parse_skeleton(skeleton).value_or(std::vector<Bone>()))
        most = std::max({most, bone.first + 1, bone.second + 1});
    return most;
}

std::string_view skeleton_of(unsigned points) {
    for (const Skeleton& skeleton : table) {
        if (skeleton.points == points) return skeleton.name;
    }
    return {};
}

}  // namespace vision

}  // namespace vartml
