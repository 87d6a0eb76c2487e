// SPDX-License-Identifier: Apache-2.0
// Bounds of floats among which NaN stays NaN. Included once per instruction set.
#if defined(VARTML_KERNELS_OPS_BOUNDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VARTML_KERNELS_OPS_BOUNDS_INL_H_
#undef VARTML_KERNELS_OPS_BOUNDS_INL_H_
#else
#define VARTML_KERNELS_OPS_BOUNDS_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {

// Where one of two numbers is NaN, x86 takes the second one; Highway's Max and Min of Arm take the
// other, whichever it is.
template <class V>
HWY_INLINE V at_least(V low, V x) {
#if HWY_ARCH_ARM_A64
    return V(vmaxq_f32(low.raw, x.raw));
#else
    return hwy::HWY_NAMESPACE::Max(low, x);
#endif
}
template <class V>
HWY_INLINE V at_most(V high, V x) {
#if HWY_ARCH_ARM_A64
    return V(vminq_f32(high.raw, x.raw));
#else
    return hwy::HWY_NAMESPACE::Min(high, x);
#endif
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per target
