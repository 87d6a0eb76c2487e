// SPDX-License-Identifier: Apache-2.0
// Element-wise arithmetic, for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/elementwise.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/ops/elementwise.h"
#include "kernels/ops/rows.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <Binary op, class D, class V = hn::Vec<D>>
HWY_INLINE V apply(D d, V a, V b) {
    if constexpr (op == Binary::add) return hn::Add(a, b);
    if constexpr (op == Binary::sub) return hn::Sub(a, b);
    if constexpr (op == Binary::mul) return hn::Mul(a, b);
    if constexpr (op == Binary::div) return hn::Div(a, b);
    if constexpr (op == Binary::max || op == Binary::min) {
        const V best = op == Binary::max ? hn::IfThenElse(hn::Gt(a, b), a, b)
                                         : hn::IfThenElse(hn::Lt(a, b), a, b);
        return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::NaN(d), best);
    }
    return hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Mul(a, b), a);  // prelu
}

// Rows of one vector of D, which costs less than a masked one.
template <Binary op, class D>
void narrow_rows(D d, const OperandRows& a, const OperandRows& b, const ResultRows& dst,
                 size_t rows) {
    const auto *pa = static_cast<const float*>(a.data), *pb = static_cast<const float*>(b.data);
    auto* to = static_cast<float*>(dst.data);
    for (size_t r = 0; r < rows; ++r, pa += a.row, pb += b.row, to += dst.row) {
        const auto x = a.stride ? hn::LoadU(d, pa) : hn::Set(d, *pa);
        const auto y = b.stride ? hn::LoadU(d, pb) : hn::Set(d, *pb);
        hn::StoreU(apply<op>(d, x, y), d, to);
    }
}

template <Binary op>
void float_rows(const OperandRows& a, const OperandRows& b, const ResultRows& dst, size_t rows,
                size_t count) {
    if (count == 2) return narrow_rows<op>(hn::FixedTag<float, 2>(), a, b, dst, rows);
    if (count == 4) return narrow_rows<op>(hn::FixedTag<float, 4>(), a, b, dst, rows);
    const D d;
    const size_t lanes = hn::Lanes(d);
    const auto *pa = static_cast<const float*>(a.data), *pb = static_cast<const float*>(b.data);
    auto* to = static_cast<float*>(dst.data);
    for (size_t r = 0; r < rows; ++r, pa += a.row, pb += b.row, to += dst.row) {
        const V a0 = hn::Set(d, *pa), b0 = hn::Set(d, *pb);
        size_t i = 0;
        for (; i + lanes <= count; i += lanes) {
            const V x = a.stride ? hn::LoadU(d, pa + i) : a0;
            const V y = b.stride ? hn::LoadU(d, pb + i) : b0;
            hn::StoreU(apply<op>(d, x, y), d, to + i);
        }
        if (i == count) continue;
        const V x = a.stride ? hn::LoadN(d, pa + i, count - i) : a0;
        const V y = b.stride ? hn::LoadN(d, pb + i, count - i) : b0;
        hn::StoreN(apply<op>(d, x, y), d, to + i, count - i);
    }
}

// ---- rows of which some are bf16 --------------------------------------------------------------

using BitsTag = hn::RebindToUnsigned<D>;
using HalfTag = hn::Rebind<uint16_t, D>;

// A row of an operand.
struct Source {
    const float* floats;  // nullptr: the others
    const uint16_t* halves;
    size_t stride;

    explicit Source(const OperandRows& o)
        : floats(o.element == Element::f32 ? static_cast<const float*>(o.data) : nullptr),
          halves(floats ? nullptr : static_cast<const uint16_t*>(o.data)),
          stride(o.stride) {}
    void next(ptrdiff_t row) { floats ? void(floats += row) : void(halves += row); }
    // From element i, of which there are `count` more.
    template <bool Whole>
    HWY_INLINE V load(size_t i, size_t count) const {
        const D d;
        const BitsTag bits;
        const HalfTag half;
        if (floats) {
            if (!stride) return hn::Set(d, *floats);
            return Whole ? hn::LoadU(d, floats + i) : hn::LoadN(d, floats + i, count);
        }
        if (!stride) return hn::BitCast(d, hn::Set(bits, uint32_t{*halves} << 16));
        const auto x = Whole ? hn::LoadU(half, halves + i) : hn::LoadN(half, halves + i, count);
        return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, x)));
    }
};

// As convert_row().
HWY_INLINE hn::Vec<HalfTag> to_half(V x) {
    const BitsTag d;
    const auto v = hn::BitCast(d, x);
    const auto upper = hn::ShiftRight<16>(v);
    const auto odd = hn::And(upper, hn::Set(d, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(v, hn::Set(d, 0x7FFF)), odd));
    const auto nan = hn::RebindMask(d, hn::IsNaN(x));
    return hn::TruncateTo(HalfTag(), hn::IfThenElse(nan, hn::Or(upper, hn::Set(d, 0x40)), rounded));
}

template <bool Whole>
HWY_INLINE void store(V x, const ResultRows& dst, ptrdiff_t at, size_t count) {
    if (dst.element == Element::f32) {
        auto* const to = static_cast<float*>(dst.data) + at;
        Whole ? hn::StoreU(x, D(), to) : hn::StoreN(x, D(), to, count);
    } else {
        auto* const to = static_cast<uint16_t*>(dst.data) + at;
        Whole ? hn::StoreU(to_half(x), HalfTag(), to)
              : hn::StoreN(to_half(x), HalfTag(), to, count);
    }
}

template <Binary op>
void mixed_rows(const OperandRows& a, const OperandRows& b, const ResultRows& dst, size_t rows,
                size_t count) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    Source x(a), y(b);
    ptrdiff_t to = 0;
    for (size_t r = 0; r < rows; ++r, x.next(a.row), y.next(b.row), to += dst.row) {
        size_t i = 0;
        for (; i + lanes <= count; i += lanes)
            store<true>(apply<op>(d, x.load<true>(i, lanes), y.load<true>(i, lanes)), dst,
                        to + static_cast<ptrdiff_t>(i), lanes);
        const size_t rest = count - i;
        if (rest > 0)
            store<false>(apply<op>(d, x.load<false>(i, rest), y.load<false>(i, rest)), dst,
                         to + static_cast<ptrdiff_t>(i), rest);
    }
}

template <Binary op>
void rows_of(const OperandRows& a, const OperandRows& b, const ResultRows& dst, size_t rows,
             size_t count) {
    const bool all_floats =
        a.element == Element::f32 && b.element == Element::f32 && dst.element == Element::f32;
    all_floats ? float_rows<op>(a, b, dst, rows, count) : mixed_rows<op>(a, b, dst, rows, count);
}

void binary(Binary op, const OperandRows& a, const OperandRows& b, const ResultRows& dst,
            size_t rows, size_t count) {
    if (count == 0) return;
#define VARTML_CASE(name) \
    case Binary::name:    \
        return rows_of<Binary::name>(a, b, dst, rows, count);
    switch (op) {
        VARTML_CASE(add)
        VARTML_CASE(sub)
        VARTML_CASE(mul)
        VARTML_CASE(div)
        VARTML_CASE(max)
        VARTML_CASE(min)
        VARTML_CASE(prelu)
        case Binary::pow:
            return binary_rows_ref(op, a, b, dst, rows, count);
    }
#undef VARTML_CASE
}

template <bool Whole>
HWY_INLINE V load(const float* src, size_t left) {
    return Whole ? hn::LoadU(D(), src) : hn::LoadN(D(), src, left);
}
template <bool Whole>
HWY_INLINE V load(const bf16* src, size_t left) {
    const hn::Rebind<hwy::bfloat16_t, D> half;
    const auto* from = reinterpret_cast<const hwy::bfloat16_t*>(src);
    return hn::PromoteTo(D(), Whole ? hn::LoadU(half, from) : hn::LoadN(half, from, left));
}

// One vector of columns (`left` of them).
template <bool Whole, typename T>
HWY_INLINE void sum_columns(const T* src, ptrdiff_t row, size_t rows, V scale, float* dst,
                            size_t left) {
    const D d;
    V sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    size_t r = 0;
    for (; r + 4 <= rows; r += 4, src += 4 * row) {
        for (ptrdiff_t k = 0; k < 4; ++k) {
            sum[k] = hn::Add(sum[k], load<Whole>(src + k * row, left));
        }
    }
    for (; r < rows; ++r, src += row) sum[0] = hn::Add(sum[0], load<Whole>(src, left));
    const V all = hn::Mul(scale, hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3])));
    if constexpr (Whole) {
        hn::StoreU(all, d, dst);
    } else {
        hn::StoreN(all, d, dst, left);
    }
}

template <typename T>
void sum_any_rows(const T* src, ptrdiff_t row, size_t rows, float scale, float* dst, size_t count) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    const V by = hn::Set(d, scale);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        sum_columns<true>(src + i, row, rows, by, dst + i, lanes);
    if (i < count) sum_columns<false>(src + i, row, rows, by, dst + i, count - i);
}
void sum_rows(const float* src, ptrdiff_t row, size_t rows, float scale, float* dst, size_t count) {
    sum_any_rows(src, row, rows, scale, dst, count);
}
void sum_bf16_rows(const bf16* src, ptrdiff_t row, size_t rows, float scale, float* dst,
                   size_t count) {
    sum_any_rows(src, row, rows, scale, dst, count);
}

// One vector of columns from `i` on.
template <bool Whole>
HWY_INLINE V weighted(const float* const* rows, const float* weights, size_t count, size_t i,
                      size_t left) {
    V sum = hn::Zero(D());
    for (size_t k = 0; k < count; ++k)
        sum = hn::MulAdd(hn::Set(D(), weights[k]), load<Whole>(rows[k] + i, left), sum);
    return sum;
}

void weighted_rows(const float* const* rows, const float* weights, size_t count, float* dst,
                   size_t columns) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + lanes <= columns; i += lanes)
        hn::StoreU(weighted<true>(rows, weights, count, i, lanes), d, dst + i);
    if (i < columns)
        hn::StoreN(weighted<false>(rows, weights, count, i, columns - i), d, dst + i, columns - i);
}

void blend2(const float* a, float wa, const float* b, float wb, float* dst, size_t count) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    const V va = hn::Set(d, wa), vb = hn::Set(d, wb);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const V sum = hn::Add(hn::Mul(va, hn::LoadU(d, a + i)), hn::Mul(vb, hn::LoadU(d, b + i)));
        hn::StoreU(sum, d, dst + i);
    }
    for (; i < count; ++i) dst[i] = wa * a[i] + wb * b[i];
}

// Pixels of whole vectors of D, and of `left` channels more.
template <class D>
HWY_INLINE void blend_vectors(D d, const float* src, const int64_t* first, const int64_t* second,
                              const float* weight, size_t channels, float* dst, size_t pixels) {
    const size_t lanes = hn::Lanes(d), whole = channels / lanes * lanes, left = channels - whole;
    const auto step = static_cast<int64_t>(channels);
    for (size_t x = 0; x < pixels; ++x, dst += channels) {
        const float *a = src + first[x] * step, *b = src + second[x] * step;
        const auto va = hn::Set(d, 1 - weight[x]), vb = hn::Set(d, weight[x]);
        for (size_t c = 0; c < whole; c += lanes)
            hn::StoreU(hn::Add(hn::Mul(va, hn::LoadU(d, a + c)), hn::Mul(vb, hn::LoadU(d, b + c))),
                       d, dst + c);
        if (left == 0) continue;
        hn::StoreN(hn::Add(hn::Mul(va, hn::LoadN(d, a + whole, left)),
                           hn::Mul(vb, hn::LoadN(d, b + whole, left))),
                   d, dst + whole, left);
    }
}

void pixels_of_row(const float* src, const int64_t* first, const int64_t* second,
                   const float* weight, size_t channels, float* dst, size_t pixels) {
    if (channels == 1) {
        for (size_t x = 0; x < pixels; ++x)
            dst[x] = (1 - weight[x]) * src[first[x]] + weight[x] * src[second[x]];
    } else if (channels == 2) {
        blend_vectors(hn::FixedTag<float, 2>(), src, first, second, weight, 2, dst, pixels);
    } else if (channels < hn::Lanes(D())) {
        blend_vectors(hn::FixedTag<float, 4>(), src, first, second, weight, channels, dst, pixels);
    } else {
        blend_vectors(D(), src, first, second, weight, channels, dst, pixels);
    }
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(binary);
HWY_EXPORT(sum_rows);
HWY_EXPORT(sum_bf16_rows);
HWY_EXPORT(weighted_rows);
HWY_EXPORT(blend2);
HWY_EXPORT(pixels_of_row);
}  // namespace

namespace {

constexpr size_t repeated_size = 512;

// A short row that is the operand of every row, repeated until there are several vectors of it.
// Returns how many times.
size_t repeat(const OperandRows& row, size_t rows, size_t count, float* to) {
    if (row.element == Element::f32)
        std::copy_n(static_cast<const float*>(row.data), count, to);
    else
        convert_row(static_cast<const bf16*>(row.data), to, count);
    const size_t times = std::min(rows, repeated_size / count);
    for (size_t i = count; i < times * count; ++i) to[i] = to[i - count];
    return times;
}

OperandRows from_row(const OperandRows& o, size_t row) {
    const ptrdiff_t bytes = o.row * static_cast<ptrdiff_t>(row * size_of(o.element));
    return {static_cast<const std::byte*>(o.data) + bytes, o.row, o.stride, o.element};
}

}  // namespace

void binary_rows(Binary op, const OperandRows& a, const OperandRows& b, const ResultRows& dst,
                 size_t rows, size_t count) {
    const auto run = HWY_DYNAMIC_POINTER(binary);
    const auto width = static_cast<ptrdiff_t>(count);
    const auto repeats = [](const OperandRows& o) { return o.row == 0 && o.stride == 1; };
    const auto dense = [&](const OperandRows& o) { return o.row == width && o.stride == 1; };
    const bool a_repeats = repeats(a) && dense(b), b_repeats = repeats(b) && dense(a);
    if (rows < 4 || count == 0 || count > repeated_size / 4 || dst.row != width ||
        !(a_repeats || b_repeats))
        return run(op, a, b, dst, rows, count);
    // Several rows as one long row.
    float row[repeated_size];
    const size_t times = repeat(a_repeats ? a : b, rows, count, row);
    const OperandRows repeated{row, 0, 1};
    const auto part = [&](size_t first, size_t long_rows, size_t short_rows) {
        const size_t columns = short_rows * count;
        const auto step = static_cast<ptrdiff_t>(columns);
        OperandRows other = from_row(a_repeats ? b : a, first);
        other.row = step;
        auto* const to = static_cast<std::byte*>(dst.data) + first * count * size_of(dst.element);
        run(op, a_repeats ? repeated : other, a_repeats ? other : repeated, {to, step, dst.element},
            long_rows, columns);
    };
    part(0, rows / times, times);
    if (rows % times > 0) part(rows / times * times, 1, rows % times);
}

void sum_of_rows(const float* src, ptrdiff_t row, size_t rows, float scale, float* dst,
                 size_t count) {
    HWY_DYNAMIC_DISPATCH(sum_rows)(src, row, rows, scale, dst, count);
}
void sum_of_rows(const bf16* src, ptrdiff_t row, size_t rows, float scale, float* dst,
                 size_t count) {
    HWY_DYNAMIC_DISPATCH(sum_bf16_rows)(src, row, rows, scale, dst, count);
}

void weighted_sum(const float* const* rows, const float* weights, size_t count, float* dst,
                  size_t columns) {
    HWY_DYNAMIC_DISPATCH(weighted_rows)(rows, weights, count, dst, columns);
}

void blend_row(const float* a, float wa, const float* b, float wb, float* dst, size_t count) {
    HWY_DYNAMIC_DISPATCH(blend2)(a, wa, b, wb, dst, count);
}

void blend_pixels(const float* src, const int64_t* first, const int64_t* second,
                  const float* weight, size_t channels, float* dst, size_t pixels) {
    HWY_DYNAMIC_DISPATCH(pixels_of_row)
    (src, first, second, weight, channels, dst, pixels);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
