// SPDX-License-Identifier: Apache-2.0
// Loading and swapping: a model is opened, warmed up and announced, by the state change or by a
// thread of the stream's own.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include <gst/analytics/analytics.h>

#include "gst/infer/settings.h"
#include "gst/infer/stream.h"
#include "gst/infer/trace.h"

namespace vartml::gst::infer {

namespace {

const char* doing(const Failure& failure) {
    const std::string_view id = failure.id;
    if (id == "infer-compile" || id == "infer-no-compiler" || id == "infer-cache")
        return "compile the model";
    if (id == "infer-sidecar") return "read the sidecar";
    if (id == "infer-decoders") return "choose how pictures are fed";
    if (id == "infer-run" || id == "infer-device-lost") return "run the model";
    if (id == "infer-fallback") return "run the whole model on the NPU";
    if (id == "infer-copy-forbidden") return "pass the frame without a copy";
    if (id == "infer-caps") return "take frames as the tensor";
    return "load the model";
}

// Whether there is no more in a sidecar than what the compiler saw of the outputs.
bool says_nothing(vartml::ModelInfo info) {
    for (const vartml::ModelInfo::Output& output : info.outputs)
        if (!output.id.empty() || !output.role.empty() || output.stride) return false;
    info.outputs.clear();
    return info == vartml::ModelInfo{};
}

}  // namespace

std::string Stream::element_name() const {
    gchar* name = gst_object_get_name(GST_OBJECT(element_));
    std::string copy = name;
    g_free(name);
    return copy;
}

void Stream::configure(const Settings& settings) {
    interval_ = std::max(1u, settings.inference_interval);
    on_late_ = settings.on_late;
    keep_rate_ = settings.keep_rate;
    copy_policy_ = settings.copy_policy;
    batch_timeout_ms_ = settings.batch_timeout_ms;
    latency_target_ms_ = settings.latency_target_ms;
    if (settings.region != InferenceRegion::roi) return;
    RegionRules rules = region_rules(settings);
    if (settings.running) rules.most = started_.roi_max;  // requests are made for so many
    const std::lock_guard lock(signal_->mutex);
    if (!rules_ || !(rules == *rules_))
        rules_ = std::make_shared<const RegionRules>(std::move(rules));
}

void Stream::settings_written() {
    std::optional<std::string> model;
    {
        const std::lock_guard lock(settings_mutex_);
        model.swap(settings_.wanted_model);
        configure(settings_);
    }
    if (model) request_swap(*model);
}

bool Stream::start() {
    {
        const std::lock_guard lock(settings_mutex_);
        settings_.running = true;
        settings_.sidecar_written = false;
        started_ = settings_;
        configure(settings_);
    }
    stats_.reset();
    cancel_ = import_refused_ = false;
    for (std::atomic<bool>& told : copy_told_) told = false;
    pre_promise_us_ = 0;
    adapted_ = 1;
    const bool own_thread = needs_compiler(started_.model);
    {
        const std::lock_guard lock(signal_->mutex);
        load_ = Load::loading;
        measured_latency_ = 0;
        timed_epoch_.reset();
        epoch_ = 0;
        load_wanted_ = own_thread;
        if (own_thread) {
            wake_worker();
            return true;
        }
    }
    load();
    const std::lock_guard lock(signal_->mutex);
    return load_ == Load::loaded;
}

void Stream::stop() {
    {
        const std::lock_guard lock(settings_mutex_);
        settings_.running = false;
    }
    drop_queue(false);  // may leave a lane to the worker
    std::thread worker;
    {
        const std::lock_guard lock(signal_->mutex);
        cancel_ = worker_stops_ = true;
        worker.swap(worker_);
        signal_->changed.notify_all();
    }
    if (worker.joinable()) worker.join();
    if (!started_.model_instance_id.empty()) leave_instance(*this, started_.model_instance_id);
    plan_.reset();
    doubted_.reset();
    region_plans_.clear();
    scratch_ = Inference();
    known_.forget();
    target_.reset();
    promise_ = {};
    failures_ = 0;
    std::vector<std::shared_ptr<Lane>> lanes;
    std::string pending;
    {
        const std::lock_guard lock(signal_->mutex);
        if (next_lane_) pending = next_model_;
        if (wanted_model_ && started_.model_instance_id.empty()) pending = *wanted_model_;
        lanes.swap(retired_);
        lanes.push_back(std::exchange(lane_, nullptr));
        lanes.push_back(std::exchange(next_lane_, nullptr));
        load_ = Load::none;
        load_wanted_ = worker_stops_ = false;
        wanted_model_.reset();
        announce_.reset();
        gst_clear_caps(&caps_);
        gst_clear_caps(&narrow_);
    }
    for (std::shared_ptr<Lane>& lane : lanes) Lane::retire(std::move(lane));
    if (pending.empty()) return;
    const std::lock_guard lock(settings_mutex_);
    settings_.model = pending;  // a swap that no frame has seen: the next start does it
}

void Stream::wake_worker() {
    if (worker_stops_) return;  // what was left to it, stop() does
    if (!worker_.joinable()) {
        worker_ = std::thread([this] { work(); });
        pthread_setname_np(worker_.native_handle(), "vartml-load");
    }
    signal_->changed.notify_all();
}

void Stream::work() {
    std::unique_lock lock(signal_->mutex);
    while (true) {
        signal_->changed.wait(lock, [this] {
            return worker_stops_ || load_wanted_ || announce_ || !retired_.empty() ||
                   (wanted_model_ && load_ != Load::loading);
        });
        if (worker_stops_) return;
        if (std::exchange(load_wanted_, false)) {
            lock.unlock();
            load();
        } else if (const std::shared_ptr<Lane> lane = std::exchange(announce_, nullptr)) {
            lock.unlock();
            warn_of_policies(*lane);
            post_loaded(*lane);
        } else if (!retired_.empty()) {
            std::vector<std::shared_ptr<Lane>> lanes = std::move(retired_);
            retired_.clear();
            lock.unlock();
            for (std::shared_ptr<Lane>& lane : lanes) Lane::retire(std::move(lane));
        } else {
            const std::string model = *std::exchange(wanted_model_, std::nullopt);
            cancel_ = false;
            lock.unlock();
            swap(model);
        }
        lock.lock();
    }
}

LoadProgress Stream::progress(const std::string& model) {
    return {&cancel_, [this, model](int percent, const std::string& stage) {
                post_compile(model, percent, stage);
            }};
}

std::shared_ptr<Lane> Stream::load_lane(Failure& failure) {
    std::shared_ptr<Instance> instance =
        started_.model_instance_id.empty()
            ? load_instance(started_, progress(started_.model), failure)
            : join_instance(*this, started_, element_name(), progress(started_.model), failure);
    return instance && !cancel_ ? make_lane(instance, failure) : nullptr;
}

void Stream::load() {
    Failure failure;
    std::shared_ptr<Lane> lane = load_lane(failure);
    if (!lane && !cancel_) post_error(element_, doing(failure), failure);
    if (lane) {
        warn_of_policies(*lane);
        post_loaded(*lane);
    }
    bool own_thread;
    std::shared_ptr<Lane> outdated;
    {
        const std::lock_guard lock(signal_->mutex);
        load_ = lane ? Load::loaded : Load::failed;
        // Another element of a shared model has swapped it meanwhile.
        if (lane && next_lane_) outdated = std::exchange(lane, std::exchange(next_lane_, nullptr));
        if (lane) narrow_to(*lane);
        lane_ = std::move(lane);
        signal_->changed.notify_all();
        own_thread = worker_.joinable() && load_ == Load::loaded;
    }
    Lane::retire(std::move(outdated));
    // A live pipeline may have asked for the latency before it was known.
    if (own_thread)
        gst_element_post_message(element_, gst_message_new_latency(GST_OBJECT(element_)));
}

std::shared_ptr<Lane> Stream::make_lane(const std::shared_ptr<Instance>& instance,
                                        Failure& failure) {
    unsigned epoch;
    {
        const std::lock_guard lock(signal_->mutex);
        epoch = lane_ ? epoch_ + 1 : 0;
    }
    Settings settings = started_;
    settings.model = instance->model;  // whose sidecar lies beside it
    if (epoch > 0) settings.modelinfo_file = sidecar_of_next(*instance);
    auto lane = Lane::create(settings, element_name(), epoch, instance, signal_, ask_decoders(src_),
                             failure);
    if (lane && (!allowed(*lane, failure) || !suits_caps(*lane, failure) ||
                 (epoch > 0 && !suits_head(*lane, failure))))
        Lane::retire(std::exchange(lane, nullptr));
    return lane;
}

// A model that is written while running comes with its sidecar: the one written before it, else its
// own, else the one in use.
std::string Stream::sidecar_of_next(const Instance& instance) {
    std::string in_use;
    {
        const std::lock_guard lock(settings_mutex_);
        if (settings_.sidecar_written) return settings_.modelinfo_file;
        in_use = settings_.modelinfo_file;
    }
    const auto own = vartml::find_modelinfo("", instance.model, instance.description.modelinfo);
    return own && says_nothing(*own) ? in_use : "";
}

void Stream::request_swap(const std::string& model) {
    GST_DEBUG_OBJECT(element_, "model '%s' is wanted in the place of the one in use",
                     model.c_str());
    const std::lock_guard lock(signal_->mutex);
    wanted_model_ = model;
    if (load_ != Load::loading) cancel_ = true;  // a swap that is no longer wanted
    wake_worker();
}

void Stream::swap(const std::string& model) {
    {
        std::unique_lock lock(signal_->mutex);
        if (load_ != Load::loaded) return;  // the element failed to start
    }
    Settings settings = started_;
    settings.model = model;
    Failure failure;
    std::shared_ptr<Instance> instance = load_instance(settings, progress(model), failure);
    bool done = instance != nullptr && !cancel_;
    if (done && !started_.model_instance_id.empty()) {
        done = swap_instance(started_.model_instance_id, settings, instance, failure);
    } else if (done) {
        std::shared_ptr<Lane> lane = make_lane(instance, failure);
        done = lane != nullptr;
        if (done) adopt(model, std::move(lane));
    }
    if (!done && !cancel_) post_swap_failed(model, failure);
}

void Stream::adopt(const std::string& model, std::shared_ptr<Lane> lane) {
    const std::lock_guard lock(signal_->mutex);
    announce_ = lane;
    std::swap(next_lane_, lane);
    next_model_ = model;
    if (lane) retired_.push_back(std::move(lane));  // a swap that no frame has seen
    wake_worker();
}

void Stream::post_compile(const std::string& model, int percent, const std::string& stage) {
    gst_element_post_message(
        element_,
        gst_message_new_element(
            GST_OBJECT(element_),
            gst_structure_new("vartml-compile", "model", G_TYPE_STRING, model.c_str(), "percent",
                              G_TYPE_INT, percent, "stage", G_TYPE_STRING, stage.c_str(),
                              "cache-hit", G_TYPE_BOOLEAN, gboolean(stage == "cached"), nullptr)));
}

void Stream::post_loaded(const Lane& lane) {
    const Instance& instance = lane.instance();
    if (instance.cache_hit) post_compile(instance.model, 100, "cached");
    const vartml::ModelDescription& d = instance.description;
    const auto device = runner_property<std::string>(*instance.runner, "backend");
    GST_INFO_OBJECT(
        element_,
        "model '%s' of %s on %s: %u nodes on the NPU, %u on the CPU, batch %u, a run of "
        "about %" G_GUINT64_FORMAT " us; sidecar %s, decoder %s",
        d.name.c_str(), instance.model.c_str(), device ? device->c_str() : d.device.c_str(),
        d.npu_operators, d.cpu_operators, instance.scheduler->limits().batch,
        guint64(instance.run_p50_us),
        lane.record()->model_info.file.empty() ? d.modelinfo.empty() ? "none" : "in the model"
                                               : lane.record()->model_info.file.c_str(),
        lane.record()->model_info.decoder.empty() ? "not named"
                                                  : lane.record()->model_info.decoder.c_str());
    gst_element_post_message(
        element_,
        gst_message_new_element(
            GST_OBJECT(element_),
            gst_structure_new("vartml-model-loaded", "model", G_TYPE_STRING, d.name.c_str(), "hash",
                              G_TYPE_STRING, d.signature.c_str(), "device", G_TYPE_STRING,
                              device ? device->c_str() : d.device.c_str(), "batch", G_TYPE_UINT,
                              instance.scheduler->limits().batch, "inputs", G_TYPE_UINT,
                              unsigned(d.inputs.size()), "outputs", G_TYPE_UINT,
                              unsigned(d.outputs.size()), "npu-nodes", G_TYPE_UINT, d.npu_operators,
                              "cpu-nodes", G_TYPE_UINT, d.cpu_operators, "load-us", G_TYPE_UINT64,
                              guint64(instance.load_us), "warmup-us", G_TYPE_UINT64,
                              guint64(instance.warmup_us), nullptr)));
}

void Stream::post_swapped(const Entry& entry) {
    GST_INFO_OBJECT(element_, "model '%s' takes over from frame %" G_GUINT64_FORMAT,
                    entry.new_lane->record()->model.c_str(), entry.seq);
    gst_element_post_message(
        element_,
        gst_message_new_element(
            GST_OBJECT(element_),
            gst_structure_new("vartml-model-changed", "old", G_TYPE_STRING,
                              entry.old_lane->record()->model.c_str(), "new", G_TYPE_STRING,
                              entry.new_lane->record()->model.c_str(), "epoch", G_TYPE_UINT,
                              entry.new_lane->record()->model_epoch, "first-seq", G_TYPE_UINT64,
                              entry.seq, "first-pts", G_TYPE_UINT64, guint64(entry.pts), nullptr)));
}

void Stream::post_swap_failed(const std::string& requested, const Failure& failure) {
    std::shared_ptr<Lane> lane;
    {
        const std::lock_guard lock(signal_->mutex);
        lane = next_lane_ ? next_lane_ : lane_;
    }
    std::string kept;
    {
        const std::lock_guard lock(settings_mutex_);
        kept = settings_.model;
        if (lane) settings_.modelinfo_file = lane->modelinfo_file();
        settings_.sidecar_written = false;
    }
    Failure warning = failure;
    warning.error.message += "; the model in use stays '" + kept + "'";
    post_warning(element_, doing(failure), warning);
    gst_element_post_message(
        element_, gst_message_new_element(
                      GST_OBJECT(element_),
                      gst_structure_new("vartml-model-change-failed", "requested", G_TYPE_STRING,
                                        requested.c_str(), "kept", G_TYPE_STRING, kept.c_str(),
                                        "error-id", G_TYPE_STRING, failure.id, "reason",
                                        G_TYPE_STRING, failure.error.message.c_str(), nullptr)));
}

// What a frame carries when it leaves: tensors, and the record of how they were made.
namespace {

GstTensorDataType tensor_type(vartml::DataType type) {
    using vartml::DataType;
    switch (type) {
        case DataType::int8:
            return GST_TENSOR_DATA_TYPE_INT8;
        case DataType::int16:
            return GST_TENSOR_DATA_TYPE_INT16;
        case DataType::uint16:
            return GST_TENSOR_DATA_TYPE_UINT16;
        case DataType::int32:
            return GST_TENSOR_DATA_TYPE_INT32;
        case DataType::uint32:
            return GST_TENSOR_DATA_TYPE_UINT32;
        case DataType::int64:
            return GST_TENSOR_DATA_TYPE_INT64;
        case DataType::uint64:
            return GST_TENSOR_DATA_TYPE_UINT64;
        case DataType::fp16:
            return GST_TENSOR_DATA_TYPE_FLOAT16;
        case DataType::bf16:
            return GST_TENSOR_DATA_TYPE_BFLOAT16;
        case DataType::float32:
            return GST_TENSOR_DATA_TYPE_FLOAT32;
        case DataType::float64:
            return GST_TENSOR_DATA_TYPE_FLOAT64;
        default:
            return GST_TENSOR_DATA_TYPE_UINT8;  // and booleans
    }
}

void attach_tensors(const InferenceRecord& record, GstBuffer* buffer,
                    const std::vector<GstBuffer*>& data) {
    const size_t n = record.views.size();
    GstTensor** tensors = g_new0(GstTensor*, n);
    for (size_t i = 0; i < n; ++i) {
        const vartml::TensorView& view = record.views[i];
        // Not gst_tensor_new_simple: it refuses a buffer that is larger than its elements.
        GstTensor* tensor = gst_tensor_alloc(view.shape.size());
        tensor->id = record.tensor_quarks[i];
        tensor->layout = GST_TENSOR_LAYOUT_CONTIGUOUS;
        tensor->data_type = tensor_type(view.data_type);
        tensor->data = gst_buffer_ref(data[i]);
        tensor->dims_order = GST_TENSOR_DIM_ORDER_ROW_MAJOR;
        std::copy(view.shape.begin(), view.shape.end(), tensor->dims);
        tensors[i] = tensor;
    }
    // Not gst_buffer_add_tensor_meta: before 1.26.6 it returns an existing one.
    auto* meta = reinterpret_cast<GstTensorMeta*>(
        gst_buffer_add_meta(buffer, GST_TENSOR_META_INFO, nullptr));
    gst_tensor_meta_set(meta, guint(n), tensors);
}

}  // namespace

// Metadata needs a writable buffer. Its memory is shared by the copy, except where a memory forbids
// it. nullptr after posting that the copy is forbidden.
GstBuffer* Stream::make_writable(GstBuffer* buffer) {
    if (gst_buffer_is_writable(buffer)) return buffer;
    uint64_t bytes = 0;
    for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) {
        GstMemory* memory = gst_buffer_peek_memory(buffer, i);
        if (GST_MEMORY_IS_NO_SHARE(memory)) bytes += memory->size;
    }
    if (count_copy(CopyReason::make_writable, bytes)) {
        gst_buffer_unref(buffer);
        return nullptr;
    }
    return gst_buffer_make_writable(buffer);
}

// One inference, or the record that there was none (`request` is nullptr), in `scratch_`, whose
// tensors are not its own.
void Stream::describe(const Entry& entry, const Request* request) {
    static std::atomic<guint64> results{0};
    const FramePlan& plan = *entry.plan;
    Inference& i = scratch_;
    i.status = i.fate = entry.status;
    i.result_id = i.result_seq = i.age_ns = 0;
    i.stream_id = plan.stream_id;
    i.frame_seq = entry.seq;
    i.frame_width = plan.format.picture.width;
    i.frame_height = plan.format.picture.height;
    const FrameRegion region =
        request ? request->region : FrameRegion{0, 0, int(i.frame_width), int(i.frame_height), -1};
    i.region_x = region.x;
    i.region_y = region.y;
    i.region_width = region.width;
    i.region_height = region.height;
    i.region_od = region.od;
    i.resize = plan.preprocess.resize;
    i.to_frame = request             ? request->to_frame
                 : plan.preprocessor ? plan.preprocessor->to_frame()
                                     : vartml::Affine{};
    i.pre_us = i.wait_us = i.run_us = 0;
    i.total_us = us_between(entry.entered, Clock::now());
    i.batch_fill = 0;
    i.record = plan.lane->record();
    i.data.clear();
    if (request && entry.status == InferenceStatus::inferred) {
        i.result_id = ++results;
        i.result_seq = entry.seq;
        i.pre_us = request->pre_us;
        i.wait_us = us_between(request->submitted, request->started);
        i.run_us = us_between(request->started, request->finished);
        i.batch_fill = request->batch_fill;
        i.data = request->data;
    }
}

void Stream::log(const Inference& i) const {
    const bool region = i.region_width != int(i.frame_width) || i.region_od >= 0;
    GST_CAT_LEVEL_LOG(GST_CAT_DEFAULT, region ? GST_LEVEL_TRACE : GST_LEVEL_LOG, element_,
                      "frame %" G_GUINT64_FORMAT ": %s (%s), result of %" G_GUINT64_FORMAT
                      ", %" G_GUINT64_FORMAT " us old; region %d,%d %dx%d; pre %" G_GUINT64_FORMAT
                      " wait %" G_GUINT64_FORMAT " run %" G_GUINT64_FORMAT
                      " total %" G_GUINT64_FORMAT " us",
                      i.frame_seq, status_nick(i.status), status_nick(i.fate), i.result_seq,
                      i.age_ns / 1000, i.region_x, i.region_y, i.region_width, i.region_height,
                      i.pre_us, i.wait_us, i.run_us, i.total_us);
}

void Stream::attach_one(const Entry& entry, GstBuffer* buffer, const Request* request) {
    describe(entry, request);
    Inference& i = scratch_;
    log(i);
    if (i.has_result()) attach_tensors(*i.record, buffer, i.data);
    add_inference(buffer, i, i.has_result() ? 100 : 0);
    if (i.has_result() && entry.keeps_rate()) known_.set(i, entry.pts, entry.entered);
    i.data.clear();
}

// Keeps the result of a frame that has left.
void Stream::remember(const Entry& entry) {
    describe(entry, entry.requests);
    known_.set(scratch_, entry.pts, entry.entered);
    scratch_.data.clear();
}

// The newest result, on a frame without one of its own.
void Stream::attach_known(const Entry& entry, GstBuffer* buffer, const Inference& known) {
    Inference& i = scratch_;
    i = known;
    i.status = InferenceStatus::carried;
    i.fate = entry.status;
    i.frame_seq = entry.seq;
    i.age_ns = known_.age_ns(entry.pts, entry.entered);
    i.total_us = us_between(entry.entered, Clock::now());
    log(i);
    stats_.carried(i.age_ns / 1000);
    attach_tensors(*i.record, buffer, i.data);
    add_inference(buffer, i, 100);
    i.data.clear();
}

// Takes the buffer, returns one with the metadata; nullptr after posting an error.
GstBuffer* Stream::attach(Entry& entry, GstBuffer* buffer) {
    buffer = make_writable(buffer);
    if (!buffer) return nullptr;
    const vartml::PictureInfo& picture = entry.plan->format.picture;
    const bool own = entry.requests && entry.status == InferenceStatus::inferred;
    const Inference* known = own || !entry.keeps_rate()
                                 ? nullptr
                                 : known_.of(entry.plan->lane->record().get(),
                                             entry.plan->stream_id, picture.width, picture.height);
    if (known) {
        attach_known(entry, buffer, *known);
        return buffer;
    }
    if (!entry.requests) attach_one(entry, buffer, nullptr);
    for (Request* r = entry.requests; r; r = r->next) {
        if (r->region.roi_type) r->region.od = detection_of(buffer, r->region);
        attach_one(entry, buffer, r);
    }
    return buffer;
}

}  // namespace vartml::gst::infer
