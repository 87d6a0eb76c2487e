// SPDX-License-Identifier: Apache-2.0
// Objects of blur-classes in frames of every format: what is left of them, and that all else stays.
#include <algorithm>
#include <array>
#include <set>

#include "tests/gst/overlay_harness.h"

namespace {

using namespace overlay_test;

class OverlayBlur : public Overlay, public testing::WithParamInterface<GstVideoFormat> {};

// Every sample of a frame's components: where it lies and which pixels it stands for.
struct Sample {
    size_t at;
    guint component;
    int x, y, size;  // pixels x to x + size - 1
};
std::vector<Sample> samples_of(const GstVideoInfo& info) {
    std::vector<Sample> samples;
    for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&info); ++c) {
        const int size = 1 << GST_VIDEO_FORMAT_INFO_W_SUB(info.finfo, c);
        for (int y = 0; y < GST_VIDEO_INFO_HEIGHT(&info); y += size) {
            for (int x = 0; x < GST_VIDEO_INFO_WIDTH(&info); x += size) {
                samples.push_back(
                    {GST_VIDEO_INFO_COMP_OFFSET(&info, c) +
                         static_cast<size_t>(y / size * GST_VIDEO_INFO_COMP_STRIDE(&info, c)) +
                         static_cast<size_t>(x / size * GST_VIDEO_INFO_COMP_PSTRIDE(&info, c)),
                     c, x, y, size});
            }
        }
    }
    return samples;
}

GstBuffer* noise(const GstVideoInfo& info, unsigned seed) {
    std::mt19937 random(seed);
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, info.size, nullptr);
    GstMapInfo map;
    gst_buffer_map(buffer, &map, GST_MAP_WRITE);
    for (gsize i = 0; i < map.size; ++i) map.data[i] = static_cast<uint8_t>(random());
    gst_buffer_unmap(buffer, &map);
    return buffer;
}

struct Case {
    const char* why;
    int width, height;
    int x, y, w, h;
    float angle = 0;
};
const Case cases[] = {
    {"even everything", 96, 64, 16, 8, 48, 48, 0},
    {"odd place and size", 97, 65, 15, 7, 49, 51, 0},
    {"partly outside", 97, 65, -20, -10, 60, 40, 0},
    {"to the last row and column", 97, 65, 60, 30, 37, 35, 0},
    {"larger than the frame", 96, 64, -50, -50, 300, 300, 0},
    {"small", 96, 64, 30, 30, 5, 7, 0},
    {"flat as a number plate", 300, 64, 10, 10, 240, 40, 0},
    {"turned", 96, 96, 30, 40, 40, 16, 0.7f},
};

// Whatever the object looked like, few means are left of it, and each is that of what was there.
TEST_P(OverlayBlur, LeavesFewMeansOfTheObjectAndEveryOtherByte) {
    for (const Case& c : cases) {
        SCOPED_TRACE(c.why);
        const GstVideoInfo info = make_info(GetParam(), c.width, c.height);
        set("draw", "");
        set("blur-classes", "face");
        open(info);
        GstBuffer* in = noise(info, 1);
        const std::vector<uint8_t> before = bytes_of(in);
        add_od(in, c.x, c.y, c.w, c.h, "face", 0.9f, c.angle);
        const std::vector<uint8_t> after = bytes_of(run(in).get());
        std::array<std::set<uint8_t>, 4> values;
        std::array<double, 4> sums_before{}, sums_after{}, counts{};
        std::vector<uint8_t> expected = after;
        for (const Sample& s : samples_of(info)) {
            // As far as the angle, the middle of an object is in it.
            const int grow = c.angle == 0 ? 0 : -c.h / 4;
            const bool inside = s.x + s.size > c.x - grow && s.x < c.x + c.w + grow &&
                                s.y + s.size > c.y - grow && s.y < c.y + c.h + grow;
            const int reach = (c.angle == 0 ? 0 : c.w) + 1;  // to even numbers
            const bool near = s.x + s.size > c.x - reach && s.x < c.x + c.w + reach &&
                              s.y + s.size > c.y - reach && s.y < c.y + c.h + reach;
            if (!near) expected[s.at] = before[s.at];
            if (!inside) continue;
            values[s.component].insert(after[s.at]);
            sums_before[s.component] += before[s.at];
            sums_after[s.component] += after[s.at];
            ++counts[s.component];
        }
        EXPECT_EQ(after, expected) << "bytes beyond the object";
        for (size_t k = 0; k < GST_VIDEO_INFO_N_COMPONENTS(&info); ++k) {
            EXPECT_LE(values[k].size(), 49u) << "component " << k;
            if (c.angle == 0 && c.w > 20) {
                EXPECT_NEAR(sums_after[k] / counts[k], sums_before[k] / counts[k], 8) << k;
            }
        }
        EXPECT_EQ(stat("blurred"), 1u);
        close();
    }
}

// Two objects that differ, but not in the means of their blocks, give the same picture.
TEST_P(OverlayBlur, TellsNothingButMeans) {
    const GstVideoInfo info = make_info(GetParam(), 96, 96);
    set("draw", "");
    set("blur-classes", "face");
    open(info);
    std::vector<std::vector<uint8_t>> after;
    for (const bool mirrored : {false, true}) {
        GstBuffer* in = noise(info, 1);
        GstMapInfo map;
        gst_buffer_map(in, &map, GST_MAP_WRITE);
        for (const Sample& s : samples_of(info)) {
            const bool light = (s.x / s.size % 2 == 1) != mirrored;  // stripes of a sample
            map.data[s.at] = light ? 200 : 100;
        }
        gst_buffer_unmap(in, &map);
        add_od(in, 0, 0, 96, 96, "face");
        after.push_back(bytes_of(run(in).get()));
    }
    EXPECT_EQ(after[0], after[1]);
    EXPECT_EQ(std::ranges::count_if(samples_of(info),
                                    [&](const Sample& s) { return after[0][s.at] != 150; }),
              0);
}

INSTANTIATE_TEST_SUITE_P(Formats, OverlayBlur,
                         testing::Values(GST_VIDEO_FORMAT_NV12, GST_VIDEO_FORMAT_NV21,
                                         GST_VIDEO_FORMAT_I420, GST_VIDEO_FORMAT_RGB,
                                         GST_VIDEO_FORMAT_BGR, GST_VIDEO_FORMAT_RGBA,
                                         GST_VIDEO_FORMAT_BGRA, GST_VIDEO_FORMAT_RGBx,
                                         GST_VIDEO_FORMAT_BGRx, GST_VIDEO_FORMAT_GRAY8),
                         [](const auto& info) {
                             return std::string(gst_video_format_to_string(info.param));
                         });

// Black and white stripes of a pixel: what is neither was blurred.
GstBuffer* stripes(const GstVideoInfo& info) {
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, info.size, nullptr);
    GstMapInfo map;
    gst_buffer_map(buffer, &map, GST_MAP_WRITE);
    for (gsize i = 0; i < map.size; ++i) map.data[i] = i % 2 ? 255 : 0;
    gst_buffer_unmap(buffer, &map);
    return buffer;
}
bool is_stripe(const Picture& picture, int x, int y) {
    return picture.at(x, y) == 0 || picture.at(x, y) == 255;
}

TEST_F(Overlay, BlursTheClassesThatAreAskedForWhateverIsDrawn) {
    set("draw", "");
    set("classes", "dog");
    set("blur-classes", "face, plate");
    open(200, 100, GST_VIDEO_FORMAT_GRAY8);
    GstBuffer* in = stripes(info_);
    add_od(in, 0, 0, 40, 40, "face");
    add_od(in, 50, 0, 40, 40, "plate");
    add_od(in, 100, 0, 40, 40, "dog");
    const guint unnamed = add_od(in, 150, 0, 40, 40, nullptr);
    relate(in, unnamed, add_class(in, {"dog", "face"}, {0.1f, 0.9f}));
    const Picture picture = draw(in);
    EXPECT_FALSE(is_stripe(picture, 20, 20));
    EXPECT_FALSE(is_stripe(picture, 70, 20));
    EXPECT_TRUE(is_stripe(picture, 120, 20));
    EXPECT_FALSE(is_stripe(picture, 170, 20));
    EXPECT_TRUE(is_stripe(picture, 20, 60));
    EXPECT_EQ(stat("blurred"), 3u);
}

TEST_F(Overlay, BlursUnderItsBoxes) {
    set("draw", "boxes");
    set("color-mode", "fixed");
    set("color", "0xffffffff");
    set("line-width", "1");
    set("blur-classes", "face");
    open(100, 100, GST_VIDEO_FORMAT_GRAY8);
    GstBuffer* in = stripes(info_);
    add_od(in, 20, 20, 40, 40, "face");
    const Picture picture = draw(in);
    for (int x = 20; x < 60; ++x) EXPECT_EQ(picture.at(x, 20), 255u) << x;
    EXPECT_FALSE(is_stripe(picture, 40, 40));
}

// Region 1 is the right half; all that a pixel of the mask touches is hidden.
const std::vector<uint8_t> right_half = {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1};

TEST_F(Overlay, BlursWhereTheMaskOfAnObjectIs) {
    set("draw", "");
    set("blur-classes", "face");
    open(100, 100, GST_VIDEO_FORMAT_GRAY8);
    GstBuffer* in = stripes(info_);
    const guint od = add_od(in, 0, 0, 80, 80, "face");
    relate(in, od, add_mask(in, right_half, 4, {1}, 0, 0, 80, 80));
    const Picture picture = draw(in);
    for (int x = 0; x < 29; ++x) EXPECT_TRUE(is_stripe(picture, x, 40)) << x;
    for (int x = 40; x < 80; ++x) EXPECT_FALSE(is_stripe(picture, x, 40)) << x;
    for (int x = 80; x < 100; ++x) EXPECT_TRUE(is_stripe(picture, x, 40)) << x;
}

// A rectangle without width is what GStreamer makes of a small one that it scales down.
TEST_F(Overlay, BlursTheWholeBoxWhereTheMaskSaysNothing) {
    set("draw", "masks");
    set("blur-classes", "face");
    open(100, 100, GST_VIDEO_FORMAT_GRAY8);
    const struct {
        const char* why;
        uint8_t region;
        GstVideoFormat format;
        int x, y;
        guint w, h;
    } rows[] = {
        {"no pixel of the region", 0, GST_VIDEO_FORMAT_GRAY8, 0, 0, 80, 80},
        {"a format that is none", 1, GST_VIDEO_FORMAT_GRAY16_BE, 0, 0, 80, 80},
        {"no width, at an odd place", 1, GST_VIDEO_FORMAT_GRAY8, 21, 20, 0, 40},
        {"no width, at an even place", 1, GST_VIDEO_FORMAT_GRAY8, 20, 20, 0, 40},
        {"no height, at an odd place", 1, GST_VIDEO_FORMAT_GRAY8, 20, 21, 40, 0},
        {"no height, at an even place", 1, GST_VIDEO_FORMAT_GRAY8, 20, 20, 40, 0},
        {"neither", 1, GST_VIDEO_FORMAT_GRAY8, 21, 21, 0, 0},
        {"left of the frame", 1, GST_VIDEO_FORMAT_GRAY8, -40, 0, 40, 80},
        {"below the frame", 1, GST_VIDEO_FORMAT_GRAY8, 0, 100, 80, 20},
        {"farther than any frame", 1, GST_VIDEO_FORMAT_GRAY8, 1 << 30, 0, 80, 80},
    };
    for (const auto& row : rows) {
        GstBuffer* in = stripes(info_);
        const guint od = add_od(in, 0, 0, 80, 80, "face");
        relate(in, od,
               add_mask(in, std::vector<uint8_t>(16, row.region), 4, {1}, row.x, row.y, row.w,
                        row.h, row.format));
        const Picture picture = draw(in);
        for (int x = 0; x < 80; ++x) EXPECT_FALSE(is_stripe(picture, x, 40)) << row.why << x;
    }
}

// The classes of such a map are no list of classes of the whole picture, either.
TEST_F(Overlay, DrawsAndBlursNothingOfAClassMapWithoutPlace) {
    set("draw", "labels+masks");
    set("blur-classes", "face");
    open(100, 100, GST_VIDEO_FORMAT_GRAY8);
    for (const int x : {20, 21, 100}) {
        GstBuffer* in = stripes(info_);
        const std::vector<uint8_t> before = bytes_of(in);
        const guint width = x < 100 ? 0 : 40;
        const guint mask = add_mask(in, std::vector<uint8_t>(16, 1), 4, {0, 1}, x, 20, width, 40);
        relate(in, mask, add_class(in, {"road", "face"}, {1, 1}));
        EXPECT_EQ(bytes_of(run(in).get()), before) << x;
    }
}

TEST_F(Overlay, BlursClassesOfAClassMap) {
    set("draw", "");
    set("blur-classes", "person");
    open(100, 100, GST_VIDEO_FORMAT_GRAY8);
    GstBuffer* in = stripes(info_);
    const guint mask = add_mask(in, right_half, 4, {0, 1}, 0, 0, 100, 100);
    relate(in, mask, add_class(in, {"road", "person"}, {1, 1}));
    const Picture picture = draw(in);
    for (int x = 0; x < 37; ++x) EXPECT_TRUE(is_stripe(picture, x, 50)) << x;
    for (int x = 50; x < 100; ++x) EXPECT_FALSE(is_stripe(picture, x, 50)) << x;
    in = stripes(info_);
    const guint other = add_mask(in, std::vector<uint8_t>(16, 0), 4, {0, 1}, 0, 0, 100, 100);
    relate(in, other, add_class(in, {"road", "person"}, {1, 1}));
    EXPECT_TRUE(is_stripe(draw(in), 50, 50)) << "a map without the class";
}

// What a second model finds of classes in the region of an object.
TEST_F(Overlay, BlursClassesOfTheClassMapOfAnObject) {
    for (const bool object : {false, true}) {
        close();
        set("draw", "");
        set("blur-classes", object ? "person" : "face");
        open(100, 100, GST_VIDEO_FORMAT_GRAY8);
        GstBuffer* in = stripes(info_);
        const guint od = add_od(in, 0, 0, 80, 80, "person");
        const guint mask = add_mask(in, right_half, 4, {1}, 0, 0, 80, 80);
        relate(in, mask, add_class(in, {"face"}, {1}));
        relate(in, od, mask);
        const Picture picture = draw(in);
        // The map says where a face is, not where the person is.
        for (int x = 0; x < 29; ++x) EXPECT_EQ(is_stripe(picture, x, 40), !object) << x;
        for (int x = 40; x < 80; ++x) EXPECT_FALSE(is_stripe(picture, x, 40)) << x;
        for (int x = 80; x < 100; ++x) EXPECT_TRUE(is_stripe(picture, x, 40)) << x;
    }
}

TEST_F(Overlay, BlursWhatASecondModelCallsSo) {
    set("draw", "");
    set("blur-classes", "visitor");
    open(200, 100, GST_VIDEO_FORMAT_GRAY8);
    GstBuffer* in = stripes(info_);
    const guint visitor = add_od(in, 0, 0, 40, 40, "person"),
                staff = add_od(in, 100, 0, 40, 40, "person");
    relate(in, visitor, add_class(in, {"staff", "visitor"}, {0.1f, 0.9f}));
    relate(in, staff, add_class(in, {"staff", "visitor"}, {0.8f, 0.2f}));
    const Picture picture = draw(in);
    EXPECT_FALSE(is_stripe(picture, 20, 20));
    EXPECT_TRUE(is_stripe(picture, 120, 20));
}

// A classifier on every frame is no result of the detector that infers every third.
TEST_F(Overlay, HoldsTheBlurBesideResultsOfAnotherModel) {
    set("draw", "");
    set("blur-classes", "face");
    set("hold", "100000000");
    open(100, 100, GST_VIDEO_FORMAT_GRAY8);
    for (int i = 0; i < 5; ++i) {
        GstBuffer* in = stripes(info_);
        GST_BUFFER_PTS(in) = static_cast<GstClockTime>(i) * 40 * GST_MSECOND;
        const guint detector = add_record_of(
            in, "detector", i == 0 ? InferenceStatus::inferred : InferenceStatus::skipped_interval);
        add_record_of(in, "classifier", InferenceStatus::inferred);
        if (i == 0) relate(in, add_od(in, 0, 0, 80, 80, "face"), detector);
        add_class(in, {"kitchen"}, {0.9f});
        EXPECT_EQ(is_stripe(draw(in), 40, 40), i > 2) << i;
    }
}

// It counts from the next start on, and says so.
TEST_F(Overlay, BlursWhatWasAskedForAtTheStart) {
    set("draw", "");
    set("blur-classes", "face");
    open(100, 100, GST_VIDEO_FORMAT_GRAY8);
    for (const char* later : {"face", "", "plate"}) {
        set("blur-classes", later);
        GstBuffer* in = stripes(info_);
        add_od(in, 0, 0, 80, 80, "face");
        EXPECT_FALSE(is_stripe(draw(in), 40, 40)) << later;
    }
}

// Such as appsrc makes; a track is expected on it.
TEST_F(Overlay, PassesAGapWithoutAPicture) {
    set("blur-classes", "face");
    open(100, 100, GST_VIDEO_FORMAT_GRAY8);
    GstBuffer* gap = gst_buffer_new();
    GST_BUFFER_FLAG_SET(gap, GST_BUFFER_FLAG_GAP);
    add_od(gap, 0, 0, 80, 80, "face");
    EXPECT_EQ(gst_harness_push(harness_, gap), GST_FLOW_OK);
}

TEST_F(Overlay, HoldsTheBlurWithTheResults) {
    set("draw", "");
    set("blur-classes", "face");
    set("hold", "100000000");
    open(100, 100, GST_VIDEO_FORMAT_GRAY8);
    for (int i = 0; i < 3; ++i) {
        GstBuffer* in = stripes(info_);
        GST_BUFFER_PTS(in) = static_cast<GstClockTime>(i) * 80 * GST_MSECOND;
        if (i == 0) add_od(in, 0, 0, 80, 80, "face");
        EXPECT_EQ(is_stripe(draw(in), 40, 40), i == 2) << i;
    }
}

// As they come: in reverse playback the last frame first, and from some sources without PTS.
TEST_F(Overlay, HoldsTheBlurBackwardsAndWithoutPts) {
    for (const bool backwards : {true, false}) {
        SCOPED_TRACE(backwards);
        set("draw", "");
        set("blur-classes", "face");
        set("hold", "100000000");
        open(100, 100, GST_VIDEO_FORMAT_GRAY8);
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        segment.rate = backwards ? -1 : 1;
        segment.stop = GST_SECOND;
        ASSERT_TRUE(gst_harness_push_event(harness_, gst_event_new_segment(&segment)));
        for (int i = 0; i < 5; ++i) {
            GstBuffer* in = stripes(info_);
            GST_BUFFER_PTS(in) = backwards ? static_cast<GstClockTime>(20 - i) * 33 * GST_MSECOND
                                           : GST_CLOCK_TIME_NONE;
            if (i == 0) add_od(in, 0, 0, 80, 80, "face");
            EXPECT_EQ(is_stripe(draw(in), 40, 40), i == 4) << i;
        }
        close();
    }
}

TEST_F(Overlay, HoldsTheBlurWhenCapsChange) {
    set("draw", "boxes");
    set("blur-classes", "face");
    set("hold", "1000000000");
    open(100, 100, GST_VIDEO_FORMAT_GRAY8);
    const auto next = [&](const GstVideoInfo& info, bool face) {
        info_ = info;
        gst_harness_set_src_caps(harness_, gst_video_info_to_caps(&info_));
        GstBuffer* in = stripes(info_);
        GST_BUFFER_PTS(in) = pts_ += 40 * GST_MSECOND;
        if (face) add_od(in, 20, 20, 40, 40, "face");
        return draw(in);
    };
    GstVideoInfo info = info_;
    EXPECT_FALSE(is_stripe(next(info, true), 40, 40));
    info.fps_n = 25, info.fps_d = 1;
    EXPECT_FALSE(is_stripe(next(info, false), 40, 40)) << "another frame rate";
    GstVideoInfo larger = make_info(GST_VIDEO_FORMAT_GRAY8, 200, 300);
    const Picture scaled = next(larger, false);
    for (const int x : {41, 80, 118})
        for (const int y : {61, 120, 178}) EXPECT_FALSE(is_stripe(scaled, x, y)) << x << ' ' << y;
    for (const int x : {30, 130}) EXPECT_TRUE(is_stripe(scaled, x, 120)) << x;
    for (const int y : {50, 190}) EXPECT_TRUE(is_stripe(scaled, 80, y)) << y;
    EXPECT_FALSE(is_stripe(next(info, false), 40, 40)) << "as large as before";
}

// A frame that others see too is copied: they may see the face, who is behind the element not.
TEST_F(Overlay, BlursACopyOfAFrameThatIsShared) {
    set("draw", "");
    set("blur-classes", "face");
    open(100, 100, GST_VIDEO_FORMAT_GRAY8);
    GstBuffer* in = stripes(info_);
    add_od(in, 0, 0, 80, 80, "face");
    gst_buffer_ref(in);
    const Buffer out = run(in);
    EXPECT_TRUE(is_stripe(Picture(in, info_), 40, 40));
    EXPECT_FALSE(is_stripe(Picture(out.get(), info_), 40, 40));
    gst_buffer_unref(in);
}

// What is no raw video does not pass as if there were nothing to hide.
TEST_F(Overlay, RefusesWhatItCannotLookInto) {
    for (const bool blur : {false, true}) {
        set("blur-classes", blur ? "face" : "");
        harness_ = gst_harness_new_with_element(element(), "sink", "src");
        gst_harness_set_caps_str(harness_, "image/jpeg", "image/jpeg");
        const GstFlowReturn flow =
            gst_harness_push(harness_, gst_buffer_new_allocate(nullptr, 8, nullptr));
        EXPECT_EQ(flow, blur ? GST_FLOW_NOT_NEGOTIATED : GST_FLOW_OK);
        close();
    }
}

}  // namespace
