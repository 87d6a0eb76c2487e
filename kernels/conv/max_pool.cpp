// SPDX-License-Identifier: Apache-2.0
// Windows in two passes: the largest of each column of a row of windows, then of neighbouring
// columns, so that a window of k·k costs 2·k.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/max_pool.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/conv/max_pool.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// dst[c] = largest of src[i·step + c], i < n, for whole vectors of channels from c on; gives the
// first channel behind them.
template <class D>
HWY_INLINE size_t largest_of(D d, const float* src, size_t step, size_t n, float* dst, size_t c,
                             size_t channels) {
    const size_t lanes = hn::Lanes(d);
    for (; c + lanes <= channels; c += lanes) {
        auto most = hn::LoadU(d, src + c);
        for (size_t i = 1; i < n; ++i) most = hn::Max(most, hn::LoadU(d, src + i * step + c));
        hn::StoreU(most, d, dst + c);
    }
    return c;
}

void largest(const float* src, size_t step, size_t n, float* dst, size_t channels) {
    const hn::ScalableTag<float> d;
    size_t c = largest_of(d, src, step, n, dst, 0, channels);
    if (c == channels) return;
    // Few channels: shorter vectors cost less than masked ones.
    c = largest_of(hn::CappedTag<float, 8>(), src, step, n, dst, c, channels);
    c = largest_of(hn::CappedTag<float, 4>(), src, step, n, dst, c, channels);
    if (c == channels) return;
    const size_t left = channels - c;
    auto most = hn::LoadN(d, src + c, left);
    for (size_t i = 1; i < n; ++i) most = hn::Max(most, hn::LoadN(d, src + i * step + c, left));
    hn::StoreN(most, d, dst + c, left);
}

// The part of a window that lies on the picture.
struct Covered {
    size_t first, count;
};
Covered covered(size_t at, size_t stride, int32_t pad, size_t kernel, size_t extent) {
    const int64_t start = static_cast<int64_t>(at * stride) - pad;
    const auto first = std::max<int64_t>(start, 0);
    const auto last = std::min(start + static_cast<int64_t>(kernel), static_cast<int64_t>(extent));
    return {static_cast<size_t>(first), static_cast<size_t>(last - first)};
}

void max_pool(const PoolShape& s, const SrcPicture& src, const DstPicture& dst, float* scratch,
              size_t first, size_t last) {
    for (size_t y = first; y < last; ++y) {
        const Covered rows = covered(y, s.stride_height, s.pad_top, s.kernel_height, s.in_height);
        const float* const top = src.data + rows.first * src.row;
        // Dense pixels are one long column of windows.
        const bool dense = src.pixel == s.channels;
        if (dense) largest(top, src.row, rows.count, scratch, s.in_width * s.channels);
        for (size_t x = 0; x < s.in_width && !dense; ++x)
            largest(top + x * src.pixel, src.row, rows.count, scratch + x * s.channels, s.channels);
        for (size_t x = 0; x < s.out_width; ++x) {
            const Covered columns =
                covered(x, s.stride_width, s.pad_left, s.kernel_width, s.in_width);
            largest(scratch + columns.first * s.channels, s.channels, columns.count,
                    dst.data + y * dst.row + x * dst.pixel, s.channels);
        }
    }
}

}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(max_pool);
}  // namespace

size_t max_pool_scratch_size(const PoolShape& shape) {
    return size_t{shape.in_width} * shape.channels;
}

void max_pool_rows(const PoolShape& shape, const SrcPicture& src, const DstPicture& dst,
                   float* scratch, size_t first, size_t last) {
    HWY_DYNAMIC_DISPATCH(max_pool)(shape, src, dst, scratch, first, last);
}

void max_pool_ref(const PoolShape& s, const SrcPicture& src, const DstPicture& dst) {
    for (int64_t y = 0; y < s.out_height; ++y)
        for (int64_t x = 0; x < s.out_width; ++x)
            for (size_t c = 0; c < s.channels; ++c) {
                bool has_one = false;
                float most = 0;
                for (int64_t i = 0; i < s.kernel_height; ++i)
                    for (int64_t j = 0; j < s.kernel_width; ++j) {
                        const int64_t iy = y * s.stride_height - s.pad_top + i;
                        const int64_t ix = x * s.stride_width - s.pad_left + j;
                        if (iy < 0 || ix < 0 || iy >= s.in_height || ix >= s.in_width) continue;
                        const float v = src.data[static_cast<size_t>(iy) * src.row +
                                                 static_cast<size_t>(ix) * src.pixel + c];
                        most = has_one ? std::max(most, v) : v;
                        has_one = true;
                    }
                dst.data[static_cast<size_t>(y) * dst.row + static_cast<size_t>(x) * dst.pixel +
                         c] = most;
            }
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
