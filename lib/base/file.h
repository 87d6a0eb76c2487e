// SPDX-License-Identifier: Apache-2.0
// Files: read-only mappings, writing that leaves the old or the new content, locks between
// processes.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vartml/result.h>

namespace vartml {

using Bytes = std::span<const std::byte>;

inline Bytes as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}
inline std::string_view as_text(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// `PATH: cannot WHAT: <system reason>`; not_found where the path does not exist, else io.
Error system_error(const std::string& path, std::string_view what, int error_number);

// A file descriptor and its close().
class Fd {
public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Fd() { reset(); }
    void reset();
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_ = -1;
};

// A regular file mapped read-only. Replace such a file by rename, never in place.
class MappedFile {
public:
    // Errors: not_found and io with the system's reason, also for what is no regular file.
    static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
    // Of an open descriptor, or of one whose open() has just failed; `name` is for messages.
    static Result<std::shared_ptr<const MappedFile>> map(const Fd& fd, const std::string& name);
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();
    Bytes bytes() const { return bytes_; }
    // CRC-32C of a part. A large one does not stay in this process's memory: who reads it gets it
    // from the system's cache again.
    uint32_t checksum(size_t offset, size_t size) const;

private:
    explicit MappedFile(Bytes bytes) : bytes_(bytes) {}
    Bytes bytes_;
};

// A file that the build put into the program (embed.py).
struct EmbeddedFile {
    std::string_view name;  // without folder and ending
    std::string_view text;
};

// The whole file; a file longer than `max_bytes` is an error that names both sizes.
Result<std::string> read_file(const std::string& path, size_t max_bytes);

// Writes the whole content of a file to an open descriptor; the sync is the caller's.
using FileWriter = std::function<Result<void>(int fd)>;

// Writes the pieces one after another; `path` is for messages.
Result<void> write_pieces(int fd, const std::string& path, std::span<const Bytes> pieces);
// Creates the file, writes it and syncs it; it must not exist. What fails leaves no file.
Result<void> write_new_file(const std::string& path, const FileWriter& write);
Result<void> write_new_file(const std::string& path, std::span<const Bytes> pieces);
// Whether what was written survives a crash of the system. Without, the file may then hold anything
// and its readers must notice: for what can be made again.
enum class Durability { none, synced };

// A file under construction beside its place: `.NAME.tmp-<random>`. The destructor removes what was
// not put in place.
class StagedFile {
public:
    static Result<StagedFile> create(const std::string& path);
    StagedFile(StagedFile&& other) noexcept
        : path_(std::move(other.path_)),
          temporary_(std::exchange(other.temporary_, {})),
          fd_(std::move(other.fd_)) {}
    StagedFile& operator=(StagedFile&&) = delete;
    ~StagedFile();
    int fd() const { return fd_.get(); }
    // Gives the file its name, in place of a file that has it; once.
    Result<void> commit(Durability durability);

private:
    StagedFile(const std::string& path, std::string temporary, Fd fd)
        : path_(path), temporary_(std::move(temporary)), fd_(std::move(fd)) {}
    std::string path_, temporary_;
    Fd fd_;
};

// Writes beside `path`, syncs and renames: afterwards `path` has the old or the new content.
Result<void> replace_file(const std::string& path, const FileWriter& write,
                          Durability durability = Durability::synced);
Result<void> replace_file(const std::string& path, std::span<const Bytes> pieces,
                          Durability durability = Durability::synced);
Result<void> replace_file(const std::string& path, std::string_view text,
                          Durability durability = Durability::synced);
// For a path that a user gives: replaces a file, whole, also behind a symbolic link; what is none,
// as a pipe or a terminal, gets the text.
Result<void> write_output(const std::string& path, std::string_view text);
// Whether write_output() could write there now, for who works long before; leaves nothing.
Result<void> probe_output(const std::string& path);

// Creates the directory and its parents where they are missing.
Result<void> make_directories(const std::string& path);
// Removes a file or a directory with all it holds, following no link. What is missing is no error.
Result<void> remove_tree(const std::string& path);

// The path without trailing slashes ("/" stays), its parent ("." where there is none) and last
// part.
std::string without_trailing_slashes(std::string path);
std::string parent_of(const std::string& path);
std::string_view last_part(std::string_view path);

// Puts the directory `from` in place by one rename, exchanged with what is there where the file
// system can; else that is moved aside first. Syncs the directories, not the files. What was in
// place is removed.
Result<void> replace_directory(const std::string& from, const std::string& place);

// A directory under construction beside its place: `.NAME.tmp-<random>`. The destructor removes
// what was not put in place.
class StagedDirectory {
public:
    // The parent of `place` must exist. `mode` counts as for mkdir().
    static Result<StagedDirectory> create(const std::string& place, unsigned mode = 0777);
    StagedDirectory(StagedDirectory&& other) noexcept
        : place_(std::move(other.place_)), path_(std::exchange(other.path_, {})) {}
    StagedDirectory& operator=(StagedDirectory&&) = delete;
    ~StagedDirectory();
    const std::string& path() const { return path_; }
    // replace_directory; the object is empty after success.
    Result<void> commit();

private:
    StagedDirectory(std::string place, std::string path)
        : place_(std::move(place)), path_(std::move(path)) {}
    std::string place_, path_;
};

// Removes what killed writers left beside `place`; call it only where no other writer can be.
void remove_left_overs(const std::string& place);

// An exclusive lock on a file, which is created where it is missing and gone with the lock. Other
// processes and other FileLocks of this process wait.
class FileLock {
public:
    // Errors: timeout when `cancel` becomes true, io.
    static Result<FileLock> acquire(const std::string& path, const std::atomic<bool>* cancel);
    FileLock(FileLock&&) noexcept = default;
    FileLock& operator=(FileLock&&) = delete;
    ~FileLock();

private:
    FileLock(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
    std::string path_;
    Fd fd_;
};

}  // namespace vartml
