// SPDX-License-Identifier: Apache-2.0
#include "gst/metrics/server.h"

#include <pthread.h>

#include <utility>

namespace vartml::gst {
namespace {

// For a client's whole question and for our whole answer: others wait meanwhile.
constexpr gint64 question_us = 2'000'000, answer_us = 5'000'000;
constexpr size_t most_request = 8192;  // bytes
constexpr gulong pause_us = 100'000;   // where no connection can be taken

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
    server->thread_ = std::thread([raw = server.get()] { raw->run(); });
    return server;
}

MetricsServer::~MetricsServer() {
    g_cancellable_cancel(end_.get());
    if (thread_.joinable()) thread_.join();
}

void MetricsServer::run() {
    pthread_setname_np(pthread_self(), "vartml-metrics");
    while (!g_cancellable_is_cancelled(end_.get())) {
        const Socket client(g_socket_accept(socket_.get(), end_.get(), nullptr));
        if (client)
            answer(client.get());
        else if (!g_cancellable_is_cancelled(end_.get()))
            g_usleep(pause_us);  // no descriptor is left, say, and the listener stays ready
    }
}

void MetricsServer::answer(GSocket* client) {
    g_socket_set_blocking(client, FALSE);
    gint64 until = g_get_monotonic_time() + question_us;
    const auto wait_for = [&](GIOCondition condition) {
        const gint64 left = until - g_get_monotonic_time();
        return left > 0 &&
               g_socket_condition_timed_wait(client, condition, left, end_.get(), nullptr);
    };
    std::string request;
    while (request.find("\r\n\r\n") == std::string::npos) {
        char part[1024];
        if (!wait_for(G_IO_IN)) return;
        const gssize n = g_socket_receive(client, part, sizeof part, end_.get(), nullptr);
        if (n <= 0 || request.size() > most_request) return;
        request.append(part, static_cast<size_t>(n));
    }
    const bool get = request.starts_with("GET "), head = request.starts_with("HEAD ");
    const std::string path = request.substr(request.find(' ') + 1);
    const bool known = path.starts_with("/metrics ") || path.starts_with("/metrics?");
    const std::string reply =
        !get && !head ? response("405 Method Not Allowed", "only GET is answered\n", true)
        : !known      ? response("404 Not Found", "metrics are at /metrics\n", get)
                      : response("200 OK", text_(), get);
    until = g_get_monotonic_time() + answer_us;
    for (size_t sent = 0; sent < reply.size();) {
        if (!wait_for(G_IO_OUT)) return;
        const gssize n =
            g_socket_send(client, reply.data() + sent, reply.size() - sent, end_.get(), nullptr);
        if (n <= 0) return;
        sent += static_cast<size_t>(n);
    }
}

}  // namespace vartml::gst
