// SPDX-License-Identifier: Apache-2.0
// Where GStreamer 1.26 surprises: each test shows the trap, where this version has it, and that
// what we do instead works. When a trap is gone on every supported version, its workaround can go.
#include <gst/allocators/gstdmabuf.h>
#include <gst/analytics/analytics.h>
#include <gst/video/gstvideometa.h>
#include <gst/video/video-info-dma.h>

#include "gst/metadata/inference.h"
#include "gst/support/picture_info.h"
#include "gst/support/tensor_meta.h"
#include "tests/support/gst_main.h"

namespace {

using namespace vartml::gst;

bool older_than(guint major, guint minor, guint micro) {
    guint v[4];
    gst_version(&v[0], &v[1], &v[2], &v[3]);
    return std::tie(v[0], v[1], v[2]) < std::tie(major, minor, micro);
}

// Runs with critical warnings counted instead of fatal.
class Criticals {
public:
    Criticals()
        : fatal_(g_log_set_always_fatal(GLogLevelFlags(G_LOG_FATAL_MASK))),
          handler_(g_log_set_default_handler(count, this)) {}
    ~Criticals() {
        g_log_set_default_handler(handler_, nullptr);
        g_log_set_always_fatal(fatal_);
    }
    Criticals(const Criticals&) = delete;
    Criticals& operator=(const Criticals&) = delete;
    int seen = 0;

private:
    static void count(const gchar*, GLogLevelFlags, const gchar*, gpointer self) {
        ++static_cast<Criticals*>(self)->seen;
    }
    GLogLevelFlags fatal_;
    GLogFunc handler_;
};

GstTensorMeta* add_tensors(GstBuffer* buffer, GstBuffer* data) {
    auto* meta = reinterpret_cast<GstTensorMeta*>(
        gst_buffer_add_meta(buffer, GST_TENSOR_META_INFO, nullptr));
    GstTensor** tensors = g_new0(GstTensor*, 1);
    tensors[0] = gst_tensor_alloc(1);
    tensors[0]->data = gst_buffer_ref(data);
    tensors[0]->data_type = GST_TENSOR_DATA_TYPE_UINT8;
    tensors[0]->dims[0] = 4;
    gst_tensor_meta_set(meta, 1, tensors);
    return meta;
}

Inference inference_with(GstBuffer* data) {
    Inference inference;
    inference.record = std::make_shared<const InferenceRecord>();
    inference.data = {data};
    return inference;
}

TEST(Traps, ACopyOfAFrameDropsTheTensorMetaAndTheRecordKeepsTheTensors) {
    GstBuffer* data = gst_buffer_new_allocate(nullptr, 4, nullptr);
    GstBuffer* frame = gst_buffer_new();
    add_tensors(frame, data);
    ASSERT_TRUE(add_inference(frame, inference_with(data), 0));
    GstBuffer* copy = gst_buffer_copy(frame);
    if (older_than(1, 28, 0)) {
        EXPECT_EQ(gst_buffer_get_meta(copy, GST_TENSOR_META_API_TYPE), nullptr);
    }
    ASSERT_NE(get_inference(copy, 0), nullptr);
    EXPECT_EQ(get_inference(copy, 0)->data[0], data);
    gst_buffer_unref(frame);
    EXPECT_EQ(get_inference(copy, 0)->data[0], data) << "the copy has a reference of its own";
    gst_buffer_unref(copy);
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data), 1);
    gst_buffer_unref(data);
}

TEST(Traps, TheAdderOfTensorMetaReturnsAnExistingOneSoWeAddPlainly) {
    GstBuffer* data = gst_buffer_new_allocate(nullptr, 4, nullptr);
    GstBuffer* frame = gst_buffer_new();
    GstTensorMeta* first = add_tensors(frame, data);
    if (older_than(1, 26, 6)) {
        EXPECT_EQ(gst_buffer_add_tensor_meta(frame), first);
    }
    EXPECT_NE(add_tensors(frame, data), first);
    int count = 0;
    for_each_tensor_meta(frame, [&](GstTensorMeta*) {
        ++count;
        return true;
    });
    EXPECT_GE(count, 2);
    gst_buffer_unref(frame);
    gst_buffer_unref(data);
}

TEST(Traps, TheEasyTensorRefusesABufferThatIsLargerSoWeFillOneIn) {
    Criticals criticals;
    GstBuffer* data = gst_buffer_new_allocate(nullptr, 64, nullptr);
    gsize dims[] = {4};
    GstTensor* tensor =
        gst_tensor_new_simple(g_quark_from_static_string("x"), GST_TENSOR_DATA_TYPE_UINT8,
                              gst_buffer_ref(data), GST_TENSOR_DIM_ORDER_ROW_MAJOR, 1, dims);
    if (tensor) {
        gst_tensor_free(tensor);
    } else {
        EXPECT_GE(criticals.seen, 1);
        gst_buffer_unref(data);  // it did not take the reference
    }
    GstBuffer* frame = gst_buffer_new();
    EXPECT_NE(add_tensors(frame, data), nullptr);
    gst_buffer_unref(frame);
    gst_buffer_unref(data);
}

TEST(Traps, MetadataMoveWhenMoreIsAddedSoTheyAreFetchedAgain) {
    GstBuffer* data = gst_buffer_new_allocate(nullptr, 4, nullptr);
    GstBuffer* frame = gst_buffer_new();
    ASSERT_TRUE(add_inference(frame, inference_with(data), 0));
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(frame);
    for (int i = 0; i < 1000; ++i) {
        GstAnalyticsODMtd mtd;
        ASSERT_TRUE(gst_analytics_relation_meta_add_od_mtd(meta, 0, i, i, 2, 2, 1, &mtd));
    }
    ASSERT_NE(get_inference(frame, 0), nullptr);
    EXPECT_EQ(get_inference(frame, 0)->data[0], data);
    gst_buffer_unref(frame);
    gst_buffer_unref(data);
}

TEST(Traps, DrmInfoRefusesTheOldCapsWhichPlainInfoTakes) {
    GstCaps* old = gst_caps_from_string(
        "video/x-raw(memory:DMABuf),format=NV12,width=64,height=48,framerate=30/1");
    GstVideoInfoDmaDrm drm;
    EXPECT_FALSE(gst_video_info_dma_drm_from_caps(&drm, old));
    EXPECT_TRUE(frame_format(old).has_value());
    gst_caps_unref(old);
}

TEST(Traps, FormatsWithoutFourccAreLeftOutOfDrmCaps) {
    for (const GstVideoFormat format : {GST_VIDEO_FORMAT_RGBP, GST_VIDEO_FORMAT_BGRP}) {
        EXPECT_EQ(gst_video_dma_drm_fourcc_from_format(format), 0u);
        EXPECT_EQ(drm_fourcc(format), "");
    }
    // Every other name is the one that GStreamer gives to the format.
    GstCaps* caps = picture_caps();
    const GValue* list = gst_structure_get_value(gst_caps_get_structure(caps, 1), "format");
    for (guint i = 0; i < gst_value_list_get_size(list); ++i) {
        const GstVideoFormat format =
            gst_video_format_from_string(g_value_get_string(gst_value_list_get_value(list, i)));
        const std::string ours = drm_fourcc(format);
        if (ours.empty()) continue;
        EXPECT_EQ(gst_video_dma_drm_fourcc_to_format(
                      gst_video_dma_drm_fourcc_from_string(ours.c_str(), nullptr)),
                  format)
            << ours;
    }
    gst_caps_unref(caps);
}

TEST(Traps, MetadataAreNotCopiedIntoABufferThatHasSomeSoWeCopyFirst) {
    GstBuffer* data = gst_buffer_new_allocate(nullptr, 4, nullptr);
    GstBuffer *a = gst_buffer_new(), *b = gst_buffer_new();
    ASSERT_TRUE(add_inference(a, inference_with(data), 0));
    gst_buffer_copy_into(b, a, GST_BUFFER_COPY_META, 0, gsize(-1));
    ASSERT_TRUE(add_inference(b, inference_with(data), 0));
    EXPECT_NE(get_inference(b, 1), nullptr);
    gst_buffer_unref(a);
    gst_buffer_unref(b);
    gst_buffer_unref(data);
}

TEST(Traps, TensorCapsOfLaterVersionsDoNotParseHere) {
    if (!older_than(1, 28, 0)) GTEST_SKIP() << "this GStreamer parses them";
    Criticals criticals;
    GstCaps* caps = gst_caps_from_string(
        "video/x-raw,tensors=(structure)[tensorgroups,g=(/uniquelist){(caps)[tensor/strided]}]");
    EXPECT_EQ(caps, nullptr);
    if (caps) gst_caps_unref(caps);
}

}  // namespace
