// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/lane.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "gst/infer/frame_tensor.h"
#include "gst/infer/load_model.h"
#include "gst/infer/regions.h"
#include "gst/support/error.h"
#include "gst/support/pools.h"

namespace vartml::gst::infer {

Lane::Lane(std::shared_ptr<Instance> instance, std::shared_ptr<Signal> signal)
    : instance_(std::move(instance)), signal_(std::move(signal)) {}

Lane::~Lane() {
    requests_.clear();
    for (std::optional<CpuView>& view : cpu_views_) {
        if (view) output_pools_.push_back(view->pool);
    }
    for (GstBufferPool* pool : output_pools_) {
        gst_buffer_pool_set_active(pool, FALSE);
        gst_object_unref(pool);
    }
}

std::shared_ptr<Lane> Lane::asleep() const {
    const InstanceFacts& facts = *instance_;
    std::shared_ptr<Lane> lane(new Lane(std::make_shared<Instance>(facts), signal_));
    lane->picture_ = picture_;
    lane->takes_pictures_ = takes_pictures_;
    lane->pixels_ = pixels_;
    lane->record_ = record_;
    lane->groups_ = groups_;
    lane->modelinfo_file_ = modelinfo_file_;
    lane->depth_ = depth_;
    lane->per_frame_ = per_frame_;
    lane->output_buffers_ = output_buffers_;
    return lane;
}

void Lane::continue_from(const Lane& before) {
    if (*record_ == *before.record_) record_ = before.record_;
}

void Lane::set_epoch(unsigned epoch) {
    auto record = std::make_shared<InferenceRecord>(*record_);
    record->model_epoch = epoch;
    record_ = std::move(record);
}

void Lane::retire(std::shared_ptr<Lane> lane) {
    if (!lane || lane->is_asleep()) return;
    lane->hurry();
    Scheduler& scheduler = *lane->instance_->scheduler;
    const auto limit = Clock::now() + lane->instance_->limits.deadline;
    bool home;
    {
        std::unique_lock lock(lane->signal_->mutex);
        home = lane->signal_->changed.wait_until(lock, limit,
                                                 [&] { return lane->free_.size() == lane->made_; });
    }
    scheduler.leave(lane->place_);
    if (home) return;
    // The device may still write into these tensors, now or never.
    log_warning("the device did not give back a run of model '" +
                lane->instance_->description.name + "'; its memory stays reserved");
    static std::mutex mutex;
    static auto* const kept = new std::vector<std::shared_ptr<Lane>>;
    const std::lock_guard lock(mutex);
    kept->push_back(std::move(lane));
}

Clock::duration Lane::batch_timeout(int milliseconds, GstClockTime frame_duration) const {
    if (instance_->limits.batch <= 1) return {};
    if (milliseconds >= 0) return std::chrono::milliseconds(milliseconds);
    return std::chrono::nanoseconds(frame_duration);
}

std::unique_ptr<Request> Lane::make_request(vartml::Error& error) {
    auto request = std::make_unique<Request>();
    request->lane = this;
    for (const RunnerTensor& tensor : instance_->inputs) {
        auto memory = allocate_tensor(*instance_->runner, tensor);
        if (!memory) {
            error = memory.error();
            return nullptr;
        }
        request->inputs.push_back(memory->tensor);
        request->memory.push_back(*std::move(memory));
    }
    request->outputs.resize(instance_->outputs.size());
    request->data.resize(instance_->outputs.size(), nullptr);
    return request;
}

Request* Lane::acquire(vartml::Error& error) {
    {
        const std::lock_guard lock(signal_->mutex);
        if (!free_.empty()) {
            Request* request = free_.back();
            free_.pop_back();
            return request;
        }
        ++made_;
    }
    auto made = make_request(error);
    const std::lock_guard lock(signal_->mutex);
    if (!made) {
        --made_;
        return nullptr;
    }
    Request* request = made.get();
    requests_.push_back(std::move(made));
    return request;
}

void Lane::feed(Request* request, unsigned frame_width, unsigned frame_height) const {
    for (size_t i = 0; i < feeds_.size(); ++i) {
        if (feeds_[i]) feeds_[i]->write(frame_width, frame_height, request->memory[i].data);
    }
}

bool Lane::submit(Request* request, Clock::duration batch_timeout, vartml::Error& error) {
    for (size_t i = 0; i < request->data.size(); ++i) {
        if (gst_buffer_pool_acquire_buffer(output_pools_[i], &request->data[i], nullptr) !=
            GST_FLOW_OK) {
            request->data[i] = nullptr;
            error = {vartml::ErrorCode::out_of_memory,
                     "no memory for output '" + instance_->outputs[i].info.name + "' of " +
                         std::to_string(instance_->outputs[i].info.size_in_bytes) + " bytes"};
            return false;
        }
        request->outputs[i] = output_buffer_tensor(request->data[i]);
    }
    const auto now = Clock::now();
    {
        const std::lock_guard lock(signal_->mutex);
        request->running = true;
        request->done = request->given_up = false;
        request->failed_because.clear();
        request->device_lost = false;
        request->submitted = now;
    }
    instance_->scheduler->submit(place_, request, now + batch_timeout);
    return true;
}

void Lane::release(Request* request) {
    bool running;
    {
        const std::lock_guard lock(signal_->mutex);
        running = request->running;
    }
    if (running && !instance_->scheduler->withdraw(place_, request)) {
        // On the device: finished() puts it back. It is given up no sooner, for from then on it may
        // be another frame's.
        const std::lock_guard lock(signal_->mutex);
        request->given_up = request->running;
        if (request->given_up) return;
    }
    request->running = false;
    put_back(request);
}

// The last look at the request: once the mutex is let go, retire() may free it.
void Lane::put_back(Request* request) {
    for (GstBuffer*& data : request->data) gst_clear_buffer(&data);
    if (request->frame) {
        request->inputs[picture_] = request->memory[picture_].tensor;
        gst_clear_buffer(&request->frame);
    }
    request->next = nullptr;
    const std::lock_guard lock(signal_->mutex);
    free_.push_back(request);
    signal_->changed.notify_all();
}

void Lane::finished(Request* request, const RunResult& result) {
    // The device is done with the frame, which may be one of few that its source has. In a frame
    // that the device would not read the tensor is looked for once more.
    if (result.status != vart::StatusCode::INVALID_INPUT) gst_clear_buffer(&request->frame);
    {
        const std::lock_guard lock(signal_->mutex);
        request->running = false;
        if (!request->given_up) {
            // A result that comes after the stream was told that it will not is of no use.
            if (!request->done) {
                request->status = result.status;
                request->failed_because = result.because;
                request->device_lost = result.device_lost;
                request->started = result.started;
                request->finished = result.finished;
                request->batch_fill = result.batch_fill;
                request->leads_batch = result.leads_batch;
                request->done = true;
            }
            signal_->changed.notify_all();  // under the mutex: afterwards the stream may be gone
            return;
        }
    }
    put_back(request);
}

void Lane::overdue(Request* request, bool leads_batch) {
    const std::lock_guard lock(signal_->mutex);
    if (request->given_up || request->done) return;
    request->status = vart::StatusCode::RUNTIME_ERROR;
    request->failed_because = "the device did not end the run within run-timeout;";
    request->device_lost = true;
    request->started = request->finished = Clock::now();
    request->leads_batch = leads_batch;
    request->done = true;
    signal_->changed.notify_all();
}

bool Lane::convert_outputs(Request* request, bool& converted) {
    for (size_t i = 0; i < cpu_views_.size(); ++i) {
        std::optional<CpuView>& view = cpu_views_[i];
        if (!view) continue;
        GstBuffer* cpu = nullptr;
        GstMapInfo from, to;
        if (gst_buffer_pool_acquire_buffer(view->pool, &cpu, nullptr) != GST_FLOW_OK) return false;
        gst_buffer_map(request->data[i], &from, GST_MAP_READ);
        gst_buffer_map(cpu, &to, GST_MAP_WRITE);
        view->conversion.run(from.data, to.data);
        gst_buffer_unmap(cpu, &to);
        gst_buffer_unmap(request->data[i], &from);
        gst_buffer_unref(std::exchange(request->data[i], cpu));
        converted = true;
    }
    return true;
}

// Making a lane: which input is the picture, what feeds the others, what is attached to frames.
using vartml::ErrorCode;

std::shared_ptr<Lane> Lane::create(const Settings& settings, const std::string& infer_id,
                                   unsigned epoch, std::shared_ptr<Instance> instance,
                                   std::shared_ptr<Signal> signal,
                                   std::span<const DecoderWish> wishes, Failure& failure) {
    std::shared_ptr<Lane> lane(new Lane(std::move(instance), std::move(signal)));
    if (!lane->prepare(settings, infer_id, epoch, wishes, failure)) return nullptr;
    lane->instance_->scheduler->join(lane->place_);
    return lane;
}

bool Lane::choose_pixels(const Settings& settings, std::span<const DecoderWish> wishes,
                         vartml::PixelChoice& choice, Failure& failure) const {
    return choose_picture_pixels(settings, record_->model_info, instance_->description, picture_,
                                 wishes, choice, failure);
}

bool Lane::prepare(const Settings& settings, const std::string& infer_id, unsigned epoch,
                   std::span<const DecoderWish> wishes, Failure& failure) {
    vartml::ModelInfo info;
    if (!find_sidecar(settings, *instance_, info, failure) ||
        !choose_picture(settings, info, failure)) {
        return false;
    }
    const std::string& picture = instance_->description.inputs[picture_].name;
    if (!overlay_preprocess(settings, picture, info, failure) || !make_feeds(info, failure))
        return false;
    const vartml::ModelInfo::Input* said = sidecar_input(info, picture);
    takes_pictures_ = !instance_->description.inputs[picture_].picture.empty() ||
                      (said && !said->picture.empty());
    make_record(settings, infer_id, epoch, info);
    modelinfo_file_ = settings.modelinfo_file;
    if (!choose_pixels(settings, wishes, pixels_, failure)) return false;
    name_tensors(settings.region == InferenceRegion::full_frame);
    if (!make_pools(settings, failure)) return false;

    const Scheduler::Limits& limits = instance_->limits;
    depth_ = frames_in_flight(settings, limits.batch);
    // What is between chain and push, and what runs have that a flush left behind, or the device
    // lost.
    const auto most = most_inferences(settings);
    if (!most) return fail(failure, "infer-option", most.error(), "tile-grid");
    if (settings.region != InferenceRegion::roi) per_frame_ = *most;
    limit_ = (depth_ + limits.slots * limits.batch) * *most;
    free_.reserve(limit_);  // nobody else knows this lane yet
    requests_.reserve(limit_);
    for (unsigned i = 0; i < depth_ + 1; ++i) {
        vartml::Error error;
        auto request = make_request(error);
        if (!request) return fail(failure, "infer-run", error, nullptr);
        free_.push_back(request.get());
        requests_.push_back(std::move(request));
        ++made_;
    }
    return true;
}

// The one input without feed that has the shape of a picture; everything else needs a feed.
bool Lane::choose_picture(const Settings& settings, const vartml::ModelInfo& info,
                          Failure& failure) {
    const auto& inputs = instance_->description.inputs;
    const bool four = settings.input_is_tensor == InputIsTensor::yes;
    std::optional<size_t> picture;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const vartml::ModelInfo::Input* said = sidecar_input(info, inputs[i].name);
        // A program that takes the bytes of pixels may take four for each.
        const bool padded = !inputs[i].picture.empty() || (said && !said->picture.empty());
        if ((said && !said->feed.empty()) || picture ||
            !picture_extent(inputs[i].cpu, four || padded))
            continue;
        picture = i;
    }
    if (!picture) {
        return fail(failure, "infer-inputs",
                    {ErrorCode::unsupported,
                     "model '" + instance_->description.name +
                         "' has no input that is a picture: expected [1, 1 or 3, height, width] "
                         "or [1, height, width, 1 or 3]"},
                    "model");
    }
    picture_ = *picture;
    return true;
}

bool Lane::make_feeds(const vartml::ModelInfo& info, Failure& failure) {
    const auto& inputs = instance_->inputs;
    feeds_.resize(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (i == picture_) continue;
        const std::string& name = inputs[i].info.name;
        const vartml::ModelInfo::Input* said = sidecar_input(info, name);
        if (!said || said->feed.empty()) {
            const bool may_be_size = inputs[i].view.size == 2;
            (void)fail(failure, "infer-inputs",
                       {ErrorCode::invalid_argument,
                        std::string("input '")
                            .append(name)
                            .append("' is not the picture and nothing feeds it; say in the sidecar "
                                    "what it gets, with the lines dir=input and x-vartml-feed=")
                            .append(may_be_size ? "frame-size (its width, height) or const:<values>"
                                                : "const:<values>")
                            .append(" in section [")
                            .append(name)
                            .append("]")},
                       "modelinfo-file");
            failure.found = name;
            failure.fix = "[" + name +
                          "]\ndir=input\nx-vartml-feed=" + (may_be_size ? "frame-size" : "const:0");
            return false;
        }
        auto feed = Feed::create(said->feed, name, inputs[i].view);
        if (!feed) return fail(failure, "infer-inputs", feed.error(), "modelinfo-file");
        feeds_[i] = *std::move(feed);
    }
    return true;
}

// A model whose last partition is on the CPU has no view of the device for what that makes.
bool Lane::is_hw(const Settings& settings, const Instance& instance) {
    if (settings.output_view != OutputView::best) return settings.output_view == OutputView::hw;
    return std::ranges::all_of(instance.outputs,
                               [](const RunnerTensor& output) { return output.hw; });
}

void Lane::make_record(const Settings& settings, const std::string& infer_id, unsigned epoch,
                       const vartml::ModelInfo& info) {
    const vartml::ModelDescription& description = instance_->description;
    auto record = std::make_shared<InferenceRecord>();
    record->infer_id = infer_id;
    record->model = description.name;
    record->model_hash = description.signature;
    record->model_epoch = epoch;
    record->input = description.inputs[picture_];
    record->outputs = description.outputs;
    record->hw = is_hw(settings, *instance_);
    for (const RunnerTensor& tensor : instance_->outputs) {
        record->views.push_back(record->hw ? tensor.view : tensor.cpu);
        std::string id = tensor.info.name;
        for (const vartml::ModelInfo::Output& output : info.outputs) {
            if (output.name == tensor.info.name && !output.id.empty()) id = output.id;
        }
        record->tensor_ids.push_back(id);
    }
    record->model_info = info;
    const PictureExtent extent = *picture_extent(picture_tensor().cpu, true);
    record->model_width = extent.width;
    record->model_height = extent.height;
    record_ = std::move(record);
}

// Other decoders than ours know nothing of regions and borders: tensors get a name of theirs only
// where there are none.
void Lane::name_tensors(bool whole_frames) {
    using Frame = TensorGroup::Frame;
    const vartml::DecoderFamily* family = pixels_.family;
    groups_ = tensor_groups(*record_, family ? std::string_view(family->nick) : "");
    if (!whole_frames)
        std::erase_if(groups_, [](const TensorGroup& g) { return g.frame != Frame::any; });
    const bool borders = pixels_.options.resize != vartml::ResizeMode::stretch;
    for (TensorGroup& group : groups_)
        if (borders && group.frame == Frame::stretched) group.frame = Frame::same_size;
}

// The device writes its own view; a CPU view that differs is made from it when the frame leaves.
bool Lane::make_pools(const Settings& settings, Failure& failure) {
    const auto& outputs = instance_->outputs;
    const bool hw = is_hw(settings, *instance_);
    output_buffers_ = std::make_shared<std::atomic<unsigned>>(0);
    cpu_views_.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
        const RunnerTensor& output = outputs[i];
        if (hw && !output.hw) {
            return fail(failure, "infer-option",
                        {ErrorCode::invalid_argument,
                         "property 'output-tensor-type' is hw, but output '" + output.info.name +
                             "' comes from a CPU partition and has no HW view; set "
                             "output-tensor-type=auto"},
                        "output-tensor-type");
        }
        output_pools_.push_back(output_pool_new(instance_->runner, output, output_buffers_));
        if (hw || output.view == output.cpu) continue;
        auto conversion = vartml::TensorConversion::create(output.view, output.cpu);
        if (!conversion) {
            return fail(failure, "infer-option",
                        {conversion.error().code,
                         "output '" + output.info.name + "' has no CPU view (" +
                             conversion.error().message + "); set output-tensor-type=hw"},
                        "output-tensor-type");
        }
        cpu_views_[i] = CpuView{*std::move(conversion), plain_pool_new(output.cpu.size_bytes)};
    }
    return true;
}

}  // namespace vartml::gst::infer
