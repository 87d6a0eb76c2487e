// SPDX-License-Identifier: Apache-2.0
// A published model of faces, compiled and run here: its boxes and landmarks on a real picture are
// those that the published formula makes of what ONNX Runtime gives.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "lib/compile/compile.h"
#include "lib/tools/verify/feed.h"
#include "lib/tools/verify/onnxruntime.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensor_proto.h"
#include "tests/vision/yunet_reference.h"

namespace vartml::verify {
namespace {

namespace fs = std::filesystem;

// The picture that ultraface_rfb_320 was given: 320x240, (value - 127) / 128.
std::optional<PictureData> picture_of_faces(const std::string& models) {
    const auto proto =
        test::read_tensor_proto(models + "/ultraface_rfb_320/test_data_set_0/input_0.pb");
    if (!proto) return std::nullopt;
    const std::vector<float> values = proto->floats();
    PictureData picture{320, 240, std::vector<uint8_t>(size_t{3} * 320 * 240)};
    if (values.size() != picture.rgb.size()) return std::nullopt;
    for (size_t i = 0; i < values.size(); ++i) {
        const size_t channel = i / (320 * 240), pixel = i % (320 * 240);
        picture.rgb[3 * pixel + channel] = static_cast<uint8_t>(std::lround(values[i] * 128 + 127));
    }
    return picture;
}

test::RefTensor table_of(const TensorData& data) {
    test::RefTensor t{
        {}, static_cast<size_t>(data.shape[1]), static_cast<size_t>(data.shape[2]), false};
    for (const double number : numbers_of(data)) t.data.push_back(static_cast<float>(number));
    return t;
}

// The smallest face has 17 x 21 pixels: 0.7 of one, which is what bf16 costs at a corner, is an
// intersection over union of 0.91.
struct Accuracy {
    const char* numerics;
    double iou, corner, score;
};
class RealYuNet : public testing::TestWithParam<Accuracy> {};
INSTANTIATE_TEST_SUITE_P(Numerics, RealYuNet,
                         testing::Values(Accuracy{"f32", 0.99, 0.1, 0.01},
                                         Accuracy{"auto", 0.9, 1, 0.01}),
                         [](const auto& a) { return std::string(a.param.numerics); });

TEST_P(RealYuNet, FindsTheFacesAndLandmarksOfOnnxRuntime) {
    const std::string models = test::shared_folder() + "/models";
    const std::string model = models + "/yunet_n_320/model.onnx";
    const auto picture = picture_of_faces(models);
    if (!picture || !fs::exists(model)) GTEST_SKIP() << "no models beside the project";
    const auto onnxruntime = OnnxRuntime::find();
    if (!onnxruntime) GTEST_SKIP() << onnxruntime.error().message;

    const test::TempDir folder;
    compiler::CompileRequest request;
    request.model = model;
    request.output = folder / "yunet.rai";
    const auto compiled = compiler::compile(request);
    ASSERT_TRUE(compiled) << compiled.error().message;
    auto session = Session::open(request.output, {.numerics = GetParam().numerics});
    ASSERT_TRUE(session) << session.error().message;
    const ModelInfo info;
    const Feeder feeder(*session, info, "yunet");
    const auto fed = feeder.feed({"faces", picture, {}, {}}, product_stages());
    ASSERT_TRUE(fed) << fed.error().message;

    const auto reference =
        onnxruntime->run(model, {{session->inputs()[0].name, fed->reference[0]}});
    ASSERT_TRUE(reference) << reference.error().message;
    test::Tensors tensors;
    for (const char* kind : {"cls_", "obj_", "bbox_", "kps_"})
        for (const char* stride : {"8", "16", "32"}) {
            const std::string name = std::string(kind) + stride;
            tensors.push_back({name, table_of(reference->at(name))});
        }
    const test::FrameCase frame{320, 240, "stretch", {.e = 240 / 320.}};
    const auto want =
        test::on_frame(test::ref_face_nms(test::ref_yunet(tensors, 320, 320), 0.6, 0.3), frame);
    EXPECT_GT(want.size(), 12u);

    const auto bytes = session->run(fed->own);
    ASSERT_TRUE(bytes) << bytes.error().message;
    std::vector<OutputTensor> outputs;
    for (size_t i = 0; i < bytes->size(); ++i) {
        const TensorInfo& output = session->outputs()[i];
        outputs.push_back({(*bytes)[i].data(), output.name, &session->output_view(i), &output.cpu});
    }
    auto decoder = Decoder::create(info, session->outputs(), 320, 320, {});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->family(), "yunet");
    EXPECT_EQ(decoder->reason(), "shapes");
    Decoded decoded;
    ASSERT_TRUE(decoder->decode(outputs, frame.map, 320, 240, decoded));
    ASSERT_EQ(decoded.detections.size(), want.size());
    for (const test::RefFace& face : want) {  // close scores may be in another order
        const auto overlap = [&](const Detection& d) {
            return test::ref_iou({d.x0, d.y0, d.x1, d.y1, 0, 0}, face.box);
        };
        const Detection& found = *std::ranges::max_element(decoded.detections, {}, overlap);
        EXPECT_GE(overlap(found), GetParam().iou);
        EXPECT_NEAR(found.x0, face.box.x0, GetParam().corner);
        EXPECT_NEAR(found.y0, face.box.y0, GetParam().corner);
        EXPECT_NEAR(found.x1, face.box.x1, GetParam().corner);
        EXPECT_NEAR(found.y1, face.box.y1, GetParam().corner);
        EXPECT_NEAR(found.score, face.box.score, GetParam().score);
        for (size_t k = 0; k < 5; ++k) {
            const Keypoint& point = decoded.keypoints[found.first_keypoint + k];
            EXPECT_NEAR(point.x, face.points[k][0], 1);
            EXPECT_NEAR(point.y, face.points[k][1], 1);
        }
    }
}

}  // namespace
}  // namespace vartml::verify
