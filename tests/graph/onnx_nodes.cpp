// SPDX-License-Identifier: Apache-2.0
// The node tests of ONNX itself, kernel by kernel: their inputs become constants of the model, so
// that the importer and the kernels compute the outputs. Debian's package libonnx-testdata holds
// them; VARTML_NODES (a part of a test's name) picks some.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "lib/compile/onnx/import.h"
#include "lib/compile/onnx/model_file.h"
#include "lib/graph/fold.h"
#include "lib/graph/kernel.h"
#include "lib/graph/numbers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensor_proto.h"

namespace vartml::cpu {
namespace {

namespace fs = std::filesystem;
using graph::Graph;

const fs::path all_tests = "/usr/share/libonnx-testdata/data/node";

// Tests whose expected outputs are wrong, as later versions of ONNX say.
constexpr std::string_view mistaken[] = {
    // Divides by taps behind the padding, too.
    "test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True",
    // Wrap where the operator saturates.
    "test_qlinearmatmul_2D_int8_float16",
    "test_qlinearmatmul_2D_int8_float32",
    "test_qlinearmatmul_3D_int8_float16",
    "test_qlinearmatmul_3D_int8_float32",
    // 0/0 in ONNX 1.20; the norm of nothing but zeros gives zeros.
    "test_l2normalization_axis_0",
};

// The model with the inputs of its first data set as initialisers.
bool bake(const fs::path& folder, const std::string& to) {
    ::onnx::ModelProto model;
    std::ifstream file(folder / "model.onnx", std::ios::binary);
    if (!model.ParseFromIstream(&file)) return false;
    auto& graph = *model.mutable_graph();
    for (int i = 0; i < graph.input_size(); ++i) {
        std::ifstream data(folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb"),
                           std::ios::binary);
        ::onnx::TensorProto tensor;
        if (!data || !tensor.ParseFromIstream(&data)) return false;
        tensor.set_name(graph.input(i).name());
        // The data files have no bf16: they hold its bits as u16.
        if (graph.input(i).type().tensor_type().elem_type() == ::onnx::TensorProto::BFLOAT16)
            tensor.set_data_type(::onnx::TensorProto::BFLOAT16);
        *graph.add_initializer() = tensor;
    }
    graph.clear_input();
    std::ofstream out(to, std::ios::binary);
    return model.SerializeToOstream(&out);
}

// "" or what is wrong.
std::string compare(const graph::Value& found, const test::ProtoTensor& expected) {
    graph::Graph holder;
    const std::map<int, DataType> types = {
        {1, DataType::float32},  {2, DataType::uint8},   {3, DataType::int8},
        {4, DataType::uint16},   {5, DataType::int16},   {6, DataType::int32},
        {7, DataType::int64},    {9, DataType::boolean}, {10, DataType::fp16},
        {11, DataType::float64}, {12, DataType::uint32}, {13, DataType::uint64},
        {16, DataType::bf16}};
    const bool bits_of_bf16 = found.type.data_type == DataType::bf16 && expected.data_type == 4;
    const auto type = types.find(bits_of_bf16 ? 16 : expected.data_type);
    if (type == types.end()) return "the type of the expected output is not known";
    const auto bytes = std::as_bytes(std::span(expected.raw));
    holder.add_constant("y", {type->second, expected.dims},
                        graph::make_constant(std::vector<std::byte>(bytes.begin(), bytes.end())));
    if (!(found.type == holder.values[0].type))
        return "is " + to_string(found.type) + ", expected " + to_string(holder.values[0].type);
    const auto a = graph::read_numbers<double>(found);
    const auto b = graph::read_numbers<double>(holder.values[0]);
    for (size_t i = 0; i < b.size(); ++i) {
        const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
        // The makers of the data cut bf16 off, where ONNX says to round.
        const double relative = bits_of_bf16 ? 0x1p-7 : 1e-3;
        const double tolerance =
            graph::is_float(type->second) ? 1e-7 + relative * std::fabs(b[i]) : 0;
        if (!same && !(std::fabs(a[i] - b[i]) <= tolerance))
            return "element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", expected " +
                   std::to_string(b[i]);
    }
    return {};
}

// Computes all nodes that the importer left.
std::string compute(Graph& graph) {
    for (const graph::Node& node : graph.nodes) {
        std::vector<std::vector<int64_t>> shapes;
        const auto constants = evaluate(graph, node, &shapes);
        if (!constants) return constants.error().message;
        for (size_t i = 0; i < node.outputs.size(); ++i) {
            if (node.outputs[i] == graph::none) continue;
            graph::Value& value = graph.value(node.outputs[i]);
            value.constant = (*constants)[i];
            if (i < shapes.size()) value.type.shape = shapes[i];
        }
    }
    return {};
}

struct Outcome {
    enum { refused, passed, failed } kind;
    std::string why;
};

Outcome run_test(const fs::path& folder, const std::string& scratch) {
    if (!bake(folder, scratch)) return {Outcome::refused, "its inputs are no tensors"};
    auto imported = onnx::import_onnx(scratch);
    if (!imported) return {Outcome::refused, imported.error().message};
    Graph& graph = imported->graph;
    if (const std::string why = compute(graph); !why.empty()) return {Outcome::failed, why};
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        const auto expected = test::read_tensor_proto(
            (folder / "test_data_set_0" / ("output_" + std::to_string(i) + ".pb")).string());
        if (!expected) return {Outcome::refused, "its outputs are no tensors"};
        const graph::Value& found = graph.value(graph.outputs[i]);
        if (const std::string why = compare(found, *expected); !why.empty())
            return {Outcome::failed, "output '" + found.name + "' " + why};
    }
    return {Outcome::passed, {}};
}

TEST(Kernels, GiveWhatTheNodeTestsOfOnnxExpect) {
    if (!fs::is_directory(all_tests)) GTEST_SKIP() << all_tests << " is not installed";
    const char* part = std::getenv("VARTML_NODES");
    test::TempDir temp;
    const std::string scratch = temp / "model.onnx";
    std::map<int, int> counts;
    for (const fs::path& folder :
         std::set<fs::path>(fs::directory_iterator(all_tests), fs::directory_iterator{})) {
        const std::string name = folder.filename().string();
        if (part && name.find(part) == name.npos) continue;
        if (std::ranges::find(mistaken, name) != std::end(mistaken)) continue;
        const Outcome outcome = run_test(folder, scratch);
        ++counts[outcome.kind];
        if (outcome.kind == Outcome::failed) ADD_FAILURE() << name << ": " << outcome.why;
        if (outcome.kind == Outcome::refused && std::getenv("VARTML_VERBOSE"))
            std::printf("refused %s: %s\n", name.c_str(), outcome.why.c_str());
    }
    std::printf("%d passed, %d failed, %d refused\n", counts[Outcome::passed],
                counts[Outcome::failed], counts[Outcome::refused]);
    constexpr int known_to_pass = 970;  // of Debian 13's
    if (!part) {
        EXPECT_GE(counts[Outcome::passed], known_to_pass);
    }
}

}  // namespace
}  // namespace vartml::cpu
