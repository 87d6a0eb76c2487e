// SPDX-License-Identifier: Apache-2.0
// Turns requests of any number of streams into runs of one model: fills batches in turn, bounds the
// runs in flight, and gives up on a run that the device does not end.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "gst/infer/request.h"

namespace vartml::gst::infer {

struct RunResult;

// Thread-safety: all members may be called concurrently, with no signal's mutex held. Locks: the
// own mutex may be held while a signal's is taken, never the other way round; no call of the
// runtime is made under either.
class Scheduler {
public:
    struct Limits {
        unsigned batch = 1;                                   // requests per run
        unsigned slots = 2;                                   // runs in flight
        Clock::duration deadline = std::chrono::seconds(10);  // longest run
        // Runs are shorter than the way to another thread and back: they are made on the thread
        // that submits, which no device keeps waiting.
        bool here = false;
        unsigned at_once = 1;  // runs that the device makes beside each other
    };
    Scheduler(std::shared_ptr<vart::Runner> runner, const Limits& limits);
    // Every request has come back.
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    // The place of a stream in the order of turns.
    struct Place {
        Ring<Request*> waiting;  // guarded by the scheduler's mutex
    };
    void join(Place& place);
    void leave(Place& place);  // with nothing waiting

    // The request comes back through Lane::finished(): after its run, or when the device is lost.
    void submit(Place& place, Request* request, Clock::time_point due);
    // What waits at this place goes now, whether batches are full or not.
    void hurry(Place& place);
    // Takes a request back that has not been given to the runtime. False: it has.
    bool withdraw(Place& place, Request* request);

    // Runs that a request may have to wait for when each stream has one, its own included.
    unsigned runs_per_turn() const;
    // Runs that the device makes beside each other for one stream when each stream has as many.
    unsigned runs_of_stream() const;

private:
    struct Run {
        Scheduler* scheduler = nullptr;
        std::vector<Request*> requests;
        std::vector<std::vector<vart::NpuTensor>> inputs, outputs;  // [batch][tensor]
        std::vector<TraceFrame> frames;
        uint32_t job_id = 0;  // record at the runtime that is let go before the next use
        Clock::time_point submitted, deadline;
        bool running = false, overdue = false;
    };

    void work();
    Run* fill(Clock::time_point now);  // with the mutex; nullptr: nothing to start
    void start(Run* run);              // without
    void trace_run(const Run& run, const RunResult& result) const;
    void finished(Run& run, const vart::JobHandle& handle);
    std::string reason() const;
    Run* end(Run& run, vart::StatusCode status, std::string because, bool fill_next);
    std::vector<Request*> look_for_overdue(Clock::time_point now);  // with the mutex
    Clock::time_point wake_time() const;                            // with the mutex
    Clock::time_point earliest_due() const;                         // with the mutex

    const std::shared_ptr<vart::Runner> runner_;
    const Limits limits_;
    std::mutex mutex_;  // guards all below
    std::condition_variable changed_;
    std::vector<std::unique_ptr<Run>> runs_;
    std::vector<Run*> free_;
    std::vector<Run*> refused_;  // the runtime had no slot: tried again
    std::vector<Place*> places_;
    std::atomic<unsigned> streams_{0};  // size of places_, for those without the mutex
    size_t next_place_ = 0, waiting_ = 0;
    std::vector<Clock::time_point> seats_;               // of the device: when each was last free
    const TraceLane trace_lane_;                         // of runs that the runtime does not report
    Clock::time_point wake_ = Clock::time_point::min();  // when the thread looks again by itself
    bool lost_ = false;  // no run came back in time: nothing more is given to the device
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace vartml::gst::infer
