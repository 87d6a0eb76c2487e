// SPDX-License-Identifier: Apache-2.0
// Lines on disk while their receiver is away: segments in a folder, oldest first, within a limit.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/publish.h>
#include <vartml/result.h>

#include "lib/base/file.h"

namespace vartml::publish {

// One file of the spool: lines of `LENGTH CRC JSON`, length and CRC-32C of the JSON as eight digits
// of base 16.

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

// Since the system started, also while it slept. Nobody sets it, as the time of day of a board that
// had none is set once it finds a network.
struct BootClock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<BootClock>;
    static constexpr bool is_steady = true;
    static time_point now();
};

struct Segment {
    uint64_t number = 0;
    uint64_t bytes = 0;
    uint64_t lines = 0;
    uint64_t records = 0;  // lines that are frames
    BootClock::time_point oldest{}, newest{};
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

// What was written survives the process, not a crash of the system: nothing is synced. The folder
// never holds more than the limit: the oldest segment that nobody reads gives way, and becomes a
// segment of gap lines. A reader that keeps up reads from memory, and the one segment that grows is
// emptied when all of it is acknowledged: then a line costs a write, and no file is made for it.
// Thread-safety: none.
class Spool {
public:
    struct Limits {
        uint64_t max_bytes = 64 << 20;
        uint64_t max_age_s = 0;  // 0 = none
    };
    // Makes the folder where it is missing and recovers what it holds. Errors: busy when another
    // process (or Spool) has it, io and not_found.
    static Result<Spool> open(const std::string& dir, const Limits& limits);
    Spool(Spool&&) = default;
    ~Spool();

    // Adds a line behind all others.
    Result<void> append(const std::string& line);
    // Adds lines in front of all others; nothing may have been read and not acknowledged.
    Result<void> prepend(const std::vector<std::string>& lines);

    // Drops what is older than it may be, a segment at a time.
    Result<void> expire();

    bool empty() const { return segments_.empty() || segments_.front().lines == 0; }
    bool has_unread() const;
    // The oldest line that was not read. Errors: bad_model of a segment that is damaged, or
    // not_found, which is gone then; any other may pass, and nothing is lost.
    Result<std::string> read();
    // Drops the part that could not be read.
    void give_up();
    // The oldest line that was read is done with; the last one of a segment removes its file.
    void acknowledge();
    // What was read and not acknowledged will be read again.
    void rewind();
    // Takes what was acknowledged out of its file, too, so that the next process does not read it.
    // Nothing may have been read and not acknowledged.
    void trim();

    uint64_t bytes() const { return bytes_; }
    uint64_t records() const;  // frames that wait
    uint64_t take_dropped();   // frames lost to the limits since the last call

private:
    struct Loaded {
        std::vector<std::string> lines;
        size_t next = 0, done = 0;
        uint64_t done_records = 0;  // frames among the lines that are done with
        bool in_flight() const { return next > done; }
    };
    Spool(std::string dir, const Limits& limits, Fd lock)
        : dir_(std::move(dir)), limits_(limits), lock_(std::move(lock)) {}
    Result<void> begin_segment();
    Result<void> write(const std::string& bytes);
    Result<void> make_room(uint64_t bytes);
    Result<void> drop(size_t index);
    Result<void> load_next();
    void unload_unread();
    void empty_front();
    void forget(size_t index);
    bool fits(uint64_t bytes) const;
    bool is_long(const Segment& segment) const;
    // Whether lines of it are with the receiver, which will acknowledge them.
    bool is_in_flight(size_t index) const {
        return index < loaded_.size() && loaded_[index].in_flight();
    }
    uint64_t segment_bytes() const;

    std::string dir_;
    Limits limits_;
    Fd lock_;
    std::deque<Segment> segments_;
    std::deque<Loaded> loaded_;  // of the first segments
    Fd active_;                  // of the last segment, while it grows; only then may it be empty
    uint64_t bytes_ = 0;
    uint64_t dropped_ = 0;
};

}  // namespace vartml::publish
