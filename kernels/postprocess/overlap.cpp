// SPDX-License-Identifier: Apache-2.0
#include "kernels/postprocess/overlap.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/postprocess/overlap.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

bool overlaps_any_impl(const BoxColumns& boxes, const GroupedBox& box, float threshold) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const size_t lanes = hn::Lanes(d);
    const auto x0 = hn::Set(d, box.x0), y0 = hn::Set(d, box.y0);
    const auto x1 = hn::Set(d, box.x1), y1 = hn::Set(d, box.y1);
    const auto area = hn::Set(d, box.area), limit = hn::Set(d, threshold);
    const auto zero = hn::Zero(d);
    const auto group = hn::Set(di, box.group);
    size_t i = 0;
    for (; i + lanes <= boxes.count; i += lanes) {
        const auto width = hn::Sub(hn::Min(hn::LoadU(d, boxes.x1 + i), x1),
                                   hn::Max(hn::LoadU(d, boxes.x0 + i), x0));
        const auto height = hn::Sub(hn::Min(hn::LoadU(d, boxes.y1 + i), y1),
                                    hn::Max(hn::LoadU(d, boxes.y0 + i), y0));
        const auto inter = hn::Mul(hn::Max(zero, width), hn::Max(zero, height));
        const auto both = hn::Sub(hn::Add(hn::LoadU(d, boxes.area + i), area), inter);
        const auto same = hn::RebindMask(d, hn::Eq(hn::LoadU(di, boxes.group + i), group));
        if (!hn::AllFalse(d, hn::And(same, hn::Gt(hn::Div(inter, both), limit)))) return true;
    }
    const BoxColumns rest{boxes.x0 + i,   boxes.y0 + i,    boxes.x1 + i,   boxes.y1 + i,
                          boxes.area + i, boxes.group + i, boxes.count - i};
    return overlaps_any_ref(rest, box, threshold);
}

}  // namespace HWY_NAMESPACE
}  // namespace vartml::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
HWY_EXPORT(overlaps_any_impl);
bool overlaps_any(const BoxColumns& boxes, const GroupedBox& box, float threshold) {
    return HWY_DYNAMIC_DISPATCH(overlaps_any_impl)(boxes, box, threshold);
}
}  // namespace vartml::kernels
#endif
