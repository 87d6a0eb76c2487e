// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/live/server.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <random>
#include <utility>

#include "pipelines/apps/live/qr_code.h"

namespace live {
namespace {

using vartml::Error;
using vartml::ErrorCode;
using vartml::Result;

constexpr char boundary[] = "vartml-picture";

std::string random_token() {
    std::random_device device;  // of libstdc++: from the kernel
    std::string token;
    for (int i = 0; i < 4; ++i) {
        char part[9];
        g_snprintf(part, sizeof part, "%08x", device());
        token += part;
    }
    return token;
}

const char* value_of(GHashTable* query, const char* name) {
    return query ? static_cast<const char*>(g_hash_table_lookup(query, name)) : nullptr;
}

void answer(SoupServerMessage* message, guint status, const std::string& text) {
    soup_server_message_set_status(message, status, nullptr);
    soup_server_message_set_response(message, "text/plain; charset=utf-8", SOUP_MEMORY_COPY,
                                     text.data(), text.size());
}

// All of the text as a number.
template <typename T>
bool read(const std::string_view text, T& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

std::string text_of(GInetAddress* address) {
    gchar* text = g_inet_address_to_string(address);
    const std::string host = g_inet_address_get_family(address) == G_SOCKET_FAMILY_IPV6
                                 ? "[" + std::string(text) + "]"
                                 : text;
    g_free(text);
    return host;
}

// What other devices call this machine: the address of the first network that is up, rather of one
// at home than of one of containers; "" where there is none.
std::string network_address(GSocketFamily family) {
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) return {};
    std::string best;
    int best_rank = 0;
    for (const ifaddrs* one = list; one; one = one->ifa_next) {
        if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) || (one->ifa_flags & IFF_LOOPBACK) ||
            one->ifa_addr->sa_family != family)
            continue;
        const auto* bytes =
            family == G_SOCKET_FAMILY_IPV6
                ? reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr.s6_addr
                : reinterpret_cast<const guint8*>(
                      &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr);
        GInetAddress* address = g_inet_address_new_from_bytes(bytes, family);
        const std::string_view name = one->ifa_name;
        const bool virtual_net = name.starts_with("docker") || name.starts_with("br-") ||
                                 name.starts_with("veth") || name.starts_with("virbr");
        const int rank = g_inet_address_get_is_link_local(address) ? 1 : virtual_net ? 2 : 3;
        if (rank > best_rank) best_rank = rank, best = text_of(address);
        g_object_unref(address);
    }
    freeifaddrs(list);
    return best;
}

// A response without end, written in pieces.
void begin_stream(SoupServerMessage* message, const char* type) {
    SoupMessageHeaders* headers = soup_server_message_get_response_headers(message);
    soup_message_headers_replace(headers, "Content-Type", type);
    soup_message_headers_replace(headers, "Cache-Control", "no-store");
    soup_message_headers_set_encoding(headers, SOUP_ENCODING_CHUNKED);
    soup_message_body_set_accumulate(soup_server_message_get_response_body(message), FALSE);
    soup_server_message_set_status(message, SOUP_STATUS_OK, nullptr);
}

void append(SoupServerMessage* message, const std::string& text) {
    soup_message_body_append(soup_server_message_get_response_body(message), SOUP_MEMORY_COPY,
                             text.data(), text.size());
}

}  // namespace

Server::Server(const Options& options)
    : token_(options.token), self_(std::make_shared<std::atomic<Server*>>(this)) {}

Result<std::unique_ptr<Server>> Server::create(const Options& options) {
    std::unique_ptr<Server> server(new Server(options));
    if (auto listening = server->listen(options); !listening) return listening.error();
    return server;
}

Server::~Server() {
    *self_ = nullptr;
    if (ticks_) g_source_remove(ticks_);
    if (server_) soup_server_disconnect(server_.get());
}

Result<void> Server::listen(const Options& options) {
    GInetAddress* address = g_inet_address_new_from_string(options.bind.c_str());
    if (!address) {
        return Error{ErrorCode::invalid_argument,
                     "--bind is '" + options.bind +
                         "', a numeric address is expected, such as 127.0.0.1 or 0.0.0.0"};
    }
    loopback_ = g_inet_address_get_is_loopback(address);
    const GSocketFamily family = g_inet_address_get_family(address);
    const std::string host = text_of(address);
    const bool all = g_inet_address_get_is_any(address);
    GSocketAddress* socket = g_inet_socket_address_new(address, options.port);
    g_object_unref(address);
    server_.reset(soup_server_new("server-header", "vartml-live", nullptr));
    GError* error = nullptr;
    const gboolean listening =
        soup_server_listen(server_.get(), socket, SoupServerListenOptions(0), &error);
    g_object_unref(socket);
    if (!listening) {
        const std::string reason = error->message;
        g_error_free(error);
        return Error{ErrorCode::io, "port " + std::to_string(options.port) + " of " + options.bind +
                                        " cannot be used: " + reason +
                                        "; give another with --port, or 0 for any"};
    }
    if (!loopback_ && token_.empty()) token_ = random_token();
    GSList* uris = soup_server_get_uris(server_.get());
    const int port = g_uri_get_port(static_cast<GUri*>(uris->data));
    g_slist_free_full(uris, GDestroyNotify(g_uri_unref));
    const auto with_port = [port](const std::string& name) {
        return name.empty() ? "" : name + ":" + std::to_string(port);
    };
    host_ = with_port(host);
    local_ = !all ? host_ : with_port(family == G_SOCKET_FAMILY_IPV6 ? "[::1]" : "127.0.0.1");
    remote_ = loopback_ ? "" : all ? with_port(network_address(family)) : host_;
    // Nobody reads a body, so none is kept, whoever sends it.
    soup_server_add_early_handler(
        server_.get(), nullptr,
        [](SoupServer*, SoupServerMessage* message, const char*, GHashTable*, gpointer) {
            soup_message_body_set_accumulate(soup_server_message_get_request_body(message), FALSE);
        },
        nullptr, nullptr);
    soup_server_add_handler(server_.get(), nullptr, handle, this, nullptr);
    ticks_ = g_timeout_add(
        250,
        [](gpointer self) -> gboolean {
            static_cast<Server*>(self)->tell_events();
            return G_SOURCE_CONTINUE;
        },
        this);
    return {};
}

// Browsers keep the cookies of all ports of a host together.
std::string Server::cookie() const {
    return "vartml-live-" + host_.substr(host_.rfind(':') + 1) + "=" + token_;
}

std::string Server::url_of(const std::string& host) const {
    return "http://" + host + "/" + (token_.empty() ? "" : "?token=" + token_);
}

namespace {

// In a time that says nothing of how much of it is right.
bool are_equal(std::string_view secret, std::string_view given) {
    unsigned char differs = secret.size() != given.size();
    for (size_t i = 0; i < given.size() && !secret.empty(); ++i)
        differs |= static_cast<unsigned char>(secret[i % secret.size()] ^ given[i]);
    return differs == 0;
}

}  // namespace

// A page from elsewhere must not use a browser of this machine as its hand: the request must be
// for an address of ours (a name that points here is not), and come from our page. Who comes from
// outside must know the token.
bool Server::allowed(SoupServerMessage* message, const char* path, GHashTable* query) const {
    SoupMessageHeaders* headers = soup_server_message_get_request_headers(message);
    const char* host = soup_message_headers_get_one(headers, "Host");
    const size_t colon = host_.rfind(':');
    const std::string port = host_.substr(colon);
    const auto is_own = [&](const std::string& name) {
        return name == host_ || name == "localhost" + port ||
               (port == ":80" && (name == host_.substr(0, colon) || name == "localhost"));
    };
    if (loopback_ && (!host || !is_own(host))) return false;
    const char* origin = soup_message_headers_get_one(headers, "Origin");
    if (origin && (!host || origin != std::string("http://") + host)) return false;
    // Pictures that a page embeds have no origin; browsers say whose page it is. Links lead here.
    const char* site = soup_message_headers_get_one(headers, "Sec-Fetch-Site");
    if (site && std::string_view(site) != "same-origin" && std::string_view(site) != "none" &&
        std::string_view(path) != "/")
        return false;
    if (token_.empty()) return true;
    const char* given = value_of(query, "token");
    if (given && are_equal(token_, given)) return true;
    const char* cookies = soup_message_headers_get_list(headers, "Cookie");
    const std::string wanted = cookie();
    const std::string all = cookies ? cookies : "";
    for (size_t at = 0; at < all.size();) {
        const size_t end = std::min(all.find(';', at), all.size());
        if (are_equal(wanted, all.substr(at, end - at))) return true;
        at = all.find_first_not_of(' ', end + 1);
    }
    return false;
}

void Server::handle(SoupServer*, SoupServerMessage* message, const char* path, GHashTable* query,
                    gpointer data) {
    auto& self = *static_cast<Server*>(data);
    // No page from elsewhere shows what is answered here.
    soup_message_headers_replace(soup_server_message_get_response_headers(message),
                                 "Cross-Origin-Resource-Policy", "same-origin");
    if (!self.allowed(message, path, query)) {
        answer(message, SOUP_STATUS_FORBIDDEN,
               "open the address that vartml-live printed, with its token\n");
        return;
    }
    const std::string route = soup_server_message_get_method(message) + std::string(" ") + path;
    if (route == "GET /") {
        self.page(message);
    } else if (route == "GET /address") {
        answer(message, SOUP_STATUS_OK, self.address());
    } else if (route == "GET /address.svg") {
        const std::string code = qr_svg(self.address());
        soup_server_message_set_status(message, SOUP_STATUS_OK, nullptr);
        soup_server_message_set_response(message, "image/svg+xml", SOUP_MEMORY_COPY, code.data(),
                                         code.size());
    } else if (!self.player_) {
        answer(message, SOUP_STATUS_SERVICE_UNAVAILABLE, "the pipeline is not made yet\n");
    } else if (route == "GET /video") {
        self.video(message);
    } else if (route == "GET /events") {
        self.events(message);
    } else if (route == "GET /status") {
        const std::string status = self.player_->status();
        soup_server_message_set_status(message, SOUP_STATUS_OK, nullptr);
        soup_server_message_set_response(message, "application/json", SOUP_MEMORY_COPY,
                                         status.data(), status.size());
    } else if (route == "POST /model" || route == "POST /threshold") {
        self.change(message, path, query);
    } else {
        answer(message, SOUP_STATUS_NOT_FOUND, "there is no " + route + "\n");
    }
}

void Server::page(SoupServerMessage* message) {
    GBytes* html =
        g_resources_lookup_data("/vartml/live/page.html", G_RESOURCE_LOOKUP_FLAGS_NONE, nullptr);
    gsize size = 0;
    const auto* text = static_cast<const char*>(g_bytes_get_data(html, &size));
    SoupMessageHeaders* headers = soup_server_message_get_response_headers(message);
    soup_message_headers_replace(
        headers, "Content-Security-Policy",
        "default-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'");
    if (!token_.empty()) {
        soup_message_headers_append(headers, "Set-Cookie",
                                    (cookie() + "; HttpOnly; SameSite=Strict; Path=/").c_str());
    }
    soup_server_message_set_status(message, SOUP_STATUS_OK, nullptr);
    soup_server_message_set_response(message, "text/html; charset=utf-8", SOUP_MEMORY_COPY, text,
                                     size);
    g_bytes_unref(html);
}

void Server::video(SoupServerMessage* message) {
    begin_stream(message, (std::string("multipart/x-mixed-replace; boundary=") + boundary).c_str());
    auto made = std::make_unique<Viewer>(this, message);
    Viewer* viewer = made.get();
    viewers_.push_back(std::move(made));
    g_signal_connect(message, "wrote-chunk", G_CALLBACK(+[](SoupServerMessage*, gpointer v) {
                         auto& one = *static_cast<Viewer*>(v);
                         one.server->feed(one);
                     }),
                     viewer);
    g_signal_connect(message, "finished", G_CALLBACK(+[](SoupServerMessage*, gpointer v) {
                         auto* one = static_cast<Viewer*>(v);
                         std::erase_if(one->server->viewers_,
                                       [one](const auto& each) { return each.get() == one; });
                     }),
                     viewer);
    // The first part: browsers show one when they see the boundary after it.
    append(message, std::string("--") + boundary + "\r\n");
    feed(*viewer);
}

// The newest picture, when the one before is written.
void Server::feed(Viewer& viewer) {
    uint64_t number = 0;
    const BytesPtr picture = player_->picture(number);
    viewer.waits = number == viewer.seen;
    if (viewer.waits) return;
    viewer.seen = number;
    gsize size = 0;
    const auto* bytes = static_cast<const char*>(g_bytes_get_data(picture.get(), &size));
    std::string part =
        "Content-Type: image/jpeg\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n";
    part.append(bytes, size);
    part += std::string("\r\n--") + boundary + "\r\n";
    append(viewer.message, part);
    soup_server_message_unpause(viewer.message);
}

void Server::feed_waiting() {
    for (const auto& viewer : viewers_) {
        if (viewer->waits) feed(*viewer);
    }
}

void Server::picture() {
    auto* late = new std::shared_ptr(self_);
    g_idle_add_full(
        G_PRIORITY_DEFAULT,
        [](gpointer data) -> gboolean {
            const auto& self = *static_cast<std::shared_ptr<std::atomic<Server*>>*>(data);
            if (Server* server = *self; server && server->player_) server->feed_waiting();
            return G_SOURCE_REMOVE;
        },
        late,
        [](gpointer data) { delete static_cast<std::shared_ptr<std::atomic<Server*>>*>(data); });
}

void Server::events(SoupServerMessage* message) {
    begin_stream(message, "text/event-stream");
    // One that does not read gets no more: what it was given is on its way first.
    g_signal_connect(message, "wrote-chunk", G_CALLBACK(+[](SoupServerMessage* m, gpointer self) {
                         static_cast<Server*>(self)->listeners_.insert(m);
                     }),
                     this);
    g_signal_connect(message, "finished", G_CALLBACK(+[](SoupServerMessage* m, gpointer self) {
                         static_cast<Server*>(self)->listeners_.erase(m);
                     }),
                     this);
    append(message, "retry: 1000\n\ndata: " + player_->status() + "\n\n");
    soup_server_message_unpause(message);
}

void Server::tell_events() {
    if (listeners_.empty()) return;
    const std::string text = "data: " + player_->status() + "\n\n";
    for (SoupServerMessage* message : std::exchange(listeners_, {})) {
        append(message, text);
        soup_server_message_unpause(message);
    }
}

void Server::change(SoupServerMessage* message, const char* path, GHashTable* query) {
    const bool model = path == std::string_view("/model");
    const char* name = model ? "index" : "score";
    const char* text = value_of(query, name);
    double number = 0;
    unsigned index = 0;
    const bool own = !model && text && text == std::string_view("model");
    if (!(text && (own || (model ? read(text, index) : read(text, number))))) {
        answer(message, SOUP_STATUS_BAD_REQUEST,
               std::string(path) + " needs " + name + "=, a number from 0\n");
        return;
    }
    const auto changed = model ? player_->set_model(index)
                               : player_->set_threshold(own ? std::nullopt : std::optional(number));
    if (changed) {
        soup_server_message_set_status(message, SOUP_STATUS_NO_CONTENT, nullptr);
    } else {
        answer(message, SOUP_STATUS_BAD_REQUEST, changed.error().message + "\n");
    }
}

}  // namespace live
