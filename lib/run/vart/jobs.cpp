// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/jobs.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "lib/run/vart/tensor_info.h"
#include "lib/run/vart/vart_errors.h"

namespace vartml::runtime {
namespace {

using vart::NpuTensor;
using vart::NpuTensorInfo;
using vart::NpuTensorPriv;
using vart::NpuTensorPrivAccess;
using vart::StatusCode;
using vart::TensorDirection;

StatusCode refusal(TensorDirection direction) {
    return direction == TensorDirection::INPUT ? StatusCode::INVALID_INPUT
                                               : StatusCode::INVALID_OUTPUT;
}

const char* noun(TensorDirection direction) {
    return direction == TensorDirection::INPUT ? "input" : "output";
}

std::string list(const std::vector<uint32_t>& values) {
    std::string text = "[";
    for (size_t i = 0; i < values.size(); ++i) text += (i ? "," : "") + std::to_string(values[i]);
    return text + "]";
}

// The first difference between what is there and what the model has, or "".
std::string difference(const NpuTensorInfo& found, const NpuTensorInfo& wanted) {
    const auto differs = [](const char* what, std::string_view is, std::string_view expected) {
        return std::string(what) + " is " + clean(is) + ", expected " + clean(expected);
    };
    if (found.direction != wanted.direction)
        return differs("direction", to_string(found.direction), to_string(wanted.direction));
    if (found.name != wanted.name)
        return differs("name", in_quotes(found.name), in_quotes(wanted.name));
    if (found.tensor_type != wanted.tensor_type)
        return differs(
            "tensor_type", to_string(found.tensor_type),
            std::string(to_string(wanted.tensor_type)) + " as the options of the runner say");
    if (found.data_type != wanted.data_type)
        return differs("data_type", to_string(found.data_type), to_string(wanted.data_type));
    if (found.memory_layout != wanted.memory_layout)
        return differs("memory_layout", to_string(found.memory_layout),
                       to_string(wanted.memory_layout));
    if (wanted.memory_layout == vart::MemoryLayout::GENERIC &&
        found.memory_layout_order != wanted.memory_layout_order)
        return differs("memory_layout_order", list(found.memory_layout_order),
                       list(wanted.memory_layout_order));
    if (found.shape != wanted.shape) return differs("shape", list(found.shape), list(wanted.shape));
    if (found.strides != wanted.strides)
        return differs("strides", list(found.strides), list(wanted.strides));
    if (found.size_in_bytes < wanted.size_in_bytes)
        return differs("size_in_bytes", std::to_string(found.size_in_bytes),
                       std::to_string(wanted.size_in_bytes));
    return {};
}

Verdict check_tensor(const NpuTensor& tensor, const NpuTensorInfo& wanted, size_t batch,
                     MemoryProvider* provider) {
    const auto fault = [&](const std::string& text) {
        return Verdict{refusal(wanted.direction),
                       std::string(noun(wanted.direction)) + " " + in_quotes(wanted.name) +
                           " of batch element " + std::to_string(batch) + ": " + text};
    };
    NpuTensorPriv* const priv = NpuTensorPrivAccess::get(tensor);
    if (!priv) return fault("the NpuTensor is empty");
    const std::string text = difference(priv->info, wanted);
    if (!text.empty()) return fault(text);
    if (priv->is_const && wanted.direction == TensorDirection::OUTPUT)
        return fault("the NpuTensor was made from a const buffer");
    if (const auto mapped = priv->map(provider); !mapped) return fault(mapped.error().message);
    return {};
}

Verdict check_list(const Expected& expected, TensorDirection direction, const Tensors& batch) {
    const auto& wanted = expected.tables->exchanged(direction);
    for (size_t b = 0; b < batch.size(); ++b) {
        if (batch[b].size() != wanted.size())
            return {refusal(direction), "batch element " + std::to_string(b) + " has " +
                                            std::to_string(batch[b].size()) + " " +
                                            noun(direction) + " tensors, the model has " +
                                            std::to_string(wanted.size())};
        for (size_t i = 0; i < wanted.size(); ++i)
            if (Verdict verdict = check_tensor(batch[b][i], wanted[i], b, expected.memory);
                !verdict)
                return verdict;
    }
    return {};
}

// Do two tensors of a call share a byte? One memory may be mapped twice: where both are known by
// their files, the places in there count, else the addresses.
bool overlap(const NpuTensor& a, size_t size_a, const NpuTensor& b, size_t size_b) {
    NpuTensorPriv* const pa = NpuTensorPrivAccess::get(a);
    NpuTensorPriv* const pb = NpuTensorPrivAccess::get(b);
    const auto share = [&](uintptr_t start_a, uintptr_t start_b) {
        return start_a < start_b + size_b && start_b < start_a + size_a;
    };
    if (pa->identity.is_known() && pb->identity.is_known()) {
        const auto offset = [](const NpuTensorPriv* p) {
            return p->object ? p->object->offset : 0;
        };
        return pa->identity == pb->identity && share(offset(pa), offset(pb));
    }
    if (pa->fd >= 0 && pa->fd == pb->fd) return true;
    return share(reinterpret_cast<uintptr_t>(*pa->map()), reinterpret_cast<uintptr_t>(*pb->map()));
}

Verdict check_overlap(const Expected& expected, const Tensors& inputs, const Tensors& outputs) {
    const auto& in = expected.tables->exchanged(TensorDirection::INPUT);
    const auto& out = expected.tables->exchanged(TensorDirection::OUTPUT);
    for (size_t b = 0; b < outputs.size(); ++b)
        for (size_t i = 0; i < out.size(); ++i) {
            const auto fault = [&](const NpuTensorInfo& other, size_t other_batch) {
                return Verdict{StatusCode::INVALID_OUTPUT,
                               "output " + in_quotes(out[i].name) + " of batch element " +
                                   std::to_string(b) + " shares memory with " +
                                   noun(other.direction) + " " + in_quotes(other.name) +
                                   " of batch element " + std::to_string(other_batch)};
            };
            for (size_t c = 0; c < inputs.size(); ++c)
                for (size_t j = 0; j < in.size(); ++j)
                    if (overlap(outputs[b][i], out[i].size_in_bytes, inputs[c][j],
                                in[j].size_in_bytes))
                        return fault(in[j], c);
            for (size_t c = 0; c <= b; ++c)
                for (size_t j = 0; j < (c == b ? i : out.size()); ++j)
                    if (overlap(outputs[b][i], out[i].size_in_bytes, outputs[c][j],
                                out[j].size_in_bytes))
                        return fault(out[j], c);
        }
    return {};
}

}  // namespace

std::optional<Tensors> in_model_order(const TensorTables& tables, TensorDirection direction,
                                      const Tensors& batch) {
    if (!tables.is_chosen_by_name(direction)) return std::nullopt;
    const auto& wanted = tables.exchanged(direction);
    const auto name = [](const NpuTensor& tensor) -> const std::string& {
        return tensor.get_info().name;
    };
    Tensors ordered;
    bool is_ordered = true;
    for (const auto& tensors : batch) {
        if (tensors.size() != wanted.size()) return std::nullopt;
        auto& element = ordered.emplace_back();
        for (size_t i = 0; i < wanted.size(); ++i) {
            const auto found = std::ranges::find(tensors, wanted[i].name, name);
            if (found == tensors.end()) return std::nullopt;
            is_ordered &= found == tensors.begin() + static_cast<ptrdiff_t>(i);
            element.push_back(*found);
        }
    }
    if (is_ordered) return std::nullopt;
    return ordered;
}

Verdict check_tensors(const Expected& expected, const Tensors& inputs, const Tensors& outputs) {
    if (inputs.empty() || inputs.size() > expected.batch_size)
        return {StatusCode::INVALID_INPUT, "inputs hold " + std::to_string(inputs.size()) +
                                               " batch elements, expected 1 to " +
                                               std::to_string(expected.batch_size)};
    if (outputs.size() > expected.batch_size)
        return {StatusCode::INVALID_OUTPUT, "outputs hold " + std::to_string(outputs.size()) +
                                                " batch elements, expected 1 to " +
                                                std::to_string(expected.batch_size)};
    if (outputs.size() < inputs.size())
        return {StatusCode::INVALID_OUTPUT, "outputs hold " + std::to_string(outputs.size()) +
                                                " batch elements, the inputs " +
                                                std::to_string(inputs.size())};
    if (Verdict v = check_list(expected, TensorDirection::INPUT, inputs); !v) return v;
    if (Verdict v = check_list(expected, TensorDirection::OUTPUT, outputs); !v) return v;
    return check_overlap(expected, inputs, outputs);
}

namespace {

using vart::JobHandle;
using vart::StatusCode;

constexpr size_t kept_records = 4096;
constexpr size_t kept_recordings = 64;  // that wait for wait()

// What `make` builds, or "" where there is no memory for a text: the status says it alone then.
template <typename Make>
std::string text_or_nothing(const Make& make) noexcept {
    try {
        return make();
    } catch (...) {
        return {};
    }
}

// Room for `count` elements, in steps that double.
template <typename T>
void make_room(std::vector<T>& vector, size_t count) {
    if (vector.capacity() < count) vector.reserve(std::max(count, 2 * vector.capacity()));
}

size_t count_tensors(const Tensors& batch) {
    size_t count = 0;
    for (const auto& tensors : batch) count += tensors.size();
    return count;
}

thread_local const Jobs* callback_owner = nullptr;

// When a wait ends; nothing for no limit.
std::optional<std::chrono::steady_clock::time_point> deadline_of(
    std::chrono::milliseconds timeout) {
    const auto now = std::chrono::steady_clock::now();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::time_point::max() - now);
    if (timeout >= left) return std::nullopt;
    return now + timeout;
}

}  // namespace

Jobs::Jobs(Engine& engine, std::shared_ptr<device::Executor> executor, const JobOptions& options,
           const Logger& logger, std::shared_ptr<Profiler> profiler)
    : engine_(engine),
      executor_(std::move(executor)),
      options_(options),
      logger_(logger),
      profiler_(std::move(profiler)) {
    unclaimed_.reserve(kept_recordings + 1);
    for (unsigned slot = engine_.slots(); slot-- > 0;) free_slots_.push_back(slot);
}

Jobs::~Jobs() {
    {
        std::unique_lock lock(mutex_);
        finished_cv_.wait(lock, [this] { return active_ == 0; });
        stop_ = true;
    }
    callback_cv_.notify_all();
    for (std::thread& thread : callback_threads_) thread.join();
    for (const uint32_t id : unclaimed_) profiler_->deliver(*records_.find(id)->second.recording);
}

bool Jobs::on_callback_thread() const {
    return callback_owner == this;
}

// ---- from the call to the executor ------------------------------------------------------------

// Called with mutex_ held.
Jobs::Job& Jobs::fill(const Tensors& inputs, const Tensors& outputs) {
    if (free_jobs_.empty()) {
        make_room(free_jobs_, all_jobs_.size() + 1);
        all_jobs_.push_back(std::make_unique<Job>());
        free_jobs_.push_back(all_jobs_.back().get());
        free_jobs_.back()->jobs = this;
    }
    Job& job = *free_jobs_.back();
    job.inputs.clear();
    job.outputs.clear();
    // Everything that may throw first: a job that was not made holds no tensors.
    make_room(job.inputs, count_tensors(inputs));
    make_room(job.outputs, count_tensors(outputs));
    for (const auto& tensors : inputs)
        job.inputs.insert(job.inputs.end(), tensors.begin(), tensors.end());
    for (size_t b = 0; b < inputs.size(); ++b)
        job.outputs.insert(job.outputs.end(), outputs[b].begin(), outputs[b].end());
    job.batch = inputs.size();
    job.id = 0;
    job.status = StatusCode::SUCCESS;
    job.text.clear();
    job.has_slot = job.is_callers = false;
    job.is_done.store(false, std::memory_order_relaxed);
    job.next = nullptr;
    free_jobs_.pop_back();
    ++active_;
    return job;
}

bool Jobs::may_run(const Job& job) const {
    return job.id == 0 || running_async_ < options_.async_threads;
}

bool Jobs::take_slot(Job& job) {
    job.next_waiting = nullptr;
    if (free_slots_.empty() || !may_run(job)) {
        (first_waiting_ ? last_waiting_->next_waiting : first_waiting_) = &job;
        last_waiting_ = &job;
        num_waiting_.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    job.slot = free_slots_.back();
    free_slots_.pop_back();
    if (job.id != 0) ++running_async_;
    return true;
}

// Synchronous jobs wait for slots alone, so that the first one in the queue may be passed over only
// while asynchronous ones are as many as may be.
Jobs::Job* Jobs::give_slot(const Job& ended) noexcept {
    if (ended.id != 0) --running_async_;
    Job* before = nullptr;
    Job* job = first_waiting_;
    while (job && !may_run(*job)) before = std::exchange(job, job->next_waiting);
    if (!job) {
        free_slots_.push_back(ended.slot);
        return nullptr;
    }
    (before ? before->next_waiting : first_waiting_) = job->next_waiting;
    if (job == last_waiting_) last_waiting_ = before;
    num_waiting_.fetch_sub(1, std::memory_order_relaxed);
    job->slot = ended.slot;
    if (job->id != 0) ++running_async_;
    return job;
}

void Jobs::start_recording(Job& job, uint64_t entered) {
    job.recording = profiler_->is_on() ? profiler_->start(entered) : nullptr;
}

void Jobs::stamp_queued(Job& job) const {
    if (!job.recording) return;
    job.recording->jobs_in_queue =
        executor_->num_queued() + num_waiting_.load(std::memory_order_relaxed);
    job.recording->stamp(Recording::queued);
    profiler_->show_queued(*job.recording);
}

// The wait was released or the callback returned.
void Jobs::deliver(Recording* recording) noexcept {
    if (!recording) return;
    recording->stamp(Recording::released);
    profiler_->deliver(*recording);
}

Outcome Jobs::run(const Tensors& inputs, const Tensors& outputs, uint64_t entered) {
    Job* job;
    {
        const std::lock_guard lock(mutex_);
        job = &fill(inputs, outputs);
        start_recording(*job, entered);
    }
    stamp_queued(*job);
    job->is_callers = true;
    if (!executor_->try_run(*job)) {
        job->is_callers = false;
        executor_->submit(*job);
        device::spin_for_a_moment([job] { return job->is_done.load(std::memory_order_acquire); });
    }
    std::unique_lock lock(mutex_);
    finished_cv_.wait(lock, [job] { return job->is_done.load(std::memory_order_relaxed); });
    Outcome outcome{job->status, std::move(job->text)};
    Recording* const recording = std::exchange(job->recording, nullptr);
    recycle(*job);
    lock.unlock();
    deliver(recording);
    return outcome;
}

JobHandle Jobs::submit(const Tensors& inputs, const Tensors& outputs, Callback callback,
                       uint64_t entered) {
    const std::lock_guard lock(mutex_);
    if (used_ >= options_.in_flight) {
        counters_.refused.fetch_add(1, std::memory_order_relaxed);
        return {StatusCode::RESOURCE_UNAVAILABLE, 0};
    }
    const bool has_callback = static_cast<bool>(callback);
    if (has_callback) add_callback_thread();  // may throw: nothing was accepted yet
    Job& job = fill(inputs, outputs);
    const uint32_t id = next_free_id();
    try {
        add_record(id);
    } catch (...) {
        recycle(job);
        throw;
    }
    next_id_ = id_after(id);
    job.id = id;
    job.callback = std::move(callback);
    ++used_;
    in_flight_.fetch_add(1, std::memory_order_relaxed);
    counters_.submitted.fetch_add(1, std::memory_order_relaxed);
    if (has_callback) {
        ++pending_callbacks_;
        if (options_.callbacks_in_submission_order) {
            (first_callback_ ? last_callback_->next : first_callback_) = &job;
            last_callback_ = &job;
        }
    }
    start_recording(job, entered);
    stamp_queued(job);
    // Queued under our lock: ids and the executor's order are the same.
    executor_->submit(job);
    return {StatusCode::SUCCESS, id};
}

// More calls than slots: the thread goes on with other work, and the job runs on the one that gives
// its slot back, or on one of the executor's where that is a caller's.
void Jobs::execute(Job& job, unsigned core) noexcept {
    if (!std::exchange(job.has_slot, false)) {
        const std::lock_guard lock(mutex_);
        const bool is_callers = std::exchange(job.is_callers, false);
        if (!take_slot(job)) return;
        job.is_callers = is_callers;
    }
    if (job.is_callers) {
        execute_in_slot(job, core);
        // The call returns when its own job is done: `this` lives until then.
        if (Job* const next = finish(job)) {
            next->has_slot = true;
            executor_->submit(*next);
        }
        return;
    }
    for (Job* next = &job; next;) {
        Job& current = *next;
        execute_in_slot(current, core);
        next = finish(current);
    }
}

void Jobs::execute_in_slot(Job& job, unsigned core) noexcept {
    if (job.work) return (*job.work)(job.slot);
    Recording* const recording = job.recording;
    if (recording) {
        recording->stamp(Recording::taken);
        profiler_->core_takes(core, *recording);
    }
    run_batch(job);
    if (profiler_->is_on()) profiler_->core_is_done(core, recording);
    if (recording && job.status == StatusCode::SUCCESS) profiler_->show_completed(*recording);
    if (recording && job.status != StatusCode::SUCCESS)
        profiler_->drop(*std::exchange(job.recording, nullptr));
}

void Jobs::run_batch(Job& job) noexcept {
    const auto result =
        engine_.run(job.inputs.data(), job.outputs.data(), job.batch, job.slot, job.recording);
    if (result) return;
    job.status = to_status(result.error());
    job.text = text_or_nothing([&] {
        const std::string& why = result.error().message;
        return (job.id ? "execute_async: job " + std::to_string(job.id) : "execute") + ": " +
               (why.empty() ? "not enough memory" : why);
    });
    try {
        logger_(LogLevel::error, job.text);
    } catch (...) {  // no memory for a line: the status still says what happened
    }
}

Jobs::Job* Jobs::finish(Job& job) noexcept {
    const bool failed = job.status != StatusCode::SUCCESS;
    // Buffers of the application may go now, also those of a job that nobody waits for.
    job.inputs.clear();
    job.outputs.clear();
    // A synchronous caller owns its job from here on, and may destroy us once the lock is free.
    std::unique_lock lock(mutex_);
    Job* const next = give_slot(job);
    if (job.id == 0) {
        job.is_done.store(true, std::memory_order_release);
        finished_cv_.notify_all();
        return next;
    }
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    (failed ? counters_.failed : counters_.completed).fetch_add(1, std::memory_order_relaxed);
    const bool has_callback = static_cast<bool>(job.callback);
    if (!has_callback) --used_;
    Recording* const unclaimed = make_final(job);
    const auto profiler = unclaimed ? profiler_ : nullptr;
    job.is_done.store(true, std::memory_order_relaxed);
    if (!has_callback) {
        recycle(job);
    } else {
        if (!options_.callbacks_in_submission_order) {
            (first_callback_ ? last_callback_->next : first_callback_) = &job;
            last_callback_ = &job;
        }
        callback_cv_.notify_one();
    }
    finished_cv_.notify_all();
    lock.unlock();
    if (unclaimed) profiler->deliver(*unclaimed);
    return next;
}

void Jobs::recycle(Job& job) {
    job.callback = nullptr;
    free_jobs_.push_back(&job);
    if (--active_ == 0) finished_cv_.notify_all();
}

std::vector<double> Jobs::time_steps(unsigned runs) {
    std::vector<double> times;
    const std::function<void(unsigned slot)> work = [&](unsigned slot) {
        times = engine_.time_steps(runs, slot);
    };
    Job job;
    job.jobs = this;
    job.work = &work;
    executor_->submit(job);
    std::unique_lock lock(mutex_);
    finished_cv_.wait(lock, [&job] { return job.is_done.load(std::memory_order_relaxed); });
    return times;
}

// ---- records ----------------------------------------------------------------------------------

uint32_t Jobs::next_free_id() {
    uint32_t id = next_id_;
    while (records_.contains(id)) id = id_after(id);
    return id;
}

Jobs::Record& Jobs::add_record(uint32_t id) {
    // So that a record can be dropped without memory.
    make_room(spare_records_, records_.size() + spare_records_.size() + 1);
    if (spare_places_.empty()) spare_places_.push_back(0);
    Record* record = nullptr;
    if (spare_records_.empty()) {
        record = &records_[id];
    } else {
        auto node = std::move(spare_records_.back());
        spare_records_.pop_back();
        node.key() = id;
        record = &node.mapped();
        record->is_final.store(false, std::memory_order_relaxed);
        record->status = StatusCode::JOB_PENDING;
        record->text.clear();
        record->waiters = 0;
        record->is_collected = false;
        record->recording = nullptr;
        records_.insert(std::move(node));
    }
    record->place = spare_places_.begin();
    *record->place = id;
    unfinished_.splice(unfinished_.end(), spare_places_, record->place);
    return *record;
}

Recording* Jobs::make_final(Job& job) {
    Record& record = records_.find(job.id)->second;
    record.status = job.status;
    record.text = std::move(job.text);
    finished_.splice(finished_.end(), unfinished_, record.place);
    // At most one recording that nobody claims: what is dropped here makes room below.
    Recording* unclaimed = finished_.size() > kept_records ? drop_oldest() : nullptr;
    if (job.recording && !job.callback) {
        record.recording = std::exchange(job.recording, nullptr);
        unclaimed_.push_back(job.id);
        if (unclaimed_.size() > kept_recordings) {
            unclaimed = std::exchange(records_.find(unclaimed_.front())->second.recording, nullptr);
            unclaimed_.erase(unclaimed_.begin());
        }
    }
    record.is_final.store(true, std::memory_order_release);
    return unclaimed;
}

Recording* Jobs::drop_oldest() {
    const auto oldest = records_.find(finished_.front());
    if (!std::exchange(has_warned_, true)) {
        try {
            logger_(LogLevel::warning,
                    "execute_async: the status of job " + std::to_string(oldest->first) +
                        " was dropped, nobody waited for it and " + std::to_string(kept_records) +
                        " later ones; call wait for every job");
        } catch (...) {  // no memory for a line
        }
    }
    return collect(oldest);
}

Recording* Jobs::collect(Records::iterator record) {
    Recording* const recording = std::exchange(record->second.recording, nullptr);
    if (recording) std::erase(unclaimed_, record->first);
    record->second.is_collected = true;
    spare_places_.splice(spare_places_.begin(), finished_, record->second.place);
    if (record->second.waiters == 0) drop_record(record);
    return recording;
}

void Jobs::drop_record(Records::iterator record) {
    spare_records_.push_back(records_.extract(record));
}

Outcome Jobs::wait(uint32_t id, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    const auto found = records_.find(id);
    if (found == records_.end() || found->second.is_collected)
        return {StatusCode::INVALID_JOB_ID, text_or_nothing([id] {
                    return "wait: no job " + std::to_string(id) +
                           (id == 0 ? ", 0 is the id of a refused submission"
                                    : ", its final status was already returned or it never was");
                })};
    Record& record = found->second;
    if (!record.is_final && timeout.count() > 0) {
        ++record.waiters;  // keeps the record
        lock.unlock();
        const auto deadline = deadline_of(timeout);
        const auto is_final = [&record] { return record.is_final.load(std::memory_order_acquire); };
        device::spin_for_a_moment(is_final);
        lock.lock();
        if (deadline)
            finished_cv_.wait_until(lock, *deadline, is_final);
        else
            finished_cv_.wait(lock, is_final);
        --record.waiters;
    }
    if (!record.is_final) return {StatusCode::JOB_PENDING, {}};
    Outcome outcome{record.status, text_or_nothing([&] { return record.text; })};
    Recording* recording = nullptr;
    // The iterator may have moved with a rehash, the record has not.
    if (!record.is_collected)
        recording = collect(records_.find(id));
    else if (record.waiters == 0)
        drop_record(records_.find(id));
    lock.unlock();
    deliver(recording);
    return outcome;
}

// ---- callbacks --------------------------------------------------------------------------------

void Jobs::add_callback_thread() {
    const size_t wanted = options_.callbacks_in_submission_order
                              ? 1
                              : std::min<size_t>(options_.async_threads, pending_callbacks_ + 1);
    if (callback_threads_.size() >= wanted) return;
    callback_threads_.emplace_back([this] {
        device::name_this_thread("vartml-callback");
        callback_owner = this;
        call_back();
    });
}

// The job whose callback is due, or nullptr.
Jobs::Job* Jobs::next_callback() {
    Job* const job = first_callback_;
    if (!job || !job->is_done.load(std::memory_order_relaxed)) return nullptr;
    if (options_.callbacks_in_submission_order && running_callbacks_ > 0) return nullptr;
    first_callback_ = job->next;
    return job;
}

void Jobs::call(const Callback& callback, const JobHandle& job) const noexcept {
    try {
        try {
            callback(job);
        } catch (const std::exception& e) {
            logger_(LogLevel::error, "callback of job " + std::to_string(job.job_id) +
                                         " threw an exception: " + e.what());
        } catch (...) {
            logger_(LogLevel::error, "callback of job " + std::to_string(job.job_id) +
                                         " threw something that is no std::exception");
        }
    } catch (...) {  // no memory for a line
    }
}

void Jobs::call_back() {
    std::unique_lock lock(mutex_);
    for (;;) {
        Job* job = nullptr;
        callback_cv_.wait(lock, [&] { return (job = next_callback()) != nullptr || stop_; });
        if (!job) return;
        ++running_callbacks_;
        --used_;  // the callback can submit the next job
        const JobHandle handle(job->status, job->id);
        Callback callback = std::move(job->callback);
        lock.unlock();
        call(callback, handle);
        deliver(std::exchange(job->recording, nullptr));
        callback = nullptr;  // may hold the last reference to the runner
        lock.lock();
        --running_callbacks_;
        --pending_callbacks_;
        recycle(*job);
    }
}

}  // namespace vartml::runtime
