// SPDX-License-Identifier: Apache-2.0
// Reads the events of a host trace one after another: a file of any size takes the same memory.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

namespace vartml::profiling {

// What the event `vartml_capture` says; empty where it does not.
struct HostClock {
    std::string clock, boot_id;
};

struct HostEvent {
    char phase = 0;
    std::string name, category;
    uint64_t pid = 0, tid = 0;
    std::string id;  // as JSON
    std::optional<int64_t> start_ns;
    uint64_t duration_ns = 0;
    std::string job_key;              // "P/A/I"
    std::vector<std::string> frames;  // "<stream>:<number>"
    std::optional<HostClock> clock;   // of vartml_capture
    std::string members;              // of the event as JSON, without ts and dur

    // The event with its times moved.
    std::string json(int64_t offset_ns) const;
};

// Calls `fn` for each event until it returns false. Takes the array and the object form, and both
// cut off at any place. Errors: not_found, io; bad_model for what is no trace.
Result<void> for_each_host_event(const std::string& path,
                                 const std::function<bool(const HostEvent&)>& fn);

}  // namespace vartml::profiling
