// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/run_report.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace vartml::tools {
namespace {

[[gnu::format(printf, 2, 3)]] void append(std::string& text, const char* format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text += line;
}

}  // namespace

Summary summarise(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto n = static_cast<double>(values.size());
    const auto rank = [&](double p) {
        const auto i = static_cast<size_t>(std::ceil(p * n));
        return values[std::clamp<size_t>(i, 1, values.size()) - 1];
    };
    Summary s;
    for (const double v : values) s.mean += v / n;
    for (const double v : values) s.deviation += (v - s.mean) * (v - s.mean) / n;
    s.deviation = std::sqrt(s.deviation);
    s.min = values.front();
    s.max = values.back();
    s.p50 = rank(0.50);
    s.p75 = rank(0.75);
    s.p90 = rank(0.90);
    s.p95 = rank(0.95);
    s.p99 = rank(0.99);
    return s;
}

double inferences_per_second(const RunMeasurement& m) {
    return static_cast<double>(m.round_trip_us.size()) * static_cast<double>(m.batch_size) /
           m.total_us * 1e6;
}

std::string console_text(const RunMeasurement& m) {
    const size_t count = m.round_trip_us.size();
    std::string text = " ---- Stats ----\n";
    append(text, "InferenceCnt %zu TotalDuration %.0fus BatchSize %llu Inf/Sec %.3f\n", count,
           m.total_us, static_cast<unsigned long long>(m.batch_size), inferences_per_second(m));
    text += "Device Performance: \n";
    append(text, "%-17s%-15s%-15s%-15s%-15s\n", "Metric,", "Avg,", "Min,", "Max,", "Std");
    for (const char* metric : {"ExecTimeUs,", "InputWaitTimeUs,", "OutputWaitTimeUs,"})
        append(text, "%-17s%-15s%-15s%-15s%s\n", metric, "N/A,", "N/A,", "N/A,", "N/A");
    const Summary s = summarise(m.round_trip_us);
    append(text,
           "\nround trip us: min %.1f p50 %.1f p75 %.1f p90 %.1f p95 %.1f p99 %.1f max %.1f\n",
           s.min, s.p50, s.p75, s.p90, s.p95, s.p99, s.max);
    append(text, "jobs in flight: %u asked, %u at most\n", m.in_flight, m.most_in_flight);
    append(text, "bytes copied per inference: %.0f, conversions: %.1f\n",
           static_cast<double>(m.bytes_copied) / static_cast<double>(count),
           static_cast<double>(m.conversions) / static_cast<double>(count));
    append(text, "CPU: %.0f %%, peak memory: %.1f MiB\n", m.cpu_seconds / m.total_us * 1e8,
           static_cast<double>(m.peak_rss_bytes) / 1048576.0);
    append(text, "device: %s, float work in %s, %s views\n", m.backend.c_str(),
           m.compute_type.c_str(), m.view.c_str());
    text += "N/A: this release records no times inside the device\n";
    text += "# verdict: N/A (device times not captured)\n";
    return text;
}

std::string json_text(const RunMeasurement& m) {
    const Summary s = summarise(m.round_trip_us);
    const auto count = static_cast<double>(m.round_trip_us.size());
    nlohmann::ordered_json json;
    json["model"] = m.model;
    json["backend"] = m.backend;
    json["compute_type"] = m.compute_type;
    json["view"] = m.view;
    json["inferences"] = m.round_trip_us.size();
    json["batch_size"] = m.batch_size;
    json["total_us"] = m.total_us;
    json["inferences_per_second"] = inferences_per_second(m);
    json["round_trip_us"] = {{"mean", s.mean}, {"std", s.deviation}, {"min", s.min},
                             {"p50", s.p50},   {"p75", s.p75},       {"p90", s.p90},
                             {"p95", s.p95},   {"p99", s.p99},       {"max", s.max}};
    json["in_flight"] = m.in_flight;
    json["most_in_flight"] = m.most_in_flight;
    json["bytes_copied_per_inference"] = static_cast<double>(m.bytes_copied) / count;
    json["conversions_per_inference"] = static_cast<double>(m.conversions) / count;
    json["cpu_percent"] = m.cpu_seconds / m.total_us * 1e8;
    json["peak_rss_bytes"] = m.peak_rss_bytes;
    return json.dump(2) + "\n";
}

}  // namespace vartml::tools
