// SPDX-License-Identifier: Apache-2.0
// What the tests of vartmltrack share: frames with detections, and the element in a harness.
#pragma once
#include "gst/gstvartmltrack.h"

#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include "gst/metadata/inference.h"
#include "tests/support/gst_main.h"

namespace track_test {

using namespace vartml::gst;

inline constexpr char frame_caps[] = "video/x-raw,format=GRAY8,width=320,height=200,framerate=30/1";
inline constexpr GstClockTime step = GST_SECOND / 30;

// A detection as it is put on a frame, and as it comes out.
struct Box {
    int x = 0, y = 100, w = 40, h = 40;
    float score = 0.9f;
    const char* label = "cat";
    float angle = 0;
};
struct Tracked {
    int x;
    std::string label;
    guint64 id = 0;  // 0 = without a track
    bool operator==(const Tracked&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Tracked& t) {
    return out << t.label << " at " << t.x << " is " << t.id;
}
using Found = std::vector<Tracked>;

inline guint add_box(GstBuffer* buffer, const Box& box) {
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer);
    GstAnalyticsODMtd od;
    EXPECT_TRUE(gst_analytics_relation_meta_add_oriented_od_mtd(
        meta, g_quark_from_string(box.label), box.x, box.y, box.w, box.h, box.angle, box.score,
        &od));
    return od.id;
}

// The handle of an OD's track; false where it has none.
inline bool track_of(GstAnalyticsRelationMeta* meta, guint od, GstAnalyticsMtd& track) {
    return gst_analytics_relation_meta_get_direct_related(
        meta, od, GST_ANALYTICS_REL_TYPE_RELATE_TO, gst_analytics_tracking_mtd_get_mtd_type(),
        nullptr, &track);
}

struct TrackInfo {
    guint64 id = 0;
    GstClockTime first_seen = 0, last_seen = 0;
    gboolean lost = FALSE;
};
inline TrackInfo info_of(const GstAnalyticsMtd& track) {
    TrackInfo i;
    EXPECT_TRUE(
        gst_analytics_tracking_mtd_get_info(&track, &i.id, &i.first_seen, &i.last_seen, &i.lost));
    return i;
}

// All detections on the frame; with `infos`, the tracks of those that have one.
inline Found found_on(GstBuffer* buffer, std::vector<TrackInfo>* infos = nullptr) {
    Found found;
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gpointer state = nullptr;
    GstAnalyticsMtd od, track;
    while (meta && gst_analytics_relation_meta_iterate(meta, &state,
                                                       gst_analytics_od_mtd_get_mtd_type(), &od)) {
        int x = 0, y, w, h;
        float score;
        EXPECT_TRUE(gst_analytics_od_mtd_get_location(&od, &x, &y, &w, &h, &score));
        Tracked t{x, g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&od))};
        if (track_of(meta, od.id, track)) {
            t.id = info_of(track).id;
            if (infos) infos->push_back(info_of(track));
        }
        found.push_back(t);
    }
    return found;
}

// The element with a bus, between a harness's pads.
class Track : public testing::Test {
protected:
    void TearDown() override {
        if (harness_) gst_harness_teardown(harness_);
        if (element_) gst_element_set_bus(element_, nullptr);  // its messages refer to it
        if (element_) gst_object_unref(element_);
        if (bus_) gst_object_unref(bus_);
    }
    GstElement* element() {
        if (!element_) {
            element_ =
                GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_TRACK, nullptr)));
            bus_ = gst_bus_new();
            gst_element_set_bus(element_, bus_);
        }
        return element_;
    }
    void set(const char* name, const char* value) {
        gst_util_set_object_arg(G_OBJECT(element()), name, value);
    }
    void open(const char* caps = frame_caps) {
        harness_ = gst_harness_new_with_element(element(), "sink", "src");
        gst_harness_set_src_caps_str(harness_, caps);
    }
    // The next frame, without metadata.
    GstBuffer* frame() {
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 320 * 200, nullptr);
        GST_BUFFER_PTS(buffer) = pts_;
        pts_ += step;
        return buffer;
    }
    GstBuffer* frame_with(const std::vector<Box>& boxes) {
        GstBuffer* buffer = frame();
        for (const Box& box : boxes) add_box(buffer, box);
        return buffer;
    }
    void add_record(GstBuffer* buffer, InferenceStatus status) {
        Inference inference;
        inference.status = status;
        EXPECT_TRUE(add_inference(buffer, inference, 0));
    }
    GstBuffer* run(GstBuffer* buffer) {
        EXPECT_EQ(gst_harness_push(harness_, buffer), GST_FLOW_OK);
        return gst_harness_pull(harness_);
    }
    Found track(GstBuffer* buffer, std::vector<TrackInfo>* infos = nullptr) {
        GstBuffer* out = run(buffer);
        Found found = found_on(out, infos);
        gst_buffer_unref(out);
        return found;
    }
    // A frame without record, with a record of an inference, and with one of none.
    Found see(const std::vector<Box>& boxes) { return track(frame_with(boxes)); }
    Found infer(const std::vector<Box>& boxes) {
        GstBuffer* buffer = frame_with(boxes);
        add_record(buffer, InferenceStatus::inferred);
        return track(buffer);
    }
    Found skip(InferenceStatus status = InferenceStatus::skipped_interval) {
        GstBuffer* buffer = frame();
        add_record(buffer, status);
        return track(buffer);
    }
    void flush() {
        gst_harness_push_event(harness_, gst_event_new_flush_start());
        gst_harness_push_event(harness_, gst_event_new_flush_stop(TRUE));
        push_segment();
    }
    void push_segment() {
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        gst_harness_push_event(harness_, gst_event_new_segment(&segment));
    }
    guint64 stat(const char* name) {
        GstStructure* stats = nullptr;
        g_object_get(element(), "stats", &stats, nullptr);
        guint64 value = G_MAXUINT64;
        EXPECT_TRUE(gst_structure_get_uint64(stats, name, &value)) << name;
        gst_structure_free(stats);
        return value;
    }

    GstHarness* harness_ = nullptr;
    GstElement* element_ = nullptr;
    GstBus* bus_ = nullptr;
    GstClockTime pts_ = 0;
};

}  // namespace track_test
