// SPDX-License-Identifier: Apache-2.0
#include "lib/model/program.h"

#include <algorithm>
#include <array>
#include <limits>

#include <flatbuffers/flatbuffers.h>

#include "lib/base/checksum.h"
#include "lib/graph/onnxruntime.h"
#include "lib/graph/verify.h"
#include "lib/model/checks.h"
#include "lib/model/onnx_model.h"
#include "lib/model/vartml_program_generated.h"

namespace vartml::artifact {
namespace {

using program::Place;

constexpr size_t max_program_bytes = size_t{256} << 20;
constexpr uint64_t max_arena_bytes = uint64_t{1} << 40;
constexpr size_t max_rank = 8;
constexpr uint32_t opset = 22;

class ProgramReader {
public:
    ProgramReader(const ProgramSource& source, const CompiledModel& model, Partition& partition)
        : source_(source),
          model_(model),
          partition_(partition),
          graph_(partition.graph),
          checks_(source.where) {}

    Result<void> read() {
        if (!open() || !read_head() || !read_tensors() || !read_layers() || !read_operators() ||
            !check_writers() || !check_border())
            return checks_.error();
        if (auto r = graph::verify(graph_); !r) {
            checks_.fail(r.error().message);
            return checks_.error();
        }
        if (!check_engine()) return checks_.error();
        return {};
    }

private:
    bool open() {
        const Bytes bytes = source_.program;
        if (bytes.size() < 16 || bytes.size() > max_program_bytes)
            return checks_.fail("has " + std::to_string(bytes.size()) +
                                " bytes, expected 16 to 268435456");
        if (!program::SizePrefixedProgramBufferHasIdentifier(bytes.data()))
            return checks_.fail("is no program of vartml (its identifier is not 'VNP1')");
        flatbuffers::Verifier::Options options;
        options.max_depth = 16;
        options.max_tables = 4'000'000;
        flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
                                       options);
        if (!program::VerifySizePrefixedProgramBuffer(verifier))
            return checks_.fail(
                "is damaged (an offset in it leads outside); compile or copy it again");
        program_ = program::GetSizePrefixedProgram(bytes.data());
        return true;
    }

    bool same(std::string_view what, const std::string& found, const std::string& expected) {
        return found == expected || checks_.fail(std::string(what) + " is '" + found +
                                                 "', the manifest says '" + expected + "'");
    }

    bool read_head() {
        if (program_->format_major() != 1)
            return checks_.fail("program format " + std::to_string(program_->format_major()) +
                                    ", this libvartml reads 1; compile the model with this "
                                    "version's 'vartml compile'",
                                ErrorCode::unsupported);
        const std::string target = checks_.text(program_->target(), "the target");
        const std::string name = checks_.text(program_->partition(), "the partition's name");
        if (checks_.ok() && target != npu_target && target != cpu_target &&
            target != onnxruntime_target)
            return checks_.fail("is for target '" + target + "', this libvartml knows " +
                                    cpu_target + ", " + npu_target + " and " + onnxruntime_target +
                                    "; compile the model with this version's 'vartml compile'",
                                ErrorCode::unsupported);
        if (!checks_.ok() || !same("target", target, partition_.target) ||
            !same("partition", name, partition_.name) ||
            !same("batch size", std::to_string(program_->batch()),
                  std::to_string(model_.actual_batch_size)) ||
            !same("size of the weights", std::to_string(program_->weights_size()),
                  std::to_string(source_.weights.size())) ||
            !same("checksum of the weights", std::to_string(program_->weights_crc32c()),
                  std::to_string(source_.weights_crc32c)))
            return false;
        const uint32_t alignment = program_->arena_alignment();
        if (program_->arena_size() > max_arena_bytes || alignment == 0 ||
            (alignment & (alignment - 1)) != 0 || alignment > 65536)
            return checks_.fail("arena of " + std::to_string(program_->arena_size()) +
                                " bytes aligned to " + std::to_string(alignment) +
                                ", expected at most 2^40 and a power of two up to 65536");
        graph_.name = name;
        partition_.arena_size_bytes = program_->arena_size();
        return true;
    }

    bool read_tensors() {
        const size_t n = program_->tensors()->size();
        graph_.values.resize(n);
        places_.resize(n);
        partition_.arena_offsets.assign(n, 0);
        for (size_t i = 0; i < n; ++i)
            if (!read_tensor(i, *program_->tensors()->Get(static_cast<unsigned>(i)))) return false;
        return order_border(Place::Input, graph_.inputs) &&
               order_border(Place::Output, graph_.outputs);
    }

    bool read_tensor(size_t i, const program::Tensor& t) {
        graph::Value& value = graph_.values[i];
        value.name = checks_.text(t.name(), "the name of tensor " + std::to_string(i));
        if (!checks_.ok()) return false;
        const auto bad = [&](const std::string& what) {
            return checks_.fail("tensor '" + value.name + "' " + what);
        };
        if (t.data_type() == rai::DataType::Unknown || t.data_type() > rai::DataType::MAX)
            return bad("has data type " + std::to_string(static_cast<int>(t.data_type())) +
                       ", which does not exist");
        const auto type = static_cast<DataType>(t.data_type());
        const std::vector<uint32_t> shape = to_vector(t.shape());
        if (shape.size() > max_rank)
            return bad("has " + std::to_string(shape.size()) +
                       " dimensions, at most 8 are allowed");
        const auto bytes = checked_size_bytes(type, shape);
        if (!bytes || *bytes != t.size_in_bytes())
            return bad("is recorded with " + std::to_string(t.size_in_bytes()) + " bytes, " +
                       to_text(shape) + " of its type has " +
                       (bytes ? std::to_string(*bytes) : "more than 2^40"));
        if (!is_dense(shape, to_vector(t.strides())))
            return bad("has strides " + to_text(to_vector(t.strides())) + ", shape " +
                       to_text(shape) + " needs dense ones");
        if (t.layout() != rai::MemoryLayout::Generic || !is_identity(to_vector(t.order()), shape))
            return bad("is not in the plain layout, which is the only one of programs");
        value.type.data_type = type;
        value.type.shape.assign(shape.begin(), shape.end());
        value.data_dependent = t.data_dependent();
        places_[i] = t.place();
        return place(i, t, value);
    }

    static bool is_identity(const std::vector<uint32_t>& order,
                            const std::vector<uint32_t>& shape) {
        for (uint32_t i = 0; i < order.size(); ++i)
            if (order[i] != i) return false;
        return order.size() == shape.size();
    }

    bool place(size_t i, const program::Tensor& t, graph::Value& value) {
        const uint64_t offset = t.offset(), size = t.size_in_bytes();
        const auto outside = [&](const char* where, uint64_t limit) {
            return checks_.fail("tensor '" + value.name + "' lies at byte " +
                                std::to_string(offset) + " with " + std::to_string(size) +
                                " bytes, " + where + " has " + std::to_string(limit));
        };
        switch (t.place()) {
            case Place::Input:
                border_[0].emplace_back(offset, static_cast<int32_t>(i));
                return true;
            case Place::Output:
                border_[1].emplace_back(offset, static_cast<int32_t>(i));
                return true;
            case Place::Weight:
                if (offset % weight_alignment != 0)
                    return checks_.fail("tensor '" + value.name + "' lies at byte " +
                                        std::to_string(offset) +
                                        " of the weights, expected a multiple of 64");
                if (offset > source_.weights.size() || size > source_.weights.size() - offset)
                    return outside("the file of weights", source_.weights.size());
                value.constant =
                    graph::Constant{source_.weights.subspan(offset, size), source_.owner};
                return true;
            case Place::Arena:
                if (offset > program_->arena_size() || size > program_->arena_size() - offset)
                    return outside("the arena", program_->arena_size());
                partition_.arena_offsets[i] = offset;
                return true;
        }
        return checks_.fail("tensor '" + value.name + "' has place " +
                            std::to_string(static_cast<int>(t.place())) + ", which does not exist");
    }

    bool order_border(Place place, std::vector<graph::ValueId>& ids) {
        auto& border = border_[place == Place::Output];
        std::ranges::sort(border);
        for (size_t i = 0; i < border.size(); ++i) {
            if (border[i].first != i)
                return checks_.fail("inputs or outputs are not numbered from 0 without gaps, '" +
                                    graph_.value(border[i].second).name + "' has number " +
                                    std::to_string(border[i].first));
            ids.push_back(border[i].second);
        }
        return true;
    }

    bool read_layers() {
        for (size_t i = 0; i < size_of(program_->layers()); ++i) {
            const program::Layer& l = *program_->layers()->Get(static_cast<unsigned>(i));
            partition_.layers.push_back({checks_.text(l.name(), "the name of a layer"),
                                         l.start_cycle(), l.end_cycle(), l.ops(), l.bytes_read(),
                                         l.bytes_written()});
        }
        return checks_.ok();
    }

    bool read_operators() {
        written_.assign(graph_.values.size(), false);
        for (const program::Operator* o : *program_->operators())
            if (!read_operator(*o)) return false;
        // A program without a schedule is read back as it was written.
        if (std::ranges::all_of(partition_.node_layers, [](int32_t l) { return l == -1; }))
            partition_.node_layers.clear();
        return true;
    }

    bool in_range(int32_t id) const {
        return id >= 0 && static_cast<size_t>(id) < graph_.values.size();
    }

    bool read_operator(const program::Operator& o) {
        graph::Node node;
        node.kind = checks_.text(o.kind(), "the kind of an operator");
        node.domain = checks_.text(o.domain(), "the domain of an operator");
        node.inputs = to_vector(o.inputs());
        node.outputs = to_vector(o.outputs());
        for (const flatbuffers::String* s : *o.sources())
            node.sources.push_back(checks_.text(s, "the source of an operator"));
        if (!checks_.ok()) return false;
        const std::string what =
            "operator " + std::to_string(graph_.nodes.size()) + " (" + node.kind + ")";
        for (const int32_t id : node.inputs)
            if (id != graph::none && !(in_range(id) && is_known(id)))
                return checks_.fail(what + " reads tensor " + std::to_string(id) +
                                    ", which does not exist or is not written before");
        for (const int32_t id : node.outputs) {
            if (id == graph::none) continue;
            if (!in_range(id) || !is_writable(id))
                return checks_.fail(what + " writes tensor " + std::to_string(id) +
                                    ", which does not exist, is an input or a weight, or is "
                                    "written already");
            written_[static_cast<size_t>(id)] = true;
        }
        if (o.version() != (node.domain.empty() ? opset : 1))
            return checks_.fail(what + " is of operator set " + std::to_string(o.version()) +
                                    ", this libvartml runs " +
                                    std::to_string(node.domain.empty() ? opset : 1),
                                ErrorCode::unsupported);
        node.name = o.name() ? checks_.text(o.name(), "the name of an operator")
                    : node.outputs.empty() || node.outputs[0] == graph::none
                        ? std::string()
                        : graph_.value(node.outputs[0]).name;
        if (!read_attributes(o, what, node)) return false;
        graph::take_apart(node);
        const int32_t layer = o.layer();
        if (layer < -1 || layer >= static_cast<int32_t>(partition_.layers.size()))
            return checks_.fail(what + " is of layer " + std::to_string(layer) + ", there are " +
                                std::to_string(partition_.layers.size()));
        partition_.node_layers.push_back(layer);
        graph_.nodes.push_back(std::move(node));
        return checks_.ok();
    }

    bool is_known(int32_t id) const {
        const Place place = places_[static_cast<size_t>(id)];
        return place == Place::Input || place == Place::Weight || written_[static_cast<size_t>(id)];
    }
    bool is_writable(int32_t id) const {
        const Place place = places_[static_cast<size_t>(id)];
        return (place == Place::Output || place == Place::Arena) &&
               !written_[static_cast<size_t>(id)];
    }

    bool read_attributes(const program::Operator& o, const std::string& what, graph::Node& node) {
        for (size_t i = 0; i < size_of(o.attributes()); ++i) {
            const program::Attribute& a = *o.attributes()->Get(static_cast<unsigned>(i));
            const std::string key = checks_.text(a.name(), "the name of an attribute");
            auto value = read_attribute(a);
            if (!value)
                return checks_.fail(what + ": attribute '" + key + "' has kind " +
                                    std::to_string(static_cast<int>(a.kind())) +
                                    ", which this libvartml does not use");
            if (!is_in_range(*value))
                return checks_.fail(what + ": attribute '" + key +
                                    "' holds a number outside of -2^31 to 2^31-1");
            if (!node.attributes.emplace(key, std::move(*value)).second)
                return checks_.fail(what + ": attribute '" + key + "' occurs twice");
        }
        return checks_.ok();
    }

    // Sizes, axes and counts are small; shape inference multiplies and adds them.
    static bool is_in_range(const graph::Attribute& value) {
        const auto ok = [](int64_t i) { return i == static_cast<int32_t>(i); };
        if (const auto* i = std::get_if<int64_t>(&value)) return ok(*i);
        if (const auto* is = std::get_if<std::vector<int64_t>>(&value))
            return std::ranges::all_of(*is, ok);
        return true;
    }

    std::optional<graph::Attribute> read_attribute(const program::Attribute& a) {
        using program::AttributeKind;
        switch (a.kind()) {
            case AttributeKind::Int:
                return a.i();
            case AttributeKind::Float:
                return a.f();
            case AttributeKind::String:
                return checks_.text(a.s(), "an attribute");
            case AttributeKind::Ints:
                return to_vector(a.ints());
            case AttributeKind::Floats:
                return to_vector(a.floats());
            case AttributeKind::Strings: {
                graph::Strings texts;
                for (size_t i = 0; i < size_of(a.strings()); ++i)
                    texts.push_back(
                        checks_.text(a.strings()->Get(static_cast<unsigned>(i)), "an attribute"));
                return texts;
            }
            case AttributeKind::Tensor:
                break;
        }
        return std::nullopt;
    }

    bool check_writers() {
        for (size_t i = 0; i < written_.size(); ++i)
            if (!written_[i] && !is_known(static_cast<int32_t>(i)))
                return checks_.fail("tensor '" + graph_.values[i].name +
                                    "' is written by no operator");
        return true;
    }

    // The program and the manifest must mean the same tensors.
    bool check_border() {
        return check_border("input", graph_.inputs, partition_.inputs) &&
               check_border("output", graph_.outputs, partition_.outputs);
    }

    bool check_border(const char* direction, const std::vector<graph::ValueId>& ids,
                      const std::vector<TensorInfo>& infos) {
        if (ids.size() != infos.size())
            return checks_.fail("has " + std::to_string(ids.size()) + ' ' + direction +
                                "s, the manifest says " + std::to_string(infos.size()));
        for (size_t i = 0; i < ids.size(); ++i) {
            const graph::Value& value = graph_.value(ids[i]);
            const TensorInfo& info = infos[i];
            std::vector<uint32_t> shape(value.type.shape.begin(), value.type.shape.end());
            if (shape.empty()) shape = {1};  // rank 0 is shown as [1]
            const bool same_type = value.type.data_type == info.cpu.data_type ||
                                   (info.hw && value.type.data_type == info.hw->data_type);
            if (value.name != info.name || shape != info.cpu.shape || !same_type)
                return checks_.fail(
                    std::string(direction) + ' ' + std::to_string(i) + " is '" + value.name + "' " +
                    graph::to_string(value.type) + ", the manifest says '" + info.name + "' " +
                    std::string(to_string(info.cpu.data_type)) + to_text(info.cpu.shape));
            // Its rows are copied as they are.
            if (value.data_dependent &&
                (value.type.data_type != info.cpu.data_type || (info.hw && *info.hw != info.cpu)))
                return checks_.fail(std::string(direction) + " '" + value.name +
                                    "' has a shape that depends on the data and a HW view that is "
                                    "not its CPU view; compile the model again");
        }
        return true;
    }

    // Models for ONNX Runtime are in its partitions alone, and name no file.
    bool check_engine() {
        const bool is_its = partition_.target == onnxruntime_target;
        for (const graph::Node& node : graph_.nodes) {
            if (graph::is_onnxruntime(node) != is_its)
                return checks_.fail("has node '" + node.name + "' (" + node.type() +
                                    ") in a program for " + partition_.target +
                                    "; compile the model again");
            if (!is_its) continue;
            if (const auto fault =
                    fault_of_onnx_model(graph_.value(node.inputs[0]).constant->bytes))
                return checks_.fail("node '" + node.name + "' has a model for ONNX Runtime that " +
                                    *fault + "; compile the model again");
        }
        return true;
    }

    const ProgramSource& source_;
    const CompiledModel& model_;
    Partition& partition_;
    graph::Graph& graph_;
    Checks checks_;
    const program::Program* program_ = nullptr;
    std::vector<Place> places_;
    std::vector<bool> written_;
    std::vector<std::pair<uint64_t, int32_t>> border_[2];  // number and value of inputs, outputs
};

}  // namespace

Result<void> read_program(const ProgramSource& source, const CompiledModel& model,
                          Partition& partition) {
    return ProgramReader(source, model, partition).read();
}

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using program::Place;

constexpr std::array<std::byte, weight_alignment> zeros{};

class ProgramWriter {
public:
    ProgramWriter(const CompiledModel& model, const Partition& partition)
        : model_(model), partition_(partition), graph_(partition.graph) {}

    Result<WrittenProgram> write() {
        if (auto r = graph::verify(graph_); !r) return fault(r.error().message);
        if (auto r = place_values(); !r) return r.error();
        std::vector<Offset<program::Tensor>> tensors;
        for (size_t i = 0; i < graph_.values.size(); ++i) {
            auto tensor = write_tensor(i);
            if (!tensor) return tensor.error();
            tensors.push_back(*tensor);
        }
        std::vector<Offset<program::Operator>> operators;
        for (size_t i = 0; i < graph_.nodes.size(); ++i) operators.push_back(write_operator(i));
        std::vector<Offset<program::Layer>> layers;
        for (const Layer& l : partition_.layers)
            layers.push_back(program::CreateLayer(fbb_, fbb_.CreateString(l.name), l.start_cycle,
                                                  l.end_cycle, l.ops, l.bytes_read,
                                                  l.bytes_written));
        const auto target = fbb_.CreateString(partition_.target);
        const auto name = fbb_.CreateString(partition_.name);
        const auto tensors_at = fbb_.CreateVector(tensors);
        const auto operators_at = fbb_.CreateVector(operators);
        const auto layers_at = layers.empty() ? 0 : fbb_.CreateVector(layers);
        program::ProgramBuilder b(fbb_);
        b.add_target(target);
        b.add_partition(name);
        b.add_batch(model_.actual_batch_size);
        b.add_stats_level(model_.stats_level);
        b.add_arena_size(partition_.arena_size_bytes);
        b.add_weights_size(out_.weights_size);
        b.add_weights_crc32c(out_.weights_crc32c);
        b.add_tensors(tensors_at);
        b.add_operators(operators_at);
        b.add_layers(layers_at);
        program::FinishSizePrefixedProgramBuffer(fbb_, b.Finish());
        out_.bytes.assign(reinterpret_cast<const char*>(fbb_.GetBufferPointer()), fbb_.GetSize());
        return std::move(out_);
    }

private:
    Error fault(const std::string& what) const {
        return {ErrorCode::internal, "partition '" + partition_.name + "': " + what};
    }

    // Where each value lives; constants also get their place in the weights.
    Result<void> place_values() {
        const size_t n = graph_.values.size();
        if (partition_.arena_offsets.size() != n)
            return fault("has " + std::to_string(partition_.arena_offsets.size()) +
                         " arena offsets for " + std::to_string(n) + " values");
        if (!partition_.node_layers.empty() && partition_.node_layers.size() != graph_.nodes.size())
            return fault("has layer numbers for " + std::to_string(partition_.node_layers.size()) +
                         " of " + std::to_string(graph_.nodes.size()) + " nodes");
        places_.assign(n, Place::Arena);
        offsets_ = partition_.arena_offsets;
        for (size_t i = 0; i < n; ++i)
            if (graph_.values[i].constant) place_weight(i);
        for (size_t i = 0; i < graph_.inputs.size(); ++i) set(graph_.inputs[i], Place::Input, i);
        for (size_t i = 0; i < graph_.outputs.size(); ++i) {
            // The format has one place per tensor; the compiler puts an Identity in between.
            if (places_[static_cast<size_t>(graph_.outputs[i])] != Place::Arena)
                return fault("output '" + graph_.value(graph_.outputs[i]).name +
                             "' is also an input, a constant or another output; an Identity node "
                             "must come before it");
            set(graph_.outputs[i], Place::Output, i);
        }
        return {};
    }

    void set(graph::ValueId id, Place place, size_t index) {
        places_[static_cast<size_t>(id)] = place;
        offsets_[static_cast<size_t>(id)] = index;
    }

    void add_weights(Bytes bytes) {
        if (bytes.empty()) return;
        out_.weights.push_back(bytes);
        out_.weights_size += bytes.size();
        out_.weights_crc32c = crc32c(bytes, out_.weights_crc32c);
    }

    void place_weight(size_t i) {
        add_weights(Bytes(zeros).first((0 - out_.weights_size) % weight_alignment));
        places_[i] = Place::Weight;
        offsets_[i] = out_.weights_size;
        add_weights(graph_.values[i].constant->bytes);
    }

    Result<Offset<program::Tensor>> write_tensor(size_t i) {
        const graph::Value& value = graph_.values[i];
        std::vector<uint32_t> shape, strides(value.type.shape.size()), order;
        for (const int64_t size : value.type.shape) {
            if (size > std::numeric_limits<uint32_t>::max())
                return fault("value '" + value.name + "' is " + graph::to_string(value.type) +
                             ", a dimension may have 4294967295 elements");
            order.push_back(static_cast<uint32_t>(shape.size()));
            shape.push_back(static_cast<uint32_t>(size));
        }
        uint64_t stride = 1;
        for (size_t d = shape.size(); d-- > 0;) {
            strides[d] = static_cast<uint32_t>(stride);
            if (stride > std::numeric_limits<uint32_t>::max() ||
                !checked_size_bytes(value.type.data_type, shape))
                return fault("value '" + value.name + "' is " + graph::to_string(value.type) +
                             ", which is too large");
            stride *= shape[d];
        }
        const auto name = fbb_.CreateString(value.name);
        const auto order_at = fbb_.CreateVector(order);
        const auto shape_at = fbb_.CreateVector(shape);
        const auto strides_at = fbb_.CreateVector(strides);
        program::TensorBuilder b(fbb_);
        b.add_name(name);
        b.add_data_type(static_cast<rai::DataType>(value.type.data_type));
        b.add_layout(rai::MemoryLayout::Generic);
        b.add_order(order_at);
        b.add_shape(shape_at);
        b.add_strides(strides_at);
        b.add_data_dependent(value.data_dependent);
        b.add_place(places_[i]);
        b.add_offset(offsets_[i]);
        b.add_size_in_bytes(value.type.size_bytes());
        return b.Finish();
    }

    Offset<program::Attribute> write_attribute(const std::string& key,
                                               const graph::Attribute& attribute) {
        const auto name = fbb_.CreateString(key);
        const auto finish = [&](program::AttributeKind kind, auto add) {
            program::AttributeBuilder b(fbb_);
            b.add_name(name);
            b.add_kind(kind);
            add(b);
            return b.Finish();
        };
        using program::AttributeKind;
        if (const auto* i = std::get_if<int64_t>(&attribute))
            return finish(AttributeKind::Int, [&](auto& b) { b.add_i(*i); });
        if (const auto* f = std::get_if<float>(&attribute))
            return finish(AttributeKind::Float, [&](auto& b) { b.add_f(*f); });
        if (const auto* s = std::get_if<std::string>(&attribute)) {
            const auto at = fbb_.CreateString(*s);
            return finish(AttributeKind::String, [&](auto& b) { b.add_s(at); });
        }
        if (const auto* is = std::get_if<std::vector<int64_t>>(&attribute)) {
            const auto at = fbb_.CreateVector(*is);
            return finish(AttributeKind::Ints, [&](auto& b) { b.add_ints(at); });
        }
        if (const auto* fs = std::get_if<std::vector<float>>(&attribute)) {
            const auto at = fbb_.CreateVector(*fs);
            return finish(AttributeKind::Floats, [&](auto& b) { b.add_floats(at); });
        }
        const auto at = fbb_.CreateVectorOfStrings(std::get<graph::Strings>(attribute));
        return finish(AttributeKind::Strings, [&](auto& b) { b.add_strings(at); });
    }

    Offset<program::Operator> write_operator(size_t i) {
        const graph::Node& node = graph_.nodes[i];
        const auto first = node.outputs.empty() || node.outputs[0] == graph::none
                               ? std::string_view()
                               : std::string_view(graph_.value(node.outputs[0]).name);
        const auto kind = fbb_.CreateString(node.type());
        const auto domain = node.domain.empty() ? 0 : fbb_.CreateString(node.domain);
        const auto name = node.name == first ? 0 : fbb_.CreateString(node.name);
        const auto sources = fbb_.CreateVectorOfStrings(node.sources);
        const auto inputs = fbb_.CreateVector(node.inputs);
        const auto outputs = fbb_.CreateVector(node.outputs);
        std::vector<Offset<program::Attribute>> attributes;
        for (const auto& [key, attribute] : written_attributes(node))
            attributes.push_back(write_attribute(key, attribute));
        const auto attributes_at = attributes.empty() ? 0 : fbb_.CreateVector(attributes);
        program::OperatorBuilder b(fbb_);
        b.add_kind(kind);
        b.add_domain(domain);
        b.add_version(node.domain.empty() ? opset : 1);
        b.add_sources(sources);
        b.add_inputs(inputs);
        b.add_outputs(outputs);
        b.add_attributes(attributes_at);
        b.add_layer(partition_.node_layers.empty() ? -1 : partition_.node_layers[i]);
        b.add_name(name);
        return b.Finish();
    }

    const CompiledModel& model_;
    const Partition& partition_;
    const graph::Graph& graph_;
    FlatBufferBuilder fbb_;
    std::vector<Place> places_;
    std::vector<uint64_t> offsets_;
    WrittenProgram out_;
};

}  // namespace

Result<WrittenProgram> write_program(const CompiledModel& model, const Partition& partition) {
    return ProgramWriter(model, partition).write();
}

}  // namespace vartml::artifact
