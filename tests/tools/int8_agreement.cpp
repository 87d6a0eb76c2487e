// SPDX-License-Identifier: Apache-2.0
// How much of a float model's outputs an int8 one gives again.
#include "lib/tools/int8_agreement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace vartml::tools {
namespace {

using Floats = std::vector<float>;

TensorInfo tensor(DataType type, std::vector<uint32_t> shape, bool data_dependent = false) {
    return {"y", make_view(type, Layout::unknown, std::move(shape)), {}, data_dependent, {}};
}

OutputAgreement agreement(const TensorInfo& output, const Floats& found, const Floats& expected) {
    const std::vector<std::span<const float>> samples = {expected};
    OutputAgreement result(output, samples);
    result.add(found, expected);
    return result;
}

// A wave of `count` numbers, about `mean`.
Floats wave(size_t count, float mean, float size, float step) {
    Floats values(count);
    for (size_t i = 0; i < count; ++i)
        values[i] = mean + size * std::sin(static_cast<float>(i) * step);
    return values;
}

TEST(OutputAgreement, OfNumbersIsTheirCorrelation) {
    const TensorInfo output = tensor(DataType::float32, {1, 100});
    const Floats expected = wave(100, 5, 1, 0.3F);
    EXPECT_NEAR(agreement(output, expected, expected).value(), 1, 1e-9);
    // Another wave about the same mean has a cosine of 0.98.
    const OutputAgreement other = agreement(output, wave(100, 5, 1, 0.7F), expected);
    EXPECT_LT(other.value(), 0.2);
    EXPECT_FALSE(other.is_usual());
    EXPECT_EQ(other.text().find("correlation 0.0"), 0U) << other.text();
}

// All zeros of a map of ones are nothing; what no code tells apart is said, and is no fault.
TEST(OutputAgreement, OfWhatHardlyVariesIsTheCosine) {
    const TensorInfo output = tensor(DataType::float32, {1, 100});
    const Floats expected = wave(100, 200, 0.2F, 0.3F);
    const OutputAgreement flat = agreement(output, Floats(100, 200), expected);
    EXPECT_GT(flat.value(), 0.9999);
    EXPECT_NE(flat.text().find("cosine 1.00000"), std::string::npos) << flat.text();
    EXPECT_NE(flat.text().find("but of how it differs from its mean correlation 0.00000"),
              std::string::npos)
        << flat.text();
    EXPECT_EQ(agreement(output, Floats(100, 0), expected).value(), 0);
}

TEST(OutputAgreement, IsNothingWhereANumberIsNone) {
    const TensorInfo output = tensor(DataType::float32, {1, 100});
    const Floats expected = wave(100, 0, 1, 0.3F);
    for (const float number :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
        Floats found = expected;
        found[3] = number;
        const OutputAgreement broken = agreement(output, found, expected);
        EXPECT_EQ(broken.value(), 0);
        EXPECT_FALSE(broken.is_usual());
        EXPECT_EQ(broken.text(), "1 numbers are infinite or none at all");
    }
}

// Coordinates of up to 640 hide scores in one tensor, by columns or by rows.
TEST(OutputAgreement, CountsScoresBesideLargerNumbersAlone) {
    constexpr size_t positions = 100;
    const Floats coordinates = wave(positions, 320, 300, 0.1F),
                 scores = wave(positions, 0.5F, 0.5F, 0.3F),
                 others = wave(positions, 0.5F, 0.5F, 0.5F), none(positions, 0.5F);
    for (const bool columns : {false, true}) {
        SCOPED_TRACE(columns);
        const TensorInfo output = columns ? tensor(DataType::float32, {1, positions, 2})
                                          : tensor(DataType::float32, {1, 2, positions});
        const auto table = [&](const Floats& b) {
            Floats values(2 * positions);
            for (size_t i = 0; i < positions; ++i) {
                values[columns ? 2 * i : i] = coordinates[i];
                values[columns ? 2 * i + 1 : positions + i] = b[i];
            }
            return values;
        };
        const OutputAgreement same = agreement(output, table(scores), table(scores));
        EXPECT_NEAR(same.value(), 1, 1e-9);
        const OutputAgreement lost = agreement(output, table(others), table(scores));
        EXPECT_LT(lost.value(), 0.97);
        EXPECT_FALSE(lost.is_usual());
        EXPECT_NE(lost.text().find("of its numbers from 0 to 1 alone correlation"),
                  std::string::npos)
            << lost.text();
        // A sigmoid that is cut at both ends is one of scores all the same.
        Floats cut = scores, lost_ends = others;
        cut[0] = lost_ends[0] = 0;
        cut[1] = lost_ends[1] = 1;
        EXPECT_LT(agreement(output, table(lost_ends), table(cut)).value(), 0.97);
        // Where nothing is found there are no scores to lose.
        EXPECT_GT(
            agreement(output, table(Floats(positions, 0)), table(Floats(positions, 1e-3F))).value(),
            0.9995);
    }
}

TEST(OutputAgreement, OfWholeNumbersIsThePartThatIsTheSame) {
    const TensorInfo output = tensor(DataType::int64, {1, 4});
    const OutputAgreement a = agreement(output, {1, 2, 3, 4}, {1, 2, 3, 9});
    EXPECT_EQ(a.value(), 0.75);
    EXPECT_EQ(a.text(), "75.00 % of the elements are the same");
}

// What NonMaxSuppression selects: rows in any order, -1 behind them.
TEST(OutputAgreement, OfRowsThatDependOnTheDataCountsTheRowsThatThereAre) {
    const TensorInfo output = tensor(DataType::int64, {8, 3}, true);
    Floats expected(24, -1), found(24, -1);
    const float three[] = {0, 0, 5, 0, 0, 7, 0, 1, 7}, two[] = {0, 1, 7, 0, 0, 6};
    std::ranges::copy(three, expected.begin());
    std::ranges::copy(two, found.begin());
    const OutputAgreement a = agreement(output, found, expected);
    EXPECT_DOUBLE_EQ(a.value(), 2.0 / 5);
    EXPECT_FALSE(a.is_usual());
    EXPECT_EQ(a.text(), "40.00 % of the rows are the same");
}

// ---- objects

Decoded one_box(Detection box) {
    Decoded decoded;
    decoded.detections = {box};
    return decoded;
}

TEST(ObjectAgreement, CountsTheFloatModelsObjectsAndThoseOfBoth) {
    const Detection a{0, 0, 40, 40, 0.9F, 1}, b{100, 100, 140, 140, 0.8F, 2};
    Decoded expected, found;
    expected.detections = {a, b};
    found.detections = {a};
    ObjectAgreement objects(0.5F);
    EXPECT_TRUE(objects.is_empty());
    objects.add(found, expected);
    EXPECT_EQ(objects.expected(), 2U);
    EXPECT_EQ(objects.found_again(), 1U);
    EXPECT_DOUBLE_EQ(objects.value(), 2.0 / 3);
    EXPECT_FALSE(objects.is_usual());
}

TEST(ObjectAgreement, LooksAtAllThatADetectionHas) {
    const Detection box{0, 0, 40, 20, 0.9F, 1};
    const auto differs = [&](const Decoded& found, const Decoded& expected) {
        ObjectAgreement objects(0.5F);
        objects.add(found, expected);
        return objects.found_again() == 0;
    };
    EXPECT_FALSE(differs(one_box(box), one_box(box)));
    for (const auto& change :
         {+[](Detection& d) { d.class_id = 2; }, +[](Detection& d) { d.score = 0.75F; },
          +[](Detection& d) { d.x1 = 30; }, +[](Detection& d) { d.angle = 1; }}) {
        Detection other = box;
        change(other);
        EXPECT_TRUE(differs(one_box(other), one_box(box)));
    }
    Detection turned = box;
    turned.angle = 3.14159265F;  // the same rectangle
    EXPECT_FALSE(differs(one_box(turned), one_box(box)));

    Decoded points = one_box(box);
    points.detections[0].keypoints = 2;
    points.keypoints = {{5, 5}, {30, 10}};
    Decoded near = points, far = points;
    near.keypoints[1].x = 33;
    far.keypoints[1].x = 36;
    EXPECT_FALSE(differs(near, points));
    EXPECT_TRUE(differs(far, points));
    EXPECT_TRUE(differs(one_box(box), points));

    Decoded masked = one_box(box);
    masked.detections[0].mask = 0;
    masked.masks = {{.x0 = 0, .y0 = 0, .x1 = 40, .y1 = 20, .width = 4, .height = 1}};
    masked.mask_pixels = {1, 1, 1, 0};
    Decoded half = masked;
    half.mask_pixels = {1, 1, 0, 0};
    EXPECT_FALSE(differs(masked, masked));
    EXPECT_TRUE(differs(half, masked));
    EXPECT_TRUE(differs(one_box(box), masked));
}

// Classes per pixel beside a map of numbers: 0.98 is enough of the one, 0.999 is not of the other.
TEST(Verdict, AsksOfEachOutputForWhatItsKindCanGive) {
    const Floats numbers = wave(1000, 0, 1, 0.3F);
    const auto classes_with = [](size_t wrong) {
        const Floats expected(1000, 1);
        Floats found = expected;
        std::fill_n(found.begin(), wrong, 2.0F);
        return agreement(tensor(DataType::int64, {1, 1000}), found, expected);
    };
    const auto numbers_with = [&](float error) {
        Floats found = numbers;
        for (size_t i = 0; i < found.size(); ++i) found[i] += i % 2 ? error : -error;
        return agreement(tensor(DataType::float32, {1, 1000}), found, numbers);
    };
    const struct {
        const char* why;
        size_t wrong_classes;
        float error;
        bool is_met;
    } rows[] = {
        {"all is as it was", 0, 0, true},
        {"a fiftieth of the classes are others", 20, 0, true},
        {"and the numbers are a little", 20, 0.01F, true},
        {"the numbers miss, though they are nearer than the classes", 20, 0.04F, false},
        {"the classes miss", 50, 0, false},
        {"both miss", 50, 0.04F, false},
    };
    for (const auto& row : rows) {
        for (const bool first : {true, false}) {
            std::vector<OutputAgreement> outputs = {classes_with(row.wrong_classes),
                                                    numbers_with(row.error)};
            if (first) std::swap(outputs[0], outputs[1]);
            const compiler::Verdict verdict = verdict_of(outputs, ObjectAgreement());
            EXPECT_EQ(verdict.excess <= 1, row.is_met) << row.why;
            EXPECT_EQ(verdict.agreement, std::min(outputs[0].value(), outputs[1].value()));
        }
    }
}

}  // namespace
}  // namespace vartml::tools
