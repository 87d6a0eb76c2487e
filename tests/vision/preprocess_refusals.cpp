// SPDX-License-Identifier: Apache-2.0
// What a pre-processor cannot do, each in one sentence.
#include <gtest/gtest.h>
#include <vartml/preprocess.h>

#include <cmath>

#include "tests/vision/frames.h"

namespace vartml {
namespace {

using F = PixelFormat;
using L = Layout;
using T = DataType;

TEST(Preprocess, RefusesWhatItCannotDoInOneSentence) {
    const PictureInfo picture{F::NV12, 64, 48};
    const TensorView view = make_view(T::float32, L::NCHW, {1, 3, 32, 32});
    const auto with = [](auto value, auto member, auto set) {
        value.*member = set;
        return value;
    };
    TensorView bad_scale = make_view(T::int8, L::NCHW, {1, 3, 32, 32});
    bad_scale.quantisation = Quantisation{-1.0, 0};
    struct {
        PictureInfo picture;
        Region region;
        TensorView cpu, tensor;
        PreprocessOptions options;
        ErrorCode code;
        const char* part;
    } const cases[] = {
        {with(picture, &PictureInfo::format, F::unknown),
         {},
         view,
         view,
         {},
         ErrorCode::invalid_argument,
         "pixel format"},
        {with(picture, &PictureInfo::width, 0u),
         {},
         view,
         view,
         {},
         ErrorCode::invalid_argument,
         "0x48"},
        {with(picture, &PictureInfo::pixel_aspect_ratio, 0.0),
         {},
         view,
         view,
         {},
         ErrorCode::invalid_argument,
         "aspect"},
        {picture,
         {60, 0, 5, 5},
         view,
         view,
         {},
         ErrorCode::invalid_argument,
         "not inside the picture of 64x48"},
        {picture, {0, 0, 5, 0}, view, view, {}, ErrorCode::invalid_argument, "not inside"},
        {picture, {NAN, 0, 5, 5}, view, view, {}, ErrorCode::invalid_argument, "not inside"},
        {picture,
         {},
         make_view(T::float32, L::NCHW, {1, 2, 32, 32}),
         make_view(T::float32, L::NCHW, {1, 2, 32, 32}),
         {},
         ErrorCode::unsupported,
         "1 or 3 channels, not 2"},
        {picture,
         {},
         make_view(T::float32, L::NCHW, {2, 3, 32, 32}),
         make_view(T::float32, L::NHWC, {2, 32, 32, 3}),
         {},
         ErrorCode::unsupported,
         "N = 1"},
        {picture,
         {},
         view,
         make_view(T::float32, L::NHWC, {1, 32, 33, 3}),
         {},
         ErrorCode::unsupported,
         "shapes"},
        {picture,
         {},
         view,
         make_view(T::int32, L::NCHW, {1, 3, 32, 32}),
         {},
         ErrorCode::unsupported,
         "int32"},
        {picture,
         {},
         view,
         make_view(T::float32, L::GENERIC, {1, 3, 32, 32}),
         {},
         ErrorCode::unsupported,
         "layouts"},
        {picture,
         {},
         make_view(T::float32, L::GENERIC, {32}),
         view,
         {},
         ErrorCode::unsupported,
         "GENERIC"},
        {picture, {}, view, bad_scale, {}, ErrorCode::invalid_argument, "scale -1"},
        {picture, {}, view, view, {.scale = {1, NAN, 1}}, ErrorCode::invalid_argument, "finite"},
        {picture,
         {},
         view,
         view,
         {.crop_fraction = 0},
         ErrorCode::invalid_argument,
         "crop fraction"},
    };
    for (const auto& c : cases) {
        const auto pre = Preprocessor::create(c.picture, c.region, c.cpu, c.tensor, c.options);
        ASSERT_FALSE(pre) << c.part;
        EXPECT_EQ(pre.error().code, c.code) << pre.error().message;
        EXPECT_NE(pre.error().message.find(c.part), std::string::npos) << pre.error().message;
    }
}

}  // namespace
}  // namespace vartml
