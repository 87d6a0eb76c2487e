// SPDX-License-Identifier: Apache-2.0
// A model ready to run: its runner, the tensors it takes and gives, and how long a run takes here.
// One element has it alone, or several share it.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <vartml/model.h>

#include "gst/infer/scheduler.h"
#include "gst/infer/settings.h"
#include "gst/support/error.h"
#include "gst/support/vart_runner.h"

namespace vartml::gst::infer {

// What is known of a model once it was loaded.
struct InstanceFacts {
    std::string model;  // as the property names it; the description's path is that of the artefact
    vartml::ModelDescription description;
    std::vector<RunnerTensor> inputs, outputs;  // HW views where all of a direction have one
    uint64_t load_us = 0, warmup_us = 0;
    uint64_t run_p50_us = 0;         // of a full batch
    uint64_t run_promise_us = 0;     // the same, as a live pipeline is told
    bool shares_processors = false;  // runs are made by the host's
    bool cache_hit = false;
    Scheduler::Limits limits;
};

struct Instance : InstanceFacts {
    // Neither, of an instance that only says what is known of its model.
    std::shared_ptr<vart::Runner> runner;
    std::unique_ptr<Scheduler> scheduler;  // goes before the runner

    Instance() = default;
    explicit Instance(const InstanceFacts& facts) : InstanceFacts(facts) {}
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;
};

struct LoadProgress {
    const std::atomic<bool>* cancel;  // set from another thread: give up soon
    std::function<void(int percent, const std::string& stage)> compile;
};

// Compiles `settings.model` where it is an .onnx, opens it, makes the runner and warms it up.
// Blocks. On failure returns nullptr and fills `failure`. `before`: what was known of the model
// when it was unloaded, or nullptr; where it is the same one its runs are not measured again.
std::shared_ptr<Instance> load_instance(const Settings& settings, const LoadProgress& progress,
                                        const InstanceFacts* before, Failure& failure);

// Whether loading has to compile first, which takes seconds.
bool needs_compiler(const std::string& model);

// The property async-depth, or its default for a batch size.
unsigned frames_in_flight(const Settings& settings, unsigned batch);

// Instances that several elements of the process use, by `model-instance-id`.

class Lane;

// An element that uses a shared instance. A swap asks all of them first, then tells all of them.
class InstanceUser {
public:
    // A lane of this element on `instance`, or nullptr with `failure` filled. Any thread.
    virtual std::shared_ptr<Lane> make_lane(const std::shared_ptr<Instance>& instance,
                                            Failure& failure) = 0;
    // From its next frame on the element uses `lane`, made by make_lane() before. Any thread.
    virtual void adopt(const std::string& model, std::shared_ptr<Lane> lane) = 0;

protected:
    ~InstanceUser() = default;
};

// Thread-safety: all may be called concurrently. The lock of the list is held while users are
// called, so they must not call back.

// The instance of `settings.model_instance_id`: loaded by the first element that asks, while others
// wait for it. Fails with infer-instance-conflict where the settings differ from those it was made
// with. A user that paused gets the model that is in use now.
std::shared_ptr<Instance> join_instance(InstanceUser& user, const Settings& settings,
                                        const std::string& element, const LoadProgress& progress,
                                        const InstanceFacts* before, Failure& failure);
// The last user to leave ends it. Whether it had several at once, who start again together: the
// order in which they leave tells nothing.
bool leave_instance(InstanceUser& user, const std::string& id);
// The same for a user that joins again: which model is in use stays known for it.
void pause_instance(InstanceUser& user, const std::string& id);

// Puts `instance`, made for `settings.model`, in the place of the one of that id, for all its
// users or for none. Who asks is one of them from then on, if it paused.
bool swap_instance(InstanceUser& asks, const std::string& id, const Settings& settings,
                   std::shared_ptr<Instance> instance, Failure& failure);

}  // namespace vartml::gst::infer
