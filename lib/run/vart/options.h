// SPDX-License-Identifier: Apache-2.0
// The options of RunnerFactory::create_runner.
#pragma once
#include <any>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <vartml/log.h>
#include <vartml/result.h>
#include <vart/vart_npu_tensor.hpp>

#include "lib/trace/capture.h"

namespace vartml::runtime {

struct Options {
    vart::TensorType input_tensor_type = vart::TensorType::HW;
    vart::TensorType output_tensor_type = vart::TensorType::HW;
    // Of single tensors, by name; the others have the type of their direction.
    std::map<std::string, vart::TensorType> input_tensor_types, output_tensor_types;
    bool skip_in_bo_sync = false, skip_out_bo_sync = false;
    int64_t cma_index = 0;
    bool aie_columns_sharing = true;
    std::optional<uint64_t> start_column;
    uint64_t async_threadpool_depth = 10;
    uint64_t max_concurrent_runs = 2;
    bool callbacks_in_submission_order = true;
    LogLevel log_level = LogLevel::info;
    bool debug = false;
    std::string config_json;
    std::string cache_path;
    bool ai_analyzer_profiling = false;

    std::string name = "VAIML-Runner";
    uint64_t xdna_device_index = 0;
    std::vector<std::string> without_effect;  // keys that were asked for and do nothing here

    std::string device = "auto";  // default: environment variable VARTML_DEVICE
    std::string memory = "host";
    std::string numerics = "auto";
    uint64_t threads = 0;
    bool noncoherent = false;
    std::shared_ptr<profiling::CaptureSink> capture_sink;

    // The view in which calls exchange a tensor.
    vart::TensorType tensor_type(vart::TensorDirection direction, const std::string& name) const;
};

// Errors: invalid_argument with the exact texts of the interface; with several faults that of the
// alphabetically first key.
Result<Options> parse_options(const std::unordered_map<std::string, std::any>& map);

// An option as people read of it: docs/runner-options.md has them all.
struct OptionText {
    std::string key, type, fallback, meaning;
};
// Of the table that parse_options reads, in its order.
std::vector<OptionText> known_options();

}  // namespace vartml::runtime
