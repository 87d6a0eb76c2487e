// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/summary/attribution.h"

#include <algorithm>
#include <queue>

namespace vartml::profiling {
namespace {

class Sweep {
public:
    Sweep(std::vector<GroupReader>& readers, const Descriptor& descriptor, uint64_t begin,
          uint64_t end, const std::function<void(const Instance&, double)>& done)
        : readers_(readers), descriptor_(descriptor), now_(begin), end_(end), done_(done) {}

    Result<Attribution> run() {
        for (size_t i = 0; i < readers_.size(); ++i) pull(i);
        while (!pending_.empty() || !running_.empty()) {
            const bool ends = !running_.empty() &&
                              (pending_.empty() || running_.top().end <= pending_.top().start);
            if (ends)
                stop();
            else
                start();
        }
        for (const GroupReader& reader : readers_)
            if (!reader.status()) return reader.status().error();
        return sum_;
    }

private:
    struct Pending {
        uint64_t start;
        size_t reader;
        Instance instance;
        bool operator<(const Pending& other) const {  // the earliest is the top
            return start != other.start ? start > other.start : reader > other.reader;
        }
    };
    struct Running {
        uint64_t end;
        uint64_t order;
        double share;  // share_ when it began
        Instance instance;
        bool operator<(const Running& other) const {
            return end != other.end ? end > other.end : order > other.order;
        }
    };

    // The next operator of a group that is no wait.
    void pull(size_t reader) {
        Instance instance;
        while (readers_[reader].next(instance)) {
            if (descriptor_.is_sync(*instance.op) || descriptor_.is_barrier(*instance.op)) continue;
            pending_.push({std::min(instance.start, end_), reader, instance});
            return;
        }
    }
    void start() {
        const Pending next = pending_.top();
        pending_.pop();
        advance(next.start);
        const uint64_t end = std::clamp(next.instance.end, now_, std::max(now_, end_));
        running_.push({end, ++started_, share_, next.instance});
        ++(next.instance.op->data_movement ? conversions_ : works_);
        pull(next.reader);
    }
    void stop() {
        const Running last = running_.top();
        advance(last.end);
        running_.pop();
        if (last.instance.op->data_movement) {
            --conversions_;
            return;
        }
        --works_;
        done_(last.instance, share_ - last.share);
    }
    void advance(uint64_t to) {
        if (to <= now_) return;
        const auto ns = static_cast<double>(to - now_);
        if (works_ > 0) {
            share_ += ns / static_cast<double>(works_);
            sum_.work_ns += ns;
        } else if (conversions_ > 0) {
            sum_.conversion_ns += ns;
        }
        now_ = to;
    }

    std::vector<GroupReader>& readers_;
    const Descriptor& descriptor_;
    uint64_t now_, end_, started_ = 0;
    const std::function<void(const Instance&, double)>& done_;
    std::priority_queue<Pending> pending_;
    std::priority_queue<Running> running_;
    size_t works_ = 0, conversions_ = 0;
    double share_ = 0;  // of a single operator, had it run since the beginning
    Attribution sum_;
};

}  // namespace

Result<Attribution> attribute(std::vector<GroupReader>& readers, const Descriptor& descriptor,
                              uint64_t begin_ns, uint64_t end_ns,
                              const std::function<void(const Instance&, double ns)>& done) {
    return Sweep(readers, descriptor, begin_ns, end_ns, done).run();
}

}  // namespace vartml::profiling
