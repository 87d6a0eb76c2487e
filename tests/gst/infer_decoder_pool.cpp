// SPDX-License-Identifier: Apache-2.0
// Frames as hardware decoders give them: two buffers in all, a memory per plane, padded rows, and a
// consumer that gives one back only when it has the next.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::gst::InferenceStatus;

constexpr int width = 32, height = 24;
constexpr const char* caps = "video/x-raw,format=NV12,width=32,height=24,framerate=30/1";

// Not more buffers than that exist at a time.
class Decoder {
public:
    explicit Decoder(unsigned buffers) : free_(buffers) {}

    // Waits for a buffer that came back; nullptr after ten seconds without one.
    GstBuffer* frame(guint64 number) {
        {
            std::unique_lock lock(mutex_);
            if (!changed_.wait_for(lock, std::chrono::seconds(10), [this] { return free_ > 0; }))
                return nullptr;
            --free_;
        }
        constexpr int stride = 48;
        constexpr gsize gap = 16;  // before the first row of each memory
        GstBuffer* buffer = gst_buffer_new();
        gsize offsets[GST_VIDEO_MAX_PLANES] = {};
        gint strides[GST_VIDEO_MAX_PLANES] = {stride, stride};
        for (int plane = 0; plane < 2; ++plane) {
            const int rows = plane == 0 ? height : height / 2;
            std::vector<guint8> bytes(gap + gsize(stride) * gsize(rows), 255);  // what is no pixel
            for (int y = 0; y < rows; ++y)
                std::fill_n(bytes.begin() + long(gap) + y * stride, width,
                            plane == 0 ? guint8(16 + number) : guint8{128});
            offsets[plane] = gst_buffer_get_size(buffer) + gap;
            GstMemory* memory = gst_allocator_alloc(nullptr, bytes.size(), nullptr);
            GstMapInfo map;
            gst_memory_map(memory, &map, GST_MAP_WRITE);
            std::copy(bytes.begin(), bytes.end(), map.data);
            gst_memory_unmap(memory, &map);
            // Who keeps a plane keeps the buffer.
            gst_mini_object_weak_ref(GST_MINI_OBJECT(memory), came_back, this);
            gst_buffer_append_memory(buffer, memory);
        }
        gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_NV12,
                                       width, height, 2, offsets, strides);
        GST_BUFFER_PTS(buffer) = number * GST_SECOND / 30;
        GST_BUFFER_DURATION(buffer) = GST_SECOND / 30;
        GST_BUFFER_OFFSET(buffer) = number;
        return buffer;
    }

private:
    static void came_back(gpointer self, GstMiniObject*) {
        auto& decoder = *static_cast<Decoder*>(self);
        const std::lock_guard lock(decoder.mutex_);
        if (++decoder.planes_ % 2 == 0) ++decoder.free_;
        decoder.changed_.notify_all();
    }
    std::mutex mutex_;  // guards all below
    std::condition_variable changed_;
    unsigned free_, planes_ = 0;
};

// The picture of that number in one memory without gaps.
GstBuffer* plain_frame(guint64 number) {
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, width * height * 3 / 2, nullptr);
    gst_buffer_memset(buffer, 0, guint8(16 + number), width * height);
    gst_buffer_memset(buffer, width * height, 128, width * height / 2);
    return buffer;
}

// What the model saw of a frame.
float seen(GstBuffer* out) {
    const vartml::gst::Inference* inference = vartml::gst::get_inference(out, 0);
    EXPECT_EQ(inference->status, InferenceStatus::inferred);
    float scores[4] = {-1, -1, -1, -1};
    if (!inference->data.empty()) gst_buffer_extract(inference->data[0], 0, scores, sizeof scores);
    return scores[2];
}

class InferDecoderPool : public testing::TestWithParam<unsigned> {};

TEST_P(InferDecoderPool, OfTwoBuffersIsReadAsItLiesAndStarvesNobody) {
    constexpr guint64 count = 12;
    reset_fake_model();
    fake_model().batch = GetParam();
    std::vector<float> expected;
    {
        InferHarness t(make_infer(), caps);
        for (guint64 n = 0; n < count; ++n) {
            ASSERT_EQ(gst_harness_push(t.h, plain_frame(n)), GST_FLOW_OK);
            GstBuffer* out = t.pull();
            expected.push_back(seen(out));
            gst_buffer_unref(out);
        }
    }
    Decoder decoder(2);
    {
        InferHarness t(make_infer(), caps);
        std::thread upstream([&] {
            for (guint64 n = 0; n < count; ++n) {
                GstBuffer* buffer = decoder.frame(n);
                ASSERT_TRUE(buffer) << "no buffer came back for frame " << n;
                ASSERT_EQ(gst_harness_push(t.h, buffer), GST_FLOW_OK);
            }
        });
        GstBuffer* held = nullptr;
        for (guint64 n = 0; n < count; ++n) {
            GstBuffer* out = t.pull();
            ASSERT_TRUE(out) << "frame " << n;
            EXPECT_EQ(GST_BUFFER_OFFSET(out), n);
            EXPECT_EQ(seen(out), expected[n]) << n;
            gst_clear_buffer(&held);
            held = out;
        }
        gst_clear_buffer(&held);
        upstream.join();
    }
    EXPECT_EQ(fake_model().live_runners, 0u);
}

INSTANTIATE_TEST_SUITE_P(Batch, InferDecoderPool, testing::Values(1U, 2U, 4U));

}  // namespace
