// SPDX-License-Identifier: Apache-2.0
#include "gst/metadata/inference.h"

#include <gst/vartml/inference.h>
#include <gst/video/gstvideometa.h>
#include <gst/video/video.h>

#include "tests/support/gst_main.h"

namespace {

using namespace vartml::gst;

std::shared_ptr<const InferenceRecord> record() {
    auto r = std::make_shared<InferenceRecord>();
    r->infer_id = "vartmlinfer0";
    r->model = "tiny";
    r->model_hash = "00112233445566778899aabbccddeeff";
    vartml::TensorInfo out;
    out.name = "boxes";
    out.cpu = vartml::make_view(vartml::DataType::float32, vartml::Layout::GENERIC, {1, 6}, {0, 1});
    r->outputs = {out};
    r->views = {out.cpu};
    r->tensor_ids = {"yolox-out"};
    r->model_info.decoder = "yolox";
    r->model_info.labels = {"cat", "dog"};
    r->model_width = 416;
    r->model_height = 320;
    return r;
}

// A frame of 640x480 with one inference whose data is `data` (may be null).
GstBuffer* frame_with_inference(GstBuffer* data) {
    GstBuffer* frame = gst_buffer_new_allocate(nullptr, 16, nullptr);
    Inference i;
    i.stream_id = "a stream id that is too long for the short string optimisation";
    i.frame_seq = 7;
    i.frame_width = 640, i.frame_height = 480;
    i.region_width = 640, i.region_height = 480;
    i.to_frame = {2, 0, 1, 0, 2, -4};
    i.record = record();
    if (data) i.data = {data};
    EXPECT_TRUE(add_inference(frame, i, 0));
    return frame;
}

GstVideoInfo video_info(int width, int height, int par_n = 1, int par_d = 1) {
    GstVideoInfo info;
    gst_video_info_set_format(&info, GST_VIDEO_FORMAT_GRAY8, guint(width), guint(height));
    info.par_n = par_n;
    info.par_d = par_d;
    return info;
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

// What videoscale and videoconvert do with the metas of a frame, before GStreamer 1.28.
GstBuffer* scaled(GstBuffer* frame, GstVideoInfo in, GstVideoInfo out) {
    GstVideoMetaTransform transform = {&in, &out};
    return transformed(frame, gst_video_meta_transform_scale_get_quark(), &transform);
}

TEST(Inference, KeepsWhatWasAdded) {
    GstBuffer* frame = frame_with_inference(nullptr);
    const Inference* got = get_inference(frame, 0);
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(got->frame_seq, 7u);
    EXPECT_EQ(got->stream_id, "a stream id that is too long for the short string optimisation");
    EXPECT_EQ(got->record->model, "tiny");
    EXPECT_EQ(get_inference(frame, 1), nullptr);
    gst_buffer_unref(frame);
}

TEST(Inference, SeveralOnOneFrameKeepTheirOrder) {
    GstBuffer* frame = frame_with_inference(nullptr);
    for (guint64 n = 100; n < 150; ++n) {  // beyond the first size of the relation meta
        Inference i;
        i.frame_seq = n;
        ASSERT_TRUE(add_inference(frame, i, 0));
    }
    for (unsigned n = 0; n < 50; ++n) EXPECT_EQ(get_inference(frame, n + 1)->frame_seq, 100u + n);
    EXPECT_EQ(get_inference(frame, 51), nullptr);
    gst_buffer_unref(frame);
}

TEST(Inference, LivesBesideUpstreamsMetadata) {
    GstBuffer* frame = gst_buffer_new();
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(frame);
    GstAnalyticsODMtd od;
    ASSERT_TRUE(gst_analytics_relation_meta_add_od_mtd(meta, 0, 1, 2, 3, 4, 0.5f, &od));
    Inference i;
    i.frame_seq = 3;
    ASSERT_TRUE(add_inference(frame, i, 0));
    GstAnalyticsMtd mtd;
    ASSERT_NE(get_inference(frame, 0, &mtd), nullptr);
    EXPECT_TRUE(gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO,
                                                         od.id, mtd.id));
    EXPECT_EQ(get_inference(frame, 0)->frame_seq, 3u);
    gst_buffer_unref(frame);
}

TEST(Inference, CopyOfTheFrameOwnsItsOwnReferences) {
    GstBuffer* data = gst_buffer_new_allocate(nullptr, 24, nullptr);
    GstBuffer* frame = frame_with_inference(data);
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data), 2);
    GstBuffer* copy = gst_buffer_copy(frame);
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data), 3);
    gst_buffer_unref(frame);
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data), 2);
    ASSERT_NE(get_inference(copy, 0), nullptr);
    EXPECT_EQ(get_inference(copy, 0)->data.at(0), data);
    EXPECT_TRUE(get_inference(copy, 0)->geometry_valid);
    EXPECT_EQ(get_inference(copy, 0)->to_frame, (vartml::Affine{2, 0, 1, 0, 2, -4}));
    gst_buffer_unref(copy);
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data), 1);
    gst_buffer_unref(data);
}

TEST(Inference, DroppingTensorsKeepsTheRest) {
    GstBuffer* data = gst_buffer_new_allocate(nullptr, 24, nullptr);
    GstBuffer* frame = frame_with_inference(data);
    drop_inference_tensors(frame);
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data), 1);
    EXPECT_TRUE(get_inference(frame, 0)->data.empty());
    EXPECT_EQ(get_inference(frame, 0)->frame_seq, 7u);
    gst_buffer_unref(frame);
    gst_buffer_unref(data);
}

struct ScaleCase {
    const char* why;
    GstVideoInfo in, out;
    bool valid;
    vartml::Affine map;
};
TEST(Inference, ScalingComposesTheMapOrSaysThatItCannot) {
    const ScaleCase cases[] = {
        {"equal sizes are a copy, whatever the pixel aspect",
         video_info(640, 480),
         video_info(640, 480, 2, 1),
         true,
         {2, 0, 1, 0, 2, -4}},
        {"half", video_info(640, 480), video_info(320, 240), true, {1, 0, 0.5, 0, 1, -2}},
        {"display aspect kept by pixel aspect",
         video_info(640, 480),
         video_info(320, 480, 2, 1),
         true,
         {1, 0, 0.5, 0, 2, -4}},
        {"a side rounded: a border of less than a pixel",
         video_info(640, 480),
         video_info(320, 241),
         true,
         {1, 0, 0.5, 0, 241.0 / 240, -4 * 241.0 / 480}},
        {"a border of a pixel and more",
         video_info(640, 480),
         video_info(320, 242),
         false,
         {2, 0, 1, 0, 2, -4}},
        {"another aspect: perhaps borders",
         video_info(640, 480),
         video_info(640, 360),
         false,
         {2, 0, 1, 0, 2, -4}},
    };
    for (const ScaleCase& c : cases) {
        SCOPED_TRACE(c.why);
        GstBuffer* frame = frame_with_inference(nullptr);
        GstBuffer* result = scaled(frame, c.in, c.out);
        const Inference* got = get_inference(result, 0);
        ASSERT_NE(got, nullptr);
        EXPECT_EQ(got->geometry_valid, c.valid);
        EXPECT_EQ(got->to_frame, c.map);
        EXPECT_EQ(got->frame_width, 640u);
        gst_buffer_unref(frame);
        gst_buffer_unref(result);
    }
}

#if GST_CHECK_VERSION(1, 28, 0)
// The same by a matrix, which also tells of borders, and of parts that are cut out.
struct MatrixCase {
    const char* why;
    GstVideoRectangle in, out;
    float axes[2][2];  // signs
    bool valid;
    double x, y;  // where what was at 21,36 is now
};
TEST(Inference, FollowsWhatCropsScalesAndAddsBorders) {
    const GstVideoInfo in = video_info(640, 480), out = video_info(320, 320);
    const MatrixCase cases[] = {
        {"the same", {0, 0, 640, 480}, {0, 0, 640, 480}, {{1, 0}, {0, 1}}, true, 21, 36},
        {"half, with borders",
         {0, 0, 640, 480},
         {0, 20, 320, 240},
         {{1, 0}, {0, 1}},
         true,
         10.5,
         38},
        {"a part", {16, 8, 320, 320}, {0, 0, 320, 320}, {{1, 0}, {0, 1}}, true, 5, 28},
        {"a part, enlarged", {16, 8, 160, 160}, {0, 0, 320, 320}, {{1, 0}, {0, 1}}, true, 10, 56},
        {"mirrored", {0, 0, 640, 480}, {0, 0, 640, 480}, {{-1, 0}, {0, 1}}, false, 0, 0},
        {"turned", {0, 0, 640, 480}, {0, 0, 480, 640}, {{0, -1}, {1, 0}}, false, 0, 0},
    };
    for (const MatrixCase& c : cases) {
        SCOPED_TRACE(c.why);
        GstBuffer* frame = frame_with_inference(nullptr);
        GstVideoMetaTransformMatrix matrix;
        gst_video_meta_transform_matrix_init(&matrix, &in, &c.in, &out, &c.out);
        if (!c.valid) {
            for (int row = 0; row < 2; ++row)
                for (int column = 0; column < 2; ++column)
                    matrix.matrix[row][column] = c.axes[row][column];
        }
        GstBuffer* result =
            transformed(frame, gst_video_meta_transform_matrix_get_quark(), &matrix);
        const Inference* got = get_inference(result, 0);
        ASSERT_NE(got, nullptr);
        EXPECT_EQ(got->geometry_valid, c.valid);
        if (c.valid) {
            const vartml::Affine& m = got->to_frame;
            EXPECT_NEAR(m.a * 10 + m.b * 20 + m.c, c.x, 1e-4);
            EXPECT_NEAR(m.d * 10 + m.e * 20 + m.f, c.y, 1e-4);
        }
        gst_buffer_unref(frame);
        gst_buffer_unref(result);
    }
}
#endif

TEST(Inference, StructureListsTheFields) {
    GstBuffer* frame = frame_with_inference(nullptr);
    GstStructure* s = gst_vartml_inference_get_structure(frame, 0);
    ASSERT_NE(s, nullptr);
    EXPECT_STREQ(gst_structure_get_string(s, "status"), "inferred");
    guint64 seq = 0;
    EXPECT_TRUE(gst_structure_get_uint64(s, "frame_seq", &seq));
    EXPECT_EQ(seq, 7u);
    guint width = 0;
    EXPECT_TRUE(gst_structure_get_uint(s, "model_w", &width));
    EXPECT_EQ(width, 416u);
    const GValue* map = gst_structure_get_value(s, "to_frame");
    ASSERT_EQ(gst_value_array_get_size(map), 6u);
    EXPECT_EQ(g_value_get_double(gst_value_array_get_value(map, 5)), -4.0);
    const GValue* tensors = gst_structure_get_value(s, "tensors");
    ASSERT_EQ(gst_value_array_get_size(tensors), 1u);
    const auto* tensor =
        static_cast<const GstStructure*>(g_value_get_boxed(gst_value_array_get_value(tensors, 0)));
    EXPECT_STREQ(gst_structure_get_string(tensor, "id"), "yolox-out");
    EXPECT_STREQ(gst_structure_get_string(tensor, "view"), "cpu");
    gst_structure_free(s);
    EXPECT_EQ(gst_vartml_inference_get_structure(frame, 1), nullptr);
    gst_buffer_unref(frame);
}

}  // namespace
