// SPDX-License-Identifier: Apache-2.0
// Opens a raw stats buffer: nothing of it is used before it was checked.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <set>

#include "lib/common/crc32.h"
#include "lib/common/utf8.h"
#include "lib/profiling/buffer/buffer_file.h"

namespace vartml::profiling {
namespace {

constexpr uint64_t max_name_bytes = 4096;
constexpr uint32_t max_header_bytes = 4096, max_record_bytes = 4096;

// What is known of a type of section.
struct Kind {
    std::string_view type;
    uint32_t record_size = 0;  // 0: text
    bool is_per_thread = false, is_required = false;
};

constexpr Kind kinds[] = {
    {"BELL", sizeof(format::BellRecord)},
    {"DDRT", sizeof(format::DdrRecord)},
    {"FRAM", sizeof(format::FrameEntry)},
    {"HOST", sizeof(format::HostStampsRecord)},
    {"NETW", 0, false, true},
    {"NOCA", 0},
    {"OPMU", sizeof(uint64_t), true},
    {"OPPC", sizeof(format::PcyclesRecord), true},
    {"OPTS", sizeof(format::OpRecord), true},
    {"PMUD", sizeof(format::PmuEventRecord)},
    {"PMUT", sizeof(format::PmuThreadRecord)},
    {"PORT", sizeof(format::PortRecord)},
    {"SEMA", sizeof(format::SemaphoreRecord)},
    {"STRM", 0},
    {"THRD", sizeof(format::ThreadRecord), false, true},
};

const Kind* kind_of(const Section& section) {
    const std::string_view type(section.type.data(), section.type.size());
    for (const Kind& kind : kinds)
        if (kind.type == type) return &kind;
    return nullptr;
}

std::string hex(uint32_t value) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%08x", value);
    return text;
}

}  // namespace

// One attempt to open a file.
class BufferCheck {
public:
    explicit BufferCheck(const std::string& path) { file_.path_ = path; }

    Result<BufferFile> run() {
        for (const auto step :
             {&BufferCheck::open, &BufferCheck::read_header, &BufferCheck::check_size,
              &BufferCheck::read_table, &BufferCheck::check_places, &BufferCheck::check_checksums,
              &BufferCheck::check_records, &BufferCheck::read_small, &BufferCheck::check_threads})
            if (auto r = (this->*step)(); !r) return r.error();
        return std::move(file_);
    }

private:
    Error bad(const std::string& what) const {
        return {ErrorCode::bad_model, file_.path_ + ": " + what};
    }
    Error damaged(const std::string& part, uint64_t offset, uint32_t found, uint32_t wanted) const {
        return bad("checksum of " + part + " at offset " + std::to_string(offset) + " is " +
                   hex(found) + ", expected " + hex(wanted) + "; the file is damaged");
    }
    std::string at(const Section& s) const {
        return "section " + section_name(s) + " at offset " + std::to_string(s.offset);
    }

    Result<void> open();
    Result<void> read_header();
    Result<void> check_size();
    Result<void> read_table();
    Result<void> check_places();
    Result<void> check_checksums();
    Result<void> check_records();
    Result<void> read_small();
    Result<void> check_threads();
    Result<void> check_operators(const Section& section, const format::ThreadRecord& thread);
    Result<uint32_t> checksum(uint64_t offset, uint64_t size, uint32_t before = 0) const;

    BufferFile file_;
    uint64_t size_ = 0;
};

Result<void> BufferCheck::open() {
    // O_NONBLOCK: a named pipe must not make us wait before we can refuse it.
    file_.fd_ = Fd(::open(file_.path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info{};
    if (!file_.fd_ || ::fstat(file_.fd_.get(), &info) != 0)
        return system_error(file_.path_, "open", errno);
    if (!S_ISREG(info.st_mode))
        return Error{ErrorCode::io, file_.path_ + ": is not a regular file"};
    size_ = static_cast<uint64_t>(info.st_size);
    return {};
}

Result<void> BufferCheck::read_header() {
    format::Header& h = file_.header_;
    const auto foreign = [&](const std::string& why) {
        return bad("not a gst-vartml stats buffer: " + why);
    };
    if (size_ < sizeof h)
        return foreign("it has " + std::to_string(size_) + " bytes, the header has " +
                       std::to_string(sizeof h));
    if (auto r = file_.read(0, std::as_writable_bytes(std::span(&h, 1))); !r) return r;
    if (h.magic != format::magic) return foreign("it does not begin with VMLSTATS");
    if (h.version_major != format::version_major)
        return Error{ErrorCode::unsupported,
                     file_.path_ + ": has version " + std::to_string(h.version_major) + "." +
                         std::to_string(h.version_minor) + " of the format, supported is " +
                         std::to_string(format::version_major) +
                         ".x; use the vartml that wrote it"};
    const uint32_t wanted = h.header_crc;
    if (h.header_size < sizeof h || h.header_size > std::min<uint64_t>(max_header_bytes, size_))
        return bad("header_size at offset 12 is " + std::to_string(h.header_size) +
                   ", expected 256; the file is damaged");
    format::Header zeroed = h;
    zeroed.header_crc = 0;
    const auto found =
        checksum(sizeof h, h.header_size - sizeof h, crc32(std::as_bytes(std::span(&zeroed, 1))));
    if (!found) return found.error();
    if (*found != wanted) return damaged("the header", 0, *found, wanted);
    if (h.tick_hz == 0) return bad("tick_hz is 0");
    if (h.clock_id != format::clock_monotonic && h.clock_id != format::clock_device)
        return Error{ErrorCode::unsupported, file_.path_ + ": has clock_id " +
                                                 std::to_string(h.clock_id) +
                                                 ", known are 1 (CLOCK_MONOTONIC) and 256"};
    if (h.anchor1_tick < h.anchor0_tick || h.anchor1_monotonic_ns < h.anchor0_monotonic_ns)
        return bad("the anchor of the end lies before that of the start");
    return {};
}

Result<void> BufferCheck::check_size() {
    const uint64_t wanted = file_.header_.file_size;
    if (size_ < wanted)
        return bad("truncated: " + std::to_string(size_) + " of " + std::to_string(wanted) +
                   " bytes");
    if (size_ > wanted)
        return bad(std::to_string(size_ - wanted) + " bytes after the end at " +
                   std::to_string(wanted));
    return {};
}

Result<void> BufferCheck::read_table() {
    const format::Header& h = file_.header_;
    if (h.section_count > format::max_sections)
        return bad("has " + std::to_string(h.section_count) + " sections, at most " +
                   std::to_string(format::max_sections) + " are allowed");
    const uint64_t bytes = uint64_t{h.section_count} * sizeof(Section);
    if (h.section_table_offset % 8 != 0 || h.section_table_offset < h.header_size ||
        h.section_table_offset > size_ || bytes > size_ - h.section_table_offset)
        return bad("the section table of " + std::to_string(bytes) + " bytes at offset " +
                   std::to_string(h.section_table_offset) + " is not within the " +
                   std::to_string(size_) + " bytes of the file");
    file_.sections_.resize(h.section_count);
    const auto table = std::as_writable_bytes(std::span(file_.sections_));
    if (auto r = file_.read(h.section_table_offset, table); !r) return r;
    const uint32_t found = crc32(table);
    if (found != h.section_table_crc)
        return damaged("the section table", h.section_table_offset, found, h.section_table_crc);
    return {};
}

// Sections lie within the file and do not overlap, so that all together are read once.
Result<void> BufferCheck::check_places() {
    std::vector<Section>& sections = file_.sections_;
    for (const Section& s : sections)
        if (s.offset % 8 != 0 || s.offset > size_ || s.size > size_ - s.offset)
            return bad(at(s) + " with " + std::to_string(s.size) + " bytes is not within the " +
                       std::to_string(size_) + " bytes of the file");
    std::ranges::sort(sections, {}, &Section::offset);
    uint64_t end = 0;
    for (const Section& s : sections) {
        if (s.size != 0 && s.offset < end) return bad(at(s) + " overlaps the one before it");
        end = std::max(end, s.offset + s.size);
    }
    const auto key = [](const Section& s) { return std::tuple(s.type, s.core, s.thread); };
    std::ranges::sort(sections, {}, key);
    const auto twice = std::ranges::adjacent_find(sections, {}, key);
    if (twice != sections.end() && kind_of(*twice)) return bad(at(*twice) + " is there twice");
    return {};
}

Result<uint32_t> BufferCheck::checksum(uint64_t offset, uint64_t size, uint32_t before) const {
    std::vector<std::byte> chunk(std::min<uint64_t>(size, 256 * 1024));
    while (size > 0) {
        const auto part = std::span(chunk).first(std::min<uint64_t>(size, chunk.size()));
        if (auto r = file_.read(offset, part); !r) return r.error();
        before = crc32(part, before);
        offset += part.size();
        size -= part.size();
    }
    return before;
}

Result<void> BufferCheck::check_checksums() {
    for (const Section& s : file_.sections_) {
        const auto found = checksum(s.offset, s.size);
        if (!found) return found.error();
        if (*found != s.crc) return damaged("section " + section_name(s), s.offset, *found, s.crc);
    }
    return {};
}

Result<void> BufferCheck::check_records() {
    for (const Section& s : file_.sections_) {
        const Kind* kind = kind_of(s);
        if (!kind || kind->record_size == 0) continue;
        if (s.record_size < kind->record_size || s.record_size > max_record_bytes)
            return bad(at(s) + " has records of " + std::to_string(s.record_size) +
                       " bytes, expected " + std::to_string(kind->record_size) + " to " +
                       std::to_string(max_record_bytes));
        if (uint64_t{s.count} * s.record_size != s.size)
            return bad(at(s) + " has " + std::to_string(s.size) + " bytes, expected " +
                       std::to_string(s.count) + " records of " + std::to_string(s.record_size));
        if (kind->is_per_thread != (s.core != format::any && s.thread != format::any))
            return bad(at(s) + (kind->is_per_thread ? " names no thread" : " names a thread"));
    }
    for (const Kind& kind : kinds)
        if (kind.is_required && !file_.find(kind.type))
            return bad("has no section " + std::string(kind.type));
    return {};
}

Result<void> BufferCheck::read_small() {
    const Section& name = *file_.find("NETW");
    if (name.size > max_name_bytes)
        return bad(at(name) + " has " + std::to_string(name.size) + " bytes, at most " +
                   std::to_string(max_name_bytes) + " are allowed");
    file_.network_.resize(name.size);
    if (auto r = file_.read(name.offset, std::as_writable_bytes(std::span(file_.network_))); !r)
        return r;
    if (!is_utf8(file_.network_)) return bad(at(name) + " is no UTF-8");
    const Section& threads = *file_.find("THRD");
    if (threads.count != file_.header_.thread_count || threads.count > format::max_threads)
        return bad(at(threads) + " has " + std::to_string(threads.count) +
                   " records, the header says " + std::to_string(file_.header_.thread_count) +
                   " threads, at most " + std::to_string(format::max_threads) + " are allowed");
    const Section* events = file_.find("PMUD");
    if (events && events->count > max_pmu_events)
        return bad(at(*events) + " has " + std::to_string(events->count) + " counters, at most " +
                   std::to_string(max_pmu_events) + " are allowed");
    const Section* host = file_.find("HOST");
    if (host && host->count != 1)
        return bad(at(*host) + " has " + std::to_string(host->count) + " records, expected 1");
    Result<void> r = file_.each<format::ThreadRecord>(
        "THRD", [&](const auto& t) { file_.threads_.push_back(t); });
    if (r)
        r = file_.each<format::PmuEventRecord>(
            "PMUD", [&](const auto& e) { file_.pmu_events_.push_back(e); });
    if (r)
        r = file_.each<format::HostStampsRecord>("HOST",
                                                 [&](const auto& h) { file_.host_ = h.at; });
    for (format::PmuEventRecord& event : file_.pmu_events_) event.name.back() = '\0';
    return r;
}

Result<void> BufferCheck::check_threads() {
    const auto key = [](const format::ThreadRecord& t) { return std::tuple(t.core, t.thread); };
    std::ranges::sort(file_.threads_, {}, key);
    const auto twice = std::ranges::adjacent_find(file_.threads_, {}, key);
    if (twice != file_.threads_.end())
        return bad("core " + std::to_string(twice->core) + " has thread " +
                   std::to_string(twice->thread) + " twice");
    for (const Section& s : file_.sections_) {
        const Kind* kind = kind_of(s);
        if (!kind || !kind->is_per_thread) continue;
        const auto thread =
            std::ranges::lower_bound(file_.threads_, std::tuple(s.core, s.thread), {}, key);
        if (thread == file_.threads_.end() || key(*thread) != std::tuple(s.core, s.thread))
            return bad(at(s) + " belongs to no thread of THRD");
        if (auto r = check_operators(s, *thread); !r) return r;
    }
    for (const format::ThreadRecord& t : file_.threads_)
        if (t.op_count != 0 && !file_.find("OPTS", t.core, t.thread))
            return bad("core " + std::to_string(t.core) + ", thread " + std::to_string(t.thread) +
                       " has " + std::to_string(t.op_count) + " operators and no section OPTS");
    return {};
}

Result<void> BufferCheck::check_operators(const Section& s, const format::ThreadRecord& thread) {
    if (s.count != thread.op_count)
        return bad(at(s) + " has " + std::to_string(s.count) + " records, its thread has " +
                   std::to_string(thread.op_count) + " operators");
    const size_t row = file_.pmu_events_.size() * sizeof(uint64_t);
    if (std::string_view(s.type.data(), s.type.size()) == "OPMU" && s.record_size != row)
        return bad(at(s) + " has records of " + std::to_string(s.record_size) + " bytes, " +
                   std::to_string(file_.pmu_events_.size()) + " counters need " +
                   std::to_string(row));
    return {};
}

Result<BufferFile> BufferFile::open(const std::string& path) {
    return BufferCheck(path).run();
}

}  // namespace vartml::profiling
