// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/dynamic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"
#include "tests/support/graphs.h"

namespace vartml::cpu {
namespace {

// The constants of the text are what the node reads when it runs; the types of its outputs are the
// bounds.
struct Row {
    const char* name;
    const char* text;
    std::vector<int64_t> shape;    // of the first output
    std::vector<double> elements;  // empty: an error
    const char* error = "";
};
void PrintTo(const Row& row, std::ostream* os) {
    *os << row.name;
}

class Dynamic : public testing::TestWithParam<Row> {};
TEST_P(Dynamic, TakesItsShapeFromWhatItReads) {
    const graph::Graph graph = graph::must_parse(GetParam().text);
    const graph::Node& node = graph.nodes.back();
    std::vector<Array> inputs, outputs;
    for (const graph::ValueId id : node.inputs) {
        Array& input = inputs.emplace_back();
        if (id == graph::none) continue;
        const graph::Value& value = graph.value(id);
        input = {value.type.data_type, Shape(value.type.shape),
                 const_cast<std::byte*>(value.constant->bytes.data())};
    }
    const graph::Type bound = graph.value(node.outputs[0]).type;
    // A byte more than the bound, to see whether it stays.
    std::vector<std::byte> memory(bound.size_bytes() + 1, std::byte{0x5A});
    outputs.push_back({bound.data_type, Shape(bound.shape), memory.data()});
    const auto done = run_dynamic({node, inputs, outputs});
    EXPECT_EQ(memory.back(), std::byte{0x5A});
    if (GetParam().elements.empty()) {
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().message, GetParam().error);
        return;
    }
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(outputs[0].shape, Shape(GetParam().shape));
    memory.resize(outputs[0].size_bytes());
    graph::Graph holder;
    holder.add_constant("y", {bound.data_type, GetParam().shape}, graph::make_constant(memory));
    EXPECT_EQ(graph::read_numbers<double>(holder.values[0]), GetParam().elements);
}

#define X "graph g\nconst %x : i64[5] = {10, 11, 12, 13, 14}\n"
const Row rows[] = {
    {"NegativeStartsCountFromTheRealEnd",
     X "const %s : i64[1] = {-2}\nconst %e : i64[1] = {100}\n"
       "%y = Late %x, %s, %e {op=\"Slice\"} : i64[9]?\noutput %y\n",
     {2},
     {13, 14}},
    {"ReshapeFillsItsHole",
     X "const %s : i64[2] = {-1, 1}\n%y = Late %x, %s {op=\"Reshape\"} : i64[9,9]?\noutput %y\n",
     {5, 1},
     {10, 11, 12, 13, 14}},
    {"RangeOfNumbers",
     "graph g\nconst %a : i64[] = {2}\nconst %b : i64[] = {9}\nconst %c : i64[] = {3}\n"
     "%y = Late %a, %b, %c {op=\"Range\"} : i64[8]?\noutput %y\n",
     {3},
     {2, 5, 8}},
    // The absent bias keeps its place before what is fused.
    {"FusedProductWithoutBias",
     "graph g\nconst %a : f32[2,2] = {1.0, 2.0, 3.0, -4.0}\nconst %b : f32[2,1] = {1.0, 1.0}\n"
     "%y = MatMul+Relu %a, %b, _ : f32[2,1]\noutput %y\n",
     {2, 1},
     {3, 0}},
    {"MoreThanTheModelAllowsFor",
     X "const %s : i64[1] = {7}\n%y = Late %x, %s {op=\"Tile\"} : i64[20]?\noutput %y\n",
     {},
     {},
     "node 'y' (Tile) makes i64[35], the model allows for at most i64[20]; export it with the "
     "largest shape it can have"},
    {"AnotherRankThanTheModelSays",
     X "const %s : i64[1] = {-1}\n%y = Late %x, %s {op=\"Reshape\"} : i64[5,1]?\noutput %y\n",
     {},
     {},
     "node 'y' (Reshape) makes i64[5], the model allows for at most i64[5,1]; export it with the "
     "largest shape it can have"},
    {"ParametersThatDoNotFit",
     X "const %s : i64[1] = {3}\n%y = Late %x, %s {op=\"Reshape\"} : i64[9]?\noutput %y\n",
     {},
     {},
     "node 'y' (Reshape) reshapes i64[5] to [3], which has another number of elements"},
};
INSTANTIATE_TEST_SUITE_P(Cpu, Dynamic, testing::ValuesIn(rows),
                         [](const auto& row) { return row.param.name; });

// A program from a file may call any operator late, with any inputs and attributes: it fails with a
// sentence, or runs within its memory.
TEST(DynamicNode, OfAnyFormFailsOrStaysWithinItsMemory) {
    struct Input {
        DataType type;
        Shape shape;
        std::vector<double> numbers;
    };
    const std::vector<std::vector<Input>> lists = {
        {},
        {{DataType::unknown, {}, {}}},
        {{DataType::unknown, {}, {}}, {DataType::int64, {1}, {-1}}},
        {{DataType::float32, {2, 3}, {}}},
        {{DataType::float32, {2, 3}, {}}, {DataType::int64, {2}, {3, -1}}},
        {{DataType::float32, {1, 2, 4, 4}, {}}, {DataType::int64, {4}, {1, -7, 2, 1}}},
        {{DataType::float32, {1, 2, 4, 4}, {}},
         {DataType::unknown, {}, {}},
         {DataType::float32, {4}, {1, 1, 2, -1}}},
        {{DataType::int64, {}, {3}}, {DataType::int64, {}, {9}}, {DataType::int64, {}, {2}}},
        {{DataType::float32, {0, 3}, {}}, {DataType::float32, {0}, {}}, {DataType::int64, {0}, {}}},
        {{DataType::float32, {1, 2, 4}, {}},
         {DataType::float32, {2, 2, 3}, {}},
         {DataType::float32, {2}, {}},
         {DataType::float32, {2}, {}},
         {DataType::float32, {2}, {}},
         {DataType::int64, {1}, {5}}},
        {{DataType::uint8, {2, 2}, {}},
         {DataType::float32, {}, {1}},
         {DataType::uint8, {}, {1}},
         {DataType::uint8, {2, 2}, {}},
         {DataType::float32, {}, {1}},
         {DataType::uint8, {}, {1}},
         {DataType::float32, {}, {1}},
         {DataType::uint8, {}, {1}}},
    };
    const std::vector<graph::Attributes> attributes = {
        {},
        {{"axis", int64_t{-9}}, {"axes", std::vector<int64_t>{0, 5, 0}}},
        {{"axis", std::string("x")}, {"axes", int64_t{1}}, {"mode", std::vector<float>{1}}},
        {{"kernel_shape", std::vector<int64_t>{0, -3}},
         {"strides", std::vector<int64_t>{0}},
         {"pads", std::vector<int64_t>{1 << 30, 1 << 30, 1 << 30, 1 << 30}},
         {"auto_pad", std::string("SAME_UPPER")},
         {"group", int64_t{0}},
         {"output_shape", std::vector<int64_t>{-1, 0}}},
        {{"perm", std::vector<int64_t>{7, 7}},
         {"equation", std::string("ij,jk->zz")},
         {"shape", std::vector<int64_t>{-1, 0, -1}},
         {"split", std::vector<int64_t>{1 << 30, -5}},
         {"starts", std::vector<int64_t>{0}},
         {"ends", std::vector<int64_t>{1, 2}},
         {"scales", std::vector<float>{NAN, 1e30F}},
         {"blocksize", int64_t{0}},
         {"hidden_size", int64_t{-1}},
         {"num_heads", int64_t{0}},
         {"direction", std::string("bidirectional")},
         {"to", std::string("none")}},
    };
    std::vector<std::string> kinds = {"", "Late", "Conv+Relu", "Relu+Add", "+", "Reshape+Relu"};
    for (const graph::OpInfo& op : graph::all_ops()) kinds.emplace_back(op.kind);
    for (const std::string& kind : kinds)
        for (const auto& list : lists)
            for (const auto& given : attributes)
                for (const size_t num_outputs : {size_t{1}, size_t{3}}) {
                    SCOPED_TRACE(kind);
                    graph::Node node;
                    node.kind = "Late";
                    node.attributes = given;
                    node.name = "y";
                    node.attributes["op"] = kind;
                    std::vector<std::vector<std::byte>> memory;
                    std::vector<Array> inputs, outputs;
                    for (const Input& input : list) {
                        const bool absent = input.type == DataType::unknown;
                        node.inputs.push_back(absent ? graph::none : graph::ValueId{0});
                        Array& array = inputs.emplace_back();
                        if (absent) continue;
                        std::vector<double> numbers = input.numbers;
                        numbers.resize(static_cast<size_t>(input.shape.elements()), 1);
                        const auto bytes = graph::write_numbers<double>(
                            input.type, std::span<const double>(numbers));
                        memory.emplace_back(bytes.bytes.begin(), bytes.bytes.end());
                        memory.back().push_back(std::byte{0});
                        array = {input.type, input.shape, memory.back().data()};
                    }
                    constexpr size_t size = 64 * sizeof(float);
                    std::vector<std::vector<std::byte>> results(
                        num_outputs, std::vector<std::byte>(size + 64, std::byte{0x5A}));
                    for (auto& result : results) {
                        node.outputs.push_back(0);
                        outputs.push_back({DataType::float32, {8, 8}, result.data()});
                    }
                    const auto done = run_dynamic({node, inputs, outputs});
                    if (!done) {
                        EXPECT_FALSE(done.error().message.empty());
                    }
                    for (const auto& result : results)
                        EXPECT_EQ(std::count(result.begin() + size, result.end(), std::byte{0x5A}),
                                  64);
                }
}

// The model allows for few, the tensor in this run would need more than a partition may take.
TEST(DynamicMemory, IsRefusedBeforeItIsTaken) {
    constexpr int64_t many = (int64_t{1} << 25) + 1;  // with 8 indices of 8 bytes each: 2 GiB
    std::vector<std::byte> tensor(many);
    std::vector<std::byte> indices(8 * 4 * sizeof(int64_t));
    graph::Node node;
    node.kind = "NonZero";
    node.name = "bomb";
    node.inputs = {0};
    node.outputs = {1};
    const std::vector<Array> inputs = {
        {DataType::uint8, {1, 1, 1, 1, 1, 1, 1, many}, tensor.data()}};
    std::vector<Array> outputs = {{DataType::int64, {8, 4}, indices.data()}};
    const auto done = run_dynamic({node, inputs, outputs});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::out_of_memory);
    EXPECT_EQ(done.error().message,
              "node 'bomb' (NonZero) needs 2147483712 bytes in this run, limit 2147483648");
}

}  // namespace
}  // namespace vartml::cpu
