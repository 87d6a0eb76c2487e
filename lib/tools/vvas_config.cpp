// SPDX-License-Identifier: Apache-2.0
// Walks the JSON of a configuration along the tables of its keys.
#include "lib/tools/vvas_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lib/common/file.h"
#include "lib/common/nearest.h"
#include "lib/tools/vvas_keys.h"

namespace vartml::tools {
namespace {

using Json = nlohmann::ordered_json;
using Keys = std::span<const VvasKey>;

constexpr size_t limit_bytes = 4u << 20;

Error fault(const std::string& file, const std::string& what) {
    return {ErrorCode::invalid_argument, file + ": " + what};
}

VvasValue value_of(const Json& json) {
    VvasValue v;
    if (json.is_boolean()) v.flag = json.get<bool>();
    // A whole number beyond the range is one that no key takes.
    if (json.is_number_unsigned())
        v.integer = json.get<uint64_t>() > INT64_MAX ? INT64_MAX : json.get<int64_t>();
    if (json.is_number_integer() && !v.integer) v.integer = json.get<int64_t>();
    if (json.is_number()) v.number = json.get<double>();
    if (json.is_string()) v.text = json.get<std::string>();
    const auto all = [&](auto is) { return json.is_array() && std::ranges::all_of(json, is); };
    if (all([](const Json& j) { return j.is_string(); }))
        v.texts = json.get<std::vector<std::string>>();
    if (all([](const Json& j) {
            return j.is_number_integer() && j.get<int64_t>() >= INT32_MIN &&
                   j.get<int64_t>() <= INT32_MAX;
        }))
        v.integers = json.get<std::vector<int>>();
    return v;
}

// The start of a value, for messages; what may be nested deeply is only counted.
std::string shown(const Json& json) {
    if (json.is_object()) return "an object";
    if (json.is_array()) return "a list of " + std::to_string(json.size());
    std::string text = json.dump(-1, ' ', true);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    return text;
}

// Says nothing, so that it need not be named where it is left out.
bool is_off(const Json& json) {
    return json == false || json == 0 || json == "" || json.is_null();
}

class Reader {
public:
    Reader(std::string file, VvasConfig& config) : file_(std::move(file)), config_(config) {}

    Result<Json> parse() const {
        auto text = read_file(file_, limit_bytes);
        if (!text) return text.error();
        try {
            Json json = Json::parse(*text);
            if (json.is_object()) return json;
            return fault(file_, "holds " + shown(json) + ", expected a JSON object");
        } catch (const Json::exception& e) {
            const std::string_view what = e.what();
            const size_t begin = what.find("] ");
            return fault(file_, "is no JSON: " +
                                    std::string(what.substr(begin == what.npos ? 0 : begin + 2)));
        }
    }

    // Keys are taken in the order of the table, because some decide what others mean.
    Result<void> walk(const Json& object, Keys keys, const std::string& path) {
        for (const auto& [name, value] : object.items())
            if (std::ranges::find(keys, name, &VvasKey::name) == keys.end())
                return unknown(name, keys, path);
        for (const VvasKey& key : keys) {
            const auto found = object.find(key.name);
            if (found == object.end()) continue;
            if (auto done = take(*found, key, path); !done) return done;
        }
        return {};
    }

private:
    Result<void> take(const Json& value, const VvasKey& key, const std::string& path) {
        const std::string name =
            path.empty() ? std::string(key.name) : path + "." + std::string(key.name);
        if (key.left_out) {
            if (!is_off(value)) config_.left_out.emplace_back(name, key.left_out);
            return {};
        }
        if (key.set) {
            if (key.set(config_, value_of(value))) return {};
            return fault(file_,
                         "key '" + name + "' is " + shown(value) + ", expected " + key.expected);
        }
        if (!value.is_object())
            return fault(file_, "key '" + name + "' is " + shown(value) + ", expected an object");
        const Keys inside = key.inside(config_);
        if (!inside.empty()) return walk(value, inside, name);
        config_.left_out.emplace_back(name, "only the library that it names knows its keys");
        return {};
    }

    Error unknown(const std::string& name, Keys keys, const std::string& path) const {
        std::vector<std::string_view> names;
        std::string known;
        for (const VvasKey& key : keys) {
            names.push_back(key.name);
            known += (known.empty() ? "" : ", ") + std::string(key.name);
        }
        const std::string_view nearest = nearest_name(name, names);
        return fault(file_,
                     "key '" + (path.empty() ? name : path + "." + name) + "' is unknown" +
                         (nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?") +
                         (nearest.empty() ? "; known: " : " Known: ") + known);
    }

    std::string file_;
    VvasConfig& config_;
};

// The oldest form has a list of one kernel.
Result<void> unwrap_kernels(const std::string& file, Json& json) {
    const auto kernels = json.find("kernels");
    if (kernels == json.end()) return {};
    if (!kernels->is_array() || kernels->size() != 1 || json.contains("kernel"))
        return fault(file, "key 'kernels' is " + shown(*kernels) +
                               ", expected a list of one kernel and no key 'kernel' beside it");
    json["kernel"] = Json((*kernels)[0]);
    json.erase("kernels");
    return {};
}

}  // namespace

Result<VvasConfig> read_vvas_config(const std::string& file, const std::string& preprocess_file) {
    VvasConfig config;
    config.file = file;
    Reader reader(file, config);
    auto json = reader.parse();
    if (!json) return json.error();
    if (auto done = unwrap_kernels(file, *json); !done) return done.error();
    config.dpu = json->contains("kernel");
    if (!config.dpu && !json->contains("infer-config"))
        return fault(file,
                     "has neither 'infer-config' nor 'kernel', so it is no configuration of "
                     "vvas_xinfer");
    config.has_preprocess = json->contains("preprocess-config");
    if (auto done = reader.walk(*json, config.dpu ? vvas_dpu_keys() : vvas_keys(), ""); !done)
        return done.error();
    if (preprocess_file.empty()) return config;
    if (!config.dpu)
        return fault(file,
                     "has its pre-processing in 'preprocess-config', leave --preprocess-config "
                     "away");
    config.has_preprocess = true;
    Reader second(preprocess_file, config);
    auto preprocess = second.parse();
    if (!preprocess) return preprocess.error();
    if (auto done = second.walk(*preprocess, vvas_preprocess_keys(), ""); !done)
        return done.error();
    return config;
}

}  // namespace vartml::tools
