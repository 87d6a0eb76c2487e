// SPDX-License-Identifier: Apache-2.0
// What `vartml worker` and `vartml cameras` become: the program that links libnats.
// usage: vartml-worker JSON; people call vartml worker and vartml cameras.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <nlohmann/json.hpp>

#include <vartml/log.h>

#include "gst/fleet/cameras.h"
#include "gst/fleet/worker.h"

namespace {

using namespace vartml::fleet;

StoreSettings store_settings(const nlohmann::json& json) {
    StoreSettings settings;
    if (const char* const servers = std::getenv("NATS_URL")) settings.servers = servers;
    settings.servers = json.value("nats", settings.servers);
    settings.credentials_file = json.value("credentials", "");
    settings.ca_file = json.value("ca", "");
    settings.replicas = json.value("replicas", 1);
    settings.wait_ms = 3000;
    settings.name = "vartml cameras";
    return settings;
}

int run_worker(const nlohmann::json& json) {
    WorkerSettings settings;
    settings.store = store_settings(json);
    settings.name = json.value("name", "");
    settings.capacity = json.value("capacity", settings.capacity);
    settings.p95_ms = json.value("p95_ms", settings.p95_ms);
    settings.talks = json.value("talks", false);
    settings.ttl_ms = json.value("ttl_ms", settings.ttl_ms);
    settings.once = json.value("once", false);
    settings.health = json.value("health", "");
    settings.program = json.value("program", settings.program);
    const auto on_signal = [](int) { drain = 1; };
    struct sigaction action{};
    action.sa_handler = on_signal;
    ::sigaction(SIGTERM, &action, nullptr);
    ::sigaction(SIGINT, &action, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    auto worker = Worker::open(std::move(settings));
    if (!worker) {
        vartml::log(vartml::LogLevel::error, "worker", worker.error().message, true);
        return worker.error().code == vartml::ErrorCode::invalid_argument ? 2 : 1;
    }
    return (*worker)->run();
}

}  // namespace

int main(int argc, char** argv) {
    const auto json = argc == 2 ? nlohmann::json::parse(argv[1], nullptr, false) : nlohmann::json();
    if (!json.is_object()) {
        std::fputs("usage: vartml-worker JSON; people call vartml worker or vartml cameras\n",
                   stderr);
        return 2;
    }
    if (json.value("command", "") == "worker") return run_worker(json);
    return run_cameras(store_settings(json), argv[1]);
}
