// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/made_input.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/graph/ops.h"

namespace vartml::verify {
namespace {

constexpr int num_discs = 12;
constexpr double noise = 0.04;

using Engine = std::mt19937;

double unit(Engine& engine) {
    return static_cast<double>(engine() >> 8) * 0x1p-24;
}

struct Disc {
    double x, y, radius, colour[4];
};

// Rows of pixels with `channels` values from 0 to 255.
std::vector<double> scene(size_t width, size_t height, size_t channels) {
    Engine engine(1);
    Disc discs[num_discs];
    for (Disc& d : discs) {
        d.x = unit(engine);
        d.y = unit(engine);
        d.radius = 0.04 + 0.2 * unit(engine);
        for (double& c : d.colour) c = unit(engine);
    }
    std::vector<double> values(width * height * channels);
    size_t at = 0;
    for (size_t row = 0; row < height; ++row)
        for (size_t column = 0; column < width; ++column) {
            const double x = (static_cast<double>(column) + 0.5) / static_cast<double>(width);
            const double y = (static_cast<double>(row) + 0.5) / static_cast<double>(height);
            const Disc* on_top = nullptr;
            for (const Disc& d : discs)
                if (std::hypot(x - d.x, y - d.y) < d.radius) on_top = &d;
            const double ground[4] = {0.2 + 0.5 * x, 0.7 - 0.4 * y, 0.3 + 0.4 * x * y, 1};
            for (size_t c = 0; c < channels; ++c) {
                const double colour = on_top ? on_top->colour[c % 4] : ground[c % 4];
                values[at++] = 255 * std::clamp(colour + noise * (unit(engine) - 0.5), 0.0, 1.0);
            }
        }
    return values;
}

// The same of a picture, stretched: the mean of the pixels that each covers, at least one.
std::vector<double> stretched(const PictureData& picture, size_t width, size_t height,
                              size_t channels) {
    std::vector<double> values(width * height * channels);
    const auto span = [](size_t i, size_t of, size_t from) {
        const size_t begin = i * from / of;
        return std::pair{begin, std::max(begin + 1, (i + 1) * from / of)};
    };
    size_t at = 0;
    for (size_t row = 0; row < height; ++row)
        for (size_t column = 0; column < width; ++column) {
            const auto [top, bottom] = span(row, height, picture.height);
            const auto [left, right] = span(column, width, picture.width);
            double sums[3] = {};
            for (size_t y = top; y < bottom; ++y)
                for (size_t x = left; x < right; ++x)
                    for (size_t c = 0; c < 3; ++c)
                        sums[c] += picture.rgb[(y * picture.width + x) * 3 + c];
            const auto count = static_cast<double>((bottom - top) * (right - left));
            for (double& sum : sums) sum /= count;
            const double grey = 0.299 * sums[0] + 0.587 * sums[1] + 0.114 * sums[2];
            for (size_t c = 0; c < channels; ++c)
                values[at++] = channels == 1 ? grey : c < 3 ? sums[c] : 255;
        }
    return values;
}

uint16_t bf16_of(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Of a magnitude below 65504, to the nearest; what is too small for it becomes 0.
uint16_t fp16_of(float value) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const float magnitude = std::abs(value);
    if (magnitude < 0x1p-14f) return static_cast<uint16_t>(sign | std::lround(magnitude * 0x1p24f));
    int exponent = 0;
    const float fraction = std::frexp(magnitude, &exponent);  // 0.5 <= fraction < 1
    const auto mantissa = static_cast<int>(std::lround(fraction * 2048)) - 1024;
    return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + mantissa));
}

template <typename T>
void put(std::vector<std::byte>& bytes, size_t index, T value) {
    std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
}

void put_number(TensorData& data, size_t index, double value) {
    switch (data.type) {
        case DataType::float32:
            return put(data.bytes, index, static_cast<float>(value));
        case DataType::float64:
            return put(data.bytes, index, value);
        case DataType::fp16:
            return put(data.bytes, index, fp16_of(static_cast<float>(value)));
        case DataType::bf16:
            return put(data.bytes, index, bf16_of(static_cast<float>(value)));
        case DataType::int8:
        case DataType::uint8:
        case DataType::boolean:
            return put(data.bytes, index, static_cast<uint8_t>(std::lround(value)));
        case DataType::int16:
        case DataType::uint16:
            return put(data.bytes, index, static_cast<uint16_t>(std::lround(value)));
        case DataType::int32:
        case DataType::uint32:
            return put(data.bytes, index, static_cast<uint32_t>(std::lround(value)));
        case DataType::int64:
        case DataType::uint64:
            return put(data.bytes, index, static_cast<uint64_t>(std::lround(value)));
        default:
            return;
    }
}

bool is_channels(int64_t d) {
    return d == 1 || d == 3 || d == 4;
}
bool is_side(int64_t d) {
    return d < 0 || d >= 8;
}

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

void fill_picture(TensorData& data, const PictureAxes& axes, const InputMaker& maker) {
    const auto side = [&](size_t axis) { return static_cast<size_t>(data.shape[axis]); };
    const size_t width = side(axes.width), height = side(axes.height);
    const size_t channels = side(axes.channels), plane = width * height;
    const std::vector<double> values = maker.picture
                                           ? stretched(*maker.picture, width, height, channels)
                                           : scene(width, height, channels);
    const bool planar = axes.channels < axes.height;
    const size_t pictures =
        data.bytes.size() / size_bytes(data.type) / std::max<size_t>(1, values.size());
    for (size_t n = 0; n < pictures; ++n)
        for (size_t p = 0; p < plane; ++p)
            for (size_t c = 0; c < channels; ++c) {
                const size_t colour = maker.pixels.is_bgr && c < 3 && channels >= 3 ? 2 - c : c;
                double value = values[p * channels + colour];
                if (is_float(data.type)) {
                    const size_t k = std::min<size_t>(c, 2);
                    value = (value - maker.pixels.mean[k]) * maker.pixels.scale[k];
                } else if (data.type == DataType::int8) {
                    value /= 2;
                }
                put_number(data, n * values.size() + (planar ? c * plane + p : p * channels + c),
                           value);
            }
}

}  // namespace

PictureAxes picture_axes(const std::vector<int64_t>& shape) {
    const size_t rank = shape.size();
    if (rank == 4 && is_channels(shape[1]) && is_side(shape[2]) && is_side(shape[3]))
        return {2, 3, 1};
    if (rank == 4 && is_channels(shape[3]) && is_side(shape[1]) && is_side(shape[2]))
        return {1, 2, 3};
    if (rank == 4 && shape[1] < 0 && is_side(shape[2]) && is_side(shape[3])) return {2, 3, 1};
    return {};
}

bool is_size(const std::string& name, size_t count) {
    const std::string word = lower(name);
    return count <= 4 && (word.find("size") != word.npos || word.find("shape") != word.npos);
}

TensorData InputMaker::make(const std::string& name, DataType type,
                            const std::vector<int64_t>& shape) const {
    TensorData data{type, shape, {}};
    size_t count = 1;
    for (const int64_t d : shape) count *= static_cast<size_t>(std::max<int64_t>(d, 0));
    data.bytes.resize(count * size_bytes(type));
    if (const PictureAxes axes = picture_axes(shape); axes.height != 0) {
        fill_picture(data, axes, *this);
        return data;
    }
    const bool gets_side = is_size(name, count);
    const bool is_scale = count <= 4 && lower(name).find("scale") != std::string::npos;
    Engine engine(2);
    for (size_t i = 0; i < count; ++i) {
        const double u = unit(engine);
        const double number = is_positive ? u : 2 * u - 1;
        const double free = is_float(type) ? number : u < 0.5 ? 0 : 1;
        put_number(data, i, gets_side ? static_cast<double>(side) : is_scale ? 1 : free);
    }
    return data;
}

bool nudge(TensorData& data) {
    if (data.type != DataType::float32) return false;
    Engine engine(3);
    for (size_t at = 0; at + sizeof(float) <= data.bytes.size(); at += sizeof(float)) {
        float value;
        std::memcpy(&value, data.bytes.data() + at, sizeof value);
        value *= 1 + (engine() & 1 ? 1e-6f : -1e-6f);
        std::memcpy(data.bytes.data() + at, &value, sizeof value);
    }
    return true;
}

namespace {

using graph::Graph;
using graph::Node;
using graph::Trait;
using graph::ValueId;

// Pixels from 0 to 1 have means up to 1 and deviations of a quarter; from 0 to 255 means of 100 and
// deviations of 50.
constexpr double least_mean = 4, least_divisor = 10, most_factor = 0.1;

bool is_mover(const Node& node) {
    constexpr std::string_view others[] = {"Cast", "Concat", "Pad", "Resize"};
    return has_trait(node, Trait::reshapes | Trait::permutes | Trait::picks) ||
           std::ranges::find(others, node.kind) != std::end(others);
}

struct Magnitude {
    double least = HUGE_VAL, most = 0;
};

// Of the numbers of a constant; those of anything else are not known.
Magnitude magnitude_of(const Graph& graph, ValueId id) {
    if (id == graph::none) return {};
    const graph::Value& value = graph.value(id);
    Magnitude found;
    if (!value.constant || value.type.data_type != DataType::float32) return found;
    for (const float v : value.constant->as<float>()) {
        const double size = std::abs(v);
        found.least = std::min(found.least, size);
        found.most = std::max(found.most, size);
    }
    return found;
}

enum class Says { bytes, nothing, goes_on };

Says read(const Graph& graph, const Node& node, ValueId pixels) {
    const std::string_view base = node.kind;
    if (is_mover(node)) return Says::goes_on;
    if (base == "BatchNormalization" && node.inputs.size() > 3)
        return magnitude_of(graph, node.inputs[3]).most >= least_mean ? Says::bytes : Says::nothing;
    if (node.inputs.size() < 2) return Says::nothing;
    const bool is_left = node.inputs[0] == pixels;
    const Magnitude other = magnitude_of(graph, node.inputs[is_left ? 1 : 0]);
    if (other.least > other.most) return Says::nothing;
    if (base == "Sub" || base == "Add") {
        if (other.most == 0) return Says::goes_on;
        return other.most >= least_mean ? Says::bytes : Says::nothing;
    }
    if (other.least == 1 && other.most == 1 && (base == "Mul" || (base == "Div" && is_left)))
        return Says::goes_on;
    if (base == "Mul") return other.most <= most_factor ? Says::bytes : Says::nothing;
    if (base == "Div" && is_left) return other.least >= least_divisor ? Says::bytes : Says::nothing;
    return Says::nothing;
}

}  // namespace

bool takes_bytes(const Graph& graph, ValueId input) {
    const graph::Uses uses = graph::find_uses(graph);
    std::vector<ValueId> pixels = {input};
    for (size_t i = 0; i < pixels.size(); ++i)
        for (const int32_t user : uses.consumers[static_cast<size_t>(pixels[i])]) {
            const Node& node = graph.nodes[static_cast<size_t>(user)];
            const Says says = read(graph, node, pixels[i]);
            if (says == Says::bytes) return true;
            if (says == Says::nothing) continue;
            for (const ValueId out : node.outputs)
                if (out != graph::none && std::ranges::find(pixels, out) == pixels.end())
                    pixels.push_back(out);
        }
    return false;
}

}  // namespace vartml::verify
