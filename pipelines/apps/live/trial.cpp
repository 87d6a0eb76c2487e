// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/live/trial.h"

namespace live {

using demo::element_of;
using vartml::Result;

void set_decoder(GstElement* decode, const std::string& decoder, const std::string& labels) {
    if (!labels.empty()) g_object_set(decode, "label-file", labels.c_str(), nullptr);
    if (!decoder.empty()) gst_util_set_object_arg(G_OBJECT(decode), "decoder", decoder.c_str());
}

Result<std::unique_ptr<Trial>> Trial::start(const Model& model, Callbacks callbacks) {
    auto pipeline = demo::make_pipeline(
        "videotestsrc num-buffers=1 ! video/x-raw,width=" + std::to_string(model.width) +
        ",height=" + std::to_string(model.height) +
        " ! vartmlinfer name=infer ! vartmldecode name=decode ! fakesink");
    if (!pipeline) return pipeline.error();
    GstElement* p = pipeline->get();
    g_object_set(element_of(p, "infer").get(), "model", model.path.c_str(), nullptr);
    set_decoder(element_of(p, "decode").get(), model.decoder, model.labels);
    std::unique_ptr<Trial> trial(new Trial(std::move(*pipeline), std::move(callbacks)));
    gst_element_call_async(
        p,
        [](GstElement* e, gpointer data) {
            auto& beginning = **static_cast<std::shared_ptr<Beginning>*>(data);
            const std::lock_guard lock(beginning.mutex);
            if (!beginning.unwanted) gst_element_set_state(e, GST_STATE_PLAYING);
        },
        new std::shared_ptr(trial->beginning_),
        [](gpointer data) { delete static_cast<std::shared_ptr<Beginning>*>(data); });
    return trial;
}

Trial::Trial(demo::ElementPtr pipeline, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), beginning_(std::make_shared<Beginning>()) {
    beginning_->pipeline = std::move(pipeline);
    GstBus* bus = gst_element_get_bus(beginning_->pipeline.get());
    bus_watch_ = gst_bus_add_watch(
        bus,
        [](GstBus*, GstMessage* message, gpointer self) -> gboolean {
            static_cast<Trial*>(self)->on_message(message);
            return G_SOURCE_CONTINUE;
        },
        this);
    gst_object_unref(bus);
}

Trial::~Trial() {
    g_source_remove(bus_watch_);
    const std::lock_guard lock(beginning_->mutex);
    beginning_->unwanted = true;
    gst_element_set_state(beginning_->pipeline.get(), GST_STATE_NULL);
}

void Trial::on_message(GstMessage* message) {
    std::string sentence;
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ELEMENT)
        return callbacks_.element(gst_message_get_structure(message));
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        GError* error = nullptr;
        gst_message_parse_error(message, &error, nullptr);
        sentence = error->message;
        g_error_free(error);
    } else if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_EOS) {
        return;
    }
    // Whoever is told may end this object.
    if (const auto ended = std::exchange(callbacks_.ended, nullptr)) ended(sentence);
}

}  // namespace live
