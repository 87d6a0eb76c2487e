// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz_graphs/evaluate.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "lib/compile/onnx/import.h"
#include "lib/graph/fold.h"
#include "lib/graph/ops.h"
#include "tests/fuzz_graphs/random.h"

namespace vartml::fuzz_graphs {
namespace {

using graph::Trait;

constexpr double allowed_changes = 6;

// The node alone, its operands as initialisers.
pb::ModelProto alone(const pb::ModelProto& frame, const pb::NodeProto& node, const Values& values) {
    pb::ModelProto model;
    model.set_ir_version(frame.ir_version());
    *model.mutable_opset_import() = frame.opset_import();
    pb::GraphProto& graph = *model.mutable_graph();
    graph.set_name("alone");
    *graph.add_node() = node;
    std::set<std::string> added;
    for (const std::string& name : node.input())
        if (!name.empty() && added.insert(name).second)
            *graph.add_initializer() = to_proto(name, values.at(name));
    for (const std::string& name : node.output()) {
        if (name.empty()) continue;
        auto* output = graph.add_output();
        output->set_name(name);
        output->mutable_type()->mutable_tensor_type();
    }
    return model;
}

Result<void> compute(graph::Graph& graph) {
    for (const graph::Node& node : graph.nodes) {
        std::vector<Ints> shapes;
        const auto constants = cpu::evaluate(graph, node, &shapes);
        if (!constants) return constants.error();
        for (size_t i = 0; i < node.outputs.size(); ++i) {
            if (node.outputs[i] == graph::none) continue;
            graph::Value& value = graph.value(node.outputs[i]);
            value.constant = (*constants)[i];
            if (i < shapes.size()) value.type.shape = shapes[i];
        }
    }
    return {};
}

// ---- how far a right result may be

// Elements of one operand, and nothing else.
bool only_moves(const pb::NodeProto& node) {
    static const std::set<std::string> others = {
        "GatherElements", "GatherND",        "ReverseSequence", "Pad",    "Concat", "Where",
        "Compress",       "CenterCropPad",   "Trilu",           "Shape",  "Size",   "MaxPool",
        "GlobalMaxPool",  "ScatterElements", "ScatterND",       "Scatter"};
    if (others.contains(node.op_type())) {
        // Scatter adds, where it is told to.
        return std::ranges::none_of(node.attribute(),
                                    [](const auto& a) { return a.name() == "reduction"; });
    }
    return graph::has_trait(node.op_type(), Trait::reshapes | Trait::permutes | Trait::picks) ||
           graph::has_trait(node.op_type(), Trait::repeats);
}

// Operands that say how, not what: what the table has as an attribute, scales and zero points.
bool is_parameter(const pb::NodeProto& node, int input) {
    if (const graph::OpInfo* op = graph::find_onnx_op(node.op_type()))
        for (const graph::AttributeRule& rule : graph::attribute_rules(*op))
            if (rule.input == input) return true;
    return false;
}

double unit_of(DataType type, Precision precision) {
    const double least = precision == Precision::bf16 ? 0x1p-8 : 0x1p-21;
    if (type == DataType::fp16) return std::max(least, 0x1p-10);
    if (type == DataType::bf16) return 0x1p-7;
    return least;
}

class Noisy {
public:
    Noisy(const Model& model, Precision precision, double wider, uint64_t seed)
        : model_(model), precision_(precision), wider_(wider), random_(seed) {
        for (const auto& tensor : model.proto.graph().initializer())
            values_[tensor.name()] = from_proto(tensor);
        for (const NamedTensor& input : model.feed) values_[input.name] = input.data;
    }

    Result<void> run(const std::string& scratch) {
        for (const auto& node : model_.proto.graph().node()) {
            Values read;
            bool computed = false;
            const bool exact = precision_ == Precision::f32 && only_moves(node);
            for (int i = 0; i < node.input_size(); ++i) {
                const std::string& name = node.input(i);
                if (name.empty()) continue;
                TensorData data = values_.at(name);
                computed = computed || computed_.contains(name);
                if (verify::is_float(data.type) && !exact && !is_parameter(node, i)) {
                    shake(data);
                    computed = true;
                }
                read[name] = std::move(data);
            }
            auto outputs = evaluate(model_.proto, node, read, scratch);
            if (!outputs) return outputs.error();
            size_t next = 0;
            for (const std::string& name : node.output()) {
                if (name.empty()) continue;
                values_[name] = std::move((*outputs)[next++]);
                if (computed) computed_.insert(name);
            }
        }
        return {};
    }
    const TensorData& value(const std::string& name) const { return values_.at(name); }
    bool is_computed(const std::string& name) const { return computed_.contains(name); }

private:
    void shake(TensorData& data) {
        std::vector<double> numbers = all_numbers(data);
        const double unit = unit_of(data.type, precision_) * wider_;
        for (double& n : numbers) n *= 1 + unit * random_.real(-1, 1);
        data = tensor_of(data.type, data.shape, numbers);
    }

    const Model& model_;
    Precision precision_;
    double wider_;
    Random random_;
    Values values_;
    std::set<std::string> computed_;
};

}  // namespace

Result<std::vector<TensorData>> evaluate(const pb::ModelProto& frame, const pb::NodeProto& node,
                                         const Values& values, const std::string& scratch) {
    {
        std::ofstream file(scratch, std::ios::binary);
        alone(frame, node, values).SerializeToOstream(&file);
    }
    auto imported = onnx::import_onnx(scratch);
    if (!imported) return imported.error();
    if (auto done = compute(imported->graph); !done) return done.error();
    std::vector<TensorData> outputs;
    for (const graph::ValueId id : imported->graph.outputs) {
        const graph::Value& value = imported->graph.value(id);
        if (!value.constant) return Error{ErrorCode::internal, "'" + value.name + "' has no value"};
        const auto bytes = value.constant->bytes;
        outputs.push_back({value.type.data_type, value.type.shape, {bytes.begin(), bytes.end()}});
    }
    return outputs;
}

Result<Reference> evaluate(const Model& model, const std::string& scratch) {
    Reference reference;
    for (const auto& tensor : model.proto.graph().initializer())
        reference.values[tensor.name()] = from_proto(tensor);
    for (const NamedTensor& input : model.feed) reference.values[input.name] = input.data;
    for (const auto& node : model.proto.graph().node()) {
        auto outputs = evaluate(model.proto, node, reference.values, scratch);
        if (!outputs) return outputs.error();
        size_t next = 0;
        for (const std::string& name : node.output())
            if (!name.empty()) reference.values[name] = std::move((*outputs)[next++]);
    }
    return reference;
}

Result<void> find_tolerances(const Model& model, Precision precision, int trials, double wider,
                             const std::string& scratch, Reference& reference) {
    for (const auto& output : model.proto.graph().output()) reference.tolerance[output.name()] = 0;
    for (int trial = 0; trial < trials; ++trial) {
        Noisy noisy(model, precision, wider, static_cast<uint64_t>(trial) + 1);
        if (auto done = noisy.run(scratch); !done) return done.error();
        for (auto& [name, tolerance] : reference.tolerance) {
            const TensorData& plain = reference.values.at(name);
            const TensorData& other = noisy.value(name);
            if (!noisy.is_computed(name)) continue;
            if (plain.shape != other.shape) {  // a choice by the data
                tolerance = INFINITY;
                continue;
            }
            const auto a = all_numbers(plain), b = all_numbers(other);
            double largest = 0, change = 0;
            for (size_t i = 0; i < a.size(); ++i) {
                if (std::isfinite(a[i])) largest = std::max(largest, std::fabs(a[i]));
                const double d = std::fabs(a[i] - b[i]);
                change = std::max(change, std::isnan(d) && !(std::isnan(a[i]) && std::isnan(b[i]))
                                              ? INFINITY
                                              : d);
            }
            double allowed = allowed_changes * change;
            if (verify::is_float(plain.type))
                allowed = std::max(allowed, 2 * unit_of(plain.type, precision) * largest);
            tolerance = std::max(tolerance, allowed);
        }
    }
    return {};
}

}  // namespace vartml::fuzz_graphs
