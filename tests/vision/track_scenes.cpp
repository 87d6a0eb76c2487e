// SPDX-License-Identifier: Apache-2.0
// Identities on scenes with known paths.
#include <gtest/gtest.h>

#include "tests/vision/scene.h"

namespace {

using namespace vartml;
using namespace vartml::test;

const Scene easy_scenes[] = {
    {"side by side",
     {{.x = 60, .y = 100, .vx = 90}, {.x = 60, .y = 200, .vx = 90}, {.x = 60, .y = 300, .vx = 90}}},
    {"standing", {{.x = 60, .y = 100}, {.x = 300, .y = 100}}, 4, 2},
    // Two of one size whose ways cross: at 2 s their boxes overlap by 3/4.
    {"crossing", {{.x = 100, .y = 100, .vx = 120}, {.x = 580, .y = 110, .vx = -120}}},
    {"crossing, jitter and any order",
     {{.x = 100, .y = 100, .vx = 120}, {.x = 580, .y = 120, .vx = -120}},
     4,
     1.5,
     true},
    {"crossing at a right angle",
     {{.x = 100, .y = 300, .vx = 100}, {.x = 310, .y = 100, .vy = 100}},
     4,
     1,
     true},
    // Hidden for 0.6 s while it walks on by more than its width.
    {"behind a pillar",
     {{.x = 60, .y = 100, .vx = 120, .hidden = {1.5, 2.1}}, {.x = 60, .y = 300, .vx = 60}}},
    // While they overlap by half, suppression leaves one box.
    {"one behind the other",
     {{.x = 100, .y = 100, .vx = 120}, {.x = 580, .y = 115, .vx = -120, .hidden = {1.93, 2.07}}}},
    {"comes nearer", {{.x = 200, .y = 200, .vx = 20, .growth = 0.4}}, 4, 1},
    {"thrown", {{.x = 60, .y = 500, .vx = 100, .vy = -300, .ay = 150, .w = 100, .h = 100}}},
    {"comes and goes",
     {{.x = 60, .y = 100, .vx = 90, .there = {0, 1.5}},
      {.x = 400, .y = 100, .vx = 50, .there = {2, 4}}}},
    {"classes on one place",
     {{.x = 60, .y = 100, .vx = 90}, {.x = 60, .y = 100, .vx = 90, .class_id = 1}},
     4,
     1,
     true},
};
// Only uncertain boxes for 1 s; needs the second association.
const Scene dim_scene = {
    "half hidden", {{.x = 60, .y = 100, .vx = 120, .dim = {1, 2}}, {.x = 60, .y = 300, .vx = 90}}};

TEST(TrackScenes, KeepEveryIdentityWithEveryAlgorithmAndInterval) {
    for (const Scene& scene : easy_scenes) {
        for (const auto algorithm :
             {TrackAlgorithm::bytetrack, TrackAlgorithm::iou, TrackAlgorithm::ocsort}) {
            for (const unsigned interval : {1u, 2u, 5u}) {
                SCOPED_TRACE(scene.name + ", algorithm " + std::to_string(int(algorithm)) +
                             ", interval " + std::to_string(interval));
                const Outcome outcome = play(scene, {.algorithm = algorithm}, interval);
                EXPECT_EQ(outcome.switches, 0u);
                EXPECT_EQ(outcome.fragments, 0u);
                std::set<uint64_t> all;
                for (const auto& ids : outcome.ids) {
                    ASSERT_EQ(ids.size(), 1u);
                    all.insert(ids[0]);
                }
                EXPECT_EQ(all.size(), scene.actors.size());
                EXPECT_EQ(*all.rbegin(), scene.actors.size());  // no id was given in vain
            }
        }
    }
}

TEST(TrackScenes, HaveTheSameIdsWhetherEveryFrameOrEveryFifthIsInferred) {
    for (Scene scene : easy_scenes) {
        scene.shuffled = false;  // ids follow the order of the first frame
        const auto every = play(scene, {}).ids;
        EXPECT_EQ(play(scene, {}, 5).ids, every) << scene.name;
        EXPECT_EQ(play(scene, {.algorithm = TrackAlgorithm::iou}, 5).ids, every) << scene.name;
    }
}

TEST(TrackScenes, SecondAssociationCarriesATrackOverUncertainBoxes) {
    for (const unsigned interval : {1u, 5u}) {
        const Outcome outcome = play(dim_scene, {}, interval);
        EXPECT_EQ(outcome.switches + outcome.fragments, 0u);
    }
    // Without it the boxes are without id, as long as they are uncertain.
    const Outcome without = play(dim_scene, {.low_score = 0.5});
    EXPECT_EQ(without.fragments, 1u);
}

TEST(TrackScenes, ALossLongerThanMaxLostGivesAnotherId) {
    const Scene scene = {"long", {{.x = 60, .y = 100, .vx = 90, .hidden = {1, 2.5}}}};
    EXPECT_EQ(play(scene, {}).switches, 1u);
    EXPECT_EQ(play(scene, {.max_lost_ns = 2 * second}).switches, 0u);
}

TEST(TrackScenes, AreTheSameInEveryRun) {
    Scene crowd{"crowd", {}, 3, 3, true};
    std::mt19937 random(3);
    for (int i = 0; i < 60; ++i) {
        const auto number = [&](int from, int to) {
            return static_cast<double>(
                from + static_cast<int>(random() % static_cast<unsigned>(to - from)));
        };
        crowd.actors.push_back({.x = number(0, 800),
                                .y = number(0, 600),
                                .vx = number(-90, 90),
                                .vy = number(-90, 90)});
    }
    for (const auto algorithm :
         {TrackAlgorithm::bytetrack, TrackAlgorithm::iou, TrackAlgorithm::ocsort}) {
        const Outcome one = play(crowd, {.algorithm = algorithm}),
                      two = play(crowd, {.algorithm = algorithm});
        EXPECT_EQ(one.ids, two.ids);
        EXPECT_EQ(one.fragments, two.fragments);
        for (const auto& ids : one.ids) EXPECT_GE(ids.size(), 1u);
        constexpr const char* names[] = {"iou_switches", "bytetrack_switches", "ocsort_switches"};
        ::testing::Test::RecordProperty(names[static_cast<size_t>(algorithm)],
                                        static_cast<int>(one.switches));
    }
}

}  // namespace
