// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/instance.h"

#include <algorithm>
#include <any>
#include <map>

#include <vartml/processors.h>
#include <vartml/profile.h>

#include "gst/infer/lane.h"
#include "gst/infer/latency.h"
#include "gst/infer/load_model.h"
#include "gst/infer/stats.h"

namespace vartml::gst::infer {
namespace {

using vartml::ErrorCode;

uint64_t us_since(Clock::time_point start) {
    return uint64_t(
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
}

// The vart API throws a sentence without a code.
bool says_busy(const vartml::Error& error) {
    return error.code == ErrorCode::busy || error.message.find("in use") != std::string::npos;
}

bool make_runner(const Settings& settings, unsigned batch, Instance& instance, Failure& failure) {
    RunnerOptions options;
    if (!runner_options(settings, instance.description, batch, options, failure)) return false;
    auto runner = create_runner(instance.description.path, options);
    if (!runner) {
        const vartml::Error& error = runner.error();
        if (says_busy(error))
            return fail(
                failure, "infer-device-busy",
                {ErrorCode::busy, "device '" + settings.device + "' is in use: " + error.message +
                                      "; end who holds it, or let both share it"},
                "device");
        const bool option = error.code == ErrorCode::invalid_argument;
        const bool device =
            settings.device != "auto" && error.message.find(settings.device) != std::string::npos;
        if (device)
            return fail(failure, "infer-device-missing", {ErrorCode::not_found, error.message},
                        "device");
        if (option) return fail(failure, "infer-option", error, "runner-options");
        // The description was readable, so it is a part of the model, or the device that refuses
        // it.
        return fail(failure, "infer-model-bad", {ErrorCode::bad_model, error.message}, "model");
    }
    instance.runner = *std::move(runner);
    const auto views = [&](vart::TensorDirection direction, const char* key,
                           std::vector<RunnerTensor>& into) {
        const auto type = std::any_cast<std::string>(options[key]) == "HW" ? vart::TensorType::HW
                                                                           : vart::TensorType::CPU;
        auto tensors = runner_tensors(*instance.runner, direction, type);
        if (!tensors) return fail(failure, "infer-model-bad", tensors.error(), "model");
        into = *std::move(tensors);
        return true;
    };
    return views(vart::TensorDirection::INPUT, "input_tensor_type", instance.inputs) &&
           views(vart::TensorDirection::OUTPUT, "output_tensor_type", instance.outputs);
}

bool choose_batch(const Settings& settings, const Instance& instance, unsigned& batch,
                  Failure& failure) {
    const unsigned model_batch = std::clamp(instance.description.actual_batch_size, 1u, 64u);
    batch = settings.batch_size ? settings.batch_size : model_batch;
    if (batch <= model_batch) return true;
    const std::string wanted = std::to_string(batch), most = std::to_string(model_batch);
    (void)fail(failure, "infer-batch",
               {ErrorCode::invalid_argument,
                "property 'batch-size' is " + wanted + ", but the model was compiled for " + most +
                    "; compile it with --batch-size " + wanted + ", or set batch-size=" + most},
               "batch-size");
    failure.found = wanted;
    failure.expected = most;
    return false;
}

// One run, which may not end. Errors are those of the property `model`.
bool run_once(Instance& instance, const std::vector<std::vector<vart::NpuTensor>>& inputs,
              std::vector<std::vector<vart::NpuTensor>>& outputs, unsigned timeout_ms,
              Failure& failure) {
    vart::Runner& runner = *instance.runner;
    const vart::JobHandle job = runner.execute_async(inputs, outputs);
    vart::StatusCode status = job.status;
    if (status == vart::StatusCode::SUCCESS)
        status = runner.wait(job, std::chrono::milliseconds(timeout_ms));
    if (status == vart::StatusCode::SUCCESS) return true;
    if (status == vart::StatusCode::JOB_PENDING) {
        return fail(failure, "infer-device-lost",
                    {ErrorCode::timeout, "the first run on zeros did not end within " +
                                             std::to_string(timeout_ms) +
                                             " ms; restart the device, or raise run-timeout"},
                    "run-timeout");
    }
    const auto text = runner_property<std::string>(runner, "last_error");
    return fail(
        failure, "infer-run",
        status_error(status, text && !text->empty() ? *text + ";" : "the first run on zeros ended"),
        nullptr);
}

// 2 runs on zeros, then up to 20 measured ones of which those after 500 ms are left out, unless
// they were measured `before`.
bool warm_up(const Settings& settings, unsigned batch, Instance& instance,
             const LoadProgress& progress, const InstanceFacts* before, Failure& failure) {
    const auto start = Clock::now();
    struct Warm {
        std::vector<std::vector<vart::NpuTensor>> inputs, outputs;
        std::vector<TensorMemory> memory;
    };
    auto warm = std::make_unique<Warm>();
    warm->inputs.resize(batch);
    warm->outputs.resize(batch);
    for (unsigned b = 0; b < batch; ++b) {
        for (auto* side : {&instance.inputs, &instance.outputs}) {
            for (const RunnerTensor& tensor : *side) {
                auto made = allocate_tensor(*instance.runner, tensor);
                if (!made) return fail(failure, "infer-run", made.error(), nullptr);
                auto& tensors = side == &instance.inputs ? warm->inputs : warm->outputs;
                tensors[b].push_back(made->tensor);
                warm->memory.push_back(*std::move(made));
            }
        }
    }
    std::vector<uint32_t> times;
    const WarmUpScope scope;
    for (int run = 0; run < (before ? 2 : 22) && !*progress.cancel; ++run) {
        if (run > 2 && us_since(start) > 500'000) break;
        const auto begin = Clock::now();
        if (!run_once(instance, warm->inputs, warm->outputs, settings.run_timeout_ms, failure)) {
            if (failure.id == std::string_view("infer-device-lost")) {
                // The device may still write there, and its runner cannot be ended.
                (void)new std::shared_ptr<vart::Runner>(instance.runner);
                (void)warm.release();
            }
            return false;
        }
        if (run >= 2) times.push_back(uint32_t(us_since(begin)));
    }
    const auto backend = runner_property<std::string>(*instance.runner, "backend");
    instance.shares_processors = backend == "softnpu";
    instance.run_p50_us = before ? before->run_p50_us : percentile(times, 50);
    instance.run_promise_us =
        before ? before->run_promise_us : promise_us(times, instance.shares_processors);
    instance.warmup_us = us_since(start);
    return true;
}

}  // namespace

unsigned frames_in_flight(const Settings& settings, unsigned batch) {
    return settings.async_depth ? settings.async_depth : std::max(2u, 2 * batch);
}

std::shared_ptr<Instance> load_instance(const Settings& settings, const LoadProgress& progress,
                                        const InstanceFacts* before, Failure& failure) {
    const auto start = Clock::now();
    auto instance = std::make_shared<Instance>();
    instance->model = settings.model;
    unsigned batch = 1;
    if (!open_description(settings, progress, *instance, failure) ||
        !choose_batch(settings, *instance, batch, failure) ||
        !make_runner(settings, batch, *instance, failure)) {
        return nullptr;
    }
    instance->load_us = us_since(start);
    if (before && before->description.signature != instance->description.signature)
        before = nullptr;
    if (!warm_up(settings, batch, *instance, progress, before, failure)) return nullptr;
    // On two idle processors waking a thread takes about 50 us, and a run wakes two.
    constexpr uint64_t hand_over_us = 100;
    const bool here =
        batch == 1 && instance->shares_processors && instance->run_p50_us < hand_over_us;
    // The processors of the host make a run each; an NPU one after the other.
    const unsigned at_once = instance->shares_processors ? usable_processors() : 1;
    instance->limits = {.batch = batch,
                        .slots = concurrent_runs(settings, batch),
                        .deadline = std::chrono::milliseconds(settings.run_timeout_ms),
                        .here = here,
                        .at_once = at_once};
    instance->scheduler = std::make_unique<Scheduler>(instance->runner, instance->limits);
    return instance;
}

// ---- shared ----

namespace {

struct Shared {
    std::shared_ptr<Instance> instance;  // nothing while it is loading, or all users pause
    bool loading = false;
    Settings made_with;
    std::string made_by;
    std::vector<InstanceUser*> users, paused;
    bool had_several = false;  // users at once
};

struct List {
    std::mutex mutex;  // guards all below; signals' mutexes may be taken under it
    std::condition_variable changed;
    std::map<std::string, Shared> by_id;
};

// Never destroyed: elements may end after main().
List& list() {
    static List* const all = new List;
    return *all;
}

// Properties that elements with one id must agree on.
struct Shareable {
    const char* name;
    std::string (*text)(const Settings&);
};
const Shareable shareable[] = {
    {"model", [](const Settings& s) { return s.model; }},
    {"device", [](const Settings& s) { return s.device; }},
    {"batch-size", [](const Settings& s) { return std::to_string(s.batch_size); }},
    {"runner-options", runner_options_text},
};

bool agrees(const Shared& shared, const Settings& settings, Failure& failure) {
    for (const Shareable& one : shareable) {
        const std::string have = one.text(shared.made_with), want = one.text(settings);
        if (have == want) continue;
        failure = {
            {vartml::ErrorCode::invalid_argument,
             "model-instance-id '" + settings.model_instance_id + "', made by element '" +
                 shared.made_by + "', has " + one.name + " '" + have + "' now, but here " +
                 one.name + " is '" + want + "'; use the same value, or another model-instance-id"},
            "infer-instance-conflict",
            one.name};
        failure.found = want;
        failure.expected = have;
        return false;
    }
    return true;
}

// With the mutex; returns the instance where nobody is left that uses it.
std::shared_ptr<Instance> leave(const std::string& id, InstanceUser& user) {
    std::shared_ptr<Instance> last;
    const auto at = list().by_id.find(id);
    if (at == list().by_id.end()) return last;
    Shared& shared = at->second;
    std::erase(shared.users, &user);
    std::erase(shared.paused, &user);
    if (shared.users.empty()) last.swap(shared.instance);
    if (shared.users.empty() && shared.paused.empty()) list().by_id.erase(at);
    return last;
}

}  // namespace

std::shared_ptr<Instance> join_instance(InstanceUser& user, const Settings& settings,
                                        const std::string& element, const LoadProgress& progress,
                                        const InstanceFacts* before, Failure& failure) {
    const std::string& id = settings.model_instance_id;
    List& all = list();
    std::shared_ptr<Instance> loaded;
    std::unique_lock lock(all.mutex);
    Shared* shared;
    while (true) {
        shared =
            &all.by_id.try_emplace(id, Shared{nullptr, false, settings, element, {}, {}, false})
                 .first->second;
        const bool paused = std::ranges::find(shared->paused, &user) != shared->paused.end();
        if (!paused && !agrees(*shared, settings, failure)) return nullptr;
        if (!shared->loading) break;
        // Another element is loading it. Nobody tells this thread that it should give up.
        all.changed.wait_for(lock, std::chrono::milliseconds(50));
        if (*progress.cancel) {
            failure = {{vartml::ErrorCode::timeout, "cancelled"}, "infer-compile"};
            return nullptr;
        }
    }
    std::erase(shared->paused, &user);
    shared->users.push_back(&user);
    shared->had_several |= shared->users.size() + shared->paused.size() > 1;
    if (shared->instance) return shared->instance;
    shared->loading = true;
    Settings in_use = settings;
    in_use.model = shared->made_with.model;
    lock.unlock();
    loaded = load_instance(in_use, progress, before, failure);
    if (loaded && *progress.cancel) {  // perhaps without having been measured: of no use to others
        loaded.reset();
        failure = {{vartml::ErrorCode::timeout, "cancelled"}, "infer-compile"};
    }
    lock.lock();
    shared->loading = false;
    // One that paused may have swapped it meanwhile.
    if (!shared->instance) shared->instance = loaded;
    all.changed.notify_all();
    if (shared->instance) return shared->instance;
    leave(id, user);  // the next one that waits tries for itself
    return nullptr;
}

bool leave_instance(InstanceUser& user, const std::string& id) {
    std::shared_ptr<Instance> last;
    const std::lock_guard lock(list().mutex);
    const auto at = list().by_id.find(id);
    const bool had_several = at != list().by_id.end() && at->second.had_several;
    last = leave(id, user);
    return had_several;
}

void pause_instance(InstanceUser& user, const std::string& id) {
    std::shared_ptr<Instance> last;
    const std::lock_guard lock(list().mutex);
    const auto at = list().by_id.find(id);
    if (at == list().by_id.end()) return;
    at->second.paused.push_back(&user);
    std::erase(at->second.users, &user);
    if (at->second.users.empty()) last.swap(at->second.instance);
}

bool swap_instance(InstanceUser& asks, const std::string& id, const Settings& settings,
                   std::shared_ptr<Instance> instance, Failure& failure) {
    const std::lock_guard lock(list().mutex);
    const auto at = list().by_id.find(id);
    if (at == list().by_id.end()) return true;  // its last user is stopping
    Shared& shared = at->second;
    const bool paused = std::erase(shared.paused, &asks) > 0;
    if (paused) shared.users.push_back(&asks);
    std::vector<std::shared_ptr<Lane>> lanes;
    for (InstanceUser* user : shared.users) {
        lanes.push_back(user->make_lane(instance, failure));
        if (lanes.back()) continue;
        lanes.pop_back();
        for (std::shared_ptr<Lane>& lane : lanes) Lane::retire(std::move(lane));
        if (paused) {
            std::erase(shared.users, &asks);
            shared.paused.push_back(&asks);
        }
        return false;
    }
    for (size_t i = 0; i < lanes.size(); ++i)
        shared.users[i]->adopt(settings.model, std::move(lanes[i]));
    shared.instance = std::move(instance);
    shared.made_with.model = settings.model;
    return true;
}

}  // namespace vartml::gst::infer
