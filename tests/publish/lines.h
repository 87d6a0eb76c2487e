// SPDX-License-Identifier: Apache-2.0
// JSON lines as tests look at them: parsed by another library than the one that wrote them.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include <vartml/publish.h>

namespace vartml::test {

struct Seen {
    std::string run;
    uint64_t first = 0, last = 0;
    bool gap = false;
    bool operator==(const Seen&) const = default;
};

inline Seen seen(const std::string& text) {
    const auto json = nlohmann::json::parse(text);
    if (json["schema"] == "vartml.gap/1") {
        EXPECT_EQ(json["count"], json["last"].get<uint64_t>() - json["first"].get<uint64_t>() + 1);
        return {json["run"], json["first"], json["last"], true};
    }
    EXPECT_EQ(json["schema"], "vartml.frame/1");
    return {json["run"], json["seq"], json["seq"], false};
}

inline std::vector<std::string> split_lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

// Whether numbers run from `first` without hole, where a gap counts for what it stands for, after
// lines that came again are left out. Gives the number behind the last.
inline uint64_t expect_in_order(const std::vector<std::string>& lines, const std::string& run,
                                uint64_t first = 0) {
    uint64_t next = first;
    for (const std::string& line : lines) {
        const Seen s = seen(line);
        if (s.run != run || s.last < next) continue;
        EXPECT_EQ(s.first, next) << line;
        next = s.last + 1;
    }
    return next;
}

inline std::unique_ptr<FrameRecord> a_record(Publisher& publisher, uint64_t frame,
                                             size_t label_bytes = 3) {
    static const std::string label(100000, 'x');
    auto record = publisher.take();
    record->stream = "cam";
    record->frame_seq = frame;
    record->objects.emplace_back().label = std::string_view(label).substr(0, label_bytes);
    return record;
}

}  // namespace vartml::test
