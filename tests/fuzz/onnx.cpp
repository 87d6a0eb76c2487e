// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as an ONNX model, through the whole compiler. Bytes alone seldom make a graph, so
// most mutations change the model that was read: nodes, edges, attributes, shapes, types.
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "lib/compile/compile.h"
#include "lib/graph/ops.h"
#include "tests/fuzz/bytes.h"
#include "tests/support/tiny_onnx.h"

using namespace vartml;
using namespace vartml::test;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using Ints = TinyOnnx::Ints;
using Random = std::minstd_rand;

int below(Random& random, int n) {
    return n > 0 ? static_cast<int>(random() % static_cast<unsigned>(n)) : 0;
}

int64_t number(Random& random) {
    constexpr int64_t numbers[] = {0,  1,  2,   3,     4,       7,         8,        -1,
                                   -2, 16, 255, 65536, 1 << 30, INT64_MAX, INT64_MIN};
    return numbers[below(random, std::size(numbers))];
}

// A value that something in the graph makes, or the graph's own.
std::string a_value(const ::onnx::GraphProto& graph, Random& random) {
    std::vector<std::string> names = {""};
    for (const auto& input : graph.input()) names.push_back(input.name());
    for (const auto& constant : graph.initializer()) names.push_back(constant.name());
    for (const auto& node : graph.node())
        for (const std::string& output : node.output()) names.push_back(output);
    return names[static_cast<size_t>(below(random, static_cast<int>(names.size())))];
}

void mutate_attribute(::onnx::NodeProto& node, Random& random) {
    if (node.attribute().empty()) return;
    auto& a = *node.mutable_attribute(below(random, node.attribute_size()));
    switch (below(random, 5)) {
        case 0:
            a.set_i(number(random));
            break;
        case 1:
            if (!a.ints().empty()) a.set_ints(below(random, a.ints_size()), number(random));
            break;
        case 2:
            a.add_ints(number(random));
            break;
        case 3:
            a.set_f(static_cast<float>(number(random)));
            break;
        default:
            a.set_s(below(random, 2) ? "SAME_UPPER" : "bilinear");
    }
}

void mutate_tensor(::onnx::TensorProto& tensor, Random& random) {
    switch (below(random, 3)) {
        case 0:
            if (!tensor.dims().empty())
                tensor.set_dims(below(random, tensor.dims_size()), number(random));
            break;
        case 1:
            tensor.set_data_type(below(random, 24));
            break;
        default:
            if (!tensor.int64_data().empty())
                tensor.set_int64_data(below(random, tensor.int64_data_size()), number(random));
    }
}

void mutate_value(::onnx::ValueInfoProto& value, Random& random) {
    auto& type = *value.mutable_type()->mutable_tensor_type();
    if (below(random, 3) == 0) type.set_elem_type(below(random, 24));
    auto& shape = *type.mutable_shape();
    if (shape.dim().empty() || below(random, 4) == 0) shape.add_dim();
    auto& dim = *shape.mutable_dim(below(random, shape.dim_size()));
    if (below(random, 4) == 0)
        dim.set_dim_param("n");
    else
        dim.set_dim_value(number(random));
}

void mutate_node(::onnx::GraphProto& graph, Random& random) {
    auto& nodes = *graph.mutable_node();
    const int at = below(random, nodes.size());
    auto& node = *nodes.Mutable(at);
    static const std::vector<std::string> kinds = [] {
        std::vector<std::string> result;
        for (const graph::OpInfo& op : graph::all_ops()) result.emplace_back(op.kind);
        return result;
    }();
    switch (below(random, 6)) {
        case 0:
            node.set_op_type(
                kinds[static_cast<size_t>(below(random, static_cast<int>(kinds.size())))]);
            break;
        case 1:
            if (!node.input().empty())
                node.set_input(below(random, node.input_size()), a_value(graph, random));
            break;
        case 2:
            node.add_input(a_value(graph, random));
            break;
        case 3:
            nodes.DeleteSubrange(at, 1);
            break;
        case 4:
            nodes.SwapElements(at, below(random, nodes.size()));
            break;
        default:
            mutate_attribute(node, random);
    }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
    Random random(seed);
    ::onnx::ModelProto model;
    if (below(random, 10) == 0 || !model.ParseFromArray(data, static_cast<int>(size)))
        return LLVMFuzzerMutate(data, size, max_size);
    auto& graph = *model.mutable_graph();
    const int kind = below(random, 8);
    if (kind < 5 && !graph.node().empty())
        mutate_node(graph, random);
    else if (kind == 5 && !graph.initializer().empty())
        mutate_tensor(*graph.mutable_initializer(below(random, graph.initializer_size())), random);
    else if (kind == 6 && !graph.input().empty())
        mutate_value(*graph.mutable_input(below(random, graph.input_size())), random);
    else if (!graph.output().empty())
        mutate_value(*graph.mutable_output(below(random, graph.output_size())), random);
    const std::string bytes = model.SerializeAsString();
    if (bytes.size() > max_size) return size;
    std::copy(bytes.begin(), bytes.end(), data);
    return bytes.size();
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    seed("conv",
         TinyOnnx(17)
             .input("x", {1, 3, 8, 8})
             .weights("w", {4, 3, 3, 3})
             .node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}})
             .node("Relu", {"c"}, {"r"})
             .node("GlobalAveragePool", {"r"}, {"g"})
             .node("Flatten", {"g"}, {"f"})
             .weights("m", {4, 5})
             .node("MatMul", {"f", "m"}, {"y"})
             .output("y")
             .bytes());
    seed("shapes", TinyOnnx(17)
                       .input("x", {1, 4, 6})
                       .node("Shape", {"x"}, {"s"})
                       .ints("i", {1}, {1})
                       .node("Gather", {"s", "i"}, {"n"})
                       .ints("rest", {1}, {-1})
                       .node("Concat", {"n", "rest"}, {"t"}, {{"axis", int64_t{0}}})
                       .node("Reshape", {"x", "t"}, {"r"})
                       .node("Transpose", {"r"}, {"p"}, {{"perm", Ints{1, 0}}})
                       .node("Softmax", {"p"}, {"y"}, {{"axis", int64_t{-1}}})
                       .output("y")
                       .bytes());
    seed("data", TinyOnnx(17)
                     .input("boxes", {1, 6, 4})
                     .input("scores", {1, 2, 6})
                     .ints("most", {1}, {3})
                     .node("NonMaxSuppression", {"boxes", "scores", "most"}, {"y"})
                     .output("y", {}, TinyOnnx::int64)
                     .bytes());
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const MemoryFile file(as_text(data, size));
    compiler::CompileRequest request;
    request.model = file.path;
    request.onnxruntime = false;
    // Small, so that a graph that is large by right does not end the search.
    request.cpu_memory_limit = request.device_memory_limit = uint64_t{64} << 20;
    const auto compiled = compiler::compile_in_memory(request, nullptr, nullptr);
    if (compiled) return 0;
    std::istringstream lines(compiled.error().message);  // one for each node that is refused
    for (std::string line; std::getline(lines, line);) check_line(line);
    return 0;
}
