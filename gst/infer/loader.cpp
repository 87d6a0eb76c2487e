// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/loader.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "gst/infer/trace.h"
#include "gst/support/decoder_query.h"

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
    if (id == "infer-caps") return doing_with_caps(failure);
    return "load the model";
}

}  // namespace

bool Loader::start() {
    cancel_ = false;
    {
        const std::lock_guard lock(mutex_);
        state_ = State::loading;
        epoch_ = 0;
        load_wanted_ = needs_compiler(context_.settings.started().model);
        if (load_wanted_) {
            wake_worker();
            return true;
        }
    }
    load();
    const std::lock_guard lock(mutex_);
    return state_ != State::failed;
}

void Loader::stop() {
    std::thread worker;
    {
        const std::lock_guard lock(mutex_);
        cancel_ = worker_stops_ = true;
        worker.swap(worker_);
        changed_.notify_all();
    }
    if (worker.joinable()) worker.join();
    const std::string& id = context_.settings.started().model_instance_id;
    if (!id.empty() && leave_instance(*this, id)) give_up_swap();
}

std::string Loader::end() {
    std::vector<std::shared_ptr<Lane>> lanes;
    std::string pending;
    {
        const std::lock_guard lock(mutex_);
        if (next_lane_) pending = next_model_;
        if (wanted_model_) pending = *wanted_model_;
        lanes.swap(retired_);
        lanes.push_back(std::exchange(lane_, nullptr));
        lanes.push_back(std::exchange(next_lane_, nullptr));
        state_ = State::none;
        load_wanted_ = worker_stops_ = false;
        wanted_model_.reset();
        announce_.reset();
        idle_at_ = Clock::time_point::max();
        gst_clear_caps(&caps_);
        gst_clear_caps(&narrow_);
    }
    for (std::shared_ptr<Lane>& lane : lanes) Lane::retire(std::move(lane));
    return pending;
}

bool Loader::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return interrupted_ || lane_ || state_ != State::loading; });
    return lane_ != nullptr;
}

Loader::State Loader::wake() {
    std::unique_lock lock(mutex_);
    if (state_ == State::asleep && !interrupted_) {
        state_ = State::loading;
        load_wanted_ = true;
        wake_worker();
    }
    changed_.wait(lock, [this] { return interrupted_ || state_ != State::loading; });
    return state_;
}

void Loader::interrupt(bool interrupted) {
    const std::lock_guard lock(mutex_);
    interrupted_ = interrupted;
    changed_.notify_all();
}

std::optional<Loader::Change> Loader::take_over() {
    const std::lock_guard lock(mutex_);
    if (!next_lane_) return std::nullopt;
    Change change;
    change.old_lane = std::exchange(lane_, std::exchange(next_lane_, nullptr));
    change.new_lane = lane_;
    change.model = next_model_;
    epoch_ = lane_->record()->model_epoch;
    narrow_to(*lane_);
    return change;
}

std::shared_ptr<Lane> Loader::lane() const {
    const std::lock_guard lock(mutex_);
    return lane_;
}

bool Loader::has_model() const {
    const std::lock_guard lock(mutex_);
    return lane_ || state_ == State::loading;
}

void Loader::finish_swap(Entry& entry) {
    post_swapped(entry);
    const std::lock_guard lock(mutex_);
    retired_.push_back(std::move(entry.old_lane));
    wake_worker();
}

bool Loader::set_caps(GstCaps* caps, Failure& failure) {
    std::shared_ptr<Lane> lane;
    {
        const std::lock_guard lock(mutex_);
        gst_caps_replace(&caps_, caps);
        lane = lane_;
    }
    return !lane || suits_caps(*lane, failure);
}

GstCaps* Loader::narrow_caps() const {
    const std::lock_guard lock(mutex_);
    return narrow_ ? gst_caps_ref(narrow_) : nullptr;
}

// Whether frames under the caps that are there, or that were offered, can be this lane's.
bool Loader::suits_caps(const Lane& lane, Failure& failure) const {
    GstCaps *caps = nullptr, *narrow = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (caps_) caps = gst_caps_ref(caps_);
        if (narrow_) narrow = gst_caps_ref(narrow_);
    }
    const bool suits = caps ? suits_format(context_.settings.started(), lane, caps, failure)
                            : !narrow || suits_offer(lane, narrow, failure);
    gst_clear_caps(&caps);
    gst_clear_caps(&narrow);
    return suits;
}

void Loader::narrow_to(const Lane& lane) {
    if (context_.settings.started().input_is_tensor != InputIsTensor::yes) return;
    std::string why;
    gst_clear_caps(&narrow_);
    narrow_ = FrameTensor::create(lane, why)->caps();
}

void Loader::wake_worker() {
    if (worker_stops_) return;  // what was left to it, stop() does
    if (!worker_.joinable()) {
        worker_ = std::thread([this] { work(); });
        pthread_setname_np(worker_.native_handle(), "vartml-load");
    }
    changed_.notify_all();
}

bool Loader::has_work() const {
    return load_wanted_ || announce_ || !retired_.empty() ||
           (wanted_model_ && state_ != State::loading && state_ != State::failed);
}

void Loader::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        while (!worker_stops_ && !has_work() && Clock::now() < idle_at_) {
            if (idle_at_ == Clock::time_point::max()) {
                changed_.wait(lock);
            } else {
                changed_.wait_until(lock, idle_at_);
            }
        }
        if (worker_stops_) return;
        if (!has_work()) {
            lock.unlock();
            unload();
        } else if (std::exchange(load_wanted_, false)) {
            cancel_ = false;
            lock.unlock();
            load();
        } else if (const std::shared_ptr<Lane> lane = std::exchange(announce_, nullptr)) {
            lock.unlock();
            warn_of_policies(context_.element, context_.settings.started(), *lane);
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

LoadProgress Loader::progress(const std::string& model) {
    return {&cancel_, [this, model](int percent, const std::string& stage) {
                post_compile(model, percent, stage);
            }};
}

// `before`: the lane that is asleep, or nullptr at the first time.
std::shared_ptr<Lane> Loader::load_lane(const Lane* before, Failure& failure) {
    Settings settings = context_.settings.started();
    const InstanceFacts* const facts = before ? &before->instance() : nullptr;
    if (facts) settings.model = facts->model;
    std::shared_ptr<Instance> instance =
        settings.model_instance_id.empty()
            ? load_instance(settings, progress(settings.model), facts, failure)
            : join_instance(*this, settings, name_of(context_.element), progress(settings.model),
                            facts, failure);
    if (!instance || cancel_) return nullptr;
    // Another model than before, because another element or the file brought it, is a swap.
    if (!facts || instance->model != facts->model ||
        instance->description.signature != facts->description.signature)
        return make_lane(instance, failure);
    settings.modelinfo_file = before->modelinfo_file();
    auto lane = create_lane(settings, before->record()->model_epoch, instance, failure);
    if (lane) lane->continue_from(*before);
    return lane;
}

void Loader::load() {
    std::shared_ptr<Lane> lane_before, next_before;
    {
        const std::lock_guard lock(mutex_);
        lane_before = lane_;
        next_before = next_lane_;
    }
    const Lane* const before = next_before ? next_before.get() : lane_before.get();
    Failure failure;
    std::shared_ptr<Lane> lane = load_lane(before, failure);
    if (!lane && !cancel_) post_error(context_.element, doing(failure), failure);
    if (lane) {
        const Settings& started = context_.settings.started();
        if (!before) warn_of_policies(context_.element, started, *lane);
        if (!before && started.sidecar_of_before)
            context_.settings.swapped(started.model, lane->modelinfo_file());
        post_loaded(*lane);
    }
    bool own_thread;
    std::shared_ptr<Lane> outdated;
    {
        const std::lock_guard lock(mutex_);
        state_ = lane ? State::loaded : State::failed;
        if (lane && (lane_ != lane_before || next_lane_ != next_before)) {
            // Another element of a shared model has swapped it meanwhile.
            outdated = std::move(lane);
            if (!lane_) lane_ = std::exchange(next_lane_, nullptr);
        } else if (lane && lane_ && lane->record()->model_epoch != lane_->record()->model_epoch) {
            next_model_ = lane->instance().model;
            next_lane_ = std::move(lane);
        } else if (lane) {
            lane_ = std::move(lane);
        }
        if (state_ == State::loaded) narrow_to(*lane_);
        changed_.notify_all();
        own_thread = worker_.joinable() && state_ == State::loaded;
        restart_idle();
    }
    Lane::retire(std::move(outdated));
    // A live pipeline may have asked for the latency before it was known.
    if (own_thread && !before)
        gst_element_post_message(context_.element,
                                 gst_message_new_latency(GST_OBJECT(context_.element)));
}

void Loader::restart_idle() {
    const unsigned idle_ms = context_.settings.started().idle_unload_ms;
    if (idle_ms == 0 || state_ != State::loaded) return;
    idle_at_ = Clock::now() + std::chrono::milliseconds(idle_ms);
    wake_worker();
}

// Where no frame came for long enough and none is on its way, the model goes and lanes that are
// asleep say what is known of it. With the stream lock nobody asks for the model meanwhile.
void Loader::unload() {
    const unsigned idle_ms = context_.settings.started().idle_unload_ms;
    const std::chrono::milliseconds idle(idle_ms);
    const auto now = Clock::now();
    auto again = now + std::min(idle, std::chrono::milliseconds(100));  // where something goes on
    std::vector<std::shared_ptr<Lane>> lanes;
    if (GST_PAD_STREAM_TRYLOCK(context_.sink)) {
        const auto due = holder_.last_frame() + idle;
        if (due > now) {
            again = due;
        } else if (holder_.at_rest()) {
            holder_.let_go();
            const std::string& id = context_.settings.started().model_instance_id;
            if (!id.empty()) pause_instance(*this, id);  // nobody swaps its model after this
            const std::lock_guard lock(mutex_);
            lanes = fall_asleep();
        }
        GST_PAD_STREAM_UNLOCK(context_.sink);
    }
    if (lanes.empty()) {
        const std::lock_guard lock(mutex_);
        idle_at_ = std::max(idle_at_, again);
        return;
    }
    for (std::shared_ptr<Lane>& lane : lanes) {
        const std::string model = lane->record()->model;
        Lane::retire(std::move(lane));
        post_unloaded(model, idle_ms);
    }
}

std::vector<std::shared_ptr<Lane>> Loader::fall_asleep() {
    std::vector<std::shared_ptr<Lane>> lanes;
    for (std::shared_ptr<Lane>* lane : {&lane_, &next_lane_}) {
        if (!*lane || (*lane)->is_asleep()) continue;
        std::shared_ptr<Lane> asleep = (*lane)->asleep();
        lanes.push_back(std::exchange(*lane, std::move(asleep)));
    }
    state_ = State::asleep;
    idle_at_ = Clock::time_point::max();
    return lanes;
}

std::shared_ptr<Lane> Loader::make_lane(const std::shared_ptr<Instance>& instance,
                                        Failure& failure) {
    unsigned epoch;
    {
        const std::lock_guard lock(mutex_);
        epoch = lane_ ? epoch_ + 1 : 0;
    }
    Settings settings = context_.settings.started();
    settings.model = instance->model;  // whose sidecar lies beside it
    if (epoch > 0)
        settings.modelinfo_file = sidecar_of_next(*instance);
    else if (settings.sidecar_of_before)
        settings.modelinfo_file = own_sidecar_or(settings.modelinfo_file, *instance);
    return create_lane(settings, epoch, instance, failure);
}

std::shared_ptr<Lane> Loader::create_lane(const Settings& settings, unsigned epoch,
                                          const std::shared_ptr<Instance>& instance,
                                          Failure& failure) {
    auto lane = Lane::create(settings, name_of(context_.element), epoch, instance, context_.signal,
                             ask_decoders(context_.src), failure);
    if (lane &&
        (!allows(context_.settings.started(), context_.settings.copy_policy(), *lane, failure) ||
         !suits_caps(*lane, failure) || (epoch > 0 && !suits_head(*lane, failure))))
        Lane::retire(std::exchange(lane, nullptr));
    return lane;
}

// Empty: the model's own.
std::string Loader::own_sidecar_or(const std::string& in_use, const Instance& instance) {
    const auto own = vartml::find_modelinfo("", instance.model, instance.description.modelinfo);
    // A file that says no more is somebody's all the same.
    return own && own->file.empty() && vartml::is_of_graph_alone(*own) ? in_use : "";
}

// A model that is written while running comes with its sidecar: the one written before it, else its
// own, else the one in use.
std::string Loader::sidecar_of_next(const Instance& instance) {
    std::string in_use;
    if (auto written = context_.settings.sidecar_of_next(in_use)) return *std::move(written);
    return own_sidecar_or(in_use, instance);
}

void Loader::request_swap(const std::string& model) {
    GST_DEBUG_OBJECT(context_.element, "model '%s' is wanted in the place of the one in use",
                     model.c_str());
    const std::lock_guard lock(mutex_);
    wanted_model_ = model;
    if (state_ != State::loading) cancel_ = true;  // a swap that is no longer wanted
    wake_worker();
}

void Loader::swap(const std::string& model) {
    Settings settings = context_.settings.started();
    settings.model = model;
    Failure failure;
    std::shared_ptr<Instance> instance = load_instance(settings, progress(model), nullptr, failure);
    bool done = instance != nullptr && !cancel_;
    if (done && !context_.settings.started().model_instance_id.empty()) {
        done = swap_instance(*this, context_.settings.started().model_instance_id, settings,
                             instance, failure);
    } else if (done) {
        std::shared_ptr<Lane> lane = make_lane(instance, failure);
        done = lane != nullptr;
        if (done) adopt(model, std::move(lane));
    }
    if (done) return;
    if (!cancel_) return post_swap_failed(model, failure);
    const std::lock_guard lock(mutex_);
    if (!wanted_model_) wanted_model_ = model;  // not for a newer one, but to stop
}

// What others share is theirs, too: a start with another model than theirs would be refused.
void Loader::give_up_swap() {
    std::optional<std::string> model;
    {
        const std::lock_guard lock(mutex_);
        if (state_ == State::failed) return;  // there is no model to keep
        model.swap(wanted_model_);
    }
    if (!model) return;
    const std::string& id = context_.settings.started().model_instance_id;
    Failure failure = {
        {vartml::ErrorCode::timeout,
         "the element was stopped before model '" + *model +
             "' was loaded for all elements of model-instance-id '" + id +
             "'; write it again when the element plays, or to each of them while all are stopped"},
        "infer-instance-conflict",
        "model"};
    failure.found = *model;
    post_swap_failed(*model, failure);
}

void Loader::adopt(const std::string& model, std::shared_ptr<Lane> lane) {
    const std::lock_guard lock(mutex_);
    // A frame may have taken over another model since this one was made.
    if (lane_) lane->set_epoch(epoch_ + 1);
    announce_ = lane;
    std::swap(next_lane_, lane);
    next_model_ = model;
    if (lane) retired_.push_back(std::move(lane));  // a swap that no frame has seen
    if (lane_ && (state_ == State::asleep || state_ == State::loading)) {
        // The next frame needs this model, and not the one that is asleep.
        state_ = State::loaded;
        load_wanted_ = false;
    }
    restart_idle();
    wake_worker();
}

void Loader::post_compile(const std::string& model, int percent, const std::string& stage) {
    post_structure(
        context_.element,
        gst_structure_new("vartml-compile", "model", G_TYPE_STRING, model.c_str(), "percent",
                          G_TYPE_INT, percent, "stage", G_TYPE_STRING, stage.c_str(), "cache-hit",
                          G_TYPE_BOOLEAN, gboolean(stage == "cached"), nullptr));
}

void Loader::post_loaded(const Lane& lane) {
    const Instance& instance = lane.instance();
    if (instance.cache_hit) post_compile(instance.model, 100, "cached");
    const vartml::ModelDescription& d = instance.description;
    const auto device = runner_property<std::string>(*instance.runner, "backend");
    GST_INFO_OBJECT(
        context_.element,
        "model '%s' of %s on %s: %u nodes on the NPU, %u on the CPU, batch %u, a run of "
        "about %" G_GUINT64_FORMAT " us; sidecar %s, decoder %s",
        d.name.c_str(), instance.model.c_str(), device ? device->c_str() : d.device.c_str(),
        d.npu_operators, d.cpu_operators, instance.limits.batch, guint64(instance.run_p50_us),
        lane.record()->model_info.file.empty() ? d.modelinfo.empty() ? "none" : "in the model"
                                               : lane.record()->model_info.file.c_str(),
        lane.record()->model_info.decoder.empty() ? "not named"
                                                  : lane.record()->model_info.decoder.c_str());
    post_structure(
        context_.element,
        gst_structure_new("vartml-model-loaded", "model", G_TYPE_STRING, d.name.c_str(), "hash",
                          G_TYPE_STRING, d.signature.c_str(), "device", G_TYPE_STRING,
                          device ? device->c_str() : d.device.c_str(), "batch", G_TYPE_UINT,
                          instance.limits.batch, "inputs", G_TYPE_UINT, unsigned(d.inputs.size()),
                          "outputs", G_TYPE_UINT, unsigned(d.outputs.size()), "npu-nodes",
                          G_TYPE_UINT, d.npu_operators, "cpu-nodes", G_TYPE_UINT, d.cpu_operators,
                          "load-us", G_TYPE_UINT64, guint64(instance.load_us), "warmup-us",
                          G_TYPE_UINT64, guint64(instance.warmup_us), nullptr));
}

void Loader::post_unloaded(const std::string& model, unsigned idle_ms) {
    GST_INFO_OBJECT(context_.element, "model '%s' is unloaded: no frame came for %u ms",
                    model.c_str(), idle_ms);
    post_structure(context_.element,
                   gst_structure_new("vartml-model-unloaded", "model", G_TYPE_STRING, model.c_str(),
                                     "idle-ms", G_TYPE_UINT, idle_ms, nullptr));
}

void Loader::post_swapped(const Entry& entry) {
    GST_INFO_OBJECT(context_.element, "model '%s' takes over from frame %" G_GUINT64_FORMAT,
                    entry.new_lane->record()->model.c_str(), entry.seq);
    post_structure(
        context_.element,
        gst_structure_new("vartml-model-changed", "old", G_TYPE_STRING,
                          entry.old_lane->record()->model.c_str(), "new", G_TYPE_STRING,
                          entry.new_lane->record()->model.c_str(), "epoch", G_TYPE_UINT,
                          entry.new_lane->record()->model_epoch, "first-seq", G_TYPE_UINT64,
                          entry.seq, "first-pts", G_TYPE_UINT64, guint64(entry.pts), nullptr));
}

void Loader::post_swap_failed(const std::string& requested, const Failure& failure) {
    std::shared_ptr<Lane> lane;
    {
        const std::lock_guard lock(mutex_);
        lane = next_lane_ ? next_lane_ : lane_;
    }
    const std::string kept =
        context_.settings.not_swapped(lane ? &lane->modelinfo_file() : nullptr);
    Failure warning = failure;
    warning.error.message += "; the model in use stays '" + kept + "'";
    post_warning(context_.element, doing(failure), warning);
    post_structure(context_.element,
                   gst_structure_new("vartml-model-change-failed", "requested", G_TYPE_STRING,
                                     requested.c_str(), "kept", G_TYPE_STRING, kept.c_str(),
                                     "error-id", G_TYPE_STRING, failure.id, "reason", G_TYPE_STRING,
                                     failure.error.message.c_str(), nullptr));
}

}  // namespace vartml::gst::infer
