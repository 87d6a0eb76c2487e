// SPDX-License-Identifier: Apache-2.0
#include "lib/cpu/dynamic.h"

#include <gtest/gtest.h>

#include "lib/graph/numbers.h"
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

}  // namespace
}  // namespace vartml::cpu
