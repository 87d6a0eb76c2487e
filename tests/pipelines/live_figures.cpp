// SPDX-License-Identifier: Apache-2.0
// What the live page counts: frames by the second, objects by their tracks.
#include <gtest/gtest.h>

#include "pipelines/apps/live/history.h"
#include "pipelines/apps/live/sightings.h"

namespace live {
namespace {

TEST(History, KeepsTheOldestSecondWhileTheNewestBegins) {
    History history;
    const History::Time begin{};
    using std::chrono::seconds;
    for (unsigned second = 0; second <= History::kept; ++second)
        history.frame(begin + seconds(second));
    const auto list = history.list(begin + seconds(History::kept));
    ASSERT_EQ(list.size(), History::kept);
    for (const auto& second : list) EXPECT_EQ(second.frames, 1u) << second.number;
}

std::vector<Sighting> cars(std::initializer_list<int64_t> tracks) {
    std::vector<Sighting> seen;
    for (const int64_t track : tracks) {
        Sighting car;
        car.label = "car";
        car.track = track;
        seen.push_back(car);
    }
    return seen;
}

TEST(Sightings, CountAnObjectThatStaysOnce) {
    Sightings sightings;
    for (int64_t passing = 1; passing <= 10'000; ++passing) sightings.frame(cars({0, passing}));
    ASSERT_EQ(sightings.classes().size(), 1u);
    EXPECT_EQ(sightings.classes()[0].tracks, 10'001u);
    EXPECT_EQ(sightings.classes()[0].now, 2u);
}

TEST(Sightings, KeepWhatIsOnTheFrameHoweverMany) {
    Sightings sightings;
    std::vector<Sighting> crowd;
    for (int64_t track = 0; track < 6'000; ++track) crowd.push_back(cars({track})[0]);
    for (int frame = 0; frame < 3; ++frame) sightings.frame(crowd);
    EXPECT_EQ(sightings.classes()[0].tracks, 6'000u);
}

}  // namespace
}  // namespace live
