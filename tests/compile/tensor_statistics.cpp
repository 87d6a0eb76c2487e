// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/tensor_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace vartml::compiler {
namespace {

// A bell curve: the sum of twelve equally likely numbers, made without a library's own idea.
std::vector<float> bell(size_t count) {
    std::vector<float> values(count, -6);
    uint32_t state = 1;
    for (float& v : values)
        for (int i = 0; i < 12; ++i) {
            state = state * 1664525 + 1013904223;
            v += static_cast<float>(state >> 8) / 16777216.0F;
        }
    return values;
}

// Of uint8 codes over a range.
double squared_error(const std::vector<float>& values, const Range& range) {
    const float scale = (range.high - range.low) / 255;
    double sum = 0;
    for (const float v : values) {
        const float code = std::clamp(std::nearbyint((v - range.low) / scale), 0.0F, 255.0F);
        sum += std::pow(static_cast<double>(v - (range.low + code * scale)), 2);
    }
    return sum;
}

TEST(TensorStatistics, CutOffWhatIsFarFromTheRest) {
    std::vector<float> values = bell(1'000'000);
    values[0] = -50;
    values[1] = 40;
    TensorStatistics statistics;
    statistics.add(values, 0, 0);
    const Range all = statistics.extremes(), best = statistics.best_range();
    EXPECT_EQ(all, (Range{-50, 40}));
    EXPECT_GT(best.low, -25);
    EXPECT_LT(best.high, 25);
    EXPECT_LT(squared_error(values, best), squared_error(values, all) / 2);
}

TEST(TensorStatistics, KeepExtremesThatAreNoOutliers) {
    std::vector<float> values;
    for (int i = 0; i <= 1000; ++i) values.push_back(static_cast<float>(i) / 1000);
    TensorStatistics statistics;
    statistics.add(values, 0, 0);
    const Range best = statistics.best_range();
    EXPECT_EQ(best.low, 0);
    EXPECT_NEAR(best.high, 1, 0.02);
}

TEST(TensorStatistics, DoNotDependOnTheOrderOfSamples) {
    const std::vector<float> small = {-0.5F, 0, 0.25F, 0.5F}, large = {-300, 100, 200, 300};
    TensorStatistics one, other, joined, part;
    one.add(small, 2, 2);
    one.add(large, 2, 2);
    other.add(large, 2, 2);
    other.add(small, 2, 2);
    joined.add(small, 2, 2);
    part.add(large, 2, 2);
    joined.join(part);
    for (const TensorStatistics* s : {&other, &joined}) {
        EXPECT_EQ(s->extremes(), one.extremes());
        EXPECT_EQ(s->best_range(), one.best_range());
        EXPECT_EQ(s->channel_ranges(), one.channel_ranges());
        EXPECT_EQ(s->channel_means(), one.channel_means());
    }
    EXPECT_EQ(one.channel_ranges(), (std::vector<Range>{{-300, 100}, {0, 300}}));
    EXPECT_EQ(one.channel_means(), (std::vector<double>{-200.5 / 4, 500.75 / 4}));
}

TEST(TensorStatistics, HaveNoChannelsWhereTheirNumberChanges) {
    const std::vector<float> values = {1, 2, 3, 4};
    TensorStatistics statistics;
    statistics.add(values, 2, 2);
    EXPECT_EQ(statistics.channel_squares(), (std::vector<double>{2.5, 12.5}));
    statistics.add(values, 4, 1);
    statistics.add(values, 2, 2);
    EXPECT_TRUE(statistics.channel_ranges().empty());
    EXPECT_TRUE(statistics.channel_means().empty());
    EXPECT_TRUE(statistics.channel_squares().empty());
    EXPECT_EQ(statistics.extremes(), (Range{0, 4}));
}

// The least power of two above the largest float is none.
TEST(TensorStatistics, TakeTheLargestFloats) {
    const float most = std::numeric_limits<float>::max();
    TensorStatistics all, joined, part;
    all.add(std::vector<float>{1, most, -most}, 0, 0);
    joined.add(std::vector<float>{1}, 0, 0);
    part.add(std::vector<float>{most, -most}, 0, 0);
    joined.join(part);
    EXPECT_EQ(joined.extremes(), (Range{-most, most}));
    EXPECT_EQ(joined.best_range(), all.best_range());
}

TEST(TensorStatistics, IgnoreWhatIsNotFinite) {
    TensorStatistics statistics;
    statistics.add(std::vector<float>{NAN, -std::numeric_limits<float>::infinity(), 2, -1}, 0, 0);
    EXPECT_EQ(statistics.extremes(), (Range{-1, 2}));
    TensorStatistics nothing;
    nothing.add(std::vector<float>{0, NAN}, 0, 0);
    EXPECT_EQ(nothing.best_range(), (Range{0, 0}));
}

}  // namespace
}  // namespace vartml::compiler
