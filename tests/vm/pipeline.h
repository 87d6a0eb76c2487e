// SPDX-License-Identifier: Apache-2.0
// A pipeline with one vartmlinfer, and what it did with each frame.
#pragma once
#include <gst/gst.h>
#include <gst/video/video.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

namespace vartml::test {

// A frame as it left vartmlinfer.
struct Frame {
    std::vector<bool> is_dma_buf;  // per memory of the buffer
    std::vector<guint64> inodes;   // of the dma-bufs, which descriptors may share
    std::vector<guint8> pixels;    // dense, read by the CPU
    std::vector<guint8> tensor;    // first output
    std::string status;            // of the inference
};

struct Errors {
    unsigned of_source = 0, of_others = 0;
    std::string text;
};

// Thread-safety: one thread; frames() only after an end.
class Pipeline {
public:
    // `source ! vartmlinfer INFER ! fakesink`; frames are inferred however late they are.
    Pipeline(const std::string& source, const std::string& infer);
    ~Pipeline();
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;

    void play();
    void wait_for_frames(size_t count);
    // Waits for the end of the stream, which may follow errors, or for the first error.
    enum class Until { end_of_stream, error };
    Errors finish(Until until = Until::error);

    const std::vector<Frame>& frames() const { return frames_; }
    const GstVideoInfo& format() const { return format_; }  // of `pixels`
    guint64 counter(const char* name) const;                // in `stats`

private:
    static void on_frame(GstElement*, GstBuffer* buffer, GstPad* pad, gpointer self);
    void take(GstBuffer* buffer, GstPad* pad);
    void note(Errors& errors, GstMessage* message) const;

    GstElement *pipeline_ = nullptr, *source_ = nullptr, *infer_ = nullptr;
    GstBus* bus_ = nullptr;
    GstVideoInfo format_;
    std::mutex mutex_;  // guards frames_ and ended_
    std::condition_variable changed_;
    std::vector<Frame> frames_;
};

}  // namespace vartml::test
