// SPDX-License-Identifier: Apache-2.0
// What the tests of vartmloverlay share: frames with results, and the element in a harness.
#pragma once
#include "gst/gstvartmloverlay.h"

#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include "gst/metadata/inference.h"
#include "gst/metadata/mtd.h"
#include "tests/support/gst_main.h"

namespace overlay_test {

using namespace vartml::gst;

inline GstVideoInfo make_info(GstVideoFormat format, int width, int height) {
    GstVideoInfo info;
    gst_video_info_set_format(&info, format, static_cast<guint>(width), static_cast<guint>(height));
    return info;
}

inline GstAnalyticsRelationMeta* meta_of(GstBuffer* buffer) {
    return gst_buffer_add_analytics_relation_meta(buffer);
}

inline guint add_od(GstBuffer* buffer, int x, int y, int w, int h, const char* label = "cat",
                    float score = 0.87f, float angle = 0) {
    GstAnalyticsODMtd od;
    EXPECT_TRUE(gst_analytics_relation_meta_add_oriented_od_mtd(
        meta_of(buffer), label ? g_quark_from_string(label) : 0, x, y, w, h, angle, score, &od));
    return od.id;
}

inline void relate(GstBuffer* buffer, guint from, guint to,
                   GstAnalyticsRelTypes type = GST_ANALYTICS_REL_TYPE_RELATE_TO) {
    EXPECT_TRUE(gst_analytics_relation_meta_set_relation(meta_of(buffer), type, from, to));
}

inline guint add_track(GstBuffer* buffer, guint od, guint64 id) {
    GstAnalyticsMtd track;
    EXPECT_TRUE(gst_analytics_relation_meta_add_tracking_mtd(meta_of(buffer), id, 0, &track));
    relate(buffer, od, track.id);
    return track.id;
}

inline guint add_class(GstBuffer* buffer, std::vector<const char*> labels,
                       std::vector<float> levels) {
    std::vector<GQuark> quarks;
    for (const char* label : labels) quarks.push_back(g_quark_from_string(label));
    GstAnalyticsMtd cls;
    EXPECT_TRUE(gst_analytics_relation_meta_add_cls_mtd(meta_of(buffer), quarks.size(),
                                                        levels.data(), quarks.data(), &cls));
    return cls.id;
}

// A mask of region numbers, rows dense, over a rectangle of the frame.
inline guint add_mask(GstBuffer* buffer, const std::vector<uint8_t>& pixels, guint width,
                      std::vector<guint> regions, int x, int y, guint w, guint h,
                      GstVideoFormat format = GST_VIDEO_FORMAT_GRAY8) {
    const guint bytes = format == GST_VIDEO_FORMAT_GRAY8 ? 1 : 2;
    GstBuffer* mask = gst_buffer_new_allocate(nullptr, pixels.size(), nullptr);
    gst_buffer_fill(mask, 0, pixels.data(), pixels.size());
    const gsize offsets[GST_VIDEO_MAX_PLANES] = {0};
    const gint strides[GST_VIDEO_MAX_PLANES] = {static_cast<gint>(width * bytes)};
    gst_buffer_add_video_meta_full(mask, GST_VIDEO_FRAME_FLAG_NONE, format, width,
                                   static_cast<guint>(pixels.size()) / width / bytes, 1, offsets,
                                   strides);
    GstAnalyticsMtd mtd;
    EXPECT_TRUE(gst_analytics_relation_meta_add_segmentation_mtd(
        meta_of(buffer), mask, GST_SEGMENTATION_TYPE_SEMANTIC, regions.size(), regions.data(), x, y,
        w, h, &mtd));
    return mtd.id;
}

inline guint add_points(GstBuffer* buffer, const std::vector<vartml::Keypoint>& points,
                        const char* skeleton = nullptr) {
    GstAnalyticsMtd mtd;
    EXPECT_TRUE(add_keypoints(meta_of(buffer),
                              {skeleton ? g_quark_from_string(skeleton) : 0, points}, &mtd));
    return mtd.id;
}

inline void add_record(GstBuffer* buffer, InferenceStatus status = InferenceStatus::inferred) {
    Inference inference;
    inference.status = status;
    EXPECT_TRUE(add_inference(buffer, inference, 0));
}

// Of the vartmlinfer of that name.
inline guint add_record_of(GstBuffer* buffer, const char* infer_id, InferenceStatus status) {
    auto record = std::make_shared<InferenceRecord>();
    record->infer_id = infer_id;
    Inference inference;
    inference.record = record;
    inference.status = status;
    EXPECT_TRUE(add_inference(buffer, inference, 0));
    GstAnalyticsMtd mtd;
    unsigned last = 0;
    while (get_inference(buffer, last + 1)) ++last;
    get_inference(buffer, last, &mtd);
    return mtd.id;
}

inline std::vector<uint8_t> bytes_of(GstBuffer* buffer) {
    GstMapInfo map;
    gst_buffer_map(buffer, &map, GST_MAP_READ);
    std::vector<uint8_t> bytes(map.data, map.data + map.size);
    gst_buffer_unmap(buffer, &map);
    return bytes;
}

struct Unref {
    void operator()(GstBuffer* buffer) const { gst_buffer_unref(buffer); }
};
using Buffer = std::unique_ptr<GstBuffer, Unref>;

// A frame as a picture of RGB, 0 for what is black.
class Picture {
public:
    Picture(GstBuffer* buffer, const GstVideoInfo& info) : info_(info), bytes_(bytes_of(buffer)) {}
    // 0xrrggbb of RGB frames, the value of GRAY8 ones.
    uint32_t at(int x, int y) const {
        const auto step = static_cast<size_t>(GST_VIDEO_INFO_COMP_PSTRIDE(&info_, 0));
        const size_t at = static_cast<size_t>(y * GST_VIDEO_INFO_PLANE_STRIDE(&info_, 0)) +
                          static_cast<size_t>(x) * step;
        if (step == 1) return bytes_[at];
        return static_cast<uint32_t>(bytes_[at] << 16 | bytes_[at + 1] << 8 | bytes_[at + 2]);
    }
    // Pixels of a rectangle that are not black.
    int ink(int x, int y, int w, int h) const {
        int count = 0;
        for (int j = y; j < y + h; ++j) {
            for (int i = x; i < x + w; ++i) count += at(i, j) != 0;
        }
        return count;
    }
    int ink() const {
        return ink(0, 0, GST_VIDEO_INFO_WIDTH(&info_), GST_VIDEO_INFO_HEIGHT(&info_));
    }

private:
    GstVideoInfo info_;
    std::vector<uint8_t> bytes_;
};

// The element with a bus, between a harness's pads.
class Overlay : public testing::Test {
protected:
    void TearDown() override { close(); }
    void close() {
        if (harness_) gst_harness_teardown(harness_);
        if (element_) gst_element_set_bus(element_, nullptr);  // its messages refer to it
        if (element_) gst_object_unref(element_);
        if (bus_) gst_object_unref(bus_);
        harness_ = nullptr, element_ = nullptr, bus_ = nullptr, pts_ = 0;
    }
    GstElement* element() {
        if (!element_) {
            element_ =
                GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_OVERLAY, nullptr)));
            bus_ = gst_bus_new();
            gst_element_set_bus(element_, bus_);
        }
        return element_;
    }
    void set(const char* name, const char* value) {
        gst_util_set_object_arg(G_OBJECT(element()), name, value);
    }
    void open(const GstVideoInfo& info) {
        info_ = info;
        harness_ = gst_harness_new_with_element(element(), "sink", "src");
        gst_harness_set_src_caps(harness_, gst_video_info_to_caps(&info_));
    }
    void open(int width = 320, int height = 200, GstVideoFormat format = GST_VIDEO_FORMAT_RGB) {
        open(make_info(format, width, height));
    }
    // The next frame, all bytes 0.
    GstBuffer* frame() {
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, info_.size, nullptr);
        gst_buffer_memset(buffer, 0, 0, info_.size);
        GST_BUFFER_PTS(buffer) = pts_;
        pts_ += GST_SECOND / 25;
        return buffer;
    }
    // Takes the buffer.
    Buffer run(GstBuffer* buffer) {
        EXPECT_EQ(gst_harness_push(harness_, buffer), GST_FLOW_OK);
        return Buffer(gst_harness_try_pull(harness_));
    }
    Picture draw(GstBuffer* buffer) {
        const Buffer out = run(buffer);
        return {out.get(), info_};
    }
    guint64 stat(const char* name) {
        GstStructure* stats = nullptr;
        g_object_get(element(), "stats", &stats, nullptr);
        guint64 value = G_MAXUINT64;
        EXPECT_TRUE(gst_structure_get_uint64(stats, name, &value)) << name;
        gst_structure_free(stats);
        return value;
    }

    GstVideoInfo info_;
    GstHarness* harness_ = nullptr;
    GstElement* element_ = nullptr;
    GstBus* bus_ = nullptr;
    GstClockTime pts_ = 0;
};

// The leaks tracer (GST_TRACERS in meson.build) knows every object; call it last, after the tests
// have put theirs away.
inline void expect_no_objects() {
    GList* tracers = gst_tracing_get_active_tracers();
    GstStructure* live = nullptr;
    for (GList* item = tracers; item; item = item->next) {
        if (g_str_has_prefix(G_OBJECT_TYPE_NAME(item->data), "GstLeaksTracer")) {
            g_signal_emit_by_name(item->data, "get-live-objects", &live);
        }
    }
    g_list_free_full(tracers, gst_object_unref);
    if (!live) GTEST_SKIP() << "the leaks tracer is not active";
    const GValue* list = gst_structure_get_value(live, "live-objects-list");
    for (guint i = 0; list && i < gst_value_list_get_size(list); ++i) {
        const GValue* item = gst_value_list_get_value(list, i);
        const auto* entry = static_cast<const GstStructure*>(g_value_get_boxed(item));
        const std::string type = G_VALUE_TYPE_NAME(gst_structure_get_value(entry, "object"));
        // What the process keeps on purpose: the harness's clock is the default one, factories are
        // cached, templates belong to classes.
        EXPECT_TRUE(type == "GstTestClock" || type == "GstElementFactory" ||
                    type == "GstSystemClock" || type == "GstPadTemplate")
            << type;
    }
    gst_structure_free(live);
}

}  // namespace overlay_test
