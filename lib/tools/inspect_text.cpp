// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <map>

#include "lib/base/text.h"
#include "lib/graph/coordinates.h"
#include "lib/model/program.h"
#include "lib/model/stats_descriptor.h"
#include "lib/tools/inspect.h"

namespace vartml::tools {
namespace {

using artifact::CompiledModel;
using artifact::Fallback;
using artifact::PartitionKind;

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
    va_list arguments;
    va_start(arguments, pattern);
    char text[256];
    std::vsnprintf(text, sizeof text, pattern, arguments);
    va_end(arguments);
    return text;
}

std::string list_text(const std::vector<uint32_t>& numbers) {
    std::string text = "[";
    for (size_t i = 0; i < numbers.size(); ++i) text += (i ? "," : "") + std::to_string(numbers[i]);
    return text + ']';
}

std::string shortest(double value) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return {text, end};
}

std::string view_text(const TensorView& view) {
    std::string text = "shape=" + list_text(view.shape);
    text += "  dtype=" + std::string(to_string(view.data_type));
    text += "  memory_layout=" + std::string(to_string(view.layout));
    if (view.layout == Layout::GENERIC)
        text += "(memory_layout_order=" + list_text(view.order) + ')';
    text += "  size=" + std::to_string(view.size_bytes) + 'B';
    if (view.quantisation)
        text += "  quant{scale=" + shortest(view.quantisation->scale) +
                ", zero_point=" + std::to_string(view.quantisation->zero_point) +
                ", rounding_mode=ROUND_TO_NEAREST_EVEN}";
    return text;
}

// The partition that reads an input of the model or makes an output.
std::string border_partition(const CompiledModel& model, const TensorInfo& tensor, bool input) {
    for (const artifact::Edge& e : model.edges) {
        const int32_t border = input ? e.source : e.destination;
        const int32_t inner = input ? e.destination : e.source;
        if (border == -1 && inner >= 0 && e.tensor_name == tensor.name)
            return model.partitions[static_cast<size_t>(inner)].name;
    }
    return {};
}

void add_tensors(std::string& text, const CompiledModel& model, bool input) {
    const std::vector<TensorInfo>& tensors = input ? model.inputs : model.outputs;
    text += input ? "  Inputs (" : "  Outputs (";
    text += std::to_string(tensors.size()) + "):\n";
    for (size_t i = 0; i < tensors.size(); ++i) {
        const TensorInfo& t = tensors[i];
        text += "    [" + std::to_string(i) + "] " + t.name + '\n';
        text += "         cpu: " + view_text(t.cpu);
        text += t.data_dependent ? "  data_dependent\n" : "\n";
        if (t.hw) {
            text += "         hw : " + view_text(*t.hw) + '\n';
            continue;
        }
        const std::string partition = border_partition(model, t, input);
        text += "         hw : none";
        if (partition.starts_with("vaiml_cpu")) text += " (CPU partition " + partition + ')';
        text += '\n';
    }
    text += '\n';
}

double percent(double part, double whole) {
    return whole == 0 ? 0.0 : 100.0 * part / whole;
}

std::string partition_text(const artifact::Partition& p) {
    const bool npu = p.kind == PartitionKind::npu;
    const bool foreign = p.target == artifact::onnxruntime_target;
    std::string text = format("%s (%s%s, %u operators, %.3f GOPs", p.name.c_str(),
                              npu ? "npu" : "cpu", foreign ? ", engine onnxruntime" : "",
                              p.operators, static_cast<double>(p.ops) / 1e9);
    if (npu) text += format(", %u columns", p.columns);
    return text + ')';
}

// What programs keep in f32 where the device computes in bf16; "" where there is nothing.
std::string kept_text(const CompiledModel& model) {
    std::string text;
    for (const uint32_t index : model.execution_order) {
        const artifact::Partition& p = model.partitions[index];
        if (p.kind != PartitionKind::npu) continue;
        const graph::Coordinates kept = graph::find_coordinates(p.graph);
        if (kept.num_values() == 0) continue;
        std::map<std::string, size_t> counts;
        for (const std::string& reason : kept.reasons) ++counts[reason.substr(0, reason.find(' '))];
        text += text.empty() ? "Kept in f32       : " : std::string(20, ' ');
        const auto tensors = std::ranges::count_if(
            p.graph.values, [](const graph::Value& value) { return !value.constant; });
        text += p.name +
                ": indices, comparisons, coordinates: " + std::to_string(kept.num_values()) +
                " of " + std::to_string(tensors) + " tensors, because of ";
        bool first = true;
        for (const auto& [kind, count] : counts) {
            text += (first ? "" : ", ") + kind + " x" + std::to_string(count);
            first = false;
        }
        text += " (the first: " + printable(kept.reasons.front(), 256) + ")\n";
    }
    return text;
}

struct Group {
    std::string code;
    std::vector<const Fallback*> nodes;
};

// By count, the largest first, then by code.
std::vector<Group> groups_of(const std::vector<Fallback>& fallbacks) {
    std::map<std::string, std::vector<const Fallback*>> by_code;
    for (const Fallback& f : fallbacks) by_code[f.code].push_back(&f);
    std::vector<Group> groups;
    for (auto& [code, nodes] : by_code) groups.push_back({code, std::move(nodes)});
    std::ranges::stable_sort(groups, std::greater{}, [](const Group& g) { return g.nodes.size(); });
    return groups;
}

// "Conv x13, Relu x12"
std::string operators_text(const Group& group) {
    std::map<std::string_view, size_t> counts;
    for (const Fallback* f : group.nodes) ++counts[f->op_type];
    std::vector<std::pair<std::string_view, size_t>> sorted(counts.begin(), counts.end());
    std::ranges::stable_sort(sorted, std::greater{}, [](const auto& c) { return c.second; });
    std::string text;
    for (const auto& [type, count] : sorted)
        text += (text.empty() ? "" : ", ") + std::string(type) + " x" + std::to_string(count);
    return text;
}

void add_fallbacks(std::string& text, const CompiledModel& model) {
    const std::vector<Fallback>& fallbacks = model.summary.fallbacks;
    text += "Fallback reasons  : ";
    if (fallbacks.empty()) {
        text += "none\n";
        return;
    }
    text += format("%zu operators outside the NPU\n", fallbacks.size());
    for (const Group& group : groups_of(fallbacks)) {
        text += "    " + group.code + " (" + std::to_string(group.nodes.size()) +
                "): " + group.nodes.front()->text;
        const bool same = std::ranges::all_of(
            group.nodes, [&](const Fallback* f) { return f->text == group.nodes.front()->text; });
        text += same ? "\n        " : " (first of several)\n        ";
        text += operators_text(group) + '\n';
    }
    text += "CPU nodes         :\n";
    for (const Fallback& f : fallbacks) {
        text += "    " + f.op_type + " '" + f.node + "': " + f.code;
        text += f.partition < 0
                    ? ", runs nowhere\n"
                    : ", in " + model.partitions[static_cast<size_t>(f.partition)].name + '\n';
    }
}

// "70 (opstatsdesc.bin: 139 operators)"
std::string stats_text(const CompiledModel& model) {
    const std::string level = std::to_string(model.stats_level);
    if (!model.find_file(profiling::descriptor_entry))
        return level + " (no " + profiling::descriptor_entry + ")";
    const auto d = artifact::descriptor_of(model, "the model");
    if (!d) return level + " (" + d.error().message + ")";
    size_t operators = 0;
    for (const profiling::Core& core : d->cores)
        for (const profiling::Group& group : core.groups)
            for (const profiling::Op& op : group.ops)
                operators += !d->is_sync(op) && !d->is_barrier(op);
    return level + " (" + profiling::descriptor_entry + ": " + std::to_string(operators) +
           " operators)";
}

}  // namespace

std::string inspect_text(const CompiledModel& model, const std::string& file) {
    std::string text = "--- Model info ---\n";
    text += "Model file        : " + printable(file, 4096) + '\n';
    text += "Batch size : " + std::to_string(model.actual_batch_size) + '\n';
    add_tensors(text, model, true);
    add_tensors(text, model, false);
    const artifact::Summary& s = model.summary;
    text += "--- vartml ---\n";
    text += "Device            : " + model.device + " (target " + model.target + ")\n";
    text += "Compilation       : ";
    text += model.compilation == artifact::Compilation::standard ? "standard\n" : "cpu_partition\n";
    text += "Batch size        : desired " + std::to_string(model.desired_batch_size) +
            ", actual " + std::to_string(model.actual_batch_size) + '\n';
    text += "Partitions        : ";
    if (model.partitions.empty()) text += "none\n";
    for (size_t i = 0; i < model.execution_order.size(); ++i)
        text += (i ? std::string(20, ' ') : std::string()) +
                partition_text(model.partitions[model.execution_order[i]]) + '\n';
    text += kept_text(model);
    text += format("Offload           : %u of %u operators (%.3f%%), %.3f%% of GOPs\n",
                   s.offloaded.operators, s.total.operators,
                   percent(s.offloaded.operators, s.total.operators),
                   percent(static_cast<double>(s.offloaded.ops), static_cast<double>(s.total.ops)));
    add_fallbacks(text, model);
    text += "Stats level       : " + stats_text(model) + '\n';
    text += "Model signature   : " + model.model_signature + '\n';
    return text;
}

}  // namespace vartml::tools
