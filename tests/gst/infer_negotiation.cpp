// SPDX-License-Identifier: Apache-2.0
// Which caps vartmlinfer takes and hands on, before and after it has a model.
#include "gst/support/picture_info.h"
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;

struct CapsCase {
    const char* why;
    const char* caps;
    bool taken;
};
const CapsCase cases[] = {
    {"system memory", "video/x-raw,format=NV12,width=640,height=480,framerate=30/1", true},
    {"an odd size", "video/x-raw,format=I420,width=641,height=359,framerate=30/1", true},
    {"one pixel", "video/x-raw,format=RGB,width=1,height=1,framerate=30/1", true},
    {"ten bits", "video/x-raw,format=P010_10LE,width=64,height=48,framerate=30/1", true},
    {"without a frame rate", "video/x-raw,format=NV12,width=64,height=48,framerate=0/1", true},
    {"pixels that are no squares",
     "video/x-raw,format=NV12,width=720,height=576,framerate=30/1,pixel-aspect-ratio=16/15", true},
    {"another colour space",
     "video/x-raw,format=NV12,width=64,height=48,framerate=30/1,colorimetry=bt2020", true},
    {"a dma-buf by fourcc",
     "video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=NV12,width=64,height=48,framerate=30/1",
     true},
    {"a dma-buf in the style before 1.24",
     "video/x-raw(memory:DMABuf),format=NV12,width=64,height=48,framerate=30/1", true},
    {"a tensor by fourcc",
     "video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=HB43,width=16,height=12,framerate=30/1",
     true},
    {"a tensor by its own type",
     "application/x-vartml-tensor,data-type=bf16,layout=HCWNC4,channels=3,width=16,height=12,"
     "framerate=30/1",
     true},
    {"a tensor in a tiled dma-buf",
     "video/"
     "x-raw(memory:DMABuf),format=DMA_DRM,drm-format=HB43:0x0100000000000002,width=16,height=12,"
     "framerate=30/1",
     false},
    {"a tensor in a layout of no picture",
     "application/x-vartml-tensor,data-type=bf16,layout=GENERIC,channels=3,width=16,height=12,"
     "framerate=30/1",
     false},
    {"a tiled dma-buf",
     "video/"
     "x-raw(memory:DMABuf),format=DMA_DRM,drm-format=NV12:0x0100000000000002,width=64,height=48,"
     "framerate=30/1",
     false},
    {"the linear modifier spelt out, which the caps syntax forbids",
     "video/"
     "x-raw(memory:DMABuf),format=DMA_DRM,drm-format=NV12:0x0000000000000000,width=64,height=48,"
     "framerate=30/1",
     false},
    {"a format without kernel", "video/x-raw,format=AYUV64,width=64,height=48,framerate=30/1",
     false},
    {"memory of a graphics card",
     "video/x-raw(memory:GLMemory),format=RGBA,width=64,height=48,framerate=30/1", false},
    {"no picture", "audio/x-raw,format=S16LE,rate=8000,channels=1", false},
    {"a compressed picture", "image/jpeg,width=64,height=48,framerate=30/1", false},
};

// Upstream says "not negotiated", whatever the reason.
TEST(InferLayout, NamesTheLayoutThatIsNotRead) {
    struct Row {
        const char *format, *sentence;
    };
    const Row rows[] = {
        {"NV12:0x0100000000000002",
         "frames of fourcc NV12 in the layout INTEL_Y_TILED (0x0100000000000002) cannot be read, "
         "expected the linear one; ask the source for drm-format=NV12"},
        {"XR24:0x0b00000000000123", "0x0b00000000000123"},  // of nobody
    };
    for (const Row& row : rows) {
        reset_fake_model();
        GstElement* element = make_infer();
        gst_object_ref_sink(element);
        GstBus* bus = gst_bus_new();
        gst_element_set_bus(element, bus);
        gst_element_set_state(element, GST_STATE_PAUSED);
        GstPad* sink = gst_element_get_static_pad(element, "sink");
        GstCaps* caps = gst_caps_from_string(
            (std::string("video/x-raw(memory:DMABuf),format=DMA_DRM,width=64,height=48,"
                         "framerate=30/1,drm-format=") +
             row.format)
                .c_str());
        EXPECT_FALSE(gst_pad_query_accept_caps(sink, caps));
        GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_WARNING);
        ASSERT_TRUE(message) << row.format;
        GError* error = nullptr;
        gst_message_parse_warning(message, &error, nullptr);
        EXPECT_NE(std::string(error->message).find(row.sentence), std::string::npos)
            << error->message;
        g_error_free(error);
        gst_message_unref(message);
        gst_caps_unref(caps);
        gst_object_unref(sink);
        gst_element_set_state(element, GST_STATE_NULL);
        gst_element_set_bus(element, nullptr);
        gst_object_unref(bus);
        gst_object_unref(element);
    }
}

class InferNegotiation : public testing::TestWithParam<CapsCase> {};
TEST_P(InferNegotiation, TakesWhatItReads) {
    const CapsCase& c = GetParam();
    SCOPED_TRACE(c.why);
    reset_fake_model();
    GstElement* element = make_infer();
    gst_object_ref_sink(element);
    GstPad* sink = gst_element_get_static_pad(element, "sink");
    GstPad* src = gst_element_get_static_pad(element, "src");
    GstCaps* caps = gst_caps_from_string(c.caps);
    for (const GstState state : {GST_STATE_NULL, GST_STATE_PAUSED}) {
        gst_element_set_state(element, state);
        EXPECT_EQ(bool(gst_pad_query_accept_caps(sink, caps)), c.taken);
        for (GstPad* pad : {sink, src}) {
            GstCaps* all = gst_pad_query_caps(pad, nullptr);
            EXPECT_EQ(bool(gst_caps_can_intersect(all, caps)), c.taken) << GST_PAD_NAME(pad);
            gst_caps_unref(all);
        }
    }
    gst_element_set_state(element, GST_STATE_NULL);
    gst_caps_unref(caps);
    gst_object_unref(sink);
    gst_object_unref(src);
    gst_object_unref(element);
}
INSTANTIATE_TEST_SUITE_P(Matrix, InferNegotiation, testing::ValuesIn(cases));

TEST(InferNegotiationPads, SrcCapsAreSinkCaps) {
    for (const CapsCase& c : cases) {
        if (!c.taken) continue;
        SCOPED_TRACE(c.why);
        reset_fake_model();
        InferHarness t(make_infer(), c.caps);
        GstCaps* want = gst_caps_from_string(c.caps);
        ASSERT_TRUE(
            gst_harness_push_event(t.h, gst_event_new_gap(0, GST_SECOND)));  // behind the caps
        GstEvent* gap = nullptr;
        while (!gap || GST_EVENT_TYPE(gap) != GST_EVENT_GAP) {
            gst_clear_event(&gap);
            gap = gst_harness_pull_event(t.h);
            ASSERT_NE(gap, nullptr);
        }
        gst_event_unref(gap);
        GstCaps* got = gst_pad_get_current_caps(t.h->sinkpad);
        ASSERT_NE(got, nullptr);
        EXPECT_TRUE(gst_caps_is_subset(got, want));
        gst_caps_unref(got);
        gst_caps_unref(want);
    }
}

// What downstream cannot take is not offered upstream.
TEST(InferNegotiationPads, DownstreamsLimitsReachUpstream) {
    reset_fake_model();
    InferHarness t(make_infer(), "video/x-raw,format=NV12,width=64,height=48,framerate=30/1");
    gst_harness_set_sink_caps_str(t.h, "video/x-raw,format={NV12,I420},width=[1,100]");
    GstCaps* caps = gst_pad_peer_query_caps(t.h->srcpad, nullptr);
    GstCaps* rgb = gst_caps_from_string("video/x-raw,format=RGB,width=64,height=48");
    GstCaps* i420 = gst_caps_from_string("video/x-raw,format=I420,width=64,height=48");
    EXPECT_FALSE(gst_caps_can_intersect(caps, rgb));
    EXPECT_TRUE(gst_caps_can_intersect(caps, i420));
    for (GstCaps* one : {caps, rgb, i420}) gst_caps_unref(one);
}

// `tensors` of GStreamer 1.28 must not come out of a version that cannot write it, nor go upstream.
TEST(InferNegotiationPads, NoTensorCapsLeakUpstream) {
    GstCaps* caps = vartml::gst::picture_caps();
    for (guint i = 0; i < gst_caps_get_size(caps); ++i)
        EXPECT_FALSE(gst_structure_has_field(gst_caps_get_structure(caps, i), "tensors"));
    gst_caps_unref(caps);
}

TEST(InferCaps, ThatNoPictureHasAreAFaultOfThePreprocessing) {
    reset_fake_model();
    InferHarness t(make_infer(), nullptr);
    gst_harness_set_src_caps_str(t.h, (std::string(gray_caps) + ",pixel-aspect-ratio=0/1").c_str());
    GstMessage* message = gst_bus_pop_filtered(t.bus, GST_MESSAGE_ERROR);
    ASSERT_NE(message, nullptr);
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    EXPECT_TRUE(std::string(error->message)
                    .starts_with("Could not prepare the pre-processing: the pixel aspect ratio is"))
        << error->message;
    g_error_free(error);
    gst_message_unref(message);
}

}  // namespace
