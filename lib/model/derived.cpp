// SPDX-License-Identifier: Apache-2.0
#include "lib/model/derived.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/base/json.h"
#include "lib/model/entries.h"
#include "lib/model/manifest.h"

namespace vartml::artifact {
namespace {

using Json = nlohmann::ordered_json;

Json hsi_tensor(const TensorInfo& t, const char* stem, size_t index) {
    Json j;
    j["name"] = std::string("compute_graph.") + stem + "_ddr" +
                (index == 0 ? "" : '_' + std::to_string(index));
    j["tensor_name"] = t.name;
    const TensorView& hw = t.hw ? *t.hw : t.cpu;
    j["cpu_shape"] = t.cpu.shape;
    j["hw_shape"] = hw.shape;
    j["cpu_format"] = to_string(t.cpu.layout);
    j["hw_format"] = to_string(hw.layout);
    j["cpu_dtype"] = to_string(t.cpu.data_type);
    j["hw_dtype"] = to_string(hw.data_type);
    j["scale_factor"] = hw.quantisation ? hw.quantisation->scale : 1.0;
    if (hw.quantisation) j["zero_point"] = hw.quantisation->zero_point;
    if (hw.layout == Layout::GENERIC) j["hw_layout_order"] = hw.order;
    return j;
}

std::string hsi(const CompiledModel& model, const Partition& p) {
    Json j;
    j["inputs"] = Json::array();
    j["outputs"] = Json::array();
    for (size_t i = 0; i < p.inputs.size(); ++i)
        j["inputs"].push_back(hsi_tensor(p.inputs[i], "ifm", i));
    for (size_t i = 0; i < p.outputs.size(); ++i)
        j["outputs"].push_back(hsi_tensor(p.outputs[i], "ofm", i));
    j["vartml"] = {{"format_version", 1},
                   {"partition", p.name},
                   {"device_batch_size", model.actual_batch_size}};
    return json_file_text(j);
}

// Bytes that a layer reads from other layers, keeps as weights and gives to other layers.
std::string buffer_info(const CompiledModel& model, const Partition& p) {
    Json j;
    j["device_batch_size"] = model.actual_batch_size;
    j["columns"] = p.columns;
    j["layers"] = Json::array();
    const graph::Uses uses = graph::find_uses(p.graph);
    for (size_t layer = 0; layer < p.layers.size(); ++layer) {
        const auto in_layer = [&](int32_t node) {
            return node >= 0 &&
                   p.node_layers[static_cast<size_t>(node)] == static_cast<int32_t>(layer);
        };
        std::set<graph::ValueId> read, written;
        for (size_t n = 0; n < p.node_layers.size(); ++n) {
            if (!in_layer(static_cast<int32_t>(n))) continue;
            read.insert(p.graph.nodes[n].inputs.begin(), p.graph.nodes[n].inputs.end());
            written.insert(p.graph.nodes[n].outputs.begin(), p.graph.nodes[n].outputs.end());
        }
        size_t input = 0, weight = 0, output = 0;
        for (const graph::ValueId id : read) {
            if (id == graph::none) continue;
            const graph::Value& v = p.graph.value(id);
            if (v.constant)
                weight += v.type.size_bytes();
            else if (!in_layer(uses.producer[static_cast<size_t>(id)]))
                input += v.type.size_bytes();
        }
        for (const graph::ValueId id : written) {
            if (id == graph::none) continue;
            const auto& users = uses.consumers[static_cast<size_t>(id)];
            if (uses.is_output[static_cast<size_t>(id)] || !std::ranges::all_of(users, in_layer))
                output += p.graph.value(id).type.size_bytes();
        }
        j["layers"].push_back({{"name", p.layers[layer].name},
                               {"input_bytes", input},
                               {"weight_bytes", weight},
                               {"output_bytes", output}});
    }
    return json_file_text(j);
}

std::string mla_stats(const Partition& p) {
    std::string text;
    for (size_t i = 0; i < p.layers.size(); ++i) {
        const Layer& l = p.layers[i];
        const bool plain = std::ranges::all_of(l.name, [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '/' || c == '.';
        });
        // A JSON string is a YAML string.
        const std::string name =
            plain ? l.name : Json(l.name).dump(-1, ' ', true, Json::error_handler_t::replace);
        text += std::to_string(i) + ":\n  name: " + name +
                "\n  start_cycle: " + std::to_string(l.start_cycle) +
                "\n  end_cycle: " + std::to_string(l.end_cycle) + "\n";
    }
    return text.empty() ? "{}\n" : text;
}

Json connectivity_tensor(const TensorInfo& t) {
    Json j;
    j["name"] = t.name;
    j["shape"] = t.cpu.shape;
    j["data_type"] = to_string(t.cpu.data_type);
    if (t.data_dependent) j["data_dependent"] = true;
    return j;
}

std::string connectivity(const CompiledModel& model) {
    Json j;
    j["format_version"] = 1;
    j["compilation"] = "cpu_partition";
    j["model_signature"] = model.model_signature;
    std::vector<size_t> position(model.partitions.size(), 0);
    j["execution_order"] = Json::array();
    for (size_t i = 0; i < model.execution_order.size(); ++i) {
        const uint32_t index = model.execution_order[i];
        if (index >= model.partitions.size()) continue;  // refused later, with a sentence
        position[index] = i;
        j["execution_order"].push_back(model.partitions[index].name);
    }
    for (const char* key : {"inputs", "outputs", "graph_edges"}) j[key] = Json::array();
    for (const TensorInfo& t : model.inputs) j["inputs"].push_back(connectivity_tensor(t));
    for (const TensorInfo& t : model.outputs) j["outputs"].push_back(connectivity_tensor(t));
    const auto inside = [&](int32_t i) {
        return i >= 0 && static_cast<size_t>(i) < model.partitions.size();
    };
    const auto key = [&](const Edge& e) {
        return std::tuple(
            inside(e.source) ? static_cast<int64_t>(position[static_cast<size_t>(e.source)]) : -1,
            inside(e.destination) ? position[static_cast<size_t>(e.destination)]
                                  : model.partitions.size(),
            std::string_view(e.tensor_name));
    };
    std::vector<const Edge*> edges;
    for (const Edge& e : model.edges) edges.push_back(&e);
    std::ranges::stable_sort(edges, {}, [&](const Edge* e) { return key(*e); });
    for (const Edge* e : edges) {
        Json edge;
        edge["source_partition"] = inside(e->source)
                                       ? model.partitions[static_cast<size_t>(e->source)].name
                                       : "__graph_input__";
        edge["destination_partition"] =
            inside(e->destination) ? model.partitions[static_cast<size_t>(e->destination)].name
                                   : "__graph_output__";
        edge["temp_buffer_name"] = e->temp_buffer_name;
        edge["tensor_name"] = e->tensor_name;
        edge["shape"] = e->shape;
        edge["data_type"] = to_string(e->data_type);
        if (e->data_dependent) edge["data_dependent"] = true;
        j["graph_edges"].push_back(std::move(edge));
    }
    return json_file_text(j);
}

}  // namespace

unsigned offload_percent(const Summary& s) {
    const bool by_ops = s.total.ops != 0;
    const double part = by_ops ? static_cast<double>(s.offloaded.ops) : s.offloaded.operators;
    const double whole = by_ops ? static_cast<double>(s.total.ops) : s.total.operators;
    if (whole == 0) return 100;
    return static_cast<unsigned>(std::clamp(std::lround(100 * part / whole), 0L, 100L));
}

std::string estimate_entry(const CompiledModel& model, const Partition& partition) {
    return entry_folder(partition) + file_stem(model.model_name) + "_mla_stats.yaml";
}

std::vector<File> derived_files(const CompiledModel& model) {
    std::vector<File> files;
    const unsigned npu = offload_percent(model.summary);
    files.push_back({"fail_safe_summary.json",
                     json_file_text(Json{{"offload_map", {{"AIE", npu}, {"CPU", 100 - npu}}}})});
    if (model.compilation == Compilation::cpu_partition)
        files.push_back({"connectivity_metadata.json", connectivity(model)});
    for (const Partition& p : model.partitions) {
        if (p.kind != PartitionKind::npu) continue;
        files.push_back({p.name + "/partition-info.json",
                         json_file_text(Json{{"aie_partition_call_order", {p.name + "_part_0"}}})});
        const std::string folder = entry_folder(p);
        files.push_back({folder + "flexmlrt-hsi.json", hsi(model, p)});
        files.push_back({folder + "buffer_info.json", buffer_info(model, p)});
        files.push_back({estimate_entry(model, p), mla_stats(p)});
    }
    return files;
}

}  // namespace vartml::artifact
