// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/options.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <typeinfo>
#include <variant>
#include <vector>

#include "lib/base/text.h"
#include "lib/run/vart/vart_errors.h"

namespace vartml::runtime {
namespace {

// ---- what a payload holds ---------------------------------------------------------------------

struct Integer {
    bool is_negative = false;
    uint64_t magnitude = 0;
};
using Payload = std::variant<std::monostate, bool, Integer, std::string>;

template <typename T>
bool read_integer(const std::any& value, Payload& payload) {
    const T* p = std::any_cast<T>(&value);
    if (!p) return false;
    Integer integer;
    if constexpr (std::is_signed_v<T>) integer.is_negative = *p < 0;
    // Unsigned arithmetic also for the most negative number.
    integer.magnitude =
        integer.is_negative ? uint64_t{0} - static_cast<uint64_t>(*p) : static_cast<uint64_t>(*p);
    payload = integer;
    return true;
}

template <typename... T>
bool read_any_integer(const std::any& value, Payload& payload) {
    return (read_integer<T>(value, payload) || ...);
}

Payload read_payload(const std::any& value) {
    Payload payload;
    if (const auto* b = std::any_cast<bool>(&value)) return *b;
    if (const auto* s = std::any_cast<std::string>(&value)) return *s;
    if (const auto* s = std::any_cast<std::string_view>(&value)) return std::string(*s);
    if (const auto* s = std::any_cast<const char*>(&value))
        return *s ? Payload(std::string(*s)) : Payload();
    if (const auto* s = std::any_cast<char*>(&value))
        return *s ? Payload(std::string(*s)) : Payload();
    read_any_integer<char, signed char, unsigned char, short, unsigned short, int, unsigned, long,
                     unsigned long, long long, unsigned long long>(value, payload);
    return payload;
}

std::string holds(const std::any& value) {
    const Payload payload = read_payload(value);
    if (!value.has_value()) return "nothing";
    if (std::holds_alternative<bool>(payload)) return "a bool";
    if (std::holds_alternative<std::string>(payload)) return "a std::string";
    if (std::holds_alternative<Integer>(payload)) return "an integer";
    const std::type_info& type = value.type();
    if (type == typeid(double)) return "a double";
    if (type == typeid(float)) return "a float";
    if (type == typeid(const char*) || type == typeid(char*)) return "a null pointer";
    return "a value of another type";
}

// ---- the table --------------------------------------------------------------------------------

enum class Kind { string, boolean, unsigned_integer, signed_integer };

struct Row {
    std::string_view key;
    Kind kind;
    std::vector<std::string_view> words;  // strings: the accepted values; empty = any
    uint64_t low = 0, high = 0;           // integers
    // Only one is set, by kind.
    std::function<void(Options&, const std::string&)> set_string{};
    bool Options::* boolean = nullptr;
    std::function<void(Options&, uint64_t)> set_integer{};
};

constexpr uint64_t max_u32 = std::numeric_limits<uint32_t>::max();

Row text(std::string_view key, std::vector<std::string_view> words,
         std::function<void(Options&, const std::string&)> set) {
    return {key, Kind::string, std::move(words), 0, 0, std::move(set)};
}
Row flag(std::string_view key, bool Options::* member) {
    return {key, Kind::boolean, {}, 0, 0, {}, member};
}
Row number(std::string_view key, Kind kind, uint64_t low, uint64_t high,
           std::function<void(Options&, uint64_t)> set) {
    return {key, kind, {}, low, high, {}, nullptr, std::move(set)};
}

vart::TensorType tensor_type(const std::string& text) {
    return text == "HW" ? vart::TensorType::HW : vart::TensorType::CPU;
}

LogLevel log_level_of(const std::string& text) {
    return text == "ERROR"     ? LogLevel::error
           : text == "WARNING" ? LogLevel::warning
           : text == "INFO"    ? LogLevel::info
                               : LogLevel::debug;
}

const std::vector<Row>& rows() {
    using O = Options;
    using S = const std::string&;
    const Kind u = Kind::unsigned_integer;
    static const std::vector<Row> table = {
        // given: VART ML architecture overview, "Configuration Options"
        text("input_tensor_type", {"HW", "CPU"},
             [](O& o, S v) { o.input_tensor_type = tensor_type(v); }),
        text("output_tensor_type", {"HW", "CPU"},
             [](O& o, S v) { o.output_tensor_type = tensor_type(v); }),
        flag("skip_in_bo_sync", &O::skip_in_bo_sync),
        flag("skip_out_bo_sync", &O::skip_out_bo_sync),
        number("cma_index", Kind::signed_integer, 0, 15,
               [](O& o, uint64_t v) { o.cma_index = static_cast<int64_t>(v); }),
        flag("aie_columns_sharing", &O::aie_columns_sharing),
        number("start_column", u, 0, max_u32, [](O& o, uint64_t v) { o.start_column = v; }),
        number("async_threadpool_depth", u, 1, 256,
               [](O& o, uint64_t v) { o.async_threadpool_depth = v; }),
        number("max_concurrent_runs", u, 1, 4096,
               [](O& o, uint64_t v) { o.max_concurrent_runs = v; }),
        text("callback_order", {"submission", "completion"},
             [](O& o, S v) { o.callbacks_in_submission_order = v == "submission"; }),
        text("log_level", {"ERROR", "WARNING", "INFO", "DEBUG"},
             [](O& o, S v) { o.log_level = log_level_of(v); }),
        flag("debug", &O::debug),
        text("config_json", {}, [](O& o, S v) { o.config_json = v; }),
        text("cache_path", {}, [](O& o, S v) { o.cache_path = v; }),
        flag("ai_analyzer_profiling", &O::ai_analyzer_profiling),
        // Seen in public sample code; accepted so that it runs unchanged.
        text("name", {}, [](O& o, S v) { o.name = v; }),
        number("xdna_device_index", u, 0, 255, [](O& o, uint64_t v) { o.xdna_device_index = v; }),
        flag("ai_analyzer_visualization", &O::ai_analyzer_visualization),
        flag("no_failsafe", &O::no_failsafe),
        flag("enable_xrt_run_pool", &O::enable_xrt_run_pool),
        // ours
        text("vartml_device", {}, [](O& o, S v) { o.device = v; }),
        text("vartml_memory", {"host", "xrt"}, [](O& o, S v) { o.memory = v; }),
        text("vartml_numerics", {"auto", "f32", "bf16"}, [](O& o, S v) { o.numerics = v; }),
        number("vartml_threads", u, 0, 1024, [](O& o, uint64_t v) { o.threads = v; }),
        flag("vartml_noncoherent", &O::noncoherent),
    };
    return table;
}

// ---- faults -----------------------------------------------------------------------------------

Error fault(const std::string& text) {
    return {ErrorCode::invalid_argument, "create_runner: " + text};
}

Error unknown_key(const std::string& key) {
    std::vector<std::string_view> keys;
    for (const Row& row : rows()) keys.push_back(row.key);
    std::string message = "unknown option " + in_quotes(key.substr(0, 100));
    if (const auto nearest = nearest_name(key, keys); !nearest.empty())
        return fault(message + "; did you mean '" + std::string(nearest) + "'?");
    std::sort(keys.begin(), keys.end());
    message += "; known: ";
    for (size_t i = 0; i < keys.size(); ++i) message += (i ? ", " : "") + std::string(keys[i]);
    return fault(message);
}

std::string one_of(const std::vector<std::string_view>& words) {
    std::string out;
    for (size_t i = 0; i < words.size(); ++i) {
        if (i) out += i + 1 == words.size() ? " or " : ", ";
        out += "'" + std::string(words[i]) + "'";
    }
    return out;
}

Error wrong_type(const Row& row, const std::any& value) {
    constexpr const char* expected[] = {"a string", "a bool", "an unsigned integer", "an integer"};
    return fault("option '" + std::string(row.key) + "' holds " + holds(value) + ", expected " +
                 expected[static_cast<int>(row.kind)]);
}

Error out_of_range(const Row& row, Integer value) {
    const std::string range = row.low == row.high
                                  ? std::to_string(row.low)
                                  : std::to_string(row.low) + " to " + std::to_string(row.high);
    return fault("option '" + std::string(row.key) + "' is " + (value.is_negative ? "-" : "") +
                 std::to_string(value.magnitude) + ", expected " + range);
}

Result<void> apply(const Row& row, const std::any& value, Options& options) {
    const Payload payload = read_payload(value);
    switch (row.kind) {
        case Kind::string: {
            const auto* word = std::get_if<std::string>(&payload);
            if (!word) return wrong_type(row, value);
            if (!row.words.empty() && std::ranges::find(row.words, *word) == row.words.end())
                return fault("option '" + std::string(row.key) + "' is " +
                             in_quotes(word->substr(0, 100)) + ", expected " + one_of(row.words));
            row.set_string(options, *word);
            return {};
        }
        case Kind::boolean: {
            const auto* boolean = std::get_if<bool>(&payload);
            if (!boolean) return wrong_type(row, value);
            options.*row.boolean = *boolean;
            return {};
        }
        case Kind::unsigned_integer:
        case Kind::signed_integer:
            break;
    }
    const auto* integer = std::get_if<Integer>(&payload);
    if (!integer) return wrong_type(row, value);
    if (integer->is_negative || integer->magnitude < row.low || integer->magnitude > row.high)
        return out_of_range(row, *integer);
    row.set_integer(options, integer->magnitude);
    return {};
}

// "input_tensor_type.images": the view of one tensor, also seen in public sample code. Which names
// there are is known when the model is open.
struct NamedType {
    std::string_view prefix;
    const char* noun;
    std::map<std::string, vart::TensorType> Options::* types;
};
constexpr NamedType named_types[] = {
    {"input_tensor_type.", "an input", &Options::input_tensor_types},
    {"output_tensor_type.", "an output", &Options::output_tensor_types},
};

Result<void> apply(const NamedType& named, std::string_view key, const std::any& value,
                   Options& options) {
    const std::string name(key.substr(named.prefix.size()));
    if (name.empty())
        return fault("option '" + std::string(key) + "' names no tensor, expected the name of " +
                     named.noun + " of the model behind the dot");
    const std::string shown = clean(key.substr(0, 100));
    return apply(
        text(shown, {"HW", "CPU"},
             [&](Options& o, const std::string& v) { (o.*named.types)[name] = tensor_type(v); }),
        value, options);
}

// For tools and tests; no part of the interface, and not in the list of what is known.
Result<void> set_sink(const std::any& value, Options& options) {
    const auto* sink = std::any_cast<std::shared_ptr<profiling::CaptureSink>>(&value);
    if (!sink)
        return fault("option '" + std::string(profiling::capture_sink_option) + "' holds " +
                     holds(value) + ", expected a std::shared_ptr<CaptureSink>");
    options.capture_sink = *sink;
    return {};
}

}  // namespace

vart::TensorType Options::tensor_type(vart::TensorDirection direction,
                                      const std::string& name) const {
    const bool is_input = direction == vart::TensorDirection::INPUT;
    const auto& own = is_input ? input_tensor_types : output_tensor_types;
    if (const auto found = own.find(name); found != own.end()) return found->second;
    return is_input ? input_tensor_type : output_tensor_type;
}

Result<Options> parse_options(const std::unordered_map<std::string, std::any>& map) {
    Options options;
    if (const char* device = std::getenv("VARTML_DEVICE"); device && *device)
        options.device = device;
    const std::map<std::string_view, const std::any*> sorted = [&] {
        std::map<std::string_view, const std::any*> all;
        for (const auto& [key, value] : map) all.emplace(key, &value);
        return all;
    }();
    for (const auto& [key, value] : sorted) {
        if (key == profiling::capture_sink_option) {
            if (auto good = set_sink(*value, options); !good) return good.error();
            continue;
        }
        const auto named = std::ranges::find_if(
            named_types, [&](const NamedType& n) { return key.starts_with(n.prefix); });
        if (named != std::end(named_types)) {
            if (auto good = apply(*named, key, *value, options); !good) return good.error();
            continue;
        }
        const auto row = std::ranges::find(rows(), key, &Row::key);
        if (row == rows().end()) return unknown_key(std::string(key));
        if (auto good = apply(*row, *value, options); !good) return good.error();
    }
    return options;
}

}  // namespace vartml::runtime
