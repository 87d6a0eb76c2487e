// SPDX-License-Identifier: Apache-2.0
#include "gst/gstvartmlpublish.h"

#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gst/metadata/inference.h"
#include "gst/metadata/mtd.h"
#include "tests/support/gst_main.h"
#include "tests/support/process_state.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace vartml::gst;
using namespace vartml::test;
using nlohmann::json;

constexpr char frame_caps[] = "video/x-raw,format=GRAY8,width=320,height=200,framerate=30/1";

class Publish : public testing::Test {
protected:
    void SetUp() override {
        element_ = GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_PUBLISH, nullptr)));
        bus_ = gst_bus_new();
        gst_element_set_bus(element_, bus_);
        set("method", "file");
        set("location", file_.c_str());
    }
    void TearDown() override {
        if (harness_) gst_harness_teardown(harness_);
        gst_element_set_state(element_, GST_STATE_NULL);
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
    GstBuffer* frame() {
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 320 * 200, nullptr);
        GST_BUFFER_PTS(buffer) = frames_++ * GST_SECOND / 30;
        return buffer;
    }
    static GstAnalyticsRelationMeta* meta_of(GstBuffer* buffer) {
        return gst_buffer_add_analytics_relation_meta(buffer);
    }
    static guint add_od(GstBuffer* buffer, const char* label, int x = 10, float angle = 0) {
        GstAnalyticsODMtd od;
        EXPECT_TRUE(gst_analytics_relation_meta_add_oriented_od_mtd(
            meta_of(buffer), g_quark_from_string(label), x, 20, 30, 40, angle, 0.5f, &od));
        return od.id;
    }
    static guint add_cls(GstBuffer* buffer, const char* label, float score) {
        GstAnalyticsClsMtd cls;
        EXPECT_TRUE(gst_analytics_relation_meta_add_one_cls_mtd(meta_of(buffer), score,
                                                                g_quark_from_string(label), &cls));
        return cls.id;
    }
    static guint add_mask(GstBuffer* buffer, std::vector<guint8> pixels, guint width,
                          std::vector<guint> regions) {
        const auto height = static_cast<guint>(pixels.size()) / width;
        GstBuffer* mask = gst_buffer_new_memdup(pixels.data(), pixels.size());
        const gsize offsets[GST_VIDEO_MAX_PLANES] = {0};
        const gint strides[GST_VIDEO_MAX_PLANES] = {static_cast<gint>(width)};
        gst_buffer_add_video_meta_full(mask, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8,
                                       width, height, 1, offsets, strides);
        GstAnalyticsMtd mtd;
        EXPECT_TRUE(gst_analytics_relation_meta_add_segmentation_mtd(
            meta_of(buffer), mask, GST_SEGMENTATION_TYPE_SEMANTIC, regions.size(), regions.data(),
            1, 2, 3, 4, &mtd));
        return mtd.id;
    }
    static void relate(GstBuffer* buffer, guint from, guint to,
                       GstAnalyticsRelTypes type = GST_ANALYTICS_REL_TYPE_RELATE_TO) {
        gst_analytics_relation_meta_set_relation(meta_of(buffer), type, from, to);
    }
    static guint infer(GstBuffer* buffer, const char* model, std::vector<std::string> labels) {
        Inference inference;
        auto record = std::make_shared<InferenceRecord>();
        record->infer_id = "infer0", record->model = model, record->model_hash = "abcd";
        record->model_epoch = 1;
        record->model_info.labels = std::move(labels);
        inference.record = record;
        inference.stream_id = "camera";
        inference.frame_seq = 77;
        inference.pre_us = 1, inference.wait_us = 2, inference.run_us = 3, inference.total_us = 6;
        inference.batch_fill = 1;
        EXPECT_TRUE(add_inference(buffer, inference, 0));
        GstAnalyticsMtd mtd;
        unsigned count = 0;
        while (get_inference(buffer, count, &mtd)) ++count;
        return mtd.id;
    }
    void push(GstBuffer* buffer) {
        gst_buffer_ref(buffer);
        EXPECT_EQ(gst_harness_push(harness_, buffer), GST_FLOW_OK);
        GstBuffer* out = gst_harness_pull(harness_);
        EXPECT_EQ(out, buffer);  // the same, whoever else has it
        gst_buffer_unref(out);
        gst_buffer_unref(buffer);
    }
    // What was written, once the stream has ended.
    std::vector<json> records() {
        gst_harness_push_event(harness_, gst_event_new_eos());
        std::vector<json> records;
        std::istringstream text(slurp(file_));
        for (std::string line; std::getline(text, line);) records.push_back(json::parse(line));
        return records;
    }
    json record_of(GstBuffer* buffer) {
        if (!harness_) open();
        push(buffer);
        const auto all = records();
        EXPECT_EQ(all.size(), 1u);
        return all.empty() ? json() : all[0];
    }
    guint64 stat(const char* name) {
        GstStructure* stats = nullptr;
        g_object_get(element_, "stats", &stats, nullptr);
        guint64 value = G_MAXUINT64;
        EXPECT_TRUE(gst_structure_get_uint64(stats, name, &value)) << name;
        gst_structure_free(stats);
        return value;
    }
    // Id of the error on the bus, its code, and what it says.
    struct Said {
        std::string id, text;
        GQuark domain = 0;
        int code = 0;
    };
    Said error() {
        GstMessage* message =
            gst_bus_timed_pop_filtered(bus_, GST_CLOCK_TIME_NONE, GST_MESSAGE_ERROR);
        GError* error = nullptr;
        const GstStructure* details = nullptr;
        gst_message_parse_error(message, &error, nullptr);
        gst_message_parse_error_details(message, &details);
        Said said{gst_structure_get_string(details, "id"), error->message, error->domain,
                  error->code};
        g_error_free(error);
        gst_message_unref(message);
        return said;
    }
    std::vector<std::string> states() {
        std::vector<std::string> states;
        while (GstMessage* message = gst_bus_pop_filtered(bus_, GST_MESSAGE_ELEMENT)) {
            const GstStructure* s = gst_message_get_structure(message);
            EXPECT_TRUE(gst_structure_has_name(s, "vartml-publish-state"));
            guint64 number;
            EXPECT_TRUE(gst_structure_get_uint64(s, "spool-records", &number));
            EXPECT_TRUE(gst_structure_get_uint64(s, "spool-bytes", &number));
            EXPECT_NE(gst_structure_get_string(s, "reason"), nullptr);
            states.push_back(gst_structure_get_string(s, "state"));
            gst_message_unref(message);
        }
        return states;
    }

    TempDir temp_;
    const std::string file_ = temp_ / "out.jsonl";
    GstElement* element_ = nullptr;
    GstBus* bus_ = nullptr;
    GstHarness* harness_ = nullptr;
    guint64 frames_ = 0;
};

TEST_F(Publish, WritesDetectionsOfAnInference) {
    GstBuffer* in = frame();
    const guint inference = infer(in, "yolo", {"dog", "cat"});
    const guint od = add_od(in, "cat", 10, 0.5f);
    relate(in, od, add_cls(in, "cat", 0.5f));
    relate(in, od, inference);
    GstAnalyticsMtd track;
    gst_analytics_relation_meta_add_tracking_mtd(meta_of(in), 9, 0, &track);
    relate(in, od, track.id);
    const json record = record_of(in);
    EXPECT_EQ(record["stream"], "camera");
    EXPECT_EQ(record["frame_seq"], 77);
    EXPECT_EQ(record["pts_ns"], 0);
    EXPECT_EQ(record["running_ns"], 0);
    EXPECT_EQ(record["frame"], json::parse(R"({"w": 320, "h": 200})"));
    EXPECT_EQ(record["model"], json::parse(R"({"name": "yolo", "hash": "abcd", "epoch": 1})"));
    EXPECT_EQ(record["status"], "inferred");
    EXPECT_EQ(record["timings"]["total_us"], 6);
    EXPECT_EQ(record["objects"], json::array({{{"id", od},
                                               {"label", "cat"},
                                               {"class_id", 1},
                                               {"model", "yolo"},
                                               {"score", 0.5},
                                               {"box", {10, 20, 30, 40}},
                                               {"angle", 0.5},
                                               {"track", 9}}}));
}

TEST_F(Publish, RelatesWhatASecondModelSaysToItsObject) {
    for (const auto relation : {GST_ANALYTICS_REL_TYPE_RELATE_TO, GST_ANALYTICS_REL_TYPE_CONTAIN}) {
        GstBuffer* in = frame();
        infer(in, "detector", {});
        const guint colour = infer(in, "colour", {});
        const guint car = add_od(in, "car");
        relate(in, car, add_cls(in, "car", 0.5f), relation);
        const guint red = add_cls(in, "red", 0.75f);
        relate(in, car, red, relation);
        relate(in, red, colour);
        const guint plate = add_od(in, "plate", 20);
        relate(in, plate, car, GST_ANALYTICS_REL_TYPE_IS_PART_OF);
        add_cls(in, "day", 0.25f);
        if (!harness_) open();
        push(in);
    }
    for (const json& record : records()) {
        EXPECT_EQ(record["objects"][0]["attributes"],
                  json::parse(R"([{"label": "red", "score": 0.75, "model": "colour"}])"));
        EXPECT_FALSE(record["objects"][0].contains("parent"));
        EXPECT_EQ(record["objects"][1]["parent"], record["objects"][0]["id"]);
        EXPECT_EQ(record["classes"], json::parse(R"([{"label": "day", "score": 0.25}])"));
        EXPECT_EQ(record["inferences"].size(), 2u);
    }
}

// All coordinates of a record are of the frame that it is of.
TEST_F(Publish, ScalesTheRegionOfAnInferenceWithItsFrame) {
    open();
    GstBuffer* in = frame();
    add_od(in, "person");
    Inference inference;
    inference.frame_width = 640, inference.frame_height = 400;
    inference.region_x = 64, inference.region_y = 40;
    inference.region_width = 128, inference.region_height = 80;
    ASSERT_TRUE(add_inference(in, inference, 8));
    infer(in, "second", {});  // of one alone nothing is told
    push(in);
    EXPECT_EQ(records().at(0)["inferences"][0]["region"], json::parse("[32, 20, 64, 40]"));
}

// What a second model finds of classes in the region of an object is no mask of the object.
TEST_F(Publish, WritesTheClassMapOfARegionAmongTheMasks) {
    open();
    set("include", "objects+masks");
    GstBuffer* in = frame();
    infer(in, "m", {});
    const guint od = add_od(in, "person");
    const guint map = add_mask(in, {255, 0, 0, 255, 255, 0}, 3, {0});
    GstAnalyticsClsMtd name;
    gst_analytics_relation_meta_add_one_cls_mtd(meta_of(in), 1, g_quark_from_string("helmet"),
                                                &name);
    relate(in, map, name.id);
    relate(in, od, map);
    push(in);
    const json record = records().at(0);
    EXPECT_FALSE(record["objects"][0].contains("mask"));
    EXPECT_EQ(record["masks"],
              json::parse(R"([{"box": [1, 2, 3, 4], "w": 3, "h": 2, "rle": [255, 1, 0, 2, 255, 2,
                  0, 1], "regions": [{"id": 0, "label": "helmet"}]}])"));
}

// Each datum by itself, and whether `include` governs it.
TEST_F(Publish, IncludesWhatIsAskedFor) {
    const auto full = [this] {
        GstBuffer* in = frame();
        infer(in, "m", {});
        const guint od = add_od(in, "cat");
        const vartml::Keypoint points[] = {{1.5f, 2, 0.25f, true}};
        const float numbers[] = {0.5f, -0.5f};
        GstAnalyticsMtd mtd;
        EXPECT_TRUE(add_keypoints(meta_of(in), {0, points}, &mtd));
        relate(in, od, mtd.id);
        EXPECT_TRUE(add_embedding(meta_of(in), numbers, &mtd));
        relate(in, od, mtd.id);
        EXPECT_TRUE(add_text_line(meta_of(in), {"AB 12", 0.5f}, &mtd));
        relate(in, od, mtd.id);
        relate(in, od, add_mask(in, {0, 1, 1, 0, 0, 1}, 3, {1}));
        const guint map = add_mask(in, {4, 4, 4, 5, 5, 4}, 3, {4, 5});
        const gfloat levels[] = {1, 1};
        GQuark quarks[] = {g_quark_from_string("road"), g_quark_from_string("sky")};
        GstAnalyticsClsMtd names;
        gst_analytics_relation_meta_add_cls_mtd(meta_of(in), 2, const_cast<gfloat*>(levels), quarks,
                                                &names);
        relate(in, map, names.id);
        EXPECT_TRUE(add_keypoints(meta_of(in), {0, points}, &mtd));
        EXPECT_TRUE(add_embedding(meta_of(in), numbers, &mtd));
        EXPECT_TRUE(add_text_line(meta_of(in), {"京", 0.25f}, &mtd));
        add_cls(in, "day", 0.25f);
        return in;
    };
    open();
    set("include", "objects+classes+tracks+keypoints+timings+masks+embeddings+texts");
    push(full());
    set("include", "tracks");
    set("add-empty", "true");
    push(full());
    const auto all = records();
    const json& object = all[0]["objects"][0];
    EXPECT_EQ(object["keypoints"], json::parse("[[1.5, 2.0, 0.25]]"));
    EXPECT_EQ(object["embedding"], json::parse("[0.5, -0.5]"));
    EXPECT_EQ(object["text"], json::parse(R"({"text": "AB 12", "score": 0.5})"));
    EXPECT_EQ(all[0]["texts"], json::parse(R"([{"text": "京", "score": 0.25}])"));
    EXPECT_EQ(object["mask"],
              json::parse(R"({"box": [1, 2, 3, 4], "w": 3, "h": 2, "rle": [1, 2, 2, 1]})"));
    EXPECT_EQ(all[0]["masks"],
              json::parse(R"([{"box": [1, 2, 3, 4], "w": 3, "h": 2, "rle": [4, 3, 5, 2, 4, 1],
                  "regions": [{"id": 4, "label": "road"}, {"id": 5, "label": "sky"}]}])"));
    EXPECT_EQ(all[0]["keypoint_sets"], json::parse("[[[1.5, 2.0, 0.25]]]"));
    EXPECT_EQ(all[0]["embeddings"], json::parse("[[0.5, -0.5]]"));
    EXPECT_EQ(all[0]["classes"], json::parse(R"([{"label": "day", "score": 0.25}])"));
    for (const char* name :
         {"objects", "masks", "keypoint_sets", "embeddings", "texts", "classes", "timings"}) {
        EXPECT_TRUE(all[0].contains(name)) << name;
        EXPECT_FALSE(all[1].contains(name)) << name;
    }
}

TEST_F(Publish, LeavesOutEmptyFramesAndAllButEveryNth) {
    open();
    push(frame());
    set("add-empty", "true");
    set("every", "3");
    for (int i = 1; i < 9; ++i) push(frame());
    std::vector<int> frames;
    for (const json& record : records()) frames.push_back(record["frame_seq"]);
    EXPECT_EQ(frames, (std::vector<int>{3, 6}));
}

// What happens in zones is on no other frame.
TEST_F(Publish, LeavesOutNoZoneEvent) {
    set("every", "4");
    open();
    using Kind = vartml::ZoneEventKind;
    for (const Kind kind : {Kind::inside, Kind::inside, Kind::enter, Kind::leave, Kind::inside,
                            Kind::cross_in, Kind::inside}) {
        GstBuffer* in = frame();
        GstAnalyticsMtd mtd;
        const ZoneVisit visit = {g_quark_from_string("room"), 0, kind, 7, 0};
        ASSERT_TRUE(add_zone_visit(meta_of(in), visit, &mtd));
        push(in);
    }
    std::vector<int> frames;
    for (const json& record : records()) frames.push_back(record["frame_seq"]);
    EXPECT_EQ(frames, (std::vector<int>{2, 3, 5}));
}

TEST_F(Publish, TellsTheStreamAndTheTime) {
    set("add-empty", "true");
    open("application/x-something");
    gst_harness_push_event(harness_, gst_event_new_stream_start("the-id"));
    gst_harness_set_src_caps_str(harness_, "application/x-something");
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(harness_, gst_event_new_segment(&segment));
    GstBuffer* in = frame();
    GST_BUFFER_PTS(in) = GST_CLOCK_TIME_NONE;
    GstCaps* reference = gst_caps_new_empty_simple("timestamp/x-unix");
    gst_buffer_add_reference_timestamp_meta(in, reference, 1000000001, GST_CLOCK_TIME_NONE);
    gst_caps_unref(reference);
    push(in);
    in = frame();
    reference = gst_caps_new_empty_simple("timestamp/x-ntp");
    gst_buffer_add_reference_timestamp_meta(in, reference, 2208988800 * GST_SECOND,
                                            GST_CLOCK_TIME_NONE);
    gst_caps_unref(reference);
    push(in);
    in = frame();
    reference = gst_caps_new_empty_simple("timestamp/x-ntp");
    gst_buffer_add_reference_timestamp_meta(in, reference, GST_SECOND, GST_CLOCK_TIME_NONE);
    gst_caps_unref(reference);
    push(in);
    const auto all = records();
    EXPECT_EQ(all[2]["utc"], "2036-02-07T06:28:17.000000000Z");  // NTP's next era
    EXPECT_EQ(all[0]["stream"], "the-id");
    EXPECT_FALSE(all[0].contains("pts_ns"));
    EXPECT_FALSE(all[0].contains("frame"));
    EXPECT_EQ(all[0]["utc"], "1970-01-01T00:00:01.000000001Z");
    EXPECT_EQ(all[1]["utc"], "1970-01-01T00:00:00.000000000Z");
}

TEST_F(Publish, SaysOfWhichFrameACarriedResultIs) {
    GstBuffer* in = frame();
    Inference inference;
    inference.status = InferenceStatus::carried;
    inference.frame_seq = 12;
    inference.result_seq = 9;
    inference.age_ns = 100'000'999;
    ASSERT_TRUE(add_inference(in, inference, 1));
    add_od(in, "cat");
    const json record = record_of(in);
    EXPECT_EQ(record["status"], "carried");
    EXPECT_EQ(record["frame_seq"], 12);
    EXPECT_EQ(record["result"], json::parse(R"({"frame_seq": 9, "age_us": 100000})"));
}

// Frames of a file come long before their time.
TEST_F(Publish, NoFrameWasTakenLaterThanItsRecordWasMade) {
    set("add-empty", "true");
    open();
    gst_harness_use_systemclock(harness_);
    gst_element_set_base_time(element_, 0);
    GstClock* clock = gst_element_get_clock(element_);
    GstBuffer* in = frame();
    GST_BUFFER_PTS(in) = gst_clock_get_time(clock) + 3600 * GST_SECOND;
    gst_object_unref(clock);
    push(in);
    GDateTime* after = g_date_time_new_now_utc();
    gchar* latest = g_date_time_format(after, "%Y-%m-%dT%H:%M:%S");
    const auto all = records();
    ASSERT_EQ(all.size(), 1u);
    const std::string utc = all[0]["utc"];
    EXPECT_LE(utc.substr(0, 19), latest);
    g_free(latest);
    g_date_time_unref(after);
}

TEST_F(Publish, StreamNameWins) {
    set("stream-name", "gate");
    GstBuffer* in = frame();
    infer(in, "m", {});
    add_od(in, "cat");
    EXPECT_EQ(record_of(in)["stream"], "gate");
}

TEST_F(Publish, WhoseRecordsTheyAreIsTakenOverAtStartAlone) {
    set("add-empty", "true");
    set("stream-name", "gate");
    set("epoch", "4");
    open();
    push(frame());
    set("stream-name", "door");
    set("epoch", "5");
    push(frame());
    for (const json& record : records()) {
        EXPECT_EQ(record["stream"], "gate");
        EXPECT_EQ(record["epoch"], 4);
    }
}

TEST_F(Publish, SaysWhatStateTheLinkIsIn) {
    open();
    push(frame());
    gst_element_set_state(element_, GST_STATE_NULL);
    EXPECT_EQ(states(), (std::vector<std::string>{"connecting", "connected", "stopped"}));
}

TEST_F(Publish, ErrorsNameWhatIsWrong) {
    struct Case {
        const char *method, *location, *spool, *id;
        GQuark domain;
        int code;
    };
    const std::string blocked = temp_ / "out.jsonl/spool", missing = temp_ / "none/out.jsonl";
    spill(file_, "x");
    const Case cases[] = {
        {"file", missing.c_str(), "", "pub-location", GST_RESOURCE_ERROR,
         GST_RESOURCE_ERROR_OPEN_WRITE},
        {"file", "", "", "pub-location", GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_WRITE},
        {"socket", "", "", "pub-location", GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_WRITE},
        {"stdout", "out.jsonl", "", "pub-location", GST_RESOURCE_ERROR,
         GST_RESOURCE_ERROR_OPEN_WRITE},
        {"mqtt", "out.jsonl", "", "pub-location", GST_RESOURCE_ERROR,
         GST_RESOURCE_ERROR_OPEN_WRITE},
        {"stdout", "", blocked.c_str(), "pub-spool", GST_RESOURCE_ERROR,
         GST_RESOURCE_ERROR_OPEN_WRITE},
    };
    for (const Case& c : cases) {
        set("method", c.method), set("location", c.location), set("spool-dir", c.spool);
        EXPECT_EQ(gst_element_set_state(element_, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
        const Said said = error();
        EXPECT_EQ(said.id, c.id) << said.text;
        EXPECT_EQ(said.domain, c.domain);
        EXPECT_EQ(said.code, c.code);
        EXPECT_NE(said.text.find(*c.spool ? c.spool : c.location), std::string::npos) << said.text;
        gst_element_set_state(element_, GST_STATE_NULL);
    }
}

TEST_F(Publish, WhatOnlyBrokersReadIsAnErrorWithoutOne) {
    for (const char* property :
         {"address", "topic", "client-id", "username", "password", "credentials-file",
          "tls-ca-file", "tls-cert-file", "tls-key-file"}) {
        set(property, "other");
        EXPECT_EQ(gst_element_set_state(element_, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
        const Said said = error();
        EXPECT_EQ(said.id, "pub-method") << said.text;
        EXPECT_NE(said.text.find("property '" + std::string(property) + "' is set"),
                  std::string::npos)
            << said.text;
        gst_element_set_state(element_, GST_STATE_NULL);
        const std::string unset = property == std::string("address") ? "localhost"
                                  : property == std::string("topic") ? "vartml/{stream}"
                                                                     : "";
        set(property, unset.c_str());
    }
    open();
}

TEST_F(Publish, ABrokerSettingThatCanNeverWorkIsAnErrorAtStart) {
    struct Case {
        const char *method, *property, *value, *id;
    };
    const Case cases[] = {
        {"mqtt", "address", "mqtt://broker", "pub-address"},
        {"nats", "address", "broker:70000", "pub-address"},
        {"kafka", "username", "camera", "pub-login"},
        {"redis", "username", "camera", "pub-login"},
        {"mqtt", "password", "secret", "pub-login"},
        {"mqtt", "tls-ca-file", "/none/ca.pem", "pub-tls"},
        {"mqtt", "credentials-file", "/none/creds", "pub-tls"},
    };
    for (const Case& c : cases) {
        TearDown(), SetUp();
        set("location", ""), set("method", c.method), set(c.property, c.value);
        EXPECT_EQ(gst_element_set_state(element_, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE)
            << c.value;
        const Said said = error();
        EXPECT_EQ(said.id, c.id) << said.text;
        EXPECT_EQ(said.text.find("secret"), std::string::npos);
    }
}

TEST_F(Publish, ASpoolThatAnotherHasIsBusy) {
    const std::string spool = temp_ / "spool";
    set("spool-dir", spool.c_str());
    open();
    GstElement* other = GST_ELEMENT(
        gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_PUBLISH, "method", 2, "location",
                                         "/nowhere", "spool-dir", spool.c_str(), nullptr)));
    gst_element_set_bus(other, bus_);
    EXPECT_EQ(gst_element_set_state(other, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    const Said said = error();
    EXPECT_EQ(said.id, "pub-spool");
    EXPECT_EQ(said.code, GST_RESOURCE_ERROR_BUSY);
    gst_element_set_state(other, GST_STATE_NULL);
    gst_element_set_bus(other, nullptr);
    gst_object_unref(other);
}

TEST_F(Publish, AFullDiskEndsTheStream) {
    set("location", "/dev/full");
    set("add-empty", "true");
    open();
    EXPECT_EQ(gst_harness_push(harness_, frame()), GST_FLOW_OK);
    const Said said = error();
    EXPECT_EQ(said.id, "pub-disk-full");
    EXPECT_EQ(said.code, GST_RESOURCE_ERROR_NO_SPACE_LEFT);
    EXPECT_NE(said.text.find("/dev/full"), std::string::npos);
    EXPECT_EQ(gst_harness_push(harness_, frame()), GST_FLOW_ERROR);
}

TEST_F(Publish, NoReceiverHoldsTheStreamUp) {
    const std::string fifo = temp_ / "fifo";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    set("location", fifo.c_str());
    set("add-empty", "true");
    set("queue-size", "16");
    set("drain-timeout", "0");
    open();
    for (int i = 0; i < 1000; ++i) push(frame());
    EXPECT_EQ(stat("dropped"), 984u);
    EXPECT_TRUE(gst_harness_push_event(harness_, gst_event_new_eos()));
    gst_element_set_state(element_, GST_STATE_NULL);
    EXPECT_EQ(stat("dropped"), 1000u);
}

// EOS waits for a receiver that never comes; a flush and the way to READY both end that.
TEST_F(Publish, AWaitingEosIsInterrupted) {
    set("method", "socket");
    set("location", (temp_ / "nobody").c_str());
    set("add-empty", "true");
    set("drain-timeout", "3600000");
    open();
    push(frame());
    std::thread waiting([this] { gst_harness_push_event(harness_, gst_event_new_eos()); });
    gst_harness_push_event(harness_, gst_event_new_flush_start());
    waiting.join();
    gst_harness_push_event(harness_, gst_event_new_flush_stop(TRUE));
    set("drain-timeout", "0");
}

std::mutex log_mutex;
std::string log_text;
void collect_log(GstDebugCategory*, GstDebugLevel, const gchar*, const gchar*, gint, GObject*,
                 GstDebugMessage* message, gpointer) {
    const std::lock_guard lock(log_mutex);
    log_text += gst_debug_message_get(message);
    log_text += '\n';
}

TEST_F(Publish, ThePasswordCannotBeReadAndIsInNoLog) {
    const GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element_), "password");
    EXPECT_FALSE(spec->flags & G_PARAM_READABLE);
    gst_debug_remove_log_function(gst_debug_log_default);
    gst_debug_add_log_function(collect_log, nullptr, nullptr);
    gst_debug_set_threshold_for_name("vartml*", GST_LEVEL_TRACE);
    set("location", ""), set("method", "mqtt"), set("address", "127.0.0.1"), set("port", "1");
    set("username", "me"), set("password", "correcthorse");
    set("drain-timeout", "0");
    open();
    push(frame());
    gst_element_set_state(element_, GST_STATE_NULL);
    gst_debug_set_threshold_for_name("vartml*", GST_LEVEL_NONE);
    gst_debug_remove_log_function(collect_log);
    gst_debug_add_log_function(gst_debug_log_default, nullptr, nullptr);
    const std::lock_guard lock(log_mutex);
    EXPECT_NE(log_text.find("connecting"), std::string::npos);
    EXPECT_EQ(log_text.find("correcthorse"), std::string::npos);
}

TEST_F(Publish, LeavesNothingBehind) {
    set("spool-dir", (temp_ / "spool").c_str());
    const auto cycle = [this] {
        gst_element_set_state(element_, GST_STATE_PLAYING);
        gst_element_set_state(element_, GST_STATE_NULL);
        gst_bus_set_flushing(bus_, TRUE);
        gst_bus_set_flushing(bus_, FALSE);
    };
    cycle();
    const size_t threads = running_threads(), descriptors = open_descriptors();
    for (int i = 0; i < 1000; ++i) cycle();
    // The kernel may list a thread a moment longer than it runs.
    while (running_threads() > threads) std::this_thread::yield();
    EXPECT_EQ(open_descriptors(), descriptors);
}

}  // namespace
