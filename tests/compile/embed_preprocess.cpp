// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/embed_preprocess.h"

#include <gtest/gtest.h>

#include "lib/compile/hw_views.h"
#include "lib/graph/verify.h"
#include "tests/support/graphs.h"

namespace vartml::compiler {
namespace {

TEST(EmbedPreprocess, ReadsTheOption) {
    const auto read =
        parse_embedded_preprocess("in:0:u8,rgb,hwc,mean=123.5/116/103,scale=0.0078125");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->input, "in:0");
    EXPECT_EQ(read->order, "rgb");
    EXPECT_EQ(read->mean, (std::vector<float>{123.5F, 116, 103}));
    EXPECT_EQ(read->scale, (std::vector<float>(3, 0.0078125F)));
    const auto plain = parse_embedded_preprocess("x:u8,gray,hwc");
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->mean, std::vector<float>(1, 0.0F));
    EXPECT_EQ(plain->scale, std::vector<float>(1, 1.0F));
}

TEST(EmbedPreprocess, SaysWhatIsWrongWithTheOption) {
    const std::pair<const char*, const char*> rows[] = {
        {"u8,rgb,hwc", "names no input"},
        {"x:rgb,hwc", "lacks u8, hwc or the order of the bytes"},
        {"x:u8,rgb,chw", "has 'chw'"},
        {"x:u8,rgb,hwc,mean=a", "has 'mean=a'"},
        {"x:u8,rgb,hwc,scale=1/2", "has not one mean and one scale per channel"},
    };
    for (const auto& [text, words] : rows) {
        const auto read = parse_embedded_preprocess(text);
        ASSERT_FALSE(read) << text;
        EXPECT_EQ(
            read.error().message.find("--embed-preprocess: '" + std::string(text) + "' " + words),
            0u)
            << read.error().message;
        EXPECT_NE(read.error().message.find("expected NAME:u8,ORDER,hwc"), std::string::npos);
    }
}

TEST(EmbedPreprocess, PutsTheBytesInFrontOfTheModel) {
    graph::Graph graph = graph::must_parse(
        "graph g\ninput %x : f32[1,3,8,6]\n%y = Relu %x : f32[1,3,8,6]\noutput %y\n");
    const auto done =
        embed_preprocess(graph, *parse_embedded_preprocess("x:u8,bgrx,hwc,scale=0.5"));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(graph::verify(graph));
    EXPECT_EQ(graph::print(graph),
              "graph g\ninput %x : u8[1,8,6,4]\n"
              "%x/normalised = vartml::PictureInput %x {layout=\"NCHW\", mean=f[0.0,0.0,0.0], "
              "scale=f[0.5,0.5,0.5]} : f32[1,3,8,6] @x/preprocess\n"
              "%y = Relu %x/normalised : f32[1,3,8,6]\noutput %y\n");
}

// Not the layout of the bytes.
TEST(EmbedPreprocess, LeavesOutputsTheLayoutOfTheModel) {
    graph::Graph graph = graph::must_parse(
        "graph g\ninput %x : f32[1,3,8,8]\nconst %w : f32[16,3,1,1] = {0}\n"
        "%y = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
        "f32[1,16,8,8]\noutput %y\n");
    ASSERT_TRUE(embed_preprocess(graph, *parse_embedded_preprocess("x:u8,rgb,hwc")));
    EXPECT_EQ(find_picture_layout(graph, {}), Layout::NCHW);
    const BorderViews views = make_border_views(graph, {.pictures = {{"x", "rgb"}}});
    EXPECT_EQ(views.outputs[0].cpu.layout, Layout::NCHW);
    ASSERT_TRUE(views.outputs[0].hw);
    EXPECT_EQ(views.outputs[0].hw->shape, (std::vector<uint32_t>{8, 2, 8, 1, 8}));
}

TEST(EmbedPreprocess, TakesAModelWithChannelsLast) {
    graph::Graph graph = graph::must_parse(
        "graph g\ninput %x : f32[1,8,6,3]\n%y = Relu %x : f32[1,8,6,3]\noutput %y\n");
    const auto done = embed_preprocess(graph, *parse_embedded_preprocess("x:u8,rgb,hwc,mean=127"));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(graph::verify(graph));
    EXPECT_EQ(graph::print(graph),
              "graph g\ninput %x : u8[1,8,6,3]\n"
              "%x/normalised = vartml::PictureInput %x {layout=\"NHWC\", "
              "mean=f[127.0,127.0,127.0], scale=f[1.0,1.0,1.0]} : f32[1,8,6,3] @x/preprocess\n"
              "%y = Relu %x/normalised : f32[1,8,6,3]\noutput %y\n");
}

TEST(EmbedPreprocess, RefusesWhatIsNoPicture) {
    const std::pair<const char*, const char*> rows[] = {
        {"f32[1,3,8,6]", "--embed-preprocess: the model has no input 'z'"},
        {"f32[2,3,8,6]", "input 'x' is f32[2,3,8,6], expected one float32 picture of 3 channels"},
        {"f32[1,5,8,6]", "input 'x' is f32[1,5,8,6], expected one float32 picture of 3 channels"},
        {"i32[1,3,8,6]", "input 'x' is i32[1,3,8,6], expected one float32 picture of 3 channels"},
    };
    for (const auto& [type, words] : rows) {
        graph::Graph graph = graph::must_parse("graph g\ninput %x : " + std::string(type) +
                                               "\n%y = Relu %x : " + type + "\noutput %y\n");
        const bool other = std::string_view(words).find("'z'") != std::string_view::npos;
        const auto done = embed_preprocess(
            graph, *parse_embedded_preprocess(other ? "z:u8,rgb,hwc" : "x:u8,rgb,hwc"));
        ASSERT_FALSE(done) << type;
        EXPECT_NE(done.error().message.find(words), std::string::npos) << done.error().message;
    }
}

}  // namespace
}  // namespace vartml::compiler
