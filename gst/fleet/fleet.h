// SPDX-License-Identifier: Apache-2.0
// What is known of a fleet at a moment: each camera and who has it, each worker and what it has.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "gst/fleet/store.h"

namespace vartml::fleet {

struct Buckets {
    std::unique_ptr<Store> store;
    std::unique_ptr<Bucket> cameras, status;
    // Made by workers, which know their time to live; nullptr: there was none yet.
    std::unique_ptr<Bucket> leases, workers;
    static Result<Buckets> open(const StoreSettings& settings);
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
