// SPDX-License-Identifier: Apache-2.0
// Border tensors in logical dimensions.
#include "lib/run/softnpu/border.h"

#include <algorithm>

namespace vartml::softnpu {

std::vector<Range> ranges(int64_t size, uint32_t items) {
    std::vector<Range> result;
    for (int64_t i = 0; i < items; ++i) {
        const auto [first, last] = device::part_of(size, i, items);
        if (first < last) result.push_back({first, last - first});
    }
    return result;
}

View cut(const View& view, size_t dim, const Range& range) {
    if (view.dims[dim] == 1) return view;
    return slice(view, dim, range.first, range.size, 1);
}

std::vector<Band> bands(const Dims& picture, int64_t cost_ns, unsigned threads) {
    const int64_t images = picture[0], rows = picture[2];
    const uint32_t items = items_for({images * rows, cost_ns}, threads);
    std::vector<Band> result;
    if (items <= images) {
        for (const Range& r : ranges(images, items)) result.push_back({r, {0, rows}});
        return result;
    }
    const auto per_image = static_cast<uint32_t>((items + images - 1) / images);
    for (int64_t n = 0; n < images; ++n) {
        for (const Range& r : ranges(rows, per_image)) result.push_back({{n, 1}, r});
    }
    return result;
}

View cut(const View& view, const Band& band) {
    return cut(cut(view, 0, band.images), 2, band.rows);
}

namespace {

struct Axes {
    size_t n, c, h, w;
};

Axes image_axes(const TensorInfo& info) {
    return info.cpu.layout == Layout::NHWC ? Axes{0, 3, 1, 2} : Axes{0, 1, 2, 3};
}

bool is_blocked(Layout layout) {
    return layout == Layout::HCWNC4 || layout == Layout::HCWNC8 || layout == Layout::HCWNC16;
}

// Strides of a blocked HW view, shape [H, CG, W, N, CB].
struct Blocked {
    int64_t groups, block, h, g, w, n;
};

Blocked blocked(const TensorView& hw) {
    return {hw.shape[1], hw.shape[4], hw.strides[0], hw.strides[1], hw.strides[2], hw.strides[3]};
}

}  // namespace

std::optional<View> border_view(const TensorInfo& info, const Dims& shape, int32_t buffer) {
    const TensorView& hw = *info.hw;
    View view{buffer, hw.data_type, 0, shape, Dims(shape.size(), 1)};
    if (shape.empty()) return view;
    if (is_blocked(hw.layout)) {
        const Blocked b = blocked(hw);
        if (b.groups > 1) return std::nullopt;
        const Axes axes = image_axes(info);
        view.strides[axes.n] = b.n;
        view.strides[axes.c] = 1;
        view.strides[axes.h] = b.h;
        view.strides[axes.w] = b.w;
        return view;
    }
    if (hw.layout == Layout::NHWC || hw.layout == Layout::NCHW) {
        const Axes axes = image_axes(info);
        const bool last = hw.layout == Layout::NHWC;
        view.strides[axes.n] = hw.strides[0];
        view.strides[axes.c] = hw.strides[last ? 3 : 1];
        view.strides[axes.h] = hw.strides[last ? 1 : 2];
        view.strides[axes.w] = hw.strides[last ? 2 : 3];
        return view;
    }
    for (size_t i = 0; i < shape.size(); ++i) {
        const size_t dim = hw.order.empty() ? i : hw.order[i];
        view.strides[dim] = hw.strides[i];
    }
    return view;
}

Order border_order(const TensorInfo& info) {
    const TensorView& hw = *info.hw;
    if (hw.layout == Layout::GENERIC) {
        return Order(hw.order.begin(), hw.order.end());
    }
    const bool image = is_blocked(hw.layout) || hw.layout == Layout::NHWC;
    if (!image) return row_major(info.cpu.shape.size());
    return info.cpu.layout == Layout::NHWC ? row_major(4) : channels_last(4);
}

std::vector<std::pair<View, View>> border_parts(const TensorInfo& info, const View& inside,
                                                int32_t buffer) {
    const Axes axes = image_axes(info);
    const Blocked b = blocked(*info.hw);
    const int64_t channels = inside.dims[axes.c];
    const int64_t full = channels / b.block;
    const int64_t n = inside.dims[axes.n], h = inside.dims[axes.h], w = inside.dims[axes.w];
    const auto part = [&](int64_t first_group, int64_t groups, int64_t block) {
        View border{buffer,
                    info.hw->data_type,
                    first_group * b.g,
                    {n, groups, block, h, w},
                    {b.n, b.g, 1, b.h, b.w}};
        View in = inside;
        const int64_t c = inside.strides[axes.c];
        in.offset += first_group * b.block * c;
        in.dims = border.dims;
        in.strides = {inside.strides[axes.n], b.block * c, c, inside.strides[axes.h],
                      inside.strides[axes.w]};
        return std::pair{border, in};
    };
    std::vector<std::pair<View, View>> parts;
    if (full > 0) parts.push_back(part(0, full, b.block));
    if (channels % b.block != 0) parts.push_back(part(full, 1, channels % b.block));
    return parts;
}

std::vector<View> border_padding(const TensorInfo& info, const Dims& shape, int32_t buffer) {
    const TensorView& hw = *info.hw;
    if (is_blocked(hw.layout)) {
        const Blocked b = blocked(hw);
        const Axes axes = image_axes(info);
        const int64_t used = shape[axes.c] - (b.groups - 1) * b.block;
        if (used == b.block) return {};
        return {View{buffer,
                     hw.data_type,
                     (b.groups - 1) * b.g + used,
                     {shape[axes.h], shape[axes.w], shape[axes.n], b.block - used},
                     {b.h, b.w, b.n, 1}}};
    }
    if (hw.layout == Layout::NHW && hw.shape[2] != shape[2]) {
        return {View{buffer,
                     hw.data_type,
                     shape[2],
                     {shape[0], shape[1], hw.shape[2] - shape[2]},
                     {hw.strides[0], hw.strides[1], 1}}};
    }
    return {};
}

std::optional<View> with_padding_channels(const View& view) {
    if (view.dims.size() != 4 || view.dims[0] != 1 || view.strides[1] != 1) return std::nullopt;
    const int64_t block = view.strides[3];
    if (block <= view.dims[1] || (block != 4 && block != 8 && block != 16)) return std::nullopt;
    if (view.strides[2] != block * view.dims[3]) return std::nullopt;
    View padded = view;
    padded.dims[1] = block;
    return padded;
}

}  // namespace vartml::softnpu
