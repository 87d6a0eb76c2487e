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

constexpr double most_stretch = 0.1;

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
        default:
            return {};  // 64-bit integers are compared by their bytes
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

double cosine(std::span<const double> a, std::span<const double> b) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a.size(); ++i) {
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
    for (const double v : a) aa += v * v;
    for (const double v : b) bb += v * v;
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

namespace {

constexpr double most_of_range = 1e-3, least_cosine = 0.999, least_of_rounded = 0.99;
constexpr double most_of_rounded_stretch = 1.5;

std::string short_number(double value, const char* format = "%.3g") {
    char text[40];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

bool has_codes(DataType type) {
    return type == DataType::int8 || type == DataType::uint8;
}

// How far one is from another in the unit of the rule: never negative, 0 = the same.
double part_of_range(const TensorData& a, const TensorData& b) {
    const std::vector<double> x = numbers_of(a), y = numbers_of(b);
    const double most = largest_difference(x, y);
    // A code more or less is how sums of floats round.
    if (has_codes(b.type) && most <= 1) return 0;
    return most / range_of(y);
}

// Of the root of the mean square, which one element alone does not move far.
double rms_part_of_range(const TensorData& a, const TensorData& b) {
    const std::vector<double> x = numbers_of(a), y = numbers_of(b);
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return y.empty() ? 0 : std::sqrt(sum / static_cast<double>(y.size())) / range_of(y);
}

double off_the_cosine(const TensorData& a, const TensorData& b) {
    const std::vector<double> x = numbers_of(a), y = numbers_of(b);
    // The angle of zeros is none.
    if (std::ranges::all_of(y, [](double v) { return v == 0; }))
        return largest_difference(x, y) <= most_of_range ? 0 : 1;
    const double c = cosine(x, y);
    return std::isnan(c) ? 1 : std::max(0.0, 1 - c);
}

// An angle does not see a wrong scale.
double stretch(const TensorData& a, const TensorData& b) {
    const double ratio = length_ratio(numbers_of(a), numbers_of(b));
    return std::isfinite(ratio) ? std::abs(ratio - 1) : 0;  // of zeros: told by the angle
}

double share_of_others(const TensorData& a, const TensorData& b) {
    const size_t size = size_bytes(b.type);
    if (b.bytes.empty()) return 0;
    return static_cast<double>(differing_elements(a, b)) /
           (static_cast<double>(b.bytes.size()) / static_cast<double>(size));
}

using Distance = double (*)(const TensorData&, const TensorData&);

// A measure of two tensors with its limit.
struct Yardstick {
    Distance distance;
    double limit;
    double limit_of_rounded;  // where the ideal device is beyond the limit, too
};

Yardstick yardstick_of(DataType type, Rule rule) {
    const bool f32 = rule == Rule::f32;
    if (!is_float(type) && !has_codes(type))
        return {share_of_others, f32 ? 1e-3 : 1e-2, f32 ? 1e-3 : 1e-1};
    if (f32) return {part_of_range, most_of_range, most_of_range};
    return {off_the_cosine, 1 - least_cosine, 1 - least_of_rounded};
}

bool is_finite(const TensorData& data) {
    return std::ranges::none_of(numbers_of(data), [](double v) { return std::isnan(v); });
}

// How far the reference is from itself, and from what is found.
double spread_of(const ExpectedOutput& expected, Distance distance) {
    double most = 0;
    for (const TensorData& a : expected.levels) {
        most = std::max(most, distance(a, expected.plain));
        for (const TensorData& b : expected.levels) most = std::max(most, distance(a, b));
    }
    return std::isfinite(most) ? most : 0;
}
double to_nearest(const TensorData& found, const ExpectedOutput& expected, Distance distance) {
    double least = distance(found, expected.plain);
    for (const TensorData& level : expected.levels) least = std::min(least, distance(found, level));
    return least;
}

// How much longer or shorter a result may be.
double stretch_limit(const ExpectedOutput& expected) {
    double limit = std::max(most_stretch, spread_of(expected, stretch));
    for (const TensorData& rounded : expected.rounded)
        if (is_finite(rounded))
            limit = std::max(limit, most_of_rounded_stretch * stretch(rounded, expected.plain));
    return limit;
}

// The spread is what a handful of results show: of the one element that is farthest they say less
// than of all together.
bool is_within_spread(const TensorData& found, const ExpectedOutput& expected, double distance,
                      double spread) {
    return distance <= 2 * spread &&
           to_nearest(found, expected, rms_part_of_range) <= spread_of(expected, rms_part_of_range);
}

std::string words(const Yardstick& by, double distance, double limit) {
    if (by.distance == off_the_cosine)
        return "cosine " + short_number(1 - distance, "%.5g") + ", at least " +
               short_number(1 - limit, "%.5g");
    if (by.distance == part_of_range)
        return "largest difference " + short_number(distance) + " of the range, at most " +
               short_number(limit);
    return short_number(distance * 100) + " % of the elements differ, at most " +
           short_number(limit * 100);
}

}  // namespace

OutputAgreement judge_agreement(const TensorData& found, const ExpectedOutput& expected,
                                Rule rule) {
    const TensorData& plain = expected.plain;
    OutputAgreement result;
    if (found.type != plain.type || found.bytes.size() != plain.bytes.size()) {
        result.text = "is " + std::to_string(found.bytes.size()) + " bytes of " +
                      std::string(to_string(found.type)) + ", ONNX Runtime gives " +
                      std::to_string(plain.bytes.size()) + " of " +
                      std::string(to_string(plain.type));
        return result;
    }
    const std::vector<double> a = numbers_of(found), b = numbers_of(plain);
    result.cosine = cosine(a, b);
    result.of_range = b.empty() ? 0 : largest_difference(a, b) / range_of(b);

    const Yardstick by = yardstick_of(plain.type, rule);
    const double distance = to_nearest(found, expected, by.distance);
    const double spread = spread_of(expected, by.distance);
    double limit = std::max(by.limit, spread);
    // A NaN is of the rounding's own making (numbers near the largest), and says nothing.
    for (const TensorData& rounded : expected.rounded)
        if (by.distance(rounded, plain) > by.limit && is_finite(rounded))
            limit = std::max(limit, by.limit_of_rounded);
    result.is_good = distance <= limit || (by.distance == part_of_range && spread > by.limit &&
                                           is_within_spread(found, expected, distance, spread));
    result.text = words(by, distance, limit);
    if (by.distance == off_the_cosine && !expected.rounded.empty())
        result.text += " (of an ideal bf16 device " +
                       short_number(1 - off_the_cosine(expected.rounded[0], plain), "%.5g") + ')';
    if (by.distance != off_the_cosine || !result.is_good) return result;
    const double most = stretch_limit(expected);
    if (to_nearest(found, expected, stretch) <= most) return result;
    result.is_good = false;
    result.text += ", but " + short_number(length_ratio(a, b)) + " times as long, at most " +
                   short_number(100 * most) + " % more or less is expected";
    return result;
}

}  // namespace vartml::verify
