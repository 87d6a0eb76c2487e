// SPDX-License-Identifier: Apache-2.0
// vitisai_config.json: every rule, with its sentence.
#include "lib/compile/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace {

using vartml::LogLevel;
using vartml::compiler::ConfigReading;
using vartml::compiler::read_config;

const std::vector<std::string_view> devices = {"softnpu", "ve2"};

constexpr char good[] = R"({
  "passes": [
    {"name": "init", "plugin": "vaip-pass_init"},
    {"name": "vaiml_partition", "plugin": "vaip-pass_vaiml_partition",
     "vaiml_config": {"device": "ve2"}},
    {"name": "vaiml_cpu_partition", "plugin": "vaip-pass_vaiml_cpu"},
    {"name": "vaiml_connectivity", "plugin": "vaip-pass_vaiml_connectivity"},
    {"name": "vaiml_create_cache", "plugin": "vaip-pass_vaiml_create_cache"}
  ],
  "target": "VAIML",
  "targets": [{"name": "VAIML",
    "pass": ["init", "vaiml_partition", "vaiml_cpu_partition", "vaiml_connectivity", "vaiml_create_cache"]}]
})";

// `text` with the first `from` replaced.
std::string with(std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}
// The good configuration with other members of vaiml_config.
std::string with_keys(const std::string& keys) {
    return with(good, R"({"device": "ve2"})", "{" + keys + "}");
}

class Config : public testing::Test {
protected:
    ConfigReading read(const std::string& text, bool allow_unknown_keys = false) {
        file_ = directory_ / "config.json";
        std::ofstream(file_) << text;
        ConfigReading reading = read_config(file_, allow_unknown_keys, devices);
        for (auto* texts : {&reading.faults, &reading.notes, &reading.warnings})
            for (std::string& t : *texts) {
                EXPECT_EQ(t.find(file_ + ": "), 0u) << t;
                t = t.substr(std::min(t.size(), file_.size() + 2));
            }
        return reading;
    }
    vartml::test::TempDir directory_;
    std::string file_;
};

TEST_F(Config, of_five_passes_is_good_and_has_the_defaults_of_the_format) {
    const ConfigReading r = read(good);
    EXPECT_EQ(r.faults, std::vector<std::string>());
    EXPECT_TRUE(r.config.cpu_partition);
    EXPECT_EQ(r.config.device, "ve2");
    EXPECT_EQ(r.config.optimize_level, 2);
    EXPECT_EQ(r.config.threshold_gops_percent, 20);
    EXPECT_EQ(r.config.batch_size, 1u);
    EXPECT_TRUE(r.config.floats_to_bf16);
    EXPECT_FALSE(r.config.floats_to_fp16);
    EXPECT_EQ(r.config.log_level, LogLevel::error);
}

TEST_F(Config, of_two_passes_is_standard_compilation) {
    const ConfigReading r = read(R"({
  "passes": [
    {"name": "init", "plugin": "vaip-pass_init"},
    {"name": "vaiml_partition", "plugin": "vaip-pass_vaiml_partition",
     "vaiml_config": {"device": "softnpu", "optimize_level": 3, "threshold_gops_percent": 12.5,
       "logging_level": "info", "device_batch_size": 8, "dp_size": 2, "tp_size": 0,
       "enable_f32_to_bf16_conversion": false, "preferred_data_storage": "auto",
       "fe_experiment": "full-offloading-required=1, edge-quantization-in-rt=1",
       "ai_analyzer_profiling": true, "encryptionKey": ""}}
  ],
  "target": "X", "targets": [{"name": "X", "pass": ["init", "vaiml_partition"]}]})");
    EXPECT_EQ(r.faults, std::vector<std::string>());
    EXPECT_FALSE(r.config.cpu_partition);
    EXPECT_EQ(r.config.device, "softnpu");
    EXPECT_EQ(r.config.optimize_level, 3);
    EXPECT_EQ(r.config.threshold_gops_percent, 12.5);
    EXPECT_EQ(r.config.log_level, LogLevel::info);
    EXPECT_EQ(r.config.batch_size, 8u);
    EXPECT_EQ(r.config.dp_size, 2u);
    EXPECT_EQ(r.config.tp_size, 1u);
    EXPECT_FALSE(r.config.floats_to_bf16);
    EXPECT_TRUE(r.config.require_full_offload);
    EXPECT_TRUE(r.config.quantized_inputs && r.config.quantized_outputs);
    ASSERT_EQ(r.notes.size(), 1u);
    EXPECT_EQ(r.notes[0],
              "/passes/1/vaiml_config/ai_analyzer_profiling: has no effect on the software NPU");
}

struct Fault {
    const char* what;
    std::string text;
    std::string sentence;
};
const Fault faults[] = {
    {"a comment", with(good, "\"target\": \"VAIML\"", "// which\n\"target\": \"VAIML\""),
     "line 10, column 3: not valid JSON: comments are not allowed"},
    {"a key twice",
     with(good, "\"target\": \"VAIML\"", "\"target\": \"A\",\n\"target\": \"VAIML\""),
     "line 11: key 'target' occurs twice in the same object"},
    {"no UTF-8", "{\"\xae\": 1}",
     "line 1, column 3: not valid JSON: syntax error while parsing object key - invalid string: "
     "ill-formed UTF-8 byte; last read: '\"\\xae'; expected string literal"},
    {"a number without end", "{\"target\": 1e400}",
     "line 1, column 17: the number before is too large, expected one of 64 bits"},
    {"no targets", R"({"passes": [], "target": "X"})", "/: 'targets' is missing"},
    {"a value of another type", with_keys(R"("device": "ve2", "optimize_level": "2")"),
     "/passes/1/vaiml_config/optimize_level: is a string, expected an integer from 0 to 4"},
    {"a fraction", with_keys(R"("device": "ve2", "optimize_level": 1.5)"),
     "/passes/1/vaiml_config/optimize_level: is 1.5, expected an integer from 0 to 4"},
    {"an unknown pass", with(good, "\"name\": \"vaiml_cpu_partition\"", "\"name\": \"vaiml_cpu\""),
     "/passes/2/name: unknown pass 'vaiml_cpu'; known: init, vaiml_partition, "
     "vaiml_cpu_partition, vaiml_connectivity, vaiml_create_cache"},
    {"another plugin", with(good, "vaip-pass_vaiml_cpu", "vaip-pass_init"),
     "/passes/2/plugin: is 'vaip-pass_init', pass vaiml_cpu_partition needs "
     "'vaip-pass_vaiml_cpu'"},
    {"a pass twice",
     with(good, R"({"name": "vaiml_connectivity",)",
          R"({"name": "init", "plugin": "vaip-pass_init"}, {"name": "vaiml_connectivity",)"),
     "/passes/3: pass 'init' is already defined at /passes/0"},
    {"a pass that no target lists", with(good, ", \"vaiml_create_cache\"]", "]"),
     "/passes/4: pass 'vaiml_create_cache' is defined but no target lists it; add it to "
     "/targets/0/pass or remove it"},
    {"a pass that is not defined",
     with(good, R"(,
    {"name": "vaiml_create_cache", "plugin": "vaip-pass_vaiml_create_cache"})",
          ""),
     "/targets/0/pass/4: pass 'vaiml_create_cache' is not defined in 'passes'"},
    {"a pass listed twice", with(good, "[\"init\",", "[\"init\", \"init\","),
     "/targets/0/pass/1: pass 'init' is listed twice"},
    {"an unknown target", with(good, "\"target\": \"VAIML\"", "\"target\": \"VAIMLX\""),
     "/target: no entry of 'targets' is named 'VAIMLX'; known: VAIML"},
    {"init not first",
     with(good, "[\"init\", \"vaiml_partition\"", "[\"vaiml_partition\", \"init\""),
     "/targets/0/pass: 'init' must be the first pass, found 'vaiml_partition'"},
    {"no partition pass", with(good, "[\"init\", \"vaiml_partition\",", "[\"init\","),
     "/targets/0/pass: 'vaiml_partition' is missing"},
    {"the wrong order",
     with(good, R"("vaiml_partition", "vaiml_cpu_partition")",
          R"("vaiml_cpu_partition", "vaiml_partition")"),
     "/targets/0/pass: 'vaiml_cpu_partition' must come after 'vaiml_partition'"},
    {"the array in another order",
     with(with(good, R"({"name": "vaiml_connectivity", "plugin": "vaip-pass_vaiml_connectivity"},)",
               ""),
          R"({"name": "vaiml_cpu_partition", "plugin": "vaip-pass_vaiml_cpu"})",
          R"({"name": "vaiml_connectivity", "plugin": "vaip-pass_vaiml_connectivity"},
    {"name": "vaiml_cpu_partition", "plugin": "vaip-pass_vaiml_cpu"})"),
     "/passes/3: 'vaiml_cpu_partition' must come before 'vaiml_connectivity'; the order is init, "
     "vaiml_partition, vaiml_cpu_partition, vaiml_connectivity, vaiml_create_cache"},
    {"init elsewhere in the array",
     with(with(good, R"({"name": "init", "plugin": "vaip-pass_init"},)", ""),
          R"({"name": "vaiml_create_cache",)",
          R"({"name": "init", "plugin": "vaip-pass_init"}, {"name": "vaiml_create_cache",)"),
     "/passes/3: 'init' must come before 'vaiml_connectivity'; the order is init, "
     "vaiml_partition, vaiml_cpu_partition, vaiml_connectivity, vaiml_create_cache"},
    {"a part of the unit",
     with(good, "\"vaiml_connectivity\", \"vaiml_create_cache\"]", "\"vaiml_create_cache\"]"),
     "/targets/0/pass: CPU partitioning needs vaiml_cpu_partition, vaiml_connectivity and "
     "vaiml_create_cache together; missing: vaiml_connectivity"},
    {"vaiml_config elsewhere",
     with(good, R"("vaip-pass_init"})", R"("vaip-pass_init", "vaiml_config": {}})"),
     "/passes/0/vaiml_config: belongs to pass 'vaiml_partition'"},
    {"no device", with_keys(""), "/passes/1/vaiml_config/device: is missing; known: softnpu, ve2"},
    {"an unknown device", with_keys(R"("device": "ve3")"),
     "/passes/1/vaiml_config/device: unknown device 've3'; known: softnpu, ve2"},
    {"a value out of range", with_keys(R"("device": "ve2", "threshold_gops_percent": 120)"),
     "/passes/1/vaiml_config/threshold_gops_percent: is 120, expected 0 to 100"},
    {"a misspelt key", with_keys(R"("device": "ve2", "treshold_gops_percent": 20)"),
     "/passes/1/vaiml_config/treshold_gops_percent: unknown key; did you mean "
     "'threshold_gops_percent'? (--allow-unknown-config-keys ignores it)"},
    {"a contradiction", with_keys(R"("device": "ve2", "enable_f32_to_f16_conversion": true)"),
     "/passes/1/vaiml_config: enable_f32_to_bf16_conversion and enable_f32_to_f16_conversion are "
     "both true; set one to false"},
    {"a key for encryption", with_keys(R"("device": "ve2", "encryptionKey": "secret")"),
     "/passes/1/vaiml_config/encryptionKey: encryption is not supported; remove the key or leave "
     "it empty"},
    {"an unknown front-end option", with_keys(R"("device": "ve2", "fe_args": "x=1")"),
     "/passes/1/vaiml_config/fe_args: unknown option 'x'; known: edge-quantization-in-rt, "
     "input-quantization-in-rt, output-dequantization-in-rt, full-offloading-required"},
    {"too much", std::string((1 << 20) + 1, ' '), "is larger than 1 MiB"},
    {"too deep", std::string(40, '[') + std::string(40, ']'), "is nested deeper than 32 levels"},
};

TEST_F(Config, says_every_fault_in_one_sentence) {
    for (const Fault& fault : faults) {
        SCOPED_TRACE(fault.what);
        const ConfigReading r = read(fault.text);
        EXPECT_NE(std::ranges::find(r.faults, fault.sentence), r.faults.end())
            << "got " << (r.faults.empty() ? "no fault" : r.faults[0]) << "\nwant "
            << fault.sentence;
    }
}

TEST_F(Config, reports_all_faults_of_a_file) {
    const ConfigReading r =
        read(with_keys(R"("device": "ve3", "optimize_level": 9, "log_level": "loud")"));
    EXPECT_EQ(r.faults.size(), 3u);
}

TEST_F(Config, allows_unknown_keys_when_asked) {
    const ConfigReading r = read(with_keys(R"("device": "ve2", "colour": 1)"), true);
    EXPECT_EQ(r.faults, std::vector<std::string>());
    EXPECT_EQ(r.warnings, std::vector<std::string>{"/passes/1/vaiml_config/colour: unknown key"});
}

TEST_F(Config, that_is_not_there_is_named_with_the_systems_reason) {
    const ConfigReading r = read_config("/nowhere/config.json", false, devices);
    ASSERT_EQ(r.faults.size(), 1u);
    EXPECT_NE(r.faults[0].find("/nowhere/config.json"), std::string::npos);
    EXPECT_NE(r.faults[0].find("No such file"), std::string::npos) << r.faults[0];
}

TEST_F(Config, of_any_bytes_never_crashes) {
    const std::string text = good;
    for (size_t i = 0; i < text.size(); i += 3) {
        for (const char c : {'\0', '"', '{', '\xff', '9'}) {
            std::string broken = text;
            broken[i] = c;
            read(broken);
        }
        read(text.substr(0, i));
    }
}

}  // namespace
