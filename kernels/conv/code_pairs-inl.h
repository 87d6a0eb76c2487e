// SPDX-License-Identifier: Apache-2.0
// Codes less their zero point as numbers of 16 bits, two to a word. Included once per instruction
// set, which has it where VARTML_HAS_CODE_PAIRS is 1.
#if defined(VARTML_KERNELS_CONV_CODE_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VARTML_KERNELS_CONV_CODE_PAIRS_INL_H_
#undef VARTML_KERNELS_CONV_CODE_PAIRS_INL_H_
#else
#define VARTML_KERNELS_CONV_CODE_PAIRS_INL_H_
#endif

#include "kernels/conv/words-inl.h"

// Old instruction sets of x86 have no code here: their few registers and short vectors serve
// nobody.
#undef VARTML_HAS_CODE_PAIRS
#if (HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86) || HWY_ARCH_ARM_A64
#define VARTML_HAS_CODE_PAIRS 1
#else
#define VARTML_HAS_CODE_PAIRS 0
#endif

#if VARTML_HAS_CODE_PAIRS
HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {

struct CodePairs {
    using Word = uint32_t;
    using Element = int16_t;
    using Factor = int16_t;
    using Sum = int32_t;
    using SumTag = hn::RebindToSigned<FloatTag>;
    using Vec = hn::Vec<SumTag>;
    static constexpr size_t count = 2;

    // 2 · 255 · 128 is far from what 32 bits hold.
    static HWY_INLINE Vec add(Words codes, Words weights, Vec sum) {
        const hn::Repartition<int16_t, SumTag> half;
        const SumTag d;
        return hn::Add(
            sum, hn::WidenMulPairwiseAdd(d, hn::BitCast(half, codes), hn::BitCast(half, weights)));
    }
    static HWY_INLINE FloatVec to_float(Vec sum) { return hn::ConvertTo(FloatTag(), sum); }
    static Sum start(const ConvShape&, float bias, float) { return static_cast<int32_t>(bias); }
    static Factor factor(float x) { return static_cast<int16_t>(x); }
};

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif  // per target
