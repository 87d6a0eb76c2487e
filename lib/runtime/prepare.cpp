// SPDX-License-Identifier: Apache-2.0
// From a model in memory to a runner: partitions, device, columns, program; nothing is left behind
// by a failure.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "lib/runtime/runner.h"
#include "lib/runtime/vart_errors.h"

namespace vartml::runtime {
namespace {

using vart::TensorDirection;
using vart::TensorType;

Error fault(ErrorCode code, const std::string& text) {
    return {code, "create_runner: " + text};
}

unsigned usable_processors() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

// The compile configuration must be one for the model's device.
Result<void> check_config(const Options& options, const artifact::CompiledModel& model) {
    if (options.config_json.empty()) return {};
    const std::string file = in_quotes(options.config_json);
    std::ifstream stream(options.config_json);
    if (!stream) return fault(ErrorCode::not_found, "option 'config_json': cannot read " + file);
    const auto json = nlohmann::json::parse(stream, nullptr, false);
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

// Runs as one NPU partition, or says which operator stands in the way.
Result<void> check_partitions(const std::string& path, const artifact::CompiledModel& model) {
    const std::string name = "model " + in_quotes(path);
    for (const auto& partition : model.partitions) {
        if (partition.kind != artifact::PartitionKind::cpu) continue;
        std::string first;
        if (!partition.graph.nodes.empty()) {
            const auto& node = partition.graph.nodes.front();
            first = ", first " + clean(node.kind) + " node " + in_quotes(node.name);
        }
        return fault(ErrorCode::unsupported,
                     name + " has CPU partition " + in_quotes(partition.name) + " (" +
                         std::to_string(partition.operators) + " operators" + first +
                         "), and this release runs models that are one NPU partition; use ONNX "
                         "Runtime for this model, or change it until `vartml compile "
                         "--require-full-offload` succeeds");
    }
    const auto& fallbacks = model.summary.fallbacks;
    if (model.compilation == artifact::Compilation::standard &&
        (!fallbacks.empty() || model.partitions.size() != 1)) {
        std::string outside =
            "it has " + std::to_string(model.partitions.size()) + " NPU partitions";
        if (!fallbacks.empty())
            outside = clean(fallbacks.front().op_type) + " node " +
                      in_quotes(fallbacks.front().node) + " (" + clean(fallbacks.front().code) +
                      ") is outside the NPU";
        return fault(ErrorCode::unsupported,
                     name + " was compiled for the NPU alone but " + outside +
                         "; compile it with the CPU-partition passes, or use ONNX Runtime for it");
    }
    if (model.partitions.size() != 1)
        return fault(ErrorCode::unsupported,
                     name + " has " + std::to_string(model.partitions.size()) +
                         " NPU partitions, and this release runs models that are one");
    return {};
}

Result<void> check_views(const std::string& path, const Options& options,
                         const TensorTables& tables) {
    for (const auto direction : {TensorDirection::INPUT, TensorDirection::OUTPUT}) {
        const bool is_input = direction == TensorDirection::INPUT;
        if ((is_input ? options.input_tensor_type : options.output_tensor_type) != TensorType::HW)
            continue;
        for (const TensorInfo& tensor : tables.tensors(direction))
            if (!tensor.hw)
                return fault(ErrorCode::unsupported,
                             "model " + in_quotes(path) + " has no HW view for " +
                                 (is_input ? "input " : "output ") + in_quotes(tensor.name) +
                                 "; set " + (is_input ? "input" : "output") +
                                 "_tensor_type to \"CPU\"");
    }
    return {};
}

// Folder of packed weights: beside what is extracted, or the user's cache.
std::string weights_folder(const Options& options) {
    if (!options.cache_path.empty()) return options.cache_path + "/weights";
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
        return std::string(cache) + "/vartml/weights";
    if (const char* home = std::getenv("HOME"); home && *home)
        return std::string(home) + "/.cache/vartml/weights";
    return {};
}

unsigned num_threads(const Options& options) {
    return options.threads ? static_cast<unsigned>(options.threads) : usable_processors();
}

// More runs than threads would only wait for each other.
unsigned num_concurrent_runs(const Options& options) {
    return std::min(num_threads(options), static_cast<unsigned>(options.max_concurrent_runs));
}

device::LoadOptions load_options(const Options& options) {
    device::LoadOptions load;
    load.numerics = options.numerics == "f32"    ? device::Numerics::f32
                    : options.numerics == "bf16" ? device::Numerics::bf16
                                                 : device::Numerics::automatic;
    load.threads = num_threads(options);
    load.concurrent_runs = num_concurrent_runs(options);
    load.weights_cache_dir = weights_folder(options);
    return load;
}

std::shared_ptr<const device::Program> take_program(artifact::CompiledModel& model) {
    auto program = std::make_shared<device::Program>();
    artifact::Partition& partition = model.partitions.front();
    program->name = partition.name;
    program->target = partition.target;
    program->graph = std::move(partition.graph);
    partition.graph = {};
    program->inputs = partition.inputs;
    program->outputs = partition.outputs;
    program->owner = std::move(model.owner);
    return program;
}

EngineOptions engine_options(const RunnerState& state) {
    const Options& options = state.options;
    EngineOptions engine;
    engine.input_type = options.input_tensor_type;
    engine.output_type = options.output_tensor_type;
    engine.skip_input_sync = options.skip_in_bo_sync;
    engine.skip_output_sync = options.skip_out_bo_sync;
    engine.threads = num_threads(options);
    engine.num_runs = state.executor->num_threads();
    return engine;
}

Result<void> load(RunnerState& state) {
    const Options& options = state.options;
    state.executor = device::Executor::of(*state.device);
    const auto program = take_program(state.model);
    std::optional<Result<std::unique_ptr<Engine>>> made;
    state.executor->call([&] {
        auto executable = state.device->load(program, load_options(options));
        if (executable)
            made.emplace(Engine::create(std::move(*executable), *program, state.tables,
                                        engine_options(state)));
        else
            made.emplace(executable.error());
    });
    if (!*made)
        return fault(made->error().code,
                     "model " + in_quotes(state.model_path) + ": " + made->error().message);
    state.engine = std::move(**made);
    JobOptions jobs;
    jobs.slots = static_cast<unsigned>(options.max_concurrent_runs);
    jobs.callback_threads = static_cast<unsigned>(options.async_threadpool_depth);
    jobs.callbacks_in_submission_order = options.callbacks_in_submission_order;
    state.jobs = std::make_unique<Jobs>(*state.engine, state.executor, jobs, state.logger);
    return {};
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
      tables(model.inputs, model.outputs) {}

RunnerState::~RunnerState() {
    jobs.reset();
    if (engine) executor->call([this] { engine.reset(); });
}

Result<std::unique_ptr<RunnerState>> prepare(const std::string& path, artifact::CompiledModel model,
                                             Options options) {
    if (auto good = check_config(options, model); !good) return good.error();
    if (auto good = check_partitions(path, model); !good) return good.error();
    const artifact::Partition& partition = model.partitions.front();
    auto device = device::find_device(options.device, partition.target);
    if (!device)
        return fault(device.error().code,
                     "model " + in_quotes(path) + ": " + device.error().message);
    ColumnRequest request;
    request.device = model.device;
    request.user = options.name;
    request.count = partition.columns;
    request.shared = options.aie_columns_sharing;
    request.start = options.start_column;
    auto columns = ColumnReservation::acquire(request);
    if (!columns) return columns.error();

    auto state = std::make_unique<RunnerState>(path, std::move(options), std::move(model));
    state->columns.emplace(std::move(*columns));
    state->device = *device;
    state->target = state->model.partitions.front().target;
    if (auto good = check_views(path, state->options, state->tables); !good) return good.error();
    if (auto good = load(*state); !good) return good.error();
    state->logger(LogLevel::info, "model " + in_quotes(path) + " runs on " + state->device->name() +
                                      ", target " + state->target + ", float work in " +
                                      state->engine->executable().compute_type());
    return state;
}

}  // namespace vartml::runtime
