// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/input_meaning.h"

#include <gtest/gtest.h>

#include "tests/support/graphs.h"

namespace vartml::compiler {
namespace {

struct WeightCase {
    const char* why;
    const char* nodes;  // from %x : f32[1,3,4,4] to %y; =W, =V and =C as `filled` has them
    bool units;
};
constexpr WeightCase cases[] = {
    {"large filters", "const %w : f32[1,3,2,2] =W\n%y = Conv %x, %w =C : f32[1,1,3,3]", true},
    {"small ones", "const %w : f32[1,3,2,2] =V\n%y = Conv %x, %w =C : f32[1,1,3,3]", false},
    {"large ones of a part of the picture that was moved",
     "const %w : f32[1,3,2,2] =W\n"
     "%t = Transpose %x {perm=[0,1,3,2]} : f32[1,3,4,4]\n"
     "%s = Slice %t {axes=[2], ends=[4], starts=[0], steps=[2]} : f32[1,3,2,4]\n"
     "%c = Concat %s, %s {axis=2} : f32[1,3,4,4]\n%y = Conv %c, %w =C : f32[1,1,3,3]",
     true},
    {"a normalisation behind them",
     "const %w : f32[1,3,2,2] =W\nconst %b : f32[1] = {1}\n%c = Conv %x, %w =C : f32[1,1,3,3]\n"
     "%y = BatchNormalization %c, %b, %b, %b, %b : f32[1,1,3,3]",
     false},
    {"numbers that the model makes small itself",
     "const %w : f32[1,3,2,2] =W\nconst %b : f32[] = {0.5}\n%m = Mul %x, %b : f32[1,3,4,4]\n"
     "%y = Conv %m, %w =C : f32[1,1,3,3]",
     false},
};

std::string filled(std::string text) {
    const std::pair<const char*, const char*> words[] = {
        {"=W", "= {1, -1, 1, 1, 1, -1, 1, 1, 1, -1, 1, 1}"},
        {"=V", "= {0.25, -0.25, 0.25, 0, 0, -0.25, 0, 0, 0, 0, 0, 0}"},
        {"=C", "{dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]}"}};
    for (const auto& [word, value] : words)
        for (size_t at; (at = text.find(word)) != text.npos;) text.replace(at, 2, value);
    return text;
}

TEST(InputMeaning, IsWhatTheFirstFiltersAreMadeFor) {
    for (const WeightCase& c : cases) {
        const graph::Graph graph = graph::must_parse("graph g\ninput %x : f32[1,3,4,4]\n" +
                                                     filled(c.nodes) + "\noutput %y\n");
        const auto meanings = input_meanings(graph);
        ASSERT_EQ(meanings.size(), c.units ? 1u : 0u) << c.why;
        if (!c.units) continue;
        EXPECT_EQ(meanings[0].name, "x") << c.why;
        EXPECT_EQ(meanings[0].weights_for, "units") << c.why;
    }
}

}  // namespace
}  // namespace vartml::compiler
