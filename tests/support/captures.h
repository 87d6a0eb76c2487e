// SPDX-License-Identifier: Apache-2.0
// A sink that keeps what it gets, and descriptors of small models.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/model/compiled_model.h"
#include "lib/model/stats_descriptor.h"
#include "lib/trace/capture.h"
#include "lib/trace/descriptor.h"

namespace vartml::test {

class KeepingSink final : public profiling::CaptureSink {
public:
    explicit KeepingSink(std::function<unsigned(uint64_t)> level) : level_(std::move(level)) {}
    explicit KeepingSink(unsigned level) : level_([level](uint64_t) { return level; }) {}

    unsigned level_of(uint64_t inference_index) noexcept override {
        return level_(inference_index);
    }
    void take(const profiling::Capture& capture) noexcept override {
        const std::lock_guard lock(mutex_);
        captures_.push_back(capture);
        taken_.notify_all();
    }
    std::vector<profiling::Capture> wait_for(size_t count) {
        std::unique_lock lock(mutex_);
        taken_.wait(lock, [&] { return captures_.size() >= count; });
        return captures_;
    }
    std::vector<profiling::Capture> captures() const {
        const std::lock_guard lock(mutex_);
        return captures_;
    }

private:
    const std::function<unsigned(uint64_t)> level_;
    mutable std::mutex mutex_;
    std::condition_variable taken_;
    std::vector<profiling::Capture> captures_;
};

// Of each partition: sync, then each node with its barrier. Groups: NPU first.
inline profiling::Descriptor descriptor_of(const artifact::CompiledModel& model,
                                           unsigned level = 100) {
    profiling::Descriptor d;
    d.network = model.model_name;
    d.compiled_level = static_cast<uint16_t>(level);
    d.batch = d.stats_batchsize = model.actual_batch_size;
    d.kinds = {profiling::sync_kind, profiling::barrier_kind, "op"};
    d.memories = {profiling::system_memory};
    d.cores.emplace_back();
    uint32_t id = 0;
    const auto group_of = [&](bool is_cpu) -> profiling::Group& {
        const std::string engine = is_cpu ? profiling::cpu_engine : profiling::npu_engine;
        const auto found = std::ranges::find(d.engines, engine);
        const auto at = static_cast<size_t>(found - d.engines.begin());
        if (found == d.engines.end()) {
            d.engines.push_back(engine);
            d.cores[0].groups.push_back({.engine = static_cast<uint32_t>(at), .ops = {}});
        }
        return d.cores[0].groups[at];
    };
    for (const uint32_t index : model.execution_order) {
        const artifact::Partition& p = model.partitions[index];
        profiling::Group& group = group_of(p.kind == artifact::PartitionKind::cpu);
        const auto add = [&](uint32_t kind, std::string name) {
            profiling::Op op;
            op.id = id++;
            op.name = std::move(name);
            op.kind = kind;
            op.partition = static_cast<uint32_t>(d.partitions.size());
            if (level >= profiling::level_operators) group.ops.push_back(std::move(op));
        };
        add(0, "");
        for (const graph::Node& node : p.graph.nodes) {
            add(2, node.name);
            add(1, "");
        }
        d.partitions.push_back(p.name);
    }
    return d;
}

inline void add_descriptor(artifact::CompiledModel& model, const profiling::Descriptor& d) {
    model.files.push_back({profiling::descriptor_entry, artifact::write_descriptor(d)});
}

// Its reason, or "" where the field is not missing.
inline std::string reason_of(const profiling::Capture& capture, const std::string& field) {
    for (const auto& missing : capture.missing)
        if (missing.field == field) return missing.reason;
    return {};
}

}  // namespace vartml::test
