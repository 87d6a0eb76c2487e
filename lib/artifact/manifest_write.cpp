// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lib/artifact/manifest.h"
#include "lib/artifact/program.h"
#include "lib/artifact/vartml_archive_generated.h"

namespace vartml::artifact {
namespace {

using flatbuffers::Offset;

class ManifestWriter {
public:
    ManifestWriter(const CompiledModel& model, const std::vector<Blob>& blobs)
        : model_(model), blobs_(blobs) {}

    std::string write(uint64_t file_size) {
        const auto tool_version = text(model_.tool_version), device = text(model_.device);
        const auto target = text(model_.target), name = text(model_.model_name);
        const auto signature = text(model_.model_signature);
        const rai::Sha256 config(flatbuffers::span<const uint8_t, 32>(model_.config_sha256));
        const auto inputs = tensors(model_.inputs), outputs = tensors(model_.outputs);
        std::vector<Offset<rai::Partition>> partitions;
        for (const Partition& p : model_.partitions) partitions.push_back(partition(p));
        const auto partitions_at = fbb_.CreateVector(partitions);
        const auto order = fbb_.CreateVector(model_.execution_order);
        std::vector<Offset<rai::Edge>> edges;
        for (const Edge& e : model_.edges) edges.push_back(edge(e));
        const auto edges_at = fbb_.CreateVector(edges);
        const auto summary_at = summary(model_.summary);
        std::vector<Offset<rai::Blob>> blobs;
        for (const Blob& b : blobs_)
            blobs.push_back(rai::CreateBlob(fbb_, text(b.name), b.kind, b.offset, b.size,
                                            b.alignment, b.crc32c));
        const auto blobs_at = fbb_.CreateVector(blobs);
        rai::ArchiveBuilder b(fbb_);
        b.add_file_size(file_size);
        b.add_tool_version(tool_version);
        b.add_device(device);
        b.add_target(target);
        b.add_compilation(static_cast<rai::Compilation>(model_.compilation));
        b.add_model_name(name);
        b.add_model_signature(signature);
        b.add_config_sha256(&config);
        b.add_desired_batch_size(model_.desired_batch_size);
        b.add_actual_batch_size(model_.actual_batch_size);
        b.add_stats_level(model_.stats_level);
        b.add_exact_floats(model_.exact_floats);
        b.add_inputs(inputs);
        b.add_outputs(outputs);
        b.add_partitions(partitions_at);
        b.add_execution_order(order);
        b.add_edges(edges_at);
        b.add_summary(summary_at);
        b.add_blobs(blobs_at);
        rai::FinishSizePrefixedArchiveBuffer(fbb_, b.Finish());
        return {reinterpret_cast<const char*>(fbb_.GetBufferPointer()), fbb_.GetSize()};
    }

private:
    Offset<flatbuffers::String> text(const std::string& s) { return fbb_.CreateString(s); }

    Offset<rai::View> view(const TensorView& v, bool hw) {
        const auto order = v.order.empty() ? 0 : fbb_.CreateVector(v.order);
        const auto shape = fbb_.CreateVector(v.shape), strides = fbb_.CreateVector(v.strides);
        const auto quant = hw && v.quantisation ? rai::CreateQuant(fbb_, v.quantisation->scale,
                                                                   v.quantisation->zero_point)
                                                : 0;
        return rai::CreateView(fbb_, static_cast<rai::DataType>(v.data_type),
                               static_cast<rai::MemoryLayout>(v.layout), order, shape, strides,
                               v.size, v.size_bytes, quant);
    }

    auto tensors(const std::vector<TensorInfo>& infos)
        -> Offset<flatbuffers::Vector<Offset<rai::Tensor>>> {
        std::vector<Offset<rai::Tensor>> out;
        for (const TensorInfo& t : infos) {
            const auto name = text(t.name);
            const auto cpu = view(t.cpu, false);
            const auto hw = t.hw ? view(*t.hw, true) : 0;
            const auto picture = t.picture.empty() ? 0 : text(t.picture);
            out.push_back(rai::CreateTensor(fbb_, name, cpu, hw, t.data_dependent, picture));
        }
        return fbb_.CreateVector(out);
    }

    // Index of a blob, -1 where there is none.
    int32_t find(const std::string& name) const {
        const auto at = std::ranges::find(blobs_, name, &Blob::name);
        return at == blobs_.end() ? -1 : static_cast<int32_t>(at - blobs_.begin());
    }

    Offset<rai::Partition> partition(const Partition& p) {
        const std::string folder = entry_folder(p);
        const int32_t program = find(folder + "program.vnp");
        const int32_t weights = find(folder + "weights.bin");
        std::vector<uint32_t> files;
        for (uint32_t i = 0; i < blobs_.size(); ++i)
            if (blobs_[i].kind == rai::BlobKind::File && blobs_[i].name.starts_with(p.name + '/'))
                files.push_back(i);
        const auto name = text(p.name);
        const auto files_at = fbb_.CreateVector(files);
        const auto inputs = tensors(p.inputs), outputs = tensors(p.outputs);
        const bool usual = p.kind == PartitionKind::npu || p.target == cpu_target;
        const auto target = usual ? 0 : text(p.target);
        return rai::CreatePartition(fbb_, name, static_cast<rai::PartitionKind>(p.kind),
                                    static_cast<uint32_t>(program), weights, files_at, inputs,
                                    outputs, p.operators, p.ops, p.columns, target);
    }

    Offset<rai::Edge> edge(const Edge& e) {
        const auto buffer = text(e.temp_buffer_name), tensor = text(e.tensor_name);
        const auto shape = fbb_.CreateVector(e.shape);
        return rai::CreateEdge(fbb_, e.source, e.destination, buffer, tensor, shape,
                               static_cast<rai::DataType>(e.data_type), e.data_dependent);
    }

    Offset<rai::Summary> summary(const Summary& s) {
        std::vector<Offset<rai::Fallback>> fallbacks;
        for (const Fallback& f : s.fallbacks) {
            const auto node = text(f.node), type = text(f.op_type), code = text(f.code);
            fallbacks.push_back(
                rai::CreateFallback(fbb_, node, type, code, text(f.text), f.partition));
        }
        const auto fallbacks_at = fbb_.CreateVector(fallbacks);
        const auto os = text(s.os), commit = text(s.commit), model = text(s.model);
        const auto model_type = text(s.model_data_type), device_type = text(s.device_data_type);
        const auto count = [this](const Count& c) {
            return rai::CreateCount(fbb_, c.operators, c.ops, c.subgraphs);
        };
        const auto total = count(s.total), supported = count(s.supported);
        const auto offloaded = count(s.offloaded);
        return rai::CreateSummary(fbb_, os, commit, model, model_type, device_type, total,
                                  supported, offloaded, s.compile_errors, s.below_threshold,
                                  s.threshold_percent, s.above_max, s.max_subgraphs, s.folded,
                                  fallbacks_at);
    }

    const CompiledModel& model_;
    const std::vector<Blob>& blobs_;
    flatbuffers::FlatBufferBuilder fbb_;
};

}  // namespace

std::string write_manifest(const CompiledModel& model, const std::vector<Blob>& blobs,
                           uint64_t file_size) {
    return ManifestWriter(model, blobs).write(file_size);
}

std::string entry_folder(const Partition& partition) {
    return partition.name + (partition.kind == PartitionKind::npu ? "/0/" : "/");
}

}  // namespace vartml::artifact
