// SPDX-License-Identifier: Apache-2.0
// Real models with floats of 16 bits, made from those of 32: the software NPU finds in both the
// same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "lib/compile/onnx/import.h"
#include "lib/compile/pass_table.h"
#include "lib/graph/numbers.h"
#include "lib/run/softnpu/softnpu.h"
#include "tests/support/half_model.h"
#include "tests/support/run_once.h"
#include "tests/support/temp_dir.h"

namespace vartml::compiler {
namespace {

using device::Numerics;
using test::Border;

struct Model {
    const char* name;
    std::map<std::string, std::vector<int64_t>> shapes = {};
};
void PrintTo(const Model& model, std::ostream* os) {
    *os << model.name;
}

// As it lies in the model, row-major.
TensorInfo plain_border(const graph::Value& value) {
    std::vector<uint32_t> shape(value.type.shape.begin(), value.type.shape.end()), order;
    for (uint32_t i = 0; i < shape.size(); ++i) order.push_back(i);
    const TensorView cpu = make_view(value.type.data_type, Layout::GENERIC, shape, order);
    return {value.name, cpu, hw_view(cpu, Layout::GENERIC, value.type.data_type), false, {}};
}

void put(DataType type, double number, std::byte* at) {
    graph::with_type(type, [&]<typename T>(T element) {
        element = graph::convert<T>(number);
        std::memcpy(at, &element, sizeof element);
    });
}
std::vector<double> numbers_of(const std::vector<std::byte>& bytes, DataType type) {
    std::vector<double> numbers(bytes.size() / size_bytes(type));
    graph::with_type(type, [&]<typename T>(T element) {
        for (size_t i = 0; i < numbers.size(); ++i) {
            std::memcpy(&element, &bytes[i * sizeof element], sizeof element);
            numbers[i] = graph::convert<double>(element);
        }
    });
    return numbers;
}

// Smooth patterns of -1 to 1, so that fp16 holds them well.
void fill(std::vector<std::byte>& bytes, DataType type) {
    for (size_t i = 0; i < bytes.size() / size_bytes(type); ++i) {
        const double at = static_cast<double>(i);
        put(type, std::sin(at * 0.013) * std::cos(at * 0.00071), &bytes[i * size_bytes(type)]);
    }
}

// The numbers of all outputs.
Result<std::map<std::string, std::vector<double>>> run(const std::string& file, const Model& model,
                                                       Numerics numerics) {
    auto imported = onnx::import_onnx(file, {.input_shapes = model.shapes});
    if (!imported) return imported.error();
    auto program = std::make_shared<device::Program>();
    program->name = "test";
    program->target = "softnpu-1";
    program->graph = std::move(imported->graph);
    if (auto done = run_passes(program->graph, {.level = 2, .verify = true}); !done)
        return done.error();
    std::vector<std::vector<std::byte>> memory;
    std::vector<const void*> in;
    std::vector<void*> out;
    const graph::Graph& graph = program->graph;
    memory.reserve(graph.inputs.size() + graph.outputs.size());
    for (const auto id : graph.inputs) {
        program->inputs.push_back(plain_border(graph.value(id)));
        memory.emplace_back(program->inputs.back().hw->size_bytes);
        fill(memory.back(), graph.value(id).type.data_type);
        in.push_back(memory.back().data());
    }
    for (const auto id : graph.outputs) {
        program->outputs.push_back(plain_border(graph.value(id)));
        out.push_back(memory.emplace_back(program->outputs.back().hw->size_bytes).data());
    }
    auto loaded = device::softnpu_device().load(program, {.numerics = numerics, .threads = 2});
    if (!loaded) return loaded.error();
    if (auto done = test::run_once(**loaded, in, out); !done) return done.error();
    std::map<std::string, std::vector<double>> results;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        const graph::Value& value = graph.value(graph.outputs[i]);
        results[value.name] = numbers_of(memory[graph.inputs.size() + i], value.type.data_type);
    }
    return results;
}

// Rms of the difference in parts of the rms of what is wanted; scores that are nearly 0 throughout
// count as 0.05.
double distance(const std::vector<double>& found, const std::vector<double>& wanted) {
    const double all = 0.05 * 0.05 * static_cast<double>(wanted.size());
    double square = 0, norm = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
        if (!std::isfinite(found[i])) return INFINITY;
        square += (found[i] - wanted[i]) * (found[i] - wanted[i]);
        norm += wanted[i] * wanted[i];
    }
    return std::sqrt(square / std::max(norm, all));
}

std::string file_of(const Model& model) {
    const char* shared = std::getenv("VARTML_SHARED");
    return std::string(shared ? shared : "") + "/models/" + model.name + "/model.onnx";
}

class HalfModels : public testing::TestWithParam<Model> {};
TEST_P(HalfModels, ComputeWhatTheirTwinsOfFloatsCompute) {
    const std::string file = file_of(GetParam());
    if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
    ::onnx::ModelProto proto;
    std::ifstream stream(file, std::ios::binary);
    ASSERT_TRUE(proto.ParseFromIstream(&stream));
    const test::TempDir folder;
    const auto save = [&](const ::onnx::ModelProto& model, const char* name) {
        std::ofstream to(folder / name, std::ios::binary);
        EXPECT_TRUE(model.SerializeToOstream(&to));
        return folder / name;
    };
    const std::string same_weights = save(test::with_half_weights(proto), "floats.onnx");
    for (const Numerics numerics : {Numerics::f32, Numerics::bf16}) {
        const auto want = run(same_weights, GetParam(), numerics);
        ASSERT_TRUE(want) << want.error().message;
        for (const Border border : {Border::fp16, Border::f32}) {
            SCOPED_TRACE(testing::Message()
                         << (numerics == Numerics::f32 ? "f32" : "bf16") << ", border "
                         << (border == Border::f32 ? "f32" : "fp16"));
            const std::string path = save(test::half_twin(proto, border), "half.onnx");
            const auto found = run(path, GetParam(), numerics);
            ASSERT_TRUE(found) << found.error().message;
            ASSERT_EQ(found->size(), want->size());
            // Inputs, outputs and what plain loops compute are rounded to 11 bits; in bf16 that is
            // a start for its own rounding to go another way, which a score of 0.05 shows most.
            // Bits of fp16 read as bf16 would be off by more than all.
            const double tolerance = numerics == Numerics::f32 ? 0.01 : 0.3;
            for (const auto& [name, numbers] : *want)
                EXPECT_LT(distance(found->at(name), numbers), tolerance) << name;
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Models, HalfModels,
                         testing::ValuesIn(std::vector<Model>{
                             {"hand_landmark"},
                             {"lightperson"},
                             {"mnist_cntk"},
                             {"nanodet_m_320"},
                             {"person_reid_0287"},
                             {"ppocr_cls", {{"x", {1, 3, 48, 192}}}},
                             {"selfie_landscape"},
                             {"super_resolution_10"},
                             {"ultraface_rfb_320"},
                             {"yolox_nano_416"},
                             {"yunet_n_320"}}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace vartml::compiler
