// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/instance.h"

#include <algorithm>
#include <chrono>

#include "gst/infer/load_model.h"
#include "gst/infer/stats.h"

namespace vartml::gst::infer {
namespace {

using vartml::ErrorCode;
using Clock = std::chrono::steady_clock;

uint64_t us_since(Clock::time_point start) {
    return uint64_t(
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
}

bool fail(Failure& failure, const char* id, vartml::Error error, const char* property) {
    failure = Failure{std::move(error), id, property};
    return false;
}

// Channels, height and width of a view that can be a picture.
struct Extent {
    uint32_t channels = 0, height = 0, width = 0;
};
std::optional<Extent> picture_extent(const vartml::TensorView& cpu) {
    const auto& s = cpu.shape;
    Extent e;
    switch (cpu.layout) {
        case vartml::Layout::NCHW:
            e = {s[1], s[2], s[3]};
            break;
        case vartml::Layout::NHWC:
            e = {s[3], s[1], s[2]};
            break;
        case vartml::Layout::NHW:
            e = {1, s[1], s[2]};
            break;
        default:
            return std::nullopt;
    }
    if (s[0] != 1 || (e.channels != 1 && e.channels != 3)) return std::nullopt;
    return e;
}

const vartml::ModelInfo::Input* sidecar_input(const vartml::ModelInfo& info,
                                              const std::string& name) {
    for (const vartml::ModelInfo::Input& input : info.inputs) {
        if (input.name == name) return &input;
    }
    return nullptr;
}

// The one input without feed that has the shape of a picture; everything else needs a feed.
bool choose_picture(Instance& instance, const vartml::ModelInfo& info, Failure& failure) {
    const auto& inputs = instance.description.inputs;
    std::optional<size_t> picture;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const vartml::ModelInfo::Input* said = sidecar_input(info, inputs[i].name);
        if ((said && !said->feed.empty()) || picture || !picture_extent(inputs[i].cpu)) continue;
        picture = i;
    }
    if (!picture) {
        return fail(failure, "infer-inputs",
                    {ErrorCode::unsupported,
                     "model '" + instance.description.name +
                         "' has no input that is a picture: expected [1, 1 or 3, height, width] "
                         "or [1, height, width, 1 or 3]"},
                    "model");
    }
    instance.picture = *picture;
    return true;
}

bool make_feeds(Instance& instance, const vartml::ModelInfo& info, Failure& failure) {
    instance.feeds.resize(instance.inputs.size());
    for (size_t i = 0; i < instance.inputs.size(); ++i) {
        if (i == instance.picture) continue;
        const std::string& name = instance.inputs[i].info.name;
        const vartml::ModelInfo::Input* said = sidecar_input(info, name);
        if (!said || said->feed.empty()) {
            return fail(
                failure, "infer-inputs",
                {ErrorCode::invalid_argument,
                 std::string("input '")
                     .append(name)
                     .append("' is not the picture and nothing feeds it; add to the sidecar: [")
                     .append(name)
                     .append("] dir=input x-vartml-feed=const:<values> (or frame-size)")},
                "modelinfo-file");
        }
        auto feed = Feed::create(said->feed, name, instance.inputs[i].view);
        if (!feed) return fail(failure, "infer-inputs", feed.error(), "modelinfo-file");
        instance.feeds[i] = *std::move(feed);
    }
    return true;
}

bool make_runner(const Settings& settings, Instance& instance, Failure& failure) {
    RunnerOptions options;
    if (!runner_options(settings, instance.description, options, failure)) return false;
    auto runner = create_runner(instance.description.path, options);
    if (!runner) {
        const vartml::Error& error = runner.error();
        const bool option = error.code == ErrorCode::invalid_argument;
        const bool device =
            settings.device != "auto" && error.message.find(settings.device) != std::string::npos;
        if (option && device)
            return fail(failure, "infer-device-missing", {ErrorCode::not_found, error.message},
                        "device");
        if (option) return fail(failure, "infer-option", error, "runner-options");
        if (device)
            return fail(failure, "infer-device-missing", {ErrorCode::not_found, error.message},
                        "device");
        // The description was readable, so it is a part of the model, or the device that refuses
        // it.
        return fail(failure, "infer-model-bad", {ErrorCode::bad_model, error.message}, "model");
    }
    instance.runner = *std::move(runner);
    const auto views = [&](vart::TensorDirection direction, const char* key,
                           std::vector<RunnerTensor>& into) {
        const auto type = std::any_cast<std::string>(options[key]) == "HW" ? vart::TensorType::HW
                                                                           : vart::TensorType::CPU;
        auto tensors = runner_tensors(*instance.runner, direction, type);
        if (!tensors) return fail(failure, "infer-model-bad", tensors.error(), "model");
        into = *std::move(tensors);
        return true;
    };
    return views(vart::TensorDirection::INPUT, "input_tensor_type", instance.inputs) &&
           views(vart::TensorDirection::OUTPUT, "output_tensor_type", instance.outputs);
}

bool check_batch(const Settings& settings, const Instance& instance, Failure& failure) {
    const unsigned model_batch = std::max(1u, instance.description.actual_batch_size);
    if (settings.batch_size <= 1) return true;
    const bool too_large = settings.batch_size > model_batch;
    return fail(
        failure, "infer-batch",
        {too_large ? ErrorCode::invalid_argument : ErrorCode::unsupported,
         "property 'batch-size' is " + std::to_string(settings.batch_size) +
             (too_large
                  ? ", but the model was compiled for " + std::to_string(model_batch) +
                        "; compile it with --batch-size " + std::to_string(settings.batch_size)
                  : std::string(", but this version runs one frame at a time; set it to 1 or 0"))},
        "batch-size");
}

void make_record(const std::string& infer_id, const vartml::ModelInfo& info,
                 const Settings& settings, Instance& instance) {
    auto record = std::make_shared<InferenceRecord>();
    record->infer_id = infer_id;
    record->model = instance.description.name;
    record->model_hash = instance.description.signature;
    record->outputs = instance.description.outputs;
    record->hw = settings.output_view == OutputView::hw;
    for (const RunnerTensor& tensor : instance.outputs) {
        record->views.push_back(record->hw ? tensor.view : tensor.cpu);
        std::string id = tensor.info.name;
        for (const vartml::ModelInfo::Output& output : info.outputs) {
            if (output.name == tensor.info.name && !output.id.empty()) id = output.id;
        }
        record->tensor_ids.push_back(id);
    }
    record->model_info = info;
    const Extent extent = *picture_extent(instance.inputs[instance.picture].cpu);
    record->model_width = extent.width;
    record->model_height = extent.height;
    instance.record = std::move(record);
}

void choose_preprocess(const Settings& settings, const vartml::ModelInfo& info,
                       Instance& instance) {
    const Extent extent = *picture_extent(instance.inputs[instance.picture].cpu);
    // Without a sidecar the shapes of a detection head say how its published models take pictures.
    const vartml::DecoderFamily* family = vartml::guess_decoder_family(
        info, instance.description.outputs, extent.width, extent.height);
    instance.preprocess =
        vartml::preprocess_options(info, family, instance.inputs[instance.picture].info.name);
    // The program takes bytes of the picture and does mean and scale itself.
    const std::string& bytes = instance.description.inputs[instance.picture].picture;
    if (!bytes.empty()) {
        instance.preprocess.mean = {0, 0, 0};
        instance.preprocess.scale = {1, 1, 1};
        instance.preprocess.channels = bytes == "bgr"    ? vartml::ChannelOrder::bgr
                                       : bytes == "gray" ? vartml::ChannelOrder::gray
                                                         : vartml::ChannelOrder::rgb;
    }
    switch (settings.resize) {
        case ResizeChoice::automatic:
            break;
        case ResizeChoice::stretch:
            instance.preprocess.resize = vartml::ResizeMode::stretch;
            break;
        case ResizeChoice::letterbox:
            instance.preprocess.resize = vartml::ResizeMode::letterbox;
            break;
        case ResizeChoice::letterbox_top_left:
            instance.preprocess.resize = vartml::ResizeMode::letterbox_top_left;
            break;
        case ResizeChoice::crop:
            instance.preprocess.resize = vartml::ResizeMode::crop;
            break;
    }
}

// The device writes its own view; a CPU view that differs is made from it when the frame leaves.
bool make_output_pools(const Settings& settings, Instance& instance, Failure& failure) {
    instance.output_buffers = std::make_shared<std::atomic<unsigned>>(0);
    instance.cpu_views.resize(instance.outputs.size());
    for (size_t i = 0; i < instance.outputs.size(); ++i) {
        const RunnerTensor& output = instance.outputs[i];
        instance.output_pools.push_back(
            output_pool_new(instance.runner, output, instance.output_buffers));
        if (settings.output_view == OutputView::hw || output.view == output.cpu) continue;
        auto conversion = vartml::TensorConversion::create(output.view, output.cpu);
        if (!conversion) {
            return fail(failure, "infer-option",
                        {conversion.error().code,
                         "output '" + output.info.name + "' has no CPU view (" +
                             conversion.error().message + "); set output-tensor-type=hw"},
                        "output-tensor-type");
        }
        instance.cpu_views[i] =
            Instance::CpuView{*std::move(conversion), plain_pool_new(output.cpu.size_bytes)};
    }
    return true;
}

// 2 runs on zeros, then up to 20 measured ones of which those after 500 ms are left out.
bool warm_up(Instance& instance, const LoadProgress& progress, Failure& failure) {
    const auto start = Clock::now();
    std::vector<std::vector<vart::NpuTensor>> inputs(1), outputs(1);
    std::vector<TensorMemory> memory;
    for (auto* side : {&instance.inputs, &instance.outputs}) {
        for (const RunnerTensor& tensor : *side) {
            auto made = allocate_tensor(*instance.runner, tensor);
            if (!made) return fail(failure, "infer-run", made.error(), nullptr);
            (side == &instance.inputs ? inputs : outputs)[0].push_back(made->tensor);
            memory.push_back(*std::move(made));
        }
    }
    std::vector<uint32_t> times;
    for (int run = 0; run < 22 && !*progress.cancel; ++run) {
        if (run > 2 && us_since(start) > 500'000) break;
        const auto begin = Clock::now();
        const vart::StatusCode status = instance.runner->execute(inputs, outputs);
        if (status != vart::StatusCode::SUCCESS) {
            const auto text = runner_property<std::string>(*instance.runner, "last_error");
            return fail(
                failure, "infer-run",
                status_error(status,
                             text && !text->empty() ? *text + ";" : "the first run on zeros ended"),
                nullptr);
        }
        if (run >= 2) times.push_back(uint32_t(us_since(begin)));
    }
    instance.run_p99_us = percentile(times, 99);
    instance.warmup_us = us_since(start);
    return true;
}

}  // namespace

Instance::~Instance() {
    for (std::optional<CpuView>& view : cpu_views) {
        if (view) output_pools.push_back(view->pool);
    }
    for (GstBufferPool* pool : output_pools) {
        gst_buffer_pool_set_active(pool, FALSE);
        gst_object_unref(pool);
    }
}

std::shared_ptr<Instance> load_instance(const Settings& settings, const std::string& infer_id,
                                        const LoadProgress& progress, Failure& failure) {
    const auto start = Clock::now();
    auto instance = std::make_shared<Instance>();
    vartml::ModelInfo info;
    if (!open_description(settings, progress, *instance, failure) ||
        !check_batch(settings, *instance, failure) ||
        !find_sidecar(settings, *instance, info, failure) ||
        !choose_picture(*instance, info, failure)) {
        return nullptr;
    }
    const std::string picture = instance->description.inputs[instance->picture].name;
    if (!overlay_preprocess(settings, picture, info, failure) ||
        !make_runner(settings, *instance, failure) || !make_feeds(*instance, info, failure)) {
        return nullptr;
    }
    choose_preprocess(settings, info, *instance);
    make_record(infer_id, info, settings, *instance);
    if (!make_output_pools(settings, *instance, failure)) return nullptr;
    instance->load_us = us_since(start);
    if (!warm_up(*instance, progress, failure)) return nullptr;
    return instance;
}

}  // namespace vartml::gst::infer
