// SPDX-License-Identifier: Apache-2.0
// SSD heads that leave selection to the decoder, against the published formulas.
#include "tests/vision/face_heads.h"
#include "tests/vision/map_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

struct RefPrior {
    double cx, cy, w, h;  // 0 to 1 of the input
};

// The anchors of TensorFlow's detection API (ssd_anchor_generator with
// reduce_boxes_in_lowest_layer) for grids that halve, from its definition in relative numbers.
std::vector<RefPrior> ref_tensorflow(uint32_t width, uint32_t height) {
    const double scales[] = {0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.0};
    const double shorter = std::min(width, height);
    std::vector<RefPrior> priors;
    for (int level = 0; level < 6; ++level) {
        const int stride = 16 << level;
        const int columns = static_cast<int>(std::ceil(double(width) / stride));
        const int rows = static_cast<int>(std::ceil(double(height) / stride));
        const double s = scales[level], between = std::sqrt(s * scales[level + 1]);
        std::vector<std::pair<double, double>> boxes = {
            // scale, aspect ratio
            {s, 1}, {s, 2}, {s, 0.5}, {s, 3}, {s, 0.3333}, {between, 1}};
        if (level == 0) boxes = {{0.1, 1}, {s, 2}, {s, 0.5}};
        for (int y = 0; y < rows; ++y)
            for (int x = 0; x < columns; ++x)
                for (const auto& [scale, ratio] : boxes)
                    priors.push_back({(x + 0.5) / columns, (y + 0.5) / rows,
                                      scale * std::sqrt(ratio) * shorter / width,
                                      scale / std::sqrt(ratio) * shorter / height});
    }
    return priors;
}

// The default boxes of 300x300: per level its cells, the pixels between two, least and greatest
// size.
std::vector<RefPrior> ref_squares(bool pytorch) {
    const int cells[] = {19, 10, 5, 3, 2, 1};
    const double shrinkage[] = {16, 32, 64, 100, 150, 300};
    const double sizes[] = {60, 105, 150, 195, 240, 285, pytorch ? 330. : 300.};
    std::vector<RefPrior> priors;
    for (int level = 0; level < 6; ++level) {
        const double step = pytorch ? shrinkage[level] / 300 : 1. / cells[level];
        const double least = sizes[level] / 300, root = std::sqrt(sizes[level] * sizes[level + 1]);
        std::vector<std::pair<double, double>> boxes = {{least, least}};
        const bool reduced = level == 0 && !pytorch;
        if (!reduced) boxes.push_back({root / 300, root / 300});
        for (const double ratio : {2., 3.}) {
            if (reduced && ratio == 3) continue;
            const double r = std::sqrt(ratio);
            boxes.push_back({least * r, least / r});
            boxes.push_back({least / r, least * r});
        }
        for (int y = 0; y < cells[level]; ++y)
            for (int x = 0; x < cells[level]; ++x)
                for (const auto& [w, h] : boxes) {
                    RefPrior prior{(x + 0.5) * step, (y + 0.5) * step, w, h};
                    if (pytorch) {  // it cuts all four numbers
                        for (double* number : {&prior.cx, &prior.cy, &prior.w, &prior.h})
                            *number = std::min(*number, 1.);
                    }
                    priors.push_back(prior);
                }
    }
    return priors;
}

constexpr size_t classes = 5;  // and the background

template <std::vector<RefPrior> (*priors)(uint32_t, uint32_t), bool logits>
Tensors make_ssd(Random& random, uint32_t width, uint32_t height) {
    const size_t rows = priors(width, height).size();
    RefTensor scores{{}, rows, classes + 1, false};
    for (size_t p = 0; p < rows; ++p) {
        const auto object = static_cast<float>(random.score());
        const auto best = static_cast<size_t>(random.between(1, classes + 0.99));
        for (size_t c = 0; c <= classes; ++c) {
            float score = c == 0 ? 1 - object : c == best ? object : object / 10;
            scores.data.push_back(logits ? 4 * std::log(score + 0.001f) : score);
        }
    }
    return {{"raw_boxes", filled(rows, 4, [&] { return random.between(-2, 2); })},
            {"raw_scores", scores}};
}

template <std::vector<RefPrior> (*make_priors)(uint32_t, uint32_t), bool y_first, bool logits>
std::vector<RefFace> ref_ssd(const Tensors& tensors, uint32_t width, uint32_t height) {
    std::vector<RefFace> boxes;
    const auto priors = make_priors(width, height);
    const RefTensor &loc = tensors[0].table, &scores = tensors[1].table;
    for (size_t p = 0; p < priors.size(); ++p) {
        const RefPrior& prior = priors[p];
        const size_t x = y_first ? 1 : 0, y = 1 - x;
        const double cx = (prior.cx + loc.at(p, x) * 0.1 * prior.w) * width;
        const double cy = (prior.cy + loc.at(p, y) * 0.1 * prior.h) * height;
        const double w = prior.w * std::exp(loc.at(p, x + 2) * 0.2) * width;
        const double h = prior.h * std::exp(loc.at(p, y + 2) * 0.2) * height;
        size_t best = 1;
        double sum = 0;
        for (size_t c = 0; c <= classes; ++c) {
            if (c > 0 && scores.at(p, c) > scores.at(p, best)) best = c;
            sum += std::exp(double{scores.at(p, c)});
        }
        const double score =
            logits ? std::exp(double{scores.at(p, best)}) / sum : double{scores.at(p, best)};
        boxes.push_back(
            {{cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, static_cast<int>(best) - 1},
             {}});
    }
    return boxes;
}
std::vector<RefPrior> ref_caffe(uint32_t, uint32_t) {
    return ref_squares(false);
}
std::vector<RefPrior> ref_pytorch(uint32_t, uint32_t) {
    return ref_squares(true);
}
std::vector<RefPrior> ref_anchors(uint32_t width, uint32_t height) {  // two per cell, of 16 and 32
    std::vector<RefPrior> priors;
    for (const uint32_t stride : {16u, 32u})
        for (uint32_t y = 0; y < height / stride; ++y)
            for (uint32_t x = 0; x < width / stride; ++x)
                for (const auto& [w, h] : {std::pair(2. * stride, 1. * stride), {40., 70.}})
                    priors.push_back({(x + 0.5) * stride / width, (y + 0.5) * stride / height,
                                      w / width, h / height});
    return priors;
}

ModelInfo sidecar(void (*edit)(ModelInfo&)) {
    ModelInfo info;
    info.file = "model.modelinfo";
    edit(info);
    return info;
}

const FaceCase ssd_cases[] = {
    {"TensorFlow300", "ssd", 300, 300, make_ssd<ref_tensorflow, false>,
     ref_ssd<ref_tensorflow, true, false>, 0.3, 0.45},
    {"TensorFlow320x240", "ssd", 320, 240, make_ssd<ref_tensorflow, false>,
     ref_ssd<ref_tensorflow, true, false>, 0.3, 0.45},
    {"TensorFlowOfLogits", "ssd", 300, 300, make_ssd<ref_tensorflow, true>,
     ref_ssd<ref_tensorflow, true, true>, 0.3, 0.45,
     sidecar([](ModelInfo& m) { m.activation = "softmax"; })},
    {"Caffe", "ssd", 300, 300, make_ssd<ref_caffe, false>, ref_ssd<ref_caffe, false, false>, 0.3,
     0.45, sidecar([](ModelInfo& m) { m.box_order = "cxcywh"; })},
    {"PyTorchUndecoded", "ssd", 300, 300, make_ssd<ref_pytorch, false>,
     ref_ssd<ref_pytorch, false, false>, 0.3, 0.45,
     sidecar([](ModelInfo& m) { m.outputs = {{"raw_boxes", "", "offsets"}}; })},
    {"AnchorsOfTheSidecar", "ssd", 320, 256, make_ssd<ref_anchors, false>,
     ref_ssd<ref_anchors, false, false>, 0.3, 0.45, sidecar([](ModelInfo& m) {
         m.strides = {16, 32};
         m.anchors = {32, 16, 40, 70, 64, 32, 40, 70};
     })},
};
class Ssd : public testing::TestWithParam<FaceCase> {
protected:
    Tensors make(unsigned seed) const {
        Random random(seed);
        return GetParam().make(random, GetParam().width, GetParam().height);
    }
};

TEST_P(Ssd, DecodesAsTheReferenceOnFramesOfAnySize) {
    const FaceCase& c = GetParam();
    const Tensors tensors = make(3);
    const auto want = ref_face_nms(c.reference(tensors, c.width, c.height), c.score, c.iou);
    EXPECT_GT(want.size(), 5u);
    for (const FrameCase& frame : frame_cases(c.width, c.height)) {
        expect_faces(decode_case(c, stored(tensors), frame), on_frame(want, frame),
                     std::string(frame.how) + " of " + std::to_string(frame.width));
    }
}

TEST_P(Ssd, GivesTheSameFloatsFromTheNpusView) {
    const FaceCase& c = GetParam();
    Tensors tensors = make(4);
    const FrameCase whole{c.width, c.height, "as it is", {}};
    const auto npu = stored_npu(tensors);
    const Decoded a = decode_case(c, npu, whole), b = decode_case(c, stored(tensors), whole);
    EXPECT_FALSE(b.detections.empty());
    EXPECT_TRUE(same_floats(a, b));
}

TEST_P(Ssd, DropsAndCountsWhatIsNotFinite) {
    const FaceCase& c = GetParam();
    const FrameCase whole{c.width, c.height, "as it is", {}};
    for (const size_t i : {0u, 1u}) {
        Tensors tensors = make(5);
        for (float& value : tensors[i].table.data) value = std::numeric_limits<float>::infinity();
        const Decoded decoded = decode_case(c, stored(tensors), whole);
        EXPECT_TRUE(decoded.detections.empty());
        EXPECT_GT(decoded.not_finite, 0u);
    }
}

TEST_P(Ssd, EndsWithEachPositionACandidate) {
    const FaceCase& c = GetParam();
    Tensors tensors = make(6);
    for (size_t i = 0; i < tensors[1].table.data.size(); ++i)
        tensors[1].table.data[i] = i % (classes + 1) == 0 ? -9.f : 0.9f;
    const Decoded decoded =
        decode_case(c, stored(tensors), {c.width, c.height, "", {}}, {.score_threshold = 0.1});
    EXPECT_FALSE(decoded.detections.empty());
    EXPECT_GT(decoded.detections.size() + decoded.suppressed, 100u);
}
INSTANTIATE_TEST_SUITE_P(Priors, Ssd, testing::ValuesIn(ssd_cases), case_name);

struct Refusal {
    const char* why;
    std::vector<std::vector<uint32_t>> shapes;
    void (*edit)(ModelInfo&);
    const char* id;
    const char* words;
};
const Refusal refusals[] = {
    {"priors of an unknown model",
     {{1, 8732, 4}, {1, 8732, 21}},
     [](ModelInfo&) {},
     "dec-positions",
     "8732 positions, whose priors are not known"},
    {"20 labels, 90 classes",
     {{1, 1917, 4}, {1, 1917, 91}},
     [](ModelInfo& m) { m.num_classes = 20; },
     "dec-classes",
     "90 classes"},
    {"the background counted, 91 classes with it",
     {{1, 1917, 4}, {1, 1917, 91}},
     [](ModelInfo& m) { m.num_classes = 91, m.class_offset = -1; },
     "dec-classes",
     "x-vartml-num-classes=91"},
    {"the background behind the classes and before them",
     {{1, 1917, 4}, {1, 1917, 81}},
     [](ModelInfo& m) {
         m.num_classes = 80, m.class_offset = -1, m.background = "last",
         m.outputs = {{"a", "", "boxes"}};
     },
     "dec-classes",
     "80 classes"},
    {"strides without anchors",
     {{1, 1917, 4}, {1, 1917, 91}},
     [](ModelInfo& m) { m.strides = {16, 32, 64, 128, 256, 512}; },
     "dec-positions",
     "x-vartml-anchors"},
    {"anchors of other strides",
     {{1, 1917, 4}, {1, 1917, 91}},
     [](ModelInfo& m) { m.strides = {16, 32}, m.anchors = {10, 10, 20, 20}; },
     "dec-positions",
     "gives 461"},
    {"three anchors for two strides",
     {{1, 1917, 4}, {1, 1917, 91}},
     [](ModelInfo& m) { m.strides = {16, 32}, m.anchors = {10, 10, 20, 20, 30, 30}; },
     "dec-positions",
     "3 anchors for 2 strides"},
    {"scores called boxes",
     {{1, 1917, 4}, {1, 1917, 91}},
     [](ModelInfo& m) { m.outputs = {{"b", "", "boxes"}}; },
     "dec-role",
     "x-vartml-role=boxes"},
    {"three classes: nothing tells scores from boxes",
     {{1, 1917, 4}, {1, 1917, 4}},
     [](ModelInfo&) {},
     "dec-role",
     "x-vartml-role=boxes"},
    {"nothing but the background",
     {{1, 100, 4}, {1, 100, 1}},
     [](ModelInfo& m) { m.background = "last", m.outputs = {{"a", "", "boxes"}}; },
     "dec-role",
     "no output is the scores"},
    {"nothing but the background in one table",
     {{1, 100, 5}},
     [](ModelInfo& m) { m.background = "last", m.outputs = {{"a", "", "boxes"}}; },
     "dec-classes",
     "no class beside the background"},
    {"scores of other positions",
     {{1, 1917, 4}, {1, 1900, 91}},
     [](ModelInfo&) {},
     "dec-positions",
     "1900"},
};
class SsdRefusal : public testing::TestWithParam<Refusal> {};
TEST_P(SsdRefusal, NamesTheLineToCorrect) {
    const Refusal& c = GetParam();
    std::vector<TensorInfo> outputs;
    for (const auto& shape : c.shapes) {
        outputs.push_back({});
        outputs.back().name = std::string(1, static_cast<char>('a' + outputs.size() - 1));
        outputs.back().cpu = make_view(DataType::float32, Layout::NHW, shape);
    }
    ModelInfo info;
    c.edit(info);
    DecodeFault fault;
    const auto decoder = Decoder::create(info, outputs, 300, 300, {.decoder = "ssd"}, &fault);
    ASSERT_FALSE(decoder) << c.why;
    EXPECT_EQ(fault.id, c.id) << c.why << ": " << decoder.error().message;
    EXPECT_NE(decoder.error().message.find(c.words), std::string::npos)
        << c.why << ": " << decoder.error().message;
}
INSTANTIATE_TEST_SUITE_P(Table, SsdRefusal, testing::ValuesIn(refusals));

TEST(SsdOfFinalBoxes, AreInPixelsWhereTheSidecarSaysSo) {
    RefTensor boxes{std::vector<float>(500 * 4), 500, 4, false};
    RefTensor scores{std::vector<float>(500 * 3), 500, 3, false};
    const float corners[] = {75, 150, 150, 225};
    std::copy(std::begin(corners), std::end(corners), boxes.data.begin() + 40);
    scores.data[3 * 10 + 2] = 0.9f;
    const StoredTensor tensors[] = {stored_cpu(scores, "scores"), stored_cpu(boxes, "boxes")};
    const TensorInfo infos[] = {tensors[0].info, tensors[1].info};
    const OutputTensor outputs[] = {tensors[0].output(), tensors[1].output()};
    ModelInfo info;
    info.outputs = {{"boxes", "", "boxes"}};
    for (const char* unit : {"pixel", ""}) {
        info.box_unit = unit;
        auto decoder = Decoder::create(info, infos, 300, 300, {.decoder = "ssd"});
        ASSERT_TRUE(decoder) << decoder.error().message;
        Decoded decoded;
        ASSERT_TRUE(decoder->decode(outputs, {}, 300, 300, decoded));
        EXPECT_EQ(decoder->doubt().empty(), *unit != 0) << decoder->doubt();
        ASSERT_EQ(decoded.detections.size(), *unit ? 1u : 0u);
        if (*unit == 0) continue;
        EXPECT_EQ(decoded.detections[0].x0, 75);
        EXPECT_EQ(decoded.detections[0].y1, 225);
    }
}

TEST(SsdOfFinalBoxes, AreCentreAndSizeWhereTheSidecarSaysSo) {
    for (const uint32_t rows : {20u, 3000u}) {  // any, and as many as PyTorch's have
        RefTensor boxes{std::vector<float>(rows * 4, 0.1f), rows, 4, false};
        RefTensor scores{std::vector<float>(rows * 6), rows, 6, false};
        const float box[] = {0.5f, 0.4f, 0.2f, 0.3f};
        std::copy(std::begin(box), std::end(box), boxes.data.begin() + 40);
        scores.data[6 * 10 + 2] = 0.9f;
        const StoredTensor tensors[] = {stored_cpu(boxes, "pred_boxes"),
                                        stored_cpu(scores, "scores")};
        const TensorInfo infos[] = {tensors[0].info, tensors[1].info};
        const OutputTensor outputs[] = {tensors[0].output(), tensors[1].output()};
        ModelInfo info;
        info.box_order = "cxcywh";
        if (rows == 20) info.outputs = {{"pred_boxes", "", "boxes"}};
        auto decoder = Decoder::create(info, infos, 300, 300, {.decoder = "ssd"});
        ASSERT_TRUE(decoder) << decoder.error().message;
        Decoded decoded;
        ASSERT_TRUE(decoder->decode(outputs, {}, 300, 300, decoded));
        EXPECT_EQ(decoder->doubt(), "");
        ASSERT_EQ(decoded.detections.size(), 1u);
        EXPECT_NEAR(decoded.detections[0].x0, 120, 1e-3);
        EXPECT_NEAR(decoded.detections[0].y0, 75, 1e-3);
        EXPECT_NEAR(decoded.detections[0].x1, 180, 1e-3);
        EXPECT_NEAR(decoded.detections[0].y1, 165, 1e-3);
    }
}

// DAMO-YOLO, YOLO-NAS, PP-YOLOE, a split YOLO v8, RT-DETR: class 0 is a class, and the tables lie
// either way or are one.
TEST(SsdOfFinalBoxes, HaveNoBackgroundWhereTheClassesAreAsManyAsTheScores) {
    constexpr size_t rows = 300, classes = 5, row = 10;
    const float corners[] = {0.25f, 0.5f, 0.5f, 0.75f};
    for (const bool exchanged_boxes : {false, true}) {
        for (const bool exchanged_scores : {false, true}) {
            for (const bool one : {false, true}) {
                RefTensor boxes{std::vector<float>(rows * 4, 0.1f), rows, 4, exchanged_boxes};
                RefTensor scores{std::vector<float>(rows * classes), rows, classes,
                                 exchanged_scores};
                RefTensor both{std::vector<float>(rows * 9), rows, 9, false};
                for (size_t k = 0; k < 4; ++k) {
                    boxes.data[exchanged_boxes ? k * rows + row : row * 4 + k] = corners[k];
                    both.data[row * 9 + k] = corners[k];
                }
                scores.data[exchanged_scores ? row : row * classes] = 0.9f;
                both.data[row * 9 + 4] = 0.9f;
                std::vector<StoredTensor> tensors{stored_cpu(scores, "scores"),
                                                  stored_cpu(boxes, "boxes")};
                if (one) tensors = {stored_cpu(both, "boxes")};
                ModelInfo info;
                info.outputs = {{"boxes", "", "boxes"}};
                info.num_classes = classes;
                info.decoder = "ssd";
                const Decoded decoded = decode_tensors(tensors, info, 300, 300);
                ASSERT_EQ(decoded.detections.size(), 1u);
                EXPECT_EQ(decoded.detections[0].class_id, 0);
                EXPECT_EQ(decoded.detections[0].x0, 75);
                EXPECT_EQ(decoded.detections[0].y1, 225);
                std::vector<TensorInfo> infos;
                for (const StoredTensor& tensor : tensors) infos.push_back(tensor.info);
                TensorInfo input;
                input.name = "image";
                input.cpu = make_view(DataType::float32, Layout::NCHW, {1, 3, 300, 300});
                EXPECT_EQ(choose_pixels(info, infos, input, 300, 300).source, "");
                if (one) continue;
                // One class less, and the first column is the background again.
                info.num_classes = classes - 1;
                EXPECT_TRUE(decode_tensors(tensors, info, 300, 300).detections.empty());
                // Probabilities of all columns have one, whatever is promised.
                info.num_classes = classes;
                info.outputs.push_back(
                    {.name = "scores", .id = "", .role = "", .ends_in = "softmax"});
                EXPECT_FALSE(Decoder::create(info, infos, 300, 300, {}));
            }
        }
    }
}

// 100 questions, of which one has an answer: DETR's boxes, and logits of three classes and nothing.
Tensors detr(bool one_table) {
    constexpr size_t rows = 100, row = 10;
    const float box[] = {0.5f, 0.4f, 0.2f, 0.3f};
    RefTensor boxes{std::vector<float>(rows * 4, 0.1f), rows, 4, false};
    RefTensor logits{{}, rows, 4, false}, both{{}, rows, 8, false};
    std::copy(std::begin(box), std::end(box), boxes.data.begin() + row * 4);
    for (size_t i = 0; i < rows; ++i) {
        const float none[] = {-2, -3, -4, 6}, third[] = {0, 1, 5, 1};
        logits.data.insert(logits.data.end(), i == row ? third : none,
                           (i == row ? third : none) + 4);
        both.data.insert(both.data.end(), &boxes.data[i * 4], &boxes.data[i * 4] + 4);
        both.data.insert(both.data.end(), logits.data.end() - 4, logits.data.end());
    }
    if (one_table) return {{"pred_boxes", both}};
    return {{"logits", logits}, {"pred_boxes", boxes}};
}

TEST(SsdOfDetr, HasItsBackgroundBehindTheClasses) {
    for (const bool one_table : {false, true}) {
        const std::vector<StoredTensor> tensors = stored(detr(one_table));
        ModelInfo info;
        info.decoder = "ssd";
        info.background = "last";
        info.activation = "softmax";
        info.box_order = "cxcywh";
        info.outputs = {{"pred_boxes", "", "boxes"}};
        info.num_classes = 4;  // as its logits are many
        EXPECT_EQ(decode_tensors(tensors, info, 800, 800).detections.size(), 1u) << one_table;
        info.num_classes.reset();
        info.labels = {"a", "b", "c"};
        const Decoded decoded = decode_tensors(tensors, info, 800, 800);
        ASSERT_EQ(decoded.detections.size(), 1u) << one_table;
        const Detection& found = decoded.detections[0];
        EXPECT_EQ(found.class_id, 2);
        const double sum = 1 + 2 * std::exp(1.) + std::exp(5.);
        EXPECT_NEAR(found.score, std::exp(5.) / sum, 1e-5);
        EXPECT_NEAR(found.x0, 320, 1e-3);
        EXPECT_NEAR(found.y1, 440, 1e-3);
    }
}

// After a frame of 800x800.
std::string doubt_of(const std::vector<StoredTensor>& tensors, const ModelInfo& info) {
    std::vector<TensorInfo> infos;
    std::vector<OutputTensor> outputs;
    for (const StoredTensor& tensor : tensors) infos.push_back(tensor.info);
    for (const StoredTensor& tensor : tensors) outputs.push_back(tensor.output());
    auto decoder = Decoder::create(info, infos, 800, 800, {.decoder = "ssd"});
    if (!decoder) return "not made: " + decoder.error().message;
    Decoded decoded;
    const auto done = decoder->decode(outputs, {}, 800, 800, decoded);
    return done ? decoder->doubt() : "not decoded: " + done.error().message;
}

TEST(SsdOfDetr, IsDoubtedWhereNobodySaysSo) {
    const std::vector<StoredTensor> tensors = stored(detr(false));
    for (const unsigned classes : {3u, 4u}) {
        ModelInfo info;
        info.activation = classes == 3 ? "softmax" : "sigmoid";
        info.box_order = "cxcywh";
        info.outputs = {{"pred_boxes", "", "boxes"}};
        info.num_classes = classes;
        const std::string doubt = doubt_of(tensors, info);
        EXPECT_NE(doubt.find("99 are of the last class"), std::string::npos) << doubt;
        EXPECT_NE(doubt.find("x-vartml-background=last"), std::string::npos) << doubt;
        // Somebody does.
        info.background = "none", info.num_classes = 4;
        const std::string other = doubt_of(tensors, info);
        EXPECT_EQ(other.find("of the last class"), std::string::npos) << other;
        EXPECT_FALSE(other.starts_with("not ")) << other;
    }
}

// Upstream's onnxinference does not say what the graph ends in.
TEST(SsdOfDetr, IsToldToSayThatItGivesLogits) {
    const std::vector<StoredTensor> tensors = stored(detr(false));
    ModelInfo info;
    info.background = "last";
    info.box_order = "cxcywh";
    info.outputs = {{"pred_boxes", "", "boxes"}};
    const std::string doubt = doubt_of(tensors, info);
    EXPECT_NE(doubt.find("lack their softmax (x-vartml-activation=softmax in section"),
              std::string::npos)
        << doubt;
}

// Questions have one answer each; as many rows as an SSD has priors were not selected by anybody.
TEST(SsdOfDetr, IsSuppressedWhereItsRowsAreTooManyToBeQuestions) {
    for (const auto& [rows, found] : {std::pair<size_t, size_t>{100, 2}, {150, 2}, {1200, 1}}) {
        RefTensor boxes{{}, rows, 4, false}, scores{{}, rows, 3, false};
        for (size_t i = 0; i < rows; ++i) {
            boxes.data.insert(boxes.data.end(), {0.5f, 0.5f, 0.2f, 0.2f});
            for (const float score : {i < 2 ? 0.9f : 0.f, 0.f, i < 2 ? 0.1f : 1.f})
                scores.data.push_back(score);
        }
        ModelInfo info;
        info.decoder = "ssd";
        info.background = "last";
        info.activation = "none";
        info.box_order = "cxcywh";
        info.outputs = {{"boxes", "", "boxes"}};
        const Decoded decoded = decode_tensors(
            {stored_cpu(boxes, "boxes"), stored_cpu(scores, "scores")}, info, 320, 320);
        EXPECT_EQ(decoded.detections.size(), found) << rows;
    }
}

// MMDetection's SSD counts nothing behind its classes, and leaves its boxes to be decoded.
TEST(SsdOfPriors, HasItsBackgroundWhereTheSidecarSays) {
    const struct {
        const char* background;
        uint32_t column;  // of the only score
        int32_t found;    // class; -1: nothing
    } cases[] = {{"", 0, -1},    {"", 3, 2},     {"first", 1, 0}, {"none", 0, 0},
                 {"none", 3, 3}, {"last", 0, 0}, {"last", 3, -1}};
    for (const auto& c : cases) {
        constexpr size_t rows = 1917;
        RefTensor boxes{std::vector<float>(rows * 4), rows, 4, false};
        RefTensor scores{std::vector<float>(rows * 4), rows, 4, false};
        scores.data[4 * 1000 + c.column] = 0.9f;
        ModelInfo info;
        info.decoder = "ssd";
        info.background = c.background;
        info.outputs = {{.name = "scores", .id = "", .role = "", .ends_in = "sigmoid"}};
        const Decoded decoded = decode_tensors(
            {stored_cpu(boxes, "boxes"), stored_cpu(scores, "scores")}, info, 300, 300);
        ASSERT_EQ(decoded.detections.size(), c.found < 0 ? 0u : 1u) << c.background << c.column;
        if (c.found < 0) continue;
        EXPECT_EQ(decoded.detections[0].class_id, c.found) << c.background << c.column;
    }
}

// Alone, or behind the background.
TEST(SsdOfFinalBoxes, MayHaveOneClass) {
    for (const size_t columns : {1u, 2u}) {
        RefTensor boxes{std::vector<float>(300 * 4, 0.1f), 300, 4, false};
        RefTensor scores{std::vector<float>(300 * columns), 300, columns, false};
        const float corners[] = {0.25f, 0.5f, 0.5f, 0.75f};
        std::copy(std::begin(corners), std::end(corners), boxes.data.begin() + 40);
        scores.data[10 * columns + columns - 1] = 0.9f;
        ModelInfo info;
        info.decoder = "ssd";
        info.outputs = {{"boxes", "", "boxes"}};
        info.num_classes = 1;
        const Decoded decoded = decode_tensors(
            {stored_cpu(scores, "scores"), stored_cpu(boxes, "boxes")}, info, 300, 300);
        ASSERT_EQ(decoded.detections.size(), 1u) << columns;
        EXPECT_EQ(decoded.detections[0].class_id, 0);
        EXPECT_EQ(decoded.detections[0].y1, 225);
    }
}

// Cells leave several boxes of a thing, whatever their strides; what a model asks itself does not.
TEST(SsdOfFinalBoxes, OfCellsAreThinned) {
    const struct {
        uint32_t width, height;
        size_t rows;
        size_t kept;
    } cases[] = {{416, 416, 894, 1}, {320, 320, 400, 1}, {320, 320, 125, 1}, {640, 640, 300, 2},
                 {800, 800, 100, 2}, {640, 384, 300, 2}};  // 240 + 60 cells, too
    for (const auto& c : cases) {
        RefTensor boxes{std::vector<float>(c.rows * 4, 0.1f), c.rows, 4, false};
        RefTensor scores{std::vector<float>(c.rows * 5), c.rows, 5, false};
        const float corners[] = {0.25f, 0.5f, 0.5f, 0.75f};
        for (const size_t row : {10u, 11u}) {
            std::copy(std::begin(corners), std::end(corners),
                      boxes.data.begin() + static_cast<ptrdiff_t>(row) * 4);
            scores.data[row * 5] = 0.9f;
        }
        ModelInfo info;
        info.decoder = "ssd";
        info.outputs = {{"boxes", "", "boxes"}};
        info.num_classes = 5;
        const Decoded decoded = decode_tensors(
            {stored_cpu(scores, "scores"), stored_cpu(boxes, "boxes")}, info, c.width, c.height);
        EXPECT_EQ(decoded.detections.size(), c.kept) << c.width << ", " << c.rows;
    }
}

TEST(SsdOfPyTorch, BringsItsBoxesDecoded) {
    RefTensor boxes{std::vector<float>(3000 * 4), 3000, 4, false};
    RefTensor scores{std::vector<float>(3000 * 3), 3000, 3, false};
    const float corners[] = {0.25f, 0.5f, 0.5f, 0.75f};
    std::copy(std::begin(corners), std::end(corners), boxes.data.begin() + 40);
    scores.data[3 * 10 + 2] = 0.9f;
    const StoredTensor tensors[] = {stored_cpu(scores, "scores"), stored_cpu(boxes, "boxes")};
    const TensorInfo infos[] = {tensors[0].info, tensors[1].info};
    ModelInfo info;
    info.labels = {"cat", "dog"};
    for (const int offset : {0, -1}) {
        info.class_offset = offset;
        auto decoder = Decoder::create(info, infos, 300, 300, {});
        ASSERT_TRUE(decoder) << decoder.error().message;
        EXPECT_EQ(decoder->family(), "ssd");
        EXPECT_EQ(decoder->classes(), 2u);
        const OutputTensor outputs[] = {tensors[0].output(), tensors[1].output()};
        Decoded decoded;
        ASSERT_TRUE(decoder->decode(outputs, {}, 300, 300, decoded));
        ASSERT_EQ(decoded.detections.size(), 1u);
        EXPECT_EQ(decoded.detections[0].x0, 75);
        EXPECT_EQ(decoded.detections[0].y1, 225);
        EXPECT_EQ(decoder->label(decoded.detections[0].class_id), "dog");
    }
}

}  // namespace
