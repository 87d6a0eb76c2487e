// SPDX-License-Identifier: Apache-2.0
#include "lib/opstats/latency.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/trace/text.h"

namespace vartml::profiling {

std::optional<Execution> execution_of(const Capture& capture) {
    std::optional<Execution> execution;
    for (const ThreadCapture& thread : capture.threads) {
        if (thread.end == 0 || thread.end < thread.start) continue;
        if (!execution) execution = Execution{thread.start, thread.end};
        execution->begin_ns = std::min(execution->begin_ns, thread.start);
        execution->end_ns = std::max(execution->end_ns, thread.end);
    }
    return execution;
}

std::optional<double> longest_wait_us(const Capture& capture, bool is_output) {
    std::optional<double> longest;
    for (const PortWait& port : capture.ports)
        if (port.is_output == is_output && port.wait_ns != not_captured)
            longest = std::max(longest.value_or(0), static_cast<double>(port.wait_ns) / 1000.0);
    return longest;
}

// Welford's recurrence: the mean of squares minus the square of the mean loses all digits of a
// small deviation.
void RunningStats::add(double value) {
    min_ = count_ ? std::min(min_, value) : value;
    max_ = count_ ? std::max(max_, value) : value;
    ++count_;
    const double distance = value - mean_;
    mean_ += distance / static_cast<double>(count_);
    squares_ += distance * (value - mean_);
}

void RunningStats::add(const RunningStats& other) {
    if (other.count_ == 0) return;
    if (count_ == 0) {
        *this = other;
        return;
    }
    const auto a = static_cast<double>(count_), b = static_cast<double>(other.count_);
    const double distance = other.mean_ - mean_;
    mean_ += distance * b / (a + b);
    squares_ += other.squares_ + distance * distance * a * b / (a + b);
    count_ += other.count_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
}

double RunningStats::deviation() const {
    return count_ ? std::sqrt(squares_ / static_cast<double>(count_)) : 0;
}

void DeviceStats::add(const Capture& capture) {
    if (const auto execution = execution_of(capture)) execution_us.add(execution->us());
    if (const auto wait = longest_wait_us(capture, false)) input_wait_us.add(*wait);
    if (const auto wait = longest_wait_us(capture, true)) output_wait_us.add(*wait);
}

void DeviceStats::add(const DeviceStats& other) {
    execution_us.add(other.execution_us);
    input_wait_us.add(other.input_wait_us);
    output_wait_us.add(other.output_wait_us);
}

namespace {

constexpr const char* absent = "N/A";

std::string decimal(std::optional<double> value) {
    return value ? format_text("%.3f", *value) : absent;
}

std::string whole(std::optional<uint64_t> value) {
    return value ? std::to_string(*value) : absent;
}

struct Row {
    const LatencyHeader& header;
    const Capture& capture;
    size_t sample;

    // Between two stamps of the host; a stage that did not happen has none.
    std::string host(size_t from, size_t to) const {
        const uint64_t a = capture.host[from], b = capture.host[to];
        if (!capture.has_host || a == 0 || b < a || b == not_captured) return absent;
        return decimal(static_cast<double>(b - a) / 1000.0);
    }
    const FrameRecord* frame() const {
        return capture.frames.empty() ? nullptr : &capture.frames.front();
    }
};

struct Column {
    std::string_view name;
    std::string (*text)(const Row&);
};

// Up to numInfInQueue the public columns.
constexpr Column columns[] = {
    {"Sample", [](const Row& r) { return std::to_string(r.sample); }},
    {"devInfPerSec",
     [](const Row& r) {
         const auto execution = execution_of(r.capture);
         if (!execution || execution->us() <= 0) return std::string(absent);
         return decimal(r.header.stats_batchsize * 1e6 / execution->us());
     }},
    {"devExecUs",
     [](const Row& r) {
         const auto execution = execution_of(r.capture);
         return decimal(execution ? std::optional(execution->us()) : std::nullopt);
     }},
    {"devInWaitTimeUs", [](const Row& r) { return decimal(longest_wait_us(r.capture, false)); }},
    {"devOutWaitTimeUs", [](const Row& r) { return decimal(longest_wait_us(r.capture, true)); }},
    {"hostRoundTripUs", [](const Row& r) { return r.host(4, 6); }},
    {"enqTimeUs", [](const Row& r) { return r.host(0, 1); }},
    {"preProcTimeUs", [](const Row& r) { return r.host(2, 3); }},
    {"submitTimeUs", [](const Row& r) { return r.host(3, 4); }},
    {"execTotalUs", [](const Row& r) { return r.host(3, 6); }},
    {"exectoVcUs", [](const Row& r) { return r.host(4, 5); }},
    {"execToCompleteUs", [](const Row& r) { return r.host(5, 6); }},
    {"postProcUs", [](const Row& r) { return r.host(6, 7); }},
    {"totalRoundtripTimeUs", [](const Row& r) { return r.host(0, 8); }},
    {"queueDepth",
     [](const Row& r) { return r.capture.has_host ? whole(r.capture.queue_depth) : absent; }},
    {"numInfInQueue",
     [](const Row& r) { return r.capture.has_host ? whole(r.capture.jobs_in_queue) : absent; }},
    // ours
    {"queueWaitUs", [](const Row& r) { return r.host(1, 2); }},
    {"streamId", [](const Row& r) { return r.frame() ? whole(r.frame()->stream_index) : absent; }},
    {"frame", [](const Row& r) { return r.frame() ? whole(r.frame()->frame_number) : absent; }},
    {"gstPtsNs",
     [](const Row& r) {
         return r.frame() && r.frame()->pts_ns >= 0 ? std::to_string(r.frame()->pts_ns) : absent;
     }},
    {"bytesCopied",
     [](const Row& r) { return r.capture.has_host ? whole(r.capture.bytes_copied) : absent; }},
    // A dropped frame has no inference, and so no row.
    {"dropReason", [](const Row&) { return std::string("none"); }},
};

// Padded on the right like the names: the public reader strips those, and takes an N/A as text.
void append(std::string& line, const Column& column, const std::string& text) {
    if (column.name != columns[0].name) line += ',';
    line += text;
    const size_t width = std::max<size_t>(14, column.name.size() + 2);
    if (text.size() < width) line.append(width - text.size(), ' ');
}

}  // namespace

std::string latency_text(const LatencyHeader& header, std::span<const Capture> samples) {
    std::string text = "Profiling Data\nProgramId:" + std::to_string(header.program_index) +
                       "\nProgramName: Program:" + header.network +
                       "\nNumSamples collected: " + std::to_string(samples.size()) +
                       " Num Requested: " + std::to_string(header.samples_requested) + '\n';
    for (const Column& column : columns) append(text, column, std::string(column.name));
    text += '\n';
    for (size_t i = 0; i < samples.size(); ++i) {
        const Row row{header, samples[i], i};
        for (const Column& column : columns) append(text, column, column.text(row));
        text += '\n';
    }
    return text;
}

void Collector::begin(uint64_t first_index) {
    if (options_.duration_ns > 0) end_ns_ = options_.clock() + options_.duration_ns;
    ended_.store(false, std::memory_order_relaxed);
    first_.store(first_index, std::memory_order_release);
}

void Collector::end() {
    ended_.store(true, std::memory_order_release);
}

bool Collector::is_sample(uint64_t inference_index, uint64_t first) const {
    return (inference_index - first) / options_.every < options_.num_samples;
}

unsigned Collector::level_of(uint64_t inference_index) noexcept {
    const uint64_t first = first_.load(std::memory_order_acquire);
    if (inference_index < first || ended_.load(std::memory_order_acquire)) return 0;
    if ((inference_index - first) % options_.every != 0) return 0;
    const uint64_t end = end_ns_.load(std::memory_order_relaxed);
    if (end != never && options_.clock() >= end) return 0;
    const unsigned level =
        is_sample(inference_index, first) ? options_.level : options_.level_of_rest;
    if (level > 0) asked_.fetch_add(1, std::memory_order_relaxed);
    return level;
}

void Collector::take(const Capture& capture) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        device_.add(capture);
        if (is_sample(capture.inference_index, first_.load(std::memory_order_relaxed))) {
            Capture& sample = samples_.emplace_back(capture);
            sample.program_index = options_.program_index;
            sample.activation_index = options_.activation_index;
        }
    } catch (const std::bad_alloc&) {
        out_of_memory_ = true;
    }
    ++taken_;
    arrived_.notify_all();
}

uint64_t Collector::wait_for_captures(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    const uint64_t asked = asked_.load();
    arrived_.wait_for(lock, limit, [&] { return taken_ >= asked; });
    return asked - std::min(asked, taken_);
}

std::vector<Capture> Collector::samples() {
    const std::lock_guard lock(mutex_);
    std::ranges::sort(samples_, {}, &Capture::inference_index);
    return std::exchange(samples_, {});
}

DeviceStats Collector::device() const {
    const std::lock_guard lock(mutex_);
    return device_;
}

}  // namespace vartml::profiling
