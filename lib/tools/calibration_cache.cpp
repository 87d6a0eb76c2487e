// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/calibration_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <vector>

#include <vartml/version.h>

#include "lib/base/checksum.h"
#include "lib/base/file.h"
#include "lib/base/own_files.h"
#include "lib/base/sha256.h"

namespace vartml::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".calibration";
constexpr size_t key_digits = 64;
constexpr size_t most_files = 256, most_bytes = size_t{512} << 20;

// The file: this, then the bytes.
struct Header {
    std::array<char, 8> magic{'V', 'M', 'L', 'C', 'A', 'L', '0', '1'};
    std::array<char, key_digits> key{};
    uint64_t size_bytes = 0;
    uint32_t crc32c = 0, zero = 0;
    bool operator==(const Header&) const = default;
};
static_assert(sizeof(Header) == 88);

Header header_of(std::string_view key, Bytes content) {
    Header header;
    std::copy_n(key.begin(), key_digits, header.key.begin());
    header.size_bytes = content.size();
    header.crc32c = crc32c(content);
    return header;
}

// A file that is used now and then stays; once a day is often enough.
void remember_use(const Fd& fd) {
    constexpr time_t day = 24 * 60 * 60;
    struct stat info{};
    if (::fstat(fd.get(), &info) == 0 && std::time(nullptr) - info.st_mtime > day)
        (void)::futimens(fd.get(), nullptr);
}

std::optional<std::string> read_whole(const std::string& path, std::string_view key) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (!fd || !is_private(fd.get())) return std::nullopt;
    const auto file = MappedFile::map(fd, path);
    if (!file || (*file)->bytes().size() < sizeof(Header)) return std::nullopt;
    const Bytes content = (*file)->bytes().subspan(sizeof(Header));
    Header header;
    std::memcpy(&header, (*file)->bytes().data(), sizeof header);
    if (header != header_of(key, content)) return std::nullopt;
    remember_use(fd);
    return std::string(reinterpret_cast<const char*>(content.data()), content.size());
}

// KEY.calibration, or .KEY.calibration.tmp-…, what a writer works on.
bool is_own(const std::string& name, bool& is_temporary) {
    is_temporary = name.starts_with('.');
    const std::string_view rest = std::string_view(name).substr(is_temporary ? 1 : 0);
    const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    if (rest.size() < key_digits + ending.size() ||
        !std::ranges::all_of(rest.substr(0, key_digits), is_hex))
        return false;
    const std::string_view tail = rest.substr(key_digits);
    return is_temporary ? tail.starts_with(std::string(ending) + ".tmp-") : tail == ending;
}

// Of the others as many stay as may lie beside `own`, which has so many bytes.
void remove_old_files(const std::string& folder, std::string_view own, size_t own_bytes) {
    constexpr time_t hour = 60 * 60, month = 30 * 24 * hour;
    struct Found {
        std::string path;
        time_t used;
        size_t size_bytes;
        bool is_temporary;
    };
    std::vector<Found> files;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        struct stat info{};
        bool is_temporary = false;
        if (name != own && is_own(name, is_temporary) && ::lstat(entry->path().c_str(), &info) == 0)
            files.push_back({entry->path().string(), info.st_mtime,
                             static_cast<size_t>(info.st_size), is_temporary});
    }
    std::ranges::sort(files, std::greater(), &Found::used);
    const time_t now = std::time(nullptr);
    size_t count = 1, bytes = own_bytes;
    for (const Found& file : files) {
        if (now - file.used > (file.is_temporary ? hour : month) || count == most_files ||
            file.size_bytes > most_bytes - bytes) {
            fs::remove(file.path, error);
            continue;
        }
        ++count;
        bytes += file.size_bytes;
    }
}

}  // namespace

Result<std::string> CalibrationCache::get(std::string_view key,
                                          const std::function<Result<std::string>()>& make) const {
    if (folder_.empty()) return make();
    const std::string whole =
        std::string(version()) + '\n' + std::string(source_commit()) + '\n' + std::string(key);
    const std::string name = to_hex(sha256(as_bytes(whole)));
    const std::string file = name + std::string(ending), path = folder_ + '/' + file;
    if (auto kept = read_whole(path, name)) return *std::move(kept);
    auto made = make();
    const size_t size_bytes = sizeof(Header) + (made ? made->size() : 0);
    if (!made || size_bytes > most_bytes || !make_own_directory(folder_) ||
        !is_private_directory(folder_))
        return made;
    const Header header = header_of(name, as_bytes(*made));
    const Bytes pieces[] = {std::as_bytes(std::span(&header, 1)), as_bytes(*made)};
    if (replace_own_file(path, pieces)) remove_old_files(folder_, file, size_bytes);
    return made;
}

}  // namespace vartml::tools
