// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/weight_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <string_view>

#include "lib/common/crc32c.h"

namespace vartml::softnpu {
namespace {

constexpr std::string_view ending = ".weights";
constexpr size_t key_digits = 32;
constexpr size_t alignment = 64;

// The file: header, table, pieces at multiples of `alignment`. Numbers are those of the host, which
// the key names.
struct Header {
    std::array<char, 8> magic{'V', 'M', 'L', 'W', 'G', 'T', '0', '1'};
    std::array<char, 2 * key_digits> key{};
    uint64_t file_size = 0;
    uint32_t pieces = 0;
    uint32_t crc32c = 0;  // of everything behind the header
    bool operator==(const Header&) const = default;
};
static_assert(sizeof(Header) == 88);

struct Row {
    uint64_t size_bytes = 0;
    uint32_t layout = 0, zero = 0;
};

size_t aligned(size_t size) {
    return (size + alignment - 1) / alignment * alignment;
}

size_t first_piece(size_t pieces) {
    return aligned(sizeof(Header) + pieces * sizeof(Row));
}

std::vector<Row> rows_of(const WeightTable& table) {
    std::vector<Row> rows;
    for (const WeightPiece& piece : table) rows.push_back({piece.size_bytes, piece.layout, 0});
    return rows;
}

// But for the checksum.
Header header_of(const WeightCache::Key& key, const WeightTable& table) {
    Header header;
    const std::string text = key.program + key.build;
    std::copy_n(text.begin(), header.key.size(), header.key.begin());
    header.pieces = static_cast<uint32_t>(table.size());
    header.file_size = first_piece(table.size());
    for (const WeightPiece& piece : table) header.file_size += aligned(piece.size_bytes);
    return header;
}

bool is_whole(vartml::Bytes file, Header expected, const WeightTable& table) {
    if (file.size() != expected.file_size) return false;
    Header header;
    std::memcpy(&header, file.data(), sizeof header);
    expected.crc32c = header.crc32c;
    const vartml::Bytes rest = file.subspan(sizeof header);
    const std::vector<Row> rows = rows_of(table);
    return header == expected && crc32c(rest) == header.crc32c &&
           std::memcmp(rest.data(), rows.data(), rows.size() * sizeof(Row)) == 0;
}

// A file that is used now and then stays; once a day is often enough.
void remember_use(const Fd& fd) {
    constexpr time_t day = 24 * 60 * 60;
    struct stat info{};
    if (::fstat(fd.get(), &info) == 0 && std::time(nullptr) - info.st_mtime > day)
        (void)::futimens(fd.get(), nullptr);
}

// PROGRAM-BUILD.weights
bool is_cache_file(std::string_view name) {
    const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    return name.size() == 2 * key_digits + 1 + ending.size() && name.ends_with(ending) &&
           name[key_digits] == '-' && std::ranges::all_of(name.substr(0, key_digits), is_hex) &&
           std::ranges::all_of(name.substr(key_digits + 1, key_digits), is_hex);
}

// .PROGRAM-BUILD.weights.tmp-…, what a writer works on.
bool is_temporary(std::string_view name) {
    const size_t size = 2 * key_digits + 1 + ending.size();
    return name.size() > size + 1 && name[0] == '.' && is_cache_file(name.substr(1, size)) &&
           name.substr(size + 1).starts_with(".tmp-");
}

struct Found {
    std::string name;
    time_t used;
    size_t size_bytes;
};

// Newest first.
std::vector<Found> files_in(const std::string& folder) {
    struct CloseDir {
        void operator()(DIR* dir) const { ::closedir(dir); }
    };
    std::vector<Found> found;
    const std::unique_ptr<DIR, CloseDir> dir(::opendir(folder.c_str()));
    while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        struct stat info{};
        if ((is_cache_file(name) || is_temporary(name)) &&
            ::fstatat(::dirfd(dir.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0)
            found.push_back({entry->d_name, info.st_mtime, static_cast<size_t>(info.st_size)});
    }
    std::ranges::sort(found, std::greater(), &Found::used);
    return found;
}

}  // namespace

WeightCache::WeightCache(std::string folder, Key key, std::function<void(const std::string&)> note)
    : folder_(std::move(folder)),
      key_(std::move(key)),
      path_(folder_ + '/' + key_.program + '-' + key_.build + std::string(ending)),
      note_(std::move(note)) {}

std::optional<StoredWeights> WeightCache::open(const WeightTable& table) const {
    const Fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (!fd) return std::nullopt;
    const auto file = MappedFile::map(fd, path_);
    if (!file || !is_whole((*file)->bytes(), header_of(key_, table), table)) return std::nullopt;
    remember_use(fd);
    StoredWeights stored{{}, *file};
    const std::byte* at = (*file)->bytes().data() + first_piece(table.size());
    for (const WeightPiece& piece : table) {
        stored.pieces.push_back(at);
        at += aligned(piece.size_bytes);
    }
    return stored;
}

std::optional<StoredWeights> WeightCache::build(
    const WeightTable& table, std::span<const std::span<const std::byte>> pieces) const {
    static constexpr std::array<std::byte, alignment> zeros{};
    const std::vector<Row> rows = rows_of(table);
    Header header = header_of(key_, table);
    std::vector<vartml::Bytes> content{std::as_bytes(std::span(&header, 1)),
                                       std::as_bytes(std::span(rows))};
    const auto pad = [&content](size_t size) {
        content.push_back(vartml::Bytes(zeros).first(aligned(size) - size));
    };
    pad(sizeof header + rows.size() * sizeof(Row));
    for (const auto& piece : pieces) {
        content.push_back(piece);
        pad(piece.size());
    }
    for (const vartml::Bytes& part : std::span(content).subspan(1))
        header.crc32c = crc32c(part, header.crc32c);

    auto done = make_directories(folder_);
    if (done) done = replace_file(path_, content, Durability::none);
    if (!done) {
        if (note_) note_("packed weights stay in private memory: " + done.error().message);
        return std::nullopt;
    }
    remove_old_files();
    return open(table);
}

void WeightCache::remove_old_files() const {
    constexpr time_t hour = 60 * 60, two_days = 48 * hour, month = 30 * 24 * hour;
    constexpr size_t most_files = 256, most_bytes = size_t{1} << 30;
    const time_t now = std::time(nullptr);
    const std::string_view own = last_part(path_);
    size_t files = 0, bytes = 0;
    for (const Found& found : files_in(folder_)) {
        if (found.name == own) continue;
        const time_t most = is_temporary(found.name)               ? hour
                            : found.name.starts_with(key_.program) ? two_days
                                                                   : month;
        bytes += found.size_bytes;
        if (now - found.used > most || ++files >= most_files || bytes > most_bytes)
            (void)::unlink((folder_ + '/' + found.name).c_str());
    }
}

}  // namespace vartml::softnpu
