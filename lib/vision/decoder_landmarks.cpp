// SPDX-License-Identifier: Apache-2.0
// Keypoints as a list: [1,2K] of x, y or [1,3K] of x, y, z (also [1,K,2], [1,K,3]), in pixels of
// the model's input or, where no number is larger than 2, in 0 to 1 of it. A further output of one
// value may say whether there is anything at all; of several the first does, the others tell more
// of it. MediaPipe's models have the points in Identity, their presence in Identity_1, which hand
// it is in Identity_2, and the points in metres in Identity_3. BlazePose has five values per point,
// the fourth is the logit of its being visible, and six points behind those of the body that are
// not its own.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "lib/vision/families.h"
#include "lib/vision/maps.h"
#include "lib/vision/plausibility.h"

namespace vartml::vision {

namespace {

constexpr std::array<std::string_view, 4> presence_hints{"presence", "flag", "conf", "score"};
constexpr std::array<std::string_view, 3> landmark_hints{"landmark", "keypoint", "coord"};
// Lists of published models whose values per point cannot be told from their number.
struct Published {
    uint32_t all;  // numbers in the list
    unsigned points, values_per_point;
};
constexpr Published published[] = {
    {468 * 3, 468, 3},  // face mesh
    {478 * 3, 478, 3},  // face mesh with irises
    {39 * 5, 33, 5},    // BlazePose
    {33 * 5, 33, 5},
};

// ours: a vector of fewer may be anything, such as moods beside a score or a box beside its own
constexpr unsigned fewest_points = 5;

// Coordinates up to here are in units of the input: in pixels, all points would lie in its corner.
constexpr float greatest_unit = 2;

uint32_t values_in(const TensorInfo& output) {
    uint32_t values = 1;
    for (const uint32_t dimension : output.cpu.shape) values *= dimension;
    return values;
}
bool is_single(const TensorInfo& output) {
    return values_in(output) == 1;
}

// [1,n], [1,n,1,1], [1,1,1,n] or [1,K,2|3].
bool is_list(const TensorInfo& output) {
    const auto& s = output.cpu.shape;
    if (s.size() < 2 || s.size() > 4 || s[0] != 1 || values_in(output) < 4) return false;
    const auto larger = std::ranges::count_if(s, [](uint32_t dimension) { return dimension > 1; });
    const bool table = s.size() == 3 && (s[2] == 2 || s[2] == 3);
    return (larger == 1 || table) && (values_in(output) % 2 == 0 || values_in(output) % 3 == 0);
}

struct Form {
    unsigned points = 0, values_per_point = 0;  // 0 where no number fits
};
Form form_of(const HeadRequest& request, const TensorInfo& output) {
    const auto& s = output.cpu.shape;
    const uint32_t all = values_in(output);
    const auto of = [all](unsigned values) { return Form{all / values, values}; };
    if (s.size() == 3 && s[1] > 1 && (s[2] == 2 || s[2] == 3)) return of(s[2]);
    if (const auto points = promised_classes(request.info)) {
        for (const unsigned values : {2u, 3u, 5u}) {
            if (all == values * *points) return of(values);
        }
        return {};
    }
    for (const Published& list : published) {
        if (list.all == all) return {list.points, list.values_per_point};
    }
    return all % 2 == 0 ? of(2) : all % 3 == 0 ? of(3) : Form();
}

class Landmarks final : public Head {
public:
    Landmarks(const HeadRequest& request, const TensorInfo& list, Form form,
              const TensorInfo* presence)
        : list_(static_cast<size_t>(&list - request.outputs.data())),
          numbers_(values_in(list)),
          points_(form.points),
          values_(form.values_per_point),
          activation_(presence ? activation_for(request, *presence, "sigmoid", "") : ""),
          may_be_logit_(presence && request.info.activation.empty() &&
                        ends_in(request, *presence).empty()),
          width_(static_cast<float>(request.width)),
          height_(static_cast<float>(request.height)) {
        if (presence) presence_ = static_cast<size_t>(presence - request.outputs.data());
    }

    unsigned classes() const override { return 0; }
    unsigned keypoints() const override { return static_cast<unsigned>(points_); }
    std::string_view skeleton() const override { return skeleton_of(keypoints()); }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        float score = 1;
        present_ = false;
        if (presence_) {
            auto read = presence_view_.read(tensors[*presence_]);
            if (!read) return std::move(read).error();
            const bool beyond = **read < 0 || **read > 1;  // no score, so it is a logit
            if (may_be_logit_ && beyond) activation_ = Activation("sigmoid");
            score = activation_(**read);
            if (!std::isfinite(score)) ++out.not_finite;
            if (!(score >= context.threshold) || !std::isfinite(score)) return {};
        }
        auto read = view_.read(tensors[list_]);
        if (!read) return std::move(read).error();
        const float* const values = *read;
        float greatest = 0;
        for (size_t k = 0; k < points_; ++k) {
            for (const float value : {values[k * values_], values[k * values_ + 1]}) {
                if (std::isfinite(value)) greatest = std::max(greatest, std::abs(value));
            }
        }
        const bool units = greatest <= greatest_unit;
        points_seen_.clear();
        present_ = score >= least_presence;
        probabilities_ = are_probabilities({values, numbers_});
        for (size_t k = 0; k < points_; ++k) {
            Keypoint point{values[k * values_] * (units ? width_ : 1),
                           values[k * values_ + 1] * (units ? height_ : 1),
                           values_ == 5 ? seen_(values[k * values_ + 3]) : score};
            if (!std::isfinite(point.x) || !std::isfinite(point.y)) {
                point = {0, 0, 0, false};  // keeps its place: the others are known by their numbers
                ++out.not_finite;
            } else {
                points_seen_.push_back(point);
            }
            out.picture.keypoints.push_back(point);
        }
        return {};
    }

    std::string doubt() const override {
        if (!present_) return {};
        if (probabilities_)
            return "its " + std::to_string(numbers_) +
                   " numbers are between 0 and 1 and sum up to 1, as scores of classes do";
        return doubt_of_points(points_seen_, width_, height_);
    }

private:
    static constexpr float least_presence = 0.5f;  // ours: without a thing its points are anywhere

    size_t list_, numbers_, points_;
    unsigned values_;  // per point
    // Of the last frame.
    std::vector<Keypoint> points_seen_;
    bool present_ = false, probabilities_ = false;
    std::optional<size_t> presence_;
    Activation activation_, seen_{"sigmoid"};
    bool may_be_logit_;     // nobody says what the presence is
    float width_, height_;  // of the model's input
    FloatView view_, presence_view_;
};

bool is_list_of_picture(const TensorInfo& output) {
    return is_list(output) && output.name.find("world") == output.name.npos;
}

// "Identity_3" as "Identity_" and 3.
struct NumberedName {
    std::string_view stem;
    unsigned long number;
};
NumberedName numbered(const TensorInfo& output) {
    const std::string_view name = output.name;
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    std::string_view stem = name.substr(0, digits);
    const unsigned long number = std::strtoul(output.name.c_str() + digits, nullptr, 10);
    if (digits < name.size() && stem.ends_with('_')) stem.remove_suffix(1);
    return {stem, number};
}

// find_output(), and where that does not tell among several the first: by the numbers of their
// names where these differ in nothing else, else as the model has them.
const TensorInfo* first_output(const HeadRequest& request, std::string_view role,
                               std::span<const std::string_view> hints,
                               bool (*fits)(const TensorInfo&)) {
    const TensorInfo* found = find_output(request, role, hints, fits);
    if (found || output_with_role(request, role)) return found;
    std::vector<const TensorInfo*> all;
    for (const TensorInfo& output : request.outputs)
        if (fits(output)) all.push_back(&output);
    const auto called = [&](const TensorInfo* output) {
        return std::ranges::any_of(hints, [&](std::string_view hint) {
            return output->name.find(hint) != output->name.npos;
        });
    };
    if (std::ranges::any_of(all, called)) std::erase_if(all, std::not_fn(called));
    if (all.empty()) return nullptr;
    const bool series = std::ranges::all_of(all, [&](const TensorInfo* output) {
        return numbered(*output).stem == numbered(*all.front()).stem;
    });
    if (!series) return all.front();
    return *std::ranges::min_element(
        all, {}, [](const TensorInfo* output) { return numbered(*output).number; });
}

const TensorInfo* find_list(const HeadRequest& request) {
    return first_output(request, "landmarks", landmark_hints, is_list_of_picture);
}

const TensorInfo* find_presence(const HeadRequest& request) {
    return first_output(request, "scores", presence_hints, is_single);
}

}  // namespace

// A mere vector is a classification; with outputs of one value beside it, or as a table of points,
// it is not.
bool fits_landmarks(const HeadRequest& request) {
    const TensorInfo* list = find_list(request);
    if (!list || !form_of(request, *list).points) return false;
    const std::string_view end = ends_in(request, *list);
    if (end == "softmax" || end == "log-softmax") return false;  // scores of classes
    if (output_with_role(request, "landmarks") || may_be_other_than_classes(request, *list))
        return true;
    const bool called = std::ranges::any_of(landmark_hints, [&](std::string_view hint) {
        return tensor_id(request, *list).find(hint) != std::string_view::npos;
    });
    if (is_class_vector(list->cpu.shape) && !called &&
        form_of(request, *list).points < fewest_points)
        return false;
    const auto singles = std::ranges::count_if(request.outputs, is_single);
    // The same points once more, in units of the world.
    const auto lists = std::ranges::count_if(request.outputs, [&](const TensorInfo& output) {
        return is_list(output) && values_in(output) == values_in(*list);
    });
    const bool table = !is_class_vector(list->cpu.shape) && !is_grid(request, list->cpu.shape[1]);
    return static_cast<size_t>(singles + lists) == request.outputs.size() &&
           (singles || (table && lists == 1));
}

Result<std::unique_ptr<Head>> create_landmarks(const HeadRequest& request) {
    const TensorInfo* list = find_list(request);
    if (!list) return role_error(request, "landmarks", "[1,2K] or [1,3K]");
    const Form form = form_of(request, *list);
    if (!form.points) {
        const std::string found = std::to_string(values_in(*list)),
                          points = std::to_string(promised_classes(request.info).value_or(0));
        return head_error(
            request, "dec-classes",
            "tensor '" + list->name + "' has " + found + " values, but " + source_of(request.info) +
                " names " + points +
                " points of two, three or five; correct x-vartml-num-classes or the labels",
            found, "2*" + points + " or 3*" + points, "x-vartml-num-classes=…");
    }
    return std::unique_ptr<Head>(
        std::make_unique<Landmarks>(request, *list, form, find_presence(request)));
}

}  // namespace vartml::vision
