// SPDX-License-Identifier: Apache-2.0
// Loading: the model is opened, warmed up and announced; what the policies refuse ends the state
// change.
#include <algorithm>

#include "gst/infer/stream.h"

namespace vartml::gst::infer {
namespace {

const char* doing(const Failure& failure) {
    const std::string_view id = failure.id;
    if (id == "infer-compile" || id == "infer-no-compiler" || id == "infer-cache")
        return "compile the model";
    if (id == "infer-sidecar") return "read the sidecar";
    if (id == "infer-run") return "run the model";
    return "load the model";
}

}  // namespace

bool Stream::start(const Settings& settings) {
    configure(settings);
    stats_.reset();
    cancel_ = false;
    own_thread_ = needs_compiler(settings.model);
    {
        const std::lock_guard lock(signal_.mutex);
        settings_ = settings;
        load_ = Load::loading;
        measured_latency_ = 0;
    }
    if (own_thread_) {
        loader_ = std::thread([this] { load(); });
        return true;
    }
    load();
    const std::lock_guard lock(signal_.mutex);
    return load_ == Load::loaded;
}

void Stream::stop() {
    cancel_ = true;
    if (loader_.joinable()) loader_.join();
    drop_queue(false);
    plan_.reset();
    gst_clear_caps(&caps_);
    jobs_.destroy();
    std::shared_ptr<Instance> last;
    const std::lock_guard lock(signal_.mutex);
    last.swap(instance_);
    load_ = Load::none;
    scratch_ = Inference();
    failures_ = 0;
}

void Stream::load() {
    gchar* name = gst_object_get_name(GST_OBJECT(element_));
    const std::string infer_id = name;
    g_free(name);
    const LoadProgress progress = {
        &cancel_, [this](int percent, const std::string& stage) { post_compile(percent, stage); }};
    Failure failure;
    std::shared_ptr<Instance> instance = load_instance(settings_, infer_id, progress, failure);
    bool good = instance != nullptr;
    if (!good && !cancel_) post_error(element_, doing(failure), failure);
    good = good && !cancel_ && check_policies(*instance);
    if (good) {
        // One more than are between chain and push: a run that a flush left behind may still have
        // its own.
        if (auto made = jobs_.create(instance, depth() + 1); !made) {
            post_error(element_, "load the model", {made.error(), "infer-run"});
            good = false;
        }
    }
    if (good) post_loaded(*instance);
    {
        const std::lock_guard lock(signal_.mutex);
        if (good) {
            measured_latency_ = (instance->run_p99_us + 999) / 1000 * GST_MSECOND;
            instance_ = instance;
        }
        load_ = good ? Load::loaded : Load::failed;
        signal_.changed.notify_all();
    }
    // A live pipeline may have asked for the latency before it was known.
    if (good && own_thread_)
        gst_element_post_message(element_, gst_message_new_latency(GST_OBJECT(element_)));
}

void Stream::post_compile(int percent, const std::string& stage) {
    gst_element_post_message(
        element_,
        gst_message_new_element(
            GST_OBJECT(element_),
            gst_structure_new("vartml-compile", "model", G_TYPE_STRING, settings_.model.c_str(),
                              "percent", G_TYPE_INT, percent, "stage", G_TYPE_STRING, stage.c_str(),
                              "cache-hit", G_TYPE_BOOLEAN, FALSE, nullptr)));
}

void Stream::post_loaded(const Instance& instance) {
    if (own_thread_ && instance.cache_hit) {
        gst_element_post_message(
            element_,
            gst_message_new_element(
                GST_OBJECT(element_),
                gst_structure_new("vartml-compile", "model", G_TYPE_STRING, settings_.model.c_str(),
                                  "percent", G_TYPE_INT, 100, "stage", G_TYPE_STRING, "cached",
                                  "cache-hit", G_TYPE_BOOLEAN, TRUE, nullptr)));
    }
    const vartml::ModelDescription& d = instance.description;
    const auto device = runner_property<std::string>(*instance.runner, "backend");
    gst_element_post_message(
        element_,
        gst_message_new_element(
            GST_OBJECT(element_),
            gst_structure_new("vartml-model-loaded", "model", G_TYPE_STRING, d.name.c_str(), "hash",
                              G_TYPE_STRING, d.signature.c_str(), "device", G_TYPE_STRING,
                              device ? device->c_str() : d.device.c_str(), "batch", G_TYPE_UINT,
                              std::max(1u, d.actual_batch_size), "inputs", G_TYPE_UINT,
                              unsigned(d.inputs.size()), "outputs", G_TYPE_UINT,
                              unsigned(d.outputs.size()), "npu-nodes", G_TYPE_UINT, d.npu_operators,
                              "cpu-nodes", G_TYPE_UINT, d.cpu_operators, "load-us", G_TYPE_UINT64,
                              guint64(instance.load_us), "warmup-us", G_TYPE_UINT64,
                              guint64(instance.warmup_us), nullptr)));
}

// What can be refused before the first frame: CPU partitions and copies that every frame would
// need.
bool Stream::check_policies(const Instance& instance) {
    const vartml::ModelDescription& d = instance.description;
    if (d.cpu_operators > 0 && settings_.on_fallback != OnFallback::allow) {
        const unsigned all = d.npu_operators + d.cpu_operators;
        Failure failure = {{vartml::ErrorCode::unsupported,
                            "model '" + d.name + "' runs " + std::to_string(d.cpu_operators) +
                                " of " + std::to_string(all) + " nodes on the CPU, first " +
                                d.first_cpu_operator + "; set on-fallback=allow to accept that"},
                           "infer-fallback",
                           "on-fallback"};
        if (settings_.on_fallback == OnFallback::error)
            return post_error(element_, "run the whole model on the NPU", failure);
        post_warning(element_, "run the whole model on the NPU", failure);
    }
    if (copy_policy_ != CopyPolicy::forbid) return true;
    const auto refused = [&](CopyReason reason, const std::vector<RunnerTensor>& tensors,
                             const std::vector<vartml::TensorInfo>& infos) {
        for (size_t i = 0; i < tensors.size(); ++i) {
            if (!infos[i].hw) return copy_forbidden(reason, tensors[i].info.size_in_bytes);
        }
        return false;
    };
    return !refused(CopyReason::input_cpu_view, instance.inputs, d.inputs) &&
           !refused(CopyReason::output_cpu_view, instance.outputs, d.outputs);
}

// Counts nothing; posts what the policy says about a copy. True: it is forbidden and the ERROR is
// posted.
bool Stream::copy_forbidden(CopyReason reason, uint64_t bytes) {
    struct Text {
        const char* why;
        const char* fix;
    };
    constexpr Text texts[num_copy_reasons] = {
        {"the model has no HW view of an input",
         "use a model whose first operators run on the NPU"},
        {"the model has no HW view of an output",
         "use a model whose last operators run on the NPU"},
        {"the memory of the frame cannot be shared and another element holds the frame",
         "avoid a tee before this element or use another source"},
    };
    const Text& text = texts[size_t(reason)];
    static GstDebugCategory* const performance = [] {
        GstDebugCategory* category = nullptr;
        GST_DEBUG_CATEGORY_GET(category, "GST_PERFORMANCE");
        return category;
    }();
    GST_CAT_WARNING_OBJECT(performance, element_,
                           "copy '%s' of %" G_GUINT64_FORMAT " bytes per frame: %s",
                           copy_reason_nick(reason), guint64(bytes), text.why);
    const CopyPolicy policy = copy_policy_;
    if (policy == CopyPolicy::allow) return false;
    Failure failure = {{vartml::ErrorCode::unsupported,
                        std::string("copy '") + copy_reason_nick(reason) + "' of " +
                            std::to_string(bytes) + " bytes per frame is needed because " +
                            text.why + "; " + text.fix + ", or set copy-policy=allow"},
                       "infer-copy-forbidden",
                       "copy-policy"};
    failure.found = copy_reason_nick(reason);
    failure.fix = text.fix;
    if (policy == CopyPolicy::forbid) {
        post_error(element_, "pass the frame without a copy", failure);
        return true;
    }
    post_warning(element_, "pass the frame without a copy", failure);
    return false;
}

}  // namespace vartml::gst::infer
