// SPDX-License-Identifier: Apache-2.0
#include "kernels/preprocess/read_row.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/preprocess/read_row.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D16 = hn::ScalableTag<int16_t>;
using DU16 = hn::ScalableTag<uint16_t>;
using DU32 = hn::ScalableTag<uint32_t>;  // half as many lanes: one for two pixels that share chroma
using V16 = hn::Vec<D16>;
using VU16 = hn::Vec<DU16>;
using VU32 = hn::Vec<DU32>;

// Never made empty: a constructor of its own would be no code for one instruction set.
// All in scales of RowFormat's comment, but y without its offset and chroma with its middle at
// 0x8000.
struct Samples {
    VU16 y, first, second;
};

template <class T>
HWY_INLINE const T* at(const uint8_t* plane, size_t bytes) {
    return reinterpret_cast<const T*>(plane + bytes);
}

// Bytes as 16-bit lanes.
HWY_INLINE VU16 load_bytes(const uint8_t* ptr) {
    return hn::PromoteTo(DU16(), hn::LoadU(hn::Rebind<uint8_t, DU16>(), ptr));
}

// The lower (upper) half of each 32-bit lane, for both pixels.
HWY_INLINE VU16 double_low(VU32 v) {
    const DU32 d;
    return hn::BitCast(DU16(), hn::Or(hn::And(v, hn::Set(d, 0xffff)), hn::ShiftLeft<16>(v)));
}
HWY_INLINE VU16 double_high(VU32 v) {
    const DU32 d;
    return hn::BitCast(DU16(), hn::Or(hn::ShiftRight<16>(v), hn::And(v, hn::Set(d, 0xffff0000u))));
}
// The same where the upper half is known to be 0.
HWY_INLINE VU16 double_lane(VU32 v) {
    return hn::BitCast(DU16(), hn::Or(v, hn::ShiftLeft<16>(v)));
}

template <RowKind kind>
HWY_INLINE Samples load_yuv(const uint8_t* const* src, size_t x) {
    const DU16 d;
    const DU32 d32;
    const hn::Rebind<uint8_t, DU32> d8;
    const hn::Rebind<uint16_t, DU32> d16;
    const VU16 high_byte = hn::Set(d, 0xff00), low_byte = hn::Set(d, 0x00ff);
    VU16 y, first, second;
    if constexpr (kind == RowKind::nv_half) {
        y = hn::ShiftLeft<7>(load_bytes(src[0] + x));
        const VU16 pairs = double_lane(hn::PromoteTo(d32, hn::LoadU(d16, at<uint16_t>(src[1], x))));
        first = hn::ShiftLeft<8>(pairs);
        second = hn::And(pairs, high_byte);
    } else if constexpr (kind == RowKind::nv_full) {
        y = hn::ShiftLeft<7>(load_bytes(src[0] + x));
        const VU16 pairs = hn::LoadU(d, at<uint16_t>(src[1], 2 * x));
        first = hn::ShiftLeft<8>(pairs);
        second = hn::And(pairs, high_byte);
    } else if constexpr (kind == RowKind::planar_half) {
        y = hn::ShiftLeft<7>(load_bytes(src[0] + x));
        first = hn::ShiftLeft<8>(double_lane(hn::PromoteTo(d32, hn::LoadU(d8, src[1] + x / 2))));
        second = hn::ShiftLeft<8>(double_lane(hn::PromoteTo(d32, hn::LoadU(d8, src[2] + x / 2))));
    } else if constexpr (kind == RowKind::nv_half_10) {
        const VU16 upper = hn::Set(d, 0xffc0);
        const VU32 pairs = hn::LoadU(d32, at<uint32_t>(src[1], 2 * x));
        y = hn::ShiftRight<1>(hn::And(hn::LoadU(d, at<uint16_t>(src[0], 2 * x)), upper));
        first = hn::And(double_low(pairs), upper);
        second = hn::And(double_high(pairs), upper);
    } else if constexpr (kind == RowKind::planar_half_10) {
        const VU16 lower = hn::Set(d, 0x03ff);
        const auto chroma = [&](const uint8_t* plane) HWY_ATTR {
            const VU16 c = double_lane(hn::PromoteTo(d32, hn::LoadU(d16, at<uint16_t>(plane, x))));
            return hn::ShiftLeft<6>(hn::And(c, lower));
        };
        y = hn::ShiftLeft<5>(hn::And(hn::LoadU(d, at<uint16_t>(src[0], 2 * x)), lower));
        first = chroma(src[1]);
        second = chroma(src[2]);
    } else {
        const VU16 v = hn::LoadU(d, at<uint16_t>(src[0], 2 * x));
        const VU16 even = hn::And(v, low_byte), odd = hn::ShiftRight<8>(v);
        const VU32 chroma = hn::BitCast(d32, kind == RowKind::yuyv ? odd : even);
        y = hn::ShiftLeft<7>(kind == RowKind::yuyv ? even : odd);
        first = hn::ShiftLeft<8>(double_low(chroma));
        second = hn::ShiftLeft<8>(double_high(chroma));
    }
    return {y, first, second};
}

HWY_INLINE void store_colour(V16 v, int16_t* dst) {
    const D16 d;
    hn::StoreU(hn::Min(hn::Max(v, hn::Zero(d)), hn::Set(d, colour_max)), d, dst);
}

// What stays the same over a row, so that no store can seem to change it.
struct Constants {
    V16 y_offset, y_factor, first, second, green_first, green_second;
    V16 weights[4];
    int16_t* dst[4];  // in the order of the source
    explicit Constants(const RowFormat& f, int16_t* const* planes) {
        const D16 d;
        y_offset = hn::Set(d, f.y_offset);
        y_factor = hn::Set(d, f.y_factor);
        first = hn::Set(d, f.first_factor);
        second = hn::Set(d, f.second_factor);
        green_first = hn::Set(d, f.green_first_factor);
        green_second = hn::Set(d, f.green_second_factor);
        const bool single = f.luma_only || f.kind == RowKind::grey;
        for (size_t b = 0; b < 4; ++b) {
            weights[b] = hn::Set(d, f.luma_weights[b]);
            const bool exists = b < 3 || f.kind == RowKind::rgb4;
            dst[b] = single ? planes[0] : exists ? planes[f.planes[b]] : nullptr;
        }
    }
};

// One vector of pixels from pixel x of src to pixel i of dst.
template <RowKind kind, bool luma_only>
HWY_INLINE void read_yuv(const Constants& c, const uint8_t* const* src, size_t x, size_t i) {
    const D16 d;
    const Samples s = load_yuv<kind>(src, x);
    const V16 luma = hn::MulFixedPoint15(hn::Sub(hn::BitCast(d, s.y), c.y_offset), c.y_factor);
    if constexpr (luma_only) {
        store_colour(luma, c.dst[0] + i);
    } else {
        const VU16 middle = hn::Set(DU16(), 0x8000);
        const V16 first = hn::BitCast(d, hn::Xor(s.first, middle));
        const V16 second = hn::BitCast(d, hn::Xor(s.second, middle));
        const V16 green = hn::SaturatedAdd(hn::MulFixedPoint15(first, c.green_first),
                                           hn::MulFixedPoint15(second, c.green_second));
        store_colour(hn::SaturatedAdd(luma, hn::MulFixedPoint15(first, c.first)), c.dst[0] + i);
        store_colour(hn::SaturatedAdd(luma, green), c.dst[1] + i);
        store_colour(hn::SaturatedAdd(luma, hn::MulFixedPoint15(second, c.second)), c.dst[2] + i);
    }
}

template <RowKind kind, bool luma_only>
HWY_INLINE void read_rgb(const Constants& c, const uint8_t* const* src, size_t x, size_t i) {
    const D16 d;
    const hn::Rebind<uint8_t, D16> d8;
    constexpr size_t bytes = kind == RowKind::rgb4 ? 4 : kind == RowKind::grey ? 1 : 3;
    hn::Vec<decltype(d8)> v[4];
    if constexpr (kind == RowKind::rgb3) {
        hn::LoadInterleaved3(d8, src[0] + 3 * x, v[0], v[1], v[2]);
    } else if constexpr (kind == RowKind::rgb4) {
        hn::LoadInterleaved4(d8, src[0] + 4 * x, v[0], v[1], v[2], v[3]);
    } else {
        for (size_t b = 0; b < bytes; ++b) v[b] = hn::LoadU(d8, src[b] + x);
    }
    V16 luma = hn::Zero(d);
    for (size_t b = 0; b < bytes; ++b) {
        const V16 value = hn::ShiftLeft<colour_shift>(hn::PromoteTo(d, v[b]));
        if constexpr (luma_only && kind != RowKind::grey)
            luma = hn::Add(luma, hn::MulFixedPoint15(value, c.weights[b]));
        else
            hn::StoreU(value, d, c.dst[b] + i);
    }
    if constexpr (luma_only && kind != RowKind::grey) store_colour(luma, c.dst[0] + i);
}

// Bytes of each plane that `count` pixels take.
struct PlaneBytes {
    size_t of[3];
};
constexpr PlaneBytes plane_bytes(RowKind kind, size_t count) {
    const size_t pairs = (count + 1) / 2;
    switch (kind) {
        case RowKind::nv_half:
            return {{count, 2 * pairs, 0}};
        case RowKind::nv_full:
            return {{count, 2 * count, 0}};
        case RowKind::planar_half:
            return {{count, pairs, pairs}};
        case RowKind::nv_half_10:
            return {{2 * count, 4 * pairs, 0}};
        case RowKind::planar_half_10:
            return {{2 * count, 2 * pairs, 2 * pairs}};
        case RowKind::yuyv:
        case RowKind::uyvy:
            return {{4 * pairs, 0, 0}};
        case RowKind::rgb3:
            return {{3 * count, 0, 0}};
        case RowKind::rgb4:
            return {{4 * count, 0, 0}};
        case RowKind::rgb_planar:
            return {{count, count, count}};
        case RowKind::grey:
            return {{count, 0, 0}};
    }
    return {};
}

template <RowKind kind, bool luma_only>
void read_pixels(const Constants& c, const uint8_t* const* src, size_t first, size_t count) {
    const size_t lanes = hn::Lanes(D16());
    const auto read = [&](const uint8_t* const* from, size_t x, size_t i) HWY_ATTR {
        if constexpr (kind < RowKind::rgb3)
            read_yuv<kind, luma_only>(c, from, x, i);
        else
            read_rgb<kind, luma_only>(c, from, x, i);
    };
    const uint8_t* const planes[3] = {src[0], src[1], src[2]};
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) read(planes, first + i, i);
    if (i == count) return;
    // The rest is read from a copy, because whole vectors would go beyond the row.
    constexpr size_t most = 4 * hn::MaxLanes(D16());
    HWY_ALIGN uint8_t copy[3][most] = {};
    const uint8_t* const copies[3] = {copy[0], copy[1], copy[2]};
    const PlaneBytes skip = plane_bytes(kind, first + i), rest = plane_bytes(kind, count - i);
    for (size_t p = 0; p < 3; ++p)
        if (rest.of[p] != 0) std::memcpy(copy[p], src[p] + skip.of[p], rest.of[p]);
    read(copies, 0, i);
}

template <RowKind kind>
void read_kind(const RowFormat& format, const uint8_t* const* src, size_t first, size_t count,
               int16_t* const* dst) {
    const Constants c(format, dst);
    if (format.luma_only)
        read_pixels<kind, true>(c, src, first, count);
    else
        read_pixels<kind, false>(c, src, first, count);
}

void ReadRow(const RowFormat& f, const uint8_t* const* src, size_t first, size_t count,
             int16_t* const* dst) {
    switch (f.kind) {
        case RowKind::nv_half:
            return read_kind<RowKind::nv_half>(f, src, first, count, dst);
        case RowKind::nv_full:
            return read_kind<RowKind::nv_full>(f, src, first, count, dst);
        case RowKind::planar_half:
            return read_kind<RowKind::planar_half>(f, src, first, count, dst);
        case RowKind::nv_half_10:
            return read_kind<RowKind::nv_half_10>(f, src, first, count, dst);
        case RowKind::planar_half_10:
            return read_kind<RowKind::planar_half_10>(f, src, first, count, dst);
        case RowKind::yuyv:
            return read_kind<RowKind::yuyv>(f, src, first, count, dst);
        case RowKind::uyvy:
            return read_kind<RowKind::uyvy>(f, src, first, count, dst);
        case RowKind::rgb3:
            return read_kind<RowKind::rgb3>(f, src, first, count, dst);
        case RowKind::rgb4:
            return read_kind<RowKind::rgb4>(f, src, first, count, dst);
        case RowKind::rgb_planar:
            return read_kind<RowKind::rgb_planar>(f, src, first, count, dst);
        case RowKind::grey:
            return read_kind<RowKind::grey>(f, src, first, count, dst);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace vartml::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {

HWY_EXPORT(ReadRow);

void read_row(const RowFormat& format, const uint8_t* const* src, size_t first, size_t count,
              int16_t* const* dst) {
    HWY_DYNAMIC_DISPATCH(ReadRow)(format, src, first, count, dst);
}

}  // namespace vartml::kernels
#endif
