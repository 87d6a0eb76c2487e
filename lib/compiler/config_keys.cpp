// SPDX-License-Identifier: Apache-2.0
#include "lib/compiler/config_keys.h"

#include <charconv>
#include <vector>

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
