// SPDX-License-Identifier: Apache-2.0
// Instances that several elements of the process use, by `model-instance-id`.
#pragma once
#include "gst/infer/lane.h"

namespace vartml::gst::infer {

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
// with.
std::shared_ptr<Instance> join_instance(InstanceUser& user, const Settings& settings,
                                        const std::string& element, const LoadProgress& progress,
                                        Failure& failure);
// The last user to leave ends it.
void leave_instance(InstanceUser& user, const std::string& id);

// Puts `instance`, made for `settings.model`, in the place of the one of that id, for all its
// users or for none.
bool swap_instance(const std::string& id, const Settings& settings,
                   std::shared_ptr<Instance> instance, Failure& failure);

}  // namespace vartml::gst::infer
