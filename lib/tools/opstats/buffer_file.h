// SPDX-License-Identifier: Apache-2.0
// Reads a raw stats buffer in windows: a file of any size takes the same memory.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/trace/stats_buffer.h"

namespace vartml::profiling {

using Section = format::SectionEntry;

class BufferFile;

// Records of a section by index, of which a window is in memory. Cheap where the indices rise.
class RecordWindow {
public:
    RecordWindow() = default;  // no records
    // nullptr: a section without records.
    RecordWindow(const BufferFile& file, const Section* section);
    uint64_t size() const { return section_ ? section_->count : 0; }
    // Copies the first bytes of a record. False beyond the end, and when the file can no longer be
    // read: status() tells.
    bool get(uint64_t index, std::span<std::byte> record);
    const Result<void>& status() const { return status_; }

private:
    bool load(uint64_t index);
    const BufferFile* file_ = nullptr;
    const Section* section_ = nullptr;
    uint64_t first_ = 0, loaded_ = 0;
    std::vector<std::byte> bytes_;
    Result<void> status_;
};

template <typename T>
class Records : public RecordWindow {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    using RecordWindow::RecordWindow;
    bool get(uint64_t index, T& record) {
        return RecordWindow::get(index, std::as_writable_bytes(std::span(&record, 1)));
    }
};

// Counters of one operator; those above the number of events are not_captured.
using PmuRow = std::array<uint64_t, max_pmu_events>;

// Thread-safety: const members may be called by several threads at once.
class BufferFile {
public:
    // Makes every check of the format: sizes, counts, products, checksums, and that sections
    // belong to threads and to each other. Errors: not_found, io; unsupported for another major
    // version or clock; bad_model for the rest. The sentence names the file and the section.
    static Result<BufferFile> open(const std::string& path);

    // For those who hold many: from now on the file is open only while something is read.
    void close_between_reads() { fd_.reset(); }

    const std::string& path() const { return path_; }
    const format::Header& header() const { return header_; }
    bool has(format::Flag flag) const { return (header_.flags & flag) != 0; }
    const std::string& network() const { return network_; }
    // At most 4096, sorted by core and thread.
    std::span<const format::ThreadRecord> threads() const { return threads_; }
    std::span<const format::PmuEventRecord> pmu_events() const { return pmu_events_; }
    // In ticks.
    const std::optional<HostStamps>& host() const { return host_; }

    // Sorted by type, core and thread; unknown types included.
    std::span<const Section> sections() const { return sections_; }
    const Section* find(std::string_view type, uint16_t core = format::any,
                        uint16_t thread = format::any) const;
    // Operators of one thread: "OPTS" with T Stamp, "OPPC" uint64_t, "OPMU" PmuRow.
    template <typename T>
    Records<T> of_thread(std::string_view type, const format::ThreadRecord& thread) const {
        return {*this, find(type, thread.core, thread.thread)};
    }
    // Calls fn(const T&) for each record of a section that need not be there.
    template <typename T, typename Fn>
    Result<void> each(std::string_view type, Fn&& fn) const {
        Records<T> records(*this, find(type));
        T record{};
        for (uint64_t i = 0; records.get(i, record); ++i) fn(std::as_const(record));
        return records.status();
    }
    // Calls fn(field, rest) for each line "<field> TAB <rest>" of a text section.
    Result<void> each_line(std::string_view type,
                           const std::function<void(std::string_view, std::string_view)>& fn) const;

    // Whether it says that this (namespace field) was not captured.
    Result<bool> lacks(std::string_view field) const;

    // CLOCK_MONOTONIC of a tick of the buffer's clock, and the length of a number of ticks.
    uint64_t to_ns(uint64_t tick) const;
    uint64_t ticks_to_ns(uint64_t ticks) const;

    Result<void> read(uint64_t offset, std::span<std::byte> bytes) const;

private:
    friend class BufferCheck;
    std::string path_, network_;
    Fd fd_;
    format::Header header_;
    std::vector<Section> sections_;
    std::vector<format::ThreadRecord> threads_;
    std::vector<format::PmuEventRecord> pmu_events_;
    std::optional<HostStamps> host_;
};

// "OPTS of core 0, thread 1".
std::string section_name(const Section& section);

}  // namespace vartml::profiling
