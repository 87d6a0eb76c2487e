// SPDX-License-Identifier: Apache-2.0
// What a bucket has, as the broker tells it: nobody asks for all of it again and again.
#pragma once
#include <nats/nats.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <vartml/result.h>

namespace vartml::fleet {

/// A copy of a bucket that follows it. All members are called by one thread.
class Watch {
public:
    struct Seen {
        uint64_t revision = 0;
        std::string value;
        int64_t since_ms = 0;  // of boot_ms: when this revision was seen first
    };
    /// `stream` outlives it. It is complete some time later.
    static Result<std::unique_ptr<Watch>> open(jsCtx* stream, const std::string& bucket);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    /// Takes in what the broker has told; does not wait.
    void update();
    /// Each entry was told once. Until then entries() are those of before reopen().
    bool complete() const { return complete_; }
    const std::map<std::string, Seen>& entries() const { return entries_; }
    /// All entries are told anew: what was told while the connection was cut is lost. Those whose
    /// revision is the same keep their `since_ms`.
    Result<void> reopen();

private:
    struct Inbox;
    Watch(jsCtx* stream, const std::string& bucket)
        : stream_(stream), bucket_(bucket), subjects_("$KV." + bucket + '.') {}
    void close();

    jsCtx* const stream_;
    const std::string bucket_, subjects_;
    natsSubscription* subscription_ = nullptr;
    std::shared_ptr<Inbox> inbox_;  // also of the thread that hears the broker
    bool complete_ = false;
    uint64_t to_come_ = 0;                   // of the entries that there were at the opening
    std::map<std::string, Seen> entries_{};  // complete
    std::map<std::string, Seen> next_{};     // until it is complete
};

}  // namespace vartml::fleet
