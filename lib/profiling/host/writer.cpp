// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/host/writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>

#include <vartml/log.h>

#include "lib/profiling/clock.h"
#include "lib/profiling/host/build.h"
#include "lib/profiling/host/lanes.h"

namespace vartml::profiling {
namespace {

constexpr auto longest_wait = std::chrono::milliseconds(200);
constexpr size_t text_bytes = 256 * 1024;
constexpr const char* host_process = "HOST_PROC";

std::string boot_id() {
    const auto text = read_file("/proc/sys/kernel/random/boot_id", 100);
    if (!text) return {};
    return text->substr(0, text->find('\n'));
}

uint64_t realtime_ns() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(now.tv_nsec);
}

std::string name_of_this_thread() {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    return name;
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::create(const std::string& path,
                                                         const HostTraceOptions& options,
                                                         void (*when_full)()) {
    Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file) return system_error(path, "create the trace", errno);
    std::unique_ptr<TraceWriter> writer(new TraceWriter(path, options, std::move(file), when_full));
    writer->thread_ = std::thread([w = writer.get()] { w->work(); });
    return writer;
}

TraceWriter::TraceWriter(std::string path, const HostTraceOptions& options, Fd file,
                         void (*when_full)())
    : path_(std::move(path)),
      max_bytes_(options.max_bytes),
      ring_bytes_(size_t{options.ring_kb ? options.ring_kb : 256} * 1024),
      pid_(static_cast<uint32_t>(getpid())),
      when_full_(when_full),
      file_(std::move(file)) {
    text_.reserve(text_bytes + 16 * 1024);
    json_.header({boot_id(), pid_, monotonic_ns(), realtime_ns(), options.not_captured});
    put();
}

TraceWriter::~TraceWriter() {
    if (thread_.joinable()) finish();
}

std::shared_ptr<TraceRing> TraceWriter::add_ring() {
    const auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
    const std::lock_guard lock(mutex_);
    return rings_.emplace_back(std::make_shared<TraceRing>(ring_bytes_, tid, name_of_this_thread(),
                                                           num_rings_++, doorbell_));
}

void TraceWriter::flush() {
    // The pass in progress may be past a ring: the one after it is waited for.
    const uint64_t wanted = passes_.load(std::memory_order_acquire) + 2;
    for (uint64_t now = 0; (now = passes_.load(std::memory_order_acquire)) < wanted;) {
        doorbell_->ring();
        passes_.wait(now, std::memory_order_acquire);
    }
}

void TraceWriter::finish() {
    stops_.store(true, std::memory_order_release);
    doorbell_->ring();
    thread_.join();
    const HostTraceTotals t = totals();
    if (t.lost == 0) return;
    log(LogLevel::warning, "",
        path_ + ": " + std::to_string(t.lost) +
            " events were lost because the ring of their thread was full; make rings larger");
}

HostTraceTotals TraceWriter::totals() const {
    HostTraceTotals t{written_, lost_of_ended_, bytes_, is_full_};
    const std::lock_guard lock(mutex_);
    for (const auto& ring : rings_) t.lost += ring->lost();
    return t;
}

void TraceWriter::work() {
    pthread_setname_np(pthread_self(), "vartml-trace");
    while (!stops_.load(std::memory_order_acquire)) {
        doorbell_->wait(longest_wait);
        drain();
        passes_.fetch_add(1, std::memory_order_release);
        passes_.notify_all();
    }
    drain();
    json_.end();
    put();
    file_.reset();
    passes_.fetch_add(2, std::memory_order_release);  // whoever waits in flush()
    passes_.notify_all();
}

void TraceWriter::drain() {
    {
        const std::lock_guard lock(mutex_);
        draining_ = rings_;
    }
    for (const auto& ring : draining_) {
        const bool is_last = ring->is_retired();
        drain(*ring);
        if (!is_last) continue;
        const std::lock_guard lock(mutex_);
        lost_of_ended_ += ring->lost();
        std::erase(rings_, ring);
    }
    draining_.clear();
    put();
}

void TraceWriter::drain(TraceRing& ring) {
    const TraceLane own{pid_, ring.tid};
    ring.drain([&](const std::byte* record) {
        if (is_full_.load(std::memory_order_relaxed)) return;
        const RecordView view(record);
        if (!view.header->tid && named_.insert({pid_, ring.tid}).second) name_thread(ring);
        take(view, own);
        if (text_.size() >= text_bytes) put();
    });
    if (told_lost_.size() <= ring.ordinal) told_lost_.resize(ring.ordinal + 1);
    const uint64_t lost = ring.lost() - told_lost_[ring.ordinal];
    if (lost == 0) return;
    told_lost_[ring.ordinal] += lost;
    note("lost events", own, {{"events", lost}, {"reason", TraceText("ring full")}});
}

void TraceWriter::take(const RecordView& record, TraceLane own) {
    const RecordHeader& h = *record.header;
    if (h.tid && named_.insert({h.pid, h.tid}).second) {
        if (const auto name = lane_name({h.pid, h.tid})) json_.names(h.pid, h.tid, *name);
    }
    json_.event(record, own);
}

void TraceWriter::name_thread(const TraceRing& ring) {
    // Threads in the order in which they came.
    json_.names(pid_, ring.tid,
                {host_process, ring.thread_name.empty() ? "thread" : ring.thread_name,
                 static_cast<int>(ring.ordinal)});
}

// An event of the writer's own, on a lane of others.
void TraceWriter::note(TraceText name, TraceLane lane, std::initializer_list<TraceArg> args) {
    if (is_full_.load(std::memory_order_relaxed)) return;
    TraceEvent event{.category = TraceCategory::meta, .name = name, .lane = lane};
    event.args = {args.begin(), args.size()};
    alignas(8) std::byte record[1024];
    const size_t size = record_bytes(event);
    build_record(record, size, 'i', event, monotonic_ns(), 0);
    json_.event(RecordView(record), lane);
}

// Hands the text to the system, and stops at the wanted size.
void TraceWriter::put() {
    if (text_.empty()) return;
    std::string_view rest = text_;
    while (!rest.empty()) {
        const ssize_t n = ::write(file_.get(), rest.data(), rest.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        rest.remove_prefix(static_cast<size_t>(n));
    }
    const int reason = errno;
    const bool failed = !rest.empty();
    bytes_ += failed ? keep_whole_events(text_.size() - rest.size()) : text_.size();
    written_.store(json_.events() - left_out_, std::memory_order_relaxed);
    text_.clear();
    if (is_full_.load(std::memory_order_relaxed)) return;
    if (failed) {
        log(LogLevel::error, "", system_error(path_, "write the trace", reason).message);
        stop("write error");
    } else if (max_bytes_ && bytes_ >= max_bytes_) {
        stop("max-bytes reached");
    }
}

// Of the text, of which so many bytes are in the file: what follows would make half an event a
// fault in the middle. The bytes that stay.
size_t TraceWriter::keep_whole_events(size_t written) {
    const size_t comma = text_.rfind(",\n", written);
    const size_t end = comma == text_.npos ? 0 : comma;
    left_out_ += static_cast<uint64_t>(std::ranges::count(text_.substr(end), '\n'));
    const auto size = static_cast<off_t>(bytes_ + end);
    // What is no file, as a pipe, keeps what it has got.
    if (::ftruncate(file_.get(), size) != 0 || ::lseek(file_.get(), size, SEEK_SET) < 0)
        return written;
    return end;
}

void TraceWriter::stop(TraceText why) {
    note("recording stopped", {pid_, pid_}, {{"reason", why}});
    is_full_.store(true, std::memory_order_relaxed);
    when_full_();
    put();
}

}  // namespace vartml::profiling
