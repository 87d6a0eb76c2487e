// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "lib/artifact/derived.h"
#include "lib/artifact/manifest.h"
#include "lib/artifact/mpk.h"
#include "lib/artifact/tar_names.h"

namespace vartml::artifact {
namespace {

using Json = nlohmann::ordered_json;

Json node(const TensorInfo& t) {
    Json j;
    j["name"] = t.name;
    j["type"] = "buffer";
    j["size"] = t.cpu.size_bytes;
    j["logical_shape"] = t.cpu.shape;
    j["logical_dtype"] = to_string(t.cpu.data_type);
    return j;
}

Json nodes(const std::vector<TensorInfo>& tensors) {
    Json list = Json::array();
    for (const TensorInfo& t : tensors) list.push_back(node(t));
    return list;
}

// How the accelerator finds the tensor in memory; layouts that have no name there are left out.
Json tessellation(const Partition& p) {
    Json j = Json::object();
    for (const auto* tensors : {&p.inputs, &p.outputs})
        for (const TensorInfo& t : *tensors) {
            Json& entry = j[t.name];
            entry["tile_shape"] = {0, 0, 0, 0};
            entry["enable_mla"] = t.hw.has_value();
            if (t.hw && t.hw->layout == Layout::NHWC) entry["dram_layout"] = "HWC";
            if (t.hw && t.hw->layout == Layout::HCWNC16) entry["dram_layout"] = "HWC16";
        }
    return j;
}

Json config_params(const CompiledModel& model, const Partition& p) {
    const bool npu = p.kind == PartitionKind::npu;
    Json j;
    if (npu) {
        j["desired_batch_size"] = model.desired_batch_size;
        j["actual_batch_size"] = model.actual_batch_size;
        j["number_of_quads_to_user"] = 1;
    }
    for (const char* key : {"input_shapes", "output_shapes", "input_data_type", "data_type"})
        j[key] = Json::array();
    for (const TensorInfo& t : p.inputs) {
        j["input_shapes"].push_back(t.cpu.shape);
        j["input_data_type"].push_back(to_string(t.cpu.data_type));
    }
    for (const TensorInfo& t : p.outputs) {
        j["output_shapes"].push_back(t.cpu.shape);
        j["data_type"].push_back(to_string(t.cpu.data_type));
    }
    if (npu) j["tessellation"] = tessellation(p);
    return j;
}

std::string executable(const CompiledModel& model, const Partition& p) {
    const auto name = tar_name(entry_folder(p) + "program.vnp", model.model_name);
    return name ? name->file : "";
}

Json plugin(const CompiledModel& model, const Partition& p, size_t sequence) {
    const bool npu = p.kind == PartitionKind::npu;
    Json j;
    j["name"] = (npu ? "MLA_" : "CPU_") + std::string(partition_number(p.name));
    j["sequence"] = sequence;
    j["processor"] = npu ? "MLA" : "A65";
    j["type"] = npu ? "elf" : "vnp";
    j["config_params"] = config_params(model, p);
    j["input_nodes"] = nodes(p.inputs);
    j["output_nodes"] = nodes(p.outputs);
    j["resources"] = {{"executable", executable(model, p)}};
    return j;
}

// "vartml 1.0.0" of the manifest becomes "vartml-1.0.0".
std::string sdk_version(std::string_view tool_version) {
    constexpr std::string_view tool = "vartml ";
    if (tool_version.starts_with(tool)) tool_version.remove_prefix(tool.size());
    return "vartml-" + std::string(tool_version);
}

}  // namespace

std::string mpk_text(const CompiledModel& model) {
    Json j;
    j["name"] = model.model_name;
    j["model_path"] = "";
    j["model_checksum"] = model.model_signature;
    j["model_sdk_version"] = sdk_version(model.tool_version);
    j["sequence"] = 1;
    j["input_nodes"] = nodes(model.inputs);
    j["output_nodes"] = nodes(model.outputs);
    j["plugins"] = Json::array();
    for (const uint32_t index : model.execution_order) {
        if (index >= model.partitions.size()) continue;  // refused elsewhere, with a sentence
        const Partition& p = model.partitions[index];
        if (p.kind == PartitionKind::npu && j["model_path"] == "")
            j["model_path"] = executable(model, p);
        j["plugins"].push_back(plugin(model, p, j["plugins"].size() + 1));
    }
    return to_file(j);
}

}  // namespace vartml::artifact
