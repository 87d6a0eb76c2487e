// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/run_report.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include "lib/base/json.h"

namespace vartml::tools {

MedianInterval median_interval(std::vector<double> values) {
    if (values.empty()) return {};
    std::ranges::sort(values);
    const size_t n = values.size();
    // The largest number of values that may be cut off at each end: P(Bin(n, 1/2) <= cut - 1) is at
    // most 2.5 %.
    size_t cut = 0;
    double term = std::pow(0.5, static_cast<double>(n)), tail = term;
    while (tail <= 0.025 && 2 * (cut + 1) < n) {
        ++cut;
        term *= static_cast<double>(n - cut + 1) / static_cast<double>(cut);
        tail += term;
    }
    const size_t low = cut == 0 ? 0 : cut - 1;
    return {(values[(n - 1) / 2] + values[n / 2]) / 2, values[low], values[n - 1 - low]};
}

OverheadVerdict Overhead::verdict() const {
    if (percent.high <= budget_percent) return OverheadVerdict::met;
    return percent.low > budget_percent ? OverheadVerdict::exceeded : OverheadVerdict::inconclusive;
}

std::string overhead_text(const Overhead& o) {
    constexpr const char* words[] = {"met", "exceeded", "inconclusive"};
    char text[256];
    std::snprintf(text, sizeof text,
                  "profiling overhead level %u: %+.1f %% (median of %zu pairs, 95 %% interval "
                  "%+.1f..%+.1f), budget %g %%: %s\n",
                  o.level, o.percent.median, o.pairs, o.percent.low, o.percent.high,
                  o.budget_percent, words[static_cast<int>(o.verdict())]);
    return text;
}

namespace {

using Json = nlohmann::ordered_json;

[[gnu::format(printf, 2, 3)]] void append(std::string& text, const char* format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text += line;
}

struct Metric {
    const char* name;
    profiling::RunningStats profiling::DeviceStats::* stats;
    std::string RunMeasurement::* reason;
};
constexpr Metric metrics[] = {
    {"ExecTimeUs", &profiling::DeviceStats::execution_us, &RunMeasurement::no_execution},
    {"InputWaitTimeUs", &profiling::DeviceStats::input_wait_us, &RunMeasurement::no_waits},
    {"OutputWaitTimeUs", &profiling::DeviceStats::output_wait_us, &RunMeasurement::no_waits},
};

// What was measured; what was not has a line with its reason, those of the same one together.
void append_device(std::string& text, const RunMeasurement& m) {
    const auto is_measured = [&](const Metric& metric) {
        return (m.device.*metric.stats).count() != 0;
    };
    if (std::ranges::any_of(metrics, is_measured)) {
        text += "Device Performance: \n";
        append(text, "%-17s%-15s%-15s%-15s%-15s\n", "Metric,", "Avg,", "Min,", "Max,", "Std");
    }
    for (const Metric& metric : metrics) {
        if (!is_measured(metric)) continue;
        const profiling::RunningStats& s = m.device.*metric.stats;
        const auto value = [&](double number, const char* end) {
            char cell[64];
            std::snprintf(cell, sizeof cell, "%.3f%s", number, end);
            return std::string(cell);
        };
        append(text, "%-17s%-15s%-15s%-15s%s\n", (std::string(metric.name) + ",").c_str(),
               value(s.mean(), ",").c_str(), value(s.min(), ",").c_str(),
               value(s.max(), ",").c_str(), value(s.deviation(), "").c_str());
    }
    const std::string* told = nullptr;
    for (const Metric& metric : metrics) {
        const std::string& reason = m.*metric.reason;
        if (is_measured(metric) || reason.empty() || (told && *told == reason)) continue;
        told = &reason;
        std::string names;
        for (const Metric& other : metrics)
            if (!is_measured(other) && m.*other.reason == reason)
                names += (names.empty() ? "" : ", ") + std::string(other.name);
        append(text, "not measured: %s: %s\n", names.c_str(), reason.c_str());
    }
}

// ---- rows, in the form of bench.json ----------------------------------------------------------

struct Row {
    const char* name;
    const char* unit;
    const char* sense;  // "max": smaller is better
    std::optional<double> value;
};

std::optional<double> mean_of(const profiling::RunningStats& stats) {
    return stats.count() ? std::optional(stats.mean()) : std::nullopt;
}

// A run is as many inferences as the batch is large.
double per_inference(const RunMeasurement& m, double total) {
    return total / static_cast<double>(m.round_trip_us.size() * m.batch_size);
}

double bytes_per_inference(const RunMeasurement& m) {
    return per_inference(m, static_cast<double>(m.bytes_copied));
}

double conversions_per_inference(const RunMeasurement& m) {
    return per_inference(m, static_cast<double>(m.conversions));
}

std::optional<double> joules_per_inference(const RunMeasurement& m) {
    if (!m.joules) return std::nullopt;
    return per_inference(m, *m.joules);
}

Json row_of(const RunMeasurement& m, const Row& row) {
    return {{"name", m.model + "/" + row.name},
            {"unit", row.unit},
            {"ours", row.value ? Json(*row.value) : Json()},
            {"peer", nullptr},
            {"peer_name", nullptr},
            {"ratio", nullptr},
            {"limit", nullptr},
            {"sense", row.sense},
            {"pass", nullptr}};
}

Json rows_of(const RunMeasurement& m, const Summary& s) {
    const Row rows[] = {
        {"inferences", "1/s", "min", inferences_per_second(m)},
        {"round_trip_p50", "us", "max", s.p50},
        {"round_trip_p90", "us", "max", s.p90},
        {"round_trip_p99", "us", "max", s.p99},
        {"device_execution", "us", "max", mean_of(m.device.execution_us)},
        {"device_input_wait", "us", "max", mean_of(m.device.input_wait_us)},
        {"device_output_wait", "us", "max", mean_of(m.device.output_wait_us)},
        {"bytes_copied", "bytes", "max", bytes_per_inference(m)},
        {"cpu", "%", "max", m.cpu_seconds / m.total_us * 1e8},
        {"peak_memory", "MiB", "max", static_cast<double>(m.peak_rss_bytes) / 1048576.0},
        {"energy", "J", "max", joules_per_inference(m)},
    };
    auto json = Json::array();
    for (const Row& row : rows) json.push_back(row_of(m, row));
    return json;
}

Json head_of(const RunMeasurement& m) {
    return {{"machine", {{"cpu", m.processor}, {"threads", m.threads}}},
            {"versions", {{"vartml", m.version}, {"onednn", m.onednn_version}}}};
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
    append_device(text, m);
    const Summary s = summarise(m.round_trip_us);
    append(text,
           "\nround trip us: min %.1f p50 %.1f p75 %.1f p90 %.1f p95 %.1f p99 %.1f max %.1f\n",
           s.min, s.p50, s.p75, s.p90, s.p95, s.p99, s.max);
    append(text, "jobs in flight: %u asked, %u at most\n", m.in_flight, m.most_in_flight);
    append(text, "bytes copied per inference: %.0f, conversions: %.1f\n", bytes_per_inference(m),
           conversions_per_inference(m));
    append(text, "CPU: %.0f %%, peak memory: %.1f MiB\n", m.cpu_seconds / m.total_us * 1e8,
           static_cast<double>(m.peak_rss_bytes) / 1048576.0);
    if (const auto joules = joules_per_inference(m))
        append(text, "energy of the processors per inference: %.3g J, %.1f W\n", *joules,
               *m.joules / m.total_us * 1e6);
    else
        append(text, "energy per inference: not measured: %s\n", m.no_energy.c_str());
    append(text, "device: %s, float work in %s, %s views\n", m.backend.c_str(),
           m.compute_type.c_str(), m.view.c_str());
    text += m.verdict;
    return text;
}

std::string json_text(const RunMeasurement& m) {
    const Summary s = summarise(m.round_trip_us);
    Json json = head_of(m);
    json["rows"] = rows_of(m, s);
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
    json["activations"] = m.activations;
    json["in_flight"] = m.in_flight;
    json["most_in_flight"] = m.most_in_flight;
    json["bytes_copied_per_inference"] = bytes_per_inference(m);
    json["conversions_per_inference"] = conversions_per_inference(m);
    json["cpu_percent"] = m.cpu_seconds / m.total_us * 1e8;
    json["peak_rss_bytes"] = m.peak_rss_bytes;
    const auto joules = joules_per_inference(m);
    json["joules_per_inference"] = joules ? Json(*joules) : Json();
    if (!joules) json["no_energy"] = m.no_energy;
    return json_file_text(json);
}

std::string json_text(const RunMeasurement& m, const Overhead& overhead) {
    const std::string name = "profiling_overhead_" + std::to_string(overhead.level);
    Json row = row_of(m, {name.c_str(), "%", "max", overhead.percent.median});
    row["limit"] = overhead.budget_percent;
    if (overhead.verdict() != OverheadVerdict::inconclusive)
        row["pass"] = overhead.verdict() == OverheadVerdict::met;
    Json json = head_of(m);
    json["rows"] = Json::array({row});
    json["interval"] = {overhead.percent.low, overhead.percent.high};
    json["pairs"] = overhead.pairs;
    return json_file_text(json);
}

}  // namespace vartml::tools
