// SPDX-License-Identifier: Apache-2.0
// Frames that a camera's hardware made into a tensor: taken as they lie where they are the model's,
// else refused with the first thing in which they are not.
#include <cstring>

#include "tests/support/gst_dma_frames.h"
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::gst::InferenceStatus;

constexpr gsize codes_size = fake_width * fake_height * 4;

std::string drm_caps(const char* fourcc, const char* more = "", unsigned width = fake_width) {
    return "video/x-raw(memory:DMABuf),format=DMA_DRM,framerate=30/1,height=12,width=" +
           std::to_string(width) + ",drm-format=" + fourcc + more;
}
std::string own_caps(const char* fields, const char* memory = "") {
    return std::string("application/x-vartml-tensor") + memory +
           ",framerate=30/1,channels=3,width=16,height=12," + fields;
}
constexpr const char* codes = "data-type=int8,layout=HCWNC4";

// As the element is made by a user, who sets nothing.
GstElement* element_of(FakeInput input, const char* mode = "auto") {
    reset_fake_model();
    fake_model().input = input;
    GstElement* element = make_infer();
    gst_util_set_object_arg(G_OBJECT(element), "input-is-tensor", mode);
    return element;
}

struct TakenCase {
    const char* name;
    FakeInput input;
    std::string caps;
    unsigned pixel_bytes;
    bool dma_buf;
    unsigned offset, stride;  // of the metadata; 0: none
    const char* copy;
};
const TakenCase taken[] = {
    {"FourSlots", FakeInput::codes, drm_caps("HC48"), 4, true, 0, 0, nullptr},
    {"ThreeOfFourSlots", FakeInput::codes, drm_caps("HC43"), 4, true, 0, 0, nullptr},
    {"ThreeSlots", FakeInput::codes, drm_caps("HC44"), 4, true, 0, 0, nullptr},
    {"Bf16", FakeInput::floats, drm_caps("HB43"), 8, true, 0, 0, nullptr},
    {"OwnTypeInADmaBuf", FakeInput::codes, own_caps(codes, "(memory:DMABuf)"), 4, true, 0, 0,
     nullptr},
    {"OwnTypeThatSaysItsStep", FakeInput::codes,
     own_caps("data-type=int8,layout=HCWNC4,scale=0.015625,zero-point=0,channel-order=rgb"), 4,
     true, 0, 0, nullptr},
    {"OwnTypeInPlainMemory", FakeInput::codes, own_caps(codes), 4, false, 0, 0,
     "not-device-memory"},
    {"PaddedRows", FakeInput::codes, drm_caps("HC48"), 4, true, 0, fake_width * 4 + 64, "strided"},
    {"Bf16InPaddedRows", FakeInput::floats, drm_caps("HB43"), 8, true, 0, fake_width * 8 + 64,
     "strided"},
    {"BehindAnOffset", FakeInput::codes, drm_caps("HC48"), 4, true, 4096, fake_width * 4,
     "unaligned"},
};
class InferCameraTensor : public testing::TestWithParam<TakenCase> {};
TEST_P(InferCameraTensor, IsTakenAsItLies) {
    const TakenCase& c = GetParam();
    {
        InferHarness t(element_of(c.input), c.caps.c_str());
        const size_t row = fake_width * c.pixel_bytes, stride = c.stride ? c.stride : row;
        GstMemory* memory = dma_memory(c.offset + stride * fake_height);
        GstBuffer* frame = frame_of(memory);
        if (c.stride) {
            gsize offsets[4] = {c.offset};
            gint strides[4] = {int(c.stride)};
            gst_buffer_add_video_meta_full(frame, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_RGBx,
                                           fake_width, fake_height, 1, offsets, strides);
        }
        if (!c.dma_buf) {
            GstBuffer* plain = gst_buffer_copy_deep(frame);
            GstMemory* copy = gst_allocator_alloc(nullptr, codes_size, nullptr);
            GstMapInfo from, to;
            gst_buffer_map(frame, &from, GST_MAP_READ);
            gst_memory_map(copy, &to, GST_MAP_WRITE);
            std::memcpy(to.data, from.data, codes_size);
            gst_memory_unmap(copy, &to);
            gst_buffer_unmap(frame, &from);
            gst_buffer_replace_all_memory(plain, copy);
            gst_buffer_unref(frame);
            frame = plain;
        }
        ASSERT_EQ(gst_harness_push(t.h, frame), GST_FLOW_OK);
        GstBuffer* out = t.pull();
        const vartml::gst::Inference* inference = vartml::gst::get_inference(out, 0);
        EXPECT_EQ(inference->status, InferenceStatus::inferred);
        EXPECT_EQ(inference->to_frame, vartml::Affine{}) << "model pixels are frame pixels";
        EXPECT_EQ(inference->frame_width, fake_width);
        gst_buffer_unref(out);
        EXPECT_EQ(t.stat("conversions"), 0u);
        EXPECT_EQ(t.stat("imports"), c.copy ? 0u : 1u);
        EXPECT_EQ(t.stat("copies"), c.copy ? 1u : 0u);
        if (c.copy) {
            EXPECT_EQ(t.stat(("copy-" + std::string(c.copy) + "-count").c_str()), 1u);
        }
        const auto& tensor = fake_model().last_input;
        ASSERT_EQ(tensor.size(), row * fake_height);
        for (size_t i = 0; i < tensor.size(); ++i)
            ASSERT_EQ(tensor[i], (c.offset + i / row * stride + i % row) % 251) << i;
    }
    EXPECT_EQ(fake_model().live_runners, 0u);
}
INSTANTIATE_TEST_SUITE_P(Table, InferCameraTensor, testing::ValuesIn(taken),
                         [](const auto& info) { return std::string(info.param.name); });

struct RefusedCase {
    const char* name;
    FakeInput input;
    const char *mode, *region;
    std::string caps;
    const char *sentence, *found, *expected;
};
const RefusedCase refused[] = {
    {"NoWouldPreprocessTwice", FakeInput::codes, "no", "full-frame", drm_caps("HC48"),
     "input-is-tensor=no would pre-process them a second time", nullptr, nullptr},
    {"RegionsWouldPreprocessTwice", FakeInput::codes, "auto", "roi", drm_caps("HC48"),
     "inference-region=roi would pre-process parts of them a second time", nullptr, nullptr},
    {"TheModelWouldPreprocessTwice", FakeInput::picture, "auto", "full-frame", drm_caps("HC48"),
     "model 'fake' has its own, which would pre-process them a second time", nullptr, nullptr},
    {"Width", FakeInput::codes, "auto", "full-frame", drm_caps("HC48", "", 20),
     "for another model: their width is 20, and model 'fake' takes 16", "20", "16"},
    {"Type", FakeInput::codes, "auto", "full-frame", drm_caps("HB43"), "their type is bf16", "bf16",
     "int8"},
    {"SignedCodesForBytes", FakeInput::four_bytes, "yes", "full-frame", drm_caps("HC48"),
     "their type is int8", "int8", "uint8"},
    {"Layout", FakeInput::codes, "auto", "full-frame", drm_caps("HC83"), "their layout is HCWNC8",
     "HCWNC8", "HCWNC4"},
    {"Step", FakeInput::codes, "auto", "full-frame",
     drm_caps("HC48", ",scale=0.0078125,zero-point=0"), "their scale is 0.0078125", "0.0078125",
     "0.015625"},
    {"ZeroPoint", FakeInput::codes, "yes", "full-frame",
     own_caps("data-type=int8,layout=HCWNC4,scale=0.015625,zero-point=-128"),
     "their zero-point is -128", "-128", "0"},
    {"Order", FakeInput::codes, "auto", "full-frame",
     own_caps("data-type=int8,layout=HCWNC4,channel-order=bgr"), "their channel-order is bgr",
     "bgr", "rgb"},
};
class InferCameraRefusal : public testing::TestWithParam<RefusedCase> {};
TEST_P(InferCameraRefusal, SaysTheFirstDifferenceInOneSentence) {
    const RefusedCase& c = GetParam();
    GstElement* element = element_of(c.input, c.mode);
    gst_util_set_object_arg(G_OBJECT(element), "inference-region", c.region);
    GstBus* bus = gst_bus_new();
    gst_element_set_bus(element, bus);
    GstHarness* h = gst_harness_new_with_element(element, "sink", "src");
    gst_harness_play(h);
    gst_harness_push_event(h, gst_event_new_stream_start("s"));
    GstCaps* caps = gst_caps_from_string(c.caps.c_str());
    gst_harness_push_event(h, gst_event_new_caps(caps));
    gst_caps_unref(caps);
    GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
    ASSERT_NE(message, nullptr);
    GError* error = nullptr;
    const GstStructure* details = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    gst_message_parse_error_details(message, &details);
    EXPECT_NE(std::string(error->message).find(c.sentence), std::string::npos) << error->message;
    EXPECT_STREQ(gst_structure_get_string(details, "id"), "infer-camera");
    EXPECT_STREQ(gst_structure_get_string(details, "found"), c.found);
    EXPECT_STREQ(gst_structure_get_string(details, "expected"), c.expected);
    g_error_free(error);
    gst_message_unref(message);
    gst_harness_teardown(h);
    gst_element_set_bus(element, nullptr);
    gst_object_unref(bus);
    gst_object_unref(element);
}
INSTANTIATE_TEST_SUITE_P(Table, InferCameraRefusal, testing::ValuesIn(refused),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(InferCameraCaps, AreNarrowedToTheTensorsThatFit) {
    GstElement* element = element_of(FakeInput::codes, "yes");
    gst_object_ref_sink(element);
    GstPad* pad = gst_element_get_static_pad(element, "sink");
    gst_element_set_state(element, GST_STATE_PAUSED);
    GstCaps* all = gst_pad_query_caps(pad, nullptr);
    for (const auto& [text, fits] : {std::pair{drm_caps("HC48"), true},
                                     {drm_caps("HB43"), false},
                                     {drm_caps("HC48", "", 20), false},
                                     {own_caps(codes), true},
                                     {own_caps("data-type=bf16,layout=HCWNC4"), false}}) {
        GstCaps* caps = gst_caps_from_string(text.c_str());
        EXPECT_EQ(bool(gst_caps_can_intersect(all, caps)), fits) << text;
        gst_caps_unref(caps);
    }
    gst_caps_unref(all);
    gst_element_set_state(element, GST_STATE_NULL);
    gst_object_unref(pad);
    gst_object_unref(element);
}

// Where upstream asks for memory.
TEST(InferCameraPool, HasRoomForTheTensor) {
    for (const std::string& text : {drm_caps("HC48"), own_caps(codes)}) {
        SCOPED_TRACE(text);
        InferHarness t(element_of(FakeInput::codes), text.c_str());
        GstCaps* caps = gst_caps_from_string(text.c_str());
        GstQuery* query = gst_query_new_allocation(caps, TRUE);
        ASSERT_TRUE(gst_pad_peer_query(t.h->srcpad, query));
        ASSERT_EQ(gst_query_get_n_allocation_pools(query), 1u);
        GstBufferPool* pool = nullptr;
        guint size, min, max;
        gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, &min, &max);
        ASSERT_NE(pool, nullptr);
        EXPECT_EQ(size, codes_size);
        ASSERT_TRUE(gst_buffer_pool_set_active(pool, TRUE));
        GstBuffer* buffer = nullptr;
        ASSERT_EQ(gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr), GST_FLOW_OK);
        EXPECT_GE(gst_buffer_get_size(buffer), codes_size);
        gst_buffer_unref(buffer);
        gst_buffer_pool_set_active(pool, FALSE);
        gst_object_unref(pool);
        gst_query_unref(query);
        gst_caps_unref(caps);
    }
}

}  // namespace
