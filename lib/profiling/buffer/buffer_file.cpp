// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/buffer/buffer_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <tuple>

#include "lib/common/utf8.h"

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

}  // namespace vartml::profiling
