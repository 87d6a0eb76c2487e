// SPDX-License-Identifier: Apache-2.0
#include "lib/base/view.h"

#include <array>
#include <cassert>
#include <numeric>
#include <utility>

#include <vartml/tensor.h>

namespace vartml {
namespace {

struct TypeRow {
    std::string_view name;
    size_t size_bytes;
};
// In the order of DataType.
constexpr std::array<TypeRow, 14> types{{{"unknown", 0},
                                         {"bool", 1},
                                         {"int8", 1},
                                         {"uint8", 1},
                                         {"int16", 2},
                                         {"uint16", 2},
                                         {"bf16", 2},
                                         {"fp16", 2},
                                         {"int32", 4},
                                         {"uint32", 4},
                                         {"fp32", 4},
                                         {"int64", 8},
                                         {"uint64", 8},
                                         {"fp64", 8}}};
static_assert(types.size() == static_cast<size_t>(DataType::float64) + 1);

// In the order of Layout.
constexpr std::array<std::string_view, 20> layouts{
    "unknown", "NC",        "NCH",       "NHC",      "NHW",      "NWC",    "NHWC",
    "NCHW",    "NHWC4",     "NHWC8",     "NC4HW4",   "NC8HW8",   "HCWNC4", "HCWNC8",
    "HCWNC16", "NHW16C4WC", "NHW16WC4C", "NH2HWC4C", "NH2C4HWC", "GENERIC"};
static_assert(layouts.size() == static_cast<size_t>(Layout::GENERIC) + 1);

constexpr uint32_t nhw_multiple = 8;

uint32_t block_of(Layout layout) {
    if (layout == Layout::HCWNC4) return 4;
    if (layout == Layout::HCWNC8) return 8;
    if (layout == Layout::HCWNC16) return 16;
    return 0;
}

}  // namespace

size_t size_bytes(DataType type) {
    const auto i = static_cast<size_t>(type);
    return i < types.size() ? types[i].size_bytes : 0;
}

std::string_view to_string(DataType type) {
    const auto i = static_cast<size_t>(type);
    return types[i < types.size() ? i : 0].name;
}

std::optional<DataType> parse_data_type(std::string_view text) {
    for (size_t i = 1; i < types.size(); ++i)
        if (types[i].name == text) return static_cast<DataType>(i);
    return std::nullopt;
}

std::string_view to_string(Layout layout) {
    const auto i = static_cast<size_t>(layout);
    return layouts[i < layouts.size() ? i : 0];
}

std::optional<Layout> parse_layout(std::string_view text) {
    for (size_t i = 1; i < layouts.size(); ++i)
        if (layouts[i] == text) return static_cast<Layout>(i);
    return std::nullopt;
}

TensorView make_view(DataType type, Layout layout, std::vector<uint32_t> shape,
                     std::vector<uint32_t> order) {
    TensorView view;
    view.data_type = type;
    view.layout = layout;
    view.order = std::move(order);
    if (layout == Layout::GENERIC && view.order.empty()) {
        view.order.resize(shape.size());
        std::iota(view.order.begin(), view.order.end(), 0u);
    }
    view.strides.resize(shape.size());
    size_t size = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        view.strides[i] = static_cast<uint32_t>(size);
        size *= shape[i];
    }
    view.shape = std::move(shape);
    view.size = size;
    view.size_bytes = size * size_bytes(type);
    return view;
}

TensorView hw_view(const TensorView& cpu, Layout layout, DataType type) {
    const std::vector<uint32_t>& s = cpu.shape;
    if (layout == Layout::NHW) {
        assert(s.size() == 3);
        const uint32_t padded = (s[2] + nhw_multiple - 1) / nhw_multiple * nhw_multiple;
        return make_view(type, layout, {s[0], s[1], padded});
    }
    const uint32_t block = block_of(layout);
    if (block != 0 || layout == Layout::NHWC || layout == Layout::NCHW) {
        assert(s.size() == 4);
        const bool channels_last = cpu.layout == Layout::NHWC;
        const uint32_t n = s[0], c = channels_last ? s[3] : s[1];
        const uint32_t h = channels_last ? s[1] : s[2], w = channels_last ? s[2] : s[3];
        if (block != 0) {
            assert(n == 1);
            return make_view(type, layout, {h, (c + block - 1) / block, w, n, block});
        }
        if (layout == Layout::NHWC) return make_view(type, layout, {n, h, w, c});
        return make_view(type, layout, {n, c, h, w});
    }
    return make_view(type, layout, s, cpu.order);
}

std::string describe(const TensorView& view) {
    std::string text(to_string(view.layout));
    for (size_t i = 0; i < view.shape.size(); ++i)
        text += (i == 0 ? " [" : ",") + std::to_string(view.shape[i]);
    if (view.shape.empty()) text += " [";
    return text + "] " + std::string(to_string(view.data_type));
}

}  // namespace vartml
