// SPDX-License-Identifier: Apache-2.0
#include "lib/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "lib/base/checksum.h"
#include "lib/base/temporaries.h"

namespace vartml {
namespace {

Result<void> check_regular(const Fd& fd, const std::string& path, struct stat& info) {
    if (!fd || ::fstat(fd.get(), &info) != 0) return system_error(path, "open", errno);
    if (S_ISDIR(info.st_mode)) return system_error(path, "read", EISDIR);
    if (!S_ISREG(info.st_mode))
        return Error{ErrorCode::io, path + ": is neither a regular file nor a directory"};
    return {};
}

Result<Fd> open_regular(const std::string& path, struct stat& info) {
    // O_NONBLOCK: a named pipe must not make us wait before we can refuse it.
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (auto ok = check_regular(fd, path, info); !ok) return ok.error();
    return fd;
}

Result<void> sync_file(int fd, const std::string& path) {
    if (::fsync(fd) != 0) return system_error(path, "sync", errno);
    return {};
}

FileWriter writer_of(const std::string& path, std::span<const Bytes> pieces) {
    return [&path, pieces](int fd) { return write_pieces(fd, path, pieces); };
}

Result<void> sync_directory(const std::string& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Some network file systems cannot sync a directory; the rename itself has happened.
    if (!fd || (::fsync(fd.get()) != 0 && errno != EINVAL))
        return system_error(path, "sync", errno);
    return {};
}

struct CloseDir {
    void operator()(DIR* dir) const { ::closedir(dir); }
};

bool is_dot(const char* name) {
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

// 0 or the error number.
int remove_at(int parent, const char* name) {
    if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return errno;
    Fd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return errno;
    const int copy = ::dup(fd.get());
    const std::unique_ptr<DIR, CloseDir> dir(copy < 0 ? nullptr : ::fdopendir(copy));
    if (!dir) return errno;
    while (const dirent* entry = ::readdir(dir.get())) {
        if (is_dot(entry->d_name)) continue;
        if (const int error = remove_at(fd.get(), entry->d_name)) return error;
    }
    return ::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

Result<void> sync_tree(const std::string& path) {
    const std::unique_ptr<DIR, CloseDir> dir(::opendir(path.c_str()));
    if (!dir && errno == ENOTDIR) return {};  // files are synced where they are written
    if (!dir) return system_error(path, "open", errno);
    while (const dirent* entry = ::readdir(dir.get())) {
        const bool may_be_directory = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
        if (!may_be_directory || is_dot(entry->d_name)) continue;
        if (auto r = sync_tree(path + '/' + entry->d_name); !r) return r;
    }
    return sync_directory(path);
}

std::string temporary_stem(const std::string& place) {
    return parent_of(place) + "/." + std::string(last_part(place)) + ".tmp-";
}

// Calls make(name) with fresh random names until one is not taken; it returns false with errno set.
// (mkstemp and mkdtemp would make private files, and only umask() tells which rights are wanted.)
template <typename Make>
bool with_fresh_name(const std::string& stem, std::string& name, Make make) {
    for (int attempt = 0; attempt < 100; ++attempt) {
        uint64_t number = 0;
        if (::getrandom(&number, sizeof number, 0) != sizeof number) return false;
        constexpr char digits[] = "0123456789abcdefghijklmnopqrstuv";
        name = stem;
        for (int i = 0; i < 10; ++i, number >>= 5) name += digits[number & 31];
        MakingTemporary making;
        if (make(name.c_str())) {
            making.made(name);
            return true;
        }
        if (errno != EEXIST) return false;
    }
    return false;
}

bool make_fresh_directory(const std::string& stem, std::string& name, unsigned mode = 0777) {
    return with_fresh_name(stem, name, [mode](const char* n) { return ::mkdir(n, mode) == 0; });
}

// Atomic in one step where the file system can exchange; false where it cannot.
bool swap_paths(const std::string& a, const std::string& b) {
    return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

Error system_error(const std::string& path, std::string_view what, int error_number) {
    const bool missing = error_number == ENOENT || error_number == ENOTDIR;
    return {missing ? ErrorCode::not_found : ErrorCode::io,
            path + ": cannot " + std::string(what) + ": " +
                std::generic_category().message(error_number)};
}

void Fd::reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
    return map(Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), path);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::map(const Fd& fd, const std::string& name) {
    struct stat info{};
    if (auto ok = check_regular(fd, name, info); !ok) return ok.error();
    const auto size = static_cast<size_t>(info.st_size);
    if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile({}));
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED) return system_error(name, "map", errno);
    return std::shared_ptr<const MappedFile>(
        new MappedFile({static_cast<const std::byte*>(at), size}));
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

uint32_t MappedFile::checksum(size_t offset, size_t size) const {
    constexpr size_t chunk = size_t{256} * 1024;
    static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    uint32_t crc = 0;
    for (const size_t end = offset + size; offset < end;) {
        const size_t next = std::min(end, offset + chunk);
        crc = crc32c(bytes_.subspan(offset, next - offset), crc);
        const size_t first = offset / page * page, last = next / page * page;
        if (next - offset == chunk)
            ::madvise(const_cast<std::byte*>(bytes_.data()) + first, last - first, MADV_DONTNEED);
        offset = next;
    }
    return crc;
}

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
    struct stat info{};
    const auto fd = open_regular(path, info);
    if (!fd) return fd.error();
    std::string text;
    for (;;) {
        char chunk[65536];
        const ssize_t n = ::read(fd->get(), chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return system_error(path, "read", errno);
        if (n == 0) return text;
        text.append(chunk, static_cast<size_t>(n));
        if (text.size() > max_bytes)
            return Error{ErrorCode::bad_model,
                         path + ": is larger than " + std::to_string(max_bytes) + " bytes"};
    }
}

Result<void> write_pieces(int fd, const std::string& path, std::span<const Bytes> pieces) {
    for (Bytes rest : pieces) {
        while (!rest.empty()) {
            const ssize_t n = ::write(fd, rest.data(), rest.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return system_error(path, "write", errno);
            rest = rest.subspan(static_cast<size_t>(n));
        }
    }
    return {};
}

Result<void> write_new_file(const std::string& path, const FileWriter& write) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd) return system_error(path, "create", errno);
    auto written = write(fd.get());
    if (written) written = sync_file(fd.get(), path);
    if (!written) ::unlink(path.c_str());
    return written;
}

Result<void> write_new_file(const std::string& path, std::span<const Bytes> pieces) {
    return write_new_file(path, writer_of(path, pieces));
}

Result<StagedFile> StagedFile::create(const std::string& path) {
    std::string temporary;
    Fd fd;
    const auto make = [&fd](const char* name) {
        fd = Fd(::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        return static_cast<bool>(fd);
    };
    if (!with_fresh_name(temporary_stem(path), temporary, make))
        return system_error(path, "create a file beside it", errno);
    return StagedFile(path, std::move(temporary), std::move(fd));
}

StagedFile::~StagedFile() {
    if (temporary_.empty()) return;
    ::unlink(temporary_.c_str());
    forget_temporary(temporary_);
}

Result<void> StagedFile::commit(Durability durability) {
    if (durability == Durability::synced)
        if (auto synced = sync_file(fd_.get(), path_); !synced) return synced;
    if (::rename(temporary_.c_str(), path_.c_str()) != 0)
        return system_error(path_, "put the file in place", errno);
    forget_temporary(temporary_);
    temporary_.clear();
    if (durability == Durability::none) return {};
    return sync_directory(parent_of(path_));
}

Result<void> replace_file(const std::string& path, const FileWriter& write, Durability durability) {
    auto staged = StagedFile::create(path);
    if (!staged) return staged.error();
    auto written = write(staged->fd());
    return written ? staged->commit(durability) : written;
}

Result<void> replace_file(const std::string& path, std::span<const Bytes> pieces,
                          Durability durability) {
    return replace_file(path, writer_of(path, pieces), durability);
}

Result<void> replace_file(const std::string& path, std::string_view text, Durability durability) {
    const Bytes pieces[] = {as_bytes(text)};
    return replace_file(path, pieces, durability);
}

// Which of standard output and error goes into this file; -1: none.
int standard_stream(const struct stat& info) {
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
        struct stat open{};
        if (S_ISREG(info.st_mode) && ::fstat(fd, &open) == 0 && open.st_dev == info.st_dev &&
            open.st_ino == info.st_ino)
            return fd;
    }
    return -1;
}

Result<void> write_output(const std::string& path, std::string_view text) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return replace_file(path, text);
    // What a standard stream goes into holds more than this text.
    if (const int fd = standard_stream(info); fd >= 0) {
        std::fflush(nullptr);
        const Bytes pieces[] = {as_bytes(text)};
        return write_pieces(fd, path, pieces);
    }
    if (S_ISREG(info.st_mode)) {
        std::error_code error;
        const std::string place = std::filesystem::canonical(path, error);
        const auto write = [&](int fd) -> Result<void> {  // for whom the file was
            if (::fchmod(fd, info.st_mode & 0777) != 0)
                return system_error(path, "keep who may read it", errno);
            const Bytes pieces[] = {as_bytes(text)};
            return write_pieces(fd, path, pieces);
        };
        return replace_file(error ? path : place, write, Durability::synced);
    }
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) return system_error(path, "write", errno);
    const Bytes pieces[] = {as_bytes(text)};
    return write_pieces(fd.get(), path, pieces);
}

Result<void> probe_output(const std::string& path) {
    struct stat info{};
    const bool is_there = ::stat(path.c_str(), &info) == 0;
    if (is_there && S_ISDIR(info.st_mode)) return system_error(path, "write", EISDIR);
    // A pipe may have no reader yet.
    if (is_there && (!S_ISREG(info.st_mode) || standard_stream(info) >= 0)) return {};
    std::error_code error;
    const std::string place = std::filesystem::canonical(path, error);
    const auto staged = StagedFile::create(error ? path : place);
    return staged ? Result<void>() : staged.error();
}

Result<void> make_directories(const std::string& path) {
    const MakingTemporary none_is_taken_away;  // else it made the folder above anew
    for (size_t at = 1; at <= path.size(); ++at) {
        if (at < path.size() && path[at] != '/') continue;
        const std::string part = path.substr(0, at);
        if (::mkdir(part.c_str(), 0777) == 0 || errno == EEXIST) continue;
        const int error = errno;
        struct stat info{};
        if (::stat(part.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
        return Error{ErrorCode::io, system_error(part, "create the folder", error).message};
    }
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return system_error(path, "open the folder", errno);
    if (!S_ISDIR(info.st_mode)) return Error{ErrorCode::io, path + ": exists and is no folder"};
    return {};
}

Result<void> remove_tree(const std::string& path) {
    if (const int error = remove_at(AT_FDCWD, path.c_str()))
        return system_error(path, "remove", error);
    return {};
}

std::string without_trailing_slashes(std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return path;
}

std::string parent_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    if (slash == path.npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string_view last_part(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

Result<void> replace_directory(const std::string& from, const std::string& place) {
    if (auto r = sync_tree(from); !r) return r;
    if (swap_paths(from, place)) {
        (void)remove_tree(from);  // the old one
        forget_temporary(from);
        return sync_directory(parent_of(place));
    }
    // Nothing to exchange with, or a file system that cannot.
    std::string aside;
    bool moved = false;
    if (struct stat info{}; ::lstat(place.c_str(), &info) == 0) {
        if (!make_fresh_directory(temporary_stem(place), aside))
            return system_error(place, "move the old folder aside", errno);
        forget_temporary(aside);  // it holds what must not be lost
        if (::rename(place.c_str(), (aside + "/old").c_str()) != 0)
            return system_error(place, "move the old folder aside", errno);
        moved = true;
    }
    const bool in_place = ::rename(from.c_str(), place.c_str()) == 0;
    const int error = errno;
    if (in_place) forget_temporary(from);
    if (moved && !in_place) ::rename((aside + "/old").c_str(), place.c_str());
    if (moved) (void)remove_tree(aside);
    if (!in_place) return system_error(place, "put the folder in place", error);
    return sync_directory(parent_of(place));
}

Result<StagedDirectory> StagedDirectory::create(const std::string& place, unsigned mode) {
    const std::string clean = without_trailing_slashes(place);
    std::string path;
    if (!make_fresh_directory(temporary_stem(clean), path, mode))
        return system_error(clean, "create a folder beside it", errno);
    return StagedDirectory(clean, std::move(path));
}

StagedDirectory::~StagedDirectory() {
    if (path_.empty()) return;
    (void)remove_tree(path_);
    forget_temporary(path_);
}

Result<void> StagedDirectory::commit() {
    if (auto r = replace_directory(path_, place_); !r) return r;
    path_.clear();
    return {};
}

void remove_left_overs(const std::string& place) {
    const std::string stem = temporary_stem(without_trailing_slashes(place));
    const std::string parent = parent_of(stem);
    const std::string_view prefix = last_part(stem);
    std::vector<std::string> found;
    if (const std::unique_ptr<DIR, CloseDir> dir{::opendir(parent.c_str())})
        while (const dirent* entry = ::readdir(dir.get()))
            if (std::string_view(entry->d_name).starts_with(prefix))
                found.emplace_back(entry->d_name);
    for (const std::string& name : found) (void)remove_tree(parent + '/' + name);
}

namespace {

// Whether `path` still names the file that is open: whoever held the lock before removed it.
bool is_same_file(const std::string& path, const Fd& fd) {
    struct stat named{}, open{};
    return ::stat(path.c_str(), &named) == 0 && ::fstat(fd.get(), &open) == 0 &&
           named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

}  // namespace

Result<FileLock> FileLock::acquire(const std::string& path, const std::atomic<bool>* cancel) {
    for (;;) {
        {
            MakingTemporary making;
            Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
            if (!fd) return system_error(path, "create the lock", errno);
            if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
                // A lock on a file without a name keeps nobody out.
                if (!is_same_file(path, fd)) continue;
                making.made(path);
                return FileLock(path, std::move(fd));
            }
            if (errno != EWOULDBLOCK && errno != EINTR) return system_error(path, "lock", errno);
        }
        // flock cannot wait for a flag of the caller, so we look again every 20 ms.
        if (cancel && cancel->load(std::memory_order_relaxed))
            return Error{ErrorCode::timeout, path + ": waiting for the lock was cancelled"};
        const timespec pause{0, 20'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

// The name goes while the lock is held, so that it is never another's file.
FileLock::~FileLock() {
    if (!fd_) return;
    ::unlink(path_.c_str());
    forget_temporary(path_);
}

}  // namespace vartml
