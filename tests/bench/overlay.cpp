// SPDX-License-Identifier: Apache-2.0
// Times vartmloverlay on 1080p NV12 frames with 20 labelled boxes whose scores change, a thread.
// Prints one JSON object.    overlay      with the plugin on GST_PLUGIN_PATH
#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void add_boxes(GstBuffer* buffer, int frame) {
    static const char* const labels[] = {"person", "bicycle", "car", "traffic light", "dog"};
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer);
    for (int i = 0; i < 20; ++i) {
        const int x = 60 + i % 5 * 360 + frame * 3, y = 80 + i / 5 * 250 + frame;
        const float score = 0.5f + static_cast<float>((i * 37 + frame * 11) % 50) / 100;
        gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string(labels[i % 5]), x, y, 240,
                                               180, score, nullptr);
    }
}

guint64 count(GstElement* element, const char* name) {
    GstStructure* stats = nullptr;
    g_object_get(element, "stats", &stats, nullptr);
    guint64 value = 0;
    gst_structure_get_uint64(stats, name, &value);
    gst_structure_free(stats);
    return value;
}

}  // namespace

int main(int argc, char** argv) {
    constexpr int buffers = 8, frames = 800;
    gst_init(&argc, &argv);
    GstHarness* harness = gst_harness_new_parse("vartmloverlay name=overlay");
    gst_harness_set_src_caps_str(harness,
                                 "video/x-raw,format=NV12,width=1920,height=1080,framerate=30/1");
    std::vector<GstBuffer*> pool;
    for (int i = 0; i < buffers; ++i) {
        pool.push_back(gst_buffer_new_allocate(nullptr, 1920 * 1080 * 3 / 2, nullptr));
        gst_buffer_memset(pool.back(), 0, 80, 1920 * 1080 * 3 / 2);
        add_boxes(pool.back(), i);
    }
    std::vector<double> times;
    for (int i = 0; i < frames; ++i) {
        GstBuffer*& buffer = pool[static_cast<size_t>(i % buffers)];
        const auto start = Clock::now();
        gst_harness_push(harness, buffer);
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
        buffer = gst_harness_pull(harness);
    }
    std::ranges::sort(times);
    GstElement* element = gst_harness_find_element(harness, "vartmloverlay");
    const bool done = count(element, "blended") == frames && count(element, "copied") == 0;
    std::printf(
        "{\"name\": \"overlay/boxes_20_1080p\", \"unit\": \"us\", \"ours\": %.1f, "
        "\"p99\": %.1f}\n",
        times[frames / 2], times[frames * 99 / 100]);
    gst_object_unref(element);
    for (GstBuffer* buffer : pool) gst_buffer_unref(buffer);
    gst_harness_teardown(harness);
    return done ? 0 : 1;
}
