// SPDX-License-Identifier: Apache-2.0
// Health, readiness and figures of a worker over HTTP.
#pragma once
#include <memory>
#include <mutex>
#include <string>

#include <vartml/result.h>

#include "gst/fleet/http.h"

namespace vartml::fleet {

/// Answers GET of /healthz (the worker's loop runs), /readyz (it holds its line with the broker)
/// and /metrics (Prometheus).
class Health {
public:
    /// `address`: HOST:PORT of an address of this machine, such as 127.0.0.1:9090.
    static Result<std::unique_ptr<Health>> open(const std::string& address);
    Health(const Health&) = delete;
    Health& operator=(const Health&) = delete;
    /// Thread-safe. A worker that has not called this for `stale_ms` is not healthy.
    void publish(bool ready, std::string metrics, int64_t stale_ms);

private:
    Health() = default;
    HttpResponse answer(const std::string& path) const;

    mutable std::mutex mutex_;  // guards what follows
    bool ready_ = false;
    std::string metrics_;
    int64_t stale_at_ms_ = 0;

    std::unique_ptr<HttpServer> server_;  // ends first
};

}  // namespace vartml::fleet
