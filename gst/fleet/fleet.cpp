// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/fleet.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "gst/fleet/values.h"
#include "gst/support/address.h"

namespace vartml::fleet {
namespace {

using nlohmann::json;

// An object, whatever somebody else's client wrote.
json object_of(const std::string& text) {
    json value = json::parse(text, nullptr, false);
    return value.is_object() ? value : json::object();
}

std::string text_of(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_of(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

// In one bucket, if it is there.
Result<std::map<std::string, Entry>> all_of(const std::unique_ptr<Bucket>& bucket) {
    if (!bucket) return std::map<std::string, Entry>();
    return bucket->all(true);
}

CameraState state_of(const std::string& camera, const json& value, const json& said,
                     const std::string& owner) {
    CameraState row;
    row.camera = camera;
    row.worker = owner;
    row.uri = gst::without_login(text_of(value, "uri"));
    row.model = text_of(value, "model");
    row.state = text_of(said, "state");
    // A worker that was killed said nothing.
    if (row.state.empty() || (row.state == "running" && owner.empty()))
        row.state = owner.empty() ? "free" : "running";
    if (row.state != "ended") row.reason = text_of(said, "reason");
    return row;
}

}  // namespace

Result<Buckets> Buckets::open(const StoreSettings& settings) {
    auto store = Store::open(settings);
    if (!store) return store.error();
    Buckets all;
    all.store = std::move(*store);
    if (auto done = all.look(); !done) return done.error();
    return all;
}

Result<void> Buckets::look() {
    for (const auto& [name, bucket] : {std::pair{"cameras", &cameras},
                                       {"status", &status},
                                       {"leases", &leases},
                                       {"workers", &workers}}) {
        if (*bucket) continue;
        auto found = store->find_bucket(name);
        if (!found) return found.error();
        *bucket = std::move(*found);
    }
    return {};
}

Result<void> Buckets::make() {
    for (const auto& [name, bucket] : {std::pair{"cameras", &cameras}, {"status", &status}}) {
        auto made = store->bucket(name, 0);
        if (!made) return made.error();
        *bucket = std::move(*made);
    }
    return {};
}

Result<FleetState> read_fleet(const Buckets& buckets) {
    const auto cameras = all_of(buckets.cameras);
    if (!cameras) return cameras.error();
    const auto status = all_of(buckets.status);
    if (!status) return status.error();
    const auto leases = all_of(buckets.leases);
    if (!leases) return leases.error();
    const auto workers = all_of(buckets.workers);
    if (!workers) return workers.error();
    const auto text = [](const std::map<std::string, Entry>& all, const std::string& key) {
        const auto found = all.find(key);
        return found == all.end() ? std::string() : found->second.value;
    };
    FleetState fleet;
    std::map<std::string, json> loads;
    for (const auto& [name, entry] : *workers) {
        const json said = object_of(entry.value);
        WorkerState worker{name, text_of(said, "version"), count_of(entry.value, "capacity"),
                           count_of(entry.value, "cameras")};
        worker.cpu = number_of(said, "cpu");
        loads[name] = said.value("load", json::object());
        for (const json& load : loads[name]) {
            worker.frames_per_s += number_of(load, "frames_per_s");
            worker.p95_ms = std::max(worker.p95_ms, number_of(load, "p95_ms"));
        }
        fleet.workers.push_back(std::move(worker));
    }
    for (const auto& [camera, entry] : *cameras) {
        // The lease of a worker that died stays until another takes it.
        std::string owner = text(*leases, camera);
        if (!workers->contains(owner)) owner.clear();
        CameraState row =
            state_of(camera, object_of(entry.value), object_of(text(*status, camera)), owner);
        const json& all = loads[row.worker];
        if (const auto load = all.find(camera); load != all.end() && load->is_object()) {
            row.frames_per_s = number_of(*load, "frames_per_s");
            row.p95_ms = number_of(*load, "p95_ms");
            row.cpu = number_of(*load, "cpu");
        }
        fleet.cameras.push_back(std::move(row));
    }
    return fleet;
}

}  // namespace vartml::fleet
