// SPDX-License-Identifier: Apache-2.0
// Heads whose shapes fit and whose numbers do not: seen on the first frames.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <random>

#include "tests/vision/head_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

StoredTensor stored(const char* name, std::vector<uint32_t> shape,
                    const std::function<float(size_t row, size_t column)>& value) {
    StoredTensor t;
    t.info.name = name;
    t.info.cpu = make_view(DataType::float32, shape.size() == 3 ? Layout::NHW : Layout::GENERIC,
                           std::move(shape));
    t.bytes.resize(t.info.cpu.size_bytes);
    const size_t columns = t.info.cpu.shape.back();
    for (size_t i = 0; i < t.info.cpu.size; ++i) {
        const float v = value(i / columns, i % columns);
        std::memcpy(&t.bytes[i * sizeof v], &v, sizeof v);
    }
    return t;
}

// What the decoder says after a frame of these tensors.
struct Seen {
    std::string doubt, suspicion, reason, activation;
    Decoded decoded;
};
Seen decode(const std::vector<StoredTensor>& tensors, uint32_t width, uint32_t height,
            const ModelInfo& info = {}, const std::string& decoder = "") {
    std::vector<TensorInfo> infos;
    std::vector<OutputTensor> outputs;
    for (const StoredTensor& t : tensors) infos.push_back(t.info);
    for (const StoredTensor& t : tensors) outputs.push_back(t.output());
    Seen seen;
    auto made = Decoder::create(info, infos, width, height, {.decoder = decoder, .top_k = 3});
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    if (!made) return seen;
    const auto done = made->decode(outputs, {}, width, height, seen.decoded);
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    seen.doubt = made->doubt();
    seen.suspicion = made->suspicion();
    seen.reason = made->reason();
    seen.activation = made->activation();
    return seen;
}

ModelInfo sidecar(const std::string& text) {
    auto info = parse_modelinfo(text, "");
    EXPECT_TRUE(info) << (info ? "" : info.error().message);
    return info ? *std::move(info) : ModelInfo{};
}

float background_first(size_t row, size_t column) {
    const float face = row % 50 == 7 ? 0.9f : 0.05f;
    return column ? face : 1 - face;
}

// 320x240: 4420 positions
TEST(Plausibility, OfFaceBoxesInOrderIsGood) {
    const auto corners = [](size_t row, size_t column) {
        const float x = float(row % 70) / 80, y = float(row / 70 % 60) / 70;
        return column == 0 ? x : column == 1 ? y : column == 2 ? x + 0.1f : y + 0.1f;
    };
    const Seen seen = decode(
        {stored("scores", {1, 4420, 2}, background_first), stored("boxes", {1, 4420, 4}, corners)},
        320, 240);
    EXPECT_EQ(seen.doubt, "");
    EXPECT_FALSE(seen.decoded.detections.empty());
}

TEST(Plausibility, OfRegressionsReadAsCornersIsNone) {
    std::mt19937 random(1);
    std::normal_distribution<float> regression(0, 1);
    const Seen seen =
        decode({stored("scores", {1, 4420, 2}, background_first),
                stored("boxes", {1, 4420, 4}, [&](size_t, size_t) { return regression(random); })},
               320, 240);
    EXPECT_EQ(seen.reason, "shapes");
    EXPECT_NE(seen.doubt.find("decoder ultraface"), std::string::npos) << seen.doubt;
    EXPECT_NE(seen.doubt.find("corners in the wrong order"), std::string::npos) << seen.doubt;
}

// 64x64, strides 8, 16, 32: 84 positions
constexpr size_t positions = 84;

TEST(Plausibility, OfScoresAboveOneIsNone) {
    // Ten columns of landmarks behind an objectness and a class.
    const auto face = [](size_t, size_t column) {
        return column < 4 ? 20.f + float(column) : column == 4 ? 0.8f : column < 15 ? 30.f : 0.9f;
    };
    const Seen seen = decode({stored("out", {1, 3 * positions, 16}, face)}, 64, 64, {}, "yolo-v5");
    EXPECT_NE(seen.doubt.find("scores of classes are up to 30, expected at most 1"),
              std::string::npos)
        << seen.doubt;
}

TEST(Plausibility, OfScoresOfClassesAboveOneIsNone) {
    // NanoDet-Plus in one table: 80 classes, of which the fifth passes for an objectness, and bins.
    std::mt19937 random(1);
    std::normal_distribution<float> bin(0, 2);
    const auto value = [&](size_t row, size_t column) {
        return column >= 80 ? bin(random) : row == 1378 && column == 0 ? 0.95f : 0.01f;
    };
    ModelInfo info;
    info.num_classes = 107;  // somebody says so
    const Seen seen = decode({stored("out", {1, 3598, 112}, value)}, 416, 416, info, "yolox");
    EXPECT_NE(seen.doubt.find("scores of classes are up to"), std::string::npos) << seen.doubt;
}

TEST(Plausibility, OfBoxesInUnitsOfThePictureIsNone) {
    // Corners, whose decoder knows no units.
    const auto value = [](size_t row, size_t column) {
        const float corner = float(row % 9) / 10;
        return column < 2 ? corner : column < 4 ? corner + 0.1f : column == 4 ? 0.9f : 0.f;
    };
    const Seen seen = decode({stored("out", {1, 300, 6}, value)}, 64, 64);
    EXPECT_EQ(seen.reason, "shapes");
    EXPECT_NE(seen.doubt.find("in units of it"), std::string::npos) << seen.doubt;
}

// A list of finished boxes in which few rows count.
TEST(Plausibility, OfAFewFinishedBoxesIsSeenInOne) {
    struct Case {
        const char* why;
        std::vector<std::array<float, 4>> boxes;
        const char* doubt;
    };
    const Case cases[] = {
        {"corners", {{270, 210, 370, 270}, {80, 360, 120, 440}}, ""},
        {"a box of no size", {{270, 210, 370, 270}, {80, 360, 80, 360}}, ""},
        {"corners that rounding exchanged", {{270, 210, 268, 270}, {80, 360, 120, 440}}, ""},
        {"centre and size", {{320, 240, 100, 60}}, "x-vartml-columns=cxcywh,score,class"},
        {"one of two",
         {{100, 90, 300, 260}, {100, 200, 240, 80}},
         "1 of 2 boxes have their corners"},
        {"units of the picture",
         {{.2f, .2f, .5f, .6f}, {.6f, .2f, .8f, .6f}},
         "all 2 boxes lie within 2 pixels"},
        {"a box in the corner", {{0, 0, 2, 2}, {80, 360, 120, 440}}, ""},
    };
    for (const Case& c : cases) {
        const auto value = [&](size_t row, size_t column) {
            if (row >= c.boxes.size()) return 0.f;
            return column < 4 ? c.boxes[row][column] : column == 4 ? 0.9f : 1.f;
        };
        const Seen seen = decode({stored("out", {1, 100, 6}, value)}, 640, 640);
        EXPECT_EQ(seen.reason, "shapes");
        if (*c.doubt)
            EXPECT_NE(seen.doubt.find(c.doubt), std::string::npos) << c.why << ": " << seen.doubt;
        else
            EXPECT_EQ(seen.doubt, "") << c.why;
    }
}

TEST(Plausibility, OfBoxesBeyondThePictureIsNone) {
    const auto value = [](size_t row, size_t column) {
        return row < 2 ? 500.f + float(column) : row < 4 ? 10.f : column % 4 == 3 ? 0.9f : 0.01f;
    };
    const Seen seen = decode({stored("out", {1, 6, positions}, value)}, 64, 64);
    EXPECT_NE(seen.doubt.find("lie beyond the picture of 64x64"), std::string::npos) << seen.doubt;
}

// Corners, scores and classes: three boxes in pixels of 640x640, the rest fills the list.
std::vector<StoredTensor> pixels_listed(size_t boxes) {
    const auto corner = [=](size_t row, size_t column) {
        if (row >= boxes) return 0.f;
        return (column % 2 ? 200.f : 20.f + 50 * float(row)) + (column < 2 ? 0 : 40);
    };
    return {stored("boxes", {1, 100, 4}, corner),
            stored("scores", {1, 100},
                   [=](size_t, size_t i) { return i < boxes ? 0.9f - 0.01f * float(i) : 0; }),
            stored("labels", {1, 100}, [](size_t, size_t i) { return float(i); })};
}

TEST(Plausibility, OfPixelsTakenForPartsOfThePictureIsNone) {
    for (const size_t boxes : {1u, 3u, 10u}) {
        const Seen seen = decode(pixels_listed(boxes), 640, 640, {}, "detr");
        EXPECT_NE(seen.doubt.find("x-vartml-box-unit=pixel"), std::string::npos) << seen.doubt;
        EXPECT_NE(seen.doubt.find("of 640x640"), std::string::npos) << seen.doubt;
    }
    const Seen seen = decode(pixels_listed(3), 640, 640,
                             sidecar("[modelinfo]\nx-vartml-box-unit=pixel\n"), "detr");
    EXPECT_EQ(seen.doubt, "");
    EXPECT_EQ(seen.decoded.detections.size(), 3u);
    EXPECT_EQ(decode(pixels_listed(0), 640, 640, {}, "detr").doubt, "");
}

TEST(Plausibility, OfPixelsIsSeenWhenTheFirstBoxComesLate) {
    const auto tensors = pixels_listed(1), empty = pixels_listed(0);
    std::vector<TensorInfo> infos;
    for (const StoredTensor& t : tensors) infos.push_back(t.info);
    auto decoder = Decoder::create({}, infos, 640, 640, {.decoder = "detr"});
    ASSERT_TRUE(decoder) << decoder.error().message;
    const auto run = [&](const std::vector<StoredTensor>& frame) {
        std::vector<OutputTensor> outputs;
        for (const StoredTensor& t : frame) outputs.push_back(t.output());
        Decoded decoded;
        ASSERT_TRUE(decoder->decode(outputs, {}, 640, 640, decoded));
    };
    for (int i = 0; i < 20; ++i) run(empty);
    EXPECT_EQ(decoder->doubt(), "");
    run(tensors);
    EXPECT_NE(decoder->doubt().find("x-vartml-box-unit=pixel"), std::string::npos);
}

// Score and class exchanged, which rows that only fill the table do not show.
TEST(Plausibility, OfClassesThatAreScoresIsSeenWhenTheFirstBoxComesLate) {
    const auto table = [](float box) {
        return stored("out", {1, 10, 7}, [box](size_t row, size_t column) {
            const float first[] = {0, 10, 10, 50, 50, 0.87f, 1};
            return row == 0 ? box * first[column] : 0.f;
        });
    };
    const StoredTensor empty = table(0), full = table(1);
    auto decoder = Decoder::create({}, {&full.info, 1}, 640, 640, {.decoder = "yolo-end2end"});
    ASSERT_TRUE(decoder) << decoder.error().message;
    const auto run = [&](const StoredTensor& tensor) {
        const OutputTensor output = tensor.output();
        Decoded decoded;
        ASSERT_TRUE(decoder->decode({&output, 1}, {}, 640, 640, decoded));
    };
    for (int i = 0; i < 20; ++i) run(empty);
    EXPECT_EQ(decoder->doubt(), "");
    run(full);
    EXPECT_NE(decoder->doubt(), "");
}

// Boxes of a YOLO v8 head of 416x416 that count where `at` gives a score.
struct Row {
    float cx, cy, side, score;
};
std::vector<StoredTensor> boxes_of(const std::function<Row(size_t)>& at) {
    return {stored("out", {1, 84, 3549}, [at](size_t column, size_t position) {
        const Row row = at(position);
        if (column < 4) return column == 0 ? row.cx : column == 1 ? row.cy : row.side;
        return column == 4 + position % 80 ? row.score : 0.01f;
    })};
}

// A box in its cell of a grid of 416x416 that counts for nothing.
Row empty_cell(size_t position) {
    size_t stride = 8;
    while (position >= (416 / stride) * (416 / stride))
        position -= (416 / stride) * (416 / stride), stride *= 2;
    const size_t side = 416 / stride;
    return {float((position % side) * stride), float((position / side) * stride), 20, 0.01f};
}

TEST(Plausibility, OfLogitsNamesTheSigmoidThatTheyLack) {
    const auto value = [](size_t column, size_t position) {
        const Row row = empty_cell(position);
        if (column < 4) return column == 0 ? row.cx : column == 1 ? row.cy : row.side;
        return column == 7 && position == 1000 ? 3.f : -6.f;
    };
    const Seen seen = decode({stored("out", {1, 84, 3549}, value)}, 416, 416);
    EXPECT_NE(
        seen.doubt.find("scores lie between -6 and 3, expected 0 to 1, as logits do that lack "
                        "their sigmoid (x-vartml-activation=sigmoid in section [modelinfo])"),
        std::string::npos)
        << seen.doubt;
    // Where no activation is read, none is named.
    const auto listed = [](size_t row, size_t column) {
        const float box[] = {10, 10, 100, 100, row ? 5.f : -3.f, 1};
        return box[column];
    };
    const Seen final = decode({stored("out", {1, 100, 6}, listed)}, 416, 416);
    EXPECT_NE(final.doubt.find("scores lie between -3 and 5, expected 0 to 1"), std::string::npos)
        << final.doubt << final.reason;
    EXPECT_EQ(final.doubt.find("x-vartml-activation"), std::string::npos) << final.doubt;
}

TEST(Plausibility, OfAFullTableOfBoxesOnEachOtherIsLow) {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> place(100, 140), side(200, 260);
    const auto heaps = boxes_of([&](size_t position) {
        if (position >= 320) return empty_cell(position);
        const float heap = position < 160 ? 0 : 160;  // two of them
        return Row{heap + place(random), heap + place(random), side(random), 0.7f};
    });
    const Seen seen = decode(heaps, 416, 416);
    EXPECT_EQ(seen.decoded.detections.size(), 100u);
    EXPECT_EQ(seen.doubt, "");
    EXPECT_NE(seen.suspicion.find("as many boxes as are kept, 100, and"), std::string::npos)
        << seen.suspicion;
    EXPECT_NE(seen.suspicion.find("decoders that read such outputs"), std::string::npos);
}

TEST(Plausibility, OfAFullTableOfBoxesThatStandFreeIsGood) {
    const auto crowd = boxes_of([&](size_t position) {
        if (position >= 361) return empty_cell(position);
        return Row{20.f + 20 * float(position % 19), 20.f + 20 * float(position / 19), 16, 0.7f};
    });
    const Seen seen = decode(crowd, 416, 416);
    EXPECT_EQ(seen.decoded.detections.size(), 100u);
    EXPECT_EQ(seen.doubt, "");
    EXPECT_EQ(seen.suspicion, "");
}

// Tables of YOLO v5 of 320x320: 6300 rows of three anchors per cell.
TEST(Plausibility, OfBoxesFarFromTheirCellsIsNone) {
    // Behind the sigmoid, without grid and anchors: fractions that look like units of the picture.
    const auto undecoded = [](size_t row, size_t column) {
        return column < 4 ? 0.4f + float(row % 20) / 100 : column == 4 ? 0.02f : 0.9f;
    };
    const Seen seen = decode({stored("out", {1, 6300, 6}, undecoded)}, 320, 320);
    EXPECT_EQ(seen.reason, "shapes");
    EXPECT_NE(seen.doubt.find("boxes are far from their cells of the grid"), std::string::npos)
        << seen.doubt;

    // In whichever order an export has levels and anchors.
    for (const bool reversed : {false, true}) {
        for (const bool beside : {false, true}) {
            const auto decoded = [=](size_t row, size_t column) {
                const int strides[] = {reversed ? 32 : 8, 16, reversed ? 8 : 32};
                size_t at = row, level = 0;
                const auto side = [&] { return 320 / size_t(strides[level]); };
                while (at >= 3 * side() * side()) at -= 3 * side() * side(), ++level;
                const size_t cell = beside ? at / 3 : at % (side() * side());
                const float stride = float(strides[level]);
                if (column == 0) return (float(cell % side()) + 0.7f) * stride;
                if (column == 1) return (float(cell / side()) + 0.2f) * stride;
                return column < 4 ? 3 * stride : column == 4 ? 0.02f : 0.9f;
            };
            EXPECT_EQ(decode({stored("out", {1, 6300, 6}, decoded)}, 320, 320).doubt, "")
                << reversed << beside;
        }
    }
}

// YOLOv6, and a YOLOX that is decoded in the model: the shape is that of YOLOX, which its numbers
// tell, and what reads it is named.
TEST(Plausibility, OfOneDecodedRowPerCellNamesWhatReadsIt) {
    const auto decoded = [](size_t row, size_t column) {
        const int strides[] = {8, 16, 32};
        size_t level = 0;
        const auto side = [&] { return 320 / size_t(strides[level]); };
        while (row >= side() * side()) row -= side() * side(), ++level;
        const float stride = float(strides[level]);
        if (column == 0) return (float(row % side()) + 0.7f) * stride;
        if (column == 1) return (float(row / side()) + 0.2f) * stride;
        return column < 4 ? 3 * stride : column == 4 ? 1 : row == 50 && level == 1 ? 0.9f : 0.02f;
    };
    const StoredTensor tensor = stored("out", {1, 2100, 85}, decoded);
    const Seen seen = decode({tensor}, 320, 320);
    EXPECT_EQ(seen.reason, "shapes");
    EXPECT_NE(seen.doubt.find("decoders that read such outputs: yolo-v5"), std::string::npos)
        << seen.doubt;
    // What would be refused in its turn is not.
    EXPECT_EQ(seen.doubt.find("yolo-v8"), std::string::npos) << seen.doubt;
    EXPECT_EQ(decode({tensor}, 320, 320, {}, "yolo-v5").doubt, "");
}

// What a decoded YOLOX table gives when it is decoded once more: exponentials of widths in pixels.
TEST(Plausibility, OfBoxesThatAreNoNumbersIsNone) {
    const auto value = [](size_t row, size_t column) {
        return column < 2    ? 0.5f
               : column < 4  ? (row % 10 < 3 ? 95.f : 1.f)
               : column == 4 ? 0.6f
                             : 0.01f;
    };
    const Seen seen = decode({stored("out", {1, 3549, 85}, value)}, 416, 416);
    EXPECT_NE(seen.doubt.find("numbers that are not finite"), std::string::npos) << seen.doubt;
}

std::vector<StoredTensor> vector_of(size_t count, const std::function<float(size_t)>& value) {
    return {stored("out", {1, uint32_t(count)}, [&](size_t, size_t c) { return value(c); })};
}
ModelInfo ends_in(const std::string& end) {
    return sidecar("[out]\ndir=output\nx-vartml-ends-in=" + end + "\n");
}

TEST(ClassScores, GetTheActivationThatTheGraphLeavesOut) {
    const auto logits = vector_of(3, [](size_t c) { return c == 1 ? 10.86f : 9.86f - float(c); });
    for (const char* end : {"linear", "log-softmax"}) {
        const Seen seen = decode(logits, 64, 64, ends_in(end));
        ASSERT_EQ(seen.decoded.classes.size(), 3u) << end;
        EXPECT_EQ(seen.decoded.classes[0].class_id, 1);
        EXPECT_NEAR(seen.decoded.classes[0].score, 1 / (1 + std::exp(-1.) + std::exp(-3.)), 1e-5);
        EXPECT_EQ(seen.activation, "softmax");
    }
    const auto scores = vector_of(3, [](size_t c) { return c == 1 ? 0.7f : 0.15f; });
    for (const char* end : {"softmax", "sigmoid"}) {
        const Seen seen = decode(scores, 64, 64, ends_in(end));
        EXPECT_EQ(seen.decoded.classes[0].score, 0.7f) << end;
        EXPECT_EQ(seen.activation, "none") << end;
    }
    // The sidecar's own word is the last.
    ModelInfo info = ends_in("linear");
    info.activation = "sigmoid";
    EXPECT_NEAR(decode(scores, 64, 64, info).decoded.classes[0].score, 1 / (1 + std::exp(-0.7)),
                1e-6);
}

TEST(ClassScores, OfAModelThatNobodyKnowsAreLogitsWhereTheyCannotBeScores) {
    const auto logits = vector_of(3, [](size_t c) { return c == 1 ? 450.f : 44.f; });
    const Seen seen = decode(logits, 64, 64);
    EXPECT_EQ(seen.decoded.classes[0].score, 1);
    EXPECT_EQ(seen.decoded.classes[1].score, 0);
    EXPECT_EQ(seen.activation, "softmax");
    const auto scores = vector_of(3, [](size_t c) { return c == 1 ? 0.7f : 0.15f; });
    EXPECT_EQ(decode(scores, 64, 64).decoded.classes[0].score, 0.7f);
}

TEST(ClassScores, AreNoEmbedding) {
    const auto unit = [](size_t c) { return (c % 2 ? 1.f : -1.f) / std::sqrt(128.f); };
    EXPECT_NE(decode(vector_of(128, unit), 64, 64).doubt.find("embedding"), std::string::npos);
    // Where the graph divides by the length, the shape alone does not make classes of it.
    auto decoder = Decoder::create(
        ends_in("unit-length"), std::vector<TensorInfo>{vector_of(128, unit)[0].info}, 64, 64, {});
    ASSERT_TRUE(decoder);
    EXPECT_EQ(decoder->family(), "embedding");
    // Sums of products that nobody calls classes may be either.
    decoder = Decoder::create(ends_in("linear"),
                              std::vector<TensorInfo>{vector_of(128, unit)[0].info}, 64, 64, {});
    ASSERT_FALSE(decoder);
    EXPECT_NE(decoder.error().message.find("classify, landmarks, embedding"), std::string::npos)
        << decoder.error().message;
    // So may what a Relu leaves of them, as in models that tell persons apart.
    decoder = Decoder::create(ends_in("relu"),
                              std::vector<TensorInfo>{vector_of(512, unit)[0].info}, 64, 64, {});
    ASSERT_FALSE(decoder);
    EXPECT_NE(decoder.error().message.find("embedding"), std::string::npos)
        << decoder.error().message;
    ModelInfo labelled = ends_in("linear");
    labelled.num_classes = 128;
    EXPECT_TRUE(Decoder::create(labelled, std::vector<TensorInfo>{vector_of(128, unit)[0].info}, 64,
                                64, {}));
}

TEST(ClassScores, AreNoLandmarks) {
    const Seen few = decode(vector_of(10, [](size_t c) { return 0.3f + 0.04f * float(c); }), 112,
                            112, ends_in("linear"));
    EXPECT_NE(few.doubt.find("landmarks"), std::string::npos) << few.doubt;
    EXPECT_NE(few.doubt.find("other decoders that read such outputs"), std::string::npos);
}

// Decoders that are named, whose shapes fit: normal numbers of a mean and a deviation.
std::function<float(size_t)> normal(float mean, float deviation) {
    auto random = std::make_shared<std::mt19937>(5);
    auto numbers = std::make_shared<std::normal_distribution<float>>(mean, deviation);
    return [=](size_t) { return (*numbers)(*random); };
}
// x and y in the picture and z about it, in pixels.
float hand(size_t i) {
    return i % 3 == 0 ? 60.f + float(i) : i % 3 == 1 ? 190.f - 2 * float(i) : -10.f + float(i % 17);
}

struct NamedCase {
    const char* decoder;
    size_t count;
    std::function<float(size_t)> value;
    const char* doubt;  // "" = none
};

TEST(NamedDecoders, AreDoubtedWhereTheNumbersSayOtherwise) {
    const auto one_of = [](size_t c) { return c == 7 ? 0.9f : 0.1f / 99; };
    const auto in_units = [](size_t i) { return 0.3f + 0.5f * float(i % 13) / 13; };
    const NamedCase cases[] = {
        {"landmarks", 1000, normal(0.8f, 2.3f), "points lie within"},
        {"landmarks", 1000, normal(0, 60), "outside of the picture"},
        {"landmarks", 256, normal(0, 0.06f), "outside of the picture"},
        {"landmarks", 100, one_of, "sum up to 1, as scores of classes do"},
        {"landmarks", 63, hand, ""},
        {"landmarks", 136, in_units, ""},
        {"embedding", 100, one_of, "sum up to 1, as scores of classes do"},
        {"embedding", 256, normal(0, 1), ""},
        {"classify", 63, hand, "such are landmarks in pixels"},
        {"classify", 136, in_units, "such are landmarks"},
        {"classify", 136, normal(0, 20), ""},
        {"classify", 100, normal(22, 3), ""},  // texts that suit a picture
        {"classify", 100, one_of, ""},
    };
    for (const NamedCase& c : cases) {
        const Seen seen = decode(vector_of(c.count, c.value), 224, 224, {}, c.decoder);
        EXPECT_EQ(seen.reason, "property");
        if (!*c.doubt) {
            EXPECT_EQ(seen.doubt, "") << c.decoder << c.count;
            continue;
        }
        EXPECT_NE(seen.doubt.find(c.doubt), std::string::npos)
            << c.decoder << c.count << seen.doubt;
        EXPECT_NE(seen.doubt.find("decoders that read such outputs: "), std::string::npos)
            << seen.doubt;
    }
}

StoredTensor map_of(const std::function<float(size_t)>& value) {
    return stored("out", {1, 64, 64},
                  [&](size_t row, size_t column) { return value(row * 64 + column); });
}

TEST(Plausibility, OfPointsWithScoresAboveOneIsNone) {
    for (const float peak : {0.9f, 1.2f, 4.13f}) {
        StoredTensor tensor = stored("out", {1, 5, 16 * 16},
                                     [=](size_t, size_t cell) { return cell == 40 ? peak : 0.f; });
        tensor.info.cpu = make_view(DataType::float32, Layout::NCHW, {1, 5, 16, 16});
        const std::string doubt = decode({tensor}, 64, 64, {}, "heatmap").doubt;
        EXPECT_EQ(doubt.find("scores of points are up to 4.13") != std::string::npos, peak > 2)
            << doubt;
        EXPECT_EQ(doubt.empty(), peak < 2) << doubt;
    }
}

// Features of a backbone have no ground, and neither have logits.
TEST(Plausibility, OfHeatMapsWithoutAGroundIsNone) {
    for (const float ground : {0.f, -0.3f, -0.9f}) {
        StoredTensor tensor = stored("out", {1, 5, 16 * 16}, [=](size_t, size_t cell) {
            return cell == 40 ? 0.8f : cell % 2 ? ground : 0;
        });
        tensor.info.cpu = make_view(DataType::float32, Layout::NCHW, {1, 5, 16, 16});
        const std::string doubt = decode({tensor}, 64, 64, {}, "heatmap").doubt;
        EXPECT_EQ(doubt.find("numbers go down to -0.9") != std::string::npos, ground < -0.5f)
            << doubt;
        EXPECT_EQ(doubt.empty(), ground > -0.5f) << doubt;
        ModelInfo logits = sidecar("[modelinfo]\nversion=1.0\nx-vartml-activation=sigmoid\n");
        EXPECT_EQ(decode({tensor}, 64, 64, logits, "heatmap").doubt, "");
    }
}

TEST(Plausibility, OfAMapBeyondZeroToOneIsNone) {
    const auto doubt = [](const std::function<float(size_t)>& value, const char* end = "") {
        return decode({map_of(value)}, 64, 64, *end ? ends_in(end) : ModelInfo{}).doubt;
    };
    struct Case {
        const char* why;
        float least, greatest;
        const char* says;
    };
    const Case cases[] = {
        {"logits", -6.5f, 4.5f, "x-vartml-activation=sigmoid"},
        {"depth", 0.5f, 9.25f, "vartmlpicture in the place of vartmldecode"},
        {"numbers of classes", 0, 20, "x-vartml-ends-in=argmax"},
        {"a matte of bytes as floats", 0, 255, "expected probabilities of 0 to 1; vartmlpicture"},
        {"probabilities that were resized by cubics", -0.1f, 1.1f, ""},
    };
    for (const Case& c : cases) {
        const auto value = [&](size_t i) { return i % 2 ? c.least : c.greatest; };
        const std::string text = doubt(value);
        if (*c.says)
            EXPECT_NE(text.find(c.says), std::string::npos) << c.why << ": " << text;
        else
            EXPECT_EQ(text, "") << c.why;
        // Logits that are known to be such get a sigmoid.
        EXPECT_EQ(doubt(value, "linear"), "") << c.why;
    }
}

TEST(Plausibility, OfAMatteOfBytesReadAsClassesIsNone) {
    struct Case {
        const char* why;
        std::function<int(size_t)> value;
        const char* keys;
        bool doubted;
    };
    const auto matte = [](size_t i) { return i % 2 ? 255 : 0; };
    const Case cases[] = {
        {"an object and its background", matte, "", true},
        {"with an edge", [](size_t i) { return std::min<int>(255, int(i % 300)); }, "", true},
        {"an object, which the model chose", matte, "[out]\ndir=output\nx-vartml-ends-in=argmax\n",
         false},
        {"what labels count", matte, "[modelinfo]\nx-vartml-num-classes=2\n", false},
        {"classes, and pixels of none", [](size_t i) { return i % 20 ? int(i % 20) : 255; }, "",
         false},
    };
    for (const Case& c : cases) {
        StoredTensor tensor;
        tensor.info.name = "out";
        tensor.info.cpu = make_view(DataType::uint8, Layout::NHW, {1, 64, 64});
        for (size_t i = 0; i < tensor.info.cpu.size; ++i)
            tensor.bytes.push_back(uint8_t(c.value(i)));
        const std::string text = decode({tensor}, 64, 64, sidecar(c.keys)).doubt;
        EXPECT_EQ(text.find("go up to 255") != std::string::npos, c.doubted) << c.why << text;
        EXPECT_EQ(!text.empty(), c.doubted) << c.why;
    }
}

// A uint8 output of scale 1/256.
TEST(CodedOutputs, StandForWhatTheSidecarSays) {
    StoredTensor tensor;
    tensor.info.name = "out";
    tensor.info.cpu = make_view(DataType::uint8, Layout::GENERIC, {1, 3});
    tensor.bytes = {20, 171, 65};
    const auto top = [&](const std::string& keys) {
        const Seen seen = decode({tensor}, 64, 64,
                                 sidecar("[modelinfo]\nx-vartml-activation=none\n[out]\n"
                                         "dir=output\n" +
                                         keys));
        return seen.decoded.classes.empty() ? -1.f : seen.decoded.classes[0].score;
    };
    EXPECT_EQ(top(""), 171);
    EXPECT_FLOAT_EQ(top("x-vartml-quant-scale=0.00390625\n"), 171 / 256.f);
    EXPECT_FLOAT_EQ(top("x-vartml-quant-scale=0.0078125\nx-vartml-zero-point=65\n"), 106 / 128.f);
    EXPECT_FLOAT_EQ(top("x-vartml-zero-point=170\n"), 1);
}

}  // namespace
