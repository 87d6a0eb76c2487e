// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/share.h"

#include <algorithm>

namespace vartml::fleet {

uint64_t weight(std::string_view worker, std::string_view camera) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, and the finaliser of MurmurHash3
    const auto mix = [&](std::string_view text) {
        for (const char c : text) {
            hash ^= static_cast<unsigned char>(c);
            hash *= 0x100000001b3;
        }
    };
    mix(worker);
    mix(std::string_view("\0", 1));
    mix(camera);
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccd;
    hash ^= hash >> 33;
    hash *= 0xc4ceb9fe1a85ec53;
    return hash ^ (hash >> 33);
}

size_t fair_share(size_t cameras, const std::vector<size_t>& capacities) {
    std::vector<size_t> sorted = capacities;
    std::ranges::sort(sorted);
    size_t left = cameras, workers = sorted.size();
    for (const size_t capacity : sorted) {
        const size_t each = (left + workers - 1) / workers;
        if (capacity >= each) return each;
        left -= capacity;
        --workers;
    }
    return sorted.empty() ? 0 : sorted.back();
}

std::vector<std::string> surplus(const std::string& worker, const std::set<std::string>& own,
                                 size_t most) {
    std::vector<std::string> given(own.begin(), own.end());
    if (given.size() <= most) return {};
    std::ranges::sort(given, {}, [&](const std::string& c) { return weight(worker, c); });
    given.resize(own.size() - most);
    return given;
}

std::vector<std::string> order_to_take(const std::string& worker,
                                       const std::vector<std::string>& workers,
                                       const std::vector<std::string>& free) {
    struct Row {
        size_t before;  // workers that want it more
        uint64_t own;
        std::string camera;
    };
    std::vector<Row> rows;
    for (const std::string& camera : free) {
        const uint64_t own = weight(worker, camera);
        const auto more = std::ranges::count_if(
            workers, [&](const std::string& other) { return weight(other, camera) > own; });
        rows.push_back({size_t(more), own, camera});
    }
    std::ranges::sort(rows, [](const Row& a, const Row& b) {
        return a.before != b.before ? a.before < b.before : a.own > b.own;
    });
    std::vector<std::string> order;
    for (Row& row : rows) order.push_back(std::move(row.camera));
    return order;
}

}  // namespace vartml::fleet
