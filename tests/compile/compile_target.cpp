// SPDX-License-Identifier: Apache-2.0
// What the compiler believes of the software NPU is what the software NPU does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "lib/compile/compile.h"
#include "lib/graph/kernel.h"
#include "lib/graph/ops.h"
#include "lib/model/target.h"
#include "lib/run/exec/device.h"
#include "tests/support/graphs.h"

namespace vartml::device {
namespace {

const Target& softnpu() {
    return *find_target("softnpu");
}

// The operators that only the CPU runs; every other one of the IR is on the NPU's list, too.
TEST(Target, LeavesTheseOperatorsToTheCpu) {
    const std::set<std::string_view> cpu_only = {"Acos",
                                                 "Acosh",
                                                 "AffineGrid",
                                                 "ArgMax",
                                                 "ArgMin",
                                                 "Asin",
                                                 "Asinh",
                                                 "Atan",
                                                 "Atanh",
                                                 "BitShift",
                                                 "CenterCropPad",
                                                 "Col2Im",
                                                 "Compress",
                                                 "Cosh",
                                                 "DeformConv",
                                                 "Det",
                                                 "EyeLike",
                                                 "GRU",
                                                 "GatherElements",
                                                 "GatherND",
                                                 "GlobalLpPool",
                                                 "Hardmax",
                                                 "IsInf",
                                                 "IsNaN",
                                                 "LSTM",
                                                 "Late",
                                                 "LpPool",
                                                 "MaxRoiPool",
                                                 "MaxUnpool",
                                                 "MeanVarianceNormalization",
                                                 "NonMaxSuppression",
                                                 "NonZero",
                                                 "OneHot",
                                                 "OnnxRuntime",
                                                 "RNN",
                                                 "ReverseSequence",
                                                 "RoiAlign",
                                                 "ScatterElements",
                                                 "Shrink",
                                                 "Sinh",
                                                 "Size",
                                                 "TopK",
                                                 "Trilu",
                                                 "Unique"};
    for (const Target& target : all_targets())
        for (const graph::OpInfo& op : graph::all_ops())
            EXPECT_EQ(runs_operator(target, op.kind), !cpu_only.contains(op.kind))
                << target.device << ' ' << op.kind;
}

// Whatever a device lists, libvartml can run.
TEST(Target, ListsNothingWithoutAKernel) {
    for (const Target& target : all_targets())
        for (const OperatorRule& rule : target.operators)
            EXPECT_TRUE(cpu::find_kernel(rule.kind)) << target.device << ' ' << rule.kind;
}

struct Case {
    const char* code;
    const char* words;
    const char* graph;
};
const Case cases[] = {
    {"unsupported-operator", "not implemented on the NPU",
     "input %x : f32[4]\n%y = Cosh %x : f32[4]\n"},
    {"unsupported-type", "tensor 'x' is int64, Sigmoid takes fp32, fp16 and bf16",
     "input %x : i64[4]\n%y = Sigmoid %x : i64[4]\n"},
    // No unsigned type but uint8, for operators that compute.
    {"unsupported-type", "tensor 'x' is uint32, Add takes",
     "input %x : u32[4]\n%y = Add %x, %x : u32[4]\n"},
    {"unsupported-type", "tensor 'x' is fp64", "input %x : f64[4]\n%y = Relu %x : f64[4]\n"},
    {"unsupported-rank", "tensor 'x' has 7 dimensions, at most 6 are supported",
     "input %x : f32[1,1,1,1,1,1,2]\n%y = Relu %x : f32[1,1,1,1,1,1,2]\n"},
    {"data-dependent-shape", "tensor 'x' has a shape known only at run time",
     "input %x : f32[4]?\n%y = Relu %x : f32[4]?\n"},
    {"unsupported-attribute", "the number of spatial dimensions is 3, supported: 1 and 2",
     "input %x : f32[1,2,4,4,4]\nconst %w : f32[2,2,1,1,1] = {1.0}\n"
     "%y = Conv %x, %w {dilations=[1,1,1], group=1, pads=[0,0,0,0,0,0], strides=[1,1,1]} : "
     "f32[1,2,4,4,4]\n"},
    {"unsupported-attribute", "the number of spatial dimensions is 3, supported: 1 and 2",
     "input %x : f32[1,2,4,4,4]\n%y = GlobalMaxPool %x : f32[1,2,1,1,1]\n"},
    {"unsupported-attribute", "mode is wrap, supported: constant, edge and reflect",
     "input %x : f32[4,4]\n%y = Pad %x {mode=\"wrap\", pads=[1,0,0,0], value=0.0} : f32[5,4]\n"},
    {"unsupported-attribute", "mode is cubic, supported: nearest and linear",
     "input %x : f32[1,1,4,4]\n%y = Resize %x {antialias=0, "
     "coordinate_transformation_mode=\"half_pixel\", cubic_coeff_a=-0.75, exclude_outside=0, "
     "extrapolation_value=0.0, mode=\"cubic\", nearest_mode=\"floor\", "
     "scales=f[1.0,1.0,2.0,2.0], sizes=[1,1,8,8]} : f32[1,1,8,8]\n"},
    {"unsupported-attribute", "reduction is add, supported: none",
     "input %x : f32[4]\ninput %i : i64[1,1]\ninput %u : f32[1]\n%y = ScatterND %x, %i, %u "
     "{reduction=\"add\"} : f32[4]\n"},
    {"unsupported-attribute", "its inputs are known only at run time, supported: constants",
     "input %x : f32[4]\n%y = Shape %x {end=1, start=0} : i64[1]\n"},
    // What only the run knows.
    {"unsupported-operator", "not implemented on the NPU",
     "input %x : f32[4]\ninput %k : i64[1]\n%y = Late %x, %k {op=\"TopK\"} : f32[4]?\n"},
    {"data-dependent-shape", "tensor 'x' has a shape that is known only at run time",
     "input %x : f32[4]?\ninput %s : i64[1]\n%y = Late %x, %s {op=\"Reshape\"} : f32[4]?\n"},
    {"dynamic-shape", "its parameter 's' is known only at run time",
     "input %x : f32[4]\nconst %b : i64[1] = {0}\ninput %s : i64[1]\n"
     "%y = Late %x, %b, %s, _ {op=\"Slice\"} : f32[4]?\n"},
    {"dynamic-shape", "its shape is known only at run time",
     "input %x : f32[4]\nconst %s : i64[1] = {4}\n"
     "%y = Late %x, %s, _ {op=\"Reshape\"} : f32[4]?\n"},
    {"", "", "input %x : i64[2,3]\n%y = Transpose %x {perm=[1,0]} : i64[3,2]\n"},
    {"", "", "input %x : i64[4]\n%y = Add %x, %x : i64[4]\n"},
    {"", "", "input %x : u16[2,3]\n%y = Transpose %x {perm=[1,0]} : u16[3,2]\n"},
    {"", "", "input %x : u32[4]\n%y = Cast %x {to=\"f32\"} : f32[4]\n"},
    {"", "", "input %x : u64[4]\n%y = Concat %x, %x {axis=0} : u64[8]\n"},
    {"", "", "input %x : f32[2,3]\n%y = Relu %x : f32[2,3]\n"},
    // Weights need not be constants.
    {"", "",
     "input %x : f32[1,2,4,4]\ninput %w : f32[2,2,1,1]\n"
     "%y = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,4,4]\n"},
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
    ASSERT_TRUE(model) << model.error().message;
    for (const artifact::Partition& p : model->partitions) {
        const auto device = find_device("softnpu", p.target);
        ASSERT_TRUE(device) << device.error().message;
        auto program = std::make_shared<Program>();
        program->name = p.name;
        program->target = p.target;
        program->graph = p.graph;
        program->inputs = p.inputs;
        program->outputs = p.outputs;
        for (auto* tensors : {&program->inputs, &program->outputs})
            for (TensorInfo& tensor : *tensors)
                if (!tensor.hw) tensor.hw = tensor.cpu;
        const auto executable = (*device)->load(program, {});
        EXPECT_TRUE(executable) << executable.error().message;
    }
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
