// SPDX-License-Identifier: Apache-2.0
#include <gst/controller/controller.h>

#include <algorithm>
#include <cmath>

#include "gst/metadata/mtd.h"
#include "tests/gst/overlay_harness.h"

namespace {

using namespace overlay_test;

TEST_F(Overlay, LabelsStandAboveTheirBox) {
    open();
    GstBuffer* in = frame();
    add_od(in, 100, 100, 120, 50);
    const Picture picture = draw(in);
    EXPECT_EQ(picture.at(150, 100), 0xc8a0ffu);        // the line
    EXPECT_EQ(picture.ink(0, 0, 320, 80), 0);          // nothing far above
    EXPECT_GT(picture.ink(100, 85, 60, 15), 60 * 10);  // the plate
    EXPECT_EQ(picture.ink(101, 101, 118, 48), 0);      // nothing inside
}

TEST_F(Overlay, LabelsHaveTextThatIsRead) {
    open();
    set("font-scale", "10");  // 20 pixels
    GstBuffer* in = frame();
    add_od(in, 50, 100, 120, 50, "cat", 1);
    const Picture picture = draw(in);
    int dark = 0, plate = 0;
    for (int y = 70; y < 100; ++y) {
        for (int x = 50; x < 200; ++x) {
            plate += picture.at(x, y) == 0xc8a0ff;
            dark += picture.at(x, y) != 0xc8a0ff && (picture.at(x, y) & 0xff) < 0x80 &&
                    picture.at(x, y) != 0;
        }
    }
    EXPECT_GT(plate, 1000);
    EXPECT_GT(dark, 30);  // edges of black glyphs, between black and the plate
}

struct Place {
    const char* why;
    int x, y, w, h;
    int label_x, label_y;  // a pixel of the plate
};
TEST_F(Overlay, LabelsStayInsideTheFrame) {
    const Place places[] = {
        {"above", 100, 100, 50, 50, 102, 97},
        {"inside, below the upper line", 100, 2, 100, 100, 102, 5},
        {"moved left", 300, 100, 15, 50, 318, 97},
        {"of a box that begins left of the frame", -50, 100, 100, 50, 2, 97},
        {"below the line of a flat box", 100, 3, 100, 1, 101, 8},
        {"of a box larger than the frame", -10, -10, 340, 220, 2, 2},
    };
    for (const Place& p : places) {
        if (!harness_) open();
        GstBuffer* in = frame();
        add_od(in, p.x, p.y, p.w, p.h);
        EXPECT_EQ(draw(in).at(p.label_x, p.label_y), 0xc8a0ffu) << p.why;
    }
    GstBuffer* in = frame();
    add_od(in, 400, 100, 50, 50);
    EXPECT_EQ(draw(in).ink(), 0) << "a box outside has no label inside";
}

TEST_F(Overlay, LabelsMakeRoomForEachOther) {
    set("draw", "labels");
    open();
    GstBuffer* in = frame();
    add_od(in, 100, 100, 80, 40);
    const int one = draw(in).ink();
    in = frame();
    for (int i = 0; i < 4; ++i) add_od(in, 100, 100, 80, 40);
    EXPECT_GT(draw(in).ink(), 4 * one * 9 / 10);  // glyphs may be black
}

TEST_F(Overlay, NamesOfZonesThatBeginAtOnePlaceStandBelowEachOther) {
    set("draw", "zones");
    open();
    const vartml::ZonePoint border[] = {{100, 0}, {300, 0}, {300, 190}, {100, 190}};
    const auto ink_of = [&](std::initializer_list<const char*> names) {
        GstBuffer* in = frame();
        for (const char* name : names) {
            Zone zone;
            zone.name = g_quark_from_string(name);
            zone.points = border;
            GstAnalyticsMtd added;
            EXPECT_TRUE(add_zone(gst_buffer_add_analytics_relation_meta(in), zone, &added));
        }
        return draw(in).ink(110, 10, 180, 170);  // inside of all borders
    };
    EXPECT_GT(ink_of({"hall", "yard", "gate"}), ink_of({"hall"}) * 28 / 10);
}

TEST_F(Overlay, ScoresAreShownWhenAsked) {
    set("draw", "labels");
    open();
    GstBuffer* in = frame();
    add_od(in, 100, 100, 80, 40);
    const int with = draw(in).ink();
    set("show-score", "false");
    in = frame();
    add_od(in, 100, 100, 80, 40);
    const int without = draw(in).ink();
    EXPECT_LT(without, with * 3 / 4);
    EXPECT_GT(without, 100);
}

TEST_F(Overlay, OddTextIsDrawnToo) {
    set("draw", "labels");
    open();
    for (const char* label :
         {"\xff\xfe", "a\nb", "日本", "", " ", "%s%n", "traffic light",
          "a label of so many words that it is wider than the whole picture is"}) {
        GstBuffer* in = frame();
        add_od(in, 100, 100, 80, 40, label);
        EXPECT_GT(draw(in).ink(), 100) << label;
    }
    GstBuffer* in = frame();
    add_od(in, 100, 100, 80, 40, nullptr, NAN);  // no label, no score
    draw(in);
}

TEST_F(Overlay, TheBestClassNamesAnUnnamedDetection) {
    open();
    GstBuffer* in = frame();
    const guint od = add_od(in, 100, 100, 50, 50, nullptr);
    relate(in, od, add_class(in, {"cat", "dog"}, {0.1f, 0.9f}), GST_ANALYTICS_REL_TYPE_CONTAIN);
    EXPECT_EQ(draw(in).at(125, 100), 0x80c8ffu);  // dog's
}

TEST_F(Overlay, AttributesLengthenTheLabel) {
    set("draw", "labels");
    open();
    GstBuffer* in = frame();
    relate(in, add_od(in, 50, 100, 50, 50), add_class(in, {"cat"}, {0.9f}));
    const int plain = draw(in).ink();  // the detection's own class is no attribute
    in = frame();
    relate(in, add_od(in, 50, 100, 50, 50), add_class(in, {"sleeping"}, {0.9f}));
    EXPECT_GT(draw(in).ink(), plain * 3 / 2);
}

// As another element may name it; nothing else is on the frame.
TEST_F(Overlay, AClassWithoutANameHasNoLabel) {
    set("show-score", "false");
    open();
    GstBuffer* in = frame();
    add_class(in, {"", "cat"}, {0.75f, 0.25f});
    GstBuffer* alone = frame();
    add_class(alone, {""}, {0.75f});
    EXPECT_EQ(draw(alone).ink(), 0);
    EXPECT_GT(draw(in).ink(), 0);
}

TEST_F(Overlay, ClassesOfTheWholeFrameStandAtTheTopLeft) {
    open();
    GstBuffer* in = frame();
    add_class(in, {"cat", "dog"}, {0.75f, 0.25f});
    const Picture picture = draw(in);
    EXPECT_EQ(picture.at(1, 1), 0xc8a0ffu);
    EXPECT_EQ(picture.at(1, 20), 0x80c8ffu);
    EXPECT_EQ(picture.ink(160, 0, 160, 200), 0);
    set("draw", "boxes");
    in = frame();
    add_class(in, {"cat", "dog"}, {0.75f, 0.25f});
    EXPECT_EQ(draw(in).ink(), 0);
}

TEST_F(Overlay, TextStandsWithItsObjectElseAtTheTopLeft) {
    set("draw", "labels");
    open();
    const auto text_on = [this](GstBuffer* in) {
        GstAnalyticsMtd mtd;
        EXPECT_TRUE(
            add_text_line(gst_buffer_get_analytics_relation_meta(in), {"AB 12", 0.5f}, &mtd));
        return mtd.id;
    };
    GstBuffer* in = frame();
    add_od(in, 50, 100, 50, 50);
    const int plain = draw(in).ink();
    in = frame();
    const guint od = add_od(in, 50, 100, 50, 50);
    relate(in, od, text_on(in));
    const Picture beside = draw(in);
    EXPECT_GT(beside.ink(), plain * 5 / 4);
    EXPECT_EQ(beside.ink(0, 0, 160, 60), 0);
    in = frame();
    gst_buffer_add_analytics_relation_meta(in);
    text_on(in);
    EXPECT_GT(draw(in).ink(0, 0, 160, 30), 0);
}

// A color by name and by number, the same in every run: these numbers were computed by hand.
TEST_F(Overlay, ColorsFollowLabelsTracksOrTheProperty) {
    set("draw", "boxes");
    open();
    const auto color = [&](const char* label, guint64 track) {
        GstBuffer* in = frame();
        const guint od = add_od(in, 100, 100, 50, 50, label);
        if (track) add_track(in, od, track);
        return draw(in).at(125, 100);
    };
    EXPECT_EQ(color("cat", 1), 0xc8a0ffu);
    EXPECT_EQ(color("dog", 1), 0x80c8ffu);
    EXPECT_EQ(color("person", 2), 0xbfef45u);
    set("color-mode", "track");
    EXPECT_EQ(color("cat", 1), 0xf050e6u);
    EXPECT_EQ(color("dog", 1), 0xf050e6u);
    EXPECT_EQ(color("cat", 2), 0xe03070u);
    EXPECT_EQ(color("cat", 0), 0xc8a0ffu);  // without a track: as class
    set("color-mode", "fixed");
    EXPECT_EQ(color("cat", 1), 0x00ff00u);
    set("color", "0xff123456");
    EXPECT_EQ(color("dog", 2), 0x123456u);
}

TEST_F(Overlay, LineWidthFollowsTheHeightOfTheFrame) {
    for (const auto& [height, width] : {std::pair(200, 2), {720, 2}, {1080, 3}, {2160, 6}}) {
        set("draw", "boxes");
        open(160, height, GST_VIDEO_FORMAT_GRAY8);
        GstBuffer* in = frame();
        add_od(in, 50, 50, 60, 60);
        EXPECT_EQ(draw(in).ink(0, 80, 80, 1), width) << height;
        close();
    }
    set("draw", "boxes");
    set("line-width", "9");
    open();
    GstBuffer* in = frame();
    add_od(in, 50, 50, 60, 60);
    EXPECT_EQ(draw(in).ink(0, 80, 80, 1), 9);
}

TEST_F(Overlay, OnlyChosenClassesAreDrawn) {
    set("draw", "boxes+masks");
    set("classes", " dog, bird");
    open();
    const std::vector<uint8_t> all_ones(16, 1);
    const auto picture = [&](const char* label) {
        GstBuffer* in = frame();
        const guint od = add_od(in, 100, 100, 50, 50, label);
        relate(in, od, add_mask(in, all_ones, 4, {1}, 100, 100, 50, 50));
        return draw(in).ink();
    };
    EXPECT_EQ(picture("cat"), 0);  // nor its mask
    EXPECT_GT(picture("dog"), 100);
    set("classes", "");
    EXPECT_GT(picture("cat"), 100);
}

TEST_F(Overlay, DetectionsWithoutATrackAreLeftOutWhenAsked) {
    set("draw", "boxes+masks");
    open();
    const std::vector<uint8_t> all_ones(16, 1);
    const auto picture = [&](bool tracked) {
        GstBuffer* in = frame();
        const guint od = add_od(in, 100, 100, 50, 50);
        relate(in, od, add_mask(in, all_ones, 4, {1}, 100, 100, 50, 50));
        if (tracked) add_track(in, od, 7);
        return draw(in).ink();
    };
    EXPECT_GT(picture(false), 100);
    set("tracked-only", "true");
    EXPECT_EQ(picture(false), 0);
    EXPECT_GT(picture(true), 100);
}

TEST_F(Overlay, TurnedBoxesAreDrawnTurned) {
    set("draw", "boxes");
    set("line-width", "2");
    open();
    const double angle = 0.5;
    GstBuffer* in = frame();
    add_od(in, 100, 60, 120, 80, "cat", 0.9f, static_cast<float>(angle));
    const Picture picture = draw(in);
    const auto ink_at = [&](double u, double v) {  // from the centre, in the box's own directions
        const double x = 160 + u * std::cos(angle) - v * std::sin(angle);
        const double y = 100 + u * std::sin(angle) + v * std::cos(angle);
        return picture.ink(static_cast<int>(x) - 1, static_cast<int>(y) - 1, 3, 3);
    };
    for (const double t : {-1., -0.5, 0., 0.5, 1.}) {  // along each side
        EXPECT_GT(ink_at(60 * t, -40), 2);
        EXPECT_GT(ink_at(60 * t, 40), 2);
        EXPECT_GT(ink_at(-60, 40 * t), 2);
        EXPECT_GT(ink_at(60, 40 * t), 2);
        EXPECT_EQ(ink_at(30 * t, 0), 0);
        EXPECT_EQ(ink_at(0, 20 * t), 0);
    }
    EXPECT_EQ(picture.ink(100, 60, 4, 4), 0);  // where a corner would be without turn
}

TEST_F(Overlay, MasksAreLaidOverTheirObject) {
    set("draw", "masks");
    set("color-mode", "fixed");
    set("color", "0xffffffff");
    open(320, 200, GST_VIDEO_FORMAT_GRAY8);
    GstBuffer* in = frame();
    const guint od = add_od(in, 100, 100, 40, 40);
    // The left half is the object.
    relate(in, od, add_mask(in, {1, 1, 0, 0, 1, 1, 0, 0}, 4, {1}, 100, 100, 40, 40));
    const Picture picture = draw(in);
    EXPECT_EQ(picture.at(105, 105), 102u);  // 0.4 of 255
    EXPECT_EQ(picture.ink(), 20 * 40);
    EXPECT_EQ(picture.ink(100, 100, 20, 40), 20 * 40);
    for (const auto& [opacity, value] : {std::pair("1", 255u), {"0.5", 128u}, {"0", 0u}}) {
        set("mask-opacity", opacity);
        GstBuffer* next = frame();
        relate(next, add_od(next, 100, 100, 40, 40),
               add_mask(next, {1, 1, 0, 0, 1, 1, 0, 0}, 4, {1}, 100, 100, 40, 40));
        EXPECT_EQ(draw(next).at(105, 105), value);
    }
}

// Of a mask that is enlarged, a pixel takes what a bilinear picture would have most of.
TEST_F(Overlay, EdgesOfMasksAreInterpolated) {
    set("draw", "masks");
    set("color-mode", "fixed");
    set("mask-opacity", "1");
    const std::vector<uint8_t> mask = {0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0};
    open(100, 100, GST_VIDEO_FORMAT_GRAY8);
    for (const int size : {80, 37, 4, 3}) {
        GstBuffer* in = frame();
        add_mask(in, mask, 4, {1}, 10, 7, static_cast<guint>(size), static_cast<guint>(size));
        const Picture picture = draw(in);
        for (int y = 0; y < size; ++y) {
            for (int x = 0; x < size; ++x) {
                const auto at = [&](int i, int j) -> double {
                    return mask[static_cast<size_t>(std::clamp(j, 0, 3) * 4 + std::clamp(i, 0, 3))];
                };
                const double u = std::clamp((x + 0.5) * 4 / size - 0.5, 0., 3.);
                const double v = std::clamp((y + 0.5) * 4 / size - 0.5, 0., 3.);
                const int i = static_cast<int>(u), j = static_cast<int>(v);
                const double a = u - i, b = v - j;
                const double one = (at(i, j) * (1 - a) + at(i + 1, j) * a) * (1 - b) +
                                   (at(i, j + 1) * (1 - a) + at(i + 1, j + 1) * a) * b;
                if (std::abs(one - 0.5) < 0.02) continue;  // rounding decides
                EXPECT_EQ(picture.at(x + 10, y + 7) != 0, one > 0.5)
                    << x << ' ' << y << ' ' << size;
            }
        }
    }
}

TEST_F(Overlay, ClassMapsHaveTheColorsOfTheirClasses) {
    set("draw", "masks");
    set("mask-opacity", "1");
    open();
    GstBuffer* in = frame();
    // 0 is the background, 3 has no region, 255 is none.
    const guint map = add_mask(in, {0, 1, 2, 3, 255, 1, 2, 0}, 4, {0, 1, 2}, 0, 0, 320, 200);
    relate(in, map, add_class(in, {"background", "cat", "dog"}, {1, 1, 1}));
    const Picture picture = draw(in);
    EXPECT_EQ(picture.at(120, 50), 0xc8a0ffu);
    EXPECT_EQ(picture.at(120, 150), 0xc8a0ffu);
    EXPECT_EQ(picture.at(200, 50), 0x80c8ffu);
    EXPECT_EQ(picture.ink(0, 0, 80, 40), 0);  // further down a class wins against two that are none
    EXPECT_EQ(picture.ink(0, 160, 80, 40), 0);
    EXPECT_EQ(picture.ink(240, 0, 80, 40), 0);
    EXPECT_EQ(picture.ink(240, 160, 80, 40), 0);
    set("draw", "labels");  // the classes of a map are no classes of the whole frame
    in = frame();
    const guint first = add_class(in, {"a", "b"}, {1, 1});
    relate(in, add_mask(in, {0, 1}, 2, {0, 1}, 0, 0, 320, 200), first);
    EXPECT_EQ(draw(in).ink(), 0);
}

TEST_F(Overlay, TheBackgroundHasAColorWhereItIsAskedFor) {
    set("draw", "masks");
    open();
    for (const char* name : {"background", "__background__", "_background_", "BG"}) {
        for (const bool asked : {false, true}) {
            set("classes", asked ? name : "");
            GstBuffer* in = frame();
            relate(in, add_mask(in, {0, 0}, 2, {0}, 0, 0, 320, 200), add_class(in, {name}, {1}));
            EXPECT_EQ(draw(in).ink() != 0, asked) << name;
        }
    }
}

TEST_F(Overlay, MasksOf16BitsHaveMoreRegions) {
    set("draw", "masks");
    open();
    GstBuffer* in = frame();
    add_mask(in, {0x2c, 0x01, 0x2d, 0x01}, 2, {300}, 0, 0, 320, 200, GST_VIDEO_FORMAT_GRAY16_LE);
    const Picture picture = draw(in);
    EXPECT_EQ(picture.ink(0, 0, 160, 200), 160 * 200);
    EXPECT_EQ(picture.ink(160, 0, 160, 200), 0);
}

TEST_F(Overlay, MasksLargerThanTheirMemoryAreLeftOut) {
    set("draw", "masks");
    open();
    GstBuffer* in = frame();
    const guint id = add_mask(in, {1, 1, 1, 1}, 2, {1}, 0, 0, 320, 200);
    GstAnalyticsMtd mtd;
    gst_analytics_relation_meta_get_segmentation_mtd(meta_of(in), id, &mtd);
    gint x, y;
    guint w, h;
    GstBuffer* pixels = gst_analytics_segmentation_mtd_get_mask(&mtd, &x, &y, &w, &h);
    gst_buffer_get_video_meta(pixels)->height = 100;
    gst_buffer_unref(pixels);
    EXPECT_EQ(draw(in).ink(), 0);
}

std::vector<vartml::Keypoint> row_of_points(size_t n) {
    std::vector<vartml::Keypoint> points;
    for (size_t i = 0; i < n; ++i) points.push_back({15.f * static_cast<float>(i) + 20, 100, 0.9f});
    return points;
}

TEST_F(Overlay, KeypointsAreDrawnFromTheirThreshold) {
    set("draw", "keypoints");
    open();
    GstBuffer* in = frame();
    add_points(in, {{50, 50, 0.9f}, {100, 50, 0.2f}, {150, 50, 0.9f, false}, {NAN, 50, 0.9f}});
    Picture picture = draw(in);
    EXPECT_GT(picture.ink(46, 46, 8, 8), 8);
    EXPECT_EQ(picture.ink(), picture.ink(46, 46, 8, 8));
    set("keypoint-threshold", "0.1");
    in = frame();
    add_points(in, {{50, 50, 0.9f}, {100, 50, 0.2f}});
    picture = draw(in);
    EXPECT_GT(picture.ink(96, 46, 8, 8), 8);
    EXPECT_EQ(picture.ink(55, 46, 40, 8), 0);  // no line between them
}

TEST_F(Overlay, SkeletonsAreWhatTheModelSaysOrThePropertySays) {
    struct Row {
        const char *property, *record;
        size_t points;
        std::vector<std::pair<int, int>> limbs;  // of points side by side
    };
    const Row rows[] = {
        {"auto", nullptr, 17, {{0, 1}, {5, 6}, {11, 12}}},
        {"auto", nullptr, 5, {}},
        {"auto", "coco17", 17, {{0, 1}, {5, 6}, {11, 12}}},
        {"auto", "1-2;3-4;3-9", 5, {{1, 2}, {3, 4}}},
        {"auto", "not a skeleton", 5, {}},
        {"none", "1-2", 5, {}},
        {"coco17", "7-8", 17, {{0, 1}, {5, 6}, {11, 12}}},
        {"2-3", nullptr, 17, {{2, 3}}},
    };
    set("draw", "keypoints");
    open();
    for (const Row& row : rows) {
        set("skeleton", row.property);
        GstBuffer* in = frame();
        const guint od = add_od(in, 0, 50, 300, 100);
        relate(in, od, add_points(in, row_of_points(row.points), row.record));
        const Picture picture = draw(in);
        // Limbs of coco17 between points that are further apart cross others: only what is listed
        // is looked at there.
        for (const auto& [from, to] : row.limbs) {
            EXPECT_GT(picture.ink(20 + 15 * from + 5, 99, 5, 2), 4)
                << row.property << ' ' << (row.record ? row.record : "") << ' ' << from;
        }
        if (row.limbs.empty()) {
            EXPECT_EQ(picture.ink(25, 95, 5, 10), 0) << row.property;
        }
    }
}

TEST_F(Overlay, TrailsShowWhereATrackWas) {
    set("draw", "tracks");
    open();
    int last = 0;
    for (int i = 0; i < 10; ++i) {
        GstBuffer* in = frame();
        add_track(in, add_od(in, 20 + 20 * i, 120, 20, 20), 7);
        const Picture picture = draw(in);
        const int trail = picture.ink(0, 127, 320, 6);  // of the centres, below the label
        EXPECT_GE(trail, last);
        last = trail;
        if (i == 9) {
            EXPECT_GT(picture.ink(31, 129, 5, 2), 4);
            EXPECT_GT(picture.ink(205, 129, 5, 2), 4);
            EXPECT_GT(picture.ink(190, 100, 40, 20), 50);  // #7
        }
    }
    EXPECT_GE(last, 180);
    gst_harness_push_event(harness_, gst_event_new_flush_start());
    gst_harness_push_event(harness_, gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(harness_, gst_event_new_segment(&segment));
    GstBuffer* in = frame();
    add_track(in, add_od(in, 220, 120, 20, 20), 7);
    EXPECT_EQ(draw(in).ink(0, 127, 200, 6), 0);
}

TEST_F(Overlay, RegionsAreDrawnWhenAsked) {
    open();
    const auto picture = [&] {
        GstBuffer* in = frame();
        gst_buffer_add_video_region_of_interest_meta(in, "door", 20, 20, 60, 60);
        Inference inference;
        inference.frame_width = 640, inference.frame_height = 400;  // scaled since
        inference.region_x = 200, inference.region_y = 200;
        inference.region_width = 200, inference.region_height = 100;
        EXPECT_TRUE(add_inference(in, inference, 0));
        return draw(in);
    };
    EXPECT_EQ(picture().ink(), 0);
    set("draw", "regions");
    const Picture p = picture();
    EXPECT_GT(p.ink(20, 20, 60, 10), 100);
    EXPECT_NE(p.at(20, 79), 0u);
    EXPECT_NE(p.at(100, 120), 0u);
    EXPECT_NE(p.at(199, 149), 0u);
    EXPECT_EQ(p.ink(101, 101, 98, 48), 0);
}

TEST_F(Overlay, HoldsTheLastResultsForItsTime) {
    set("draw", "boxes");
    set("hold", "100000000");  // two frames and a half
    open();
    GstBuffer* in = frame();
    add_od(in, 100, 100, 50, 50);
    add_record(in);
    const int ink = draw(in).ink();
    EXPECT_GT(ink, 100);
    const auto skipped = [&] {
        GstBuffer* buffer = frame();
        add_record(buffer, InferenceStatus::skipped_interval);
        return draw(buffer).ink();
    };
    EXPECT_EQ(skipped(), ink);
    EXPECT_EQ(draw(frame()).ink(), ink);
    EXPECT_EQ(skipped(), 0);
    EXPECT_EQ(skipped(), 0);

    in = frame();
    add_od(in, 100, 100, 50, 50);
    EXPECT_EQ(draw(in).ink(), ink);
    in = frame();
    add_record(in);  // an inference that found nothing is a result
    EXPECT_EQ(draw(in).ink(), 0);
    EXPECT_EQ(skipped(), 0);
}

TEST_F(Overlay, HoldsNothingByDefault) {
    set("draw", "boxes");
    open();
    GstBuffer* in = frame();
    add_od(in, 100, 100, 50, 50);
    EXPECT_GT(draw(in).ink(), 100);
    EXPECT_EQ(draw(frame()).ink(), 0);
}

TEST_F(Overlay, HudIsDrawnOnEveryFrameWhenAsked) {
    set("hud", "true");
    open();
    draw(frame());
    GstBuffer* in = frame();
    add_record(in, InferenceStatus::skipped_late);
    draw(in);
    EXPECT_GT(stat("drawn"), 0u);
    in = frame();
    add_class(in, {"cat"}, {1});
    const Picture picture = draw(in);  // a class of the whole frame stands below
    EXPECT_NE(picture.at(1, 1), 0xc8a0ffu);
    set("hud", "false");
    EXPECT_EQ(draw(frame()).ink(), 0);
}

TEST_F(Overlay, FollowsAController) {
    for (const char* name : {"show-score", "mask-opacity", "keypoint-threshold"}) {
        const GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element()), name);
        EXPECT_TRUE(spec->flags & GST_PARAM_CONTROLLABLE) << name;
    }
    set("draw", "masks");
    set("color-mode", "fixed");
    GstControlSource* source = gst_interpolation_control_source_new();
    g_object_set(source, "mode", GST_INTERPOLATION_MODE_NONE, nullptr);
    auto* values = GST_TIMED_VALUE_CONTROL_SOURCE(source);
    gst_timed_value_control_source_set(values, 0, 0.2);
    gst_timed_value_control_source_set(values, GST_SECOND, 0.8);
    gst_object_add_control_binding(
        GST_OBJECT(element()),
        gst_direct_control_binding_new_absolute(GST_OBJECT(element()), "mask-opacity", source));
    gst_object_unref(source);
    open();
    const auto green = [&] {
        GstBuffer* in = frame();
        add_mask(in, {1, 1}, 2, {1}, 0, 0, 320, 200);
        return draw(in).at(10, 10);
    };
    EXPECT_EQ(green(), 51u << 8);
    pts_ = GST_SECOND;
    EXPECT_EQ(green(), 204u << 8);
}

TEST_F(Overlay, LeavesTimesAndFlagsAsTheyCame) {
    open();
    GstBuffer* in = frame();
    add_od(in, 10, 20, 30, 40);
    GST_BUFFER_PTS(in) = 5 * GST_SECOND;
    GST_BUFFER_DTS(in) = 4 * GST_SECOND;
    GST_BUFFER_DURATION(in) = 7;
    GST_BUFFER_OFFSET(in) = 11;
    GST_BUFFER_OFFSET_END(in) = 12;
    GST_BUFFER_FLAG_SET(in, GST_BUFFER_FLAG_MARKER | GST_BUFFER_FLAG_GAP);
    const auto flags = GST_BUFFER_FLAGS(in);
    gst_buffer_ref(in);  // a copy keeps them too
    const Buffer out = run(in);
    EXPECT_NE(out.get(), in);
    EXPECT_EQ(GST_BUFFER_PTS(out.get()), 5 * GST_SECOND);
    EXPECT_EQ(GST_BUFFER_DTS(out.get()), 4 * GST_SECOND);
    EXPECT_EQ(GST_BUFFER_DURATION(out.get()), 7u);
    EXPECT_EQ(GST_BUFFER_OFFSET(out.get()), 11u);
    EXPECT_EQ(GST_BUFFER_OFFSET_END(out.get()), 12u);
    EXPECT_EQ(GST_BUFFER_FLAGS(out.get()) & ~GST_BUFFER_FLAG_TAG_MEMORY,
              flags & ~GST_BUFFER_FLAG_TAG_MEMORY);
    EXPECT_NE(gst_buffer_get_analytics_relation_meta(out.get()), nullptr);
    gst_buffer_unref(in);
}

TEST_F(Overlay, WhatIsNoVideoPasses) {
    open();
    gst_harness_set_src_caps_str(harness_, "application/x-something");
    GstBuffer* in = frame();
    add_od(in, 10, 20, 30, 40);
    EXPECT_EQ(draw(in).ink(), 0);
}

TEST_F(Overlay, SurvivesFlushesAndStateCycles) {
    for (int i = 0; i < 1000; ++i) {
        GstElement* other =
            GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_OVERLAY, nullptr)));
        gst_element_set_state(other, GST_STATE_PAUSED);
        gst_element_set_state(other, GST_STATE_NULL);
        gst_object_unref(other);
    }
    open();
    for (int i = 0; i < 3; ++i) {
        GstBuffer* in = frame();
        add_od(in, 10, 20, 30, 40);
        EXPECT_GT(draw(in).ink(), 100);
        gst_element_set_state(element(), GST_STATE_NULL);
        gst_element_set_state(element(), GST_STATE_PLAYING);
        gst_harness_push_event(harness_, gst_event_new_stream_start("again"));
        gst_harness_set_src_caps(harness_, gst_video_info_to_caps(&info_));
    }
    EXPECT_EQ(gst_bus_pop_filtered(bus_, GST_MESSAGE_ERROR), nullptr);
}

TEST(ZOverlayLeaks, LeavesNoObjectBehind) {
    expect_no_objects();
}

}  // namespace
