// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/round_weights.h"

#include <algorithm>
#include <cmath>

namespace vartml::compiler {
namespace {

// Patches that are multiplied before the sums are widened.
constexpr size_t block = 8;
constexpr int most_sweeps = 8;
// Scales that are tried for a row, as parts of the one that has room for its largest weight. Long
// rows take the first: each trial costs the square of the length.
constexpr double scale_parts[] = {1, 0.96, 0.92, 0.88, 0.84, 0.8};
constexpr size_t long_row = 640;

double code_of(double value, double scale) {
    return std::clamp(std::nearbyint(value / scale), -127.0, 127.0);
}

// sums[i, j] += a[i] · a[j] over `count` patches.
void add_products(std::vector<double>& sums, size_t size, const float* a, size_t count,
                  size_t stride) {
    for (size_t i = 0; i < size; ++i) {
        double* row = sums.data() + i * size;
        if (count == block) {
            float f[block];
            for (size_t n = 0; n < block; ++n) f[n] = a[n * stride + i];
            for (size_t j = 0; j < size; ++j) {
                float sum = 0;
                for (size_t n = 0; n < block; ++n) sum += f[n] * a[n * stride + j];
                row[j] += static_cast<double>(sum);
            }
        } else {
            for (size_t n = 0; n < count; ++n) {
                const float f = a[n * stride + i];
                for (size_t j = 0; j < size; ++j)
                    row[j] += static_cast<double>(f * a[n * stride + j]);
            }
        }
    }
}

std::vector<double> divided(std::vector<double> sums, double count) {
    for (double& sum : sums) sum /= count;
    return sums;
}

}  // namespace

Moments::Moments(size_t size)
    : size_(size), found_(size * size), exact_sums_(size), found_sums_(size) {}

void Moments::add(const float* exact, const float* found, size_t count, size_t stride) {
    for (size_t n = 0; n < count; n += block) {
        const size_t here = std::min(block, count - n);
        add_products(found_, size_, found + n * stride, here, stride);
    }
    for (size_t n = 0; n < count; ++n)
        for (size_t i = 0; i < size_; ++i) {
            exact_sums_[i] += static_cast<double>(exact[n * stride + i]);
            found_sums_[i] += static_cast<double>(found[n * stride + i]);
        }
    count_ += static_cast<double>(count);
}

std::vector<double> Moments::exact_means() const {
    return divided(exact_sums_, count_);
}
std::vector<double> Moments::found_means() const {
    return divided(found_sums_, count_);
}
std::vector<double> Moments::covariance() const {
    std::vector<double> result(found_.size());
    for (size_t i = 0; i < size_; ++i)
        for (size_t j = 0; j < size_; ++j)
            result[i * size_ + j] = found_[i * size_ + j] / count_ -
                                    found_sums_[i] / count_ * (found_sums_[j] / count_);
    return result;
}

void add_ridge(std::vector<double>& matrix, size_t size, double ridge) {
    double trace = 0;
    for (size_t i = 0; i < size; ++i) trace += matrix[i * size + i];
    for (size_t i = 0; i < size; ++i)
        matrix[i * size + i] += trace / static_cast<double>(size) * ridge;
}

Factors factorise(std::vector<double> m, size_t size) {
    double largest = 0;
    for (size_t i = 0; i < size; ++i) largest = std::max(largest, m[i * size + i]);
    const double least = std::max(largest * 1e-9, 1e-30);
    Factors f{size, std::vector<double>(size * size, 0), std::vector<double>(size, 0)};
    for (size_t k = size; k-- > 0;) {
        const double pivot = std::max(m[k * size + k], least);
        f.diagonal[k] = pivot;
        for (size_t i = 0; i < k; ++i) f.upper[i * size + k] = m[i * size + k] / pivot;
        f.upper[k * size + k] = 1;
        for (size_t i = 0; i < k; ++i) {
            const double factor = f.upper[i * size + k];
            const double* column = m.data() + k * size;  // symmetric: the row is the column
            double* row = m.data() + i * size;
            for (size_t j = 0; j < k; ++j) row[j] -= factor * column[j];
        }
    }
    return f;
}

namespace {

// Codes of a row for a scale, and the sum that they leave.
double round_for(std::span<const double> row, std::span<const double> covariance,
                 const Factors& factors, double scale, std::vector<double>& codes) {
    const size_t size = row.size();
    std::vector<double> errors(size), wanted(row.begin(), row.end());
    // From the first weight to the last, each makes up for what the errors before it have in common
    // with its own.
    for (size_t k = 0; k < size; ++k) {
        codes[k] = code_of(wanted[k], scale);
        errors[k] = row[k] - codes[k] * scale;
        for (size_t j = k + 1; j < size; ++j) wanted[j] += errors[k] * factors.upper[k * size + j];
    }
    // Then one at a time, as long as a step makes it less.
    std::vector<double> slopes(size, 0);
    for (size_t i = 0; i < size; ++i)
        for (size_t j = 0; j < size; ++j) slopes[j] += errors[i] * covariance[i * size + j];
    for (int sweep = 0; sweep < most_sweeps; ++sweep) {
        bool changed = false;
        for (size_t k = 0; k < size; ++k) {
            const double square = covariance[k * size + k];
            if (!(square > 0)) continue;
            const double better =
                std::clamp(codes[k] + std::nearbyint(slopes[k] / (square * scale)), -127.0, 127.0);
            if (better == codes[k]) continue;
            const double step = (better - codes[k]) * scale;
            codes[k] = better;
            errors[k] -= step;
            for (size_t j = 0; j < size; ++j) slopes[j] -= step * covariance[k * size + j];
            changed = true;
        }
        if (!changed) break;
    }
    double sum = 0;
    for (size_t k = 0; k < size; ++k) sum += errors[k] * slopes[k];
    return sum;
}

}  // namespace

RoundedRow round_row(std::span<const double> row, std::span<const double> covariance,
                     const Factors& factors) {
    double most = 0;
    for (const double weight : row) most = std::max(most, std::fabs(weight));
    RoundedRow result{1, std::vector<int8_t>(row.size(), 0)};
    if (!(most > 0)) return result;
    double least = INFINITY;
    std::vector<double> codes(row.size());
    for (const double part : scale_parts) {
        const auto scale = static_cast<float>(most / 127 * part);
        const double sum = round_for(row, covariance, factors, static_cast<double>(scale), codes);
        if (sum < least) {
            least = sum;
            result.scale = scale;
            for (size_t i = 0; i < codes.size(); ++i)
                result.codes[i] = static_cast<int8_t>(codes[i]);
        }
        if (row.size() > long_row) break;
    }
    return result;
}

}  // namespace vartml::compiler
