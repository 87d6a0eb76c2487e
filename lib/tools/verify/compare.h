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

// The elements as numbers; empty for integers of 64 bits, which are compared by their bytes.
std::vector<double> numbers_of(const TensorData& data);
bool is_float(DataType type);

// Of numbers in the same order. The cosine is 1 where both are nothing, the ratio of the lengths
// too; a difference of NaN and number is infinite.
double cosine(std::span<const double> a, std::span<const double> b);
double length_ratio(std::span<const double> a, std::span<const double> b);
double largest_difference(std::span<const double> a, std::span<const double> b);
// Largest minus smallest finite value; of a constant tensor its magnitude, of zeros 1.
double range_of(std::span<const double> values);
// Elements whose bytes differ; both hold as many.
size_t differing_elements(const TensorData& a, const TensorData& b);

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

// Do the outputs of a model agree with ONNX Runtime's, by the rules of a whole collection?
//
// In f32 the largest difference of an output is at most 1e-3 of its range. In default numerics the
// cosine of each output is at least 0.999, its length within 10 %; 0.99 is enough where a device
// that computes exactly but rounds every tensor to bf16 does not reach 0.999 either. Of integers at
// most one in 1000 differs (one in 100 in default numerics), of 8 bits by more than 1. Where ONNX
// Runtime itself makes something else of a model, at another optimisation level or of an input that
// differs by one in a million (int8, fp16), a result within that spread of any of them agrees, too;
// of f32 outputs also one whose largest difference is up to twice that, if all together are within
// it.

enum class Rule { f32, standard };

// What ONNX Runtime gives for one output, all of one type and size.
struct ExpectedOutput {
    TensorData plain;                 // of the graph as it is written
    std::vector<TensorData> levels;   // of further levels, of a nudged input; empty = not asked
    std::vector<TensorData> rounded;  // of the ideal bf16 device; one, or empty = not asked
};

struct OutputAgreement {
    bool is_good = false;
    double cosine = 1, of_range = 0;  // to the plain one
    std::string text;                 // "cosine 0.98, at least 0.999"
};

OutputAgreement judge_agreement(const TensorData& found, const ExpectedOutput& expected, Rule rule);

}  // namespace vartml::verify
