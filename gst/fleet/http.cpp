// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/http.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "gst/fleet/guard.h"

namespace vartml::fleet {
namespace {

constexpr size_t longest_request = 4096;
constexpr int64_t patience_ms = 500;  // with a client, from its connection to its whole question
constexpr int pause_ms = 100;         // where no connection can be taken

std::string header_of(const std::string& request, const std::string& name) {
    for (size_t at = request.find("\r\n"); at != request.npos; at = request.find("\r\n", at)) {
        at += 2;
        if (::strncasecmp(request.c_str() + at, (name + ":").c_str(), name.size() + 1) != 0)
            continue;
        size_t begin = at + name.size() + 1;
        while (begin < request.size() && request[begin] == ' ') ++begin;
        return request.substr(begin, request.find('\r', begin) - begin);
    }
    return {};
}

std::string text_of(const HttpResponse& response) {
    return std::string("HTTP/1.1 ") + response.status + "\r\nContent-Type: " + response.type +
           "\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff"
           "\r\nContent-Length: " +
           std::to_string(response.body.size()) + "\r\n\r\n" + response.body;
}

void send_all(int fd, const std::string& text) {
    for (size_t at = 0; at < text.size();) {
        const ssize_t n = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
        if (n <= 0) return;
        at += size_t(n);
    }
}

}  // namespace

std::string percent_decoded(const std::string& text) {
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
        char* end = nullptr;
        const std::string digits = text.substr(i + 1, 2);
        const long byte = text[i] == '%' ? std::strtol(digits.c_str(), &end, 16) : 0;
        if (text[i] == '%' && end == digits.c_str() + 2) {
            plain += static_cast<char>(byte);
            i += 2;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

Result<std::unique_ptr<HttpServer>> HttpServer::open(const std::string& option,
                                                     const std::string& address, Handler handler) {
    const size_t colon = address.rfind(':');
    const auto wrong = [&](const std::string& why) {
        return Error{ErrorCode::invalid_argument, option + " " + address + ": " + why +
                                                      "; write HOST:PORT, such as 127.0.0.1:9090"};
    };
    if (colon == address.npos || colon == 0) return wrong("has no host or no port");
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    if (::getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints,
                      &found) != 0)
        return wrong("is no address");
    std::unique_ptr<HttpServer> self(new HttpServer);
    self->handler_ = std::move(handler);
    self->listen_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(self->listen_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool bound = ::bind(self->listen_, found->ai_addr, found->ai_addrlen) == 0 &&
                       ::listen(self->listen_, 16) == 0 && ::pipe2(self->stop_, O_CLOEXEC) == 0;
    const int code = errno;
    ::freeaddrinfo(found);
    if (!bound)
        return Error{ErrorCode::io, option + " " + address + ": " + std::strerror(code) +
                                        "; give another port or host"};
    self->thread_ = std::thread([server = self.get()] {
        pthread_setname_np(pthread_self(), "vartml-http");
        server->serve();
    });
    return self;
}

HttpServer::~HttpServer() {
    if (stop_[1] >= 0) ::close(stop_[1]);
    if (thread_.joinable()) thread_.join();
    if (stop_[0] >= 0) ::close(stop_[0]);
    if (listen_ >= 0) ::close(listen_);
}

void HttpServer::answer(int fd) const {
    const timeval patience{.tv_sec = 0, .tv_usec = patience_ms * 1000};
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    // Until an empty line, the patience, or the end of the server.
    const int64_t until_ms = boot_ms() + patience_ms;
    std::string text;
    char chunk[1024];
    while (text.find("\r\n\r\n") == text.npos && text.size() < longest_request) {
        pollfd ready[] = {{fd, POLLIN, 0}, {stop_[0], POLLIN, 0}};
        const int left_ms = int(std::max<int64_t>(until_ms - boot_ms(), 0));
        if (::poll(ready, 2, left_ms) < 1 || ready[1].revents) break;
        const ssize_t n = ::read(fd, chunk, sizeof chunk);
        if (n <= 0) break;
        text.append(chunk, size_t(n));
    }
    if (!text.starts_with("GET ")) return;
    HttpRequest request;
    const std::string target = text.substr(4, text.find_first_of(" \r", 4) - 4);
    const size_t query = std::min(target.find('?'), target.size());
    request.path = target.substr(0, query);
    if (query < target.size()) request.query = target.substr(query + 1);
    request.host = header_of(text, "Host");
    send_all(fd, text_of(handler_(request)));
}

void HttpServer::serve() {
    for (;;) {
        pollfd ready[] = {{listen_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
        ::poll(ready, 2, -1);
        if (ready[1].revents) return;
        const int fd = ::accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) {  // no descriptor is left, say, and the listener stays ready
            ::poll(&ready[1], 1, pause_ms);
            continue;
        }
        answer(fd);
        ::close(fd);
    }
}

}  // namespace vartml::fleet
