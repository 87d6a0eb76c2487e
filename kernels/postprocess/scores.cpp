// SPDX-License-Identifier: Apache-2.0
#include "kernels/postprocess/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/postprocess/scores.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Stored floats as vectors of float.
struct LoadF32 {
    using Element = float;
    template <class D>
    static hn::VFromD<D> vector(D d, const float* p) {
        return hn::LoadU(d, p);
    }
};
struct LoadBf16 {
    using Element = uint16_t;
    template <class D>
    static hn::VFromD<D> vector(D d, const uint16_t* p) {
        const hn::RebindToUnsigned<D> du;
        const hn::Rebind<uint16_t, D> d16;
        return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, p))));
    }
};

template <class Load>
float load_one(const typename Load::Element* p) {
    return hn::GetLane(Load::vector(hn::CappedTag<float, 1>(), p));
}

// Positions in one pass: their greatest scores stay in the first-level cache while the classes
// stream through.
constexpr size_t block_positions = 2048;

template <class Load>
size_t floats_by_column(const Scores& scores, float threshold, uint32_t* found) {
    using Element = typename Load::Element;
    const hn::ScalableTag<float> d;
    const size_t lanes = hn::Lanes(d);
    const auto zero = hn::Zero(d);
    HWY_ALIGN float best[block_positions];
    HWY_ALIGN float
        bad[block_positions];  // becomes NaN where a score is NaN or infinite: v * 0 is, else 0
    const auto row = [&](size_t c) {
        return reinterpret_cast<const Element*>(static_cast<const uint8_t*>(scores.data) +
                                                c * scores.class_stride_bytes);
    };
    size_t count = 0;
    for (size_t first = 0; first < scores.positions; first += block_positions) {
        const size_t n = std::min(block_positions, scores.positions - first);
        const size_t whole = n / lanes * lanes;
        for (size_t c = 0; c < scores.classes; c += 4) {
            // Past the last class the last one is read again, which changes no maximum.
            const size_t last = scores.classes - 1;
            const Element* p0 = row(c) + first;
            const Element* p1 = row(std::min(c + 1, last)) + first;
            const Element* p2 = row(std::min(c + 2, last)) + first;
            const Element* p3 = row(std::min(c + 3, last)) + first;
            for (size_t i = 0; i < whole; i += lanes) {
                const auto v0 = Load::vector(d, p0 + i), v1 = Load::vector(d, p1 + i);
                const auto v2 = Load::vector(d, p2 + i), v3 = Load::vector(d, p3 + i);
                auto m = hn::Max(hn::Max(v0, v1), hn::Max(v2, v3));
                auto b = hn::MulAdd(v1, zero, hn::Mul(v0, zero));
                b = hn::Add(b, hn::MulAdd(v3, zero, hn::Mul(v2, zero)));
                if (c) {
                    m = hn::Max(m, hn::Load(d, best + i));
                    b = hn::Add(b, hn::Load(d, bad + i));
                }
                hn::Store(m, d, best + i);
                hn::Store(b, d, bad + i);
            }
            for (size_t i = whole; i < n; ++i) {
                if (!c) best[i] = -std::numeric_limits<float>::infinity(), bad[i] = 0;
                for (const Element* p : {p0, p1, p2, p3}) {
                    const float v = load_one<Load>(p + i);
                    best[i] = v > best[i] ? v : best[i];
                    bad[i] += v * 0;
                }
            }
        }
        for (size_t i = 0; i < n; ++i) {
            found[count] = static_cast<uint32_t>(first + i);
            count += best[i] >= threshold || !(bad[i] == 0);
        }
    }
    return count;
}

template <class Load>
size_t floats_by_row(const Scores& scores, float threshold, uint32_t* found) {
    using Element = typename Load::Element;
    const hn::ScalableTag<float> d;
    const size_t lanes = hn::Lanes(d);
    const auto zero = hn::Zero(d);
    const auto limit = hn::Set(d, threshold);
    size_t count = 0;
    for (size_t position = 0; position < scores.positions; ++position) {
        const auto* p = reinterpret_cast<const Element*>(static_cast<const uint8_t*>(scores.data) +
                                                         position * scores.position_stride_bytes);
        auto above = hn::MaskFalse(d);
        auto bad = zero;
        size_t c = 0;
        for (; c + lanes <= scores.classes; c += lanes) {
            const auto v = Load::vector(d, p + c);
            above = hn::Or(above, hn::Ge(v, limit));
            bad = hn::MulAdd(v, zero, bad);
        }
        bool take = !hn::AllFalse(d, hn::Or(above, hn::Not(hn::Eq(bad, zero))));
        for (; c < scores.classes; ++c) {
            const float v = load_one<Load>(p + c);
            take = take || v >= threshold || !(v * 0 == 0);
        }
        found[count] = static_cast<uint32_t>(position);
        count += take;
    }
    return count;
}

template <typename T>
size_t integers_by_column(const Scores& scores, float threshold, uint32_t* found) {
    const int32_t least = least_above(scores.stored, threshold);
    const hn::ScalableTag<T> d;
    const size_t lanes = hn::Lanes(d);
    HWY_ALIGN T best[block_positions];
    size_t count = 0;
    for (size_t first = 0; first < scores.positions; first += block_positions) {
        const size_t n = std::min(block_positions, scores.positions - first);
        const size_t whole = n / lanes * lanes;
        for (size_t c = 0; c < scores.classes; ++c) {
            const T* p = reinterpret_cast<const T*>(static_cast<const uint8_t*>(scores.data) +
                                                    c * scores.class_stride_bytes) +
                         first;
            for (size_t i = 0; i < whole; i += lanes) {
                const auto v = hn::LoadU(d, p + i);
                hn::Store(c ? hn::Max(v, hn::Load(d, best + i)) : v, d, best + i);
            }
            for (size_t i = whole; i < n; ++i) best[i] = c ? std::max(best[i], p[i]) : p[i];
        }
        for (size_t i = 0; i < n; ++i) {
            found[count] = static_cast<uint32_t>(first + i);
            count += best[i] >= least;
        }
    }
    return count;
}

template <typename T>
size_t integers_by_row(const Scores& scores, float threshold, uint32_t* found) {
    const int32_t least = least_above(scores.stored, threshold);
    if (least > std::numeric_limits<T>::max()) return 0;
    const hn::ScalableTag<T> d;
    const size_t lanes = hn::Lanes(d);
    const auto limit = hn::Set(d, static_cast<T>(least));
    size_t count = 0;
    for (size_t position = 0; position < scores.positions; ++position) {
        const T* p = reinterpret_cast<const T*>(static_cast<const uint8_t*>(scores.data) +
                                                position * scores.position_stride_bytes);
        auto above = hn::MaskFalse(d);
        size_t c = 0;
        for (; c + lanes <= scores.classes; c += lanes) {
            above = hn::Or(above, hn::Ge(hn::LoadU(d, p + c), limit));
        }
        bool take = !hn::AllFalse(d, above);
        for (; c < scores.classes; ++c) take = take || p[c] >= least;
        found[count] = static_cast<uint32_t>(position);
        count += take;
    }
    return count;
}

// Elements must lie on addresses of their type for the typed loads of the tails.
bool aligned(const Scores& scores) {
    const size_t size = size_bytes(scores.stored.type);
    return (reinterpret_cast<uintptr_t>(scores.data) | scores.position_stride_bytes |
            scores.class_stride_bytes) %
               size ==
           0;
}

size_t positions_above_impl(const Scores& scores, float threshold, uint32_t* found) {
    const size_t size = size_bytes(scores.stored.type);
    const bool column = scores.position_stride_bytes == size;
    const bool row = scores.class_stride_bytes == size && scores.classes > 1;
    if ((!column && !row) || !aligned(scores)) {
        return positions_above_ref(scores, threshold, found);
    }
    switch (scores.stored.type) {
        case StoredType::f32:
            return column ? floats_by_column<LoadF32>(scores, threshold, found)
                          : floats_by_row<LoadF32>(scores, threshold, found);
        case StoredType::bf16:
            return column ? floats_by_column<LoadBf16>(scores, threshold, found)
                          : floats_by_row<LoadBf16>(scores, threshold, found);
        case StoredType::i8:
            return column ? integers_by_column<int8_t>(scores, threshold, found)
                          : integers_by_row<int8_t>(scores, threshold, found);
        case StoredType::u8:
            return column ? integers_by_column<uint8_t>(scores, threshold, found)
                          : integers_by_row<uint8_t>(scores, threshold, found);
        case StoredType::i16:
            return column ? integers_by_column<int16_t>(scores, threshold, found)
                          : integers_by_row<int16_t>(scores, threshold, found);
        case StoredType::u16:
            return column ? integers_by_column<uint16_t>(scores, threshold, found)
                          : integers_by_row<uint16_t>(scores, threshold, found);
        case StoredType::f16:
            break;
    }
    return positions_above_ref(scores, threshold, found);
}

}  // namespace HWY_NAMESPACE
}  // namespace vartml::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
HWY_EXPORT(positions_above_impl);
size_t positions_above(const Scores& scores, float threshold, uint32_t* found) {
    return HWY_DYNAMIC_DISPATCH(positions_above_impl)(scores, threshold, found);
}
}  // namespace vartml::kernels
#endif
