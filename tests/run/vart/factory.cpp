// SPDX-License-Identifier: Apache-2.0
// Opening a model as an application does: which containers are taken, what is refused with which
// sentence, and what a runner says in its log.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <vart/vart_runner_factory.hpp>

#include "lib/run/vart/runner.h"
#include "tests/model/models.h"
#include "tests/support/fake_runner.h"
#include "tests/support/temp_dir.h"

namespace {
using namespace vart;
using namespace vartml::test;
using Options = std::unordered_map<std::string, std::any>;
using vartml::LogLevel;
using vartml::runtime::Tensors;

vartml::artifact::CompiledModel sigmoid() {
    auto partition = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[2,30]
%y = Sigmoid %x : f32[2,30]
output %y
)"));
    for (auto* tensor : {&partition.inputs[0], &partition.outputs[0]}) tensor->hw = tensor->cpu;
    return connect(make_model({std::move(partition)}));
}

class Factory : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(vartml::artifact::write_rai(sigmoid(), path)); }
    // What create_runner throws: "A: " for std::invalid_argument, "R: " for std::runtime_error.
    static std::string refusal(const std::string& model, const Options& options = {},
                               RunnerType type = RunnerType::VAIML) {
        try {
            RunnerFactory::create_runner(type, model, options);
            return "";
        } catch (const std::invalid_argument& e) {
            return std::string("A: ") + e.what();
        } catch (const std::runtime_error& e) {
            return std::string("R: ") + e.what();
        }
    }
    void expect_refusal(const std::string& text, const std::string& kind,
                        std::initializer_list<std::string> parts) {
        SCOPED_TRACE(text);
        EXPECT_EQ(text.substr(0, 3 + 15), kind + ": create_runner: ");
        for (const std::string& part : parts)
            EXPECT_NE(text.find(part), std::string::npos) << "expected: " << part;
    }
    const TempDir dir;
    const std::string path = dir / "model.rai";
    LogLines log;
};

// The rows of 10.2, in their order.
TEST_F(Factory, NamesWhatIsWrongWithAPath) {
    expect_refusal(refusal(""), "R", {"path of the compiled model is empty"});
    expect_refusal(refusal("/nowhere/m.rai"), "R", {"/nowhere/m.rai", "No such file"});
    spill(dir / "net.onnx", std::string("\x08\x07\x12\x04test", 8));
    expect_refusal(refusal(dir / "net.onnx"), "R", {"net.onnx"});
    spill(dir / "text.rai", "not a model at all");
    expect_refusal(refusal(dir / "text.rai"), "R", {"text.rai"});
    spill(dir / "two/a.rai", slurp(path));
    spill(dir / "two/b.rai", slurp(path));
    expect_refusal(refusal(dir / "two"), "R", {"a.rai", "b.rai"});
    spill(dir / "cache/key/m.rai", slurp(path));
    expect_refusal(refusal(dir / "cache"), "R", {"cache", "key"});
    spill(dir / "empty/readme", "nothing");
    expect_refusal(refusal(dir / "empty"), "R", {"neither vaiml_par_0 nor a .rai"});
    EXPECT_EQ(refusal(dir / "cache/key"), "");  // a folder with exactly one archive
}

TEST_F(Factory, TakesNoOtherRunnerType) {
    expect_refusal(refusal(path, {}, static_cast<RunnerType>(7)), "R",
                   {"runner type is 7, expected RunnerType::VAIML"});
}

// Options come first: the model is not even looked for.
TEST_F(Factory, LooksAtOptionsBeforeTheModel) {
    expect_refusal(refusal("/nowhere/m.rai", {{"colour", 1}}), "A", {"unknown option 'colour'"});
    // Where XRT is used, it has no such device.
    expect_refusal(
        refusal("/nowhere/m.rai", {{"vartml_memory", "xrt"}, {"xdna_device_index", 255u}}), "R",
        {"'vartml_memory' is 'xrt': XRT cannot ", "or set it to \"host\""});
    expect_refusal(refusal("/nowhere/m.rai", {{"xdna_device_index", 1u}}), "A",
                   {"'xdna_device_index' is 1", "vartml_memory"});
    expect_refusal(refusal(path, {{"vartml_device", "xrt"}}), "R",
                   {"XRT is memory only", "vartml_memory"});
}

// Also a value that only the model, the machine or another option makes wrong.
TEST_F(Factory, SaysOfAWrongValueThatItIsAnArgument) {
    expect_refusal(refusal(path, {{"vartml_device", "nope"}}), "A",
                   {"option 'vartml_device'", "'nope' is not in this build; there is 'softnpu'"});
    expect_refusal(refusal(path, {{"start_column", 4000u}}), "A",
                   {"columns 4000", "do not exist", "leave out start_column"});
    expect_refusal(refusal(path, {{"input_tensor_type.z", "CPU"}}), "A",
                   {"option 'input_tensor_type.z'", "has no input 'z'"});
}

TEST_F(Factory, HoldsTheConfigurationAgainstTheModel) {
    const auto with = [&](const std::string& json) {
        spill(dir / "config.json", json);
        return refusal(path, {{"config_json", dir / "config.json"}});
    };
    const auto config = [](const std::string& device) {
        return R"({"passes": [{"vaiml_config": {"device": ")" + device + "\"}}]}";
    };
    EXPECT_EQ(refusal(path, {{"config_json", ""}}), "");  // not given
    EXPECT_EQ(with(config("softnpu")), "");
    expect_refusal(with(config("ve2")), "R",
                   {"'config_json'", "is for device \"ve2\"", "compiled for 'softnpu'"});
    expect_refusal(with("{"), "R", {"is not valid JSON"});
    expect_refusal(with("[]"), "R", {"has no array 'passes'"});
    expect_refusal(with("{\"passes\": []}"), "R", {"names no device"});
    expect_refusal(with(""), "R", {"is not valid JSON"});
    expect_refusal(refusal(path, {{"config_json", dir.path()}}), "R",
                   {"option 'config_json': " + dir.path() + ": cannot read: Is a directory"});
}

// 10.1: the choice of the device is one line at INFO; 12: levels are those of the runner.
TEST_F(Factory, SaysOnceAtInfoWhatWasChosen) {
    log.take();
    const std::pair<const char*, size_t> rows[] = {
        {"ERROR", 0}, {"WARNING", 0}, {"INFO", 1}, {"DEBUG", 4}};
    for (const auto& [level, lines] : rows) {
        const auto runner =
            RunnerFactory::create_runner(RunnerType::VAIML, path, {{"log_level", level}});
        const auto said = log.take();
        EXPECT_EQ(said.size(), lines) << level;
        for (const auto& [importance, text] : said)
            if (importance == LogLevel::info) {
                EXPECT_NE(text.find("runs on softnpu, target softnpu-1"), std::string::npos);
            }
        // No line per frame.
        Tensors in = allocate(*runner, TensorDirection::INPUT);
        Tensors out = allocate(*runner, TensorDirection::OUTPUT);
        EXPECT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
        if (lines < 4) {
            EXPECT_TRUE(log.take().empty());
        }
        log.take();
    }
    RunnerFactory::create_runner(RunnerType::VAIML, path, {{"no_failsafe", true}});
    EXPECT_EQ(log.take().size(), 2u);
}

// 4: per direction; a model whose outputs a CPU partition makes keeps its HW inputs.
TEST_F(Factory, DecidesPerDirectionWhetherThereAreHwViews) {
    auto first = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[2,30]
%t = Sigmoid %x : f32[2,30]
output %t
)"));
    first.inputs[0].hw = first.inputs[0].cpu;
    first.outputs[0].hw = first.outputs[0].cpu;
    auto last = make_partition("vaiml_cpu_subgraph_0", parse_graph(R"(graph g
input %t : f32[2,30]
%y = Neg %t : f32[2,30]
output %y
)"));
    ASSERT_TRUE(vartml::artifact::write_rai(
        connect(make_model({std::move(first), std::move(last)})), path));
    expect_refusal(
        refusal(path), "R",
        {"has no HW view for output 'y'", "(produced by CPU partition vaiml_cpu_subgraph_0)",
         "set output_tensor_type to \"CPU\""});
    const auto runner = RunnerFactory::create_runner(
        RunnerType::VAIML, path, {{"output_tensor_type", "CPU"}, {"log_level", "WARNING"}});
    EXPECT_EQ(runner->get_tensors_info(TensorDirection::INPUT, TensorType::HW).size(), 1u);
    EXPECT_TRUE(runner->get_tensors_info(TensorDirection::OUTPUT, TensorType::HW).empty());
    EXPECT_THROW((void)runner->get_tensor_info_by_name("y", TensorType::HW), std::runtime_error);
    EXPECT_NO_THROW((void)runner->get_tensor_info_by_name("x", TensorType::HW));
    Tensors in = allocate(*runner, TensorDirection::INPUT);
    Tensors out = allocate(*runner, TensorDirection::OUTPUT);
    EXPECT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    EXPECT_FLOAT_EQ(elements<float>(out[0][0])[0], -0.5f);
    EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("bytes_copied_in")), 0u);
    EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("bytes_copied_out")), 240u);
}

// Each tensor may have its own view; HW views are listed where there are any.
TEST_F(Factory, ChoosesTheViewOfSingleTensors) {
    auto npu = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[2,30]
%t = Sigmoid %x : f32[2,30]
%u = Neg %x : f32[2,30]
output %t
output %u
)"));
    for (auto* list : {&npu.inputs, &npu.outputs})
        for (auto& tensor : *list) tensor.hw = tensor.cpu;
    auto cpu = make_partition("vaiml_cpu_subgraph_0", parse_graph(R"(graph g
input %t : f32[2,30]
%y = Neg %t : f32[2,30]
output %y
)"));
    auto model = connect(make_model({std::move(npu), std::move(cpu)}));
    std::ranges::reverse(model.outputs);  // y, u
    ASSERT_TRUE(vartml::artifact::write_rai(model, path));
    const auto open = [&](std::unordered_map<std::string, std::any> options) {
        options["log_level"] = "ERROR";
        return RunnerFactory::create_runner(RunnerType::VAIML, path, options);
    };
    for (const bool by_default : {true, false}) {
        const auto runner = by_default ? open({{"output_tensor_type.y", "CPU"}})
                                       : open({{"output_tensor_type", "CPU"},
                                               {"output_tensor_type.u", std::string("HW")}});
        const auto& hw = runner->get_tensors_info(TensorDirection::OUTPUT, TensorType::HW);
        ASSERT_EQ(hw.size(), 1u);
        EXPECT_EQ(hw[0].name, "u");
        EXPECT_EQ(runner->get_tensor_info_by_name("u", TensorType::HW).tensor_type, TensorType::HW);
        EXPECT_THROW((void)runner->get_tensor_info_by_name("y", TensorType::HW),
                     std::runtime_error);
        const auto of = [&](const char* name, TensorType type) {
            return runner->allocate_npu_tensor(runner->get_tensor_info_by_name(name, type));
        };
        Tensors in = {{of("x", TensorType::HW)}};
        Tensors out = {{of("y", TensorType::CPU), of("u", TensorType::HW)}};
        elements<float>(in[0][0])[0] = 3;
        ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
        EXPECT_EQ(elements<float>(out[0][1])[0], -3.0f);
        EXPECT_FLOAT_EQ(elements<float>(out[0][0])[1], -0.5f);
        EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("bytes_copied_out")), 240u);
        // in any order: applications list them view by view
        elements<float>(in[0][0])[0] = 4;
        Tensors swapped = {{out[0][1], out[0][0]}};
        const auto job = runner->execute_async(in, swapped);
        ASSERT_EQ(job.status, StatusCode::SUCCESS);
        EXPECT_EQ(runner->wait(job, std::chrono::seconds(60)), StatusCode::SUCCESS);
        EXPECT_EQ(elements<float>(out[0][1])[0], -4.0f);
        // the view of another runner's options is none of this one
        Tensors wrong = {{of("y", TensorType::CPU), of("u", TensorType::CPU)}};
        EXPECT_EQ(runner->execute(in, wrong), StatusCode::INVALID_OUTPUT);
        Tensors twice = {{out[0][0], out[0][0]}};
        EXPECT_EQ(runner->execute(in, twice), StatusCode::INVALID_OUTPUT);
    }
    const auto text = [&](const std::string& key, const char* view) -> std::string {
        try {
            open({{"output_tensor_type", "CPU"}, {key, view}});
        } catch (const std::exception& e) {
            return e.what();
        }
        return "no exception";
    };
    EXPECT_EQ(text("output_tensor_type.z", "HW"),
              "create_runner: option 'output_tensor_type.z': "
              "model '" +
                  path + "' has no output 'z'; it has 'y', 'u'");
    EXPECT_EQ(text("input_tensor_type.u", "HW"),
              "create_runner: option 'input_tensor_type.u': "
              "model '" +
                  path + "' has no input 'u'; it has 'x'");
    EXPECT_EQ(text("output_tensor_type.y", "HW"),
              "create_runner: set output_tensor_type.y to \"CPU\": model '" + path +
                  "' has no HW view for output 'y' (produced by CPU partition "
                  "vaiml_cpu_subgraph_0)");
}

// 8.3: data that an operator rejects is FAILURE, with the node's name; the runner works on.
TEST_F(Factory, NamesTheNodeThatRejectsItsData) {
    auto cpu = make_partition("vaiml_cpu_subgraph_0", parse_graph(R"(graph g
input %i : i64[2]
const %d : f32[3] = {1, 2, 3}
%y = Gather %d, %i {axis=0} : f32[2] @pick
output %y
)"));
    ASSERT_TRUE(vartml::artifact::write_rai(connect(make_model({std::move(cpu)})), path));
    const auto runner = RunnerFactory::create_runner(
        RunnerType::VAIML, path,
        {{"input_tensor_type", "CPU"}, {"output_tensor_type", "CPU"}, {"log_level", "WARNING"}});
    Tensors in = allocate(*runner, TensorDirection::INPUT);
    Tensors out = allocate(*runner, TensorDirection::OUTPUT);
    elements<int64_t>(in[0][0])[1] = 9;
    log.take();
    EXPECT_EQ(runner->execute(in, out), StatusCode::FAILURE);
    const auto lines = log.take();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NE(lines[0].second.find("pick"), std::string::npos) << lines[0].second;
    EXPECT_EQ(lines[0].second, std::any_cast<std::string>(runner->get_property("last_error")));
    elements<int64_t>(in[0][0])[1] = 2;
    EXPECT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    EXPECT_EQ(elements<float>(out[0][0])[1], 3.0f);
}

// 2: any non-zero byte reads as true, the runner writes 0 or 1.
TEST_F(Factory, ReadsEveryNonZeroByteAsTrue) {
    auto partition = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : bool[2,4]
input %z : bool[2,4]
%y = And %x, %z : bool[2,4]
output %y
)"));
    for (auto* list : {&partition.inputs, &partition.outputs})
        for (auto& tensor : *list) tensor.hw = tensor.cpu;
    ASSERT_TRUE(vartml::artifact::write_rai(connect(make_model({std::move(partition)})), path));
    const auto runner =
        RunnerFactory::create_runner(RunnerType::VAIML, path, {{"log_level", "WARNING"}});
    Tensors in = allocate(*runner, TensorDirection::INPUT);
    Tensors out = allocate(*runner, TensorDirection::OUTPUT);
    const uint8_t x[] = {0, 1, 2, 255, 4, 0, 1, 128}, z[] = {1, 1, 1, 1, 8, 3, 0, 1};
    std::ranges::copy(x, elements<uint8_t>(in[0][0]).begin());
    std::ranges::copy(z, elements<uint8_t>(in[0][1]).begin());
    ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    const auto y = elements<uint8_t>(out[0][0]);
    EXPECT_EQ(std::vector<uint8_t>(y.begin(), y.end()),
              (std::vector<uint8_t>{0, 1, 1, 1, 1, 0, 0, 1}));
}

// 8.2: a parent may come from another runner, and its memory outlives both.
TEST_F(Factory, SharesMemoryBetweenRunners) {
    auto one = RunnerFactory::create_runner(RunnerType::VAIML, path, {{"log_level", "ERROR"}});
    auto two = RunnerFactory::create_runner(RunnerType::VAIML, path, {{"log_level", "ERROR"}});
    NpuTensorInfo info = one->get_tensor_info_by_name("x", TensorType::HW);
    NpuTensorInfo large = info;
    large.size_in_bytes *= 2;
    NpuTensor parent = one->allocate_npu_tensor(large);
    NpuTensor sub = two->allocate_sub_tensor(parent, info, info.size_in_bytes);
    elements<float>(parent)[60] = 7;
    parent = NpuTensor();
    one.reset();
    two.reset();
    EXPECT_EQ(elements<float>(sub)[0], 7);
}

}  // namespace
