// SPDX-License-Identifier: Apache-2.0
#include "lib/compiler/config.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "lib/common/file.h"
#include "lib/common/nearest.h"
#include "lib/compiler/config_json.h"
#include "lib/compiler/config_keys.h"
#include "lib/device/target.h"

namespace vartml::compiler {
namespace {

using config::in_quotes;
using config::is;
using config::Json;

struct Pass {
    std::string_view name, plugin;
};
constexpr std::array<Pass, 5> known_passes = {{
    {"init", "vaip-pass_init"},
    {"vaiml_partition", "vaip-pass_vaiml_partition"},
    {"vaiml_cpu_partition", "vaip-pass_vaiml_cpu"},
    {"vaiml_connectivity", "vaip-pass_vaiml_connectivity"},
    {"vaiml_create_cache", "vaip-pass_vaiml_create_cache"},
}};
constexpr size_t standard_passes = 2;  // the first of them; the rest belong together

const Pass* find_pass(std::string_view name) {
    const auto pass = std::ranges::find(known_passes, name, &Pass::name);
    return pass == known_passes.end() ? nullptr : &*pass;
}

std::string list(const std::vector<std::string_view>& words) {
    std::string text;
    for (const std::string_view word : words)
        text += (text.empty() ? "" : ", ") + std::string(word);
    return text;
}

class Reader {
public:
    Reader(const std::string& file, bool allow_unknown_keys,
           const std::vector<std::string_view>& devices)
        : file_(file), allow_unknown_keys_(allow_unknown_keys), devices_(devices) {}

    ConfigReading run() && {
        auto json = config::parse(file_);
        if (!json) {
            reading_.faults.push_back(json.error().message);
            return std::move(reading_);
        }
        root_ = &*json;
        if (check_structure()) {
            read_passes();
            read_targets();
            read_target();
        }
        return std::move(reading_);
    }

private:
    void fault(const std::string& place, const std::string& text) {
        reading_.faults.push_back(file_ + ": " + place + ": " + text);
    }

    // The member of an object, if it has the type; says so where it is missing or another.
    const Json* member(const Json& object, const std::string& place, const char* key,
                       Json::value_t type, const char* expected) {
        const auto found = object.find(key);
        if (found == object.end()) {
            fault(place.empty() ? "/" : place, "'" + std::string(key) + "' is missing");
            return nullptr;
        }
        if (found->type() != type) {
            fault(place + "/" + key, is(*found) + ", expected " + expected);
            return nullptr;
        }
        return &*found;
    }

    bool check_structure() {
        if (!root_->is_object()) {
            fault("/", is(*root_) + ", expected an object");
            return false;
        }
        passes_ = member(*root_, "", "passes", Json::value_t::array, "an array of objects");
        target_ = member(*root_, "", "target", Json::value_t::string, "a string");
        targets_ = member(*root_, "", "targets", Json::value_t::array, "an array of objects");
        for (const auto& [key, value] : root_->items()) {
            if (key != "passes" && key != "target" && key != "targets")
                unknown_key("/" + key, key, {"passes", "target", "targets"});
        }
        return passes_ && target_ && targets_;
    }

    void unknown_key(const std::string& place, const std::string& key,
                     const std::vector<std::string_view>& known) {
        std::string text = "unknown key";
        if (const auto near = nearest_name(key, known); !near.empty())
            text += "; did you mean " + in_quotes(near) + "?";
        if (allow_unknown_keys_) {
            reading_.warnings.push_back(file_ + ": " + place + ": " + text);
        } else {
            fault(place, text + " (--allow-unknown-config-keys ignores it)");
        }
    }

    void read_passes() {
        for (size_t i = 0; i < passes_->size(); ++i) {
            const std::string place = "/passes/" + std::to_string(i);
            const Json& entry = (*passes_)[i];
            if (!entry.is_object()) {
                fault(place, is(entry) + ", expected an object");
                continue;
            }
            const Json* name =
                member(entry, place, "name", Json::value_t::string, "the name of a pass");
            const Json* plugin =
                member(entry, place, "plugin", Json::value_t::string, "the name of a plugin");
            if (!name) continue;
            read_pass(entry, place, name->get<std::string>(), plugin);
        }
    }

    void read_pass(const Json& entry, const std::string& place, const std::string& name,
                   const Json* plugin) {
        const Pass* pass = find_pass(name);
        if (!pass) {
            std::vector<std::string_view> names;
            for (const Pass& p : known_passes) names.push_back(p.name);
            fault(place + "/name", "unknown pass " + in_quotes(name) + "; known: " + list(names));
            return;
        }
        if (plugin && plugin->get<std::string>() != pass->plugin) {
            fault(place + "/plugin", "is " + in_quotes(plugin->get<std::string>()) + ", pass " +
                                         name + " needs " + in_quotes(pass->plugin));
        }
        const auto [before, fresh] = defined_.emplace(name, place);
        if (!fresh)
            fault(place, "pass " + in_quotes(name) + " is already defined at " + before->second);
        for (const auto& [key, value] : entry.items()) {
            if (key == "name" || key == "plugin") continue;
            if (key != "vaiml_config") {
                unknown_key(place + "/" + key, key, {"name", "plugin", "vaiml_config"});
            } else if (name != "vaiml_partition") {
                fault(place + "/vaiml_config", "belongs to pass 'vaiml_partition'");
            } else if (!value.is_object()) {
                fault(place + "/vaiml_config", is(value) + ", expected an object");
            } else if (fresh) {
                read_keys(value, place + "/vaiml_config");
            }
        }
        if (name == "vaiml_partition" && !entry.contains("vaiml_config"))
            missing_device(place + "/vaiml_config");
    }

    void missing_device(const std::string& place) {
        fault(place + "/device", "is missing; known: " + list(devices_));
    }

    void read_keys(const Json& object, const std::string& place) {
        std::vector<std::string_view> known;
        for (const config::Key& key : config::keys()) known.push_back(key.name);
        for (const auto& [name, value] : object.items()) {
            const std::string at = place + "/" + name;
            const auto key = std::ranges::find(config::keys(), name, &config::Key::name);
            if (key == config::keys().end()) {
                unknown_key(at, name, known);
                continue;
            }
            const config::Taken taken = key->take(value, reading_.config);
            if (!taken.fault.empty()) fault(at, taken.fault);
            if (!taken.note.empty())
                reading_.notes.push_back(file_ + ": " + at + ": " + taken.note);
        }
        if (!object.contains("device")) {
            missing_device(place);
        } else if (object["device"].is_string() &&
                   std::ranges::find(devices_, reading_.config.device) == devices_.end()) {
            fault(place + "/device", "unknown device " + in_quotes(reading_.config.device) +
                                         "; known: " + list(devices_));
        }
        if (reading_.config.floats_to_bf16 && reading_.config.floats_to_fp16) {
            fault(place,
                  "enable_f32_to_bf16_conversion and enable_f32_to_f16_conversion are both true; "
                  "set one to false");
        }
    }

    void read_targets() {
        std::vector<std::string> listed;
        for (size_t t = 0; t < targets_->size(); ++t) {
            const std::string place = "/targets/" + std::to_string(t);
            const Json& entry = (*targets_)[t];
            if (!entry.is_object()) {
                fault(place, is(entry) + ", expected an object");
                continue;
            }
            member(entry, place, "name", Json::value_t::string, "a string");
            const Json* names =
                member(entry, place, "pass", Json::value_t::array, "an array of pass names");
            if (!names) continue;
            std::vector<std::string> own;
            for (size_t i = 0; i < names->size(); ++i) {
                const std::string at = place + "/pass/" + std::to_string(i);
                if (!(*names)[i].is_string()) {
                    fault(at, is((*names)[i]) + ", expected the name of a pass");
                    continue;
                }
                const auto name = (*names)[i].get<std::string>();
                if (!defined_.contains(name))
                    fault(at, "pass " + in_quotes(name) + " is not defined in 'passes'");
                if (std::ranges::find(own, name) != own.end())
                    fault(at, "pass " + in_quotes(name) + " is listed twice");
                own.push_back(name);
                listed.push_back(name);
            }
        }
        for (const auto& [name, place] : defined_) {
            if (std::ranges::find(listed, name) != listed.end()) continue;
            const std::string where = targets_->empty() ? "'targets'" : "/targets/0/pass";
            fault(place, "pass " + in_quotes(name) +
                             " is defined but no target lists it; add it to " + where +
                             " or remove it");
        }
    }

    // The target to build, and the order of its passes.
    void read_target() {
        const auto wanted = target_->get<std::string>();
        std::string known;
        for (size_t t = 0; t < targets_->size(); ++t) {
            const Json& entry = (*targets_)[t];
            if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string())
                continue;
            const auto name = entry["name"].get<std::string>();
            known += (known.empty() ? "" : ", ") + name;
            if (name != wanted) continue;
            check_order(entry, "/targets/" + std::to_string(t) + "/pass");
            return;
        }
        fault("/target", "no entry of 'targets' is named " + in_quotes(wanted) +
                             (known.empty() ? "" : "; known: " + known));
    }

    void check_order(const Json& entry, const std::string& place) {
        std::vector<std::string> names;
        if (!entry.contains("pass") || !entry["pass"].is_array()) return;
        for (const Json& name : entry["pass"])
            if (name.is_string()) names.push_back(name.get<std::string>());
        const auto at = [&](std::string_view name) { return std::ranges::find(names, name); };
        for (size_t i = 0; i < standard_passes; ++i) {
            if (at(known_passes[i].name) == names.end())
                fault(place, in_quotes(known_passes[i].name) + " is missing");
        }
        if (!names.empty() && at("init") != names.end() && names[0] != "init")
            fault(place, "'init' must be the first pass, found " + in_quotes(names[0]));
        std::vector<std::string_view> missing;
        for (size_t i = standard_passes; i < known_passes.size(); ++i) {
            if (at(known_passes[i].name) == names.end()) missing.push_back(known_passes[i].name);
        }
        const size_t all = known_passes.size() - standard_passes;
        reading_.config.cpu_partition = missing.empty();
        if (!missing.empty() && missing.size() < all) {
            fault(place,
                  "CPU partitioning needs vaiml_cpu_partition, vaiml_connectivity and "
                  "vaiml_create_cache together; missing: " +
                      list(missing));
        }
        for (size_t i = standard_passes; i < known_passes.size(); ++i) {
            const std::string_view before = known_passes[i - 1].name, after = known_passes[i].name;
            if (at(before) != names.end() && at(after) != names.end() && at(after) < at(before))
                fault(place, in_quotes(after) + " must come after " + in_quotes(before));
        }
    }

    const std::string& file_;
    const bool allow_unknown_keys_;
    const std::vector<std::string_view>& devices_;
    ConfigReading reading_;
    const Json* root_ = nullptr;
    const Json* passes_ = nullptr;
    const Json* target_ = nullptr;
    const Json* targets_ = nullptr;
    std::map<std::string, std::string> defined_;  // pass to its place
};

}  // namespace

ConfigReading read_config(const std::string& file, bool allow_unknown_keys) {
    return read_config(file, allow_unknown_keys, device::target_names());
}

ConfigReading read_config(const std::string& file, bool allow_unknown_keys,
                          const std::vector<std::string_view>& devices) {
    return Reader(file, allow_unknown_keys, devices).run();
}

}  // namespace vartml::compiler
