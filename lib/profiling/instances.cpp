// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/instances.h"

#include <algorithm>

#include "lib/common/sha256.h"
#include "lib/common/utf8.h"

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
        lanes_.push_back({file.of_thread<Stamp>("OPTS", t), file.of_thread<uint64_t>("OPPC", t)});
        busy_.push_back({&t, 0});
    }
}

bool GroupReader::next(Instance& instance) {
    while (at_ < group_->ops.size() && !lanes_.empty()) {
        const Op& op = group_->ops[at_];
        const bool is_wait = descriptor_->is_sync(op) || descriptor_->is_barrier(op);
        instance = {};
        for (size_t i = 0; i < lanes_.size(); ++i) {
            Stamp stamp;
            uint64_t pcycles = not_captured;
            if (!lanes_[i].stamps.get(at_, stamp)) {
                if (!lanes_[i].stamps.status()) return false;
                continue;
            }
            if (stamp.start == 0 && stamp.end == 0) continue;
            if (stamp.end < stamp.start) {
                ++left_out_;
                continue;
            }
            const uint64_t start = file_->to_ns(stamp.start), end = file_->to_ns(stamp.end);
            instance.start = instance.op ? std::min(instance.start, start) : start;
            instance.end = std::max(instance.end, end);
            instance.longest_ns = std::max(instance.longest_ns, end - start);
            instance.op = &op;
            if (!is_wait) busy_[i].ns += end - start;
            if (lanes_[i].pcycles.get(at_, pcycles) && pcycles != not_captured)
                instance.pcycles = std::max(instance.pcycles.value_or(0), pcycles);
        }
        ++at_;
        if (instance.op) return true;
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

std::vector<GroupReader> group_readers(const BufferFile& file, const Descriptor& descriptor) {
    std::vector<GroupReader> readers;
    std::vector<std::pair<uint16_t, uint16_t>> groups;
    for (const format::ThreadRecord& t : file.threads()) groups.emplace_back(t.core, t.group);
    std::ranges::sort(groups);
    const auto repeated = std::ranges::unique(groups);
    groups.erase(repeated.begin(), repeated.end());
    for (const auto& [core, group] : groups) readers.emplace_back(file, descriptor, core, group);
    return readers;
}

}  // namespace vartml::profiling
