// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/preprocess_plan.h"

#include <algorithm>
#include <cmath>

namespace vartml {
namespace {

// First and last pixel that the axis touches. A region that ends within a millionth of a pixel edge
// ends there.
struct Range {
    uint32_t first, last;
};
Range touched(const Axis& a) {
    constexpr double edge = 1e-6;
    const double first = std::floor(a.first + edge), end = std::ceil(a.first + a.length - edge);
    const double most = a.frame - 1.0;
    const double low = std::clamp(first, 0.0, most);
    return {static_cast<uint32_t>(low), static_cast<uint32_t>(std::clamp(end - 1, low, most))};
}

uint32_t round_size(double size, uint32_t most) {
    return std::clamp(static_cast<uint32_t>(std::lround(size)), 1u, most);
}

void letterbox(Geometry& g, double pixel_aspect, bool top_left) {
    const double width = g.x.length * pixel_aspect, height = g.y.length;  // in display pixels
    const double gain = std::min(g.x.model / width, g.y.model / height);
    g.x.scaled = round_size(width * gain, g.x.model);
    g.y.scaled = round_size(height * gain, g.y.model);
    if (top_left) return;
    g.x.offset = (g.x.model - g.x.scaled) / 2;
    g.y.offset = (g.y.model - g.y.scaled) / 2;
}

void crop(Geometry& g, double pixel_aspect, double fraction) {
    const double width = g.x.length * pixel_aspect, height = g.y.length;
    const double gain = std::max(g.x.model / width, g.y.model / height);
    const double part_x = g.x.model / gain * fraction / pixel_aspect;
    const double part_y = g.y.model / gain * fraction;
    g.x.first += (g.x.length - part_x) / 2;
    g.y.first += (g.y.length - part_y) / 2;
    g.x.length = part_x;
    g.y.length = part_y;
}

}  // namespace

Affine Geometry::to_frame() const {
    return {.a = x.ratio(),
            .b = 0,
            .c = x.first - x.offset * x.ratio(),
            .d = 0,
            .e = y.ratio(),
            .f = y.first - y.offset * y.ratio()};
}

Geometry plan_geometry(const PictureInfo& picture, const Region& region, uint32_t model_width,
                       uint32_t model_height, const PreprocessOptions& options) {
    Geometry g;
    g.x = {region.x, region.width, picture.width, model_width, model_width, 0};
    g.y = {region.y, region.height, picture.height, model_height, model_height, 0};
    switch (options.resize) {
        case ResizeMode::stretch:
            break;
        case ResizeMode::letterbox:
            letterbox(g, picture.pixel_aspect_ratio, false);
            break;
        case ResizeMode::letterbox_top_left:
            letterbox(g, picture.pixel_aspect_ratio, true);
            break;
        case ResizeMode::crop:
            crop(g, picture.pixel_aspect_ratio, options.crop_fraction);
            break;
    }
    return g;
}

std::vector<Tap> bilinear_taps(const Axis& axis) {
    const Range range = touched(axis);
    std::vector<Tap> taps(axis.scaled);
    for (uint32_t i = 0; i < axis.scaled; ++i) {
        const double at =
            std::clamp(axis.first + (i + 0.5) * axis.ratio() - 0.5,
                       static_cast<double>(range.first), static_cast<double>(range.last));
        const double whole = std::floor(at);
        const auto weight = static_cast<int32_t>(std::lround((at - whole) * 32768));
        taps[i].first = static_cast<uint32_t>(whole) + (weight == 32768 ? 1 : 0);
        taps[i].weight = static_cast<int16_t>(weight == 32768 ? 0 : weight);
    }
    return taps;
}

std::vector<Tap> nearest_taps(const Axis& axis) {
    const Range range = touched(axis);
    std::vector<Tap> taps(axis.scaled);
    for (uint32_t i = 0; i < axis.scaled; ++i) {
        const double at = std::floor(axis.first + (i + 0.5) * axis.ratio());
        taps[i].first = static_cast<uint32_t>(
            std::clamp(at, static_cast<double>(range.first), static_cast<double>(range.last)));
    }
    return taps;
}

AreaTaps area_taps(const Axis& axis) {
    const Range range = touched(axis);
    AreaTaps taps;
    for (uint32_t i = 0; i < axis.scaled; ++i) {
        const double begin = axis.first + i * axis.ratio(),
                     end = axis.first + (i + 1) * axis.ratio();
        const auto first =
            std::clamp(static_cast<uint32_t>(std::max(begin, 0.0)), range.first, range.last);
        kernels::Span span{first, 0, static_cast<uint32_t>(taps.weights.size())};
        double sum = 0;
        std::vector<double> parts;
        for (uint32_t p = first; p <= range.last && (parts.empty() || p < end); ++p) {
            const double covered = std::min<double>(p + 1.0, end) - std::max<double>(p, begin);
            if (covered <= 1e-9 && !parts.empty()) break;
            parts.push_back(std::max(covered, 1e-9));
            sum += parts.back();
        }
        for (const double part : parts) taps.weights.push_back(static_cast<float>(part / sum));
        span.count = static_cast<uint32_t>(parts.size());
        taps.spans.push_back(span);
    }
    return taps;
}

namespace {

using kernels::RowFormat;
using kernels::RowKind;
using F = PixelFormat;

// In the order of PixelFormat. Planes as in GStreamer's documentation of the raw video formats.
constexpr PixelLayout table[] = {
    {F::NV12, "NV12", RowKind::nv_half, 2, 1, "UV"},
    {F::NV21, "NV21", RowKind::nv_half, 2, 1, "VU"},
    {F::NV16, "NV16", RowKind::nv_half, 2, 0, "UV"},
    {F::NV24, "NV24", RowKind::nv_full, 2, 0, "UV"},
    {F::I420, "I420", RowKind::planar_half, 3, 1, "UV"},
    {F::YV12, "YV12", RowKind::planar_half, 3, 1, "VU"},
    {F::Y42B, "Y42B", RowKind::planar_half, 3, 0, "UV"},
    {F::P010_10LE, "P010_10LE", RowKind::nv_half_10, 2, 1, "UV"},
    {F::I420_10LE, "I420_10LE", RowKind::planar_half_10, 3, 1, "UV"},
    {F::YUY2, "YUY2", RowKind::yuyv, 1, 0, "UV"},
    {F::UYVY, "UYVY", RowKind::uyvy, 1, 0, "UV"},
    {F::RGB, "RGB", RowKind::rgb3, 1, 0, "RGB"},
    {F::BGR, "BGR", RowKind::rgb3, 1, 0, "BGR"},
    {F::RGBA, "RGBA", RowKind::rgb4, 1, 0, "RGB-"},
    {F::BGRA, "BGRA", RowKind::rgb4, 1, 0, "BGR-"},
    {F::RGBx, "RGBx", RowKind::rgb4, 1, 0, "RGB-"},
    {F::BGRx, "BGRx", RowKind::rgb4, 1, 0, "BGR-"},
    {F::xRGB, "xRGB", RowKind::rgb4, 1, 0, "-RGB"},
    {F::xBGR, "xBGR", RowKind::rgb4, 1, 0, "-BGR"},
    {F::RGBP, "RGBP", RowKind::rgb_planar, 3, 0, "RGB"},
    {F::BGRP, "BGRP", RowKind::rgb_planar, 3, 0, "BGR"},
    {F::GRAY8, "GRAY8", RowKind::grey, 1, 0, ""},
};
static_assert(std::size(table) == static_cast<size_t>(F::GRAY8));

int16_t fixed(double factor) {
    return static_cast<int16_t>(std::lround(factor * 32768));
}

// given: ITU-R BT.601, BT.709 and BT.2020, the weights of red and blue in luma.
struct LumaWeights {
    double red, blue;
};
constexpr LumaWeights luma_weights[] = {{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}};

void set_yuv(RowFormat& f, const PictureInfo& picture, bool first_is_u, bool bgr) {
    const auto [red, blue] = luma_weights[static_cast<size_t>(picture.matrix)];
    const double green = 1 - red - blue;
    const bool limited = picture.range == ColorRange::limited;
    // Full-range 10 bits go to 1023, not to 4 * 255.
    const double full = is_10_bit(f.kind) ? 4 * 255 / 1023.0 : 1.0;
    const double luma = limited ? 255 / 219.0 : full, chroma = limited ? 255 / 224.0 : full;
    f.y_offset = limited ? 16 * 128 : 0;
    // y' is 128 times and c' 256 times the sample, a colour is 64 times its value.
    f.y_factor = fixed(luma / 2);
    const int16_t u_blue = fixed(2 * (1 - blue) * chroma / 4);
    const int16_t v_red = fixed(2 * (1 - red) * chroma / 4);
    const int16_t u_green = fixed(-2 * blue * (1 - blue) / green * chroma / 4);
    const int16_t v_green = fixed(-2 * red * (1 - red) / green * chroma / 4);
    f.first_factor = first_is_u ? u_blue : v_red;
    f.second_factor = first_is_u ? v_red : u_blue;
    f.green_first_factor = first_is_u ? u_green : v_green;
    f.green_second_factor = first_is_u ? v_green : u_green;
    const uint8_t red_plane = bgr ? 2 : 0, blue_plane = bgr ? 0 : 2;
    f.planes = {first_is_u ? blue_plane : red_plane, 1, first_is_u ? red_plane : blue_plane, 3};
}

void set_rgb(RowFormat& f, std::string_view order, bool bgr) {
    for (size_t i = 0; i < order.size(); ++i) {
        const size_t colour = std::string_view("RGB").find(order[i]);  // npos for the byte to drop
        if (colour > 2) {
            f.planes[i] = 3;
            continue;
        }
        // ours: grey of an RGB source is the luma of BT.601, as in most picture libraries; the
        // weights sum to 32768.
        constexpr int16_t weights[] = {9798, 19235, 3735};
        f.planes[i] = static_cast<uint8_t>(bgr ? 2 - colour : colour);
        f.luma_weights[i] = weights[colour];
    }
}

}  // namespace

const PixelLayout* find_pixel_layout(PixelFormat format) {
    const auto i = static_cast<size_t>(format);
    return i == 0 || i > std::size(table) ? nullptr : &table[i - 1];
}

std::string_view to_string(PixelFormat format) {
    const PixelLayout* layout = find_pixel_layout(format);
    return layout != nullptr ? layout->name : "unknown";
}

PixelFormat parse_pixel_format(std::string_view text) {
    for (const PixelLayout& layout : table)
        if (layout.name == text) return layout.format;
    return PixelFormat::unknown;
}

unsigned num_planes(PixelFormat format) {
    const PixelLayout* layout = find_pixel_layout(format);
    return layout != nullptr ? layout->num_planes : 0;
}

RowFormat row_format(const PictureInfo& picture, ChannelOrder channels) {
    const PixelLayout& layout = *find_pixel_layout(picture.format);
    RowFormat f;
    f.kind = layout.kind;
    f.luma_only = channels == ChannelOrder::gray && layout.kind != RowKind::grey;
    const bool bgr = channels == ChannelOrder::bgr;
    if (is_yuv(layout.kind))
        set_yuv(f, picture, layout.order == "UV", bgr);
    else
        set_rgb(f, layout.order, bgr);
    return f;
}

}  // namespace vartml
