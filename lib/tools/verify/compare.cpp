// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace vartml::verify {
namespace {

template <typename T>
std::vector<double> widen(const std::vector<std::byte>& bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return {values.begin(), values.end()};
}

double half(uint16_t h) {
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double sign = h >> 15 ? -1 : 1;
    if (exponent == 31) return fraction ? std::nan("") : sign * HUGE_VAL;
    return exponent ? sign * std::ldexp(1024 + fraction, exponent - 25)
                    : sign * std::ldexp(fraction, -24);
}

std::string number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

}  // namespace

std::vector<double> numbers_of(const TensorData& data) {
    switch (data.type) {
        case DataType::float32:
            return widen<float>(data.bytes);
        case DataType::float64:
            return widen<double>(data.bytes);
        case DataType::int8:
            return widen<int8_t>(data.bytes);
        case DataType::boolean:
        case DataType::uint8:
            return widen<uint8_t>(data.bytes);
        case DataType::int16:
            return widen<int16_t>(data.bytes);
        case DataType::uint16:
            return widen<uint16_t>(data.bytes);
        case DataType::int32:
            return widen<int32_t>(data.bytes);
        case DataType::uint32:
            return widen<uint32_t>(data.bytes);
        case DataType::bf16: {
            auto values = widen<uint16_t>(data.bytes);
            for (double& v : values) v = std::bit_cast<float>(static_cast<uint32_t>(v) << 16);
            return values;
        }
        case DataType::fp16: {
            auto values = widen<uint16_t>(data.bytes);
            for (double& v : values) v = half(static_cast<uint16_t>(v));
            return values;
        }
        case DataType::int64:
            return widen<int64_t>(data.bytes);
        case DataType::uint64:
            return widen<uint64_t>(data.bytes);
        default:
            return {};
    }
}

bool is_float(DataType type) {
    return type == DataType::float32 || type == DataType::float64 || type == DataType::bf16 ||
           type == DataType::fp16;
}

size_t differing_elements(const TensorData& a, const TensorData& b) {
    const size_t size = size_bytes(a.type);
    size_t count = 0;
    for (size_t i = 0; i < a.bytes.size(); i += size)
        count += std::memcmp(a.bytes.data() + i, b.bytes.data() + i, size) != 0;
    return count;
}

std::string describe(DataType type, std::span<const int64_t> shape) {
    std::string text(to_string(type));
    text += " [";
    for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
    return text + ']';
}
std::string describe(DataType type, std::span<const uint32_t> shape) {
    return describe(type, std::vector<int64_t>(shape.begin(), shape.end()));
}

bool fits(const TensorData& data, DataType type, std::span<const uint32_t> shape) {
    const bool is_scalar = data.shape.empty() && shape.size() == 1 && shape[0] == 1;
    return data.type == type && (is_scalar || std::ranges::equal(data.shape, shape));
}

namespace {

// Masks are made of infinities, which have no length. Where both are the same they say nothing.
bool are_same_and_endless(double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || (std::isinf(a) && a == b);
}

}  // namespace

double cosine(std::span<const double> a, std::span<const double> b) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        if (are_same_and_endless(a[i], b[i])) continue;
        ab += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    if (aa == 0 && bb == 0) return 1;
    if (aa == 0 || bb == 0) return 0;
    return ab / std::sqrt(aa) / std::sqrt(bb);
}

double length_ratio(std::span<const double> a, std::span<const double> b) {
    double aa = 0, bb = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        if (are_same_and_endless(a[i], b[i])) continue;
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    if (aa == 0 && bb == 0) return 1;
    return std::sqrt(aa) / std::sqrt(bb);
}

double largest_difference(std::span<const double> a, std::span<const double> b) {
    double most = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
        const double d = std::abs(a[i] - b[i]);
        most = std::isnan(d) ? HUGE_VAL : std::max(most, d);
    }
    return most;
}

double range_of(std::span<const double> values) {
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (const double v : values)
        if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
    if (high > low) return high - low;
    return high == low && high != 0 ? std::abs(high) : 1;
}

Tolerance tolerance_of(DataType type, const std::string& compute_type, std::optional<double> step,
                       std::optional<double> limit) {
    if (!is_float(type)) return {Measure::exact, limit.value_or(0), 1};
    if (step) return {Measure::steps, limit.value_or(1), *step};
    if (compute_type == "fp32") return {Measure::range, limit.value_or(1e-4), 1};
    return {Measure::cosine, limit.value_or(0.999), 1};
}

namespace {

// Of a batch of one a file may leave the axis out.
std::vector<int64_t> without_ones(std::vector<int64_t> shape) {
    std::erase(shape, 1);
    return shape;
}

}  // namespace

Result<Comparison> compare(const TensorData& found, const TensorData& expected,
                           const Tolerance& tolerance, const std::string& what) {
    if (found.type != expected.type)
        return Error{ErrorCode::invalid_argument,
                     what + ": expected elements are " + std::string(to_string(expected.type)) +
                         ", the model gives " + std::string(to_string(found.type))};
    if (found.bytes.size() != expected.bytes.size())
        return Error{ErrorCode::invalid_argument, what + ": " +
                                                      std::to_string(expected.bytes.size()) +
                                                      " bytes are expected, the model gives " +
                                                      std::to_string(found.bytes.size())};
    if (without_ones(found.shape) != without_ones(expected.shape))
        return Error{ErrorCode::invalid_argument,
                     what + ": is " + describe(expected.type, expected.shape) +
                         ", the model gives " + describe(found.type, found.shape)};
    Comparison result;
    const std::vector<double> a = numbers_of(found), b = numbers_of(expected);
    if (!b.empty()) result.of_range = largest_difference(a, b) / range_of(b);
    if (tolerance.measure == Measure::exact) {
        result.value = static_cast<double>(differing_elements(found, expected));
        result.is_good = result.value <= tolerance.limit;
        result.text = number(result.value) + " elements differ, at most " + number(tolerance.limit);
        return result;
    }
    switch (tolerance.measure) {
        case Measure::cosine:
            result.value = cosine(a, b);
            result.is_good = result.value >= tolerance.limit;
            result.text =
                "cosine " + number(result.value) + ", at least " + number(tolerance.limit);
            // ours: an angle does not see a wrong scale.
            if (const double ratio = length_ratio(a, b); !(std::abs(ratio - 1) <= most_stretch)) {
                result.is_good = false;
                result.text += ", but " + number(ratio) + " times as long, from " +
                               number(1 - most_stretch) + " to " + number(1 + most_stretch);
            }
            break;
        case Measure::steps:
            result.value = largest_difference(a, b) / tolerance.step;
            // The steps are counted in rounded floats.
            result.is_good = result.value <= tolerance.limit + 1e-3;
            result.text = "largest difference " + number(result.value) + " steps of " +
                          number(tolerance.step) + ", at most " + number(tolerance.limit);
            break;
        case Measure::magnitude: {
            double most = 0;
            for (const double v : b)
                if (std::isfinite(v)) most = std::max(most, std::abs(v));
            const double difference = largest_difference(a, b);
            result.value = difference == 0 ? 0 : difference / most;
            result.is_good = result.value <= tolerance.limit;
            result.text = "largest difference " + number(result.value) +
                          " of the largest number, at most " + number(tolerance.limit);
            break;
        }
        default:
            result.value = result.of_range;
            result.is_good = result.value <= tolerance.limit;
            result.text = "largest difference " + number(result.value) + " of the range, at most " +
                          number(tolerance.limit);
    }
    return result;
}

}  // namespace vartml::verify
