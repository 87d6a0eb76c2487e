// SPDX-License-Identifier: Apache-2.0
#include <vartml/postprocess.h>
#include <vartml/preprocess.h>

#include <array>
#include <bit>
#include <functional>

#include <gtest/gtest.h>

#include "hwy/targets.h"
#include "tests/vision/frames.h"

namespace vartml {
namespace {

using F = PixelFormat;
using L = Layout;
using T = DataType;

const F all_formats[] = {F::NV12, F::NV21,      F::NV16,      F::NV24, F::I420, F::YV12,
                         F::Y42B, F::P010_10LE, F::I420_10LE, F::YUY2, F::UYVY, F::RGB,
                         F::BGR,  F::RGBA,      F::BGRA,      F::RGBx, F::BGRx, F::xRGB,
                         F::xBGR, F::RGBP,      F::BGRP,      F::GRAY8};

// ---- the oracle: convert, then scale, separately and in double ---------------------------------

// Value of the picture (0-255) at a pixel of the frame.
using PixelValue = std::function<double(int x, int y)>;

// One axis in the oracle.
struct Fit {
    double first, length;  // of the frame
    uint32_t scaled, offset;
    int low, high;  // pixels of the frame that may be read
    double ratio() const { return length / scaled; }
};

double interpolate(const PixelValue& value, const Fit& fx, const Fit& fy, uint32_t u, uint32_t v,
                   Interpolation how) {
    const auto centre = [](const Fit& f, uint32_t i) { return f.first + (i + 0.5) * f.ratio(); };
    if (how == Interpolation::nearest)
        return value(static_cast<int>(std::floor(centre(fx, u))),
                     static_cast<int>(std::floor(centre(fy, v))));
    if (how == Interpolation::bilinear) {
        const double x = centre(fx, u) - 0.5, y = centre(fy, v) - 0.5;
        const int x0 = static_cast<int>(std::floor(x)), y0 = static_cast<int>(std::floor(y));
        const auto at = [&](int px, int py) {
            return value(std::clamp(px, fx.low, fx.high), std::clamp(py, fy.low, fy.high));
        };
        const double a = x - x0, b = y - y0;
        return (1 - b) * ((1 - a) * at(x0, y0) + a * at(x0 + 1, y0)) +
               b * ((1 - a) * at(x0, y0 + 1) + a * at(x0 + 1, y0 + 1));
    }
    double sum = 0, covered = 0;
    const double left = fx.first + u * fx.ratio(), right = left + fx.ratio();
    const double top = fy.first + v * fy.ratio(), bottom = top + fy.ratio();
    for (int y = fy.low; y <= fy.high; ++y)
        for (int x = fx.low; x <= fx.high; ++x) {
            const double w = std::min(x + 1.0, right) - std::max(double(x), left);
            const double h = std::min(y + 1.0, bottom) - std::max(double(y), top);
            if (w <= 0 || h <= 0) continue;
            sum += w * h * value(x, y);
            covered += w * h;
        }
    return sum / covered;
}

// ---- cases -------------------------------------------------------------------------------------

struct Setting {
    uint32_t width, height;  // of the frame
    uint32_t model_width, model_height;
    ResizeMode resize = ResizeMode::stretch;
    Interpolation interpolation = Interpolation::bilinear;
    ChannelOrder channels = ChannelOrder::rgb;
    Region region{};
    double pixel_aspect_ratio = 1, crop_fraction = 1;
    ColorMatrix matrix = ColorMatrix::bt601;
    ColorRange range = ColorRange::limited;
    uint32_t model_channels = 3;
};

// The geometry table of gstreamer.md 3.5, axis by axis.
void fit(const Setting& s, Fit& x, Fit& y) {
    const Region r =
        s.region.width == 0 ? Region{0, 0, double(s.width), double(s.height)} : s.region;
    x = {r.x, r.width, s.model_width, 0, 0, 0};
    y = {r.y, r.height, s.model_height, 0, 0, 0};
    const double display_width = r.width * s.pixel_aspect_ratio;
    if (s.resize == ResizeMode::letterbox || s.resize == ResizeMode::letterbox_top_left) {
        const double gain = std::min(s.model_width / display_width, s.model_height / r.height);
        x.scaled = std::max(1u, static_cast<uint32_t>(std::round(display_width * gain)));
        y.scaled = std::max(1u, static_cast<uint32_t>(std::round(r.height * gain)));
        if (s.resize == ResizeMode::letterbox) {
            x.offset = (s.model_width - x.scaled) / 2;
            y.offset = (s.model_height - y.scaled) / 2;
        }
    }
    if (s.resize == ResizeMode::crop) {
        const double aspect = double(s.model_width) / s.model_height;
        double w = display_width, h = r.height;
        if (w / h > aspect)
            w = h * aspect;
        else
            h = w / aspect;
        x.length = w * s.crop_fraction / s.pixel_aspect_ratio;
        y.length = h * s.crop_fraction;
        x.first = r.x + (r.width - x.length) / 2;
        y.first = r.y + (r.height - y.length) / 2;
    }
    const auto limits = [](Fit& f, uint32_t size) {
        f.low = std::max(0, static_cast<int>(std::floor(f.first + 1e-6)));
        f.high = std::min<int>(static_cast<int>(size) - 1,
                               static_cast<int>(std::ceil(f.first + f.length - 1e-6)) - 1);
    };
    limits(x, s.width);
    limits(y, s.height);
}

PictureInfo info_of(F format, const Setting& s) {
    return {format, s.width, s.height, s.matrix, s.range, s.pixel_aspect_ratio};
}
PreprocessOptions options_of(const Setting& s) {
    return {.resize = s.resize,
            .interpolation = s.interpolation,
            .channels = s.channels,
            .pad = {10, 20, 30},
            .crop_fraction = s.crop_fraction};
}

// Fills a float NCHW tensor and compares each value with the oracle.
void expect_oracle(F format, const Setting& s, bool smooth) {
    SCOPED_TRACE(testing::Message() << to_string(format) << " " << s.width << "x" << s.height
                                    << " to " << s.model_width << "x" << s.model_height);
    const Frame frame(info_of(format, s), 13, smooth, 5);
    const TensorView view =
        make_view(T::float32, L::NCHW, {1, s.model_channels, s.model_height, s.model_width});
    const auto pre = Preprocessor::create(frame.info, s.region, view, view, options_of(s));
    ASSERT_TRUE(pre) << pre.error().message;
    std::vector<float> got(view.size, -1.0f);
    pre->run(frame.picture, got.data());
    Fit fx, fy;
    fit(s, fx, fy);
    const bool gray = s.model_channels == 1 || s.channels == ChannelOrder::gray;
    double worst = 0;
    for (uint32_t c = 0; c < s.model_channels; ++c) {
        const uint32_t colour = s.channels == ChannelOrder::bgr ? 2 - c : c;
        const PixelValue value = [&](int x, int y) {
            const auto px = static_cast<uint32_t>(x), py = static_cast<uint32_t>(y);
            return gray ? frame.luma(px, py) : frame.rgb(px, py)[colour];
        };
        for (uint32_t v = 0; v < s.model_height; ++v)
            for (uint32_t u = 0; u < s.model_width; ++u) {
                const bool inside = u >= fx.offset && u < fx.offset + fx.scaled && v >= fy.offset &&
                                    v < fy.offset + fy.scaled;
                const double want = inside ? interpolate(value, fx, fy, u - fx.offset,
                                                         v - fy.offset, s.interpolation)
                                           : 10.0 * (c + 1);
                const double difference =
                    std::abs(want - got[(c * s.model_height + v) * s.model_width + u]);
                worst = std::max(worst, difference);
                ASSERT_LT(difference, 0.25)
                    << "channel " << c << " at " << u << "," << v << " want " << want;
            }
    }
    testing::Test::RecordProperty("worst", std::to_string(worst));
}

const Setting settings[] = {
    {16, 16, 16, 16},                          // every pixel as it is
    {1, 1, 1, 1},                              // the smallest frame
    {1, 1, 5, 3},                              // and enlarged
    {7, 5, 3, 3},                              // odd sizes share chroma at the edge
    {33, 17, 20, 40},                          // smaller across, larger down
    {130, 98, 64, 64, ResizeMode::letterbox},  // bars above and below
    {50, 98, 64, 64, ResizeMode::letterbox},   // bars left and right
    {131, 97, 64, 48, ResizeMode::letterbox_top_left},
    {131, 97, 64, 64, ResizeMode::crop},
    {131, 97, 64, 64, ResizeMode::crop, Interpolation::bilinear, ChannelOrder::bgr, {}, 1, 0.875},
    {97, 131, 32, 64, ResizeMode::crop, Interpolation::nearest},
    {131, 97, 64, 64, ResizeMode::stretch, Interpolation::nearest},
    {131, 97, 40, 30, ResizeMode::letterbox, Interpolation::area},
    {20, 10, 33, 31, ResizeMode::stretch, Interpolation::area},  // area that enlarges
    {1, 300, 1, 7, ResizeMode::stretch, Interpolation::area},
    {131,
     97,
     24,
     24,
     ResizeMode::letterbox,
     Interpolation::bilinear,
     ChannelOrder::rgb,
     {31, 17, 64, 48}},
    {131,
     97,
     24,
     24,
     ResizeMode::stretch,
     Interpolation::bilinear,
     ChannelOrder::rgb,
     {31.25, 17.5, 20.3, 50.9}},
    {131,
     97,
     24,
     24,
     ResizeMode::stretch,
     Interpolation::area,
     ChannelOrder::bgr,
     {0.5, 0.5, 130.5, 96.5}},
    {72,
     58,
     64,
     64,
     ResizeMode::letterbox,
     Interpolation::bilinear,
     ChannelOrder::rgb,
     {},
     16.0 / 11},
    {72, 58, 32, 32, ResizeMode::crop, Interpolation::bilinear, ChannelOrder::rgb, {}, 0.5},
    {66,
     34,
     40,
     20,
     ResizeMode::stretch,
     Interpolation::bilinear,
     ChannelOrder::rgb,
     {},
     1,
     1,
     ColorMatrix::bt709,
     ColorRange::limited},
    {66,
     34,
     40,
     20,
     ResizeMode::stretch,
     Interpolation::bilinear,
     ChannelOrder::bgr,
     {},
     1,
     1,
     ColorMatrix::bt2020,
     ColorRange::full},
    {66,
     34,
     66,
     34,
     ResizeMode::stretch,
     Interpolation::bilinear,
     ChannelOrder::rgb,
     {},
     1,
     1,
     ColorMatrix::bt601,
     ColorRange::full},
    {66,
     34,
     40,
     20,
     ResizeMode::stretch,
     Interpolation::bilinear,
     ChannelOrder::gray,
     {},
     1,
     1,
     ColorMatrix::bt601,
     ColorRange::limited,
     1},
    {66, 34, 40, 20, ResizeMode::letterbox, Interpolation::area,
     ChannelOrder::gray},  // gray in three channels
};

class Formats : public testing::TestWithParam<F> {};

TEST_P(Formats, AreWithinAQuarterOfConvertThenScaleInDouble) {
    for (const Setting& s : settings)
        for (const bool smooth : {false, true}) expect_oracle(GetParam(), s, smooth);
}

INSTANTIATE_TEST_SUITE_P(Preprocess, Formats, testing::ValuesIn(all_formats),
                         [](const auto& info) { return std::string(to_string(info.param)); });

// Wider than a tile of scratch memory, and one model pixel of more columns than that.
TEST(Preprocess, WidthsBeyondTheScratchMemoryAreWithinAQuarterOfTheOracle) {
    for (const F format : {F::NV12, F::RGB, F::YUY2}) {
        expect_oracle(format, {2600, 6, 1200, 3}, false);
        expect_oracle(format, {700, 4, 1700, 3}, false);
        expect_oracle(format, {2600, 6, 3, 2, ResizeMode::stretch, Interpolation::bilinear}, false);
        expect_oracle(format, {2600, 6, 900, 2, ResizeMode::stretch, Interpolation::area}, false);
        expect_oracle(format, {5001, 4, 2, 2, ResizeMode::stretch, Interpolation::area}, false);
        expect_oracle(format, {5001, 4, 1, 1, ResizeMode::stretch, Interpolation::area}, false);
    }
}

TEST(Preprocess, FormatsHaveTheirNamesAndPlanes) {
    for (const F format : all_formats) {
        EXPECT_EQ(parse_pixel_format(to_string(format)), format);
        EXPECT_EQ(num_planes(format), plane_shapes(format, 2, 2).size()) << to_string(format);
    }
    EXPECT_EQ(to_string(F::unknown), "unknown");
    EXPECT_EQ(parse_pixel_format("nv12"), F::unknown);
    EXPECT_EQ(parse_pixel_format("unknown"), F::unknown);
    EXPECT_EQ(num_planes(F::unknown), 0u);
}

// ---- types and layouts -------------------------------------------------------------------------

struct Tensor {
    L cpu_layout;
    uint32_t channels;
    L layout;
    T type;
    std::optional<Quantisation> quantisation{};
};
const Tensor tensors[] = {
    {L::NCHW, 3, L::HCWNC4, T::bf16},
    {L::NCHW, 3, L::HCWNC4, T::fp16},
    {L::NCHW, 3, L::HCWNC4, T::float32},
    {L::NCHW, 3, L::HCWNC4, T::uint8},
    {L::NCHW, 3, L::HCWNC4, T::int8, Quantisation{0.0078125, 3}},
    {L::NHWC, 3, L::HCWNC4, T::bf16},
    {L::NCHW, 3, L::HCWNC8, T::bf16},
    {L::NCHW, 3, L::HCWNC8, T::uint8, Quantisation{0.01, 7}},
    {L::NCHW, 3, L::HCWNC16, T::fp16},
    {L::NCHW, 3, L::NHWC, T::uint8},
    {L::NHWC, 3, L::NHWC, T::float32},
    {L::NHWC, 3, L::NCHW, T::int8, Quantisation{0.02, -5}},
    {L::NCHW, 3, L::NCHW, T::bf16},
    {L::NCHW, 1, L::NHWC, T::bf16},
    {L::NCHW, 1, L::NCHW, T::uint8},
    {L::NCHW, 1, L::HCWNC4, T::int8, Quantisation{0.0078125, 3}},
    {L::NHW, 1, L::NHW, T::bf16},
    {L::NHW, 1, L::NHW, T::uint8, Quantisation{0.01, 7}},
};

constexpr uint32_t model_width = 45, model_height = 36;

TensorView cpu_view(const Tensor& t, T type) {
    if (t.cpu_layout == L::NHW) return make_view(type, L::NHW, {1, model_height, model_width});
    if (t.cpu_layout == L::NHWC)
        return make_view(type, L::NHWC, {1, model_height, model_width, t.channels});
    return make_view(type, L::NCHW, {1, t.channels, model_height, model_width});
}

TensorView tensor_view(const Tensor& t) {
    TensorView view = hw_view(cpu_view(t, T::float32), t.layout, t.type);
    view.quantisation = t.quantisation;
    return view;
}

const PreprocessOptions normal{.resize = ResizeMode::letterbox,
                               .mean = {123.675f, 116.28f, 103.53f},
                               .scale = {0.0171f, 0.0175f, 0.0174f},
                               .pad = {0, 114, 255}};
const PreprocessOptions plain{.resize = ResizeMode::letterbox, .pad = {0, 114, 255}};

// The floats of a run, from a tensor in NCHW (NHW), which the tests above hold to the oracle.
std::vector<float> reference(const Frame& frame, const Tensor& t,
                             const PreprocessOptions& options) {
    const TensorView view =
        t.cpu_layout == L::NHW
            ? make_view(T::float32, L::NHW, {1, model_height, model_width})
            : make_view(T::float32, L::NCHW, {1, t.channels, model_height, model_width});
    const TensorView cpu = view;
    const auto pre = Preprocessor::create(frame.info, {}, cpu, view, options);
    std::vector<float> values(view.size);
    pre->run(frame.picture, values.data());
    return values;
}

uint32_t bits_of(const std::vector<uint8_t>& bytes, size_t index, size_t size) {
    uint32_t bits = 0;
    std::memcpy(&bits, &bytes[index * size], size);
    return bits;
}

uint32_t expected_bits(const Tensor& t, float x) {
    const Quantisation q = t.quantisation.value_or(Quantisation{});
    const double steps = std::nearbyint(x / static_cast<float>(q.scale)) + q.zero_point;
    switch (t.type) {
        case T::float32:
            return std::bit_cast<uint32_t>(x);
        case T::fp16:
            return std::bit_cast<uint16_t>(static_cast<_Float16>(x));
        case T::uint8:
            return static_cast<uint8_t>(std::clamp(steps, 0.0, 255.0));
        case T::int8:
            return static_cast<uint8_t>(static_cast<int8_t>(std::clamp(steps, -128.0, 127.0)));
        default: {
            const auto bits = std::bit_cast<uint32_t>(x);
            return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
        }
    }
}

size_t address(const TensorView& v, uint32_t c, uint32_t y, uint32_t x) {
    const std::vector<uint32_t>& s = v.shape;
    switch (v.layout) {
        case L::NCHW:
            return (size_t{c} * s[2] + y) * s[3] + x;
        case L::NHWC:
            return (size_t{y} * s[2] + x) * s[3] + c;
        case L::NHW:
            return size_t{y} * s[2] + x;
        default:
            return ((size_t{y} * s[1] + c / s[4]) * s[2] + x) * s[4] + c % s[4];
    }
}

class Tensors : public testing::TestWithParam<Tensor> {};

TEST_P(Tensors, HoldTheRoundedValuesAndZeroPadding) {
    const Tensor& t = GetParam();
    const Frame frame({F::NV12, 81, 37, ColorMatrix::bt709, ColorRange::limited, 1.0}, 3, false, 9);
    const bool raw_pixels = t.type == T::uint8 && !t.quantisation;
    const PreprocessOptions& options = raw_pixels ? plain : normal;
    const std::vector<float> want = reference(frame, t, options);
    const TensorView view = tensor_view(t);
    const auto pre = Preprocessor::create(frame.info, {}, cpu_view(t, T::float32), view, options);
    ASSERT_TRUE(pre) << pre.error().message;
    EXPECT_EQ(pre->rows(), model_height);
    constexpr size_t guard = 64;
    std::vector<uint8_t> got(view.size_bytes + guard, 0xa5);
    pre->run(frame.picture, got.data());
    const size_t word = size_bytes(t.type);
    std::vector<bool> used(view.size, false);
    for (uint32_t c = 0; c < t.channels; ++c)
        for (uint32_t y = 0; y < model_height; ++y)
            for (uint32_t x = 0; x < model_width; ++x) {
                const size_t at = address(view, c, y, x);
                used[at] = true;
                const float value = want[(size_t{c} * model_height + y) * model_width + x];
                ASSERT_EQ(bits_of(got, at, word), expected_bits(t, value))
                    << c << " " << y << " " << x;
            }
    for (size_t i = 0; i < view.size; ++i)
        if (!used[i]) {
            ASSERT_EQ(bits_of(got, i, word), 0u) << i;
        }
    for (size_t i = 0; i < guard; ++i) ASSERT_EQ(got[view.size_bytes + i], 0xa5);
}

TEST_P(Tensors, RowsGiveTheBytesOfTheWhole) {
    const Tensor& t = GetParam();
    const Frame frame({F::I420, 81, 37, ColorMatrix::bt601, ColorRange::full, 1.0}, 3, false, 9);
    const TensorView view = tensor_view(t);
    for (const Interpolation how :
         {Interpolation::bilinear, Interpolation::nearest, Interpolation::area}) {
        PreprocessOptions options = normal;
        options.interpolation = how;
        const auto pre =
            Preprocessor::create(frame.info, {}, cpu_view(t, T::float32), view, options);
        ASSERT_TRUE(pre);
        std::vector<uint8_t> whole(view.size_bytes, 0xa5), parts(view.size_bytes, 0x5a);
        pre->run(frame.picture, whole.data());
        for (const uint32_t first : {30u, 0u, 11u, 12u, 25u}) {
            const uint32_t last = first == 0    ? 11
                                  : first == 11 ? 12
                                  : first == 12 ? 25
                                  : first == 25 ? 30
                                                : 99;
            pre->run_rows(frame.picture, parts.data(), first, last);
        }
        EXPECT_TRUE(whole == parts);
    }
}

// The same picture with the chroma of each row of luma beside it.
TEST(Preprocess, ReadsTheChromaOfARowsFieldWhereFramesAreInterlaced) {
    for (const auto& [halved, whole] : {std::pair(F::I420, F::Y42B), {F::NV12, F::NV16}}) {
        for (const uint32_t height : {1u, 2u, 3u, 5u, 46u, 48u}) {
            SCOPED_TRACE(height);
            Frame frame({halved, 64, height, ColorMatrix::bt601, ColorRange::full, 1.0}, 3, false,
                        9);
            Frame want({whole, 64, height, ColorMatrix::bt601, ColorRange::full, 1.0}, 3, false, 9);
            const size_t chroma_rows = (height + 1) / 2;
            for (size_t p = 1; p < frame.planes.size(); ++p) {
                for (size_t y = 0; y < height; ++y) {
                    size_t row = y / 4 * 2 + y % 2;
                    if (row >= chroma_rows) row = row < 2 ? 0 : row - 2;
                    const size_t from = frame.picture.stride_bytes[p],
                                 to = want.picture.stride_bytes[p];
                    std::copy_n(&frame.planes[p][row * from], from - 3, &want.planes[p][y * to]);
                }
            }
            want.planes[0] = frame.planes[0];
            want.picture.planes[0] = want.planes[0].data();
            frame.picture.interlaced = true;
            const Tensor& t = tensors[0];
            const TensorView view = tensor_view(t);
            for (const Interpolation how :
                 {Interpolation::bilinear, Interpolation::nearest, Interpolation::area}) {
                PreprocessOptions options = normal;
                options.interpolation = how;
                std::vector<uint8_t> bytes[2];
                for (const Frame* f : {&frame, &want}) {
                    const auto pre =
                        Preprocessor::create(f->info, {}, cpu_view(t, T::float32), view, options);
                    ASSERT_TRUE(pre);
                    bytes[f == &want].assign(view.size_bytes, 0xa5);
                    pre->run(f->picture, bytes[f == &want].data());
                }
                EXPECT_TRUE(bytes[0] == bytes[1]);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Preprocess, Tensors, testing::ValuesIn(tensors));

TEST(Preprocess, EveryInstructionSetGivesTheSameBytes) {
    for (const F format : all_formats) {
        const Frame frame({format, 181, 67, ColorMatrix::bt709, ColorRange::limited, 1.0}, 3, false,
                          9);
        for (const Tensor& t : tensors) {
            for (const Interpolation how : {Interpolation::bilinear, Interpolation::area}) {
                PreprocessOptions options = normal;
                options.interpolation = how;
                const TensorView view = tensor_view(t);
                const auto pre =
                    Preprocessor::create(frame.info, {}, cpu_view(t, T::float32), view, options);
                ASSERT_TRUE(pre);
                std::vector<uint8_t> first;
                for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
                    hwy::SetSupportedTargetsForTest(target);
                    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
                    std::vector<uint8_t> got(view.size_bytes);
                    pre->run(frame.picture, got.data());
                    if (first.empty()) first = got;
                    EXPECT_TRUE(got == first)
                        << to_string(format) << " " << hwy::TargetName(target);
                }
                hwy::SetSupportedTargetsForTest(0);
                hwy::GetChosenTarget().Update(hwy::SupportedTargets());
            }
        }
    }
}

// ---- geometry ----------------------------------------------------------------------------------

TEST(Preprocess, ToFrameFollowsTheGeometryTable) {
    struct {
        const char* why;
        Setting setting;
        Affine want;
    } const cases[] = {
        {"stretch scales each axis", {1920, 1080, 640, 640}, {3, 0, 0, 0, 1080 / 640.0, 0}},
        {"letterbox: 640x360 at 0,140",
         {1920, 1080, 640, 640, ResizeMode::letterbox},
         {3, 0, 0, 0, 3, -420}},
        {"no bar above at top left",
         {1920, 1080, 640, 640, ResizeMode::letterbox_top_left},
         {3, 0, 0, 0, 3, 0}},
        // 768·(416/768) = 416, 432·(416/768) = 234: offset floor(182 / 2) = 91.
        {"the demo video",
         {768, 432, 416, 416, ResizeMode::letterbox},
         {768 / 416.0, 0, 0, 0, 432 / 234.0, -91 * (432 / 234.0)}},
        // 100·(64/101) = 63.37 becomes 63: the true ratio is 100/63, the odd pixel goes below.
        {"true ratio, offset rounded down",
         {101, 100, 64, 64, ResizeMode::letterbox},
         {101 / 64.0, 0, 0, 0, 100 / 63.0, 0}},
        {"crop takes the middle",
         {1920, 1080, 640, 640, ResizeMode::crop},
         {1080 / 640.0, 0, 420, 0, 1080 / 640.0, 0}},
        {"a fraction of it",
         {1920,
          1080,
          224,
          224,
          ResizeMode::crop,
          Interpolation::bilinear,
          ChannelOrder::rgb,
          {},
          1,
          0.875},
         {945 / 224.0, 0, 487.5, 0, 945 / 224.0, 67.5}},
        // PAL 16:9: 720 pixels are 1024 wide on the display (64/45).
        {"letterbox in display pixels",
         {720,
          576,
          640,
          640,
          ResizeMode::letterbox,
          Interpolation::bilinear,
          ChannelOrder::rgb,
          {},
          64 / 45.0},
         {720 / 640.0, 0, 0, 0, 576 / 360.0, -140 * 1.6}},
        {"a region",
         {1920,
          1080,
          64,
          64,
          ResizeMode::letterbox,
          Interpolation::bilinear,
          ChannelOrder::rgb,
          {100, 200, 320, 160}},
         {5, 0, 100, 0, 5, 120}},
    };
    for (const auto& c : cases) {
        SCOPED_TRACE(c.why);
        const Setting& s = c.setting;
        const TensorView view =
            make_view(T::float32, L::NCHW, {1, 3, s.model_height, s.model_width});
        const auto pre =
            Preprocessor::create(info_of(F::NV12, s), s.region, view, view, options_of(s));
        ASSERT_TRUE(pre) << pre.error().message;
        const Affine got = pre->to_frame();
        for (const auto& [a, b] : {std::pair{got.a, c.want.a},
                                   {got.b, c.want.b},
                                   {got.c, c.want.c},
                                   {got.d, c.want.d},
                                   {got.e, c.want.e},
                                   {got.f, c.want.f}})
            EXPECT_NEAR(a, b, 1e-9);
    }
}

TEST(Preprocess, PixelsOfTheModelSizeStayAsTheyAre) {
    const Frame frame({F::RGB, 37, 21}, 5, false, 3);
    const TensorView cpu = make_view(T::uint8, L::NHWC, {1, 21, 37, 3});
    for (const Interpolation how :
         {Interpolation::bilinear, Interpolation::nearest, Interpolation::area}) {
        const auto pre = Preprocessor::create(frame.info, {}, cpu, cpu, {.interpolation = how});
        ASSERT_TRUE(pre);
        std::vector<uint8_t> got(cpu.size_bytes);
        pre->run(frame.picture, got.data());
        for (uint32_t y = 0; y < 21; ++y)
            for (uint32_t x = 0; x < 37 * 3; ++x)
                ASSERT_EQ(got[y * 37 * 3 + x], frame.planes[0][y * (37 * 3 + 5) + x]);
    }
}

// As the programs of an embedded pre-process take them.
TEST(Preprocess, APixelOfFourBytesHasThreeChannels) {
    const Frame frame({F::RGB, 37, 21}, 5, false, 3);
    const TensorView cpu = make_view(T::uint8, L::NHWC, {1, 21, 37, 4});
    const auto pre =
        Preprocessor::create(frame.info, {}, cpu, cpu, {.channels = ChannelOrder::bgr});
    ASSERT_TRUE(pre) << pre.error().message;
    std::vector<uint8_t> got(cpu.size_bytes, 0x5A);
    pre->run(frame.picture, got.data());
    for (uint32_t y = 0; y < 21; ++y)
        for (uint32_t x = 0; x < 37; ++x) {
            const uint8_t* rgb = &frame.planes[0][y * (37 * 3 + 5) + x * 3];
            const std::vector<uint8_t> pixel(got.begin() + (y * 37 + x) * 4,
                                             got.begin() + (y * 37 + x) * 4 + 4);
            ASSERT_EQ(pixel, (std::vector<uint8_t>{rgb[2], rgb[1], rgb[0], 0}));
        }
}

// The numbers of the models' own code, which have a mean and a divisor, by the order of the
// channels.
TEST(PublishedPixels, AreThoseThatTheModelsWereTrainedWith) {
    using Three = std::array<double, 3>;
    const Three none{}, one{1, 1, 1}, unit{255, 255, 255}, signs{127.5, 127.5, 127.5},
        mean{123.675, 116.28, 103.53}, deviation{58.395, 57.12, 57.375};
    const auto backwards = [](const Three& t) { return Three{t[2], t[1], t[0]}; };
    constexpr auto rgb = ChannelOrder::rgb, bgr = ChannelOrder::bgr;
    constexpr auto stretch = ResizeMode::stretch, letterbox = ResizeMode::letterbox,
                   top_left = ResizeMode::letterbox_top_left, crop = ResizeMode::crop;
    const struct {
        const char* family;
        ResizeMode resize;
        ChannelOrder channels;
        Three mean, divisor;
        double pad = 114;  // where there is a border
    } rows[] = {
        {"classify", crop, rgb, mean, deviation},
        {"ssd", stretch, rgb, none, one},
        {"yolo-v5", letterbox, rgb, none, unit},
        {"yolo-v8", letterbox, rgb, none, unit},
        {"yolo-v8-seg", letterbox, rgb, none, unit},
        {"yolo-v8-pose", letterbox, rgb, none, unit},
        {"yolo-v8-obb", letterbox, rgb, none, unit},
        {"yolo-end2end", letterbox, rgb, none, unit},
        {"yolox", top_left, bgr, none, one},
        {"nanodet", stretch, bgr, backwards(mean), backwards(deviation)},
        {"fastestdet", stretch, bgr, none, unit},
        {"centernet", letterbox, bgr, {104.04, 113.985, 119.85}, {73.695, 69.87, 70.89}, 0},
        {"detr", stretch, rgb, none, unit},
        {"ultraface", stretch, rgb, {127, 127, 127}, {128, 128, 128}},
        {"scrfd", top_left, rgb, signs, {128, 128, 128}, 0},
        {"yunet", stretch, bgr, none, one},
        {"retinaface", stretch, bgr, {104, 117, 123}, one},
        {"faceboxes", stretch, bgr, {104, 117, 123}, one},
        {"yolo-face", letterbox, rgb, none, unit},
        {"blazeface", letterbox, rgb, signs, signs, 0},
        {"db-text", stretch, bgr, mean, deviation},
        {"ctc-text", top_left, bgr, signs, signs, 127.5},
        {"heatmap", stretch, rgb, mean, deviation},
        {"openpose", letterbox, bgr, {128, 128, 128}, {256, 256, 256}, 128},
    };
    for (const auto& row : rows) {
        const DecoderFamily* family = find_decoder_family(row.family);
        ASSERT_NE(family, nullptr) << row.family;
        const PreprocessOptions& pixels = family->input;
        EXPECT_EQ(pixels.resize, row.resize) << row.family;
        EXPECT_EQ(pixels.channels, row.channels) << row.family;
        for (size_t c = 0; c < 3; ++c) {
            EXPECT_NEAR(pixels.mean[c], row.mean[c], 1e-4) << row.family;
            EXPECT_NEAR(pixels.scale[c] * row.divisor[c], 1, 1e-6) << row.family;
            if (row.resize == letterbox || row.resize == top_left) {
                EXPECT_NEAR(pixels.pad[c], row.pad, 1e-4) << row.family;
            }
        }
    }
}

}  // namespace
}  // namespace vartml
