// SPDX-License-Identifier: Apache-2.0
// given: fourccs, slots and channels, from the page "NPU Hardware Formats" of the patch of AMD's
// kernel that adds V4L2_PIX_FMT_HCWNC4_8_4_4 and its kin. Every pixel has as many slots as the
// block; the digits of a fourcc do not tell which hold data. Numbers of several bytes are read as
// the page's text has them, least significant byte first; its tables have it the other way.
#include "gst/support/tensor_caps.h"

#include <gst/video/video.h>

#include <algorithm>
#include <tuple>

namespace vartml::gst {
namespace {

using vartml::ChannelOrder;
using vartml::DataType;
using vartml::ErrorCode;
using vartml::Layout;

constexpr int most_side = 65'535, most_channels = 4;

struct Fourcc {
    const char* name;
    Layout layout;
    DataType type;
    uint32_t channels;
};
constexpr Fourcc fourccs[] = {
    {"HC48", Layout::HCWNC4, DataType::int8, 4},    {"HC43", Layout::HCWNC4, DataType::int8, 3},
    {"HC44", Layout::HCWNC4, DataType::int8, 3},    {"HB46", Layout::HCWNC4, DataType::bf16, 4},
    {"HB43", Layout::HCWNC4, DataType::bf16, 3},    {"HB44", Layout::HCWNC4, DataType::bf16, 3},
    {"HF46", Layout::HCWNC4, DataType::fp16, 4},    {"HF43", Layout::HCWNC4, DataType::fp16, 3},
    {"HF44", Layout::HCWNC4, DataType::fp16, 3},    {"H432", Layout::HCWNC4, DataType::float32, 4},
    {"H433", Layout::HCWNC4, DataType::float32, 3}, {"H434", Layout::HCWNC4, DataType::float32, 3},
    {"HC88", Layout::HCWNC8, DataType::int8, 4},    {"HC83", Layout::HCWNC8, DataType::int8, 3},
    {"HC84", Layout::HCWNC8, DataType::int8, 3},    {"HB86", Layout::HCWNC8, DataType::bf16, 4},
    {"HB83", Layout::HCWNC8, DataType::bf16, 3},    {"HB84", Layout::HCWNC8, DataType::bf16, 3},
    {"HF86", Layout::HCWNC8, DataType::fp16, 4},    {"HF83", Layout::HCWNC8, DataType::fp16, 3},
    {"HF84", Layout::HCWNC8, DataType::fp16, 3},    {"H832", Layout::HCWNC8, DataType::float32, 4},
    {"H833", Layout::HCWNC8, DataType::float32, 3}, {"H834", Layout::HCWNC8, DataType::float32, 3},
};

constexpr DataType types[] = {DataType::int8, DataType::uint8, DataType::bf16, DataType::fp16,
                              DataType::float32};
constexpr Layout layouts[] = {Layout::HCWNC4, Layout::HCWNC8, Layout::HCWNC16,
                              Layout::NHWC,   Layout::NCHW,   Layout::NHW};

struct Order {
    const char* name;
    ChannelOrder order;
};
constexpr Order orders[] = {
    {"rgb", ChannelOrder::rgb}, {"bgr", ChannelOrder::bgr}, {"gray", ChannelOrder::gray}};

// Slots that the channels of a pixel are rounded up to.
uint32_t block_of(Layout layout) {
    return layout == Layout::HCWNC4    ? 4
           : layout == Layout::HCWNC8  ? 8
           : layout == Layout::HCWNC16 ? 16
                                       : 1;
}

void measure(TensorFrame& frame) {
    const auto bytes = uint32_t(vartml::size_bytes(frame.type));
    const bool planes = frame.layout == Layout::NCHW;
    const uint32_t block = block_of(frame.layout);
    const uint32_t slots = planes ? 1 : (frame.channels + block - 1) / block * block;
    // The innermost dimension of NHW is rounded up to 8.
    const uint32_t width = frame.layout == Layout::NHW ? (frame.width + 7) / 8 * 8 : frame.width;
    frame.row_bytes = width * slots * bytes;
    frame.rows = frame.height * (planes ? frame.channels : 1);
}

void append(GValue* list, const char* text) {
    GValue v = G_VALUE_INIT;
    g_value_init(&v, G_TYPE_STRING);
    g_value_set_string(&v, text);
    gst_value_list_append_and_take_value(list, &v);
}

GstCapsFeatures* dma_buf() {
    return gst_caps_features_new_single_static_str("memory:DMABuf");
}

// A media type of any frame rate, in sizes that the caller may narrow.
GstStructure* any_size(const char* type) {
    return gst_structure_new(type, "width", GST_TYPE_INT_RANGE, 1, most_side, "height",
                             GST_TYPE_INT_RANGE, 1, most_side, "framerate", GST_TYPE_FRACTION_RANGE,
                             0, 1, G_MAXINT, 1, nullptr);
}

GstStructure* drm_structure(GValue* fourcc_list) {
    GstStructure* s = any_size("video/x-raw");
    gst_structure_set(s, "format", G_TYPE_STRING, "DMA_DRM", nullptr);
    gst_structure_take_value(s, "drm-format", fourcc_list);
    return s;
}

void append_both_memories(GstCaps* caps, GstStructure* s) {
    gst_caps_append_structure_full(caps, gst_structure_copy(s), dma_buf());
    gst_caps_append_structure(caps, s);
}

template <class Rows, class Name>
std::string listed(const Rows& rows, Name name) {
    std::string text;
    for (const auto& row : rows) text += (text.empty() ? "" : ", ") + std::string(name(row));
    return text;
}

vartml::Error wrong(const char* field, const std::string& found, const std::string& expected) {
    return {ErrorCode::invalid_argument, std::string("caps ") + tensor_media_type + " have " +
                                             field + " " + found + ", expected " + expected};
}

std::string text_of(const GstStructure* s, const char* field) {
    const char* text = gst_structure_get_string(s, field);
    return text ? text : "";
}

// What either kind of caps may say of the values.
vartml::Result<void> read_values(const GstStructure* s, TensorFrame& frame) {
    double scale;
    int zero_point;
    if (gst_structure_get_double(s, "scale", &scale)) frame.scale = scale;
    if (gst_structure_get_int(s, "zero-point", &zero_point)) frame.zero_point = zero_point;
    const std::string order = text_of(s, "channel-order");
    if (order.empty()) return {};
    const auto found = std::ranges::find(orders, order, &Order::name);
    if (found == std::end(orders))
        return wrong("channel-order", order,
                     listed(orders, [](const Order& one) { return one.name; }));
    frame.order = found->order;
    return {};
}

vartml::Result<uint32_t> side(const GstStructure* s, const char* field, int most) {
    int value = 0;
    if (!gst_structure_get_int(s, field, &value)) value = 0;
    if (value < 1 || value > most)
        return wrong(field, std::to_string(value), "1 to " + std::to_string(most));
    return uint32_t(value);
}

vartml::Result<TensorFrame> own_caps(const GstStructure* s) {
    TensorFrame frame;
    const std::string type = text_of(s, "data-type"), layout = text_of(s, "layout");
    frame.type = vartml::parse_data_type(type).value_or(DataType::unknown);
    if (std::ranges::find(types, frame.type) == std::end(types))
        return wrong("data-type", "'" + type + "'",
                     listed(types, [](DataType one) { return vartml::to_string(one); }));
    frame.layout = vartml::parse_layout(layout).value_or(Layout::unknown);
    if (std::ranges::find(layouts, frame.layout) == std::end(layouts))
        return wrong("layout", "'" + layout + "'",
                     listed(layouts, [](Layout one) { return vartml::to_string(one); }));
    for (const auto& [field, most, value] : {std::tuple{"channels", most_channels, &frame.channels},
                                             std::tuple{"width", most_side, &frame.width},
                                             std::tuple{"height", most_side, &frame.height}}) {
        const auto read = side(s, field, most);
        if (!read) return read.error();
        *value = *read;
    }
    frame.name = type + " in " + layout;
    measure(frame);
    return frame;
}

}  // namespace

std::optional<TensorFrame> tensor_of_fourcc(uint32_t fourcc, uint32_t width, uint32_t height) {
    for (const Fourcc& row : fourccs) {
        if (GST_STR_FOURCC(row.name) != fourcc) continue;
        TensorFrame frame;
        frame.name = row.name;
        frame.type = row.type;
        frame.layout = row.layout;
        frame.channels = row.channels;
        frame.width = width;
        frame.height = height;
        frame.order = ChannelOrder::rgb;  // of all, by their definition
        measure(frame);
        return frame;
    }
    return std::nullopt;
}

vartml::Result<std::optional<TensorFrame>> tensor_frame(const GstCaps* caps) {
    if (gst_caps_is_empty(caps) || gst_caps_is_any(caps)) return std::optional<TensorFrame>();
    const GstStructure* s = gst_caps_get_structure(caps, 0);
    std::optional<TensorFrame> frame;
    if (gst_structure_has_name(s, tensor_media_type)) {
        auto own = own_caps(s);
        if (!own) return own.error();
        frame = *std::move(own);
    } else if (gst_video_is_dma_drm_caps(caps)) {
        guint64 modifier = 0;
        const char* format = gst_structure_get_string(s, "drm-format");
        const guint32 fourcc = format ? gst_video_dma_drm_fourcc_from_string(format, &modifier) : 0;
        int width = 0, height = 0;
        if (modifier == 0 && gst_structure_get_int(s, "width", &width) &&
            gst_structure_get_int(s, "height", &height) && width > 0 && height > 0 &&
            width <= most_side && height <= most_side)
            frame = tensor_of_fourcc(fourcc, uint32_t(width), uint32_t(height));
    }
    if (frame) {
        if (auto read = read_values(s, *frame); !read) return read.error();
    }
    return frame;
}

GstCaps* tensor_caps() {
    GstCaps* caps = gst_caps_new_empty();
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_LIST);
    for (const Fourcc& row : fourccs) append(&list, row.name);
    gst_caps_append_structure_full(caps, drm_structure(&list), dma_buf());

    GstStructure* own = any_size(tensor_media_type);
    GValue type_list = G_VALUE_INIT, layout_list = G_VALUE_INIT;
    g_value_init(&type_list, GST_TYPE_LIST);
    g_value_init(&layout_list, GST_TYPE_LIST);
    for (const DataType type : types) append(&type_list, vartml::to_string(type).data());
    for (const Layout layout : layouts) append(&layout_list, vartml::to_string(layout).data());
    gst_structure_take_value(own, "data-type", &type_list);
    gst_structure_take_value(own, "layout", &layout_list);
    gst_structure_set(own, "channels", GST_TYPE_INT_RANGE, 1, most_channels, nullptr);
    append_both_memories(caps, own);
    return caps;
}

GstCaps* tensor_caps_of(vartml::DataType type, vartml::Layout layout, uint32_t channels,
                        uint32_t width, uint32_t height) {
    GstCaps* caps = gst_caps_new_empty();
    if (std::ranges::find(types, type) == std::end(types) ||
        std::ranges::find(layouts, layout) == std::end(layouts))
        return caps;
    const auto set_size = [&](GstStructure* s) {
        gst_structure_set(s, "width", G_TYPE_INT, int(width), "height", G_TYPE_INT, int(height),
                          nullptr);
    };
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_LIST);
    for (const Fourcc& row : fourccs) {
        if (row.type == type && row.layout == layout && row.channels >= channels && channels >= 3)
            append(&list, row.name);
    }
    if (gst_value_list_get_size(&list) > 0) {
        GstStructure* drm = drm_structure(&list);
        set_size(drm);
        gst_caps_append_structure_full(caps, drm, dma_buf());
    } else {
        g_value_unset(&list);
    }
    GstStructure* own = any_size(tensor_media_type);
    set_size(own);
    gst_structure_set(own, "data-type", G_TYPE_STRING, vartml::to_string(type).data(), "layout",
                      G_TYPE_STRING, vartml::to_string(layout).data(), "channels", G_TYPE_INT,
                      int(channels), nullptr);
    append_both_memories(caps, own);
    return caps;
}

}  // namespace vartml::gst
