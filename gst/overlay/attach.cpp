// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/attach.h"

#include <cmath>
#include <cstring>
#include <ranges>

#include "gst/overlay/scene.h"

namespace vartml::gst::overlay {
namespace {

constexpr int color_side = 8;  // pixels of a bitmap of one color: scalers want a few
constexpr int tile_side = 32;
// ours: larger text is a bitmap of this size that is enlarged, so that labels of 4K stay small
constexpr int most_text = 32;
constexpr size_t most_labels = 256;
constexpr uint64_t old_frames = 100;

uint32_t number_of(Rgba c) {
    return static_cast<uint32_t>(c.a) << 24 | static_cast<uint32_t>(c.r) << 16 |
           static_cast<uint32_t>(c.g) << 8 | c.b;
}

std::array<uint8_t, 4> bgra(Rgba c) {
    return {c.b, c.g, c.r, c.a};
}

// Whether a stroke may touch a tile: its centre is near the line.
bool touches(const Stroke& s, int column, int row) {
    const float cx = (static_cast<float>(column) + 0.5f) * tile_side;
    const float cy = (static_cast<float>(row) + 0.5f) * tile_side;
    const float dx = s.x1 - s.x0, dy = s.y1 - s.y0, square = dx * dx + dy * dy;
    const float t =
        square > 0 ? std::clamp(((cx - s.x0) * dx + (cy - s.y0) * dy) / square, 0.f, 1.f) : 0;
    const float reach = s.radius + 1 + tile_side * 0.7072f;
    return std::hypot(cx - s.x0 - t * dx, cy - s.y0 - t * dy) <= reach;
}

}  // namespace

void Attacher::clear() {
    for (const auto& [key, pixels] : colors_) gst_buffer_unref(pixels);
    for (const auto& [key, bitmap] : labels_) gst_buffer_unref(bitmap.pixels);
    colors_.clear();
    labels_.clear();
}

void Attacher::set_size(int width, int height, int text_size) {
    width_ = width;
    height_ = height;
    const auto tiles = [](int length) {
        return static_cast<size_t>((length + tile_side - 1) / tile_side);
    };
    tile_index_.assign(tiles(width) * tiles(height), -1);
    if (text_size == text_size_) return;
    clear();
    text_size_ = text_size;
    text_.set_size(std::min(text_size, most_text));
    label_scale_ = std::min(1., static_cast<double>(most_text) / text_size);
}

void Attacher::end_frame() {
    text_.end_frame();
    ++frame_;
    if (labels_.size() <= most_labels || frame_ % old_frames) return;
    std::erase_if(labels_, [this](const auto& entry) {
        if (entry.second.last_use + old_frames >= frame_) return false;
        gst_buffer_unref(entry.second.pixels);
        return true;
    });
}

GstBuffer* Attacher::make_bitmap(int width, int height) {
    const gsize size = gsize(width) * static_cast<gsize>(height) * 4;
    GstBuffer* pixels = gst_buffer_new_allocate(nullptr, size, nullptr);
    gst_buffer_memset(pixels, 0, 0, size);
    gst_buffer_add_video_meta(pixels, GST_VIDEO_FRAME_FLAG_NONE,
                              GST_VIDEO_OVERLAY_COMPOSITION_FORMAT_RGB, static_cast<guint>(width),
                              static_cast<guint>(height));
    bytes_made_ += size;
    return pixels;
}

// What is enlarged has straight alpha: GStreamer's own blending forgets the flag of the other kind
// when it scales. What is drawn on a bitmap has premultiplied alpha.
void Attacher::add_rectangle(GstBuffer* pixels, const Rect& rect, bool premultiplied) {
    GstVideoOverlayRectangle* rectangle = gst_video_overlay_rectangle_new_raw(
        pixels, rect.x, rect.y, static_cast<guint>(rect.w), static_cast<guint>(rect.h),
        premultiplied ? GST_VIDEO_OVERLAY_FORMAT_FLAG_PREMULTIPLIED_ALPHA
                      : GST_VIDEO_OVERLAY_FORMAT_FLAG_NONE);
    gst_video_overlay_composition_add_rectangle(composition_, rectangle);
    gst_video_overlay_rectangle_unref(rectangle);
}

void Attacher::add_fill(const Rect& rect, Rgba color) {
    const Rect inside = intersection(rect, {0, 0, width_, height_});
    if (inside.empty() || color.a == 0) return;
    const auto [entry, is_new] = colors_.try_emplace(number_of(color), nullptr);
    if (is_new) {
        const auto pixel = bgra(color);
        entry->second = make_bitmap(color_side, color_side);
        for (gsize i = 0; i < color_side * color_side; ++i) {
            gst_buffer_fill(entry->second, 4 * i, pixel.data(), 4);
        }
    }
    add_rectangle(entry->second, inside, false);
}

void Attacher::add_mask(const MaskItem& item, std::span<const Rgba> colors) {
    const MaskPixels mask(item.pixels);
    if (!mask.valid() || intersection(item.rect, {0, 0, width_, height_}).empty()) {
        return;
    }
    // Beside a region, where scaling mixes them, what is not drawn has its color.
    const auto first = std::ranges::find_if(colors, [](Rgba c) { return c.a > 0; });
    if (first == colors.end()) return;
    const Rgba clear = with_opacity(*first, 0);
    // Downstream may scale all of it: a rectangle from nowhere must not cost gigabytes.
    constexpr int64_t most_pixels = int64_t{1} << 26;
    if (int64_t{item.rect.w} * item.rect.h > most_pixels) return;
    GstBuffer* pixels = make_bitmap(mask.width(), mask.height());
    GstMapInfo map;
    gst_buffer_map(pixels, &map, GST_MAP_WRITE);
    uint8_t* to = map.data;
    for (int y = 0; y < mask.height(); ++y) {
        for (int x = 0; x < mask.width(); ++x, to += 4) {
            const uint16_t region = mask.at(x, y);
            const bool drawn = region < colors.size() && colors[region].a;
            std::memcpy(to, bgra(drawn ? colors[region] : clear).data(), 4);
        }
    }
    gst_buffer_unmap(pixels, &map);
    add_rectangle(pixels, item.rect, false);
    gst_buffer_unref(pixels);
}

void Attacher::paint(GstBuffer* pixels, const LabelItem& label, std::string_view line) {
    const GstVideoMeta* meta = gst_buffer_get_video_meta(pixels);
    const auto width = static_cast<int>(meta->width), height = static_cast<int>(meta->height);
    GstMapInfo map;
    gst_buffer_map(pixels, &map, GST_MAP_READWRITE);
    canvas_.set_bitmap(map.data, width, height, 4 * width);
    draw_label(canvas_, text_, {0, 0, width, height}, label.color, line);
    gst_buffer_unmap(pixels, &map);
}

void Attacher::add_label(const LabelItem& label, std::string_view line) {
    const uint32_t marks[] = {number_of(label.color), static_cast<uint32_t>(label.plate.w)};
    key_.assign(reinterpret_cast<const char*>(marks), sizeof marks);
    key_ += line;
    auto found = labels_.find(key_);
    if (found == labels_.end()) {
        const auto scaled = [&](int length) {
            return static_cast<int>(std::ceil(length * label_scale_));
        };
        found = labels_.emplace(key_, Bitmap{}).first;
        found->second.pixels = make_bitmap(scaled(label.plate.w), scaled(label.plate.h));
        paint(found->second.pixels, label, line);
    }
    found->second.last_use = frame_;
    add_rectangle(found->second.pixels, label.plate, true);
}

Attacher::Tile& Attacher::tile_at(int column, int row) {
    const int columns = (width_ + tile_side - 1) / tile_side;
    int& index = tile_index_[static_cast<size_t>(row * columns + column)];
    if (index < 0) {
        index = static_cast<int>(tiles_.size());
        const int x = column * tile_side, y = row * tile_side;
        Tile& tile = tiles_.emplace_back(Tile{make_bitmap(tile_side, tile_side), {}, x, y});
        gst_buffer_map(tile.pixels, &tile.map, GST_MAP_READWRITE);
    }
    return tiles_[static_cast<size_t>(index)];
}

void Attacher::add_strokes(std::span<const Stroke> strokes) {
    for (const Stroke& stroke : strokes) {
        const Rect r = intersection(bounds(stroke), {0, 0, width_, height_});
        if (r.empty()) continue;
        for (int row = r.y / tile_side; row * tile_side < r.bottom(); ++row) {
            for (int column = r.x / tile_side; column * tile_side < r.right(); ++column) {
                if (!touches(stroke, column, row)) continue;
                Tile& tile = tile_at(column, row);
                const auto x = static_cast<float>(tile.x), y = static_cast<float>(tile.y);
                canvas_.set_bitmap(tile.map.data, tile_side, tile_side, 4 * tile_side);
                overlay::draw(canvas_, Stroke{stroke.x0 - x, stroke.y0 - y, stroke.x1 - x,
                                              stroke.y1 - y, stroke.radius, stroke.color});
            }
        }
    }
    for (Tile& tile : tiles_) {
        gst_buffer_unmap(tile.pixels, &tile.map);
        add_rectangle(tile.pixels, {tile.x, tile.y, tile_side, tile_side}, true);
        gst_buffer_unref(tile.pixels);
    }
    if (!tiles_.empty()) std::ranges::fill(tile_index_, -1);
    tiles_.clear();
}

void Attacher::add(const Scene& scene, GstVideoOverlayComposition* composition) {
    composition_ = composition;
    for (const MaskItem& mask : std::views::reverse(scene.masks)) {
        add_mask(mask, scene.colors_of(mask));
    }
    for (const Outline& outline : std::views::reverse(scene.outlines)) {
        for (const Rect& side : sides(outline)) add_fill(side, outline.color);
    }
    add_strokes(scene.strokes);
    for (const LabelItem& label : std::views::reverse(scene.labels)) {
        add_label(label, scene.text(label));
    }
}

GstVideoOverlayComposition* begin_composition([[maybe_unused]] GstBuffer* buffer) {
#if !GST_CHECK_VERSION(1, 28, 0)
    if (const auto* there = gst_buffer_get_video_overlay_composition_meta(buffer)) {
        return gst_video_overlay_composition_copy(there->overlay);
    }
#endif
    return gst_video_overlay_composition_new(nullptr);
}

void attach(GstBuffer* buffer, GstVideoOverlayComposition* composition) {
#if !GST_CHECK_VERSION(1, 28, 0)
    if (auto* there = gst_buffer_get_video_overlay_composition_meta(buffer)) {
        gst_video_overlay_composition_unref(there->overlay);
        there->overlay = composition;
        return;
    }
#endif
    gst_buffer_add_video_overlay_composition_meta(buffer, composition);
    gst_video_overlay_composition_unref(composition);
}

}  // namespace vartml::gst::overlay
