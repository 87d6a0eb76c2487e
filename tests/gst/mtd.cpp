// SPDX-License-Identifier: Apache-2.0
// The C functions of libgstvartml-1.0 say what the elements wrote, and nothing of another type.
#include "gst/metadata/mtd.h"

#include <gst/vartml/inference.h>
#include <gst/vartml/mtd.h>

#include <iterator>

#include "gst/metadata/inference.h"
#include "tests/support/gst_main.h"

namespace {

using namespace vartml::gst;

// A frame with one Mtd of each type of ours and a detection.
class Mtds : public ::testing::Test {
protected:
    Mtds() {
        Inference inference;
        inference.frame_seq = 7;
        inference.status = InferenceStatus::skipped_late;
        EXPECT_TRUE(add_inference(frame_, inference, 0));
        EXPECT_NE(get_inference(frame_, 0, &mtd_[0]), nullptr);
        auto* meta = gst_buffer_get_analytics_relation_meta(frame_);
        const vartml::Keypoint points[] = {{10, 20, 0.75f, true}, {30, 40, 0.25f, false}};
        EXPECT_TRUE(add_keypoints(meta, {g_quark_from_string("0-1"), points}, &mtd_[1]));
        const float vector[] = {0.6f, 0.8f};
        EXPECT_TRUE(add_embedding(meta, vector, &mtd_[2]));
        EXPECT_TRUE(add_text_line(meta, {"ÄB 12", 0.5f}, &mtd_[3]));
        const vartml::ZonePoint shape[] = {{1, 2}, {3, 4}, {5, 6}};
        EXPECT_TRUE(
            add_zone(meta, {g_quark_from_string("door"), true, {1, 2, 3, 4}, shape}, &mtd_[4]));
        EXPECT_TRUE(add_zone_visit(meta,
                                   {g_quark_from_string("door"), 0,
                                    vartml::ZoneEventKind::cross_out, 1ull << 40, 1ull << 41},
                                   &mtd_[5]));
        EXPECT_TRUE(gst_analytics_relation_meta_add_od_mtd(meta, 0, 1, 2, 3, 4, 0.5f, &mtd_[6]));
    }
    ~Mtds() override { gst_buffer_unref(frame_); }

    GstBuffer* frame_ = gst_buffer_new();
    GstAnalyticsMtd mtd_[7];  // of an inference, keypoints, embedding, text, zone, visit, detection
};

TEST_F(Mtds, AreFoundByTheirTypes) {
    using TypeOf = GstAnalyticsMtdType (*)();
    const TypeOf types[] = {
        gst_vartml_inference_mtd_get_mtd_type, gst_vartml_keypoints_mtd_get_mtd_type,
        gst_vartml_embedding_mtd_get_mtd_type, gst_vartml_text_mtd_get_mtd_type,
        gst_vartml_zone_mtd_get_mtd_type,      gst_vartml_zone_visit_mtd_get_mtd_type,
        gst_analytics_od_mtd_get_mtd_type};
    static_assert(std::size(types) == std::size(decltype(mtd_){}));
    for (size_t i = 0; i < std::size(types); ++i) {
        SCOPED_TRACE(gst_analytics_mtd_type_get_name(types[i]()));
        gpointer state = nullptr;
        GstAnalyticsMtd found;
        ASSERT_TRUE(gst_analytics_relation_meta_iterate(mtd_[i].meta, &state, types[i](), &found));
        EXPECT_EQ(found.id, mtd_[i].id);
        EXPECT_FALSE(gst_analytics_relation_meta_iterate(mtd_[i].meta, &state, types[i](), &found));
    }
}

TEST_F(Mtds, SayWhatWasWritten) {
    GstStructure* inference = gst_vartml_inference_mtd_get_structure(&mtd_[0]);
    ASSERT_NE(inference, nullptr);
    EXPECT_STREQ(gst_structure_get_string(inference, "status"), "skipped-late");
    gst_structure_free(inference);

    gfloat x, y, score;
    gboolean visible;
    EXPECT_STREQ(gst_vartml_keypoints_mtd_get_skeleton(&mtd_[1]), "0-1");
    EXPECT_EQ(gst_vartml_keypoints_mtd_get_length(&mtd_[1]), 2u);
    ASSERT_TRUE(gst_vartml_keypoints_mtd_get_point(&mtd_[1], 1, &x, &y, &score, &visible));
    EXPECT_EQ(x, 30);
    EXPECT_EQ(y, 40);
    EXPECT_EQ(score, 0.25f);
    EXPECT_FALSE(visible);

    gsize length;
    const gfloat* vector = gst_vartml_embedding_mtd_get_vector(&mtd_[2], &length);
    ASSERT_EQ(length, 2u);
    EXPECT_EQ(vector[1], 0.8f);

    gchar* text = gst_vartml_text_mtd_get_text(&mtd_[3], &score);
    EXPECT_STREQ(text, "ÄB 12");
    EXPECT_EQ(score, 0.5f);
    g_free(text);

    const gchar *name, *event, *label;
    gboolean line;
    guint64 inside, in, out, track;
    GstClockTime longest, dwell;
    ASSERT_TRUE(gst_vartml_zone_mtd_get_info(&mtd_[4], &name, &line, &inside, &in, &out, &longest));
    EXPECT_STREQ(name, "door");
    EXPECT_TRUE(line);
    EXPECT_EQ(inside, 1u);
    EXPECT_EQ(in, 2u);
    EXPECT_EQ(out, 3u);
    EXPECT_EQ(longest, 4u);
    EXPECT_EQ(gst_vartml_zone_mtd_get_length(&mtd_[4]), 3u);
    ASSERT_TRUE(gst_vartml_zone_mtd_get_point(&mtd_[4], 2, &x, &y));
    EXPECT_EQ(x, 5);
    EXPECT_EQ(y, 6);

    ASSERT_TRUE(
        gst_vartml_zone_visit_mtd_get_info(&mtd_[5], &name, &event, &label, &track, &dwell));
    EXPECT_STREQ(name, "door");
    EXPECT_STREQ(event, "out");
    EXPECT_EQ(label, nullptr);
    EXPECT_EQ(track, 1ull << 40);
    EXPECT_EQ(dwell, 1ull << 41);
}

TEST_F(Mtds, MayBeAskedForAPart) {
    EXPECT_TRUE(
        gst_vartml_keypoints_mtd_get_point(&mtd_[1], 0, nullptr, nullptr, nullptr, nullptr));
    EXPECT_NE(gst_vartml_embedding_mtd_get_vector(&mtd_[2], nullptr), nullptr);
    g_free(gst_vartml_text_mtd_get_text(&mtd_[3], nullptr));
    EXPECT_TRUE(gst_vartml_zone_mtd_get_info(&mtd_[4], nullptr, nullptr, nullptr, nullptr, nullptr,
                                             nullptr));
    EXPECT_TRUE(gst_vartml_zone_mtd_get_point(&mtd_[4], 0, nullptr, nullptr));
    EXPECT_TRUE(
        gst_vartml_zone_visit_mtd_get_info(&mtd_[5], nullptr, nullptr, nullptr, nullptr, nullptr));
}

TEST_F(Mtds, HaveNoMorePointsThanWereWritten) {
    EXPECT_FALSE(
        gst_vartml_keypoints_mtd_get_point(&mtd_[1], 2, nullptr, nullptr, nullptr, nullptr));
    EXPECT_FALSE(gst_vartml_zone_mtd_get_point(&mtd_[4], 3, nullptr, nullptr));
}

TEST_F(Mtds, GiveNothingOfAnotherType) {
    for (size_t i = 0; i < std::size(mtd_); ++i) {
        const GstAnalyticsMtd* mtd = &mtd_[i];
        SCOPED_TRACE(gst_analytics_mtd_type_get_name(gst_analytics_mtd_get_mtd_type(mtd)));
        gsize length = 1;
        if (i != 0) {
            EXPECT_EQ(gst_vartml_inference_mtd_get_structure(mtd), nullptr);
        }
        if (i != 1) {
            EXPECT_EQ(gst_vartml_keypoints_mtd_get_skeleton(mtd), nullptr);
            EXPECT_EQ(gst_vartml_keypoints_mtd_get_length(mtd), 0u);
            EXPECT_FALSE(
                gst_vartml_keypoints_mtd_get_point(mtd, 0, nullptr, nullptr, nullptr, nullptr));
        }
        if (i != 2) {
            EXPECT_EQ(gst_vartml_embedding_mtd_get_vector(mtd, &length), nullptr);
            EXPECT_EQ(length, 0u);
        }
        if (i != 3) {
            EXPECT_EQ(gst_vartml_text_mtd_get_text(mtd, nullptr), nullptr);
        }
        if (i != 4) {
            EXPECT_FALSE(gst_vartml_zone_mtd_get_info(mtd, nullptr, nullptr, nullptr, nullptr,
                                                      nullptr, nullptr));
            EXPECT_EQ(gst_vartml_zone_mtd_get_length(mtd), 0u);
            EXPECT_FALSE(gst_vartml_zone_mtd_get_point(mtd, 0, nullptr, nullptr));
        }
        if (i != 5) {
            EXPECT_FALSE(gst_vartml_zone_visit_mtd_get_info(mtd, nullptr, nullptr, nullptr, nullptr,
                                                            nullptr));
        }
    }
}

}  // namespace
