// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/publish/fake_sink.h"
#include "tests/publish/lines.h"
#include "tests/support/process_state.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace vartml;
using namespace vartml::test;

constexpr unsigned forever = 3600000;

class PublisherTest : public testing::Test {
protected:
    void open(PublishOptions options = {}) {
        PublishEvents events;
        events.state = [said = said_](const char* state, const std::string& reason,
                                      const PublishCounts&) {
            const std::lock_guard lock(said->mutex);
            said->states.push_back(reason.empty() ? state : state + (": " + reason));
        };
        events.failed = [said = said_](const Error& error, bool) {
            const std::lock_guard lock(said->mutex);
            said->failures.push_back(error.message);
        };
        events.spool_failed = [said = said_](const Error& error) {
            const std::lock_guard lock(said->mutex);
            said->failures.push_back("spool " + error.message);
            if (said->publisher) said->queued_when_refused = said->publisher->counts().queued;
        };
        auto opened =
            Publisher::open(std::make_unique<FakeSink>(receiver_), options, std::move(events));
        ASSERT_TRUE(opened) << opened.error().message;
        publisher_ = std::move(*opened);
        const std::lock_guard lock(said_->mutex);
        said_->publisher = publisher_.get();
    }
    ~PublisherTest() override { end(); }
    void end() {
        {
            const std::lock_guard lock(said_->mutex);
            said_->publisher = nullptr;
        }
        publisher_.reset();
    }
    void put(int count) {
        for (int i = 0; i < count; ++i) publisher_->put(a_record(*publisher_, next_++));
    }
    // Waits until so many are counted. With a spool drain() returns while the link is down.
    bool comes(uint64_t PublishCounts::* count, uint64_t least) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (publisher_->counts().*count < least && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
        return publisher_->counts().*count >= least;
    }
    std::vector<std::string> states() {
        const std::lock_guard lock(said_->mutex);
        return said_->states;
    }
    std::vector<std::string> failures() {
        const std::lock_guard lock(said_->mutex);
        return said_->failures;
    }

    uint64_t queued_when_refused() {
        const std::lock_guard lock(said_->mutex);
        return said_->queued_when_refused;
    }

    TempDir temp_;
    const std::string spool_ = temp_ / "spool";
    std::shared_ptr<Receiver> receiver_ = std::make_shared<Receiver>();
    // A thread that waits for the system outlives the test, and speaks once more.
    struct Said {
        std::mutex mutex;  // guards the rest
        std::vector<std::string> states, failures;
        uint64_t queued_when_refused = 0;  // by the spool
        Publisher* publisher = nullptr;
    };
    std::shared_ptr<Said> said_ = std::make_shared<Said>();
    std::unique_ptr<Publisher> publisher_;  // ends first
    uint64_t next_ = 0;
};

TEST_F(PublisherTest, DeliversInOrderAndCounts) {
    receiver_->come();
    open();
    put(100);
    EXPECT_EQ(expect_in_order(receiver_->lines(100), publisher_->run()), 100u);
    EXPECT_TRUE(publisher_->drain(forever));
    const PublishCounts counts = publisher_->counts();
    EXPECT_EQ(counts.sent, 100u);
    EXPECT_EQ(counts.queued + counts.dropped + counts.spooled + counts.reconnects, 0u);
    EXPECT_TRUE(counts.connected);
    publisher_->close(0);
    EXPECT_EQ(states(), (std::vector<std::string>{"connecting", "connected", "stopped"}));
    EXPECT_FALSE(publisher_->counts().connected);
}

TEST_F(PublisherTest, WithoutReceiverTheOldestGiveWayAndAGapStandsForThem) {
    open({.queue_size = 4});
    put(10);
    EXPECT_EQ(publisher_->counts().dropped, 6u);
    EXPECT_EQ(publisher_->counts().queued, 4u);
    receiver_->come();
    const auto lines = receiver_->lines(5);
    EXPECT_EQ(seen(lines[0]), (Seen{publisher_->run(), 0, 5, true}));
    EXPECT_EQ(expect_in_order(lines, publisher_->run()), 10u);
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 4u);
}

TEST_F(PublisherTest, AReceiverThatTakesNothingHoldsNobodyUp) {
    receiver_->come(2);
    receiver_->acknowledge_all(false);
    open({.queue_size = 8});
    put(1);
    receiver_->lines(1);
    put(5000);
    EXPECT_GE(publisher_->counts().dropped, 5000u - 8 - 3);
    receiver_->acknowledge_all(true);
    receiver_->acknowledge(2);
    EXPECT_TRUE(publisher_->drain(forever));
    const PublishCounts counts = publisher_->counts();
    EXPECT_EQ(counts.sent + counts.dropped, 5001u);
    EXPECT_EQ(expect_in_order(receiver_->lines(counts.sent + 1), publisher_->run()), 5001u);
}

TEST_F(PublisherTest, ASlowReceiverGetsEverythingThroughTheSpool) {
    receiver_->come(2);
    receiver_->acknowledge_all(false);
    open({.queue_size = 64, .spool_dir = spool_});
    for (uint64_t i = 0; i < 2000; ++i) {
        put(1);
        if (publisher_->counts().queued > 48) std::this_thread::yield();
        if (i % 4 == 0) receiver_->acknowledge(1);
    }
    receiver_->acknowledge_all(true);
    receiver_->acknowledge(2);
    EXPECT_TRUE(publisher_->drain(forever));
    const PublishCounts counts = publisher_->counts();
    EXPECT_EQ(counts.sent + counts.dropped, 2000u);
    EXPECT_GT(counts.replayed, 0u);
    EXPECT_EQ(counts.spool_records, 0u);
    EXPECT_EQ(expect_in_order(receiver_->lines(counts.sent), publisher_->run()), 2000u);
}

TEST_F(PublisherTest, KeepsTheOrderAcrossOutages) {
    receiver_->come(10);
    receiver_->acknowledge_all(false);
    open({.queue_size = 1000, .spool_dir = spool_});
    size_t came = 0;
    for (int outage = 0; outage < 5; ++outage) {
        put(8);
        came += 8;
        receiver_->lines(came);
        receiver_->acknowledge(3);  // five are on their way when it goes
        receiver_->go();
        put(100);
        EXPECT_TRUE(publisher_->drain(forever));  // all lies in the spool
        EXPECT_EQ(publisher_->counts().queued, 0u);
        EXPECT_GE(publisher_->counts().spool_records, 100u);
        receiver_->acknowledge_all(true);
        receiver_->come(10);
        receiver_->lines(came + 105);
        while (publisher_->counts().spool_records > 0) std::this_thread::yield();
        came = receiver_->lines(0).size();
        receiver_->acknowledge_all(false);
    }
    EXPECT_EQ(expect_in_order(receiver_->lines(0), publisher_->run()), 540u);
    EXPECT_EQ(publisher_->counts().reconnects, 5u);
    EXPECT_EQ(publisher_->counts().dropped, 0u);
}

TEST_F(PublisherTest, WhatIsLeftStaysInTheSpoolAndIsSentFirstByTheNext) {
    open({.spool_dir = spool_});
    put(50);
    const std::string earlier = publisher_->run();
    publisher_->close(0);
    EXPECT_EQ(publisher_->counts().spooled, 50u);
    EXPECT_EQ(publisher_->counts().dropped, 0u);
    end();

    receiver_->come();
    open({.spool_dir = spool_});
    put(50);
    const auto lines = receiver_->lines(100);
    EXPECT_EQ(expect_in_order({lines.begin(), lines.begin() + 50}, earlier), 50u);
    EXPECT_EQ(expect_in_order({lines.begin() + 50, lines.end()}, publisher_->run()), 50u);
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 100u);
}

TEST_F(PublisherTest, WithoutSpoolWhatIsLeftIsLostAndCounted) {
    open();
    put(50);
    publisher_->close(0);
    EXPECT_EQ(publisher_->counts().dropped, 50u);
    EXPECT_EQ(states().back(), "stopped: 50 records were not delivered");
}

TEST_F(PublisherTest, SurvivesBeingKilledWhileItSpools) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        open({.queue_size = 1000, .spool_dir = spool_});
        put(500);
        publisher_->drain(forever);
        if (::write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) put(1);
    }
    char x;
    ASSERT_EQ(::read(ready[0], &x, 1), 1);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(ready[0]), ::close(ready[1]);

    receiver_->come();
    open({.spool_dir = spool_});
    put(10);
    receiver_->lines(510);
    while (publisher_->counts().spool_records > 0 || publisher_->counts().queued > 0)
        std::this_thread::yield();
    const auto lines = receiver_->lines(510);
    const std::string earlier = seen(lines[0]).run;
    EXPECT_NE(earlier, publisher_->run());
    EXPECT_GE(expect_in_order(lines, earlier), 500u);
    EXPECT_EQ(expect_in_order({lines.end() - 10, lines.end()}, publisher_->run()), 10u);
}

TEST_F(PublisherTest, WhatTheReceiverHasNotAcknowledgedSurvivesBeingKilled) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        receiver_->come(64);  // takes and does not say so
        receiver_->acknowledge_all(false);
        open({.queue_size = 1000, .spool_dir = spool_});
        put(10);
        receiver_->lines(10);
        receiver_->acknowledge(5);
        put(490);
        receiver_->lines(69);
        while (publisher_->counts().queued > 0) std::this_thread::yield();
        if (::write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) ::pause();
    }
    char x;
    ASSERT_EQ(::read(ready[0], &x, 1), 1);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(ready[0]), ::close(ready[1]);

    receiver_->come();
    open({.spool_dir = spool_});
    put(1);
    while (publisher_->counts().spool_records > 0 || publisher_->counts().queued > 0)
        std::this_thread::yield();
    const auto lines = receiver_->lines(0);
    EXPECT_LE(seen(lines[0]).first, 5u);  // what was acknowledged may come again
    EXPECT_EQ(expect_in_order(lines, seen(lines[0]).run, seen(lines[0]).first), 500u);
    EXPECT_EQ(seen(lines.back()).run, publisher_->run());
}

// Who sees no record queued may end the process.
TEST_F(PublisherTest, ARecordBetweenQueueAndSpoolCountsAsQueued) {
    open({.spool_dir = spool_, .spool_max_bytes = 64 << 10});
    publisher_->put(a_record(*publisher_, next_++, 90000));
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(failures().size(), 1u);
    EXPECT_EQ(queued_when_refused(), 1u);
    EXPECT_EQ(publisher_->counts().queued, 0u);
    EXPECT_EQ(publisher_->counts().dropped, 1u);
}

TEST_F(PublisherTest, WhatTheSpoolHasNoRoomForIsSentAllTheSame) {
    receiver_->come();
    open({.queue_size = 100, .spool_dir = spool_, .spool_max_bytes = 64 << 10});
    for (int i = 0; i < 10; ++i) {
        put(5);
        publisher_->put(a_record(*publisher_, next_++, 90000));
    }
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 60u);
    EXPECT_EQ(publisher_->counts().dropped, 0u);
    EXPECT_EQ(failures().size(), 1u);
    EXPECT_EQ(expect_in_order(receiver_->lines(60), publisher_->run()), 60u);

    // On its way when the receiver goes: no line overtakes another, and what is lost is said.
    receiver_->acknowledge_all(false);
    for (int i = 0; i < 10; ++i) {
        put(5);
        publisher_->put(a_record(*publisher_, next_++, 90000));
    }
    receiver_->lines(61);
    receiver_->go();
    EXPECT_TRUE(publisher_->drain(forever));
    receiver_->acknowledge_all(true);
    receiver_->come();
    put(1);
    while (publisher_->counts().sent + publisher_->counts().dropped < 121)
        std::this_thread::yield();
    EXPECT_EQ(expect_in_order(receiver_->lines(0), publisher_->run()), 121u);
}

TEST_F(PublisherTest, ASpoolThatCannotGrowIsSaidOnceAndLeavesAGap) {
    open({.queue_size = 100, .spool_dir = spool_, .spool_max_bytes = 64 << 10});
    put(1);
    for (int i = 0; i < 2; ++i)
        publisher_->put(a_record(*publisher_, next_++, 90000));  // no room for these at all
    put(1);
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().dropped, 2u);
    EXPECT_EQ(failures().size(), 1u);
    receiver_->come();
    const auto lines = receiver_->lines(4);
    EXPECT_EQ(seen(lines[1]), (Seen{publisher_->run(), 1, 1, true}));
    EXPECT_EQ(seen(lines[2]), (Seen{publisher_->run(), 2, 2, true}));
    EXPECT_EQ(expect_in_order(lines, publisher_->run()), 4u);
}

// A record that is too large for the receiver, say.
TEST_F(PublisherTest, WhatNoReceiverTakesIsDroppedAndLeavesAGap) {
    for (const bool spools : {false, true}) {
        receiver_->refuse("\"frame_seq\":" + std::to_string(next_ + 2));
        receiver_->come();
        open({.spool_dir = spools ? spool_ : ""});
        put(5);
        EXPECT_TRUE(publisher_->drain(forever));
        const PublishCounts counts = publisher_->counts();
        EXPECT_EQ(counts.dropped, 1u);
        EXPECT_EQ(counts.sent, 4u);
        size_t gaps = 0;
        for (const std::string& line : receiver_->lines(5))
            gaps += seen(line) == Seen{publisher_->run(), 2, 2, true};
        EXPECT_EQ(gaps, 1u) << spools;
        end();
    }
}

// As a broker does that takes no records of that size, and does not say so.
TEST_F(PublisherTest, ALargeRecordThatEndsConnectionsLeavesAGapAndTheRestGoesOn) {
    for (const bool spools : {false, true}) {
        receiver_->end_at("xxxxx");
        receiver_->come();
        open({.spool_dir = spools ? spool_ : ""});
        for (const size_t label : {3u, 3u, 70000u, 3u, 3u})
            publisher_->put(a_record(*publisher_, next_++, label));
        (void)receiver_->lines(spools ? 10 : 5);
        EXPECT_TRUE(comes(&PublishCounts::sent, 4)) << spools;
        const PublishCounts counts = publisher_->counts();
        EXPECT_EQ(counts.dropped, 1u) << spools;
        EXPECT_EQ(counts.sent, 4u) << spools;
        EXPECT_GE(counts.reconnects, 5u) << spools;
        size_t gaps = 0;
        for (const std::string& line : receiver_->lines(5))
            gaps += seen(line) == Seen{publisher_->run(), 2, 2, true};
        EXPECT_EQ(gaps, 1u) << spools;
        end();
    }
}

TEST_F(PublisherTest, ALargeRecordThatTheReceiverAnswersStays) {
    for (const ErrorCode code : {ErrorCode::unsupported, ErrorCode::timeout}) {
        receiver_->end_at("xxxxx", code);
        receiver_->come();
        open({.spool_dir = spool_});
        for (const size_t label : {3u, 70000u, 3u})
            publisher_->put(a_record(*publisher_, next_++, label));
        EXPECT_TRUE(comes(&PublishCounts::reconnects, 20));
        receiver_->end_at("");
        EXPECT_TRUE(comes(&PublishCounts::sent, 3));
        EXPECT_EQ(publisher_->counts().dropped, 0u);
        end();
    }
}

TEST_F(PublisherTest, WhatTheSpoolRefusedLastLeavesAGapForTheNext) {
    open({.spool_dir = spool_, .spool_max_bytes = 4096});
    publisher_->put(a_record(*publisher_, next_++, 6000));
    const std::string run = publisher_->run();
    publisher_->close(0);
    end();
    receiver_->come();
    open({.spool_dir = spool_, .spool_max_bytes = 20000});
    EXPECT_TRUE(publisher_->drain(forever));
    ASSERT_EQ(receiver_->lines(1).size(), 1u);
    EXPECT_EQ(seen(receiver_->lines(1)[0]), (Seen{run, 0, 0, true}));
}

// Though no record comes any more in front of which it would go.
TEST_F(PublisherTest, WhatTheSpoolRefusedIsToldToAReceiverThatComesBack) {
    open({.spool_dir = spool_, .spool_max_bytes = 4096});
    publisher_->put(a_record(*publisher_, next_++, 6000));
    EXPECT_TRUE(publisher_->drain(forever));  // while it is away there is no more to be done
    receiver_->come();
    ASSERT_EQ(receiver_->lines(1).size(), 1u);
    EXPECT_EQ(seen(receiver_->lines(1)[0]), (Seen{publisher_->run(), 0, 0, true}));
    EXPECT_TRUE(publisher_->drain(forever));
}

TEST_F(PublisherTest, ASecondPublisherDoesNotShareASpool) {
    open({.spool_dir = spool_});
    auto second = Publisher::open(std::make_unique<FakeSink>(receiver_), {.spool_dir = spool_}, {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::busy);
}

TEST_F(PublisherTest, DrainingEndsWhenItsTimeIsUpOrItIsInterrupted) {
    open();
    EXPECT_TRUE(publisher_->drain(forever));  // nothing to wait for
    put(1);
    EXPECT_FALSE(publisher_->drain(0));
    std::thread waiting([this] { EXPECT_FALSE(publisher_->drain(forever)); });
    publisher_->interrupt();
    waiting.join();
    publisher_->resume();
    receiver_->come();
    EXPECT_TRUE(publisher_->drain(forever));
}

TEST_F(PublisherTest, AReceiverThatFailsForGoodIsAnErrorOnce) {
    receiver_->come();
    open();
    put(1);
    receiver_->lines(1);
    receiver_->fail_for_good();
    put(20);
    EXPECT_TRUE(publisher_->drain(forever));
    publisher_->close(0);
    EXPECT_EQ(failures(), (std::vector<std::string>{"broken"}));
    EXPECT_EQ(publisher_->counts().sent + publisher_->counts().dropped, 21u);
}

TEST_F(PublisherTest, IsNotHeldUpByASystemThatDoesNotAnswer) {
    receiver_->hold_in_connect(true);
    const size_t threads = running_threads();
    open({.spool_dir = spool_});
    receiver_->wait_held();
    put(10);
    publisher_->close(0);
    end();
    receiver_->hold_in_connect(false);  // now its thread ends and keeps what it has
    receiver_->wait_gone();
    while (running_threads() > threads) std::this_thread::yield();
    receiver_->come();
    open({.spool_dir = spool_});
    EXPECT_EQ(receiver_->lines(10).size(), 10u);
}

TEST_F(PublisherTest, RecordsAreUsedAgain) {
    receiver_->come();
    open({.queue_size = 2});
    put(1);
    EXPECT_TRUE(publisher_->drain(forever));
    auto first = publisher_->take();
    const FrameRecord* const address = first.get();
    EXPECT_TRUE(first->empty());
    EXPECT_GT(first->objects.capacity(), 0u);
    publisher_->give_back(std::move(first));
    EXPECT_EQ(publisher_->take().get(), address);
}

TEST_F(PublisherTest, LeavesNothingBehind) {
    receiver_->come();
    const auto cycle = [this] {
        open({.spool_dir = spool_});
        put(3);
        publisher_->close(forever);
        end();
    };
    cycle();
    const size_t threads = running_threads(), descriptors = open_descriptors();
    for (int i = 0; i < 50; ++i) cycle();
    // The kernel may list a thread a moment longer than it runs.
    while (running_threads() > threads) std::this_thread::yield();
    EXPECT_EQ(open_descriptors(), descriptors);
}

}  // namespace
