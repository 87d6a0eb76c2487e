// SPDX-License-Identifier: Apache-2.0
// Times how long vartmlpublish keeps a frame with 20 detections, pad to pad, at 200 frames/s, while
// its MQTT broker is up, gone or silent. Prints one JSON object.
//     publish PORT SPOOL      with the plugin on GST_PLUGIN_PATH
#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

GstBuffer* frame_with_boxes(int number) {
    GstBuffer* buffer = gst_buffer_new();
    GST_BUFFER_PTS(buffer) = static_cast<guint64>(number) * GST_SECOND / 200;
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer);
    for (int i = 0; i < 20; ++i) {
        gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_static_string("person"), i * 60,
                                               number % 700, 50, 90, 0.5f, nullptr);
    }
    return buffer;
}

}  // namespace

int main(int argc, char** argv) {
    constexpr int frames = 1000, first = 100;  // the connection is made meanwhile
    gst_init(&argc, &argv);
    if (argc != 3) return 2;
    const std::string line =
        "vartmlpublish method=mqtt address=127.0.0.1 port=" + std::string(argv[1]) +
        " spool-dir=" + argv[2];
    GstHarness* harness = gst_harness_new_parse(line.c_str());
    gst_harness_set_src_caps_str(harness, "video/x-raw,format=NV12,width=1920,height=1080");
    std::vector<double> times;
    auto next = Clock::now();
    for (int i = 0; i < first + frames; ++i) {
        std::this_thread::sleep_until(next += std::chrono::milliseconds(5));
        GstBuffer* buffer = frame_with_boxes(i);
        const auto start = Clock::now();
        gst_harness_push(harness, buffer);
        const std::chrono::duration<double, std::micro> time = Clock::now() - start;
        if (i >= first) times.push_back(time.count());
        gst_buffer_unref(gst_harness_pull(harness));
    }
    std::ranges::sort(times);
    std::printf("{\"p50\": %.1f, \"p99\": %.1f, \"max\": %.1f}\n", times[frames / 2],
                times[frames * 99 / 100], times.back());
    gst_harness_teardown(harness);
    return 0;
}
