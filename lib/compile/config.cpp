// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/model/target.h"

namespace vartml::compiler::config {

// The keys of vaiml_config, one row each.

// What came of a value: nothing to say, a fault, or a note for the user.
struct Taken {
    std::string fault, note;
};
struct Key {
    std::string_view name;
    std::function<Taken(const Json& value, Config& config)> take;
};
std::span<const Key> keys();

namespace {

constexpr size_t most_bytes = 1 << 20;
constexpr int most_levels = 32;

struct Position {
    size_t line = 1, column = 1;
};
Position position_of(std::string_view text, size_t offset) {
    Position at;
    for (const char c : text.substr(0, offset)) {
        ++at.column;
        if (c == '\n') ++at.line, at.column = 1;
    }
    return at;
}

// Reads characters and remembers how many.
class Counting {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;
    Counting(const char* at, size_t* read) : at_(at), read_(read) {}
    reference operator*() const { return *at_; }
    Counting& operator++() {
        ++at_;
        ++*read_;
        return *this;
    }
    Counting operator++(int) {
        Counting before = *this;
        ++*this;
        return before;
    }
    bool operator==(const Counting& other) const { return at_ == other.at_; }
    bool operator!=(const Counting& other) const { return at_ != other.at_; }

private:
    const char* at_;
    size_t* read_;
};

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while …"
std::string reason_of(const Json::parse_error& error, std::string_view text) {
    const size_t at = error.byte > 0 ? error.byte - 1 : 0;
    for (const size_t start : {at, at > 0 ? at - 1 : 0}) {
        const auto two = text.substr(std::min(start, text.size()), 2);
        if (two == "//" || two == "/*") return "comments are not allowed";
    }
    std::string what = error.what();
    const size_t colon = what.find(": ");
    if (colon != std::string::npos) what.erase(0, colon + 2);
    return printable(what);
}

}  // namespace

Result<Json> parse(const std::string& file) {
    const auto fail = [&](const std::string& text) {
        return Error{ErrorCode::invalid_argument, file + ": " + text};
    };
    const auto mapped = MappedFile::open(file);
    if (!mapped) return Error{ErrorCode::invalid_argument, mapped.error().message};
    const std::string_view text = as_text((*mapped)->bytes());
    if (text.size() > most_bytes) return fail("is larger than 1 MiB");
    size_t read = 0;
    std::vector<std::set<std::string>> keys;
    std::string fault;
    const auto look = [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (!fault.empty()) return true;
        if (depth > most_levels) fault = "is nested deeper than 32 levels";
        if (event == Json::parse_event_t::object_start) keys.emplace_back();
        if (event == Json::parse_event_t::object_end) keys.pop_back();
        if (event == Json::parse_event_t::key &&
            !keys.back().insert(parsed.get<std::string>()).second) {
            fault = "line " + std::to_string(position_of(text, read).line) + ": key '" +
                    printable(parsed.get<std::string>()) + "' occurs twice in the same object";
        }
        return true;
    };
    try {
        Json json = Json::parse(Counting(text.data(), &read),
                                Counting(text.data() + text.size(), &read), look);
        if (!fault.empty()) return fail(fault);
        return json;
    } catch (const Json::parse_error& error) {
        if (!fault.empty()) return fail(fault);
        const Position at = position_of(text, error.byte > 0 ? error.byte - 1 : 0);
        return fail("line " + std::to_string(at.line) + ", column " + std::to_string(at.column) +
                    ": not valid JSON: " + reason_of(error, text));
    } catch (const Json::out_of_range&) {
        const Position at = position_of(text, read > 0 ? read - 1 : 0);
        return fail("line " + std::to_string(at.line) + ", column " + std::to_string(at.column) +
                    ": the number before is too large, expected one of 64 bits");
    }
}

std::string is(const Json& value) {
    switch (value.type()) {
        case Json::value_t::null:
            return "is null";
        case Json::value_t::boolean:
            return "is a boolean";
        case Json::value_t::string:
            return "is a string";
        case Json::value_t::array:
            return "is an array";
        case Json::value_t::object:
            return "is an object";
        default:
            return "is a number";
    }
}

std::string in_quotes(std::string_view text) {
    return "'" + std::string(text) + "'";
}

}  // namespace vartml::compiler::config

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

std::vector<std::string_view> names_of_passes() {
    std::vector<std::string_view> names;
    for (const Pass& pass : known_passes) names.push_back(pass.name);
    return names;
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
        check_order_of_definitions();
    }

    // given: the order of the array counts as that of a target's list does
    void check_order_of_definitions() {
        const Pass* last = nullptr;
        for (size_t i = 0; i < passes_->size(); ++i) {
            const Json& entry = (*passes_)[i];
            if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string())
                continue;
            const Pass* const pass = find_pass(entry["name"].get_ref<const std::string&>());
            if (!pass) continue;
            if (last && pass < last)
                fault("/passes/" + std::to_string(i),
                      in_quotes(pass->name) + " must come before " + in_quotes(last->name) +
                          "; the order is " + list(names_of_passes()));
            if (!last || pass > last) last = pass;
        }
    }

    void read_pass(const Json& entry, const std::string& place, const std::string& name,
                   const Json* plugin) {
        const Pass* pass = find_pass(name);
        if (!pass) {
            fault(place + "/name",
                  "unknown pass " + in_quotes(name) + "; known: " + list(names_of_passes()));
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

namespace vartml::compiler::config {
namespace {

using Take = std::function<Taken(const Json&, Config&)>;

std::string number_text(const Json& value) {
    return value.dump();
}

Take integer(int64_t low, int64_t high, void (*set)(Config&, int64_t)) {
    return [=](const Json& value, Config& config) -> Taken {
        if (!value.is_number_integer()) {
            const std::string found = value.is_number() ? "is " + number_text(value) : is(value);
            return {found + ", expected an integer from " + std::to_string(low) + " to " +
                        std::to_string(high),
                    ""};
        }
        const bool huge = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
        const int64_t v = huge ? INT64_MAX : value.get<int64_t>();
        if (huge || v < low || v > high) {
            return {"is " + number_text(value) + ", expected " + std::to_string(low) + " to " +
                        std::to_string(high),
                    ""};
        }
        set(config, v);
        return {};
    };
}

Take percent(double Config::* member) {
    return [=](const Json& value, Config& config) -> Taken {
        if (!value.is_number()) return {is(value) + ", expected a number from 0 to 100", ""};
        const auto v = value.get<double>();
        if (!(v >= 0 && v <= 100)) return {"is " + number_text(value) + ", expected 0 to 100", ""};
        config.*member = v;
        return {};
    };
}

Take flag(bool Config::* member) {
    return [=](const Json& value, Config& config) -> Taken {
        if (!value.is_boolean()) return {is(value) + ", expected true or false", ""};
        config.*member = value.get<bool>();
        return {};
    };
}

Taken take_device(const Json& value, Config& config) {
    if (!value.is_string()) return {is(value) + ", expected the name of a device", ""};
    config.device = value.get<std::string>();  // whether there is one is checked with the others
    return {};
}

Taken take_log_level(const Json& value, Config& config) {
    static constexpr std::string_view names[] = {"error", "warning", "info", "debug"};
    constexpr const char* expected = "expected error, warning, info or debug";
    if (!value.is_string()) return {is(value) + ", " + expected, ""};
    const auto name = value.get<std::string>();
    for (size_t i = 0; i < std::size(names); ++i) {
        if (name != names[i]) continue;
        config.log_level = static_cast<LogLevel>(i);
        return {};
    }
    return {"is " + in_quotes(name) + ", " + expected, ""};
}

// "name=value" separated by blanks or commas.
Taken take_frontend_options(const Json& value, Config& config) {
    if (!value.is_string()) return {is(value) + ", expected a string of name=value", ""};
    std::string text = value.get<std::string>();
    for (char& c : text)
        if (c == ',' || c == '\t') c = ' ';
    for (size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string::npos;) {
        const std::string part = text.substr(at, text.find(' ', at) - at);
        at += part.size();
        const size_t equals = part.find('=');
        const std::string name = part.substr(0, equals);
        const std::string setting = equals == std::string::npos ? "" : part.substr(equals + 1);
        if (setting != "0" && setting != "1")
            return {"is " + in_quotes(part) + ", expected " + name + "=0 or " + name + "=1", ""};
        const bool on = setting == "1";
        const bool both = name == "edge-quantization-in-rt";
        const bool in = both || name == "input-quantization-in-rt";
        const bool out = both || name == "output-dequantization-in-rt";
        if (in) config.quantized_inputs = on;
        if (out) config.quantized_outputs = on;
        if (name == "full-offloading-required") config.require_full_offload = on;
        if (!in && !out && name != "full-offloading-required") {
            return {"unknown option " + in_quotes(name) +
                        "; known: edge-quantization-in-rt, input-quantization-in-rt, "
                        "output-dequantization-in-rt, full-offloading-required",
                    ""};
        }
    }
    return {};
}

Taken take_storage(const Json& value, Config&) {
    const std::string name = value.is_string() ? value.get<std::string>() : "";
    if (name == "auto" || name == "vectorized" || name == "unvectorized") return {};
    return {(value.is_string() ? "is " + in_quotes(name) : is(value)) +
                ", expected auto, vectorized or unvectorized",
            ""};
}

Taken take_encryption_key(const Json& value, Config&) {
    if (value.is_string() && value.get<std::string>().empty()) return {};
    return {"encryption is not supported; remove the key or leave it empty", ""};
}

Taken no_effect(const Json&, Config&) {
    return {"", "has no effect on the software NPU"};
}

}  // namespace

std::span<const Key> keys() {
    static const std::vector<Key> table = {
        {"device", take_device},
        {"optimize_level",
         integer(0, 4, [](Config& c, int64_t v) { c.optimize_level = static_cast<int>(v); })},
        {"keep_outputs", flag(&Config::keep_outputs)},
        {"threshold_gops_percent", percent(&Config::threshold_gops_percent)},
        {"logging_level", take_log_level},
        {"log_level", take_log_level},
        {"device_batch_size",
         integer(1, 256, [](Config& c, int64_t v) { c.batch_size = static_cast<unsigned>(v); })},
        {"dp_size", integer(1, UINT32_MAX,
                            [](Config& c, int64_t v) { c.dp_size = static_cast<unsigned>(v); })},
        {"tp_size",
         integer(0, UINT32_MAX,
                 [](Config& c, int64_t v) { c.tp_size = v == 0 ? 1 : static_cast<unsigned>(v); })},
        {"enable_f32_to_bf16_conversion", flag(&Config::floats_to_bf16)},
        {"enable_f32_to_f16_conversion", flag(&Config::floats_to_fp16)},
        {"fe_experiment", take_frontend_options},
        {"fe_args", take_frontend_options},
        {"preferred_data_storage", take_storage},
        {"experiment_features", no_effect},
        {"aie_single_core_compiler", no_effect},
        {"use_aieir_be", no_effect},
        {"include_subgraphs", no_effect},
        {"ai_analyzer_profiling", no_effect},
        {"ai_analyzer_visualization", no_effect},
        {"encryptionKey", take_encryption_key},
    };
    return table;
}

}  // namespace vartml::compiler::config
