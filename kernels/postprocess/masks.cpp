// SPDX-License-Identifier: Apache-2.0
#include "kernels/postprocess/masks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/postprocess/masks.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One row, its cells side by side.
void row_above(const float* maps, const WeightedMaps& m, size_t columns, float threshold,
               uint8_t* mask) {
    const hn::CappedTag<float, 16> d;
    const hn::Rebind<uint8_t, decltype(d)> d8;
    const hn::RebindToSigned<decltype(d)> di;
    const size_t lanes = hn::Lanes(d);
    const auto limit = hn::Set(d, threshold);
    size_t i = 0;
    for (; i + 2 * lanes <= columns; i += 2 * lanes) {
        auto a = hn::Zero(d), b = hn::Zero(d);
        const float* p = maps + i;
        for (size_t c = 0; c < m.channels; ++c, p += m.channel_stride) {
            const auto w = hn::Set(d, m.weights[c]);
            a = hn::Add(a, hn::Mul(w, hn::LoadU(d, p)));
            b = hn::Add(b, hn::Mul(w, hn::LoadU(d, p + lanes)));
        }
        const auto one = hn::Set(di, 1);
        const auto ma = hn::IfThenElseZero(hn::RebindMask(di, hn::Ge(a, limit)), one);
        const auto mb = hn::IfThenElseZero(hn::RebindMask(di, hn::Ge(b, limit)), one);
        hn::StoreU(hn::DemoteTo(d8, ma), d8, mask + i);
        hn::StoreU(hn::DemoteTo(d8, mb), d8, mask + i + lanes);
    }
    WeightedMaps rest = m;
    rest.maps = maps + i;
    mask_above_ref(rest, 1, columns - i, threshold, mask + i);
}

void mask_above_impl(const WeightedMaps& m, size_t rows, size_t columns, float threshold,
                     uint8_t* mask) {
    if (m.column_stride != 1) return mask_above_ref(m, rows, columns, threshold, mask);
    for (size_t row = 0; row < rows; ++row) {
        row_above(m.maps + row * m.row_stride, m, columns, threshold, mask + row * columns);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace vartml::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
HWY_EXPORT(mask_above_impl);
void mask_above(const WeightedMaps& maps, size_t rows, size_t columns, float threshold,
                uint8_t* mask) {
    HWY_DYNAMIC_DISPATCH(mask_above_impl)(maps, rows, columns, threshold, mask);
}
}  // namespace vartml::kernels
#endif
