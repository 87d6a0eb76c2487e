// SPDX-License-Identifier: Apache-2.0
// From a model in memory to a runner: partitions, device, columns, program; nothing is left behind
// by a failure.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include <vartml/processors.h>

#include "lib/base/file.h"
#include "lib/base/places.h"
#include "lib/base/saturating.h"
#include "lib/model/program.h"
#include "lib/model/stats_descriptor.h"
#include "lib/run/memory/host_memory.h"
#include "lib/run/memory/xrt_memory.h"
#include "lib/run/vart/capture.h"
#include "lib/run/vart/partitions.h"
#include "lib/run/vart/runner.h"
#include "lib/run/vart/vart_errors.h"

namespace vartml::runtime {
namespace {

using vart::TensorDirection;
using vart::TensorType;

Error fault(ErrorCode code, const std::string& text) {
    return {code, "create_runner: " + text};
}

// The compile configuration must be one for the model's device.
Result<void> check_config(const Options& options, const artifact::CompiledModel& model) {
    if (options.config_json.empty()) return {};
    const std::string file = in_quotes(options.config_json);
    const auto content = MappedFile::open(options.config_json);
    if (!content)
        return fault(content.error().code, "option 'config_json': " + content.error().message);
    const auto json = nlohmann::json::parse(as_text((*content)->bytes()), nullptr, false);
    if (json.is_discarded())
        return fault(ErrorCode::bad_model, "option 'config_json': " + file + " is not valid JSON");
    const auto passes = json.is_object() ? json.find("passes") : json.end();
    if (!json.is_object() || passes == json.end() || !passes->is_array())
        return fault(ErrorCode::bad_model,
                     "option 'config_json': " + file + " has no array 'passes'");
    for (const auto& pass : *passes) {
        if (!pass.is_object() || !pass.contains("vaiml_config")) continue;
        const auto& config = pass["vaiml_config"];
        if (!config.is_object() || !config.contains("device")) continue;
        const auto& device = config["device"];
        if (device.is_string() && device.get_ref<const std::string&>() == model.device) return {};
        return fault(ErrorCode::bad_model,
                     "option 'config_json': " + file + " is for device " + clean(device.dump()) +
                         ", the model was compiled for " + in_quotes(model.device));
    }
    return fault(ErrorCode::bad_model,
                 "option 'config_json': " + file + " names no device in 'vaiml_config'");
}

// A model of standard compilation runs only where nothing of it was left to another runtime.
Result<void> check_partitions(const std::string& path, const artifact::CompiledModel& model) {
    const std::string name = "model " + in_quotes(path);
    if (model.partitions.empty()) return fault(ErrorCode::bad_model, name + " has no partitions");
    if (model.compilation != artifact::Compilation::standard) return {};
    const auto& fallbacks = model.summary.fallbacks;
    if (!fallbacks.empty()) {
        const auto& first = fallbacks.front();
        return fault(ErrorCode::unsupported,
                     name + ": standard compilation left " + std::to_string(fallbacks.size()) +
                         " of " + std::to_string(model.summary.total.operators) +
                         " operators outside the NPU, first " + clean(first.op_type) + " node " +
                         in_quotes(first.node) + " (" + clean(first.code) + ": " +
                         clean(first.text) + "); compile with the CPU partition passes");
    }
    if (model.partitions.size() != 1)
        return fault(ErrorCode::unsupported,
                     name + ": standard compilation made " +
                         std::to_string(model.partitions.size()) +
                         " NPU partitions, and only one can be run; compile with the CPU "
                         "partition passes");
    return {};
}

// Compiling has limits, which the user may raise and older compilers did not have: what this
// machine cannot hold at all is refused before any of it is taken.
Result<void> check_memory(const std::string& path, const artifact::CompiledModel& model) {
    const uint64_t present = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                             static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    for (const artifact::Partition& p : model.partitions) {
        if (p.kind != artifact::PartitionKind::cpu) continue;
        uint64_t needed = p.arena_size_bytes;
        for (const auto* tensors : {&p.inputs, &p.outputs})
            for (const TensorInfo& t : *tensors) needed = saturating_sum(needed, t.cpu.size_bytes);
        if (needed > present)
            return fault(ErrorCode::out_of_memory,
                         "model " + in_quotes(path) + ": CPU partition " + in_quotes(p.name) +
                             " needs " + std::to_string(needed) +
                             " bytes of memory, this machine has " + std::to_string(present) +
                             "; make the tensors smaller and compile the model again");
    }
    return {};
}

// " (produced by CPU partition vaiml_cpu_subgraph_1)", or "" where none is at that tensor.
std::string owner_of(const artifact::CompiledModel& model, TensorDirection direction,
                     const std::string& name) {
    const bool is_input = direction == TensorDirection::INPUT;
    for (const artifact::Partition& p : model.partitions) {
        const auto& border = is_input ? p.inputs : p.outputs;
        if (p.kind == artifact::PartitionKind::cpu &&
            std::ranges::find(border, name, &TensorInfo::name) != border.end())
            return std::string(is_input ? " (consumed" : " (produced") + " by CPU partition " +
                   clean(p.name) + ")";
    }
    return {};
}

// The options' defaults ask for HW views: the sentence begins with what to set.
Result<void> check_views(const std::string& path, const Options& options,
                         const artifact::CompiledModel& model, const TensorTables& tables) {
    std::string wanted, first;
    for (const auto direction : {TensorDirection::INPUT, TensorDirection::OUTPUT}) {
        const bool is_input = direction == TensorDirection::INPUT;
        const std::string noun = is_input ? "input" : "output", key = noun + "_tensor_type";
        const auto& own = is_input ? options.input_tensor_types : options.output_tensor_types;
        const auto& tensors = tables.tensors(direction);
        for (const auto& [name, type] : own) {
            if (std::ranges::find(tensors, name, &TensorInfo::name) != tensors.end()) continue;
            std::string text = "option " + in_quotes(key + '.' + name) + ": model " +
                               in_quotes(path) + " has no " + noun + ' ' + in_quotes(name) +
                               "; it has";
            for (size_t i = 0; i < tensors.size(); ++i)
                text += (i ? ", " : " ") + in_quotes(tensors[i].name);
            return fault(ErrorCode::invalid_argument, text);
        }
        const auto tensor = std::ranges::find_if(tensors, [&](const TensorInfo& t) {
            return !t.hw && options.tensor_type(direction, t.name) == TensorType::HW;
        });
        if (tensor == tensors.end()) continue;
        wanted += (wanted.empty() ? "" : " and ") + key;
        if (own.contains(tensor->name)) wanted += '.' + clean(tensor->name);
        if (first.empty())
            first = noun + ' ' + in_quotes(tensor->name) + owner_of(model, direction, tensor->name);
    }
    if (wanted.empty()) return {};
    return fault(ErrorCode::unsupported, "set " + wanted + " to \"CPU\": model " + in_quotes(path) +
                                             " has no HW view for " + first);
}

// Folder of packed weights: beside what is extracted, or the user's cache.
std::string weights_folder(const Options& options) {
    if (!options.cache_path.empty()) return options.cache_path + "/weights";
    const std::string cache = user_cache_folder();
    return cache.empty() ? cache : cache + "/weights";
}

unsigned num_threads(const Options& options) {
    return options.threads ? static_cast<unsigned>(options.threads) : usable_processors();
}

// More runs than threads would only wait for each other.
unsigned num_slots(const RunnerState& state) {
    const Options& options = state.options;
    return std::min(
        {options.threads ? static_cast<unsigned>(options.threads) : state.executor->num_threads(),
         static_cast<unsigned>(options.max_concurrent_runs), device::Executor::max_threads});
}

device::LoadOptions load_options(const RunnerState& state) {
    const Options& options = state.options;
    device::LoadOptions load;
    load.batch = state.model.actual_batch_size;
    const bool exact =
        options.numerics == "f32" || (options.numerics == "auto" && state.model.exact_floats);
    load.numerics = exact                        ? device::Numerics::f32
                    : options.numerics == "bf16" ? device::Numerics::bf16
                                                 : device::Numerics::automatic;
    load.threads = num_threads(options);
    load.concurrent_runs = num_slots(state);
    load.weights_cache_dir = weights_folder(options);
    return load;
}

// A CPU partition has no HW views: its device reads and writes the CPU views.
void complete_views(std::vector<TensorInfo>& tensors) {
    for (TensorInfo& tensor : tensors)
        if (!tensor.hw) tensor.hw = tensor.cpu;
}

bool is_float(DataType type) {
    return type == DataType::float32 || type == DataType::bf16 || type == DataType::fp16;
}

// A device converts between float types at a program's border and nothing else: codes of a
// quantised tensor are codes in the program too.
Result<void> check_border(const device::Program& program) {
    const auto check = [&](const std::vector<TensorInfo>& tensors,
                           const std::vector<graph::ValueId>& values,
                           const char* what) -> Result<void> {
        for (size_t i = 0; i < std::min(tensors.size(), values.size()); ++i) {
            const DataType hw = tensors[i].hw->data_type;
            const DataType own = program.graph.value(values[i]).type.data_type;
            if (hw != own && !(is_float(hw) && is_float(own)))
                return Error{ErrorCode::bad_model,
                             "partition " + in_quotes(program.name) + ": " + what + " " +
                                 in_quotes(tensors[i].name) + " is " + std::string(to_string(hw)) +
                                 " in its HW view and " + std::string(to_string(own)) +
                                 " in the program, expected the same type or two float types; "
                                 "compile the model again"};
        }
        return {};
    };
    if (auto good = check(program.inputs, program.graph.inputs, "input"); !good) return good;
    return check(program.outputs, program.graph.outputs, "output");
}

// The programs in execution order.
std::vector<std::shared_ptr<const device::Program>> take_programs(artifact::CompiledModel& model) {
    std::vector<std::shared_ptr<const device::Program>> programs;
    for (const uint32_t index : model.execution_order) {
        artifact::Partition& partition = model.partitions[index];
        auto program = std::make_shared<device::Program>();
        program->name = partition.name;
        program->target = partition.target;
        program->graph = std::move(partition.graph);
        partition.graph = {};
        program->inputs = partition.inputs;
        program->outputs = partition.outputs;
        complete_views(program->inputs);
        complete_views(program->outputs);
        program->owner = model.owner;
        if (!partition.checksums.empty())
            program->identity =
                model.model_signature + ' ' + partition.name + ' ' + partition.checksums;
        programs.push_back(std::move(program));
    }
    model.owner.reset();
    return programs;
}

EngineOptions engine_options(const RunnerState& state) {
    const Options& options = state.options;
    EngineOptions engine;
    engine.skip_input_sync = options.skip_in_bo_sync;
    engine.skip_output_sync = options.skip_out_bo_sync;
    engine.threads = num_threads(options);
    engine.slots = num_slots(state);
    return engine;
}

// What `debug` and the level DEBUG show of loading.
void tell(const RunnerState& state, const std::string& text) {
    if (state.options.debug)
        log(LogLevel::debug, state.logger.name(), clean(text), true);
    else
        state.logger(LogLevel::debug, text);
}

// The device of a partition: the one that was asked for, for what runs on an NPU.
Result<device::Device*> device_for(const RunnerState& state, const std::string& target) {
    if (state.device->supports_target(target)) return state.device;
    return device::find_device("auto", target);
}

bool is_cpu(const artifact::CompiledModel& model, const std::string& partition) {
    const auto found = std::ranges::find(model.partitions, partition, &artifact::Partition::name);
    return found != model.partitions.end() && found->kind == artifact::PartitionKind::cpu;
}

// A model compiled before there were any has none; a fault in it is no reason not to run.
void take_descriptor(const RunnerState& state, ProfilerSetup& setup) {
    if (!state.model.find_file(profiling::descriptor_entry)) return;
    auto descriptor = artifact::descriptor_of(state.model, state.model_path);
    if (descriptor)
        setup.descriptor = std::make_shared<const profiling::Descriptor>(std::move(*descriptor));
    else
        setup.descriptor_fault = descriptor.error().message;
}

// For whoever wants to know what the runner's jobs do.
std::shared_ptr<Profiler> make_profiler(const RunnerState& state) {
    ProfilerSetup setup;
    setup.sink = state.options.capture_sink;
    setup.network = state.model.model_name;
    const auto numbers = setup.sink ? setup.sink->numbers() : std::nullopt;
    setup.numbers =
        numbers.value_or(profiling::ActivationNumbers{static_cast<uint32_t>(state.id - 1)});
    take_descriptor(state, setup);
    setup.compiled_level =
        setup.descriptor ? setup.descriptor->compiled_level : state.model.stats_level;
    if (setup.descriptor) {
        setup.pmu = setup.descriptor->pmu;
        setup.has_traffic = setup.descriptor->ddr_stats;
        setup.traffic = has_operators(setup) ? traffic_of(*setup.descriptor) : state.traffic;
    }
    for (auto& program : state.engine->executable().stamped()) {
        const bool cpu = is_cpu(state.model, program.name);
        setup.partitions.push_back({std::move(program), cpu});
    }
    setup.threads = state.executor->num_threads();
    setup.queue_depth = static_cast<uint32_t>(state.options.max_concurrent_runs);
    setup.activated_at = profiling::monotonic_ns();
    setup.activate_ns = state.activate_ns;
    if (setup.sink && setup.compiled_level < profiling::level_inference)
        state.logger(LogLevel::warning, "model " + in_quotes(state.model_path) +
                                            ": nothing is recorded, it was "
                                            "compiled with --stats-level=" +
                                            std::to_string(setup.compiled_level) +
                                            "; compile it again with 40 or more");
    return std::make_shared<Profiler>(std::move(setup));
}

// Loads all partitions and joins them. `border` gets the views of the whole.
Result<std::unique_ptr<device::Executable>> load_partitions(RunnerState& state,
                                                            device::Program& border) {
    const auto programs = take_programs(state.model);
    device::LoadOptions options = load_options(state);
    if (programs.size() > 1) options.batch = 1;  // partitions take turns, frame by frame
    bool noted = false;
    options.note = [&state, &noted](const std::string& text) {
        if (!std::exchange(noted, true)) state.logger(LogLevel::info, text);
    };
    border.name = programs[0]->name;
    border.inputs = programs[0]->inputs;
    border.outputs = programs[0]->outputs;
    std::vector<LoadedPartition> partitions;
    for (const auto& program : programs) {
        if (auto good = check_border(*program); !good) return good.error();
        auto device = device_for(state, program->target);
        if (!device) return device.error();
        tell(state, "partition " + in_quotes(program->name) + ": target " + program->target +
                        " on " + (*device)->name() + ", " +
                        std::to_string(program->graph.nodes.size()) + " nodes, " +
                        std::to_string(program->inputs.size()) + " inputs, " +
                        std::to_string(program->outputs.size()) + " outputs");
        const Traffic traffic = traffic_of(program->graph, state.model.actual_batch_size);
        state.traffic.read_bytes += traffic.read_bytes;
        state.traffic.write_bytes += traffic.write_bytes;
        const uint64_t start = profiling::monotonic_ns();
        auto executable = (*device)->load(program, options);
        if (!executable) return executable.error();
        state.activate_ns[is_cpu(state.model, program->name) ? 1 : 0] +=
            profiling::monotonic_ns() - start;
        tell(state, "partition " + in_quotes(program->name) + ": loaded, float work in " +
                        (*executable)->compute_type() + ", " +
                        std::to_string((*executable)->private_weight_bytes()) +
                        " bytes of weights in private memory");
        partitions.push_back({program, std::move(*executable)});
    }
    if (partitions.size() == 1) return std::move(partitions[0].executable);
    border.name = state.model.model_name;
    border.inputs = state.model.inputs;
    border.outputs = state.model.outputs;
    auto wiring = wire(state.model, programs);
    if (!wiring) return wiring.error();
    return join_partitions(std::move(partitions), std::move(*wiring), options.concurrent_runs);
}

Result<void> load(RunnerState& state) {
    const Options& options = state.options;
    state.executor = device::Executor::of(*state.device);
    std::optional<Result<std::unique_ptr<Engine>>> made;
    std::exception_ptr exception;  // no memory for something small
    state.executor->call([&] {
        try {
            device::Program border;
            auto executable = load_partitions(state, border);
            if (executable)
                made.emplace(Engine::create(std::move(*executable), border, state.tables,
                                            engine_options(state)));
            else
                made.emplace(executable.error());
        } catch (...) {
            exception = std::current_exception();
        }
    });
    if (exception) std::rethrow_exception(exception);
    if (!*made)
        return fault(made->error().code,
                     "model " + in_quotes(state.model_path) + ": " + made->error().message);
    state.engine = std::move(**made);
    JobOptions jobs;
    jobs.in_flight = static_cast<unsigned>(options.max_concurrent_runs);
    jobs.async_threads = static_cast<unsigned>(options.async_threadpool_depth);
    jobs.callbacks_in_submission_order = options.callbacks_in_submission_order;
    state.jobs = std::make_unique<Jobs>(*state.engine, state.executor, jobs, state.logger,
                                        make_profiler(state));
    return {};
}

// Null where nobody asks for it; else it is the sink of the options.
Result<std::shared_ptr<Analyzer>> make_analyzer(const std::string& path,
                                                const artifact::CompiledModel& model,
                                                Options& options) {
    if (!options.ai_analyzer_profiling) return std::shared_ptr<Analyzer>();
    if (options.capture_sink)
        return fault(ErrorCode::invalid_argument,
                     "option 'ai_analyzer_profiling' is true, and captures go to a sink already");
    auto analyzer = Analyzer::create(model, path);
    if (!analyzer) return fault(analyzer.error().code, analyzer.error().message);
    options.capture_sink = *analyzer;
    return analyzer;
}

uint64_t next_state_id() {
    static std::atomic<uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

RunnerState::RunnerState(std::string path, Options runner_options, artifact::CompiledModel compiled)
    : id(next_state_id()),
      model_path(std::move(path)),
      options(std::move(runner_options)),
      logger(options.name, options.log_level),
      model(std::move(compiled)),
      tables(model.inputs, model.outputs, options) {}

RunnerState::~RunnerState() {
    const bool has_run = jobs != nullptr;  // else it was refused while it was made
    jobs.reset();
    if (analyzer && has_run)
        if (auto written = analyzer->write(); !written)
            logger(LogLevel::error, "option 'ai_analyzer_profiling': " + written.error().message);
    if (engine) executor->call([this] { engine.reset(); });
}

Result<std::shared_ptr<MemoryProvider>> open_memory(const Options& options) {
    if (options.memory == "xrt") {
        auto memory = xrt_memory(static_cast<unsigned>(options.xdna_device_index));
        if (memory) return memory;
        return fault(memory.error().code, "option 'vartml_memory' is 'xrt': " +
                                              memory.error().message + "; or set it to \"host\"");
    }
    if (options.xdna_device_index != 0)
        return fault(ErrorCode::invalid_argument,
                     "option 'xdna_device_index' is " + std::to_string(options.xdna_device_index) +
                         ", and host memory has no device but 0; set it to 0, or vartml_memory to "
                         "\"xrt\"");
    return host_memory(options.noncoherent ? Coherence::noncoherent : Coherence::coherent);
}

Result<std::unique_ptr<RunnerState>> prepare(const std::string& path, artifact::CompiledModel model,
                                             Options options,
                                             std::shared_ptr<MemoryProvider> memory) {
    if (!memory) {
        auto opened = open_memory(options);
        if (!opened) return opened.error();
        memory = *std::move(opened);
    }
    if (auto good = check_config(options, model); !good) return good.error();
    if (auto good = check_partitions(path, model); !good) return good.error();
    if (auto good = check_memory(path, model); !good) return good.error();
    // The first NPU partition stands for the model; a model without one runs on the CPU alone,
    // where ONNX Runtime's partitions need a device beside them.
    auto main = std::ranges::find(model.partitions, artifact::PartitionKind::npu,
                                  &artifact::Partition::kind);
    if (main == model.partitions.end()) main = model.partitions.begin();
    const bool is_foreign = main->target == artifact::onnxruntime_target;
    const std::string target = is_foreign ? artifact::cpu_target : main->target;
    auto device = device::find_device(options.device, target);
    if (!device)
        return fault(device.error().code,
                     "model " + in_quotes(path) + ": " + device.error().message);
    ColumnRequest request;
    request.device = model.device;
    request.user = options.name;
    request.count = main->columns;
    request.shared = options.aie_columns_sharing;
    request.start = options.start_column;
    auto columns = ColumnReservation::acquire(request);
    if (!columns) return columns.error();

    auto analyzer = make_analyzer(path, model, options);
    if (!analyzer) return analyzer.error();

    auto state = std::make_unique<RunnerState>(path, std::move(options), std::move(model));
    state->memory = std::move(memory);
    state->columns.emplace(std::move(*columns));
    state->analyzer = std::move(*analyzer);
    if (state->analyzer)
        state->logger(LogLevel::warning,
                      "option 'ai_analyzer_profiling' captures every inference at level " +
                          std::to_string(state->analyzer->level()) +
                          ", which costs time and memory; files go to " +
                          state->analyzer->folder() + " when the runner ends");
    state->device = *device;
    state->target = target;
    const ColumnReservation& held = *state->columns;
    if (!held.fault().empty())
        state->logger(state->options.aie_columns_sharing ? LogLevel::debug : LogLevel::warning,
                      "option 'aie_columns_sharing': other processes do not see the columns of "
                      "this runner: " +
                          held.fault());
    tell(*state, "model " + in_quotes(path) + ": " + state->model.format + " for " +
                     in_quotes(state->model.device) + ", " +
                     std::to_string(state->model.partitions.size()) + " partitions, " +
                     (held.count() == 0 ? "no columns"
                                        : "columns " + std::to_string(held.start()) + " to " +
                                              std::to_string(held.start() + held.count() - 1)));
    if (auto good = check_views(path, state->options, state->model, state->tables); !good)
        return good.error();
    if (auto good = load(*state); !good) return good.error();
    state->logger(LogLevel::info, "model " + in_quotes(path) + " runs on " + state->device->name() +
                                      ", target " + state->target + ", float work in " +
                                      state->engine->executable().compute_type());
    return state;
}

}  // namespace vartml::runtime
