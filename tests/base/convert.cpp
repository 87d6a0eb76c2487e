// SPDX-License-Identifier: Apache-2.0
#include "lib/base/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace vartml {
namespace {

using T = DataType;
using L = Layout;
using Shape = std::vector<uint32_t>;

constexpr std::byte guard{0xa5};
constexpr size_t guard_bytes = 64;

// Where element (n, c, h, w) of a picture tensor lies.
size_t address(const TensorView& v, size_t n, size_t c, size_t h, size_t w) {
    const Shape& s = v.shape;
    if (v.layout == L::NCHW) return ((n * s[1] + c) * s[2] + h) * s[3] + w;
    if (v.layout == L::NHWC) return ((n * s[1] + h) * s[2] + w) * s[3] + c;
    const size_t block = s[4];
    return (((h * s[1] + c / block) * s[2] + w) * s[3] + n) * block + c % block;
}

struct Buffer {
    std::vector<std::byte> bytes;
    explicit Buffer(size_t size) : bytes(size + guard_bytes, guard) {}
    std::byte* data() { return bytes.data(); }
    template <class V>
    V at(size_t i) const {
        V v;
        std::memcpy(&v, bytes.data() + i * sizeof v, sizeof v);
        return v;
    }
    template <class V>
    void set(size_t i, V v) {
        std::memcpy(bytes.data() + i * sizeof v, &v, sizeof v);
    }
    bool guarded() const {
        for (size_t i = bytes.size() - guard_bytes; i < bytes.size(); ++i)
            if (bytes[i] != guard) return false;
        return true;
    }
};

uint16_t bf16(float x) {
    return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
}

// Small whole numbers: exact in every type.
float value(size_t i) {
    return static_cast<float>(static_cast<int>(i * 7 % 251) - 125);
}

void set_element(Buffer& b, T type, size_t i, float x) {
    if (type == T::float32) b.set(i, x);
    if (type == T::bf16) b.set(i, bf16(x));
    if (type == T::fp16) b.set(i, std::bit_cast<uint16_t>(static_cast<_Float16>(x)));
    if (type == T::int8) b.set(i, static_cast<int8_t>(x));
    if (type == T::int16) b.set(i, static_cast<int16_t>(x));
    if (type == T::uint8) b.set(i, static_cast<uint8_t>(x + 125));
    if (type == T::int64) b.set(i, static_cast<int64_t>(x));
}
float element(const Buffer& b, T type, size_t i) {
    if (type == T::float32) return b.at<float>(i);
    if (type == T::bf16) return std::bit_cast<float>(uint32_t{b.at<uint16_t>(i)} << 16);
    if (type == T::fp16) return static_cast<float>(std::bit_cast<_Float16>(b.at<uint16_t>(i)));
    if (type == T::int8) return b.at<int8_t>(i);
    if (type == T::int16) return b.at<int16_t>(i);
    if (type == T::uint8) return static_cast<float>(b.at<uint8_t>(i)) - 125;
    if (type == T::int64) return static_cast<float>(b.at<int64_t>(i));
    return NAN;
}

struct PictureCase {
    L cpu_layout;
    uint32_t n, c, h, w;
    L hw_layout;
    T cpu_type, hw_type;
};
const PictureCase picture_cases[] = {
    // Layouts of pictures, at sizes below, at and above a vector.
    {L::NCHW, 1, 3, 224, 224, L::HCWNC4, T::float32, T::bf16},
    {L::NCHW, 1, 3, 7, 5, L::HCWNC4, T::float32, T::bf16},
    {L::NCHW, 1, 3, 9, 17, L::HCWNC4, T::float32, T::float32},
    {L::NCHW, 1, 3, 9, 17, L::HCWNC4, T::float32, T::int8},
    {L::NCHW, 1, 4, 33, 31, L::HCWNC4, T::float32, T::fp16},
    {L::NCHW, 1, 1, 3, 3, L::HCWNC4, T::float32, T::bf16},
    {L::NCHW, 1, 2, 64, 64, L::HCWNC4, T::int8, T::int8},
    {L::NHWC, 1, 3, 33, 65, L::HCWNC4, T::float32, T::bf16},
    {L::NHWC, 1, 3, 33, 65, L::HCWNC4, T::int8, T::int8},
    {L::NHWC, 1, 4, 3, 65, L::HCWNC4, T::float32, T::float32},
    {L::NHWC, 1, 1, 3, 65, L::HCWNC4, T::float32, T::bf16},
    // Feature maps.
    {L::NCHW, 1, 85, 52, 52, L::HCWNC8, T::float32, T::int8},
    {L::NCHW, 1, 85, 13, 13, L::HCWNC8, T::float32, T::bf16},
    {L::NCHW, 1, 8, 20, 20, L::HCWNC8, T::float32, T::float32},
    {L::NCHW, 1, 20, 8, 6, L::HCWNC16, T::float32, T::bf16},
    {L::NCHW, 1, 20, 8, 6, L::HCWNC16, T::float32, T::float32},
    {L::NCHW, 1, 33, 5, 40, L::HCWNC16, T::float32, T::int8},
    {L::NCHW, 1, 20, 5, 7, L::HCWNC8, T::int64, T::int64},
    {L::NHWC, 1, 85, 13, 13, L::HCWNC8, T::float32, T::bf16},
    {L::NHWC, 1, 16, 13, 13, L::HCWNC16, T::float32, T::bf16},
    {L::NHWC, 1, 17, 5, 3, L::HCWNC16, T::uint8, T::uint8},
    // Unblocked, with batches.
    {L::NCHW, 4, 3, 17, 19, L::NHWC, T::float32, T::bf16},
    {L::NCHW, 2, 3, 17, 19, L::NHWC, T::uint8, T::uint8},
    {L::NCHW, 1, 1, 17, 19, L::NHWC, T::float32, T::bf16},
    {L::NCHW, 2, 21, 8, 9, L::NHWC, T::float32, T::float32},
    {L::NCHW, 1, 300, 5, 5, L::NHWC, T::float32, T::bf16},
    {L::NCHW, 1, 3000, 33, 32, L::NHWC, T::float32, T::bf16},
    {L::NHWC, 2, 5, 8, 9, L::NCHW, T::float32, T::fp16},
    {L::NHWC, 2, 5, 8, 9, L::NCHW, T::int64, T::int64},
    {L::NCHW, 1, 3, 17, 19, L::NCHW, T::float32, T::bf16},
    {L::NHWC, 1, 3, 17, 19, L::NHWC, T::fp16, T::bf16},
    {L::NCHW, 1, 1, 1, 1, L::NHWC, T::float32, T::int16},
};

TensorView view_of(L layout, T type, uint32_t n, uint32_t c, uint32_t h, uint32_t w) {
    return make_view(type, layout, layout == L::NCHW ? Shape{n, c, h, w} : Shape{n, h, w, c});
}

class Pictures : public testing::TestWithParam<PictureCase> {};

TEST_P(Pictures, LandWhereTheAddressRuleSaysAndComeBack) {
    const PictureCase& k = GetParam();
    const TensorView cpu = view_of(k.cpu_layout, k.cpu_type, k.n, k.c, k.h, k.w);
    const TensorView hw = hw_view(cpu, k.hw_layout, k.hw_type);
    const auto to_hw = Conversion::create(cpu, hw), to_cpu = Conversion::create(hw, cpu);
    ASSERT_TRUE(to_hw) << to_hw.error().message;
    ASSERT_TRUE(to_cpu) << to_cpu.error().message;

    Buffer src(cpu.size_bytes), dst(hw.size_bytes), back(cpu.size_bytes);
    for (size_t i = 0; i < cpu.size; ++i) set_element(src, k.cpu_type, i, value(i));
    to_hw->run(src.data(), dst.data());
    ASSERT_TRUE(dst.guarded());
    std::vector<bool> used(hw.size, false);
    for (size_t n = 0; n < k.n; ++n)
        for (size_t c = 0; c < k.c; ++c)
            for (size_t h = 0; h < k.h; ++h)
                for (size_t w = 0; w < k.w; ++w) {
                    const size_t at = address(hw, n, c, h, w);
                    used[at] = true;
                    ASSERT_EQ(element(dst, k.hw_type, at), value(address(cpu, n, c, h, w)))
                        << "n" << n << " c" << c << " h" << h << " w" << w;
                }
    const size_t bytes = size_bytes(k.hw_type);
    for (size_t i = 0; i < hw.size; ++i) {
        if (used[i]) continue;
        for (size_t b = 0; b < bytes; ++b) ASSERT_EQ(dst.bytes[i * bytes + b], std::byte{0}) << i;
        for (size_t b = 0; b < bytes; ++b)
            dst.bytes[i * bytes + b] = std::byte{0x7f};  // must not matter
    }
    to_cpu->run(dst.data(), back.data());
    EXPECT_EQ(back.bytes, src.bytes);
}

TEST_P(Pictures, PartsGiveTheBytesOfTheWhole) {
    const PictureCase& k = GetParam();
    const TensorView cpu = view_of(k.cpu_layout, k.cpu_type, k.n, k.c, k.h, k.w);
    const TensorView hw = hw_view(cpu, k.hw_layout, k.hw_type);
    for (const auto& [a, b] : {std::pair{cpu, hw}, std::pair{hw, cpu}}) {
        const auto conversion = Conversion::create(a, b);
        ASSERT_TRUE(conversion);
        Buffer src(a.size_bytes), whole(b.size_bytes), parts(b.size_bytes);
        for (size_t i = 0; i < a.size; ++i) set_element(src, a.data_type, i, value(i));
        conversion->run(src.data(), whole.data());
        for (unsigned part = 0; part < 3; ++part)
            conversion->run_part(src.data(), parts.data(), 2 - part, 3);
        EXPECT_EQ(parts.bytes, whole.bytes);
    }
}

INSTANTIATE_TEST_SUITE_P(Convert, Pictures, testing::ValuesIn(picture_cases));

// An element of each type.
TEST(Convert, WorkedExamplesPutTheElementWhereTheTableSays) {
    struct {
        TensorView cpu, hw;
        size_t from, to;
    } const cases[] = {
        {make_view(T::float32, L::NCHW, {1, 3, 224, 224}),
         make_view(T::int8, L::HCWNC4, {224, 1, 224, 1, 4}), (2 * 224 + 10) * 224 + 7, 8990},
        {make_view(T::float32, L::NCHW, {1, 3, 224, 224}),
         make_view(T::bf16, L::HCWNC4, {224, 1, 224, 1, 4}), (2 * 224 + 10) * 224 + 7, 8990},
        {make_view(T::float32, L::NCHW, {1, 3, 640, 640}),
         make_view(T::int8, L::HCWNC4, {640, 1, 640, 1, 4}), 640, 2560},
        {make_view(T::float32, L::NCHW, {1, 85, 52, 52}),
         make_view(T::int8, L::HCWNC8, {52, 11, 52, 1, 8}), (84 * 52 + 51) * 52 + 51, 237948},
        {make_view(T::float32, L::NCHW, {1, 20, 8, 6}),
         make_view(T::bf16, L::HCWNC16, {8, 2, 6, 1, 16}), (17 * 8 + 3) * 6 + 5, 753},
        {make_view(T::float32, L::NHW, {1, 8400, 85}), make_view(T::int8, L::NHW, {1, 8400, 88}),
         8399 * 85 + 84, 739196},
        {make_view(T::float32, L::NHW, {1, 84, 8400}), make_view(T::bf16, L::NHW, {1, 84, 8400}),
         12345, 12345},
        {make_view(T::float32, L::GENERIC, {2, 3, 4, 5}),
         make_view(T::float32, L::GENERIC, {2, 5, 3, 4}, {0, 3, 1, 2}), 33, 42},
        {make_view(T::float32, L::GENERIC, {1, 1000}), make_view(T::int8, L::GENERIC, {1, 1000}),
         999, 999},
    };
    for (const auto& c : cases) {
        const auto to_hw = Conversion::create(c.cpu, c.hw),
                   to_cpu = Conversion::create(c.hw, c.cpu);
        ASSERT_TRUE(to_hw) << to_hw.error().message;
        ASSERT_TRUE(to_cpu) << to_cpu.error().message;
        Buffer src(c.cpu.size_bytes), dst(c.hw.size_bytes), back(c.cpu.size_bytes);
        for (size_t i = 0; i < c.cpu.size; ++i) src.set(i, 0.0f);
        src.set(c.from, 77.0f);
        to_hw->run(src.data(), dst.data());
        for (size_t i = 0; i < c.hw.size; ++i)
            ASSERT_EQ(element(dst, c.hw.data_type, i), i == c.to ? 77.0f : 0.0f) << i;
        EXPECT_TRUE(dst.guarded());
        to_cpu->run(dst.data(), back.data());
        EXPECT_EQ(back.bytes, src.bytes);
    }
}

TEST(Convert, GenericOrdersArePermutations) {
    const Shape cpu_shape{2, 3, 4, 5, 6};
    Shape order{0, 1, 2, 3, 4};
    do {
        Shape shape;
        for (uint32_t d : order) shape.push_back(cpu_shape[d]);
        const TensorView cpu = make_view(T::float32, L::GENERIC, cpu_shape);
        const TensorView hw = make_view(T::bf16, L::GENERIC, shape, order);
        const auto to_hw = Conversion::create(cpu, hw), to_cpu = Conversion::create(hw, cpu);
        ASSERT_TRUE(to_hw && to_cpu);
        Buffer src(cpu.size_bytes), dst(hw.size_bytes), back(cpu.size_bytes);
        for (size_t i = 0; i < cpu.size; ++i) src.set(i, value(i));
        to_hw->run(src.data(), dst.data());
        for (size_t i = 0; i < hw.size; ++i) {
            size_t at = 0, rest = i;
            for (size_t p = order.size(); p-- > 0; rest /= shape[p])
                at += rest % shape[p] * cpu.strides[order[p]];
            ASSERT_EQ(element(dst, T::bf16, i), value(at));
        }
        to_cpu->run(dst.data(), back.data());
        ASSERT_EQ(back.bytes, src.bytes);
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Convert, NhwPadsOneColumnToEight) {
    const TensorView cpu = make_view(T::float32, L::NHW, {1, 5, 1});
    const TensorView hw = hw_view(cpu, L::NHW, T::float32);
    const auto to_hw = Conversion::create(cpu, hw);
    ASSERT_TRUE(to_hw);
    Buffer src(cpu.size_bytes), dst(hw.size_bytes);
    for (size_t i = 0; i < 5; ++i) src.set(i, value(i));
    to_hw->run(src.data(), dst.data());
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(dst.at<float>(i), i % 8 == 0 ? value(i / 8) : 0.0f);
    EXPECT_TRUE(dst.guarded());
}

// Also where the numbers are in another order.
TEST(Convert, NhwIsPaddedWhereverItComesFrom) {
    for (const Shape& order : {Shape{0, 1, 2}, Shape{2, 0, 1}, Shape{1, 2, 0}, Shape{0, 2, 1}}) {
        const Shape picture{2, 4, 3};  // 3 of 8 columns
        Shape shape;
        for (const uint32_t d : order) shape.push_back(picture[d]);
        const TensorView src = make_view(T::float32, L::GENERIC, shape, order);
        const TensorView dst = hw_view(make_view(T::float32, L::NHW, picture), L::NHW, T::float32);
        const auto conversion = Conversion::create(src, dst);
        ASSERT_TRUE(conversion) << conversion.error().message;
        Buffer from(src.size_bytes), to(dst.size_bytes);
        for (size_t i = 0; i < src.size; ++i) from.set(i, 1 + value(i) * value(i));
        for (size_t i = 0; i < dst.size; ++i) to.set(i, -1.0f);
        conversion->run(from.data(), to.data());
        for (size_t i = 0; i < dst.size; ++i)
            EXPECT_TRUE(i % 8 < 3 ? to.at<float>(i) > 0 : to.at<float>(i) == 0) << i;
        EXPECT_TRUE(to.guarded());
    }
}

// Converts one value there.
template <class To, class From>
To convert_one(T from, T to, From x, Quantisation q = {}, Rounding r = Rounding::nearest_even) {
    TensorView a = make_view(from, L::GENERIC, {1}), b = make_view(to, L::GENERIC, {1});
    (from == T::float32 ? b : a).quantisation = q;
    const auto conversion = Conversion::create(a, b, r);
    EXPECT_TRUE(conversion);
    To y{};
    conversion->run(&x, &y);
    return y;
}

// Values between types.
TEST(Convert, FloatsBecomeBf16AsTheContractSays) {
    const std::pair<uint32_t, uint16_t> cases[] = {
        {0x3F808000, 0x3F80}, {0x3F818000, 0x3F82}, {0x7F7FFFFF, 0x7F80}, {0x7F800001, 0x7FC0},
        {0xFF800001, 0xFFC0}, {0x000116C2, 0x0001}, {0x80000000, 0x8000}, {0x7F800000, 0x7F80},
        {0xFF800000, 0xFF80}, {0x00000000, 0x0000}, {0x3F800001, 0x3F80}, {0x7FFFFFFF, 0x7FFF},
    };
    for (const auto& [in, out] : cases)
        EXPECT_EQ(convert_one<uint16_t>(T::float32, T::bf16, std::bit_cast<float>(in)), out)
            << std::hex << in;
    EXPECT_EQ(convert_one<uint32_t>(T::bf16, T::float32, uint16_t{0x8001}), 0x80010000u);
}

TEST(Convert, FloatsAreQuantisedAsTheContractSays) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    const Quantisation q{0.03125, 0};
    const std::pair<float, int> cases[] = {
        {0.046875f, 2}, {0.078125f, 2}, {4.0f, 127},  {-4.0f, -128}, {-5.0f, -128},
        {inf, 127},     {-inf, -128},   {NAN, 0},     {1e30f, 127},  {-1e30f, -128},
        {0.0f, 0},      {0.015625f, 0}, {3.97f, 127},
    };
    for (const auto& [in, out] : cases)
        EXPECT_EQ(convert_one<int8_t>(T::float32, T::int8, in, q), out) << in;
    EXPECT_EQ(convert_one<int8_t>(T::float32, T::int8, NAN, {0.5, -7}), -7);
    EXPECT_EQ(convert_one<uint8_t>(T::float32, T::uint8, -1.0f, {0.5, 128}), 126);
    EXPECT_EQ(convert_one<uint8_t>(T::float32, T::uint8, 1000.0f, {0.5, 128}), 255);
    EXPECT_EQ(convert_one<uint16_t>(T::float32, T::uint16, 1e9f, {0.5, 3}), 65535);
    EXPECT_EQ(convert_one<int16_t>(T::float32, T::int16, -1e9f, {0.5, 3}), -32768);
    EXPECT_EQ(convert_one<int8_t>(T::float32, T::int8, 0.9f, {0.5, 0}, Rounding::toward_zero), 1);
    EXPECT_EQ(convert_one<int8_t>(T::float32, T::int8, -0.9f, {0.5, 0}, Rounding::toward_zero), -1);
    EXPECT_EQ(convert_one<float>(T::int8, T::float32, int8_t{-128}, {0.25, 5}), -33.25f);
    EXPECT_EQ(convert_one<float>(T::uint16, T::float32, uint16_t{65535}, {2.0, 65535}), 0.0f);
}

TEST(Convert, EqualViewsAreCopies) {
    const TensorView a = make_view(T::float32, L::NCHW, {2, 3, 4, 5});
    EXPECT_TRUE(Conversion::create(a, a)->is_copy());
    // One channel: both orders are the same bytes.
    EXPECT_TRUE(Conversion::create(make_view(T::int8, L::NCHW, {1, 1, 4, 5}),
                                   make_view(T::int8, L::NHWC, {1, 4, 5, 1}))
                    ->is_copy());
    EXPECT_FALSE(Conversion::create(a, make_view(T::bf16, L::NCHW, {2, 3, 4, 5}))->is_copy());
    EXPECT_FALSE(Conversion::create(a, make_view(T::float32, L::NHWC, {2, 4, 5, 3}))->is_copy());
}

TEST(Convert, RefusesWhatIsNotOneTensorOrHasNoConversion) {
    TensorView bad_scale = make_view(T::int8, L::NCHW, {1, 3, 4, 5});
    bad_scale.quantisation = Quantisation{0.0, 0};
    TensorView bad_zero = bad_scale;
    bad_zero.quantisation = Quantisation{1.0, 128};
    const TensorView a = make_view(T::float32, L::NCHW, {1, 3, 4, 5});
    struct {
        TensorView src, dst;
        ErrorCode code;
        const char* part;
    } const cases[] = {
        {a, make_view(T::float32, L::NHWC, {1, 5, 4, 3}), ErrorCode::invalid_argument,
         "NCHW [1,3,4,5] fp32 to NHWC [1,5,4,3] fp32"},
        {a, make_view(T::float32, L::HCWNC4, {4, 2, 5, 1, 4}), ErrorCode::invalid_argument,
         "shapes"},
        {make_view(T::float32, L::NCHW, {2, 3, 4, 5}),
         make_view(T::float32, L::HCWNC4, {4, 1, 5, 1, 4}), ErrorCode::invalid_argument, "shapes"},
        {make_view(T::float32, L::HCWNC8, {4, 1, 5, 1, 8}),
         make_view(T::float32, L::HCWNC4, {4, 1, 5, 1, 4}), ErrorCode::unsupported, "blocked"},
        {make_view(T::float32, L::GENERIC, {4, 5}),
         make_view(T::float32, L::GENERIC, {4, 5}, {0, 0}), ErrorCode::invalid_argument,
         "permutation"},
        {make_view(T::float32, L::GENERIC, {4, 5}),
         make_view(T::float32, L::GENERIC, {4, 5}, {0, 7}), ErrorCode::invalid_argument,
         "permutation"},
        {make_view(T::float32, L::NHW, {1, 4, 5}), make_view(T::float32, L::NHW, {1, 4, 16}),
         ErrorCode::invalid_argument, "shapes"},
        {a, make_view(T::int64, L::NCHW, {1, 3, 4, 5}), ErrorCode::unsupported, "types"},
        {make_view(T::uint8, L::NCHW, {1, 3, 4, 5}), make_view(T::int8, L::NCHW, {1, 3, 4, 5}),
         ErrorCode::unsupported, "types"},
        {a, bad_scale, ErrorCode::invalid_argument, "scale 0"},
        {a, bad_zero, ErrorCode::invalid_argument, "zero point 128"},
        {TensorView{}, a, ErrorCode::unsupported, "unknown"},
    };
    for (const auto& c : cases) {
        const auto r = Conversion::create(c.src, c.dst);
        ASSERT_FALSE(r) << c.part;
        EXPECT_EQ(r.error().code, c.code) << r.error().message;
        EXPECT_NE(r.error().message.find(c.part), std::string::npos) << r.error().message;
    }
}

}  // namespace
}  // namespace vartml
