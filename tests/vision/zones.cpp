// SPDX-License-Identifier: Apache-2.0
// Zones and lines by themselves: how they are written, who is inside, who crosses which way.
#include <vartml/zones.h>

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace vartml;
using enum ZoneEventKind;

constexpr uint64_t ms = 1'000'000, frame = 100 * ms;

TEST(Zones, AreReadFromText) {
    const auto zones = parse_zones(" door = 0,0 10,0  10,20.5 ; hall 2=1,1 2,1 2,2 1,2;", false);
    ASSERT_TRUE(zones);
    ASSERT_EQ(zones->size(), 2u);
    EXPECT_EQ((*zones)[0], (ZoneShape{"door", {{0, 0}, {10, 0}, {10, 20.5f}}, false}));
    EXPECT_EQ((*zones)[1].name, "hall 2");
    EXPECT_EQ((*zones)[1].points.size(), 4u);
    const auto lines = parse_zones("gate=0,5 10,-5 20,5", true);
    ASSERT_TRUE(lines);
    EXPECT_TRUE((*lines)[0].line);
    EXPECT_TRUE(parse_zones("", false)->empty());
    EXPECT_TRUE(parse_zones(" ; ", true)->empty());
}

TEST(Zones, ThatAreNoneAreRefusedWithThePieceAndTheForm) {
    struct Case {
        const char* text;
        bool lines;
        const char* want;
    } cases[] = {
        {"0,0 1,0 1,1", false, "'0,0 1,0 1,1' has no name; "},
        {"=0,0 1,0 1,1", false, "'=0,0 1,0 1,1' has no name; "},
        {"a=0,0 1,0", false, "'a=0,0 1,0' has 2 points; "},
        {"a=0,0", true, "'a=0,0' has 1 points; "},
        {"a=0,0 1,0 1;b=0,0 1,0 1,1", false, "'a=0,0 1,0 1' has '1' where a point should be; "},
        {"a=0,0 1,0 1,x", false, "'a=0,0 1,0 1,x' has '1,x' where a point should be; "},
        {"a=0,0 1,0 1,1,1", false, "'a=0,0 1,0 1,1,1' has '1,1,1' where a point should be; "},
        {"a=0,0 1,0 nan,1", false, "'a=0,0 1,0 nan,1' has 'nan,1' where a point should be; "},
        {"a=5,5 5,5 5,5", false, "'a=5,5 5,5 5,5' has no area; "},
        {"a=0,0 1,1 3,3", false, "'a=0,0 1,1 3,3' has no area; "},
        {"a=0,0 0,0", true, "'a=0,0 0,0' has all its points in one place; "},
        {"a=0,0 1,1;a=2,2 3,3", true, "'a=2,2 3,3' has the name of another one; "},
    };
    for (const Case& c : cases) {
        const auto zones = parse_zones(c.text, c.lines);
        ASSERT_FALSE(zones) << c.text;
        EXPECT_EQ(zones.error().message,
                  std::string(c.want) + "expected " +
                      (c.lines ? "NAME=X,Y X,Y of two points or more, lines separated by semicolons"
                               : "NAME=X,Y X,Y X,Y of three points or more, zones separated by "
                                 "semicolons"));
    }
}

std::string text(const std::vector<ZoneEvent>& events) {
    std::string all;
    for (const ZoneEvent& e : events) {
        all += std::to_string(e.shape) + " " + std::string(to_string(e.kind)) + " " +
               std::to_string(e.track);
        if (e.kind == inside || e.kind == leave) all += " " + std::to_string(e.dwell_ns / ms);
        all += "; ";
    }
    return all;
}

// A counter with a clock of 10 frames per second.
struct Scene {
    Scene(const char* zones, const char* lines, uint64_t leave_after_ns = 0) {
        auto shapes = *parse_zones(zones, false);
        const auto more = *parse_zones(lines, true);
        shapes.insert(shapes.end(), more.begin(), more.end());
        counter = ZoneCounter(std::move(shapes), leave_after_ns);
    }
    std::string see(std::vector<ZoneVisitor> visitors) {
        counter.update(now, visitors, events);
        now += frame;
        return text(events);
    }
    ZoneCounter counter;
    std::vector<ZoneEvent> events;
    uint64_t now = 1000 * ms;
};

TEST(ZoneCounter, TellsWhoComesStaysAndGoes) {
    Scene s("room=10,10 50,10 50,50 10,50", "");
    EXPECT_EQ(s.see({{1, {5, 20}}}), "");
    EXPECT_EQ(s.see({{1, {15, 20}}, {2, {30, 30}}}), "0 enter 1; 0 enter 2; ");
    EXPECT_EQ(s.see({{1, {16, 20}}, {2, {30, 30}}}), "0 inside 1 100; 0 inside 2 100; ");
    EXPECT_EQ(s.counter.counts()[0].inside, 2u);
    EXPECT_EQ(s.see({{1, {60, 20}}, {2, {30, 30}}}), "0 inside 2 200; 0 leave 1 100; ");
    EXPECT_EQ(s.see({}), "0 leave 2 200; ");  // no longer seen
    EXPECT_EQ(s.see({{1, {20, 20}}}), "0 enter 1; ");
    const ZoneCounts& c = s.counter.counts()[0];
    EXPECT_EQ(c.inside, 1u);
    EXPECT_EQ(c.in, 3u);
    EXPECT_EQ(c.out, 2u);
    EXPECT_EQ(c.longest_ns, 200 * ms);
}

TEST(ZoneCounter, AShortWhileOutsideOrUnseenIsNoLeave) {
    Scene s("room=10,10 50,10 50,50 10,50", "", 250 * ms);
    s.see({{1, {20, 20}}});
    EXPECT_EQ(s.see({{1, {9, 20}}}), "");
    EXPECT_EQ(s.see({}), "");
    EXPECT_EQ(s.see({{1, {20, 20}}}), "0 inside 1 300; ");
    s.see({}), s.see({});
    EXPECT_EQ(s.see({}), "0 leave 1 300; ");  // its dwell ended when it was in last
    EXPECT_EQ(s.counter.counts()[0].in, 1u);
}

TEST(ZoneCounter, KnowsTheInsideOfAnyPolygon) {
    struct Case {
        const char* zone;
        std::vector<ZonePoint> in, out;
    } cases[] = {
        {"triangle=0,0 40,0 0,40", {{1, 1}, {10, 20}, {0, 0}}, {{30, 30}, {-1, 5}, {20, 20}}},
        {"turned the other way=0,40 40,0 0,0", {{1, 1}, {10, 20}}, {{30, 30}}},
        {"an L=0,0 40,0 40,10 10,10 10,40 0,40", {{30, 5}, {5, 30}, {5, 5}}, {{30, 30}, {11, 11}}},
        {"a bow tie=0,0 40,40 40,0 0,40", {{5, 20}, {35, 20}}, {{20, 5}, {20, 35}}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.zone);
        for (const ZonePoint p : c.in) EXPECT_EQ(Scene(c.zone, "").see({{1, p}}), "0 enter 1; ");
        for (const ZonePoint p : c.out) EXPECT_EQ(Scene(c.zone, "").see({{1, p}}), "");
    }
}

// Two zones that share a side, and a grid of points: each is in one of them.
TEST(ZoneCounter, APointOnABorderIsInOneOfTwoNeighbours) {
    for (float y = 0; y < 40; ++y) {
        for (const float x : {0.f, 19.f, 20.f, 21.f, 39.f}) {
            Scene s("a=0,0 20,0 20,40 0,40; b=20,0 40,0 40,40 20,40", "");
            s.see({{1, {x, y}}});
            EXPECT_EQ(s.counter.counts()[0].inside + s.counter.counts()[1].inside, 1u)
                << x << "," << y;
        }
    }
}

TEST(ZoneCounter, ALineIsCrossedFromItsLeftToItsRight) {
    struct Case {
        const char* line;
        std::vector<ZonePoint> way;
        const char* want;  // of all steps together
    } cases[] = {
        // From 0,20 to 40,20 the left is up on a screen.
        {"l=0,20 40,20", {{10, 10}, {10, 30}}, "0 in 1; "},
        {"l=0,20 40,20", {{10, 30}, {10, 10}}, "0 out 1; "},
        {"l=40,20 0,20", {{10, 10}, {10, 30}}, "0 out 1; "},
        {"l=0,20 40,20", {{10, 10}, {10, 15}, {10, 19}}, ""},
        {"l=0,20 40,20", {{50, 10}, {50, 30}}, ""},  // beside it
        {"l=0,20 40,20", {{30, 10}, {60, 30}}, ""},
        {"l=0,20 40,20", {{10, 10}, {10, 20}, {10, 30}}, "0 in 1; "},  // it stands on it
        {"l=0,20 40,20", {{10, 10}, {10, 20}, {10, 10}}, "0 in 1; 0 out 1; "},
        {"l=0,20 20,20 40,20", {{20, 10}, {20, 30}}, "0 in 1; "},  // through a corner: once
        {"l=0,20 20,0 40,20", {{10, 5}, {10, 15}}, "0 in 1; "},
        {"l=0,20 20,0 40,20", {{0, 10}, {40, 10}}, ""},  // in and out again in a step
        {"l=0,20 20,0 40,20", {{0, 10}, {20, 10}, {40, 10}}, "0 in 1; 0 out 1; "},
    };
    for (const Case& c : cases) {
        Scene s("", c.line);
        std::string all;
        for (const ZonePoint p : c.way) all += s.see({{1, p}});
        EXPECT_EQ(all, c.want) << c.line << " by way of " << c.way[0].x << "," << c.way[0].y;
        EXPECT_EQ(s.counter.counts()[0].inside, 0u);
    }
}

TEST(ZoneCounter, ATrackThatWasNotSeenForAWhileHasCrossedAllTheSame) {
    Scene s("", "l=0,20 40,20");
    s.see({{1, {10, 10}}, {2, {20, 10}}});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(s.see({{2, {20, 10}}}), "");
    EXPECT_EQ(s.see({{1, {10, 30}}, {2, {20, 10}}}), "0 in 1; ");
    s.now += 11'000 * ms;  // another time: it may have come from anywhere
    EXPECT_EQ(s.see({{1, {10, 10}}}), "");
}

TEST(ZoneCounter, OtherShapesKeepTheCountsOfThoseThatStay) {
    Scene s("a=0,0 20,0 20,40 0,40; b=20,0 40,0 40,40 20,40", "");
    s.see({{1, {5, 5}}, {2, {30, 5}}});
    s.counter.set_shapes(*parse_zones("b=20,0 40,0 40,40 20,40; a=0,0 20,0 20,30 0,30", false), 0);
    EXPECT_EQ(s.see({{1, {5, 5}}, {2, {30, 5}}}), "0 inside 2 100; 1 enter 1; ");
    EXPECT_EQ(s.counter.counts()[0].in, 1u);
    EXPECT_EQ(s.counter.counts()[1].in, 1u);
}

TEST(ZoneCounter, TracksThatEndHaveLeft) {
    Scene s("a=0,0 20,0 20,40 0,40", "");
    s.see({{1, {5, 5}}});
    s.counter.end_tracks(s.events);
    EXPECT_EQ(text(s.events), "0 enter 1; 0 leave 1 0; ");  // behind what was there
    EXPECT_EQ(s.counter.counts()[0].inside, 0u);
    EXPECT_EQ(s.counter.counts()[0].out, 1u);
    EXPECT_EQ(s.see({{1, {5, 5}}}), "0 enter 1; ");
}

TEST(ZoneCounter, TracksBeforeALongGapHaveLeft) {
    Scene s("a=0,0 20,0 20,40 0,40", "");
    s.see({{1, {5, 5}}, {2, {6, 5}}});
    s.see({{1, {5, 5}}, {2, {6, 5}}});
    s.now += 11'000 * ms;
    EXPECT_EQ(s.see({{1, {5, 5}}}), "0 leave 1 100; 0 leave 2 100; 0 enter 1; ");
    EXPECT_EQ(s.counter.counts()[0].inside, 1u);
    EXPECT_EQ(s.counter.counts()[0].out, 2u);
}

TEST(ZoneCounter, TracksOfTwoLabelsAreTwo) {
    constexpr uint32_t car = 1, person = 2, bicycle = 3;
    Scene s("a=0,0 20,0 20,40 0,40", "l=30,40 30,0");
    EXPECT_EQ(s.see({{1, {5, 5}, car}, {1, {6, 6}, person}}), "0 enter 1; 0 enter 1; ");
    EXPECT_EQ(s.events[0].label, car);
    EXPECT_EQ(s.events[1].label, person);
    EXPECT_EQ(s.see({{1, {5, 5}, car}}), "0 inside 1 100; 0 leave 1 0; ");
    EXPECT_EQ(s.events[1].label, person);
    // Nor does a bicycle that comes cross the line on whose other side the car was.
    EXPECT_EQ(s.see({{1, {35, 5}, bicycle}}), "0 leave 1 100; ");
    EXPECT_EQ(s.see({{1, {25, 5}, bicycle}}), "1 out 1; ");
}

TEST(ZoneCounter, NobodyCrossesBetweenPlacesOfTwoPoints) {
    Scene s("a=0,0 20,0 20,40 0,40", "l=0,20 40,20");
    s.see({{1, {10, 10}}});
    s.counter.forget_places();
    EXPECT_EQ(s.see({{1, {10, 30}}}), "0 inside 1 100; ");
    EXPECT_EQ(s.see({{1, {10, 10}}}), "0 inside 1 200; 1 out 1; ");
}

// After a flush or with another stream, which begin at an earlier time.
TEST(ZoneCounter, TimePassesAgainAfterTracksHaveEnded) {
    Scene s("a=0,0 20,0 20,40 0,40", "");
    s.now = 8000 * ms;
    s.see({{1, {5, 5}}});
    s.counter.end_tracks(s.events);
    s.now = 0;
    EXPECT_EQ(s.see({{1, {5, 5}}}), "0 enter 1; ");
    EXPECT_EQ(s.see({{1, {5, 5}}}), "0 inside 1 100; ");
    EXPECT_EQ(s.see({}), "0 leave 1 100; ");
}

TEST(ZoneCounter, TimeGoesOnFromAStepBackAndStandsForFramesOutOfOrder) {
    Scene s("a=0,0 20,0 20,40 0,40", "", 150 * ms);
    struct Case {
        uint64_t time_ms;
        bool inside;
        const char* want;
    } cases[] = {
        {8000, true, "0 enter 1; "},      {8200, true, "0 inside 1 200; "},
        {8100, true, "0 inside 1 200; "},  // in another order
        {8300, true, "0 inside 1 300; "}, {3000, true, "0 inside 1 300; "},
        {3100, true, "0 inside 1 400; "}, {3200, false, ""},
        {3300, false, "0 leave 1 400; "},
    };
    for (const Case& c : cases) {
        s.now = c.time_ms * ms;
        EXPECT_EQ(s.see({{1, {c.inside ? 5.f : 50.f, 5}}}), c.want) << c.time_ms;
    }
}

TEST(ZoneCounter, PlacesInOtherUnitsAreWhereTheyWere) {
    Scene s("", "l=0,20 40,20");
    s.see({{1, {10, 30}}});
    s.counter.rescale(2, 0.5);
    EXPECT_EQ(s.see({{1, {20, 15}}}), "");
    EXPECT_EQ(s.see({{1, {20, 25}}}), "0 in 1; ");
}

}  // namespace
