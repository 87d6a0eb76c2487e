// SPDX-License-Identifier: Apache-2.0
#include "kernels/layout/pack.h"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layout/pack.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/layout/cast-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A quad is what fills a word of 32 bits: four elements of one byte, or two of two. The lanes of a
// vector are consecutive pixels, so that joining and splitting elements never crosses lanes.

struct Planes {
    const std::byte* src;
    size_t stride_bytes, count;
    HWY_INLINE VF load(size_t c, size_t p) const {
        return hn::LoadU(DF(), reinterpret_cast<const float*>(src + c * stride_bytes) + p);
    }
};

struct MutablePlanes {
    std::byte* dst;
    size_t stride_bytes, count;
    HWY_INLINE void store(size_t c, size_t p, VF v) const {
        hn::StoreU(v, DF(), reinterpret_cast<float*>(dst + c * stride_bytes) + p);
    }
};

// ---- a quad of each pixel ----------------------------------------------------------------------

struct PackBf16 {
    static constexpr size_t words = 2;  // of a quad
    ToBf16 op;
    explicit PackBf16(const Cast&) {}
    HWY_INLINE VU at(const Planes& planes, size_t c, size_t p) const {
        return c < planes.count ? op.upper(planes.load(c, p)) : hn::Zero(DU());
    }
    HWY_INLINE VU operator()(const Planes& planes, size_t c, size_t p) const {
        return hn::BitwiseIfThenElse(hn::Set(DU(), 0xffff0000u), at(planes, c + 1, p),
                                     hn::ShiftRight<16>(at(planes, c, p)));
    }
};

template <class Q, bool multiply>
struct PackCodes {
    static constexpr size_t words = 4;
    Quantise<Q, false, multiply> op;
    VU zero_point;  // in each byte
    explicit PackCodes(const Cast& cast)
        : op(cast),
          zero_point(hn::Set(DU(), (static_cast<uint32_t>(cast.zero_point) & 0xff) * 0x01010101u)) {
    }
    HWY_INLINE VU at(const Planes& planes, size_t c, size_t p) const {
        return c < planes.count ? op.lower(planes.load(c, p)) : hn::Zero(DU());
    }
    HWY_INLINE VU operator()(const Planes& planes, size_t c, size_t p) const {
        const DU d;
        const hn::Repartition<uint8_t, DU> d8;
        const VU byte = hn::Set(d, 0xff);
        const VU first =
            hn::BitwiseIfThenElse(byte, at(planes, c, p), hn::ShiftLeft<8>(at(planes, c + 1, p)));
        const VU second = hn::BitwiseIfThenElse(byte, at(planes, c + 2, p),
                                                hn::ShiftLeft<8>(at(planes, c + 3, p)));
        const VU quad = hn::BitwiseIfThenElse(hn::Set(d, 0xffff), first, hn::ShiftLeft<16>(second));
        return hn::BitCast(d, hn::Add(hn::BitCast(d8, quad),
                                      hn::BitCast(d8, hn::And(zero_point, present(planes, c)))));
    }
    // All ones in the bytes whose plane exists.
    HWY_INLINE VU present(const Planes& planes, size_t c) const {
        if (c >= planes.count) return hn::Zero(DU());
        const size_t channels = planes.count - c;
        return hn::Set(DU(), channels >= words ? 0xffffffffu : (1u << (8 * channels)) - 1);
    }
};

struct UnpackBf16 {
    static constexpr size_t words = 2;
    explicit UnpackBf16(const Cast&) {}
    HWY_INLINE void operator()(VU quad, const MutablePlanes& planes, size_t c, size_t p) const {
        const DU d;
        const DF df;
        if (c < planes.count) planes.store(c, p, hn::BitCast(df, hn::ShiftLeft<16>(quad)));
        if (c + 1 < planes.count)
            planes.store(c + 1, p, hn::BitCast(df, hn::And(quad, hn::Set(d, 0xffff0000u))));
    }
};

// A byte becomes the lowest one of the float 2^23, and so the float 2^23 + byte; signed ones as
// byte + 128. All differences are exact.
template <class Q>
struct UnpackCodes {
    static constexpr size_t words = 4;
    VF zero, scale;
    explicit UnpackCodes(const Cast& cast)
        : zero(hn::Set(DF(), static_cast<float>(0x800000 + cast.zero_point +
                                                (std::is_signed_v<Q> ? 128 : 0)))),
          scale(hn::Set(DF(), cast.scale)) {}
    HWY_INLINE void one(VU lowest, const MutablePlanes& planes, size_t c, size_t p) const {
        if (c >= planes.count) return;
        const DU d;
        const VU bits = hn::BitwiseIfThenElse(hn::Set(d, 0xff), lowest, hn::Set(d, 0x4b000000u));
        planes.store(c, p, hn::Mul(hn::Sub(hn::BitCast(DF(), bits), zero), scale));
    }
    HWY_INLINE void operator()(VU quad, const MutablePlanes& planes, size_t c, size_t p) const {
        if (std::is_signed_v<Q>) quad = hn::Xor(quad, hn::Set(DU(), 0x80808080u));
        one(quad, planes, c, p);
        one(hn::ShiftRight<8>(quad), planes, c + 1, p);
        one(hn::ShiftRight<16>(quad), planes, c + 2, p);
        one(hn::ShiftRight<24>(quad), planes, c + 3, p);
    }
};

// ---- quads of a pixel side by side -------------------------------------------------------------

#if HWY_HAVE_SCALABLE
// Four quads of pixels that are `step` quads apart.
template <size_t step>
HWY_INLINE void store_four(const VU* q, uint32_t* to) {
    const DU d;
    HWY_ALIGN uint32_t run[4 * hn::MaxLanes(d)];
    hn::StoreInterleaved4(q[0], q[1], q[2], q[3], d, run);
    for (size_t i = 0; i < hn::Lanes(d); ++i) std::memcpy(to + i * step, run + 4 * i, 16);
}
template <size_t step>
HWY_INLINE void load_four(const uint32_t* from, VU* q) {
    const DU d;
    HWY_ALIGN uint32_t run[4 * hn::MaxLanes(d)];
    for (size_t i = 0; i < hn::Lanes(d); ++i) std::memcpy(run + 4 * i, from + i * step, 16);
    hn::LoadInterleaved4(d, run, q[0], q[1], q[2], q[3]);
}
#else
// Four by four words in each block of 128 bits, rows become columns.
HWY_INLINE void transpose(VU* q) {
    const DU d;
    const hn::Repartition<uint64_t, DU> d64;
    const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d, q[0], q[1]));
    const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d, q[2], q[3]));
    const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d, q[0], q[1]));
    const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d, q[2], q[3]));
    q[0] = hn::BitCast(d, hn::InterleaveLower(d64, low01, low23));
    q[1] = hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23));
    q[2] = hn::BitCast(d, hn::InterleaveLower(d64, high01, high23));
    q[3] = hn::BitCast(d, hn::InterleaveUpper(d64, high01, high23));
}

constexpr size_t blocks = hn::MaxLanes(DU()) / 4;
using Block = hn::FixedTag<uint32_t, 4>;

// Of four rows; block b of row r is pixel 4 b + r.
template <size_t step, size_t b>
HWY_INLINE void store_block(const VU* rows, uint32_t* to) {
    if constexpr (b < blocks) {
        for (size_t r = 0; r < 4; ++r)
            hn::StoreU(hn::ExtractBlock<static_cast<int>(b)>(rows[r]), Block(),
                       to + (4 * b + r) * step);
    }
}
template <size_t step, size_t b>
HWY_INLINE void load_block(const uint32_t* from, VU* rows) {
    if constexpr (b < blocks) {
        for (size_t r = 0; r < 4; ++r)
            rows[r] = hn::InsertBlock<static_cast<int>(b)>(
                rows[r], hn::LoadU(Block(), from + (4 * b + r) * step));
    }
}

// Four quads of pixels that are `step` quads apart.
template <size_t step>
HWY_INLINE void store_four(const VU* q, uint32_t* to) {
    VU rows[4] = {q[0], q[1], q[2], q[3]};
    transpose(rows);
    store_block<step, 0>(rows, to);
    store_block<step, 1>(rows, to);
    store_block<step, 2>(rows, to);
    store_block<step, 3>(rows, to);
}
template <size_t step>
HWY_INLINE void load_four(const uint32_t* from, VU* q) {
    for (size_t r = 0; r < 4; ++r)
        q[r] = hn::ResizeBitCast(DU(), hn::LoadU(Block(), from + r * step));
    load_block<step, 1>(from, q);
    load_block<step, 2>(from, q);
    load_block<step, 3>(from, q);
    transpose(q);
}
#endif

// A part of a pixel: `quads` of its `step` quads.
template <size_t quads, size_t step>
HWY_INLINE void store_pixels(const VU* q, uint32_t* to) {
    const DU d;
    if constexpr (quads == 1) hn::StoreU(q[0], d, to);
    if constexpr (quads == 2) hn::StoreInterleaved2(q[0], q[1], d, to);
    if constexpr (quads == 4 && step == 4) hn::StoreInterleaved4(q[0], q[1], q[2], q[3], d, to);
    if constexpr (quads == 4 && step != 4) store_four<step>(q, to);
}

template <size_t quads, size_t step>
HWY_INLINE void load_pixels(const uint32_t* from, VU* q) {
    const DU d;
    if constexpr (quads == 1) q[0] = hn::LoadU(d, from);
    if constexpr (quads == 2) hn::LoadInterleaved2(d, from, q[0], q[1]);
    if constexpr (quads == 4 && step == 4) hn::LoadInterleaved4(d, from, q[0], q[1], q[2], q[3]);
    if constexpr (quads == 4 && step != 4) load_four<step>(from, q);
}

// `step` quads are a pixel.
template <size_t step, class Op>
struct Packing {
    static constexpr size_t quads = step < 4 ? step : 4;
    Op op;
    Planes planes;
    std::byte* dst;
    size_t row_stride_bytes;
    // Pixel p of a row, pixel `at` of the planes.
    HWY_INLINE void operator()(size_t row, size_t p, size_t at) const {
        auto* const to = reinterpret_cast<uint32_t*>(dst + row * row_stride_bytes) + p * step;
        for (size_t first = 0; first < step; first += quads) {
            VU q[quads];
            for (size_t i = 0; i < quads; ++i) q[i] = op(planes, (first + i) * Op::words, at);
            store_pixels<quads, step>(q, to + first);
        }
    }
};

template <size_t step, class Op>
struct Unpacking {
    static constexpr size_t quads = step < 4 ? step : 4;
    Op op;
    const std::byte* src;
    size_t row_stride_bytes;
    MutablePlanes planes;
    HWY_INLINE void operator()(size_t row, size_t p, size_t at) const {
        const auto* const from =
            reinterpret_cast<const uint32_t*>(src + row * row_stride_bytes) + p * step;
        for (size_t first = 0; first < step && first * Op::words < planes.count; first += quads) {
            VU q[quads];
            load_pixels<quads, step>(from + first, q);
            for (size_t i = 0; i < quads; ++i) op(q[i], planes, (first + i) * Op::words, at);
        }
    }
};

// Calls work(row, first pixel of the row, of the planes) for whole vectors; the last one of a row
// may do pixels again. False where a row is shorter than a vector.
template <class Work>
bool each_vector(const BlockRows& rows, Work work) {
    const size_t lanes = hn::Lanes(DU()), pixels = rows.pixels;
    if (pixels < lanes) return false;
    for (size_t row = 0, at = 0; row < rows.rows; ++row, at += pixels) {
        for (size_t p = 0; p + lanes <= pixels; p += lanes) work(row, p, at + p);
        if (pixels % lanes != 0) work(row, pixels - lanes, at + pixels - lanes);
    }
    return true;
}

template <class Op>
bool pack(const Cast& cast, const Planes& planes, std::byte* dst, const BlockRows& rows) {
    const Op op(cast);
    const size_t stride = rows.row_stride_bytes;
    switch (rows.block / Op::words) {
        case 1:
            return each_vector(rows, Packing<1, Op>{op, planes, dst, stride});
        case 2:
            return each_vector(rows, Packing<2, Op>{op, planes, dst, stride});
        case 4:
            return each_vector(rows, Packing<4, Op>{op, planes, dst, stride});
        default:
            return each_vector(rows, Packing<8, Op>{op, planes, dst, stride});
    }
}

template <class Op>
bool unpack(const Cast& cast, const std::byte* src, const BlockRows& rows,
            const MutablePlanes& planes) {
    const Op op(cast);
    const size_t stride = rows.row_stride_bytes;
    switch (rows.block / Op::words) {
        case 1:
            return each_vector(rows, Unpacking<1, Op>{op, src, stride, planes});
        case 2:
            return each_vector(rows, Unpacking<2, Op>{op, src, stride, planes});
        case 4:
            return each_vector(rows, Unpacking<4, Op>{op, src, stride, planes});
        default:
            return each_vector(rows, Unpacking<8, Op>{op, src, stride, planes});
    }
}

bool PackPlanes(const Cast& cast, const void* src, size_t plane_stride_bytes, size_t channels,
                void* dst, const BlockRows& rows) {
    const Planes planes{static_cast<const std::byte*>(src), plane_stride_bytes, channels};
    auto* const d = static_cast<std::byte*>(dst);
    const bool exact = has_exact_reciprocal(cast.scale);
    if (cast.kind == CastKind::f32_bf16) return pack<PackBf16>(cast, planes, d, rows);
    if (cast.kind == CastKind::f32_i8)
        return exact ? pack<PackCodes<int8_t, true>>(cast, planes, d, rows)
                     : pack<PackCodes<int8_t, false>>(cast, planes, d, rows);
    return exact ? pack<PackCodes<uint8_t, true>>(cast, planes, d, rows)
                 : pack<PackCodes<uint8_t, false>>(cast, planes, d, rows);
}

bool UnpackPlanes(const Cast& cast, const void* src, const BlockRows& rows, size_t channels,
                  void* dst, size_t plane_stride_bytes) {
    const MutablePlanes planes{static_cast<std::byte*>(dst), plane_stride_bytes, channels};
    const auto* const s = static_cast<const std::byte*>(src);
    if (cast.kind == CastKind::bf16_f32) return unpack<UnpackBf16>(cast, s, rows, planes);
    if (cast.kind == CastKind::i8_f32) return unpack<UnpackCodes<int8_t>>(cast, s, rows, planes);
    return unpack<UnpackCodes<uint8_t>>(cast, s, rows, planes);
}

}  // namespace HWY_NAMESPACE
}  // namespace vartml::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {

HWY_EXPORT(PackPlanes);
HWY_EXPORT(UnpackPlanes);

bool can_pack(const Cast& cast, size_t block) {
    if (block != 4 && block != 8 && block != 16) return false;
    switch (cast.kind) {
        case CastKind::f32_i8:
        case CastKind::f32_u8:
            return !cast.truncate;
        case CastKind::f32_bf16:
        case CastKind::bf16_f32:
        case CastKind::i8_f32:
        case CastKind::u8_f32:
            return true;
        default:
            return false;
    }
}

void pack_planes(const Cast& cast, const void* src, size_t plane_stride_bytes, size_t channels,
                 void* dst, const BlockRows& rows) {
    if (!HWY_DYNAMIC_DISPATCH(PackPlanes)(cast, src, plane_stride_bytes, channels, dst, rows))
        pack_planes_ref(cast, src, plane_stride_bytes, channels, dst, rows);
}

void unpack_planes(const Cast& cast, const void* src, const BlockRows& rows, size_t channels,
                   void* dst, size_t plane_stride_bytes) {
    if (!HWY_DYNAMIC_DISPATCH(UnpackPlanes)(cast, src, rows, channels, dst, plane_stride_bytes))
        unpack_planes_ref(cast, src, rows, channels, dst, plane_stride_bytes);
}

}  // namespace vartml::kernels
#endif
