// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/watch.h"

#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "gst/fleet/guard.h"
#include "gst/fleet/store.h"

namespace vartml::fleet {

// What the broker has told and nobody has taken in yet. Filled by a thread of libnats: its waits
// with a limit are by the time of day, and one that jumps back would hold up a worker that polls.
struct Watch::Inbox {
    struct Message {
        std::string subject, value;
        uint64_t revision = 0;
        bool deleted = false;
        bool last = false;  // nothing is behind it
    };
    std::mutex mutex;
    std::vector<Message> messages;  // guarded by it

    static void hear(natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
        jsMsgMetaData* about = nullptr;
        if (natsMsg_GetMetaData(&about, message) == NATS_OK) {
            // given, NATS's ADR-8: an entry that was deleted has this header, and no value
            const char* operation = nullptr;
            natsMsgHeader_Get(message, "KV-Operation", &operation);
            Message heard{
                natsMsg_GetSubject(message),
                std::string(natsMsg_GetData(message), size_t(natsMsg_GetDataLength(message))),
                about->Sequence.Stream, operation && std::string_view(operation) != "PUT",
                about->NumPending == 0};
            Inbox& self = **static_cast<std::shared_ptr<Inbox>*>(closure);
            const std::lock_guard lock(self.mutex);
            self.messages.push_back(std::move(heard));
        }
        jsMsgMetaData_Destroy(about);
        natsMsg_Destroy(message);
    }
};

Result<std::unique_ptr<Watch>> Watch::open(jsCtx* stream, const std::string& bucket) {
    std::unique_ptr<Watch> self(new Watch(stream, bucket));
    if (auto done = self->reopen(); !done) return done.error();
    return self;
}

Watch::~Watch() {
    close();
}

void Watch::close() {
    natsSubscription_Destroy(std::exchange(subscription_, nullptr));
}

Result<void> Watch::reopen() {
    close();
    complete_ = false;
    next_.clear();
    to_come_ = UINT64_MAX;
    inbox_ = std::make_shared<Inbox>();
    // Messages may still come in while it is closed.
    auto* const held = new std::shared_ptr<Inbox>(inbox_);
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Ordered = true;
    const std::string name = "KV_" + bucket_;
    options.Stream = name.c_str();
    options.Config.DeliverPolicy = js_DeliverLastPerSubject;
    natsStatus status = js_Subscribe(&subscription_, stream_, (subjects_ + '>').c_str(),
                                     Inbox::hear, held, nullptr, &options, nullptr);
    if (status != NATS_OK) {
        delete held;
        return error_of(status, "bucket " + bucket_);
    }
    status = natsSubscription_SetOnCompleteCB(
        subscription_, [](void* closure) { delete static_cast<std::shared_ptr<Inbox>*>(closure); },
        held);
    jsConsumerInfo* about = nullptr;
    if (status == NATS_OK)
        status = natsSubscription_GetConsumerInfo(&about, subscription_, nullptr, nullptr);
    if (status != NATS_OK) return error_of(status, "bucket " + bucket_);
    to_come_ = about->NumPending + about->Delivered.Consumer;
    jsConsumerInfo_Destroy(about);
    return {};
}

void Watch::update() {
    std::vector<Inbox::Message> messages;
    {
        const std::lock_guard lock(inbox_->mutex);
        messages.swap(inbox_->messages);
    }
    const int64_t now_ms = boot_ms();
    for (Inbox::Message& message : messages) {
        std::map<std::string, Seen>& map = complete_ ? entries_ : next_;
        const std::string key = message.subject.substr(subjects_.size());
        if (message.deleted) {
            map.erase(key);
        } else {
            const auto before = entries_.find(key);
            const bool same =
                before != entries_.end() && before->second.revision == message.revision;
            map[key] = {message.revision, std::move(message.value),
                        same ? before->second.since_ms : now_ms};
        }
        if (complete_) continue;
        if (to_come_ > 0) --to_come_;
        if (message.last) to_come_ = 0;
        if (to_come_ > 0) continue;
        complete_ = true;
        entries_ = std::exchange(next_, {});
    }
    if (!complete_ && subscription_ && to_come_ == 0) {  // an empty one
        complete_ = true;
        entries_ = std::exchange(next_, {});
    }
}

}  // namespace vartml::fleet
