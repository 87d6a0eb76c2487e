// SPDX-License-Identifier: Apache-2.0
// Events as JSON, each on a line of its own.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/profiling/host/record.h"

namespace vartml::profiling {

struct LaneName;

struct TraceHeader {
    std::string boot_id;
    uint32_t pid = 0;
    uint64_t start_monotonic_ns = 0, start_realtime_ns = 0;
    std::vector<std::string> not_captured;
};

// Events are appended with the comma that parts them from what is before.
class TraceJson {
public:
    explicit TraceJson(std::string& out) : out_(out) {}

    // Opens the array.
    void header(const TraceHeader& header);
    // The lane's and its process's name.
    void names(uint32_t pid, uint32_t tid, const LaneName& name);
    // An event, and the arrows of its frames behind it. Fields of the lane that are 0 are `own`'s.
    void event(const RecordView& record, TraceLane own);
    // Closes the array.
    void end() { out_ += "\n]\n"; }

    uint64_t events() const { return events_; }

private:
    void begin(char phase);
    void metadata(std::string_view what, uint32_t pid, uint32_t tid);
    void lane(TraceLane lane);
    void arguments(const RecordView& record);
    bool value(const RecordArg& arg, const char*& text);
    void arrow(const RecordFrame& frame, const RecordHeader& header, TraceLane lane);

    std::string& out_;
    uint64_t events_ = 0;
};

}  // namespace vartml::profiling
