// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/demo/record.h"

#include <gst/app/app.h>

#include <filesystem>

#include "pipelines/apps/demo/player.h"

namespace demo {
namespace {

// Streaming thread of appsrc, while the pipeline plays.
struct Feed {
    const Scene& scene;
    unsigned frames;
    Recording& recording;
    Frame frame;
};

void on_need_data(GstAppSrc* source, guint, gpointer data) {
    auto& feed = *static_cast<Feed*>(data);
    const size_t number = feed.recording.codes.size();
    if (number >= feed.frames) {
        gst_app_src_end_of_stream(source);
        return;
    }
    feed.scene.render(static_cast<unsigned>(number), feed.frame);
    feed.recording.codes.push_back(feed.frame.codes);
    const std::vector<uint8_t>& rgb = feed.frame.picture.rgb;
    GstBuffer* buffer = gst_buffer_new_memdup(rgb.data(), rgb.size());
    constexpr int kRate = Scene::kFramesPerSecond;
    GST_BUFFER_PTS(buffer) = gst_util_uint64_scale(number, GST_SECOND, kRate);
    GST_BUFFER_DURATION(buffer) =
        gst_util_uint64_scale(number + 1, GST_SECOND, kRate) - GST_BUFFER_PTS(buffer);
    gst_app_src_push_buffer(source, buffer);
}

}  // namespace

vartml::Result<Recording> record(const Scene& scene, unsigned frames, const std::string& file) {
    const std::string part = file + ".part";  // until it is complete
    auto encoder = h264_encoder(Encoding::good);
    if (!encoder) return encoder.error();
    auto pipeline = make_pipeline(
        "appsrc name=source format=time ! queue max-size-buffers=4 ! videoconvert ! "
        "video/x-raw,format=I420 ! " +
        *encoder + " ! h264parse ! mp4mux ! filesink name=sink");
    if (!pipeline) return pipeline.error();
    g_object_set(element_of(pipeline->get(), "sink").get(), "location", part.c_str(), nullptr);

    Recording recording;
    Feed feed{scene, frames, recording, {}};
    const ElementPtr source = element_of(pipeline->get(), "source");
    const std::unique_ptr<GstCaps, decltype(&gst_caps_unref)> caps(
        gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING, "RGB", "width", G_TYPE_INT,
                            Scene::kWidth, "height", G_TYPE_INT, Scene::kHeight, "framerate",
                            GST_TYPE_FRACTION, Scene::kFramesPerSecond, 1, nullptr),
        &gst_caps_unref);
    g_object_set(source.get(), "caps", caps.get(), nullptr);
    GstAppSrcCallbacks callbacks{};
    callbacks.need_data = on_need_data;
    gst_app_src_set_callbacks(GST_APP_SRC(source.get()), &callbacks, &feed, nullptr);

    auto interrupted = play(pipeline->get());
    std::error_code failure;
    if (!interrupted || *interrupted) {
        std::filesystem::remove(part, failure);
        if (!interrupted) return interrupted.error();
    } else {
        std::filesystem::rename(part, file, failure);
        if (failure) return vartml::Error{vartml::ErrorCode::io, file + ": " + failure.message()};
    }
    recording.interrupted = *interrupted;
    return recording;
}

}  // namespace demo
