// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/runner.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "lib/base/file.h"
#include "lib/model/compiled_model.h"
#include "lib/run/vart/tensor_info.h"
#include "lib/run/vart/vart_errors.h"

namespace vartml::runtime {
namespace {

using vart::JobHandle;
using vart::NpuTensor;
using vart::NpuTensorInfo;
using vart::NpuTensorPriv;
using vart::NpuTensorPrivAccess;
using vart::StatusCode;
using vart::TensorDirection;
using vart::TensorType;

constexpr uint32_t num_banks = 16;

// Ends runners whose last reference was dropped in one of their own callbacks: that thread cannot
// wait for itself.
class Undertaker {
public:
    ~Undertaker() {
        for (End& end : ends_)
            if (end.thread.joinable()) end.thread.join();
    }
    void take(std::unique_ptr<RunnerState> state) noexcept {
        RunnerState* const last = state.release();
        try {
            const std::lock_guard lock(mutex_);
            std::erase_if(ends_, [](End& end) {
                if (end.is_done) end.thread.join();
                return !end.thread.joinable();
            });
            End& end = ends_.emplace_back();
            end.thread = std::thread([last, &end] {
                device::name_this_thread("vartml-end");
                delete last;
                end.is_done = true;
            });
        } catch (...) {  // no thread to be had: the runner stays, its jobs still end
        }
    }

private:
    struct End {
        std::thread thread;
        std::atomic<bool> is_done{false};
    };
    std::mutex mutex_;     // guards ends_
    std::list<End> ends_;  // joined at exit, so that none runs into static destructors
};

Undertaker& undertaker() {
    static Undertaker instance;
    return instance;
}

// The tensors of a call in the model's order; copies are shallow.
class Ordered {
public:
    Ordered(const TensorTables& tables, TensorDirection direction, const Tensors& given)
        : given_(given), own_(in_model_order(tables, direction, given)) {}
    const Tensors& operator*() const { return own_ ? *own_ : given_; }

private:
    const Tensors& given_;
    const std::optional<Tensors> own_;
};

struct Failure {
    uint64_t runner;
    std::string text;
};
thread_local std::vector<Failure> failures;  // the latest last
constexpr size_t kept_failures = 64;         // runners that a thread remembers

}  // namespace

void set_last_error(uint64_t runner, std::string_view text) {
    auto found = std::ranges::find(failures, runner, &Failure::runner);
    if (found == failures.end()) {
        if (failures.size() >= kept_failures) failures.erase(failures.begin());
        failures.push_back({runner, {}});
        found = failures.end() - 1;
    }
    // The string is used again, so that retries allocate nothing.
    found->text = text;
    std::rotate(found, found + 1, failures.end());
}

std::string last_error(uint64_t runner) {
    const auto found = std::ranges::find(failures, runner, &Failure::runner);
    return found == failures.end() ? std::string() : found->text;
}

VaimlRunner::VaimlRunner(std::unique_ptr<RunnerState> state)
    : vart::Runner(state->model_path), state_(std::move(state)) {}

VaimlRunner::~VaimlRunner() {
    // Its threads, its columns and the files that it unpacked are the other process's.
    if (state_->executor->is_of_another_process())
        (void)state_.release();
    else if (state_->jobs->on_callback_thread())
        undertaker().take(std::move(state_));
}

// ---- queries ----------------------------------------------------------------------------------

const std::vector<NpuTensorInfo>& VaimlRunner::get_tensors_info(TensorDirection direction,
                                                                TensorType type) const {
    return state_->tables.infos(direction, type);
}

const NpuTensorInfo& VaimlRunner::get_tensor_info_by_name(const std::string& tensor_name,
                                                          TensorType type) const {
    return *value_or_throw_runtime(state_->tables.find(tensor_name, type));
}

const vart::QuantParameters& VaimlRunner::get_quant_parameters(
    const std::string& tensor_name) const {
    return *value_or_throw_runtime(state_->tables.quantisation(tensor_name));
}

size_t VaimlRunner::get_num_input_tensors() const {
    return state_->tables.tensors(TensorDirection::INPUT).size();
}

size_t VaimlRunner::get_num_output_tensors() const {
    return state_->tables.tensors(TensorDirection::OUTPUT).size();
}

size_t VaimlRunner::get_batch_size() const {
    return state_->model.actual_batch_size;
}

size_t VaimlRunner::get_batch_size(TensorDirection) const {
    return get_batch_size();
}

std::any VaimlRunner::get_property(const std::string& key) const {
    auto value = property(*state_, key);
    if (!value) throw_invalid_argument(value.error());
    return std::move(*value);
}

// ---- execution --------------------------------------------------------------------------------

Expected VaimlRunner::expected() const {
    return {&state_->tables, get_batch_size(), state_->memory.get()};
}

// A call failed: its text is kept for the property last_error and, unless that was done where it
// happened, logged.
StatusCode VaimlRunner::fail(StatusCode status, std::string_view text, bool is_logged) noexcept {
    try {
        set_last_error(state_->id, clean(text));
        if (!is_logged) state_->logger(LogLevel::error, text);
    } catch (...) {  // no memory for a text: the status still says what happened
    }
    return status;
}

// In a fork no thread runs its jobs, and its locks stay as they were.
StatusCode VaimlRunner::refuse_inherited(const char* call) noexcept {
    char text[160];
    const int length = std::snprintf(
        text, sizeof text,
        "%s: the runner was made before this process was forked, and has no threads here; make one "
        "with create_runner in the new process",
        call);
    return fail(StatusCode::RUNTIME_ERROR, {text, static_cast<size_t>(length)}, false);
}

StatusCode VaimlRunner::execute(const Tensors& inputs, Tensors& outputs) noexcept {
    if (state_->executor->is_of_another_process()) return refuse_inherited("execute");
    try {
        const uint64_t entered = state_->jobs->call_begins();
        const Ordered in(state_->tables, TensorDirection::INPUT, inputs);
        const Ordered out(state_->tables, TensorDirection::OUTPUT, outputs);
        if (const Verdict verdict = check_tensors(expected(), *in, *out); !verdict)
            return fail(verdict.status, "execute: " + verdict.text, false);
        const Outcome outcome = state_->jobs->run(*in, *out, entered);
        if (outcome.status == StatusCode::SUCCESS) return outcome.status;
        return fail(outcome.status, outcome.text, true);
    } catch (const std::bad_alloc&) {
        return fail(StatusCode::OUT_OF_MEMORY, "execute: not enough memory", false);
    } catch (...) {
        return fail(StatusCode::RUNTIME_ERROR, "execute: the system refused a lock or a thread",
                    false);
    }
}

// Not worth a log line: the caller tries again.
void VaimlRunner::remember_refusal() noexcept {
    try {
        char text[160];
        const int length = std::snprintf(
            text, sizeof text,
            "execute_async: all %llu slots are busy; try again when a job is finished, or set "
            "max_concurrent_runs higher",
            static_cast<unsigned long long>(state_->options.max_concurrent_runs));
        set_last_error(state_->id, {text, static_cast<size_t>(length)});
    } catch (...) {  // no memory for a text
    }
}

JobHandle VaimlRunner::execute_async(const Tensors& inputs, Tensors& outputs) noexcept {
    return execute_async(inputs, outputs, ExecuteAsyncCallback());
}

JobHandle VaimlRunner::execute_async(const Tensors& inputs, Tensors& outputs,
                                     ExecuteAsyncCallback cb) noexcept {
    if (state_->executor->is_of_another_process()) return {refuse_inherited("execute_async"), 0};
    try {
        const uint64_t entered = state_->jobs->call_begins();
        const Ordered in(state_->tables, TensorDirection::INPUT, inputs);
        const Ordered out(state_->tables, TensorDirection::OUTPUT, outputs);
        if (const Verdict verdict = check_tensors(expected(), *in, *out); !verdict)
            return {fail(verdict.status, "execute_async: " + verdict.text, false), 0};
        const JobHandle handle = state_->jobs->submit(*in, *out, std::move(cb), entered);
        if (handle.status == StatusCode::RESOURCE_UNAVAILABLE) remember_refusal();
        return handle;
    } catch (const std::bad_alloc&) {
        return {fail(StatusCode::OUT_OF_MEMORY, "execute_async: not enough memory", false), 0};
    } catch (...) {
        return {fail(StatusCode::RUNTIME_ERROR,
                     "execute_async: the system refused a lock or a thread for callbacks", false),
                0};
    }
}

StatusCode VaimlRunner::wait(const JobHandle& job_handle,
                             std::chrono::milliseconds timeout) noexcept {
    if (state_->executor->is_of_another_process()) return refuse_inherited("wait");
    try {
        const Outcome outcome = state_->jobs->wait(job_handle.job_id, timeout);
        if (outcome.status == StatusCode::SUCCESS || outcome.status == StatusCode::JOB_PENDING)
            return outcome.status;
        return fail(outcome.status, outcome.text, outcome.status != StatusCode::INVALID_JOB_ID);
    } catch (...) {
        return fail(StatusCode::RUNTIME_ERROR, "wait: the system refused a lock", false);
    }
}

// ---- allocation -------------------------------------------------------------------------------

NpuTensor VaimlRunner::allocate_npu_tensor(const NpuTensorInfo& info) const {
    return allocate_npu_tensor(info, static_cast<uint32_t>(state_->options.cma_index));
}

NpuTensor VaimlRunner::allocate_npu_tensor(const NpuTensorInfo& info, uint32_t memory_bank) const {
    if (auto good = check_info(info); !good)
        throw_invalid_argument(
            {ErrorCode::invalid_argument, "allocate_npu_tensor: " + good.error().message});
    if (memory_bank >= num_banks)
        throw_invalid_argument(
            {ErrorCode::invalid_argument, "allocate_npu_tensor: memory bank is " +
                                              std::to_string(memory_bank) + ", expected 0 to " +
                                              std::to_string(num_banks - 1)});
    return or_no_memory("allocate_npu_tensor", [&] {
        auto object = [&]() -> Result<std::shared_ptr<BufferObject>> {
            auto memory = state_->memory->allocate(info.size_in_bytes, memory_bank);
            if (!memory) return memory.error();
            return make_buffer_object(std::move(*memory), 0, info.size_in_bytes, false);
        }();
        if (!object)
            throw_runtime({object.error().code, "allocate_npu_tensor: tensor " +
                                                    in_quotes(info.name) + ": " +
                                                    object.error().message});
        return make_allocated(info, std::move(*object));
    });
}

NpuTensor VaimlRunner::allocate_sub_tensor(const NpuTensor& parent, const NpuTensorInfo& info,
                                           size_t offset) const {
    const auto refuse = [&](const std::string& text) {
        throw_invalid_argument(
            {ErrorCode::invalid_argument,
             "allocate_sub_tensor: tensor " + in_quotes(info.name) + ": " + text});
    };
    if (auto good = check_info(info); !good)
        throw_invalid_argument(
            {ErrorCode::invalid_argument, "allocate_sub_tensor: " + good.error().message});
    const NpuTensorPriv* const priv = NpuTensorPrivAccess::get(parent);
    if (!priv) refuse("the parent is empty, expected a tensor from allocate_npu_tensor");
    if (!priv->is_allocated)
        refuse("the parent " + in_quotes(priv->info.name) +
               " wraps memory of the application, expected a tensor from allocate_npu_tensor");
    if (priv->object->is_sub)
        refuse("the parent " + in_quotes(priv->info.name) +
               " is a sub-tensor itself; use its parent with the sum of the offsets");
    const size_t size_bytes = priv->object->size_bytes;
    if (offset > size_bytes || info.size_in_bytes > size_bytes - offset)
        refuse("offset " + std::to_string(offset) + " and size " +
               std::to_string(info.size_in_bytes) + " exceed the parent's " +
               std::to_string(size_bytes) + " bytes");
    if (const size_t element = element_size_bytes(info.data_type); offset % element != 0)
        refuse("offset " + std::to_string(offset) + " is no multiple of the element size of " +
               std::to_string(element) + " bytes");
    return or_no_memory("allocate_sub_tensor", [&] {
        auto part = make_buffer_object(priv->object->memory, offset, info.size_in_bytes, true);
        if (!part)
            throw_runtime({part.error().code, "allocate_sub_tensor: tensor " +
                                                  in_quotes(info.name) + ": " +
                                                  part.error().message});
        return make_allocated(info, std::move(*part));
    });
}

// RunnerFactory: options first, then the model, then the rest.
namespace {

Error fault(ErrorCode code, const std::string& text) {
    return {code, "create_runner: " + text};
}

Error with_prefix(const Error& error) {
    return error.message.starts_with("create_runner: ") ? error : fault(error.code, error.message);
}

// Where a .tar.gz is unpacked: the folder of the options stays, that of the default name goes with
// the runner.
artifact::Extraction extraction(const Options& options, const std::string& model_path) {
    if (!options.cache_path.empty()) return {options.cache_path, true};
    std::string name(last_part(without_trailing_slashes(model_path)));
    name.resize(std::min(name.size(), name.find(".tar")));
    return {"vaiml_cache_" + artifact::file_stem(name) + '_' + std::to_string(::getpid()) + '_' +
                std::to_string(::gettid()),
            false};
}

}  // namespace
}  // namespace vartml::runtime

namespace vart {

std::shared_ptr<Runner> RunnerFactory::create_runner(
    RunnerType runner_type, const std::string& model_path,
    const std::unordered_map<std::string, std::any>& options) {
    using namespace vartml::runtime;
    if (runner_type != RunnerType::VAIML)
        throw_runtime(fault(vartml::ErrorCode::unsupported,
                            "runner type is " + std::to_string(static_cast<int>(runner_type)) +
                                ", expected RunnerType::VAIML"));
    return or_no_memory("create_runner", [&]() -> std::shared_ptr<Runner> {
        auto parsed = parse_options(options);
        if (!parsed) throw_invalid_argument(parsed.error());
        auto memory = value_or_throw_invalid_argument(open_memory(*parsed));
        auto model =
            vartml::artifact::read(model_path, {.extraction = extraction(*parsed, model_path)});
        if (!model) throw_runtime(with_prefix(model.error()));
        const std::vector<std::string> idle = parsed->without_effect;
        auto state = value_or_throw_invalid_argument(
            prepare(model_path, std::move(*model), std::move(*parsed), std::move(memory)));
        for (const std::string& option : idle)
            state->logger(vartml::LogLevel::info, "option '" + option + "' has no effect here");
        return std::make_shared<VaimlRunner>(std::move(state));
    });
}

}  // namespace vart

namespace vartml::runtime {

// The table behind Runner::get_property.
namespace {

using State = RunnerState;

struct Row {
    std::string_view key;
    std::any (*value)(const State&);
};

uint32_t count(const State& s, artifact::PartitionKind kind) {
    return static_cast<uint32_t>(
        std::ranges::count(s.model.partitions, kind, &artifact::Partition::kind));
}

std::vector<std::string> partitions(const State& s) {
    std::vector<std::string> names;
    for (const uint32_t i : s.model.execution_order) names.push_back(s.model.partitions[i].name);
    return names;
}

size_t available_memory() {
    return static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) *
           static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

uint64_t read(const std::atomic<uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
}

std::any supported_keys(const State&);

// Sorted by key.
constexpr Row rows[] = {
    {"actual_batch_size", [](const State& s) { return std::any(s.model.actual_batch_size); }},
    {"backend", [](const State& s) { return std::any(s.device->name()); }},
    {"batch_size_per_core",
     [](const State& s) { return std::any(size_t{s.model.actual_batch_size}); }},
    {"bytes_copied_in",
     [](const State& s) { return std::any(read(s.engine->counters().bytes_copied_in)); }},
    {"bytes_copied_out",
     [](const State& s) { return std::any(read(s.engine->counters().bytes_copied_out)); }},
    {"bytes_weights_private",
     [](const State& s) {
         return std::any(uint64_t{s.engine->executable().private_weight_bytes()});
     }},
    {"compilation",
     [](const State& s) {
         return std::any(std::string(s.model.compilation == artifact::Compilation::standard
                                         ? "standard"
                                         : "cpu_partition"));
     }},
    {"compute_type",
     [](const State& s) { return std::any(s.engine->executable().compute_type()); }},
    {"conversions",
     [](const State& s) { return std::any(read(s.engine->counters().conversions)); }},
    {"ddr_free_bytes",
     [](const State&) { return std::any(std::vector<size_t>(16, available_memory())); }},
    {"desired_batch_size", [](const State& s) { return std::any(s.model.desired_batch_size); }},
    {"device_name", [](const State& s) { return std::any(s.model.device); }},
    {"export_kind", [](const State& s) { return std::any(s.memory->export_kind()); }},
    {"input_tensor_type", [](const State& s) { return std::any(s.options.input_tensor_type); }},
    {"jobs_completed", [](const State& s) { return std::any(read(s.jobs->counters().completed)); }},
    {"jobs_failed", [](const State& s) { return std::any(read(s.jobs->counters().failed)); }},
    {"jobs_in_flight", [](const State& s) { return std::any(uint32_t{s.jobs->in_flight()}); }},
    {"jobs_refused", [](const State& s) { return std::any(read(s.jobs->counters().refused)); }},
    {"jobs_submitted", [](const State& s) { return std::any(read(s.jobs->counters().submitted)); }},
    {"last_error", [](const State& s) { return std::any(last_error(s.id)); }},
    {"library_version",
     [](const State&) {
         constexpr int v = VARTML_VERSION;
         return std::any(std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
                         std::to_string(v % 100));
     }},
    {"max_concurrent_runs",
     [](const State& s) { return std::any(static_cast<uint32_t>(s.options.max_concurrent_runs)); }},
    {"memory_provider", [](const State& s) { return std::any(s.memory->name()); }},
    {"model_format", [](const State& s) { return std::any(s.model.format); }},
    {"model_name", [](const State& s) { return std::any(s.model.model_name); }},
    {"model_path", [](const State& s) { return std::any(s.model_path); }},
    {"model_signature", [](const State& s) { return std::any(s.model.model_signature); }},
    {"nb_cores_per_system", [](const State&) { return std::any(size_t{1}); }},
    {"nb_ddrs", [](const State&) { return std::any(uint8_t{16}); }},
    {"nb_systems", [](const State&) { return std::any(size_t{1}); }},
    {"num_columns", [](const State& s) { return std::any(s.columns->count()); }},
    {"num_cpu_partitions",
     [](const State& s) { return std::any(count(s, artifact::PartitionKind::cpu)); }},
    {"num_npu_partitions",
     [](const State& s) { return std::any(count(s, artifact::PartitionKind::npu)); }},
    {"output_tensor_type", [](const State& s) { return std::any(s.options.output_tensor_type); }},
    {"partitions", [](const State& s) { return std::any(partitions(s)); }},
    {"start_column", [](const State& s) { return std::any(s.columns->start()); }},
    {"stats_level", [](const State& s) { return std::any(uint32_t{s.model.stats_level}); }},
    {"supported_keys", supported_keys},
    {"target", [](const State& s) { return std::any(s.target); }},
};
static_assert(std::ranges::is_sorted(rows, {}, &Row::key));

std::any supported_keys(const State&) {
    std::vector<std::string> keys;
    for (const Row& row : rows) keys.emplace_back(row.key);
    return keys;
}

// For `vartml run --steps`; no part of the interface, and not in supported_keys.
constexpr Row internal_rows[] = {
    {"vartml_internal_steps",
     [](const State& s) { return std::any(s.engine->executable().describe()); }},
    {"vartml_internal_step_times", [](const State& s) { return std::any(s.jobs->time_steps(20)); }},
};

}  // namespace

Result<std::any> property(const RunnerState& state, const std::string& key) {
    if (const auto row = std::ranges::find(rows, key, &Row::key); row != std::end(rows))
        return row->value(state);
    if (const auto row = std::ranges::find(internal_rows, key, &Row::key);
        row != std::end(internal_rows))
        return row->value(state);
    return Error{ErrorCode::not_found, "get_property: unknown key " + in_quotes(key) +
                                           "; 'supported_keys' lists what there is"};
}

}  // namespace vartml::runtime
