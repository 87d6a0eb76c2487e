// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/trace_args.h"

#include <algorithm>
#include <cstring>

#include "lib/tools/opstats/host_events.h"
#include "lib/tools/opstats/summary_build.h"
#include "lib/tools/opstats/trace_file.h"
#include "lib/trace/text.h"

namespace vartml::profiling {

bool Member::times(uint64_t index, uint64_t& start_ns, uint64_t& end_ns) {
    Stamp stamp;
    if (!stamps_.get(index, stamp) || stamp.start == 0 || stamp.end < stamp.start) return false;
    start_ns = buffer_->to_ns(stamp.start);
    end_ns = buffer_->to_ns(stamp.end);
    return end_ns >= start_ns;
}

void Member::add_to(TeamInstance& instance, uint64_t index, uint64_t start_ns, uint64_t end_ns) {
    const bool is_first = instance.start_ns == 0;
    instance.start_ns = is_first ? start_ns : std::min(instance.start_ns, start_ns);
    instance.end_ns = std::max(instance.end_ns, end_ns);
    if (is_first || end_ns - start_ns > instance.longest_end_ns - instance.longest_start_ns) {
        instance.longest_start_ns = start_ns;
        instance.longest_end_ns = end_ns;
    }
    uint64_t pcycles = not_captured;
    if (pcycles_.get(index, pcycles) && pcycles != not_captured &&
        pcycles >= instance.pcycles.value_or(0)) {
        instance.pcycles = pcycles;
        instance.pcycles_ns = end_ns - start_ns;
    }
    PmuRow row;
    row.fill(not_captured);
    pmu_.get(index, row);
    if (is_first) {
        instance.pmu = row;
        return;
    }
    for (size_t i = 0; i < row.size(); ++i) {
        uint64_t& sum = instance.pmu[i];
        sum = sum == not_captured || row[i] == not_captured ? not_captured : sum + row[i];
    }
}

Result<void> Member::status() const {
    for (const RecordWindow* window :
         {static_cast<const RecordWindow*>(&stamps_), static_cast<const RecordWindow*>(&pcycles_),
          static_cast<const RecordWindow*>(&pmu_)})
        if (!window->status()) return window->status();
    return {};
}

std::optional<TeamInstance> instance_of(std::span<Member> members, uint64_t index) {
    std::optional<TeamInstance> instance;
    for (Member& member : members) {
        uint64_t start_ns = 0, end_ns = 0;
        if (!member.times(index, start_ns, end_ns)) continue;
        if (!instance) instance.emplace();
        member.add_to(*instance, index, start_ns, end_ns);
    }
    return instance;
}

const Core* core_of(const Descriptor& descriptor, uint16_t core) {
    const auto found = std::ranges::find(descriptor.cores, core, &Core::index);
    if (found != descriptor.cores.end()) return &*found;
    // Cores above those listed are like the first.
    return descriptor.cores.empty() ? nullptr : &descriptor.cores.front();
}

namespace {

// A batch has fewer; a damaged buffer must not fill the memory.
constexpr size_t max_frames = 4096;

std::string name_of(const format::PmuEventRecord& event) {
    return {event.name.data(), ::strnlen(event.name.data(), event.name.size())};
}

std::string shape_of(const Tensor& tensor) {
    std::string text;
    for (const int64_t extent : tensor.shape)
        text += (text.empty() ? "" : "x") + std::to_string(extent);
    return text.empty() ? "scalar" : text;
}

void add_text(JsonMembers& members, std::string_view name, const std::string& text) {
    if (!text.empty()) members.text(name, text);
}

void add_list(std::string& out, const std::vector<std::string>& texts) {
    out += '[';
    for (size_t i = 0; i < texts.size(); ++i) {
        if (i > 0) out += ',';
        append_quoted(out, texts[i]);
    }
    out += ']';
}

void add_job(JsonMembers& members, const JobArgs& job) {
    if (!job.frames.empty()) members.key("frames") += job.frames;
    members.text("jobKey", job.job_key);
}

void add_pmu(JsonMembers& members, const PmuRow& row, const std::vector<std::string>& names,
             const std::string& prefix) {
    for (size_t i = 0; i < std::min(names.size(), row.size()); ++i)
        if (row[i] != not_captured) members.number(prefix + names[i], row[i]);
}

void add_identity(JsonMembers& members, const Descriptor& descriptor, const Op& op) {
    add_text(members, "opName", op.name);
    add_text(members, "opKind", descriptor.kind(op));
    if (op.memory < descriptor.memories.size() && !descriptor.is_sync(op) &&
        !descriptor.is_barrier(op))
        add_text(members, "opMemory", descriptor.memories[op.memory]);
}

std::string fixed(double value) {
    std::string text;
    append_fixed(text, value, 2);
    return text;
}

// Numbers under the names of the vendor's traces are strings, as they are there.
void add_time(JsonMembers& members, const TeamInstance& instance, const Ucycles& clock,
              uint64_t out_bytes) {
    const uint64_t ucycles =
        clock.stamp(instance.longest_end_ns) - clock.stamp(instance.longest_start_ns);
    const double kilobytes = static_cast<double>(out_bytes) / 1024;
    members.text("opUCycle", std::to_string(ucycles));
    if (instance.pcycles) members.text("opPCycle", std::to_string(*instance.pcycles));
    if (instance.pcycles && instance.pcycles_ns > 0)
        members.text("effectiveFreq", fixed(static_cast<double>(*instance.pcycles) * 1000 /
                                            static_cast<double>(instance.pcycles_ns)));
    if (out_bytes == 0) return;
    members.text("UCyclesPerKB", fixed(static_cast<double>(ucycles) / kilobytes));
    if (instance.pcycles)
        members.text("PCyclesPerKB", fixed(static_cast<double>(*instance.pcycles) / kilobytes));
    members.text("opOutputSize", std::to_string(out_bytes));
}

void add_tensors(JsonMembers& members, const Descriptor& descriptor, const Op& op) {
    for (size_t k = 0; k < op.inputs.size(); ++k) {
        if (op.inputs[k] >= descriptor.tensors.size()) continue;
        const Tensor& tensor = descriptor.tensors[op.inputs[k]];
        members.text("opOperand" + std::to_string(k), tensor.name + " " + shape_of(tensor));
    }
    if (!op.outputs.empty() && op.outputs[0] < descriptor.tensors.size())
        members.text("opShape", shape_of(descriptor.tensors[op.outputs[0]]));
    add_text(members, "opAttributes", op.attributes);
}

}  // namespace

JobArgs job_args(const BufferFile& buffer, uint64_t ucycle_hz) {
    const format::Header& h = buffer.header();
    JobArgs job;
    job.ucycle_hz = ucycle_hz;
    job.job_key = std::to_string(h.program_index) + '/' + std::to_string(h.activation_index) + '/' +
                  std::to_string(h.inference_index);
    Records<format::FrameEntry> frames(buffer, buffer.find("FRAM"));
    format::FrameEntry frame;
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < max_frames && frames.get(i, frame); ++i) {
        job.flow_ids.push_back(frame.flow_id);
        texts.push_back(frame_text(frame.flow_id));
    }
    if (!texts.empty()) add_list(job.frames, texts);
    for (const auto& event : buffer.pmu_events()) job.pmu.push_back(name_of(event));
    return job;
}

std::string op_args(const Descriptor& descriptor, const Op& op, const TeamInstance& instance,
                    const JobArgs& job, std::optional<uint64_t> sync_ns) {
    std::string args;
    JsonMembers members(args);
    add_identity(members, descriptor, op);
    add_time(members, instance, Ucycles(job.ucycle_hz), op.out_bytes);
    if (sync_ns) {
        std::string us;
        append_us(us, *sync_ns);
        members.text("opSyncDurUs", us);
    }
    add_tensors(members, descriptor, op);
    if (!op.onnx_nodes.empty()) add_list(members.key("onnxNodes"), op.onnx_nodes);
    if (op.partition < descriptor.partitions.size())
        add_text(members, "partition", descriptor.partitions[op.partition]);
    if (!descriptor.is_sync(op) && !descriptor.is_barrier(op)) {
        members.number("macs", op.macs);
        members.number("readBytes", op.read_bytes);
        members.number("writeBytes", op.write_bytes);
    }
    add_job(members, job);
    add_pmu(members, instance.pmu, job.pmu, "pmu.");
    return args;
}

Result<std::string> execution_args(const BufferFile& buffer, uint16_t core, const JobArgs& job) {
    std::string args;
    JsonMembers members(args);
    add_job(members, job);
    const auto ddr = buffer.each<format::DdrRecord>("DDRT", [&](const auto& record) {
        if (record.core != core) return;
        const bool is_measured = record.source == format::ddr_source_measured;
        const std::string prefix = is_measured ? "ddrMeasured" : "ddrComputed";
        if (record.read_bytes != not_captured)
            members.number(prefix + "ReadBytes", record.read_bytes);
        if (record.write_bytes != not_captured)
            members.number(prefix + "WriteBytes", record.write_bytes);
    });
    if (!ddr) return ddr.error();
    const auto pmu = buffer.each<format::PmuThreadRecord>("PMUT", [&](const auto& record) {
        if (record.core == core)
            add_pmu(members, record.values, job.pmu, "pmu.t" + std::to_string(record.thread) + '.');
    });
    if (!pmu) return pmu.error();
    return args;
}

}  // namespace vartml::profiling
