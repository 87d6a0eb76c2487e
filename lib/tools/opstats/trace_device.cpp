// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/trace_device.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "lib/tools/opstats/instances.h"
#include "lib/tools/opstats/trace_args.h"
#include "lib/tools/opstats/trace_file.h"
#include "lib/trace/descriptor.h"

namespace vartml::profiling {

// Dependencies between operators as arrows of a trace. Both ends compute the same number, so that
// no table of what is written is needed.

// Where the operators of a descriptor are and which edges meet at them.
class FlowGraph {
public:
    struct Place {
        uint32_t id = 0, group = 0, index = 0;
        uint16_t core = 0;
    };
    explicit FlowGraph(const Descriptor& descriptor);
    const Place* find(uint32_t op_id) const;
    // Indices into Descriptor::edges.
    std::span<const uint32_t> from(uint32_t op_id) const;
    std::span<const uint32_t> to(uint32_t op_id) const;
    const Edge& edge(uint32_t index) const { return descriptor_->edges[index]; }

private:
    const Descriptor* descriptor_;
    std::vector<Place> places_;  // by id
    std::vector<uint32_t> by_from_, by_to_;
};

// For each operator of one core, the thread whose slice has its arrows.
class Carriers {
public:
    static constexpr uint16_t none = 0xffff;  // the operator is not in the trace
    void set(uint32_t group, uint32_t index, uint32_t count, uint16_t thread) {
        auto& threads = groups_[group];
        threads.resize(count, none);
        threads[index] = thread;
    }
    uint16_t at(uint32_t group, uint32_t index) const {
        const auto found = groups_.find(group);
        if (found == groups_.end() || index >= found->second.size()) return none;
        return found->second[index];
    }

private:
    std::map<uint32_t, std::vector<uint16_t>> groups_;
};

// Cores that run one instance of the descriptor together: those that it lists, or one more of their
// kind.
struct FlowJob {
    uint64_t ordinal = 0;                // unique in the trace
    std::map<uint16_t, Carriers> cores;  // by index in the descriptor
    bool is_written(const FlowGraph::Place& place) const {
        const auto core = cores.find(place.core);
        return core != cores.end() && core->second.at(place.group, place.index) != Carriers::none;
    }
    uint64_t id_of(uint32_t edge) const { return edge + (ordinal << 32); }
};

namespace {

using Thread = format::ThreadRecord;

constexpr const char* device_category = "aic";
// Groups above are given lanes in the order in which they come.
constexpr uint16_t numbered_groups = 256;

Error no_lanes_left(const BufferFile& buffer, uint16_t core) {
    return {ErrorCode::bad_model, buffer.path() + ": core " + std::to_string(core) +
                                      " needs more lanes than the " + std::to_string(max_lanes) +
                                      " that a trace has per core; select other cores, or merge "
                                      "thread groups"};
}

// What ends before it starts is left out; the summary counts it.
bool is_time(uint64_t start, uint64_t end) {
    return start != 0 && end >= start && end != not_captured;
}

// Threads of one group of a core, in the order of their numbers.
struct Team {
    uint16_t group = 0;
    std::string lane;  // name without thread
    const Group* ops = nullptr;
    std::vector<const Thread*> threads;
};

class DeviceWriter {
public:
    explicit DeviceWriter(DeviceTrace& trace)
        : trace_(trace),
          buffer_(*trace.source.buffer),
          descriptor_(*trace.source.descriptor),
          job_(job_args(buffer_, trace.options.ucycle_hz)) {
        if (trace.options.flow_events) graph_ = std::make_unique<FlowGraph>(descriptor_);
    }
    Result<void> run();

private:
    using Cores = std::vector<uint16_t>;
    Result<void> write_job(const Cores& cores);
    Result<void> note_carriers(uint16_t core, Carriers& carriers);
    Result<void> note_carriers(const Team& team, const Thread& thread, Carriers& carriers);
    Result<void> write_core(uint16_t core);
    Result<void> write_execution(uint16_t core, NestingLane& lane);
    Result<void> write_waits(uint16_t core, const Track& lane);
    Result<void> write_hand_overs(uint16_t core, const Track& lane);
    Result<void> write_team(const Team& team, LanePool& pool, uint16_t core);
    Result<void> write_lane(const Team& team, std::span<const Thread* const> threads, bool barriers,
                            NestingLane& lane);
    std::optional<uint64_t> sync_ns(std::span<Member> members, const Group& group, uint32_t index);
    void write_flows(const Team& team, uint32_t index, uint16_t core, const TeamInstance& instance,
                     const Track& track);
    void write_pair(const char* category, std::string_view name, const Track& track,
                    uint64_t start_ns, uint64_t end_ns);

    std::span<const Thread> threads_of(uint16_t core) const;
    std::vector<Team> teams_of(uint16_t core) const;
    bool is_shown(const Op& op) const {
        return trace_.options.barrier_events || !descriptor_.is_barrier(op);
    }
    std::string core_name(uint16_t core) const {
        const std::string& label = trace_.source.label;
        return descriptor_.network + (label.empty() ? "" : "_" + label) + "_Core_" +
               std::to_string(core);
    }
    // Index in the descriptor of what describes a core.
    uint16_t described_by(uint16_t core) const {
        const Core* found = core_of(descriptor_, core);
        return found ? found->index : core;
    }

    DeviceTrace& trace_;
    const BufferFile& buffer_;
    const Descriptor& descriptor_;
    const JobArgs job_;
    std::unique_ptr<FlowGraph> graph_;
    FlowJob flows_;  // of the cores that are being written
};

std::span<const Thread> DeviceWriter::threads_of(uint16_t core) const {
    const auto found = std::ranges::equal_range(buffer_.threads(), core, {}, &Thread::core);
    return {found.begin(), found.end()};
}

std::vector<Team> DeviceWriter::teams_of(uint16_t core) const {
    const std::vector<Group>& groups = groups_of(descriptor_, core);
    std::map<uint16_t, Team> teams;
    std::map<uint16_t, std::vector<uint16_t>> groups_of_engine;
    for (const Thread& thread : threads_of(core)) {
        Team& team = teams[thread.group];
        if (team.threads.empty()) groups_of_engine[thread.engine].push_back(thread.group);
        team.group = thread.group;
        team.ops = thread.group < groups.size() ? &groups[thread.group] : nullptr;
        team.threads.push_back(&thread);
    }
    std::vector<Team> list;
    for (auto& [group, team] : teams) {
        const uint16_t engine = team.threads[0]->engine;
        team.lane = core_name(core) + '_' +
                    (engine < descriptor_.engines.size() ? descriptor_.engines[engine]
                                                         : "ENGINE" + std::to_string(engine));
        if (groups_of_engine[engine].size() > 1) team.lane += "_G" + std::to_string(group);
        list.push_back(std::move(team));
    }
    return list;
}

Result<void> DeviceWriter::run() {
    const format::Header& h = buffer_.header();
    const std::string name = "device " + std::to_string(h.device_index);
    trace_.out.name_process(device_pid(h.device_index),
                            descriptor_.target.empty() ? name : name + " " + descriptor_.target);
    Cores listed, alike;
    for (const uint16_t core : selected_cores(trace_.source, trace_.options)) {
        const bool is_listed =
            std::ranges::find(descriptor_.cores, core, &Core::index) != descriptor_.cores.end();
        (is_listed ? listed : alike).push_back(core);
    }
    if (!listed.empty())
        if (auto r = write_job(listed); !r) return r;
    for (const uint16_t core : alike)
        if (auto r = write_job({core}); !r) return r;
    return {};
}

Result<void> DeviceWriter::write_job(const Cores& cores) {
    flows_ = FlowJob{trace_.ids.next_job++, {}};
    if (graph_)
        for (const uint16_t core : cores)
            if (auto r = note_carriers(core, flows_.cores[described_by(core)]); !r) return r;
    for (const uint16_t core : cores)
        if (auto r = write_core(core); !r) return r;
    return {};
}

Result<void> DeviceWriter::note_carriers(uint16_t core, Carriers& carriers) {
    for (const Team& team : teams_of(core))
        if (team.ops)
            for (size_t i = team.threads.size(); i-- > 0;)  // the first thread wins
                if (auto r = note_carriers(team, *team.threads[i], carriers); !r) return r;
    return {};
}

Result<void> DeviceWriter::note_carriers(const Team& team, const Thread& thread,
                                         Carriers& carriers) {
    Member member(buffer_, thread);
    const auto& ops = team.ops->ops;
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(ops.size(), member.size()));
    uint64_t start_ns = 0, end_ns = 0;
    for (uint32_t i = 0; i < count; ++i)
        if (is_shown(ops[i]) && member.times(i, start_ns, end_ns))
            carriers.set(team.group, i, static_cast<uint32_t>(ops.size()), thread.thread);
    return member.status();
}

Result<void> DeviceWriter::write_core(uint16_t core) {
    const auto teams = teams_of(core);
    LanePool& pool = trace_.lanes.of_core(buffer_.header().device_index, core);
    if (!teams.empty() && teams.back().group < numbered_groups)
        pool.reserve(teams.back().group + 2U);
    NestingLane* lane = pool.lane(core_name(core), 0);
    if (!lane) return no_lanes_left(buffer_, core);
    if (auto r = write_execution(core, *lane); !r) return r;
    if (auto r = write_waits(core, lane->track()); !r) return r;
    if (auto r = write_hand_overs(core, lane->track()); !r) return r;
    for (const Team& team : teams)
        if (auto r = write_team(team, pool, core); !r) return r;
    return {};
}

Result<void> DeviceWriter::write_execution(uint16_t core, NestingLane& lane) {
    uint64_t start_ns = not_captured, end_ns = 0;
    for (const Thread& thread : threads_of(core)) {
        if (!is_time(thread.start, thread.end)) continue;
        start_ns = std::min(start_ns, buffer_.to_ns(thread.start));
        end_ns = std::max(end_ns, buffer_.to_ns(thread.end));
    }
    if (end_ns < start_ns) return {};
    end_ns = std::max(end_ns, start_ns + 1);
    const auto args = execution_args(buffer_, core, job_);
    if (!args) return args.error();
    const auto track = lane.place(start_ns, end_ns);
    if (!track) return no_lanes_left(buffer_, core);
    trace_.out.add({.name = "Core-" + std::to_string(core) + "-Execution",
                    .category = device_category,
                    .track = *track,
                    .start_ns = start_ns,
                    .duration_ns = end_ns - start_ns,
                    .args = *args});
    trace_.executions.push_back({start_ns, *track});
    return {};
}

void DeviceWriter::write_pair(const char* category, std::string_view name, const Track& track,
                              uint64_t start_ns, uint64_t end_ns) {
    FileEvent event{.phase = 'b',
                    .name = name,
                    .category = category,
                    .track = track,
                    .start_ns = start_ns,
                    .id = trace_.ids.next_pair++};
    trace_.out.add(event);
    event.phase = 'e';
    event.start_ns = std::max(end_ns, start_ns + 1);
    trace_.out.add(event);
}

// A wait for inputs ends at the doorbell, one for outputs begins at the end of the thread: what the
// buffer holds is their length.
Result<void> DeviceWriter::write_waits(uint16_t core, const Track& lane) {
    uint64_t latest_bell = 0;
    auto r = buffer_.each<format::BellRecord>("BELL", [&](const auto& bell) {
        if (bell.core != core) return;
        std::string args;
        JsonMembers members(args);
        members.number("port", bell.port);
        members.number("sequence", bell.sequence);
        members.text("jobKey", job_.job_key);
        const uint64_t at = buffer_.to_ns(bell.tick);
        latest_bell = std::max(latest_bell, at);
        trace_.out.add({.phase = 'i',
                        .name = "doorbell",
                        .category = device_category,
                        .track = lane,
                        .start_ns = at,
                        .args = args});
    });
    if (!r) return r;
    const auto threads = threads_of(core);
    return buffer_.each<format::PortRecord>("PORT", [&](const auto& port) {
        const auto thread = std::ranges::find(threads, port.thread, &Thread::thread);
        if (port.core != core || port.wait_ticks == not_captured || thread == threads.end()) return;
        const uint64_t wait = buffer_.ticks_to_ns(port.wait_ticks);
        const bool is_output = port.direction != 0;
        const uint64_t from = is_output         ? buffer_.to_ns(thread->end)
                              : latest_bell > 0 ? latest_bell
                                                : buffer_.to_ns(thread->start);
        if (wait > from) return;  // began before the clock
        const uint64_t start = is_output ? from : from - wait;
        write_pair("port",
                   "p" + std::to_string(port.port) + " wait t" + std::to_string(port.thread), lane,
                   start, start + wait);
    });
}

Result<void> DeviceWriter::write_hand_overs(uint16_t core, const Track& lane) {
    return buffer_.each<format::SemaphoreRecord>("SEMA", [&](const auto& record) {
        if (record.core != core) return;
        if (!is_time(record.start, record.end)) return;
        write_pair("hand-over", "hand-over " + std::to_string(record.semaphore), lane,
                   buffer_.to_ns(record.start), buffer_.to_ns(record.end));
    });
}

Result<void> DeviceWriter::write_team(const Team& team, LanePool& pool, uint16_t core) {
    std::vector<const Thread*> stamped;
    for (const Thread* thread : team.threads)
        if (buffer_.find("OPTS", thread->core, thread->thread)) stamped.push_back(thread);
    if (!team.ops || stamped.empty()) return {};
    const auto write = [&](std::span<const Thread* const> threads, const std::string& name,
                           bool barriers) -> Result<void> {
        std::optional<uint32_t> number;  // of the group's lane, also in traces of the pipeline
        if (name == team.lane && team.group < numbered_groups) number = 1U + team.group;
        NestingLane* lane = pool.lane(name, number);
        if (!lane) return no_lanes_left(buffer_, core);
        return write_lane(team, threads, barriers, *lane);
    };
    if (trace_.options.merge_thread_groups)
        if (auto r = write(stamped, team.lane, false); !r) return r;
    for (const Thread*& thread : stamped) {
        const std::string name = team.lane + "_T" + std::to_string(thread->thread);
        const std::span<const Thread* const> one(&thread, 1);
        if (!trace_.options.merge_thread_groups)
            if (auto r = write(one, name, false); !r) return r;
        if (trace_.options.barrier_events)
            if (auto r = write(one, name + "_Barrier", true); !r) return r;
    }
    return {};
}

std::optional<uint64_t> DeviceWriter::sync_ns(std::span<Member> members, const Group& group,
                                              uint32_t index) {
    if (index + 1 >= group.ops.size() || !descriptor_.is_barrier(group.ops[index + 1])) return {};
    if (const auto barrier = instance_of(members, index + 1))
        return barrier->longest_end_ns - barrier->longest_start_ns;
    return {};
}

Result<void> DeviceWriter::write_lane(const Team& team, std::span<const Thread* const> threads,
                                      bool barriers, NestingLane& lane) {
    std::vector<Member> members;
    for (const Thread* thread : threads) members.emplace_back(buffer_, *thread);
    uint64_t count = 0;
    for (const Member& member : members) count = std::max(count, member.size());
    const auto& ops = team.ops->ops;
    count = std::min<uint64_t>(count, ops.size());
    for (uint32_t i = 0; i < count; ++i) {
        const Op& op = ops[i];
        if (descriptor_.is_barrier(op) != barriers) continue;
        const auto instance = instance_of(members, i);
        if (!instance) continue;
        const uint64_t end = instance->start_ns + instance->duration_ns();
        const auto track = lane.place(instance->start_ns, end);
        if (!track) return no_lanes_left(buffer_, threads[0]->core);
        const std::string args =
            op_args(descriptor_, op, *instance, job_, sync_ns(members, *team.ops, i));
        trace_.out.add({.name = descriptor_.kind(op),
                        .category = device_category,
                        .track = *track,
                        .start_ns = instance->start_ns,
                        .duration_ns = instance->duration_ns(),
                        .args = args});
        const bool on_first = barriers || !trace_.options.merge_thread_groups;
        const auto core = flows_.cores.find(described_by(threads[0]->core));
        if (graph_ && core != flows_.cores.end() &&
            (!on_first || core->second.at(team.group, i) == threads[0]->thread))
            write_flows(team, i, threads[0]->core, *instance, *track);
    }
    for (const Member& member : members)
        if (auto r = member.status(); !r) return r;
    return {};
}

void DeviceWriter::write_flows(const Team& team, uint32_t index, uint16_t core,
                               const TeamInstance& instance, const Track& track) {
    const uint32_t op = team.ops->ops[index].id;
    // Of operators with one number, the first has the arrows.
    const auto* place = graph_->find(op);
    if (!place || place->group != team.group || place->index != index ||
        place->core != described_by(core))
        return;
    const auto write = [&](uint32_t edge, uint32_t other, char phase, uint64_t at) {
        const auto* end = graph_->find(other);
        if (!end || other == op || !flows_.is_written(*end)) return;
        trace_.out.add({.phase = phase,
                        .name = "dep",
                        .category = graph_->edge(edge).data ? "true" : "false",
                        .track = track,
                        .start_ns = at,
                        .id = flows_.id_of(edge)});
    };
    const uint64_t last = instance.start_ns + instance.duration_ns() - 1;
    for (const uint32_t edge : graph_->from(op)) write(edge, graph_->edge(edge).to, 's', last);
    for (const uint32_t edge : graph_->to(op))
        write(edge, graph_->edge(edge).from, 'f', instance.start_ns);
}

}  // namespace

std::vector<uint16_t> selected_cores(const TraceSource& source, const TraceOptions& options) {
    std::vector<uint16_t> cores;
    const uint32_t device = source.buffer->header().device_index;
    const bool has_device = options.devices.empty() ||
                            std::ranges::find(options.devices, device) != options.devices.end();
    for (const Thread& thread : source.buffer->threads())
        if (has_device && (cores.empty() || cores.back() != thread.core) &&
            (options.cores.empty() ||
             std::ranges::find(options.cores, thread.core) != options.cores.end()))
            cores.push_back(thread.core);
    return cores;
}

Result<void> write_device(DeviceTrace& trace) {
    return DeviceWriter(trace).run();
}

namespace {

std::vector<uint32_t> sorted_by(const Descriptor& descriptor, uint32_t Edge::* end) {
    std::vector<uint32_t> edges(descriptor.edges.size());
    std::iota(edges.begin(), edges.end(), 0);
    std::ranges::stable_sort(edges, {}, [&](uint32_t e) { return descriptor.edges[e].*end; });
    return edges;
}

std::span<const uint32_t> range(const Descriptor& descriptor, const std::vector<uint32_t>& sorted,
                                uint32_t Edge::* end, uint32_t op_id) {
    const auto at = std::ranges::equal_range(sorted, op_id, {},
                                             [&](uint32_t e) { return descriptor.edges[e].*end; });
    return {at.begin(), at.end()};
}

}  // namespace

FlowGraph::FlowGraph(const Descriptor& descriptor)
    : descriptor_(&descriptor),
      by_from_(sorted_by(descriptor, &Edge::from)),
      by_to_(sorted_by(descriptor, &Edge::to)) {
    for (const Core& core : descriptor.cores)
        for (uint32_t g = 0; g < core.groups.size(); ++g)
            for (uint32_t i = 0; i < core.groups[g].ops.size(); ++i)
                places_.push_back({core.groups[g].ops[i].id, g, i, core.index});
    std::ranges::stable_sort(places_, {}, &Place::id);
}

const FlowGraph::Place* FlowGraph::find(uint32_t op_id) const {
    const auto at = std::ranges::lower_bound(places_, op_id, {}, &Place::id);
    return at != places_.end() && at->id == op_id ? &*at : nullptr;
}

std::span<const uint32_t> FlowGraph::from(uint32_t op_id) const {
    return range(*descriptor_, by_from_, &Edge::from, op_id);
}

std::span<const uint32_t> FlowGraph::to(uint32_t op_id) const {
    return range(*descriptor_, by_to_, &Edge::to, op_id);
}

}  // namespace vartml::profiling
