// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/reference_preprocess.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace vartml::verify {
namespace {

using Colour = std::array<double, 3>;

// `length` source pixels from `first` become `scaled` model pixels from `offset`.
struct Side {
    double first = 0, length = 0;
    uint32_t offset = 0, scaled = 0;
    double step() const { return length / scaled; }
};

struct Sides {
    Side x, y;
};

Sides place(const PictureData& picture, const PictureShape& model,
            const PreprocessOptions& options) {
    const double width = picture.width, height = picture.height;
    Sides sides{{0, width, 0, model.width}, {0, height, 0, model.height}};
    const double by_width = model.width / width, by_height = model.height / height;
    if (options.resize == ResizeMode::letterbox ||
        options.resize == ResizeMode::letterbox_top_left) {
        const double gain = std::min(by_width, by_height);
        const auto scaled = [gain](double size, uint32_t most) {
            const auto rounded = static_cast<uint32_t>(std::lround(size * gain));
            return std::clamp(rounded, 1u, most);
        };
        sides.x.scaled = scaled(width, model.width);
        sides.y.scaled = scaled(height, model.height);
        if (options.resize == ResizeMode::letterbox) {
            sides.x.offset = (model.width - sides.x.scaled) / 2;
            sides.y.offset = (model.height - sides.y.scaled) / 2;
        }
    }
    if (options.resize == ResizeMode::crop) {
        const double gain = std::max(by_width, by_height) / options.crop_fraction;
        sides.x.length = model.width / gain;
        sides.y.length = model.height / gain;
        sides.x.first = (width - sides.x.length) / 2;
        sides.y.first = (height - sides.y.length) / 2;
    }
    return sides;
}

// Source pixels of one side and their weights, which sum to 1.
struct Weighted {
    std::vector<size_t> pixels;
    std::vector<double> weights;
};

Weighted sample(const Side& side, uint32_t i, uint32_t size, Interpolation interpolation) {
    // Pixels that the region touches; it ends on a pixel's edge where it nearly does.
    const double low = std::clamp(std::floor(side.first + 1e-6), 0.0, size - 1.0);
    const double high = std::clamp(std::ceil(side.first + side.length - 1e-6) - 1, low, size - 1.0);
    const auto pixel = [&](double at) { return static_cast<size_t>(std::clamp(at, low, high)); };
    const double begin = side.first + i * side.step(), end = side.first + (i + 1) * side.step();
    if (interpolation == Interpolation::nearest)
        return {{pixel(std::floor(side.first + (i + 0.5) * side.step()))}, {1}};
    if (interpolation == Interpolation::bilinear) {
        const double at = std::clamp((begin + end) / 2 - 0.5, low, high), whole = std::floor(at);
        return {{pixel(whole), pixel(whole + 1)}, {1 - (at - whole), at - whole}};
    }
    Weighted result;
    double sum = 0;
    for (double p = std::clamp(std::floor(begin), low, high); p <= high && p < end; ++p) {
        const double covered = std::min(p + 1, end) - std::max(p, begin);
        if (covered <= 1e-9) continue;
        result.pixels.push_back(pixel(p));
        result.weights.push_back(covered);
        sum += covered;
    }
    if (result.pixels.empty()) return {{pixel(begin)}, {1}};
    for (double& weight : result.weights) weight /= sum;
    return result;
}

Colour ordered(const Colour& rgb, ChannelOrder order, uint32_t channels) {
    if (order == ChannelOrder::gray || channels == 1) {
        const double luma = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
        return {luma, luma, luma};
    }
    return order == ChannelOrder::bgr ? Colour{rgb[2], rgb[1], rgb[0]} : rgb;
}

Colour blend(const PictureData& picture, const Weighted& column, const Weighted& row) {
    Colour sum{};
    for (size_t r = 0; r < row.pixels.size(); ++r)
        for (size_t c = 0; c < column.pixels.size(); ++c) {
            const size_t at = 3 * (row.pixels[r] * picture.width + column.pixels[c]);
            for (size_t k = 0; k < 3; ++k)
                sum[k] += row.weights[r] * column.weights[c] * picture.rgb[at + k];
        }
    return sum;
}

}  // namespace

PictureShape picture_shape(const TensorView& cpu) {
    const std::vector<uint32_t>& s = cpu.shape;
    PictureShape shape;
    if (cpu.layout == Layout::NCHW) shape = {s[3], s[2], s[1], false};
    if (cpu.layout == Layout::NHWC) shape = {s[2], s[1], s[3], true};
    if (cpu.layout == Layout::NHW) shape = {s[2], s[1], 1, false};
    const bool good = !s.empty() && s[0] == 1 && (shape.channels == 1 || shape.channels == 3);
    return good ? shape : PictureShape{};
}

ReferenceInput reference_preprocess(const PictureData& picture, const TensorView& cpu,
                                    const PreprocessOptions& options) {
    const PictureShape model = picture_shape(cpu);
    const Sides sides = place(picture, model, options);
    std::vector<Weighted> columns;
    for (uint32_t x = 0; x < sides.x.scaled; ++x)
        columns.push_back(sample(sides.x, x, picture.width, options.interpolation));
    std::vector<double> numbers(cpu.size);
    for (uint32_t y = 0; y < model.height; ++y) {
        const uint32_t v = y - sides.y.offset;
        const bool row_inside = y >= sides.y.offset && v < sides.y.scaled;
        const Weighted row =
            row_inside ? sample(sides.y, v, picture.height, options.interpolation) : Weighted{};
        for (uint32_t x = 0; x < model.width; ++x) {
            const uint32_t u = x - sides.x.offset;
            const bool inside = row_inside && x >= sides.x.offset && u < sides.x.scaled;
            const Colour colour =
                inside ? ordered(blend(picture, columns[u], row), options.channels, model.channels)
                       : Colour{options.pad[0], options.pad[1], options.pad[2]};
            for (uint32_t c = 0; c < model.channels; ++c) {
                const size_t at = model.channels_last
                                      ? (size_t{y} * model.width + x) * model.channels + c
                                      : (size_t{c} * model.height + y) * model.width + x;
                numbers[at] = (colour[c] - options.mean[c]) * options.scale[c];
            }
        }
    }
    const double right = sides.x.step(), down = sides.y.step();
    return {std::move(numbers),
            {.a = right,
             .c = sides.x.first - sides.x.offset * right,
             .e = down,
             .f = sides.y.first - sides.y.offset * down}};
}

}  // namespace vartml::verify
