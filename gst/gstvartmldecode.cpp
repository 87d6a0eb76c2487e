// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:element-vartmldecode
 * @title: vartmldecode
 * @short_description: turns tensors into boxes, classes, masks and keypoints
 *
 * Reads the tensors that vartmlinfer attached to a frame, in the CPU or the HW view, or the
 * #GstTensorMeta of upstream's inference elements, and writes #GstAnalyticsODMtd,
 * #GstAnalyticsClsMtd, #GstAnalyticsSegmentationMtd and keypoints in pixels of the frame.
 *
 * Tensors by decoder (CPU view; C classes, N positions, K points, M coefficients): yolox and
 * yolo-v5 `[1,N,5+C]`, yolo-v5 also maps `[1,A,h,w,5+C]` or `[1,A(5+C),h,w]`, yolo-v8 `[1,4+C,N]`,
 * yolo-v8-seg `[1,4+C+M,N]` with `[1,M,h,w]`, yolo-v8-pose `[1,4+C+3K,N]`, yolo-v8-obb `[1,5+C,N]`,
 * yolo-end2end `[1,N,6]`, ultraface `[1,N,2]` with `[1,N,4]`, ssd raw `[1,N,C+1]` with `[1,N,4]`,
 * classify `[1,C]`, segment `[1,C,h,w]` or `[1,h,w,C]`, heatmap `[1,K,h,w]`, landmarks `[1,2K]` or
 * `[1,3K]`, embedding `[1,D]`. The families of faces (scrfd, yunet, retinaface, yolo-face,
 * blazeface) bring their landmarks as keypoints. The values of #GstVartmlDecode:decoder describe
 * all families.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=10 ! vartmldecode ! fakesink
 * ]| Frames without tensors pass untouched.
 *
 * Since: 1.0
 */
#include "gst/gstvartmldecode.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <vartml/profile.h>
#include <vartml/tiles.h>

#include "gst/decode/cache.h"
#include "gst/decode/notices.h"
#include "gst/decode/properties.h"
#include "gst/decode/results.h"
#include "gst/metadata/inference.h"
#include "gst/support/decoder_query.h"
#include "gst/support/error.h"
#include "gst/support/in_place.h"
#include "gst/support/tensor_groups.h"
#include "gst/support/tensor_meta.h"
#include "gst/support/upstream.h"

GST_DEBUG_CATEGORY_STATIC(vartmldecode_debug);
#define GST_CAT_DEFAULT vartmldecode_debug

using namespace vartml::gst;

namespace {

// One inference on a frame, with what is needed of it while metadata are added to the frame.
struct Job {
    TensorSource source;
    vartml::Affine to_frame;
    bool geometry_valid = true;
    guint frame_width = 0, frame_height = 0;
    guint64 result_id = 0;         // 0: this frame's alone
    vartml::Tile region;           // pixels of the frame that was inferred
    guint tile = 0, tiles = 0;     // which of how many tiles; 0 of 0: it is none
    std::vector<GstBuffer*> data;  // borrowed from the frame
    ResultContext context;
    bool decoded = false;  // by a decoder before this one
};

struct State {
    // guarded by the object lock
    DecodeProperties properties;
    std::optional<std::string> decoder;  // of the options, as it was at start; unset when stopped
    DecodeStats stats;
    std::set<std::string> labels;  // of what was decoded
    // set when properties change, cleared by the streaming thread
    std::atomic<bool> changed{true};

    // streaming thread, between start and stop
    DecodeSettings settings;
    DecodeSettings before;  // its labels alone: those of the file that was set before
    bool keep_tensors = false;
    DecoderCache decoders;
    ResultCache results;
    MappedTensors tensors;
    std::vector<Job> jobs;
    vartml::Decoded of_tile;
    vartml::TileJoiner joiner;
    guint width = 0, height = 0;       // of the current caps; 0 when they are no video
    bool one_group = false;            // other tensors are other decoders'
    std::vector<GQuark> group;         // ids of its tensors
    bool had_results = false;          // since STREAM_START
    unsigned num_decoders = 0;         // made since start
    vartml::TraceStream trace_stream;  // of the last STREAM_START, in a trace
    bool lost_posted = false;
    IdleNotice idle;
    CopyNotice copy_notice;
};

}  // namespace

struct _GstVartmlDecode {
    GstBaseTransform parent;
    State* state;
};

G_DEFINE_TYPE(GstVartmlDecode, gst_vartml_decode, GST_TYPE_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE(vartmldecode, "vartmldecode", GST_RANK_NONE, GST_TYPE_VARTML_DECODE)

namespace {

State& state_of(gpointer object) {
    return *GST_VARTML_DECODE(object)->state;
}

struct Properties {
    using Lock = ObjectLock;
    static auto rows() { return decode_properties(); }
    static DecodeProperties& settings(GObject* object) { return state_of(object).properties; }
    static void written(GObject* object) { state_of(object).changed = true; }
};

void note_labels(GstVartmlDecode* self, const vartml::Decoder& decoder) {
    std::set<std::string> labels(decoder.labels().begin(), decoder.labels().end());
    for (unsigned i = 0; labels.empty() && i < decoder.classes(); ++i)
        labels.insert(decoder.label(static_cast<int32_t>(i)));
    labels.erase("");  // numbers of a data set that no class has
    GST_OBJECT_LOCK(self);
    self->state->labels.merge(labels);
    GST_OBJECT_UNLOCK(self);
}

// Takes over changed properties. False after posting an error.
bool update_settings(GstVartmlDecode* self) {
    State& state = *self->state;
    if (!state.changed.exchange(false)) return true;
    state.results.clear();
    GST_OBJECT_LOCK(self);
    const DecodeProperties p = state.properties;
    state.properties.label_file_written = false;
    vartml::DecodeOptions& options = state.settings.options = p.options();
    options.decoder = state.decoder.value_or("");
    GST_OBJECT_UNLOCK(self);
    // Whether caps have the tensors follows, from the next frame on.
    if (has_tensor_groups && p.keep_tensors != state.keep_tensors)
        gst_base_transform_reconfigure_src(GST_BASE_TRANSFORM(self));
    state.keep_tensors = p.keep_tensors;
    if (p.label_file_written) {
        state.before.labels = state.settings.labels;
        state.before.label_file = state.settings.label_file;
        state.settings.labels.clear();
        state.settings.label_file = p.label_file;
        if (!p.label_file.empty()) {
            auto labels = vartml::read_labels(p.label_file);
            if (!labels) {
                return post_error(self, "read the labels",
                                  {.error = labels.error(),
                                   .id = "dec-labels",
                                   .property = "label-file",
                                   .file = p.label_file});
            }
            state.settings.labels = std::move(*labels);
        }
        state.decoders.clear();
    }
    if (auto done = state.decoders.apply(options); !done) {
        return post_error(self, "choose classes",
                          {.error = done.error(), .id = "dec-classes", .property = "classes"});
    }
    return true;
}

gboolean start(GstBaseTransform* base) {
    auto* self = GST_VARTML_DECODE(base);
    State& state = *self->state;
    GST_INFO_OBJECT(self, "settings: %s", settings_text(self).c_str());
    GST_OBJECT_LOCK(self);
    state.stats = {};
    state.labels.clear();
    state.properties.label_file_written = true;
    const std::string file = state.properties.modelinfo_file;
    const std::string library = state.properties.library;
    const std::string family = state.properties.family();
    state.decoder = state.properties.options().decoder;
    GST_OBJECT_UNLOCK(self);
    if (!library.empty() && !family.empty() && family != "custom") {
        return post_error(
            self, "choose a decoder",
            {.error = {vartml::ErrorCode::invalid_argument,
                       "property 'decoder-library' is '" + library + "' and 'decoder' is " +
                           family + ", which are two decoders; leave one of them out"},
             .id = "dec-library",
             .property = "decoder-library"});
    }
    state.settings = state.before = {};
    state.num_decoders = 0;
    state.had_results = state.lost_posted = false;
    state.copy_notice.restart();
    state.idle.restart();
    if (!file.empty()) {
        auto info = vartml::find_modelinfo(file, "", "");
        if (!info) {
            return post_error(self, "read the sidecar",
                              {.error = info.error(),
                               .id = "dec-sidecar",
                               .property = "modelinfo-file",
                               .file = file});
        }
        state.settings.model_info = std::move(*info);
    }
    state.changed = true;
    return update_settings(self);
}

gboolean stop(GstBaseTransform* base) {
    State& state = state_of(base);
    state.decoders.clear();
    state.results.clear();
    state.tensors.clear();
    state.jobs.clear();
    state.settings = {};
    const ObjectLock lock(base);
    state.decoder.reset();
    return TRUE;
}

bool keeps_tensors(GstVartmlDecode* self) {
    GST_OBJECT_LOCK(self);
    const bool keeps = self->state->properties.keep_tensors;
    GST_OBJECT_UNLOCK(self);
    return keeps;
}

// The fields of upstream's tensor caps end where the tensors do; everything else passes.
GstCaps* transform_caps(GstBaseTransform* base, GstPadDirection direction, GstCaps* caps,
                        GstCaps* filter) {
    GstCaps* result = gst_caps_copy(caps);
    const bool keeps = has_tensor_groups && keeps_tensors(GST_VARTML_DECODE(base));
    if (direction == GST_PAD_SINK && !keeps) result = without_groups(result);
    if (!filter) return result;
    GstCaps* both = gst_caps_intersect_full(filter, result, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(result);
    return both;
}

gboolean set_caps(GstBaseTransform* base, GstCaps* in, GstCaps*) {
    State& state = state_of(base);
    const FrameSize size = video_size(in);
    state.width = static_cast<guint>(size.width);
    state.height = static_cast<guint>(size.height);
    if (state.one_group) state.group = group_tensors(in, own_group);
    return TRUE;
}

gboolean sink_event(GstBaseTransform* base, GstEvent* event) {
    State& state = state_of(base);
    if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START) {
        const gchar* id = nullptr;
        gst_event_parse_stream_start(event, &id);
        state.trace_stream = vartml::TraceStream(id ? id : "");
    }
    if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START ||
        GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) {
        state.had_results = false;
    }
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_decode_parent_class)->sink_event(base, event);
}

DecoderWish wish_of(GstVartmlDecode* self) {
    DecoderWish wish;
    wish.element = name_of(self);
    GST_OBJECT_LOCK(self);
    const DecodeProperties& p = self->state->properties;
    wish.decoder = self->state->decoder.value_or(p.options().decoder);
    wish.modelinfo_file = p.modelinfo_file;
    wish.label_file = p.label_file;
    GST_OBJECT_UNLOCK(self);
    return wish;
}

// A vartmlinfer asks how its tensors are decoded. Elements behind this one do not see them, unless
// they are kept.
gboolean query(GstBaseTransform* base, GstPadDirection direction, GstQuery* query) {
    auto* self = GST_VARTML_DECODE(base);
    if (direction == GST_PAD_SINK && is_decoder_query(query)) {
        add_wish(query, wish_of(self));
        if (!keeps_tensors(self)) return FALSE;  // an answer would end the query at a tee
        const bool before = set_decoded(query, true);
        const gboolean answered =
            GST_BASE_TRANSFORM_CLASS(gst_vartml_decode_parent_class)->query(base, direction, query);
        set_decoded(query, before);
        return answered;
    }
    return GST_BASE_TRANSFORM_CLASS(gst_vartml_decode_parent_class)->query(base, direction, query);
}

GstFlowReturn prepare_output_buffer(GstBaseTransform* base, GstBuffer* in, GstBuffer** out) {
    bool copied = false;
    const GstFlowReturn flow = prepare_writable(in, out, copied);
    if (copied) state_of(base).copy_notice.copied(base, cannot_share);
    return flow;
}

// Records that a decoder before has left are not decoded again beside those that are new: of two
// models in a row each has its own decoder. Where all were decoded, another decoder reads the same.
void leave_decoded(std::vector<Job>& jobs) {
    if (std::ranges::all_of(jobs, &Job::decoded)) return;
    for (Job& job : jobs)
        if (job.decoded) job.data.clear();
}

bool has_data(const std::vector<Job>& jobs, const GstTensorMeta* meta) {
    for (const Job& job : jobs) {
        for (gsize i = 0; i < meta->num_tensors; ++i) {
            if (std::ranges::find(job.data, meta->tensors[i]->data) != job.data.end()) return true;
        }
    }
    return false;
}

// Takes out the jobs of tensors that are called otherwise than those of our group.
void leave_other_groups(State& state, GstBuffer* buffer) {
    for_each_tensor_meta(buffer, [&](const GstTensorMeta* meta) {
        const std::span<GstTensor* const> tensors(meta->tensors, meta->num_tensors);
        const auto is_ours = [&](const GstTensor* tensor) {
            return std::ranges::find(state.group, tensor->id) != state.group.end();
        };
        if (std::ranges::all_of(tensors, is_ours)) return true;
        std::erase_if(state.jobs, [&](const Job& job) {
            return std::ranges::any_of(tensors, [&](const GstTensor* tensor) {
                return std::ranges::find(job.data, tensor->data) != job.data.end();
            });
        });
        return true;
    });
}

// Collects what there is to decode. Errors: of tensors that cannot be described.
vartml::Result<void> collect_jobs(State& state, GstBuffer* buffer, bool& any_metadata) {
    state.jobs.clear();
    GstAnalyticsMtd mtd;
    while (true) {
        const Inference* inference =
            get_inference(buffer, static_cast<unsigned>(state.jobs.size()), &mtd);
        if (!inference) break;
        any_metadata = true;
        Job& job =
            state.jobs.emplace_back();  // also for a frame that was not inferred: keeps the index
        job.decoded = inference->decoded;
        if (!inference->has_result() || !inference->record) continue;
        job.source.record = inference->record;
        job.to_frame = inference->to_frame;
        job.geometry_valid = inference->geometry_valid;
        job.frame_width = inference->frame_width;
        job.frame_height = inference->frame_height;
        job.result_id = inference->result_id;
        job.region = {inference->region_x, inference->region_y, inference->region_width,
                      inference->region_height};
        job.tile = inference->tile;
        job.tiles = inference->tiles;
        job.data = inference->data;
        job.context = {mtd.id, true, inference->region_od};
    }
    vartml::Result<void> result;
    for_each_tensor_meta(buffer, [&](GstTensorMeta* meta) {
        if (!meta->num_tensors || has_data(state.jobs, meta)) return true;
        any_metadata = true;
        if (!state.width) return true;  // no picture, so no coordinates
        Job& job = state.jobs.emplace_back();
        job.source.width = job.frame_width = state.width;
        job.source.height = job.frame_height = state.height;
        for (gsize i = 0; i < meta->num_tensors && result; ++i) {
            auto info = tensor_info(*meta->tensors[i]);
            if (info) {
                job.source.outputs.push_back(std::move(*info));
                job.data.push_back(meta->tensors[i]->data);
            } else {
                result = info.error();
            }
        }
        return result.has_value();
    });
    leave_decoded(state.jobs);
    std::erase_if(state.jobs, [](const Job& job) { return job.data.empty(); });
    if (state.one_group) leave_other_groups(state, buffer);
    return result;
}

// The file has the labels of one model. Where models are swapped another one, before or after,
// keeps those of the file before, else it has its own.
std::variant<CachedDecoder*, Failure> make_decoder(GstVartmlDecode* self,
                                                   const TensorSource& source) {
    State& state = *self->state;
    const bool meant = std::ranges::any_of(state.jobs, [&](const Job& job) {
        return names_tensor_of(state.settings.model_info, job.source);
    });
    auto made = state.decoders.make(source, state.settings, meant);
    const auto* failure = std::get_if<Failure>(&made);
    const bool swapped = state.num_decoders > 0;
    state.num_decoders += failure == nullptr;
    if (!failure || !swapped || state.settings.labels.empty() || failure->property == nullptr ||
        std::string_view(failure->property) != "label-file") {
        return made;
    }
    for (const bool own : {false, true}) {
        DecodeSettings other = state.settings;
        other.labels = own ? std::vector<std::string>() : state.before.labels;
        other.label_file = own ? "" : state.before.label_file;
        if (!own && other.labels.empty()) continue;
        auto again = state.decoders.make(source, other, meant);
        if (std::holds_alternative<Failure>(again)) continue;
        if (own) {
            Failure warning = *failure;
            warning.error.message +=
                "; the names of its sidecar are taken until 'label-file' is written";
            post_warning(self, "name the classes of the new model", warning);
        }
        return again;
    }
    return made;
}

// Of the frame as it is now.
guint picture_width(const State& state, const Job& job) {
    return state.width ? state.width : job.frame_width;
}
guint picture_height(const State& state, const Job& job) {
    return state.height ? state.height : job.frame_height;
}

// The decoder of a job; nullptr after posting an error.
CachedDecoder* decoder_of(GstVartmlDecode* self, const Job& job) {
    State& state = *self->state;
    if (!job.geometry_valid) {
        post_error(
            self, "place the boxes",
            {.error = {vartml::ErrorCode::bad_model,
                       "the frame was scaled after inference to another display aspect, which may "
                       "have added borders, or turned or mirrored; place vartmldecode directly "
                       "after vartmlinfer, or keep the display aspect"},
             .id = "dec-geometry",
             .found = std::to_string(state.width) + "x" + std::to_string(state.height),
             .expected = std::to_string(job.frame_width) + "x" + std::to_string(job.frame_height),
             .fix = "place vartmldecode directly after vartmlinfer, or keep the display aspect"});
        return nullptr;
    }
    if (CachedDecoder* known = state.decoders.find(job.source)) return known;
    auto made = make_decoder(self, job.source);
    if (const auto* failure = std::get_if<Failure>(&made)) {
        post_error(self, "choose a decoder", *failure);
        return nullptr;
    }
    CachedDecoder* entry = std::get<CachedDecoder*>(made);
    note_labels(self, entry->decoder);
    GST_INFO_OBJECT(self, "decoder %s by %s", std::string(entry->decoder.family()).c_str(),
                    std::string(entry->decoder.reason()).c_str());
    post_selected(self, *entry);
    tell_guessed_labels(self, *entry);
    warn_of_presumption(self, *entry);
    return entry;
}

// False after posting an error.
bool decode_tensors(GstVartmlDecode* self, const Job& job, CachedDecoder& entry,
                    vartml::Decoded& decoded) {
    State& state = *self->state;
    const InferenceRecord* record = job.source.record.get();
    const auto& outputs = record ? record->outputs : job.source.outputs;
    vartml::Result<void> done;
    if (outputs.size() != job.data.size() || (record && record->views.size() != outputs.size())) {
        done =
            vartml::Error{vartml::ErrorCode::internal, "the record does not describe its tensors"};
    }
    for (size_t i = 0; i < job.data.size() && done; ++i) {
        done =
            state.tensors.add(job.data[i], outputs[i], record ? record->views[i] : outputs[i].cpu);
    }
    const char* id = "dec-role";
    if (done) {
        done = entry.decoder.decode(state.tensors.outputs(), job.to_frame,
                                    picture_width(state, job), picture_height(state, job), decoded,
                                    job.frame_width, job.frame_height);
        // What can be wrong with values is a class number; the rest is the tensor's type or view.
        if (!done && done.error().code == vartml::ErrorCode::bad_model) id = "dec-classes";
    }
    state.tensors.clear();
    if (!done) {
        return post_error(self, "decode the tensors", {.error = done.error(), .id = id});
    }
    return accept_numbers(self, entry);
}

// The tile in pixels of the frame as it is now, which may have been scaled.
vartml::Tile tile_now(const State& state, const Job& job) {
    const double sx = double(picture_width(state, job)) / job.frame_width;
    const double sy = double(picture_height(state, job)) / job.frame_height;
    const int x = int(std::lround(job.region.x * sx)), y = int(std::lround(job.region.y * sy));
    return {x, y, int(std::lround((job.region.x + job.region.width) * sx)) - x,
            int(std::lround((job.region.y + job.region.height) * sy)) - y};
}

// Makes one list of the boxes of a frame's tiles. False after posting an error.
bool decode_tiles(GstVartmlDecode* self, std::span<const Job> tiles, CachedDecoder& entry,
                  vartml::Decoded& decoded) {
    State& state = *self->state;
    if (!accept_tiles(self, entry)) return false;
    state.joiner.begin(picture_width(state, tiles.front()), picture_height(state, tiles.front()),
                       entry.decoder.iou_threshold(), state.settings.options.nms);
    for (const Job& tile : tiles) {
        if (!decode_tensors(self, tile, entry, state.of_tile)) return false;
        const vartml::Affine& map = tile.to_frame;
        const double pixel = std::max(std::hypot(map.a, map.d), std::hypot(map.b, map.e));
        state.joiner.add(state.of_tile, tile_now(state, tile), pixel);
    }
    state.joiner.finish(decoded);
    return true;
}

// What was inferred of a frame: once, or all its tiles. False after posting an error.
bool decode_jobs(GstVartmlDecode* self, GstBuffer* buffer, std::span<const Job> jobs,
                 DecodedFrame& frame) {
    State& state = *self->state;
    const Job& job = jobs.front();
    CachedDecoder* entry = decoder_of(self, job);
    if (!entry) return false;
    ResultContext context = job.context;
    context.skeleton = entry->skeleton;
    const ResultKey key = {job.result_id, job.to_frame, picture_width(state, job),
                           picture_height(state, job)};
    GST_TRACE_OBJECT(self, "result %" G_GUINT64_FORMAT ", region of detection %d", job.result_id,
                     context.region_od);
    if (const vartml::Decoded* known = state.results.find(key)) {
        frame.boxes += add_results(buffer, *known, entry->quarks, context);
        ++frame.reused;
        return true;
    }
    vartml::Decoded& decoded = state.results.next();
    if (!(job.tiles ? decode_tiles(self, jobs, *entry, decoded)
                    : decode_tensors(self, job, *entry, decoded)))
        return false;
    state.results.keep(key);
    frame.boxes += add_results(buffer, decoded, entry->quarks, context);
    frame.suppressed += decoded.suppressed;
    frame.not_finite += decoded.not_finite;
    return true;
}

// How many of the jobs belong together: the tiles of a frame follow each other.
size_t together(std::span<const Job> jobs) {
    const Job& first = jobs.front();
    size_t count = 1;
    while (count < jobs.size() && first.tiles && jobs[count].tiles == first.tiles &&
           jobs[count].source.record == first.source.record &&
           jobs[count].tile > jobs[count - 1].tile)
        ++count;
    return count;
}

void note_lost(GstVartmlDecode* self, bool any_metadata) {
    State& state = *self->state;
    const bool lost = state.had_results && !any_metadata;
    state.had_results = state.had_results || any_metadata;
    if (!lost || state.lost_posted) return;
    state.lost_posted = true;
    post_warning(
        self, "find tensors",
        {.error =
             {vartml::ErrorCode::not_found,
              "a frame has neither tensors nor an inference record, frames before it had; elements "
              "that crop or flip drop them (videocrop, videobox, videoflip): place them before "
              "vartmlinfer or after drawing"},
         .id = "dec-lost"});
}

vartml::TraceFrame traced_frame(const State& state, GstBuffer* buffer) {
    const GstClockTime pts = GST_BUFFER_PTS(buffer);
    const int64_t pts_ns = GST_CLOCK_TIME_IS_VALID(pts) ? static_cast<int64_t>(pts) : -1;
    return {vartml::HostTrace::frame_key(state.trace_stream.index(), pts_ns),
            vartml::TraceFrame::no_seq, pts_ns};
}

GstFlowReturn transform_ip(GstBaseTransform* base, GstBuffer* buffer) {
    auto* self = GST_VARTML_DECODE(base);
    State& state = *self->state;
    sync_properties(base, buffer);
    if (!update_settings(self)) return GST_FLOW_ERROR;

    const auto begin = std::chrono::steady_clock::now();
    bool any_metadata = false;
    if (auto done = collect_jobs(state, buffer, any_metadata); !done) {
        post_error(self, "read the tensors", {.error = done.error(), .id = "dec-unknown"});
        return GST_FLOW_ERROR;
    }
    note_lost(self, any_metadata);
    state.idle.frame(
        GST_ELEMENT(self),
        {.id = "dec-idle", .doing = "find tensors", .lacks = "tensors", .needs_decoder = false},
        any_metadata, false);
    vartml::Span span(vartml::trace_flag::runs, vartml::TraceCategory::host, "decode");
    const vartml::TraceFrame traced = traced_frame(state, buffer);
    span.frames({&traced, 1});
    DecodedFrame frame;
    frame.decoded = !state.jobs.empty();
    for (std::span<const Job> left = state.jobs; !left.empty();) {
        const size_t count = together(left);
        if (!decode_jobs(self, buffer, left.first(count), frame)) return GST_FLOW_ERROR;
        left = left.subspan(count);
    }
    if (frame.decoded && !state.keep_tensors) {
        for (const Job& job : state.jobs) remove_tensor_metas(buffer, job.data);
        // Those as well that another decoder has decoded and kept.
        for (unsigned i = 0; const Inference* one = get_inference(buffer, i); ++i)
            remove_tensor_metas(buffer, one->data);
        drop_inference_tensors(buffer);
    }
    if (state.keep_tensors) mark_decoded(buffer);
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - begin);
    frame.time_us = static_cast<guint32>(std::min<long>(us.count(), G_MAXINT32));
    GST_LOG_OBJECT(self,
                   "%" GST_TIME_FORMAT
                   ": %u inferences, %u of them known, %u boxes, %u suppressed, "
                   "in %u us",
                   GST_TIME_ARGS(GST_BUFFER_PTS(buffer)), static_cast<guint>(state.jobs.size()),
                   frame.reused, frame.boxes, frame.suppressed, frame.time_us);
    GST_OBJECT_LOCK(self);
    state.stats.add(frame);
    GST_OBJECT_UNLOCK(self);
    return GST_FLOW_OK;
}

}  // namespace

void vartml::gst::list_decoded_labels(GObject* element, GValue* list) {
    const ObjectLock lock(element);
    for (const std::string& label : state_of(element).labels) {
        GValue text = G_VALUE_INIT;
        g_value_init(&text, G_TYPE_STRING);
        g_value_set_string(&text, label.c_str());
        gst_value_array_append_and_take_value(list, &text);
    }
}

GstStructure* vartml::gst::decode_stats(GObject* element) {
    const ObjectLock lock(element);
    return state_of(element).stats.structure();
}

static void gst_vartml_decode_init(GstVartmlDecode* self) {
    self->state = new State;
    GstBaseTransform* base = GST_BASE_TRANSFORM(self);
    set_up_in_place(base);
    gst_base_transform_set_prefer_passthrough(base, FALSE);  // it would carry `tensors` upstream
}

void gst_vartml_decode_read_own_group(GstVartmlDecode* self) {
    self->state->one_group = self->state->properties.keep_tensors = true;
}

static void gst_vartml_decode_class_init(GstVartmlDecodeClass* klass) {
    GST_DEBUG_CATEGORY_INIT(vartmldecode_debug, "vartmldecode", 0, "tensors to analytics metadata");
    auto* gobject = G_OBJECT_CLASS(klass);
    auto* base = GST_BASE_TRANSFORM_CLASS(klass);
    gobject->finalize = free_state<GstVartmlDecode>;
    install_properties<Properties>(gobject);

    set_up_in_place(base, "VART-ML tensor decoder", "Analyzer/Video",
                    "Turns tensors into boxes, classes, masks and keypoints in frame coordinates");

    base->start = start;
    base->stop = stop;
    base->set_caps = set_caps;
    base->transform_caps = transform_caps;
    base->sink_event = sink_event;
    base->query = query;
    base->prepare_output_buffer = prepare_output_buffer;
    base->transform_ip = transform_ip;
}
