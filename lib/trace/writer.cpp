// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>

#include <vartml/log.h>
#include <vartml/version.h>

#include "lib/base/json.h"
#include "lib/trace/clock.h"
#include "lib/trace/ring.h"
#include "lib/trace/text.h"

namespace vartml::profiling {
namespace {

constexpr const char* categories[] = {"gst", "queue", "host", "npu", "cpu", "frame", "meta"};

template <typename Number>
void append(std::string& out, Number number) {
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, number);
    out.append(text, end);
}

void append_frame(std::string& out, uint64_t flow_id) {
    const FrameKey key(flow_id);
    out += '"';
    append(out, key.stream());
    out += ':';
    append(out, key.number());
    out += '"';
}

}  // namespace

void TraceJson::begin(char phase) {
    out_ += events_++ ? ",\n{\"ph\":\"" : "[\n{\"ph\":\"";
    out_ += phase;
    out_ += '"';
}

void TraceJson::lane(TraceLane lane) {
    out_ += ",\"pid\":";
    append(out_, lane.pid);
    out_ += ",\"tid\":";
    append(out_, lane.tid);
}

void TraceJson::metadata(std::string_view what, uint32_t pid, uint32_t tid) {
    begin('M');
    out_ += ",\"name\":";
    append_quoted(out_, what);
    lane({pid, tid});
    out_ += ",\"args\":";
}

void TraceJson::header(const TraceHeader& h) {
    metadata("vartml_capture", h.pid, h.pid);
    JsonText json(out_);
    json.open('{');
    json.member("version", version());
    json.member("clock", "CLOCK_MONOTONIC");
    json.member("boot_id", h.boot_id);
    json.member("pid", h.pid);
    json.member("start_monotonic_ns", h.start_monotonic_ns);
    json.member("start_realtime_ns", h.start_realtime_ns);
    json.list("not_captured", h.not_captured);
    json.close('}');
    out_ += '}';
}

void TraceJson::names(uint32_t pid, uint32_t tid, const LaneName& name) {
    const auto named = [&](std::string_view what, std::string_view key, const auto& value) {
        metadata(what, pid, tid);
        JsonText json(out_);
        json.open('{');
        json.member(key, value);
        json.close('}');
        out_ += '}';
    };
    named("process_name", "name", std::string_view(name.process));
    named("thread_name", "name", std::string_view(name.thread));
    named("thread_sort_index", "sort_index", name.sort_index);
}

// False: the value is not one, nothing is written.
bool TraceJson::value(const RecordArg& arg, const char*& text) {
    const auto kind = static_cast<TraceArg::Kind>(arg.kind);
    const double number = std::bit_cast<double>(arg.value);
    if (kind == TraceArg::Kind::number && !std::isfinite(number)) return false;
    if (kind == TraceArg::Kind::frame && arg.value == FrameKey::none) return false;
    append_quoted(out_, arg.key);
    out_ += ':';
    switch (kind) {
        case TraceArg::Kind::integer:
            append(out_, static_cast<int64_t>(arg.value));
            break;
        case TraceArg::Kind::natural:
            append(out_, arg.value);
            break;
        case TraceArg::Kind::number:
            append(out_, number);
            break;
        case TraceArg::Kind::text:
            append_quoted(out_, reinterpret_cast<const char*>(arg.value));
            break;
        case TraceArg::Kind::copied:
            append_quoted(out_, {text, arg.size});
            text += arg.size;
            break;
        case TraceArg::Kind::microseconds:
            append_us(out_, arg.value);
            break;
        case TraceArg::Kind::frame:
            append_frame(out_, arg.value);
            break;
        case TraceArg::Kind::job:
            out_ += '"';
            append(out_, arg.value >> 52);
            out_ += '/';
            append(out_, arg.value >> 40 & 0xFFF);
            out_ += '/';
            append(out_, arg.value & ((uint64_t{1} << 40) - 1));
            out_ += '"';
            break;
    }
    return true;
}

void TraceJson::arguments(const RecordView& record) {
    out_ += ",\"args\":{";
    const size_t start = out_.size();
    const char* text = record.text;
    for (const RecordArg& arg : record.args) {
        if (out_.size() > start && out_.back() != ',') out_ += ',';
        value(arg, text);
    }
    const auto member = [&](const char* one, const char* many, const auto& write) {
        if (record.frames.empty()) return;
        const bool is_list = record.frames.size() > 1;
        if (out_.size() > start && out_.back() != ',') out_ += ',';
        append_quoted(out_, is_list ? many : one);
        out_ += is_list ? ":[" : ":";
        for (const RecordFrame& frame : record.frames) {
            if (&frame != record.frames.data()) out_ += ',';
            write(frame);
        }
        if (is_list) out_ += ']';
    };
    const auto has_key = [](const RecordFrame& f) { return f.flow_id != FrameKey::none; };
    const auto has_seq = [](const RecordFrame& f) { return (f.seq & seq_mask) != seq_mask; };
    const auto all = [&](const auto& has) {
        for (const RecordFrame& frame : record.frames)
            if (!has(frame)) return false;
        return true;
    };
    if (all(has_key))
        member("frame", "frames", [&](const RecordFrame& f) { append_frame(out_, f.flow_id); });
    if (all(has_seq))
        member("frameSeq", "frameSeqs",
               [&](const RecordFrame& f) { append(out_, f.seq & seq_mask); });
    if (out_.size() > start && out_.back() == ',') out_.pop_back();
    out_ += '}';
}

// At the start of the slice, behind it in the file: readers bind it to the slice that is open then.
void TraceJson::arrow(const RecordFrame& frame, const RecordHeader& header, TraceLane where) {
    constexpr char phases[] = {0, 's', 't', 'f'};
    const auto kind = static_cast<unsigned>(frame.seq >> 56);
    if (kind == 0 || kind >= sizeof phases || frame.flow_id == FrameKey::none) return;
    begin(phases[kind]);
    out_ += ",\"cat\":\"frame\",\"name\":\"frame\",\"id\":";
    append(out_, frame.flow_id);
    lane(where);
    out_ += ",\"ts\":";
    append_us(out_, header.at_ns);
    out_ += ",\"bp\":\"e\"}";
}

void TraceJson::event(const RecordView& record, TraceLane own) {
    const RecordHeader& h = *record.header;
    const TraceLane where = h.tid ? TraceLane{h.pid, h.tid} : own;
    begin(h.phase);
    out_ += ",\"cat\":\"";
    out_ += categories[h.category];
    out_ += "\",\"name\":";
    append_quoted(out_, h.name);
    lane(where);
    out_ += ",\"ts\":";
    append_us(out_, h.at_ns);
    if (h.phase == 'X') {
        out_ += ",\"dur\":";
        append_us(out_, h.extra);
    } else if (h.phase == 'i') {
        out_ += ",\"s\":\"t\"";
    } else {
        out_ += ",\"id\":";
        append(out_, h.extra);
    }
    if (h.num_args || h.num_frames) arguments(record);
    out_ += '}';
    for (const RecordFrame& frame : record.frames) arrow(frame, h, where);
}

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
