// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/partition.h"

#include <gtest/gtest.h>

#include "tests/support/graphs.h"

namespace vartml::compiler {
namespace {

constexpr const char* model = R"(graph g
input %x : f32[4]
input %unused : f32[4]
input %z : f32[4]
const %c : f32[4] = {1.0, 2.0, 3.0, 4.0}
%a = Add %x, %c : f32[4]
%b = Exp %a : f32[4]
%d = Mul %b, %z : f32[4]
%e = Sub %d, %c : f32[4]
%f = Add %e, %a : f32[4]
output %f
output %b
)";

struct Case {
    const char* why;
    std::vector<size_t> nodes;
    const char* text;
};
const Case cases[] = {
    {"the first two: a goes to another part, b to another part and out of the model",
     {0, 1},
     R"(graph g
input %x : f32[4]
const %c : f32[4] = {1.0, 2.0, 3.0, 4.0}
%a = Add %x, %c : f32[4]
%b = Exp %a : f32[4]
output %b
output %a
)"},
    {"the rest: the model's input first, the constant once more",
     {2, 3, 4},
     R"(graph g
input %z : f32[4]
input %a : f32[4]
input %b : f32[4]
const %c : f32[4] = {1.0, 2.0, 3.0, 4.0}
%d = Mul %b, %z : f32[4]
%e = Sub %d, %c : f32[4]
%f = Add %e, %a : f32[4]
output %f
)"},
    {"nodes apart", {1, 4}, R"(graph g
input %a : f32[4]
input %e : f32[4]
%b = Exp %a : f32[4]
%f = Add %e, %a : f32[4]
output %f
output %b
)"},
};
TEST(Cut, MakesAGraphOfItsOwn) {
    const graph::Graph whole = graph::must_parse(model);
    for (const Case& c : cases) {
        const graph::Graph part = cut(whole, c.nodes);
        EXPECT_TRUE(graph::verify(part)) << c.why;
        EXPECT_EQ(graph::print(part), graph::normal_form(c.text)) << c.why;
    }
}

TEST(Cut, SharesTheBytesOfConstants) {
    const graph::Graph whole = graph::must_parse(model);
    const graph::Graph first = cut(whole, {0}), last = cut(whole, {3});
    const auto bytes = [](const graph::Graph& graph) -> const std::byte* {
        for (const graph::Value& v : graph.values)
            if (v.constant) return v.constant->bytes.data();
        return nullptr;
    };
    ASSERT_TRUE(bytes(first));
    EXPECT_EQ(bytes(first), bytes(last));
}

}  // namespace
}  // namespace vartml::compiler
