// SPDX-License-Identifier: Apache-2.0
// When a result agrees with a reference that does not quite agree with itself.
#include "lib/tools/verify/agreement.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lib/tools/verify/reference.h"

namespace vartml::verify {
namespace {

TensorData numbers(const std::vector<double>& values) {
    return tensor_of(DataType::float32, {1, static_cast<uint32_t>(values.size())}, values);
}

// As a mask leaves them.
TEST(Agreement, OfTheSameInfinitiesIsThatOfTheOthers) {
    const double inf = HUGE_VAL, nan = NAN;
    struct Row {
        std::vector<double> found, expected;
        bool is_good;
    };
    const Row rows[] = {
        {{1, -inf, 2}, {1, -inf, 2}, true},   {{1, nan, 2}, {1, nan, 2}, true},
        {{-inf, -inf}, {-inf, -inf}, true},   {{1, -inf, 2}, {2, -inf, -1}, false},
        {{1, -inf, 2}, {1, inf, 2}, false},   {{1, -inf, 2}, {1, -1e30, 2}, false},
        {{1, -1e30, 2}, {1, -inf, 2}, false}, {{1, nan, 2}, {1, 0, 2}, false},
    };
    for (const Row& row : rows) {
        const auto at = &row - rows;
        const TensorData found = numbers(row.found), expected = numbers(row.expected);
        for (const Rule rule : {Rule::f32, Rule::standard})
            EXPECT_EQ(judge_agreement(found, {expected, {expected}, {}}, rule).is_good, row.is_good)
                << at;
        const auto compared = compare(found, expected, {Measure::cosine, 0.999, 1}, "out");
        ASSERT_TRUE(compared);
        EXPECT_EQ(compared->is_good, row.is_good) << at << compared->text;
    }
}

TEST(Agreement, IsUndecidedWhereTheReferenceIsFarFromItself) {
    const std::vector<double> one = {1, 0, 0, 0}, near = {0.9, 0, 0.1, 0}, other = {0, 1, 0, 0},
                              wrong = {0, 0, 0, 1}, small = {0.2, 0, 0, 0};
    struct Row {
        const char* what;
        std::vector<double> found, level;
        Rule rule;
        bool is_good, is_undecided;
    };
    const Row rows[] = {
        {"within its spread", {0.95, 0, 0.05, 0}, near, Rule::f32, true, false},
        {"beyond its spread", wrong, near, Rule::f32, false, false},
        {"anything, as that is its spread", wrong, other, Rule::f32, false, true},
        {"the same in default numerics", wrong, other, Rule::standard, false, true},
        {"as long as nothing that it says", wrong, small, Rule::standard, false, true},
        {"right all the same", one, other, Rule::f32, true, false},
        {"right in default numerics", one, small, Rule::standard, true, false},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(row.what);
        const OutputAgreement a =
            judge_agreement(numbers(row.found), {numbers(one), {numbers(row.level)}, {}}, row.rule);
        EXPECT_EQ(a.is_good, row.is_good) << a.text;
        EXPECT_EQ(a.is_undecided, row.is_undecided) << a.text;
        EXPECT_EQ(a.text.find("cannot be judged: ONNX Runtime's own results") == 0,
                  row.is_undecided)
            << a.text;
    }
}

}  // namespace
}  // namespace vartml::verify
