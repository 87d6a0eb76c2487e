// SPDX-License-Identifier: Apache-2.0
// Overlay compositions: small, cached, beside those that are there, and the same picture.
#include <set>

#include "tests/gst/overlay_harness.h"

namespace {

using namespace overlay_test;

struct Rectangle {
    int x, y;
    guint w, h;
    GstBuffer* pixels;  // of the composition
};

class OverlayAttach : public Overlay {
protected:
    // Downstream draws compositions.
    void open_attaching(int width, int height, GstVideoFormat format = GST_VIDEO_FORMAT_RGB) {
        info_ = make_info(format, width, height);
        harness_ = gst_harness_new_with_element(element(), "sink", "src");
        gst_harness_add_propose_allocation_meta(
            harness_, GST_VIDEO_OVERLAY_COMPOSITION_META_API_TYPE, nullptr);
        gst_harness_set_src_caps(harness_, gst_video_info_to_caps(&info_));
    }
    static std::vector<Rectangle> rectangles(GstBuffer* buffer) {
        std::vector<Rectangle> found;
        const auto* meta = gst_buffer_get_video_overlay_composition_meta(buffer);
        for (guint i = 0; meta && i < gst_video_overlay_composition_n_rectangles(meta->overlay);
             ++i) {
            GstVideoOverlayRectangle* r =
                gst_video_overlay_composition_get_rectangle(meta->overlay, i);
            Rectangle one{};
            gst_video_overlay_rectangle_get_render_rectangle(r, &one.x, &one.y, &one.w, &one.h);
            one.pixels = gst_video_overlay_rectangle_get_pixels_unscaled_raw(
                r, gst_video_overlay_rectangle_get_flags(r));
            found.push_back(one);
        }
        return found;
    }
    static gsize bytes_of_pixels(const std::vector<Rectangle>& all) {
        std::set<GstBuffer*> different;
        gsize bytes = 0;
        for (const Rectangle& r : all) {
            if (different.insert(r.pixels).second) bytes += gst_buffer_get_size(r.pixels);
        }
        return bytes;
    }
};

TEST_F(OverlayAttach, ABoxWithLabelOn4kIsSmall) {
    open_attaching(3840, 2160, GST_VIDEO_FORMAT_NV12);
    GstBuffer* in = frame();
    add_od(in, 500, 500, 1000, 600, "person");
    const Buffer out = run(in);
    const auto all = rectangles(out.get());
    ASSERT_EQ(all.size(), 5u);  // four sides and a label
    EXPECT_LT(bytes_of_pixels(all), 65536u);
    EXPECT_LT(stat("rectangle-bytes"), 65536u);
    EXPECT_EQ(all[0].pixels, all[3].pixels);
    const std::vector<std::array<int, 4>> want = {
        {497, 497, 1006, 6}, {497, 1097, 1006, 6}, {497, 503, 6, 594}, {1497, 503, 6, 594}};
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ((std::array<int, 4>{all[i].x, all[i].y, static_cast<int>(all[i].w),
                                      static_cast<int>(all[i].h)}),
                  want[i]);
    }
    EXPECT_EQ(all[4].x, 497);
    EXPECT_EQ(all[4].y + static_cast<int>(all[4].h), 497);
    EXPECT_EQ(stat("attached"), 1u);
    EXPECT_EQ(stat("blended"), 0u);
}

TEST_F(OverlayAttach, BitmapsOfLabelsAndColorsAreMadeOnce) {
    open_attaching(320, 200);
    guint64 made = 0;
    for (int i = 0; i < 10; ++i) {
        GstBuffer* in = frame();
        add_od(in, 10 + i, 50 + i, 50, 50, "cat");
        add_od(in, 100 + i, 50 + i, 50, 50, "dog");
        run(in);
        if (i == 0) made = stat("rectangle-bytes");
    }
    EXPECT_GT(made, 0u);
    EXPECT_EQ(stat("rectangle-bytes"), made);
}

TEST_F(OverlayAttach, NeverTouchesTheFrame) {
    open_attaching(320, 200);
    GstBuffer* in = gst_buffer_new();  // there is nothing to map
    add_od(in, 10, 10, 50, 50);
    const Buffer out = run(in);
    EXPECT_EQ(gst_buffer_n_memory(out.get()), 0u);
    EXPECT_EQ(rectangles(out.get()).size(), 5u);
    in = frame();
    const GstMemory* memory = gst_buffer_peek_memory(in, 0);
    add_od(in, 10, 10, 50, 50);
    gst_buffer_ref(in);
    const Buffer second = run(in);
    EXPECT_EQ(gst_buffer_peek_memory(second.get(), 0), memory);
    EXPECT_TRUE(rectangles(in).empty());
    gst_buffer_unref(in);
    EXPECT_EQ(stat("copied"), 0u);
}

TEST_F(OverlayAttach, KeepsWhatIsOnTheFrameAlready) {
    open_attaching(320, 200);
    GstBuffer* in = frame();
    GstBuffer* pixels = gst_buffer_new_allocate(nullptr, 400, nullptr);
    gst_buffer_add_video_meta(pixels, GST_VIDEO_FRAME_FLAG_NONE,
                              GST_VIDEO_OVERLAY_COMPOSITION_FORMAT_RGB, 10, 10);
    GstVideoOverlayRectangle* there = gst_video_overlay_rectangle_new_raw(
        pixels, 5, 6, 10, 10, GST_VIDEO_OVERLAY_FORMAT_FLAG_NONE);
    GstVideoOverlayComposition* composition = gst_video_overlay_composition_new(there);
    gst_buffer_add_video_overlay_composition_meta(in, composition);
    add_od(in, 100, 100, 50, 50);
    const Buffer out = run(in);
    gpointer state = nullptr;
    guint count = 0;
    bool found = false;
    while (GstMeta* meta = gst_buffer_iterate_meta_filtered(
               out.get(), &state, GST_VIDEO_OVERLAY_COMPOSITION_META_API_TYPE)) {
        auto* overlay = reinterpret_cast<GstVideoOverlayCompositionMeta*>(meta)->overlay;
        for (guint i = 0; i < gst_video_overlay_composition_n_rectangles(overlay); ++i, ++count) {
            gint x, y;
            guint w, h;
            gst_video_overlay_rectangle_get_render_rectangle(
                gst_video_overlay_composition_get_rectangle(overlay, i), &x, &y, &w, &h);
            found = found || (x == 5 && y == 6 && w == 10 && h == 10);
        }
    }
    EXPECT_TRUE(found);
    EXPECT_EQ(count, 6u);
    // Somebody else's composition is not changed.
    EXPECT_EQ(gst_video_overlay_composition_n_rectangles(composition), 1u);
    gst_video_overlay_composition_unref(composition);
    gst_video_overlay_rectangle_unref(there);
    gst_buffer_unref(pixels);
}

void add_everything(GstBuffer* in) {
    // Translucent lines, which are enlarged from a few pixels.
    gst_buffer_add_video_region_of_interest_meta(in, "", 200, 100, 100, 90);
    const guint od = add_od(in, 100, 60, 80, 90, "person");
    add_track(in, od, 3);
    relate(in, od, add_mask(in, std::vector<uint8_t>(80 * 90, 1), 80, {1}, 100, 60, 80, 90));
    std::vector<vartml::Keypoint> points;
    for (int i = 0; i < 17; ++i) {
        points.push_back(
            {105.f + static_cast<float>(i) * 4, 70.f + static_cast<float>(i * 29 % 70)});
    }
    relate(in, od, add_points(in, points));
    add_od(in, 220, 50, 70, 40, "car", 0.5f, 0.4f);
    add_od(in, 300, 180, 70, 40, "car");
    add_od(in, -20, -20, 70, 60, "dog");
}

// What a renderer makes of the rectangles is what blending draws: every byte within 2, as the one
// rounds twice.
TEST_F(OverlayAttach, ShowsTheSamePictureAsBlending) {
    const char* const all = "boxes+labels+tracks+masks+keypoints+regions";
    set("hud", "true");
    set("draw", all);
    set("mode", "blend");
    open(320, 200);
    std::vector<uint8_t> blended;
    for (int i = 0; i < 2; ++i) {
        GstBuffer* in = frame();
        add_everything(in);
        blended = bytes_of(run(in).get());
    }
    close();
    set("draw", all);
    open_attaching(320, 200);
    std::vector<uint8_t> attached;
    for (int i = 0; i < 2; ++i) {
        GstBuffer* in = frame();
        add_everything(in);
        Buffer out(run(in));
        GstVideoFrame mapped;
        ASSERT_TRUE(gst_video_frame_map(&mapped, &info_, out.get(), GST_MAP_READWRITE));
        const auto* meta = gst_buffer_get_video_overlay_composition_meta(out.get());
        ASSERT_TRUE(gst_video_overlay_composition_blend(meta->overlay, &mapped));
        gst_video_frame_unmap(&mapped);
        attached = bytes_of(out.get());
    }
    // The display changes with time and is at the top left.
    int different = 0;
    for (size_t i = 0; i < blended.size(); ++i) {
        const size_t x = i % 960 / 3, y = i / 960;
        if (x < 200 && y < 60) continue;
        different += std::abs(blended[i] - attached[i]) > 2;
    }
    EXPECT_EQ(different, 0);
    EXPECT_EQ(stat("attached"), 2u);
}

TEST_F(OverlayAttach, LinesAreTilesThatTheyTouch) {
    set("draw", "boxes");
    open_attaching(1920, 1080);
    GstBuffer* in = frame();
    add_od(in, 500, 300, 800, 400, "cat", 0.9f, 0.3f);
    const Buffer out = run(in);
    const auto all = rectangles(out.get());
    EXPECT_GT(all.size(), 2400u / 32);
    EXPECT_LT(all.size(), 2400u / 32 * 2 + 8);
    for (const Rectangle& r : all) EXPECT_LE(gst_buffer_get_size(r.pixels), 4096u);
}

TEST_F(OverlayAttach, BlendIsUsedWhenAskedFor) {
    set("mode", "blend");
    open_attaching(320, 200);
    GstBuffer* in = frame();
    add_od(in, 10, 50, 50, 50);
    const Buffer out = run(in);
    EXPECT_TRUE(rectangles(out.get()).empty());
    EXPECT_GT(Picture(out.get(), info_).ink(), 100);
    EXPECT_EQ(stat("blended"), 1u);
}

TEST(ZOverlayLeaks, LeavesNoObjectBehind) {
    expect_no_objects();
}

}  // namespace
