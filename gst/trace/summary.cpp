// SPDX-License-Identifier: Apache-2.0
#include "gst/trace/summary.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace vartml::gst::trace {
namespace {

template <typename... Values>
void line(std::string& out, const char* format, Values... values) {
    char text[512];
    std::snprintf(text, sizeof text, format, values...);
    out += text;
}

// p50, p95, p99 in microseconds; N/A where nothing was measured.
void percentiles(std::string& out, const Histogram& h) {
    for (const double share : {0.50, 0.95, 0.99}) {
        if (!h.count()) {
            line(out, " %10s", "N/A");
            continue;
        }
        // Not %f: applications set locales whose decimals begin with a comma.
        const unsigned long long tenths = (h.percentile(share) + 50) / 100;
        line(out, " %8llu.%llu", tenths / 10, tenths % 10);
    }
}

}  // namespace

std::string summary_text(const Objects& objects, const HostTraceTotals& totals) {
    std::string out = "vartmltrace 1, times in us, percentiles within 3 %\n\n";
    line(out, "%-32s %9s %10s %10s %10s %10s %10s %10s\n", "element", "spans", "self p50", "p95",
         "p99", "wait p50", "p95", "p99");
    for (const ElementStats* stats : objects.elements()) {
        if (!stats->self.count() && !stats->wait.count()) continue;
        line(out, "%-32s %9llu", stats->name.load().c_str(),
             static_cast<unsigned long long>(stats->self.count()));
        percentiles(out, stats->self);
        percentiles(out, stats->wait);
        out += '\n';
    }
    line(out, "\n%-6s %9s %10s %10s %10s  %s\n", "stream", "at sinks", "time p50", "p95", "p99",
         "id");
    for (const StreamStats* stats : objects.streams()) {
        line(out, "%-6u %9llu", stats->index,
             static_cast<unsigned long long>(stats->frame_time.count()));
        percentiles(out, stats->frame_time);
        out += "  " + HostTrace::stream_id(stats->index) + "\n";
    }
    line(out, "\nevents: %llu written, %llu lost%s\n",
         static_cast<unsigned long long>(totals.written),
         static_cast<unsigned long long>(totals.lost),
         totals.is_full ? ", recording stopped early" : "");
    return out;
}

Result<void> write_summary(const std::string& path, const std::string& text) {
    const std::string part = path + ".part";
    const auto failed = [&](const char* what) {
        const Error error{ErrorCode::io,
                          path + ": cannot " + what + " the summary: " + std::strerror(errno)};
        std::remove(part.c_str());
        return error;
    };
    std::FILE* const file = std::fopen(part.c_str(), "we");
    if (!file) return failed("create");
    const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (std::fclose(file) != 0 || !is_written) return failed("write");
    if (std::rename(part.c_str(), path.c_str()) != 0) return failed("rename");
    return {};
}

}  // namespace vartml::gst::trace
