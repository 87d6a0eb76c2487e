// SPDX-License-Identifier: Apache-2.0
#include "lib/publish/stream_sink.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>

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
        if (n < 0) return write_error(errno);
        written_ += static_cast<size_t>(n);
    }
    leave();
    ++delivered_;
    rest_.clear();
    written_ = 0;
    return {};
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
