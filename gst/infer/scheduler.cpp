// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "gst/infer/lane.h"
#include "gst/infer/trace.h"
#include "gst/support/runtime.h"

namespace vartml::gst::infer {
namespace {

constexpr unsigned largest_batch = 64;
constexpr auto retry_after = std::chrono::milliseconds(2);

RunResult lost_result() {
    const auto now = Clock::now();
    return {.status = vart::StatusCode::RUNTIME_ERROR,
            .because = "no run came back in time;",
            .device_lost = true,
            .started = now,
            .finished = now,
            .leads_batch = true};
}

// One lane for the runs of each scheduler, which it counts as one after another.
TraceLane next_trace_lane() {
    static std::atomic<uint32_t> schedulers{0};
    return TraceLane::of_device(0, 0, schedulers++ % 4096);
}

}  // namespace

Scheduler::Scheduler(std::shared_ptr<vart::Runner> runner, const Limits& limits)
    : runner_(std::move(runner)), limits_(limits), trace_lane_(next_trace_lane()) {
    if (operators_not_reported()) HostTrace::name_lane(trace_lane_, "device", "runs");
    for (unsigned i = 0; i < limits_.slots; ++i) {
        auto run = std::make_unique<Run>();
        run->scheduler = this;
        run->requests.reserve(limits_.batch);
        run->inputs.reserve(limits_.batch);
        run->outputs.reserve(limits_.batch);
        run->frames.reserve(limits_.batch);
        free_.push_back(run.get());
        runs_.push_back(std::move(run));
    }
    refused_.reserve(limits_.slots);
    seats_.resize(std::max(1u, limits_.at_once));
    thread_ = std::thread([this] { work(); });
    pthread_setname_np(thread_.native_handle(), "vartml-batch");
}

Scheduler::~Scheduler() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        changed_.notify_all();
    }
    thread_.join();
}

void Scheduler::join(Place& place) {
    const std::lock_guard lock(mutex_);
    places_.push_back(&place);
    streams_ = unsigned(places_.size());
}

void Scheduler::leave(Place& place) {
    const std::lock_guard lock(mutex_);
    std::erase(places_, &place);
    streams_ = unsigned(places_.size());
}

unsigned Scheduler::runs_per_turn() const {
    return std::max(1u, (streams_ + limits_.batch - 1) / limits_.batch);
}

unsigned Scheduler::runs_of_stream() const {
    return std::max(1u, std::min(limits_.at_once, limits_.slots) / std::max(1u, streams_.load()));
}

void Scheduler::submit(Place& place, Request* request, Clock::time_point due) {
    Run* run = nullptr;
    {
        const std::lock_guard lock(mutex_);
        request->due = due;
        if (!lost_) {
            place.waiting.push(request);
            ++waiting_;
            run = fill(Clock::now());
            // The thread looks after what waits, and after the deadline of what runs.
            if (run ? run->deadline < wake_ : due < wake_ && !free_.empty()) changed_.notify_all();
            request = nullptr;
        }
    }
    if (request) request->lane->finished(request, lost_result());
    if (run) start(run);
}

void Scheduler::hurry(Place& place) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < place.waiting.size(); ++i) place.waiting[i]->due = {};
    if (!place.waiting.empty()) changed_.notify_all();
}

bool Scheduler::withdraw(Place& place, Request* request) {
    const std::lock_guard lock(mutex_);
    if (!place.waiting.remove(request)) return false;
    --waiting_;
    return true;
}

Clock::time_point Scheduler::earliest_due() const {
    Clock::time_point earliest = Clock::time_point::max();
    for (Place* place : places_) {
        for (size_t i = 0; i < place->waiting.size(); ++i)
            earliest = std::min(earliest, place->waiting[i]->due);
    }
    return earliest;
}

// In turn, one of each place as long as others wait.
Scheduler::Run* Scheduler::fill(Clock::time_point now) {
    if (waiting_ == 0 || free_.empty()) return nullptr;
    if (waiting_ < limits_.batch && earliest_due() > now) return nullptr;
    Run* run = free_.back();
    free_.pop_back();
    while (waiting_ > 0 && run->requests.size() < limits_.batch) {
        Place& place = *places_[next_place_++ % places_.size()];
        if (place.waiting.empty()) continue;
        Request* request = place.waiting.pop();
        --waiting_;
        run->requests.push_back(request);
        run->inputs.push_back(std::move(request->inputs));
        run->outputs.push_back(std::move(request->outputs));
        run->frames.push_back(request->trace_frame);
    }
    next_place_ %= places_.size();
    run->running = true;
    run->submitted = now;
    run->deadline = now + limits_.deadline;
    return run;
}

void Scheduler::start(Run* run) {
    const FrameScope scope(run->frames);
    if (limits_.here) {
        const vart::StatusCode status = runner_->execute(run->inputs, run->outputs);
        end(*run, status, status == vart::StatusCode::SUCCESS ? std::string() : reason(), false);
        return;
    }
    // The runtime keeps the record of a finished job until it is waited for, once.
    if (const uint32_t job = std::exchange(run->job_id, 0)) {
        (void)runner_->wait({vart::StatusCode::SUCCESS, job}, std::chrono::milliseconds(0));
    }
    const vart::JobHandle handle = runner_->execute_async(
        run->inputs, run->outputs,
        [run](const vart::JobHandle& done) { run->scheduler->finished(*run, done); });
    // Accepted: the run may have ended and be another one already.
    if (handle.status == vart::StatusCode::SUCCESS) return;
    if (handle.status != vart::StatusCode::RESOURCE_UNAVAILABLE) {
        end(*run, handle.status, "the runtime refused the run", false);
        return;
    }
    const std::lock_guard lock(mutex_);
    refused_.push_back(run);
    changed_.notify_all();
}

// On a thread of the runtime, which has a slot for the next run now: the device does not wait for
// another thread to be woken.
void Scheduler::finished(Run& run, const vart::JobHandle& handle) {
    run.job_id = handle.job_id;
    std::string because;
    if (handle.status != vart::StatusCode::SUCCESS) {
        // The runtime tells the reason to who waits for the job.
        run.job_id = 0;
        (void)runner_->wait({vart::StatusCode::SUCCESS, handle.job_id},
                            std::chrono::milliseconds(0));
        because = reason();
    }
    if (Run* next = end(run, handle.status, std::move(because), true)) start(next);
}

// Why the last call of this thread failed, where the runtime says so.
std::string Scheduler::reason() const {
    std::string text = runner_property<std::string>(*runner_, "last_error").value_or("");
    return text.empty() ? text : text + ";";
}

// Frees the run first and tells the streams last: once they know, this object may be gone, unless a
// run is returned, whose requests keep it. `fill_next`: where requests wait, the run for them.
Scheduler::Run* Scheduler::end(Run& run, vart::StatusCode status, std::string because,
                               bool fill_next) {
    struct Ended {
        Request* request;
        Lane* lane;
    };
    std::array<Ended, largest_batch> ended;
    size_t count = 0;
    Run* next = nullptr;
    RunResult result;
    result.status = status;
    result.because = std::move(because);
    {
        const std::lock_guard lock(mutex_);
        for (size_t i = 0; i < run.requests.size(); ++i) {
            Request* request = run.requests[i];
            ended[count++] = {request, request->lane};
            request->inputs = std::move(run.inputs[i]);
            request->outputs = std::move(run.outputs[i]);
        }
        run.requests.clear();
        run.inputs.clear();
        run.outputs.clear();
        result.finished = Clock::now();
        // Runs are served in order: this one began when it was submitted, or when a seat was free.
        Clock::time_point& seat = *std::ranges::min_element(seats_);
        result.started = std::max(run.submitted, seat);
        seat = result.finished;
        trace_run(run, result);
        run.frames.clear();
        run.running = run.overdue = lost_ = false;
        free_.push_back(&run);
        if (fill_next && refused_.empty()) next = fill(result.finished);
        if (waiting_ > 0 || !refused_.empty()) changed_.notify_all();
    }
    result.batch_fill = unsigned(count);
    for (size_t i = 0; i < count; ++i) {
        const auto before = std::span(ended).first(i);
        result.leads_batch = std::ranges::find(before, ended[i].lane, &Ended::lane) == before.end();
        ended[i].lane->finished(ended[i].request, result);
    }
    return next;
}

// Where the runtime tells the trace nothing: the run as it looks from here.
void Scheduler::trace_run(const Run& run, const RunResult& result) const {
    if (!(HostTrace::flags() & trace_flag::runs) || !operators_not_reported()) return;
    HostTrace::slice(
        {.category = TraceCategory::npu, .name = "run", .lane = trace_lane_, .frames = run.frames},
        trace_ns(result.started), trace_ns(result.finished));
}

// A run that the device does not end keeps its slot and its tensors; the streams go on without it.
// Returns what waits for a device that gives nothing back.
std::vector<Request*> Scheduler::look_for_overdue(Clock::time_point now) {
    size_t lost = 0;
    for (const auto& run : runs_) {
        if (run->running && !run->overdue && run->deadline <= now &&
            std::find(refused_.begin(), refused_.end(), run.get()) == refused_.end()) {
            run->overdue = true;
            for (size_t i = 0; i < run->requests.size(); ++i) {
                const auto before = std::span(run->requests).first(i);
                Lane* const lane = run->requests[i]->lane;
                lane->overdue(run->requests[i],
                              std::ranges::find(before, lane, &Request::lane) == before.end());
            }
        }
        lost += run->overdue;
    }
    lost_ = lost == runs_.size();
    std::vector<Request*> stranded;
    for (Place* place : places_) {
        while (lost_ && !place->waiting.empty()) {
            --waiting_;
            stranded.push_back(place->waiting.pop());
        }
    }
    return stranded;
}

Clock::time_point Scheduler::wake_time() const {
    Clock::time_point wake = Clock::time_point::max();
    for (const auto& run : runs_) {
        if (run->running && !run->overdue) wake = std::min(wake, run->deadline);
    }
    if (!free_.empty()) wake = std::min(wake, earliest_due());
    if (!refused_.empty()) wake = std::min(wake, Clock::now() + retry_after);
    return wake;
}

void Scheduler::work() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
        Run* run = nullptr;
        if (!refused_.empty()) {
            run = refused_.back();
            refused_.pop_back();
            run->submitted = Clock::now();
            run->deadline = run->submitted + limits_.deadline;
        } else {
            run = fill(Clock::now());
        }
        if (run) {
            const size_t waited = refused_.size();
            lock.unlock();
            start(run);
            lock.lock();
            // Still no slot: an end of ours, or a moment, comes before the next try.
            if (refused_.size() <= waited) continue;
        }
        if (const auto stranded = look_for_overdue(Clock::now()); !stranded.empty()) {
            lock.unlock();
            for (Request* request : stranded) request->lane->finished(request, lost_result());
            lock.lock();
            continue;
        }
        wake_ = wake_time();
        if (wake_ == Clock::time_point::max()) {
            changed_.wait(lock);
        } else {
            changed_.wait_until(lock, wake_);
        }
        wake_ = Clock::time_point::min();
    }
}

}  // namespace vartml::gst::infer
