// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/runner.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "lib/runtime/host_memory.h"
#include "lib/runtime/tensor_info.h"
#include "lib/runtime/tensor_priv.h"
#include "lib/runtime/vart_errors.h"

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
    if (state_->jobs->on_callback_thread()) undertaker().take(std::move(state_));
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
    return {&state_->tables, state_->options.input_tensor_type, state_->options.output_tensor_type,
            get_batch_size()};
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

StatusCode VaimlRunner::execute(const Tensors& inputs, Tensors& outputs) noexcept {
    try {
        const uint64_t entered = state_->jobs->call_begins();
        if (const Verdict verdict = check_tensors(expected(), inputs, outputs); !verdict)
            return fail(verdict.status, "execute: " + verdict.text, false);
        const Outcome outcome = state_->jobs->run(inputs, outputs, entered);
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
    try {
        const uint64_t entered = state_->jobs->call_begins();
        if (const Verdict verdict = check_tensors(expected(), inputs, outputs); !verdict)
            return {fail(verdict.status, "execute_async: " + verdict.text, false), 0};
        const JobHandle handle = state_->jobs->submit(inputs, outputs, std::move(cb), entered);
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
        auto memory = HostMemory::allocate(info.size_in_bytes, state_->options.noncoherent
                                                                   ? Coherence::noncoherent
                                                                   : Coherence::coherent);
        if (!memory)
            throw_runtime({memory.error().code, "allocate_npu_tensor: tensor " +
                                                    in_quotes(info.name) + ": " +
                                                    memory.error().message});
        return make_allocated(info,
                              make_buffer_object(std::move(*memory), 0, info.size_in_bytes, false));
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
        return make_allocated(
            info, make_buffer_object(priv->object->memory, offset, info.size_in_bytes, true));
    });
}

}  // namespace vartml::runtime
