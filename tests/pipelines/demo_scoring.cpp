// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/demo/scoring.h"

#include <gtest/gtest.h>

namespace demo {
namespace {

Found at(double x, double y, double side, double score = 0.9, const char* label = "qr-code") {
    return {{x, y, x + side, y + side}, score, label};
}

TEST(DemoScoring, CountsKnownCodesOnce) {
    struct Case {
        const char* why;
        std::vector<Found> found;
        std::vector<KnownCode> codes;
        unsigned known, hits, false_alarms;
    };
    const KnownCode whole{{100, 100, 200, 200}, true}, hidden{{100, 100, 200, 200}, false};
    const Case cases[] = {
        {"nothing found", {}, {whole}, 1, 0, 0},
        {"found exactly", {at(100, 100, 100)}, {whole}, 1, 1, 0},
        {"IoU of 0.47", {at(120, 120, 100)}, {whole}, 1, 0, 1},
        {"IoU of 0.68", {at(110, 110, 100)}, {whole}, 1, 1, 0},
        {"found twice", {at(100, 100, 100), at(104, 104, 100, 0.8)}, {whole}, 1, 1, 1},
        {"elsewhere", {at(400, 100, 100)}, {whole}, 1, 0, 1},
        {"a covered code is not expected", {}, {hidden}, 0, 0, 0},
        {"a covered code may be found", {at(100, 100, 100)}, {hidden}, 0, 0, 0},
        {"a part of a covered code may be found", {at(110, 110, 50)}, {hidden}, 0, 0, 0},
    };
    for (const Case& c : cases) {
        KnownTally tally;
        tally_known(c.found, c.codes, tally);
        EXPECT_EQ(tally.known, c.known) << c.why;
        EXPECT_EQ(tally.found, c.hits) << c.why;
        EXPECT_EQ(tally.false_alarms, c.false_alarms) << c.why;
    }
}

TEST(DemoScoring, TellsFalseAlarmsThatLookSure) {
    KnownTally tally;
    tally_known(std::vector{at(0, 0, 9, 0.5), at(50, 0, 9, 0.49)}, {}, tally);
    EXPECT_EQ(tally.false_alarms, 2u);
    EXPECT_EQ(tally.sure_false_alarms, 1u);
}

TEST(DemoScoring, GivesACodeToTheBestBox) {
    // The worse box overlaps both codes; the better one is served first.
    const std::vector<Found> found = {at(130, 100, 100, 0.4), at(100, 100, 100, 0.9)};
    const std::vector<KnownCode> codes = {{{100, 100, 200, 200}, true},
                                          {{140, 100, 240, 200}, true}};
    KnownTally tally;
    tally_known(found, codes, tally);
    EXPECT_EQ(tally.found, 2u);
    EXPECT_EQ(tally.false_alarms, 0u);
}

TEST(DemoScoring, CountsClassesByItemsAndFrames) {
    ClassTallies tally;
    tally_classes(std::vector<Labelled>{{"cat", 0.5}, {"cat", 0.7}, {"dog", 0.6}}, tally);
    tally_classes(std::vector<Labelled>{{"cat", 0.4}}, tally);
    EXPECT_EQ(tally["cat"].items, 3u);
    EXPECT_EQ(tally["cat"].frames, 2u);
    EXPECT_EQ(tally["cat"].best, 0.7);
    EXPECT_EQ(tally["dog"].items, 1u);
    EXPECT_EQ(tally["dog"].frames, 1u);
}

TEST(DemoScoring, DoubtsBoxesThatAreSeldomObjects) {
    struct Case {
        size_t per_frame, frames;
        double score, every_fourth;
        const char* doubt;
    };
    const Case cases[] = {
        {2, 30, 0.9, 0.9, ""},
        {2, 30, 0.9, 0.3, ""},                                // now and then one at the threshold
        {2, 30, 0.3, 0.9, "3 of 4 or more score below 0.5"},  // as a model that is fed wrongly
        {3, 3, 0.3, 0.3, ""},                                 // too few to say
        {60, 5, 0.9, 0.9, "that is 60 on each"},
    };
    for (const Case& c : cases) {
        BoxTally tally;
        for (size_t f = 0; f < c.frames; ++f) {
            std::vector<Found> frame;
            for (size_t i = 0; i < c.per_frame; ++i) {
                const bool fourth = (f * c.per_frame + i) % 4 == 0;
                frame.push_back(at(100, 100, 100, fourth ? c.every_fourth : c.score));
            }
            tally.add(frame);
        }
        tally.add({});
        EXPECT_EQ(tally.boxes(), c.per_frame * c.frames);
        EXPECT_EQ(tally.frames(), c.frames);
        EXPECT_EQ(tally.doubt(), c.doubt) << c.score;
    }
}

}  // namespace
}  // namespace demo
