// SPDX-License-Identifier: Apache-2.0
#include <flatbuffers/flatbuffers.h>

#include <array>
#include <limits>

#include "lib/artifact/checks.h"
#include "lib/artifact/program.h"
#include "lib/artifact/vartml_program_generated.h"
#include "lib/common/crc32c.h"
#include "lib/graph/verify.h"

namespace vartml::artifact {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using program::Place;

constexpr std::array<std::byte, weight_alignment> zeros{};

// Canonical operators follow this set; those of other domains have one version each.
constexpr uint32_t opset = 22;

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
        const auto at = fbb_.CreateVectorOfStrings(std::get<std::vector<std::string>>(attribute));
        return finish(AttributeKind::Strings, [&](auto& b) { b.add_strings(at); });
    }

    Offset<program::Operator> write_operator(size_t i) {
        const graph::Node& node = graph_.nodes[i];
        const auto first = node.outputs.empty() || node.outputs[0] == graph::none
                               ? std::string_view()
                               : std::string_view(graph_.value(node.outputs[0]).name);
        const auto kind = fbb_.CreateString(node.kind);
        const auto domain = node.domain.empty() ? 0 : fbb_.CreateString(node.domain);
        const auto name = node.name == first ? 0 : fbb_.CreateString(node.name);
        const auto sources = fbb_.CreateVectorOfStrings(node.sources);
        const auto inputs = fbb_.CreateVector(node.inputs);
        const auto outputs = fbb_.CreateVector(node.outputs);
        std::vector<Offset<program::Attribute>> attributes;
        for (const auto& [key, attribute] : node.attributes)
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
