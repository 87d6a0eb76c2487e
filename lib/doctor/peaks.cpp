// SPDX-License-Identifier: Apache-2.0
#include "lib/doctor/peaks.h"
#include "lib/common/processors.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/common/cache_folder.h"
#include "lib/common/file.h"
#include "lib/common/sha256.h"
#include "lib/device/softnpu/processor.h"
#include "lib/doctor/machine.h"

namespace vartml::doctor {
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
    const std::string text = json.dump(2) + "\n";
    const Bytes piece = as_bytes(text);
    return replace_file(path, {&piece, 1});
}

}  // namespace vartml::doctor
