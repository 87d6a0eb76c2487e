// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/weight_cache.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <string_view>

#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/conv/conv.h"
#include "kernels/instruction_sets.h"
#include "lib/base/checksum.h"
#include "lib/base/own_files.h"
#include "lib/base/sha256.h"

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
    if (!fd || !is_private(fd.get())) return std::nullopt;
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

    auto done = make_own_directory(folder_);
    if (done) done = replace_own_file(path_, content);
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

// What packed weights depend on, as the name of a file.
namespace {

struct BuildId {
    uintptr_t address;  // in the object that is looked for
    std::string hex;
};

bool contains(const dl_phdr_info& object, uintptr_t address) {
    return std::any_of(object.dlpi_phdr, object.dlpi_phdr + object.dlpi_phnum, [&](const auto& p) {
        return p.p_type == PT_LOAD && address - object.dlpi_addr - p.p_vaddr < p.p_memsz;
    });
}

// The GNU build id among the notes at `at`.
std::string find_build_id(const std::byte* at, size_t size) {
    const auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        std::memcpy(&note, at, sizeof note);
        const size_t name = sizeof note, text = name + padded(note.n_namesz);
        const size_t end = text + padded(note.n_descsz);
        if (end > size) break;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            std::memcmp(at + name, "GNU", 4) == 0)
            return to_hex({reinterpret_cast<const uint8_t*>(at + text), note.n_descsz});
        at += end;
        size -= end;
    }
    return {};
}

int visit(dl_phdr_info* object, size_t, void* data) {
    auto& wanted = *static_cast<BuildId*>(data);
    if (!contains(*object, wanted.address)) return 0;
    for (const auto& p : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
        if (p.p_type != PT_NOTE || !wanted.hex.empty()) continue;
        const auto* notes = reinterpret_cast<const std::byte*>(object->dlpi_addr + p.p_vaddr);
        wanted.hex = find_build_id(notes, p.p_memsz);
    }
    return 1;
}

// Of the program or library that holds this function or object: two builds of one version differ in
// it. "" where the linker wrote none.
template <typename T>
std::string build_id_of(T* address) {
    BuildId wanted{reinterpret_cast<uintptr_t>(address), {}};
    ::dl_iterate_phdr(visit, &wanted);
    return wanted.hex;
}

// Code that packs. "" where one part cannot be told apart from another build of it.
std::string own_code() {
    const std::string lowering = build_id_of(&WeightCache::key);
    const std::string kernels = build_id_of(&kernels::pack_conv);
    if (lowering.empty() || kernels.empty()) return {};
    return lowering + ' ' + kernels + ' ' + std::to_string(kernels::instruction_sets());
}

std::string onednn_code() {
    const std::string library = build_id_of(dnnl::version());
    if (library.empty()) return {};
    return library + ' ' + std::to_string(static_cast<int>(dnnl::get_effective_cpu_isa()));
}

std::string digest(std::string_view text) {
    return to_hex(sha256(as_bytes(text))).substr(0, 32);
}

}  // namespace

std::optional<WeightCache::Key> WeightCache::key(const device::Program& program, DataType compute,
                                                 unsigned threads, bool uses_onednn) {
    static const std::string own = own_code();
    std::string build = own;
    if (uses_onednn) {
        static const std::string onednn = onednn_code();
        if (onednn.empty()) return std::nullopt;
        build += ' ' + onednn;
    }
    if (program.identity.empty() || own.empty()) return std::nullopt;
    for (const int64_t part : {static_cast<int64_t>(compute), static_cast<int64_t>(threads)})
        build += ' ' + std::to_string(part);
    return Key{digest(program.identity), digest(build)};
}

}  // namespace vartml::softnpu
