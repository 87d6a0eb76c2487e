// SPDX-License-Identifier: Apache-2.0
// A worker of a fleet: takes cameras by leases, and runs a program for each.
#pragma once
#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gst/fleet/capacity.h"
#include "gst/fleet/guard.h"
#include "gst/fleet/health.h"
#include "gst/fleet/models.h"
#include "gst/fleet/store.h"
#include "gst/fleet/watch.h"

namespace vartml::fleet {

struct WorkerSettings {
    StoreSettings store;
    std::string name;
    size_t capacity = 1;
    double p95_ms = 0;  // the capacity falls while cameras are later; 0: it stays
    int64_t ttl_ms = 10000;
    bool once = false;
    std::string health;                // HOST:PORT, "": none
    std::vector<std::string> program;  // for each camera; reads it from its standard input
    // It is vartml-camera: writes lines of JSON, and reads what else it is told.
    bool talks = false;
};

/// Who asks for a camera's picture asks there, with the camera behind it.
inline constexpr const char* picture_subject = "vartml.picture.";

/// Set by SIGTERM and SIGINT: give all cameras back, and end.
extern volatile std::sig_atomic_t drain;

class Worker {
public:
    static Result<std::unique_ptr<Worker>> open(WorkerSettings settings);
    /// Until it is drained, or, with `once`, each camera's program has ended. Returns the exit
    /// status.
    int run();

private:
    struct Owned {
        uint64_t epoch = 0;     // revision of the lease when it was taken
        uint64_t revision = 0;  // of the lease now
        uint64_t camera = 0;    // revision of what it is
        int64_t until_ms = 0;   // when the lease ends, of boot_ms
        Guard guard;
        std::string value = {};               // what it is, as JSON
        double frames_per_s = 0, p95_ms = 0;  // as its program says
        bool skips = false;                   // frames, for want of time
        double cpu_s = 0;                     // at the last announcement
        std::vector<std::string> asked = {};  // for a picture, who waits for it
        // Why it is given back, once its program has ended; until then its lease goes on.
        const char* given_back = nullptr;
        std::optional<std::string> line{};  // that its program printed and the list has not yet
        std::string last_line{};
        int64_t note_from_ms = 0;  // when the list may have it
    };
    // A camera that this worker leaves alone.
    struct Avoided {
        uint64_t camera = 0;  // revision: a change of it counts as a new camera
        unsigned failures = 0;
        int64_t until_ms = 0;
    };
    explicit Worker(WorkerSettings settings);
    void tick();
    void follow();
    void look();
    void announce();
    void listen(Owned& owned);
    void hear(Owned& owned, const std::string& line);
    void serve_pictures();
    bool swap_model(const std::string& camera, Owned& owned, const Watch::Seen& now);
    /// The camera as its program reads it; nothing while its model is on its way, or cannot be had.
    std::optional<std::string> input_of(const std::string& camera, const Watch::Seen& entry);
    void renew();
    Result<void> renew_one(const std::string& camera, Owned& owned);
    void reap();
    bool knows_all() const;
    void balance();
    /// The revision of a lease that may be taken, 0 for one that is not there; nothing where
    /// another worker has it.
    std::optional<uint64_t> open_lease(const std::string& camera) const;
    bool take(const std::string& camera, const Watch::Seen& entry, uint64_t lease);
    void release(const std::string& camera, uint64_t revision);
    void give_back(Owned& owned, const char* why);
    void lose(const std::string& camera, const char* why);
    void note(const std::string& camera, const char* state, const std::string& reason);
    bool avoids(const std::string& camera, uint64_t revision) const;
    double cpu_s() const;
    void publish_health();
    void drain_all();

    const WorkerSettings settings_;
    Capacity capacity_;
    Models models_;
    std::unique_ptr<Store> store_;
    std::unique_ptr<Bucket> leases_, workers_, status_;
    std::unique_ptr<Watch> cameras_, known_leases_, known_workers_;
    std::unique_ptr<Health> health_;
    std::map<std::string, Owned> own_;
    std::map<std::string, Avoided> avoided_;
    size_t share_ = 0, fleet_workers_ = 0;
    uint64_t taken_ = 0, lost_ = 0, failed_ = 0;
    double announced_cpu_s_ = 0;
    int64_t announced_ms_ = boot_ms();
    Result<uint64_t> announced_ =
        Error{ErrorCode::io, "the broker is away"};  // of the last announce()
    bool ready_ = false;
    bool silent_ = false;  // the broker did not answer a renewal
    uint64_t reconnects_ = 0;
    int64_t connected_ms_ = 0;  // when it was connected anew, of boot_ms; 0: it was always
    int64_t reopen_ms_ = 0;     // when all is told anew
};

}  // namespace vartml::fleet
