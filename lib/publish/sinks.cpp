// SPDX-License-Identifier: Apache-2.0
// The sinks that need nothing but the operating system.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/publish/stream_sink.h"

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
        if (append_ || ::fstat(fd(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
        if (::ftruncate(fd(), 0) != 0) return system_error(name(), "empty", errno);
        return {};
    }
    bool reconnects() const override { return false; }

protected:
    WriteMode mode() const override { return WriteMode::blocking; }

private:
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
