// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/instances.h"

#include <algorithm>
#include <queue>

#include "lib/base/sha256.h"
#include "lib/base/text.h"

namespace vartml::profiling {
namespace {

Error bad(const BufferFile& file, const std::string& what) {
    return {ErrorCode::bad_model, file.path() + ": " + what};
}

std::string name_of(const format::ThreadRecord& t) {
    return "core " + std::to_string(t.core) + ", thread " + std::to_string(t.thread);
}

Result<void> check_thread(const BufferFile& file, const Descriptor& descriptor,
                          const format::ThreadRecord& t, const std::string& model) {
    const std::vector<Group>& groups = groups_of(descriptor, t.core);
    if (t.group >= groups.size())
        return bad(file, name_of(t) + " is of group " + std::to_string(t.group) + ", " + model +
                             " has " + std::to_string(groups.size()) + " groups");
    if (t.engine >= descriptor.engines.size())
        return bad(file, name_of(t) + " is of engine " + std::to_string(t.engine) + ", " + model +
                             " has " + std::to_string(descriptor.engines.size()) + " engines");
    const size_t ops = groups[t.group].ops.size();
    if (t.op_count != 0 && t.op_count != ops)
        return bad(file, name_of(t) + " has " + std::to_string(t.op_count) +
                             " operators, its group in " + model + " has " + std::to_string(ops));
    return {};
}

}  // namespace

const std::vector<Group>& groups_of(const Descriptor& descriptor, uint16_t core) {
    static const std::vector<Group> none;
    for (const Core& c : descriptor.cores)
        if (c.index == core) return c.groups;
    return descriptor.cores.empty() ? none : descriptor.cores.front().groups;
}

Result<void> check_match(const BufferFile& file, const Descriptor& descriptor,
                         const format::Id& descriptor_id, const std::string& model) {
    const format::Header& h = file.header();
    if (file.network() != descriptor.network)
        return bad(file, "unknown network '" + printable(file.network()) + "'; " + model +
                             " has '" + printable(descriptor.network) + "'");
    if (h.model_signature != descriptor.model_signature)
        return bad(file, "recorded from another model: its signature is " +
                             to_hex(h.model_signature) + ", that of " + model + " is " +
                             to_hex(descriptor.model_signature));
    if (h.descriptor_id != descriptor_id)
        return bad(file, "same model, other compilation: recorded with --stats-level=" +
                             std::to_string(h.compiled_level) + ", " + model +
                             " was compiled with --stats-level=" +
                             std::to_string(descriptor.compiled_level) +
                             "; give the file that ran");
    for (const format::ThreadRecord& t : file.threads())
        if (auto r = check_thread(file, descriptor, t, model); !r) return r;
    return {};
}

GroupReader::GroupReader(const BufferFile& file, const Descriptor& descriptor, uint16_t core,
                         uint16_t index)
    : file_(&file),
      descriptor_(&descriptor),
      group_(&groups_of(descriptor, core)[index]),
      core_(core) {
    for (const format::ThreadRecord& t : file.threads()) {
        if (t.core != core || t.group != index || t.op_count == 0) continue;
        lanes_.push_back(
            {file.of_thread<Stamp>("OPTS", t), file.of_thread<uint64_t>("OPPC", t), nullptr});
        busy_.push_back({t.thread, 0});
    }
}

GroupReader::GroupReader(const Capture& capture, const Descriptor& descriptor, uint16_t core,
                         uint16_t index)
    : descriptor_(&descriptor), group_(&groups_of(descriptor, core)[index]), core_(core) {
    for (const ThreadCapture& t : capture.threads) {
        if (t.core != core || t.group != index || t.ops.empty()) continue;
        lanes_.push_back({{}, {}, &t});
        busy_.push_back({t.thread, 0});
    }
}

bool GroupReader::Lane::get(uint64_t index, Stamp& stamp, uint64_t& cycles) {
    cycles = not_captured;
    if (!capture) {
        (void)pcycles.get(index, cycles);
        return stamps.get(index, stamp);
    }
    if (index >= capture->ops.size()) return false;
    stamp = capture->ops[index];
    if (index < capture->pcycles_of_ops.size()) cycles = capture->pcycles_of_ops[index];
    return true;
}

void GroupReader::join(Lane& lane, Busy& busy, bool is_wait, Instance& instance) {
    Stamp stamp;
    uint64_t pcycles = not_captured;
    if (!lane.get(at_, stamp, pcycles) || (stamp.start == 0 && stamp.end == 0)) return;
    if (stamp.end < stamp.start) {
        ++left_out_;
        return;
    }
    const uint64_t start = file_ ? file_->to_ns(stamp.start) : stamp.start;
    const uint64_t end = file_ ? file_->to_ns(stamp.end) : stamp.end;
    instance.start = instance.op ? std::min(instance.start, start) : start;
    instance.end = std::max(instance.end, end);
    instance.longest_ns = std::max(instance.longest_ns, end - start);
    instance.op = &group_->ops[at_];
    if (!is_wait) busy.ns += end - start;
    if (pcycles != not_captured) instance.pcycles = std::max(instance.pcycles.value_or(0), pcycles);
}

bool GroupReader::next(Instance& instance) {
    for (; at_ < group_->ops.size() && !lanes_.empty(); ++at_) {
        const Op& op = group_->ops[at_];
        const bool is_wait = descriptor_->is_sync(op) || descriptor_->is_barrier(op);
        instance = {};
        instance.engine = group_->engine;
        for (size_t i = 0; i < lanes_.size(); ++i) join(lanes_[i], busy_[i], is_wait, instance);
        if (!status()) return false;
        if (!instance.op) continue;
        ++at_;
        return true;
    }
    return false;
}

Result<void> GroupReader::status() const {
    for (const Lane& lane : lanes_) {
        if (!lane.stamps.status()) return lane.stamps.status();
        if (!lane.pcycles.status()) return lane.pcycles.status();
    }
    return {};
}

namespace {

template <typename Source, typename Threads>
std::vector<GroupReader> readers_of(const Source& source, const Threads& threads,
                                    const Descriptor& descriptor) {
    std::vector<std::pair<uint16_t, uint16_t>> groups;
    for (const auto& t : threads)
        if (t.group < groups_of(descriptor, t.core).size()) groups.emplace_back(t.core, t.group);
    std::ranges::sort(groups);
    const auto repeated = std::ranges::unique(groups);
    groups.erase(repeated.begin(), repeated.end());
    std::vector<GroupReader> readers;
    for (const auto& [core, group] : groups) readers.emplace_back(source, descriptor, core, group);
    return readers;
}

}  // namespace

std::vector<GroupReader> group_readers(const BufferFile& file, const Descriptor& descriptor) {
    return readers_of(file, file.threads(), descriptor);
}

std::vector<GroupReader> group_readers(const Capture& capture, const Descriptor& descriptor) {
    return readers_of(capture, capture.threads, descriptor);
}

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
