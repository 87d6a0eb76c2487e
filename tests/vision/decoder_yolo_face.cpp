// SPDX-License-Identifier: Apache-2.0
// YOLOv5-Face against its published formula: decoded in the model, and as raw maps.
#include "tests/vision/face_heads.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr uint32_t width = 320, height = 256;
constexpr double anchors[3][3][2] = {{{4, 5}, {8, 10}, {13, 16}},
                                     {{23, 29}, {43, 55}, {73, 105}},
                                     {{146, 217}, {231, 300}, {335, 433}}};

// Rows of 16 values for each level, anchor by anchor, cell by cell.
std::vector<RefTensor> make_raw(unsigned seed) {
    Random random(seed);
    std::vector<RefTensor> levels;
    for (const uint32_t stride : {8u, 16u, 32u}) {
        const size_t rows = size_t{3} * (width / stride) * (height / stride);
        RefTensor t{{}, rows, 16, false};
        for (size_t i = 0; i < 16 * rows; ++i) {
            const size_t column = i % 16;
            double value = random.between(-1, 2);
            if (column == 4) value = random.between(0, 1) < 0.04 ? random.between(0, 4) : -3;
            if (column == 15) value = random.between(-1, 5);
            t.data.push_back(static_cast<float>(value));
        }
        levels.push_back(t);
    }
    return levels;
}
double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}
std::vector<RefFace> ref_raw(const std::vector<RefTensor>& levels) {
    std::vector<RefFace> faces;
    for (size_t l = 0; l < 3; ++l) {
        const int s = 8 << l, columns = static_cast<int>(width) / s;
        const int cells = columns * (static_cast<int>(height) / s);
        for (size_t p = 0; p < levels[l].positions; ++p) {
            const auto v = [&](size_t i) { return double{levels[l].at(p, i)}; };
            const auto& anchor = anchors[l][p / static_cast<size_t>(cells)];
            const int cell = static_cast<int>(p) % cells, gx = cell % columns, gy = cell / columns;
            const double cx = (sigmoid(v(0)) * 2 - 0.5 + gx) * s;
            const double cy = (sigmoid(v(1)) * 2 - 0.5 + gy) * s;
            const double w = std::pow(sigmoid(v(2)) * 2, 2) * anchor[0];
            const double h = std::pow(sigmoid(v(3)) * 2, 2) * anchor[1];
            RefFace face{
                {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, sigmoid(v(4)) * sigmoid(v(15)), 0},
                {}};
            for (size_t k = 5; k < 15; k += 2)
                face.points.push_back({v(k) * anchor[0] + gx * s, v(k + 1) * anchor[1] + gy * s});
            faces.push_back(face);
        }
    }
    return faces;
}

enum class Shape { channels, rows, npu };
// Level by level: [1,48,h,w], [1,3,h,w,16], or the first in the blocked view of the NPU, when
// `levels` become what it holds.
std::vector<StoredTensor> stored_maps(std::vector<RefTensor>& levels, Shape shape) {
    std::vector<StoredTensor> maps;
    for (size_t l = 0; l < 3; ++l) {
        const uint32_t w = width / (8u << l), h = height / (8u << l);
        RefTensor& t = levels[l];
        StoredTensor map;
        map.info.name = "stride_" + std::to_string(8 << l);
        map.info.cpu = shape == Shape::rows
                           ? make_view(DataType::float32, Layout::GENERIC, {1, 3, h, w, 16})
                           : make_view(DataType::float32, Layout::NCHW, {1, 48, h, w});
        if (shape == Shape::npu)
            map.info.hw = make_view(DataType::bf16, Layout::HCWNC8, {h, 6, w, 1, 8});
        map.bytes.resize(t.data.size() * (shape == Shape::npu ? 2 : 4));
        for (size_t i = 0; i < t.data.size(); ++i) {
            const size_t cells = size_t{w} * h, cell = i / 16 % cells;
            const size_t channel = i / 16 / cells * 16 + i % 16;
            if (shape == Shape::npu) {
                const uint16_t bits = bf16_of(t.data[i]);
                t.data[i] = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
                const size_t at = ((cell / w * 6 + channel / 8) * w + cell % w) * 8 + channel % 8;
                std::memcpy(&map.bytes[2 * at], &bits, 2);
            } else {
                const size_t at = shape == Shape::rows ? i : channel * cells + cell;
                std::memcpy(&map.bytes[4 * at], &t.data[i], 4);
            }
        }
        maps.push_back(map);
    }
    return maps;
}

// Decoded in the model: [1,N,16].
RefTensor make_decoded(unsigned seed) {
    Random random(seed);
    const size_t rows = 3 * (40 * 32 + 20 * 16 + 10 * 8);
    RefTensor t{{}, rows, 16, false};
    for (size_t i = 0; i < 16 * rows; ++i) {
        const size_t column = i % 16;
        double value = random.between(-10, 330);
        if (column == 2 || column == 3) value = random.between(10, 90);
        if (column == 4) value = random.score();
        if (column == 15) value = random.between(0.5, 1);
        t.data.push_back(static_cast<float>(value));
    }
    return t;
}
std::vector<RefFace> ref_decoded(const RefTensor& t) {
    std::vector<RefFace> faces;
    for (size_t p = 0; p < t.positions; ++p) {
        RefFace face{ref_centred(t.at(p, 0), t.at(p, 1), t.at(p, 2), t.at(p, 3),
                                 double{t.at(p, 4)} * t.at(p, 15), 0),
                     {}};
        for (size_t k = 5; k < 15; k += 2) face.points.push_back({t.at(p, k), t.at(p, k + 1)});
        faces.push_back(face);
    }
    return faces;
}

FaceCase yolo_face() {
    FaceCase c{"YoloFace", "yolo-face", width, height, nullptr, nullptr, 0.3, 0.5};
    c.by_shape = false;
    c.info.file = "model.modelinfo";
    return c;
}
constexpr FrameCase whole{width, height, "as it is", {}};

TEST(YoloFace, DecodesAsTheReferenceOnFramesOfAnySize) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
        const RefTensor t = make_decoded(seed);
        const auto want = ref_face_nms(ref_decoded(t), 0.3, 0.5);
        auto levels = make_raw(seed);
        const auto want_raw = ref_face_nms(ref_raw(levels), 0.3, 0.5);
        EXPECT_GT(want.size(), 5u);
        EXPECT_GT(want_raw.size(), 5u);
        for (const FrameCase& frame : frame_cases(width, height)) {
            expect_faces(decode_case(yolo_face(), {stored_cpu(t, "output")}, frame),
                         on_frame(want, frame), frame.how);
            for (const Shape shape : {Shape::channels, Shape::rows}) {
                expect_faces(decode_case(yolo_face(), stored_maps(levels, shape), frame),
                             on_frame(want_raw, frame), frame.how);
            }
        }
    }
}

TEST(YoloFace, GivesTheSameFloatsFromTheNpusView) {
    auto levels = make_raw(4);
    const Decoded npu = decode_case(yolo_face(), stored_maps(levels, Shape::npu), whole);
    const Decoded cpu = decode_case(yolo_face(), stored_maps(levels, Shape::channels), whole);
    EXPECT_FALSE(cpu.detections.empty());
    EXPECT_TRUE(same_floats(npu, cpu));
    RefTensor t = make_decoded(4);
    const StoredTensor stored = stored_hw(t, "output", DataType::bf16);
    const Decoded rows = decode_case(yolo_face(), {stored_cpu(t, "output")}, whole);
    EXPECT_FALSE(rows.detections.empty());
    EXPECT_TRUE(same_floats(decode_case(yolo_face(), {stored}, whole), rows));
}

TEST(YoloFace, DropsAndCountsWhatIsNotFinite) {
    for (size_t column = 0; column < 16; ++column) {
        auto levels = make_raw(5);
        for (RefTensor& t : levels)
            for (size_t p = 0; p < t.positions; ++p)
                t.data[16 * p + column] = std::numeric_limits<float>::infinity();
        const Decoded decoded =
            decode_case(yolo_face(), stored_maps(levels, Shape::channels), whole);
        EXPECT_TRUE(decoded.detections.empty()) << column;
        EXPECT_GT(decoded.not_finite, 0u) << column;
    }
}

TEST(YoloFace, EndsWithNoneAndWithEachPositionACandidate) {
    RefTensor t = make_decoded(1);
    for (size_t p = 0; p < t.positions; ++p) t.data[16 * p + 4] = 0;
    EXPECT_TRUE(decode_case(yolo_face(), {stored_cpu(t, "o")}, whole).detections.empty());
    for (size_t p = 0; p < t.positions; ++p) t.data[16 * p + 4] = 1;
    const Decoded decoded = decode_case(yolo_face(), {stored_cpu(t, "o")}, whole);
    EXPECT_EQ(decoded.detections.size(), 100u);
}

TEST(YoloFace, IsRefusedWithOtherClassesStridesAnchorsOrRoles) {
    auto levels = make_raw(1);
    for (const bool maps : {false, true}) {
        const auto tensors = maps ? stored_maps(levels, Shape::rows)
                                  : std::vector{stored_cpu(make_decoded(1), "output")};
        const auto fault_of = [&](const std::function<void(ModelInfo&)>& edit) {
            FaceCase wrong = yolo_face();
            edit(wrong.info);
            DecodeFault fault;
            const auto decoder = decoder_of(wrong, tensors, {}, &fault);
            EXPECT_FALSE(decoder);
            if (decoder) return std::string();
            EXPECT_NE(decoder.error().message.find("x-vartml-"), std::string::npos);
            return fault.id;
        };
        EXPECT_EQ(fault_of([](ModelInfo& m) { m.num_classes = 11; }), "dec-classes");
        EXPECT_EQ(fault_of([](ModelInfo& m) { m.strides = {8, 16}; }), "dec-positions");
        EXPECT_EQ(fault_of([](ModelInfo& m) { m.strides = {16, 32, 64}; }), "dec-positions");
        EXPECT_EQ(fault_of([](ModelInfo& m) { m.anchors = std::vector<float>(12, 9); }),
                  "dec-positions");
        EXPECT_EQ(fault_of([](ModelInfo& m) { m.anchors = std::vector<float>(14, 9); }),
                  "dec-positions");
        const std::string name = tensors[0].info.name;
        EXPECT_EQ(fault_of([&](ModelInfo& m) { m.outputs = {{name, "", "scores"}}; }), "dec-role");
        if (!maps) continue;
        EXPECT_EQ(fault_of([&](ModelInfo& m) { m.outputs = {{name, "", "", 16}}; }),
                  "dec-positions");
    }
}

TEST(YoloFace, IsNotTakenForAYoloWithElevenClasses) {
    const TensorInfo output = stored_cpu(make_decoded(1), "output").info;
    DecodeFault fault;
    const auto unsure = Decoder::create({}, {&output, 1}, width, height, {}, &fault);
    ASSERT_FALSE(unsure);
    EXPECT_EQ(fault.id, "dec-unknown");
    EXPECT_EQ(fault.expected, "yolo-v5, yolo-face");
    ModelInfo info;
    info.num_classes = 11;
    const auto yolo = Decoder::create(info, {&output, 1}, width, height, {});
    ASSERT_TRUE(yolo) << yolo.error().message;
    EXPECT_EQ(yolo->family(), "yolo-v5");
}

}  // namespace
