// SPDX-License-Identifier: Apache-2.0
// The command line of `vartml run`.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vartml/result.h>
#include <vart/vart_npu_tensor.hpp>

namespace vartml::tools {

// Files that profiling writes.
enum class ProfileType : uint8_t { stats, trace, latency, raw_device_stats };
inline constexpr size_t profile_type_count = 4;

struct ProfileOptions {
    std::array<bool, profile_type_count> types{};
    std::string out_dir = ".";
    uint64_t num_samples = 1, start_iteration = 0, start_delay_ms = 0, duration_ms = 0;
    unsigned every = 1;             // inferences per profiled one
    std::optional<unsigned> level;  // else the compiled one
    bool overhead = false;
    std::optional<double> overhead_limit;

    bool wants(ProfileType type) const { return types[static_cast<size_t>(type)]; }
    bool wants_files() const;
    // Whether inferences are captured: the figures of the console need no file.
    bool is_on() const { return wants_files() || level; }
};

struct RunOptions {
    std::string model;
    std::vector<std::string> input_files;  // NAME=FILE
    std::string inputs_dir, expect_dir, json_file;
    std::optional<double> tolerance;
    std::string numerics = "auto", view = "auto", device;
    unsigned warmup = 5, iterations = 40, in_flight = 1, threads = 0, activations = 1;
    double seconds = 0;
    bool steps = false;
    ProfileOptions profile;
    // Of `view`, once the model is known.
    vart::TensorType input_view = vart::TensorType::HW, output_view = vart::TensorType::HW;
};

// Parses and checks what can be checked without the model; the folder of profiles is one of it.
// A value: the exit status of a program that is done, with or without help or a sentence.
std::optional<int> parse_run_options(int argc, const char* const* argv, RunOptions& options);

}  // namespace vartml::tools
