// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/scene.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <ranges>
#include <utility>

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

void MaskPainter::blur(Canvas& canvas, const MaskPixels* mask, const Rect& rect,
                       std::span<const Rgba> colors, bool is_there) {
    const Rect frame = {0, 0, canvas.width(), canvas.height()};
    if (intersection(rect, frame).empty()) return;  // also what rounding to even would fill
    const int left = std::max(rect.x, 0) & ~1, top = std::max(rect.y, 0) & ~1;
    const Rect r = intersection({left, top, rect.right() - left, rect.bottom() - top}, frame);
    const int longer = std::max(rect.w, rect.h);
    const int exact = std::max((longer + blur_blocks - 1) / blur_blocks, least_block);
    const int block = (exact + 1) & ~1;
    covered_.clear();
    if (mask && mask->valid()) {
        const auto hides = [&](int x, int y) {
            const uint16_t region = mask->at(x, y);
            return region < colors.size() && colors[region].a > 0;
        };
        bool any = false;
        columns_.clear();
        for (int x = r.x; x < r.right(); ++x)
            columns_.push_back(place(x, rect.x, rect.w, mask->width()));
        for (int y = r.y; y < r.bottom(); ++y) {
            const Place row = place(y, rect.y, rect.h, mask->height());
            for (const Place& column : columns_) {
                const bool here =
                    hides(column.first, row.first) || hides(column.second, row.first) ||
                    hides(column.first, row.second) || hides(column.second, row.second);
                covered_.push_back(here);
                any |= here;
            }
        }
        if (!any && !is_there) return;
        if (!any) covered_.clear();
    }
    canvas.pixelate(r, block, covered_);
}

namespace {

constexpr float far_away = 1 << 24;  // a float's last whole number without gap

int whole(float value) {
    return static_cast<int>(std::clamp(value, -far_away, far_away));
}

// A stroke, prepared for the distances of many pixels.
class Capsule {
public:
    explicit Capsule(const Stroke& s) : stroke_(s), dx_(s.x1 - s.x0), dy_(s.y1 - s.y0) {
        const float square = dx_ * dx_ + dy_ * dy_;
        inverse_ = square > 0 ? 1 / square : 0;
        length_ = std::sqrt(square);
    }

    // Pixels of rows between `top` and `bottom` that may be covered: those near the endless line.
    void narrow(float top, float bottom, int& x0, int& x1) const {
        if (std::abs(dy_) < 1e-3f) return;
        const float slope = dx_ / dy_;
        const float a = stroke_.x0 + (top - stroke_.y0) * slope;
        const float b = stroke_.x0 + (bottom - stroke_.y0) * slope;
        const float reach = (stroke_.radius + 1) * length_ / std::abs(dy_) + 1;
        x0 = std::max(x0, whole(std::floor(std::min(a, b) - reach)));
        x1 = std::min(x1, whole(std::ceil(std::max(a, b) + reach)));
    }

    uint8_t coverage(float x, float y) const {
        const float px = x - stroke_.x0, py = y - stroke_.y0;
        const float t = std::clamp((px * dx_ + py * dy_) * inverse_, 0.f, 1.f);
        const float distance = std::hypot(px - t * dx_, py - t * dy_);
        const float inside = std::clamp(stroke_.radius + 0.5f - distance, 0.f, 1.f);
        return static_cast<uint8_t>(inside * 255 + 0.5f);
    }

private:
    const Stroke& stroke_;
    float dx_, dy_, inverse_, length_;
};

}  // namespace

void fill(Canvas& canvas, const Rect& rect, Rgba color) {
    canvas.cover(rect, color, [](int, int x0, int x1, uint8_t* coverage) {
        std::memset(coverage, 255, static_cast<size_t>(x1 - x0));
    });
}

std::array<Rect, 4> sides(const Outline& outline) {
    const Rect& r = outline.rect;
    const int line = std::min({outline.line, (r.w + 1) / 2, (r.h + 1) / 2});
    const int between = r.h - 2 * line;
    return {{{r.x, r.y, r.w, line},
             {r.x, std::max(r.bottom() - line, r.y + line), r.w, std::min(line, r.h - line)},
             {r.x, r.y + line, line, between},
             {std::max(r.right() - line, r.x + line), r.y + line, std::min(line, r.w - line),
              between}}};
}

// In parts that end between samples of 4:2:0, so that each takes its color at once.
void draw(Canvas& canvas, const Outline& outline) {
    const Rect& r = outline.rect;
    const int line = outline.line;
    const auto row = [&](int y, int x0, int x1, uint8_t* coverage) {
        const bool whole = y < r.y + line || y >= r.bottom() - line;
        std::memset(coverage, whole ? 255 : 0, static_cast<size_t>(x1 - x0));
        if (whole) return;
        for (int x = x0; x < std::min(x1, r.x + line); ++x) coverage[x - x0] = 255;
        for (int x = std::max(x0, r.right() - line); x < x1; ++x) coverage[x - x0] = 255;
    };
    const auto part = [&](int x0, int y0, int x1, int y1) {
        canvas.cover({x0, y0, x1 - x0, y1 - y0}, outline.color, row);
    };
    const int left = (r.x + line + 1) & ~1, right = (r.right() - line) & ~1;
    const int top = (r.y + line + 1) & ~1, bottom = (r.bottom() - line) & ~1;
    if (left >= right || top >= bottom) return part(r.x, r.y, r.right(), r.bottom());
    part(r.x, r.y, r.right(), top);
    part(r.x, top, left, bottom);
    part(right, top, r.right(), bottom);
    part(r.x, bottom, r.right(), r.bottom());
}

Rect bounds(const Stroke& s) {
    const float reach = s.radius + 1;
    const int x0 = whole(std::floor(std::min(s.x0, s.x1) - reach));
    const int y0 = whole(std::floor(std::min(s.y0, s.y1) - reach));
    const int x1 = whole(std::ceil(std::max(s.x0, s.x1) + reach));
    const int y1 = whole(std::ceil(std::max(s.y0, s.y1) + reach));
    return {x0, y0, x1 - x0, y1 - y0};
}

void draw(Canvas& canvas, const Stroke& stroke) {
    // In bands, so that a slanting line does not visit its whole bounding box; they begin at
    // multiples of 2, so that no sample of 4:2:0 is in two.
    constexpr int band = 16;
    const Capsule capsule(stroke);
    const Rect all = intersection(bounds(stroke), {0, 0, canvas.width(), canvas.height()});
    for (int top = all.y / band * band; top < all.bottom(); top += band) {
        int from = all.x, to = all.right();
        capsule.narrow(static_cast<float>(top), static_cast<float>(top + band), from, to);
        const Rect part = intersection(all, {from, top, to - from, band});
        canvas.cover(part, stroke.color, [&](int y, int x0, int x1, uint8_t* coverage) {
            for (int x = x0; x < x1; ++x) {
                coverage[x - x0] =
                    capsule.coverage(static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f);
            }
        });
    }
}

void Scene::clear() {
    for (const MaskItem& item : blurred)
        if (item.pixels) gst_buffer_unref(item.pixels);
    blurred.clear();
    clear_drawn();
    colors.clear();
}

void Scene::take_blurred(Scene& from) {
    clear();
    blurred.swap(from.blurred);
    colors.swap(from.colors);
    from.clear_drawn();
}

void Scene::clear_drawn() {
    for (const MaskItem& mask : masks) gst_buffer_unref(mask.pixels);
    masks.clear();
    outlines.clear();
    strokes.clear();
    labels.clear();
    chars.clear();
}

void Scene::rescale(double x, double y) {
    clear_drawn();
    // Outwards: no pixel of what was covered is left.
    const auto scale = [](int& origin, int& length, double by) {
        constexpr double farthest = 1 << 29;
        const double begin = std::clamp(std::floor(origin * by), -farthest, farthest);
        const double end = std::clamp(std::ceil((double(origin) + length) * by), begin, farthest);
        origin = int(begin), length = int(end - begin);
    };
    for (MaskItem& item : blurred) {
        scale(item.rect.x, item.rect.w, x);
        scale(item.rect.y, item.rect.h, y);
    }
}

int label_padding(int line_height) {
    return std::max(2, line_height / 5);
}

void draw_label(Canvas& canvas, Text& text, const Rect& plate, Rgba color, std::string_view line) {
    fill(canvas, plate, color);
    const int left = plate.x + label_padding(text.line_height());
    const int top = plate.y + (plate.h - text.line_height()) / 2;
    const Rgba ink = text_color(color);
    // All pieces in one pass: they stand side by side.
    constexpr size_t most = 128;
    std::array<std::pair<int, const Text::Piece*>, most> pieces;
    size_t count = 0;
    int width = 0;
    text.lay_out(line, [&](int x, const Text::Piece& piece) {
        if (count < most) pieces[count++] = {left + x, &piece};
        width = x + piece.width;
    });
    const Rect place = {left, top, width, text.line_height()};
    canvas.cover(place, ink, [&](int y, int x0, int x1, uint8_t* coverage) {
        std::memset(coverage, 0, static_cast<size_t>(x1 - x0));
        for (size_t i = 0; i < count; ++i) {
            const auto& [x, piece] = pieces[i];
            const int from = std::max(x, x0), to = std::min(x + piece->width, x1);
            if (from >= to || y - top >= piece->height) continue;
            const size_t row = static_cast<size_t>(y - top) * static_cast<size_t>(piece->width);
            std::memcpy(coverage + (from - x0),
                        piece->coverage.data() + row + static_cast<size_t>(from - x),
                        static_cast<size_t>(to - from));
        }
    });
}

void Painter::draw(Canvas& canvas, Text& text, const Scene& scene) {
    for (const MaskItem& item : scene.blurred) {
        std::optional<MaskPixels> mask;
        if (item.pixels) mask.emplace(item.pixels);
        masks_.blur(canvas, mask ? &*mask : nullptr, item.rect, scene.colors_of(item),
                    item.is_there);
    }
    for (const MaskItem& mask : std::views::reverse(scene.masks)) {
        masks_.draw(canvas, MaskPixels(mask.pixels), mask.rect, scene.colors_of(mask));
    }
    for (const Outline& outline : std::views::reverse(scene.outlines))
        overlay::draw(canvas, outline);
    for (const Stroke& stroke : scene.strokes) overlay::draw(canvas, stroke);
    for (const LabelItem& label : std::views::reverse(scene.labels)) {
        draw_label(canvas, text, label.plate, label.color, scene.text(label));
    }
}

}  // namespace vartml::gst::overlay
