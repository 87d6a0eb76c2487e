// SPDX-License-Identifier: Apache-2.0
// vartmlroi between a harness's pads: its regions as an encoder finds them.
#include "gst/gstvartmlroi.h"

#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/video/gstvideometa.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/gst_main.h"

namespace {

struct Object {
    int x, y, w, h;
    const char* label = "person";
    float angle = 0;
    std::optional<guint64> track = std::nullopt;
};
struct Found {
    std::string label;
    int id;
    guint x, y, w, h;
    int delta_qp;  // of roi/msdk; 99: none
    bool operator==(const Found&) const = default;
    friend void PrintTo(const Found& f, std::ostream* out) {
        *out << f.label << '#' << f.id << ' ' << f.x << ',' << f.y << ' ' << f.w << 'x' << f.h
             << " delta-qp " << f.delta_qp;
    }
};

class Roi : public testing::Test {
protected:
    void SetUp() override {
        element_ = GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_ROI, nullptr)));
        bus_ = gst_bus_new();
        gst_element_set_bus(element_, bus_);
    }
    void TearDown() override {
        if (harness_) gst_harness_teardown(harness_);
        gst_element_set_bus(element_, nullptr);
        gst_object_unref(element_);
        gst_object_unref(bus_);
    }
    void set(const char* name, const char* value) {
        gst_util_set_object_arg(G_OBJECT(element_), name, value);
    }
    void open() {
        harness_ = gst_harness_new_with_element(element_, "sink", "src");
        gst_harness_set_src_caps_str(harness_,
                                     "video/x-raw,format=GRAY8,width=200,height=100,"
                                     "framerate=10/1");
    }
    GstBuffer* frame(const std::vector<Object>& objects) {
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 200 * 100, nullptr);
        GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer);
        for (const Object& o : objects) {
            GstAnalyticsMtd od, track;
            gst_analytics_relation_meta_add_oriented_od_mtd(meta, g_quark_from_string(o.label), o.x,
                                                            o.y, o.w, o.h, o.angle, 0.9f, &od);
            if (!o.track) continue;
            gst_analytics_relation_meta_add_tracking_mtd(meta, *o.track, 0, &track);
            gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, od.id,
                                                     track.id);
        }
        return buffer;
    }
    // Those of the buffer that leaves, which is unreferenced.
    std::vector<Found> regions(GstBuffer* in) {
        EXPECT_EQ(gst_harness_push(harness_, in), GST_FLOW_OK);
        GstBuffer* out = gst_harness_pull(harness_);
        std::vector<Found> found;
        gpointer state = nullptr;
        while (GstMeta* meta = gst_buffer_iterate_meta_filtered(
                   out, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
            auto* roi = reinterpret_cast<GstVideoRegionOfInterestMeta*>(meta);
            GstStructure* s = gst_video_region_of_interest_meta_get_param(roi, "roi/msdk");
            int delta_qp = 99;
            if (s) gst_structure_get_int(s, "delta-qp", &delta_qp);
            found.push_back({g_quark_to_string(roi->roi_type), roi->id, roi->x, roi->y, roi->w,
                             roi->h, delta_qp});
        }
        gst_buffer_unref(out);
        return found;
    }

    GstElement* element_ = nullptr;
    GstBus* bus_ = nullptr;
    GstHarness* harness_ = nullptr;
};

TEST_F(Roi, EachDetectionIsARegionWithWhatEncodersRead) {
    open();
    EXPECT_EQ(
        regions(frame({{10, 20, 30, 40, "person", 0, 7}, {50, 60, 10, 10, "dog"}})),
        (std::vector<Found>{{"person", 7, 10, 20, 30, 40, -6}, {"dog", -1, 50, 60, 10, 10, -6}}));
    EXPECT_EQ(regions(frame({})), std::vector<Found>());
}

TEST_F(Roi, RegionsLieInTheFrame) {
    const struct {
        const char* why;
        Object object;
        std::vector<Found> want;
    } rows[] = {
        {"beyond the top left", {-10, -5, 30, 40}, {{"person", -1, 0, 0, 20, 35, -6}}},
        {"beyond the bottom right", {190, 90, 30, 40}, {{"person", -1, 190, 90, 10, 10, -6}}},
        {"outside", {300, 10, 30, 40}, {}},
        {"without size", {10, 10, 0, 40}, {}},
        {"turned by a right angle",
         {50, 40, 40, 20, "person", static_cast<float>(M_PI / 2)},
         {{"person", -1, 60, 30, 20, 40, -6}}},
        {"turned by no angle", {50, 40, 40, 20, "person", NAN}, {}},
    };
    open();
    for (const auto& row : rows) {
        auto found = regions(frame({row.object}));
        // A right angle is none in floats: a pixel on each side.
        for (Found& f : found) {
            if (!row.object.angle) continue;
            EXPECT_NEAR(f.x, row.want[0].x, 1);
            EXPECT_NEAR(f.y, row.want[0].y, 1);
            EXPECT_NEAR(f.w, row.want[0].w, 2);
            EXPECT_NEAR(f.h, row.want[0].h, 2);
            f = row.want[0];
        }
        EXPECT_EQ(found, row.want) << row.why;
    }
}

TEST_F(Roi, ClassesSizeAndParametersAreChosen) {
    set("classes", "face, plate");
    set("expand", "0.5");
    set("params", "roi/msdk,delta-qp=(int)12");
    open();
    EXPECT_EQ(regions(frame({{20, 20, 10, 20, "face"}, {100, 50, 10, 10, "person"}})),
              (std::vector<Found>{{"face", -1, 15, 10, 20, 40, 12}}));
    set("params", "");
    EXPECT_EQ(regions(frame({{20, 20, 10, 20, "face"}})),
              (std::vector<Found>{{"face", -1, 15, 10, 20, 40, 99}}));
}

TEST_F(Roi, RegionsThatAreThereStay) {
    open();
    GstBuffer* in = frame({{10, 20, 30, 40}});
    gst_buffer_add_video_region_of_interest_meta(in, "mine", 1, 2, 3, 4);
    EXPECT_EQ(regions(in), (std::vector<Found>{{"mine", 0, 1, 2, 3, 4, 99},
                                               {"person", -1, 10, 20, 30, 40, -6}}));
}

TEST_F(Roi, ParametersThatAreNoneAreRefused) {
    for (const char* wrong : {"delta-qp=3", "msdk,delta-qp=(int)3", "roi/msdk,delta-qp=(what)3"}) {
        set("params", wrong);
        EXPECT_EQ(gst_element_set_state(element_, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
        GstMessage* message = gst_bus_pop_filtered(bus_, GST_MESSAGE_ERROR);
        ASSERT_TRUE(message) << wrong;
        GError* error = nullptr;
        gst_message_parse_error(message, &error, nullptr);
        EXPECT_EQ(error->message, std::string("Could not make regions: property 'params' has '") +
                                      wrong +
                                      "', expected a structure such as roi/msdk,delta-qp=(int)-6");
        g_error_free(error);
        gst_message_unref(message);
        gst_element_set_state(element_, GST_STATE_NULL);
    }
}

}  // namespace
