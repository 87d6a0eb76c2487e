// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/buffer_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <set>
#include <tuple>

#include "lib/base/checksum.h"
#include "lib/base/text.h"

namespace vartml::profiling {
namespace {

// Small enough that a window per thread of a large team stays within a few megabytes.
constexpr uint64_t window_bytes = 8192;
constexpr size_t line_bytes = size_t{64} * 1024;

auto key_of(const Section& s) {
    return std::tuple(std::string_view(s.type.data(), s.type.size()), s.core, s.thread);
}

uint64_t saturated(unsigned __int128 value) {
    constexpr uint64_t most = std::numeric_limits<uint64_t>::max();
    return value > most ? most : static_cast<uint64_t>(value);
}

}  // namespace

std::string section_name(const Section& s) {
    std::string name = printable({s.type.data(), s.type.size()});
    if (s.core != format::any) name += " of core " + std::to_string(s.core);
    if (s.thread != format::any) name += ", thread " + std::to_string(s.thread);
    return name;
}

RecordWindow::RecordWindow(const BufferFile& file, const Section* section)
    : file_(&file), section_(section) {}

bool RecordWindow::load(uint64_t index) {
    const uint64_t record = section_->record_size;
    first_ = index;
    loaded_ = std::min(std::max<uint64_t>(window_bytes / record, 1), size() - index);
    bytes_.resize(loaded_ * record);
    status_ = file_->read(section_->offset + first_ * record, bytes_);
    if (!status_) loaded_ = 0;
    return status_.has_value();
}

bool RecordWindow::get(uint64_t index, std::span<std::byte> record) {
    if (index >= size() || !status_) return false;
    const bool is_here = index >= first_ && index - first_ < loaded_;
    if (!is_here && !load(index)) return false;
    const size_t known = std::min<size_t>(section_->record_size, record.size());
    std::memcpy(record.data(), bytes_.data() + (index - first_) * section_->record_size, known);
    // Counters that a narrower record lacks.
    std::ranges::fill(record.subspan(known), std::byte{0xff});
    return true;
}

const Section* BufferFile::find(std::string_view type, uint16_t core, uint16_t thread) const {
    const auto at = std::ranges::lower_bound(sections_, std::tuple(type, core, thread), {}, key_of);
    if (at == sections_.end() || key_of(*at) != std::tuple(type, core, thread)) return nullptr;
    return &*at;
}

Result<bool> BufferFile::lacks(std::string_view field) const {
    bool found = false;
    if (auto done = each_line("NOCA", [&](auto name, auto) { found = found || name == field; });
        !done)
        return done.error();
    return found;
}

Result<void> BufferFile::each_line(
    std::string_view type,
    const std::function<void(std::string_view, std::string_view)>& fn) const {
    const Section* section = find(type);
    if (!section) return {};
    const auto give = [&](std::string_view line) {
        const size_t tab = line.find('\t');
        if (tab != line.npos) fn(line.substr(0, tab), line.substr(tab + 1));
    };
    std::string rest, chunk;
    for (uint64_t at = 0; at < section->size; at += chunk.size()) {
        chunk.resize(std::min<uint64_t>(window_bytes, section->size - at));
        if (auto r = read(section->offset + at, std::as_writable_bytes(std::span(chunk))); !r)
            return r;
        rest += chunk;
        size_t begin = 0;
        for (size_t end; (end = rest.find('\n', begin)) != rest.npos; begin = end + 1)
            give(std::string_view(rest).substr(begin, end - begin));
        rest.erase(0, begin);
        if (rest.size() > line_bytes)
            return Error{ErrorCode::bad_model, path_ + ": section " + std::string(type) +
                                                   " has a line of over " +
                                                   std::to_string(line_bytes) + " bytes"};
    }
    if (!rest.empty()) give(rest);
    return {};
}

uint64_t BufferFile::ticks_to_ns(uint64_t ticks) const {
    if (ticks == not_captured || header_.clock_id == format::clock_monotonic) return ticks;
    const uint64_t ns = header_.anchor1_monotonic_ns - header_.anchor0_monotonic_ns;
    const uint64_t span = header_.anchor1_tick - header_.anchor0_tick;
    if (span == 0)
        return saturated(static_cast<unsigned __int128>(ticks) * 1'000'000'000U / header_.tick_hz);
    return saturated(static_cast<unsigned __int128>(ticks) * ns / span);
}

uint64_t BufferFile::to_ns(uint64_t tick) const {
    if (header_.clock_id == format::clock_monotonic) return tick;
    const uint64_t anchor = header_.anchor0_tick, at = header_.anchor0_monotonic_ns;
    if (tick < anchor) {
        const uint64_t before = ticks_to_ns(anchor - tick);
        return before > at ? 0 : at - before;
    }
    const uint64_t after = ticks_to_ns(tick - anchor);
    return saturated(static_cast<unsigned __int128>(at) + after);
}

Result<void> BufferFile::read(uint64_t offset, std::span<std::byte> bytes) const {
    Fd again;
    if (!fd_) again = Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const Fd& fd = fd_ ? fd_ : again;
    if (!fd) return system_error(path_, "open", errno);
    while (!bytes.empty()) {
        const ssize_t n = ::pread(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return system_error(path_, "read", errno);
        if (n == 0) return Error{ErrorCode::io, path_ + ": became shorter while it was read"};
        offset += static_cast<uint64_t>(n);
        bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return {};
}

// Opens a raw stats buffer: nothing of it is used before it was checked.
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
