// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/code_quads.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/conv/code_quads.h"
#include "kernels/conv/depthwise_words-inl.h"
#include "kernels/conv/words-inl.h"
#include "kernels/instruction_sets.h"

// The others have no instruction for it. Neither AVX-VNNI nor Arm's dot product is a target of its
// own: some processors with AVX2, or with NEON, have it.
#undef VARTML_HAS_QUADS
#undef VARTML_VPDPBUSD
#if HWY_TARGET <= HWY_AVX3_DL && HWY_ARCH_X86
#define VARTML_HAS_QUADS 1
#define VARTML_VPDPBUSD "vpdpbusd %2, %1, %0"
#elif HWY_TARGET == HWY_AVX2
#define VARTML_HAS_QUADS 1
#define VARTML_VPDPBUSD "%{vex%} vpdpbusd %2, %1, %0"
#elif HWY_ARCH_ARM_A64
#define VARTML_HAS_QUADS 1
#else
#define VARTML_HAS_QUADS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace {

#if VARTML_HAS_QUADS

struct Quads {
    using Word = uint32_t;
    using Element = uint8_t;
    using Factor = int8_t;
    using Sum = int32_t;
    using SumTag = hn::RebindToSigned<FloatTag>;
    using Vec = hn::Vec<SumTag>;
    static constexpr size_t count = 4;

    // Not hn::SumOfMulQuadAccumulate: GCC 14 copies each sum of its built-in function from one type
    // of vector to another, and runs out of registers.
    static HWY_INLINE Vec add(Words codes, Words weights, Vec sum) {
#if HWY_ARCH_ARM_A64
        // Both factors have a sign there: codes less 128.
        codes = hn::Xor(codes, hn::Set(WordTag(), 0x80808080U));
        asm(".arch_extension dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
            : "+w"(sum.raw)
            : "w"(codes.raw), "w"(weights.raw));
#else
        asm(VARTML_VPDPBUSD : "+v"(sum.raw) : "v"(codes.raw), "v"(weights.raw));
#endif
        return sum;
    }
    static HWY_INLINE FloatVec to_float(Vec sum) { return hn::ConvertTo(FloatTag(), sum); }
    static constexpr int32_t subtracted = HWY_ARCH_ARM_A64 ? 128 : 0;  // from the codes
    static Sum start(const ConvShape& s, float bias, float weights) {
        return static_cast<int32_t>(bias) -
               (static_cast<int32_t>(s.source_zero) - subtracted) * static_cast<int32_t>(weights);
    }
    static Factor factor(float x) { return static_cast<int8_t>(x); }
};

#if HWY_ARCH_ARM_A64
// Eight products a sum where the processor multiplies matrices of codes (FEAT_I8MM).
struct Octets : Quads {
    using Word = uint64_t;
    static constexpr size_t count = 8;

    static HWY_INLINE Vec add(Words codes, Words weights, Vec sum) {
        asm(".arch_extension i8mm\n\tusmmla %0.4s, %1.16b, %2.16b"
            : "+w"(sum.raw)
            : "w"(codes.raw), "w"(weights.raw));
        return sum;
    }
    static Sum start(const ConvShape& s, float bias, float weights) {
        return static_cast<int32_t>(bias) -
               static_cast<int32_t>(s.source_zero) * static_cast<int32_t>(weights);
    }
};
#else
using Octets = Quads;
#endif

bool has_quads() {
    return (HWY_TARGET != HWY_AVX2 && !HWY_ARCH_ARM_A64) || has_dot_products();
}
size_t packed_quads(const ConvShape& s) {
    if (s.depthwise) return packed_depthwise_size<Quads>(s);
    return has_matrix_products() ? packed_size<Octets>(s) : packed_size<Quads>(s);
}
void pack_all(const ConvShape& s, const float* weights, const float* bias, std::byte* packed) {
    if (s.depthwise) return pack_depthwise<Quads>(s, weights, bias, packed);
    has_matrix_products() ? pack<Octets>(s, weights, bias, packed)
                          : pack<Quads>(s, weights, bias, packed);
}
void rows(const ConvShape& s, const CodePicture& src, const std::byte* packed,
          const Epilogue& epilogue, const AnyDstPicture& dst, size_t first, size_t last) {
    if (s.depthwise) return depthwise_rows<Quads>(s, src, packed, epilogue, dst, first, last);
    has_matrix_products()
        ? conv_rows<Octets>(s, src, packed, epilogue, {nullptr, 0, 0}, dst, first, last)
        : conv_rows<Quads>(s, src, packed, epilogue, {nullptr, 0, 0}, dst, first, last);
}

#else  // has_code_quads() is false: never called

bool has_quads() {
    return false;
}
size_t packed_quads(const ConvShape&) {
    return 0;
}
void pack_all(const ConvShape&, const float*, const float*, std::byte*) {}
void rows(const ConvShape&, const CodePicture&, const std::byte*, const Epilogue&,
          const AnyDstPicture&, size_t, size_t) {}

#endif

}  // namespace
}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(has_quads);
HWY_EXPORT(packed_quads);
HWY_EXPORT(pack_all);
HWY_EXPORT(rows);
}  // namespace

bool has_code_quads() {
    return HWY_DYNAMIC_DISPATCH(has_quads)();
}

size_t packed_quads_size(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(packed_quads)(shape);
}

void pack_quads(const ConvShape& shape, const float* weights, const float* bias,
                std::byte* packed) {
    HWY_DYNAMIC_DISPATCH(pack_all)(shape, weights, bias, packed);
}

void conv_quads(const ConvShape& shape, const CodePicture& src, const std::byte* packed,
                const Epilogue& epilogue, const AnyDstPicture& dst, size_t first, size_t last) {
    HWY_DYNAMIC_DISPATCH(rows)(shape, src, packed, epilogue, dst, first, last);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
