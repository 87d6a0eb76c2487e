// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/conv.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/kernels/targets.h"

namespace vartml::kernels {
namespace {

struct Case {
    const char* why;
    uint32_t in_channels, out_channels, height, width, kernel, stride, dilation;
    int32_t pad;
    bool depthwise = false;
    uint32_t extra = 0;  // elements between a pixel's last channel and the next pixel
    uint32_t end = 0;    // more padding behind the last row and column
};

const Case cases[] = {
    {"one pixel", 1, 1, 1, 1, 1, 1, 1, 0},
    {"pointwise, whole vectors", 32, 32, 9, 7, 1, 1, 1, 0},
    {"pointwise, channels beyond whole vectors", 7, 37, 5, 6, 1, 1, 1, 0},
    {"pointwise on a slice of channels", 16, 24, 13, 13, 1, 1, 1, 0, false, 5},
    {"pointwise with stride", 8, 16, 9, 9, 1, 2, 1, 0},
    {"pointwise, padding at the ends alone", 9, 4, 1, 11, 1, 1, 1, 0, false, 0, 2},
    {"a detection head of 85", 64, 85, 4, 4, 1, 1, 1, 0},
    {"winograd 4x4, one vector", 12, 16, 20, 31, 3, 1, 1, 1},
    {"3x3, stride 2, odd size", 3, 16, 17, 15, 3, 2, 1, 1},
    {"6x6, stride 2, three channels", 3, 16, 32, 36, 6, 2, 1, 2},
    {"dilated", 5, 6, 12, 12, 3, 1, 2, 2},
    {"kernel larger than the picture", 4, 8, 2, 3, 5, 1, 1, 2},
    {"3x3, too few tiles", 12, 16, 11, 12, 3, 1, 1, 1},
    {"rows of five pixels", 70, 12, 4, 5, 3, 1, 1, 1},
    {"rows of six pixels on a slice", 9, 40, 7, 6, 5, 1, 1, 2, false, 3},
    {"no padding", 4, 8, 9, 40, 3, 1, 1, 0},
    {"depthwise 3x3", 24, 24, 14, 17, 3, 1, 1, 1, true},
    {"depthwise 5x5, stride 2", 33, 33, 15, 16, 5, 2, 1, 2, true},
    {"depthwise on a slice", 16, 16, 13, 13, 3, 1, 1, 1, true, 9},
    {"winograd 4x4, whole tiles", 32, 32, 16, 16, 3, 1, 1, 1},
    {"winograd 4x4, cut tiles, channels beyond vectors", 19, 37, 18, 23, 3, 1, 1, 1},
    {"winograd 4x4 without padding on a slice", 64, 70, 21, 30, 3, 1, 1, 0, false, 7},
    {"winograd 4x4, more padding than the kernel's", 24, 16, 15, 14, 3, 1, 1, 2},
    {"winograd 4x4, many channels", 200, 130, 17, 16, 3, 1, 1, 1},
    {"winograd 6x6, whole tiles", 32, 32, 24, 24, 3, 1, 1, 1},
    {"winograd 6x6, cut tiles, channels beyond vectors", 19, 37, 23, 29, 3, 1, 1, 1},
    {"winograd 6x6 without padding on a slice", 64, 70, 26, 26, 3, 1, 1, 0, false, 7},
    {"winograd 6x6, more padding than the kernel's", 24, 16, 21, 22, 3, 1, 1, 2},
    {"winograd 6x6, many channels", 200, 130, 23, 22, 3, 1, 1, 1},
    {"less than a vector", 64, 4, 3, 10, 1, 1, 1, 0},
    {"less than a vector on a slice", 64, 3, 3, 10, 1, 1, 1, 0, false, 5},
    {"one output", 16, 1, 5, 9, 3, 1, 1, 1},
    {"three vectors, the last cut", 6, 41, 1, 19, 1, 1, 1, 0},
    {"blocks of three and two vectors", 64, 80, 1, 29, 1, 1, 1, 0},
    {"many channels: several pieces of the line", 512, 130, 10, 10, 1, 1, 1, 0},
    {"odd channels without padding", 5, 18, 9, 33, 3, 2, 1, 0},
    {"odd channels, dilated", 7, 33, 13, 12, 3, 1, 2, 2},
    {"even channels on a slice without padding", 6, 20, 9, 20, 3, 1, 1, 0, false, 5},
    {"three channels in the place of four", 3, 16, 17, 15, 3, 2, 1, 1, false, 1},
    {"three channels in the place of four, dilated", 3, 20, 13, 15, 3, 1, 2, 2, false, 1},
    {"three channels of a wider picture", 3, 16, 16, 18, 5, 1, 1, 2, false, 4},
    {"depthwise on a slice, stride 2, channels beyond vectors", 37, 37, 11, 14, 3, 2, 1, 1, true,
     3},
    {"depthwise 5x5, an odd number of rows", 20, 20, 9, 21, 5, 1, 1, 2, true},
    {"depthwise, narrower than a tile", 16, 16, 6, 3, 3, 1, 1, 1, true},
    {"depthwise, one row", 18, 18, 1, 30, 3, 1, 1, 1, true},
    {"depthwise without padding", 32, 32, 8, 19, 3, 1, 1, 0, true},
    {"depthwise, more padding than the kernel's", 16, 16, 5, 9, 3, 1, 1, 4, true},
    {"depthwise 7x7", 19, 19, 11, 13, 7, 1, 1, 3, true},
    {"depthwise 7x7 on a slice, rows of many pixels", 19, 19, 9, 33, 7, 1, 1, 3, true, 3},
    {"depthwise, dilated", 24, 24, 12, 14, 3, 1, 2, 2, true},
    {"depthwise, stride 3", 24, 24, 13, 14, 3, 3, 1, 1, true},
    {"depthwise 2x2, stride 2, as of a mean", 33, 33, 10, 19, 2, 2, 1, 0, true},
    {"depthwise over the whole picture", 40, 40, 8, 8, 8, 1, 1, 0, true},
};

Epilogue epilogue_of(size_t i) {
    static constexpr Epilogue epilogues[] = {
        {Activation::none, 0, 0, false},       {Activation::relu, 0, 0, true},
        {Activation::silu, 0, 0, false},       {Activation::clip, 0, 6, true},
        {Activation::sigmoid, 0, 0, false},    {Activation::leaky, 0.1F, 0, false},
        {Activation::hard_swish, 0, 0, false}, {Activation::hard_sigmoid, 0.2F, 0.5F, true},
        {Activation::tanh, 0, 0, false},       {Activation::exp, 0, 0, false}};
    return epilogues[i % std::size(epilogues)];
}

bf16 to_bf16(float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}
float to_float(bf16 x) {
    return std::bit_cast<float>(uint32_t{x.bits} << 16);
}

// Numbers that bf16 holds, as elements of a picture.
class Numbers {
public:
    explicit Numbers(std::vector<float> values) : floats_(std::move(values)) {
        for (const float x : floats_) halves_.push_back(to_bf16(x));
    }
    const float* floats() const { return floats_.data(); }
    const void* as(Element element) const {
        return element == Element::bf16 ? static_cast<const void*>(halves_.data()) : floats_.data();
    }

private:
    std::vector<float> floats_;
    std::vector<bf16> halves_;
};

struct Types {
    Element source, result, factors;
};
constexpr Types types[] = {
    {Element::f32, Element::f32, Element::f32},   {Element::f32, Element::bf16, Element::f32},
    {Element::bf16, Element::f32, Element::f32},  {Element::bf16, Element::bf16, Element::f32},
    {Element::f32, Element::bf16, Element::bf16}, {Element::bf16, Element::f32, Element::bf16},
    {Element::bf16, Element::bf16, Element::bf16}};
bool runs_here(const Types& t) {
    return t.factors == Element::f32 || has_bf16_pairs();
}
std::string text(const Types& t) {
    const auto name = [](Element e) { return e == Element::bf16 ? "bf16" : "f32"; };
    return std::string(name(t.source)) + " -> " + name(t.result) + " by " + name(t.factors);
}

// A convolution in two calls, as two threads would make it; nothing is written behind the scratch
// memory. Elements of the result that are none are 77.
std::vector<float> run(const ConvShape& s, const float* weights, const float* bias,
                       const Epilogue& epilogue, const AnySrcPicture& src,
                       const AnySrcPicture& residual, size_t row, size_t pixel) {
    std::vector<std::byte> packed(packed_conv_size(s));
    pack_conv(s, weights, bias, packed.data());
    const size_t units = conv_units(s), half = units / 2, size = conv_scratch_size(s);
    std::vector<std::byte> scratch(size + 1, std::byte{55});
    std::vector<float> floats(row * s.out_height, 77);
    std::vector<bf16> halves(floats.size(), to_bf16(77));
    const bool is_bf16 = s.result == Element::bf16;
    const AnyDstPicture dst{is_bf16 ? static_cast<void*>(halves.data()) : floats.data(), row,
                            pixel};
    conv(s, src, packed.data(), epilogue, residual, dst, scratch.data(), 0, half);
    conv(s, src, packed.data(), epilogue, residual, dst, scratch.data(), half, units);
    EXPECT_EQ(scratch[size], std::byte{55});
    if (is_bf16)
        for (size_t i = 0; i < floats.size(); ++i) floats[i] = to_float(halves[i]);
    return floats;
}

class Conv : public OnEachTarget {
protected:
    Numbers numbers(size_t n) {
        std::uniform_real_distribution<float> uniform(-1, 1);
        std::vector<float> v(n);
        for (float& x : v) x = to_float(to_bf16(uniform(random_)));
        return Numbers(std::move(v));
    }
    // A picture with no numbers between pixels and rows, where nothing may be read.
    Numbers picture(size_t height, size_t width, size_t channels, size_t row, size_t pixel) {
        std::vector<float> v(row * height, std::nanf(""));
        std::uniform_real_distribution<float> uniform(-1, 1);
        for (size_t y = 0; y < height; ++y)
            for (size_t x = 0; x < width; ++x)
                for (size_t c = 0; c < channels; ++c)
                    v[y * row + x * pixel + c] = to_float(to_bf16(uniform(random_)));
        return Numbers(std::move(v));
    }
    std::mt19937 random_{5};
};

TEST_P(Conv, EqualsPlainLoops) {
    for (size_t i = 0; i < std::size(cases) * 2; ++i) {
        const Case& c = cases[i / 2];
        const bool with_residual = i % 2 == 1;
        SCOPED_TRACE(c.why);
        const int64_t reach = (c.kernel - 1) * c.dilation + 1;
        const auto out = [&](uint32_t in) {
            return static_cast<uint32_t>((in + 2 * c.pad + c.end - reach) / c.stride + 1);
        };
        ConvShape s{c.height,       c.width,    c.in_channels, out(c.height), out(c.width),
                    c.out_channels, c.kernel,   c.kernel,      c.stride,      c.stride,
                    c.dilation,     c.dilation, c.pad,         c.pad,         c.depthwise};
        const std::string_view method = name_of(conv_method(s));
        ASSERT_EQ(method.starts_with("winograd"), std::string_view(c.why).starts_with("winograd"));
        if (method.starts_with("winograd")) {
            ASSERT_TRUE(std::string_view(c.why).starts_with(method)) << method;
        }
        const size_t in_pixel = c.in_channels + c.extra, out_pixel = c.out_channels + c.extra;
        const size_t in_row = in_pixel * c.width + (c.extra ? 3 : 0),
                     out_row = out_pixel * s.out_width + (c.extra ? 2 : 0);
        const Numbers src = picture(c.height, c.width, c.in_channels, in_row, in_pixel);
        const Numbers add = numbers(out_row * s.out_height);
        const Numbers weights = numbers(static_cast<size_t>(c.out_channels) *
                                        (c.depthwise ? 1 : c.in_channels) * c.kernel * c.kernel);
        const Numbers biases = numbers(c.out_channels);
        const float* const bias = i % 3 == 0 ? nullptr : biases.floats();
        std::vector<float> want(out_row * s.out_height, 77);
        conv_ref(s, {src.floats(), in_row, in_pixel}, weights.floats(), bias, epilogue_of(i),
                 {with_residual ? add.floats() : nullptr, out_row, out_pixel},
                 {want.data(), out_row, out_pixel});
        for (const Types& t : types) {
            if (!runs_here(t)) continue;
            SCOPED_TRACE(text(t));
            s.source = t.source, s.result = t.result, s.factors = t.factors;
            const auto got =
                run(s, weights.floats(), bias, epilogue_of(i), {src.as(t.source), in_row, in_pixel},
                    {with_residual ? add.as(t.source) : nullptr, out_row, out_pixel}, out_row,
                    out_pixel);
            // The contract's bounds; products of two numbers in [-1, 1] are 1/4 on average.
            double bound = 2e-5;
            if (conv_method(s) == ConvMethod::winograd4) bound = 3e-6 * 9 * c.in_channels / 4;
            if (conv_method(s) == ConvMethod::winograd6) bound = 6e-6 * 9 * c.in_channels / 4;
            if (t.factors == Element::bf16)
                bound *= std::max(1.0, c.in_channels * c.kernel * c.kernel / 64.0);
            const double rounding = t.result == Element::bf16 ? 1.0 / 256 + 4e-4 : 0;
            for (size_t k = 0; k < got.size(); ++k) {
                ASSERT_NEAR(got[k], want[k],
                            bound * (1 + std::abs(want[k])) + rounding * std::abs(want[k]))
                    << "element " << k;
            }
        }
    }
}

// Two rows made together have the bits of two rows made apart.
TEST_P(Conv, DoesNotDependOnHowRowsAreShared) {
    for (const uint32_t kernel : {3U, 5U, 7U}) {
        for (const uint32_t stride : {1U, 2U}) {
            SCOPED_TRACE(testing::Message() << "kernel " << kernel << ", stride " << stride);
            const uint32_t side = 21, out = (side - 1) / stride + 1, channels = 21;
            ConvShape s{side,
                        side,
                        channels,
                        out,
                        out,
                        channels,
                        kernel,
                        kernel,
                        stride,
                        stride,
                        1,
                        1,
                        static_cast<int32_t>(kernel / 2),
                        static_cast<int32_t>(kernel / 2),
                        true};
            const Numbers src = numbers(size_t{side} * side * channels);
            const Numbers weights = numbers(size_t{channels} * kernel * kernel);
            std::vector<std::byte> packed(packed_conv_size(s)), scratch(conv_scratch_size(s));
            pack_conv(s, weights.floats(), nullptr, packed.data());
            const AnySrcPicture from{src.floats(), size_t{side} * channels, channels};
            std::vector<float> whole(size_t{out} * out * channels), rows(whole.size());
            const auto to = [&](std::vector<float>& dst) {
                return AnyDstPicture{dst.data(), size_t{out} * channels, channels};
            };
            conv(s, from, packed.data(), {}, {nullptr, 0, 0}, to(whole), scratch.data(), 0, out);
            for (size_t y = 0; y < out; ++y)
                conv(s, from, packed.data(), {}, {nullptr, 0, 0}, to(rows), scratch.data(), y,
                     y + 1);
            EXPECT_EQ(rows, whole);
        }
    }
}

// As sums of codes are, also where a shape would be made by minimal filtering.
TEST_P(Conv, KeepsSumsOfWholeNumbersWhereTheyAreToBeExact) {
    const uint32_t side = 26, channels = 40;
    ConvShape s{side, side, channels, side, side, channels, 3, 3, 1, 1, 1, 1, 1, 1};
    ASSERT_NE(conv_method(s), ConvMethod::direct);
    s.exact = true;
    ASSERT_EQ(conv_method(s), ConvMethod::direct);
    std::uniform_int_distribution<int> code(-255, 255), weight(-128, 127);
    std::vector<float> src(size_t{side} * side * channels),
        weights(size_t{9} * channels * channels);
    for (float& x : src) x = static_cast<float>(code(random_));
    for (float& w : weights) w = static_cast<float>(weight(random_));
    const size_t row = size_t{side} * channels;
    std::vector<float> want(src.size());
    conv_ref(s, {src.data(), row, channels}, weights.data(), nullptr, {}, {nullptr, 0, 0},
             {want.data(), row, channels});
    EXPECT_EQ(run(s, weights.data(), nullptr, {}, {src.data(), row, channels}, {nullptr, 0, 0}, row,
                  channels),
              want);
}

// Numbers and sums that bf16 and fp32 hold exactly; NaN where nothing may be read.
TEST_P(Conv, ReadsBf16AsItsNumbers) {
    struct Source {
        const char* why;
        uint32_t channels, kernel, stride;
        size_t pixel;  // elements
        int32_t pad;
    };
    const Source sources[] = {{"one channel", 1, 5, 1, 1, 2},
                              {"three channels of four", 3, 3, 2, 4, 1},
                              {"three channels, dense", 3, 3, 1, 3, 0},
                              {"three channels of four, a point", 3, 1, 1, 4, 0},
                              {"a point", 8, 1, 1, 8, 0},
                              {"more rows than a copy holds", 8, 7, 1, 8, 3}};
    std::uniform_int_distribution<int> small(-64, 64);
    for (const Source& c : sources) {
        SCOPED_TRACE(c.why);
        const uint32_t height = 71, width = 90, outputs = 9;
        const auto out = [&](uint32_t in) {
            return (in + 2 * static_cast<uint32_t>(c.pad) - c.kernel) / c.stride + 1;
        };
        ConvShape s{height,   width,    c.channels, out(height), out(width), outputs, c.kernel,
                    c.kernel, c.stride, c.stride,   1,           1,          c.pad,   c.pad};
        const size_t row = c.pixel * width;
        std::vector<float> values(row * height, NAN),
            weights(size_t{outputs} * c.channels * c.kernel * c.kernel);
        for (size_t i = 0; i < values.size(); ++i)
            if (i % c.pixel < c.channels) values[i] = static_cast<float>(small(random_));
        for (float& w : weights) w = static_cast<float>(small(random_));
        const Numbers src(std::move(values));
        const size_t out_row = size_t{outputs} * s.out_width;
        std::vector<float> want(out_row * s.out_height);
        conv_ref(s, {src.floats(), row, c.pixel}, weights.data(), nullptr, {}, {nullptr, 0, 0},
                 {want.data(), out_row, outputs});
        s.source = Element::bf16;
        for (const Element factors : {Element::f32, Element::bf16}) {
            s.factors = factors;
            if (!runs_here({s.source, s.result, factors})) continue;
            ASSERT_EQ(run(s, weights.data(), nullptr, {}, {src.as(s.source), row, c.pixel},
                          {nullptr, 0, 0}, out_row, outputs),
                      want);
        }
    }
}

// Sums of any size: no overflow of the power, and NaN stays NaN.
TEST_P(Conv, ActivatesSumsOfAnySizeForBf16) {
    ConvShape s{1, 1, 1, 1, 1, 1};
    s.source = s.result = Element::bf16;
    const float weight = 1;
    for (size_t i = 0; i < 10; ++i) {
        const Epilogue epilogue = epilogue_of(i);
        SCOPED_TRACE("activation " + std::to_string(static_cast<int>(epilogue.activation)));
        for (const float x : {-1e30F, -200.0F, -88.0F, -20.0F, -1e-3F, 0.0F, 1e-3F, 5.0F, 30.0F,
                              88.0F, 200.0F, 1e30F, NAN}) {
            const Numbers src({to_float(to_bf16(x))});
            float want;
            activate_row_ref(epilogue, src.floats(), nullptr, &want, 1);
            const float got = run(s, &weight, nullptr, epilogue, {src.as(s.source), 1, 1},
                                  {nullptr, 0, 0}, 1, 1)[0];
            if (std::isnan(want))
                EXPECT_TRUE(std::isnan(got)) << x;
            else if (std::isinf(want))
                EXPECT_EQ(got, want) << x;
            else
                EXPECT_NEAR(got, want, 1e-30 + std::abs(want) / 200) << x;
        }
    }
}

TEST_P(Conv, ActivatesWhateverIsNoNumberToWhatIsNone) {
    std::vector<float> x;
    for (const uint32_t bits : {0x7FC00000u, 0x7FC00001u, 0x7FC001FFu, 0xFFC00000u, 0xFFFFFFFFu})
        x.insert(x.end(), 20, std::bit_cast<float>(bits));
    std::vector<float> got(x.size());
    for (size_t i = 0; i < 10; ++i) {
        activate_row(epilogue_of(i), x.data(), nullptr, got.data(), x.size());
        for (size_t k = 0; k < x.size(); ++k)
            ASSERT_TRUE(std::isnan(got[k])) << static_cast<int>(epilogue_of(i).activation) << " "
                                            << std::bit_cast<uint32_t>(x[k]);
    }
}

TEST_P(Conv, ActivatesWithinTheBoundOfTheContract) {
    std::vector<float> x;
    for (float v = -100; v < 100; v += 0.0137F) x.push_back(v);
    for (const float v : {0.0F, -0.0F, 1e-30F, -1e-30F, 3.4e38F, -3.4e38F}) x.push_back(v);
    std::vector<float> got(x.size()), want(x.size());
    for (size_t i = 0; i < 10; ++i) {
        const Epilogue e = epilogue_of(i);
        activate_row(e, x.data(), nullptr, got.data(), x.size());
        activate_row_ref(e, x.data(), nullptr, want.data(), x.size());
        for (size_t k = 0; k < x.size(); ++k) {
            const bool hard =
                e.activation == Activation::hard_sigmoid || e.activation == Activation::hard_swish;
            const double range = hard ? 1 + std::abs(x[k]) : std::abs(want[k]);
            if (got[k] == want[k]) continue;  // infinities too
            ASSERT_NEAR(got[k], want[k], std::max((1e-6 + 1e-7 * std::abs(x[k])) * range, 1e-35))
                << "activation " << static_cast<int>(e.activation) << " of " << x[k];
        }
    }
}

VARTML_ON_EACH_TARGET(Conv);

}  // namespace
}  // namespace vartml::kernels
