// SPDX-License-Identifier: Apache-2.0
#include "lib/publish/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <vartml/log.h>

#include "lib/base/checksum.h"
#include "lib/base/file.h"
#include "lib/base/own_files.h"

namespace vartml::publish {
namespace {

constexpr uint64_t full_segment = 1 << 20;  // given: spec of the spool
// Room for lines that go in front and for gap lines beside what they replace.
constexpr uint64_t first_number = uint64_t(1) << 32;

Result<Fd> take_lock(const std::string& dir) {
    const std::string path = dir + "/lock";
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, own_file));
    if (!fd) return system_error(path, "open the spool's lock", errno);
    if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK) return system_error(path, "lock the spool", errno);
    return Error{ErrorCode::busy, dir +
                                      ": another publisher has this spool folder; give each one a "
                                      "folder of its own"};
}

void remove_unfinished(const std::string& dir) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(dir, ignored)) {
        const std::string name = entry.path().filename();
        if (name.starts_with('.') && name.find(".spool.tmp-") != std::string::npos)
            std::filesystem::remove(entry.path(), ignored);
    }
}

bool is_frame(const std::string& line) {
    return line.starts_with(R"({"schema":"vartml.frame/1")");
}

}  // namespace

Result<Spool> Spool::open(const std::string& dir, const Limits& limits) {
    if (auto made = make_own_directory(dir); !made) return made.error();
    auto lock = take_lock(dir);
    if (!lock) return lock.error();
    remove_unfinished(dir);
    Spool spool(dir, limits, std::move(*lock));
    for (const uint64_t number : list_segments(dir)) {
        auto segment = recover_segment(dir, number);
        if (!segment) return segment.error();
        if (segment->lines == 0) {
            ::unlink(segment_path(dir, number).c_str());
            continue;
        }
        spool.bytes_ += segment->bytes;
        spool.segments_.push_back(*segment);
    }
    if (auto done = spool.expire(); !done) return done.error();
    if (auto done = spool.make_room(0); !done) return done.error();
    return spool;
}

BootClock::time_point BootClock::now() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

// An empty segment says nothing to the next process.
Spool::~Spool() {
    if (active_ && segments_.back().lines == 0) forget(segments_.size() - 1);
}

uint64_t Spool::segment_bytes() const {
    return std::min(full_segment, std::max<uint64_t>(limits_.max_bytes / 4, 1));
}

// Gap lines are written beside what they replace: a little is kept free.
bool Spool::fits(uint64_t bytes) const {
    const uint64_t reserve = std::min<uint64_t>(4096, limits_.max_bytes / 8);
    return bytes + reserve <= limits_.max_bytes;
}

// A segment goes as a whole: of a slow stream it ends by time.
bool Spool::is_long(const Segment& segment) const {
    const std::chrono::milliseconds part(limits_.max_age_s * 1000 / 4);
    return limits_.max_age_s > 0 && BootClock::now() - segment.oldest > part;
}

Result<void> Spool::begin_segment() {
    active_.reset();
    const uint64_t number = segments_.empty() ? first_number : segments_.back().number + 1;
    const std::string path = segment_path(dir_, number);
    active_ =
        Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, own_file));
    if (!active_) return system_error(path, "create a segment of the spool", errno);
    segments_.push_back({.number = number});
    return {};
}

Result<void> Spool::write(const std::string& bytes) {
    Segment& segment = segments_.back();
    const std::string path = segment_path(dir_, segment.number);
    const Bytes pieces[] = {as_bytes(bytes)};
    if (auto done = write_pieces(active_.get(), path, pieces); !done) {
        // Half a line would end the segment for whoever reads it.
        const bool cut = ::ftruncate(active_.get(), static_cast<off_t>(segment.bytes)) == 0;
        if (!cut || segment.lines == 0) active_.reset();
        if (segment.lines == 0) forget(segments_.size() - 1);
        return done.error();
    }
    segment.bytes += bytes.size();
    segment.newest = BootClock::now();
    if (segment.lines == 0) segment.oldest = segment.newest;
    bytes_ += bytes.size();
    return {};
}

Result<void> Spool::append(const std::string& line) {
    const std::string bytes = framed(line);
    if (auto done = expire(); !done) return done;
    if (auto done = make_room(bytes.size()); !done) return done;
    const bool is_full =
        active_ && segments_.back().lines > 0 &&
        (segments_.back().bytes + bytes.size() > segment_bytes() || is_long(segments_.back()));
    if (!active_ || is_full) {
        const bool reader_keeps_up = !has_unread();
        if (auto done = begin_segment(); !done) return done;
        if (reader_keeps_up) loaded_.emplace_back();
    }
    if (auto done = write(bytes); !done) return done;
    ++segments_.back().lines;
    segments_.back().records += is_frame(line);
    if (loaded_.size() == segments_.size()) loaded_.back().lines.push_back(line);
    return {};
}

Result<void> Spool::prepend(const std::vector<std::string>& lines) {
    uint64_t size = 0;
    for (const std::string& line : lines) size += frame_bytes + line.size();
    if (auto done = make_room(size); !done) return done;
    const uint64_t number = segments_.empty() ? first_number : segments_.front().number - 1;
    auto segment = write_segment(dir_, number, lines);
    if (!segment) return segment.error();
    segments_.push_front(*segment);
    loaded_.push_front({lines});
    bytes_ += segment->bytes;
    return {};
}

Result<void> Spool::make_room(uint64_t bytes) {
    const auto no_room = [&] {
        return Error{ErrorCode::io, dir_ + ": a line of " + std::to_string(bytes) +
                                        " bytes has no room in a spool of " +
                                        std::to_string(limits_.max_bytes) +
                                        " bytes; allow it more"};
    };
    if (!fits(bytes)) return no_room();
    while (!fits(bytes_ + bytes)) {
        size_t index = 0;
        while (index < segments_.size() && (segments_[index].gaps_only() || is_in_flight(index))) {
            ++index;
        }
        if (index == segments_.size()) return no_room();
        if (auto done = drop(index); !done) return done;
    }
    return {};
}

// Gap lines take the place of a segment and of one before that has only gap lines.
Result<void> Spool::drop(size_t index) {
    if (index + 1 == segments_.size()) active_.reset();
    unload_unread();
    std::vector<std::string> lines;
    const size_t first =
        index > 0 && segments_[index - 1].gaps_only() && index - 1 >= loaded_.size() ? index - 1
                                                                                     : index;
    for (size_t i = first; i <= index; ++i) {
        auto content = read_segment(dir_, segments_[i].number);
        if (!content) {
            dropped_ += segments_[i].records;
            forget(i);
            return {};
        }
        const size_t done = i < loaded_.size() ? loaded_[i].done : 0;
        lines.insert(lines.end(), content->lines.begin() + static_cast<ptrdiff_t>(done),
                     content->lines.end());
    }
    uint64_t records = 0;
    const auto gaps = gaps_for(lines, records);
    dropped_ += records;
    Segment& segment = segments_[index];
    auto written = write_segment(dir_, segment.number, gaps);
    if (!written) {  // a full disk has room for them once the records are gone
        ::unlink(segment_path(dir_, segment.number).c_str());
        written = write_segment(dir_, segment.number, gaps);
    }
    if (!written) {
        log(LogLevel::warning, "",
            dir_ + ": " + std::to_string(records) +
                " records are lost, and no gap record can say so: " + written.error().message);
        forget(index);
        return {};
    }
    bytes_ += written->bytes;
    bytes_ -= segment.bytes;
    segment = *written;
    if (index < loaded_.size()) loaded_[index] = {gaps};
    if (first < index) forget(first);
    return {};
}

Result<void> Spool::expire() {
    if (limits_.max_age_s == 0) return {};
    const auto limit = BootClock::now() - std::chrono::seconds(limits_.max_age_s);
    for (size_t i = 0; i < segments_.size(); ++i) {
        if (segments_[i].newest >= limit || segments_[i].gaps_only() || is_in_flight(i)) continue;
        const size_t before = segments_.size();
        if (auto done = drop(i); !done) return done;
        i -= before - segments_.size();  // one fewer in front, or this one is gone
    }
    return {};
}

void Spool::forget(size_t index) {
    const auto at = static_cast<ptrdiff_t>(index);
    ::unlink(segment_path(dir_, segments_[index].number).c_str());
    bytes_ -= segments_[index].bytes;
    segments_.erase(segments_.begin() + at);
    if (index < loaded_.size()) loaded_.erase(loaded_.begin() + at);
}

bool Spool::has_unread() const {
    return (segments_.size() > loaded_.size() && segments_[loaded_.size()].lines > 0) ||
           std::ranges::any_of(loaded_, [](const Loaded& l) { return l.next < l.lines.size(); });
}

Result<void> Spool::load_next() {
    const size_t index = loaded_.size();
    auto content = read_segment(dir_, segments_[index].number);
    if (!content && content.error().code != ErrorCode::not_found) return content.error();
    if (!content || content->lines.empty()) {
        give_up();
        return content ? Error{ErrorCode::bad_model, dir_ + ": a segment of the spool is damaged"}
                       : content.error();
    }
    loaded_.push_back({std::move(content->lines)});
    return {};
}

void Spool::give_up() {
    const size_t index = loaded_.size();
    if (index == segments_.size()) return;
    dropped_ += segments_[index].records;
    if (index + 1 == segments_.size()) active_.reset();
    forget(index);
}

Result<std::string> Spool::read() {
    for (Loaded& loaded : loaded_) {
        if (loaded.next < loaded.lines.size()) return loaded.lines[loaded.next++];
    }
    if (auto done = load_next(); !done) return done.error();
    return loaded_.back().lines[loaded_.back().next++];
}

void Spool::acknowledge() {
    Loaded& front = loaded_.front();
    front.done_records += is_frame(front.lines[front.done]);
    if (++front.done == front.lines.size()) empty_front();
}

void Spool::empty_front() {
    Segment& segment = segments_.front();
    const bool grows = active_ && segments_.size() == 1;
    if (!grows || ::ftruncate(active_.get(), 0) != 0) {
        if (grows) active_.reset();
        return forget(0);
    }
    bytes_ -= segment.bytes;
    segment.bytes = segment.lines = segment.records = 0;
    loaded_.front() = {};
}

void Spool::rewind() {
    for (Loaded& loaded : loaded_) loaded.next = loaded.done;
    unload_unread();
}

void Spool::trim() {
    for (size_t i = 0; i < loaded_.size(); ++i) {
        Loaded& loaded = loaded_[i];
        if (loaded.done == 0) continue;
        const std::vector<std::string> rest(
            loaded.lines.begin() + static_cast<ptrdiff_t>(loaded.done), loaded.lines.end());
        const std::string path = segment_path(dir_, segments_[i].number);
        struct stat before{};
        ::stat(path.c_str(), &before);
        auto written = write_segment(dir_, segments_[i].number, rest);
        if (!written) continue;  // then they come again
        // They are as old as they were, for the next process, too.
        const timespec times[2] = {before.st_atim, before.st_mtim};
        ::utimensat(AT_FDCWD, path.c_str(), times, 0);
        written->newest = segments_[i].newest;
        if (i + 1 == segments_.size()) active_.reset();  // of a file that is no more
        written->oldest = segments_[i].oldest;
        bytes_ += written->bytes;
        bytes_ -= segments_[i].bytes;
        segments_[i] = *written;
        loaded = {rest};
    }
}

void Spool::unload_unread() {
    while (!loaded_.empty() && loaded_.back().next == 0) loaded_.pop_back();
}

uint64_t Spool::records() const {
    uint64_t count = 0;
    for (const Segment& segment : segments_) count += segment.records;
    for (const Loaded& loaded : loaded_) count -= loaded.done_records;
    return count;
}

uint64_t Spool::take_dropped() {
    return std::exchange(dropped_, 0);
}

namespace {

constexpr std::string_view ending = ".spool";
constexpr size_t largest_segment = 1u << 30;  // ours: what is larger is not of this program

// Eight digits of base 16 at the front of `text`, as framed() writes them.
bool take_number(std::string_view& text, uint32_t& number) {
    if (text.size() < 9 || text[8] != ' ') return false;
    if (text.substr(0, 8).find_first_of("ABCDEF") != text.npos) return false;
    const auto [end, error] = std::from_chars(text.data(), text.data() + 8, number, 16);
    if (error != std::errc() || end != text.data() + 8) return false;
    text.remove_prefix(9);
    return true;
}

uint64_t count_frames(const std::vector<std::string>& lines) {
    return static_cast<uint64_t>(std::ranges::count_if(lines, is_frame));
}

}  // namespace

std::string framed(std::string_view text) {
    const std::string_view json = text.substr(0, text.size() - 1);
    char head[frame_bytes + 1];
    std::snprintf(head, sizeof head, "%08x %08x ", static_cast<unsigned>(json.size()),
                  crc32c(as_bytes(json)));
    return head + std::string(text);
}

SegmentContent parse_segment(std::string_view bytes) {
    SegmentContent content;
    std::string_view rest = bytes;
    while (!rest.empty()) {
        std::string_view line = rest;
        uint32_t size = 0, crc = 0;
        if (!take_number(line, size) || !take_number(line, crc) || line.size() <= size ||
            line[size] != '\n' || crc32c(as_bytes(line.substr(0, size))) != crc) {
            content.torn = true;
            break;
        }
        content.lines.emplace_back(line.substr(0, size + 1));
        rest.remove_prefix(frame_bytes + size + 1);
        content.valid_bytes = bytes.size() - rest.size();
    }
    return content;
}

std::string segment_path(const std::string& dir, uint64_t number) {
    char name[32];
    std::snprintf(name, sizeof name, "/%016llx", static_cast<unsigned long long>(number));
    return dir + name + std::string(ending);
}

std::vector<uint64_t> list_segments(const std::string& dir) {
    std::vector<uint64_t> numbers;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(dir.c_str()), closedir);
    while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        uint64_t number = 0;
        const char* const stem_end = name.data() + 16;
        if (name.size() != 16 + ending.size() || !name.ends_with(ending)) continue;
        const auto [end, error] = std::from_chars(name.data(), stem_end, number, 16);
        if (error == std::errc() && end == stem_end) numbers.push_back(number);
    }
    std::ranges::sort(numbers);
    return numbers;
}

Result<SegmentContent> read_segment(const std::string& dir, uint64_t number) {
    auto bytes = read_file(segment_path(dir, number), largest_segment);
    if (!bytes) return bytes.error();
    return parse_segment(*bytes);
}

Result<Segment> recover_segment(const std::string& dir, uint64_t number) {
    const std::string path = segment_path(dir, number);
    auto content = read_segment(dir, number);
    if (!content) return content.error();
    if (content->torn) {
        log(LogLevel::warning, "",
            path + ": the end is torn; kept " + std::to_string(content->lines.size()) + " lines");
        if (truncate(path.c_str(), static_cast<off_t>(content->valid_bytes)) != 0)
            return system_error(path, "cut the torn end off", errno);
    }
    struct stat status{};
    stat(path.c_str(), &status);
    // Of what an earlier process wrote the time of day alone tells the age.
    const auto age =
        std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(status.st_mtime);
    const auto written =
        BootClock::now() - std::max<BootClock::duration>(age, BootClock::duration::zero());
    return Segment{
        number, content->valid_bytes, content->lines.size(), count_frames(content->lines), written,
        written};
}

Result<Segment> write_segment(const std::string& dir, uint64_t number,
                              const std::vector<std::string>& lines) {
    std::string bytes;
    for (const std::string& line : lines) bytes += framed(line);
    const Bytes pieces[] = {as_bytes(bytes)};
    if (auto done = replace_own_file(segment_path(dir, number), pieces); !done) return done.error();
    const auto now = BootClock::now();
    return Segment{number, bytes.size(), lines.size(), count_frames(lines), now, now};
}

std::vector<std::string> gaps_for(const std::vector<std::string>& lines, uint64_t& records) {
    std::vector<PublishLine> gaps;
    records = 0;
    for (const std::string& text : lines) {
        const auto line = parse_line(text);
        if (!line) continue;
        records += line->gap ? 0 : 1;
        if (gaps.empty() || gaps.back().run != line->run) {
            gaps.push_back(*line);
            continue;
        }
        gaps.back().last = std::max(gaps.back().last, line->last);
        gaps.back().count += line->count;
    }
    std::vector<std::string> texts;
    for (PublishLine& gap : gaps) {
        format_gap(gap);
        texts.push_back(gap.text);
    }
    return texts;
}

}  // namespace vartml::publish
