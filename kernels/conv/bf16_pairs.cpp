// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/bf16_pairs.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include <bit>

#include "kernels/conv/bf16_pairs.h"
#include "kernels/conv/words-inl.h"

// Old instruction sets have no code here: their few registers and short vectors serve nobody.
#undef VARTML_HAS_PAIRS
#if HWY_TARGET >= HWY_SSE4 && HWY_ARCH_X86
#define VARTML_HAS_PAIRS 0
#else
#define VARTML_HAS_PAIRS 1
#endif

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace {

#if VARTML_HAS_PAIRS

struct Pairs {
#if HWY_TARGET == HWY_NEON_BF16
    using Word = uint64_t;  // an instruction for matrices: twice the products of one for pairs
#else
    using Word = uint32_t;
#endif
    using Element = bf16;
    using Factor = bf16;
    using Sum = float;
    using Vec = FloatVec;
    static constexpr size_t count = sizeof(Word) / sizeof(Element);

    // Where there is no instruction for it, in fp32.
    static HWY_INLINE Vec add(Words a, Words b, Vec sum) {
#if HWY_TARGET == HWY_NEON_BF16
        asm(".arch_extension bf16\n\tbfmmla %0.4s, %1.8h, %2.8h"
            : "+w"(sum.raw)
            : "w"(a.raw), "w"(b.raw));
        return sum;
#else
        const FloatTag d;
        const hn::Repartition<hwy::bfloat16_t, FloatTag> pair;
        const auto x = hn::BitCast(pair, a), y = hn::BitCast(pair, b);
// Of targets of Arm that come behind one with bf16, Highway's macro is still 1, and its function
// adds half of the products to the second sum.
#if HWY_NATIVE_DOT_BF16 && HWY_ARCH_X86
        FloatVec unused = hn::Zero(d);
        return hn::ReorderWidenMulAccumulate(d, x, y, sum, unused);
#else
        sum = hn::MulAdd(hn::PromoteEvenTo(d, x), hn::PromoteEvenTo(d, y), sum);
        return hn::MulAdd(hn::PromoteOddTo(d, x), hn::PromoteOddTo(d, y), sum);
#endif
#endif
    }
    static HWY_INLINE FloatVec to_float(Vec sum) { return sum; }
    static Sum start(const ConvShape&, float bias, float) { return bias; }
    // To the nearest.
    static Factor factor(float x) {
        const auto bits = std::bit_cast<uint32_t>(x);
        return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
    }
};

bool has_pairs() {
    return true;
}
size_t packed_pairs(const ConvShape& s) {
    return packed_size<Pairs>(s);
}
void pack_all(const ConvShape& s, const float* weights, const float* bias, std::byte* packed) {
    pack<Pairs>(s, weights, bias, packed);
}
void rows(const ConvShape& s, const Bf16Picture& src, const std::byte* packed,
          const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
          size_t first, size_t last) {
    conv_rows<Pairs>(s, src, packed, epilogue, residual, dst, first, last);
}

#else  // has_bf16_pairs() is false: never called

bool has_pairs() {
    return false;
}
size_t packed_pairs(const ConvShape&) {
    return 0;
}
void pack_all(const ConvShape&, const float*, const float*, std::byte*) {}
void rows(const ConvShape&, const Bf16Picture&, const std::byte*, const Epilogue&,
          const AnySrcPicture&, const AnyDstPicture&, size_t, size_t) {}

#endif

}  // namespace
}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(has_pairs);
HWY_EXPORT(packed_pairs);
HWY_EXPORT(pack_all);
HWY_EXPORT(rows);
}  // namespace

bool has_bf16_pairs() {
    return HWY_DYNAMIC_DISPATCH(has_pairs)();
}

size_t packed_pairs_size(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(packed_pairs)(shape);
}

void pack_pairs(const ConvShape& shape, const float* weights, const float* bias,
                std::byte* packed) {
    HWY_DYNAMIC_DISPATCH(pack_all)(shape, weights, bias, packed);
}

void conv_pairs(const ConvShape& shape, const Bf16Picture& src, const std::byte* packed,
                const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
                size_t first, size_t last) {
    HWY_DYNAMIC_DISPATCH(rows)
    (shape, src, packed, epilogue, residual, dst, first, last);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
