// SPDX-License-Identifier: Apache-2.0
#include "lib/publish/spool_segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

#include <vartml/log.h>

#include "lib/common/crc32c.h"
#include "lib/common/file.h"

namespace vartml::publish {
namespace {

constexpr std::string_view ending = ".spool";
constexpr size_t largest_segment = 1u << 30;  // ours: what is larger is not of this program

// Eight digits of base 16 at the front of `text`.
bool take_number(std::string_view& text, uint32_t& number) {
    if (text.size() < 9 || text[8] != ' ') return false;
    const auto [end, error] = std::from_chars(text.data(), text.data() + 8, number, 16);
    if (error != std::errc() || end != text.data() + 8) return false;
    text.remove_prefix(9);
    return true;
}

bool is_frame(const std::string& line) {
    return line.starts_with(R"({"schema":"vartml.frame/1")");
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
    return Segment{number, content->valid_bytes, content->lines.size(),
                   count_frames(content->lines),
                   std::chrono::system_clock::from_time_t(status.st_mtime)};
}

Result<Segment> write_segment(const std::string& dir, uint64_t number,
                              const std::vector<std::string>& lines) {
    std::string bytes;
    for (const std::string& line : lines) bytes += framed(line);
    const Bytes pieces[] = {as_bytes(bytes)};
    if (auto done = replace_file(segment_path(dir, number), pieces, Durability::none); !done)
        return done.error();
    return Segment{number, bytes.size(), lines.size(), count_frames(lines),
                   std::chrono::system_clock::now()};
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
