// SPDX-License-Identifier: Apache-2.0
#include "gst/metrics/server.h"

#include <pthread.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace vartml::gst {
namespace {

// For a client's whole question and for our whole answer.
constexpr gint64 question_us = 2'000'000, answer_us = 5'000'000;
constexpr size_t most_request = 8192;  // bytes
constexpr size_t most_clients = 32;    // the eldest goes for one more
constexpr gint64 pause_us = 100'000;   // where no connection can be taken

std::string message_of(GError* error) {
    std::string text = error->message;
    g_error_free(error);
    return text;
}

std::string response(const char* status, const std::string& body, bool with_body) {
    return std::string("HTTP/1.1 ") + status +
           "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + (with_body ? body : "");
}

}  // namespace

struct MetricsServer::Client {
    Socket socket;  // does not block
    gint64 until;   // monotonic microseconds
    std::string request, reply;
    size_t sent = 0;  // of the reply
};

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const std::string& address,
                                                            unsigned port,
                                                            std::function<std::string()> text) {
    std::unique_ptr<MetricsServer> server(new MetricsServer);
    server->text_ = std::move(text);
    const std::unique_ptr<GSocketAddress, Unref> place(
        g_inet_socket_address_new_from_string(address.c_str(), port));
    if (!place) {
        return Error{ErrorCode::invalid_argument,
                     "address '" + address +
                         "' is none of this machine, expected one in numbers such as 127.0.0.1 or "
                         "0.0.0.0"};
    }
    GError* error = nullptr;
    server->socket_.reset(g_socket_new(g_socket_address_get_family(place.get()),
                                       G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, &error));
    if (!server->socket_ || !g_socket_bind(server->socket_.get(), place.get(), TRUE, &error) ||
        !g_socket_listen(server->socket_.get(), &error)) {
        const bool busy = g_error_matches(error, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE);
        return Error{busy ? ErrorCode::busy : ErrorCode::io,
                     "cannot listen on " + address + " port " + std::to_string(port) + ": " +
                         message_of(error) + "; choose another with port="};
    }
    g_socket_set_blocking(server->socket_.get(), FALSE);
    if (!g_cancellable_make_pollfd(server->end_.get(), &server->ends_))
        return Error{ErrorCode::io, "cannot serve metrics: no file descriptor is left"};
    server->thread_ = std::thread([raw = server.get()] { raw->run(); });
    return server;
}

MetricsServer::~MetricsServer() {
    g_cancellable_cancel(end_.get());
    if (thread_.joinable()) thread_.join();
    if (ends_.fd >= 0) g_cancellable_release_fd(end_.get());
}

void MetricsServer::run() {
    pthread_setname_np(pthread_self(), "vartml-metrics");
    std::vector<Client> clients;  // the eldest first
    std::vector<GPollFD> polled;
    gint64 accept_from = 0;  // no descriptor is left, say, and the listener stays ready
    while (!g_cancellable_is_cancelled(end_.get())) {
        gint64 now = g_get_monotonic_time(), until = now + answer_us;
        const bool accepts = now >= accept_from;
        if (!accepts) until = accept_from;
        polled.assign({ends_, {g_socket_get_fd(socket_.get()), gushort(accepts ? G_IO_IN : 0), 0}});
        for (const Client& client : clients) {
            until = std::min(until, client.until);
            polled.push_back({g_socket_get_fd(client.socket.get()),
                              gushort(client.reply.empty() ? G_IO_IN : G_IO_OUT), 0});
        }
        const gint64 wait_ms = std::max<gint64>(until - now, 0) / 1000 + 1;
        if (g_poll(polled.data(), guint(polled.size()), gint(wait_ms)) < 0) polled.clear();
        now = g_get_monotonic_time();
        size_t i = 2;
        std::erase_if(clients, [&](Client& client) {
            const bool ready = i < polled.size() && polled[i].revents != 0;
            ++i;
            return ready ? !serve(client) : now >= client.until;
        });
        if (polled.size() < 2 || polled[1].revents == 0) continue;
        Socket socket(g_socket_accept(socket_.get(), nullptr, nullptr));
        if (!socket) {
            accept_from = now + pause_us;
            continue;
        }
        g_socket_set_blocking(socket.get(), FALSE);
        if (clients.size() == most_clients) clients.erase(clients.begin());
        clients.push_back({std::move(socket), now + question_us, {}, {}});
    }
}

bool MetricsServer::serve(Client& client) const {
    GSocket* const socket = client.socket.get();
    if (client.reply.empty()) {
        char part[1024];
        const gssize n = g_socket_receive(socket, part, sizeof part, nullptr, nullptr);
        if (n <= 0 || client.request.size() > most_request) return false;
        client.request.append(part, static_cast<size_t>(n));
        if (client.request.find("\r\n\r\n") == std::string::npos)
            return g_get_monotonic_time() < client.until;
        client.reply = reply_to(client.request);
        client.until = g_get_monotonic_time() + answer_us;
    }
    const gssize n = g_socket_send(socket, client.reply.data() + client.sent,
                                   client.reply.size() - client.sent, nullptr, nullptr);
    if (n > 0) client.sent += static_cast<size_t>(n);
    return n > 0 && client.sent < client.reply.size() && g_get_monotonic_time() < client.until;
}

std::string MetricsServer::reply_to(const std::string& request) const {
    const bool get = request.starts_with("GET "), head = request.starts_with("HEAD ");
    const std::string path = request.substr(request.find(' ') + 1);
    const bool known = path.starts_with("/metrics ") || path.starts_with("/metrics?");
    if (!get && !head) return response("405 Method Not Allowed", "only GET is answered\n", true);
    if (!known) return response("404 Not Found", "metrics are at /metrics\n", get);
    return response("200 OK", text_(), get);
}

}  // namespace vartml::gst
