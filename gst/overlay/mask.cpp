// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/mask.h"

#include <algorithm>

namespace vartml::gst::overlay {

MaskPixels::MaskPixels(GstBuffer* buffer) : buffer_(buffer) {
    const GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
    if (!meta) return;
    wide_ = meta->format == GST_VIDEO_FORMAT_GRAY16_LE;
    if ((!wide_ && meta->format != GST_VIDEO_FORMAT_GRAY8) || !meta->width || !meta->height) return;
    mapped_ = gst_buffer_map(buffer, &map_, GST_MAP_READ);
    if (!mapped_) return;
    const gsize row = gsize(meta->width) * (wide_ ? 2 : 1);
    const auto stride = static_cast<gsize>(meta->stride[0]);
    if (meta->stride[0] < 0 || stride < row ||
        meta->offset[0] + stride * (meta->height - 1) + row > map_.size) {
        return;
    }
    data_ = map_.data + meta->offset[0];
    stride_ = meta->stride[0];
    width_ = static_cast<int>(meta->width);
    height_ = static_cast<int>(meta->height);
}

MaskPixels::~MaskPixels() {
    if (mapped_) gst_buffer_unmap(buffer_, &map_);
}

MaskPainter::Place MaskPainter::place(int at, int origin, int length, int samples) {
    // The centre of the pixel in the mask, in 1/256 of its pixels, from the centre of the first.
    const int64_t twice = 2 * (static_cast<int64_t>(at) - origin) + 1;
    const int64_t exact = twice * 128 * samples / length - 128;
    const int64_t where = std::clamp<int64_t>(exact, 0, int64_t{256} * (samples - 1));
    const int first = static_cast<int>(where / 256);
    return {first, std::min(first + 1, samples - 1), static_cast<unsigned>(where % 256)};
}

void MaskPainter::note(uint16_t region) {
    if (region >= seen_.size() || seen_[region]) return;
    seen_[region] = true;
    present_.push_back(region);
}

void MaskPainter::fill_row(const MaskPixels& mask, const Place& row,
                           std::vector<uint16_t>& regions) {
    regions.resize(columns_.size());
    size_t x = 0;
    while (x < columns_.size()) {
        const int first = columns_[x].first, second = columns_[x].second;
        const uint16_t corners[4] = {mask.at(first, row.first), mask.at(second, row.first),
                                     mask.at(first, row.second), mask.at(second, row.second)};
        const bool same =
            corners[0] == corners[1] && corners[0] == corners[2] && corners[0] == corners[3];
        for (; x < columns_.size() && columns_[x].first == first; ++x) {
            uint16_t best = corners[0];
            if (!same) {
                const unsigned right = columns_[x].weight, down = row.weight;
                const unsigned weights[4] = {(256 - right) * (256 - down), right * (256 - down),
                                             (256 - right) * down, right * down};
                unsigned most = 0;
                for (int i = 0; i < 4; ++i) {
                    unsigned sum = 0;
                    for (int k = 0; k < 4; ++k) sum += corners[k] == corners[i] ? weights[k] : 0;
                    if (sum > most || (sum == most && corners[i] > best)) {
                        most = sum;
                        best = corners[i];
                    }
                }
            }
            regions[x] = best;
            note(best);
        }
    }
}

void MaskPainter::draw(Canvas& canvas, const MaskPixels& mask, const Rect& rect,
                       std::span<const Rgba> colors) {
    const Rect r = intersection(rect, {0, 0, canvas.width(), canvas.height()});
    if (r.empty() || !mask.valid()) return;
    columns_.clear();
    for (int x = r.x; x < r.right(); ++x) {
        columns_.push_back(place(x, rect.x, rect.w, mask.width()));
    }
    seen_.assign(colors.size(), false);
    for (int top = r.y & ~1; top < r.bottom(); top += 2) {
        present_.clear();
        for (int k = 0; k < 2; ++k) {
            if (top + k < r.y || top + k >= r.bottom()) continue;
            fill_row(mask, place(top + k, rect.y, rect.h, mask.height()), regions_[k]);
        }
        for (const uint16_t region : present_) {
            seen_[region] = false;
            canvas.cover(intersection(r, {r.x, top, r.w, 2}), colors[region],
                         [&](int y, int x0, int x1, uint8_t* coverage) {
                             const uint16_t* const row = regions_[y - top].data() + (x0 - r.x);
                             for (int x = 0; x < x1 - x0; ++x) {
                                 coverage[x] = row[x] == region ? 255 : 0;
                             }
                         });
        }
    }
}

}  // namespace vartml::gst::overlay
