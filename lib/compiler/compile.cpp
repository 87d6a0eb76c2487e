// SPDX-License-Identifier: Apache-2.0
#include "lib/compiler/compile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <string_view>

#include <vartml/version.h>

#include "lib/compiler/hw_views.h"
#include "lib/compiler/pass_table.h"
#include "lib/compiler/schedule.h"
#include "lib/compiler/sidecar.h"
#include "lib/compiler/summary.h"
#include "lib/device/target.h"
#include "lib/graph/ops.h"
#include "lib/onnx/import.h"

namespace vartml::compiler {
namespace {

using artifact::CompiledModel;
using artifact::Partition;
using graph::Graph;
using graph::Node;

constexpr size_t max_listed = 20;

const char* os_name() {
#if defined(__aarch64__)
    return "Linux ARM64";
#else
    return "Linux X64";
#endif
}

// What a model computes in: the types of its matrix work.
struct WorkTypes {
    bool f32 = false, f16 = false, s8 = false, u8 = false;
};

WorkTypes work_types(const Graph& graph) {
    WorkTypes types;
    std::set<graph::ValueId> dequantised;
    for (const Node& node : graph.nodes) {
        const std::string_view base = node.base();
        const bool quantised = base == "QuantizeLinear" || base == "DequantizeLinear" ||
                               base.starts_with("QLinear") || base.ends_with("Integer");
        for (const graph::ValueId id : node.inputs) {
            if (!quantised || id == graph::none) continue;
            types.s8 = types.s8 || graph.value(id).type.data_type == DataType::int8;
            types.u8 = types.u8 || graph.value(id).type.data_type == DataType::uint8;
        }
        if (base == "DequantizeLinear") dequantised.insert(node.outputs[0]);
        const bool matrix =
            base == "Conv" || base == "ConvTranspose" || base == "Gemm" || base == "MatMul";
        if (!matrix || (!node.inputs.empty() && dequantised.contains(node.inputs[0]))) continue;
        const DataType type = graph.value(node.outputs[0]).type.data_type;
        (type == DataType::fp16 || type == DataType::bf16 ? types.f16 : types.f32) = true;
    }
    if (!types.f16 && !types.s8 && !types.u8) types.f32 = true;
    return types;
}

std::string join_types(const std::vector<std::string>& types) {
    std::string text;
    for (const std::string& type : types) text += (text.empty() ? "" : " and ") + type;
    return text;
}

std::string model_data_type(const WorkTypes& types) {
    std::vector<std::string> names;
    if (types.f32) names.push_back("float32");
    if (types.f16) names.push_back("float16");
    if (types.s8) names.push_back("int8 quantized");
    if (types.u8 && !types.s8) names.push_back("uint8 quantized");
    return join_types(names);
}

std::string device_data_type(const WorkTypes& types, bool convert_floats) {
    std::vector<std::string> names;
    if (types.f32) names.push_back(convert_floats ? "bfloat16" : "float32");
    if (types.f16) names.push_back("float16");
    if (types.s8 || types.u8) names.push_back("int8");
    return join_types(names);
}

std::string with_commas(uint64_t number) {
    std::string digits = std::to_string(number);
    for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
    return digits;
}

class Compilation {
public:
    Compilation(const CompileRequest& request, const device::Target& target,
                std::vector<std::string>* log)
        : request_(request), target_(target), log_(log) {}
    Result<CompiledModel> run(std::string* not_offloaded);

private:
    void progress(int percent, const char* stage) {
        if (request_.progress) request_.progress(percent, stage);
    }
    void say(LogLevel level, const std::string& text) {
        if (request_.message) request_.message(level, text);
    }
    void note(const std::string& step);  // with the time since the last one
    Result<void> check_layouts(const Graph& graph) const;
    Result<void> optimise(Graph& graph);
    std::string list_unsupported(const Graph& graph, uint32_t operators) const;
    Result<Partition> make_partition(Graph graph, const onnx::Imported& imported);
    Result<CompiledModel> make_model(Partition partition, const onnx::Imported& imported,
                                     const WorkTypes& types);

    const CompileRequest& request_;
    const device::Target& target_;
    std::vector<std::string>* log_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void Compilation::note(const std::string& step) {
    const auto now = std::chrono::steady_clock::now();
    char time[32];
    std::snprintf(time, sizeof time, "%9.3f ms  ",
                  std::chrono::duration<double, std::milli>(now - last_).count());
    last_ = now;
    if (log_) log_->push_back(time + step);
}

Result<void> Compilation::check_layouts(const Graph& graph) const {
    std::string names;
    for (const auto* ids : {&graph.inputs, &graph.outputs})
        for (const graph::ValueId id : *ids)
            names += (names.empty() ? "'" : ", '") + graph.value(id).name + '\'';
    for (const auto& [name, layout] : request_.layouts) {
        const graph::Value* found = nullptr;
        for (const auto* ids : {&graph.inputs, &graph.outputs})
            for (const graph::ValueId id : *ids)
                if (graph.value(id).name == name) found = &graph.value(id);
        if (!found)
            return Error{ErrorCode::invalid_argument, request_.model + ": --layout for '" + name +
                                                          "' names no input or output; there are " +
                                                          names};
        if (found->type.shape.size() != 4)
            return Error{ErrorCode::invalid_argument, request_.model + ": --layout for '" + name +
                                                          "' is for 4-D tensors, it is " +
                                                          to_string(found->type)};
    }
    return {};
}

Result<void> Compilation::optimise(Graph& graph) {
    auto reports = run_passes(graph, {.level = request_.optimize_level});
    if (!reports)
        return Error{reports.error().code, request_.model + ": " + reports.error().message};
    for (const PassReport& report : *reports)
        if (log_)
            log_->push_back("              pass " + std::string(report.name) + ": " +
                            std::to_string(report.rewrites) + " rewrites");
    return {};
}

// A line per node that the target does not run, then what to do; "" if it runs all.
std::string Compilation::list_unsupported(const Graph& graph, uint32_t operators) const {
    std::string text;
    size_t count = 0;
    for (const Node& node : graph.nodes) {
        const auto reason = device::why_unsupported(target_, graph, node);
        if (!reason || ++count > max_listed) continue;
        const std::string& name = node.sources.empty() ? node.name : node.sources[0];
        text += request_.model + ": node '" + name + "' (" + node.kind + ") cannot run on " +
                request_.device + ": " + reason->text + " (" + std::string(reason->code) + ")\n";
    }
    if (count == 0) return {};
    return text + request_.model + ": " + std::to_string(count) + " of " +
           std::to_string(operators) +
           " operators cannot run on the NPU, and this release runs nothing on the CPU instead; "
           "replace them with other operators "
           "or split the model before them";
}

Result<Partition> Compilation::make_partition(Graph graph, const onnx::Imported& imported) {
    Partition p;
    p.name = "vaiml_par_0";
    p.kind = artifact::PartitionKind::npu;
    p.target = target_.program;
    BorderViews views = make_border_views(
        graph, {.layouts = request_.layouts, .convert_floats = request_.convert_floats});
    p.inputs = std::move(views.inputs);
    p.outputs = std::move(views.outputs);
    p.operators = imported.operators;
    p.ops = imported.ops;
    p.columns = target_.footprint;
    Arena arena = plan_arena(graph);
    p.arena_offsets = std::move(arena.offsets);
    p.arena_size_bytes = arena.size_bytes;
    Schedule schedule = plan_layers(graph, target_, "MLA_0/");
    p.layers = std::move(schedule.layers);
    p.node_layers = std::move(schedule.node_layers);

    uint64_t needed = weight_bytes(graph) + arena.size_bytes;
    for (const auto* tensors : {&p.inputs, &p.outputs})
        for (const TensorInfo& t : *tensors) needed += t.hw->size_bytes;
    if (needed > target_.memory_bytes)
        return Error{ErrorCode::unsupported, request_.model + ": needs " + with_commas(needed) +
                                                 " bytes of device memory, limit " +
                                                 with_commas(target_.memory_bytes) +
                                                 "; use a smaller input or split the model"};
    p.graph = std::move(graph);
    return p;
}

Result<CompiledModel> Compilation::make_model(Partition partition, const onnx::Imported& imported,
                                              const WorkTypes& types) {
    CompiledModel m;
    m.tool_version = "vartml " + std::string(version());
    m.device = request_.device;
    m.target = target_.program;
    m.compilation = request_.cpu_partition ? artifact::Compilation::cpu_partition
                                           : artifact::Compilation::standard;
    m.model_name = default_cache_key(request_.model);
    m.model_signature = imported.signature;
    m.desired_batch_size = request_.batch_size;
    m.actual_batch_size = 1;
    m.inputs = partition.inputs;
    m.outputs = partition.outputs;
    m.execution_order = {0};
    const auto add_edges = [&](const std::vector<TensorInfo>& tensors, int32_t source,
                               int32_t destination) {
        std::vector<artifact::Edge> edges;
        for (const TensorInfo& t : tensors)
            edges.push_back(
                {source, destination, {}, t.name, t.cpu.shape, t.cpu.data_type, t.data_dependent});
        std::ranges::sort(edges, {}, &artifact::Edge::tensor_name);
        for (artifact::Edge& edge : edges) {
            edge.temp_buffer_name = "buf_" + std::to_string(m.edges.size());
            m.edges.push_back(std::move(edge));
        }
    };
    add_edges(m.inputs, -1, 0);
    add_edges(m.outputs, 0, -1);
    const artifact::Count all{imported.operators, imported.ops, 1};
    m.summary = {.os = os_name(),
                 .commit = std::string(source_commit()),
                 .model = request_.model,
                 .model_data_type = model_data_type(types),
                 .device_data_type = device_data_type(types, request_.convert_floats),
                 .total = all,
                 .supported = all,
                 .offloaded = all,
                 .folded = imported.folded,
                 .fallbacks = {}};
    m.partitions.push_back(std::move(partition));

    std::vector<std::string> warnings;
    auto modelinfo = make_modelinfo({.model = request_.model,
                                     .decoder = request_.decoder,
                                     .labels = request_.labels,
                                     .metadata = imported.metadata,
                                     .inputs = m.inputs,
                                     .outputs = m.outputs},
                                    warnings);
    for (const std::string& warning : warnings) say(LogLevel::warning, warning);
    if (!modelinfo) return modelinfo.error();
    m.files.push_back({"final-vaiml-pass-summary.txt", summary_text(m)});
    m.files.push_back({"final-vaiml-pass-summary.json", summary_json(m)});
    if (!modelinfo->empty()) m.files.push_back({"modelinfo", std::move(*modelinfo)});
    return m;
}

Result<CompiledModel> Compilation::run(std::string* not_offloaded) {
    progress(5, "import");
    auto imported = onnx::import_onnx(request_.model, {.input_shapes = request_.input_shapes});
    if (!imported) return imported.error();
    for (const onnx::Message& message : imported->messages) say(message.level, message.text);
    note("imported: " + std::to_string(imported->operators) + " operators, " +
         std::to_string(imported->folded) + " folded");
    if (auto done = check_layouts(imported->graph); !done) return done.error();

    progress(30, "optimise");
    const WorkTypes types = work_types(imported->graph);
    Graph graph = std::move(imported->graph);
    if (auto done = optimise(graph); !done) return done.error();
    note("optimised: " + std::to_string(graph.nodes.size()) + " nodes");
    if (std::string lines = list_unsupported(graph, imported->operators); !lines.empty()) {
        if (request_.require_full_offload) *not_offloaded = lines;
        return Error{ErrorCode::unsupported, std::move(lines)};
    }

    progress(60, "plan");
    auto partition = make_partition(std::move(graph), *imported);
    if (!partition) return partition.error();
    note("planned: " + std::to_string(partition->arena_size_bytes) + " bytes of arena");
    return make_model(std::move(*partition), *imported, types);
}

}  // namespace

Result<CompiledModel> compile_in_memory(const CompileRequest& request, std::string* not_offloaded,
                                        std::vector<std::string>* log) {
    const device::Target* target = device::find_target(request.device);
    if (!target) {
        std::string known;
        for (const std::string_view name : device::target_names())
            known += (known.empty() ? "" : ", ") + std::string(name);
        return Error{ErrorCode::invalid_argument,
                     "--device: unknown device '" + request.device + "'; known: " + known};
    }
    if (request.batch_size != 1)
        return Error{
            ErrorCode::invalid_argument,
            "--batch-size: is " + std::to_string(request.batch_size) +
                ", this release compiles for batch size 1; the runner accepts several frames "
                "per call all the same"};
    std::string ignored;
    return Compilation(request, *target, log).run(not_offloaded ? not_offloaded : &ignored);
}

std::string default_cache_key(const std::string& model) {
    std::string name = model.substr(model.rfind('/') + 1);
    if (const size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0) name.resize(dot);
    for (char& c : name) {
        const bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (!safe) c = '_';
    }
    if (name.empty() || name[0] == '.') name.insert(0, "_");
    return name.substr(0, 128);
}

}  // namespace vartml::compiler
