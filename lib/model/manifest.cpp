// SPDX-License-Identifier: Apache-2.0
#include "lib/model/manifest.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "lib/model/containers.h"
#include "lib/model/entries.h"
#include "lib/model/program.h"
#include "lib/model/vartml_archive_generated.h"

namespace vartml::artifact {
namespace {

constexpr size_t max_blobs = 4096, max_partitions = 1024, max_tensors = 1024, max_edges = 65536;
constexpr size_t min_manifest_bytes = 16;

class ManifestReader {
public:
    ManifestReader(Bytes bytes, const std::string& where, bool in_rai)
        : bytes_(bytes), in_rai_(in_rai), checks_(where), model_(out_.model) {}

    Result<Manifest> read() {
        if (open() && read_head() && read_blobs() && read_partitions() && read_edges() &&
            read_summary() && check_model(checks_, model_))
            return std::move(out_);
        return checks_.error();
    }

private:
    bool open() {
        if (bytes_.size() < min_manifest_bytes || bytes_.size() > max_manifest_bytes + size_t{4})
            return checks_.fail("the manifest has " + std::to_string(bytes_.size()) +
                                " bytes, expected 16 to 67108864");
        if (!rai::SizePrefixedArchiveBufferHasIdentifier(bytes_.data()))
            return checks_.fail("is no manifest of vartml (its identifier is not 'VRA1')");
        flatbuffers::Verifier::Options options;
        options.max_depth = 16;
        options.max_tables = 1'000'000;
        flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes_.data()),
                                       bytes_.size(), options);
        // The version comes first, so that a newer file is not called damaged; but it can only be
        // read from what has been verified.
        if (!rai::VerifySizePrefixedArchiveBuffer(verifier))
            return checks_.fail(
                "the manifest is damaged (an offset in it leads outside); compile or copy the "
                "model again");
        archive_ = rai::GetSizePrefixedArchive(bytes_.data());
        if (archive_->format_major() != 1)
            return checks_.fail("archive format " + std::to_string(archive_->format_major()) +
                                    ", this libvartml reads 1; compile the model with this "
                                    "version's 'vartml compile'",
                                ErrorCode::unsupported);
        return true;
    }

    bool at_most(const char* what, size_t found, size_t limit) {
        return found <= limit ||
               checks_.fail("has " + std::to_string(found) + ' ' + what + ", at most " +
                            std::to_string(limit) + " are allowed");
    }

    // The number of an enumerator, checked against the last one.
    template <typename To, typename From>
    To enumerator(From value, From last, std::string_view what) {
        if (value > last)
            checks_.fail(std::string(what) + " has the value " +
                         std::to_string(static_cast<int>(value)) + ", at most " +
                         std::to_string(static_cast<int>(last)) + " is known");
        return static_cast<To>(value);
    }

    bool read_head() {
        out_.file_size = archive_->file_size();
        model_.tool_version = checks_.text(archive_->tool_version(), "the tool version");
        model_.device = checks_.text(archive_->device(), "the device");
        model_.target = checks_.text(archive_->target(), "the target");
        model_.compilation = enumerator<Compilation>(archive_->compilation(), rai::Compilation::MAX,
                                                     "the compilation");
        model_.model_name = checks_.text(archive_->model_name(), "the model's name");
        model_.model_signature = checks_.text(archive_->model_signature(), "the model's signature");
        std::ranges::copy(*archive_->config_sha256()->bytes(), model_.config_sha256.begin());
        model_.desired_batch_size = archive_->desired_batch_size();
        model_.actual_batch_size = archive_->actual_batch_size();
        model_.stats_level = archive_->stats_level();
        model_.exact_floats = archive_->exact_floats();
        model_.inputs = tensors(*archive_->inputs(), "input");
        model_.outputs = tensors(*archive_->outputs(), "output");
        const std::string& s = model_.model_signature;
        if (checks_.ok() && (s.size() != 32 || s.find_first_not_of("0123456789abcdef") != s.npos))
            return checks_.fail("the model's signature is '" + s +
                                "', expected 32 hexadecimal digits");
        const uint32_t desired = model_.desired_batch_size, actual = model_.actual_batch_size;
        if (actual < 1 || desired > 256 || actual > desired)
            return checks_.fail("batch size is " + std::to_string(actual) + " of " +
                                std::to_string(desired) + " desired, expected 1 to 256");
        return checks_.ok();
    }

    TensorView view(const rai::View& v, const std::string& what) {
        TensorView out;
        out.data_type =
            enumerator<DataType>(v.data_type(), rai::DataType::UInt64, what + ": the data type");
        out.layout = enumerator<Layout>(v.layout(), rai::MemoryLayout::MAX, what + ": the layout");
        out.order = to_vector(v.order());
        out.shape = to_vector(v.shape());
        out.strides = to_vector(v.strides());
        out.size = v.size();
        out.size_bytes = v.size_in_bytes();
        if (const rai::Quant* q = v.quant()) {
            if (q->rounding() != rai::Rounding::NearestEven)
                checks_.fail(what + ": rounding mode " +
                             std::to_string(static_cast<int>(q->rounding())) +
                             ", this libvartml rounds to nearest even (1)");
            out.quantisation = Quantisation{q->scale(), q->zero_point()};
        }
        return out;
    }

    std::vector<TensorInfo> tensors(
        const flatbuffers::Vector<flatbuffers::Offset<rai::Tensor>>& list, const char* direction) {
        std::vector<TensorInfo> out;
        if (!at_most((std::string(direction) + 's').c_str(), list.size(), max_tensors)) return out;
        for (const rai::Tensor* t : list) {
            TensorInfo info;
            info.name = checks_.text(t->name(), "the name of a tensor");
            const std::string what = std::string(direction) + " '" + info.name + '\'';
            info.cpu = view(*t->cpu(), what);
            if (t->hw()) info.hw = view(*t->hw(), what);
            info.data_dependent = t->data_dependent();
            info.picture = checks_.text(t->picture(), what + ": the channel order");
            out.push_back(std::move(info));
        }
        return out;
    }

    bool read_blobs() {
        const auto& list = *archive_->blobs();
        if (!at_most("entries", list.size(), max_blobs)) return false;
        if (in_rai_ == (out_.file_size == 0))
            return checks_.fail("the manifest records a file size of " +
                                std::to_string(out_.file_size) +
                                (in_rai_ ? ", expected that of the file" : ", expected 0"));
        std::set<std::string> folded;
        uint64_t end = bytes_.size();
        for (const rai::Blob* b : list) {
            Blob blob;
            blob.name = checks_.text(b->name(), "the name of an entry");
            blob.kind = enumerator<rai::BlobKind>(b->kind(), rai::BlobKind::MAX,
                                                  "entry '" + blob.name + "': the kind");
            blob.offset = b->offset();
            blob.size = b->size();
            blob.alignment = b->alignment();
            blob.crc32c = b->crc32c();
            if (!checks_.ok() || !check_blob(blob, end, folded)) return false;
            end = blob.offset + blob.size;
            out_.blobs.push_back(std::move(blob));
        }
        return true;
    }

    bool check_blob(const Blob& b, uint64_t end_before, std::set<std::string>& folded) {
        const std::string what = "entry '" + b.name + "' ";
        if (const std::string fault = name_fault(b.name); !fault.empty())
            return checks_.fail(what + fault);
        std::string lower = b.name;
        for (char& c : lower)
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        if (!folded.insert(std::move(lower)).second || is_no_entry(b.name))
            return checks_.fail(what + "occurs twice, or has a name that is no entry's");
        if (b.alignment < 64 || b.alignment > 65536 || (b.alignment & (b.alignment - 1)) != 0)
            return checks_.fail(what + "is aligned to " + std::to_string(b.alignment) +
                                ", expected a power of two from 64 to 65536");
        if (b.size > uint64_t{1} << 40)
            return checks_.fail(what + "has " + std::to_string(b.size) +
                                " bytes, at most 2^40 are allowed");
        if (!in_rai_)
            return b.offset == 0 ||
                   checks_.fail(what + "has offset " + std::to_string(b.offset) + ", expected 0");
        if (b.offset % b.alignment != 0)
            return checks_.fail(what + "starts at byte " + std::to_string(b.offset) +
                                ", expected a multiple of " + std::to_string(b.alignment));
        if (b.offset < end_before)
            return checks_.fail(what + "starts at byte " + std::to_string(b.offset) +
                                ", before the end of the part in front of it at " +
                                std::to_string(end_before));
        if (b.offset > out_.file_size || b.size > out_.file_size - b.offset)
            return checks_.fail(what + "has " + std::to_string(b.size) + " bytes from byte " +
                                std::to_string(b.offset) + ", the file has " +
                                std::to_string(out_.file_size));
        return true;
    }

    bool read_partitions() {
        const auto& list = *archive_->partitions();
        if (!at_most("partitions", list.size(), max_partitions)) return false;
        for (const rai::Partition* p : list)
            if (!read_partition(*p)) return false;
        model_.execution_order = to_vector(archive_->execution_order());
        return checks_.ok();
    }

    bool read_partition(const rai::Partition& p) {
        Partition out;
        out.name = checks_.text(p.name(), "the name of a partition");
        const std::string what = "partition '" + out.name + "': ";
        out.kind = enumerator<PartitionKind>(p.kind(), rai::PartitionKind::MAX, what + "the kind");
        out.target = out.kind == PartitionKind::npu ? model_.target : cpu_target;
        if (p.target()) out.target = checks_.text(p.target(), what + "the target");
        const bool known = out.kind == PartitionKind::npu
                               ? out.target == model_.target
                               : out.target == cpu_target || out.target == onnxruntime_target;
        if (checks_.ok() && !known)
            return checks_.fail(what + "has the target '" + out.target +
                                    "', which this libvartml does not know; compile the model with "
                                    "this version's 'vartml compile'",
                                ErrorCode::unsupported);
        out.inputs = tensors(*p.inputs(), "input");
        out.outputs = tensors(*p.outputs(), "output");
        out.operators = p.operators();
        out.ops = p.ops();
        out.columns = p.columns();
        if (!checks_.ok()) return false;
        const std::string folder = entry_folder(out);
        const auto is = [&](int64_t index, const std::string& name, rai::BlobKind kind) {
            if (index < 0 || index >= static_cast<int64_t>(out_.blobs.size()))
                return checks_.fail(what + "entry number " + std::to_string(index) +
                                    " does not exist, there are " +
                                    std::to_string(out_.blobs.size()));
            const Blob& b = out_.blobs[static_cast<size_t>(index)];
            return (b.name == name && b.kind == kind) ||
                   checks_.fail(what + "names entry '" + b.name + "', expected '" + name + "'");
        };
        if (!is(p.program(), folder + "program.vnp", rai::BlobKind::Program)) return false;
        if (p.weights() != -1 && !is(p.weights(), folder + "weights.bin", rai::BlobKind::Weights))
            return false;
        for (const uint32_t f : to_vector(p.files()))
            if (f >= out_.blobs.size())
                return checks_.fail(what + "entry number " + std::to_string(f) +
                                    " does not exist, there are " +
                                    std::to_string(out_.blobs.size()));
        out_.programs.push_back({p.program(), p.weights()});
        model_.partitions.push_back(std::move(out));
        return true;
    }

    bool read_edges() {
        const auto& list = *archive_->edges();
        if (!at_most("edges", list.size(), max_edges)) return false;
        for (const rai::Edge* e : list) {
            Edge out;
            out.source = e->source();
            out.destination = e->destination();
            out.temp_buffer_name = checks_.text(e->temp_buffer_name(), "the buffer of an edge");
            out.tensor_name = checks_.text(e->tensor_name(), "the tensor of an edge");
            out.shape = to_vector(e->shape());
            out.data_type = enumerator<DataType>(e->data_type(), rai::DataType::UInt64,
                                                 "edge '" + out.tensor_name + "': the data type");
            out.data_dependent = e->data_dependent();
            model_.edges.push_back(std::move(out));
        }
        return checks_.ok();
    }

    bool read_summary() {
        const rai::Summary& s = *archive_->summary();
        Summary& out = model_.summary;
        out.os = checks_.text(s.os(), "the summary");
        out.commit = checks_.text(s.commit(), "the summary");
        out.model = checks_.text(s.model(), "the summary");
        out.model_data_type = checks_.text(s.model_data_type(), "the summary");
        out.device_data_type = checks_.text(s.device_data_type(), "the summary");
        const auto count = [](const rai::Count& c) {
            return Count{c.operators(), c.ops(), c.subgraphs()};
        };
        out.total = count(*s.total());
        out.supported = count(*s.supported());
        out.offloaded = count(*s.offloaded());
        out.compile_errors = s.compile_errors();
        out.below_threshold = s.below_threshold();
        out.threshold_percent = s.threshold_percent();
        out.above_max = s.above_max();
        out.max_subgraphs = s.max_subgraphs();
        out.folded = s.folded();
        if (!(out.threshold_percent >= 0 && out.threshold_percent <= 100))
            return checks_.fail("the threshold of the summary is not a percentage");
        for (size_t i = 0; i < size_of(s.fallbacks()); ++i) {
            const rai::Fallback& f = *s.fallbacks()->Get(static_cast<unsigned>(i));
            out.fallbacks.push_back({checks_.text(f.node(), "a fallback"),
                                     checks_.text(f.op_type(), "a fallback"),
                                     checks_.text(f.code(), "a fallback"),
                                     checks_.text(f.text(), "a fallback"), f.partition()});
            if (f.partition() < -1 ||
                f.partition() >= static_cast<int64_t>(model_.partitions.size()))
                return checks_.fail("node '" + out.fallbacks.back().node + "' is in partition " +
                                    std::to_string(f.partition()) + ", there are " +
                                    std::to_string(model_.partitions.size()));
        }
        return checks_.ok();
    }

    Bytes bytes_;
    bool in_rai_;
    Checks checks_;
    Manifest out_;
    CompiledModel& model_;
    const rai::Archive* archive_ = nullptr;
};

}  // namespace

Result<Manifest> read_manifest(Bytes bytes, const std::string& where, bool in_rai) {
    return ManifestReader(bytes, where, in_rai).read();
}

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
