// SPDX-License-Identifier: Apache-2.0
// Writes events of the Chrome trace format, one after another, to a file that gets its name when it
// is complete.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <vartml/result.h>

#include "lib/common/json_text.h"
#include "lib/profiling/buffer/part_file.h"

namespace vartml::profiling {

void append_number(std::string& out, uint64_t value);
// Never in exponent form, which some readers take for text.
void append_fixed(std::string& out, double value, int decimals);

// The members of a JSON object, one after another.
class JsonMembers {
public:
    explicit JsonMembers(std::string& out) : out_(out) {}
    // The member's name; its value is what is appended next.
    std::string& key(std::string_view name);
    void text(std::string_view name, std::string_view value) { append_quoted(key(name), value); }
    void number(std::string_view name, uint64_t value) { append_number(key(name), value); }
    void fixed(std::string_view name, double value, int decimals) {
        append_fixed(key(name), value, decimals);
    }

private:
    std::string& out_;
    bool first_ = true;
};

// Process and thread of an event; both are unique in the file.
struct Track {
    uint64_t pid = 0, tid = 0;
    bool operator==(const Track&) const = default;
};

struct FileEvent {
    char phase = 'X';
    std::string_view name, category = {};
    Track track = {};
    uint64_t start_ns = 0;
    std::optional<uint64_t> duration_ns = {};  // of an X, at least 1
    std::optional<uint64_t> id = {};
    std::string_view args = {};  // members of the object, without its braces
};

class TraceFile {
public:
    // `other_data`: members of the object of that name.
    static Result<TraceFile> create(const std::string& path, std::string_view other_data);
    void add(const FileEvent& event);
    // A whole event, as JSON.
    void add_json(std::string_view event);
    // The first name of a process counts.
    void name_process(uint64_t pid, std::string_view name);
    void name_thread(const Track& track, std::string_view name, uint64_t sort_index);
    Result<void> commit();

private:
    explicit TraceFile(PartFile file) : file_(std::move(file)) {}
    void metadata(const Track& track, std::string_view name, std::string_view args);

    PartFile file_;
    std::set<uint64_t> named_processes_;
    bool is_first_ = true;
    std::string event_;  // reused
};

}  // namespace vartml::profiling
