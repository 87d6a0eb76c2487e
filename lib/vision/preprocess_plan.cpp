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

}  // namespace vartml
