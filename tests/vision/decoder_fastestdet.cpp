// SPDX-License-Identifier: Apache-2.0
// FastestDet against its published formula, as a map of channels and as rows of cells.
#include "tests/vision/face_heads.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr uint32_t width = 352, height = 256, columns = 22, rows = 16;
constexpr size_t classes = 80;

RefTensor make(unsigned seed) {
    Random random(seed);
    RefTensor t{{}, columns * rows, 5 + classes, false};
    for (size_t p = 0; p < t.positions; ++p) {
        const bool object = random.between(0, 1) < 0.1;
        for (size_t a = 0; a < t.attributes; ++a) {
            double value = random.between(0, 0.1);
            if (a == 0) value = object ? random.between(0.6, 1) : random.between(0, 0.4);
            if (a == 1 || a == 2) value = random.between(-2, 2);
            if (a == 3 || a == 4) value = random.between(-3, 0.5);
            if (a == 5 + p % classes && object) value = random.between(0.5, 1);
            t.data.push_back(static_cast<float>(value));
        }
    }
    return t;
}

std::vector<RefFace> reference(const RefTensor& t) {
    std::vector<RefFace> boxes;
    for (size_t p = 0; p < t.positions; ++p) {
        const int best = ref_best(t, p, 5);
        const double score = std::pow(double{t.at(p, 0)}, 0.6) *
                             std::pow(double{t.at(p, 5 + static_cast<size_t>(best))}, 0.4);
        const double cx = (p % columns + std::tanh(t.at(p, 1))) / columns * width;
        const double cy = (p / columns + std::tanh(t.at(p, 2))) / rows * height;
        const double w = width / (1 + std::exp(-t.at(p, 3)));
        const double h = height / (1 + std::exp(-t.at(p, 4)));
        boxes.push_back({{cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, best}, {}});
    }
    return boxes;
}

// The map as the model gives it, in the CPU view or blocked in the NPU's; `t` becomes what it
// holds.
StoredTensor stored_map(RefTensor& t, bool npu) {
    StoredTensor stored;
    stored.info.name = "output";
    const auto channels = static_cast<uint32_t>(t.attributes);
    stored.info.cpu = make_view(DataType::float32, Layout::NCHW, {1, channels, rows, columns});
    if (!npu) {
        stored.bytes.resize(t.data.size() * sizeof(float));
        for (size_t p = 0; p < t.positions; ++p)
            for (size_t a = 0; a < channels; ++a)
                std::memcpy(&stored.bytes[(a * t.positions + p) * 4], &t.data[p * channels + a], 4);
        return stored;
    }
    const uint32_t blocks = (channels + 7) / 8;
    stored.info.hw = make_view(DataType::bf16, Layout::HCWNC8, {rows, blocks, columns, 1, 8});
    stored.bytes.assign(size_t{rows} * blocks * columns * 16, 0x7b);
    for (size_t p = 0; p < t.positions; ++p) {
        for (size_t a = 0; a < channels; ++a) {
            const uint16_t bits = bf16_of(t.data[p * channels + a]);
            const size_t at = ((p / columns * blocks + a / 8) * columns + p % columns) * 8 + a % 8;
            std::memcpy(&stored.bytes[2 * at], &bits, 2);
            t.data[p * channels + a] = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
        }
    }
    return stored;
}

FaceCase fastestdet() {
    FaceCase c{"FastestDet", "fastestdet", width, height, nullptr, nullptr, 0.65, 0.45};
    c.by_shape = false;
    return c;
}
constexpr FrameCase whole{width, height, "as it is", {}};

TEST(FastestDet, DecodesAsTheReferenceOnFramesOfAnySize) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
        RefTensor t = make(seed);
        const auto want = ref_face_nms(reference(t), 0.65, 0.45);
        EXPECT_GT(want.size(), 5u);
        for (const FrameCase& frame : frame_cases(width, height)) {
            for (const StoredTensor& tensor : {stored_map(t, false), stored_cpu(t, "output")}) {
                expect_faces(decode_case(fastestdet(), {tensor}, frame), on_frame(want, frame),
                             frame.how);
            }
        }
    }
}

// The same boxes as the model gives them where it makes them itself.
TEST(FastestDet, ReadsBoxesThatAreMadeInsideTheModel) {
    RefTensor t = make(4);
    const auto want = ref_face_nms(reference(t), 0.65, 0.45);
    EXPECT_GT(want.size(), 5u);
    const std::vector<RefFace> boxes = reference(t);
    for (size_t p = 0; p < t.positions; ++p) {
        const auto& box = boxes[p].box;
        float* const row = &t.data[p * t.attributes];
        row[4] = row[0];
        row[0] = static_cast<float>((box.x0 + box.x1) / 2);
        row[1] = static_cast<float>((box.y0 + box.y1) / 2);
        row[2] = static_cast<float>(box.x1 - box.x0);
        row[3] = static_cast<float>(box.y1 - box.y0);
    }
    const Decoded found = decode_case(fastestdet(), {stored_cpu(t, "output")}, whole);
    expect_faces(found, on_frame(want, whole), "boxes of the model");
}

TEST(FastestDet, GivesTheSameFloatsFromTheNpusView) {
    RefTensor t = make(7);
    const Decoded npu = decode_case(fastestdet(), {stored_map(t, true)}, whole);
    const Decoded cpu = decode_case(fastestdet(), {stored_map(t, false)}, whole);
    EXPECT_FALSE(cpu.detections.empty());
    EXPECT_TRUE(same_floats(npu, cpu));
    const StoredTensor table = stored_hw(t, "output", DataType::int8, {1 / 60., 4});
    EXPECT_TRUE(same_floats(decode_case(fastestdet(), {table}, whole),
                            decode_case(fastestdet(), {stored_cpu(t, "output")}, whole)));
}

TEST(FastestDet, DropsAndCountsWhatIsNotFinite) {
    for (const size_t attribute : {0u, 1u, 2u, 3u, 4u, 9u}) {
        RefTensor t = make(2);
        for (size_t p = 0; p < t.positions; ++p)
            t.data[p * t.attributes + attribute] = std::numeric_limits<float>::infinity();
        const Decoded decoded = decode_case(fastestdet(), {stored_map(t, false)}, whole);
        EXPECT_TRUE(decoded.detections.empty()) << attribute;
        EXPECT_GT(decoded.not_finite, 0u) << attribute;
    }
}

TEST(FastestDet, FindsNothingInZerosAndEndsWithEachCellACandidate) {
    RefTensor t = make(1);
    std::ranges::fill(t.data, 0.f);
    EXPECT_TRUE(decode_case(fastestdet(), {stored_map(t, false)}, whole).detections.empty());
    std::ranges::fill(t.data, 1.f);
    EXPECT_EQ(decode_case(fastestdet(), {stored_map(t, false)}, whole, {.nms = Nms::off})
                  .detections.size(),
              100u);
}

TEST(FastestDet, IsRefusedWithOtherClassesOrStrides) {
    RefTensor t = make(1);
    const std::vector<StoredTensor> tensors{stored_map(t, false)};
    const auto fault_of = [&](void (*edit)(ModelInfo&)) {
        FaceCase wrong = fastestdet();
        edit(wrong.info);
        DecodeFault fault;
        EXPECT_FALSE(decoder_of(wrong, tensors, {}, &fault));
        return fault.id + " " + fault.fix;
    };
    EXPECT_NE(fault_of([](ModelInfo& m) { m.num_classes = 20; }).find("dec-classes"),
              std::string::npos);
    EXPECT_EQ(fault_of([](ModelInfo& m) { m.strides = {8}; }), "dec-positions x-vartml-strides=…");
    EXPECT_EQ(fault_of([](ModelInfo& m) { m.strides = {16, 32}; }),
              "dec-positions x-vartml-strides=…");
}

TEST(FastestDet, IsKnownByTheShapeOfItsRows) {
    const TensorInfo output = stored_cpu(make(1), "output").info;
    const auto decoder = Decoder::create({}, {&output, 1}, width, height, {});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->family(), "fastestdet");
    EXPECT_EQ(decoder->classes(), 80u);
}

}  // namespace
