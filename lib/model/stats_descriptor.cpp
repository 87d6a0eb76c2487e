// SPDX-License-Identifier: Apache-2.0
#include "lib/model/stats_descriptor.h"

#include <algorithm>
#include <unordered_set>

#include "lib/model/checks.h"
#include "lib/model/vartml_stats_generated.h"

namespace vartml::artifact {
namespace {

using profiling::Descriptor;
using profiling::Op;

constexpr size_t max_bytes = size_t{256} << 20;
constexpr size_t max_rank = 8, max_events = 8;
constexpr unsigned highest_level = 100;

class DescriptorReader {
public:
    DescriptorReader(Bytes bytes, const std::string& where) : bytes_(bytes), checks_(where) {}

    Result<Descriptor> read() {
        if (!open() || !read_head() || !read_lists() || !read_tensors() || !read_cores() ||
            !read_edges() || !checks_.ok())
            return checks_.error();
        return std::move(d_);
    }

private:
    bool open() {
        if (bytes_.size() < 16 || bytes_.size() > max_bytes)
            return checks_.fail("has " + std::to_string(bytes_.size()) +
                                " bytes, expected 16 to 268435456");
        if (!opstats::DescriptorBufferHasIdentifier(bytes_.data()))
            return checks_.fail("is no stats descriptor of vartml (its identifier is not 'VMOD')");
        flatbuffers::Verifier::Options options;
        options.max_depth = 16;
        options.max_tables = 4'000'000;
        flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes_.data()),
                                       bytes_.size(), options);
        if (!opstats::VerifyDescriptorBuffer(verifier))
            return checks_.fail(
                "is damaged (an offset in it leads outside); compile or copy it again");
        from_ = opstats::GetDescriptor(bytes_.data());
        return true;
    }

    bool read_head() {
        if (from_->version_major() != 1)
            return checks_.fail("stats descriptor of version " +
                                    std::to_string(from_->version_major()) +
                                    ", this libvartml reads 1; compile the model with this "
                                    "version's 'vartml compile'",
                                ErrorCode::unsupported);
        d_.version_major = from_->version_major();
        d_.version_minor = from_->version_minor();
        d_.network = checks_.text(from_->network(), "the network's name");
        const std::vector<uint8_t> signature = to_vector(from_->model_signature());
        if (signature.size() != d_.model_signature.size())
            return checks_.fail("has a model signature of " + std::to_string(signature.size()) +
                                " bytes, expected 16");
        std::ranges::copy(signature, d_.model_signature.begin());
        d_.compiled_level = from_->compiled_level();
        if (d_.compiled_level > highest_level)
            return checks_.fail("has stats level " + std::to_string(d_.compiled_level) +
                                ", expected 0 to 100");
        d_.stats_batchsize = from_->stats_batchsize();
        d_.batch = from_->batch();
        if (d_.stats_batchsize == 0 || d_.batch == 0)
            return checks_.fail("has a batch size of 0, expected 1 or more");
        d_.ddr_stats = from_->ddr_stats();
        d_.target = checks_.text(from_->target(), "the target");
        d_.nominal_clock_hz = from_->nominal_clock_hz();
        return read_pmu();
    }

    bool read_pmu() {
        const opstats::Pmu* pmu = from_->pmu();
        if (!pmu) return true;
        d_.pmu.recipe = checks_.text(pmu->recipe(), "the PMU recipe");
        d_.pmu.events = to_vector(pmu->events());
        return d_.pmu.events.size() <= max_events ||
               checks_.fail("has " + std::to_string(d_.pmu.events.size()) +
                            " PMU events, at most 8 are allowed");
    }

    using Texts = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;
    std::vector<std::string> texts(const Texts* list, std::string_view what) {
        std::vector<std::string> out;
        for (unsigned i = 0; i < size_of(list) && checks_.ok(); ++i)
            out.push_back(checks_.text(list->Get(i), what));
        return out;
    }

    bool read_lists() {
        d_.kinds = texts(from_->kinds(), "a kind of operators");
        d_.memories = texts(from_->memories(), "a memory");
        d_.engines = texts(from_->engines(), "an engine");
        d_.dtypes = texts(from_->dtypes(), "a data type");
        d_.partitions = texts(from_->partitions(), "a partition's name");
        d_.estimate_entries = texts(from_->estimate_entries(), "the name of an estimate");
        return checks_.ok();
    }

    // Whether an index is below the size of its list.
    bool index(size_t found, size_t size, const std::string& who, const char* what) {
        return found < size || checks_.fail(who + " has " + what + ' ' + std::to_string(found) +
                                            ", there are " + std::to_string(size));
    }
    template <typename T>
    bool indices(const std::vector<T>& found, size_t size, const std::string& who,
                 const char* what) {
        return std::ranges::all_of(found, [&](T i) { return index(i, size, who, what); });
    }

    bool read_tensors() {
        for (unsigned i = 0; i < size_of(from_->tensors()); ++i) {
            const opstats::Tensor& t = *from_->tensors()->Get(i);
            const std::string who = "tensor " + std::to_string(i);
            profiling::Tensor out;
            out.name = checks_.text(t.name(), who);
            out.dtype = t.dtype();
            out.layout = t.layout();
            out.shape = to_vector(t.shape());
            out.bytes = t.bytes();
            out.constant = t.constant();
            if (out.dtype > static_cast<uint16_t>(DataType::float64) ||
                out.layout > static_cast<uint16_t>(Layout::GENERIC))
                return checks_.fail(who + " has data type " + std::to_string(out.dtype) +
                                    " and layout " + std::to_string(out.layout) +
                                    ", one of which does not exist");
            if (out.shape.size() > max_rank ||
                std::ranges::any_of(out.shape, [](int64_t n) { return n < 0; }))
                return checks_.fail(who + " has more than 8 dimensions, or a negative one");
            d_.tensors.push_back(std::move(out));
        }
        return checks_.ok();
    }

    bool read_op(const opstats::Op& from, Op& op) {
        const std::string who = "operator " + std::to_string(from.id());
        op.id = from.id();
        op.name = checks_.text(from.name(), "the name of " + who);
        op.kind = from.kind();
        op.memory = from.memory();
        op.dtypes = to_vector(from.dtypes());
        op.partition = from.partition();
        op.layer = from.layer();
        op.out_bytes = from.out_bytes();
        op.read_bytes = from.read_bytes();
        op.write_bytes = from.write_bytes();
        op.macs = from.macs();
        op.ops = from.ops();
        op.data_movement = from.data_movement();
        op.inputs = to_vector(from.inputs());
        op.outputs = to_vector(from.outputs());
        op.onnx_nodes = texts(from.onnx_nodes(), "an ONNX node of " + who);
        op.attributes = checks_.text(from.attributes(), "the attributes of " + who);
        if (!ids_.insert(op.id).second) return checks_.fail(who + " occurs twice");
        if (op.layer < -1)
            return checks_.fail(who + " has layer " + std::to_string(op.layer) +
                                ", expected -1 or more");
        return index(op.kind, d_.kinds.size(), who, "kind") &&
               index(op.memory, d_.memories.size(), who, "memory") &&
               index(op.partition, d_.partitions.size(), who, "partition") &&
               indices(op.dtypes, d_.dtypes.size(), who, "data type") &&
               indices(op.inputs, d_.tensors.size(), who, "tensor") &&
               indices(op.outputs, d_.tensors.size(), who, "tensor") && checks_.ok();
    }

    bool read_cores() {
        for (unsigned c = 0; c < size_of(from_->cores()); ++c) {
            const opstats::Core& from = *from_->cores()->Get(c);
            profiling::Core core;
            core.index = from.index();
            const std::string who = "core " + std::to_string(core.index);
            if (std::ranges::find(d_.cores, core.index, &profiling::Core::index) != d_.cores.end())
                return checks_.fail(who + " occurs twice");
            for (unsigned g = 0; g < size_of(from.groups()); ++g) {
                const opstats::Group& group = *from.groups()->Get(g);
                profiling::Group& to = core.groups.emplace_back();
                to.engine = group.engine();
                if (!index(to.engine, d_.engines.size(), who, "engine")) return false;
                to.ops.resize(size_of(group.ops()));
                for (unsigned i = 0; i < to.ops.size(); ++i)
                    if (!read_op(*group.ops()->Get(i), to.ops[i])) return false;
            }
            d_.cores.push_back(std::move(core));
        }
        return true;
    }

    bool read_edges() {
        for (unsigned i = 0; i < size_of(from_->edges()); ++i) {
            const opstats::Edge& e = *from_->edges()->Get(i);
            for (const uint32_t end : {e.from(), e.to()})
                if (!ids_.contains(end))
                    return checks_.fail("edge " + std::to_string(i) + " ends at operator " +
                                        std::to_string(end) + ", which does not exist");
            d_.edges.push_back({e.from(), e.to(), e.data()});
        }
        return true;
    }

    const Bytes bytes_;
    Checks checks_;
    const opstats::Descriptor* from_ = nullptr;
    Descriptor d_;
    std::unordered_set<uint32_t> ids_;
};

}  // namespace

Result<Descriptor> read_descriptor(Bytes bytes, const std::string& where) {
    return DescriptorReader(bytes, where).read();
}

Result<Descriptor> descriptor_of(const CompiledModel& model, const std::string& where) {
    const std::string* entry = model.find_file(profiling::descriptor_entry);
    if (!entry)
        return Error{ErrorCode::not_found, where + ": has no " + profiling::descriptor_entry +
                                               " (stats level " +
                                               std::to_string(model.stats_level) +
                                               "); compile it with --stats-level 40 or more"};
    return read_descriptor(as_bytes(*entry), where + ": " + profiling::descriptor_entry);
}

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
