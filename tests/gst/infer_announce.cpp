// SPDX-License-Identifier: Apache-2.0
// Tensors in the caps of frames that leave vartmlinfer: which group they are of, what that asks of
// the frames, and what is said where downstream takes none of them.
#include <string>
#include <vector>

#include "gst/support/tensor_groups.h"
#include "gst/support/tensor_meta.h"
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::gst::has_tensor_groups;

// What GStreamer's decoders say in their pad templates, in short.
constexpr const char* takes_softmaxed =
    "video/x-raw,tensors=(structure)[tensorgroups,classification-generic-softmaxed-out="
    "(/uniquelist){(GstCaps)[tensor/strided,tensor-id=classification-generic-softmaxed-out,"
    "dims=<(int)[0,1],(int)[1,max]>,dims-order=(string)row-major,type={float32,uint8}]}]";
constexpr const char* takes_yolo =
    "video/x-raw,tensors=(structure)[tensorgroups,yolo-v8-out=(/uniquelist){(GstCaps)[tensor/"
    "strided,tensor-id=(string)yolo-v8-out,dims=<(int)1,(int)[1,max],(int)[1,max]>,"
    "dims-order=(string)col-major,type=(string)float32]}]";

constexpr const char* softmaxed =
    "[modelinfo]\nversion=1.0\nx-vartml-decoder=classify\n[scores]\ndir=output\n"
    "x-vartml-ends-in=softmax\n";
constexpr const char* yolo =
    "[modelinfo]\nversion=1.0\ngroup-id=yolo-v8-out\n[scores]\ndir=output\nid=yolo-v8-out\n"
    "dims-order=col-major\n";

class InferAnnounce : public testing::Test {
protected:
    void SetUp() override {
        if (!has_tensor_groups)
            GTEST_SKIP() << "GStreamer " << GST_VERSION_MAJOR << '.' << GST_VERSION_MINOR
                         << " has no tensors in caps; they come with 1.28";
        reset_fake_model();
    }
};

// What is in the caps of the frames that came out last.
struct Announced {
    std::string groups;
    std::string tensor;  // the first of the group, as text
};
Announced announced(InferHarness& t, const char* group) {
    GstCaps* caps = gst_pad_get_current_caps(t.h->sinkpad);
    if (!caps) return {};
    const GstStructure* s = gst_caps_get_structure(caps, 0);
    Announced found{vartml::gst::group_names(s), ""};
    const GValue* groups = gst_structure_get_value(s, "tensors");
    const GValue* list =
        groups ? gst_structure_get_value(gst_value_get_structure(groups), group) : nullptr;
    if (gchar* text = list ? gst_value_serialize(list) : nullptr) {
        found.tensor = text;
        std::erase(found.tensor, '\\');
        g_free(text);
    }
    gst_caps_unref(caps);
    return found;
}
std::string groups_of(InferHarness& t) {
    return announced(t, "").groups;
}

// Name and order of the first tensor on the next frame.
std::string tensor_of_next(InferHarness& t, guint64 number) {
    if (t.push(number) != GST_FLOW_OK) return "no flow";
    GstBuffer* buffer = t.pull();
    std::string text;
    vartml::gst::for_each_tensor_meta(buffer, [&](GstTensorMeta* meta) {
        const GstTensor* tensor = meta->tensors[0];
        text = std::string(g_quark_to_string(tensor->id)) +
               (tensor->dims_order == GST_TENSOR_DIM_ORDER_COL_MAJOR ? " by column" : "");
        return false;
    });
    gst_buffer_unref(buffer);
    return text;
}

std::string error_of(InferHarness& t) {
    GstMessage* message = gst_bus_pop_filtered(t.bus, GST_MESSAGE_ERROR);
    if (!message) return "";
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    const std::string text = error->message;
    g_error_free(error);
    gst_message_unref(message);
    return text;
}

constexpr const char* input_caps = "video/x-raw,format=GRAY8,width=16,height=12,framerate=30/1";

TEST_F(InferAnnounce, NamesOurGroupWhereAnythingIsTaken) {
    InferHarness t;
    EXPECT_EQ(tensor_of_next(t, 0), "scores");
    const Announced got = announced(t, "vartml-out");
    EXPECT_EQ(got.groups, "vartml-out");
    for (const char* part : {"tensor/strided", "tensor-id=(string)scores", "type=(string)float32",
                             "dims-order=(string)row-major", "dims=(int)< 1, 4 >"})
        EXPECT_NE(got.tensor.find(part), std::string::npos) << part << " in " << got.tensor;
}

TEST_F(InferAnnounce, CapsLeaveOnceForAllFrames) {
    InferHarness t;
    for (guint64 n = 0; n < 5; ++n) EXPECT_EQ(tensor_of_next(t, n), "scores");
    unsigned caps_events = 0;
    while (GstEvent* event = gst_harness_try_pull_event(t.h)) {
        caps_events += GST_EVENT_TYPE(event) == GST_EVENT_CAPS;
        gst_event_unref(event);
    }
    EXPECT_EQ(caps_events, 1u);
}

TEST_F(InferAnnounce, FollowsWhoComesToStandBehind) {
    fake_model().modelinfo = softmaxed;
    InferHarness t;
    EXPECT_EQ(tensor_of_next(t, 0), "scores");
    EXPECT_EQ(groups_of(t), "vartml-out");
    gst_harness_set_sink_caps_str(t.h, takes_softmaxed);
    EXPECT_EQ(tensor_of_next(t, 1), "classification-generic-softmaxed-out");
    EXPECT_EQ(groups_of(t), "classification-generic-softmaxed-out");
    gst_harness_set_sink_caps_str(t.h, "video/x-raw");
    EXPECT_EQ(tensor_of_next(t, 2), "scores");
    EXPECT_EQ(groups_of(t), "vartml-out");
}

TEST_F(InferAnnounce, TakesTheSidecarsGroupBeforeOurs) {
    fake_model().modelinfo =
        "[modelinfo]\nversion=1.0\ngroup-id=mine-out\n[scores]\ndir=output\nid=mine\n"
        "dims-order=col-major\n";
    InferHarness t;
    EXPECT_EQ(tensor_of_next(t, 0), "mine by column");
    EXPECT_EQ(groups_of(t), "mine-out");
}

// GStreamer's decoder would take them for pixels of the frame.
TEST_F(InferAnnounce, PlacesInPixelsOfTheInputNeedFramesOfItsSize) {
    fake_model().table = true;
    fake_model().modelinfo = yolo;
    InferHarness large;
    EXPECT_EQ(tensor_of_next(large, 0), "yolo-v8-out by column");
    EXPECT_EQ(groups_of(large), "vartml-out") << "32x24 frames of a 16x12 input";
    gst_harness_set_sink_caps_str(large.h, takes_yolo);
    EXPECT_EQ(large.push(1), GST_FLOW_ERROR);
    const std::string error = error_of(large);
    for (const char* part : {"input of 16x12", "frames are 32x24", "scale them before vartmlinfer"})
        EXPECT_NE(error.find(part), std::string::npos) << part << " in " << error;

    InferHarness same(make_infer(), input_caps);
    EXPECT_EQ(tensor_of_next(same, 0), "yolo-v8-out by column");
    EXPECT_EQ(groups_of(same), "yolo-v8-out");
    gst_harness_set_sink_caps_str(same.h, takes_yolo);
    EXPECT_EQ(tensor_of_next(same, 1), "yolo-v8-out by column");
    EXPECT_EQ(error_of(same), "");
}

TEST_F(InferAnnounce, UpstreamIsAskedForTheSizeAndSeesNoTensors) {
    fake_model().table = true;
    fake_model().modelinfo = yolo;
    InferHarness t;
    gst_harness_set_sink_caps_str(t.h, takes_yolo);
    GstCaps* caps = gst_pad_peer_query_caps(t.h->srcpad, nullptr);
    EXPECT_FALSE(vartml::gst::have_groups(caps));
    int width = 0, height = 0, n = 0, d = 0;
    const GstStructure* first = gst_caps_get_structure(caps, 0);
    EXPECT_TRUE(gst_structure_get(first, "width", G_TYPE_INT, &width, "height", G_TYPE_INT, &height,
                                  "pixel-aspect-ratio", GST_TYPE_FRACTION, &n, &d, nullptr));
    EXPECT_EQ(width, 16);
    EXPECT_EQ(height, 12);
    EXPECT_EQ(n, d);
    gst_caps_unref(caps);
    caps = gst_caps_from_string(input_caps);
    EXPECT_TRUE(gst_pad_peer_query_accept_caps(t.h->srcpad, caps));
    gst_caps_unref(caps);
}

TEST_F(InferAnnounce, RefusesDecodersOfOtherTensors) {
    InferHarness t;
    EXPECT_EQ(tensor_of_next(t, 0), "scores");
    gst_harness_set_sink_caps_str(t.h, takes_yolo);
    EXPECT_EQ(t.push(1), GST_FLOW_ERROR);
    const std::string error = error_of(t);
    for (const char* part : {"groups yolo-v8-out", "are of vartml-out", "vartmldecode"})
        EXPECT_NE(error.find(part), std::string::npos) << part << " in " << error;
}

TEST_F(InferAnnounce, RegionsAreForOurDecoderAlone) {
    fake_model().modelinfo = softmaxed;
    GstElement* element = make_infer();
    gst_util_set_object_arg(G_OBJECT(element), "inference-region", "roi");
    InferHarness t(element);
    gst_harness_set_sink_caps_str(t.h, takes_softmaxed);
    EXPECT_EQ(t.push(0), GST_FLOW_ERROR);
    EXPECT_NE(error_of(t).find("are of vartml-out"), std::string::npos);
}

TEST_F(InferAnnounce, AnotherModelHasOtherTensors) {
    fake_model().modelinfo =
        "[modelinfo]\nversion=1.0\ngroup-id=one-out\n[scores]\ndir=output\nid=one\n";
    InferHarness t;
    EXPECT_EQ(tensor_of_next(t, 0), "one");
    EXPECT_EQ(groups_of(t), "one-out");
    fake_model().modelinfo =
        "[modelinfo]\nversion=1.0\ngroup-id=two-out\n[scores]\ndir=output\nid=two\n";
    (void)t.messages(GST_MESSAGE_ELEMENT);
    g_object_set(t.element, "model", model_file("2.rai").c_str(), nullptr);
    bool loaded = false;
    while (!loaded) {
        GstMessage* message =
            gst_bus_timed_pop_filtered(t.bus, 10 * GST_SECOND, GST_MESSAGE_ELEMENT);
        ASSERT_NE(message, nullptr);
        loaded = gst_structure_has_name(gst_message_get_structure(message), "vartml-model-loaded");
        gst_message_unref(message);
    }
    EXPECT_EQ(tensor_of_next(t, 1), "two");
    EXPECT_EQ(groups_of(t), "two-out");
}

TEST_F(InferAnnounce, TensorsOfAnotherElementStay) {
    InferHarness t(make_infer(),
                   "video/x-raw,format=GRAY8,width=32,height=24,framerate=30/1,tensors=(structure)["
                   "tensorgroups,theirs-out=(/uniquelist){(GstCaps)[tensor/strided,tensor-id=x]}]");
    EXPECT_EQ(tensor_of_next(t, 0), "scores");
    EXPECT_EQ(groups_of(t), "theirs-out, vartml-out");
}

TEST_F(InferAnnounce, DeviceViewsAreNoPlainArrays) {
    GstElement* element = make_infer();
    gst_util_set_object_arg(G_OBJECT(element), "output-tensor-type", "hw");
    InferHarness t(element);
    EXPECT_EQ(tensor_of_next(t, 0), "scores");
    const Announced got = announced(t, "vartml-out");
    EXPECT_NE(got.tensor.find("tensor/x-vartml-hw"), std::string::npos) << got.tensor;
    EXPECT_NE(got.tensor.find("layout=(string)GENERIC"), std::string::npos) << got.tensor;
}

TEST_F(InferAnnounce, CapsWaitForAModelThatIsCompiledFirst) {
    GstElement* element = make_infer();
    g_object_set(element, "model", model_file(".onnx").c_str(), nullptr);
    InferHarness t(element);
    EXPECT_EQ(tensor_of_next(t, 0), "scores");
    EXPECT_EQ(groups_of(t), "vartml-out");
    EXPECT_EQ(fake_model().compiles, 1u);
}

// A flush while the model is compiled: the caps come with the first frame.
TEST_F(InferAnnounce, AFlushDoesNotLoseThem) {
    InferHarness t;
    gst_harness_push_event(t.h, gst_event_new_flush_start());
    gst_harness_push_event(t.h, gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(t.h, gst_event_new_segment(&segment));
    EXPECT_EQ(tensor_of_next(t, 0), "scores");
    EXPECT_EQ(groups_of(t), "vartml-out");
}

// What the src pad offers when asked, before there are frames.
TEST_F(InferAnnounce, ThePadTellsAllGroups) {
    fake_model().modelinfo = softmaxed;
    InferHarness t;
    GstCaps* caps = gst_pad_peer_query_caps(t.h->sinkpad, nullptr);
    std::string groups;
    for (guint i = 0; i < gst_caps_get_size(caps); ++i) {
        const std::string one = vartml::gst::group_names(gst_caps_get_structure(caps, i));
        if (groups.find(one) == std::string::npos) groups += one + " ";
    }
    EXPECT_EQ(groups, "vartml-out classification-generic-softmaxed-out ");
    gst_caps_unref(caps);
}

TEST(InferAnnounceNothing, CapsLeaveAsTheyCameWhereTheyCannotNameTensors) {
    if (has_tensor_groups) GTEST_SKIP() << "this GStreamer has tensors in caps";
    reset_fake_model();
    fake_model().modelinfo = yolo;
    InferHarness t;
    EXPECT_EQ(tensor_of_next(t, 0), "yolo-v8-out");
    GstCaps* caps = gst_pad_get_current_caps(t.h->sinkpad);
    GstCaps* came = gst_caps_from_string(gray_caps);
    EXPECT_TRUE(gst_caps_is_subset(caps, came));
    EXPECT_FALSE(gst_structure_has_field(gst_caps_get_structure(caps, 0), "tensors"));
    gst_caps_unref(came);
    gst_caps_unref(caps);
}

}  // namespace
