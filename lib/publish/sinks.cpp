// SPDX-License-Identifier: Apache-2.0
// The sinks that need nothing but the operating system.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include <vartml/publish.h>

#include "lib/base/file.h"

namespace vartml::publish {

// What sinks over a descriptor share: whole lines, written as far as the descriptor takes them.

// How a line leaves through a descriptor.
enum class WriteMode {
    non_blocking,  // the descriptor is ours and O_NONBLOCK
    polled,        // it may block: only so much is written as a pipe that polls writable takes
    blocking       // a regular file, which is waited for
};

class StreamSink : public PublishSink {
public:
    explicit StreamSink(std::string name) : name_(std::move(name)) {}
    ~StreamSink() override { leave(); }
    bool connected() const override { return fd() >= 0; }
    Result<bool> send(const PublishLine& line) override;
    Result<void> work() override;
    Wait wait() const override;
    size_t take_delivered() override;
    void disconnect() override;
    bool disk_full() const override { return disk_full_; }

protected:
    virtual int fd() const { return fd_.get(); }
    virtual WriteMode mode() const = 0;
    const std::string& name() const { return name_; }
    Error write_error(int error_number);
    Fd fd_;

private:
    Result<void> write_rest();
    void take_back();
    bool enter();  // false: another sink is in the middle of a line
    void leave();

    std::string name_;    // for messages
    std::string rest_;    // of a line that the descriptor has in part
    size_t written_ = 0;  // of it
    size_t delivered_ = 0;
    bool disk_full_ = false;
};

}  // namespace vartml::publish

namespace vartml {

namespace {

using publish::StreamSink;
using publish::WriteMode;

class StdoutSink final : public StreamSink {
public:
    StdoutSink() : StreamSink("standard output") {}
    Result<void> connect() override {
        open_ = true;
        return {};
    }
    void disconnect() override {
        StreamSink::disconnect();
        open_ = false;
    }
    bool reconnects() const override { return false; }

protected:
    int fd() const override { return open_ ? STDOUT_FILENO : -1; }
    WriteMode mode() const override { return WriteMode::polled; }

private:
    bool open_ = false;
};

// A file that is there for good, opened when the sink is made. What it held goes when the publisher
// connects: by then nothing else can make the start fail.
class FileSink final : public StreamSink {
public:
    FileSink(const std::string& path, Fd file, bool append)
        : StreamSink(path), file_(std::move(file)), append_(append) {}
    Result<void> connect() override {
        fd_ = std::move(file_);
        struct stat info{};
        if (::fstat(fd(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
        if (append_) return end_line(info.st_size);
        if (::ftruncate(fd(), 0) != 0) return system_error(name(), "empty", errno);
        return {};
    }
    bool reconnects() const override { return false; }

protected:
    WriteMode mode() const override { return WriteMode::blocking; }

private:
    // Of a writer that was killed the file may have half a line; the next one is not part of it.
    Result<void> end_line(off_t size) {
        const Fd reader(::open(name().c_str(), O_RDONLY | O_CLOEXEC));
        char last = '\n';
        if (size == 0 || !reader || ::pread(reader.get(), &last, 1, size - 1) != 1 || last == '\n')
            return {};
        if (::write(fd(), "\n", 1) != 1) return write_error(errno);
        return {};
    }

    Fd file_;
    bool append_;
};

class FifoSink final : public StreamSink {
public:
    explicit FifoSink(const std::string& path) : StreamSink(path) {}
    Result<void> connect() override {
        fd_ = Fd(::open(name().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
        if (fd_) return {};
        if (errno == ENXIO) return Error{ErrorCode::io, name() + ": nobody reads this FIFO"};
        return system_error(name(), "open", errno);
    }

protected:
    WriteMode mode() const override { return WriteMode::non_blocking; }
};

class SocketSink final : public StreamSink {
public:
    SocketSink(const std::string& path, const sockaddr_un& address)
        : StreamSink(path), address_(address) {}
    Result<void> connect() override {
        fd_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (!fd_) return system_error(name(), "make a socket for", errno);
        if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_) ==
            0) {
            return {};
        }
        const int error = errno;
        fd_.reset();
        return system_error(name(), "connect to", error);
    }

protected:
    WriteMode mode() const override { return WriteMode::non_blocking; }

private:
    sockaddr_un address_;
};

}  // namespace

PublishSink::~PublishSink() = default;

std::unique_ptr<PublishSink> make_stdout_sink() {
    return std::make_unique<StdoutSink>();
}

Result<std::unique_ptr<PublishSink>> make_file_sink(const std::string& path, bool append) {
    if (path.empty())
        return Error{ErrorCode::invalid_argument, "no file is named; set its location"};
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode))
        return std::unique_ptr<PublishSink>(std::make_unique<FifoSink>(path));
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : 0);
    Fd fd(::open(path.c_str(), flags, 0666));
    if (!fd) return system_error(path, "open for writing", errno);
    // Each would write over the lines of the other; lines that are added stay whole.
    if (::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::flock(fd.get(), (append ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return Error{ErrorCode::busy,
                     path +
                         ": another publisher writes this file; give each one a file of its own, "
                         "or let all of them append"};
    return std::unique_ptr<PublishSink>(std::make_unique<FileSink>(path, std::move(fd), append));
}

Result<std::unique_ptr<PublishSink>> make_socket_sink(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty())
        return Error{ErrorCode::invalid_argument, "no socket is named; set its location"};
    if (path.size() >= sizeof address.sun_path) {
        return Error{ErrorCode::invalid_argument,
                     path + ": is a path of " + std::to_string(path.size()) +
                         " bytes, expected at most " + std::to_string(sizeof address.sun_path - 1) +
                         " for a socket"};
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    return std::unique_ptr<PublishSink>(std::make_unique<SocketSink>(path, address));
}

}  // namespace vartml

namespace vartml::publish {
namespace {

// Whether write() says something at once. A full pipe without reader has POLLERR and no POLLOUT.
bool is_writable(int fd) {
    pollfd entry{fd, POLLOUT, 0};
    return ::poll(&entry, 1, 0) == 1 && (entry.revents & (POLLOUT | POLLERR | POLLHUP | POLLNVAL));
}

// The sink that is in the middle of a line on the standard output of this process. A pipe takes
// long lines in parts, and those of several sinks must not be mixed.
constinit std::atomic<const StreamSink*> on_stdout = nullptr;

}  // namespace

bool StreamSink::enter() {
    const StreamSink* nobody = nullptr;
    return mode() != WriteMode::polled || on_stdout == this ||
           on_stdout.compare_exchange_strong(nobody, this);
}

void StreamSink::leave() {
    const StreamSink* self = this;
    on_stdout.compare_exchange_strong(self, nullptr);
}

Result<bool> StreamSink::send(const PublishLine& line) {
    if (auto done = write_rest(); !done) return done.error();
    if (!rest_.empty()) return false;
    rest_ = line.text;
    written_ = 0;
    if (auto done = write_rest(); !done) return done.error();
    return true;
}

Result<void> StreamSink::work() {
    if (auto done = write_rest(); !done) return done;
    // A pipe or socket that nobody reads any more says so before anything is written.
    pollfd entry{fd(), 0, 0};
    if (mode() == WriteMode::non_blocking && ::poll(&entry, 1, 0) == 1 &&
        (entry.revents & (POLLERR | POLLHUP))) {
        return write_error(EPIPE);
    }
    return {};
}

Result<void> StreamSink::write_rest() {
    if (rest_.empty()) return {};
    if (!enter()) return {};
    while (written_ < rest_.size()) {
        size_t size = rest_.size() - written_;
        if (mode() == WriteMode::polled) {
            if (!is_writable(fd())) return {};
            size = std::min<size_t>(size, PIPE_BUF);
        }
        const ssize_t n = ::write(fd(), rest_.data() + written_, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return {};
        if (n < 0) {
            const int error = errno;
            take_back();
            return write_error(error);
        }
        written_ += static_cast<size_t>(n);
    }
    leave();
    ++delivered_;
    rest_.clear();
    written_ = 0;
    return {};
}

// What a regular file took of a line that the disk has no room for, unless others wrote behind it.
void StreamSink::take_back() {
    struct stat info{};
    if (written_ == 0 || mode() != WriteMode::blocking || ::fstat(fd(), &info) != 0 ||
        !S_ISREG(info.st_mode))
        return;
    const off_t end = ::lseek(fd(), 0, SEEK_CUR), start = end - static_cast<off_t>(written_);
    if (end != info.st_size || ::ftruncate(fd(), start) != 0) return;
    ::lseek(fd(), start, SEEK_SET);
    written_ = 0;
}

Error StreamSink::write_error(int error_number) {
    disk_full_ = error_number == ENOSPC || error_number == EDQUOT;
    struct statvfs info{};
    if (disk_full_ && ::fstatvfs(fd(), &info) == 0) {
        return {ErrorCode::io, name_ + ": cannot be written, " +
                                   std::to_string(uint64_t(info.f_bavail) * info.f_frsize) +
                                   " bytes are free there; free some, or write to another disk"};
    }
    if (error_number == EPIPE) return {ErrorCode::io, name_ + ": nobody reads it any more"};
    return system_error(name_, "write", error_number);
}

PublishSink::Wait StreamSink::wait() const {
    Wait wait{.fd = fd()};
    wait.write = !rest_.empty();
    if (mode() == WriteMode::blocking) wait.fd = -1;
    // Of a terminal or pipe that others share, only what we wait for is asked.
    if (mode() == WriteMode::polled && !wait.write) wait.fd = -1;
    return wait;
}

size_t StreamSink::take_delivered() {
    return std::exchange(delivered_, 0);
}

void StreamSink::disconnect() {
    leave();
    fd_.reset();
    rest_.clear();
    written_ = delivered_ = 0;
}

}  // namespace vartml::publish
