// SPDX-License-Identifier: Apache-2.0
// The decoder of a model: chooses the family, resolves options, and takes candidates through NMS to
// frame pixels.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "lib/vision/custom.h"
#include "lib/vision/details.h"
#include "lib/vision/families.h"
#include "lib/vision/head.h"
#include "lib/vision/known_labels.h"
#include "lib/vision/output_views.h"
#include "lib/vision/plausibility.h"
#include "lib/vision/suppress.h"

namespace vartml {

using vision::Candidate;
using vision::Family;
using vision::HeadRequest;

struct Decoder::State {
    const Family* family = nullptr;
    std::string_view reason, labels_source;
    ModelInfo info;
    std::unique_ptr<vision::Head> head;
    std::vector<std::vector<uint32_t>> shapes;  // CPU shapes of the tensors that decode() gets
    std::vector<TensorInfo> batched;            // what the head was made for, where that differs
    std::optional<vision::BatchAxis> batch_axis;

    float score_threshold = 0, iou_threshold = 0, mask_threshold = 0, keypoint_threshold = 0;
    unsigned max_detections = 0, top_k = 1, min_size = 0;
    bool needs_nms = false;       // where nobody says
    Nms nms = Nms::per_class;     // never automatic
    std::vector<int32_t> wanted;  // classes kept, ascending; empty = all

    vision::Candidates candidates;  // scratch, as the next two
    vision::BoxDetails details, member_details;
    vision::Suppressor suppressor;
    vision::WeightedNms weighted;
    float width = 0, height = 0;      // of the model's input
    std::vector<TensorInfo> outputs;  // with their quantisation
    std::optional<vision::CodedOutputs> coded;
    unsigned looked_at = 0, looked_at_some = 0;  // frames; those with boxes alone
    std::string doubt, suspicion;

    void look_at(std::span<const OutputTensor> tensors, const vision::RunContext& context);
    void look_at_boxes();
    void look_at_kept(const Decoded& decoded, vision::FrameSize frame);
    std::string sentence(const std::string& begin, const std::string& why) const;
    bool is_wanted(int32_t class_id) const {
        return class_id >= 0 && (wanted.empty() || std::ranges::binary_search(wanted, class_id));
    }
    // From classes of the tensor to labels; drops those without a label (background) and unwanted
    // ones.
    template <typename T>
    void select(std::vector<T>& items) const {
        std::erase_if(items, [this](T& item) {
            item.class_id += info.class_offset;
            return !is_wanted(item.class_id);
        });
    }
    // The same for the pixels of class maps: what is dropped becomes no_class.
    void select_regions(vision::PictureDetails& picture) const {
        if (picture.class_maps.empty() || (!info.class_offset && wanted.empty())) return;
        const bool wide = picture.class_maps.front().pixel_bytes == 2;
        wide ? select_pixels<uint16_t>(picture.mask_pixels)
             : select_pixels<uint8_t>(picture.mask_pixels);
    }
    template <typename Pixel>
    void select_pixels(std::vector<uint8_t>& bytes) const {
        constexpr Pixel none = vision::no_class<Pixel>;
        for (size_t i = 0; i < bytes.size(); i += sizeof(Pixel)) {
            Pixel pixel;
            std::memcpy(&pixel, &bytes[i], sizeof pixel);
            if (pixel == none) continue;
            const int32_t label = pixel + info.class_offset;
            pixel = is_wanted(label) && label < none ? static_cast<Pixel>(label) : none;
            std::memcpy(&bytes[i], &pixel, sizeof pixel);
        }
    }
    Result<void> finish_boxes(std::span<const OutputTensor> tensors,
                              const vision::RunContext& context, const Affine& to_frame,
                              uint32_t frame_width, uint32_t frame_height, Decoded& decoded);
    // Details of a kept box; of several, with their points at the weighted mean.
    Result<void> find_details(std::span<const OutputTensor> tensors,
                              const vision::RunContext& context,
                              std::span<const Candidate> members);
};

namespace {

// Errors: dec-classes, where the sidecar's skeleton names points that the model does not have.
Result<void> check_skeleton(const HeadRequest& request, const vision::Head& head) {
    const std::string& skeleton = request.info.skeleton;
    const unsigned named = vision::points_named(skeleton), points = head.keypoints();
    if (points == 0 || named <= points) return {};
    const std::string last = std::to_string(named - 1), count = std::to_string(points);
    return vision::head_error(request, "dec-classes",
                              "x-vartml-skeleton=" + skeleton + " names point " + last +
                                  ", but the model has " + count + " points, from 0 to " +
                                  std::to_string(points - 1) +
                                  "; correct that line in section [modelinfo]",
                              last, count, "x-vartml-skeleton=…");
}

// Index of a label, or the number that the text is.
std::optional<int32_t> class_named(const std::vector<std::string>& labels,
                                   const std::string& name) {
    const auto it = std::ranges::find(labels, name);
    if (it != labels.end()) return static_cast<int32_t>(it - labels.begin());
    int32_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    if (error != std::errc() || end != name.data() + name.size() || index < 0) return std::nullopt;
    if (!labels.empty() && static_cast<size_t>(index) >= labels.size()) return std::nullopt;
    return index;
}

Result<void> check_tensors(const std::vector<std::vector<uint32_t>>& shapes,
                           std::span<const OutputTensor> tensors) {
    if (tensors.size() != shapes.size()) {
        return Error{ErrorCode::invalid_argument, "found " + std::to_string(tensors.size()) +
                                                      " tensors, the decoder was made for " +
                                                      std::to_string(shapes.size())};
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
        if (!tensors[i].data || !tensors[i].view || !tensors[i].cpu ||
            tensors[i].cpu->shape != shapes[i]) {
            return Error{ErrorCode::invalid_argument,
                         "tensor '" + std::string(tensors[i].name) + "' has the shape " +
                             (tensors[i].cpu ? vision::shape_text(tensors[i].cpu->shape) : "[]") +
                             ", the decoder was made for " + vision::shape_text(shapes[i])};
        }
    }
    return {};
}

// Frames whose numbers are looked at as a whole.
constexpr unsigned frames_looked_at = 8;

// Keeps the memory.
void clear(Decoded& decoded) {
    decoded.detections.clear();
    decoded.classes.clear();
    decoded.keypoints.clear();
    decoded.masks.clear();
    decoded.class_maps.clear();
    decoded.mask_pixels.clear();
    decoded.embedding.clear();
    decoded.text.clear();
    decoded.text_score = 0;
}

struct Choice {
    const Family* family;
    std::string_view reason;
    std::unique_ptr<vision::Head> head;
};

Result<Choice> choose(const HeadRequest& request, const std::string& wanted) {
    Choice choice{};
    auto chosen = vision::choose_family(request, wanted);
    if (!chosen) return std::move(chosen).error();
    choice.family = chosen->family;
    choice.reason = chosen->reason;
    auto head = vision::is_library(wanted) ? vision::open_library(request, wanted)
                                           : choice.family->create(request);
    auto fits = head ? check_skeleton(request, **head) : Result<void>(head.error());
    if (fits && (choice.reason == "property" || choice.reason == "sidecar"))
        fits = vision::check_named(request, *choice.family, **head);
    if (!fits) {
        return Error{fits.error().code, "decoder " + std::string(choice.family->row.nick) + ": " +
                                            fits.error().message};
    }
    choice.head = std::move(*head);
    return choice;
}

}  // namespace

Result<Decoder> Decoder::create(const ModelInfo& info, std::span<const TensorInfo> outputs,
                                uint32_t input_width, uint32_t input_height,
                                const DecodeOptions& options, DecodeFault* fault) {
    auto state = std::make_unique<State>();
    state->info = info;
    state->outputs = vision::with_quantisation(outputs, info);
    auto choice =
        choose({state->info, state->outputs, input_width, input_height, fault}, options.decoder);
    if (auto batched = vision::with_batch_axis(state->outputs); !choice && batched) {
        auto again =
            choose({state->info, *batched, input_width, input_height, nullptr}, options.decoder);
        if (again) {
            choice = std::move(again);
            if (fault) *fault = {};
            state->batched = std::move(*batched);
            state->batch_axis.emplace(state->batched);
        }
    }
    if (!choice) return std::move(choice).error();
    // What a library of others gives is what it means, and it may count its runs.
    if (vision::is_library(options.decoder))
        state->looked_at = state->looked_at_some = frames_looked_at;
    state->family = choice->family;
    state->reason = choice->reason;
    state->head = std::move(choice->head);
    state->needs_nms = state->head->needs_nms(state->family->has_nms);
    if (state->info.labels.empty()) state->info.labels = state->head->class_names();
    if (state->info.labels.empty() && !state->info.class_offset) {
        const unsigned classes = state->head->classes();  // 0: only the sidecar may know
        auto known = vision::known_labels(state->family->row.nick,
                                          classes ? classes : state->info.num_classes.value_or(0));
        if (!known.labels.empty() && !known.labels[0].empty())
            known.labels.insert(known.labels.begin(), state->head->first_class(), "");
        state->info.labels = std::move(known.labels);
        state->labels_source = known.source;
    }
    for (const TensorInfo& output : outputs) state->shapes.push_back(output.cpu.shape);
    state->coded.emplace(state->outputs);
    state->width = static_cast<float>(input_width);
    state->height = static_cast<float>(input_height);
    Decoder decoder(std::move(state));
    decoder.set_thresholds(options.score_threshold, options.iou_threshold);
    decoder.set_limits(options.max_detections, options.top_k, options.min_size, options.nms);
    decoder.set_detail_thresholds(options.mask_threshold, options.keypoint_threshold);
    if (auto done = decoder.set_classes(options.classes); !done) return done.error();
    return decoder;
}

void Decoder::set_thresholds(double score, double iou) {
    const DecoderFamily& row = state_->family->row;
    const ModelInfo& info = state_->info;
    if (score < 0) score = info.score_threshold.value_or(row.score_threshold);
    if (iou < 0) iou = vision::iou_threshold_of(*state_->family, info);
    state_->score_threshold = static_cast<float>(score);
    state_->iou_threshold = static_cast<float>(iou);
}

void Decoder::set_limits(unsigned max_detections, unsigned top_k, unsigned min_size, Nms nms) {
    state_->max_detections =
        max_detections ? max_detections : state_->info.max_detections.value_or(100);
    state_->top_k = top_k;
    state_->min_size = min_size;
    if (nms == Nms::automatic) nms = state_->needs_nms ? Nms::per_class : Nms::off;
    state_->nms = nms;
}

void Decoder::set_detail_thresholds(double mask, double keypoint) {
    state_->mask_threshold = static_cast<float>(mask);
    state_->keypoint_threshold = static_cast<float>(keypoint);
}

Result<void> Decoder::set_classes(std::span<const std::string> classes) {
    std::vector<int32_t> wanted;
    for (const std::string& name : classes) {
        const auto index = class_named(state_->info.labels, name);
        if (!index) {
            return Error{ErrorCode::invalid_argument,
                         "class '" + name +
                             "' is neither a label nor a class number of this model" +
                             (state_->info.labels.empty()
                                  ? ", which has no labels; give a number, or a label file"
                                  : ", which has " + std::to_string(state_->info.labels.size()) +
                                        " labels from '" + state_->info.labels.front() + "' to '" +
                                        state_->info.labels.back() + "'")};
        }
        wanted.push_back(*index);
    }
    std::ranges::sort(wanted);
    state_->wanted = std::move(wanted);
    return {};
}

Result<void> Decoder::decode(std::span<const OutputTensor> tensors, const Affine& to_frame,
                             uint32_t frame_width, uint32_t frame_height, Decoded& decoded,
                             uint32_t fed_width, uint32_t fed_height) {
    State& state = *state_;
    clear(decoded);
    decoded.suppressed = decoded.not_finite = 0;
    if (auto done = check_tensors(state.shapes, tensors); !done) return done;
    tensors = state.coded->with_codes(tensors);
    if (state.batch_axis) tensors = state.batch_axis->see(tensors);
    const vision::RunContext context{
        state.score_threshold, static_cast<float>(fed_width ? fed_width : frame_width),
        static_cast<float>(fed_height ? fed_height : frame_height), state.mask_threshold};
    if (state.looked_at < frames_looked_at) {
        ++state.looked_at;
        state.look_at(tensors, context);
    }
    state.candidates.clear();
    if (auto done = state.head->run(tensors, context, state.candidates); !done) return done;
    state.look_at_boxes();
    decoded.not_finite = state.candidates.not_finite;
    auto finished =
        state.finish_boxes(tensors, context, to_frame, frame_width, frame_height, decoded);
    if (!finished) return finished;
    state.look_at_kept(decoded, {frame_width, frame_height});
    state.select_regions(state.candidates.picture);
    vision::map_picture(state.candidates.picture, to_frame, {frame_width, frame_height},
                        state.keypoint_threshold, decoded);

    auto& classes = state.candidates.classes;
    state.select(classes);
    std::ranges::stable_sort(classes, std::ranges::greater(), &Classification::score);
    classes.resize(std::min<size_t>(classes.size(), state.top_k));
    decoded.classes.assign(classes.begin(), classes.end());
    return {};
}

// Makes boxes of all positions of one of the first frames, to see whether they can be that. What
// cannot be decoded at all is said when it counts.
void Decoder::State::look_at(std::span<const OutputTensor> tensors,
                             const vision::RunContext& context) {
    vision::RunContext all = context;
    all.threshold = -std::numeric_limits<float>::infinity();
    candidates.clear();
    if (!head->run(tensors, all, candidates)) return;
    if (doubt.empty()) doubt = head->doubt();
    if (!doubt.empty()) return;
    const float threshold =
        std::max(score_threshold, static_cast<float>(family->row.score_threshold));
    doubt = vision::doubt_of_boxes(
        candidates, {width, height, threshold, needs_nms, head->holds_corners(), head->logits()});
}

// The first frames that have boxes at all, when those of the beginning are over: costs nothing.
void Decoder::State::look_at_boxes() {
    if (looked_at < frames_looked_at || looked_at_some == frames_looked_at ||
        candidates.boxes.empty())
        return;
    ++looked_at_some;
    if (doubt.empty()) doubt = head->doubt();
    if (doubt.empty())
        doubt = vision::doubt_of_boxes(candidates, {width, height, score_threshold, false,
                                                    head->holds_corners(), head->logits()});
}

// Boxes as they come out, on the first frames: a table that is full.
void Decoder::State::look_at_kept(const Decoded& decoded, vision::FrameSize frame) {
    const bool beginning = looked_at < frames_looked_at || looked_at_some < frames_looked_at;
    const bool all_kept = nms == Nms::off && needs_nms;  // overlap is what the user wants
    if (!beginning || all_kept || !suspicion.empty() || decoded.detections.size() != max_detections)
        return;
    suspicion = vision::doubt_of_full_table(decoded.detections, static_cast<float>(frame.width),
                                            static_cast<float>(frame.height));
}

Result<void> Decoder::State::finish_boxes(std::span<const OutputTensor> tensors,
                                          const vision::RunContext& context, const Affine& to_frame,
                                          uint32_t frame_width, uint32_t frame_height,
                                          Decoded& decoded) {
    auto& boxes = candidates.boxes;
    select(boxes);
    std::ranges::sort(boxes, [](const Candidate& a, const Candidate& b) {
        return a.score != b.score ? a.score > b.score : a.position < b.position;
    });
    const bool means = family->weighted_nms && nms != Nms::off;
    if (means) {
        weighted.run(boxes, nms == Nms::per_class, iou_threshold, max_detections);
        decoded.suppressed += weighted.suppressed();
    }
    const std::vector<Candidate>& kept = means ? weighted.means() : boxes;
    suppressor.clear();
    for (size_t i = 0; i < kept.size(); ++i) {
        const Candidate& candidate = kept[i];
        if (decoded.detections.size() == max_detections) break;
        if (!(candidate.x0 < candidate.x1) || !(candidate.y0 < candidate.y1)) continue;
        const int32_t group = nms == Nms::per_class ? candidate.class_id : 0;
        if (nms != Nms::off && !means && suppressor.suppresses(candidate, group, iou_threshold)) {
            ++decoded.suppressed;
            continue;
        }
        Detection detection;
        const bool seen =
            candidate.angle != 0
                ? vision::map_turned(candidate, to_frame, frame_width, frame_height, detection)
                : vision::map_to_frame(candidate, to_frame, frame_width, frame_height, detection);
        if (!seen) continue;
        const float side = std::min(detection.x1 - detection.x0, detection.y1 - detection.y0);
        if (side < static_cast<float>(min_size)) continue;
        const auto members = means ? weighted.members(i) : std::span(&candidate, 1);
        if (auto done = find_details(tensors, context, members); !done) return done;
        vision::map_details(details, to_frame, {frame_width, frame_height}, keypoint_threshold,
                            detection, decoded);
        decoded.detections.push_back(detection);
    }
    return {};
}

Result<void> Decoder::State::find_details(std::span<const OutputTensor> tensors,
                                          const vision::RunContext& context,
                                          std::span<const Candidate> members) {
    details.clear();
    // Without weights there is no mean.
    if (members.size() == 1 || !(members.front().score > 0))
        return head->add_details(tensors, context, members.front(), details);
    float weights = 0;
    for (const Candidate& member : members) {
        member_details.clear();
        auto done = head->add_details(tensors, context, member, member_details);
        if (!done) return done;
        vision::add_weighted(details.keypoints, member_details.keypoints, member.score);
        weights += member.score;
    }
    vision::finish_weighted(details.keypoints, weights);
    return {};
}

std::string_view Decoder::family() const {
    return state_->family->row.nick;
}
std::string_view Decoder::reason() const {
    return state_->reason;
}
std::string_view Decoder::activation() const {
    return state_->head->activation();
}
std::string Decoder::State::sentence(const std::string& begin, const std::string& why) const {
    ModelInfo known = info;
    if (!labels_source.empty()) known.labels.clear();  // a guess says nothing against others
    const HeadRequest request{known, batched.empty() ? outputs : batched,
                              static_cast<uint32_t>(width), static_cast<uint32_t>(height), nullptr};
    std::string others, refused;  // those that want their classes counted where they are named
    for (const Family& other : vision::families()) {
        if (&other == family) continue;
        const auto made = other.create(request);
        if (!made) continue;
        std::string& list = vision::check_named(request, other, **made) ? others : refused;
        list += (list.empty() ? "" : ", ") + std::string(other.row.nick);
    }
    if (others.empty()) others = std::move(refused);
    return "decoder " + std::string(family->row.nick) + " " + begin + " " +
           vision::outputs_text(outputs) + ": " + why + std::string(head->note()) +
           (others.empty() ? "; no other decoder reads such outputs"
                           : "; other decoders that read such outputs: " + others);
}

std::string Decoder::doubt() const {
    if (state_->doubt.empty()) return {};
    return state_->sentence("does not fit the numbers of", state_->doubt);
}
std::string Decoder::suspicion() const {
    if (state_->suspicion.empty() || !state_->doubt.empty()) return {};
    return state_->sentence("may not be what reads", state_->suspicion);
}
std::string Decoder::presumption() const {
    const State& s = *state_;
    if (s.reason != "shapes" || !s.info.labels.empty()) return {};
    return vision::presumption_of(family(), s.info, s.outputs.front().name, classes());
}
unsigned Decoder::classes() const {
    return state_->head->classes();
}
bool Decoder::of_picture() const {
    return state_->family->of_picture;
}
double Decoder::iou_threshold() const {
    return static_cast<double>(state_->iou_threshold);
}
const std::vector<std::string>& Decoder::labels() const {
    return state_->info.labels;
}

std::string Decoder::skeleton() const {
    const std::string& named = state_->info.skeleton;
    return named.empty() ? std::string(state_->head->skeleton()) : named;
}

std::string_view Decoder::labels_source() const {
    return state_->labels_source;
}

std::string Decoder::label(int32_t class_id) const {
    const auto& labels = state_->info.labels;
    const auto index = static_cast<size_t>(class_id);
    const bool named = class_id >= 0 && index < labels.size() && !labels[index].empty();
    return named ? labels[index] : "class-" + std::to_string(class_id);
}

Decoder::Decoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;
Decoder::~Decoder() = default;

}  // namespace vartml
