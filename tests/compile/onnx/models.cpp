// SPDX-License-Identifier: Apache-2.0
// Real models come in whole: every one imports, verifies, and prints to a text that parses to the
// same graph.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "lib/compile/onnx/import.h"
#include "lib/graph/text.h"
#include "lib/graph/verify.h"

namespace vartml::onnx {
namespace {

struct Model {
    const char* name;
    ImportOptions options;
    std::vector<std::string> outputs;  // types that the exporter declares or ONNX Runtime reports
};
const Model models[] = {
    {"bodypix_s8", {{{"input", {1, 241, 321, 3}}}}, {}},
    {"deimv2_femto_coco", {}, {}},
    {"hand_landmark", {}, {}},
    {"lightperson", {}, {"f32[1,756,6]"}},
    {"mnist_cntk", {}, {"f32[1,10]"}},
    {"nanodet_m_320",
     {},
     {"f32[1,1600,80]", "f32[1,400,80]", "f32[1,100,80]", "f32[1,1600,32]", "f32[1,400,32]",
      "f32[1,100,32]"}},
    {"person_reid_0287", {}, {"f32[1,256]"}},
    {"ppocr_cls", {{{"x", {1, 3, 48, 192}}}}, {"f32[1,2]"}},
    {"road_seg_adas", {}, {}},
    {"selfie_landscape", {}, {}},
    {"shufflenet_v2_int8", {}, {"f32[1,1000]"}},
    {"super_resolution_10", {}, {"f32[1,1,672,672]"}},
    {"ultraface_rfb_320", {}, {"f32[1,4420,2]", "f32[1,4420,4]"}},
    {"yolox_nano_416", {}, {"f32[1,3549,85]"}},
    {"yunet_n_320", {}, {}},
};

class RealModel : public testing::TestWithParam<Model> {};
TEST_P(RealModel, ImportsVerifiesAndPrintsWithoutLoss) {
    const char* shared = std::getenv("VARTML_SHARED");
    const std::string path =
        std::string(shared ? shared : "") + "/models/" + GetParam().name + "/model.onnx";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    const auto imported = import_onnx(path, GetParam().options);
    ASSERT_TRUE(imported) << imported.error().message;
    const auto verified = graph::verify(imported->graph);
    EXPECT_TRUE(verified) << verified.error().message;
    const std::string text = graph::print(imported->graph);
    const auto parsed = graph::parse(text, &imported->graph);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(graph::print(*parsed), text);
    std::vector<std::string> types;
    for (const graph::ValueId id : imported->graph.outputs)
        types.push_back(to_string(imported->graph.value(id).type));
    if (!GetParam().outputs.empty()) {
        EXPECT_EQ(types, GetParam().outputs);
    }
}
INSTANTIATE_TEST_SUITE_P(Shared, RealModel, testing::ValuesIn(models),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace vartml::onnx
