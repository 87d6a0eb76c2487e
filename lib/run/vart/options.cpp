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
    std::string key;
    Kind kind;
    std::string_view meaning;
    std::string fallback;                               // what the default is, for readers
    std::function<void(Options&, const Payload&)> set;  // gets what kind, words and range allow
    std::vector<std::string_view> words{};              // strings: the accepted values; empty = any
    uint64_t low = 0, high = 0;                         // integers
};

constexpr uint64_t max_u32 = std::numeric_limits<uint32_t>::max();

Row text(std::string_view key, std::string Options::* member, std::vector<std::string_view> words,
         std::string_view meaning) {
    return {std::string(key),
            Kind::string,
            meaning,
            Options().*member,
            [member](Options& o, const Payload& p) { o.*member = std::get<std::string>(p); },
            std::move(words)};
}

// Words that stand for values of a type of its own.
template <typename T>
struct Word {
    std::string_view word;
    T value;
};
template <typename T>
Row choice(std::string_view key, T Options::* member, std::initializer_list<Word<T>> known,
           std::string_view meaning) {
    const std::vector<Word<T>> words(known);
    Row row{
        std::string(key), Kind::string, meaning, {}, [member, words](Options& o, const Payload& p) {
            const auto& word = std::get<std::string>(p);
            o.*member = std::ranges::find(words, word, &Word<T>::word)->value;
        }};
    for (const Word<T>& word : words) {
        row.words.push_back(word.word);
        if (word.value == Options().*member) row.fallback = word.word;
    }
    return row;
}

Row flag(std::string_view key, bool Options::* member, std::string_view meaning) {
    return {std::string(key), Kind::boolean, meaning, Options().*member ? "true" : "false",
            [member](Options& o, const Payload& p) { o.*member = std::get<bool>(p); }};
}

std::string shown(uint64_t value) {
    return std::to_string(value);
}
std::string shown(std::optional<uint64_t> value) {
    return value ? shown(*value) : "";
}
template <typename T>
Row number(std::string_view key, T Options::* member, uint64_t low, uint64_t high,
           std::string_view meaning) {
    const bool is_signed = std::is_same_v<T, int64_t>;
    return {std::string(key),
            is_signed ? Kind::signed_integer : Kind::unsigned_integer,
            meaning,
            shown(Options().*member),
            [member](Options& o, const Payload& p) {
                o.*member = static_cast<T>(std::get<Integer>(p).magnitude);
            },
            {},
            low,
            high};
}

// Seen in public sample code; accepted so that it runs unchanged, and what is asked for is told.
Row idle(std::string_view key) {
    return {std::string(key), Kind::boolean, "Nothing here, and a line says so where it is true",
            "false", [key](Options& o, const Payload& p) {
                if (std::get<bool>(p)) o.without_effect.emplace_back(key);
            }};
}

using vart::TensorType;
constexpr std::initializer_list<Word<TensorType>> views = {{"HW", TensorType::HW},
                                                           {"CPU", TensorType::CPU}};

const std::vector<Row>& rows() {
    using O = Options;
    static const std::vector<Row> table = {
        // given: VART ML architecture overview, "Configuration Options"
        choice("input_tensor_type", &O::input_tensor_type, views,
               "View in which calls exchange the inputs: as the device has them, or as the ONNX "
               "model has them"),
        choice("output_tensor_type", &O::output_tensor_type, views, "The same of the outputs"),
        flag("skip_in_bo_sync", &O::skip_in_bo_sync,
             "Inputs are not made visible to the device: the caller does it with `sync_buffer`"),
        flag("skip_out_bo_sync", &O::skip_out_bo_sync,
             "Outputs are not made visible to the processor: the caller does it"),
        number("cma_index", &O::cma_index, 0, 15,
               "Memory bank of tensors that the runner allocates; host memory has no banks"),
        flag("aie_columns_sharing", &O::aie_columns_sharing,
             "Whether other runners may have the same columns of the array, in any process"),
        number("start_column", &O::start_column, 0, max_u32,
               "First column of the array; unset: where there is room"),
        number("async_threadpool_depth", &O::async_threadpool_depth, 1, 256,
               "Asynchronous runs and callbacks at the same time, at most"),
        number("max_concurrent_runs", &O::max_concurrent_runs, 1, 4096,
               "Jobs that are accepted and not ended, at most; one more is refused with "
               "`RESOURCE_UNAVAILABLE`"),
        choice("callback_order", &O::callbacks_in_submission_order,
               {{"submission", true}, {"completion", false}}, "Order of the callbacks"),
        choice("log_level", &O::log_level,
               {{"ERROR", LogLevel::error},
                {"WARNING", LogLevel::warning},
                {"INFO", LogLevel::info},
                {"DEBUG", LogLevel::debug}},
               "What the runner logs: this and what is worse"),
        flag("debug", &O::debug, "Tell how the model is loaded, at any log level"),
        text("config_json", &O::config_json, {},
             "File of the configuration that the model was compiled with; refused where it is for "
             "another device"),
        text("cache_path", &O::cache_path, {},
             "Folder for packed weights and for what a `.tar.gz` holds; unset: the user's cache, "
             "and "
             "`vaiml_cache_<model>_<pid>_<tid>` in the current folder, which goes with the runner"),
        flag("ai_analyzer_profiling", &O::ai_analyzer_profiling,
             "Record every inference; `vartml_profile_<pid>_<n>` in the current folder has the "
             "files when the runner ends"),
        text("name", &O::name, {}, "Name of the runner in messages"),
        number("xdna_device_index", &O::xdna_device_index, 0, 255,
               "Number of the device whose memory is taken, with `vartml_memory=xrt`"),
        idle("ai_analyzer_visualization"),
        idle("no_failsafe"),
        idle("enable_xrt_run_pool"),
        // ours
        text("vartml_device", &O::device, {},
             "Device that runs the model, such as `softnpu`; `auto`: the first that takes it. The "
             "environment variable `VARTML_DEVICE` is the default where it is set"),
        text("vartml_memory", &O::memory, {"host", "xrt"},
             "Memory of tensors that the runner allocates: the host's, or a device's through XRT"),
        text(
            "vartml_numerics", &O::numerics, {"auto", "f32", "bf16"},
            "Type that floats are computed in; `auto`: the processor's faster one, f32 for a model "
            "that was compiled so"),
        number(
            "vartml_threads", &O::threads, 0, 1024,
            "Threads of a run, and how many runs go on at the same time at most; 0: the processors "
            "that the process may use"),
        flag("vartml_noncoherent", &O::noncoherent,
             "For tests: the device has a copy of the memory, so that a missing sync shows"),
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
    return fault("option '" + row.key + "' holds " + holds(value) + ", expected " +
                 expected[static_cast<int>(row.kind)]);
}

std::string range_of(const Row& row) {
    return std::to_string(row.low) + " to " + std::to_string(row.high);
}

Error out_of_range(const Row& row, Integer value) {
    return fault("option '" + row.key + "' is " + (value.is_negative ? "-" : "") +
                 std::to_string(value.magnitude) + ", expected " + range_of(row));
}

Result<void> apply(const Row& row, const std::any& value, Options& options) {
    const Payload payload = read_payload(value);
    if (row.kind == Kind::string) {
        const auto* word = std::get_if<std::string>(&payload);
        if (!word) return wrong_type(row, value);
        if (!row.words.empty() && std::ranges::find(row.words, *word) == row.words.end())
            return fault("option '" + row.key + "' is " + in_quotes(word->substr(0, 100)) +
                         ", expected " + one_of(row.words));
    } else if (row.kind == Kind::boolean) {
        if (!std::holds_alternative<bool>(payload)) return wrong_type(row, value);
    } else {
        const auto* integer = std::get_if<Integer>(&payload);
        if (!integer) return wrong_type(row, value);
        if (integer->is_negative || integer->magnitude < row.low || integer->magnitude > row.high)
            return out_of_range(row, *integer);
    }
    row.set(options, payload);
    return {};
}

// "input_tensor_type.images": the view of one tensor, also seen in public sample code. Which names
// there are is known when the model is open.
struct NamedType {
    std::string_view prefix;
    const char* noun;
    TensorType Options::* of_direction;
    std::map<std::string, TensorType> Options::* types;
};
constexpr NamedType named_types[] = {
    {"input_tensor_type.", "an input", &Options::input_tensor_type, &Options::input_tensor_types},
    {"output_tensor_type.", "an output", &Options::output_tensor_type,
     &Options::output_tensor_types},
};

Result<void> apply(const NamedType& named, std::string_view key, const std::any& value,
                   Options& options) {
    const std::string name(key.substr(named.prefix.size()));
    if (name.empty())
        return fault("option '" + std::string(key) + "' names no tensor, expected the name of " +
                     named.noun + " of the model behind the dot");
    Options one;
    if (auto good =
            apply(choice(clean(key.substr(0, 100)), named.of_direction, views, ""), value, one);
        !good)
        return good;
    (options.*named.types)[name] = one.*named.of_direction;
    return {};
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

std::string type_of(const Row& row) {
    switch (row.kind) {
        case Kind::string:
            return row.words.empty() ? "string" : one_of(row.words);
        case Kind::boolean:
            return "bool";
        case Kind::unsigned_integer:
        case Kind::signed_integer:
            break;
    }
    return (row.kind == Kind::signed_integer ? "integer, " : "unsigned integer, ") + range_of(row);
}

}  // namespace

std::vector<OptionText> known_options() {
    std::vector<OptionText> texts;
    for (const Row& row : rows()) {
        texts.push_back({row.key, type_of(row), row.fallback, std::string(row.meaning)});
        for (const NamedType& named : named_types)
            if (named.prefix == row.key + ".")
                texts.push_back({row.key + ".NAME", type_of(row), "that of `" + row.key + "`",
                                 std::string("The view of one tensor: NAME is the name of ") +
                                     named.noun + " of the model"});
    }
    return texts;
}

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
