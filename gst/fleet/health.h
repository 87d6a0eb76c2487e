// SPDX-License-Identifier: Apache-2.0
// Health, readiness and figures of a worker over HTTP.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <vartml/result.h>

namespace vartml::fleet {

/// Answers GET of /healthz (the worker's loop runs), /readyz (it holds its line with the broker)
/// and /metrics (Prometheus).
class Health {
public:
    /// `address`: HOST:PORT of an address of this machine, such as 127.0.0.1:9090.
    static Result<std::unique_ptr<Health>> open(const std::string& address);
    ~Health();
    Health(const Health&) = delete;
    Health& operator=(const Health&) = delete;
    /// Thread-safe. A worker that has not called this for `stale_ms` is not healthy.
    void publish(bool ready, std::string metrics, int64_t stale_ms);

private:
    Health() = default;
    void serve();
    std::string question_of(int fd) const;
    std::string answer(const std::string& path) const;

    int listen_ = -1, stop_[2] = {-1, -1};
    std::thread thread_;
    mutable std::mutex mutex_;  // guards what follows
    bool ready_ = false;
    std::string metrics_;
    int64_t stale_at_ms_ = 0;
};

}  // namespace vartml::fleet
