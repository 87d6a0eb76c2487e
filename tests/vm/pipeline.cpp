// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/pipeline.h"

#include <dlfcn.h>
#include <gst/allocators/gstdmabuf.h>
#include <gst/analytics/analytics.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <stdexcept>

namespace vartml::test {
namespace {

// A hang is a failure of the test, not of the whole run. Not a claim about speed.
constexpr auto patience = std::chrono::seconds(60);

// From the plugin, as an application in Python gets it.
std::string status_of(GstBuffer* buffer) {
    using GetStructure = GstStructure* (*)(GstBuffer*, guint);
    static const auto get = [] {
        GstPlugin* plugin = gst_registry_find_plugin(gst_registry_get(), "vartml");
        void* library = dlopen(gst_plugin_get_filename(plugin), RTLD_NOW | RTLD_NOLOAD);
        gst_object_unref(plugin);
        return reinterpret_cast<GetStructure>(dlsym(library, "gst_vartml_inference_get_structure"));
    }();
    GstStructure* structure = get(buffer, 0);
    if (!structure) return "none";
    const std::string status = gst_structure_get_string(structure, "status");
    gst_structure_free(structure);
    return status;
}

GstVideoInfo linear_format(GstPad* pad) {
    GstVideoInfo info;
    gst_video_info_init(&info);
    GstCaps* caps = gst_pad_get_current_caps(pad);
    GstVideoInfoDmaDrm drm;
    if (gst_video_info_dma_drm_from_caps(&drm, caps)) {
        EXPECT_TRUE(gst_video_info_dma_drm_to_video_info(&drm, &info));
    } else {
        EXPECT_TRUE(gst_video_info_from_caps(&info, caps));
    }
    gst_caps_unref(caps);
    return info;
}

// The picture without the gaps of strides and planes.
std::vector<guint8> dense_pixels(const GstVideoInfo& info, GstBuffer* buffer) {
    GstVideoInfo dense;
    gst_video_info_set_format(&dense, GST_VIDEO_INFO_FORMAT(&info),
                              guint(GST_VIDEO_INFO_WIDTH(&info)),
                              guint(GST_VIDEO_INFO_HEIGHT(&info)));
    GstBuffer* copy = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&dense), nullptr);
    GstVideoFrame from, to;
    std::vector<guint8> pixels(GST_VIDEO_INFO_SIZE(&dense));
    if (gst_video_frame_map(&from, &info, buffer, GST_MAP_READ)) {
        gst_video_frame_map(&to, &dense, copy, GST_MAP_WRITE);
        EXPECT_TRUE(gst_video_frame_copy(&to, &from));
        gst_video_frame_unmap(&to);
        gst_video_frame_unmap(&from);
        gst_buffer_extract(copy, 0, pixels.data(), pixels.size());
    } else {
        ADD_FAILURE() << "the frame cannot be mapped";
    }
    gst_buffer_unref(copy);
    return pixels;
}

std::vector<guint8> tensor_of(GstBuffer* buffer) {
    auto* meta =
        reinterpret_cast<GstTensorMeta*>(gst_buffer_get_meta(buffer, GST_TENSOR_META_API_TYPE));
    if (!meta) return {};
    GstBuffer* data = meta->tensors[0]->data;
    std::vector<guint8> bytes(gst_buffer_get_size(data));
    gst_buffer_extract(data, 0, bytes.data(), bytes.size());
    return bytes;
}

}  // namespace

Pipeline::Pipeline(const std::string& source, const std::string& infer) {
    // An emulated processor may stand still for longer than a run takes on any device.
    const std::string line = source + " ! vartmlinfer name=infer on-late=block run-timeout=60000 " +
                             infer + " ! fakesink name=sink sync=false signal-handoffs=true";
    GError* error = nullptr;
    pipeline_ = gst_parse_launch(line.c_str(), &error);
    if (error) throw std::runtime_error(line + ": " + error->message);
    source_ = gst_bin_get_by_name(GST_BIN(pipeline_), "source");
    infer_ = gst_bin_get_by_name(GST_BIN(pipeline_), "infer");
    GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline_), "sink");
    g_signal_connect(sink, "handoff", G_CALLBACK(on_frame), this);
    gst_object_unref(sink);
    bus_ = gst_element_get_bus(pipeline_);
    gst_video_info_init(&format_);
}

Pipeline::~Pipeline() {
    gst_element_set_state(pipeline_, GST_STATE_NULL);
    gst_object_unref(bus_);
    gst_object_unref(infer_);
    gst_object_unref(source_);
    gst_object_unref(pipeline_);
}

void Pipeline::on_frame(GstElement*, GstBuffer* buffer, GstPad* pad, gpointer self) {
    static_cast<Pipeline*>(self)->take(buffer, pad);
}

void Pipeline::take(GstBuffer* buffer, GstPad* pad) {
    const GstVideoInfo format = linear_format(pad);
    Frame frame;
    for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) {
        GstMemory* memory = gst_buffer_peek_memory(buffer, i);
        frame.is_dma_buf.push_back(gst_is_dmabuf_memory(memory));
        struct stat status;
        if (frame.is_dma_buf.back() && fstat(gst_dmabuf_memory_get_fd(memory), &status) == 0)
            frame.inodes.push_back(status.st_ino);
    }
    frame.pixels = dense_pixels(format, buffer);
    frame.tensor = tensor_of(buffer);
    frame.status = status_of(buffer);
    const std::lock_guard lock(mutex_);
    format_ = format;
    frames_.push_back(std::move(frame));
    changed_.notify_all();
}

void Pipeline::play() {
    gst_element_set_state(pipeline_, GST_STATE_PLAYING);
}

void Pipeline::wait_for_frames(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, patience, [&] { return frames_.size() >= count; }))
        << frames_.size() << " frames came, not " << count;
}

void Pipeline::note(Errors& errors, GstMessage* message) const {
    GError* error = nullptr;
    gchar* debug = nullptr;
    gst_message_parse_error(message, &error, &debug);
    ++(GST_MESSAGE_SRC(message) == GST_OBJECT(source_) ? errors.of_source : errors.of_others);
    errors.text += std::string(GST_MESSAGE_SRC_NAME(message)) + ": " + error->message + " (" +
                   (debug ? debug : "") + ")\n";
    g_error_free(error);
    g_free(debug);
}

Errors Pipeline::finish(Until until) {
    Errors errors;
    const auto any = GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    const GstClockTime nanoseconds = std::chrono::nanoseconds(patience).count();
    for (bool running = true; running;) {
        GstMessage* message = gst_bus_timed_pop_filtered(bus_, nanoseconds, any);
        if (!message) {
            ADD_FAILURE() << "the stream did not end\n" << errors.text;
            break;
        }
        const bool error = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR;
        if (error) note(errors, message);
        running = error && until == Until::end_of_stream;
        gst_message_unref(message);
    }
    return errors;
}

guint64 Pipeline::counter(const char* name) const {
    GstStructure* stats = nullptr;
    g_object_get(infer_, "stats", &stats, nullptr);
    guint64 value = G_MAXUINT64;
    EXPECT_TRUE(gst_structure_get_uint64(stats, name, &value)) << "no field " << name;
    gst_structure_free(stats);
    return value;
}

}  // namespace vartml::test
