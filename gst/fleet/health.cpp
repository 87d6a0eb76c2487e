// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/health.h"

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gst/fleet/guard.h"

namespace vartml::fleet {
namespace {

constexpr size_t longest_request = 4096;
constexpr int64_t patience_ms = 500;  // with a client, from its connection to its whole question
constexpr int pause_ms = 100;         // where no connection can be taken

std::string response(const char* status, const std::string& body) {
    return std::string("HTTP/1.1 ") + status +
           "\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

Result<std::unique_ptr<Health>> Health::open(const std::string& address) {
    const size_t colon = address.rfind(':');
    const auto wrong = [&](const std::string& why) {
        return Error{ErrorCode::invalid_argument, "--health " + address + ": " + why +
                                                      "; write HOST:PORT, such as 127.0.0.1:9090"};
    };
    if (colon == address.npos || colon == 0) return wrong("has no host or no port");
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    if (::getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints,
                      &found) != 0)
        return wrong("is no address");
    std::unique_ptr<Health> self(new Health);
    self->listen_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(self->listen_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool bound = ::bind(self->listen_, found->ai_addr, found->ai_addrlen) == 0 &&
                       ::listen(self->listen_, 16) == 0 && ::pipe2(self->stop_, O_CLOEXEC) == 0;
    const int code = errno;
    ::freeaddrinfo(found);
    if (!bound) return wrong(std::strerror(code));
    self->thread_ = std::thread([health = self.get()] {
        pthread_setname_np(pthread_self(), "vartml-health");
        health->serve();
    });
    return self;
}

Health::~Health() {
    if (stop_[1] >= 0) ::close(stop_[1]);
    if (thread_.joinable()) thread_.join();
    if (stop_[0] >= 0) ::close(stop_[0]);
    if (listen_ >= 0) ::close(listen_);
}

void Health::publish(bool ready, std::string metrics, int64_t stale_ms) {
    const std::lock_guard lock(mutex_);
    ready_ = ready;
    metrics_ = std::move(metrics);
    stale_at_ms_ = boot_ms() + stale_ms;
}

std::string Health::answer(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const bool healthy = boot_ms() < stale_at_ms_;
    if (path == "/healthz")
        return healthy ? response("200 OK", "healthy\n")
                       : response("503 Service Unavailable", "the worker's loop hangs\n");
    if (path == "/readyz")
        return healthy && ready_ ? response("200 OK", "ready\n")
                                 : response("503 Service Unavailable", "no line with the broker\n");
    if (path == "/metrics") return response("200 OK", metrics_);
    return response("404 Not Found", "known: /healthz /readyz /metrics\n");
}

// What a client says until an empty line, its patience, or the end of the worker.
std::string Health::question_of(int fd) const {
    const int64_t until_ms = boot_ms() + patience_ms;
    std::string request;
    char chunk[1024];
    while (request.find("\r\n\r\n") == request.npos && request.size() < longest_request) {
        pollfd ready[] = {{fd, POLLIN, 0}, {stop_[0], POLLIN, 0}};
        const int left_ms = int(std::max<int64_t>(until_ms - boot_ms(), 0));
        if (::poll(ready, 2, left_ms) < 1 || ready[1].revents) break;
        const ssize_t n = ::read(fd, chunk, sizeof chunk);
        if (n <= 0) break;
        request.append(chunk, size_t(n));
    }
    return request;
}

void Health::serve() {
    for (;;) {
        pollfd ready[] = {{listen_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
        ::poll(ready, 2, -1);
        if (ready[1].revents) return;
        const int fd = ::accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) {  // no descriptor is left, say, and the listener stays ready
            ::poll(&ready[1], 1, pause_ms);
            continue;
        }
        const std::string request = question_of(fd);
        if (request.starts_with("GET ")) {
            const std::string path = request.substr(4, request.find_first_of(" ?\r", 4) - 4);
            const std::string text = answer(path);
            ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
        }
        ::close(fd);
    }
}

}  // namespace vartml::fleet
