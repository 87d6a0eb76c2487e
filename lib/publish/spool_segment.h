// SPDX-License-Identifier: Apache-2.0
// One file of the spool: lines of `LENGTH CRC JSON`, length and CRC-32C of the JSON as eight digits
// of base 16.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/publish.h>
#include <vartml/result.h>

namespace vartml::publish {

// A line as it stands in a segment. `text` is a JSON line with its newline.
std::string framed(std::string_view text);
// What is added to a line.
inline constexpr size_t frame_bytes = 18;

// The lines that are whole, with their newline, and how many bytes they take.
struct SegmentContent {
    std::vector<std::string> lines;
    size_t valid_bytes = 0;
    bool torn = false;  // there is more, which is damaged
};
SegmentContent parse_segment(std::string_view bytes);

struct Segment {
    uint64_t number = 0;
    uint64_t bytes = 0;
    uint64_t lines = 0;
    uint64_t records = 0;  // lines that are frames
    std::chrono::system_clock::time_point newest{};
    bool gaps_only() const { return records == 0; }
};

// `DIR/0123456789abcdef.spool`.
std::string segment_path(const std::string& dir, uint64_t number);
// Numbers of the segments in a folder, the oldest first.
std::vector<uint64_t> list_segments(const std::string& dir);
Result<SegmentContent> read_segment(const std::string& dir, uint64_t number);
// Reads a segment that an earlier process left, and cuts a torn end off.
Result<Segment> recover_segment(const std::string& dir, uint64_t number);
// Writes a whole segment beside its place and renames it.
Result<Segment> write_segment(const std::string& dir, uint64_t number,
                              const std::vector<std::string>& lines);

// What stands for lines that are lost: one gap line per run, in their order. `records` counts the
// frames among the lines.
std::vector<std::string> gaps_for(const std::vector<std::string>& lines, uint64_t& records);

}  // namespace vartml::publish
