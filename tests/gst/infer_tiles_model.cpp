// SPDX-License-Identifier: Apache-2.0
// The plugin as installed, with the model of the demo: codes that are too small in a whole frame
// are found in tiles of it, each once, also those at a seam.
#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/gst_main.h"

namespace {

constexpr int width = 1280, height = 960, module = 2;

// A QR code of version 1 that says TILES.
constexpr const char* code[] = {
    "#######..#.#..#######", "#.....#..##.#.#.....#", "#.###.#.#.#...#.###.#",
    "#.###.#.#...#.#.###.#", "#.###.#.#.###.#.###.#", "#.....#.#...#.#.....#",
    "#######.#.#.#.#######", "........#..##........", "#.#####..##.#.#####..",
    ".###.#...##.#..#.####", "##.#..##..##.#..##..#", ".###....##.....####.#",
    "#.....#....#.#..##...", "........##.####..#.#.", "#######..##.#.##...##",
    "#.....#.#.#####..#..#", "#.###.#.###.#..#.....", "#.###.#.#.#.#..#..#..",
    "#.###.#.#..#.#..#.#..", "#.....#...#....##.#.#", "#######.##.#.#..#.#..",
};
constexpr int side = int(std::size(code)) * module, quiet = 4 * module;

struct Place {
    int x, y;
};
// Of 4x3 tiles with an overlap of a fifth, which are 377x370 and begin at 0, 301, 602, 903 and 0,
// 295, 590: in the middle of one, over a seam, at a border of an overlap, where four of them meet.
constexpr Place places[] = {{120, 100}, {322, 150}, {940, 120}, {660, 320}, {1000, 700}};

GstBuffer* picture() {
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, gsize(width) * height, nullptr);
    GstMapInfo map;
    gst_buffer_map(buffer, &map, GST_MAP_WRITE);
    std::fill(map.data, map.data + map.size, guint8(150));
    for (const auto& [left, top] : places) {
        for (int y = -quiet; y < side + quiet; ++y) {
            for (int x = -quiet; x < side + quiet; ++x) {
                const bool in = x >= 0 && y >= 0 && x < side && y < side;
                const bool dark = in && code[y / module][x / module] == '#';
                map.data[(top + y) * width + left + x] = dark ? 20 : 240;
            }
        }
    }
    gst_buffer_unmap(buffer, &map);
    GST_BUFFER_PTS(buffer) = 0;
    return buffer;
}

// The boxes that vartmlinfer with these properties and vartmldecode find.
std::vector<std::array<int, 4>> found_with(const std::string& properties) {
    const char* model = std::getenv("VARTML_DEMO_MODEL");
    const std::string line =
        "appsrc name=in caps=video/x-raw,format=GRAY8,width=1280,height=960,"
        "framerate=1/1 format=time ! vartmlinfer model=" +
        std::string(model) + " " + properties +
        " ! vartmldecode ! fakesink name=out signal-handoffs=true";
    std::vector<std::array<int, 4>> boxes;
    GError* error = nullptr;
    GstElement* pipeline = gst_parse_launch(line.c_str(), &error);
    EXPECT_NE(pipeline, nullptr) << (error ? error->message : "");
    if (!pipeline) return boxes;
    GstElement* in = gst_bin_get_by_name(GST_BIN(pipeline), "in");
    GstElement* out = gst_bin_get_by_name(GST_BIN(pipeline), "out");
    const auto on_frame = +[](GstElement*, GstBuffer* buffer, GstPad*, gpointer list) {
        GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
        gpointer state = nullptr;
        GstAnalyticsMtd od;
        while (meta && gst_analytics_relation_meta_iterate(
                           meta, &state, gst_analytics_od_mtd_get_mtd_type(), &od)) {
            std::array<int, 4> box;
            float score;
            gst_analytics_od_mtd_get_location(&od, &box[0], &box[1], &box[2], &box[3], &score);
            static_cast<std::vector<std::array<int, 4>>*>(list)->push_back(box);
        }
    };
    g_signal_connect(out, "handoff", G_CALLBACK(on_frame), &boxes);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstFlowReturn flow;
    GstBuffer* frame = picture();
    g_signal_emit_by_name(in, "push-buffer", frame, &flow);
    gst_buffer_unref(frame);
    g_signal_emit_by_name(in, "end-of-stream", &flow);
    GstBus* bus = gst_element_get_bus(pipeline);
    GstMessage* message = gst_bus_timed_pop_filtered(
        bus, GST_CLOCK_TIME_NONE, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
    EXPECT_EQ(GST_MESSAGE_TYPE(message), GST_MESSAGE_EOS);
    gst_message_unref(message);
    gst_object_unref(bus);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(in);
    gst_object_unref(out);
    gst_object_unref(pipeline);
    return boxes;
}

bool is_at(const std::array<int, 4>& box, const Place& place) {
    const int w = std::min(box[0] + box[2], place.x + side) - std::max(box[0], place.x);
    const int h = std::min(box[1] + box[3], place.y + side) - std::max(box[1], place.y);
    if (w <= 0 || h <= 0) return false;
    return 2 * w * h > box[2] * box[3] + side * side - w * h;  // IoU of more than 0.5
}

TEST(InferTilesModel, TilesFindWhatTheWholeFrameMisses) {
    EXPECT_EQ(found_with("").size(), 0u);
    const auto boxes = found_with("inference-region=tiles tile-grid=4x3");
    EXPECT_EQ(boxes.size(), std::size(places));
    for (const Place& place : places) {
        EXPECT_EQ(std::ranges::count_if(boxes, [&](const auto& box) { return is_at(box, place); }),
                  1)
            << "at " << place.x << "," << place.y;
    }
}

}  // namespace
