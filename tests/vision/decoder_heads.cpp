// SPDX-License-Identifier: Apache-2.0
// Each family against plain loops, in every view of its tensors.
#include <gtest/gtest.h>

#include "tests/vision/head_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr Affine identity;
constexpr uint32_t width = 320, height = 256;
constexpr size_t cells = 40 * 32 + 20 * 16 + 10 * 8;  // of strides 8, 16, 32

Decoded decode(const StoredTensor& tensor, const DecodeOptions& options,
               const ModelInfo& info = {}) {
    auto decoder = Decoder::create(info, {&tensor.info, 1}, width, height, options);
    EXPECT_TRUE(decoder) << (decoder ? "" : decoder.error().message);
    Decoded decoded;
    if (!decoder) return decoded;
    const OutputTensor output = tensor.output();
    const auto done = decoder->decode({&output, 1}, identity, width, height, decoded);
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return decoded;
}

// What is left of a box on the frame.
std::vector<RefBox> clipped(std::vector<RefBox> boxes) {
    std::erase_if(boxes, [](RefBox& box) {
        box.x0 = std::clamp<double>(box.x0, 0, width),
        box.x1 = std::clamp<double>(box.x1, 0, width);
        box.y0 = std::clamp<double>(box.y0, 0, height),
        box.y1 = std::clamp<double>(box.y1, 0, height);
        return box.x0 >= box.x1 || box.y0 >= box.y1;
    });
    return boxes;
}

void expect_equal(const std::vector<Detection>& found, const std::vector<RefBox>& want) {
    ASSERT_EQ(found.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ(found[i].class_id, want[i].class_id) << i;
        EXPECT_NEAR(found[i].score, want[i].score, 1e-6) << i;
        const RefBox box{found[i].x0, found[i].y0, found[i].x1, found[i].y1, 0, 0};
        EXPECT_GE(ref_iou(box, want[i]), 0.9999) << i;
    }
}

bool same_floats(const std::vector<Detection>& a, const std::vector<Detection>& b) {
    return std::ranges::equal(a, b, [](const Detection& x, const Detection& y) {
        return x.x0 == y.x0 && x.y0 == y.y0 && x.x1 == y.x1 && x.y1 == y.y1 && x.score == y.score &&
               x.class_id == y.class_id;
    });
}

float offset_value(size_t attribute, size_t,
                   std::mt19937& random) {  // raw YOLOX: cell offset, log of size
    std::uniform_real_distribution<float> offset(-1, 2), size(-0.5, 2);
    return attribute < 2 ? offset(random) : size(random);
}

struct HeadCase {
    const char* name;
    const char* decoder;
    size_t positions, attributes;
    bool attributes_first;
    size_t first_score;
};
const HeadCase head_cases[] = {
    {"YoloxCoco", "yolox", cells, 85, false, 5},
    {"YoloxOneClass", "yolox", cells, 6, false, 5},
    {"YoloxTransposed", "yolox", cells, 85, true, 5},
    {"YoloV5Coco", "yolo-v5", 3 * cells, 85, false, 5},
    {"YoloV5Transposed", "yolo-v5", 3 * cells, 12, true, 5},
    {"YoloV8Coco", "yolo-v8", cells, 84, true, 4},
    {"YoloV8OneClass", "yolo-v8", cells, 5, true, 4},
    {"YoloV8Transposed", "yolo-v8", cells, 84, false, 4},
};
class DenseHeads : public testing::TestWithParam<HeadCase> {
protected:
    RefTensor make(unsigned seed) const {
        const HeadCase& c = GetParam();
        const bool raw = std::string(c.decoder) == "yolox";
        return random_head(c.positions, c.attributes, c.attributes_first, c.first_score, seed,
                           raw ? offset_value : centred_value);
    }
    std::vector<RefBox> reference(const RefTensor& t, double score, double iou,
                                  bool per_class) const {
        const std::string decoder = GetParam().decoder;
        const auto boxes = decoder == "yolox" ? ref_yolox(t, width, height, score)
                                              : ref_yolo(t, decoder == "yolo-v5", score);
        auto kept = clipped(ref_nms(boxes, iou, per_class, boxes.size()));
        kept.resize(std::min<size_t>(kept.size(), 100));
        return kept;
    }
};

TEST_P(DenseHeads, DecodeAsTheReference) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
        const RefTensor t = make(seed);
        const StoredTensor tensor = stored_cpu(t, "out");
        DecodeOptions options{
            .decoder = GetParam().decoder, .score_threshold = 0.25, .iou_threshold = 0.45};
        const Decoded decoded = decode(tensor, options);
        EXPECT_GT(decoded.detections.size(), 3u);
        expect_equal(decoded.detections, reference(t, 0.25, 0.45, true));
        options.nms = Nms::class_agnostic;
        expect_equal(decode(tensor, options).detections, reference(t, 0.25, 0.45, false));
    }
}

TEST_P(DenseHeads, GiveTheSameFloatsFromTheNpusView) {
    struct View {
        DataType type;
        Quantisation quantisation;
    };
    for (const auto& [type, quantisation] :
         {View{DataType::float32, {}}, View{DataType::bf16, {}}, View{DataType::int8, {0.9, -120}},
          View{DataType::uint8, {1.3, 3}}, View{DataType::int16, {0.01, 7}}}) {
        RefTensor t = make(11);
        if (quantisation.scale >
            0.5) {  // 8 bits: scores only survive a coarse scale when they are large
            for (size_t p = 0; p < t.positions; ++p) {
                for (size_t a = 4; a < t.attributes; ++a) {
                    t.data[t.attributes_first ? a * t.positions + p : p * t.attributes + a] *= 2;
                }
            }
        }
        const StoredTensor hw = stored_hw(t, "out", type, quantisation);
        const StoredTensor cpu = stored_cpu(t, "out");  // of the dequantised values
        const DecodeOptions options{.decoder = GetParam().decoder, .score_threshold = 0.3};
        const Decoded a = decode(hw, options), b = decode(cpu, options);
        EXPECT_FALSE(b.detections.empty());
        EXPECT_TRUE(same_floats(a.detections, b.detections)) << to_string(type);
        EXPECT_EQ(a.suppressed, b.suppressed);
    }
}
// Exported without the last Sigmoid, as the sidecar says.
TEST_P(DenseHeads, MakeScoresOfLogits) {
    RefTensor scores = make(7), logits = scores;
    for (size_t p = 0; p < scores.positions; ++p)
        for (size_t a = 4; a < scores.attributes; ++a) {
            const size_t at =
                scores.attributes_first ? a * scores.positions + p : p * scores.attributes + a;
            const double score = std::clamp<double>(scores.data[at], 1e-4, 1 - 1e-4);
            logits.data[at] = static_cast<float>(std::log(score / (1 - score)));
            scores.data[at] = static_cast<float>(1 / (1 + std::exp(-double(logits.data[at]))));
        }
    ModelInfo info;
    info.outputs.resize(1);
    info.outputs[0].name = "out";
    info.outputs[0].ends_in = "product";
    const DecodeOptions options{
        .decoder = GetParam().decoder, .score_threshold = 0.25, .iou_threshold = 0.45};
    const Decoded decoded = decode(stored_cpu(logits, "out"), options, info);
    EXPECT_GT(decoded.detections.size(), 3u);
    expect_equal(decoded.detections, reference(scores, 0.25, 0.45, true));
}
// As exports for other runtimes have them.
TEST_P(DenseHeads, ReadBoxesInUnitsOfThePicture) {
    if (std::string(GetParam().decoder) == "yolox") GTEST_SKIP() << "its boxes are never final";
    const RefTensor pixels = make(5);
    RefTensor units = pixels;
    for (size_t p = 0; p < units.positions; ++p)
        for (size_t a = 0; a < 4; ++a)
            units.data[units.attributes_first ? a * units.positions + p
                                              : p * units.attributes + a] /= a % 2 ? height : width;
    const DecodeOptions options{
        .decoder = GetParam().decoder, .score_threshold = 0.25, .iou_threshold = 0.45};
    expect_equal(decode(stored_cpu(units, "out"), options).detections,
                 reference(pixels, 0.25, 0.45, true));
}
INSTANTIATE_TEST_SUITE_P(Families, DenseHeads, testing::ValuesIn(head_cases),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(YoloEnd2end, DecodesWithoutSuppressing) {
    RefTensor t{{}, 300, 6, false};
    std::mt19937 random(3);
    std::uniform_real_distribution<float> corner(0, 200), side(10, 100);
    for (size_t row = 0; row < t.positions; ++row) {
        const float x = corner(random), y = corner(random);
        const float score = 1 - static_cast<float>(row) / 300;
        for (const float v :
             {x, y, x + side(random), y + side(random), score, static_cast<float>(random() % 80)}) {
            t.data.push_back(v);
        }
    }
    auto want = clipped(ref_end2end(t, 0.25));
    want.resize(std::min<size_t>(want.size(), 100));
    expect_equal(decode(stored_cpu(t, "out"), {}).detections, want);
    const Decoded hw = decode(stored_hw(t, "out", DataType::bf16), {});
    EXPECT_TRUE(same_floats(hw.detections, decode(stored_cpu(t, "out"), {}).detections));
}

TEST(YoloEnd2end, SkipsRowsThatFillTheTensor) {
    RefTensor t{std::vector<float>(50 * 6, 0.f), 50, 6, false};
    const float row[] = {10, 20, 30, 40, 0.9f, 7};
    std::copy(std::begin(row), std::end(row), t.data.begin());
    const Decoded decoded = decode(stored_cpu(t, "out"), {.score_threshold = 0});
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_EQ(decoded.detections[0].class_id, 7);
}

TEST(YoloEnd2end, RefusesAClassThatLabelsDoNotHave) {
    RefTensor t{{10, 20, 30, 40, 0.9f, 2}, 1, 6, false};
    const StoredTensor tensor = stored_cpu(t, "out");
    ModelInfo info;
    info.labels = {"a", "b"};
    auto decoder =
        Decoder::create(info, {&tensor.info, 1}, width, height, {.decoder = "yolo-end2end"});
    ASSERT_TRUE(decoder);
    Decoded decoded;
    const OutputTensor output = tensor.output();
    const auto done = decoder->decode({&output, 1}, identity, width, height, decoded);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("class 2"), std::string::npos) << done.error().message;
}

TEST(UltraFace, DecodesAsTheReference) {
    constexpr size_t positions = 4420;  // of the published 320x240 model
    std::mt19937 random(5);
    std::uniform_real_distribution<float> unit(0, 1), side(0.02f, 0.2f);
    RefTensor scores{{}, positions, 2, false}, corners{{}, positions, 4, false};
    for (size_t p = 0; p < positions; ++p) {
        const float face = unit(random) < 0.02f ? unit(random) : 0.1f;
        const float x = unit(random), y = unit(random);
        scores.data.insert(scores.data.end(), {1 - face, face});
        corners.data.insert(corners.data.end(), {x, y, x + side(random), y + side(random)});
    }
    for (const bool hw : {false, true}) {
        const StoredTensor tensors[] = {
            hw ? stored_hw(corners, "boxes", DataType::bf16) : stored_cpu(corners, "boxes"),
            hw ? stored_hw(scores, "scores", DataType::int8, {1 / 127., 0})
               : stored_cpu(scores, "scores")};
        const TensorInfo infos[] = {tensors[0].info, tensors[1].info};
        auto decoder = Decoder::create({}, infos, 320, 240, {});
        ASSERT_TRUE(decoder) << decoder.error().message;
        EXPECT_EQ(decoder->family(), "ultraface");
        EXPECT_EQ(decoder->reason(), "shapes");
        const OutputTensor outputs[] = {tensors[0].output(), tensors[1].output()};
        Decoded decoded;
        ASSERT_TRUE(decoder->decode(outputs, identity, width, height, decoded));
        const auto want =
            clipped(ref_nms(ref_ultraface(scores, corners, 320, 240, 0.7f), 0.3, true));
        EXPECT_GT(want.size(), 5u);
        expect_equal(decoded.detections, want);
    }
}

// Decodes several outputs.
Decoded decode_all(const std::vector<StoredTensor>& tensors, const ModelInfo& info,
                   std::string_view family, const Affine& map = identity) {
    std::vector<TensorInfo> infos;
    std::vector<OutputTensor> outputs;
    for (const StoredTensor& tensor : tensors) infos.push_back(tensor.info);
    for (const StoredTensor& tensor : tensors) outputs.push_back(tensor.output());
    auto decoder = Decoder::create(info, infos, width, height, {});
    EXPECT_TRUE(decoder) << (decoder ? "" : decoder.error().message);
    Decoded decoded;
    if (!decoder) return decoded;
    EXPECT_EQ(decoder->family(), family);
    const auto done = decoder->decode(outputs, map, width, height, decoded);
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return decoded;
}

// YOLO-NAS in the flat format of super-gradients: batch, corners, score, class.
TEST(YoloEnd2end, ReadsTheScoreBeforeTheClassWhereTheNameSaysSo) {
    RefTensor t{{0, 10, 20, 30, 40, 0.9f, 7}, 1, 7, false};
    for (const auto& [name, class_id] : {std::pair("graph2_flat_predictions", 7), {"out", 1}}) {
        const auto found = decode_all({stored_cpu(t, name)}, {}, "yolo-end2end").detections;
        ASSERT_EQ(found.size(), 1u) << name;
        EXPECT_EQ(found[0].class_id, class_id) << name;
    }
}

TEST(Nanodet, DecodesAsTheReference) {
    for (const auto& [hw, logits] : {std::pair(false, false), {true, false}, {false, true}}) {
        ModelInfo info;
        std::mt19937 random(9);
        std::uniform_real_distribution<float> unit(0, 1), logit(-3, 3);
        std::vector<StoredTensor> scores_first, distances_last;
        std::vector<RefBox> boxes;
        for (const int stride : {8, 16, 32}) {
            const size_t cells = static_cast<size_t>(width) / stride * (height / stride);
            RefTensor scores{{}, cells, 80, false}, distances{{}, cells, 32, false};
            for (size_t p = 0; p < cells; ++p) {
                const float most = unit(random) < 0.05f ? 1.f : 0.1f;
                for (size_t c = 0; c < 80; ++c) scores.data.push_back(unit(random) * most);
                for (size_t d = 0; d < 32; ++d) distances.data.push_back(logit(random));
            }
            const std::string s = std::to_string(stride);
            RefTensor kept = scores;
            for (float& v : kept.data) v = logits ? std::log(v / (1 - v)) : v;
            if (logits)
                info.outputs.push_back(
                    {.name = "cls" + s, .id = "", .role = "", .ends_in = "linear"});
            scores_first.push_back(hw ? stored_hw(scores, "cls" + s, DataType::int8, {1 / 127., 0})
                                      : stored_cpu(kept, "cls" + s));
            distances_last.push_back(hw ? stored_hw(distances, "dis" + s, DataType::bf16)
                                        : stored_cpu(distances, "dis" + s));
            const auto level =
                ref_nanodet(scores, distances, static_cast<int>(width) / stride, stride, 8, 0.4f);
            boxes.insert(boxes.end(), level.begin(), level.end());
        }
        scores_first.insert(scores_first.end(), distances_last.begin(), distances_last.end());
        auto want = clipped(ref_nms(boxes, 0.6, true, boxes.size()));
        want.resize(std::min<size_t>(want.size(), 100));
        EXPECT_GT(want.size(), 20u);
        expect_equal(decode_all(scores_first, info, "nanodet").detections, want);
    }
}

// Four strides. In one table, as NanoDet-Plus has them, distances are from the corners of the
// cells; with outputs of their own, as PicoDet has them, or in a table of three strides, as the
// first NanoDet has them, from the centres.
TEST(Nanodet, PlusAndPicoDetDecodeAsTheReference) {
    std::mt19937 random(11);
    std::uniform_real_distribution<float> unit(0, 1), logit(-3, 3);
    std::vector<StoredTensor> outputs, distances_last;
    std::vector<RefBox> from_corners, from_centres, of_three;
    RefTensor table{{}, 0, 80 + 32, false}, table_of_three = table;
    for (const int stride : {8, 16, 32, 64}) {
        const int across = (static_cast<int>(width) + stride - 1) / stride;
        const size_t cells = static_cast<size_t>(across) * ((height + stride - 1) / stride);
        RefTensor scores{{}, cells, 80, false}, distances{{}, cells, 32, false};
        for (size_t p = 0; p < cells; ++p) {
            const float most = unit(random) < 0.05f ? 1.f : 0.1f;
            for (size_t c = 0; c < 80; ++c) scores.data.push_back(unit(random) * most);
            for (size_t d = 0; d < 32; ++d) distances.data.push_back(logit(random));
            table.data.insert(table.data.end(), scores.data.end() - 80, scores.data.end());
            table.data.insert(table.data.end(), distances.data.end() - 32, distances.data.end());
        }
        table.positions += cells;
        const auto add = [&](std::vector<RefBox>& boxes, float middle) {
            const auto level = ref_nanodet(scores, distances, across, stride, 8, 0.4f, middle);
            boxes.insert(boxes.end(), level.begin(), level.end());
        };
        add(from_corners, 0);
        add(from_centres, 0.5f);
        outputs.push_back(stored_cpu(scores, "cls" + std::to_string(stride)));
        distances_last.push_back(stored_cpu(distances, "dis" + std::to_string(stride)));
        if (stride == 32) table_of_three = table, of_three = from_centres;
    }
    outputs.insert(outputs.end(), distances_last.begin(), distances_last.end());
    ModelInfo three;
    three.strides = {8, 16, 32};
    three.decoder = "nanodet";  // else it could be YOLOX, too
    const auto best = [](const std::vector<RefBox>& boxes) {
        auto want = clipped(ref_nms(boxes, 0.6, true, boxes.size()));
        want.resize(std::min<size_t>(want.size(), 100));
        return want;
    };
    expect_equal(decode_all(outputs, {}, "nanodet").detections, best(from_centres));
    expect_equal(decode_all({stored_cpu(table, "output")}, {}, "nanodet").detections,
                 best(from_corners));
    expect_equal(decode_all({stored_cpu(table_of_three, "output")}, three, "nanodet").detections,
                 best(of_three));
}

// Lists of boxes: corners, scores and classes, the latter as integers or floats.
std::vector<StoredTensor> listed(const std::vector<RefBox>& boxes, std::array<int, 4> order,
                                 bool integers) {
    const size_t n = boxes.size();
    RefTensor corners{std::vector<float>(4 * n), n, 4, false};
    std::vector<float> scores;
    std::vector<int64_t> classes;
    for (size_t i = 0; i < n; ++i) {
        const double values[] = {boxes[i].x0, boxes[i].y0, boxes[i].x1, boxes[i].y1};
        for (size_t k = 0; k < 4; ++k)
            corners.data[4 * i + static_cast<size_t>(order[k])] = static_cast<float>(values[k]);
        scores.push_back(static_cast<float>(boxes[i].score));
        classes.push_back(boxes[i].class_id);
    }
    const auto list = [n](const char* name, DataType type, const void* data) {
        StoredTensor t;
        t.info.name = name;
        t.info.cpu = make_view(type, Layout::GENERIC, {1, static_cast<uint32_t>(n)}, {0, 1});
        const auto* bytes = static_cast<const uint8_t*>(data);
        t.bytes.assign(bytes, bytes + t.info.cpu.size_bytes);
        return t;
    };
    const std::vector<float> real_classes(classes.begin(), classes.end());
    return {list("labels", integers ? DataType::int64 : DataType::float32,
                 integers ? static_cast<const void*>(classes.data()) : real_classes.data()),
            stored_cpu(corners, "boxes"), list("scores", DataType::float32, scores.data())};
}

TEST(Detr, ScalesFromTheSizeItWasFed) {
    // Corners in units of a frame of 640x512, of which the model saw 320x256 pixels.
    const std::vector<RefBox> boxes = {
        {10, 20, 110, 220, 0.9, 3}, {12, 20, 110, 220, 0.8, 3}, {0, 0, 64, 64, 0.39, 1}};
    ModelInfo info;
    info.inputs.resize(1);
    info.inputs[0].feed = "const:640,512";
    const Decoded decoded = decode_all(listed(boxes, {0, 1, 2, 3}, true), info, "detr");
    expect_equal(decoded.detections, {{5, 10, 55, 110, 0.9, 3}, {6, 10, 55, 110, 0.8, 3}});
    // Height first, where an input has the name of PaddleDetection's.
    info.inputs[0].name = "im_shape";
    info.inputs[0].feed = "const:512,640";
    expect_equal(decode_all(listed(boxes, {0, 1, 2, 3}, true), info, "detr").detections,
                 {{5, 10, 55, 110, 0.9, 3}, {6, 10, 55, 110, 0.8, 3}});
    info.inputs[0].feed = "frame-size";  // the frame is as large as the model's input here
    EXPECT_EQ(decode_all(listed(boxes, {0, 1, 2, 3}, true), info, "detr").detections.at(0).x0, 10);
}

// How many rows are valid.
StoredTensor row_count(float rows) {
    StoredTensor count;
    count.info.name = "count";
    count.info.cpu = make_view(DataType::float32, Layout::GENERIC, {1}, {0});
    count.bytes.assign(reinterpret_cast<const uint8_t*>(&rows),
                       reinterpret_cast<const uint8_t*>(&rows + 1));
    return count;
}

TEST(Ssd, ReadsWhatUpstreamsDecoderReads) {
    std::vector<RefBox> boxes = {
        {0.25, 0.5, 0.5, 1, 0.9, 2}, {0, 0, 0.25, 0.25, 0.5, 0}, {0, 0, 1, 1, 0.9, 1}};
    auto tensors = listed(boxes, {1, 0, 3, 2}, false);
    tensors.push_back(row_count(2));  // the third row is not valid
    expect_equal(decode_all(tensors, {}, "ssd").detections,
                 {{80, 128, 160, 256, 0.9, 2}, {0, 0, 80, 64, 0.5, 0}});
}

// As EfficientNMS and YOLO-NAS list their boxes.
TEST(Listed, AreInPixelsWhereTheSidecarSaysSo) {
    const std::vector<RefBox> boxes = {{100, 120, 200, 250, 0.9, 1}, {300, 30, 310, 50, 0.8, 3}};
    ModelInfo info;
    info.box_unit = "pixel";
    const auto tensors = listed(boxes, {0, 1, 2, 3}, true);
    expect_equal(decode_all(tensors, info, "detr").detections, boxes);
    // It is the last word, whatever the model is told of the frame.
    info.inputs.resize(1);
    info.inputs[0].feed = "const:640,512";
    expect_equal(decode_all(tensors, info, "detr").detections, boxes);
    info.inputs.clear();
    info.box_order = "xyxy";
    auto counted = tensors;
    counted.push_back(row_count(2));
    expect_equal(decode_all(counted, info, "ssd").detections, boxes);
}

// A model that keeps boxes at an overlap of 0.6 did so: they are not suppressed again.
TEST(Listed, ThatTheModelSelectedAreNotSuppressed) {
    const std::vector<RefBox> boxes = {{0.1, 0.1, 0.5, 0.5, 0.9, 2}, {0.1, 0.1, 0.5, 0.6, 0.8, 2}};
    auto tensors = listed(boxes, {1, 0, 3, 2}, false);
    tensors.push_back(row_count(2));
    EXPECT_EQ(decode_all(tensors, {}, "ssd").detections.size(), 2u);
}

// 300 are also the cells of such a picture.
TEST(Listed, OfACountOfQueriesAreNotSuppressed) {
    std::vector<RefBox> boxes(300, {0, 0, 0, 0, 0, 0});
    boxes[0] = {0.1, 0.1, 0.5, 0.5, 0.9, 2};
    boxes[1] = {0.1, 0.1, 0.5, 0.6, 0.8, 2};
    const auto tensors = listed(boxes, {0, 1, 2, 3}, true);
    std::vector<TensorInfo> infos;
    std::vector<OutputTensor> outputs;
    for (const StoredTensor& tensor : tensors) infos.push_back(tensor.info);
    for (const StoredTensor& tensor : tensors) outputs.push_back(tensor.output());
    auto decoder = Decoder::create({}, infos, 320, 192, {.decoder = "detr"});
    ASSERT_TRUE(decoder) << decoder.error().message;
    Decoded decoded;
    ASSERT_TRUE(decoder->decode(outputs, {}, 320, 192, decoded));
    EXPECT_EQ(decoded.detections.size(), 2u);
}

// As many as a grid has cells are not selected yet, whoever reads them.
TEST(Listed, OfAWholeGridAreSuppressed) {
    std::vector<RefBox> boxes(1680, {0, 0, 0, 0, 0, 0});  // of 320x256
    for (size_t i = 0; i < 4; ++i) boxes[100 + i] = {100, 100, 200, 200, 0.9 - 0.01 * double(i), 3};
    ModelInfo info;
    info.box_unit = "pixel";
    EXPECT_EQ(decode_all(listed(boxes, {0, 1, 2, 3}, true), info, "detr").detections.size(), 1u);
    // What is written of a family without NMS is no threshold: boxes that touch are two.
    info.decoder = "detr";
    const std::string written = print_modelinfo(info, {}, {});
    EXPECT_EQ(written.find("iou-threshold"), std::string::npos) << written;
}

TEST(Listed, MayHaveClassesAsFloatsWhereNamesTell) {
    const std::vector<RefBox> boxes = {{0.25, 0.5, 0.5, 1, 0.9, 2}};
    std::vector<RefBox> rows(9, {0, 0, 0, 0, 0, 0});
    rows.insert(rows.begin(), boxes.front());
    expect_equal(decode_all(listed(rows, {0, 1, 2, 3}, false), {}, "detr").detections,
                 {{80, 128, 160, 256, 0.9, 2}});
    // TensorFlow's begin with y, also where the count is not there.
    auto tensorflow = listed(rows, {1, 0, 3, 2}, false);
    for (StoredTensor& tensor : tensorflow)
        if (tensor.info.cpu.shape.size() == 3) tensor.info.name = "detection_boxes";
    expect_equal(decode_all(tensorflow, {}, "detr").detections, {{80, 128, 160, 256, 0.9, 2}});
}

// TensorFlow's count from 1, whatever number of them its configuration says.
TEST(Listed, OfTensorFlowHaveTheNamesOfTheirNumbers) {
    std::vector<RefBox> rows(9, {0, 0, 0, 0, 0, 1});
    rows[0] = {0.25, 0.5, 0.5, 1, 0.9, 1};
    rows[1] = {0.25, 0.5, 0.5, 1, 0.8, 90};
    auto tensors = listed(rows, {1, 0, 3, 2}, false);
    for (StoredTensor& tensor : tensors)
        if (tensor.info.cpu.shape.size() == 3) tensor.info.name = "detection_boxes";
    std::vector<TensorInfo> infos;
    std::vector<OutputTensor> outputs;
    for (const StoredTensor& tensor : tensors) infos.push_back(tensor.info);
    for (const StoredTensor& tensor : tensors) outputs.push_back(tensor.output());
    for (const unsigned classes : {90u, 91u}) {
        ModelInfo info;
        info.num_classes = classes;
        auto decoder = Decoder::create(info, infos, 320, 192, {.decoder = "detr"});
        ASSERT_TRUE(decoder) << decoder.error().message;
        Decoded decoded;
        const auto done = decoder->decode(outputs, {}, 320, 192, decoded);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(decoder->label(1), "person") << classes;
        EXPECT_EQ(decoder->label(90), "toothbrush") << classes;
    }
}

// MMDeploy's [1,N,5] and [1,N], in pixels of the input.
TEST(Listed, MayHaveTheirScoresBehindTheCorners) {
    const std::vector<RefBox> boxes = {{100, 120, 200, 250, 0.9, 1}, {30, 30, 310, 150, 0.75, 3}};
    RefTensor table{{}, boxes.size(), 5, false};
    for (const RefBox& b : boxes)
        for (const double v : {b.x0, b.y0, b.x1, b.y1, b.score})
            table.data.push_back(static_cast<float>(v));
    const std::vector<StoredTensor> tensors = {stored_cpu(table, "dets"),
                                               listed(boxes, {0, 1, 2, 3}, true)[0]};
    expect_equal(decode_all(tensors, {}, "detr").detections, boxes);
}

TEST(Listed, BeginWithXWhereNamesOrTheSidecarSaySo) {
    const std::vector<RefBox> boxes = {{100, 120, 200, 250, 0.9, 1}, {300, 30, 310, 50, 0.8, 3}};
    ModelInfo info;
    auto tensors = listed(boxes, {0, 1, 2, 3}, true);
    tensors.push_back(row_count(2));
    const auto doubt = [&] {
        std::vector<TensorInfo> infos;
        std::vector<OutputTensor> outputs;
        for (const StoredTensor& tensor : tensors) {
            infos.push_back(tensor.info);
            outputs.push_back(tensor.output());
        }
        auto decoder = Decoder::create(info, infos, width, height, {.decoder = "ssd"});
        EXPECT_TRUE(decoder) << decoder.error().message;
        Decoded decoded;
        EXPECT_TRUE(decoder->decode(outputs, identity, width, height, decoded));
        return decoder->doubt();
    };
    EXPECT_NE(doubt().find("x-vartml-box-unit=pixel"), std::string::npos) << doubt();
    EXPECT_NE(doubt().find("x-vartml-box-order=xyxy"), std::string::npos) << doubt();
    tensors.back().info.name = "num_dets";
    EXPECT_NE(doubt().find("x-vartml-box-unit=pixel"), std::string::npos) << doubt();
    EXPECT_EQ(doubt().find("x-vartml-box-order=xyxy"), std::string::npos) << doubt();
    info.box_unit = "pixel";
    expect_equal(decode_all(tensors, info, "ssd").detections, boxes);
}

TEST(Listed, AreCentreAndSizeWhereTheSidecarSaysSo) {
    // Of the input: a middle of 160,64 and sides of 80 and 128.
    const std::vector<RefBox> centred = {{0.5, 0.25, 0.25, 0.5, 0.9, 1},
                                         {0.25, 0.5, 0.125, 0.5, 0.8, 3}};
    const std::vector<RefBox> want = {{120, 0, 200, 128, 0.9, 1}, {60, 64, 100, 192, 0.8, 3}};
    ModelInfo info;
    info.box_order = "cxcywh";
    auto tensors = listed(centred, {0, 1, 2, 3}, true);
    expect_equal(decode_all(tensors, info, "detr").detections, want);
    tensors.push_back(row_count(2));
    expect_equal(decode_all(tensors, info, "ssd").detections, want);
}

struct ClassCase {
    const char* activation;
    unsigned top_k;
    double threshold;
    std::vector<std::pair<int, float>> want;
};
// exp(1), exp(3), exp(2), exp(3), exp(0) over their sum 51.2784
const ClassCase class_cases[] = {
    {"none", 1, 0, {{1, 3.f}}},
    {"none", 3, 0, {{1, 3.f}, {3, 3.f}, {2, 2.f}}},  // equal scores: lower class first
    {"none", 9, 2.5, {{1, 3.f}, {3, 3.f}}},
    {"softmax", 3, 0, {{1, 0.391696f}, {3, 0.391696f}, {2, 0.144097f}}},
    {"sigmoid", 1, 0, {{1, 0.952574f}}},
};
class Classes : public testing::TestWithParam<ClassCase> {};
TEST_P(Classes, ComeOutBestFirst) {
    const ClassCase& c = GetParam();
    ModelInfo info;
    info.activation = c.activation;
    for (const auto& shape : {std::vector<uint32_t>{1, 5}, std::vector<uint32_t>{1, 5, 1, 1}}) {
        for (const bool hw : {false, true}) {
            StoredTensor tensor;
            tensor.info.name = "out";
            tensor.info.cpu = make_view(DataType::float32,
                                        shape.size() == 4 ? Layout::NCHW : Layout::GENERIC, shape);
            const float values[8] = {1, 3, 2, 3, 0, 9, 9, 9};
            tensor.bytes.resize(sizeof values);
            std::memcpy(tensor.bytes.data(), values, sizeof values);
            if (hw && shape.size() == 4) {
                tensor.info.hw = make_view(DataType::float32, Layout::HCWNC8, {1, 1, 1, 1, 8});
            }
            auto decoder = Decoder::create(info, {&tensor.info, 1}, 224, 224,
                                           {.score_threshold = c.threshold, .top_k = c.top_k});
            ASSERT_TRUE(decoder) << decoder.error().message;
            EXPECT_EQ(decoder->family(), "classify");
            Decoded decoded;
            const OutputTensor output = tensor.output();
            ASSERT_TRUE(decoder->decode({&output, 1}, identity, width, height, decoded));
            ASSERT_EQ(decoded.classes.size(), c.want.size());
            for (size_t i = 0; i < c.want.size(); ++i) {
                EXPECT_EQ(decoded.classes[i].class_id, c.want[i].first);
                EXPECT_NEAR(decoded.classes[i].score, c.want[i].second, 1e-5);
            }
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Table, Classes, testing::ValuesIn(class_cases));

}  // namespace
