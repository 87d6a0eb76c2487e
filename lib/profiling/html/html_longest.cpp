// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <queue>
#include <tuple>

#include "lib/profiling/html/html_charts.h"
#include "lib/profiling/summary/instances.h"

namespace vartml::profiling {
namespace {

constexpr size_t max_ops = 2000, max_lanes = 64;

bool is_longer(const ShownOp& a, const ShownOp& b) {
    return a.longest_ns > b.longest_ns;
}

class Longest {
public:
    void take(const Instance& instance, size_t lane) {
        ++count_;
        const ShownOp op{instance.op, lane, instance.start, instance.end, instance.longest_ns};
        if (longest_.size() == max_ops) {
            if (!is_longer(op, longest_.top())) return;
            longest_.pop();
        }
        longest_.push(op);
    }
    uint64_t count() const { return count_; }
    // In the order of lanes and time.
    std::vector<ShownOp> sorted() {
        std::vector<ShownOp> ops;
        for (; !longest_.empty(); longest_.pop()) ops.push_back(longest_.top());
        std::ranges::sort(ops, {}, [](const ShownOp& o) {
            return std::tuple(o.lane, o.start_ns, o.end_ns, o.op->id);
        });
        return ops;
    }

private:
    uint64_t count_ = 0;
    std::priority_queue<ShownOp, std::vector<ShownOp>, decltype(&is_longer)> longest_{is_longer};
};

std::string lane_name(const GroupReader& reader, const Descriptor& descriptor) {
    const uint32_t engine = reader.group().engine;
    return "core " + std::to_string(reader.core()) + " " +
           (engine < descriptor.engines.size() ? descriptor.engines[engine] : "");
}

}  // namespace

Result<ShownOps> longest_ops(const BufferFile& buffer, const Descriptor& descriptor) {
    ShownOps shown;
    shown.begin_ns = not_captured;
    for (const auto& thread : buffer.threads()) {
        if (!was_run(thread) || thread.end == not_captured) continue;
        shown.begin_ns = std::min(shown.begin_ns, buffer.to_ns(thread.start));
        shown.end_ns = std::max(shown.end_ns, buffer.to_ns(thread.end));
    }
    shown.begin_ns = std::min(shown.begin_ns, shown.end_ns);
    Longest longest;
    for (GroupReader& reader : group_readers(buffer, descriptor)) {
        if (reader.group().ops.empty()) continue;
        if (shown.lanes.size() == max_lanes) {
            ++shown.lanes_left_out;
            continue;
        }
        Instance instance;
        while (reader.next(instance))
            if (!descriptor.is_sync(*instance.op) && !descriptor.is_barrier(*instance.op))
                longest.take(instance, shown.lanes.size());
        if (auto r = reader.status(); !r) return r.error();
        shown.lanes.push_back(lane_name(reader, descriptor));
    }
    shown.count = longest.count();
    shown.ops = longest.sorted();
    return shown;
}

}  // namespace vartml::profiling
