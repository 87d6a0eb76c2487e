// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/agreement.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "lib/tools/verify/judge.h"

namespace vartml::verify {

namespace {

constexpr double most_of_range = 1e-3, least_cosine = 0.999, least_of_rounded = 0.99;
constexpr double most_of_rounded_stretch = 1.5;
// Results of the reference that are farther from one another say nothing of any other.
constexpr double most_spread = 0.5;
constexpr double most_steps = 1 + 1e-3;  // they are counted in rounded floats

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
    for (size_t i = 0; i < x.size(); ++i)
        if (x[i] != y[i]) sum += (x[i] - y[i]) * (x[i] - y[i]);
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
    const double least = rule == Rule::made_int8 ? least_of_rounded : least_cosine;
    if (!is_float(type) && !has_codes(type))
        return {share_of_others, f32 ? 1e-3 : 1e-2, f32 ? 1e-3 : 1e-1};
    if (f32) return {part_of_range, most_of_range, most_of_range};
    return {off_the_cosine, 1 - least, 1 - least_of_rounded};
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
           short_number(limit * 100) + " %";
}

// Sums of floats that lie between two codes are rounded to either.
bool is_within_a_step(const TensorData& found, const ExpectedOutput& expected, double& steps) {
    if (!expected.step || !(*expected.step > 0)) return false;
    const std::vector<double> a = numbers_of(found);
    steps = HUGE_VAL;
    for (size_t i = 0; i <= expected.levels.size(); ++i) {
        const TensorData& of = i == 0 ? expected.plain : expected.levels[i - 1];
        steps = std::min(steps, largest_difference(a, numbers_of(of)) / *expected.step);
    }
    return steps <= most_steps;
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
        result.excess = HUGE_VAL;
        return result;
    }
    const std::vector<double> a = numbers_of(found), b = numbers_of(plain);
    result.cosine = cosine(a, b);
    result.of_range = b.empty() ? 0 : largest_difference(a, b) / range_of(b);

    double steps = 0;
    if (is_within_a_step(found, expected, steps)) {
        result.is_good = true;
        result.excess = std::min(steps, 1.0);
        result.text = "largest difference " + short_number(steps) + " steps of the " +
                      short_number(*expected.step) + " that it is quantised with, at most 1";
        return result;
    }
    const Yardstick by = yardstick_of(plain.type, rule);
    const double distance = to_nearest(found, expected, by.distance);
    const double spread = spread_of(expected, by.distance);
    const double own_stretch = by.distance == off_the_cosine ? spread_of(expected, stretch) : 0;
    if (by.distance != share_of_others && std::max(spread, own_stretch) > most_spread &&
        (distance > by.limit || to_nearest(found, expected, stretch) > most_stretch)) {
        result.is_undecided = true;
        result.excess = HUGE_VAL;
        result.text =
            "cannot be judged: ONNX Runtime's own results on this input are " +
            (spread > most_spread ? (by.distance == off_the_cosine
                                         ? "at a cosine of " + short_number(1 - spread, "%.5g")
                                         : short_number(spread) + " of the range away")
                                  : short_number(own_stretch + 1) + " times as long") +
            " from one another; give inputs that the model is for: pictures, or tensors "
            "by --inputs";
        return result;
    }
    double limit = std::max(by.limit, spread);
    // A NaN is of the rounding's own making (numbers near the largest), and says nothing.
    for (const TensorData& rounded : expected.rounded)
        if (by.distance(rounded, plain) > by.limit && is_finite(rounded))
            limit = std::max(limit, by.limit_of_rounded);
    result.is_good = distance <= limit || (by.distance == part_of_range && spread > by.limit &&
                                           is_within_spread(found, expected, distance, spread));
    result.excess = result.is_good     ? std::min(distance / limit, 1.0)
                    : distance > limit ? distance / limit
                                       : HUGE_VAL;  // no number
    const bool is_whole_within = result.is_good && distance > limit;
    result.text = words(by, distance, is_whole_within ? 2 * spread : limit);
    if (is_whole_within)
        result.text +=
            ", twice as far as ONNX Runtime's own results are from one another, from which all "
            "numbers together are no farther";
    else if (spread > by.limit && limit == spread)
        result.text += ", as far as ONNX Runtime's own results are from one another";
    if (by.distance == off_the_cosine && !expected.rounded.empty())
        result.text += " (of an ideal bf16 device " +
                       short_number(1 - off_the_cosine(expected.rounded[0], plain), "%.5g") + ')';
    if (by.distance != off_the_cosine || !result.is_good) return result;
    const double most = stretch_limit(expected);
    const double longer = to_nearest(found, expected, stretch);
    if (longer <= most && longer > most_stretch)
        result.text += ", " + short_number(length_ratio(a, b)) +
                       " times as long, which is within what ONNX Runtime or an ideal bf16 device "
                       "is off";
    if (longer <= most) return result;
    result.is_good = false;
    result.excess = longer / most;
    result.text += ", but " + short_number(length_ratio(a, b)) + " times as long, at most " +
                   short_number(100 * most) + " % more or less is expected";
    return result;
}

namespace {

constexpr double least_iou = Effect{}.least_iou, most_of_ideal = 1.5;

// Not much worse than what the ideal device of bf16 finds.
bool is_as_good(const Effect& effect, const Effect& ideal) {
    const auto times = [](auto value) { return most_of_ideal * static_cast<double>(value); };
    return static_cast<double>(effect.missing) <= times(ideal.missing) &&
           static_cast<double>(effect.added) <= times(ideal.added) &&
           effect.same_class >= ideal.same_class &&
           1 - effect.worst_iou <= std::max(1 - least_iou, times(1 - ideal.worst_iou)) &&
           effect.worst_score <= std::max(effect.most_score, times(ideal.worst_score));
}

std::vector<TensorData> plain_of(const std::vector<ExpectedOutput>& expected) {
    std::vector<TensorData> values;
    for (const ExpectedOutput& e : expected) values.push_back(e.plain);
    return values;
}

// Of each further reference, where all outputs have it.
std::vector<std::vector<TensorData>> others_of(const std::vector<ExpectedOutput>& expected,
                                               std::vector<TensorData> ExpectedOutput::* member) {
    size_t count = expected.empty() ? 0 : (expected[0].*member).size();
    for (const ExpectedOutput& e : expected) count = std::min(count, (e.*member).size());
    std::vector<std::vector<TensorData>> others(count);
    for (size_t k = 0; k < count; ++k)
        for (const ExpectedOutput& e : expected) others[k].push_back((e.*member)[k]);
    return others;
}

// Boxes and classes of both sides, by the decoder that takes the outputs.
class Objects {
public:
    Objects(const DecoderUse& use, const std::vector<TensorData>& found,
            const std::vector<ExpectedOutput>& expected, Rule rule)
        : use_(use), found_(found), expected_(expected), rule_(rule) {}

    // False where no decoder reads the outputs, or none that fits the reference's numbers.
    bool look() {
        const std::vector<TensorData> plain = plain_of(expected_);
        path_ = path_of(use_.info);
        if (!path_ || doubts(plain)) return false;
        effect_ = compare(found_, plain);
        if (!effect_) return false;
        has_objects_ = effect_->expected != 0;
        if (has_objects_) return true;
        // Nothing is sure enough to be an object: what the model takes for most likely is.
        ModelInfo all = use_.info;
        all.score_threshold = 0;
        auto unsure = path_of(all);
        if (!path_->lists_boxes()) {
            unsure_ = std::move(unsure);
            shift_ = unsure_ ? score_shift(found_, plain) : 0;
            return true;
        }
        path_ = std::move(unsure);
        const auto wanted = path_ ? path_->reference_candidates(plain, use_.frame)
                                  : Result<vision::Candidates>(Error{ErrorCode::not_found, ""});
        if (!wanted) return false;
        double top = 0;
        for (const Detection& d : path_->reference_select(*wanted, use_.frame).detections)
            top = std::max<double>(top, d.score);
        most_score_ = std::min(most_score_, top / 2);
        effect_ = compare(found_, plain);
        return effect_.has_value();
    }

    // By any of the references, or as well as the ideal device does.
    bool are_found_again() {
        if (effect_->is_good()) return scores_agree();
        for (const auto& level : others_of(expected_, &ExpectedOutput::levels))
            if (const auto e = compare(found_, level); e && e->is_good()) return true;
        // Of what is no object even to the reference, the ideal device says nothing.
        if (rule_ != Rule::standard || most_score_ < Effect{}.most_score) return false;
        for (const auto& rounded : others_of(expected_, &ExpectedOutput::rounded))
            if (const auto e = compare(rounded, plain_of(expected_)))
                if (!e->is_good() && is_as_good(*effect_, *e)) return true;
        return false;
    }

    // Whether what is found depends on the output: on masks and embeddings beside a list it does
    // not.
    bool depend_on(size_t output) {
        const std::vector<TensorData> plain = plain_of(expected_);
        for (const std::byte fill : {std::byte{0}, std::byte{0x3f}}) {  // fp32: 0 and 0.75
            std::vector<TensorData> changed = plain;
            std::ranges::fill(changed[output].bytes, fill);
            const auto effect = compare(changed, plain);
            if (!effect || !effect->is_good()) return true;
        }
        return false;
    }

    bool are_listed() const { return path_->lists_boxes(); }
    bool reach_threshold() const { return has_objects_; }
    size_t count() const { return effect_->expected; }

    std::string words() const {
        const std::string family(path_->family());
        const Effect& e = *effect_;
        if (e.same_class != e.classified) return "another top class (" + family + ")";
        if (e.is_good())
            return "decoder " + family +
                   ": no box reaches the score threshold, but scores are off by up to " +
                   short_number(shift_);
        return "decoder " + family + ": of " + std::to_string(e.expected) + " boxes " +
               std::to_string(e.missing) + " missing, " + std::to_string(e.added) +
               " new, worst IoU " + short_number(e.worst_iou) + ", score off by " +
               short_number(e.worst_score);
    }

private:
    std::unique_ptr<DecodePath> path_of(const ModelInfo& info) const {
        auto made = DecodePath::create(info, use_.outputs, use_.width, use_.height, use_.decoder);
        return made ? std::make_unique<DecodePath>(std::move(*made)) : nullptr;
    }

    // Boxes of a decoder that cannot be the right one are noise, however near the outputs are.
    bool doubts(const std::vector<TensorData>& plain) {
        return !path_->decode(cpu_tensors(use_.outputs, plain), use_.frame) ||
               !path_->doubt().empty();
    }

    // Of a dense head without objects, whose coordinates hide the scores from a cosine: how far the
    // scores, by size, are from those of the reference, as far as that counts.
    double score_shift(const std::vector<TensorData>& values,
                       const std::vector<TensorData>& reference) {
        const auto scores = [&](const std::vector<TensorData>& of) {
            std::vector<float> all;
            if (const auto candidates = unsure_->reference_candidates(of, use_.frame))
                for (const vision::Candidate& c : candidates->boxes) all.push_back(c.score);
            std::ranges::sort(all, std::greater{});
            return all;
        };
        std::vector<float> own = scores(values), wanted = scores(reference);
        if (wanted.empty()) return 0;
        const double counts = std::clamp(wanted[0] / 2.0, 0.01, Effect{}.most_score);
        own.resize(wanted.size());
        double most = 0;
        for (size_t i = 0; i < wanted.size(); ++i)
            most = std::max<double>(most, std::abs(own[i] - wanted[i]));
        return most > counts ? most : 0;
    }

    bool scores_agree() {
        if (shift_ == 0) return true;
        for (const auto& level : others_of(expected_, &ExpectedOutput::levels))
            if (score_shift(found_, level) == 0) return true;
        if (rule_ != Rule::standard) return false;
        for (const auto& rounded : others_of(expected_, &ExpectedOutput::rounded))
            if (shift_ <= most_of_ideal * score_shift(rounded, plain_of(expected_))) return true;
        return false;
    }

    // What both find; nothing where the decoder cannot read them.
    std::optional<Effect> compare(const std::vector<TensorData>& values,
                                  const std::vector<TensorData>& reference) {
        const auto own = path_->reference_candidates(values, use_.frame);
        const auto wanted = path_->reference_candidates(reference, use_.frame);
        if (!own || !wanted) return std::nullopt;
        Effect effect;
        effect.most_score = most_score_;
        add_effect(effect, path_->reference_select(*own, use_.frame),
                   path_->reference_select(*wanted, use_.frame), path_->score_threshold(), "");
        return effect;
    }

    const DecoderUse& use_;
    const std::vector<TensorData>& found_;
    const std::vector<ExpectedOutput>& expected_;
    const Rule rule_;
    double most_score_ = Effect{}.most_score;
    std::unique_ptr<DecodePath> path_, unsure_;  // the second without a threshold
    std::optional<Effect> effect_;
    double shift_ = 0;
    bool has_objects_ = false;
};

// Whether an output is not much farther off than the ideal device's, which is off as well.
bool is_as_near(const TensorData& found, const ExpectedOutput& expected, Rule rule) {
    const Distance distance = yardstick_of(expected.plain.type, rule).distance;
    const double far = to_nearest(found, expected, distance);
    return std::ranges::any_of(expected.rounded, [&](const TensorData& ideal) {
        return is_finite(ideal) && far <= most_of_ideal * distance(ideal, expected.plain);
    });
}

}  // namespace

bool ModelAgreement::outputs_are_good() const {
    return std::ranges::all_of(outputs, &OutputAgreement::is_good);
}

ModelAgreement judge_model(const std::vector<TensorData>& found,
                           const std::vector<ExpectedOutput>& expected, Rule rule,
                           const DecoderUse* use) {
    ModelAgreement all;
    for (size_t i = 0; i < found.size(); ++i)
        all.outputs.push_back(judge_agreement(found[i], expected[i], rule));
    if (!use) return all;
    Objects objects(*use, found, expected, rule);
    if (!objects.look()) return all;
    const auto agree_by = [&](const std::string& why, bool if_read) {
        for (size_t i = 0; i < all.outputs.size(); ++i) {
            OutputAgreement& output = all.outputs[i];
            if (output.is_good || (if_read && !objects.depend_on(i))) continue;
            output.is_good = true;
            output.is_undecided = false;
            output.excess = 1;
            output.of_range = 0;
            output.text += why;
        }
    };
    const bool found_again = objects.are_found_again();
    // Rows of nearly the same score may come in another order, and others at the end.
    if (found_again && objects.are_listed() && objects.count() != 0)
        agree_by(", but it is a list, and its " + std::to_string(objects.count()) +
                     (objects.reach_threshold() ? " boxes" : " likeliest boxes") +
                     " are found again",
                 true);
    // Rows that are no objects are noise: their scores must agree, and no more be off than on the
    // ideal device.
    bool is_noise = objects.are_listed() && !objects.reach_threshold() &&
                    std::ranges::any_of(all.outputs, &OutputAgreement::is_good);
    for (size_t i = 0; is_noise && i < found.size(); ++i)
        is_noise = all.outputs[i].is_good || is_as_near(found[i], expected[i], rule);
    if (is_noise)
        agree_by(", but no row reaches the score threshold, and an ideal bf16 device is as far off",
                 false);
    else if (!found_again)
        all.objects = objects.words();
    return all;
}

}  // namespace vartml::verify
