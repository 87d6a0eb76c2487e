// SPDX-License-Identifier: Apache-2.0
// vartmlzones between a harness's pads: what it reads, writes and posts, and what others make of
// it.
#include "gst/gstvartmltrack.h"
#include "gst/gstvartmlzones.h"

#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>

#include <optional>

#include <gtest/gtest.h>
#include <vartml/publish.h>
#include <nlohmann/json.hpp>

#include "gst/metadata/mtd.h"
#include "gst/publish/open.h"
#include "gst/publish/snapshot.h"
#include "gst/support/placement.h"
#include "tests/support/gst_main.h"

namespace {

using namespace vartml::gst;

constexpr char frame_caps[] = "video/x-raw,format=GRAY8,width=200,height=100,framerate=10/1";

struct Object {
    guint64 track;
    int x, y, w = 20, h = 40;  // its anchor is at x + 10, y + 40
    const char* label = "person";
};

class Zones : public testing::Test {
protected:
    void SetUp() override {
        element_ = GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_ZONES, nullptr)));
        bus_ = gst_bus_new();
        gst_element_set_bus(element_, bus_);
        set("leave-after", "0");
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
    void open(const char* caps = frame_caps) {
        harness_ = gst_harness_new_with_element(element_, "sink", "src");
        gst_harness_set_src_caps_str(harness_, caps);
    }
    GstBuffer* frame(const std::vector<Object>& objects) {
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 200 * 100, nullptr);
        GST_BUFFER_PTS(buffer) = pts_;
        pts_ += GST_SECOND / 10;
        GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer);
        for (const Object& o : objects) {
            GstAnalyticsMtd od, track;
            gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string(o.label), o.x, o.y,
                                                   o.w, o.h, 0.9f, &od);
            if (!o.track) continue;
            gst_analytics_relation_meta_add_tracking_mtd(meta, o.track, 0, &track);
            gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, od.id,
                                                     track.id);
        }
        return buffer;
    }
    // What comes out, nullptr after an error; the caller owns it.
    GstBuffer* run(const std::vector<Object>& objects) {
        return gst_harness_push(harness_, frame(objects)) == GST_FLOW_OK
                   ? gst_harness_pull(harness_)
                   : nullptr;
    }
    // "NAME inside/in/out" of each zone on the frame, then "KIND track@zone" of each visit.
    static std::string said(GstBuffer* buffer) {
        std::string all;
        GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
        gpointer state = nullptr;
        GstAnalyticsMtd mtd;
        while (
            gst_analytics_relation_meta_iterate(meta, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
            if (const auto zone = get_zone(mtd)) {
                all += std::string(g_quark_to_string(zone->name)) + " " +
                       std::to_string(zone->counts.inside) + "/" + std::to_string(zone->counts.in) +
                       "/" + std::to_string(zone->counts.out) + "; ";
            } else if (const auto visit = get_zone_visit(mtd)) {
                all += std::string(to_string(visit->kind)) + " " + std::to_string(visit->track) +
                       "@" + g_quark_to_string(visit->zone) + "; ";
            }
        }
        gst_buffer_unref(buffer);
        return all;
    }
    // The next message of a type: an event's fields, or an error's property and sentence.
    std::string pop(GstMessageType type) {
        GstMessage* message = gst_bus_pop_filtered(bus_, type);
        if (!message) return "";
        std::string text;
        if (type == GST_MESSAGE_ELEMENT) {
            gchar* all = gst_structure_to_string(gst_message_get_structure(message));
            text = all;
            g_free(all);
        } else {
            GError* error = nullptr;
            const GstStructure* details = nullptr;
            if (type == GST_MESSAGE_ERROR) {
                gst_message_parse_error(message, &error, nullptr);
                gst_message_parse_error_details(message, &details);
            } else {
                gst_message_parse_warning(message, &error, nullptr);
                gst_message_parse_warning_details(message, &details);
            }
            text = std::string(gst_structure_get_string(details, "id")) + ": " + error->message;
            g_error_free(error);
        }
        gst_message_unref(message);
        return text;
    }

    GstElement* element_ = nullptr;
    GstBus* bus_ = nullptr;
    GstHarness* harness_ = nullptr;
    GstClockTime pts_ = GST_SECOND;
};

TEST_F(Zones, CountsTracksByWhereTheyStand) {
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1");  // 0,50 to 100,100
    set("lines", "gate=0.5,0 0.5,1");  // upright at 100, from the top: left is the right
    open();
    EXPECT_EQ(said(run({{1, 120, 30}, {0, 30, 30}})), "room 0/0/0; gate 0/0/0; ");
    EXPECT_EQ(said(run({{1, 80, 30}})), "room 1/1/0; gate 0/1/0; enter 1@room; in 1@gate; ");
    EXPECT_EQ(said(run({{1, 70, 30}, {2, 10, 5}})), "room 1/1/0; gate 0/1/0; inside 1@room; ");
    EXPECT_EQ(said(run({{1, 130, 30}})), "room 0/1/1; gate 0/1/1; leave 1@room; out 1@gate; ");
}

TEST_F(Zones, TakesPixelsAnchorsAndClasses) {
    set("zones", "room=0,50 100,50 100,100 0,100");
    set("units", "pixels");
    set("classes", "person");
    open();
    EXPECT_EQ(said(run({{1, 30, 20}, {2, 50, 20, 20, 40, "car"}})), "room 1/1/0; enter 1@room; ");
    set("anchor", "centre");  // at 40, 40
    EXPECT_EQ(said(run({{1, 30, 20}})), "room 0/1/1; leave 1@room; ");
    set("anchor", "top");
    EXPECT_EQ(said(run({{1, 30, 50}})), "room 1/2/1; enter 1@room; ");
}

// Anchors of boxes that end at a border of the frame, or beyond it.
TEST_F(Zones, ReachToTheBordersOfTheFrame) {
    set("zones", "all=0,0 1,0 1,1 0,1");
    set("lines", "gate=0.5,0 0.5,1");
    open();
    EXPECT_EQ(said(run({{1, 110, 60}})), "all 1/1/0; gate 0/0/0; enter 1@all; ");
    EXPECT_EQ(said(run({{1, 70, 60}})), "all 1/1/0; gate 0/1/0; inside 1@all; in 1@gate; ");
    EXPECT_EQ(said(run({{1, 110, 70}})), "all 1/1/0; gate 0/1/1; inside 1@all; out 1@gate; ");
    EXPECT_EQ(said(run({{1, 190, 60}})), "all 1/1/0; gate 0/1/1; inside 1@all; ");
    EXPECT_EQ(said(run({{1, -10, -40}})), "all 1/1/0; gate 0/2/1; inside 1@all; in 1@gate; ");
}

TEST_F(Zones, PostsAMessagePerEvent) {
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1");
    open();
    for (const int x : {10, 20, 150}) gst_buffer_unref(run({{7, x, 30}}));
    EXPECT_EQ(pop(GST_MESSAGE_ELEMENT),
              "vartml-zone-event, zone=(string)room, event=(string)enter, track=(guint64)7, "
              "time=(guint64)1000000000, inside=(guint64)1, in=(guint64)1, out=(guint64)0, "
              "label=(string)person;");
    EXPECT_EQ(pop(GST_MESSAGE_ELEMENT),
              "vartml-zone-event, zone=(string)room, event=(string)leave, track=(guint64)7, "
              "time=(guint64)1200000000, inside=(guint64)0, in=(guint64)1, out=(guint64)1, "
              "label=(string)person, dwell=(guint64)100000000;");
    EXPECT_EQ(pop(GST_MESSAGE_ELEMENT), "");
}

TEST_F(Zones, MayChangeWhilePlaying) {
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1");
    open();
    EXPECT_EQ(said(run({{1, 30, 30}})), "room 1/1/0; enter 1@room; ");
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1; all=0,0 1,0 1,1 0,1");
    EXPECT_EQ(said(run({{1, 30, 30}})), "room 1/1/0; all 1/1/0; inside 1@room; enter 1@all; ");
}

// The same scene in fewer pixels: who stands still crosses no line, and stays where he is.
TEST_F(Zones, GoOnWithFramesOfAnotherSize) {
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1");
    set("lines", "gate=0.48,1 0.48,0");  // at 96, then at 48
    open();
    EXPECT_EQ(said(run({{1, 80, 30}})), "room 1/1/0; gate 0/0/0; enter 1@room; ");  // at 90, 70
    gst_harness_set_src_caps_str(harness_, "video/x-raw,format=GRAY8,width=100,height=50");
    GstBuffer* out = run({{1, 40, 15, 10, 20}});  // at 45, 35
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out);
    gpointer state = nullptr;
    GstAnalyticsMtd mtd;
    std::optional<Zone> zone;
    while (!zone &&
           gst_analytics_relation_meta_iterate(meta, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd))
        zone = get_zone(mtd);
    ASSERT_TRUE(zone);
    EXPECT_EQ(zone->points[2], (vartml::ZonePoint{50, 50}));  // in pixels of this frame
    EXPECT_EQ(said(out), "room 1/1/0; gate 0/0/0; inside 1@room; ");
    EXPECT_EQ(said(run({{1, 44, 15, 10, 20}})),
              "room 1/1/0; gate 0/1/0; inside 1@room; in 1@gate; ");
}

// Those in pixels stay at their pixels, which show something else; who stood there comes along.
TEST_F(Zones, InPixelsAreCrossedByNobodyWhoStandsStill) {
    set("lines", "gate=60,100 60,0");
    set("units", "pixels");
    open();
    EXPECT_EQ(said(run({{1, 80, 30}})), "gate 0/0/0; ");  // at 90, 70
    gst_harness_set_src_caps_str(harness_, "video/x-raw,format=GRAY8,width=100,height=100");
    EXPECT_EQ(said(run({{1, 40, 30, 10, 40}})), "gate 0/0/0; ");  // at 45, 70
    set("lines", "gate=0.5,1 0.5,0");
    set("units", "relative");
    EXPECT_EQ(said(run({{1, 40, 30, 10, 40}})), "gate 0/0/0; ");
    EXPECT_EQ(said(run({{1, 50, 30, 10, 40}})), "gate 0/1/0; in 1@gate; ");
}

// Who stands still crosses no line where another point of it is looked at.
TEST_F(Zones, MayHaveAnotherAnchorWhilePlaying) {
    set("lines", "gate=0,0.5 1,0.5");  // at 50; the anchors are at 70 and 30
    open();
    gst_buffer_unref(run({{1, 30, 30}}));
    set("anchor", "top");
    EXPECT_EQ(said(run({{1, 30, 30}})), "gate 0/0/0; ");
    EXPECT_EQ(said(run({{1, 30, 60}})), "gate 0/1/0; in 1@gate; ");
}

// Those of two trackers, which count from 1 each.
TEST_F(Zones, KnowATrackByItsLabelToo) {
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1");
    open();
    const Object person = {1, 30, 30}, car = {1, 50, 30, 20, 40, "car"};
    EXPECT_EQ(said(run({person, car})), "room 2/2/0; enter 1@room; enter 1@room; ");
    EXPECT_EQ(said(run({car})), "room 1/2/1; inside 1@room; leave 1@room; ");
    for (int i = 0; i < 2; ++i) pop(GST_MESSAGE_ELEMENT);
    const std::string left = pop(GST_MESSAGE_ELEMENT);
    EXPECT_NE(left.find("event=(string)leave"), std::string::npos) << left;
    EXPECT_NE(left.find("label=(string)person"), std::string::npos) << left;
}

TEST_F(Zones, KnowATrackThatMayChangeItsLabelByItsNumber) {
    ASSERT_TRUE(GST_ELEMENT_REGISTER(vartmltrack, nullptr));
    ASSERT_TRUE(GST_ELEMENT_REGISTER(vartmlzones, nullptr));
    GstElement* both = gst_parse_bin_from_description(
        "vartmltrack per-class=false ! vartmlzones zones=\"room=0,0.5 0.5,0.5 0.5,1 0,1\"", TRUE,
        nullptr);
    ASSERT_TRUE(both);
    gst_object_ref_sink(both);
    harness_ = gst_harness_new_with_element(both, "sink", "src");
    gst_object_unref(both);
    gst_harness_set_src_caps_str(harness_, frame_caps);
    EXPECT_EQ(said(run({{1, 30, 30}})), "room 1/1/0; enter 1@room; ");
    EXPECT_EQ(said(run({{1, 30, 30, 20, 40, "car"}})), "room 1/1/0; inside 1@room; ");
}

TEST_F(Zones, VisitsEndWithTheStream) {
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1");
    open();
    for (int i = 0; i < 2; ++i) gst_buffer_unref(run({{1, 30, 30}}));
    pop(GST_MESSAGE_ELEMENT);
    gst_harness_push_event(harness_, gst_event_new_eos());
    const std::string left = pop(GST_MESSAGE_ELEMENT);
    EXPECT_NE(left.find("event=(string)leave, track=(guint64)1"), std::string::npos) << left;
}

TEST_F(Zones, CountGoOnOverAFlushAndVisitsEnd) {
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1");
    open();
    gst_buffer_unref(run({{1, 30, 30}}));
    gst_buffer_unref(run({{1, 30, 30}}));
    pop(GST_MESSAGE_ELEMENT);
    gst_harness_push_event(harness_, gst_event_new_flush_start());
    gst_harness_push_event(harness_, gst_event_new_flush_stop(TRUE));
    const std::string left = pop(GST_MESSAGE_ELEMENT);  // with the time of the last frame
    EXPECT_NE(left.find("event=(string)leave, track=(guint64)1, time=(guint64)1100000000"),
              std::string::npos)
        << left;
    EXPECT_NE(left.find("dwell=(guint64)100000000"), std::string::npos) << left;
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(harness_, gst_event_new_segment(&segment));
    EXPECT_EQ(said(run({{1, 30, 30}})), "room 1/2/1; enter 1@room; ");
    GstStructure* stats = nullptr;
    g_object_get(element_, "stats", &stats, nullptr);
    const GValue* room = gst_value_array_get_value(gst_structure_get_value(stats, "zones"), 0);
    guint64 entered = 0;
    gst_structure_get_uint64(gst_value_get_structure(room), "in", &entered);
    EXPECT_EQ(entered, 2u);
    gst_structure_free(stats);
}

TEST_F(Zones, PassTimeInASegmentThatPlaysBackwards) {
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1");
    open();
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.rate = -1;
    segment.stop = segment.position = GST_SECOND;
    gst_harness_push_event(harness_, gst_event_new_segment(&segment));
    for (int i = 0; i < 3; ++i) {
        pts_ = GST_SECOND - GstClockTime(i) * GST_SECOND / 10;
        gst_buffer_unref(run({{1, 30, 30}}));
    }
    pts_ = GST_SECOND * 7 / 10;
    EXPECT_EQ(said(run({})), "room 0/1/1; leave 1@room; ");
    pop(GST_MESSAGE_ELEMENT);
    const std::string left = pop(GST_MESSAGE_ELEMENT);
    EXPECT_NE(left.find("time=(guint64)700000000"), std::string::npos) << left;
    EXPECT_NE(left.find("dwell=(guint64)200000000"), std::string::npos) << left;
}

TEST_F(Zones, TakeFramesWithoutTimeToLastAsTheCapsSay) {
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1");
    open();
    for (const std::vector<Object>& objects :
         std::initializer_list<std::vector<Object>>{{{1, 30, 30}}, {{1, 30, 30}}, {}}) {
        GstBuffer* in = frame(objects);
        GST_BUFFER_PTS(in) = GST_CLOCK_TIME_NONE;
        ASSERT_EQ(gst_harness_push(harness_, in), GST_FLOW_OK);
        gst_buffer_unref(gst_harness_pull(harness_));
    }
    pop(GST_MESSAGE_ELEMENT);
    const std::string left = pop(GST_MESSAGE_ELEMENT);
    EXPECT_NE(left.find("dwell=(guint64)100000000"), std::string::npos) << left;
}

// The time that they made up says nothing of the next stream.
TEST_F(Zones, TakeTheTimeOfAStreamBehindOneWithoutTime) {
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1");
    open();
    for (int i = 0; i < 100; ++i) {
        GstBuffer* in = frame({});
        GST_BUFFER_PTS(in) = GST_CLOCK_TIME_NONE;
        ASSERT_EQ(gst_harness_push(harness_, in), GST_FLOW_OK);
        gst_buffer_unref(gst_harness_pull(harness_));
    }
    gst_harness_push_event(harness_, gst_event_new_stream_start("another"));
    gst_harness_set_src_caps_str(harness_, frame_caps);
    pts_ = 0;
    for (int i = 0; i < 3; ++i) gst_buffer_unref(run({{1, 30, 30}}));
    gst_buffer_unref(run({}));
    pop(GST_MESSAGE_ELEMENT);
    const std::string left = pop(GST_MESSAGE_ELEMENT);
    EXPECT_NE(left.find("dwell=(guint64)200000000"), std::string::npos) << left;
}

TEST_F(Zones, AreInTheRecordsOfThePublisher) {
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1");
    set("lines", "gate=0.5,0 0.5,1");
    open();
    SnapshotReader reader;
    const auto record_of = [&](const std::vector<Object>& objects) {
        GstBuffer* out = run(objects);
        vartml::FrameRecord record;
        reader.read(out, PublishSettings().include, record);
        gst_buffer_unref(out);
        vartml::PublishLine line;
        format_frame(record, "run", line);
        EXPECT_EQ(record.empty(), objects.empty() && record.happened.empty());
        return nlohmann::json::parse(line.text);
    };
    record_of({{7, 120, 30}});
    const auto json = record_of({{7, 80, 30}});
    EXPECT_EQ(json["zones"], nlohmann::json::parse(R"([
        {"zone": "room", "kind": "zone", "inside": 1, "in": 1, "out": 0, "longest_ms": 0},
        {"zone": "gate", "kind": "line", "in": 1, "out": 0}])"));
    EXPECT_EQ(json["zone_events"], nlohmann::json::parse(R"([
        {"event": "enter", "zone": "room", "track": 7, "label": "person"},
        {"event": "in", "zone": "gate", "track": 7, "label": "person"}])"));
    EXPECT_EQ(json["objects"][0]["zones"],
              nlohmann::json::parse(R"([{"zone": "room", "dwell_ms": 0}])"));
    EXPECT_EQ(record_of({{7, 70, 30}})["objects"][0]["zones"],
              nlohmann::json::parse(R"([{"zone": "room", "dwell_ms": 100}])"));
    EXPECT_EQ(record_of({})["zone_events"], nlohmann::json::parse(R"([
        {"event": "leave", "zone": "room", "track": 7, "label": "person", "dwell_ms": 100}])"));
    EXPECT_FALSE(record_of({}).contains("zone_events"));
}

TEST_F(Zones, GoWithFramesThatAreScaledOrJoined) {
    set("zones", "room=0,0.5 0.5,0.5 0.5,1 0,1");
    open();
    GstBuffer* out = run({{7, 30, 30}});
    GstBuffer* kept = keep_metadata(out);
    GstBuffer* main = gst_buffer_new_allocate(nullptr, 4, nullptr);
    add_metadata(kept, {200, 100, 400, 400, 0, 0, 400, 400}, main);
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(main);
    gpointer state = nullptr;
    GstAnalyticsMtd mtd;
    unsigned zones = 0, visits = 0;
    while (gst_analytics_relation_meta_iterate(meta, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
        if (const auto zone = get_zone(mtd)) {
            ++zones;
            EXPECT_EQ(zone->points[2], (vartml::ZonePoint{200, 400}));
            EXPECT_EQ(zone->counts.inside, 1u);
        }
        visits += get_zone_visit(mtd).has_value();
    }
    EXPECT_EQ(zones, 1u);
    EXPECT_EQ(visits, 1u);
    gst_buffer_unref(main);
    gst_buffer_unref(kept);
    gst_buffer_unref(out);
}

TEST_F(Zones, ThatAreNoneAreRefusedInOneSentence) {
    struct Case {
        const char *property, *value, *want;
    } starts[] = {
        {"zones", "room=0,0 1,0",
         "zones-shape: Could not make out the zones: property 'zones': 'room=0,0 1,0' has 2 "
         "points; "
         "expected NAME=X,Y X,Y X,Y of three points or more, zones separated by semicolons"},
        {"lines", "gate=1",
         "zones-shape: Could not make out the zones: property 'lines': 'gate=1' has '1' where a "
         "point should be; expected NAME=X,Y X,Y of two points or more, lines separated by "
         "semicolons"},
    };
    for (const Case& c : starts) {
        set("zones", ""), set("lines", "");
        set(c.property, c.value);
        EXPECT_EQ(gst_element_set_state(element_, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
        EXPECT_EQ(pop(GST_MESSAGE_ERROR), c.want);
        gst_element_set_state(element_, GST_STATE_NULL);
    }
    set("zones", "a=0,0 1,0 1,1"), set("lines", "a=0,0 1,1");
    EXPECT_EQ(gst_element_set_state(element_, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    EXPECT_EQ(pop(GST_MESSAGE_ERROR),
              "zones-shape: Could not make out the zones: property 'lines': 'a' is the name of a "
              "zone, too; expected a name of its own");
    gst_element_set_state(element_, GST_STATE_NULL);
}

TEST_F(Zones, BeyondTheFrameAreRefused) {
    for (const char* units : {"relative", "pixels"}) {
        set("zones", units == std::string("pixels") ? "a=0,0 201,0 1,1" : "a=0,0 1.5,0 1,1");
        set("units", units);
        if (!harness_) open();
        EXPECT_EQ(run({}), nullptr);
        EXPECT_EQ(
            pop(GST_MESSAGE_ERROR),
            units == std::string("pixels")
                ? "zones-shape: Could not make out the zones: property 'zones': 'a' has the "
                  "point 201,0, expected 0,0 to 200,100 of units=pixels; units=relative takes "
                  "parts of the frame"
                : "zones-shape: Could not make out the zones: property 'zones': 'a' has the "
                  "point 1.5,0, expected 0,0 to 1,1 of units=relative; units=pixels takes "
                  "pixels");
    }
}

TEST_F(Zones, FramesWithoutTracksAreToldOnce) {
    open();
    for (int i = 0; i < 40; ++i) gst_buffer_unref(run({}));
    EXPECT_TRUE(pop(GST_MESSAGE_WARNING).starts_with("zones-idle: "));
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "");
}

}  // namespace
