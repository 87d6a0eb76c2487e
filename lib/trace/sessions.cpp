// SPDX-License-Identifier: Apache-2.0
// Opening, joining and closing the trace of the process.
#include "lib/trace/sessions.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>

#include "lib/trace/writer.h"

namespace vartml {

std::atomic<uint32_t> profile_detail::trace_flags{0};

namespace profiling {

std::atomic<uint64_t> trace_generation{1};

namespace {

using profile_detail::trace_flags;

// Never destroyed: threads may record while the process ends.
struct Open {
    std::mutex mutex;  // guards all below; taken before the writer's
    std::shared_ptr<TraceSession> session;
    std::array<unsigned, 32> handles_of{};  // that want the flag with this bit
    unsigned handles = 0;
    bool is_prepared = false;
};

Open& open_trace() {
    static Open* const kept = new Open;
    return *kept;
}

// With the mutex.
void count(Open& o, uint32_t flags, int change) {
    o.handles += static_cast<unsigned>(change);
    uint32_t all = o.handles ? trace_flag::open : 0;
    for (unsigned bit = 0; bit < o.handles_of.size(); ++bit) {
        if (flags >> bit & 1) o.handles_of[bit] += static_cast<unsigned>(change);
        if (o.handles_of[bit]) all |= 1U << bit;
    }
    trace_flags.store(all, std::memory_order_relaxed);
}

void record_no_more() {
    trace_flags.fetch_and(trace_flag::open, std::memory_order_relaxed);
}

// With the mutex: nobody records any more, into whichever ring.
std::shared_ptr<TraceSession> end_session(Open& o) {
    trace_flags.store(0, std::memory_order_relaxed);
    trace_generation.fetch_add(1, std::memory_order_relaxed);
    o.handles_of = {};
    o.handles = 0;
    return std::exchange(o.session, nullptr);
}

void before_fork() {
    open_trace().mutex.lock();
}
void in_parent() {
    open_trace().mutex.unlock();
}
// The child has no writer: the trace stays the parent's, and the child may open its own.
void in_child() {
    (void)end_session(open_trace());
    open_trace().mutex.unlock();
}

void close_at_exit() {
    std::shared_ptr<TraceSession> session;
    {
        const std::lock_guard lock(open_trace().mutex);
        session = end_session(open_trace());
    }
    if (session) session->finish();
}

// With the mutex; once.
void prepare(Open& o) {
    if (std::exchange(o.is_prepared, true)) return;
    (void)pthread_atfork(before_fork, in_parent, in_child);
    (void)std::atexit(close_at_exit);
}

}  // namespace

TraceSession::TraceSession(std::unique_ptr<TraceWriter> made)
    : writer(std::move(made)), pid_(getpid()) {}

TraceSession::~TraceSession() {
    if (getpid() != pid_) (void)writer.release();  // its thread is the parent's
}

void TraceSession::finish() {
    if (getpid() == pid_ && !finished_.exchange(true)) writer->finish();
}

void TraceSession::flush() {
    if (getpid() == pid_ && !finished_) writer->flush();
}

std::pair<std::shared_ptr<TraceRing>, uint64_t> new_ring() {
    Open& o = open_trace();
    const std::lock_guard lock(o.mutex);
    const uint64_t generation = trace_generation.load(std::memory_order_relaxed);
    return {o.session ? o.session->writer->add_ring() : nullptr, generation};
}

}  // namespace profiling

Result<HostTrace> HostTrace::open(const std::string& path, const HostTraceOptions& options) {
    const uint32_t flags = options.flags & trace_flag::all;
    if (flags == 0) {
        return Error{ErrorCode::invalid_argument,
                     "trace " + path +
                         ": no flag of what to record is set; use frames, runs, "
                         "ops, queues, copies or allocs"};
    }
    profiling::Open& o = profiling::open_trace();
    const std::lock_guard lock(o.mutex);
    if (!o.session) {
        auto writer = profiling::TraceWriter::create(path, options, profiling::record_no_more);
        if (!writer) return writer.error();
        profiling::prepare(o);
        o.session = std::make_shared<profiling::TraceSession>(std::move(*writer));
        profiling::trace_generation.fetch_add(1, std::memory_order_relaxed);
    }
    profiling::count(o, flags, 1);
    return HostTrace(o.session, flags);
}

HostTrace::HostTrace(std::shared_ptr<profiling::TraceSession> session, uint32_t flags)
    : session_(std::move(session)), flags_(flags) {}
HostTrace::HostTrace(HostTrace&& other) noexcept = default;
HostTrace& HostTrace::operator=(HostTrace&& other) noexcept {
    if (this != &other) {
        close();
        session_ = std::move(other.session_);
        flags_ = other.flags_;
    }
    return *this;
}
HostTrace::~HostTrace() {
    close();
}

void HostTrace::close() {
    const std::shared_ptr<profiling::TraceSession> mine = std::exchange(session_, nullptr);
    if (!mine) return;
    profiling::Open& o = profiling::open_trace();
    bool is_last = false;
    {
        const std::lock_guard lock(o.mutex);
        if (o.session != mine) return;  // ended with the process
        is_last = o.handles == 1;
        if (is_last)
            (void)profiling::end_session(o);
        else
            profiling::count(o, flags_, -1);
    }
    if (is_last) mine->finish();
}

void HostTrace::flush() {
    if (session_) session_->flush();
}
HostTraceTotals HostTrace::totals() const {
    return session_ ? session_->writer->totals() : HostTraceTotals{};
}
const std::string& HostTrace::path() const {
    static const std::string* const none = new std::string;
    return session_ ? session_->writer->path() : *none;
}

}  // namespace vartml
