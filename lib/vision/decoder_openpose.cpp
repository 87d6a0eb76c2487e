// SPDX-License-Identifier: Apache-2.0
// OpenPose of 18 points, several persons: heat maps [1,19,h,w], one per point and the background,
// and part affinity fields [1,38,h,w], the x and y of a unit vector along each of 19 limbs; or both
// in one tensor [1,57,h,w], the heat maps first. Of several stages the last is read. A limb joins
// two peaks where the field between them points along it; limbs that share a peak are a person.
// given: Cao et al., "OpenPose: Realtime Multi-Person 2D Pose Estimation using Part Affinity
// Fields", and the limits of its published COCO model.
#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "lib/vision/families.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

namespace {

constexpr uint32_t num_points = 18, num_limbs = 19;
constexpr uint32_t heat_channels = num_points + 1, field_channels = 2 * num_limbs;

// Points that a limb joins, and the channels of its field.
struct Limb {
    uint8_t from, to, x;  // y is the channel behind x
};
constexpr Limb limbs[num_limbs] = {
    {1, 2, 12},   {1, 5, 20},  {2, 3, 14},   {3, 4, 16},  {5, 6, 22},   {6, 7, 24}, {1, 8, 0},
    {8, 9, 2},    {9, 10, 4},  {1, 11, 6},   {11, 12, 8}, {12, 13, 10}, {1, 0, 28}, {0, 14, 30},
    {14, 16, 34}, {0, 15, 32}, {15, 17, 36}, {2, 16, 18}, {5, 17, 26}};
// The last two join ears and shoulders: they add to a person, and never make one.
constexpr size_t first_helper = 17;

constexpr float least_peak = 0.1f, least_field = 0.05f;
constexpr int samples = 10, least_samples = 9;  // of a limb: more than 8 of 10 point along it
constexpr unsigned least_points = 3;
constexpr float least_strength = 0.2f;  // of a person: peaks and limbs, by the number of peaks

struct Peak {
    float x, y, score;  // cells
};
struct Connection {
    uint32_t from, to;  // peaks of both points
    float score;
};
constexpr int32_t none = -1;
struct Person {
    std::array<int32_t, num_points> peaks;  // of each point, or none
    unsigned count = 0;
    float strength = 0;
};

struct Maps {
    MapForm heat, fields;
    uint32_t first_field = 0;  // channel, where both are one tensor
};

class OpenPose final : public Head {
public:
    OpenPose(const HeadRequest& request, const Maps& maps)
        : maps_(maps),
          cell_x_(static_cast<float>(request.width) / static_cast<float>(maps.heat.width)),
          cell_y_(static_cast<float>(request.height) / static_cast<float>(maps.heat.height)) {}

    unsigned classes() const override { return 1; }
    std::vector<std::string> class_names() const override { return {"person"}; }
    unsigned keypoints() const override { return num_points; }
    std::string_view skeleton() const override { return skeleton_of(num_points); }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        auto heat = heat_view_.read(tensors[maps_.heat.output]);
        if (!heat) return std::move(heat).error();
        auto fields = fields_view_.read(tensors[maps_.fields.output]);
        if (!fields) return std::move(fields).error();
        for (uint32_t point = 0; point < num_points; ++point)
            find_peaks(*heat, point, out.not_finite);
        persons_.clear();
        for (size_t limb = 0; limb < num_limbs; ++limb) {
            connect(*fields, limbs[limb]);
            for (const Connection& connection : connections_)
                add_to_person(limbs[limb], connection, limb >= first_helper);
        }
        for (uint32_t i = 0; i < persons_.size(); ++i) add_candidate(i, context.threshold, out);
        return {};
    }

    Result<void> add_details(std::span<const OutputTensor>, const RunContext&,
                             const Candidate& candidate, BoxDetails& details) override {
        const Person& person = persons_[candidate.position];
        for (uint32_t point = 0; point < num_points; ++point) {
            const int32_t index = person.peaks[point];
            if (index == none) {
                details.keypoints.push_back({0, 0, 0, false});  // keeps its place
                continue;
            }
            const Peak& peak = peaks_[point][static_cast<size_t>(index)];
            details.keypoints.push_back({pixel_x(peak), pixel_y(peak), peak.score});
        }
        return {};
    }

private:
    // Cells are averages about their middles.
    float pixel_x(const Peak& peak) const { return (peak.x + 0.5f) * cell_x_; }
    float pixel_y(const Peak& peak) const { return (peak.y + 0.5f) * cell_y_; }

    // How far from the greatest of three cells the top of the parabola through them is.
    static float top(float before, float at, float behind) {
        const float bend = before - 2 * at + behind;
        return bend < 0 ? std::clamp((before - behind) / (2 * bend), -0.5f, 0.5f) : 0;
    }

    // Cells greater than their four neighbours; of equal ones the first.
    void find_peaks(const float* values, uint32_t point, unsigned& not_finite) {
        const MapForm& map = maps_.heat;
        auto& peaks = peaks_[point];
        peaks.clear();
        const auto at = [&](int64_t y, int64_t x) {
            const bool inside = y >= 0 && x >= 0 && y < map.height && x < map.width;
            return inside ? values[map.at(point, static_cast<size_t>(y), static_cast<size_t>(x))]
                          : 0.f;
        };
        for (int64_t y = 0; y < map.height; ++y) {
            for (int64_t x = 0; x < map.width; ++x) {
                const float value = at(y, x);
                not_finite += !std::isfinite(value);
                if (!(value >= least_peak) || !std::isfinite(value)) continue;
                const float left = at(y, x - 1), right = at(y, x + 1);
                const float above = at(y - 1, x), below = at(y + 1, x);
                if (!(value > left && value >= right && value > above && value >= below)) continue;
                peaks.push_back({static_cast<float>(x) + top(left, value, right),
                                 static_cast<float>(y) + top(above, value, below), value});
            }
        }
    }

    // A channel of the fields between its cells.
    float field(const float* values, uint32_t channel, float x, float y) const {
        const MapForm& map = maps_.fields;
        x = std::clamp(x, 0.f, static_cast<float>(map.width - 1));
        y = std::clamp(y, 0.f, static_cast<float>(map.height - 1));
        const auto x0 = static_cast<uint32_t>(x), y0 = static_cast<uint32_t>(y);
        const uint32_t x1 = std::min(x0 + 1, map.width - 1), y1 = std::min(y0 + 1, map.height - 1);
        const float fx = x - static_cast<float>(x0), fy = y - static_cast<float>(y0);
        const uint32_t c = channel + maps_.first_field;
        const float above = values[map.at(c, y0, x0)] * (1 - fx) + values[map.at(c, y0, x1)] * fx;
        const float below = values[map.at(c, y1, x0)] * (1 - fx) + values[map.at(c, y1, x1)] * fx;
        return above * (1 - fy) + below * fy;
    }

    // How well the field points from one peak to the other; 0 where it does not.
    float affinity(const float* values, const Limb& limb, const Peak& from, const Peak& to) const {
        const float dx = to.x - from.x, dy = to.y - from.y, length = std::hypot(dx, dy);
        if (!(length > 0)) return 0;
        float sum = 0;
        int along = 0;
        for (int i = 0; i < samples; ++i) {
            const float part = static_cast<float>(i) / (samples - 1);
            const float x = from.x + part * dx, y = from.y + part * dy;
            const float score =
                (field(values, limb.x, x, y) * dx + field(values, limb.x + 1u, x, y) * dy) / length;
            if (!(score > least_field)) continue;
            sum += score;
            ++along;
        }
        return along >= least_samples && std::isfinite(sum) ? sum / static_cast<float>(along) : 0;
    }

    // The best pairs first; a peak is in one pair.
    void connect(const float* values, const Limb& limb) {
        connections_.clear();
        const auto &from = peaks_[limb.from], &to = peaks_[limb.to];
        for (uint32_t a = 0; a < from.size(); ++a) {
            for (uint32_t b = 0; b < to.size(); ++b) {
                const float score = affinity(values, limb, from[a], to[b]);
                if (score > 0) connections_.push_back({a, b, score});
            }
        }
        std::ranges::sort(connections_, {},
                          [](const Connection& c) { return std::tuple(-c.score, c.from, c.to); });
        used_from_.assign(from.size(), false);
        used_to_.assign(to.size(), false);
        std::erase_if(connections_, [&](const Connection& c) {
            if (used_from_[c.from] || used_to_[c.to]) return true;
            used_from_[c.from] = used_to_[c.to] = true;
            return false;
        });
    }

    // Two that the limb shows to be one: whoever has its first point, and who has its second.
    bool join(const Limb& limb, int32_t from, int32_t to, float score) {
        const auto with = [&](uint8_t point, int32_t peak) {
            return std::ranges::find_if(persons_,
                                        [&](const Person& p) { return p.peaks[point] == peak; });
        };
        const auto one = with(limb.from, from), other = with(limb.to, to);
        if (one == persons_.end() || other == persons_.end() || one == other) return false;
        for (uint32_t point = 0; point < num_points; ++point)
            if (one->peaks[point] != none && other->peaks[point] != none) return false;
        for (uint32_t point = 0; point < num_points; ++point)
            if (other->peaks[point] != none) one->peaks[point] = other->peaks[point];
        one->count += other->count;
        one->strength += other->strength + score;
        persons_.erase(other);
        return true;
    }

    void add_to_person(const Limb& limb, const Connection& c, bool helper) {
        const auto from = static_cast<int32_t>(c.from), to = static_cast<int32_t>(c.to);
        const auto extend = [&](Person& person, uint8_t point, int32_t peak) {
            person.peaks[point] = peak;
            ++person.count;
            person.strength += peaks_[point][static_cast<size_t>(peak)].score + c.score;
        };
        if (join(limb, from, to, c.score)) return;
        for (Person& person : persons_) {
            int32_t& has_from = person.peaks[limb.from];
            int32_t& has_to = person.peaks[limb.to];
            if (has_from == from && has_to == to) {
                person.strength += c.score;
                return;
            }
            if (has_from == from && has_to == none) return extend(person, limb.to, to);
            if (has_to == to && has_from == none) return extend(person, limb.from, from);
        }
        if (helper) return;
        Person person;
        person.peaks.fill(none);
        extend(person, limb.from, from);
        person.strength -= c.score;  // counts once
        extend(person, limb.to, to);
        persons_.push_back(person);
    }

    void add_candidate(uint32_t index, float threshold, Candidates& out) const {
        const Person& person = persons_[index];
        const auto count = static_cast<float>(person.count);
        if (person.count < least_points || person.strength < least_strength * count) return;
        Candidate box{INFINITY, INFINITY, -INFINITY, -INFINITY, 0, 0, index};
        for (uint32_t point = 0; point < num_points; ++point) {
            if (person.peaks[point] == none) continue;
            const Peak& peak = peaks_[point][static_cast<size_t>(person.peaks[point])];
            box.score += std::min(peak.score, 1.f) / count;
            box.x0 = std::min(box.x0, pixel_x(peak)), box.x1 = std::max(box.x1, pixel_x(peak));
            box.y0 = std::min(box.y0, pixel_y(peak)), box.y1 = std::max(box.y1, pixel_y(peak));
        }
        // Points in a line still are a person.
        box.x1 = std::max(box.x1, box.x0 + 1), box.y1 = std::max(box.y1, box.y0 + 1);
        if (box.score >= threshold) out.add(box);
    }

    Maps maps_;
    float cell_x_, cell_y_;  // pixels of the model's input
    FloatView heat_view_, fields_view_;
    std::array<std::vector<Peak>, num_points> peaks_;
    std::vector<Connection> connections_;
    std::vector<bool> used_from_, used_to_;
    std::vector<Person> persons_;  // of the last run
};

// The last maps of the channels wanted; nullopt where there is an output of other channels.
std::optional<Maps> find_maps(const HeadRequest& request) {
    std::optional<MapForm> heat, fields, both;
    for (const TensorInfo& output : request.outputs) {
        const auto form = map_form(request, output);
        const uint32_t channels = form ? form->channels : 0;
        if (channels == heat_channels) {
            heat = form;
        } else if (channels == field_channels) {
            fields = form;
        } else if (channels == heat_channels + field_channels) {
            both = form;
        } else {
            return std::nullopt;
        }
    }
    if (both && !heat && !fields) return Maps{*both, *both, heat_channels};
    const bool same =
        heat && fields && !both && heat->width == fields->width && heat->height == fields->height;
    return same ? std::optional(Maps{*heat, *fields}) : std::nullopt;
}

}  // namespace

// One tensor of 57 channels may be classes as well: then the user is asked.
bool fits_openpose(const HeadRequest& request) {
    const auto maps = find_maps(request);
    return maps && (maps->heat.output != maps->fields.output || !promised_classes(request.info));
}

Result<std::unique_ptr<Head>> create_openpose(const HeadRequest& request) {
    const auto maps = find_maps(request);
    if (!maps) {
        const std::string found = outputs_text(request.outputs);
        return head_error(request, "dec-role",
                          "expected heat maps [1,19,h,w] and part affinity fields [1,38,h,w], or "
                          "both as [1,57,h,w], found " +
                              found + "; choose another decoder",
                          found, "[1,19,h,w] and [1,38,h,w]", "decoder=…");
    }
    return std::unique_ptr<Head>(std::make_unique<OpenPose>(request, *maps));
}

}  // namespace vartml::vision
