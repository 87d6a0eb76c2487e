// SPDX-License-Identifier: Apache-2.0
// Is an output what was expected, by the tolerance of what was computed?
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml::verify {

// A tensor with its bytes, dense row-major.
struct TensorData {
    DataType type = DataType::unknown;
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes;
};

// The elements as numbers, whole ones beyond 2^53 rounded; empty for text.
std::vector<double> numbers_of(const TensorData& data);
bool is_float(DataType type);

// How much longer or shorter than expected a tensor may be, as an angle does not see a wrong scale.
inline constexpr double most_stretch = 0.1;

// Of numbers in the same order. The cosine is 1 where both are nothing, the ratio of the lengths
// too; a difference of NaN and number is infinite.
double cosine(std::span<const double> a, std::span<const double> b);
double length_ratio(std::span<const double> a, std::span<const double> b);
double largest_difference(std::span<const double> a, std::span<const double> b);
// Largest minus smallest finite value; of a constant tensor its magnitude, of zeros 1.
double range_of(std::span<const double> values);
// Elements whose bytes differ; both hold as many.
size_t differing_elements(const TensorData& a, const TensorData& b);

// "fp32 [1,3,224,224]".
std::string describe(DataType type, std::span<const int64_t> shape);
std::string describe(DataType type, std::span<const uint32_t> shape);
// Whether a tensor has type and shape of an input; a scalar fits [1].
bool fits(const TensorData& data, DataType type, std::span<const uint32_t> shape);

// How two outputs are compared.
enum class Measure {
    exact,   // integers and indices: number of elements that differ, at most 0
    cosine,  // bf16, fp16: cosine of the angle between the two, at least 0.999; lengths within 10 %
    range,   // fp32: largest difference as a part of the expected range, at most 1e-4
    magnitude,  // fp32 inside a model: largest difference as a part of the largest number; what an
                // operator adds up is rounded by that, however little the sums differ
    steps,      // int8: largest difference in quantisation steps, at most 1
};

struct Tolerance {
    Measure measure = Measure::exact;
    double limit = 0;
    double step = 1;  // Measure::steps: the scale of the last dequantise
};

// The tolerance for an output of type `type` of a model that was computed as `compute_type`
// ("bf16", "fp16", "fp32"); `step` is the scale of the dequantise that made it, if one did.
Tolerance tolerance_of(DataType type, const std::string& compute_type, std::optional<double> step,
                       std::optional<double> limit);

struct Comparison {
    bool is_good = false;
    double value = 0;     // in the unit of the measure
    double of_range = 0;  // largest difference as a part of the expected range
    std::string text;     // "cosine 0.99987, at least 0.999"
};

// Errors: invalid_argument where type or number of elements differ.
Result<Comparison> compare(const TensorData& found, const TensorData& expected,
                           const Tolerance& tolerance, const std::string& what);

}  // namespace vartml::verify
