// SPDX-License-Identifier: Apache-2.0
// How cameras are shared among workers.
#include "gst/fleet/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace {

using namespace vartml::fleet;
using Names = std::vector<std::string>;

Names names(const std::string& prefix, size_t count) {
    Names all;
    for (size_t i = 0; i < count; ++i) all.push_back(prefix + std::to_string(i));
    return all;
}

TEST(FleetShare, IsFairAndUsesWhatLargeWorkersHaveLeft) {
    struct Row {
        size_t cameras;
        std::vector<size_t> capacities;
        size_t share;
    };
    for (const Row& row : {Row{12, {100, 100, 100}, 4}, Row{13, {100, 100, 100}, 5},
                           Row{10, {2, 20}, 8}, Row{10, {20, 2, 3}, 5}, Row{9, {2, 3}, 3},
                           Row{0, {5}, 0}, Row{5, {}, 0}, Row{1, {1, 1}, 1}}) {
        EXPECT_EQ(fair_share(row.cameras, row.capacities), row.share) << row.cameras;
        size_t room = 0, all = 0;
        for (const size_t capacity : row.capacities) {
            room += std::min(capacity, row.share);
            all += capacity;
        }
        EXPECT_GE(room, std::min(row.cameras, all));
    }
}

// Who takes which, one camera each in turn until all are taken.
std::map<std::string, std::string> settle(const Names& workers, const Names& cameras) {
    const size_t share =
        fair_share(cameras.size(), std::vector<size_t>(workers.size(), cameras.size()));
    std::map<std::string, std::string> owner;
    std::map<std::string, size_t> count;
    while (owner.size() < cameras.size())
        for (const std::string& worker : workers) {
            Names free;
            for (const std::string& camera : cameras)
                if (!owner.contains(camera)) free.push_back(camera);
            const auto order = order_to_take(worker, workers, free);
            if (order.empty() || count[worker] == share) continue;
            owner[order[0]] = worker;
            ++count[worker];
        }
    return owner;
}

TEST(FleetShare, MovesFewCamerasWhenAWorkerGoes) {
    const Names cameras = names("camera", 300);
    const auto before = settle({"a", "b", "c", "d"}, cameras);
    const auto after = settle({"a", "b", "c"}, cameras);
    size_t moved = 0;
    for (const auto& [camera, worker] : before)
        moved += worker != "d" && after.at(camera) != worker;
    // Those of d must move. With any other order two of three of the rest would move, too.
    EXPECT_LT(moved, cameras.size() / 4);
}

TEST(FleetShare, GivesBackWhatOthersWantMore) {
    const std::set<std::string> own = {"x", "y", "z"};
    EXPECT_TRUE(surplus("a", own, 3).empty());
    const auto given = surplus("a", own, 1);
    ASSERT_EQ(given.size(), 2u);
    for (const std::string& kept : own) {
        if (std::ranges::find(given, kept) != given.end()) continue;
        for (const std::string& camera : given) EXPECT_LT(weight("a", camera), weight("a", kept));
    }
}

TEST(FleetShare, WeightsAreEven) {
    std::map<std::string, size_t> first;
    const Names workers = names("host-", 5);
    for (const std::string& camera : names("camera", 5000))
        ++first[*std::ranges::max_element(
            workers, {}, [&](const std::string& worker) { return weight(worker, camera); })];
    for (const std::string& worker : workers) EXPECT_NEAR(double(first[worker]), 1000., 150.);
}

}  // namespace
