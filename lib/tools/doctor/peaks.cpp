// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/doctor/peaks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <vartml/processors.h>
#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/places.h"
#include "lib/base/sha256.h"
#include "lib/base/shortest_round.h"
#include "lib/run/softnpu/processor.h"
#include "lib/tools/doctor/doctor.h"

namespace vartml::doctor {

// Memory bandwidth.

// Bytes of the last-level cache that one processor sees; 32 MiB where the system does not say.
size_t last_level_cache_bytes();

// Bytes per second of a[i] = b[i] + s * c[i] over arrays of `array_bytes` each, the best of
// `repeats`. Counted are two reads and one write of each element; the read that the processor makes
// before it writes a line is not. Errors: out_of_memory naming what is needed.
Result<double> triad_rate(unsigned threads, size_t array_bytes, unsigned repeats);

namespace {

using Json = nlohmann::ordered_json;

constexpr int format = 1;
constexpr size_t most_bytes = 64 * 1024;
constexpr const char* how = "run: vartml doctor --calibrate";

struct Type {
    const char* name;
    std::optional<double> Peaks::* rate;
};
constexpr Type types[] = {{"fp32", &Peaks::f32}, {"bf16", &Peaks::bf16}, {"int8", &Peaks::int8}};

// Absent and null are alike; anything else must be a rate.
bool get_rate(const Json& json, const char* key, std::optional<double>& rate) {
    const auto found = json.find(key);
    if (found == json.end() || found->is_null()) return true;
    if (!found->is_number()) return false;
    rate = found->get<double>();
    return std::isfinite(*rate) && *rate > 0;
}

std::optional<Peaks> parse(const std::string& text) {
    const Json json = Json::parse(text, nullptr, false);
    const auto has = [&json](const char* key, auto is) {
        const auto found = json.find(key);
        return found != json.end() && ((*found).*is)();
    };
    if (!json.is_object() || !has("format", &Json::is_number_integer) || json["format"] != format ||
        !has("processor", &Json::is_string) || !has("threads", &Json::is_number_unsigned) ||
        !has("onednn", &Json::is_string) || !has("ops_per_second", &Json::is_object))
        return std::nullopt;
    Peaks peaks{.key = {json["processor"], json["threads"], json["onednn"]}};
    for (const Type& type : types)
        if (!get_rate(json["ops_per_second"], type.name, peaks.*type.rate)) return std::nullopt;
    std::optional<double> bytes;
    if (!get_rate(json, "bytes_per_second", bytes) || !bytes || !peaks.f32) return std::nullopt;
    peaks.bytes_per_second = *bytes;
    return peaks;
}

}  // namespace

PeaksKey peaks_key(unsigned threads) {
    return {processor_model(), threads ? threads : usable_processors(), softnpu::onednn_version()};
}

std::optional<double> ops_per_second(const Peaks& peaks, const std::string& type) {
    for (const Type& row : types)
        if (type == row.name) return peaks.*row.rate;
    return std::nullopt;
}

std::string peaks_path(const PeaksKey& key, const std::string& folder) {
    Sha256 hash;
    hash.update(as_bytes(key.processor + '\n' + std::to_string(key.threads) + '\n' + key.onednn));
    return (folder.empty() ? user_cache_folder() : folder) + "/peaks-" +
           to_hex(hash.finish()).substr(0, 16) + ".json";
}

Result<Peaks> read_peaks(const PeaksKey& key, const std::string& folder) {
    const std::string path = peaks_path(key, folder);
    const auto text = read_file(path, most_bytes);
    if (!text && text.error().code == ErrorCode::not_found)
        return Error{ErrorCode::not_found, "the peaks of this machine with " +
                                               std::to_string(key.threads) +
                                               " threads were not measured yet; " + how};
    if (!text) return text.error();
    const auto peaks = parse(*text);
    if (!peaks || peaks->key != key)
        return Error{ErrorCode::bad_model,
                     path + ": is damaged, expected the peaks of this machine; " + how};
    return *peaks;
}

Result<void> write_peaks(const Peaks& peaks, const std::string& folder) {
    Json json = {{"format", format},
                 {"processor", peaks.key.processor},
                 {"threads", peaks.key.threads},
                 {"onednn", peaks.key.onednn},
                 {"ops_per_second", Json::object()},
                 {"bytes_per_second", peaks.bytes_per_second}};
    for (const Type& type : types)
        if (const auto rate = peaks.*type.rate) json["ops_per_second"][type.name] = *rate;
    if (folder.empty() && user_cache_folder().empty())
        return Error{ErrorCode::io,
                     "neither XDG_CACHE_HOME nor HOME says where peaks can be kept; set "
                     "XDG_CACHE_HOME to a folder"};
    const std::string path = peaks_path(peaks.key, folder);
    if (auto made = make_directories(parent_of(path)); !made) return made;
    return replace_file(path, json_file_text(json));
}

namespace {

using Clock = std::chrono::steady_clock;

struct Free {
    void operator()(double* p) const { std::free(p); }
};
using Array = std::unique_ptr<double[], Free>;

Array make_array(size_t elements) {
    return Array(static_cast<double*>(std::aligned_alloc(64, (elements * 8 + 63) / 64 * 64)));
}

void triad(double* __restrict a, const double* __restrict b, const double* __restrict c, size_t n) {
    for (size_t i = 0; i < n; ++i) a[i] = b[i] + 3.0 * c[i];
}

// "48K", "2M" as the kernel writes them.
size_t parse_size(const std::string& text) {
    char unit = 0;
    unsigned long long number = 0;
    if (std::sscanf(text.c_str(), "%llu%c", &number, &unit) < 1) return 0;
    return static_cast<size_t>(number) << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
}

}  // namespace

size_t last_level_cache_bytes() {
    size_t largest = 0;
    for (int index = 0; index < 8; ++index) {
        const auto text = read_file(
            "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size", 64);
        if (text) largest = std::max(largest, parse_size(*text));
    }
    return largest ? largest : size_t{32} << 20;
}

Result<double> triad_rate(unsigned threads, size_t array_bytes, unsigned repeats) {
    const size_t elements = array_bytes / sizeof(double);
    const uint64_t available = available_memory_bytes();
    const Array a = make_array(elements), b = make_array(elements), c = make_array(elements);
    if (!a || !b || !c || (available != 0 && available < 3 * array_bytes))
        return Error{ErrorCode::out_of_memory, "the bandwidth of memory is measured over " +
                                                   std::to_string((3 * array_bytes) >> 20) +
                                                   " MiB, and " + std::to_string(available >> 20) +
                                                   " MiB are free; close other programs"};
    const auto first = [&](unsigned t) { return elements * t / threads; };
    const double best = shortest_round(
        threads, repeats,
        [&](unsigned t) {
            // First touched by the thread that works on them, so that the pages are near it.
            std::fill(a.get() + first(t), a.get() + first(t + 1), 0.0);
            std::fill(b.get() + first(t), b.get() + first(t + 1), 1.0);
            std::fill(c.get() + first(t), c.get() + first(t + 1), 2.0);
        },
        [&](unsigned t) {
            triad(a.get() + first(t), b.get() + first(t), c.get() + first(t),
                  first(t + 1) - first(t));
        },
        [] { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); });
    return 3.0 * static_cast<double>(elements * sizeof(double)) / best;
}

Result<Peaks> measure_peaks(unsigned threads, const Workload& workload,
                            const std::function<void(const std::string&)>& progress) {
    using softnpu::ProductType;
    struct Step {
        const char* name;
        ProductType type;
        std::optional<double> Peaks::* rate;
    };
    constexpr Step steps[] = {{"fp32", ProductType::f32, &Peaks::f32},
                              {"bf16", ProductType::bf16, &Peaks::bf16},
                              {"int8", ProductType::int8, &Peaks::int8}};
    const std::string on = threads == 1 ? "1 thread" : std::to_string(threads) + " threads";
    Peaks peaks{.key = peaks_key(threads)};
    for (const Step& step : steps) {
        progress(std::string("matrix products in ") + step.name + ", " + on);
        const auto rate =
            softnpu::product_rate(step.type, threads, workload.product_size, workload.repeats);
        if (rate) peaks.*step.rate = *rate;
        if (!rate && rate.error().code != ErrorCode::unsupported) return rate.error();
    }
    progress("memory bandwidth, " + on);
    const size_t bytes = workload.array_bytes ? workload.array_bytes : 4 * last_level_cache_bytes();
    const auto rate = triad_rate(threads, bytes, workload.repeats);
    if (!rate) return rate.error();
    peaks.bytes_per_second = *rate;
    return peaks;
}

}  // namespace vartml::doctor
