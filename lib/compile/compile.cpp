// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/compile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include <vartml/version.h>

#include "lib/base/file.h"
#include "lib/base/places.h"
#include "lib/base/process.h"
#include "lib/base/saturating.h"
#include "lib/base/text.h"
#include "lib/compile/connect.h"
#include "lib/compile/hw_views.h"
#include "lib/compile/input_meaning.h"
#include "lib/compile/onnx/import.h"
#include "lib/compile/output_meaning.h"
#include "lib/compile/partition.h"
#include "lib/compile/pass_table.h"
#include "lib/compile/perf_metrics.h"
#include "lib/compile/sidecar.h"
#include "lib/compile/stats_descriptor.h"
#include "lib/compile/summary.h"
#include "lib/graph/coordinates.h"
#include "lib/graph/dynamic.h"
#include "lib/graph/text.h"
#include "lib/model/entries.h"
#include "lib/model/program.h"
#include "lib/model/stats_descriptor.h"
#include "lib/model/target.h"

namespace vartml::compiler {
namespace {

constexpr int exit_absent = 3;  // of the child where there is no ONNX Runtime
// Of the child, which runs the model to learn shapes: a Loop may have no end, and keep what it
// makes.
constexpr std::chrono::seconds time_limit{60};
constexpr uint64_t memory_limit = uint64_t{8} << 30;

std::string last_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.substr(text.rfind('\n') + 1);
}

// ONNX Runtime's sentence without the name of the file that it was given.
std::string sentence(const std::string& text) {
    constexpr std::string_view failed = " failed:";
    const size_t at = text.starts_with("Load model from ") ? text.find(failed) : text.npos;
    return at == text.npos ? text : text.substr(at + failed.size());
}

// "1 fixed 1,3,4", "1 varies 2,0", "1 open" or "0".
onnx::ForeignOutput parse(std::string_view line) {
    onnx::ForeignOutput output;
    std::istringstream words{std::string(line)};
    std::string how, sizes;
    words >> output.elem_type >> how >> sizes;
    output.has_shape = how == "fixed" || how == "varies";
    output.varies = how == "varies";
    std::istringstream numbers(sizes);
    for (std::string size; output.has_shape && std::getline(numbers, size, ',');)
        if (size != "-") output.shape.push_back(std::stoll(size));
    return output;
}

// For onnx::ForeignOptions::ask: what ONNX Runtime, behind its child program, says of a model.
Result<std::vector<onnx::ForeignOutput>> ask_onnxruntime(const std::string& model) {
    Child child;
    child.arguments = {find_onnxruntime_program(), "describe"};
    if (child.arguments[0].empty())
        return Error{ErrorCode::not_found, "the program vartml-onnxruntime is not installed"};
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    const std::string path = folder->path() + "/model.onnx";
    const Bytes bytes = as_bytes(model);
    if (auto done = write_new_file(path, std::span(&bytes, 1)); !done) return done.error();
    child.arguments.push_back(path);
    std::vector<onnx::ForeignOutput> outputs;
    child.on_line = [&](std::string_view line) { outputs.push_back(parse(line)); };
    child.time_limit = time_limit;
    child.memory_limit = memory_limit;
    auto ended = run_child(child);
    if (!ended) return ended.error();
    if (ended->timed_out)
        return Error{ErrorCode::unsupported,
                     "it did not run it to the end within " + std::to_string(time_limit.count()) +
                         " s, to learn the shapes of its results; give Loops fewer trips, or the "
                         "outputs fixed shapes"};
    if (ended->exit_status == exit_absent)
        return Error{ErrorCode::not_found, last_line(ended->stderr_tail)};
    if (ended->exit_status != 0)
        return Error{ErrorCode::unsupported,
                     ended->signal ? "it ended by signal " + std::to_string(ended->signal)
                                   : sentence(last_line(ended->stderr_tail))};
    return outputs;
}

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

// A subgraph after its passes, with its memory.
struct Program {
    Graph graph;
    Arena arena;
    std::string before;  // text of the graph before its passes, where it is kept
};

class Compilation {
public:
    Compilation(const CompileRequest& request, const device::Target& target,
                std::vector<std::string>* log, std::vector<artifact::File>* debug)
        : request_(request), target_(target), log_(log), debug_(debug) {}
    Result<CompiledModel> run(std::string* not_offloaded);
    // From a graph that is imported already.
    Result<CompiledModel> build(onnx::Imported imported, std::string* not_offloaded);

private:
    void progress(int percent, const char* stage) {
        if (request_.progress) request_.progress(percent, stage);
    }
    void say(LogLevel level, const std::string& text) {
        if (request_.message) request_.message(level, text);
    }
    void note(const std::string& step);  // with the time since the last one
    Result<void> check_layouts(const Graph& graph) const;
    Result<void> embed_preprocesses(onnx::Imported& imported) const;
    Result<CompiledModel> make_trial(onnx::Imported trial, bool has_own_outputs) const;
    Result<void> quantise_floats(onnx::Imported& imported);

    Partitioning decide();
    Result<Program> make_program(const Part& part);
    std::optional<std::string> compile_for_npu(const Part& part);
    uint64_t columns() const {
        return uint64_t{target_.footprint} * request_.dp_size * request_.tp_size;
    }
    uint64_t memory_limit() const {
        return request_.device_memory_limit ? request_.device_memory_limit : target_.memory_bytes;
    }

    uint64_t host_memory_limit() const {
        return request_.cpu_memory_limit ? request_.cpu_memory_limit : cpu::memory_limit_bytes;
    }
    uint64_t tensor_limit() const {
        return request_.cpu_memory_limit ? request_.cpu_memory_limit : cpu::tensor_limit_bytes;
    }

    std::string list_fallbacks(const Partitioning& decided) const;
    Result<void> check_inner(const TensorPlaces& places) const;
    Result<void> check_host_memory(const Partition& partition) const;
    Result<Partition> make_partition(const Part& part, const TensorPlaces& places);
    void name_partitions(std::vector<Partition>& partitions) const;
    void keep_graphs(const std::vector<Partition>& partitions);
    uint32_t largest_batch(const std::vector<Partition>& partitions) const;
    void add_border(CompiledModel& model, const TensorPlaces& places) const;
    Result<void> add_files(CompiledModel& model);
    Result<CompiledModel> make_model(Partitioning decided);

    const CompileRequest& request_;
    const device::Target& target_;
    std::vector<std::string>* log_;
    std::vector<artifact::File>* debug_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
    onnx::Imported imported_;
    ViewOptions views_;
    size_t own_outputs_ =
        std::numeric_limits<size_t>::max();  // those behind them are to be measured
    Tessellation tessellation_;
    std::vector<std::string> before_;      // per partition, texts of the graphs before their passes
    std::map<int32_t, Program> programs_;  // of NPU subgraphs that compiled, by candidate
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

// ---- before partitioning

// Nodes that the compiler added are their own origin.
void add_origins(onnx::Imported& imported) {
    for (const Node& node : imported.graph.nodes)
        for (const std::string& source : node.sources)
            imported.origins.try_emplace(source, onnx::Origin{node.kind, node.domain});
}

Result<void> Compilation::embed_preprocesses(onnx::Imported& imported) const {
    for (const EmbeddedPreprocess& e : request_.embed)
        if (auto done = embed_preprocess(imported.graph, e); !done)
            return Error{done.error().code, request_.model + ": " + done.error().message};
    add_origins(imported);
    return {};
}

// For make_int8(): in a CPU partition.
Result<CompiledModel> Compilation::make_trial(onnx::Imported trial, bool has_own_outputs) const {
    CompileRequest request;
    request.model = request_.model;
    if (has_own_outputs) {
        request.decoder = request_.decoder;
        request.labels = request_.labels;
    }
    request.pixels = request_.pixels;
    // What a trial gives out beside, or not, has no layout that was asked for.
    for (const auto* ids : {&trial.graph.inputs, &trial.graph.outputs})
        for (const graph::ValueId id : *ids)
            if (const auto asked = request_.layouts.find(trial.graph.value(id).name);
                asked != request_.layouts.end())
                request.layouts.insert(*asked);
    request.npu = false;
    request.convert_floats = false;
    // Every tensor may be at its border.
    request.cpu_memory_limit = 16 * host_memory_limit();
    std::string ignored;
    Compilation compilation(request, target_, nullptr, nullptr);
    compilation.own_outputs_ = own_outputs_;
    return compilation.build(std::move(trial), &ignored);
}

Result<void> Compilation::quantise_floats(onnx::Imported& imported) {
    if (auto good = check_quantisable(imported.graph); !good)
        return Error{good.error().code, request_.model + ": " + good.error().message};
    own_outputs_ = imported.graph.outputs.size();
    auto made =
        make_int8(imported.graph, request_.quantise, [&](Graph graph, bool has_own_outputs) {
            onnx::Imported trial = imported;
            trial.graph = std::move(graph);
            return make_trial(std::move(trial), has_own_outputs);
        });
    if (!made) return made.error();
    if (request_.quantise.report) request_.quantise.report(made->share, made->kept_float.size());
    if (made->share.operators == 0)
        say(LogLevel::warning,
            request_.model + (made->kept_float.empty()
                                  ? ": --quantize found no convolution or product that could work "
                                    "on int8; the model stays float"
                                  : ": no convolution or product in int8 agrees with the floats as "
                                    "well as --quantize-target asks; the model stays float"));
    add_origins(imported);
    note("quantised: " + std::to_string(made->share.operators) + " operators");
    return {};
}

// ---- parts and their programs

Result<Program> Compilation::make_program(const Part& part) {
    // Nothing to cut: an input that nobody reads stays.
    const bool whole = part.nodes.size() == imported_.graph.nodes.size();
    Program program{whole ? imported_.graph : cut(imported_.graph, part.nodes), {}, {}};
    if (request_.keep_outputs) program.before = graph::print(program.graph);
    if (part.onnxruntime) {
        program.arena = plan_arena(program.graph);
        return program;
    }
    auto reports = run_passes(program.graph, {.level = request_.optimize_level});
    if (!reports) return reports.error();
    for (const PassReport& report : *reports)
        if (log_)
            log_->push_back("              pass " + std::string(report.name) + ": " +
                            std::to_string(report.rewrites) + " rewrites");
    program.arena = plan_arena(program.graph);
    return program;
}

// Keeps the program, or says why there is none.
std::optional<std::string> Compilation::compile_for_npu(const Part& part) {
    auto program = make_program(part);
    if (!program) return "does not compile: " + program.error().message;
    for (const Node& node : program->graph.nodes)
        if (const auto why = device::why_unsupported(target_, program->graph, node))
            return "has node '" + node.name + "' (" + node.type() +
                   ") after its passes: " + why->text;
    // Which view a tensor has is not known before all parts are: the larger one counts, unless
    // there is but one part.
    const bool whole = part.nodes.size() == imported_.graph.nodes.size();
    uint64_t edges = 0;
    const BorderViews views = make_border_views(program->graph, views_);
    for (const auto* tensors : {&views.inputs, &views.outputs})
        for (const TensorInfo& t : *tensors)
            edges += whole ? t.hw->size_bytes : std::max(t.hw->size_bytes, t.cpu.size_bytes);
    const uint64_t needed = weight_bytes(program->graph) + program->arena.size_bytes + edges;
    if (needed > memory_limit())
        return "needs " + with_commas(needed) + " bytes of device memory, limit " +
               with_commas(memory_limit());
    programs_[part.candidate] = std::move(*program);
    return std::nullopt;
}

Partitioning Compilation::decide() {
    PartitionPolicy policy;
    policy.threshold_gops_percent = request_.threshold_gops_percent;
    policy.use_npu = request_.npu;
    policy.cpu_parts = request_.cpu_partition;
    policy.compile = [this](const Part& part) { return compile_for_npu(part); };
    return partition(imported_.graph, imported_.origins, target_, policy);
}

// A line per operator that is not on the NPU, then how many there are; "" if there is none.
std::string Compilation::list_fallbacks(const Partitioning& decided) const {
    if (decided.fallbacks.empty()) return {};
    std::string text;
    for (size_t i = 0; i < std::min(decided.fallbacks.size(), max_listed); ++i) {
        const artifact::Fallback& f = decided.fallbacks[i];
        text += request_.model + ": node '" + f.node + "' (" + f.op_type + ") is not on " +
                request_.device + ": " + f.text + " (" + f.code + ")\n";
    }
    return text + request_.model + ": " + std::to_string(decided.fallbacks.size()) + " of " +
           std::to_string(decided.total.operators) +
           " operators do not run on the NPU, as --require-full-offload demands; replace them, or "
           "compile without it";
}

// ---- the model

// What passes between partitions lies in buffers of the runtime, which knows the types of ONNX's
// borders only, and has one byte at least.
Result<void> Compilation::check_inner(const TensorPlaces& places) const {
    for (const graph::Value& value : imported_.graph.values) {
        if (!places.inner.contains(value.name)) continue;
        const char* fault = value.type.data_type == DataType::float64
                                ? "; insert a Cast to float32 before it"
                            : value.type.elements() == 0 ? "; remove it from the model"
                                                         : nullptr;
        if (fault)
            return Error{ErrorCode::unsupported,
                         request_.model + ": tensor '" + value.name + "' is " +
                             to_string(value.type) +
                             " and would pass from one partition to another, which no buffer of "
                             "the runtime holds" +
                             fault};
    }
    return {};
}

// Before anything of the size is allocated.
Result<void> Compilation::check_host_memory(const Partition& p) const {
    uint64_t needed = saturating_sum(weight_bytes(p.graph), p.arena_size_bytes);
    for (const auto* tensors : {&p.inputs, &p.outputs})
        for (const TensorInfo& t : *tensors) needed = saturating_sum(needed, t.cpu.size_bytes);
    const auto size = [](const graph::Value& v) { return v.type.size_bytes(); };
    const graph::Value& largest = *std::ranges::max_element(p.graph.values, {}, size);
    const bool absurd = size(largest) > tensor_limit();
    if (!absurd && needed <= host_memory_limit()) return {};
    return Error{ErrorCode::unsupported,
                 request_.model + ": a CPU partition needs " + with_commas(needed) +
                     " bytes of memory" +
                     (absurd ? "" : ", limit " + with_commas(host_memory_limit())) +
                     "; its largest tensor is '" + largest.name + "', " + to_string(largest.type) +
                     (absurd ? ", limit " + with_commas(tensor_limit()) + " bytes" : "") +
                     ": make it smaller, or give --cpu-memory-limit with the bytes that this "
                     "machine can spare"};
}

Result<Partition> Compilation::make_partition(const Part& part, const TensorPlaces& places) {
    const bool npu = part.kind == artifact::PartitionKind::npu;
    Program program;
    if (npu) {
        program = std::move(programs_.at(part.candidate));
    } else {
        auto made = make_program(part);
        if (!made) return made.error();
        program = std::move(*made);
    }
    Partition p;
    p.kind = part.kind;
    p.target = npu                ? std::string(target_.program)
               : part.onnxruntime ? artifact::onnxruntime_target
                                  : artifact::cpu_target;
    ViewOptions options = views_;
    options.inner = places.inner;
    options.on_host = !npu;
    options.exact.insert(places.shared.begin(), places.shared.end());
    if (npu && (request_.quantised_inputs || request_.quantised_outputs)) {
        std::set<std::string> keep = places.inner;
        keep.insert(places.on_host.begin(), places.on_host.end());
        keep.insert(places.shared.begin(), places.shared.end());
        options.quantised = quantise_edges(program.graph, request_.quantised_inputs,
                                           request_.quantised_outputs, keep);
        program.arena = plan_arena(program.graph);
    }
    BorderViews views = make_border_views(program.graph, options);
    p.inputs = std::move(views.inputs);
    p.outputs = std::move(views.outputs);
    p.operators = part.operators;
    p.ops = part.ops;
    p.columns = npu ? static_cast<uint32_t>(columns()) : 0;
    p.arena_offsets = std::move(program.arena.offsets);
    p.arena_size_bytes = program.arena.size_bytes;
    p.graph = std::move(program.graph);
    if (!npu)
        if (auto good = check_host_memory(p); !good) return good.error();
    before_.push_back(std::move(program.before));
    return p;
}

// Numbers each kind in execution order; a layer bears the number of its NPU partition.
void Compilation::name_partitions(std::vector<Partition>& partitions) const {
    size_t npu = 0, cpu = 0;
    for (Partition& p : partitions) {
        if (p.kind == artifact::PartitionKind::cpu) {
            p.name = "vaiml_cpu_subgraph_" + std::to_string(cpu++);
            continue;
        }
        p.name = "vaiml_par_" + std::to_string(npu);
        Schedule schedule = plan_layers(p.graph, target_, "MLA_" + std::to_string(npu++) + '/');
        p.layers = std::move(schedule.layers);
        p.node_layers = std::move(schedule.node_layers);
    }
}

void Compilation::keep_graphs(const std::vector<Partition>& partitions) {
    if (!request_.keep_outputs || !debug_) return;
    for (size_t i = 0; i < partitions.size(); ++i) {
        const std::string folder = partitions[i].name + "/0/debug/";
        debug_->push_back({folder + "imported.txt", before_[i]});
        debug_->push_back({folder + "optimised.txt", graph::print(partitions[i].graph)});
    }
}

uint32_t Compilation::largest_batch(const std::vector<Partition>& partitions) const {
    uint64_t batch = request_.batch_size;
    for (const Partition& p : partitions) {
        if (p.kind != artifact::PartitionKind::npu) continue;
        uint64_t frame = p.arena_size_bytes;
        for (const auto* tensors : {&p.inputs, &p.outputs})
            for (const TensorInfo& t : *tensors) frame += t.hw->size_bytes;
        const uint64_t weights = weight_bytes(p.graph);
        const uint64_t room = memory_limit() > weights ? memory_limit() - weights : 0;
        if (frame != 0) batch = std::min(batch, std::max<uint64_t>(room / frame, 1));
    }
    return static_cast<uint32_t>(batch);
}

// The model's inputs and outputs: as the NPU partition at them has them, without HW view where the
// CPU is.
void Compilation::add_border(CompiledModel& model, const TensorPlaces& places) const {
    BorderViews views = make_border_views(imported_.graph, views_);
    const auto settle = [&](TensorInfo& tensor, auto list) {
        if (places.on_host.contains(tensor.name)) tensor.hw.reset();
        if (!tensor.hw) return;
        for (const Partition& p : model.partitions)
            for (const TensorInfo& t : p.*list)
                if (t.name == tensor.name) tensor.hw = t.hw;
    };
    for (TensorInfo& t : views.inputs) settle(t, &Partition::inputs);
    for (TensorInfo& t : views.outputs) settle(t, &Partition::outputs);
    model.inputs = std::move(views.inputs);
    model.outputs = std::move(views.outputs);
}

Result<void> Compilation::add_files(CompiledModel& m) {
    std::vector<std::string> warnings;
    const std::span<const TensorInfo> outputs = m.outputs;
    auto modelinfo =
        make_modelinfo({.model = request_.model,
                        .decoder = request_.decoder,
                        .labels = request_.labels,
                        .metadata = imported_.metadata,
                        .inputs = m.inputs,
                        .outputs = outputs.first(std::min(own_outputs_, outputs.size())),
                        .meanings = output_meanings(imported_.graph),
                        .class_count = class_count(imported_.graph),
                        .weights = input_meanings(imported_.graph),
                        .pixels = request_.pixels},
                       warnings);
    for (const std::string& warning : warnings) say(LogLevel::warning, warning);
    if (!modelinfo) return modelinfo.error();
    m.files.push_back({"final-vaiml-pass-summary.txt", summary_text(m)});
    m.files.push_back({"final-vaiml-pass-summary.json", summary_json(m)});
    if (!modelinfo->empty()) m.files.push_back({"modelinfo", std::move(*modelinfo)});
    if (m.stats_level >= profiling::level_inference)
        m.files.push_back({profiling::descriptor_entry, artifact::write_descriptor(make_descriptor(
                                                            m, target_, request_.stats))});
    if (request_.perf_metrics)
        m.files.push_back({metrics_entry, metrics_json(measure(m, target_))});
    return {};
}

constexpr size_t longest_path = 4000;  // with what printable() adds, what a manifest may hold

bool quantises(const graph::Graph& graph, const std::string& input) {
    return std::ranges::any_of(graph.nodes, [&](const graph::Node& node) {
        return node.kind == "QuantizeLinear" && graph.value(node.inputs[0]).name == input;
    });
}

Result<CompiledModel> Compilation::make_model(Partitioning decided) {
    CompiledModel m;
    m.tool_version = "vartml " + std::string(version());
    m.device = request_.device;
    m.target = target_.program;
    m.compilation = request_.cpu_partition ? artifact::Compilation::cpu_partition
                                           : artifact::Compilation::standard;
    m.model_name = model_name(request_);
    m.model_signature = imported_.signature;
    m.stats_level = static_cast<uint16_t>(request_.stats.level);
    m.exact_floats = !request_.convert_floats;
    TensorPlaces places = find_tensor_places(imported_.graph, decided.parts);
    std::erase_if(places.shared, [&](const std::string& name) {
        return std::ranges::none_of(decided.parts, [&](const Part& part) {
            return part.kind == artifact::PartitionKind::npu &&
                   quantises(programs_.at(part.candidate).graph, name);
        });
    });
    // What the host converts is as ONNX has it on both sides.
    places.inner.insert(tessellation_.without_hw.begin(), tessellation_.without_hw.end());
    places.on_host.insert(tessellation_.without_hw.begin(), tessellation_.without_hw.end());
    if (auto good = check_inner(places); !good) return good.error();
    for (const Part& part : decided.parts) {
        auto made = make_partition(part, places);
        if (!made) return made.error();
        m.partitions.push_back(std::move(*made));
    }
    name_partitions(m.partitions);
    keep_graphs(m.partitions);
    m.desired_batch_size = request_.batch_size;
    m.actual_batch_size = largest_batch(m.partitions);
    add_border(m, places);
    connect(m);
    const DataTypes types = name_data_types(imported_.graph, request_.convert_floats);
    m.summary = {.os = os_name(),
                 .commit = std::string(source_commit()),
                 .model = printable(request_.model, longest_path),  // the file's name is bytes
                 .model_data_type = types.model,
                 .device_data_type = types.device,
                 .total = decided.total,
                 .supported = decided.supported,
                 .offloaded = decided.offloaded,
                 .compile_errors = decided.compile_errors,
                 .below_threshold = decided.below_threshold,
                 .above_max = decided.above_max,
                 .folded = imported_.folded,
                 .threshold_percent = request_.threshold_gops_percent,
                 .fallbacks = std::move(decided.fallbacks)};
    if (auto done = add_files(m); !done) return done.error();
    return m;
}

Result<CompiledModel> Compilation::run(std::string* not_offloaded) {
    if (columns() > target_.columns)
        return Error{ErrorCode::invalid_argument,
                     "dp_size " + std::to_string(request_.dp_size) + " times tp_size " +
                         std::to_string(request_.tp_size) + " needs " + std::to_string(columns()) +
                         " columns, " + request_.device + " has " +
                         std::to_string(target_.columns) + "; use smaller numbers"};
    progress(5, "import");
    onnx::ImportOptions options;
    options.input_shapes = request_.input_shapes;
    options.foreign.allowed = request_.cpu_partition && request_.onnxruntime;
    options.foreign.ask = ask_onnxruntime;
    auto imported = onnx::import_onnx(request_.model, options);
    if (!imported) return imported.error();
    for (const onnx::Message& message : imported->messages) say(message.level, message.text);
    note("imported: " + std::to_string(imported->operators) + " operators, " +
         std::to_string(imported->folded) + " folded");
    if (request_.quantise.measure) {
        progress(10, "quantise");
        if (auto done = quantise_floats(*imported); !done) return done.error();
    }
    if (auto done = embed_preprocesses(*imported); !done) return done.error();
    return build(std::move(*imported), not_offloaded);
}

Result<CompiledModel> Compilation::build(onnx::Imported imported, std::string* not_offloaded) {
    imported_ = std::move(imported);
    if (auto done = check_layouts(imported_.graph); !done) return done.error();
    auto tessellation = read_tessellation(request_.tessellate, imported_.graph, target_.device);
    if (!tessellation) return tessellation.error();
    tessellation_ = std::move(*tessellation);
    views_ = {.layouts = request_.layouts,
              .convert_floats = request_.convert_floats,
              .hw_layouts = tessellation_.hw_layouts};
    for (const EmbeddedPreprocess& e : request_.embed) views_.pictures[e.input] = e.order;
    // Of the model, not of what a partition begins with.
    views_.picture_layout = find_picture_layout(imported_.graph, views_).value_or(Layout::NCHW);
    const graph::Coordinates kept = graph::find_coordinates(imported_.graph);
    for (const graph::ValueId in : imported_.graph.inputs)
        if (kept.values[static_cast<size_t>(in)])
            views_.exact.insert(imported_.graph.value(in).name);

    progress(30, "partition");
    Partitioning decided = decide();
    note("partitioned: " + std::to_string(decided.offloaded.operators) + " of " +
         std::to_string(decided.total.operators) + " operators in " +
         std::to_string(decided.offloaded.subgraphs) + " NPU subgraphs");
    if (request_.require_full_offload && !decided.fallbacks.empty()) {
        *not_offloaded = list_fallbacks(decided);
        return Error{ErrorCode::unsupported, *not_offloaded};
    }
    const size_t outside = decided.fallbacks.size();

    progress(60, "plan");
    auto model = make_model(std::move(decided));
    if (!model) return model;
    note("planned: " + std::to_string(model->partitions.size()) + " programs");
    if (!request_.cpu_partition && outside != 0)
        say(LogLevel::warning,
            request_.model + ": standard compilation left " + std::to_string(outside) + " of " +
                std::to_string(model->summary.total.operators) +
                " operators outside the NPU, libvartml will refuse the model; the CPU partition "
                "passes would make it runnable");
    return model;
}

}  // namespace

Result<CompiledModel> compile_in_memory(const CompileRequest& request, std::string* not_offloaded,
                                        std::vector<std::string>* log,
                                        std::vector<artifact::File>* debug) {
    const device::Target* target = device::find_target(request.device);
    if (!target) {
        std::string known;
        for (const std::string_view name : device::target_names())
            known += (known.empty() ? "" : ", ") + std::string(name);
        return Error{ErrorCode::invalid_argument,
                     "--device: unknown device '" + request.device + "'; known: " + known};
    }
    std::string ignored;
    return Compilation(request, *target, log, debug).run(not_offloaded ? not_offloaded : &ignored);
}

std::string model_name(const CompileRequest& request) {
    return request.name.empty() ? default_cache_key(request.model) : request.name;
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
