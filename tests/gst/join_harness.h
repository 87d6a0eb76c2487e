// SPDX-License-Identifier: Apache-2.0
// vartmlmetajoin with a branch of large pictures and one of small ones.
#pragma once
#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "gst/gstvartmlmetajoin.h"

namespace vartml::test {

inline constexpr char large[] = "video/x-raw,format=GRAY8,width=1920,height=1080,framerate=25/1";
inline constexpr char small[] = "video/x-raw,format=GRAY8,width=320,height=180,framerate=25/1";
inline constexpr GstClockTime step = 40 * GST_MSECOND;
using Box = std::array<int, 4>;

class MetaJoin : public testing::Test {
protected:
    void SetUp() override {
        element_ =
            GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_META_JOIN, nullptr)));
        bus_ = gst_bus_new();
        gst_element_set_bus(element_, bus_);
    }
    void TearDown() override {
        if (meta_) gst_harness_teardown(meta_);
        if (main_) gst_harness_teardown(main_);
        gst_element_set_state(element_, GST_STATE_NULL);
        gst_element_set_bus(element_, nullptr);
        gst_object_unref(element_);
        gst_object_unref(bus_);
    }
    void again() {
        TearDown();
        main_ = meta_ = nullptr;
        SetUp();
    }
    void set(const char* name, const char* value) {
        gst_util_set_object_arg(G_OBJECT(element_), name, value);
    }
    void open(const char* main_caps = large, const char* meta_caps = small) {
        main_ = gst_harness_new_with_element(element_, "sink_main", "src");
        meta_ = gst_harness_new_with_element(element_, "sink_meta", nullptr);
        for (GstHarness* h : {main_, meta_}) gst_harness_set_live(h, FALSE);
        gst_harness_set_src_caps_str(main_, main_caps);
        gst_harness_set_src_caps_str(meta_, meta_caps);
    }
    static GstBuffer* frame(GstClockTime pts) {
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 16, nullptr);
        GST_BUFFER_PTS(buffer) = pts;
        GST_BUFFER_DURATION(buffer) = step;
        return buffer;
    }
    static guint add_od(GstBuffer* buffer, const Box& box, float angle = 0) {
        GstAnalyticsODMtd od;
        EXPECT_TRUE(gst_analytics_relation_meta_add_oriented_od_mtd(
            gst_buffer_add_analytics_relation_meta(buffer), g_quark_from_string("cat"), box[0],
            box[1], box[2], box[3], angle, 0.5f, &od));
        return od.id;
    }
    void push_meta(GstClockTime pts, const Box& box = {10, 20, 30, 40}) {
        GstBuffer* buffer = frame(pts);
        add_od(buffer, box);
        EXPECT_EQ(gst_harness_push(meta_, buffer), GST_FLOW_OK);
    }
    // The boxes of a main frame after it has passed.
    static std::vector<Box> boxes_of(GstBuffer* buffer) {
        std::vector<Box> boxes;
        GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
        gpointer state = nullptr;
        GstAnalyticsMtd od;
        while (meta && gst_analytics_relation_meta_iterate(
                           meta, &state, gst_analytics_od_mtd_get_mtd_type(), &od)) {
            Box b;
            float angle, score;
            EXPECT_TRUE(gst_analytics_od_mtd_get_oriented_location(&od, &b[0], &b[1], &b[2], &b[3],
                                                                   &angle, &score));
            boxes.push_back(b);
        }
        return boxes;
    }
    std::vector<Box> push_main(GstClockTime pts) {
        EXPECT_EQ(gst_harness_push(main_, frame(pts)), GST_FLOW_OK);
        GstBuffer* out = gst_harness_pull(main_);
        std::vector<Box> boxes = boxes_of(out);
        EXPECT_EQ(GST_BUFFER_PTS(out), pts);
        gst_buffer_unref(out);
        return boxes;
    }
    guint64 stat(const char* name) {
        GstStructure* stats = nullptr;
        g_object_get(element_, "stats", &stats, nullptr);
        guint64 value = G_MAXUINT64;
        EXPECT_TRUE(gst_structure_get_uint64(stats, name, &value)) << name;
        gst_structure_free(stats);
        return value;
    }
    std::string id_of(GstMessageType type) {
        GstMessage* message = gst_bus_pop_filtered(bus_, type);
        if (!message) return "";
        const GstStructure* details = nullptr;
        type == GST_MESSAGE_ERROR ? gst_message_parse_error_details(message, &details)
                                  : gst_message_parse_warning_details(message, &details);
        const std::string id = gst_structure_get_string(details, "id");
        gst_message_unref(message);
        return id;
    }

    static constexpr Box scaled_ = {60, 120, 180, 240};  // of {10, 20, 30, 40}: 6 times
    GstElement* element_ = nullptr;
    GstBus* bus_ = nullptr;
    GstHarness *main_ = nullptr, *meta_ = nullptr;
};

}  // namespace vartml::test
