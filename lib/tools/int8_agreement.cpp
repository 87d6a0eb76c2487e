// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/int8_agreement.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/reference.h"

namespace vartml::tools {
namespace {

// Outputs of an int8 model that does what the float model does.
constexpr double usual_correlation = 0.99, usual_scores = 0.9, usual_objects = 0.9,
                 usual_elements = 0.9;
// What is asked for without --quantize-target.
constexpr double wanted_correlation = 0.9995, wanted_objects = 0.97, wanted_elements = 0.97;
// What an application may not notice.
constexpr double least_iou = 0.9, most_difference = 0.1, most_shift = 0.1, least_mask = 0.8;
// Scores beside numbers that are so much larger have a scale that is not theirs.
constexpr float large = 16;
constexpr double least_spread = 0.01;  // of scores that say something, a standard deviation
// What scores of a detector lose before boxes change: a correlation of 0.99 counts as 0.9995.
constexpr double loss_of_scores = 0.05;

bool is_signed(DataType type) {
    return type == DataType::int8 || type == DataType::int16 || type == DataType::int32 ||
           type == DataType::int64;
}

// Every class where there is one: all of a box's points within a part of its larger side.
bool same_keypoints(const Decoded& a, const Detection& x, const Decoded& b, const Detection& y) {
    if (x.keypoints != y.keypoints) return false;
    const double most = most_shift * std::max(x.x1 - x.x0, x.y1 - x.y0);
    for (uint32_t i = 0; i < x.keypoints; ++i) {
        const Keypoint &p = a.keypoints[x.first_keypoint + i],
                       &q = b.keypoints[y.first_keypoint + i];
        if (p.visible && std::hypot(p.x - q.x, p.y - q.y) > most) return false;
    }
    return true;
}

bool is_set(const Decoded& decoded, const Mask& mask, double x, double y) {
    const double u = (x - mask.x0) / (mask.x1 - mask.x0) * mask.width;
    const double v = (y - mask.y0) / (mask.y1 - mask.y0) * mask.height;
    if (!(u >= 0 && v >= 0 && u < mask.width && v < mask.height)) return false;
    return decoded.mask_pixels[mask.first + static_cast<size_t>(v) * mask.width +
                               static_cast<size_t>(u)] == 1;
}

// By points of a grid over the box.
bool same_mask(const Decoded& a, const Detection& x, const Decoded& b, const Detection& y) {
    if ((x.mask < 0) != (y.mask < 0)) return false;
    if (x.mask < 0) return true;
    const Mask &first = a.masks[static_cast<size_t>(x.mask)],
               &second = b.masks[static_cast<size_t>(y.mask)];
    constexpr int points = 32;
    size_t both = 0, either = 0;
    for (int i = 0; i < points * points; ++i) {
        const double u = x.x0 + (i % points + 0.5) / points * (x.x1 - x.x0);
        const double v = x.y0 + (i / points + 0.5) / points * (x.y1 - x.y0);
        const bool p = is_set(a, first, u, v), q = is_set(b, second, u, v);
        both += p && q ? 1 : 0;
        either += p || q ? 1 : 0;
    }
    return static_cast<double>(both) >= least_mask * static_cast<double>(either);
}

// How many of `these` that are well above the threshold there are, and are among `those`.
std::pair<size_t, size_t> count_again(const Decoded& these, const Decoded& those, float threshold) {
    size_t all = 0, again = 0;
    for (const Detection& box : these.detections) {
        if (box.score < threshold + most_difference) continue;
        ++all;
        again += std::ranges::any_of(those.detections, [&](const Detection& other) {
            return other.class_id == box.class_id &&
                   std::fabs(box.score - other.score) <= most_difference &&
                   verify::plain_iou(box, other) >= least_iou &&
                   same_keypoints(these, box, those, other) && same_mask(these, box, those, other);
        });
    }
    return {all, again};
}

}  // namespace

void OutputAgreement::Sums::add(double x, double y) {
    dot += x * y;
    found += x * x;
    expected += y * y;
    error += (x - y) * (x - y);
    found_sum += x;
    expected_sum += y;
    ++elements;
}

double OutputAgreement::Sums::cosine() const {
    const double length = std::sqrt(found) * std::sqrt(expected);
    return length > 0 ? dot / length : error == 0 ? 1.0 : 0.0;
}

double OutputAgreement::Sums::variance() const {
    return elements > 0 ? std::max(0.0, expected - expected_sum * expected_sum / elements) : 0;
}

bool OutputAgreement::Sums::varies() const {
    return variance() > 0x1p-16 * expected;
}

double OutputAgreement::Sums::correlation_of_rest() const {
    const double own = found - found_sum * found_sum / elements;
    return own > 0 ? (dot - found_sum * expected_sum / elements) / std::sqrt(own * variance()) : 0;
}

double OutputAgreement::Sums::correlation() const {
    return varies() ? correlation_of_rest() : cosine();
}

OutputAgreement::OutputAgreement(const TensorInfo& output,
                                 std::span<const std::span<const float>> expected)
    : is_whole_(!verify::is_float(output.cpu.data_type)),
      data_dependent_(output.data_dependent),
      padding_(is_signed(output.cpu.data_type) ? -1.0F : 0.0F) {
    const std::vector<uint32_t>& shape = output.cpu.shape;
    is_list_ = shape.size() == 2 && shape[0] == 1 && shape[1] > 1;
    if (shape.empty() || is_whole_) {
        for (size_t i = 1; i < shape.size(); ++i) row_ *= shape[i];
        return;
    }
    // The shorter one of the axis behind the batch and the last one.
    const size_t first = shape.size() > 2 ? 1 : 0, last = shape.size() - 1;
    const size_t axis = shape[last] < shape[first] ? last : first;
    for (size_t i = axis + 1; i < shape.size(); ++i) inner_ *= shape[i];
    channels_ = shape[axis];
    std::vector<char> is_score(channels_, 1);
    float largest = 0;
    for (const std::span<const float> sample : expected)
        for (size_t i = 0; i < sample.size(); ++i) {
            largest = std::max(largest, std::fabs(sample[i]));
            if (sample[i] < 0 || sample[i] > 1) is_score[i / inner_ % channels_] = 0;
        }
    if (largest >= large && std::ranges::count(is_score, 1) != 0) is_score_ = std::move(is_score);
}

void OutputAgreement::add(std::span<const float> found, std::span<const float> expected) {
    ++samples_;
    if (is_whole_ && data_dependent_) return add_rows(found, expected);
    for (size_t i = 0; i < found.size(); ++i) {
        if (!std::isfinite(found[i])) {
            ++not_finite_;
            continue;
        }
        if (is_whole_)
            same_ += found[i] == expected[i] ? 1 : 0;
        else if (!data_dependent_ || found[i] != 0 || expected[i] != 0)  // what is behind the rows
            all_.add(found[i], expected[i]);
        if (!is_score_.empty() && is_score_[i / inner_ % channels_])
            scores_.add(found[i], expected[i]);
    }
    compared_ += static_cast<double>(found.size());
    const auto top = [](std::span<const float> v) {
        return std::ranges::max_element(v) - v.begin();
    };
    same_top_ += top(found) == top(expected) ? 1 : 0;
}

// Rows that are real on one side at least: behind them all is -1, of unsigned numbers 0.
void OutputAgreement::add_rows(std::span<const float> found, std::span<const float> expected) {
    std::map<std::vector<float>, std::pair<size_t, size_t>> rows;
    const auto count = [&](std::span<const float> values, bool of_found) {
        for (size_t i = 0; i + row_ <= values.size(); i += row_) {
            const auto row = values.subspan(i, row_);
            if (std::ranges::all_of(row, [&](float v) { return v == padding_; })) continue;
            auto& [own, other] = rows[{row.begin(), row.end()}];
            ++(of_found ? own : other);
        }
    };
    count(found, true);
    count(expected, false);
    for (const auto& [row, counts] : rows) {
        same_ += 2 * static_cast<double>(std::min(counts.first, counts.second));
        compared_ += static_cast<double>(counts.first + counts.second);
    }
}

bool OutputAgreement::has_scores() const {
    return scores_.elements > 0 &&
           scores_.variance() / scores_.elements > least_spread * least_spread;
}

double OutputAgreement::value() const {
    if (is_whole_) return compared_ > 0 ? same_ / compared_ : 1;
    if (not_finite_ != 0) return 0;
    if (samples_ == 0 || all_.elements == 0) return 1;
    const double scores = has_scores() ? 1 - loss_of_scores * (1 - scores_.correlation()) : 1;
    return std::min(all_.correlation(), scores);
}

double OutputAgreement::wanted() const {
    return is_whole_ ? wanted_elements : wanted_correlation;
}

bool OutputAgreement::is_usual() const {
    if (is_whole_) return value() >= usual_elements;
    return value() >= usual_correlation && (!has_scores() || scores_.correlation() >= usual_scores);
}

std::string OutputAgreement::text() const {
    char text[200];
    if (is_whole_) {
        std::snprintf(text, sizeof text, "%.2f %% of the %s are the same", 100 * value(),
                      data_dependent_ ? "rows" : "elements");
        return text;
    }
    if (not_finite_ != 0)
        return std::to_string(not_finite_) + " numbers are infinite or none at all";
    const double signal = all_.varies() ? all_.variance() : all_.expected;
    const double decibels =
        all_.error == 0 ? 99 : std::min(99.0, 10 * std::log10(signal / all_.error));  // 99: none
    std::snprintf(text, sizeof text, "%s %.5f, signal to error %.1f dB",
                  all_.varies() ? "correlation" : "cosine", all_.correlation(), decibels);
    std::string line = text;
    if (!all_.varies() && all_.variance() > 0) {
        std::snprintf(text, sizeof text, ", but of how it differs from its mean correlation %.5f",
                      all_.correlation_of_rest());
        line += text;
    }
    if (has_scores()) {
        std::snprintf(text, sizeof text, ", of its numbers from 0 to 1 alone correlation %.5f",
                      scores_.correlation());
        line += text;
    }
    if (is_list_)
        line += ", same top class " + std::to_string(same_top_) + " of " + std::to_string(samples_);
    return line;
}

void ObjectAgreement::add(const Decoded& found, const Decoded& expected) {
    const auto [all, again] = count_again(expected, found, threshold_);
    const auto [own, right] = count_again(found, expected, threshold_);
    expected_ += all;
    found_again_ += again;
    found_ += own;
    right_ += right;
}

double ObjectAgreement::value() const {
    return is_empty() ? 1
                      : static_cast<double>(found_again_ + right_) /
                            static_cast<double>(expected_ + found_);
}

bool ObjectAgreement::is_usual() const {
    return value() >= usual_objects;
}

compiler::Verdict verdict_of(std::span<const OutputAgreement> outputs,
                             const ObjectAgreement& objects) {
    double least = 1, excess = 0;
    for (const OutputAgreement& output : outputs) {
        least = std::min(least, output.value());
        excess = std::max(excess, (1 - output.value()) / (1 - output.wanted()));
    }
    if (objects.is_empty()) return {least, 1 - least, excess};
    return {objects.value(), 1 - least, (1 - objects.value()) / (1 - wanted_objects)};
}

}  // namespace vartml::tools
