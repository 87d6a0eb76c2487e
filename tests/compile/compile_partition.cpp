// SPDX-License-Identifier: Apache-2.0
// Models that the NPU runs in part: partitions, the tensors between them, what the report says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "lib/compile/compile.h"
#include "lib/graph/verify.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::compiler {
namespace {

using artifact::CompiledModel;
using test::TinyOnnx;
using Ints = TinyOnnx::Ints;

class CompilePartition : public testing::Test {
protected:
    Result<CompiledModel> compile(const TinyOnnx& model) {
        model.save(dir_ / "m.onnx");
        request_.model = dir_ / "m.onnx";
        messages_.clear();
        request_.message = [this](LogLevel level, const std::string& text) {
            if (level <= LogLevel::warning) messages_ += text + '\n';
        };
        return compile_in_memory(request_, &not_offloaded_, nullptr);
    }

    // The model as it comes back from disk, after all checks of the format.
    CompiledModel compiled(const TinyOnnx& model) {
        auto made = compile(model);
        if (!made) {
            ADD_FAILURE() << made.error().message;
            return {};
        }
        for (const artifact::Partition& p : made->partitions)
            EXPECT_TRUE(graph::verify(p.graph)) << p.name;
        if (auto done = artifact::write_directory(*made, dir_ / "out"); !done)
            ADD_FAILURE() << done.error().message;
        auto read = artifact::read(dir_ / "out");
        if (!read) {
            ADD_FAILURE() << read.error().message;
            return std::move(*made);
        }
        return std::move(*read);
    }

    test::TempDir dir_;
    CompileRequest request_;
    std::string not_offloaded_, messages_;
};

// "input x > par_0 (buf_0)\npar_0 y > output (buf_1)\n"
std::string edges(const CompiledModel& m) {
    std::string text;
    const auto name = [&](int32_t p, const char* border) {
        return p < 0 ? border : m.partitions[static_cast<size_t>(p)].name.substr(6);
    };
    for (const artifact::Edge& e : m.edges)
        text += name(e.source, "input") + ' ' + e.tensor_name + " > " +
                name(e.destination, "output") + " (" + e.temp_buffer_name + ")\n";
    return text;
}

TinyOnnx& unary(TinyOnnx& m, const char* op, const char* x, const char* y) {
    return m.node(op, {x}, {y});
}

struct Case {
    const char* why;
    TinyOnnx (*model)();
    const char* edges;
};
const Case cases[] = {
    {"one partition",
     [] {
         TinyOnnx m;
         m.input("x", {4, 4}).input("unused", {2});
         return unary(m, "Exp", "x", "y").output("y");
     },
     "input unused > par_0 (buf_0)\ninput x > par_0 (buf_1)\npar_0 y > output (buf_2)\n"},
    {"NPU, CPU, NPU",
     [] {
         TinyOnnx m;
         m.input("x", {4, 4});
         unary(m, "Exp", "x", "a");
         unary(m, "Trilu", "a", "b");
         return unary(m, "Exp", "b", "y").output("y");
     },
     "input x > par_0 (buf_0)\npar_0 a > cpu_subgraph_0 (buf_1)\n"
     "cpu_subgraph_0 b > par_1 (buf_2)\npar_1 y > output (buf_3)\n"},
    {"an input that both read, an output that others read, one buffer each",
     [] {
         TinyOnnx m;
         m.input("x", {4, 4});
         unary(m, "Exp", "x", "a");
         unary(m, "Trilu", "a", "b");
         m.node("Add", {"b", "x"}, {"c"});
         m.node("Trilu", {"x"}, {"d"});
         return m.node("Add", {"c", "a"}, {"y"}).output("a").output("y").output("d").output("b");
     },
     "input x > par_0 (buf_0)\ninput x > cpu_subgraph_0 (buf_0)\ninput x > par_1 (buf_0)\n"
     "par_0 a > cpu_subgraph_0 (buf_1)\npar_0 a > par_1 (buf_1)\npar_0 a > output (buf_1)\n"
     "cpu_subgraph_0 b > par_1 (buf_2)\ncpu_subgraph_0 b > output (buf_2)\n"
     "cpu_subgraph_0 d > output (buf_3)\npar_1 y > output (buf_4)\n"},
    {"outputs that are an input and a constant",
     [] {
         TinyOnnx m;
         m.input("x", {4, 4}).weights("w", {3});
         unary(m, "Identity", "x", "same");
         unary(m, "Identity", "w", "number");
         unary(m, "Trilu", "x", "y");
         return m.output("same").output("number").output("y");
     },
     ""},
    {"a constant in both",
     [] {
         TinyOnnx m;
         m.input("x", {4, 4}).weights("w", {4, 4});
         m.node("Add", {"x", "w"}, {"a"});
         unary(m, "Trilu", "a", "b");
         m.node("GatherElements", {"b", "i"}, {"c"}).ints("i", {1, 4}, {0, 1, 2, 3});
         return m.node("Mul", {"c", "w"}, {"y"}).output("y");
     },
     "input x > par_0 (buf_0)\npar_0 a > cpu_subgraph_0 (buf_1)\n"
     "cpu_subgraph_0 c > par_1 (buf_2)\npar_1 y > output (buf_3)\n"},
    {"a scalar between two partitions",
     [] {
         TinyOnnx m;
         m.input("x", {4, 4});
         m.node("ReduceMax", {"x"}, {"a"}, {{"keepdims", int64_t{0}}});
         m.node("Cosh", {"a"}, {"b"});
         return m.node("Mul", {"x", "b"}, {"y"}).output("y");
     },
     "input x > par_0 (buf_0)\ninput x > par_1 (buf_0)\npar_0 a > cpu_subgraph_0 (buf_1)\n"
     "cpu_subgraph_0 b > par_1 (buf_2)\npar_1 y > output (buf_3)\n"},
};
TEST_F(CompilePartition, ConnectsTheParts) {
    request_.threshold_gops_percent = 0;
    for (const Case& c : cases) {
        SCOPED_TRACE(c.why);
        const CompiledModel m = compiled(c.model());
        if (*c.edges) {
            EXPECT_EQ(edges(m), c.edges);
        }
        EXPECT_TRUE(m.find_file("connectivity_metadata.json"));
    }
}

TEST_F(CompilePartition, GivesHwViewsWhereNoCpuTouchesTheBorder) {
    request_.threshold_gops_percent = 0;
    TinyOnnx m;
    m.input("picture", {1, 3, 8, 8}).input("both", {1, 3, 8, 8}).weights("w", {8, 3, 3, 3});
    m.node("Conv", {"picture", "w"}, {"head"}).node("Conv", {"both", "w"}, {"other"});
    m.node("Trilu", {"both"}, {"cpu"});
    m.node("Exp", {"head"}, {"e"}).node("TopK", {"e", "k"}, {"best", "index"}).ints("k", {1}, {2});
    m.node("Cosh", {"other"}, {"t"})
        .node("Exp", {"best"}, {"last"})
        .node("Add", {"last", "last"}, {"z"});
    for (const char* name : {"head", "cpu", "other", "t", "z", "index"}) m.output(name);
    const CompiledModel model = compiled(m);
    const auto find = [&](const auto& list, const char* name) {
        return *std::ranges::find(list, name, &TensorInfo::name);
    };
    // Only the NPU reads it: the picture's layout.
    EXPECT_EQ(find(model.inputs, "picture").hw->layout, Layout::HCWNC4);
    // The CPU reads it, too.
    EXPECT_FALSE(find(model.inputs, "both").hw);
    EXPECT_EQ(find(model.inputs, "both").cpu.layout, Layout::NCHW);
    // Behind a convolution, nobody else reads it.
    EXPECT_EQ(find(model.outputs, "head").hw->layout, Layout::HCWNC8);
    EXPECT_EQ(find(model.outputs, "head").hw->data_type, DataType::bf16);
    EXPECT_FALSE(find(model.outputs, "cpu").hw);
    EXPECT_FALSE(find(model.outputs, "other").hw);
    EXPECT_FALSE(find(model.outputs, "index").hw);
    EXPECT_TRUE(find(model.outputs, "z").hw);
    for (const artifact::Partition& p : model.partitions)
        for (const auto* tensors : {&p.inputs, &p.outputs})
            for (const TensorInfo& t : *tensors)
                EXPECT_EQ(t.hw.has_value(), p.kind == artifact::PartitionKind::npu) << t.name;
    // Between partitions both views are the same.
    const TensorInfo e = find(model.partitions[0].outputs, "e");
    ASSERT_TRUE(e.hw);
    EXPECT_EQ(*e.hw, e.cpu);
    EXPECT_EQ(e.cpu.data_type, DataType::float32);
}

// An output that another NPU partition reads at once has one form for both.
TEST_F(CompilePartition, GivesASharedOutputOneForm) {
    request_.threshold_gops_percent = 0;
    TinyOnnx m;
    m.input("x", {1, 4, 8, 8}).weights("w", {8, 4, 1, 1});
    m.node("Conv", {"x", "w"}, {"a"}).node("Exp", {"a"}, {"b"}).node("Trilu", {"b"}, {"c"});
    m.node("Add", {"a", "c"}, {"y"}).output("a").output("y");
    const CompiledModel model = compiled(m);
    ASSERT_EQ(model.partitions.size(), 3u);
    ASSERT_TRUE(model.outputs[0].hw);
    EXPECT_EQ(model.outputs[0].cpu.layout, Layout::NCHW);
    EXPECT_EQ(model.outputs[0].hw->layout, Layout::GENERIC);
    EXPECT_EQ(model.outputs[0].hw->data_type, DataType::float32);
}

// One partition quantises it, at once or moved, or computes with it; another one computes with it.
TEST_F(CompilePartition, GivesASharedInputOneForm) {
    request_.threshold_gops_percent = 0;
    enum Beginning { quantised, moved, floats, floats_beside_quantised };
    for (const Beginning beginning : {quantised, moved, floats, floats_beside_quantised}) {
        TinyOnnx m;
        m.input("x", {1, 4, 8, 8}).weights("w", {4, 4, 1, 1}).floats("s", {}, {0.05F});
        m.proto().mutable_graph()->add_initializer()->CopyFrom([] {
            ::onnx::TensorProto zero;
            zero.set_name("z");
            zero.set_data_type(::onnx::TensorProto::UINT8);
            zero.add_int32_data(128);
            return zero;
        }());
        if (beginning == moved) m.node("Transpose", {"x"}, {"p"}, {{"perm", Ints{0, 1, 3, 2}}});
        if (beginning == floats) {
            m.node("Conv", {"x", "w"}, {"d"});
        } else if (beginning == floats_beside_quantised) {
            m.input("v", {1, 4, 8, 8}).node("QuantizeLinear", {"v", "s", "z"}, {"q"});
            m.node("DequantizeLinear", {"q", "s", "z"}, {"dv"});
            m.node("Conv", {"x", "w"}, {"dx"}).node("Add", {"dx", "dv"}, {"d"});
        } else {
            m.node("QuantizeLinear", {beginning == moved ? "p" : "x", "s", "z"}, {"q"})
                .node("DequantizeLinear", {"q", "s", "z"}, {"d"});
        }
        m.node("Trilu", {"d"}, {"t"}).node("Add", {"t", "x"}, {"a"});
        m.node("Conv", {"a", "w"}, {"y"}).output("y");
        for (const bool quantises : {false, true}) {
            SCOPED_TRACE(testing::Message() << beginning << ' ' << quantises);
            request_.quantised_inputs = quantises;
            const CompiledModel model = compiled(m);
            ASSERT_TRUE(model.inputs[0].hw);
            size_t readers = 0;
            for (const artifact::Partition& p : model.partitions)
                for (const TensorInfo& t : p.inputs)
                    if (t.name == "x") {
                        ++readers;
                        EXPECT_EQ(t.hw, model.inputs[0].hw) << p.name;
                    }
            EXPECT_EQ(readers, 2u);
            EXPECT_EQ(model.inputs[0].hw->data_type,
                      beginning >= floats ? DataType::bf16 : DataType::float32);
        }
    }
}

TEST_F(CompilePartition, RefusesATypeThatNoBufferHolds) {
    request_.threshold_gops_percent = 0;
    TinyOnnx m;
    m.input("x", {4, 4});
    m.node("Cast", {"x"}, {"wide"}, {{"to", int64_t{11}}});
    m.node("Cast", {"wide"}, {"a"}, {{"to", int64_t{1}}});
    m.node("Exp", {"a"}, {"b"}).node("Cast", {"b"}, {"c"}, {{"to", int64_t{11}}});
    m.node("Add", {"c", "wide"}, {"d"}).node("Cast", {"d"}, {"y"}, {{"to", int64_t{1}}});
    m.output("y");
    const auto model = compile(m);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().message,
              dir_ / "m.onnx" +
                  ": tensor 'wide' is f64[4,4] and would pass from one partition to another, which "
                  "no buffer of the runtime holds; insert a Cast to float32 before it");
}

// 10 GOPs in the convolution, a tail on the CPU, a small part behind it.
TinyOnnx detector() {
    TinyOnnx m;
    m.input("images", {1, 3, 32, 32}).weights("w", {16, 3, 3, 3}).weights("w2", {6, 16, 1, 1});
    m.node("Conv", {"images", "w"}, {"c1"}, {{"pads", Ints{1, 1, 1, 1}}})
        .node("Relu", {"c1"}, {"r1"})
        .node("Conv", {"r1", "w2"}, {"c2"}, {{"strides", Ints{4, 4}}});
    m.ints("split", {2}, {4, 2})
        .node("Split", {"c2", "split"}, {"box4", "score4"}, {{"axis", int64_t{1}}});
    m.ints("boxes_shape", {3}, {1, 4, 64}).ints("scores_shape", {3}, {1, 2, 64});
    m.node("Reshape", {"box4", "boxes_shape"}, {"boxes_t"})
        .node("Transpose", {"boxes_t"}, {"boxes"}, {{"perm", Ints{0, 2, 1}}})
        .node("Reshape", {"score4", "scores_shape"}, {"logits"})
        .node("Sigmoid", {"logits"}, {"scores"});
    m.ints("most", {1}, {10}).floats("iou", {1}, {0.5f}).floats("least", {1}, {0.1f});
    m.node("NonMaxSuppression", {"boxes", "scores", "most", "iou", "least"}, {"selected"});
    m.ints("two", {1}, {2}).node("Gather", {"selected", "two"}, {"picked"}, {{"axis", int64_t{1}}});
    return m.output("selected").output("picked");
}

// The identities of the report.
void check_summary(const CompiledModel& m) {
    const artifact::Summary& s = m.summary;
    EXPECT_LE(s.offloaded.operators, s.supported.operators);
    EXPECT_LE(s.supported.operators, s.total.operators);
    EXPECT_EQ(s.supported.subgraphs,
              s.offloaded.subgraphs + s.compile_errors + s.below_threshold + s.above_max);
    artifact::Count npu, all;
    for (const artifact::Partition& p : m.partitions) {
        all.operators += p.operators;
        all.ops += p.ops;
        if (p.kind != artifact::PartitionKind::npu) continue;
        npu.operators += p.operators;
        npu.ops += p.ops;
    }
    EXPECT_EQ(npu.operators, s.offloaded.operators);
    EXPECT_EQ(npu.ops, s.offloaded.ops);
    EXPECT_EQ(all.operators, s.total.operators);
    EXPECT_EQ(all.ops, s.total.ops);
    EXPECT_EQ(s.fallbacks.size(), s.total.operators - s.offloaded.operators);
}

// Compares with the file of the golden folder; VARTML_UPDATE_GOLDEN writes it anew. What depends on
// commit, version, place and host is blank in it.
void expect_golden(const std::string& name, std::string text) {
    const std::pair<const char*, const char*> blanks[] = {
        {"OS: ", "OS: Linux"},
        {"VAIP commit: ", "VAIP commit: 0"},
        {"Model: ", "Model: model.onnx"},
        {"Model signature: ", "Model signature: 0"},
        {"--------- Additional", "--------- Additional Information ----------"},
        {"  \"model_signature\": ", "  \"model_signature\": \"0\","}};
    for (const auto& [begin, line] : blanks) {
        const size_t at = text.starts_with(begin) ? 0 : text.find('\n' + std::string(begin));
        if (at == std::string::npos) continue;
        const size_t start = at == 0 ? 0 : at + 1;
        text.replace(start, text.find('\n', start) - start, line);
    }
    const char* folder = std::getenv("VARTML_GOLDEN");
    ASSERT_TRUE(folder) << "set VARTML_GOLDEN to tests/compile/golden";
    const std::string file = std::string(folder) + '/' + name;
    if (std::getenv("VARTML_UPDATE_GOLDEN")) test::spill(file, text);
    EXPECT_EQ(text, test::slurp(file)) << file;
}

TEST_F(CompilePartition, ReportsADetectorAsBefore) {
    const CompiledModel m = compiled(detector());
    check_summary(m);
    expect_golden("detector.txt", *m.find_file("final-vaiml-pass-summary.txt"));
    expect_golden("detector.json", *m.find_file("connectivity_metadata.json"));
}

TEST_F(CompilePartition, ReportsATransformerAsBefore) {
    const char* shared = std::getenv("VARTML_SHARED");
    request_.model = std::string(shared ? shared : "") + "/models/deimv2_femto_coco/model.onnx";
    if (!std::filesystem::exists(request_.model)) GTEST_SKIP() << request_.model << " is not there";
    const auto made = compile_in_memory(request_, nullptr, nullptr);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(artifact::write_directory(*made, dir_ / "out"));
    const auto m = artifact::read(dir_ / "out");
    ASSERT_TRUE(m) << m.error().message;
    check_summary(*m);
    expect_golden("deimv2_femto_coco.txt", *m->find_file("final-vaiml-pass-summary.txt"));
    expect_golden("deimv2_femto_coco.json", *m->find_file("connectivity_metadata.json"));
}

// Every device compiles it, with its own columns.
TEST_F(CompilePartition, CompilesForEveryDevice) {
    for (const char* device :
         {"softnpu", "ve2", "ve2-xc2ve3858", "ve2-xc2ve3558", "ve2-xc2ve3358", "mlsoc", "aic100"}) {
        request_.device = device;
        const CompiledModel m = compiled(detector());
        EXPECT_EQ(m.device, device);
        EXPECT_EQ(m.target, "softnpu-1");
        EXPECT_EQ(m.partitions[0].columns, 4u);
        EXPECT_EQ(m.summary.offloaded.operators, 8u);
    }
}

TEST_F(CompilePartition, RecordsEveryFallbackInTheJsonReport) {
    request_.threshold_gops_percent = 0;
    const CompiledModel m = compiled(detector());
    const std::string* json = m.find_file("final-vaiml-pass-summary.json");
    ASSERT_TRUE(json);
    EXPECT_NE(json->find(R"(    {
      "node": "selected_node",
      "op_type": "NonMaxSuppression",
      "domain": "",
      "code": "unsupported-operator",
      "text": "not implemented on the NPU",
      "candidate": null,
      "partition": "vaiml_cpu_subgraph_0"
    })"),
              std::string::npos)
        << *json;
    request_.device_memory_limit = 1;
    const auto rejected = compile(detector());
    ASSERT_TRUE(rejected);
    EXPECT_NE(rejected->find_file("final-vaiml-pass-summary.json")
                  ->find(R"("candidate": "candidate_0",)"),
              std::string::npos);
}

TEST_F(CompilePartition, FollowsValuesWithoutAFixedShape) {
    const CompiledModel m = compiled(detector());
    ASSERT_EQ(m.partitions.size(), 2u);
    EXPECT_EQ(m.partitions[1].name, "vaiml_cpu_subgraph_0");
    EXPECT_EQ(m.partitions[1].target, "cpu-1");
    EXPECT_EQ(m.partitions[1].columns, 0u);
    EXPECT_TRUE(m.partitions[1].layers.empty());
    EXPECT_EQ(m.partitions[1].operators, 2u);
    EXPECT_TRUE(m.outputs[0].data_dependent);
    EXPECT_TRUE(m.edges.back().data_dependent);
    ASSERT_EQ(m.summary.fallbacks.size(), 2u);
    EXPECT_EQ(m.summary.fallbacks[0].code, "unsupported-operator");
    EXPECT_EQ(m.summary.fallbacks[1].code, "data-dependent-shape");
    EXPECT_EQ(m.summary.fallbacks[1].op_type, "Gather");
}

TEST_F(CompilePartition, NamesOperatorsAsTheModelDoes) {
    TinyOnnx m;
    m.input("x", {2, 3, 4}).node("Trilu", {"x"}, {"t"});
    m.node("Flatten", {"t"}, {"y"}).output("y");
    request_.device_memory_limit = 1;
    const CompiledModel model = compiled(m);
    ASSERT_EQ(model.summary.fallbacks.size(), 2u);
    EXPECT_EQ(model.summary.fallbacks[1].op_type, "Flatten");  // a Reshape by now
    EXPECT_EQ(model.summary.fallbacks[1].code, "compile-error");
}

// Nothing runs: the shapes alone decide.
TEST_F(CompilePartition, TakesNetworksOnLargePicturesThatTheDeviceHasNoMemoryFor) {
    TinyOnnx m;
    m.input("x", {1, 3, 4096, 4096}).floats("w", {24, 3, 1, 1}, std::vector<float>(72, 1));
    m.floats("v", {24, 24, 1, 1}, std::vector<float>(576, 1));
    m.node("Conv", {"x", "w"}, {"a"}).node("Sigmoid", {"a"}, {"b"});
    m.node("Conv", {"b", "v"}, {"c"}).node("Softmax", {"c"}, {"d"}, {{"axis", int64_t{1}}});
    m.output("d");
    const CompiledModel made = compiled(m);
    ASSERT_EQ(made.partitions.size(), 1u);
    EXPECT_EQ(made.partitions[0].kind, artifact::PartitionKind::cpu);
    EXPECT_GT(made.partitions[0].arena_size_bytes + made.inputs[0].cpu.size_bytes +
                  made.outputs[0].cpu.size_bytes,
              uint64_t{2} << 30);
    EXPECT_TRUE(made.summary.fallbacks[0].text.ends_with("limit 2,147,483,648"));
}

// A few bytes of a model can ask for all memory of a machine.
TEST_F(CompilePartition, RefusesTensorsThatTakeTheMemoryOfTheMachine) {
    constexpr int64_t many = 1'000'000'000;
    struct Bomb {
        const char* op;
        std::vector<std::string> inputs;
        std::vector<std::pair<std::string, TinyOnnx::Attribute>> attributes = {};
    };
    const Bomb bombs[] = {
        {"Expand", {"x", "sizes"}},
        {"Tile", {"x", "sizes"}},
        {"Pad", {"x", "pads"}},
        {"Resize", {"x", "", "scales"}, {{"mode", std::string("nearest")}}},
        {"Upsample", {"x", "scales"}},
    };
    for (const Bomb& bomb : bombs) {
        const std::string op = bomb.op;
        TinyOnnx m(op == "Upsample" ? 9 : 13);
        m.input("x", {1, 1, 1, 1})
            .ints("sizes", {4}, {1, 1, 1000, many / 1000})
            .ints("pads", {8}, {0, 0, 0, 0, 0, 0, 999, many / 1000 - 1})
            .floats("scales", {4}, {1, 1, 1000, many / 1000});
        m.node(op, bomb.inputs, {"y"}, bomb.attributes).output("y");
        const auto made = compile(m);
        ASSERT_FALSE(made) << op;
        EXPECT_EQ(made.error().code, ErrorCode::unsupported);
        EXPECT_NE(made.error().message.find("m.onnx: a CPU partition needs 4,000,000,"),
                  std::string::npos)
            << made.error().message;
        EXPECT_NE(made.error().message.find("bytes of memory; its largest tensor is 'y', "
                                            "f32[1,1,1000,1000000], limit 2,147,483,648 bytes: "),
                  std::string::npos)
            << made.error().message;
    }
    // What constants alone decide.
    TinyOnnx folded(13);
    folded.input("x", {1}).ints("sizes", {1}, {many}).ints("first", {}, {0});
    folded.ints("last", {}, {many}).ints("step", {}, {1});
    folded.node("ConstantOfShape", {"sizes"}, {"zeros"}).node("Add", {"x", "zeros"}, {"y"});
    folded.node("Range", {"first", "last", "step"}, {"z"}).output("y").output("z");
    EXPECT_FALSE(compile(folded));
    request_.cpu_memory_limit = 1 << 20;
    request_.npu = false;
    TinyOnnx larger(13);
    larger.input("x", {1}).ints("sizes", {1}, {1 << 19}).node("Tile", {"x", "sizes"}, {"y"});
    larger.output("y");
    EXPECT_FALSE(compile(larger));
    request_.cpu_memory_limit = 1 << 22;
    EXPECT_TRUE(compile(larger));
}

TEST_F(CompilePartition, FallsBackWhereTheMemoryDoesNotSuffice) {
    request_.device_memory_limit = 20000;
    const CompiledModel m = compiled(detector());
    EXPECT_EQ(m.summary.offloaded.operators, 0u);
    EXPECT_EQ(m.summary.compile_errors, 1u);
    EXPECT_EQ(m.summary.supported.subgraphs, 1u);
    ASSERT_EQ(m.partitions.size(), 1u);
    EXPECT_EQ(m.partitions[0].operators, m.summary.total.operators);
    const std::string& text = m.summary.fallbacks[0].text;
    EXPECT_TRUE(text.starts_with("candidate_0 needs ")) << text;
    EXPECT_TRUE(text.ends_with(" bytes of device memory, limit 20,000")) << text;
}

TEST_F(CompilePartition, TakesTheLargestBatchThatFits) {
    TinyOnnx m;
    m.input("x", {1, 8, 8, 8}).weights("w", {8, 8, 1, 1});
    m.node("Conv", {"x", "w"}, {"a"}).node("Softmax", {"a"}, {"b"}).node("Exp", {"b"}, {"y"});
    m.output("y");
    request_.batch_size = 16;
    EXPECT_EQ(compiled(m).actual_batch_size, 16u);
    // Weights once; per frame the input in bf16, the output and two values between nodes in f32.
    const uint64_t weights = 8 * 8 * 4, frame = 512 * 2 + 512 * 4 + 2 * 512 * 4;
    request_.device_memory_limit = weights + 12 * frame;
    const CompiledModel twelve = compiled(m);
    EXPECT_EQ(twelve.desired_batch_size, 16u);
    EXPECT_EQ(twelve.actual_batch_size, 12u);
    request_.device_memory_limit = weights + 12 * frame - 1;
    EXPECT_EQ(compiled(m).actual_batch_size, 11u);
    request_.device_memory_limit = weights + frame;
    EXPECT_EQ(compiled(m).actual_batch_size, 1u);
    request_.device_memory_limit = weights + frame - 1;
    EXPECT_EQ(compiled(m).summary.compile_errors, 1u);
}

TEST_F(CompilePartition, LeavesTheRestToAnotherRuntimeInStandardCompilation) {
    request_.cpu_partition = false;
    const CompiledModel m = compiled(detector());
    ASSERT_EQ(m.partitions.size(), 1u);
    EXPECT_EQ(m.partitions[0].name, "vaiml_par_0");
    EXPECT_EQ(m.compilation, artifact::Compilation::standard);
    EXPECT_FALSE(m.find_file("connectivity_metadata.json"));
    EXPECT_EQ(m.summary.fallbacks[0].partition, -1);
    EXPECT_EQ(messages_, dir_ / "m.onnx" +
                             ": standard compilation left 2 of 10 operators outside the NPU, "
                             "libvartml will refuse the model; the CPU partition passes would make "
                             "it runnable\n");
    const std::string* text = m.find_file("final-vaiml-pass-summary.txt");
    ASSERT_TRUE(text);
    EXPECT_NE(text->find("Stats for CPU subgraphs\nnone (left to another runtime)\n"),
              std::string::npos);
}

TEST_F(CompilePartition, WritesAStandardModelWithoutAnyNpuPart) {
    request_.cpu_partition = false;
    TinyOnnx m;
    m.input("x", {4, 4}).node("Trilu", {"x"}, {"y"}).output("y");
    const CompiledModel model = compiled(m);
    EXPECT_TRUE(model.partitions.empty());
    EXPECT_TRUE(model.edges.empty());
    EXPECT_FALSE(model.inputs[0].hw);
}

TEST_F(CompilePartition, ListsTheReasonsWhereAFullOffloadIsRequired) {
    request_.require_full_offload = true;
    EXPECT_FALSE(compile(detector()));
    EXPECT_NE(not_offloaded_.find("node 'selected_node' (NonMaxSuppression) is not on softnpu: not "
                                  "implemented on the NPU (unsupported-operator)\n"),
              std::string::npos)
        << not_offloaded_;
    EXPECT_TRUE(not_offloaded_.ends_with(
        ": 2 of 10 operators do not run on the NPU, as --require-full-offload demands; replace "
        "them, or compile without it"))
        << not_offloaded_;
    not_offloaded_.clear();
    TinyOnnx m;
    m.input("x", {4, 4}).node("Exp", {"x"}, {"y"}).output("y");
    EXPECT_TRUE(compile(m));
    EXPECT_EQ(not_offloaded_, "");
}

}  // namespace
}  // namespace vartml::compiler
