// SPDX-License-Identifier: Apache-2.0
// BlazeFace and BlazePalm: anchors that are places only, and boxes that become their mean.
#include "tests/vision/face_heads.h"

using namespace vartml;
using namespace vartml::test;

namespace {

// Cells of a stride, and how many anchors each has.
struct RefAnchors {
    int stride, per_cell;
};
template <int points, bool joined>
Tensors make_blaze(Random& random, uint32_t side, const std::vector<RefAnchors>& levels) {
    Tensors scores, regressors;
    const auto add = [&](size_t rows, const std::string& name) {
        // Before the sigmoid: 0.75 lies at 1.0986.
        scores.push_back({"classificator" + name, filled(rows, 1, [&] {
                              return random.between(0, 1) < 0.06 ? random.between(0, 6)
                                                                 : random.between(-120, -1);
                          })});
        RefTensor t{{}, rows, 4 + 2 * points, false};
        for (size_t i = 0; i < rows * t.attributes; ++i) {
            const size_t column = i % t.attributes;
            t.data.push_back(static_cast<float>(column == 2 || column == 3
                                                    ? random.between(10, side / 2.)
                                                    : random.between(-12, 12)));
        }
        regressors.push_back({"regressor" + name, t});
    };
    size_t all = 0;
    for (const auto& [stride, per_cell] : levels) {
        const size_t cells = side / static_cast<uint32_t>(stride);
        const size_t rows = cells * cells * static_cast<size_t>(per_cell);
        if (!joined) add(rows, "_" + std::to_string(stride));
        all += rows;
    }
    if (joined) add(all, "s");
    scores.insert(scores.end(), regressors.begin(), regressors.end());
    return scores;
}

std::vector<RefFace> ref_blaze(const Tensors& tensors, uint32_t side,
                               const std::vector<RefAnchors>& levels) {
    const size_t parts = tensors.size() / 2;
    std::vector<RefFace> faces;
    size_t part = 0, row = 0;
    for (const auto& [stride, per_cell] : levels) {
        const int cells = static_cast<int>(side) / stride;
        for (int i = 0; i < cells * cells * per_cell; ++i, ++row) {
            if (row == tensors[part].table.positions) ++part, row = 0;
            const int cell = i / per_cell;
            const double x = (cell % cells + 0.5) * stride, y = (cell / cells + 0.5) * stride;
            const RefTensor& t = tensors[parts + part].table;
            const double raw = std::clamp(double{tensors[part].table.at(row, 0)}, -100., 100.);
            const double cx = x + t.at(row, 0), cy = y + t.at(row, 1);
            const double w = t.at(row, 2), h = t.at(row, 3);
            RefFace face{
                {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, 1 / (1 + std::exp(-raw)), 0}, {}};
            for (size_t k = 4; k < t.attributes; k += 2)
                face.points.push_back({x + t.at(row, k), y + t.at(row, k + 1)});
            faces.push_back(face);
        }
    }
    return faces;
}

// The best box and all that overlap it become one, at their mean by score; then the next.
std::vector<RefFace> ref_weighted(std::vector<RefFace> faces, double score, double iou) {
    std::erase_if(faces, [&](const RefFace& face) { return !(face.box.score >= score); });
    std::stable_sort(faces.begin(), faces.end(),
                     [](const RefFace& a, const RefFace& b) { return a.box.score > b.box.score; });
    std::vector<RefFace> means;
    while (!faces.empty()) {
        std::vector<RefFace> same{faces.front()}, others;
        for (size_t i = 1; i < faces.size(); ++i)
            (ref_iou(faces[0].box, faces[i].box) > iou ? same : others).push_back(faces[i]);
        RefFace mean = faces.front();
        const auto average = [&](auto&& number) {
            double sum = 0, weights = 0;
            for (RefFace& face : same)
                sum += number(face) * face.box.score, weights += face.box.score;
            number(mean) = sum / weights;
        };
        average([](RefFace& f) -> double& { return f.box.x0; });
        average([](RefFace& f) -> double& { return f.box.y0; });
        average([](RefFace& f) -> double& { return f.box.x1; });
        average([](RefFace& f) -> double& { return f.box.y1; });
        for (size_t k = 0; k < mean.points.size(); ++k)
            for (size_t axis = 0; axis < 2; ++axis)
                average([&](RefFace& f) -> double& { return f.points[k][axis]; });
        means.push_back(mean);
        faces = others;
    }
    return means;
}

struct BlazeCase {
    const char* name;
    uint32_t side;
    std::vector<RefAnchors> levels;
    Tensors (*make)(Random&, uint32_t, const std::vector<RefAnchors>&);
    std::vector<int> strides = {};  // of the sidecar
};
// N: 896, 896, 2304, 2944, 2016 as published.
const BlazeCase blaze_cases[] = {
    {"FrontCamera", 128, {{8, 2}, {16, 6}}, make_blaze<6, true>},
    {"FrontCameraByLevel", 128, {{8, 2}, {16, 6}}, make_blaze<6, false>},
    {"BackCamera", 256, {{16, 2}, {32, 6}}, make_blaze<6, true>},
    {"FullRange", 192, {{4, 1}}, make_blaze<6, true>},
    {"PalmOf256", 256, {{8, 2}, {16, 2}, {32, 6}}, make_blaze<7, true>},
    {"PalmOf192", 192, {{8, 2}, {16, 6}}, make_blaze<7, true>},
    {"SidecarsStrides", 160, {{8, 2}, {32, 4}}, make_blaze<6, true>, {8, 32, 32}},
};
class BlazeFace : public testing::TestWithParam<BlazeCase> {
protected:
    FaceCase face_case() const {
        FaceCase c{GetParam().name,
                   "blazeface",
                   GetParam().side,
                   GetParam().side,
                   nullptr,
                   nullptr,
                   0.75,
                   0.3};
        c.info.strides = GetParam().strides;
        c.info.file = "model.modelinfo";
        return c;
    }
    Tensors make(unsigned seed) const {
        Random random(seed);
        return GetParam().make(random, GetParam().side, GetParam().levels);
    }
    FrameCase whole() const { return {GetParam().side, GetParam().side, "as it is", {}}; }
};

TEST_P(BlazeFace, DecodesAsTheReferenceOnFramesOfAnySize) {
    const BlazeCase& c = GetParam();
    for (unsigned seed = 1; seed <= 3; ++seed) {
        const Tensors tensors = make(seed);
        const auto all = ref_blaze(tensors, c.side, c.levels);
        const auto want = ref_weighted(all, 0.75, 0.3);
        EXPECT_GT(want.size(), 3u);
        for (const FrameCase& frame : frame_cases(c.side, c.side)) {
            expect_faces(decode_case(face_case(), stored(tensors), frame), on_frame(want, frame),
                         std::string(frame.how) + " of " + std::to_string(frame.width));
        }
        const Decoded plain = decode_case(face_case(), stored(tensors), whole(), {.nms = Nms::off});
        expect_faces(plain, on_frame(ref_face_nms(all, 0.75, 1), whole()), "without NMS");
    }
}

TEST_P(BlazeFace, CountsWhatItMerged) {
    const auto all = ref_blaze(make(2), GetParam().side, GetParam().levels);
    const size_t candidates = ref_face_nms(all, 0.75, 1).size();
    const Decoded decoded = decode_case(face_case(), stored(make(2)), whole());
    EXPECT_EQ(decoded.suppressed, candidates - ref_weighted(all, 0.75, 0.3).size());
    EXPECT_GT(decoded.suppressed, 0u);
}

TEST_P(BlazeFace, GivesTheSameFloatsFromTheNpusView) {
    Tensors tensors = make(4);
    for (NamedTensor& t : tensors)  // what int8 holds
        for (float& value : t.table.data)
            if (t.table.attributes == 1) value = std::clamp(value / 3, -1.f, 1.f);
    const auto npu = stored_npu(tensors);
    const DecodeOptions options{.score_threshold = 0.6};
    const Decoded a = decode_case(face_case(), npu, whole(), options);
    const Decoded b = decode_case(face_case(), stored(tensors), whole(), options);
    EXPECT_FALSE(b.detections.empty());
    EXPECT_TRUE(same_floats(a, b));
}

TEST_P(BlazeFace, DropsAndCountsWhatIsNotFinite) {
    const Tensors tensors = make(5);
    for (size_t i = 0; i < tensors.size(); ++i) {
        Tensors spoilt = tensors;
        for (float& value : spoilt[i].table.data) value = std::numeric_limits<float>::infinity();
        const Decoded decoded = decode_case(face_case(), stored(spoilt), whole());
        EXPECT_GT(decoded.not_finite, 0u) << tensors[i].name;
        for (const Keypoint& point : decoded.keypoints) EXPECT_TRUE(std::isfinite(point.x));
    }
}

TEST_P(BlazeFace, EndsWithEachPositionACandidate) {
    Tensors tensors = make(1);
    for (NamedTensor& t : tensors)
        if (t.table.attributes == 1) std::ranges::fill(t.table.data, 5.f);
    const Decoded decoded = decode_case(face_case(), stored(tensors), whole());
    EXPECT_LE(decoded.detections.size(), 100u);
    EXPECT_GT(decoded.suppressed, 100u);
}

TEST_P(BlazeFace, IsRefusedWithOtherClassesStridesAnchorsOrRoles) {
    const auto tensors = stored(make(1));
    const auto fault_of = [&](const std::function<void(ModelInfo&)>& edit) {
        FaceCase wrong = face_case();
        wrong.by_shape = false;
        edit(wrong.info);
        DecodeFault fault;
        const auto decoder = decoder_of(wrong, tensors, {}, &fault);
        EXPECT_FALSE(decoder);
        return fault.id;
    };
    EXPECT_EQ(fault_of([](ModelInfo& m) { m.num_classes = 3; }), "dec-classes");
    EXPECT_EQ(fault_of([](ModelInfo& m) { m.strides = {8, 16}; }), "dec-positions");
    EXPECT_EQ(fault_of([](ModelInfo& m) { m.anchors = std::vector<float>(120, 1); }),
              "dec-positions");
    for (const StoredTensor& tensor : tensors) {
        const char* role = tensor.info.cpu.shape.back() == 1 ? "boxes" : "scores";
        const std::string name = tensor.info.name;
        EXPECT_EQ(fault_of([&](ModelInfo& m) { m.outputs = {{name, "", role}}; }), "dec-role");
    }
}
INSTANTIATE_TEST_SUITE_P(Published, BlazeFace, testing::ValuesIn(blaze_cases),
                         [](const auto& c) { return std::string(c.param.name); });

}  // namespace
