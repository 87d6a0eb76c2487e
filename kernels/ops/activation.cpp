// SPDX-License-Identifier: Apache-2.0
// Activations on rows, for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/activation.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/ops/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {

void row(const Epilogue& epilogue, const float* src, const float* residual, float* dst,
         size_t count) {
    epilogue_rows(epilogue, src, residual, 0, dst, 0, 1, count);
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(row);
}  // namespace

void activate_row(const Epilogue& epilogue, const float* src, const float* residual, float* dst,
                  size_t count) {
    HWY_DYNAMIC_DISPATCH(row)(epilogue, src, residual, dst, count);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
