// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "lib/artifact/program.h"
#include "lib/graph/coordinates.h"
#include "lib/tools/inspect_report.h"

namespace vartml::tools {
namespace {

using Json = nlohmann::ordered_json;
using artifact::CompiledModel;

constexpr int round_to_nearest_even = 1;  // vart::RoundingMode

Json view_json(const TensorView& view) {
    Json j;
    j["shape"] = view.shape;
    j["memory_layout"] = to_string(view.layout);
    if (view.layout == Layout::GENERIC) j["memory_layout_order"] = view.order;
    j["dtype"] = to_string(view.data_type);
    j["size_in_bytes"] = view.size_bytes;
    if (view.quantisation)
        j["quantization"] = {{"scale", view.quantisation->scale},
                             {"zero_point", view.quantisation->zero_point},
                             {"rounding_mode", round_to_nearest_even}};
    return j;
}

Json tensors_json(const std::vector<TensorInfo>& tensors, JsonForm form) {
    Json list = Json::array();
    for (const TensorInfo& t : tensors) {
        Json j;
        j["name"] = t.name;
        j["cpu"] = view_json(t.cpu);
        if (t.hw) j["hw"] = view_json(*t.hw);
        if (form == JsonForm::numbers) {
            j["data_dependent"] = t.data_dependent;
            if (!t.picture.empty()) j["picture"] = t.picture;
        }
        list.push_back(std::move(j));
    }
    return list;
}

void numbers_to_strings(Json& j) {
    if (j.is_number())
        j = j.dump();
    else if (j.is_structured())
        for (Json& item : j) numbers_to_strings(item);
}

Json summary_json(const artifact::Summary& s) {
    const auto count = [](const artifact::Count& c) {
        return Json{{"operators", c.operators}, {"ops", c.ops}, {"subgraphs", c.subgraphs}};
    };
    Json j;
    j["os"] = s.os;
    j["commit"] = s.commit;
    j["model"] = s.model;
    j["model_data_type"] = s.model_data_type;
    j["device_data_type"] = s.device_data_type;
    j["total"] = count(s.total);
    j["supported"] = count(s.supported);
    j["offloaded"] = count(s.offloaded);
    j["compile_errors"] = s.compile_errors;
    j["below_threshold"] = s.below_threshold;
    j["threshold_percent"] = s.threshold_percent;
    j["above_max"] = s.above_max;
    j["max_subgraphs"] = s.max_subgraphs;
    j["folded"] = s.folded;
    return j;
}

void add_own_keys(Json& j, const CompiledModel& model) {
    const auto name = [&](int32_t i, const char* border) {
        return i < 0 ? std::string(border) : model.partitions[static_cast<size_t>(i)].name;
    };
    j["format_version"] = 1;
    j["device"] = model.device;
    j["target"] = model.target;
    const bool standard = model.compilation == artifact::Compilation::standard;
    j["compilation"] = standard ? "standard" : "cpu_partition";
    j["model_signature"] = model.model_signature;
    j["tool_version"] = model.tool_version;
    j["desired_batch_size"] = model.desired_batch_size;
    j["actual_batch_size"] = model.actual_batch_size;
    j["stats_level"] = model.stats_level;
    j["exact_floats"] = model.exact_floats;
    for (const char* key : {"partitions", "execution_order", "graph_edges"}) j[key] = Json::array();
    for (const artifact::Partition& p : model.partitions) {
        const bool npu = p.kind == artifact::PartitionKind::npu;
        Json partition = {{"name", p.name},
                          {"kind", npu ? "npu" : "cpu"},
                          {"operators", p.operators},
                          {"ops", p.ops}};
        if (npu) partition["columns"] = p.columns;
        const auto kept = npu ? graph::find_coordinates(p.graph) : graph::Coordinates{};
        if (kept.num_values() != 0)
            partition["kept_in_f32"] = {{"tensors", kept.num_values()},
                                        {"because_of", kept.reasons}};
        if (p.target == artifact::onnxruntime_target) partition["engine"] = "onnxruntime";
        j["partitions"].push_back(std::move(partition));
    }
    for (const uint32_t i : model.execution_order)
        j["execution_order"].push_back(model.partitions[i].name);
    for (const artifact::Edge& e : model.edges) {
        Json edge = {{"source_partition", name(e.source, "__graph_input__")},
                     {"destination_partition", name(e.destination, "__graph_output__")},
                     {"temp_buffer_name", e.temp_buffer_name},
                     {"tensor_name", e.tensor_name},
                     {"shape", e.shape},
                     {"data_type", to_string(e.data_type)}};
        if (e.data_dependent) edge["data_dependent"] = true;
        j["graph_edges"].push_back(std::move(edge));
    }
    j["summary"] = summary_json(model.summary);
    j["fallbacks"] = Json::array();
    for (const artifact::Fallback& f : model.summary.fallbacks) {
        Json fallback = {
            {"node", f.node}, {"op_type", f.op_type}, {"code", f.code}, {"text", f.text}};
        fallback["partition"] = f.partition < 0 ? Json() : Json(name(f.partition, ""));
        j["fallbacks"].push_back(std::move(fallback));
    }
}

}  // namespace

std::string inspect_foreign(const std::string& mpk) {
    return nlohmann::ordered_json::parse(mpk, nullptr, false)
               .dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) +
           '\n';
}

std::string inspect_json(const CompiledModel& model, const std::string& file, JsonForm form) {
    Json j;
    j["model_file"] = file;
    j["batch_size"] = model.actual_batch_size;
    j["inputs"] = tensors_json(model.inputs, form);
    j["outputs"] = tensors_json(model.outputs, form);
    if (form == JsonForm::compat)
        numbers_to_strings(j);
    else
        add_own_keys(j, model);
    return j.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace vartml::tools
