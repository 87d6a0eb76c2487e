// SPDX-License-Identifier: Apache-2.0
// Frames that are the model's input tensor: what is imported, what is copied and why, which caps
// are taken, and the pool that is offered for them.
#include <gst/allocators/gstdmabuf.h>
#include <gst/video/video.h>
#include <unistd.h>

#include <cstring>

#include "tests/support/gst_dma_frames.h"
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::gst::InferenceStatus;

constexpr gsize rgbx_size = fake_width * fake_height * 4, rgb_size = fake_width * fake_height * 3;

std::string caps_of(const char* format, unsigned width = fake_width,
                    unsigned height = fake_height) {
    return "video/x-raw,framerate=30/1,pixel-aspect-ratio=1/1,format=" + std::string(format) +
           ",width=" + std::to_string(width) + ",height=" + std::to_string(height);
}

GstBuffer* with_meta(GstBuffer* buffer, GstVideoFormat format, gsize offset, int stride) {
    gsize offsets[4] = {offset};
    gint strides[4] = {stride};
    gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, format, fake_width,
                                   fake_height, 1, offsets, strides);
    return buffer;
}

GstElement* direct(const char* mode, const char* policy = "warn") {
    GstElement* element = make_infer();
    gst_util_set_object_arg(G_OBJECT(element), "input-is-tensor", mode);
    gst_util_set_object_arg(G_OBJECT(element), "copy-policy", policy);
    gst_util_set_object_arg(G_OBJECT(element), "output-tensor-type", "hw");
    return element;
}

class InferFrameTensor : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }
};

// The table of paths: what a frame in some memory costs.
struct PathCase {
    const char* name;
    FakeInput input;
    const char* mode;
    const char* format;
    GstBuffer* (*frame)();
    unsigned imports, conversions, dma;
    const char* copy;        // reason of the one copy, or nullptr
    unsigned tensor_offset;  // of the first byte that the device reads, in the memory
    unsigned row;            // bytes from row to row in the memory; 0: dense
};
GstBuffer* dma_rgbx() {
    return frame_of(dma_memory(rgbx_size));
}
GstBuffer* dma_rgb() {
    return frame_of(dma_memory(rgb_size));
}
GstBuffer* padded_rgbx() {
    return with_meta(frame_of(dma_memory((fake_width * 4 + 64) * fake_height)),
                     GST_VIDEO_FORMAT_RGBx, 0, fake_width * 4 + 64);
}
GstBuffer* shifted_rgbx() {
    return with_meta(frame_of(dma_memory(rgbx_size + 4096)), GST_VIDEO_FORMAT_RGBx, 4096,
                     fake_width * 4);
}
// The offset is in the memory, not in the metadata.
GstBuffer* shifted_memory() {
    GstMemory* memory = dma_memory(rgbx_size + 128);
    gst_memory_resize(memory, 128, rgbx_size);
    return frame_of(memory);
}
GstBuffer* split_rgbx() {
    GstBuffer* buffer = frame_of(dma_memory(rgbx_size / 2));
    gst_buffer_append_memory(buffer, dma_memory(rgbx_size / 2));
    return buffer;
}
GstBuffer* plain(gsize size) {
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, size, nullptr);
    GstMapInfo map;
    gst_buffer_map(buffer, &map, GST_MAP_WRITE);
    for (gsize i = 0; i < size; ++i) map.data[i] = guint8(i % 251);
    gst_buffer_unmap(buffer, &map);
    return buffer;
}
GstBuffer* plain_rgbx() {
    return plain(rgbx_size);
}
GstBuffer* plain_rgb() {
    return plain(rgb_size);
}

const PathCase paths[] = {
    {"RgbxInADmaBuf", FakeInput::four_bytes, "yes", "RGBx", dma_rgbx, 1, 0, 1, nullptr, 0, 0},
    {"RgbaInADmaBuf", FakeInput::four_bytes, "yes", "RGBA", dma_rgbx, 1, 0, 1, nullptr, 0, 0},
    {"PictureModel", FakeInput::picture, "auto", "RGB", dma_rgb, 1, 0, 1, nullptr, 0, 0},
    {"PictureModelSaysYes", FakeInput::picture, "yes", "RGB", dma_rgb, 1, 0, 1, nullptr, 0, 0},
    {"AutoWithoutPictureConverts", FakeInput::four_bytes, "auto", "RGBx", dma_rgbx, 0, 1, 0,
     nullptr, 0, 0},
    {"NoConverts", FakeInput::picture, "no", "RGB", dma_rgb, 0, 1, 0, nullptr, 0, 0},
    {"OtherOrderConverts", FakeInput::picture, "auto", "BGR", dma_rgb, 0, 1, 0, nullptr, 0, 0},
    {"PaddedRows", FakeInput::four_bytes, "yes", "RGBx", padded_rgbx, 0, 0, 0, "strided", 0,
     fake_width * 4 + 64},
    {"Offset", FakeInput::four_bytes, "yes", "RGBx", shifted_rgbx, 0, 0, 0, "unaligned", 4096, 0},
    {"OffsetOfTheMemory", FakeInput::four_bytes, "yes", "RGBx", shifted_memory, 0, 0, 0,
     "unaligned", 128, 0},
    {"TwoMemories", FakeInput::four_bytes, "yes", "RGBx", split_rgbx, 0, 0, 0, "split-memory", 0,
     0},
    {"PlainMemory", FakeInput::four_bytes, "yes", "RGBx", plain_rgbx, 0, 0, 0, "not-device-memory",
     0, 0},
    {"PlainPicture", FakeInput::picture, "auto", "RGB", plain_rgb, 0, 0, 0, "not-device-memory", 0,
     0},
};
class InferPath : public testing::TestWithParam<PathCase> {};
TEST_P(InferPath, CostsWhatTheTableSays) {
    const PathCase& c = GetParam();
    reset_fake_model();
    fake_model().input = c.input;
    {
        InferHarness t(direct(c.mode), caps_of(c.format).c_str());
        GstBuffer* frame = c.frame();
        GstMemory* memory = gst_memory_ref(gst_buffer_peek_memory(frame, 0));
        ASSERT_EQ(gst_harness_push(t.h, frame), GST_FLOW_OK);
        GstBuffer* out = t.pull();
        EXPECT_EQ(vartml::gst::get_inference(out, 0)->status, InferenceStatus::inferred);
        // To map memories that are not one, GStreamer joins them.
        const bool joined = std::strcmp(c.name, "TwoMemories") == 0;
        EXPECT_EQ(gst_buffer_peek_memory(out, 0) == memory, !joined) << "the frame is not copied";
        gst_memory_unref(memory);
        gst_buffer_unref(out);
        EXPECT_EQ(t.stat("imports"), c.imports);
        EXPECT_EQ(t.stat("conversions"), c.conversions);
        EXPECT_EQ(fake_model().dma_inputs, c.dma);
        EXPECT_EQ(t.stat("copies"), c.copy ? 1u : 0u);
        EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), c.copy ? 1u : 0u);
        if (c.copy) {
            const gsize size = fake_model().last_input.size();
            EXPECT_EQ(t.stat(("copy-" + std::string(c.copy) + "-count").c_str()), 1u);
            EXPECT_EQ(t.stat("copied-bytes"), size);
        }
        if (c.conversions == 0 && !joined) {
            const auto& tensor = fake_model().last_input;
            const size_t row = tensor.size() / fake_height, stride = c.row ? c.row : row;
            for (size_t i = 0; i < tensor.size(); ++i)
                ASSERT_EQ(tensor[i], (c.tensor_offset + i / row * stride + i % row) % 251) << i;
        }
    }
    EXPECT_EQ(fake_model().live_runners, 0u);
}
INSTANTIATE_TEST_SUITE_P(Table, InferPath, testing::ValuesIn(paths),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(InferFrameTensor, AMemoryIsImportedOnce) {
    fake_model().input = FakeInput::four_bytes;
    InferHarness t(direct("yes"), caps_of("RGBx").c_str());
    GstMemory* memories[4];
    for (GstMemory*& memory : memories) memory = dma_memory(rgbx_size);
    for (guint64 n = 0; n < 100; ++n) {
        ASSERT_EQ(gst_harness_push(t.h, frame_of(gst_memory_ref(memories[n % 4]))), GST_FLOW_OK);
        EXPECT_EQ(t.pull_out().status, InferenceStatus::inferred);
    }
    EXPECT_EQ(t.stat("imports"), 4u);
    EXPECT_EQ(t.stat("copies"), 0u);
    EXPECT_EQ(fake_model().dma_inputs, 100u);
    for (GstMemory* memory : memories) gst_memory_unref(memory);
}

TEST_F(InferFrameTensor, TheFrameIsHeldUntilTheDeviceHasReadItEvenAfterAFlush) {
    fake_model().input = FakeInput::four_bytes;
    fake_model().hold = true;
    InferHarness t(direct("yes"), caps_of("RGBx").c_str());
    GstMemory* memory = dma_memory(rgbx_size);
    ASSERT_EQ(gst_harness_push(t.h, frame_of(gst_memory_ref(memory))), GST_FLOW_OK);
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_start()));
    ASSERT_TRUE(gst_harness_push_event(t.h, gst_event_new_flush_stop(TRUE)));
    EXPECT_GT(GST_MINI_OBJECT_REFCOUNT_VALUE(memory), 1);
    fake_model().release();
    gst_element_set_state(t.element, GST_STATE_NULL);  // waits for the device
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(memory), 1);
    gst_memory_unref(memory);
}

// A source with few buffers has no other to give until this one is back.
TEST_F(InferFrameTensor, AFrameThatLeftBeforeItsResultGoesBackWhenTheDeviceHasReadIt) {
    fake_model().input = FakeInput::four_bytes;
    fake_model().hold = true;
    GstElement* element = direct("yes");
    gst_util_set_object_arg(G_OBJECT(element), "keep-rate", "yes");
    gst_util_set_object_arg(G_OBJECT(element), "on-late", "auto");
    g_object_set(element, "latency", guint64(0), nullptr);
    InferHarness t(element, caps_of("RGBx").c_str());
    GstMemory* memory = dma_memory(rgbx_size);
    ASSERT_EQ(gst_harness_push(t.h, frame_of(gst_memory_ref(memory))), GST_FLOW_OK);
    EXPECT_EQ(t.pull_out().status, InferenceStatus::pending);
    EXPECT_GT(GST_MINI_OBJECT_REFCOUNT_VALUE(memory), 1);
    fake_model().release();
    GstQuery* const drain = gst_query_new_drain();
    gst_pad_peer_query(t.h->srcpad, drain);
    gst_query_unref(drain);
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(memory), 1);
    gst_memory_unref(memory);
}

TEST_F(InferFrameTensor, ADeviceThatRefusesTheImportGetsCopiesFromThenOn) {
    fake_model().input = FakeInput::four_bytes;
    fake_model().refuses_imports = true;
    InferHarness t(direct("yes"), caps_of("RGBx").c_str());
    for (guint64 n = 0; n < 3; ++n) {
        ASSERT_EQ(gst_harness_push(t.h, dma_rgbx()), GST_FLOW_OK);
        EXPECT_EQ(t.pull_out().status, InferenceStatus::inferred);
    }
    EXPECT_EQ(t.stat("copy-import-refused-count"), 3u);
    EXPECT_EQ(fake_model().dma_inputs, 1u);
    EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), 1u);
}

TEST_F(InferFrameTensor, ARefusedImportDoesNotFailTheOtherFramesOfTheBatch) {
    fake_model().input = FakeInput::four_bytes;
    fake_model().refuses_imports = true;
    fake_model().batch = 2;
    const auto make = [] {
        GstElement* element = direct("yes", "allow");
        g_object_set(element, "model-instance-id", "mates", "batch-timeout", 60'000, nullptr);
        return element;
    };
    InferHarness imports(make(), caps_of("RGBx").c_str()), copies(make(), caps_of("RGBx").c_str());
    ASSERT_EQ(gst_harness_push(copies.h, plain_rgbx()), GST_FLOW_OK);
    ASSERT_EQ(gst_harness_push(imports.h, dma_rgbx()), GST_FLOW_OK);
    EXPECT_EQ(copies.pull_out().status, InferenceStatus::inferred);
    EXPECT_EQ(imports.pull_out().status, InferenceStatus::inferred);
    EXPECT_EQ(copies.messages(GST_MESSAGE_WARNING), 0u);
}

TEST_F(InferFrameTensor, ARefusedImportIsAForbiddenCopy) {
    fake_model().input = FakeInput::four_bytes;
    fake_model().refuses_imports = true;
    InferHarness t(direct("yes", "forbid"), caps_of("RGBx").c_str());
    gst_harness_push(t.h, dma_rgbx());
    GstMessage* message = gst_bus_timed_pop_filtered(t.bus, 10 * GST_SECOND, GST_MESSAGE_ERROR);
    ASSERT_NE(message, nullptr);
    const GstStructure* details = nullptr;
    gst_message_parse_error_details(message, &details);
    EXPECT_STREQ(gst_structure_get_string(details, "found"), "import-refused");
    gst_message_unref(message);
    GstFlowReturn flow = GST_FLOW_OK;
    for (int n = 0; n < 10 && flow == GST_FLOW_OK; ++n) flow = gst_harness_push(t.h, dma_rgbx());
    EXPECT_EQ(flow, GST_FLOW_ERROR);
    EXPECT_EQ(gst_harness_buffers_in_queue(t.h), 0u);
}

TEST_F(InferFrameTensor, APolicyThatBecomesStricterHoldsForTheNextCopy) {
    fake_model().input = FakeInput::four_bytes;
    InferHarness t(direct("yes", "allow"), caps_of("RGBx").c_str());
    struct Step {
        const char* policy;
        unsigned warnings;
        GstFlowReturn flow;
    };
    for (const Step& step : {Step{"allow", 0, GST_FLOW_OK},
                             {"warn", 1, GST_FLOW_OK},
                             {"warn", 0, GST_FLOW_OK},
                             {"forbid", 0, GST_FLOW_ERROR}}) {
        gst_util_set_object_arg(G_OBJECT(t.element), "copy-policy", step.policy);
        EXPECT_EQ(gst_harness_push(t.h, plain_rgbx()), step.flow) << step.policy;
        if (step.flow == GST_FLOW_OK) t.pull_out();
        EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), step.warnings) << step.policy;
    }
}

TEST_F(InferFrameTensor, TheFirstForbiddenCopyIsAnError) {
    fake_model().input = FakeInput::four_bytes;
    InferHarness t(direct("yes", "forbid"), caps_of("RGBx").c_str());
    EXPECT_EQ(gst_harness_push(t.h, plain_rgbx()), GST_FLOW_ERROR);
    GstMessage* message = gst_bus_pop_filtered(t.bus, GST_MESSAGE_ERROR);
    ASSERT_NE(message, nullptr);
    const GstStructure* details = nullptr;
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    gst_message_parse_error_details(message, &details);
    EXPECT_STREQ(gst_structure_get_string(details, "id"), "infer-copy-forbidden");
    EXPECT_STREQ(gst_structure_get_string(details, "found"), "not-device-memory");
    EXPECT_NE(std::string(error->message).find(std::to_string(rgbx_size)), std::string::npos)
        << error->message;
    g_error_free(error);
    gst_message_unref(message);
}

TEST_F(InferFrameTensor, ModelPixelsAreFramePixels) {
    fake_model().input = FakeInput::four_bytes;
    InferHarness t(direct("yes"), caps_of("RGBx").c_str());
    ASSERT_EQ(gst_harness_push(t.h, dma_rgbx()), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    EXPECT_EQ(vartml::gst::get_inference(out, 0)->to_frame, vartml::Affine{});
    gst_buffer_unref(out);
}

struct CapsCase {
    const char *name, *caps, *found, *expected;
};
class InferTensorCaps : public testing::TestWithParam<CapsCase> {};
TEST_P(InferTensorCaps, TheFirstDifferenceIsNamed) {
    const CapsCase& c = GetParam();
    reset_fake_model();
    fake_model().input = FakeInput::four_bytes;
    GstElement* element = direct("yes");
    GstBus* bus = gst_bus_new();
    gst_element_set_bus(element, bus);
    GstHarness* h = gst_harness_new_with_element(element, "sink", "src");
    gst_harness_play(h);
    gst_harness_push_event(h, gst_event_new_stream_start("s"));
    GstCaps* caps = gst_caps_from_string(c.caps);
    gst_harness_push_event(h, gst_event_new_caps(caps));
    gst_caps_unref(caps);
    GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
    ASSERT_NE(message, nullptr);
    const GstStructure* details = nullptr;
    gst_message_parse_error_details(message, &details);
    EXPECT_STREQ(gst_structure_get_string(details, "id"), "infer-caps");
    EXPECT_STREQ(gst_structure_get_string(details, "found"), c.found);
    EXPECT_STREQ(gst_structure_get_string(details, "expected"), c.expected);
    gst_message_unref(message);
    gst_harness_teardown(h);
    gst_element_set_bus(element, nullptr);
    gst_object_unref(bus);
    gst_object_unref(element);
}
const CapsCase caps_cases[] = {
    {"Format", "video/x-raw,format=NV12,width=16,height=12,framerate=30/1", "NV12", "RGBx or RGBA"},
    {"Order", "video/x-raw,format=BGRx,width=16,height=12,framerate=30/1", "BGRx", "RGBx or RGBA"},
    {"Width", "video/x-raw,format=RGBx,width=17,height=12,framerate=30/1", "17", "16"},
    {"Height", "video/x-raw,format=RGBx,width=16,height=11,framerate=30/1", "11", "12"},
    {"Pixels", "video/x-raw,format=RGBx,width=16,height=12,pixel-aspect-ratio=2/1,framerate=30/1",
     "2/1", "1/1"},
};
INSTANTIATE_TEST_SUITE_P(Yes, InferTensorCaps, testing::ValuesIn(caps_cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(InferFrameTensor, TheCapsAreNarrowedToWhatFits) {
    fake_model().input = FakeInput::four_bytes;
    GstElement* element = direct("yes");
    gst_object_ref_sink(element);
    GstPad* pad = gst_element_get_static_pad(element, "sink");
    GstCaps* before = gst_pad_query_caps(pad, nullptr);
    GstCaps* nv12 = gst_caps_from_string("video/x-raw,format=NV12,width=640,height=480");
    EXPECT_TRUE(gst_caps_can_intersect(before, nv12)) << "the template, until the model is there";
    gst_element_set_state(element, GST_STATE_PAUSED);
    GstCaps* after = gst_pad_query_caps(pad, nullptr);
    EXPECT_FALSE(gst_caps_can_intersect(after, nv12));
    for (const char* fits :
         {"video/x-raw,format=RGBx,width=16,height=12",
          "video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=XB24,width=16,height=12"}) {
        GstCaps* caps = gst_caps_from_string(fits);
        EXPECT_TRUE(gst_caps_can_intersect(after, caps)) << fits;
        gst_caps_unref(caps);
    }
    gst_element_set_state(element, GST_STATE_NULL);
    for (GstCaps* caps : {before, nv12, after}) gst_caps_unref(caps);
    gst_object_unref(pad);
    gst_object_unref(element);
}

TEST_F(InferFrameTensor, ATensorThatIsNoPictureRefusesYes) {
    fake_model().input = FakeInput::permuted;
    GstElement* element = direct("yes");
    gst_object_ref_sink(element);
    GstBus* bus = gst_bus_new();
    gst_element_set_bus(element, bus);
    EXPECT_EQ(gst_element_set_state(element, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
    ASSERT_NE(message, nullptr);
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    EXPECT_NE(std::string(error->message).find("fp32 in layout GENERIC"), std::string::npos)
        << error->message;
    g_error_free(error);
    gst_message_unref(message);
    gst_element_set_state(element, GST_STATE_NULL);
    gst_element_set_bus(element, nullptr);
    gst_object_unref(bus);
    gst_object_unref(element);
}

// A sink that only says how large frames are and how many it keeps, with an allocator of its own.
TEST_F(InferFrameTensor, APoolTakesThePlaceOfAnEntryWithoutOne) {
    InferHarness t;
    GstAllocationParams params;
    gst_allocation_params_init(&params);
    gst_harness_set_propose_allocator(t.h, nullptr, &params);
    const struct {
        guint size, min, expected_size, expected_min;
    } rows[] = {
        {32 * 24, 1, 32 * 24, 3},
        {32 * 25, 50, 32 * 25, 52},  // two are between the pads
        {0, 0, 32 * 24, 3},
    };
    for (const auto& row : rows) {
        GstCaps* caps = gst_caps_from_string(gray_caps);
        GstQuery* query = gst_query_new_allocation(caps, TRUE);
        gst_query_add_allocation_pool(query, nullptr, row.size, row.min, 0);
        ASSERT_TRUE(gst_pad_peer_query(t.h->srcpad, query));
        GstBufferPool* pool = nullptr;
        guint size, min;
        gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, &min, nullptr);
        ASSERT_NE(pool, nullptr);
        EXPECT_EQ(size, row.expected_size);
        EXPECT_EQ(min, row.expected_min);
        guint own_size = 0, own_min = 0;
        GstStructure* config = gst_buffer_pool_get_config(pool);
        EXPECT_TRUE(
            gst_buffer_pool_config_get_params(config, nullptr, &own_size, &own_min, nullptr));
        EXPECT_EQ(own_size, size);
        EXPECT_EQ(own_min, min);
        gst_structure_free(config);
        gst_clear_object(&pool);
        gst_query_unref(query);
        gst_caps_unref(caps);
    }
}

// What upstream gets when nobody downstream has a pool: frames of the right size and room for those
// in flight; in dma-bufs where this machine makes them.
struct PoolCase {
    const char* caps;
    gsize size;
};
TEST_F(InferFrameTensor, APoolIsOfferedWhereDownstreamHasNone) {
    const PoolCase cases[] = {
        {"video/x-raw,format=RGBx,width=16,height=12,framerate=30/1", rgbx_size},
        {"video/x-raw,format=NV12,width=640,height=480,framerate=30/1", 640 * 480 * 3 / 2},
        {"video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=NV12,width=640,height=480,"
         "framerate=30/1",
         640 * 480 * 3 / 2},
    };
    for (const PoolCase& c : cases) {
        SCOPED_TRACE(c.caps);
        InferHarness t(make_infer(), c.caps);
        GstCaps* caps = gst_caps_from_string(c.caps);
        GstQuery* query = gst_query_new_allocation(caps, TRUE);
        ASSERT_TRUE(gst_pad_peer_query(t.h->srcpad, query));
        ASSERT_EQ(gst_query_get_n_allocation_pools(query), 1u);
        GstBufferPool* pool = nullptr;
        guint size, min, max;
        gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, &min, &max);
        ASSERT_NE(pool, nullptr);
        EXPECT_EQ(size, c.size);
        EXPECT_GE(min, 3u);
        EXPECT_EQ(max, 0u);
        ASSERT_TRUE(gst_buffer_pool_set_active(pool, TRUE));
        GstBuffer* buffer = nullptr;
        ASSERT_EQ(gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr), GST_FLOW_OK);
        EXPECT_GE(gst_buffer_get_size(buffer), c.size);
        EXPECT_NE(gst_buffer_get_video_meta(buffer), nullptr);
        if (access("/dev/udmabuf", R_OK | W_OK) == 0) {
            EXPECT_TRUE(gst_is_dmabuf_memory(gst_buffer_peek_memory(buffer, 0)));
        }
        gst_buffer_unref(buffer);
        gst_buffer_pool_set_active(pool, FALSE);
        gst_object_unref(pool);
        gst_query_unref(query);
        gst_caps_unref(caps);
    }
}

}  // namespace
