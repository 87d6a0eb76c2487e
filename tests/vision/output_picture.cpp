// SPDX-License-Identifier: Apache-2.0
// Outputs that are pictures, against loops over the same values.
#include <vartml/output_picture.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/vision/map_tensors.h"

namespace {

using namespace vartml;
using namespace vartml::test;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TensorInfo picture_input(uint32_t channels, uint32_t height = 16, uint32_t width = 24) {
    TensorInfo info;
    info.name = "in";
    info.cpu = make_view(DataType::float32, Layout::NCHW, {1, channels, height, width});
    return info;
}

// A sidecar of an input "in" fed 0 to 1, and an output "out".
ModelInfo sidecar(const std::string& lines_of_output = "", const std::string& general = "") {
    auto info = parse_modelinfo("[modelinfo]\n" + general +
                                    "[in]\ndir=input\nx-vartml-scale=0.00392156863\n[out]\n"
                                    "dir=output\n" +
                                    lines_of_output,
                                "");
    EXPECT_TRUE(info) << (info ? "" : info.error().message);
    return info ? *info : ModelInfo();
}

struct Opened {
    std::optional<OutputPicture> picture;
    DecodeFault fault;
    std::string error;
};
Opened open(const std::vector<StoredTensor>& tensors, const ModelInfo& info,
            const OutputPictureOptions& options = {}, uint32_t input_channels = 3) {
    std::vector<TensorInfo> infos;
    for (const StoredTensor& tensor : tensors) infos.push_back(tensor.info);
    Opened opened;
    const TensorInfo input = picture_input(input_channels);
    auto made = OutputPicture::create(info, infos, &input, 24, 16, options, &opened.fault);
    if (made)
        opened.picture.emplace(std::move(*made));
    else
        opened.error = made.error().message;
    return opened;
}

std::vector<uint8_t> bytes_of(OutputPicture& picture, const std::vector<StoredTensor>& tensors,
                              PictureCut cut = {}, size_t channels = 0) {
    std::vector<OutputTensor> outputs;
    for (const StoredTensor& tensor : tensors) outputs.push_back(tensor.output());
    const auto done = picture.read(outputs);
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    if (!cut.width) cut = {0, 0, picture.width(), picture.height()};
    if (!channels) channels = picture.kind() == PictureKind::color ? 3 : 1;
    std::vector<uint8_t> bytes(cut.width * cut.height * channels);
    picture.write(cut, bytes.data(), cut.width * channels);
    return bytes;
}

uint8_t byte(float value, float black, float white) {
    if (!std::isfinite(value)) return 0;
    const float scaled = (value - black) * (255 / (white - black));
    return static_cast<uint8_t>(std::nearbyint(std::clamp(scaled, 0.f, 255.f)));
}

TEST(OutputPicture, OfColoursIsThatOfTheValuesInEveryView) {
    for (const MapView view : map_views) {
        RefMap map = random_map(3, 32, 48, 5, -0.2f, 1.2f);
        const std::vector<StoredTensor> tensors = {stored_map(map, "out", view)};
        auto opened = open(tensors, sidecar());
        ASSERT_TRUE(opened.picture) << opened.error;
        EXPECT_EQ(opened.picture->kind(), PictureKind::color);
        EXPECT_EQ(opened.picture->range(), "0 to 1");
        EXPECT_EQ(opened.picture->width(), 48u);
        const auto bytes = bytes_of(*opened.picture, tensors);
        for (size_t y = 0; y < 32; ++y)
            for (size_t x = 0; x < 48; ++x)
                for (size_t c = 0; c < 3; ++c)
                    ASSERT_NEAR(bytes[(y * 48 + x) * 3 + c], byte(map.at(c, y, x), 0, 1), 1);
    }
}

TEST(OutputPicture, OfAPartIsCutOut) {
    RefMap map = random_map(3, 16, 24, 3, 0, 1);
    const std::vector<StoredTensor> tensors = {stored_map(map, "out", MapView::nchw)};
    auto opened = open(tensors, sidecar());
    ASSERT_TRUE(opened.picture) << opened.error;
    const auto all = bytes_of(*opened.picture, tensors);
    const auto part = bytes_of(*opened.picture, tensors, {5, 3, 10, 8});
    for (size_t y = 0; y < 8; ++y)
        for (size_t i = 0; i < 30; ++i)
            ASSERT_EQ(part[y * 30 + i], all[(y + 3) * 72 + 15 + i]) << y << " " << i;
}

// What a model of one channel is, and what black and white are.
struct RangeCase {
    const char* name;
    size_t channels;
    uint32_t input_channels;
    std::string output, general;
    OutputPictureOptions options;
    PictureKind kind;
    std::string range;
};

TEST(OutputPicture, HasTheKindAndTheRangeThatSomebodySays) {
    const RangeCase cases[] = {
        {"as the input is fed", 3, 3, "", "", {}, PictureKind::color, "0 to 1"},
        {"brightness of a grey model", 1, 1, "", "", {}, PictureKind::luma, "0 to 1"},
        {"a measure", 1, 3, "", "", {}, PictureKind::map, "each frame's own"},
        {"a sigmoid", 1, 3, "x-vartml-ends-in=sigmoid\n", "", {}, PictureKind::map, "0 to 1"},
        {"logits named so",
         1,
         3,
         "",
         "x-vartml-activation=sigmoid\n",
         {},
         PictureKind::map,
         "0 to 1"},
        {"background and object", 2, 3, "", "", {}, PictureKind::map, "0 to 1"},
        {"a mask by the sidecar",
         1,
         3,
         "x-vartml-picture=alpha\n",
         "",
         {},
         PictureKind::alpha,
         "0 to 1"},
        {"a range by the sidecar", 3, 3, "ranges=-1,1\n", "", {}, PictureKind::color, "-1 to 1"},
        {"a range by the user wins",
         3,
         3,
         "ranges=-1,1\n",
         "",
         {.range = "0,255"},
         PictureKind::color,
         "0 to 255"},
        {"a kind by the user wins",
         1,
         3,
         "x-vartml-picture=map\n",
         "",
         {.kind = PictureKind::luma},
         PictureKind::luma,
         "0 to 1"},
        {"the frame's own",
         3,
         3,
         "",
         "",
         {.range = "frame"},
         PictureKind::color,
         "each frame's own"},
        {"turned round", 1, 3, "", "", {.range = "10,2"}, PictureKind::map, "10 to 2"},
    };
    for (const RangeCase& c : cases) {
        RefMap map = random_map(c.channels, 16, 24, 3, 0, 1);
        auto opened = open({stored_map(map, "out", MapView::nchw)}, sidecar(c.output, c.general),
                           c.options, c.input_channels);
        ASSERT_TRUE(opened.picture) << c.name << ": " << opened.error;
        EXPECT_EQ(opened.picture->kind(), c.kind) << c.name;
        EXPECT_EQ(opened.picture->range(), c.range) << c.name;
    }
}

TEST(OutputPicture, UndoesMeanAndScaleOfTheInputByChannel) {
    auto info = parse_modelinfo(
        "[in]\ndir=input\nx-vartml-mean=124,116,104\nx-vartml-scale=0.0171,0.0175,0.0174\n", "");
    ASSERT_TRUE(info);
    for (const MapView view : {MapView::nchw, MapView::nhwc}) {
        RefMap map(3, 16, 24);
        const float mean[] = {124, 116, 104}, scale[] = {0.0171f, 0.0175f, 0.0174f};
        for (size_t c = 0; c < 3; ++c)
            for (size_t i = 0; i < 16 * 24; ++i)
                map.data[c * 16 * 24 + i] = (static_cast<float>(i % 256) - mean[c]) * scale[c];
        const std::vector<StoredTensor> tensors = {stored_map(map, "out", view)};
        auto opened = open(tensors, *info);
        ASSERT_TRUE(opened.picture) << opened.error;
        const auto bytes = bytes_of(*opened.picture, tensors);
        for (size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], i / 3 % 256) << i;
    }
}

// A model that is fed blue first and gives red first: each colour has its own mean and scale.
TEST(OutputPicture, UndoesThemInItsOwnOrderOfChannels) {
    const float red = 124, green = 116, blue = 104, scale[] = {0.01f, 0.02f, 0.03f};  // r, g, b
    for (const bool is_rgb : {true, false}) {
        auto info =
            parse_modelinfo(std::string("[in]\ndir=input\nx-vartml-mean=104,116,124\n"
                                        "x-vartml-scale=0.03,0.02,0.01\nx-vartml-channels=bgr\n"
                                        "[out]\ndir=output\nx-vartml-picture=") +
                                (is_rgb ? "rgb\n" : "bgr\n"),
                            "");
        ASSERT_TRUE(info) << info.error().message;
        RefMap map(3, 16, 24);
        const float pixel[] = {(200 - red) * scale[0], (100 - green) * scale[1],
                               (50 - blue) * scale[2]};
        for (size_t c = 0; c < 3; ++c)
            for (size_t i = 0; i < 16 * 24; ++i)
                map.data[c * 16 * 24 + i] = pixel[is_rgb ? c : 2 - c];
        const std::vector<StoredTensor> tensors = {stored_map(map, "out", MapView::nchw)};
        auto opened = open(tensors, *info);
        ASSERT_TRUE(opened.picture) << opened.error;
        EXPECT_EQ(opened.picture->bgr(), !is_rgb);
        const auto bytes = bytes_of(*opened.picture, tensors);
        EXPECT_EQ(
            (std::vector<uint8_t>(bytes.begin(), bytes.begin() + 3)),
            (is_rgb ? std::vector<uint8_t>{200, 100, 50} : std::vector<uint8_t>{50, 100, 200}));
    }
}

TEST(OutputPicture, HasARangeForEachChannelWhereTheSidecarSaysSo) {
    RefMap map(3, 16, 24);
    for (float& v : map.data) v = 1;
    const std::vector<StoredTensor> tensors = {stored_map(map, "out", MapView::nchw)};
    auto opened = open(tensors, sidecar("ranges=0,1;0,2;-1,3\n"));
    ASSERT_TRUE(opened.picture) << opened.error;
    const auto bytes = bytes_of(*opened.picture, tensors);
    EXPECT_EQ((std::vector<uint8_t>(bytes.begin(), bytes.begin() + 3)),
              (std::vector<uint8_t>{255, 128, 128}));
}

TEST(OutputPicture, OfAMeasureGoesFromTheLeastToTheGreatestOfTheFrame) {
    RefMap map = random_map(1, 16, 24, 9, 100, 900);
    map.at(0, 0, 0) = 1000, map.at(0, 1, 1) = 50, map.at(0, 2, 2) = nan;
    const std::vector<StoredTensor> tensors = {stored_map(map, "out", MapView::nchw)};
    auto opened = open(tensors, sidecar());
    ASSERT_TRUE(opened.picture) << opened.error;
    const auto bytes = bytes_of(*opened.picture, tensors);
    for (size_t i = 0; i < bytes.size(); ++i)
        ASSERT_NEAR(bytes[i], byte(map.data[i], 50, 1000), 1) << i;
    EXPECT_EQ(bytes[0], 255);
    EXPECT_EQ(bytes[25], 0);
}

TEST(OutputPicture, OfEqualValuesIsBlack) {
    RefMap map(1, 16, 24);
    for (float& v : map.data) v = 7;
    for (const float value : {7.f, nan}) {
        for (float& v : map.data) v = value;
        const std::vector<StoredTensor> tensors = {stored_map(map, "out", MapView::nchw)};
        auto opened = open(tensors, sidecar());
        ASSERT_TRUE(opened.picture) << opened.error;
        EXPECT_EQ(bytes_of(*opened.picture, tensors), std::vector<uint8_t>(16 * 24, 0));
    }
}

TEST(OutputPicture, CountsWhatIsNotFinite) {
    RefMap map = random_map(3, 16, 24, 1, 0, 1);
    map.at(0, 3, 3) = nan, map.at(2, 4, 4) = std::numeric_limits<float>::infinity();
    const std::vector<StoredTensor> tensors = {stored_map(map, "out", MapView::nchw)};
    auto opened = open(tensors, sidecar());
    ASSERT_TRUE(opened.picture) << opened.error;
    const OutputTensor output = tensors[0].output();
    ASSERT_TRUE(opened.picture->read({&output, 1}));
    std::vector<uint8_t> bytes(16 * 24 * 3);
    EXPECT_EQ(opened.picture->write({0, 0, 24, 16}, bytes.data(), 72), 2u);
    EXPECT_EQ(bytes[(3 * 24 + 3) * 3], 0);
}

// Two channels as scores and as logits, in both orders of the axes: always the object's share.
TEST(OutputPicture, OfBackgroundAndObjectIsTheShareOfTheObject) {
    for (const MapView view : {MapView::nchw, MapView::nhwc}) {
        for (const bool logits : {false, true}) {
            RefMap map(2, 16, 24);
            for (size_t i = 0; i < 16 * 24; ++i) {
                const float p = 0.01f + 0.98f * static_cast<float>(i) / (16 * 24);
                map.data[i] = logits ? 3 : 1 - p;
                map.data[16 * 24 + i] = logits ? 3 + std::log(p / (1 - p)) : p;
            }
            const std::vector<StoredTensor> tensors = {stored_map(map, "out", view)};
            auto opened = open(tensors, sidecar(), {.kind = PictureKind::alpha});
            ASSERT_TRUE(opened.picture) << opened.error;
            const auto bytes = bytes_of(*opened.picture, tensors);
            for (size_t i = 0; i < bytes.size(); ++i) {
                const float p = 0.01f + 0.98f * static_cast<float>(i) / (16 * 24);
                ASSERT_NEAR(bytes[i], 255 * p, 1) << i;
            }
        }
    }
}

TEST(OutputPicture, OfLimitedRangeLeavesRoomAtBothEnds) {
    RefMap map(1, 16, 24);
    map.data[0] = -1, map.data[1] = 0, map.data[2] = 0.6f, map.data[3] = 1, map.data[4] = 2;
    const std::vector<StoredTensor> tensors = {stored_map(map, "out", MapView::nchw)};
    auto opened = open(tensors, sidecar(), {.kind = PictureKind::luma}, 1);
    ASSERT_TRUE(opened.picture) << opened.error;
    const OutputTensor output = tensors[0].output();
    ASSERT_TRUE(opened.picture->read({&output, 1}));
    std::vector<uint8_t> bytes(16 * 24);
    opened.picture->write({0, 0, 24, 16}, bytes.data(), 24, true);
    EXPECT_EQ((std::vector<uint8_t>(bytes.begin(), bytes.begin() + 5)),
              (std::vector<uint8_t>{16, 16, 147, 235, 235}));
}

TEST(OutputPicture, MayHaveNoBatchAndNoChannels) {
    for (const std::vector<uint32_t>& shape : std::vector<std::vector<uint32_t>>{
             {16, 24}, {1, 16, 24}, {1, 1, 16, 24}, {1, 16, 24, 1}}) {
        StoredTensor tensor;
        tensor.info.name = "out";
        std::vector<uint32_t> order(shape.size());
        for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
        tensor.info.cpu = make_view(DataType::float32, Layout::GENERIC, shape, order);
        tensor.bytes.resize(16 * 24 * 4);
        auto opened = open({tensor}, sidecar());
        ASSERT_TRUE(opened.picture) << opened.error;
        EXPECT_EQ(opened.picture->width(), 24u);
        EXPECT_EQ(opened.picture->height(), 16u);
    }
}

TEST(OutputPicture, OfBytesNeedsNoRange) {
    StoredTensor tensor;
    tensor.info.name = "out";
    tensor.info.cpu = make_view(DataType::uint8, Layout::NHWC, {1, 16, 24, 3});
    for (size_t i = 0; i < 16 * 24 * 3; ++i) tensor.bytes.push_back(static_cast<uint8_t>(i * 7));
    auto opened = open({tensor}, sidecar());
    ASSERT_TRUE(opened.picture) << opened.error;
    EXPECT_EQ(bytes_of(*opened.picture, {tensor}), tensor.bytes);
}

struct Refusal {
    const char* name;
    std::vector<RefMap> maps;
    OutputPictureOptions options;
    const char* id;
    std::vector<const char*> words;
};

TEST(OutputPicture, IsRefusedInOneSentence) {
    const Refusal cases[] = {
        {"a map of classes", {RefMap(19, 16, 24)}, {}, "pic-output", {"[1,19,16,24]", "output"}},
        {"a vector", {RefMap(1, 1, 5)}, {}, "pic-output", {"no output has the shape"}},
        {"two pictures",
         {RefMap(3, 16, 24), RefMap(1, 16, 24)},
         {},
         "pic-output",
         {"several", "x-vartml-picture"}},
        {"another name",
         {RefMap(3, 16, 24)},
         {.output = "depth"},
         "pic-output",
         {"'depth'", "out"}},
        {"colours of one channel",
         {RefMap(1, 16, 24)},
         {.kind = PictureKind::color},
         "pic-channels",
         {"1 channels", "color has 3"}},
        {"brightness of three",
         {RefMap(3, 16, 24)},
         {.kind = PictureKind::luma},
         "pic-channels",
         {"3 channels", "luma has 1"}},
        {"a range of one number",
         {RefMap(3, 16, 24)},
         {.range = "3"},
         "pic-range",
         {"'3'", "MIN,MAX"}},
        {"a range of nothing", {RefMap(3, 16, 24)}, {.range = "2,2"}, "pic-range", {"MIN,MAX"}},
    };
    for (const Refusal& c : cases) {
        std::vector<StoredTensor> tensors;
        for (RefMap map : c.maps)
            tensors.push_back(stored_map(map, tensors.empty() ? "out" : "other", MapView::nchw));
        auto opened = open(tensors, sidecar(), c.options);
        ASSERT_FALSE(opened.picture) << c.name;
        EXPECT_EQ(opened.fault.id, c.id) << c.name;
        for (const char* word : c.words)
            EXPECT_NE(opened.error.find(word), std::string::npos) << c.name << ": " << opened.error;
    }
}

TEST(OutputPicture, OfSeveralIsTheOneThatIsNamed) {
    RefMap color = random_map(3, 16, 24, 1, 0, 1), mask = random_map(1, 16, 24, 2, 0, 1);
    const std::vector<StoredTensor> tensors = {stored_map(color, "fgr", MapView::nchw),
                                               stored_map(mask, "pha", MapView::nchw)};
    auto named = open(tensors, sidecar(), {.output = "pha"});
    ASSERT_TRUE(named.picture) << named.error;
    EXPECT_EQ(named.picture->output(), "pha");
    auto info = parse_modelinfo("[pha]\ndir=output\nid=mask\nx-vartml-picture=alpha\n", "");
    ASSERT_TRUE(info);
    auto said = open(tensors, *info);
    ASSERT_TRUE(said.picture) << said.error;
    EXPECT_EQ(said.picture->kind(), PictureKind::alpha);
    auto by_id = open(tensors, *info, {.output = "mask"});
    ASSERT_TRUE(by_id.picture) << by_id.error;
}

// Thirty frames of a model that gives 0 to 1 where 0 to 255 is expected are no night.
TEST(OutputPicture, IsDoubtedWhereManyFramesLieOutsideOfTheRange) {
    const struct {
        float value;
        bool doubted;
    } cases[] = {{0.9f, true}, {120, false}, {-4000, true}, {100000, true}};
    for (const auto& c : cases) {
        RefMap map(3, 16, 24);
        for (float& v : map.data) v = c.value;
        const std::vector<StoredTensor> tensors = {stored_map(map, "out", MapView::nchw)};
        auto opened = open(tensors, sidecar(), {.range = "0,255"});
        ASSERT_TRUE(opened.picture) << opened.error;
        for (int frame = 0; frame < 30; ++frame) {
            EXPECT_EQ(opened.picture->doubt(), "");
            bytes_of(*opened.picture, tensors);
        }
        EXPECT_EQ(!opened.picture->doubt().empty(), c.doubted) << opened.picture->doubt();
    }
}

TEST(OutputPicture, OfOtherTensorsIsRefused) {
    RefMap map(3, 16, 24), other(3, 8, 24);
    auto opened = open({stored_map(map, "out", MapView::nchw)}, sidecar());
    ASSERT_TRUE(opened.picture) << opened.error;
    const StoredTensor wrong = stored_map(other, "out", MapView::nchw);
    const OutputTensor output = wrong.output();
    EXPECT_FALSE(opened.picture->read({&output, 1}));
    EXPECT_FALSE(opened.picture->read({}));
}

// given: three colours each of the published tables of 256.
TEST(Colors, AreThoseOfThePublishedMaps) {
    const struct {
        ColorMap map;
        int index;
        int r, g, b;
    } cases[] = {{ColorMap::gray, 100, 100, 100, 100},  {ColorMap::turbo, 0, 48, 18, 59},
                 {ColorMap::turbo, 64, 40, 188, 235},   {ColorMap::turbo, 128, 164, 252, 60},
                 {ColorMap::turbo, 255, 122, 4, 3},     {ColorMap::inferno, 64, 87, 16, 110},
                 {ColorMap::inferno, 128, 188, 55, 84}, {ColorMap::inferno, 200, 251, 157, 7},
                 {ColorMap::viridis, 64, 59, 82, 139},  {ColorMap::viridis, 128, 33, 145, 140},
                 {ColorMap::viridis, 200, 112, 207, 87}};
    for (const auto& c : cases) {
        const auto colors = colors_of(c.map);
        const size_t at = 3 * static_cast<size_t>(c.index);
        EXPECT_NEAR(colors[at], c.r, 3) << c.index;
        EXPECT_NEAR(colors[at + 1], c.g, 3) << c.index;
        EXPECT_NEAR(colors[at + 2], c.b, 3) << c.index;
    }
}

TEST(OutputPicture, OfAMeasureIsWrittenInColours) {
    RefMap map(1, 16, 24);
    for (size_t i = 0; i < map.data.size(); ++i) map.data[i] = static_cast<float>(i);
    const std::vector<StoredTensor> tensors = {stored_map(map, "out", MapView::nchw)};
    auto opened = open(tensors, sidecar(), {.range = "0,255"});
    ASSERT_TRUE(opened.picture) << opened.error;
    const OutputTensor output = tensors[0].output();
    ASSERT_TRUE(opened.picture->read({&output, 1}));
    std::vector<uint8_t> pixels(16 * 24 * 3);
    opened.picture->write_mapped({0, 0, 24, 16}, ColorMap::turbo, pixels.data(), 72);
    const auto colors = colors_of(ColorMap::turbo);
    EXPECT_TRUE(std::equal(colors.begin(), colors.end(), pixels.begin()));
    EXPECT_EQ(pixels[3 * 300], colors[3 * 255]);  // beyond the range
}

}  // namespace
