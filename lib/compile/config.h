// SPDX-License-Identifier: Apache-2.0
// The compile configuration, vitisai_config.json: passes, targets, and the keys of the partition
// pass.
// Format: AMD Vitis AI, vitisai_config.json of VAIML; which passes belong together and in which
// order: its documents on standard and CPU-partition compilation.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <vartml/log.h>
#include <vartml/result.h>

namespace vartml::compiler::config {

// A configuration file as strict JSON: no comments, no key twice, bounded in size and depth.

using Json = nlohmann::json;

// Errors: invalid_argument with the sentence for the user, which begins with the file's name.
Result<Json> parse(const std::string& file);

// "is a string", for "…, expected a number".
std::string is(const Json& value);
std::string in_quotes(std::string_view text);

}  // namespace vartml::compiler::config

namespace vartml::compiler {

// What a configuration says, with the defaults of the format.
struct Config {
    bool cpu_partition = true;  // all five passes; else init and vaiml_partition alone
    std::string device = "softnpu";
    int optimize_level = 2;
    bool keep_outputs = false;
    double threshold_gops_percent = 20;
    LogLevel log_level = LogLevel::error;
    unsigned batch_size = 1, dp_size = 1, tp_size = 1;
    bool floats_to_bf16 = true, floats_to_fp16 = false;
    bool quantized_inputs = false, quantized_outputs = false;  // integer HW tensors at the border
    bool require_full_offload = false;
};

// Faults are sentences that begin with the file's name; the configuration is good where there are
// none. `notes` are for INFO lines, `warnings` for keys that were allowed though nobody knows them.
struct ConfigReading {
    Config config;
    std::vector<std::string> faults, notes, warnings;
};

// Reads a file; no exception but bad_alloc.
ConfigReading read_config(const std::string& file, bool allow_unknown_keys);
// For tests: with these devices.
ConfigReading read_config(const std::string& file, bool allow_unknown_keys,
                          const std::vector<std::string_view>& devices);

}  // namespace vartml::compiler
