// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/shared_instances.h"

#include <algorithm>
#include <map>

#include "gst/infer/settings.h"

namespace vartml::gst::infer {
namespace {

struct Shared {
    std::shared_ptr<Instance> instance;  // nothing while it is loading
    Settings made_with;
    std::string made_by;
    std::vector<InstanceUser*> users;
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
             "model-instance-id '" + settings.model_instance_id + "' was made by element '" +
                 shared.made_by + "' with " + one.name + " '" + have + "', but here " + one.name +
                 " is '" + want + "'; use the same value, or another model-instance-id"},
            "infer-instance-conflict",
            one.name};
        failure.found = want;
        failure.expected = have;
        return false;
    }
    return true;
}

}  // namespace

std::shared_ptr<Instance> join_instance(InstanceUser& user, const Settings& settings,
                                        const std::string& element, const LoadProgress& progress,
                                        Failure& failure) {
    const std::string& id = settings.model_instance_id;
    List& all = list();
    std::unique_lock lock(all.mutex);
    while (true) {
        const auto at = all.by_id.find(id);
        if (at == all.by_id.end()) break;
        Shared& shared = at->second;
        if (!agrees(shared, settings, failure)) return nullptr;
        if (shared.instance) {
            shared.users.push_back(&user);
            return shared.instance;
        }
        // Another element is loading it. Nobody tells this thread that it should give up.
        all.changed.wait_for(lock, std::chrono::milliseconds(50));
        if (*progress.cancel) {
            failure = {{vartml::ErrorCode::timeout, "cancelled"}, "infer-compile"};
            return nullptr;
        }
    }
    all.by_id[id] = {nullptr, settings, element, {&user}};
    lock.unlock();
    std::shared_ptr<Instance> instance = load_instance(settings, progress, failure);
    lock.lock();
    if (instance) {
        all.by_id[id].instance = instance;
    } else {
        all.by_id.erase(id);  // the next one that waits tries for itself
    }
    all.changed.notify_all();
    return instance;
}

void leave_instance(InstanceUser& user, const std::string& id) {
    std::shared_ptr<Instance> last;
    const std::lock_guard lock(list().mutex);
    const auto at = list().by_id.find(id);
    if (at == list().by_id.end()) return;
    std::erase(at->second.users, &user);
    if (!at->second.users.empty()) return;
    last.swap(at->second.instance);
    list().by_id.erase(at);
}

bool swap_instance(const std::string& id, const Settings& settings,
                   std::shared_ptr<Instance> instance, Failure& failure) {
    const std::lock_guard lock(list().mutex);
    const auto at = list().by_id.find(id);
    if (at == list().by_id.end()) return true;  // its last user is stopping
    Shared& shared = at->second;
    std::vector<std::shared_ptr<Lane>> lanes;
    for (InstanceUser* user : shared.users) {
        lanes.push_back(user->make_lane(instance, failure));
        if (lanes.back()) continue;
        lanes.pop_back();
        for (std::shared_ptr<Lane>& lane : lanes) Lane::retire(std::move(lane));
        return false;
    }
    for (size_t i = 0; i < lanes.size(); ++i)
        shared.users[i]->adopt(settings.model, std::move(lanes[i]));
    shared.instance = std::move(instance);
    shared.made_with.model = settings.model;
    return true;
}

}  // namespace vartml::gst::infer
