// SPDX-License-Identifier: Apache-2.0
// Weights of int8 whose errors cancel in the sums: rounded by the second moments of what they read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vartml::compiler {

// Means of the patches that a float model reads; means and second moments of those that a model in
// its place reads.
class Moments {
public:
    explicit Moments(size_t size);
    // `count` patches of either, the first elements `stride` apart.
    void add(const float* exact, const float* found, size_t count, size_t stride);

    size_t size() const { return size_; }
    double count() const { return count_; }
    std::vector<double> exact_means() const;
    std::vector<double> found_means() const;
    std::vector<double> covariance() const;  // [size, size], of found patches

private:
    size_t size_;
    double count_ = 0;
    std::vector<double> found_, exact_sums_, found_sums_;
};

// A symmetric positive matrix [size, size] as factors: upper · diagonal · upper^T, ones on the
// diagonal of `upper`.
struct Factors {
    size_t size = 0;
    std::vector<double> upper, diagonal;
};
Factors factorise(std::vector<double> matrix, size_t size);
// Adds `ridge` times the mean of its diagonal to the diagonal: what few samples do not say is taken
// for independent.
void add_ridge(std::vector<double>& matrix, size_t size, double ridge);

struct RoundedRow {
    float scale = 1;
    std::vector<int8_t> codes;
};
// The row as codes -127 … 127 times a scale, with a small sum of error · covariance · error.
RoundedRow round_row(std::span<const double> row, std::span<const double> covariance,
                     const Factors& factors);

}  // namespace vartml::compiler
