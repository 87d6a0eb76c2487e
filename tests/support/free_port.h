// SPDX-License-Identifier: Apache-2.0
// A port of the loopback that nobody listens on, and that nobody else gets while this object lives:
// the kernel gives a bound one to no connection and to nobody who asks for any. A server may listen
// there (with SO_REUSEADDR, which servers set), stop and start again.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vartml::test {

class FreePort {
public:
    FreePort() {
        const int on = 1;
        ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
        number_ = ntohs(address.sin_port);
    }
    FreePort(const FreePort&) = delete;
    FreePort& operator=(const FreePort&) = delete;
    ~FreePort() { ::close(socket_); }
    int number() const { return number_; }

private:
    const int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int number_ = 0;
};

}  // namespace vartml::test
