// SPDX-License-Identifier: Apache-2.0
// What a configuration of VVAS's element vvas_xinfer says, whichever of its forms it has: release 6
// (infer-config, preprocess-config, postprocess-config in one file) or releases 1 to 3
// (kernel.config, with a second file for the pre-processing).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vartml/result.h>

namespace vartml::tools {

struct VvasConfig {
    std::string file;  // for messages
    bool dpu = false;  // releases 1 to 3: the model is one for a DPU

    // infer-config, or kernel.config
    std::string runtime = "onnxrt";  // or vart
    std::string onnx_model, vart_model, cache_dir, output_view;
    std::vector<std::pair<std::string, std::string>> runner_options;  // name, "(type)value"
    std::string model_format;                                         // "", RGB, BGR or GRAY8
    int64_t level = 1, batch_size = 0, max_queue = 0;
    std::optional<int64_t> min_width, min_height;
    std::vector<std::string> input_classes, output_classes;
    std::string dpu_folder, dpu_name, dpu_class;

    // preprocess-config, or the file for the pre-processing
    bool has_preprocess = false;
    std::optional<bool> keep_aspect, symmetric;
    std::string scaler, horizontal, vertical;
    std::optional<int64_t> pad;
    std::array<std::optional<double>, 3> mean, scale;  // r, g, b

    // postprocess-config
    std::string library;
    std::optional<double> score, iou;
    std::optional<bool> objectness, grid, sigmoid, class_agnostic, no_softmax;
    std::string preset;  // number of the YOLO release, or x
    std::vector<int> strides;
    std::optional<int64_t> max_detections, top_k;
    std::string labels;
    // libvvascore_postprocess_vart: what it does, and the head of a detector
    std::string type;
    std::vector<std::pair<int, int>> grids;  // height and width, of each output
    std::vector<float> anchors;              // widths and heights, of all outputs
    std::vector<int> anchors_per_cell;       // of each output
    std::optional<bool> scaled;              // boxes are in units of the grid

    // Keys that VVAS knows and that have no counterpart here, with the reason; in the order read.
    std::vector<std::pair<std::string, std::string>> left_out;
};

// `preprocess_file` is the second file of releases 1 to 3, "" = none. Errors: not_found, io;
// invalid_argument naming the file, the key, what was found and what is known.
Result<VvasConfig> read_vvas_config(const std::string& file, const std::string& preprocess_file);

}  // namespace vartml::tools
