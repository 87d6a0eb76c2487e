// SPDX-License-Identifier: Apache-2.0
// What is known of a fleet at a moment: each camera and who has it, each worker and what it has.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "gst/fleet/store.h"

namespace vartml::fleet {

// nullptr: it was not there yet. Who looks makes none: its replicas are for who writes to say, and
// `leases` and `workers` are made by workers, which know their time to live.
struct Buckets {
    std::unique_ptr<Store> store;
    std::unique_ptr<Bucket> cameras, status, leases, workers;
    static Result<Buckets> open(const StoreSettings& settings);
    // Again for those that were not there.
    Result<void> look();
    // Makes `cameras` and `status` where they are not there.
    Result<void> make();
};

struct CameraState {
    std::string camera, worker;  // "": nobody's
    std::string state, reason, model;
    std::string uri;  // as it may be shown
    double frames_per_s = 0, p95_ms = 0;
    double cpu = 0;  // processors that it keeps busy
};

struct WorkerState {
    std::string worker, version;
    size_t capacity = 0, cameras = 0;
    double frames_per_s = 0, p95_ms = 0;  // of all its cameras, of the latest of them
    double cpu = 0;                       // with its own work
};

struct FleetState {
    std::vector<CameraState> cameras;
    std::vector<WorkerState> workers;
};

Result<FleetState> read_fleet(const Buckets& buckets);

}  // namespace vartml::fleet
