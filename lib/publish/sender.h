// SPDX-License-Identifier: Apache-2.0
// Takes records from the queue to the sink or the spool, in their order, on a thread of its own.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include <vartml/publish.h>

#include "lib/publish/publisher.h"
#include "lib/publish/spool.h"

namespace vartml::publish {

// The order is: lines that are with the sink or wait for it, then the spool, then the queue. With a
// spool a line is written there before the sink has it, and leaves it when it was delivered, so
// that it survives this process; while the sink keeps up it is not read back. Without a spool lines
// stay here and the queue fills. The same goes for lines that the spool does not take, which the
// sink has only while the spool is empty, so that they are the oldest; when the link is lost they
// are tried again at the spool's front. Thread-safety: run() is the thread; the rest is its own.
class Sender {
public:
    Sender(std::shared_ptr<RecordQueue> queue, std::unique_ptr<PublishSink> sink,
           std::optional<Spool> spool, PublishEvents events, std::string run);
    void run();

private:
    struct Pending {
        PublishLine line;
        bool spooled = false;   // is in the spool too
        bool replayed = false;  // was read from there
    };
    // A large record that was the first on its way when connections ended, one after the other,
    // before anything was delivered and without an answer: as with brokers that take no such size
    // and do not say so.
    struct Obstacle {
        std::string run;
        uint64_t first = 0;
        unsigned connections = 0;
        bool is_dropped = false;
    };
    enum class Link { down, connecting, up };

    void step_link();
    void try_connect();
    void set_up();
    void lose(const Error& reason);
    void collect_delivered();
    bool move();
    bool send_pending();
    void note_obstacle();
    bool is_obstacle(const PublishLine& line) const;
    void drop_obstacle(PublishLine& line);
    bool next_line();
    void add_pending(PublishLine line);
    bool take_record(std::vector<PublishLine>& lines);
    bool to_spool();
    bool discard();
    bool wants_spool() const;
    bool store(const PublishLine& line);
    void spool_line(const PublishLine& line);
    void note_lost(const PublishLine& line);
    void fail();
    void withdraw();
    uint64_t pending_records() const;
    uint64_t in_memory() const;
    void sleep(const Orders& orders);
    bool is_drained() const;
    void finish();
    void say(const char* state, const std::string& reason);
    void update_counts();

    std::shared_ptr<RecordQueue> queue_;
    std::unique_ptr<PublishSink> sink_;
    std::optional<Spool> spool_;
    PublishEvents events_;
    std::string run_;

    Link link_ = Link::down;
    Clock::time_point next_try_{};
    Clock::time_point spool_retry_{};  // before it the spool is not read
    unsigned spool_failures_ = 0;      // in a row, of one part
    unsigned delay_ms_ = 0;
    bool was_connected_ = false;
    bool has_delivered_ = false;  // on this connection
    Obstacle obstacle_;
    bool failed_ = false;
    bool spool_failure_said_ = false;
    bool spool_refuses_ = false;  // the last line
    const char* state_ = "";      // what was said last
    std::string reason_;
    std::deque<Pending> pending_;
    size_t in_flight_ = 0;             // the first of `pending_`, which the sink has
    std::deque<PublishLine> held_;     // refused by the spool, newer than all in it
    std::optional<PublishLine> lost_;  // a gap that goes before what the spool takes next
    std::minstd_rand random_;
};

}  // namespace vartml::publish
