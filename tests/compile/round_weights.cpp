// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/round_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace vartml::compiler {
namespace {

std::vector<double> numbers(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<double> result(count);
    for (double& v : result) v = random() / 4294967296.0 * 2 - 1;
    return result;
}

// Patches of `size` elements that a few causes make, and noise.
std::vector<float> correlated(size_t count, size_t size, double noise) {
    constexpr size_t causes = 3;
    const std::vector<double> mix = numbers(causes * size, 1), own = numbers(count * causes, 2),
                              rest = numbers(count * size, 3);
    std::vector<float> patches(count * size);
    for (size_t n = 0; n < count; ++n)
        for (size_t i = 0; i < size; ++i) {
            double v = 0.5 + noise * rest[n * size + i];
            for (size_t c = 0; c < causes; ++c) v += own[n * causes + c] * mix[c * size + i];
            patches[n * size + i] = static_cast<float>(v);
        }
    return patches;
}

double left_by(const std::vector<double>& row, const RoundedRow& rounded,
               const std::vector<double>& covariance) {
    const size_t size = row.size();
    double sum = 0;
    const auto error = [&](size_t i) {
        return row[i] - static_cast<double>(rounded.scale) * rounded.codes[i];
    };
    for (size_t i = 0; i < size; ++i)
        for (size_t j = 0; j < size; ++j) sum += error(i) * covariance[i * size + j] * error(j);
    return sum;
}

RoundedRow nearest(const std::vector<double>& row) {
    double most = 0;
    for (const double v : row) most = std::max(most, std::fabs(v));
    RoundedRow rounded{static_cast<float>(most / 127), {}};
    for (const double v : row)
        rounded.codes.push_back(
            static_cast<int8_t>(std::nearbyint(v / static_cast<double>(rounded.scale))));
    return rounded;
}

TEST(Moments, AreThoseOfPlainLoops) {
    constexpr size_t size = 5, count = 21;  // no multiple of a block
    const std::vector<float> found = correlated(count, size, 1);
    std::vector<float> exact = found;
    for (size_t i = 0; i < exact.size(); ++i) exact[i] += static_cast<float>(i % 3);
    Moments moments(size);
    moments.add(exact.data(), found.data(), 13, size);
    moments.add(exact.data() + 13 * size, found.data() + 13 * size, count - 13, size);
    const auto mean = [&](const std::vector<float>& p, size_t i) {
        double sum = 0;
        for (size_t n = 0; n < count; ++n) sum += static_cast<double>(p[n * size + i]);
        return sum / count;
    };
    for (size_t i = 0; i < size; ++i) {
        EXPECT_NEAR(moments.exact_means()[i], mean(exact, i), 1e-5);
        EXPECT_NEAR(moments.found_means()[i], mean(found, i), 1e-5);
        for (size_t j = 0; j < size; ++j) {
            double own = 0;
            for (size_t n = 0; n < count; ++n) {
                const double f = static_cast<double>(found[n * size + j]) - mean(found, j);
                own += (static_cast<double>(found[n * size + i]) - mean(found, i)) * f;
            }
            EXPECT_NEAR(moments.covariance()[i * size + j], own / count, 1e-5);
        }
    }
}

TEST(Factorise, GivesTheMatrixBack) {
    constexpr size_t size = 12;
    const std::vector<float> patches = correlated(100, size, 0.1);
    Moments moments(size);
    moments.add(patches.data(), patches.data(), 100, size);
    const std::vector<double> matrix = moments.covariance();
    const Factors f = factorise(matrix, size);
    for (size_t i = 0; i < size; ++i)
        for (size_t j = 0; j < size; ++j) {
            double sum = 0;
            for (size_t k = 0; k < size; ++k)
                sum += f.upper[i * size + k] * f.diagonal[k] * f.upper[j * size + k];
            EXPECT_NEAR(sum, matrix[i * size + j], 1e-9);
        }
}

// Of independent elements nothing is to be made up for.
TEST(RoundRow, IsToTheNearestWhereNothingIsInCommon) {
    constexpr size_t size = 16;
    std::vector<double> covariance(size * size, 0);
    for (size_t i = 0; i < size; ++i) covariance[i * size + i] = 1;
    const std::vector<double> row = numbers(size, 7);
    const RoundedRow rounded = round_row(row, covariance, factorise(covariance, size));
    for (size_t i = 0; i < size; ++i)
        EXPECT_LE(std::fabs(row[i] - static_cast<double>(rounded.scale) * rounded.codes[i]),
                  static_cast<double>(rounded.scale) * 0.5001);
}

TEST(RoundRow, LeavesFarLessThanRoundingEachWeight) {
    constexpr size_t size = 64;
    const std::vector<float> patches = correlated(2000, size, 0.02);
    Moments moments(size);
    moments.add(patches.data(), patches.data(), 2000, size);
    std::vector<double> covariance = moments.covariance();
    add_ridge(covariance, size, 1e-3);
    const Factors factors = factorise(covariance, size);
    for (uint32_t seed = 10; seed < 20; ++seed) {
        const std::vector<double> row = numbers(size, seed);
        const double left = left_by(row, round_row(row, covariance, factors), covariance);
        EXPECT_LT(left, 0.3 * left_by(row, nearest(row), covariance)) << seed;
    }
}

TEST(RoundRow, HasCodesOfNoWeightsAtAll) {
    const std::vector<double> covariance{1, 0, 0, 1};
    const RoundedRow rounded =
        round_row(std::vector<double>{0, 0}, covariance, factorise(covariance, 2));
    EXPECT_EQ(rounded.codes, (std::vector<int8_t>{0, 0}));
    EXPECT_GT(rounded.scale, 0);
}

}  // namespace
}  // namespace vartml::compiler
