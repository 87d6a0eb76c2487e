// SPDX-License-Identifier: Apache-2.0
#include "gst/publish/runs.h"

#include <gst/video/video.h>

namespace vartml::gst {
namespace {

struct Picture {
    const uint8_t* data;
    gsize stride;
    guint width, height;
    bool wide;  // 16 bits per pixel
    uint32_t at(guint x, guint y) const {
        const uint8_t* const p = data + y * stride + x * (wide ? 2u : 1u);
        return wide ? GST_READ_UINT16_LE(p) : *p;
    }
};

void write_regions(const Picture& picture, std::vector<uint32_t>& runs) {
    uint32_t value = picture.at(0, 0), length = 0;
    for (guint y = 0; y < picture.height; ++y) {
        for (guint x = 0; x < picture.width; ++x) {
            const uint32_t pixel = picture.at(x, y);
            if (pixel != value) {
                runs.insert(runs.end(), {value, length});
                value = pixel, length = 0;
            }
            ++length;
        }
    }
    runs.insert(runs.end(), {value, length});
}

void write_turns(const Picture& picture, std::vector<uint32_t>& runs) {
    bool inside = false;
    uint32_t length = 0;
    for (guint y = 0; y < picture.height; ++y) {
        for (guint x = 0; x < picture.width; ++x) {
            if ((picture.at(x, y) != 0) != inside) {
                runs.push_back(length);
                inside = !inside, length = 0;
            }
            ++length;
        }
    }
    runs.push_back(length);
}

}  // namespace

std::optional<vartml::RecordMask> add_runs(GstBuffer* buffer, bool regions,
                                           vartml::FrameRecord& record) {
    const GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
    if (!meta || meta->width == 0 || meta->height == 0) return std::nullopt;
    const bool wide = meta->format == GST_VIDEO_FORMAT_GRAY16_LE;
    if (!wide && meta->format != GST_VIDEO_FORMAT_GRAY8) return std::nullopt;
    GstMapInfo map;
    if (!gst_buffer_map(buffer, &map, GST_MAP_READ)) return std::nullopt;
    const gsize stride = static_cast<gsize>(std::max(meta->stride[0], 0));
    const gsize row = gsize(meta->width) * (wide ? 2 : 1);
    const bool fits =
        stride >= row && meta->offset[0] + (meta->height - 1) * stride + row <= map.size;
    std::optional<vartml::RecordMask> mask;
    if (fits) {
        const Picture picture{map.data + meta->offset[0], stride, meta->width, meta->height, wide};
        mask.emplace();
        mask->width = meta->width, mask->height = meta->height;
        mask->runs.first = static_cast<uint32_t>(record.runs.size());
        regions ? write_regions(picture, record.runs) : write_turns(picture, record.runs);
        mask->runs.count = static_cast<uint32_t>(record.runs.size()) - mask->runs.first;
    }
    gst_buffer_unmap(buffer, &map);
    return mask;
}

}  // namespace vartml::gst
