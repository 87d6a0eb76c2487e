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

// Numbers that compare as the elements do: floats and codes themselves; of bf16 the bits as an
// integer, with those below the sign turned where it is set. The way back is the same.
template <class D>
HWY_INLINE hn::Vec<D> key(D d, hn::Vec<D> x) {
    if constexpr (!hwy::IsSame<hn::TFromD<D>, int16_t>())
        return x;
    else
        return hn::Xor(x, hn::And(hn::ShiftRight<15>(x), hn::Set(d, 0x7FFF)));
}

// The first pass reads elements and writes keys, the second reads keys and writes elements.
enum class Pass { rows, columns };

// dst[c] = largest of src[i·step + c], i < n, for whole vectors of channels from c on; gives the
// first channel behind them.
template <Pass pass, class D, typename T>
HWY_INLINE size_t largest_of(D d, const T* src, size_t step, size_t n, T* dst, size_t c,
                             size_t channels) {
    const auto load = [d](const T* from) HWY_ATTR {
        const auto x = hn::LoadU(d, from);
        return pass == Pass::rows ? key(d, x) : x;
    };
    const size_t lanes = hn::Lanes(d);
    for (; c + lanes <= channels; c += lanes) {
        auto most = load(src + c);
        for (size_t i = 1; i < n; ++i) most = hn::Max(most, load(src + i * step + c));
        hn::StoreU(pass == Pass::columns ? key(d, most) : most, d, dst + c);
    }
    return c;
}

template <Pass pass, typename T>
void largest(const T* src, size_t step, size_t n, T* dst, size_t channels) {
    size_t c = largest_of<pass>(hn::ScalableTag<T>(), src, step, n, dst, 0, channels);
    if (c == channels) return;
    // Few channels: shorter vectors cost less than masked ones.
    c = largest_of<pass>(hn::CappedTag<T, 16>(), src, step, n, dst, c, channels);
    c = largest_of<pass>(hn::CappedTag<T, 8>(), src, step, n, dst, c, channels);
    c = largest_of<pass>(hn::CappedTag<T, 4>(), src, step, n, dst, c, channels);
    largest_of<pass>(hn::CappedTag<T, 1>(), src, step, n, dst, c, channels);
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

template <typename T>
void max_pool_of(const PoolShape& s, const PictureOf<const T>& src, const PictureOf<T>& dst,
                 T* scratch, size_t first, size_t last) {
    // Columns whose whole window lies on the picture.
    size_t whole_first = 0, whole_last = s.out_width;
    const auto is_whole = [&](size_t x) {
        return covered(x, s.stride_width, s.pad_left, s.kernel_width, s.in_width).count ==
               s.kernel_width;
    };
    while (whole_first < whole_last && !is_whole(whole_first)) ++whole_first;
    while (whole_last > whole_first && !is_whole(whole_last - 1)) --whole_last;
    for (size_t y = first; y < last; ++y) {
        const Covered rows = covered(y, s.stride_height, s.pad_top, s.kernel_height, s.in_height);
        const T* const top = src.data + rows.first * src.row;
        // Dense pixels are one long column of windows.
        const bool dense = src.pixel == s.channels;
        if (dense) largest<Pass::rows>(top, src.row, rows.count, scratch, s.in_width * s.channels);
        for (size_t x = 0; x < s.in_width && !dense; ++x)
            largest<Pass::rows>(top + x * src.pixel, src.row, rows.count, scratch + x * s.channels,
                                s.channels);
        const auto columns = [&](size_t x, size_t from, size_t count, size_t pixels) {
            largest<Pass::columns>(scratch + from * s.channels, s.channels, count,
                                   dst.data + y * dst.row + x * dst.pixel, pixels * s.channels);
        };
        const auto edge = [&](size_t x) {
            const Covered on = covered(x, s.stride_width, s.pad_left, s.kernel_width, s.in_width);
            columns(x, on.first, on.count, 1);
        };
        for (size_t x = 0; x < whole_first; ++x) edge(x);
        // Where neither side leaves pixels out, the windows of all channels are one long row.
        const size_t at_once =
            s.stride_width == 1 && dst.pixel == s.channels ? whole_last - whole_first : 1;
        size_t from = whole_first * s.stride_width - static_cast<size_t>(s.pad_left);
        for (size_t x = whole_first; x < whole_last; x += at_once, from += s.stride_width)
            columns(x, from, s.kernel_width, at_once);
        for (size_t x = whole_last; x < s.out_width; ++x) edge(x);
    }
}

void max_pool(const PoolShape& s, const AnySrcPicture& src, const AnyDstPicture& dst,
              std::byte* scratch, size_t first, size_t last) {
    const auto run = [&]<typename T>(T) {
        max_pool_of<T>(s, {static_cast<const T*>(src.data), src.row, src.pixel},
                       {static_cast<T*>(dst.data), dst.row, dst.pixel},
                       reinterpret_cast<T*>(scratch), first, last);
    };
    switch (s.element) {
        case Element::f32:
            return run(float{});
        case Element::bf16:
            return run(int16_t{});
        case Element::u8:
            return run(uint8_t{});
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
    const size_t bytes = size_t{shape.in_width} * shape.channels * size_of(shape.element);
    return (bytes + 3) / 4 * 4;
}

void max_pool_rows(const PoolShape& shape, const AnySrcPicture& src, const AnyDstPicture& dst,
                   std::byte* scratch, size_t first, size_t last) {
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
