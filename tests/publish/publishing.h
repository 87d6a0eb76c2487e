// SPDX-License-Identifier: Apache-2.0
// A publisher to a broker, and what it says of itself.
#pragma once
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <vartml/publish_broker.h>

#include "tests/publish/lines.h"
#include "tests/support/temp_dir.h"

namespace vartml::test {

class Publishing : public testing::Test {
protected:
    static constexpr unsigned forever = 3600000;

    explicit Publishing(BrokerKind kind) : kind_(kind) { options_.address = "127.0.0.1"; }
    void open(int port, PublishOptions options = {}) {
        options_.port = static_cast<unsigned>(port);
        auto sink = make_broker_sink(kind_, options_);
        ASSERT_TRUE(sink) << sink.error().message;
        (*sink)->backoff = {.first_ms = 1, .most_ms = 20};
        PublishEvents events;
        events.state = [said = said_](const char* state, const std::string& reason,
                                      const PublishCounts&) {
            const std::lock_guard lock(said->mutex);
            said->states.push_back(state);
            said->reasons += reason + '\n';
            said->changed.notify_all();
        };
        auto opened = Publisher::open(std::move(*sink), options, std::move(events));
        ASSERT_TRUE(opened) << opened.error().message;
        publisher_ = std::move(*opened);
    }
    void put(int count) {
        for (int i = 0; i < count; ++i) publisher_->put(a_record(*publisher_, next_++));
    }
    // Until the last state is this one.
    void wait_for(const std::string& state) {
        std::unique_lock lock(said_->mutex);
        said_->changed.wait(
            lock, [&] { return !said_->states.empty() && said_->states.back() == state; });
    }
    void wait_for_reason(const std::string& text) {
        std::unique_lock lock(said_->mutex);
        said_->changed.wait(lock, [&] { return said_->reasons.find(text) != std::string::npos; });
    }
    std::string reasons() {
        const std::lock_guard lock(said_->mutex);
        return said_->reasons;
    }

    const BrokerKind kind_;
    TempDir temp_;
    BrokerOptions options_;
    // A thread that waits for the system outlives the test, and speaks once more.
    struct Said {
        std::mutex mutex;  // guards the rest
        std::condition_variable changed;
        std::vector<std::string> states;
        std::string reasons;
    };
    std::shared_ptr<Said> said_ = std::make_shared<Said>();
    std::unique_ptr<Publisher> publisher_;  // ends first
    uint64_t next_ = 0;
};

}  // namespace vartml::test
