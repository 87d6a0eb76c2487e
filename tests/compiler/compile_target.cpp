// SPDX-License-Identifier: Apache-2.0
// What the compiler believes of the software NPU is what the software NPU does.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "lib/compiler/compile.h"
#include "lib/device/device.h"
#include "lib/device/target.h"
#include "tests/support/graphs.h"

namespace vartml::device {
namespace {

const Target& softnpu() {
    return *find_target("softnpu");
}

struct Case {
    const char* code;
    const char* words;
    const char* graph;
};
const Case cases[] = {
    {"unsupported-operator", "not implemented on the NPU",
     "input %x : f32[4]\n%y = Erf %x : f32[4]\n"},
    {"unsupported-type", "tensor 'x' is int64, which Add does not take",
     "input %x : i64[4]\n%y = Add %x, %x : i64[4]\n"},
    {"unsupported-rank", "tensor 'x' has 7 dimensions, at most 6 are supported",
     "input %x : f32[1,1,1,1,1,1,2]\n%y = Relu %x : f32[1,1,1,1,1,1,2]\n"},
    {"unsupported-attribute", "the number of spatial dimensions is 3, supported: 1 and 2",
     "input %x : f32[1,2,4,4,4]\nconst %w : f32[2,2,1,1,1] = {1.0}\n"
     "%y = Conv %x, %w {dilations=[1,1,1], group=1, pads=[0,0,0,0,0,0], strides=[1,1,1]} : "
     "f32[1,2,4,4,4]\n"},
    {"unsupported-attribute", "its weight or bias is known only at run time",
     "input %x : f32[1,2,4,4]\ninput %w : f32[2,2,1,1]\n"
     "%y = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,4,4]\n"},
    {"unsupported-attribute", "mode is reflect, supported: constant",
     "input %x : f32[4,4]\n%y = Pad %x {mode=\"reflect\", pads=[1,0,0,0], value=0.0} : f32[5,4]\n"},
    {"unsupported-rank", "an operand is a vector",
     "input %x : f32[4]\ninput %w : f32[4,2]\n%y = MatMul %x, %w : f32[2]\n"},
    {"", "", "input %x : i64[2,3]\n%y = Transpose %x {perm=[1,0]} : i64[3,2]\n"},
    {"", "", "input %x : f32[2,3]\n%y = Relu %x : f32[2,3]\n"},
};
TEST(Target, NamesTheReasonForWhatItDoesNotRun) {
    for (const Case& c : cases) {
        const auto graph = graph::must_parse("graph g\n" + std::string(c.graph) + "output %y\n");
        ASSERT_EQ(graph.nodes.size(), 1u) << c.graph;
        const auto reason = why_unsupported(softnpu(), graph, graph.nodes[0]);
        EXPECT_EQ(reason ? reason->code : "", c.code) << c.graph;
        if (reason) {
            EXPECT_NE(reason->text.find(c.words), std::string::npos) << reason->text;
        }
    }
}

// Whatever compiles also loads.
class CompiledModel : public testing::TestWithParam<
                          std::pair<const char*, std::map<std::string, std::vector<int64_t>>>> {};
TEST_P(CompiledModel, LoadsOnTheSoftwareNpu) {
    const char* shared = std::getenv("VARTML_SHARED");
    compiler::CompileRequest request;
    request.model =
        std::string(shared ? shared : "") + "/models/" + GetParam().first + "/model.onnx";
    if (!std::filesystem::exists(request.model)) GTEST_SKIP() << request.model << " is not there";
    request.input_shapes = GetParam().second;
    const auto model = compiler::compile_in_memory(request, nullptr, nullptr);
    if (!model) {
        EXPECT_EQ(model.error().code, ErrorCode::unsupported);
        EXPECT_NE(model.error().message.find("cannot run on softnpu"), std::string::npos)
            << model.error().message;
        return;
    }
    const auto device = find_device("softnpu", model->target);
    ASSERT_TRUE(device) << device.error().message;
    auto program = std::make_shared<Program>();
    const artifact::Partition& p = model->partitions[0];
    program->name = p.name;
    program->target = p.target;
    program->graph = p.graph;
    program->inputs = p.inputs;
    program->outputs = p.outputs;
    const auto executable = (*device)->load(program, {});
    EXPECT_TRUE(executable) << executable.error().message;
}
INSTANTIATE_TEST_SUITE_P(
    Shared, CompiledModel,
    testing::Values(CompiledModel::ParamType{"bodypix_s8", {{"input", {1, 241, 321, 3}}}},
                    CompiledModel::ParamType{"deimv2_femto_coco", {}},
                    CompiledModel::ParamType{"hand_landmark", {}},
                    CompiledModel::ParamType{"lightperson", {}},
                    CompiledModel::ParamType{"mnist_cntk", {}},
                    CompiledModel::ParamType{"nanodet_m_320", {}},
                    CompiledModel::ParamType{"person_reid_0287", {}},
                    CompiledModel::ParamType{"ppocr_cls", {{"x", {1, 3, 48, 192}}}},
                    CompiledModel::ParamType{"road_seg_adas", {}},
                    CompiledModel::ParamType{"selfie_landscape", {}},
                    CompiledModel::ParamType{"shufflenet_v2_int8", {}},
                    CompiledModel::ParamType{"super_resolution_10", {}},
                    CompiledModel::ParamType{"ultraface_rfb_320", {}},
                    CompiledModel::ParamType{"yolox_nano_416", {}},
                    CompiledModel::ParamType{"yunet_n_320", {}}),
    [](const auto& row) { return row.param.first; });

}  // namespace
}  // namespace vartml::device
