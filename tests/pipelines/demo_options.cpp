// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/demo/options.h"

#include <gtest/gtest.h>

#include <vector>

namespace demo {
namespace {

vartml::Result<Options> parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "vartml-demo");
    std::vector<char*> mutable_arguments;
    for (const char* a : arguments) mutable_arguments.push_back(const_cast<char*>(a));
    return parse_options(mutable_arguments);
}

TEST(DemoOptions, PlaysTheSceneWithoutArguments) {
    const auto options = parse({});
    ASSERT_TRUE(options);
    EXPECT_EQ(options->input, Input::scene);
    EXPECT_EQ(options->out, "out");
}

TEST(DemoOptions, TakesACameraWithAndWithoutItsDevice) {
    struct Case {
        std::vector<const char*> arguments;
        const char *device, *model;
    };
    const Case cases[] = {
        {{"--camera"}, "/dev/video0", ""},                             // last: the default
        {{"--camera", "--model", "m.onnx"}, "/dev/video0", "m.onnx"},  // an option follows
        {{"--camera", "/dev/video3", "--model", "m.onnx"}, "/dev/video3", "m.onnx"},
    };
    for (const Case& c : cases) {
        const auto options = parse(c.arguments);
        ASSERT_TRUE(options);
        EXPECT_EQ(options->input, Input::camera);
        EXPECT_EQ(options->source, c.device);
        EXPECT_EQ(options->model, c.model);
    }
}

TEST(DemoOptions, TakesAVideoWithModelLabelsAndDecoder) {
    const auto options = parse({"--video", "a.mp4", "--model", "m.onnx", "--labels", "l.txt",
                                "--decoder", "yolox", "--seconds", "2.5", "--out", "d"});
    ASSERT_TRUE(options);
    EXPECT_EQ(options->input, Input::video);
    EXPECT_EQ(options->source, "a.mp4");
    EXPECT_EQ(options->model, "m.onnx");
    EXPECT_EQ(options->labels, "l.txt");
    EXPECT_EQ(options->decoder, "yolox");
    EXPECT_EQ(options->seconds, 2.5);
    EXPECT_EQ(options->out, "d");
}

TEST(DemoOptions, NamesTheArgumentThatIsWrong) {
    struct Case {
        std::vector<const char*> arguments;
        const char* word;
    };
    const Case cases[] = {
        {{"--vidio", "a.mp4"}, "'--vidio'"},                   // misspelt
        {{"--video"}, "--video needs a value"},                // value missing
        {{"--seconds", "soon"}, "'soon'"},                     // no number
        {{"--seconds", "-1"}, "'-1'"},                         // not above 0
        {{"--video", "a.mp4", "--camera"}, "one of --video"},  // two inputs
        {{"--video", "a.mp4", "--background", "b.jpg"}, "--background"},
    };
    for (const Case& c : cases) {
        const auto options = parse(c.arguments);
        ASSERT_FALSE(options);
        EXPECT_NE(options.error().message.find(c.word), std::string::npos)
            << options.error().message;
    }
}

}  // namespace
}  // namespace demo
