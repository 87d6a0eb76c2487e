// SPDX-License-Identifier: Apache-2.0
// Codes of 8 bits, for every instruction set. Signed codes are worked on as unsigned ones whose
// highest bit is flipped and whose zero is 128 more.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/codes.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/ops/codes.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using Di = hn::RebindToSigned<D>;
using D8 = hn::Rebind<uint8_t, D>;
using V = hn::Vec<D>;
using V8 = hn::Vec<D8>;

HWY_INLINE uint8_t flip_of(const Coding& coding) {
    return coding.is_signed ? 0x80 : 0;
}
HWY_INLINE int32_t zero_of(const Coding& coding) {
    return coding.zero + (coding.is_signed ? 128 : 0);
}

// Codes less their zero, as floats.
struct Reader {
    explicit Reader(const Coding& coding)
        : flip(hn::Set(D8(), flip_of(coding))), zero(hn::Set(Di(), zero_of(coding))) {}
    HWY_INLINE V operator()(V8 codes) const {
        const auto wide = hn::PromoteTo(Di(), hn::Xor(codes, flip));
        return hn::ConvertTo(D(), hn::Sub(wide, zero));
    }
    V8 flip;
    hn::Vec<Di> zero;
};

// Steps from zero to codes.
struct Writer {
    explicit Writer(const Coding& coding)
        : flip(hn::Set(D8(), flip_of(coding))),
          zero(hn::Set(Di(), zero_of(coding))),
          low(hn::Set(D(), static_cast<float>(-zero_of(coding)))),
          high(hn::Set(D(), static_cast<float>(255 - zero_of(coding)))) {}
    HWY_INLINE V8 operator()(V steps) const {
        const V number = hn::IfThenElseZero(hn::Not(hn::IsNaN(steps)), steps);
        const V bounded = hn::Min(hn::Max(number, low), high);
        // Adding 1.5·2^23 rounds to an integer, which then is in the lowest bits.
        const auto rounded = hn::BitCast(Di(), hn::Add(bounded, hn::Set(D(), 12582912.0F)));
        const auto code = hn::BitCast(hn::RebindToUnsigned<D>(), hn::Add(rounded, zero));
        return hn::Xor(hn::TruncateTo(D8(), code), flip);
    }
    V8 flip;
    hn::Vec<Di> zero;
    V low, high;
};

void quantise(const float* src, const Coding& to, uint8_t* dst, size_t count) {
    const D d;
    const D8 d8;
    const size_t lanes = hn::Lanes(d);
    const Writer write(to);
    const V scale = hn::Set(d, to.scale);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        hn::StoreU(write(hn::Div(hn::LoadU(d, src + i), scale)), d8, dst + i);
    if (i < count) {
        hn::StoreN(write(hn::Div(hn::LoadN(d, src + i, count - i), scale)), d8, dst + i, count - i);
    }
}

void requantise(const float* src, const float* scales, const float* bias, const Coding& to,
                uint8_t* dst, size_t count) {
    const D d;
    const D8 d8;
    const size_t lanes = hn::Lanes(d);
    const Writer write(to);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const V scaled = hn::Mul(hn::LoadU(d, src + i), hn::LoadU(d, scales + i));
        hn::StoreU(write(hn::Add(scaled, hn::LoadU(d, bias + i))), d8, dst + i);
    }
    if (i == count) return;
    const size_t left = count - i;
    const V scaled = hn::Mul(hn::LoadN(d, src + i, left), hn::LoadN(d, scales + i, left));
    hn::StoreN(write(hn::Add(scaled, hn::LoadN(d, bias + i, left))), d8, dst + i, left);
}

void dequantise(const uint8_t* src, const Coding& from, float* dst, size_t count) {
    const D d;
    const D8 d8;
    const size_t lanes = hn::Lanes(d);
    const Reader read(from);
    const V scale = hn::Set(d, from.scale);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        hn::StoreU(hn::Mul(read(hn::LoadU(d8, src + i)), scale), d, dst + i);
    if (i < count)
        hn::StoreN(hn::Mul(read(hn::LoadN(d8, src + i, count - i)), scale), d, dst + i, count - i);
}

void widen(const uint8_t* src, uint8_t zero, int16_t* dst, size_t count) {
    const hn::ScalableTag<int16_t> d;
    const hn::Rebind<uint8_t, decltype(d)> d8;
    const size_t lanes = hn::Lanes(d);
    const auto less = hn::Set(d, int16_t{zero});
    const auto wide = [&](auto codes) HWY_ATTR { return hn::Sub(hn::PromoteTo(d, codes), less); };
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(wide(hn::LoadU(d8, src + i)), d, dst + i);
    if (i < count) hn::StoreN(wide(hn::LoadN(d8, src + i, count - i)), d, dst + i, count - i);
}

template <CodeBinary op>
void binary_of(const Codes& a, const Codes& b, uint8_t* dst, const Coding& to, size_t count) {
    const D d;
    const D8 d8;
    const size_t lanes = hn::Lanes(d);
    const Reader read_a(a.coding), read_b(b.coding);
    const Writer write(to);
    const V by_a = hn::Set(d, a.coding.scale / to.scale);
    const V by_b = hn::Set(d, b.coding.scale / to.scale);
    const V by_both = hn::Set(d, a.coding.scale * b.coding.scale / to.scale);
    const auto apply = [&](V8 x8, V8 y8) HWY_ATTR {
        const V x = read_a(x8), y = read_b(y8);
        if constexpr (op == CodeBinary::add)
            return write(hn::Add(hn::Mul(x, by_a), hn::Mul(y, by_b)));
        return write(hn::Mul(hn::Mul(x, y), by_both));
    };
    size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        hn::StoreU(apply(hn::LoadU(d8, a.data + i), hn::LoadU(d8, b.data + i)), d8, dst + i);
    if (i < count) {
        const size_t left = count - i;
        hn::StoreN(apply(hn::LoadN(d8, a.data + i, left), hn::LoadN(d8, b.data + i, left)), d8,
                   dst + i, left);
    }
}

void binary(CodeBinary op, const Codes& a, const Codes& b, uint8_t* dst, const Coding& to,
            size_t count) {
    if (op == CodeBinary::add) return binary_of<CodeBinary::add>(a, b, dst, to, count);
    binary_of<CodeBinary::mul>(a, b, dst, to, count);
}

// Applies a function of vectors of codes to rows.
template <class D8x, class Function>
HWY_INLINE void map_rows(D8x d, Function apply, const uint8_t* src, ptrdiff_t src_row, uint8_t* dst,
                         ptrdiff_t dst_row, size_t rows, size_t count) {
    const size_t lanes = hn::Lanes(d);
    for (size_t r = 0; r < rows; ++r, src += src_row, dst += dst_row) {
        size_t i = 0;
        for (; i + lanes <= count; i += lanes) hn::StoreU(apply(hn::LoadU(d, src + i)), d, dst + i);
        if (i < count) hn::StoreN(apply(hn::LoadN(d, src + i, count - i)), d, dst + i, count - i);
    }
}

void look_up_rows(const uint8_t* table, const uint8_t* src, ptrdiff_t src_row, uint8_t* dst,
                  ptrdiff_t dst_row, size_t rows, size_t count) {
#if HWY_TARGET == HWY_SCALAR || (HWY_ARCH_X86 && HWY_TARGET >= HWY_SSE2)
    look_up_ref(table, src, src_row, dst, dst_row, rows, count);
#else
    const hn::ScalableTag<uint8_t> d;
    using V8x = hn::Vec<decltype(d)>;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
    // Four registers hold the table; an instruction looks up in two of them.
    const V8x t0 = hn::LoadU(d, table), t1 = hn::LoadU(d, table + 64);
    const V8x t2 = hn::LoadU(d, table + 128), t3 = hn::LoadU(d, table + 192);
    const V8x low_bits = hn::Set(d, uint8_t{0x7F});
    const auto apply = [&](V8x codes) HWY_ATTR {
        const auto at = hn::IndicesFromVec(d, hn::And(codes, low_bits));
        const auto upper = hn::Ne(hn::AndNot(low_bits, codes), hn::Zero(d));
        return hn::IfThenElse(upper, hn::TwoTablesLookupLanes(d, t2, t3, at),
                              hn::TwoTablesLookupLanes(d, t0, t1, at));
    };
#else
    // Sixteen tables of sixteen entries; a code outside of one gives 0 there: x86 goes by the
    // highest bit, and reads the entry from the lowest four, Arm gives 0 for all indices above 15.
    const V8x outside = hn::Set(d, static_cast<uint8_t>(HWY_ARCH_X86 ? 0x70 : 0));
    const auto apply = [&](V8x codes) HWY_ATTR {
        V8x result = hn::Zero(d);
        for (size_t k = 0; k < 16; ++k) {
            const V8x part = hn::LoadDup128(d, table + 16 * k);
            const V8x at = hn::Sub(codes, hn::Set(d, static_cast<uint8_t>(16 * k)));
            result = hn::Or(result, hn::TableLookupBytesOr0(part, hn::SaturatedAdd(at, outside)));
        }
        return result;
    };
#endif
    map_rows(d, apply, src, src_row, dst, dst_row, rows, count);
#endif
}

// 16 bits hold the sum of 256 codes.
void add_rows(const uint8_t* src, ptrdiff_t row, size_t rows, bool is_signed, int32_t* sums,
              size_t count) {
    const hn::ScalableTag<int32_t> d32;
    const hn::Rebind<uint16_t, decltype(d32)> d16;
    const hn::Rebind<uint8_t, decltype(d32)> d8;
    const auto flip = hn::Set(d8, static_cast<uint8_t>(is_signed ? 0x80 : 0));
    const size_t lanes = hn::Lanes(d32);
    for (size_t i = 0; i < count; i += lanes) {
        const size_t left = count - i < lanes ? count - i : lanes;
        auto sum = hn::LoadN(d32, sums + i, left);
        for (size_t r = 0; r < rows;) {
            const size_t last = rows - r < 256 ? rows : r + 256;
            auto some = hn::Zero(d16);
            const size_t first = r;
            for (; r < last; ++r) {
                const uint8_t* const at = src + static_cast<ptrdiff_t>(r) * row + i;
                const auto codes = left == lanes ? hn::LoadU(d8, at) : hn::LoadN(d8, at, left);
                some = hn::Add(some, hn::PromoteTo(d16, hn::Xor(codes, flip)));
            }
            const auto less = static_cast<int32_t>(is_signed ? 128 * (last - first) : 0);
            sum = hn::Add(sum, hn::Sub(hn::PromoteTo(d32, some), hn::Set(d32, less)));
        }
        hn::StoreN(sum, d32, sums + i, left);
    }
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(quantise);
HWY_EXPORT(requantise);
HWY_EXPORT(dequantise);
HWY_EXPORT(widen);
HWY_EXPORT(binary);
HWY_EXPORT(look_up_rows);
HWY_EXPORT(add_rows);
}  // namespace

void quantise_row(const float* src, const Coding& to, uint8_t* dst, size_t count) {
    HWY_DYNAMIC_DISPATCH(quantise)(src, to, dst, count);
}

void requantise_row(const float* src, const float* scales, const float* bias, const Coding& to,
                    uint8_t* dst, size_t count) {
    HWY_DYNAMIC_DISPATCH(requantise)(src, scales, bias, to, dst, count);
}

void dequantise_row(const uint8_t* src, const Coding& from, float* dst, size_t count) {
    HWY_DYNAMIC_DISPATCH(dequantise)(src, from, dst, count);
}

void widen_row(const uint8_t* src, uint8_t zero, int16_t* dst, size_t count) {
    HWY_DYNAMIC_DISPATCH(widen)(src, zero, dst, count);
}

void binary_codes(CodeBinary op, const Codes& a, const Codes& b, uint8_t* dst, const Coding& to,
                  size_t count) {
    HWY_DYNAMIC_DISPATCH(binary)(op, a, b, dst, to, count);
}

void look_up(const uint8_t* table, const uint8_t* src, ptrdiff_t src_row, uint8_t* dst,
             ptrdiff_t dst_row, size_t rows, size_t count) {
    HWY_DYNAMIC_DISPATCH(look_up_rows)(table, src, src_row, dst, dst_row, rows, count);
}

void add_codes(const uint8_t* src, ptrdiff_t row, size_t rows, bool is_signed, int32_t* sums,
               size_t count) {
    HWY_DYNAMIC_DISPATCH(add_rows)(src, row, rows, is_signed, sums, count);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
