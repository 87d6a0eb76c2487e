// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/canvas.h"

#include <array>
#include <cmath>
#include <cstring>

namespace vartml::gst::overlay {
namespace {

// ours: 20 hues and lightnesses far from each other, none so dark that it is lost on a shadow
constexpr std::array<Rgba, 20> palette = {{
    {0xff, 0x4d, 0x4d}, {0x3c, 0xb4, 0x4b}, {0xff, 0xe1, 0x19}, {0x4d, 0x8b, 0xff},
    {0xff, 0x8c, 0x1a}, {0xb6, 0x4f, 0xe0}, {0x46, 0xf0, 0xf0}, {0xf0, 0x50, 0xe6},
    {0xbf, 0xef, 0x45}, {0xfa, 0xa0, 0xb4}, {0x1a, 0xb0, 0xa0}, {0xc8, 0xa0, 0xff},
    {0xc4, 0x7a, 0x3a}, {0xff, 0xd8, 0xa0}, {0xe0, 0x30, 0x70}, {0x80, 0xff, 0xb0},
    {0xa8, 0xa8, 0x30}, {0x80, 0xc8, 0xff}, {0x8c, 0x78, 0xff}, {0xd8, 0xd8, 0xd8},
}};

// FNV-1a of 32 bits.
uint32_t hash(std::string_view text) {
    uint32_t value = 2166136261u;
    for (const char c : text) value = (value ^ static_cast<uint8_t>(c)) * 16777619u;
    return value;
}

}  // namespace

Rgba from_argb(uint32_t argb) {
    return {static_cast<uint8_t>(argb >> 16), static_cast<uint8_t>(argb >> 8),
            static_cast<uint8_t>(argb), static_cast<uint8_t>(argb >> 24)};
}

Rgba with_opacity(Rgba color, double opacity) {
    color.a = static_cast<uint8_t>(std::lround(color.a * opacity));
    return color;
}

Rgba palette_color(std::string_view label) {
    return palette[hash(label) % palette.size()];
}

// 7 and 20 have no common factor: 20 objects that came one after the other have 20 colors, and
// neighbours are not alike.
Rgba palette_color(uint64_t id) {
    return palette[id % palette.size() * 7 % palette.size()];
}

Rgba text_color(Rgba ground) {
    const int light = 299 * ground.r + 587 * ground.g + 114 * ground.b;
    return light > 140'000 ? Rgba{0, 0, 0} : Rgba{255, 255, 255};
}

namespace {

constexpr GstVideoFormat formats[] = {
    GST_VIDEO_FORMAT_NV12, GST_VIDEO_FORMAT_NV21,  GST_VIDEO_FORMAT_I420, GST_VIDEO_FORMAT_RGB,
    GST_VIDEO_FORMAT_BGR,  GST_VIDEO_FORMAT_RGBA,  GST_VIDEO_FORMAT_BGRA, GST_VIDEO_FORMAT_RGBx,
    GST_VIDEO_FORMAT_BGRx, GST_VIDEO_FORMAT_GRAY8,
};

// value + (to - value) * coverage / 255, rounded.
uint8_t toward(uint8_t value, uint8_t to, uint8_t coverage) {
    const auto sum = static_cast<uint16_t>(value * (255 - coverage) + to * coverage + 128);
    return static_cast<uint8_t>((sum + (sum >> 8)) >> 8);
}

// Eight at a time: most coverage is nothing or all.
template <int step>
void blend_samples(uint8_t* __restrict samples, const uint8_t* __restrict coverage, int n,
                   uint8_t to) {
    constexpr int block = 8;
    int i = 0;
    for (; i + block <= n; i += block, samples += block * step, coverage += block) {
        uint64_t eight;
        std::memcpy(&eight, coverage, sizeof eight);
        if (eight == 0) continue;
        if (eight == ~uint64_t{0}) {
            for (int k = 0; k < block; ++k) samples[k * step] = to;
            continue;
        }
        for (int k = 0; k < block; ++k) {
            samples[k * step] = toward(samples[k * step], to, coverage[k]);
        }
    }
    // Of upright lines: what is covered wholly is not read, for it is in no cache.
    for (int k = 0; k < n - i; ++k) {
        if (coverage[k] == 255) {
            samples[k * step] = to;
        } else if (coverage[k]) {
            samples[k * step] = toward(samples[k * step], to, coverage[k]);
        }
    }
}

void blend_row(uint8_t* samples, int step, const uint8_t* coverage, int n, uint8_t to) {
    switch (step) {
        case 1:
            return blend_samples<1>(samples, coverage, n, to);
        case 2:
            return blend_samples<2>(samples, coverage, n, to);
        case 3:
            return blend_samples<3>(samples, coverage, n, to);
        default:
            return blend_samples<4>(samples, coverage, n, to);
    }
}

}  // namespace

Rect intersection(const Rect& a, const Rect& b) {
    const int x0 = std::max(a.x, b.x), y0 = std::max(a.y, b.y);
    const int x1 = std::min(a.right(), b.right()), y1 = std::min(a.bottom(), b.bottom());
    return {x0, y0, std::max(x1 - x0, 0), std::max(y1 - y0, 0)};
}

std::span<const GstVideoFormat> drawable_formats() {
    return formats;
}

bool can_draw(GstVideoFormat format) {
    return std::ranges::find(formats, format) != std::end(formats);
}

void Canvas::set_size(int width, int height) {
    width_ = width;
    height_ = height;
    const auto padded = static_cast<size_t>(width) + 2;
    for (auto& row : rows_) row.resize(padded);
    zeros_.resize(padded);
    means_.resize(padded);
}

void Canvas::set_format(const GstVideoInfo& info) {
    set_size(GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info));
    num_components_ = GST_VIDEO_INFO_N_COMPONENTS(&info);
    from_rgb_ = {};
    from_rgb_[3][3] = 255;  // alpha
    if (GST_VIDEO_INFO_IS_RGB(&info)) {
        for (size_t i = 0; i < 3; ++i) from_rgb_[i][i] = 1;
        return;
    }
    gdouble kr = 0.299, kb = 0.114;  // BT.601, where the frame does not tell
    gst_video_color_matrix_get_Kr_Kb(info.colorimetry.matrix, &kr, &kb);
    gint offset[GST_VIDEO_MAX_COMPONENTS], scale[GST_VIDEO_MAX_COMPONENTS];
    gst_video_color_range_offsets(info.colorimetry.range, info.finfo, offset, scale);
    const double kg = 1 - kr - kb;
    const double rows[3][3] = {{kr, kg, kb},
                               {-kr / 2 / (1 - kb), -kg / 2 / (1 - kb), 0.5},
                               {0.5, -kg / 2 / (1 - kr), -kb / 2 / (1 - kr)}};
    for (size_t i = 0; i < 3; ++i) {
        for (size_t k = 0; k < 3; ++k) from_rgb_[i][k] = rows[i][k] * scale[i] / 255;
        from_rgb_[i][3] = offset[i];
    }
}

void Canvas::set_frame(const GstVideoFrame& frame) {
    for (unsigned i = 0; i < num_components_; ++i) {
        components_[i] = {GST_VIDEO_FRAME_COMP_DATA(&frame, i),
                          GST_VIDEO_FRAME_COMP_STRIDE(&frame, i),
                          GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, i),
                          GST_VIDEO_FORMAT_INFO_W_SUB(frame.info.finfo, i) == 1};
    }
}

void Canvas::set_bitmap(uint8_t* pixels, int width, int height, int stride_bytes) {
    set_size(width, height);
    num_components_ = 4;
    from_rgb_ = {};
    for (size_t i = 0; i < 3; ++i) {
        from_rgb_[i][i] = 1;
        components_[i] = {pixels + 2 - i, stride_bytes, 4, false};
    }
    from_rgb_[3][3] = 255;
    components_[3] = {pixels + 3, stride_bytes, 4, false};
}

Canvas::Ink Canvas::ink(Rgba color) const {
    Ink ink{};
    for (unsigned i = 0; i < num_components_; ++i) {
        const auto& row = from_rgb_[i];
        const double value = row[0] * color.r + row[1] * color.g + row[2] * color.b + row[3];
        ink[i] = static_cast<uint8_t>(std::lround(std::clamp(value, 0., 255.)));
    }
    return ink;
}

void Canvas::fade(uint8_t* coverage, int n, uint8_t alpha) {
    for (int i = 0; i < n; ++i) coverage[i] = toward(0, alpha, coverage[i]);
}

// `part` of the rectangle is a block.
void Canvas::pixelate(const Component& c, const Rect& rect, const Rect& part,
                      std::span<const uint8_t> covered) {
    const int size = c.half ? 2 : 1;
    const auto is_covered = [&](int x, int y) {
        if (covered.empty()) return true;
        for (int py = y; py < std::min(y + size, part.bottom()); ++py) {
            for (int px = x; px < std::min(x + size, part.right()); ++px) {
                if (covered[static_cast<size_t>(py - rect.y) * static_cast<size_t>(rect.w) +
                            static_cast<size_t>(px - rect.x)]) {
                    return true;
                }
            }
        }
        return false;
    };
    const auto each = [&](auto&& visit) {
        for (int y = part.y; y < part.bottom(); y += size) {
            uint8_t* const row = c.data + y / size * c.stride;
            for (int x = part.x; x < part.right(); x += size)
                if (is_covered(x, y)) visit(row[x / size * c.step]);
        }
    };
    uint64_t sum = 0, count = 0;
    each([&](uint8_t sample) { sum += sample, ++count; });
    if (!count) return;
    const auto mean = static_cast<uint8_t>((sum + count / 2) / count);
    each([&](uint8_t& sample) { sample = mean; });
}

void Canvas::pixelate(const Rect& rect, int block, std::span<const uint8_t> covered) {
    for (int y = rect.y; y < rect.bottom(); y += block) {
        for (int x = rect.x; x < rect.right(); x += block) {
            const Rect part = intersection(rect, {x, y, block, block});
            for (unsigned i = 0; i < num_components_; ++i)
                pixelate(components_[i], rect, part, covered);
        }
    }
}

const uint8_t* Canvas::mean(int x, int y, int n, const std::array<const uint8_t*, 2>& rows) {
    const uint8_t* const a = rows[0] ? rows[0] : zeros_.data();
    const uint8_t* const b = rows[1] ? rows[1] : zeros_.data();
    // The last sample of an odd width or height stands for fewer pixels.
    const int tall = y + 1 < height_ ? 2 : 1, whole = n / 2, shift = tall;  // of 4 pixels or 2
    uint8_t* __restrict const means = means_.data();
    for (int i = 0; i < whole; ++i) {
        const int sum = a[2 * i] + a[2 * i + 1] + b[2 * i] + b[2 * i + 1];
        means[i] = static_cast<uint8_t>((sum + tall) >> shift);
    }
    if (x + n == width_ && n % 2) {
        means_[whole] = static_cast<uint8_t>((a[n - 1] + b[n - 1] + tall / 2) / tall);
    }
    return means_.data();
}

void Canvas::blend(int x, int y, int n, const std::array<const uint8_t*, 2>& rows, const Ink& ink) {
    // Each row of an upright line is in another part of memory, which processors do not foresee.
    constexpr int few = 32, ahead = 24;
    const uint8_t* means = nullptr;
    for (unsigned i = 0; i < num_components_; ++i) {
        const Component& c = components_[i];
        if (n <= few) {
            const int shift = c.half ? 1 : 0;
            for (int k = 0; k < (c.half ? 1 : 2); ++k) {
                __builtin_prefetch(
                    c.data + (((y + ahead) >> shift) + k) * c.stride + (x >> shift) * c.step, 1);
            }
        }
        if (c.half) {
            if (!means) means = mean(x, y, n, rows);
            blend_row(c.data + y / 2 * c.stride + x / 2 * c.step, c.step, means, (n + 1) / 2,
                      ink[i]);
            continue;
        }
        for (int k = 0; k < 2; ++k) {
            if (!rows[k]) continue;
            blend_row(c.data + (y + k) * c.stride + x * c.step, c.step, rows[k], n, ink[i]);
        }
    }
}

}  // namespace vartml::gst::overlay
