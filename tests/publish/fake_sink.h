// SPDX-License-Identifier: Apache-2.0
// A receiver that a test switches on and off.
#pragma once
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <vartml/publish.h>

namespace vartml::test {

// The test's side, which outlives the sink.
class Receiver {
public:
    // Takes lines from now on, at most `room` that are not acknowledged.
    void come(size_t room = 1000000) {
        change([&] { here_ = true, room_ = room; });
    }
    void go() {
        change([&] { here_ = false; });
    }
    // Lines are acknowledged as they come, or when the test says so.
    void acknowledge_all(bool at_once) {
        change([&] { at_once_ = at_once; });
    }
    void acknowledge(size_t lines) {
        change([&] { acknowledged_ += lines; });
    }
    void hold_in_connect(bool hold) {
        change([&] { hold_ = hold; });
    }
    // Frames with this text are never taken.
    void refuse(const std::string& text) {
        change([&] { refused_ = text; });
    }
    // The connection ends where a frame with this text is on its way, with an error of this code.
    void end_at(const std::string& text, ErrorCode code = ErrorCode::io) {
        change([&] { ending_ = text, end_code_ = code; });
    }
    void fail_for_good() {
        change([&] { broken_ = true; });
    }

    // Waits until so many lines came, all in all; gives them.
    std::vector<std::string> lines(size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return lines_.size() >= count; });
        return lines_;
    }
    void wait_held() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return held_; });
    }
    void wait_gone() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return gone_; });
    }

private:
    friend class FakeSink;
    template <typename Change>
    void change(Change&& apply) {
        {
            const std::lock_guard lock(mutex_);
            apply();
        }
        changed_.notify_all();
        const uint64_t one = 1;
        EXPECT_EQ(::write(wake_, &one, sizeof one), ssize_t(sizeof one));
    }
    std::mutex mutex_;  // guards all below
    std::condition_variable changed_;
    bool here_ = false, at_once_ = true, hold_ = false, held_ = false, broken_ = false,
         gone_ = false;
    size_t room_ = 0, acknowledged_ = 0;
    std::vector<std::string> lines_;
    std::string refused_, ending_;
    ErrorCode end_code_ = ErrorCode::io;
    const int wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
};

class FakeSink final : public PublishSink {
public:
    explicit FakeSink(std::shared_ptr<Receiver> receiver) : r_(std::move(receiver)) {
        backoff = {.first_ms = 1, .most_ms = 1};
    }
    ~FakeSink() override {
        r_->change([this] { r_->gone_ = true; });
    }
    Result<void> connect() override {
        std::unique_lock lock(r_->mutex_);
        r_->held_ = r_->hold_;
        r_->changed_.notify_all();
        r_->changed_.wait(lock, [this] { return !r_->hold_; });
        if (!r_->here_) return Error{ErrorCode::io, "nobody is there"};
        connected_ = true;
        return {};
    }
    bool connected() const override { return connected_; }
    Result<bool> send(const PublishLine& line) override {
        const std::lock_guard lock(r_->mutex_);
        if (auto done = check(); !done) return done.error();
        if (in_flight_ >= r_->room_) return false;
        const bool never =
            !line.gap && !r_->refused_.empty() && line.text.find(r_->refused_) != line.text.npos;
        if (!never) r_->lines_.push_back(line.text);
        r_->changed_.notify_all();
        ++in_flight_;
        never_.push_back(never);
        ends_ = ends_ || (!line.gap && !r_->ending_.empty() &&
                          line.text.find(r_->ending_) != line.text.npos);
        if (ends_) r_->lines_.pop_back();
        if (r_->at_once_ && !ends_) ++r_->acknowledged_;
        return true;
    }
    Result<void> work() override {
        uint64_t count;
        [[maybe_unused]] const ssize_t n = ::read(r_->wake_, &count, sizeof count);
        const std::lock_guard lock(r_->mutex_);
        return check();
    }
    Wait wait() const override { return {.fd = r_->wake_, .read = true}; }
    size_t take_delivered() override {
        const std::lock_guard lock(r_->mutex_);
        const size_t count = std::min(r_->acknowledged_, in_flight_);
        r_->acknowledged_ -= count;
        in_flight_ -= count;
        lost_.clear();
        for (size_t i = 0; i < count; ++i) {
            if (never_.front()) lost_.push_back(i);
            never_.pop_front();
        }
        return count;
    }
    std::vector<size_t> take_lost() override { return std::exchange(lost_, {}); }
    void disconnect() override {
        connected_ = false;
        in_flight_ = 0;
        never_.clear();
        ends_ = false;
        const std::lock_guard lock(r_->mutex_);
        r_->acknowledged_ = 0;
    }
    bool reconnects() const override {
        const std::lock_guard lock(r_->mutex_);
        return !r_->broken_;
    }

private:
    Result<void> check() const {
        if (r_->broken_) return Error{ErrorCode::io, "broken"};
        if (ends_) return Error{r_->end_code_, "ended"};
        if (!r_->here_) return Error{ErrorCode::io, "went away"};
        return {};
    }
    std::shared_ptr<Receiver> r_;
    bool connected_ = false;
    size_t in_flight_ = 0;
    std::deque<bool> never_;  // of those in flight
    bool ends_ = false;
    std::vector<size_t> lost_;
};

}  // namespace vartml::test
