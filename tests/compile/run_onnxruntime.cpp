// SPDX-License-Identifier: Apache-2.0
// Operators that are none of ours: CPU partitions that ONNX Runtime computes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/support/running_model.h"

namespace vartml::compiler {
namespace {

using test::Running;
using test::TinyOnnx;
using vart::StatusCode;
using Ints = TinyOnnx::Ints;

// Sets a variable of the environment as long as it lives.
class Environment {
public:
    Environment(const char* name, const char* value) : name_(name) {
        if (const char* old = std::getenv(name)) old_ = old;
        ::setenv(name, value, 1);
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;
    ~Environment() {
        if (old_.empty())
            ::unsetenv(name_);
        else
            ::setenv(name_, old_.c_str(), 1);
    }

private:
    const char* name_;
    std::string old_;
};

// Without ONNX Runtime these tests have nothing to run.
class OnnxRuntime : public testing::Test {
protected:
    void SetUp() override {
        if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
            GTEST_SKIP() << "built without the headers of ONNX Runtime (libonnxruntime-dev)";
    }
};

// 1 / x for 2x2 matrices, between a convolution and an operator of the CPU partition.
TinyOnnx inverse_model() {
    TinyOnnx m(17);
    m.opset("com.microsoft", 1)
        .input("x", {1, 2, 2, 2})
        .floats("w", {2, 2, 1, 1}, {1, 0, 0, 2})
        .node("Conv", {"x", "w"}, {"a"})
        .node("Inverse", {"a"}, {"b"}, {}, "com.microsoft")
        .node("Cosh", {"b"}, {"y"})
        .output("y", {1, 2, 2, 2});
    return m;
}

TEST_F(OnnxRuntime, RunsAnOperatorBetweenTheNpuAndTheCpu) {
    TinyOnnx m = inverse_model();
    Running model(m);
    EXPECT_EQ(model.partitions(), (std::vector<std::string>{"vaiml_par_0", "vaiml_cpu_subgraph_0",
                                                            "vaiml_cpu_subgraph_1"}));
    const float x[] = {1, 2, 3, 5, 2, 0, 0, 4};
    for (int run = 0; run < 3; ++run) {
        std::ranges::copy(x, model.input<float>().begin());
        ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
        const float inverse[] = {-5, 2, 3, -1, 0.25F, 0, 0, 0.125F};
        for (size_t i = 0; i < 8; ++i)
            EXPECT_NEAR(model.output<float>()[i], std::cosh(inverse[i]), 1e-3) << i;
    }
}

// A graph of one node, as a branch or a body.
::onnx::GraphProto branch(const char* op, const std::vector<std::string>& inputs,
                          const std::string& output) {
    ::onnx::GraphProto graph;
    graph.set_name(output);
    auto* node = graph.add_node();
    node->set_op_type(op);
    node->set_name(output);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    auto* info = graph.add_output();
    info->set_name(output);
    info->mutable_type()->mutable_tensor_type()->set_elem_type(TinyOnnx::float32);
    return graph;
}

// Branches read tensors of the graph around them, constants included.
TEST_F(OnnxRuntime, TakesTheBranchThatTheDataSelect) {
    TinyOnnx m(17);
    m.input("x", {1, 4})
        .floats("three", {}, {3})
        .node("ReduceSum", {"x"}, {"sum"}, {{"keepdims", int64_t{0}}})
        .node("Greater", {"sum", "three"}, {"more"})
        .node("Neg", {"x"}, {"minus"})
        .node("If", {"more"}, {"b"},
              {{"then_branch", branch("Add", {"minus", "three"}, "t")},
               {"else_branch", branch("Mul", {"minus", "three"}, "e")}})
        .node("Relu", {"b"}, {"y"})
        .output("y", {1, 4});
    Running model(m);
    for (const float factor : {1.0F, -1.0F}) {
        for (size_t i = 0; i < 4; ++i) model.input<float>()[i] = factor * static_cast<float>(i);
        ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
        for (size_t i = 0; i < 4; ++i) {
            const float minus = -factor * static_cast<float>(i);
            const float b = factor > 0 ? minus + 3 : minus * 3;
            EXPECT_EQ(model.output<float>()[i], std::max(b, 0.0F)) << factor << ' ' << i;
        }
    }
}

// Sequences and strings stay inside: two readers of one sequence, and numbers that were texts.
TEST_F(OnnxRuntime, KeepsWhatIsNoTensorOfNumbersInside) {
    TinyOnnx m(17);
    m.input("x", {2, 3})
        .ints("zero", {}, {0})
        .ints("one", {}, {1})
        .node("Neg", {"x"}, {"minus"})
        .node("SequenceConstruct", {"x", "minus"}, {"list"})
        .node("SequenceAt", {"list", "zero"}, {"a"})
        .node("SequenceAt", {"list", "one"}, {"b"})
        .node("Cast", {"a"}, {"text"}, {{"to", int64_t{TinyOnnx::string}}})
        .node("Cast", {"text"}, {"number"}, {{"to", int64_t{TinyOnnx::float32}}})
        .node("Sub", {"number", "b"}, {"y"})
        .output("y", {2, 3});
    Running model(m);
    for (size_t i = 0; i < 6; ++i) model.input<float>()[i] = static_cast<float>(i) / 2;
    ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(model.output<float>()[i], static_cast<float>(i));
}

// Appends a row to what it scans, as often as x says: as many rows as the data want.
TinyOnnx loop_model(const std::vector<TinyOnnx::Dim>& declared) {
    ::onnx::GraphProto body;
    body.set_name("body");
    const auto add_value = [](auto* info, const char* name, int type) {
        info->set_name(name);
        info->mutable_type()->mutable_tensor_type()->set_elem_type(type);
        info->mutable_type()->mutable_tensor_type()->mutable_shape();
    };
    add_value(body.add_input(), "i", TinyOnnx::int64);
    add_value(body.add_input(), "going", TinyOnnx::boolean);
    const auto add_node = [&](const char* op, const char* input, const char* output) {
        auto* node = body.add_node();
        node->set_op_type(op);
        node->add_input(input);
        node->add_output(output);
        return node;
    };
    add_node("Identity", "going", "still");
    auto* cast = add_node("Cast", "i", "row")->add_attribute();
    cast->set_name("to");
    cast->set_type(::onnx::AttributeProto::INT);
    cast->set_i(TinyOnnx::float32);
    add_value(body.add_output(), "still", TinyOnnx::boolean);
    add_value(body.add_output(), "row", TinyOnnx::float32);
    TinyOnnx m(17);
    m.input("count", {1}, TinyOnnx::int64)
        .node("Loop", {"count", ""}, {"rows"}, {{"body", body}})
        .node("Neg", {"rows"}, {"y"})
        .output("rows", declared)
        .output("y", declared);
    return m;
}

TEST_F(OnnxRuntime, MakesTensorsWhoseSizeTheDataDecide) {
    TinyOnnx m = loop_model({6});
    Running model(m);
    for (const int64_t count : {4, 6, 1}) {
        model.input<int64_t>()[0] = count;
        ASSERT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
        for (int64_t i = 0; i < 6; ++i) {
            const auto at = static_cast<size_t>(i);
            EXPECT_EQ(model.output<float>(0)[at], i < count ? static_cast<float>(i) : 0);
            EXPECT_EQ(model.output<float>(1)[at], i < count ? -static_cast<float>(i) : 0);
        }
    }
    // More than there is room for is an error of the run, and the next one is good again.
    model.input<int64_t>()[0] = 7;
    EXPECT_NE(model.run(), StatusCode::SUCCESS);
    EXPECT_NE(model.last_error().find("'rows'"), std::string::npos) << model.last_error();
    EXPECT_NE(model.last_error().find("at most f32[6]"), std::string::npos) << model.last_error();
    model.input<int64_t>()[0] = 2;
    EXPECT_EQ(model.run(), StatusCode::SUCCESS) << model.last_error();
}

TEST_F(OnnxRuntime, RefusesWhatItDoesNotKnow) {
    TinyOnnx m(17);
    m.opset("com.example", 1)
        .input("x", {1, 4})
        .node("Frobnicate", {"x"}, {"y"}, {}, "com.example")
        .output("y", {1, 4});
    test::TempDir dir;
    CompileRequest request;
    request.model = dir / "m.onnx";
    m.save(request.model);
    const auto model = compile_in_memory(request, nullptr, nullptr);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, ErrorCode::unsupported);
    EXPECT_NE(
        model.error().message.find(
            "node 'y_node' uses com.example::Frobnicate (opset 1), which neither the NPU nor the "
            "CPU partition runs, and ONNX Runtime does not either: Fatal error: "),
        std::string::npos)
        << model.error().message;
}

// Shapes that ONNX's own inference knows need no ONNX Runtime while compiling.
TEST_F(OnnxRuntime, IsNotNeededToCompileWhatOnnxKnows) {
    const Environment absent("VARTML_ONNXRUNTIME", "/nowhere/libonnxruntime.so");
    TinyOnnx m(17);
    m.input("x", {1, 8, 1}).node("DFT", {"x"}, {"y"}, {{"axis", int64_t{1}}}).output("y");
    test::TempDir dir;
    CompileRequest request;
    request.model = dir / "m.onnx";
    m.save(request.model);
    const auto model = compile_in_memory(request, nullptr, nullptr);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->outputs[0].cpu.shape, (std::vector<uint32_t>{1, 8, 2}));
}

TEST_F(OnnxRuntime, IsMissedWhereAModelIsLoadedWithoutIt) {
    TinyOnnx m = inverse_model();
    test::TempDir dir;
    CompileRequest request;
    request.model = dir / "m.onnx";
    m.save(request.model);
    auto model = compile_in_memory(request, nullptr, nullptr);
    ASSERT_TRUE(model) << model.error().message;
    const Environment absent("VARTML_ONNXRUNTIME", "/nowhere/libonnxruntime.so");
    runtime::Options options;
    options.input_tensor_type = options.output_tensor_type = vart::TensorType::CPU;
    const auto state = runtime::prepare("m.rai", std::move(*model), std::move(options));
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().code, ErrorCode::unsupported);
    EXPECT_NE(state.error().message.find("needs ONNX Runtime, which is not here"),
              std::string::npos)
        << state.error().message;
    EXPECT_NE(state.error().message.find("VARTML_ONNXRUNTIME"), std::string::npos);
}

TEST(WithoutOnnxRuntime, ItsOperatorsAreRefused) {
    TinyOnnx m = inverse_model();
    test::TempDir dir;
    CompileRequest request;
    request.model = dir / "m.onnx";
    request.onnxruntime = false;
    m.save(request.model);
    const auto model = compile_in_memory(request, nullptr, nullptr);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, ErrorCode::unsupported);
    EXPECT_EQ(
        model.error().message,
        request.model +
            ": node 'b_node' uses com.microsoft::Inverse (opset 1), which neither the NPU nor the "
            "CPU partition runs; replace it with standard operators, or split the model at "
            "tensor 'a'");
}

}  // namespace
}  // namespace vartml::compiler
