// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/hw_views.h"

#include <gtest/gtest.h>

#include "tests/support/graphs.h"
#include "tests/support/temp_dir.h"

namespace vartml::compiler {
namespace {

graph::Graph model() {
    return graph::must_parse(R"(graph g
input %images : f32[1,3,8,8]
input %row : f32[1,10]
input %batch : f32[2,3,8,8]
%a = Exp %images : f32[1,3,8,8]
%b = Exp %row : f32[1,10]
%c = Exp %batch : f32[2,3,8,8]
output %a
output %b
output %c
)");
}

TEST(Tessellation, IsNothingOrTheRecommendedDefault) {
    const auto none = read_tessellation("", model(), "mlsoc");
    ASSERT_TRUE(none);
    EXPECT_TRUE(none->hw_layouts.empty());
    const auto standard = read_tessellation("default", model(), "mlsoc");
    ASSERT_TRUE(standard);
    // Only tensors of four dimensions with N = 1.
    EXPECT_EQ(standard->hw_layouts,
              (std::map<std::string, Layout>{{"images", Layout::NHWC}, {"a", Layout::HCWNC16}}));
    EXPECT_TRUE(standard->without_hw.empty());
}

TEST(Tessellation, ReadsAFile) {
    test::TempDir dir;
    test::spill(dir / "t.json", R"({
 "images": {"tile_shape": [0, 0, 0, 0], "enable_mla": true, "dram_layout": "HWC16"},
 "a": {"tile_shape": [1, 8, 0, 3], "dram_layout": "HWC"},
 "b": {"enable_mla": false},
 "c": {}
})");
    const auto t = read_tessellation(dir / "t.json", model(), "mlsoc");
    ASSERT_TRUE(t) << t.error().message;
    EXPECT_EQ(t->hw_layouts,
              (std::map<std::string, Layout>{{"images", Layout::HCWNC16}, {"a", Layout::NHWC}}));
    EXPECT_EQ(t->without_hw, std::set<std::string>{"b"});
}

struct Case {
    const char* json;
    const char* text;  // behind the file's name
};
const Case cases[] = {
    {"[]", "is an array, expected an object from tensor names to settings"},
    {R"({"a": 1})",
     "tensor 'a': is a number, expected an object with tile_shape, enable_mla, dram_layout"},
    {R"({"z": {}})", "'z' is no edge tensor; there are 'images', 'row', 'batch', 'a', 'b', 'c'"},
    {R"({"a": {"tile_shape": [1,2,0,0]}})",
     "tensor 'a': tile_shape [1,2,0,0]: device 'mlsoc' exchanges whole tensors, not tiles; use "
     "[0,0,0,0]"},
    {R"({"row": {"tile_shape": [0,0,0,10]}})",
     "tensor 'row': tile_shape [0,0,0,10]: device 'mlsoc' exchanges whole tensors, not tiles; use "
     "[0,0,0,0]"},
    {R"({"a": {"tile_shape": [0,0,-1]}})",
     "tensor 'a': tile_shape [0,0,-1]: expected four whole numbers, N, H, W and C"},
    {R"({"a": {"enable_mla": "no"}})",
     "tensor 'a': enable_mla is a string, expected true or false"},
    {R"({"a": {"dram_layout": "CHW"}})", "tensor 'a': dram_layout is 'CHW', expected HWC or HWC16"},
    {R"({"row": {"dram_layout": "HWC"}})",
     "tensor 'row': dram_layout HWC is for 4-D tensors with N = 1, it is f32[1,10]"},
    {R"({"c": {"dram_layout": "HWC16"}})",
     "tensor 'c': dram_layout HWC16 is for 4-D tensors with N = 1, it is f32[2,3,8,8]"},
    {R"({"a": {"layout": "HWC"}})",
     "tensor 'a': has the key 'layout'; known: tile_shape, enable_mla, dram_layout"},
    {R"({"a": {}, "a": {}})", "line 1: key 'a' occurs twice in the same object"},
};
TEST(Tessellation, NamesWhatIsWrong) {
    test::TempDir dir;
    for (const Case& c : cases) {
        test::spill(dir / "t.json", c.json);
        const auto t = read_tessellation(dir / "t.json", model(), "mlsoc");
        ASSERT_FALSE(t) << c.json;
        EXPECT_EQ(t.error().code, ErrorCode::invalid_argument);
        EXPECT_EQ(t.error().message, dir / "t.json" + ": " + c.text);
    }
}

TEST(Tessellation, DecidesAboutTheCacheWithItsText) {
    test::TempDir dir;
    test::spill(dir / "t.json", "{}");
    const auto before = tessellation_key(dir / "t.json");
    test::spill(dir / "t.json", "{ }");
    const auto after = tessellation_key(dir / "t.json");
    ASSERT_TRUE(before && after);
    EXPECT_NE(*before, *after);
    EXPECT_NE(*before, *tessellation_key("default"));
    EXPECT_FALSE(tessellation_key(dir / "none.json"));
}

}  // namespace
}  // namespace vartml::compiler
