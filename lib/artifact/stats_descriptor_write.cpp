// SPDX-License-Identifier: Apache-2.0
#include "lib/artifact/stats_descriptor.h"
#include "lib/artifact/vartml_stats_generated.h"

namespace vartml::artifact {
namespace {

using flatbuffers::Offset;

class DescriptorWriter {
public:
    explicit DescriptorWriter(const profiling::Descriptor& descriptor) : d_(descriptor) {}

    std::string write() {
        const auto network = fbb_.CreateString(d_.network);
        const auto signature =
            fbb_.CreateVector(d_.model_signature.data(), d_.model_signature.size());
        const auto recipe = fbb_.CreateString(d_.pmu.recipe);
        const auto events = fbb_.CreateVector(d_.pmu.events);
        const auto pmu = opstats::CreatePmu(fbb_, recipe, events);
        const auto target = fbb_.CreateString(d_.target);
        const auto kinds = texts(d_.kinds), memories = texts(d_.memories);
        const auto engines = texts(d_.engines), dtypes = texts(d_.dtypes);
        const auto partitions = texts(d_.partitions), estimates = texts(d_.estimate_entries);
        std::vector<Offset<opstats::Tensor>> tensors;
        for (const profiling::Tensor& t : d_.tensors) tensors.push_back(tensor(t));
        const auto tensors_at = fbb_.CreateVector(tensors);
        std::vector<Offset<opstats::Core>> cores;
        for (const profiling::Core& c : d_.cores) cores.push_back(core(c));
        const auto cores_at = fbb_.CreateVector(cores);
        std::vector<opstats::Edge> edges;
        for (const profiling::Edge& e : d_.edges) edges.emplace_back(e.from, e.to, e.data);
        const auto edges_at = fbb_.CreateVectorOfStructs(edges);
        opstats::DescriptorBuilder b(fbb_);
        b.add_version_major(d_.version_major);
        b.add_version_minor(d_.version_minor);
        b.add_network(network);
        b.add_model_signature(signature);
        b.add_compiled_level(d_.compiled_level);
        b.add_stats_batchsize(d_.stats_batchsize);
        b.add_batch(d_.batch);
        b.add_ddr_stats(d_.ddr_stats);
        b.add_pmu(pmu);
        b.add_target(target);
        b.add_nominal_clock_hz(d_.nominal_clock_hz);
        b.add_kinds(kinds);
        b.add_memories(memories);
        b.add_engines(engines);
        b.add_dtypes(dtypes);
        b.add_partitions(partitions);
        b.add_tensors(tensors_at);
        b.add_cores(cores_at);
        b.add_edges(edges_at);
        b.add_estimate_entries(estimates);
        opstats::FinishDescriptorBuffer(fbb_, b.Finish());
        return {reinterpret_cast<const char*>(fbb_.GetBufferPointer()), fbb_.GetSize()};
    }

private:
    Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> texts(
        const std::vector<std::string>& list) {
        return fbb_.CreateVectorOfStrings(list);
    }

    Offset<opstats::Tensor> tensor(const profiling::Tensor& t) {
        const auto name = fbb_.CreateString(t.name);
        const auto shape = fbb_.CreateVector(t.shape);
        return opstats::CreateTensor(fbb_, name, t.dtype, t.layout, shape, t.bytes, t.constant);
    }

    Offset<opstats::Op> op(const profiling::Op& op) {
        const auto name = fbb_.CreateString(op.name);
        const auto dtypes = fbb_.CreateVector(op.dtypes);
        const auto inputs = fbb_.CreateVector(op.inputs);
        const auto outputs = fbb_.CreateVector(op.outputs);
        const auto nodes = texts(op.onnx_nodes);
        const auto attributes = fbb_.CreateString(op.attributes);
        return opstats::CreateOp(fbb_, op.id, name, op.kind, op.memory, dtypes, op.partition,
                                 op.layer, op.out_bytes, op.read_bytes, op.write_bytes, op.macs,
                                 op.ops, op.data_movement, inputs, outputs, nodes, attributes);
    }

    Offset<opstats::Core> core(const profiling::Core& core) {
        std::vector<Offset<opstats::Group>> groups;
        for (const profiling::Group& g : core.groups) {
            std::vector<Offset<opstats::Op>> ops;
            for (const profiling::Op& o : g.ops) ops.push_back(op(o));
            groups.push_back(opstats::CreateGroup(fbb_, g.engine, fbb_.CreateVector(ops)));
        }
        return opstats::CreateCore(fbb_, core.index, fbb_.CreateVector(groups));
    }

    const profiling::Descriptor& d_;
    flatbuffers::FlatBufferBuilder fbb_;
};

}  // namespace

std::string write_descriptor(const profiling::Descriptor& descriptor) {
    return DescriptorWriter(descriptor).write();
}

}  // namespace vartml::artifact
