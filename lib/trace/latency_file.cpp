// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/latency_file.h"

#include <algorithm>
#include <string_view>

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

}  // namespace vartml::profiling
