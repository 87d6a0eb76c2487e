// SPDX-License-Identifier: Apache-2.0
// A device that misbehaves: runs that never end, end late, or end after the element is gone.
#include <thread>

#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::gst::InferenceStatus;

GstElement* impatient(unsigned depth = 2) {
    GstElement* element = make_infer();
    g_object_set(element, "async-depth", depth, "run-timeout", 20, nullptr);
    return element;
}

std::string error_id(GstBus* bus, GstMessageType type) {
    GstMessage* message = gst_bus_timed_pop_filtered(bus, 10 * GST_SECOND, type);
    if (!message) return "no message";
    const GstStructure* details = nullptr;
    if (type == GST_MESSAGE_ERROR) {
        gst_message_parse_error_details(message, &details);
    } else {
        gst_message_parse_warning_details(message, &details);
    }
    const std::string id = gst_structure_get_string(details, "id");
    gst_message_unref(message);
    return id;
}

// The memory of a lost run stays reserved on purpose, so these tests count neither runners nor
// leaks.
class InferDevice : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
};

TEST_F(InferDevice, ARunThatNeverEndsIsAFailedFrameAndTheNextOnesGoOn) {
    fake_model().lost = {1};
    InferHarness t(impatient());
    for (guint64 n = 0; n < 5; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        EXPECT_EQ(t.pull_out().status,
                  n == 1 ? InferenceStatus::failed : InferenceStatus::inferred);
    }
    EXPECT_EQ(error_id(t.bus, GST_MESSAGE_WARNING), "infer-device-lost");
    EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 0u);
    EXPECT_EQ(t.stat("frames"), t.stat("inferences") + t.stat("failed"));
}

TEST_F(InferDevice, ADeviceThatNeverAnswersEndsThePipelineWithAnError) {
    for (unsigned n = 0; n < 100; ++n) fake_model().lost.insert(n);
    InferHarness t(impatient());
    GstFlowReturn flow = GST_FLOW_OK;
    for (guint64 n = 0; n < 50 && flow == GST_FLOW_OK; ++n) flow = t.push(n);
    EXPECT_EQ(flow, GST_FLOW_ERROR);
    EXPECT_EQ(error_id(t.bus, GST_MESSAGE_ERROR), "infer-device-lost");
}

TEST_F(InferDevice, StoppingDoesNotWaitForEver) {
    fake_model().lost = {0, 1};
    {
        InferHarness t(impatient());
        ASSERT_EQ(t.push(0), GST_FLOW_OK);
        fake_model().wait_submitted(1);
        EXPECT_EQ(gst_element_set_state(t.element, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    }
    EXPECT_EQ(fake_model().live_runners, 1u) << "the device may still write there";
}

TEST_F(InferDevice, AResultThatComesTooLateIsNotUsed) {
    fake_model().hold = true;
    InferHarness t(impatient());
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    EXPECT_EQ(t.pull_out().status, InferenceStatus::failed);
    fake_model().release();
    {
        std::unique_lock lock(fake_model().mutex);
        fake_model().changed.wait(lock, [] { return fake_model().finished == 1; });
    }
    // The device is back: its slot and its tensors serve again.
    for (guint64 n = 1; n < 20; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        const auto out = t.pull_out();
        EXPECT_EQ(out.status, InferenceStatus::inferred);
        EXPECT_EQ(out.run, int(n));
    }
}

TEST_F(InferDevice, ABatchThatIsLostFailsAllItsFramesAndIsOneFailedRun) {
    fake_model().batch = 3;
    fake_model().lost = {0};
    InferHarness t(impatient(6));
    for (guint64 n = 0; n < 3; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    for (guint64 n = 0; n < 3; ++n) EXPECT_EQ(t.pull_out().status, InferenceStatus::failed);
    EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), 1u);
    EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 0u);
}

TEST_F(InferDevice, ADeadDeviceIsAnErrorAtDepthOneToo) {
    for (unsigned n = 0; n < 100; ++n) fake_model().lost.insert(n);
    InferHarness t(impatient(1));
    GstFlowReturn flow = GST_FLOW_OK;
    for (guint64 n = 0; n < 50 && flow == GST_FLOW_OK; ++n) flow = t.push(n);
    EXPECT_EQ(flow, GST_FLOW_ERROR);
    EXPECT_EQ(error_id(t.bus, GST_MESSAGE_ERROR), "infer-device-lost");
}

}  // namespace
