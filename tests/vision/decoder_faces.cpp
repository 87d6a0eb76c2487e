// SPDX-License-Identifier: Apache-2.0
// Families of faces against their published formulas in plain loops.
#include "tests/vision/face_heads.h"
#include "tests/vision/map_tensors.h"
#include "tests/vision/yunet_reference.h"

using namespace vartml;
using namespace vartml::test;

namespace {

// Centre and side of the square priors, in the published order: stride, row, column, side.
struct RefPrior {
    double cx, cy, side_x, side_y;
};
struct RefLevel {
    int stride;
    std::vector<double> sides;
};
std::vector<RefPrior> ref_priors(uint32_t width, uint32_t height,
                                 const std::vector<RefLevel>& levels, double rounding = 0.99) {
    std::vector<RefPrior> priors;
    for (const RefLevel& level : levels) {
        const int rows = static_cast<int>(std::floor(height / double(level.stride) + rounding));
        const int columns = static_cast<int>(std::floor(width / double(level.stride) + rounding));
        for (int y = 0; y < rows; ++y)
            for (int x = 0; x < columns; ++x)
                for (const double side : level.sides)
                    priors.push_back(
                        {(x + 0.5) * level.stride, (y + 0.5) * level.stride, side, side});
    }
    return priors;
}
RefBox ref_prior_box(const RefPrior& prior, const RefTensor& loc, size_t p, double score) {
    const double cx = prior.cx + loc.at(p, 0) * 0.1 * prior.side_x;
    const double cy = prior.cy + loc.at(p, 1) * 0.1 * prior.side_y;
    const double w = prior.side_x * std::exp(loc.at(p, 2) * 0.2);
    const double h = prior.side_y * std::exp(loc.at(p, 3) * 0.2);
    return {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, 0};
}
std::vector<Point> ref_prior_points(const RefPrior& prior, const RefTensor& t, size_t p,
                                    size_t first, size_t count = 5) {
    std::vector<Point> points;
    for (size_t k = 0; k < count; ++k)
        points.push_back({prior.cx + t.at(p, first + 2 * k) * 0.1 * prior.side_x,
                          prior.cy + t.at(p, first + 2 * k + 1) * 0.1 * prior.side_y});
    return points;
}
// Background and face, as a softmax leaves them.
RefTensor two_scores(Random& random, size_t rows) {
    RefTensor t{{}, rows, 2, false};
    for (size_t p = 0; p < rows; ++p) {
        const auto face = static_cast<float>(random.score());
        t.data.insert(t.data.end(), {1 - face, face});
    }
    return t;
}

// ---- SCRFD: outputs in the exporter's order, scores, boxes, landmarks, each by stride
// --------------
template <int... strides>
constexpr size_t anchors_of = sizeof...(strides) == 5 ? 1 : 2;  // per cell

template <bool points, bool batch, int... strides>
Tensors make_scrfd(Random& random, uint32_t width, uint32_t height) {
    Tensors tensors;
    for (const char* kind : {"score_", "bbox_", "kps_"}) {
        const std::string name = kind;
        if (name == "kps_" && !points) continue;
        for (const uint32_t stride : {strides...}) {
            const size_t rows = anchors_of<strides...> * (width / stride) * (height / stride);
            const auto value = [&] {
                if (name == "score_") return random.score();
                return name == "bbox_" ? random.between(0.3, 4) : random.between(-2, 2);
            };
            const size_t columns = name == "score_" ? 1 : name == "bbox_" ? 4 : 10;
            tensors.push_back({name + std::to_string(stride), filled(rows, columns, value), batch});
        }
    }
    return tensors;
}
template <bool points, int... strides>
std::vector<RefFace> ref_scrfd(const Tensors& tensors, uint32_t width, uint32_t) {
    std::vector<RefFace> faces;
    const int steps[] = {strides...};
    const size_t levels = std::size(steps);
    for (size_t l = 0; l < levels; ++l) {
        const int s = steps[l];
        for (size_t p = 0; p < tensors[l].table.positions; ++p) {
            const auto cell = static_cast<int>(p / anchors_of<strides...>);
            const auto columns = static_cast<int>(width) / s;
            const double x = cell % columns * s, y = cell / columns * s;
            const RefTensor& d = tensors[levels + l].table;
            RefFace face{{x - d.at(p, 0) * s, y - d.at(p, 1) * s, x + d.at(p, 2) * s,
                          y + d.at(p, 3) * s, tensors[l].table.at(p, 0), 0},
                         {}};
            for (size_t k = 0; points && k < 5; ++k) {
                const RefTensor& kps = tensors[2 * levels + l].table;
                face.points.push_back({x + kps.at(p, 2 * k) * s, y + kps.at(p, 2 * k + 1) * s});
            }
            faces.push_back(face);
        }
    }
    return faces;
}

// ---- YuNet
// ------------------------------------------------------------------------------------------
Tensors make_yunet(Random& random, uint32_t width, uint32_t height) {
    Tensors tensors;
    for (const char* kind : {"cls_", "obj_", "bbox_", "kps_"}) {
        const std::string name = kind;
        for (const uint32_t stride : {8u, 16u, 32u}) {
            const size_t rows = size_t{width / stride} * (height / stride);
            if (name == "bbox_") {
                RefTensor boxes{{}, rows, 4, false};
                for (size_t i = 0; i < 4 * rows; ++i)
                    boxes.data.push_back(static_cast<float>(i % 4 < 2 ? random.between(-1, 2)
                                                                      : random.between(0, 1.5)));
                tensors.push_back({name + std::to_string(stride), boxes});
            } else {
                const auto value = [&] {
                    if (name == "cls_") return random.score();
                    return name == "obj_" ? random.between(0.3, 1.05) : random.between(-2, 2);
                };
                tensors.push_back(
                    {name + std::to_string(stride), filled(rows, name == "kps_" ? 10 : 1, value)});
            }
        }
    }
    return tensors;
}
const std::vector<RefLevel> yunet_priors = {
    {8, {10, 16, 24}}, {16, {32, 48}}, {32, {64, 96}}, {64, {128, 192, 256}}};
Tensors make_older_yunet(Random& random, uint32_t width, uint32_t height) {
    const size_t rows = ref_priors(width, height, yunet_priors, 0).size();
    return {{"loc", filled(rows, 14, [&] { return random.between(-3, 3); })},
            {"conf", two_scores(random, rows)},
            {"iou", filled(rows, 1, [&] { return random.between(-0.1, 1.1); })}};
}
std::vector<RefFace> ref_older_yunet(const Tensors& tensors, uint32_t width, uint32_t height) {
    std::vector<RefFace> faces;
    const auto priors = ref_priors(width, height, yunet_priors, 0);
    for (size_t p = 0; p < priors.size(); ++p) {
        const double iou = std::clamp(double{tensors[2].table.at(p, 0)}, 0., 1.);
        const double score = std::sqrt(tensors[1].table.at(p, 1) * iou);
        faces.push_back({ref_prior_box(priors[p], tensors[0].table, p, score),
                         ref_prior_points(priors[p], tensors[0].table, p, 4)});
    }
    return faces;
}

// ---- RetinaFace
// -------------------------------------------------------------------------------------
const std::vector<RefLevel> retina_priors = {{8, {16, 32}}, {16, {64, 128}}, {32, {256, 512}}};
Tensors make_retina(Random& random, uint32_t width, uint32_t height) {
    const size_t rows = ref_priors(width, height, retina_priors).size();
    return {{"loc", filled(rows, 4, [&] { return random.between(-3, 3); })},
            {"conf", two_scores(random, rows)},
            {"landms", filled(rows, 10, [&] { return random.between(-4, 4); })}};
}
std::vector<RefFace> ref_retina(const Tensors& tensors, uint32_t width, uint32_t height) {
    std::vector<RefFace> faces;
    const auto priors = ref_priors(width, height, retina_priors);
    for (size_t p = 0; p < priors.size(); ++p) {
        faces.push_back({ref_prior_box(priors[p], tensors[0].table, p, tensors[1].table.at(p, 1)),
                         ref_prior_points(priors[p], tensors[2].table, p, 0)});
    }
    return faces;
}

template <size_t points>
Tensors make_retina_of(Random& random, uint32_t width, uint32_t height) {
    Tensors tensors = make_retina(random, width, height);
    RefTensor& landmarks = tensors[2].table;
    if (points == 0)
        tensors.pop_back();
    else
        landmarks = filled(landmarks.positions, 2 * points, [&] { return random.between(-4, 4); });
    return tensors;
}
template <size_t points>
std::vector<RefFace> ref_retina_of(const Tensors& tensors, uint32_t width, uint32_t height) {
    std::vector<RefFace> faces;
    const auto priors = ref_priors(width, height, retina_priors);
    for (size_t p = 0; p < priors.size(); ++p) {
        faces.push_back(
            {ref_prior_box(priors[p], tensors[0].table, p, tensors[1].table.at(p, 1)), {}});
        if (points != 0)
            faces.back().points = ref_prior_points(priors[p], tensors[2].table, p, 0, points);
    }
    return faces;
}

// ---- FaceBoxes
// --------------------------------------------------------------------------------------
std::vector<RefPrior> ref_dense_priors(uint32_t width, uint32_t height) {
    std::vector<RefPrior> priors;
    const auto add = [&](double stride, const std::vector<std::pair<double, int>>& sides) {
        for (int y = 0; y < std::ceil(height / stride); ++y)
            for (int x = 0; x < std::ceil(width / stride); ++x)
                for (const auto& [side, density] : sides)
                    for (int v = 0; v < density; ++v)
                        for (int u = 0; u < density; ++u) {
                            const double first = density == 1 ? 0.5 : 0, step = 1. / density;
                            priors.push_back({(x + first + u * step) * stride,
                                              (y + first + v * step) * stride, side, side});
                        }
    };
    add(32, {{32, 4}, {64, 2}, {128, 1}});
    add(64, {{256, 1}});
    add(128, {{512, 1}});
    return priors;
}
Tensors make_faceboxes(Random& random, uint32_t width, uint32_t height) {
    const size_t rows = ref_dense_priors(width, height).size();
    return {{"loc", filled(rows, 4, [&] { return random.between(-3, 3); })},
            {"conf", two_scores(random, rows)}};
}
std::vector<RefFace> ref_faceboxes(const Tensors& tensors, uint32_t width, uint32_t height) {
    std::vector<RefFace> faces;
    const auto priors = ref_dense_priors(width, height);
    for (size_t p = 0; p < priors.size(); ++p)
        faces.push_back(
            {ref_prior_box(priors[p], tensors[0].table, p, tensors[1].table.at(p, 1)), {}});
    return faces;
}

// ---- UltraFace without its last operators
// -------------------------------------------------------------
Tensors make_raw_ultraface(Random& random, uint32_t width, uint32_t height) {
    const size_t rows = ref_priors(width, height, yunet_priors).size();
    return {{"scores", two_scores(random, rows)},
            {"boxes", filled(rows, 4, [&] { return random.between(-3, 3); })}};
}
std::vector<RefFace> ref_raw_ultraface(const Tensors& tensors, uint32_t width, uint32_t height) {
    std::vector<RefFace> faces;
    auto priors = ref_priors(width, height, yunet_priors);
    for (size_t p = 0; p < priors.size(); ++p) {
        priors[p].side_x = std::min<double>(priors[p].side_x, width);
        priors[p].side_y = std::min<double>(priors[p].side_y, height);
        faces.push_back(
            {ref_prior_box(priors[p], tensors[1].table, p, tensors[0].table.at(p, 1)), {}});
    }
    return faces;
}
ModelInfo offsets_of(const char* output) {
    ModelInfo info;
    info.outputs.push_back({.name = output, .id = "", .role = "offsets"});
    return info;
}
ModelInfo product_of(const char* output) {
    ModelInfo info;
    info.outputs.push_back({.name = output, .id = "", .role = "", .ends_in = "product"});
    return info;
}

const FaceCase face_cases[] = {
    {"Scrfd", "scrfd", 320, 256, make_scrfd<true, true, 8, 16, 32>, ref_scrfd<true, 8, 16, 32>, 0.5,
     0.4},
    {"ScrfdWithoutPoints", "scrfd", 320, 256, make_scrfd<false, true, 8, 16, 32>,
     ref_scrfd<false, 8, 16, 32>, 0.5, 0.4},
    {"ScrfdWithoutBatch", "scrfd", 320, 256, make_scrfd<true, false, 8, 16, 32>,
     ref_scrfd<true, 8, 16, 32>, 0.5, 0.4},
    {"ScrfdOfFiveStrides", "scrfd", 768, 768, make_scrfd<true, true, 8, 16, 32, 64, 128>,
     ref_scrfd<true, 8, 16, 32, 64, 128>, 0.5, 0.4},
    {"YuNet", "yunet", 320, 256, make_yunet, ref_yunet, 0.6, 0.3},
    {"YuNetBefore2023", "yunet", 320, 240, make_older_yunet, ref_older_yunet, 0.6, 0.3},
    {"RetinaFace", "retinaface", 320, 240, make_retina, ref_retina, 0.6, 0.4},
    {"RetinaFaceWithoutPoints", "retinaface", 320, 240, make_retina_of<0>, ref_retina_of<0>, 0.6,
     0.4},
    {"RetinaOfPlates", "retinaface", 320, 240, make_retina_of<4>, ref_retina_of<4>, 0.6, 0.4},
    {"FaceBoxes", "faceboxes", 320, 240, make_faceboxes, ref_faceboxes, 0.5, 0.3},
    {"UltraFaceRaw", "ultraface", 320, 240, make_raw_ultraface, ref_raw_ultraface, 0.7, 0.3,
     offsets_of("boxes")},
    {"UltraFaceRawByItsGraph", "ultraface", 320, 240, make_raw_ultraface, ref_raw_ultraface, 0.7,
     0.3, product_of("boxes")},
};
class Faces : public testing::TestWithParam<FaceCase> {
protected:
    Tensors make(unsigned seed) const {
        Random random(seed);
        return GetParam().make(random, GetParam().width, GetParam().height);
    }
    FrameCase whole() const { return {GetParam().width, GetParam().height, "as it is", {}}; }
};

TEST_P(Faces, DecodeAsTheReferenceOnFramesOfAnySize) {
    const FaceCase& c = GetParam();
    for (unsigned seed = 1; seed <= 3; ++seed) {
        const Tensors tensors = make(seed);
        const auto want = ref_face_nms(c.reference(tensors, c.width, c.height), c.score, c.iou);
        EXPECT_GT(want.size(), 5u);
        for (const FrameCase& frame : frame_cases(c.width, c.height)) {
            expect_faces(decode_case(c, stored(tensors), frame), on_frame(want, frame),
                         std::string(frame.how) + " of " + std::to_string(frame.width));
        }
    }
}

TEST_P(Faces, GiveTheSameFloatsFromTheNpusView) {
    for (unsigned seed = 11; seed <= 13; ++seed) {
        Tensors tensors = make(seed);
        const auto npu = stored_npu(tensors);
        for (NamedTensor& t : tensors) t.batch = true;
        const Decoded a = decode_case(GetParam(), npu, whole());
        const Decoded b = decode_case(GetParam(), stored(tensors), whole());
        EXPECT_FALSE(b.detections.empty());
        EXPECT_TRUE(same_floats(a, b)) << seed;
        EXPECT_EQ(a.suppressed, b.suppressed);
    }
}

TEST_P(Faces, DropAndCountWhatIsNotFinite) {
    const FaceCase& c = GetParam();
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const Tensors tensors = make(5);
    for (size_t i = 0; i < tensors.size(); ++i) {
        Tensors spoilt = tensors;
        for (float& value : spoilt[i].table.data) value = nan;
        const Decoded decoded = decode_case(c, stored(spoilt), whole());
        const Decoded before = decode_case(c, stored(tensors), whole());
        EXPECT_LE(decoded.detections.size(), before.detections.size()) << tensors[i].name;
        EXPECT_GT(decoded.not_finite, 0u) << tensors[i].name;
        EXPECT_EQ(before.not_finite, 0u);
        for (const Keypoint& point : decoded.keypoints) EXPECT_TRUE(std::isfinite(point.x));
    }
}

TEST_P(Faces, FindNothingInZeros) {
    Tensors tensors = make(1);
    for (NamedTensor& t : tensors) std::ranges::fill(t.table.data, 0.f);
    const Decoded decoded = decode_case(GetParam(), stored(tensors), whole());
    EXPECT_TRUE(decoded.detections.empty());
    EXPECT_EQ(decoded.suppressed + decoded.not_finite, 0u);
}

TEST_P(Faces, EndWithTenThousandCandidates) {
    FaceCase large = GetParam();
    large.width *= 3, large.height *= 3;
    Random random(1);
    Tensors tensors = large.make(random, large.width, large.height);
    size_t positions = 0;
    for (NamedTensor& t : tensors) {
        positions += t.table.attributes == 10 || t.table.attributes == 14 ? t.table.positions : 0;
        if (t.table.attributes < 4) std::ranges::fill(t.table.data, 0.9f);
    }
    EXPECT_TRUE(positions == 0 || positions > 10'000) << positions;
    const Decoded decoded = decode_case(large, stored(tensors), whole());
    EXPECT_EQ(decoded.detections.size(), 100u);
}

TEST_P(Faces, AreRefusedWithOtherClassesStridesAnchorsOrRoles) {
    const auto tensors = stored(make(1));
    const auto fault_of = [&](const std::function<void(ModelInfo&)>& edit) {
        FaceCase wrong = GetParam();
        edit(wrong.info);
        wrong.info.file = "model.modelinfo";
        DecodeFault fault;
        wrong.by_shape = false;
        const auto decoder = decoder_of(wrong, tensors, {}, &fault);
        EXPECT_FALSE(decoder);
        if (decoder) return std::string();
        EXPECT_EQ(decoder.error().code, ErrorCode::bad_model);
        EXPECT_NE(decoder.error().message.find("x-vartml-"), std::string::npos)
            << decoder.error().message;
        EXPECT_FALSE(fault.found.empty() || fault.expected.empty() || fault.fix.empty());
        return fault.id;
    };
    EXPECT_EQ(fault_of([](ModelInfo& m) { m.num_classes = 2; }), "dec-classes");
    EXPECT_EQ(fault_of([](ModelInfo& m) { m.strides = {8, 16}; }), "dec-positions");
    EXPECT_EQ(fault_of([](ModelInfo& m) { m.strides = {4, 8, 16}; }), "dec-positions");
    EXPECT_EQ(fault_of([](ModelInfo& m) { m.anchors = std::vector<float>(22, 16); }),
              "dec-positions");
    EXPECT_EQ(fault_of([](ModelInfo& m) { m.anchors = std::vector<float>(120, 16); }),
              "dec-positions");
    for (const StoredTensor& tensor : tensors) {
        const std::string name = tensor.info.name;
        const uint32_t columns = tensor.info.cpu.shape.back();
        const char* role = columns == 4 || columns == 14 ? "landmarks" : "boxes";
        EXPECT_EQ(fault_of([&](ModelInfo& m) { m.outputs = {{name, "", role}}; }), "dec-role")
            << name;
        EXPECT_EQ(fault_of([&](ModelInfo& m) { m.outputs = {{name, "", "embedding"}}; }),
                  "dec-role");
        if (tensors.size() > 3) {
            EXPECT_EQ(fault_of([&](ModelInfo& m) { m.outputs = {{name, "", "", 24}}; }),
                      "dec-positions");
        }
    }
}

TEST_P(Faces, AreRefusedWithoutOneOfTheirOutputs) {
    const auto tensors = stored(make(1));
    for (size_t i = 0; i < tensors.size(); ++i) {
        // RetinaFace also comes without its points.
        if (tensors[i].info.name == "landms") continue;
        auto fewer = tensors;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        FaceCase forced = GetParam();
        forced.by_shape = false;
        DecodeFault fault;
        const auto decoder = decoder_of(forced, fewer, {}, &fault);
        ASSERT_FALSE(decoder) << tensors[i].info.name;
        EXPECT_TRUE(fault.id == "dec-role" || fault.id == "dec-positions") << fault.id;
        const auto guessed = Decoder::create({}, infos_of(fewer), forced.width, forced.height, {});
        EXPECT_TRUE(!guessed || guessed->family() != forced.family);
    }
}

INSTANTIATE_TEST_SUITE_P(Families, Faces, testing::ValuesIn(face_cases), case_name);

// The labels that come with the model, and the documented way to leave the background out.
TEST(UltraFaceOfFinalBoxes, HaveLabelsWithTheirBackgroundOrWithout) {
    RefTensor boxes{std::vector<float>(4420 * 4, 0.1f), 4420, 4, false};
    RefTensor scores{std::vector<float>(4420 * 2), 4420, 2, false};
    const float box[] = {0.5f, 0.4f, 0.7f, 0.6f};
    std::copy(std::begin(box), std::end(box), boxes.data.begin() + 40);
    scores.data[21] = 0.9f;
    const StoredTensor tensors[] = {stored_cpu(scores, "scores"), stored_cpu(boxes, "boxes")};
    const TensorInfo infos[] = {tensors[0].info, tensors[1].info};
    const OutputTensor outputs[] = {tensors[0].output(), tensors[1].output()};
    struct Row {
        std::vector<std::string> labels;
        int offset;
        const char* label;
    };
    for (const Row& row : {Row{{"face"}, 0, "face"}, Row{{"BACKGROUND", "face"}, 0, "face"},
                           Row{{"face"}, -1, "face"}, Row{{}, -1, ""}}) {
        ModelInfo info;
        info.labels = row.labels;
        info.class_offset = row.offset;
        auto decoder = Decoder::create(info, infos, 320, 240, {.decoder = "ultraface"});
        ASSERT_TRUE(decoder) << decoder.error().message;
        Decoded decoded;
        ASSERT_TRUE(decoder->decode(outputs, {}, 320, 240, decoded));
        ASSERT_EQ(decoded.detections.size(), 1u) << row.offset;
        if (*row.label) {
            EXPECT_EQ(decoder->label(decoded.detections[0].class_id), row.label);
        }
    }
}

TEST(UltraFaceOfFinalBoxes, AreInTheOrderThatTheSidecarSays) {
    RefTensor boxes{std::vector<float>(4420 * 4, 0.1f), 4420, 4, false};
    RefTensor scores{std::vector<float>(4420 * 2), 4420, 2, false};
    const float box[] = {0.5f, 0.4f, 0.2f, 0.3f};
    std::copy(std::begin(box), std::end(box), boxes.data.begin() + 40);
    scores.data[21] = 0.9f;
    ModelInfo info;
    info.box_order = "cxcywh";
    const Decoded decoded =
        decode_tensors({stored_cpu(scores, "scores"), stored_cpu(boxes, "boxes")}, info, 320, 240,
                       {.decoder = "ultraface"});
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_NEAR(decoded.detections[0].x0, 0.4 * 320, 1e-3);
    EXPECT_NEAR(decoded.detections[0].y1, 0.55 * 240, 1e-3);
}

}  // namespace
