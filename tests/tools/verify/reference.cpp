// SPDX-License-Identifier: Apache-2.0
// The reference against results that are known by hand, and against the code that it judges.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

#include "lib/base/convert.h"
#include "lib/tools/verify/judge.h"
#include "lib/tools/verify/reference.h"
#include "lib/tools/verify/report.h"
#include "lib/vision/suppress.h"

namespace vartml::verify {
namespace {

TensorView nchw(uint32_t channels, uint32_t height, uint32_t width) {
    return make_view(DataType::float32, Layout::NCHW, {1, channels, height, width});
}

TEST(ReferencePreprocess, GivesNumbersThatAreKnown) {
    // Two pixels: red, and black.
    const PictureData p{2, 1, {255, 0, 0, 0, 0, 0}};
    PreprocessOptions o;
    EXPECT_EQ(reference_preprocess(p, nchw(3, 1, 2), o).numbers,
              (std::vector<double>{255, 0, 0, 0, 0, 0}));
    o.channels = ChannelOrder::bgr;
    o.mean = {0, 0, 55};
    o.scale = {1, 1, 0.5f};
    EXPECT_EQ(reference_preprocess(p, nchw(3, 1, 2), o).numbers,
              (std::vector<double>{0, 0, 0, 0, 100, -27.5}));
    // Bilinear with centres at halves: the outer pixels repeat, the inner ones are quarters.
    EXPECT_EQ(reference_preprocess({2, 1, {0, 0, 0, 100, 100, 100}}, nchw(3, 1, 4), {}).numbers[1],
              25);
    // Grey: the luma of BT.601.
    EXPECT_NEAR(reference_preprocess(p, nchw(1, 1, 2), {}).numbers[0], 0.299 * 255, 1e-12);
    // Area: the mean of what is covered.
    o = {.interpolation = Interpolation::area};
    EXPECT_EQ(reference_preprocess(p, nchw(3, 1, 1), o).numbers[0], 127.5);
    // Letterbox: two rows of pad colour above, one below; the frame's corner is there.
    o = {.resize = ResizeMode::letterbox};
    const ReferenceInput boxed = reference_preprocess(p, nchw(3, 4, 2), o);
    EXPECT_EQ(boxed.numbers[0], 114);
    EXPECT_EQ(boxed.numbers[2], 255);
    EXPECT_EQ(boxed.to_frame.f, -1);
}

TEST(ReferencePreprocess, AgreesWithTheKernelsInEveryMode) {
    PictureData p{61, 37, {}};
    for (size_t i = 0; i < size_t{3} * 61 * 37; ++i)
        p.rgb.push_back(static_cast<uint8_t>(i * 2654435761u >> 24));
    const TensorView cpu = nchw(3, 24, 40);
    const TensorView views[] = {cpu, hw_view(cpu, Layout::HCWNC4, DataType::bf16),
                                hw_view(cpu, Layout::HCWNC4, DataType::fp16)};
    const Stages stages = product_stages();
    for (const auto resize : {ResizeMode::stretch, ResizeMode::letterbox,
                              ResizeMode::letterbox_top_left, ResizeMode::crop})
        for (const auto interpolation :
             {Interpolation::bilinear, Interpolation::nearest, Interpolation::area})
            for (const TensorView& view : views) {
                const PreprocessOptions o{.resize = resize,
                                          .interpolation = interpolation,
                                          .channels = ChannelOrder::bgr,
                                          .mean = {10, 20, 30},
                                          .scale = {0.1f, 0.2f, 0.3f},
                                          .crop_fraction = 0.875};
                const auto found = stages.preprocess(p, cpu, view, o);
                ASSERT_TRUE(found) << found.error().message;
                const auto judged =
                    judge_preprocess(*found, reference_preprocess(p, cpu, o), view, cpu, o);
                ASSERT_TRUE(judged) << judged.error().message;
                EXPECT_TRUE(judged->is_good)
                    << static_cast<int>(resize) << ' ' << static_cast<int>(interpolation) << ": "
                    << judged->text;
            }
}

TEST(ReferenceTensor, FindsElementsInEveryLayout) {
    const TensorView cpu = nchw(5, 3, 2);
    std::vector<double> numbers(cpu.size);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i) - 14;
    const TensorData data = tensor_of(DataType::float32, cpu.shape, numbers);
    for (const Layout layout : {Layout::NHWC, Layout::HCWNC4, Layout::HCWNC8, Layout::HCWNC16})
        for (const DataType type : {DataType::float32, DataType::bf16, DataType::int8}) {
            TensorView hw = hw_view(cpu, layout, type);
            if (type == DataType::int8) hw.quantisation = Quantisation{0.5, 3};
            const auto conversion = Conversion::create(cpu, hw);
            ASSERT_TRUE(conversion) << conversion.error().message;
            Buffer bytes(hw.size_bytes);
            conversion->run(data.bytes.data(), bytes.data());
            const auto values = reference_values(hw, cpu, bytes);
            ASSERT_TRUE(values) << values.error().message;
            EXPECT_EQ(numbers_of(*values), numbers) << to_string(layout) << ' ' << to_string(type);
        }
    EXPECT_FALSE(reference_values(cpu, nchw(5, 3, 3), data.bytes));
    const TensorView last = make_view(DataType::float32, Layout::NHWC, {1, 3, 2, 5});
    const auto values = reference_values(nchw(5, 3, 2), last, data.bytes);
    ASSERT_TRUE(values) << values.error().message;
    // Channel, then row, then column in memory; read in rows of columns of channels.
    std::vector<double> expected;
    for (size_t position = 0; position < 6; ++position)
        for (size_t channel = 0; channel < 5; ++channel)
            expected.push_back(numbers[channel * 6 + position]);
    EXPECT_EQ(numbers_of(*values), expected);
}

TEST(ReferenceTensor, RoundsToTheTypeAsked) {
    const std::vector<double> numbers = {-300, -1.5, 0.5, 1.5, 127.6, 70000};
    const auto as = [&](DataType type) { return numbers_of(tensor_of(type, {6}, numbers)); };
    EXPECT_EQ(as(DataType::int8), (std::vector<double>{-128, -2, 0, 2, 127, 127}));
    EXPECT_EQ(as(DataType::uint8), (std::vector<double>{0, 0, 0, 2, 128, 255}));
    EXPECT_EQ(as(DataType::fp16), (std::vector<double>{-300, -1.5, 0.5, 1.5, 127.625, HUGE_VAL}));
    EXPECT_EQ(numbers_of(tensor_of(DataType::fp16, {1}, {0x1p-24}))[0], 0x1p-24);  // the smallest
    EXPECT_EQ(numbers_of(tensor_of(DataType::bf16, {1}, {1 + 0x1p-8}))[0], 1);     // to even
}

TEST(ReferenceTensor, LiesInTheCornerOfItsBound) {
    const TensorData data = tensor_of(DataType::int32, {1, 2}, {5, 6});
    const auto output = [](std::vector<uint32_t> shape, bool data_dependent) {
        TensorInfo info;
        info.cpu = make_view(DataType::int32, Layout::GENERIC, std::move(shape), {0, 1});
        info.data_dependent = data_dependent;
        return info;
    };
    EXPECT_EQ(numbers_of(as_output(data, output({2, 3}, true))),
              (std::vector<double>{5, 6, -1, -1, -1, -1}));
    EXPECT_EQ(numbers_of(as_output(data, output({1, 2}, true))), (std::vector<double>{5, 6}));
    EXPECT_EQ(as_output(data, output({1, 1}, true)).shape, data.shape);  // does not fit: left alone
    EXPECT_EQ(as_output(data, output({2, 3}, false)).shape, data.shape);  // is another tensor
}

TEST(ReferenceTensor, OfFloatsIsBf16WhereTheOutputIs) {
    TensorInfo output;
    output.cpu = make_view(DataType::bf16, Layout::GENERIC, {1, 2}, {0, 1});
    const TensorData floats = tensor_of(DataType::float32, {1, 2}, {0.5, -3});
    const TensorData found = as_output(floats, output);
    EXPECT_EQ(found.type, DataType::bf16);
    EXPECT_EQ(numbers_of(found), numbers_of(floats));
}

// As of models that were exported for a picture instead of a batch.
TEST(DecodePath, ReadsOutputsWithoutABatchAxisAsTheDecoderDoes) {
    // YOLO v8 at 64x64: two classes and 64 + 16 + 4 positions, of which one has a box.
    std::vector<double> numbers(size_t{6} * 84);
    const double box[] = {20, 24, 16, 12, 0.1, 0.9};
    for (size_t row = 0; row < std::size(box); ++row) numbers[row * 84 + 3] = box[row];
    ModelInfo info;
    info.num_classes = 2;
    const Frame frame{64, 64, {}};
    for (const bool batch : {true, false}) {
        TensorInfo output;
        output.name = "out";
        output.cpu = batch ? make_view(DataType::float32, Layout::NHW, {1, 6, 84})
                           : make_view(DataType::float32, Layout::GENERIC, {6, 84}, {0, 1});
        const std::vector<TensorData> values = {
            tensor_of(DataType::float32, output.cpu.shape, numbers)};
        auto path = DecodePath::create(info, {output}, 64, 64, "yolo-v8");
        ASSERT_TRUE(path) << path.error().message;
        const auto wanted = path->reference_candidates(values, frame);
        ASSERT_TRUE(wanted) << wanted.error().message;
        const auto found = path->candidates(cpu_tensors({output}, values), frame);
        ASSERT_TRUE(found) << found.error().message;
        for (const auto* candidates : {&*wanted, &*found}) {
            ASSERT_EQ(candidates->boxes.size(), 1u) << batch;
            EXPECT_EQ(candidates->boxes[0].x0, 12);
            EXPECT_EQ(candidates->boxes[0].class_id, 1);
        }
    }
}

TEST(Effect, CountsWhatIsFoundAgainLostAndNew) {
    const auto at = [](float x, float score, int32_t class_id = 0) {
        return Detection{x, 0, x + 10, 10, score, class_id};
    };
    struct Row {
        std::vector<Detection> found, expected;
        size_t again, missing, added, at_threshold;
        bool is_good;
    };
    const Row rows[] = {
        {{at(0, .9f)}, {at(0, .9f)}, 1, 0, 0, 0, true},
        {{}, {at(0, .9f)}, 0, 1, 0, 0, false},
        {{at(0, .9f)}, {}, 0, 0, 1, 0, false},
        {{at(0, .9f, 1)}, {at(0, .9f)}, 0, 1, 1, 0, false},  // another class
        {{at(8, .9f)}, {at(0, .9f)}, 0, 1, 1, 0, false},     // elsewhere
        {{at(2, .9f)}, {at(0, .9f)}, 1, 0, 0, 0, false},     // IoU 0.67
        {{at(0, .75f)}, {at(0, .9f)}, 1, 0, 0, 0, false},    // score
        {{}, {at(0, .51f)}, 0, 0, 0, 1, true},               // at the threshold
        {{at(0, .51f)}, {}, 0, 0, 0, 1, true},
        {{at(40, .9f), at(0, .9f)}, {at(0, .9f), at(40, .9f)}, 2, 0, 0, 0, true},  // any order
    };
    for (const Row& row : rows) {
        Effect effect;
        Decoded found, expected;
        found.detections = row.found;
        expected.detections = row.expected;
        add_effect(effect, found, expected, 0.5f, "dog.jpg");
        const auto line = &row - rows;
        EXPECT_EQ(effect.found, row.again) << line;
        EXPECT_EQ(effect.missing, row.missing) << line;
        EXPECT_EQ(effect.added, row.added) << line;
        EXPECT_EQ(effect.at_threshold, row.at_threshold) << line;
        EXPECT_EQ(effect.is_good(), row.is_good) << line;
        EXPECT_EQ(effect.sample, row.is_good ? "" : "dog.jpg") << line;
    }
}

TEST(Effect, SaysWhatTheFamilyGives) {
    const auto words = [](const Effect& effect) {
        Report report;
        report.effect = effect;
        return console_text(report);
    };
    Effect none;
    none.decoder = "ctc-text";
    EXPECT_NE(words(none).find("Decoder ctc-text finds nothing on either side."), std::string::npos)
        << words(none);
    vision::PictureDetails found, expected;
    expected.class_maps = {{0, 0, 2, 2, 2, 2, 0, 1}};
    expected.mask_pixels = {0, 1, 2, 2};
    expected.keypoints = {{10, 20}, {30, 40}};
    expected.embedding = {0.6f, 0.8f};
    expected.text = "42";
    found = expected;
    found.mask_pixels[1] = 3;
    found.keypoints[1].x += 0.5f;
    Effect effect;
    add_picture(effect.picture, found, expected);
    for (const char* part :
         {"75 % of the class map's pixels have the same class",
          "the 2 key points are at most 0.5 pixels of the input off",
          "the embedding has a cosine of 1 to the reference's", "the text is the same"})
        EXPECT_NE(words(effect).find(part), std::string::npos) << words(effect);
    found.text.clear();
    add_picture(effect.picture, found, expected);
    EXPECT_NE(words(effect).find("the text differs in 1 of 2 frames"), std::string::npos)
        << words(effect);
}

// A line of text is something to compare.
TEST(Judge, ComparesTexts) {
    vision::Candidates text, other;
    text.picture.text = "42";
    other.picture.text = "43";
    EXPECT_FALSE(judge_candidates(text, text, 0.5f).is_empty);
    EXPECT_TRUE(judge_candidates(text, text, 0.5f).is_good);
    EXPECT_FALSE(judge_candidates(text, other, 0.5f).is_good);
}

// In pixels, unless the last cell of each level has a box that would lie in the first corner.
TEST(ReferenceDecode, TellsUnitsOfThePictureByEachLevel) {
    const std::vector<TensorInfo> outputs = {
        {"out", make_view(DataType::float32, Layout::NHW, {1, 5, 84}), {}, false, {}}};
    ModelInfo info;
    info.num_classes = 1;
    constexpr size_t ends[] = {63, 79, 83};  // of the levels of 64x64: 64, 16 and 4 cells
    for (const size_t odd : ends) {
        std::vector<double> numbers(size_t{5} * 84);
        for (const size_t end : ends)
            for (size_t row = 0; row < 4; ++row)
                numbers[row * 84 + end] = end == odd && row < 2 ? 30 : 0.5;
        numbers[4 * 84 + odd] = 0.9;
        const std::vector<TensorData> values = {
            tensor_of(DataType::float32, outputs[0].cpu.shape, numbers)};
        const auto found =
            plain_candidates("yolo-v8", {info, outputs, 64, 64, nullptr}, values, 0.5F);
        ASSERT_TRUE(found);
        ASSERT_EQ(found->boxes.size(), 1u);
        EXPECT_EQ(found->boxes[0].x0, 29.75F) << odd;
    }
}

TEST(ReferenceDecode, MeansOverlappingBoxesByTheirScores) {
    // Of the first two, 10 pixels apart, the mean lies at 3/4 of the way to the better one; the
    // third is far away, the fourth of another class.
    const std::vector<vision::Candidate> boxes = {{10, 0, 50, 40, 0.9f, 0, 0},
                                                  {20, 0, 60, 40, 0.3f, 0, 1},
                                                  {200, 0, 240, 40, 0.2f, 0, 2},
                                                  {10, 0, 50, 40, 0.1f, 1, 3}};
    const auto means = plain_means(boxes, 0.3);
    ASSERT_EQ(means.size(), 3u);
    EXPECT_FLOAT_EQ(means[0].x0, 12.5f);
    EXPECT_FLOAT_EQ(means[0].x1, 52.5f);
    EXPECT_EQ(means[0].score, 0.9f);
    EXPECT_EQ(means[1].x0, 200);
    EXPECT_EQ(means[2].class_id, 1);
}

// ---- judging

// Those have no formula here: the graph decodes no box.
TEST(ReferenceDecode, LeavesBoxesRelativeToPriorsToTheDecoder) {
    const std::vector<TensorInfo> outputs = {
        {"scores", make_view(DataType::float32, Layout::unknown, {1, 1, 2}), {}, false, {}},
        {"boxes", make_view(DataType::float32, Layout::unknown, {1, 1, 4}), {}, false, {}}};
    const std::vector<TensorData> values = {
        tensor_of(DataType::float32, outputs[0].cpu.shape, {0.1, 0.9}),
        tensor_of(DataType::float32, outputs[1].cpu.shape, {0.1, 0.1, 0.3, 0.4})};
    for (const char* end : {"", "product"}) {
        ModelInfo info;
        info.outputs.resize(1);
        info.outputs[0].name = "boxes";
        info.outputs[0].ends_in = end;
        const auto found =
            plain_candidates("ultraface", {info, outputs, 320, 240, nullptr}, values, 0.5F);
        EXPECT_EQ(found.has_value(), *end == '\0') << end;
    }
}

// Turned boxes share what their polygons do.
TEST(ReferenceDecode, OverlapsTurnedBoxesByTheirPolygons) {
    const Detection square{0, 0, 10, 10};
    Detection turned = square, wide{-5, 2.5F, 15, 7.5F}, upright = wide;
    turned.angle = 0.785398163F;
    upright.angle = 1.570796327F;
    // Two squares of area 100 at 45 degrees share a regular octagon.
    const double both = 100 * 2 * (std::sqrt(2.0) - 1);
    EXPECT_NEAR(plain_iou(square, turned), both / (200 - both), 1e-5);
    EXPECT_NEAR(plain_iou(wide, upright), 25.0 / (200 - 25), 1e-5);
    turned.x0 += 100;
    turned.x1 += 100;
    EXPECT_EQ(plain_iou(square, turned), 0);
}

// However the picture was fitted to the model: what is compared with the decoder's own is right.
TEST(ReferenceDecode, BringsTurnedBoxesToTheFrameAsTheDecoderDoes) {
    std::mt19937 random(3);
    const auto between = [&](float low, float high) {
        return std::uniform_real_distribution<float>(low, high)(random);
    };
    size_t seen = 0;
    for (int i = 0; i < 2000; ++i) {
        const float x = between(-20, 340), y = between(-20, 340);
        vision::Candidate box{x, y, x + between(1, 90), y + between(1, 90), 0.5F, 1, 0};
        box.angle = between(-3.2F, 3.2F);
        const double sx = between(0.5F, 3), sy = i % 2 ? sx : double{between(0.5F, 3)};
        const double mirrored = i % 3 ? 1 : -1;
        const Frame frame{640, 480, {mirrored * sx, 0, between(0, 90), 0, sy, between(-90, 0)}};
        Detection want;
        const bool there = vision::map_turned(box, frame.to_frame, frame.width, frame.height, want);
        const auto got = plain_map(box, frame);
        ASSERT_EQ(got.has_value(), there) << i;
        if (!there) continue;
        ++seen;
        EXPECT_GT(plain_iou(*got, want), 0.999) << i;
        EXPECT_NEAR(std::remainder(got->angle - want.angle, 6.2831853F), 0, 1e-4) << i;
    }
    EXPECT_GT(seen, 500u);
}

TEST(Effect, OfTurnedBoxesIsGoodWhereTheirAnglesAreRight) {
    // Three 64x64 boxes: x, y, w, h, the score, the angle; two side by side that do not overlap.
    std::vector<double> numbers(size_t{6} * 84);
    const double boxes[][6] = {{20, 30, 40, 8, 0.9, 1.5707963},
                               {30, 30, 40, 8, 0.8, 1.5707963},
                               {45, 20, 20, 10, 0.7, 0.3}};
    for (size_t b = 0; b < std::size(boxes); ++b)
        for (size_t row = 0; row < 6; ++row) numbers[row * 84 + b * 9] = boxes[b][row];
    ModelInfo info;
    info.num_classes = 1;
    TensorInfo output;
    output.name = "out";
    output.cpu = make_view(DataType::float32, Layout::NHW, {1, 6, 84});
    const Frame frame{64, 64, {}};
    const auto effect_of = [&](double turn) {
        std::vector<double> changed = numbers;
        for (size_t b = 0; b < std::size(boxes); ++b) changed[5 * 84 + b * 9] += turn;
        const std::vector<TensorData> expected = {
            tensor_of(DataType::float32, output.cpu.shape, numbers)};
        const std::vector<TensorData> found = {
            tensor_of(DataType::float32, output.cpu.shape, changed)};
        auto path = DecodePath::create(info, {output}, 64, 64, "yolo-v8-obb");
        if (!path) throw std::runtime_error(path.error().message);
        const auto decoded = path->decode(cpu_tensors({output}, found), frame);
        const auto candidates = path->reference_candidates(expected, frame);
        if (!decoded || !candidates) throw std::runtime_error("is not decoded");
        const auto own = path->candidates(cpu_tensors({output}, found), frame);
        EXPECT_EQ(judge_candidates(*own, *candidates, 0.5F).is_good, turn == 0);
        EXPECT_EQ(judge_selection(*decoded, *candidates, *path, frame).is_good, turn == 0);
        Effect effect;
        add_effect(effect, *decoded, path->reference_select(*candidates, frame), 0.5F, "ships.jpg");
        return effect;
    };
    EXPECT_TRUE(effect_of(0).is_good());
    EXPECT_EQ(effect_of(0).found, 3u);
    EXPECT_FALSE(effect_of(0.5).is_good());
}

TEST(Judge, SaysThatNothingWasComparedWhereThereIsNoCandidate) {
    const Judgement nothing = judge_candidates({}, {}, 0.5f);
    EXPECT_TRUE(nothing.is_empty);
    EXPECT_EQ(nothing.text, "no candidate to compare");
    vision::Candidates one;
    one.boxes.push_back({0, 0, 1, 1, 0.9f, 0, 0});
    EXPECT_FALSE(judge_candidates({}, one, 0.5f).is_good);
    EXPECT_FALSE(judge_candidates({}, one, 0.5f).is_empty);

    Report report;
    Finding& finding = report.findings.emplace_back();
    finding.stage = Stage::decode;
    finding.text = nothing.text;
    finding.is_empty = true;
    const std::string text = console_text(report);
    EXPECT_NE(text.find("Decode and NMS are not checked"), std::string::npos) << text;
    EXPECT_EQ(text.find("good"), std::string::npos) << text;
    EXPECT_NE(json_text(report).find("\"good\": null"), std::string::npos);
}

}  // namespace
}  // namespace vartml::verify
