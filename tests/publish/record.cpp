// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include <vartml/publish.h>

namespace {

using namespace vartml;
using nlohmann::json;

json line_of(const FrameRecord& record) {
    PublishLine line;
    format_frame(record, "00000000000000ab", line);
    EXPECT_EQ(line.text.find('\n'), line.text.size() - 1);
    return json::parse(line.text);
}

FrameRecord full_record() {
    FrameRecord r;
    r.seq = 7;
    r.epoch = 41;
    r.stream = "cam";
    r.frame_seq = 21;
    r.pts_ns = 18446744073709551614u;
    r.running_ns = 5;
    r.utc_ns = 0;
    r.width = 640, r.height = 480;
    RecordInference& inference = r.inferences.emplace_back();
    inference.infer = "infer0", inference.model = "yolo", inference.hash = "abcd";
    inference.epoch = 2, inference.status = "inferred", inference.region = {0, 0, 640, 480};
    inference.pre_us = 1, inference.wait_us = 2, inference.run_us = 3, inference.total_us = 6;
    inference.batch_fill = 4;
    r.num_inferences = 1;
    r.labels = {{"red", 0.5f, "colour"}, {"road", 0, ""}};
    r.points = {{1.5f, 2, 0.25f}, {3, 4, 1}};
    r.runs = {1, 2, 1, 0, 4, 5, 4, 5};
    r.numbers = {0.5f, -0.5f};
    RecordObject& object = r.objects.emplace_back();
    object.id = 3, object.label = "car", object.class_id = 2, object.model = "yolox",
    object.score = 0.75f;
    object.box = {10, 20, 30, 40}, object.angle = 0.5f, object.track = 9, object.parent = 1;
    object.attributes = {0, 1}, object.keypoints = {0, 1}, object.embedding = {0, 2};
    r.chars = "AB 12京";
    object.text = RecordText{{0, 5}, 0.5f};
    r.texts = {{{5, 3}, 0.25f}};
    object.mask = RecordMask{{10, 20, 30, 40}, 2, 2, {0, 3}, {}, {}};
    r.classes = {{"day", 0.9f, "scene"}};
    r.masks = {{{0, 0, 640, 480}, 2, 2, {4, 2}, {1, 1}, {7, 1}}};
    r.keypoints = {{1, 1}};
    r.embeddings = {{0, 1}};
    return r;
}

TEST(Record, HasEverythingThatIsKnown) {
    EXPECT_EQ(line_of(full_record()), json::parse(R"({
        "schema": "vartml.frame/1", "run": "00000000000000ab", "seq": 7, "epoch": 41, "stream": "cam",
        "frame_seq": 21, "pts_ns": 18446744073709551614, "running_ns": 5,
        "utc": "1970-01-01T00:00:00.000000000Z", "frame": {"w": 640, "h": 480},
        "model": {"name": "yolo", "hash": "abcd", "epoch": 2}, "status": "inferred",
        "objects": [{"id": 3, "label": "car", "class_id": 2, "model": "yolox", "score": 0.75,
            "box": [10, 20, 30, 40], "angle": 0.5, "track": 9, "parent": 1,
            "attributes": [{"label": "red", "score": 0.5, "model": "colour"}],
            "keypoints": [[1.5, 2.0, 0.25]],
            "mask": {"box": [10, 20, 30, 40], "w": 2, "h": 2, "rle": [1, 2, 1]},
            "embedding": [0.5, -0.5], "text": {"text": "AB 12", "score": 0.5}}],
        "classes": [{"label": "day", "score": 0.9, "model": "scene"}],
        "keypoint_sets": [[[3.0, 4.0, 1.0]]],
        "masks": [{"box": [0, 0, 640, 480], "w": 2, "h": 2,
            "regions": [{"id": 5, "label": "road"}], "rle": [4, 5]}],
        "embeddings": [[0.5]], "texts": [{"text": "京", "score": 0.25}],
        "timings": {"pre_us": 1, "wait_us": 2, "run_us": 3, "total_us": 6, "batch_fill": 4}})"));
}

TEST(Record, LeavesOutWhatHasNoValue) {
    FrameRecord record;
    record.objects.emplace_back().score = 1;
    const json line = line_of(record);
    EXPECT_EQ(line, json::parse(R"({"schema": "vartml.frame/1", "run": "00000000000000ab",
        "seq": 0, "stream": "", "frame_seq": 0, "utc": null,
        "objects": [{"id": 0, "score": 1.0, "box": [0, 0, 0, 0]}]})"));
}

TEST(Record, NamesEachInferenceWhereThereAreSeveral) {
    FrameRecord record = full_record();
    record.inferences.push_back(record.inferences[0]);
    record.inferences[1].status = "skipped-region";
    record.inferences[1].region = {1, 2, 3, 4};
    record.num_inferences = 2;
    record.timings = false;
    const json line = line_of(record);
    EXPECT_EQ(line["inferences"].size(), 2u);
    EXPECT_EQ(line["inferences"][1],
              json::parse(R"({"infer": "infer0", "status": "skipped-region", "region": [1, 2, 3, 4],
                  "model": {"name": "yolo", "hash": "abcd", "epoch": 2}})"));
    EXPECT_FALSE(line.contains("timings"));
}

TEST(Record, WritesNullForWhatIsNoNumber) {
    FrameRecord record;
    record.points = {{NAN, INFINITY, -INFINITY}};
    RecordObject& object = record.objects.emplace_back();
    object.score = std::numeric_limits<float>::quiet_NaN();
    object.keypoints = {0, 1};
    const json line = line_of(record);
    EXPECT_TRUE(line["objects"][0]["score"].is_null());
    EXPECT_EQ(line["objects"][0]["keypoints"], json::parse("[[null, null, null]]"));
}

TEST(Record, NumbersComeBackAsTheyWere) {
    for (const float number : {0.1f, 1e-30f, 3.4e38f, -0.f, 16777216.f, 1.f / 3}) {
        FrameRecord record;
        record.objects.emplace_back().score = number;
        EXPECT_EQ(line_of(record)["objects"][0]["score"].get<float>(), number);
    }
}

TEST(Record, TextsAreUtf8WhateverTheyHold) {
    struct Case {
        std::string text, want;
    };
    const Case cases[] = {
        {"a\"b\\c\n\t\r\x01\x7f", "a\"b\\c\n\t\r\x01\x7f"},        // need escapes
        {"Straße 東京 🚗", "Straße 東京 🚗"},                      // two, three and four bytes
        {"a\xff z", "a\xEF\xBF\xBD z"},                            // never in UTF-8
        {"\xC3", "\xEF\xBF\xBD"},                                  // cut off
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},  // a surrogate
    };
    for (const Case& c : cases) {
        FrameRecord record;
        record.stream = c.text;
        EXPECT_EQ(line_of(record)["stream"].get<std::string>(), c.want);
    }
}

TEST(Record, TellsTimeAsRfc3339) {
    const std::pair<int64_t, const char*> cases[] = {
        // seconds of `date -ud TIME +%s`
        {951827696123456789, "2000-02-29T12:34:56.123456789Z"},
        {-1, "1969-12-31T23:59:59.999999999Z"},
        {4107542400000000000, "2100-03-01T00:00:00.000000000Z"},  // 2100 has no 29 February
        {-2208988800000000000, "1900-01-01T00:00:00.000000000Z"},
    };
    for (const auto& [ns, want] : cases) {
        FrameRecord record;
        record.utc_ns = ns;
        EXPECT_EQ(line_of(record)["utc"], want);
    }
}

TEST(Record, KeepsItsMemory) {
    FrameRecord record = full_record();
    const void* const objects = record.objects.data();
    record.clear();
    EXPECT_TRUE(record.empty());
    EXPECT_EQ(line_of(record)["stream"], "");
    record.objects.emplace_back();
    EXPECT_EQ(record.objects.data(), objects);
}

TEST(Record, LinesAreReadBack) {
    PublishLine line;
    format_frame(full_record(), "00000000000000ab", line);
    const auto frame = parse_line(line.text);
    ASSERT_TRUE(frame);
    EXPECT_EQ(std::tie(frame->text, frame->stream, frame->model, frame->run, frame->first,
                       frame->last, frame->count, frame->epoch, frame->gap),
              std::tie(line.text, line.stream, line.model, line.run, line.first, line.last,
                       line.count, line.epoch, line.gap));
    EXPECT_EQ(frame->first, 7u);

    PublishLine gap;
    gap.run = "r", gap.stream = "cam", gap.model = "yolo";
    gap.first = 3, gap.last = 8, gap.count = 6, gap.epoch = 41;
    format_gap(gap);
    EXPECT_EQ(json::parse(gap.text),
              json::parse(R"({"schema": "vartml.gap/1", "run": "r", "epoch": 41, "stream": "cam",
                  "model": {"name": "yolo"}, "first": 3, "last": 8, "count": 6})"));
    const auto read = parse_line(gap.text);
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->gap);
    EXPECT_EQ(read->count, 6u);
    EXPECT_EQ(read->epoch, 41u);
    for (const char* other : {"", "{}", "[1]", "{\"schema\":\"else/1\"}", "{\"schema\""})
        EXPECT_FALSE(parse_line(other)) << other;
}

}  // namespace
