// SPDX-License-Identifier: Apache-2.0
#include "lib/publish/sender.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <vartml/log.h>

namespace vartml::publish {
namespace {

using std::chrono::milliseconds;

// ours: after which a part of the spool that could not be read is tried again
constexpr std::chrono::seconds spool_patience{1};
constexpr unsigned most_spool_failures = 30;  // ours: then it is lost
// ours: when a record is taken for what ends connections
constexpr size_t large_bytes = 64 << 10;
constexpr unsigned most_connections = 5;
// ours: records that move between two looks at the orders
constexpr int batch = 64;

int milliseconds_until(Clock::time_point time) {
    const auto left = std::chrono::ceil<milliseconds>(time - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, 60000));
}

}  // namespace

Sender::Sender(std::shared_ptr<RecordQueue> queue, std::unique_ptr<PublishSink> sink,
               std::optional<Spool> spool, PublishEvents events, std::string run)
    : queue_(std::move(queue)),
      sink_(std::move(sink)),
      spool_(std::move(spool)),
      events_(std::move(events)),
      run_(std::move(run)),
      delay_ms_(sink_->backoff.first_ms),
      random_(std::random_device{}()) {}

void Sender::run() {
    say("connecting", "");
    for (;;) {
        queue_->clear_wake();
        const Orders orders = queue_->orders();
        step_link();
        collect_delivered();
        const bool moved = move();
        update_counts();
        const bool drained = is_drained();
        queue_->set_drained(drained);
        if (orders.closing && (drained || Clock::now() >= orders.deadline)) break;
        if ((orders.closing || orders.draining) && !drained) say("draining", "");
        if (!moved) sleep(orders);
    }
    finish();
}

void Sender::step_link() {
    if (failed_) return;
    if (link_ == Link::down && Clock::now() >= next_try_) return try_connect();
    if (link_ == Link::down) return;
    if (auto done = sink_->work(); !done) return lose(done.error());
    if (link_ == Link::connecting && sink_->connected()) set_up();
}

void Sender::try_connect() {
    if (auto done = sink_->connect(); !done) return lose(done.error());
    link_ = Link::connecting;
    if (sink_->connected()) set_up();
}

void Sender::set_up() {
    link_ = Link::up;
    // Connections that an obstacle ends come further and further apart.
    if (has_delivered_ || obstacle_.connections == 0) delay_ms_ = sink_->backoff.first_ms;
    has_delivered_ = false;
    queue_->count([&](PublishCounts& c) {
        c.connected = true;
        c.reconnects += was_connected_;
    });
    was_connected_ = true;
    say("connected", "");
}

void Sender::lose(const Error& reason) {
    collect_delivered();
    const bool disk_full = sink_->disk_full();
    // Other codes are answers, or a receiver that takes no record at all: it may later.
    if (reason.code == ErrorCode::io) note_obstacle();
    withdraw();
    if (!sink_->reconnects()) {
        if (events_.failed) events_.failed(reason, disk_full);
        return fail();
    }
    const PublishSink::Backoff& backoff = sink_->backoff;
    unsigned delay = delay_ms_;
    if (backoff.first_ms < backoff.most_ms)
        delay = delay * 3 / 4 + static_cast<unsigned>(random_() % (delay / 2 + 1));
    next_try_ = Clock::now() + milliseconds(delay);
    delay_ms_ = std::min(delay_ms_ * 2, backoff.most_ms);
    say(spool_ ? "spooling" : "connecting", reason.message);
}

// Ends the connection. What the sink had and did not deliver is sent again, from the spool where
// there is one.
void Sender::withdraw() {
    sink_->disconnect();
    link_ = Link::down;
    in_flight_ = 0;
    queue_->count([](PublishCounts& c) { c.connected = false; });
    if (!spool_) return;
    spool_->rewind();
    uint64_t spooled = static_cast<uint64_t>(std::ranges::count_if(
        pending_, [](const Pending& p) { return p.spooled && !p.replayed && !p.line.gap; }));
    std::erase_if(pending_, [](const Pending& p) { return p.spooled; });
    std::vector<std::string> lines;
    for (const Pending& p : pending_) lines.push_back(p.line.text);
    if (!lines.empty() && spool_->prepend(lines)) {
        spooled += pending_records();
        pending_.clear();
    }
    queue_->count([&](PublishCounts& c) { c.spooled += spooled; });
    for (const PublishLine& line : std::exchange(held_, {})) spool_line(line);
}

// The end of a sink that does not come back.
void Sender::fail() {
    failed_ = true;
    queue_->count([&](PublishCounts& c) { c.dropped += pending_records(); });
    pending_.clear();
}

// In memory alone.
uint64_t Sender::pending_records() const {
    return static_cast<uint64_t>(std::ranges::count_if(
        pending_, [](const Pending& p) { return !p.spooled && !p.line.gap; }));
}

uint64_t Sender::in_memory() const {
    return pending_records() + held_.size();
}

void Sender::collect_delivered() {
    uint64_t sent = 0, replayed = 0, lost = 0;
    const size_t delivered = std::min(sink_->take_delivered(), in_flight_);
    has_delivered_ = has_delivered_ || delivered > 0;
    if (delivered > 0) {
        obstacle_.connections = 0;
        delay_ms_ = sink_->backoff.first_ms;
    }
    const std::vector<size_t> never = sink_->take_lost();
    std::vector<PublishLine> gaps;
    for (size_t n = 0; n < delivered; ++n, --in_flight_) {
        const Pending& p = pending_.front();
        const bool is_lost = std::ranges::find(never, n) != never.end();
        if (is_lost && !p.line.gap) {
            PublishLine gap = p.line;
            format_gap(gap);
            // From the spool it comes back, before what it stands for is done with.
            if (!spool_ || !store(gap)) gaps.push_back(std::move(gap));
        }
        lost += is_lost && !p.line.gap;
        sent += !is_lost && !p.line.gap;
        replayed += !is_lost && p.replayed && !p.line.gap;
        if (p.spooled) spool_->acknowledge();
        pending_.pop_front();
    }
    for (PublishLine& gap : gaps) pending_.push_back({std::move(gap)});
    if (sent || lost) {
        queue_->count([&](PublishCounts& c) {
            c.sent += sent;
            c.replayed += replayed;
            c.dropped += lost;
            c.queued = in_memory();
        });
    }
}

// While the link is not up, or older lines are in the spool, or a receiver keeps us waiting; where
// the spool refuses lines that wait, only when the queue is about to lose some.
bool Sender::wants_spool() const {
    if (!spool_ || failed_ || !held_.empty()) return false;
    if (link_ == Link::down || spool_->has_unread()) return true;
    if (link_ == Link::up && in_flight_ == pending_.size()) return false;
    return !spool_refuses_ || queue_->size() >= std::max<size_t>(queue_->capacity() / 2, 1);
}

bool Sender::move() {
    bool moved = false;
    for (int i = 0; i < batch; ++i) {
        bool any = false;
        if (failed_) any = discard();
        if (wants_spool() && to_spool()) any = true;
        if (link_ == Link::up && send_pending() && next_line()) any = true;
        if (!any) break;
        moved = true;
    }
    if (link_ == Link::up) send_pending();
    const bool was_empty = !spool_ || spool_->empty();
    const size_t waited = pending_.size() - in_flight_;
    collect_delivered();
    moved = moved || pending_.size() - in_flight_ > waited;  // gaps
    // There is room again for what is held.
    return moved || (!held_.empty() && !was_empty && spool_->empty());
}

bool Sender::discard() {
    std::vector<PublishLine> lines;
    if (!take_record(lines)) return false;
    queue_->count([](PublishCounts& c) { ++c.dropped; });
    return true;
}

void Sender::note_obstacle() {
    if (link_ != Link::up || has_delivered_ || in_flight_ == 0) return;
    const PublishLine& line = pending_.front().line;
    if (line.gap || line.text.size() < large_bytes) return;
    if (!is_obstacle(line)) obstacle_ = {line.run, line.first};
    ++obstacle_.connections;
}

bool Sender::is_obstacle(const PublishLine& line) const {
    return !line.gap && obstacle_.connections > 0 && line.run == obstacle_.run &&
           line.first == obstacle_.first;
}

// The line becomes its gap. Where it is read from the spool again, it is dropped once.
void Sender::drop_obstacle(PublishLine& line) {
    if (!std::exchange(obstacle_.is_dropped, true)) {
        queue_->count([](PublishCounts& c) { ++c.dropped; });
        log(LogLevel::warning, "",
            "a record of " + std::to_string(line.text.size()) + " bytes was on its way when " +
                std::to_string(obstacle_.connections) +
                " connections in a row ended; it is taken for too large, and a gap is sent in its "
                "place");
    }
    format_gap(line);
}

// Whether the sink took all that waits.
bool Sender::send_pending() {
    while (in_flight_ < pending_.size()) {
        PublishLine& line = pending_[in_flight_].line;
        if (obstacle_.connections >= most_connections && is_obstacle(line)) drop_obstacle(line);
        auto taken = sink_->send(pending_[in_flight_].line);
        if (!taken) {
            lose(taken.error());
            return false;
        }
        if (!*taken) return false;
        ++in_flight_;
    }
    return true;
}

// The next line of the spool, else of the queue, becomes the last that waits.
bool Sender::next_line() {
    if (spool_ && spool_->has_unread()) {
        if (Clock::now() < spool_retry_) return false;
        if (auto done = spool_->expire(); !done) log(LogLevel::warning, "", done.error().message);
        if (!spool_->has_unread()) return true;
        auto text = spool_->read();
        if (!text) {
            log(LogLevel::warning, "", text.error().message);
            const ErrorCode code = text.error().code;
            if (code == ErrorCode::bad_model || code == ErrorCode::not_found) return true;
            if (++spool_failures_ == most_spool_failures) {
                spool_failures_ = 0;
                spool_->give_up();
                return true;
            }
            spool_retry_ = Clock::now() + spool_patience;
            return false;
        }
        spool_failures_ = 0;
        Pending p{{}, true, true};
        if (auto line = parse_line(*text)) p.line = std::move(*line);
        p.line.text = std::move(*text);
        pending_.push_back(std::move(p));
        return true;
    }
    if (!held_.empty()) {
        if (!spool_->empty()) return false;  // until it is acknowledged
        pending_.push_back({std::move(held_.front())});
        held_.pop_front();
        return true;
    }
    std::vector<PublishLine> lines;
    if (!take_record(lines)) {
        if (!lost_) return false;
        lines.push_back(*std::exchange(lost_, std::nullopt));  // the receiver is there to hear it
    }
    for (PublishLine& line : lines) add_pending(std::move(line));
    return true;
}

void Sender::add_pending(PublishLine line) {
    const bool spooled = spool_ && held_.empty() && store(line);
    if (spooled) {
        [[maybe_unused]] const auto same = spool_->read();
    } else if (spool_ && !spool_->empty()) {
        held_.push_back(std::move(line));
        return;
    }
    pending_.push_back({std::move(line), spooled});
}

// The oldest record of the queue as a line, with a gap in front where some were lost.
bool Sender::take_record(std::vector<PublishLine>& lines) {
    std::optional<Gap> gap;
    auto record = queue_->pop(gap);
    if (!record) return false;
    if (lost_) lines.push_back(std::move(*lost_));
    lost_.reset();
    if (gap) {
        PublishLine& line = lines.emplace_back();
        line.stream = gap->stream, line.model = gap->model, line.run = run_;
        line.first = gap->first, line.last = gap->last, line.count = gap->count;
        line.epoch = gap->epoch;
        format_gap(line);
    }
    format_frame(*record, run_, lines.emplace_back());
    queue_->give_back(std::move(record));
    return true;
}

bool Sender::to_spool() {
    std::vector<PublishLine> lines;
    if (!take_record(lines)) return false;
    for (const PublishLine& line : lines) spool_line(line);
    return true;
}

// Whether the spool has the line now.
bool Sender::store(const PublishLine& line) {
    const auto done = spool_->append(line.text);
    spool_refuses_ = !done;
    if (spool_refuses_ && !std::exchange(spool_failure_said_, true) && events_.spool_failed)
        events_.spool_failed(done.error());
    return !spool_refuses_;
}

// A line that the spool refuses waits for the receiver where there is one, and is lost where not.
void Sender::spool_line(const PublishLine& line) {
    if (!lost_ && held_.empty() && store(line)) {
        if (!line.gap) queue_->count([](PublishCounts& c) { ++c.spooled; });
    } else if (link_ == Link::up && !lost_) {
        held_.push_back(line);
    } else {
        note_lost(line);
    }
}

// A line that the spool did not take becomes part of a gap before the next that it takes.
void Sender::note_lost(const PublishLine& line) {
    if (!line.gap) queue_->count([](PublishCounts& c) { ++c.dropped; });
    if (!lost_) {
        lost_ = line;
    } else {
        lost_->last = line.last;
        lost_->count += line.count;
    }
    format_gap(*lost_);
}

bool Sender::is_drained() const {
    if (queue_->size() > 0) return false;
    if (failed_) return true;
    if (!pending_.empty() || !held_.empty()) return false;
    if (!spool_) return true;
    if (lost_ && link_ != Link::down) return false;
    // While the receiver is away the spool is the place to be.
    return link_ == Link::down || spool_->empty();
}

void Sender::sleep(const Orders& orders) {
    PublishSink::Wait wait;
    int timeout = -1;
    const auto at_most = [&](int ms) { timeout = timeout < 0 ? ms : std::min(timeout, ms); };
    if (link_ != Link::down) {
        wait = sink_->wait();
        if (wait.timeout_ms >= 0) at_most(wait.timeout_ms);
    } else if (!failed_) {
        at_most(milliseconds_until(next_try_));
    }
    if (spool_retry_ > Clock::now()) at_most(milliseconds_until(spool_retry_));
    if (orders.closing) at_most(milliseconds_until(orders.deadline));
    pollfd entries[2] = {{queue_->wake_fd(), POLLIN, 0}, {wait.fd, 0, 0}};
    if (wait.read) entries[1].events |= POLLIN;
    if (wait.write) entries[1].events |= POLLOUT;
    ::poll(entries, wait.fd >= 0 ? 2 : 1, timeout);
}

// What is left goes to the spool, or is lost.
void Sender::finish() {
    collect_delivered();
    withdraw();
    uint64_t lost = pending_records();
    pending_.clear();
    for (std::vector<PublishLine> lines; take_record(lines); lines.clear()) {
        lost += !spool_ || failed_;
        if (!spool_ || failed_) continue;
        for (const PublishLine& line : lines) spool_line(line);
    }
    if (spool_ && !failed_ && lost_ && store(*lost_)) lost_.reset();
    if (spool_) spool_->trim();
    queue_->count([&](PublishCounts& c) { c.dropped += lost; });
    say("stopped", lost ? std::to_string(lost) + " records were not delivered" : "");
}

void Sender::update_counts() {
    queue_->count([&](PublishCounts& c) {
        c.queued = in_memory();
        if (!spool_) return;
        c.spool_bytes = spool_->bytes();
        c.spool_records = spool_->records();
        c.dropped += spool_->take_dropped();
    });
}

void Sender::say(const char* state, const std::string& reason) {
    if (!std::strcmp(state_, state) && reason_ == reason) return;
    state_ = state;
    reason_ = reason;
    update_counts();
    if (events_.state) events_.state(state, reason, queue_->counts());
}

}  // namespace vartml::publish
