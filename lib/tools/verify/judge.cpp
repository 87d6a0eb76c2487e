// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/judge.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numbers>
#include <utility>

#include "lib/compile/connect.h"
#include "lib/model/entries.h"
#include "lib/tools/verify/reference.h"

namespace vartml::verify {
namespace {

using vision::Candidate;
using vision::Candidates;

constexpr double most_grey = 0.125, most_shift = 0.5;

std::string number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

// What a number may differ by because a type of that view holds it.
double rounding(const TensorView& view, double value) {
    const double step = view.quantisation ? view.quantisation->scale : 1;
    switch (view.data_type) {
        case DataType::bf16:
            return std::abs(value) * 0x1p-8;
        case DataType::fp16:
            return std::abs(value) * 0x1p-11 + 0x1p-25;
        case DataType::float32:
            return std::abs(value) * 1e-6;
        default:
            return 0.5 * step * (1 + 1e-6);
    }
}

// The number itself, or the next one that an integer type has room for.
double limited(const TensorView& view, double value) {
    const Quantisation q = view.quantisation.value_or(Quantisation{});
    const auto within = [&](double low, double high) {
        return std::clamp(value, (low - q.zero_point) * q.scale, (high - q.zero_point) * q.scale);
    };
    if (view.data_type == DataType::uint8) return within(0, 255);
    if (view.data_type == DataType::int8) return within(-128, 127);
    return value;
}

double corner_shift(const Affine& a, const Affine& b, const PictureShape& shape) {
    double most = 0;
    for (const double u : {0.0, static_cast<double>(shape.width)})
        for (const double v : {0.0, static_cast<double>(shape.height)})
            most = std::max({most, std::abs((a.a - b.a) * u + (a.b - b.b) * v + a.c - b.c),
                             std::abs((a.d - b.d) * u + (a.e - b.e) * v + a.f - b.f)});
    return most;
}

// How far a comparison is from its limit, as a part of it.
double excess_of(const Comparison& comparison, const Tolerance& tolerance) {
    const double far =
        tolerance.measure == Measure::cosine ? 1 - comparison.value : comparison.value;
    const double most =
        tolerance.measure == Measure::cosine ? 1 - tolerance.limit : tolerance.limit;
    if (std::isnan(far)) return HUGE_VAL;
    if (!comparison.is_good && far <= most) return 1;  // of the length
    if (most <= 0) return far > 0 ? HUGE_VAL : 0;
    return far / most;
}

// How far the ends of a box are apart because of their angles, which a half turn does not change.
double turn(const auto& a, const auto& b) {
    const double side = std::max(std::abs(b.x1 - b.x0), std::abs(b.y1 - b.y0));
    return std::abs(std::remainder(double{a.angle} - b.angle, std::numbers::pi)) * side / 2;
}

// Largest difference of corners in pixels, as a part of what is allowed.
double box_excess(const Candidate& a, const Candidate& b) {
    const double side = std::max(std::abs(b.x1 - b.x0), std::abs(b.y1 - b.y0));
    const double most =
        std::max<double>({std::abs(a.x0 - b.x0), std::abs(a.y0 - b.y0), std::abs(a.x1 - b.x1),
                          std::abs(a.y1 - b.y1), turn(a, b)});
    return std::max(most / std::max(0.05, side * 1e-3), std::abs(a.score - b.score) / 1e-4);
}

bool same_detection(const Detection& a, const Detection& b) {
    const auto near = [&](float x, float y) {
        return std::abs(x - y) <= 0.01 + 1e-5 * std::abs(y);
    };
    return a.class_id == b.class_id && std::abs(a.score - b.score) <= 1e-5 && near(a.x0, b.x0) &&
           near(a.y0, b.y0) && near(a.x1, b.x1) && near(a.y1, b.y1) && turn(a, b) <= 0.01;
}

// Detections of `a` that `b` does not have.
size_t without_twin(const std::vector<Detection>& a, std::vector<Detection> b) {
    size_t alone = 0;
    for (const Detection& d : a) {
        const auto twin =
            std::ranges::find_if(b, [&](const Detection& o) { return same_detection(d, o); });
        if (twin == b.end())
            ++alone;
        else
            b.erase(twin);
    }
    return alone;
}

size_t differences(const Decoded& a, const Decoded& b) {
    size_t count = without_twin(a.detections, b.detections);
    count = std::max(count, without_twin(b.detections, a.detections));
    const bool same = a.classes.size() == b.classes.size() &&
                      std::ranges::equal(a.classes, b.classes, {}, &Classification::class_id,
                                         &Classification::class_id);
    return same ? count : std::max<size_t>(count, 1);
}

}  // namespace

Result<Judgement> judge_preprocess(const Preprocessed& found, const ReferenceInput& expected,
                                   const TensorView& view, const TensorView& cpu,
                                   const PreprocessOptions& options) {
    // What a type without fractions cannot hold is no fault of the stage.
    TensorView exact = cpu;
    if (!is_float(view.data_type) && view.quantisation) exact.data_type = DataType::float32;
    const auto values = reference_values(view, exact, found.tensor);
    if (!values) return values.error();
    const std::vector<double> numbers = numbers_of(*values);
    const PictureShape shape = picture_shape(cpu);
    const size_t plane = size_t{shape.width} * shape.height;
    double grey = 0;
    for (size_t i = 0; i < numbers.size() && i < expected.numbers.size(); ++i) {
        const size_t channel = shape.channels_last ? i % shape.channels : i / plane;
        const double want = limited(view, expected.numbers[i]);
        const double scale = std::abs(options.scale[channel]);
        const double beyond = std::abs(numbers[i] - want) - rounding(view, want);
        if (std::isnan(beyond))
            grey = HUGE_VAL;
        else if (beyond > 0 && scale > 0)
            grey = std::max(grey, beyond / scale);
    }
    const double shift = corner_shift(found.to_frame, expected.to_frame, shape);
    Judgement j;
    j.excess = std::max(grey / most_grey, shift / most_shift);
    j.is_good = j.excess <= 1;
    j.text = grey == 0 ? "only what " + std::string(to_string(view.data_type)) + " rounds"
                       : number(grey) + " grey levels beyond what " +
                             std::string(to_string(view.data_type)) + " rounds, at most " +
                             number(most_grey);
    if (shift > most_shift)
        j.text +=
            "; corners come back " + number(shift) + " pixels off, at most " + number(most_shift);
    return j;
}

Result<Judgement> judge_output(const TensorData& found, const TensorData& expected,
                               const Tolerance& tolerance, const std::string& what) {
    const auto comparison = compare(found, expected, tolerance, what);
    if (!comparison) return comparison.error();
    return Judgement{comparison->is_good, excess_of(*comparison, tolerance), comparison->of_range,
                     comparison->text};
}

Judgement judge_dequantised(const TensorData& found, const TensorData& expected) {
    const std::vector<double> a = numbers_of(found), b = numbers_of(expected);
    size_t differing = 0;
    if (a.size() != b.size() || (b.empty() && found.bytes != expected.bytes)) {
        differing = std::max<size_t>(b.size(), 1);
    } else {
        for (size_t i = 0; i < b.size(); ++i) {
            const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
            differing += same || std::abs(a[i] - b[i]) <= 1e-6 * std::abs(b[i]) ? 0 : 1;
        }
    }
    return {differing == 0, differing == 0 ? 0 : HUGE_VAL, 0,
            std::to_string(differing) + " of " +
                std::to_string(expected.bytes.size() / size_bytes(expected.type)) +
                " elements differ, at most 0"};
}

namespace {

// What belongs to the whole picture and is no class: its parts, and those that differ.
struct Parts {
    size_t all = 0, differing = 0;
};
Parts compare_details(const vision::PictureDetails& found, const vision::PictureDetails& expected) {
    const auto near = [](float a, float b) {
        return std::abs(a - b) <= 0.05f + 1e-3f * std::abs(b);
    };
    Parts parts{expected.keypoints.size() + expected.class_maps.size() +
                    (expected.embedding.empty() ? 0u : 1u) + (expected.text.empty() ? 0u : 1u),
                0};
    for (size_t i = 0; i < expected.keypoints.size(); ++i) {
        const bool there = i < found.keypoints.size();
        parts.differing += !there || !near(found.keypoints[i].x, expected.keypoints[i].x) ||
                           !near(found.keypoints[i].y, expected.keypoints[i].y);
    }
    if (found.keypoints.size() > expected.keypoints.size()) ++parts.differing;
    if (found.class_maps.size() != expected.class_maps.size() ||
        found.mask_pixels != expected.mask_pixels)
        parts.differing += std::max<size_t>(1, expected.class_maps.size());
    parts.differing += !std::ranges::equal(found.embedding, expected.embedding, near);
    parts.differing += found.text != expected.text;
    return parts;
}

}  // namespace

Judgement judge_candidates(const Candidates& found, const Candidates& expected, float threshold) {
    std::map<std::pair<uint32_t, int32_t>, const Candidate*> left;
    for (const Candidate& c : found.boxes) left[{c.position, c.class_id}] = &c;
    size_t differing = 0;
    double worst = 0;
    const auto clear = [&](const Candidate& c) { return std::abs(c.score - threshold) > 1e-4; };
    for (const Candidate& want : expected.boxes) {
        const auto it = left.find({want.position, want.class_id});
        if (it == left.end()) {
            differing += clear(want) ? 1 : 0;
            continue;
        }
        const double excess = box_excess(*it->second, want);
        worst = std::max(worst, excess);
        differing += excess <= 1 ? 0 : 1;
        left.erase(it);
    }
    for (const auto& [key, c] : left) differing += clear(*c) ? 1 : 0;
    if (found.classes.size() != expected.classes.size()) ++differing;
    for (size_t i = 0; i < std::min(found.classes.size(), expected.classes.size()); ++i) {
        const Classification &a = found.classes[i], &b = expected.classes[i];
        if (a.class_id != b.class_id || !(std::abs(a.score - b.score) <= 1e-4)) ++differing;
    }
    const Parts details = compare_details(found.picture, expected.picture);
    differing += details.differing;
    const size_t all = expected.boxes.size() + expected.classes.size() + details.all;
    if (all == 0 && differing == 0 && found.boxes.empty())
        return {.text = "no candidate to compare", .is_empty = true};
    Judgement j{differing == 0, differing == 0 ? worst : 1 + static_cast<double>(differing), 0, {}};
    j.text = std::to_string(differing) + " of " + std::to_string(all) +
             (!expected.boxes.empty()     ? " candidates"
              : !expected.classes.empty() ? " class scores"
                                          : " parts") +
             " differ, at most 0";
    return j;
}

Judgement judge_selection(const Decoded& found, const Candidates& candidates,
                          const DecodePath& path, const Frame& frame) {
    size_t least = std::numeric_limits<size_t>::max(), all = 0;
    for (const double shift : {0.0, 1e-4, -1e-4}) {
        const Decoded expected = path.reference_select(candidates, frame, shift);
        const size_t count = differences(found, expected);
        if (count < least) {
            least = count;
            all = expected.detections.size() + expected.classes.size();
        }
    }
    if (all == 0 && least == 0)
        return {.text = candidates.boxes.empty() ? "no candidate to compare" : "nothing is kept",
                .is_empty = candidates.boxes.empty() && candidates.picture.keypoints.empty() &&
                            candidates.picture.class_maps.empty() &&
                            candidates.picture.embedding.empty() &&
                            candidates.picture.text.empty()};
    return {least == 0, least == 0 ? 0 : 1 + static_cast<double>(least), 0,
            std::to_string(least) + " of " + std::to_string(all) + " kept differ, at most 0"};
}

void add_effect(Effect& effect, const Decoded& found, const Decoded& expected, float threshold,
                const std::string& sample) {
    const bool was_good = effect.is_good();
    std::vector<Detection> left = found.detections;
    const auto at_threshold = [&](const Detection& d) {
        return d.score <= threshold + static_cast<float>(effect.most_score);
    };
    for (const Detection& want : expected.detections) {
        double best = 0.5;
        auto twin = left.end();
        for (auto it = left.begin(); it != left.end(); ++it)
            if (it->class_id == want.class_id && plain_iou(*it, want) >= best) {
                best = plain_iou(*it, want);
                twin = it;
            }
        if (twin == left.end()) {
            at_threshold(want) ? ++effect.at_threshold : ++effect.missing;
            effect.expected += at_threshold(want) ? 0 : 1;
            continue;
        }
        ++effect.expected;
        ++effect.found;
        effect.worst_iou = std::min(effect.worst_iou, best);
        effect.worst_score =
            std::max<double>(effect.worst_score, std::abs(twin->score - want.score));
        left.erase(twin);
    }
    for (const Detection& d : left) at_threshold(d) ? ++effect.at_threshold : ++effect.added;
    if (!expected.classes.empty()) {
        ++effect.classified;
        const bool same =
            !found.classes.empty() && found.classes[0].class_id == expected.classes[0].class_id;
        effect.same_class += same ? 1 : 0;
    }
    if (was_good && !effect.is_good()) effect.sample = sample;
}

namespace {

// The least part of a map's pixels that are the same in both.
double same_pixels(const vision::PictureDetails& found, const vision::PictureDetails& expected) {
    double least = 1;
    for (size_t m = 0; m < expected.class_maps.size(); ++m) {
        const Mask& want = expected.class_maps[m];
        const size_t pixels = size_t{want.width} * want.height, size = want.pixel_bytes;
        if (m >= found.class_maps.size() || found.class_maps[m].width != want.width ||
            found.class_maps[m].height != want.height || found.class_maps[m].pixel_bytes != size)
            return 0;
        const auto own =
            found.mask_pixels.begin() + static_cast<std::ptrdiff_t>(found.class_maps[m].first);
        const auto other = expected.mask_pixels.begin() + static_cast<std::ptrdiff_t>(want.first);
        size_t same = 0;
        for (size_t i = 0; i < pixels; ++i) {
            const auto at = static_cast<std::ptrdiff_t>(i * size);
            same += std::equal(own + at, own + at + static_cast<std::ptrdiff_t>(size), other + at);
        }
        if (pixels != 0)
            least = std::min(least, static_cast<double>(same) / static_cast<double>(pixels));
    }
    return least;
}

}  // namespace

void add_picture(PictureEffect& effect, const vision::PictureDetails& found,
                 const vision::PictureDetails& expected) {
    if (!expected.class_maps.empty()) {
        effect.maps += expected.class_maps.size();
        effect.same_pixels = std::min(effect.same_pixels, same_pixels(found, expected));
    }
    for (size_t i = 0; i < expected.keypoints.size(); ++i) {
        ++effect.points;
        const bool there = i < found.keypoints.size();
        const Keypoint& want = expected.keypoints[i];
        const double shift =
            there ? std::hypot(found.keypoints[i].x - want.x, found.keypoints[i].y - want.y)
                  : HUGE_VAL;
        effect.point_shift = std::max(effect.point_shift, shift);
    }
    if (!expected.embedding.empty()) {
        ++effect.embeddings;
        const std::vector<double> a(found.embedding.begin(), found.embedding.end()),
            b(expected.embedding.begin(), expected.embedding.end());
        effect.cosine = std::min(effect.cosine, a.size() == b.size() ? cosine(a, b) : 0);
    }
    if (!expected.text.empty() || !found.text.empty()) {
        ++effect.texts;
        effect.same_texts += found.text == expected.text;
    }
}

namespace {

// Codes around their mean, so that the zero point does not hide a difference.
TensorData centred(const TensorData& data, double mean) {
    std::vector<double> numbers = numbers_of(data);
    for (double& n : numbers) n -= mean;
    const std::vector<uint32_t> shape(data.shape.begin(), data.shape.end());
    return tensor_of(DataType::float32, shape, numbers);
}

double mean_of(const TensorData& data) {
    const std::vector<double> numbers = numbers_of(data);
    double sum = 0;
    for (const double n : numbers) sum += n;
    return numbers.empty() ? 0 : sum / static_cast<double>(numbers.size());
}

class Comparer {
public:
    Comparer(Session session, const compiler::ModelWithTensors& kept,
             std::optional<double> tolerance, bool was_quantised)
        : session_(std::move(session)),
          kept_(kept),
          tolerance_(tolerance),
          on_codes_(compiler::computes_on_codes(kept.model)),
          was_quantised_(was_quantised) {}

    Session& session() { return session_; }

    Result<Layers> compare(const std::vector<Buffer>& found,
                           const std::map<std::string, TensorData>& expected, size_t own_outputs) {
        std::map<std::string, size_t> index;
        for (size_t i = 0; i < session_.outputs().size(); ++i)
            index[session_.outputs()[i].name] = i;
        Layers layers;
        layers.in_onnx = kept_.in_onnx;
        layers.ends_agree = true;
        for (const compiler::KeptTensor& tensor : kept_.tensors) {
            const auto at = index.find(tensor.name);
            const auto want = expected.find(tensor.name);
            if (at == index.end() || want == expected.end()) continue;
            const auto judged =
                judge(at->second, found[at->second], want->second, at->second < own_outputs);
            if (!judged) continue;  // of another type or shape: a pass made it another tensor
            const LayerFinding finding{tensor.name,  tensor.node,    tensor.kind,    tensor.sources,
                                       judged->text, judged->excess, judged->is_good};
            ++layers.compared;
            layers.beyond += finding.is_good ? 0 : 1;
            if (!finding.is_good && !layers.first) layers.first = finding;
            if (!layers.worst || finding.excess > layers.worst->excess) layers.worst = finding;
            if (at->second < own_outputs && !finding.is_good) layers.ends_agree = false;
        }
        return layers;
    }

private:
    std::optional<Judgement> judge(size_t output, const Buffer& bytes, const TensorData& want,
                                   bool at_border) {
        const TensorInfo& info = session_.outputs()[output];
        auto found = reference_values(session_.output_view(output), info.cpu, bytes);
        if (!found || found->type != want.type || found->bytes.size() != want.bytes.size())
            return std::nullopt;
        const bool codes = want.type == DataType::int8 || want.type == DataType::uint8;
        const bool number = codes || is_float(want.type);
        // Inside a model of codes roundings add up from layer to layer, which no count of steps
        // bounds; a wrong layer turns the whole tensor.
        const bool loose = number && on_codes_ && (!at_border || was_quantised_);
        Tolerance tolerance = loose ? Session::tolerance_of_quantised(tolerance_)
                                    : session_.tolerance_of_output(output, tolerance_);
        if (tolerance.measure == Measure::range && !at_border)
            tolerance.measure = Measure::magnitude;
        const bool centre = loose && codes;
        const double mean = centre ? mean_of(want) : 0;
        const auto judged = judge_output(centre ? centred(*found, mean) : *found,
                                         centre ? centred(want, mean) : want, tolerance, info.name);
        if (!judged) return std::nullopt;
        return *judged;
    }

    Session session_;
    const compiler::ModelWithTensors& kept_;
    std::optional<double> tolerance_;
    bool on_codes_, was_quantised_;
};

}  // namespace

Result<Layers> compare_layers(const std::string& onnx_file, const std::string& compiled,
                              const Session::Options& options, const OnnxRuntime& reference,
                              const std::vector<TensorData>& inputs,
                              std::optional<double> tolerance, bool was_quantised) {
    auto model = artifact::read(compiled);
    if (!model) return model.error();
    const size_t own_outputs = model->outputs.size();
    const auto kept = compiler::keep_tensors(std::move(*model), onnx_file);
    if (!kept) return kept.error();
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    const std::string path = folder->path() + "/layers.rai";
    if (auto written = artifact::write_rai(kept->model, path); !written) return written.error();
    Session::Options on_cpu = options;
    on_cpu.cpu_views = true;
    auto session = Session::open(path, on_cpu);
    if (!session) return session.error();
    std::vector<Buffer> bytes;
    std::vector<OnnxRuntime::Named> named;
    for (size_t i = 0; i < inputs.size(); ++i) {
        bytes.push_back(inputs[i].bytes);
        named.push_back({session->inputs()[i].name, inputs[i]});
    }
    std::vector<std::string> names;
    for (size_t i = own_outputs; i < session->outputs().size(); ++i)
        names.push_back(session->outputs()[i].name);
    auto expected = reference.run(onnx_file, named, names);
    if (!expected) return expected.error();
    auto found = session->run(bytes);
    if (!found) return found.error();
    return Comparer(std::move(*session), *kept, tolerance, was_quantised)
        .compare(*found, *expected, own_outputs);
}

}  // namespace vartml::verify
