// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/page.h"

#include <arpa/inet.h>
#include <glib.h>
#include <signal.h>

#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include <vartml/log.h>

#include "gst/fleet/http.h"
#include "gst/fleet/values.h"
#include "gst/fleet/worker.h"

namespace vartml::fleet {
namespace {

using nlohmann::json;

constexpr int64_t picture_ms = 3000;

json json_of(const FleetState& fleet) {
    json cameras = json::array(), workers = json::array();
    for (const CameraState& c : fleet.cameras)
        cameras.push_back({{"camera", c.camera},
                           {"worker", c.worker},
                           {"state", c.state},
                           {"reason", c.reason},
                           {"uri", c.uri},
                           {"model", c.model},
                           {"frames_per_s", c.frames_per_s},
                           {"p95_ms", c.p95_ms},
                           {"cpu", c.cpu}});
    for (const WorkerState& w : fleet.workers)
        workers.push_back({{"worker", w.worker},
                           {"version", w.version},
                           {"capacity", w.capacity},
                           {"cameras", w.cameras},
                           {"frames_per_s", w.frames_per_s},
                           {"p95_ms", w.p95_ms},
                           {"cpu", w.cpu}});
    return {{"cameras", cameras}, {"workers", workers}};
}

// Called by the server's thread alone.
class Page {
public:
    Page(const StoreSettings& settings, std::string host)
        : settings_(settings), own_host_(std::move(host)) {}

    HttpResponse answer(const HttpRequest& request) {
        if (!is_own(request.host))
            return {.status = "403 Forbidden",
                    .body =
                        "this page is called by an address, localhost or the name that it was "
                        "given\n"};
        if (request.path == "/")
            return {.type = "text/html; charset=utf-8",
                    .body = std::string(page_files().front().text)};
        if (request.path == "/fleet.json") return fleet();
        if (request.path == "/picture") return picture(percent_decoded(request.query));
        return {.status = "404 Not Found", .body = "known: / /fleet.json /picture?CAMERA\n"};
    }

private:
    // A page of another site that has its name lead here must not read ours.
    bool is_own(const std::string& host) const {
        const bool literal = host.starts_with('[');
        const std::string name =
            literal ? host.substr(1, host.find(']') - 1) : host.substr(0, host.rfind(':'));
        unsigned char address[16];
        return ::inet_pton(AF_INET, name.c_str(), address) == 1 ||
               ::inet_pton(AF_INET6, name.c_str(), address) == 1 || name == "localhost" ||
               name == own_host_;
    }
    HttpResponse failed(const std::string& why) {
        buckets_.reset();  // and connect anew
        return {.status = "503 Service Unavailable", .body = why + "\n"};
    }
    Result<void> connect() {
        if (buckets_) return buckets_->look();
        auto opened = Buckets::open(settings_);
        if (!opened) return opened.error();
        buckets_ = std::move(*opened);
        return {};
    }
    HttpResponse fleet() {
        if (auto done = connect(); !done) return failed(done.error().message);
        const auto state = read_fleet(*buckets_);
        if (!state) return failed(state.error().message);
        return {.type = "application/json",
                .body = json_of(*state).dump(-1, ' ', false, json::error_handler_t::replace)};
    }
    HttpResponse picture(const std::string& camera) {
        constexpr const char* none = "404 Not Found";
        if (!is_key(camera)) return {.status = none, .body = "there is no such camera\n"};
        if (auto done = connect(); !done) return failed(done.error().message);
        const auto text = buckets_->store->ask(picture_subject + camera, picture_ms);
        if (!text) return {.status = none, .body = "no worker has a picture of this camera\n"};
        const std::string code = text_of(*text, "picture");
        if (code.empty()) {
            const std::string reason = text_of(*text, "reason");
            return {.status = none, .body = (reason.empty() ? "no picture" : reason) + "\n"};
        }
        gsize size = 0;
        guchar* const bytes = g_base64_decode(code.c_str(), &size);
        HttpResponse response{.type = "image/jpeg",
                              .body = std::string(reinterpret_cast<char*>(bytes), size)};
        g_free(bytes);
        return response;
    }

    const StoreSettings settings_;
    const std::string own_host_;
    std::optional<Buckets> buckets_;
};

}  // namespace

int serve_page(const StoreSettings& settings, const std::string& address) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    Page page(settings, address.substr(0, address.rfind(':')));
    const auto server = HttpServer::open(
        "cameras page", address, [&](const HttpRequest& request) { return page.answer(request); });
    if (!server) {
        log(LogLevel::error, "cameras", server.error().message, true);
        return server.error().code == ErrorCode::invalid_argument ? 2 : 1;
    }
    std::printf("http://%s/\n", address.c_str());
    std::fflush(stdout);
    int number = 0;
    ::sigwait(&ends, &number);
    return 0;
}

}  // namespace vartml::fleet
