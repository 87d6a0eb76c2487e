// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/health.h"

#include <utility>

#include "gst/fleet/guard.h"

namespace vartml::fleet {

Result<std::unique_ptr<Health>> Health::open(const std::string& address) {
    std::unique_ptr<Health> self(new Health);
    auto server = HttpServer::open(
        "--health", address,
        [health = self.get()](const HttpRequest& request) { return health->answer(request.path); });
    if (!server) return server.error();
    self->server_ = std::move(*server);
    return self;
}

void Health::publish(bool ready, std::string metrics, int64_t stale_ms) {
    const std::lock_guard lock(mutex_);
    ready_ = ready;
    metrics_ = std::move(metrics);
    stale_at_ms_ = boot_ms() + stale_ms;
}

HttpResponse Health::answer(const std::string& path) const {
    // given: Prometheus's text format
    constexpr const char* metrics = "text/plain; version=0.0.4";
    constexpr const char* away = "503 Service Unavailable";
    const std::lock_guard lock(mutex_);
    const bool healthy = boot_ms() < stale_at_ms_;
    if (path == "/healthz") {
        if (healthy) return {.body = "healthy\n"};
        return {.status = away, .body = "the worker's loop hangs\n"};
    }
    if (path == "/readyz") {
        if (healthy && ready_) return {.body = "ready\n"};
        return {.status = away, .body = "no line with the broker\n"};
    }
    if (path == "/metrics") return {.type = metrics, .body = metrics_};
    return {.status = "404 Not Found", .body = "known: /healthz /readyz /metrics\n"};
}

}  // namespace vartml::fleet
