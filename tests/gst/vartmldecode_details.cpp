// SPDX-License-Identifier: Apache-2.0
// Keypoints, masks, turned boxes, class maps and embeddings as metadata on frames.
#include <gst/video/gstvideometa.h>

#include "gst/metadata/mtd.h"
#include "tests/gst/decode_harness.h"
#include "tests/vision/map_tensors.h"

namespace {

using namespace decode_test;

// What elements that copy or scale do with the metas of a frame.
GstBuffer* copied(GstBuffer* frame) {
    return gst_buffer_copy(frame);
}
GstBuffer* transformed(GstBuffer* frame, GQuark type, gpointer transform) {
    GstBuffer* result = gst_buffer_new();
    gpointer state = nullptr;
    while (GstMeta* meta = gst_buffer_iterate_meta(frame, &state)) {
        if (meta->info->transform_func)
            meta->info->transform_func(result, meta, frame, type, transform);
    }
    return result;
}
GstBuffer* at_half_width(GstBuffer* frame) {
    GstVideoInfo in, out;
    gst_video_info_set_format(&in, GST_VIDEO_FORMAT_GRAY8, 128, 96);
    gst_video_info_set_format(&out, GST_VIDEO_FORMAT_GRAY8, 64, 96);
    GstVideoMetaTransform scale = {&in, &out};
    return transformed(frame, gst_video_meta_transform_scale_get_quark(), &scale);
}
#if GST_CHECK_VERSION(1, 28, 0)
// A part from 10,20 on, as large as the frame was.
GstBuffer* enlarged_part(GstBuffer* frame) {
    GstVideoInfo info;
    gst_video_info_set_format(&info, GST_VIDEO_FORMAT_GRAY8, 128, 96);
    const GstVideoRectangle from = {10, 20, 64, 48}, to = {0, 0, 128, 96};
    GstVideoMetaTransformMatrix matrix;
    gst_video_meta_transform_matrix_init(&matrix, &info, &from, &info, &to);
    return transformed(frame, gst_video_meta_transform_matrix_get_quark(), &matrix);
}
#endif

// The first Mtd of a type on a frame.
bool find(GstBuffer* frame, GstAnalyticsMtdType type, GstAnalyticsMtd* mtd) {
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(frame);
    gpointer state = nullptr;
    return meta && gst_analytics_relation_meta_iterate(meta, &state, type, mtd);
}
bool related(const GstAnalyticsMtd& from, const GstAnalyticsMtd& to) {
    return gst_analytics_relation_meta_get_relation(from.meta, from.id, to.id) ==
           GST_ANALYTICS_REL_TYPE_RELATE_TO;
}

// ---- the types

TEST(Keypoints, GoWithCopiesAndScales) {
    const vartml::Keypoint points[] = {{10, 20, 0.75f, true}, {30, 40, 0.25f, false}};
    GstBuffer* frame = gst_buffer_new();
    GstAnalyticsRelationMetaInitParams small = {1, 8};  // must grow
    auto* meta = gst_buffer_add_analytics_relation_meta_full(frame, &small);
    GstAnalyticsMtd added;
    const GQuark skeleton = g_quark_from_string("0-1");
    ASSERT_TRUE(add_keypoints(meta, {skeleton, points}, &added));
    ASSERT_TRUE(add_keypoints(meta, {0, {}}, nullptr));
    for (const bool half : {false, true}) {
        GstBuffer* other = half ? at_half_width(frame) : copied(frame);
        const float x = half ? 15 : 30;
        GstAnalyticsMtd mtd;
        ASSERT_TRUE(find(other, keypoints_mtd_type(), &mtd));
        const auto found = get_keypoints(mtd);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->skeleton, skeleton);
        ASSERT_EQ(found->points.size(), 2u);
        EXPECT_EQ(found->points[1].x, x);
        EXPECT_EQ(found->points[1].y, 40);
        EXPECT_EQ(found->points[1].score, 0.25f);
        EXPECT_TRUE(found->points[0].visible);
        EXPECT_FALSE(found->points[1].visible);
        gst_buffer_unref(other);
    }
    EXPECT_EQ(get_keypoints(added)->points[1].x, 30);  // the frame itself keeps its own
    gst_buffer_unref(frame);
}

#if GST_CHECK_VERSION(1, 28, 0)
TEST(Keypoints, FollowWhatCropsAndScales) {
    const vartml::Keypoint points[] = {{10, 20, 0.75f, true}, {30, 40, 0.25f, false}};
    GstBuffer* frame = gst_buffer_new();
    auto* meta = gst_buffer_add_analytics_relation_meta(frame);
    ASSERT_TRUE(add_keypoints(meta, {0, points}, nullptr));
    GstBuffer* part = enlarged_part(frame);
    GstAnalyticsMtd mtd;
    ASSERT_TRUE(find(part, keypoints_mtd_type(), &mtd));
    const auto found = get_keypoints(mtd);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->points[0].x, 0);
    EXPECT_EQ(found->points[0].y, 0);
    EXPECT_EQ(found->points[1].x, 40);
    EXPECT_EQ(found->points[1].y, 40);
    gst_buffer_unref(part);
    gst_buffer_unref(frame);
}
#endif

TEST(Embedding, GoesWithCopiesAndScalesAsItIs) {
    const float vector[] = {0.6f, 0.8f};
    GstBuffer* frame = gst_buffer_new();
    auto* meta = gst_buffer_add_analytics_relation_meta(frame);
    GstAnalyticsMtd added;
    ASSERT_TRUE(add_embedding(meta, vector, &added));
    for (const bool half : {false, true}) {
        GstBuffer* other = half ? at_half_width(frame) : copied(frame);
        GstAnalyticsMtd mtd;
        ASSERT_TRUE(find(other, embedding_mtd_type(), &mtd));
        EXPECT_TRUE(std::ranges::equal(get_embedding(mtd), vector));
        EXPECT_FALSE(get_keypoints(mtd));
        gst_buffer_unref(other);
    }
    gst_buffer_unref(frame);
}

TEST(Embedding, IsNotFoundInOtherTypes) {
    GstBuffer* frame = gst_buffer_new();
    auto* meta = gst_buffer_add_analytics_relation_meta(frame);
    GstAnalyticsMtd keypoints, od;
    ASSERT_TRUE(add_keypoints(meta, {}, &keypoints));
    ASSERT_TRUE(gst_analytics_relation_meta_add_od_mtd(meta, 0, 1, 2, 3, 4, 0.5f, &od));
    EXPECT_TRUE(get_embedding(keypoints).empty());
    EXPECT_TRUE(get_embedding(od).empty());
    EXPECT_FALSE(get_keypoints(od));
    gst_buffer_unref(frame);
}

// ---- the element

// Runs one frame of a model with these outputs; the frame is 128x96, the model 64x64, stretched.
class Details : public Decode {
protected:
    GstBuffer* run_on(const std::vector<StoredTensor>& tensors,
                      const std::function<void(InferenceRecord&)>& edit = {},
                      const std::function<void(GstBuffer*, Inference&)>& prepare = {}) {
        auto record = record_of(tensors);
        if (edit) edit(*record);
        std::vector<GstBuffer*> data;
        for (const StoredTensor& tensor : tensors) data.push_back(data_buffer(tensor));
        GstBuffer* in = frame();
        Inference inference = inference_of(record);
        inference.data = data;
        if (prepare) prepare(in, inference);
        EXPECT_TRUE(add_inference(in, inference, 100));
        GstBuffer* out = run(in);
        for (GstBuffer* buffer : data) gst_buffer_unref(buffer);
        return out;
    }
    void set_decoder(const char* nick) {
        gst_util_set_object_arg(G_OBJECT(element()), "decoder", nick);
    }
};

// A head whose rows are written one by one.
RefTensor rows_head(size_t attributes, const std::vector<std::vector<float>>& rows) {
    RefTensor t{std::vector<float>(positions * attributes), positions, attributes, true};
    for (size_t p = 0; p < rows.size(); ++p) {
        for (size_t a = 0; a < rows[p].size(); ++a) t.data[a * positions + p] = rows[p][a];
    }
    return t;
}

StoredTensor pose_head() {
    std::vector<float> row = {20, 20, 10, 8, 0.9f};
    for (int k = 0; k < 17; ++k) {
        row.insert(row.end(), {static_cast<float>(k), 40, static_cast<float>(k) / 16});
    }
    return stored_cpu(rows_head(5 + 51, {row}), "out");
}

TEST_F(Details, KeypointsOfABoxAreRelatedToIt) {
    set_decoder("yolo-v8-pose");
    set("keypoint-threshold", 0.5);
    open();
    for (const char* skeleton : {"", "0-1;1-16"}) {
        GstBuffer* out = run_on({pose_head()}, [&](InferenceRecord& record) {
            record.model_info.labels = {"person"};
            record.model_info.skeleton = skeleton;
        });
        ASSERT_NE(out, nullptr);
        GstAnalyticsMtd od, mtd;
        ASSERT_TRUE(find(out, gst_analytics_od_mtd_get_mtd_type(), &od));
        ASSERT_TRUE(find(out, keypoints_mtd_type(), &mtd));
        EXPECT_TRUE(related(od, mtd));
        const auto found = get_keypoints(mtd);
        ASSERT_EQ(found->points.size(), 17u);
        EXPECT_STREQ(g_quark_to_string(found->skeleton), *skeleton ? skeleton : "coco17");
        EXPECT_EQ(found->points[3].x, 6);
        EXPECT_EQ(found->points[3].y, 60);
        EXPECT_FALSE(found->points[7].visible);
        EXPECT_TRUE(found->points[8].visible);
        gst_buffer_unref(out);
    }
}

StoredTensor two_prototypes() {
    RefMap prototypes(2, 16, 16);
    for (size_t y = 0; y < 16; ++y) {
        for (size_t x = 0; x < 16; ++x) {
            prototypes.at(0, y, x) = x < 5 ? 4.f : -4.f;
            prototypes.at(1, y, x) = 1;
        }
    }
    return stored_map(prototypes, "protos", MapView::nchw);
}

// The bytes of a mask, its size and the place that upstream's API tells.
struct UpstreamMask {
    gint x, y;
    guint w, h, width, height;
    std::vector<uint8_t> pixels;
};
UpstreamMask mask_of(const GstAnalyticsMtd& mtd) {
    UpstreamMask mask{};
    GstBuffer* buffer =
        gst_analytics_segmentation_mtd_get_mask(&mtd, &mask.x, &mask.y, &mask.w, &mask.h);
    GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
    mask.width = meta->width, mask.height = meta->height;
    EXPECT_EQ(meta->format, GST_VIDEO_FORMAT_GRAY8);
    GstMapInfo map;
    gpointer data = nullptr;
    gint stride = 0;
    EXPECT_TRUE(gst_video_meta_map(meta, 0, &map, &data, &stride, GST_MAP_READ));
    for (guint row = 0; row < mask.height; ++row) {
        const auto* first = static_cast<const uint8_t*>(data) + row * static_cast<guint>(stride);
        mask.pixels.insert(mask.pixels.end(), first, first + mask.width);
    }
    gst_video_meta_unmap(meta, 0, &map);
    gst_buffer_unref(buffer);
    return mask;
}

TEST_F(Details, MaskOfABoxIsReadByUpstreamsApi) {
    set_decoder("yolo-v8-seg");
    open();
    // A box from 12 to 28: cells 3 to 6 of 4 pixels; the object is left of x = 20.
    const StoredTensor head = stored_cpu(rows_head(8, {{20, 20, 16, 8, 0.9f, 0, 1, 0}}), "out");
    GstBuffer* out = run_on({head, two_prototypes()});
    ASSERT_NE(out, nullptr);
    GstAnalyticsMtd od, segmentation;
    ASSERT_TRUE(find(out, gst_analytics_od_mtd_get_mtd_type(), &od));
    ASSERT_TRUE(find(out, gst_analytics_segmentation_mtd_get_mtd_type(), &segmentation));
    EXPECT_TRUE(related(od, segmentation));
    const UpstreamMask mask = mask_of(segmentation);
    EXPECT_EQ(mask.x, 24);  // the frame is twice as wide and 1.5 times as high as the model
    EXPECT_EQ(mask.y, 24);
    EXPECT_EQ(mask.w, 32u);
    EXPECT_EQ(mask.h, 12u);
    EXPECT_EQ(mask.width, 4u);
    EXPECT_EQ(mask.pixels, (std::vector<uint8_t>{1, 1, 0, 0, 1, 1, 0, 0}));
    gsize index = 9;
    EXPECT_EQ(gst_analytics_segmentation_mtd_get_region_count(&segmentation), 1u);
    EXPECT_TRUE(gst_analytics_segmentation_mtd_get_region_index(&segmentation, &index, 1));
    EXPECT_EQ(index, 0u);

    GstBuffer* half = at_half_width(out);  // upstream scales the place, not the pixels
    gst_buffer_unref(out);
    GstAnalyticsMtd scaled;
    ASSERT_TRUE(find(half, gst_analytics_segmentation_mtd_get_mtd_type(), &scaled));
    EXPECT_EQ(mask_of(scaled).x, 12);
    EXPECT_EQ(mask_of(scaled).w, 16u);
    EXPECT_EQ(mask_of(scaled).pixels, mask.pixels);
    gst_buffer_unref(half);
}

TEST_F(Details, MaskThresholdMayChangeWhilePlaying) {
    set_decoder("yolo-v8-seg");
    open();
    const StoredTensor head = stored_cpu(rows_head(8, {{20, 20, 16, 8, 0.9f, 0, 1, 0}}), "out");
    const auto pixels = [&] {
        GstBuffer* out = run_on({head, two_prototypes()});
        GstAnalyticsMtd segmentation;
        EXPECT_TRUE(find(out, gst_analytics_segmentation_mtd_get_mtd_type(), &segmentation));
        const auto found = mask_of(segmentation).pixels;
        gst_buffer_unref(out);
        return std::vector<int>(found.begin(), found.begin() + 4);
    };
    EXPECT_EQ(pixels(), (std::vector<int>{1, 1, 0, 0}));
    set("mask-threshold", 0.01);  // sigmoid(-4) = 0.018
    EXPECT_EQ(pixels(), (std::vector<int>{1, 1, 1, 1}));
    set("mask-threshold", 0.99);  // sigmoid(4) = 0.982
    EXPECT_EQ(pixels(), (std::vector<int>{0, 0, 0, 0}));
    for (const char* name : {"mask-threshold", "keypoint-threshold"}) {
        const GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element()), name);
        EXPECT_TRUE(spec->flags & GST_PARAM_CONTROLLABLE) << name;
    }
}

TEST_F(Details, TurnedBoxIsUpstreamsOrientedDetection) {
    set_decoder("yolo-v8-obb");
    open();
    const StoredTensor head = stored_cpu(
        rows_head(7, {{32, 32, 32, 10, 0.9f, 0, 1.5708f}, {10, 60, 8, 4, 0, 0.8f, 0}}), "out");
    GstBuffer* out = run_on({head});
    ASSERT_NE(out, nullptr);
    GstAnalyticsMtd od;
    ASSERT_TRUE(find(out, gst_analytics_od_mtd_get_mtd_type(), &od));
    gint x, y, w, h;
    gfloat angle, score;
    ASSERT_TRUE(gst_analytics_od_mtd_get_oriented_location(&od, &x, &y, &w, &h, &angle, &score));
    // 32 long along y and 10 along x in the model: 48 and 20 in the frame, about (64, 48).
    EXPECT_EQ(x, 64 - 24);
    EXPECT_EQ(w, 48);
    EXPECT_EQ(y, 48 - 10);
    EXPECT_EQ(h, 20);
    EXPECT_NEAR(angle, 1.5708, 1e-4);
    // Upstream's plain reading is the upright hull.
    ASSERT_TRUE(gst_analytics_od_mtd_get_location(&od, &x, &y, &w, &h, &score));
    EXPECT_NEAR(w, 20, 1);
    EXPECT_NEAR(h, 48, 1);
    EXPECT_NEAR(x, 54, 1);
    gst_buffer_unref(out);
}

TEST_F(Details, ClassMapHasARegionForEachClassThatOccurs) {
    set_decoder("segment");
    open();
    RefMap map(3, 32, 32);
    for (size_t i = 0; i < 32 * 32; ++i) map.data[(i % 2 ? 2 : 0) * 32 * 32 + i] = 1;
    for (const char* classes : {"", "dog"}) {
        set("classes", *classes ? classes : nullptr);
        GstBuffer* out = run_on(
            {stored_map(map, "out", MapView::nchw)},
            [](InferenceRecord& record) { record.model_info.labels = {"cat", "bird", "dog"}; });
        ASSERT_NE(out, nullptr);
        GstAnalyticsMtd segmentation, cls, inference;
        ASSERT_TRUE(find(out, gst_analytics_segmentation_mtd_get_mtd_type(), &segmentation));
        ASSERT_TRUE(find(out, gst_analytics_cls_mtd_get_mtd_type(), &cls));
        ASSERT_NE(get_inference(out, 0, &inference), nullptr);
        EXPECT_TRUE(related(segmentation, cls));
        EXPECT_TRUE(related(segmentation, inference));
        const UpstreamMask mask = mask_of(segmentation);
        EXPECT_EQ(mask.x, 0);
        EXPECT_EQ(mask.w, 128u);
        EXPECT_EQ(mask.h, 96u);
        EXPECT_EQ(mask.width, 32u);
        EXPECT_EQ(mask.pixels[0], *classes ? 255 : 0);
        EXPECT_EQ(mask.pixels[1], 2);
        ASSERT_EQ(gst_analytics_segmentation_mtd_get_region_count(&segmentation),
                  *classes ? 1u : 2u);
        gsize index = 0;
        ASSERT_TRUE(gst_analytics_segmentation_mtd_get_region_index(&segmentation, &index, 2));
        EXPECT_EQ(gst_analytics_cls_mtd_get_quark(&cls, index), g_quark_from_string("dog"));
        EXPECT_EQ(gst_analytics_cls_mtd_get_level(&cls, index), -1);  // upstream: not known
        gst_buffer_unref(out);
    }
}

TEST_F(Details, ClassMapOfManyClassesHasPixelsOf16Bits) {
    set_decoder("segment");
    open();
    RefMap map(300, 16, 16);
    for (size_t i = 0; i < 16 * 16; ++i) map.data[(i % 2 ? 299 : 255) * 16 * 16 + i] = 1;
    GstBuffer* out = run_on({stored_map(map, "out", MapView::nchw)},
                            [](InferenceRecord& record) { record.model_info.labels.clear(); });
    ASSERT_NE(out, nullptr);
    GstAnalyticsMtd segmentation, cls;
    ASSERT_TRUE(find(out, gst_analytics_segmentation_mtd_get_mtd_type(), &segmentation));
    ASSERT_TRUE(find(out, gst_analytics_cls_mtd_get_mtd_type(), &cls));
    GstBuffer* pixels =
        gst_analytics_segmentation_mtd_get_mask(&segmentation, nullptr, nullptr, nullptr, nullptr);
    const GstVideoMeta* meta = gst_buffer_get_video_meta(pixels);
    EXPECT_EQ(meta->format, GST_VIDEO_FORMAT_GRAY16_LE);
    EXPECT_EQ(meta->width, 16u);
    EXPECT_EQ(meta->stride[0], 32);
    guint8 first[4];
    ASSERT_EQ(gst_buffer_extract(pixels, 0, first, 4), 4u);
    EXPECT_EQ(GST_READ_UINT16_LE(first), 255);
    EXPECT_EQ(GST_READ_UINT16_LE(first + 2), 299);
    ASSERT_EQ(gst_analytics_segmentation_mtd_get_region_count(&segmentation), 2u);
    EXPECT_EQ(gst_analytics_segmentation_mtd_get_region_id(&segmentation, 1), 299u);
    EXPECT_EQ(gst_analytics_cls_mtd_get_quark(&cls, 1), g_quark_from_string("class-299"));
    gst_buffer_unref(pixels);
    gst_buffer_unref(out);
}

StoredTensor vector_of(const std::vector<float>& values) {
    StoredTensor tensor;
    tensor.info.name = "out";
    tensor.info.cpu = make_view(DataType::float32, Layout::GENERIC,
                                {1, static_cast<uint32_t>(values.size())}, {0, 1});
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    tensor.bytes.assign(bytes, bytes + 4 * values.size());
    return tensor;
}

TEST_F(Details, EmbeddingOfARegionIsRelatedToTheRegion) {
    set_decoder("embedding");
    open();
    GstAnalyticsMtd region;
    GstBuffer* out = run_on(
        {vector_of({3, 0, 4})}, [](InferenceRecord& r) { r.model_info.labels.clear(); },
        [&](GstBuffer* in, Inference& inference) {
            auto* meta = gst_buffer_add_analytics_relation_meta(in);
            gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("person"), 8, 8, 32,
                                                   48, 0.5f, &region);
            inference.region_od = static_cast<int>(region.id);
        });
    ASSERT_NE(out, nullptr);
    GstAnalyticsMtd mtd, od;
    ASSERT_TRUE(find(out, embedding_mtd_type(), &mtd));
    ASSERT_TRUE(find(out, gst_analytics_od_mtd_get_mtd_type(), &od));
    EXPECT_TRUE(related(od, mtd));
    const auto vector = get_embedding(mtd);
    ASSERT_EQ(vector.size(), 3u);
    EXPECT_FLOAT_EQ(vector[0], 0.6f);
    EXPECT_FLOAT_EQ(vector[2], 0.8f);
    gst_buffer_unref(out);
}

TEST_F(Details, TextOfARegionIsRelatedToTheRegionAndMakesNoQuark) {
    set_decoder("ctc-text");
    open();
    StoredTensor steps;
    steps.info.name = "out";
    steps.info.cpu = make_view(DataType::float32, Layout::NHW, {1, 3, 4});
    const float scores[] = {0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0.25f, 0.75f};
    steps.bytes.assign(reinterpret_cast<const uint8_t*>(scores),
                       reinterpret_cast<const uint8_t*>(scores) + sizeof scores);
    GstAnalyticsMtd region;
    GstBuffer* out = run_on(
        {steps}, [](InferenceRecord& r) { r.model_info.labels = {"never-a-quark-", "b", "京"}; },
        [&](GstBuffer* in, Inference& inference) {
            auto* meta = gst_buffer_add_analytics_relation_meta(in);
            gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("plate"), 8, 8, 32, 48,
                                                   0.5f, &region);
            inference.region_od = static_cast<int>(region.id);
        });
    ASSERT_NE(out, nullptr);
    GstBuffer* half = at_half_width(out);
    for (GstBuffer* frame : {out, half}) {
        GstAnalyticsMtd mtd, od;
        ASSERT_TRUE(find(frame, text_line_mtd_type(), &mtd));
        ASSERT_TRUE(find(frame, gst_analytics_od_mtd_get_mtd_type(), &od));
        EXPECT_TRUE(related(od, mtd));
        const auto line = get_text_line(mtd);
        ASSERT_TRUE(line);
        EXPECT_EQ(line->text, "never-a-quark-京");
        EXPECT_FLOAT_EQ(line->score, 0.875f);
        EXPECT_FALSE(get_text_line(od));
    }
    EXPECT_EQ(g_quark_try_string("never-a-quark-京"), 0u);
    gst_buffer_unref(half);
    gst_buffer_unref(out);
}

TEST_F(Details, LandmarksOfARegionLieInTheFrame) {
    set_decoder("landmarks");
    open();
    GstBuffer* out = run_on(
        {vector_of({0, 0, 32, 64, 64, 32})},
        [](InferenceRecord& r) { r.model_info.labels.clear(); },
        [&](GstBuffer* in, Inference& inference) {
            GstAnalyticsMtd region;
            auto* meta = gst_buffer_add_analytics_relation_meta(in);
            gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("hand"), 40, 20, 32,
                                                   16, 0.5f, &region);
            inference.region_od = static_cast<int>(region.id);
            inference.to_frame = {.a = 0.5, .b = 0, .c = 40, .d = 0, .e = 0.25, .f = 20};
        });
    ASSERT_NE(out, nullptr);
    GstAnalyticsMtd mtd, od;
    ASSERT_TRUE(find(out, keypoints_mtd_type(), &mtd));
    ASSERT_TRUE(find(out, gst_analytics_od_mtd_get_mtd_type(), &od));
    EXPECT_TRUE(related(od, mtd));
    const auto found = get_keypoints(mtd);
    ASSERT_EQ(found->points.size(), 3u);
    EXPECT_EQ(found->skeleton, 0u);
    EXPECT_EQ(found->points[1].x, 56);
    EXPECT_EQ(found->points[1].y, 36);
    EXPECT_EQ(stat("boxes"), 0u);
    gst_buffer_unref(out);
}

}  // namespace
