// SPDX-License-Identifier: Apache-2.0
// Which frames vartmloverlay takes, how it comes onto them, and what it says when it cannot.
#include <string>

#include "tests/gst/overlay_harness.h"

namespace {

using namespace overlay_test;

#define COMPOSITION "meta:GstVideoOverlayComposition"

struct Outcome {
    std::string end;  // "eos", or the id of the error
    std::string message, found, fix;
    std::string format;    // of the frames that left
    bool feature = false;  // of their caps
    guint64 attached = 0, blended = 0;
};

void add_result(GstElement*, GstBuffer* buffer, GstPad*, gpointer) {
    add_od(buffer, 10, 20, 30, 40);
}

// Answers in the place of downstream.
GstPadProbeReturn ask_for_composition(GstPad*, GstPadProbeInfo* info, gpointer) {
    GstQuery* query = GST_PAD_PROBE_INFO_QUERY(info);
    if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION) return GST_PAD_PROBE_OK;
    gst_query_add_allocation_meta(query, GST_VIDEO_OVERLAY_COMPOSITION_META_API_TYPE, nullptr);
    return GST_PAD_PROBE_HANDLED;
}

// "SOURCE ! vartmloverlay MODE ! REST", with a detection on each frame. With `meta`, downstream
// asks for compositions in the allocation query alone.
Outcome run_pipeline(const std::string& source, const std::string& mode, const std::string& rest,
                     bool meta = false) {
    const std::string line = source +
                             " ! identity name=add signal-handoffs=true ! vartmloverlay "
                             "name=overlay " +
                             mode + " ! " + rest;
    GError* error = nullptr;
    GstElement* pipeline = gst_parse_launch(line.c_str(), &error);
    EXPECT_EQ(error, nullptr) << error->message;
    GstElement* add = gst_bin_get_by_name(GST_BIN(pipeline), "add");
    GstElement* overlay = gst_bin_get_by_name(GST_BIN(pipeline), "overlay");
    g_signal_connect(add, "handoff", G_CALLBACK(add_result), nullptr);
    GstPad* src = gst_element_get_static_pad(overlay, "src");
    if (meta) {
        constexpr auto query = static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM |
                                                            GST_PAD_PROBE_TYPE_PUSH);
        gst_pad_add_probe(src, query, ask_for_composition, nullptr, nullptr);
    }
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstBus* bus = gst_element_get_bus(pipeline);
    GstMessage* message = gst_bus_timed_pop_filtered(
        bus, GST_CLOCK_TIME_NONE, static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
    Outcome outcome;
    outcome.end = "eos";
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        const GstStructure* details = nullptr;
        gst_message_parse_error(message, &error, nullptr);
        gst_message_parse_error_details(message, &details);
        const auto text = [&](const char* field) {
            const char* value = details ? gst_structure_get_string(details, field) : nullptr;
            return std::string(value ? value : "");
        };
        outcome.end = text("id");
        outcome.message = error->message;
        outcome.found = text("found");
        outcome.fix = text("fix");
        EXPECT_TRUE(outcome.end != "ovl-caps" ||
                    g_error_matches(error, GST_CORE_ERROR, GST_CORE_ERROR_NEGOTIATION));
        g_error_free(error);
    }
    gst_message_unref(message);
    if (GstCaps* caps = gst_pad_get_current_caps(src)) {
        const char* format = gst_structure_get_string(gst_caps_get_structure(caps, 0), "format");
        outcome.format = format ? format : "";
        outcome.feature = gst_caps_features_contains(gst_caps_get_features(caps, 0), COMPOSITION);
        gst_caps_unref(caps);
    }
    GstStructure* stats = nullptr;
    g_object_get(overlay, "stats", &stats, nullptr);
    gst_structure_get_uint64(stats, "attached", &outcome.attached);
    gst_structure_get_uint64(stats, "blended", &outcome.blended);
    gst_structure_free(stats);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    for (GstObject* object : {GST_OBJECT(bus), GST_OBJECT(src), GST_OBJECT(add),
                              GST_OBJECT(overlay), GST_OBJECT(pipeline)}) {
        gst_object_unref(object);
    }
    return outcome;
}

std::string frames(const std::string& caps) {
    return "videotestsrc num-buffers=2 ! capsfilter caps=\"" + caps +
           ",width=64,height=48,framerate=25/1\"";
}

struct Row {
    const char* why;
    const char *caps, *mode, *rest;
    bool meta;
    const char *end, *format;
    bool feature;
    guint64 attached, blended;
};
const char takes_composition[] =
    "capsfilter caps=\"video/x-raw(memory:SystemMemory," COMPOSITION ")\" ! fakesink";

const Row rows[] = {
    {"anything downstream: drawn", "video/x-raw,format=NV12", "", "fakesink", false, "eos", "NV12",
     false, 0, 2},
    {"asked to blend", "video/x-raw,format=NV12", "mode=blend", "fakesink", false, "eos", "NV12",
     false, 0, 2},
    {"downstream names the feature", "video/x-raw,format=NV12", "", takes_composition, false, "eos",
     "NV12", true, 2, 0},
    {"and takes any format with it", "video/x-raw,format=P010_10LE", "", takes_composition, false,
     "eos", "P010_10LE", true, 2, 0},
    {"downstream asks for the meta", "video/x-raw,format=NV12", "", "fakesink", true, "eos", "NV12",
     false, 2, 0},
    {"for any format", "video/x-raw,format=P010_10LE", "", "fakesink", true, "eos", "P010_10LE",
     false, 2, 0},
    {"but is not given it", "video/x-raw,format=NV12", "mode=blend", "fakesink", true, "eos",
     "NV12", false, 0, 2},
    {"attach where anything is taken", "video/x-raw,format=P010_10LE", "mode=attach", "fakesink",
     false, "eos", "P010_10LE", true, 2, 0},
    {"a format that cannot be drawn into", "video/x-raw,format=P010_10LE", "", "fakesink", false,
     "ovl-caps", "P010_10LE", false, 0, 0},
    {"the same, asked to blend", "video/x-raw,format=YUY2", "mode=blend", "fakesink", false,
     "ovl-caps", "", false, 0, 0},
    {"the same, although the meta is asked for", "video/x-raw,format=YUY2", "mode=blend",
     "fakesink", true, "ovl-caps", "", false, 0, 0},
    {"what is blurred is drawn, though the feature is named", "video/x-raw,format=NV12",
     "blur-classes=cat", "capsfilter caps=\"video/x-raw;video/x-raw(" COMPOSITION ")\" ! fakesink",
     false, "eos", "NV12", false, 0, 2},
    {"and refused where that cannot be", "video/x-raw,format=P010_10LE", "blur-classes=cat",
     "capsfilter caps=\"video/x-raw;video/x-raw(" COMPOSITION ")\" ! fakesink", false, "ovl-caps",
     "P010_10LE", false, 0, 0},
    {"attach where the feature is refused", "video/x-raw,format=NV12", "mode=attach",
     "capsfilter caps=video/x-raw ! fakesink", false, "ovl-caps", "NV12", false, 0, 0},
};

TEST(OverlayNegotiation, FollowsDownstreamAndTheMode) {
    for (const Row& row : rows) {
        const Outcome got = run_pipeline(frames(row.caps), row.mode, row.rest, row.meta);
        EXPECT_EQ(got.end, row.end) << row.why << ": " << got.message;
        if (*row.format) {
            EXPECT_EQ(got.format, row.format) << row.why;
        }
        EXPECT_EQ(got.feature, row.feature) << row.why;
        EXPECT_EQ(got.attached, row.attached) << row.why;
        EXPECT_EQ(got.blended, row.blended) << row.why;
    }
}

TEST(OverlayNegotiation, NamesTheFormatAndTheWayOut) {
    Outcome got = run_pipeline(frames("video/x-raw,format=P010_10LE"), "", "fakesink");
    EXPECT_EQ(
        got.message,
        "Could not draw on these frames: video format P010_10LE cannot be drawn into and "
        "downstream draws no overlay composition, expected one of NV12 NV21 I420 RGB BGR RGBA "
        "BGRA RGBx BGRx GRAY8; put videoconvert before the element");
    EXPECT_EQ(got.found, "video format P010_10LE");
    EXPECT_EQ(got.fix, "put videoconvert before the element");
    got = run_pipeline(frames("video/x-raw,format=NV12"), "mode=attach",
                       "capsfilter caps=video/x-raw ! fakesink");
    EXPECT_EQ(got.fix, "set mode=auto");
}

// Nothing passes that could not be blurred.
TEST(OverlayNegotiation, NamesWhatCannotBeBlurred) {
    const struct {
        std::string source;
        const char *mode, *rest, *end, *message;
    } refused[] = {
        {frames("video/x-raw,format=P010_10LE"), "", "fakesink", "ovl-caps",
         "video format P010_10LE cannot be drawn into and blur-classes has to write into it, "},
        {frames("video/x-raw,format=NV12"), "mode=attach", "fakesink", "ovl-blur",
         "property 'blur-classes' is 'cat', which writes into frames, and mode=attach never does; "
         "set mode=auto or mode=blend"},
    };
    for (const auto& row : refused) {
        const Outcome got =
            run_pipeline(row.source, std::string(row.mode) + " blur-classes=cat", row.rest);
        EXPECT_EQ(got.end, row.end) << row.message;
        EXPECT_NE(got.message.find(row.message), std::string::npos) << got.message;
    }
}

TEST(OverlayNegotiation, ConvertersInFrontMakeWhatCanBeDrawn) {
    const Outcome got =
        run_pipeline(frames("video/x-raw,format=P010_10LE") + " ! videoconvert", "", "fakesink");
    EXPECT_EQ(got.end, "eos") << got.message;
    EXPECT_EQ(got.blended, 2u);
}

TEST(OverlayNegotiation, SourcesChooseAFormatThatCanBeDrawn) {
    const Outcome got = run_pipeline("videotestsrc num-buffers=2", "", "fakesink");
    EXPECT_EQ(got.end, "eos") << got.message;
    EXPECT_EQ(got.blended, 2u);
}

TEST(OverlayNegotiation, TwoOfThemFollowEachOther) {
    const Outcome got =
        run_pipeline(frames("video/x-raw,format=I420"), "draw=boxes",
                     std::string("vartmloverlay draw=labels ! ") + takes_composition);
    EXPECT_EQ(got.end, "eos") << got.message;
    EXPECT_EQ(got.attached, 2u);
}

TEST_F(Overlay, RefusesASkeletonThatCannotBeRead) {
    const auto posted = [&](GstMessageType type) {
        GstMessage* message = gst_bus_pop_filtered(bus_, type);
        if (!message) return std::string();
        GError* error = nullptr;
        type == GST_MESSAGE_ERROR ? gst_message_parse_error(message, &error, nullptr)
                                  : gst_message_parse_warning(message, &error, nullptr);
        const std::string text = error->message;
        g_error_free(error);
        gst_message_unref(message);
        return text;
    };
    set("skeleton", "0-1,1-2");
    EXPECT_EQ(gst_element_set_state(element(), GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    EXPECT_NE(posted(GST_MESSAGE_ERROR).find("property 'skeleton' is '0-1,1-2', expected auto"),
              std::string::npos);
    gst_element_set_state(element(), GST_STATE_NULL);
    set("skeleton", "0-1;1-2");
    EXPECT_NE(gst_element_set_state(element(), GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    gst_element_set_state(element(), GST_STATE_NULL);
}

TEST_F(Overlay, DrawsIntoLinearDmaBufsAndRefusesTiledOnes) {
    struct DrmRow {
        const char *format, *end;
    };
    for (const DrmRow& row : {DrmRow{"NV12", ""},
                              {"AR24", ""},
                              {"NV12:0x0100000000000001", "ovl-caps"},
                              {"P010", "ovl-caps"}}) {
        set("draw", "boxes");
        set("mode", "blend");
        info_ = make_info(
            std::string(row.format) == "AR24" ? GST_VIDEO_FORMAT_BGRA : GST_VIDEO_FORMAT_NV12, 64,
            48);
        harness_ = gst_harness_new_with_element(element(), "sink", "src");
        const std::string caps =
            std::string("video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=") + row.format +
            ",width=64,height=48,framerate=25/1";
        // The harness's own pad could give anything else; what has no choice gets in.
        GstPad* pad = GST_PAD(gst_object_ref(harness_->srcpad));
        gst_pad_use_fixed_caps(pad);
        GstCaps* fixed = gst_caps_from_string(caps.c_str());
        gst_pad_push_event(pad, gst_event_new_caps(fixed));
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        gst_pad_push_event(pad, gst_event_new_segment(&segment));
        GstBuffer* in = frame();
        add_od(in, 10, 10, 30, 30);
        const GstFlowReturn flow = gst_pad_push(pad, in);
        EXPECT_EQ(flow, *row.end ? GST_FLOW_NOT_NEGOTIATED : GST_FLOW_OK) << row.format;
        EXPECT_EQ(stat("blended"), *row.end ? 0u : 1u);
        gst_caps_unref(fixed);
        gst_object_unref(pad);
        close();
    }
}

// A sink that crops, as fakevideosink says of itself, would let videocrop send whole frames
// through.
TEST_F(Overlay, OffersVideoMetaAndAsksDownstreamButForNoCropping) {
    open();
    gst_harness_add_propose_allocation_meta(harness_, GST_VIDEO_CROP_META_API_TYPE, nullptr);
    gst_harness_add_propose_allocation_meta(harness_, GST_PROTECTION_META_API_TYPE, nullptr);
    GstCaps* caps = gst_video_info_to_caps(&info_);
    GstQuery* query = gst_query_new_allocation(caps, TRUE);
    EXPECT_TRUE(gst_pad_peer_query(harness_->srcpad, query));
    EXPECT_TRUE(gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr));
    EXPECT_TRUE(gst_query_find_allocation_meta(query, GST_PROTECTION_META_API_TYPE, nullptr));
    EXPECT_FALSE(gst_query_find_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, nullptr));
    EXPECT_EQ(gst_query_get_n_allocation_pools(query), 0u);
    gst_query_unref(query);
    gst_caps_unref(caps);
}

class Registered : public testing::Environment {
public:
    void SetUp() override { GST_ELEMENT_REGISTER(vartmloverlay, nullptr); }
};
const auto* const registered = testing::AddGlobalTestEnvironment(new Registered);

}  // namespace
