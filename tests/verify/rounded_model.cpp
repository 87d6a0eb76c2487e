// SPDX-License-Identifier: Apache-2.0
#include "tests/verify/rounded_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/shape_inference/implementation.h>
#pragma GCC diagnostic pop

namespace vartml::test {
namespace {

namespace pb = onnx::pb;
using Type = pb::TensorProto;

// The first operator set whose Cast knows bf16.
constexpr int64_t cast_has_bf16 = 13;

// Inputs that are parameters: rounding them would change what is computed, not how precisely.
struct Parameters {
    std::string_view op;
    std::set<int> inputs;
};
const Parameters parameters[] = {
    {"Resize", {1, 2, 3}},
    {"Upsample", {1}},
    {"QuantizeLinear", {1, 2}},
    {"DequantizeLinear", {1, 2}},
    {"QLinearConv", {1, 2, 4, 5, 6, 7}},
    {"QLinearMatMul", {1, 2, 4, 5, 6, 7}},
    {"NonMaxSuppression", {2, 3, 4}},
    {"Range", {0, 1, 2}},
    {"Clip", {1, 2}},  // often the largest number there is
    {"Pad", {2}},
};

bool is_parameter(const pb::NodeProto& node, int input) {
    const auto row = std::ranges::find(parameters, node.op_type(), &Parameters::op);
    return row != std::end(parameters) && row->inputs.contains(input);
}

// Of ONNX, or what ONNX Runtime's optimisation makes of several of those.
bool is_own(const pb::NodeProto& node) {
    return node.domain().empty() || node.domain() == "ai.onnx" ||
           node.op_type().starts_with("Fused");
}

class Rounding {
public:
    explicit Rounding(pb::ModelProto& model) : model_(model), graph_(*model.mutable_graph()) {
        for (const auto& set : model.opset_import())
            if (set.domain().empty() || set.domain() == "ai.onnx") opset_ = set.version();
        find_types();
        find_fixed();
    }

    void run() {
        const std::vector<pb::NodeProto> nodes(graph_.node().begin(), graph_.node().end());
        graph_.clear_node();
        if (opset_ < cast_has_bf16) add_factor();
        for (const auto& input : graph_.input())
            if (!fixed_.contains(input.name())) inputs_.insert(input.name());
        for (const pb::NodeProto& from : nodes) add(from);
    }

private:
    void find_types() {
        pb::ModelProto inferred = model_;
        for (const pb::NodeProto& node : graph_.node()) {
            if (!node.op_type().starts_with("Fused")) continue;  // ONNX does not know their types
            auto& info = *inferred.mutable_graph()->add_value_info();
            info.set_name(node.output(0));
            info.mutable_type()->mutable_tensor_type()->set_elem_type(Type::FLOAT);
        }
        ::onnx::shape_inference::InferShapes(inferred);
        const auto note = [&](const auto& infos) {
            for (const auto& info : infos)
                types_[info.name()] = info.type().tensor_type().elem_type();
        };
        note(inferred.graph().value_info());
        note(inferred.graph().input());
        note(inferred.graph().output());
        for (const auto& tensor : graph_.initializer()) types_[tensor.name()] = tensor.data_type();
    }

    // What is the same for every input of these shapes.
    void find_fixed() {
        for (const auto& tensor : graph_.initializer()) fixed_.insert(tensor.name());
        for (const pb::NodeProto& node : graph_.node()) {
            const auto is_fixed = [this](const std::string& name) {
                return name.empty() || fixed_.contains(name);
            };
            const bool tells_shape = node.op_type() == "Shape" || node.op_type() == "Size";
            if (!tells_shape && !std::ranges::all_of(node.input(), is_fixed)) continue;
            if (node.op_type().starts_with("Random")) continue;
            fixed_.insert(node.output().begin(), node.output().end());
        }
    }

    bool rounds(const std::string& name) const {
        const auto type = types_.find(name);
        if (type == types_.end()) return false;
        return type->second == Type::FLOAT ||
               (type->second == Type::FLOAT16 && opset_ >= cast_has_bf16);
    }

    void add_factor() {
        auto* factor = graph_.add_initializer();
        factor->set_name("bf16/factor");
        factor->set_data_type(Type::FLOAT);
        factor->add_float_data(65537);
    }

    pb::NodeProto& add_node(const char* op, const std::vector<std::string>& inputs,
                            const std::string& output) {
        pb::NodeProto& node = *graph_.add_node();
        node.set_op_type(op);
        for (const std::string& input : inputs) node.add_input(input);
        node.add_output(output);
        return node;
    }

    void add_cast(const std::string& from, const std::string& to, int type) {
        auto& attribute = *add_node("Cast", {from}, to).add_attribute();
        attribute.set_name("to");
        attribute.set_type(pb::AttributeProto::INT);
        attribute.set_i(type);
    }

    void add_rounding(const std::string& from, const std::string& to) {
        const int type = types_.at(from.ends_with("/f32") ? to : from);
        if (opset_ >= cast_has_bf16) {
            add_cast(from, to + "/bf16", Type::BFLOAT16);
            add_cast(to + "/bf16", to, type);
            return;
        }
        // Older sets: x·(2^16 + 1) takes the low 16 bits out of the difference (Veltkamp).
        add_node("Mul", {from, "bf16/factor"}, to + "/large");
        add_node("Sub", {to + "/large", from}, to + "/low");
        add_node("Sub", {to + "/large", to + "/low"}, to);
    }

    // The name under which a node reads a tensor.
    std::string read_as(const pb::NodeProto& node, int input) {
        const std::string& name = node.input(input);
        const bool made_here = !fixed_.contains(name) && !inputs_.contains(name);
        if (made_here || !rounds(name) || is_parameter(node, input) || !is_own(node)) return name;
        const std::string rounded = name + "/rounded";
        if (there_.insert(rounded).second) add_rounding(name, rounded);
        return rounded;
    }

    void add(const pb::NodeProto& from) {
        const bool is_fixed = !from.output().empty() && fixed_.contains(from.output(0));
        pb::NodeProto node = from;
        if (!is_fixed)
            for (int i = 0; i < node.input_size(); ++i)
                if (!node.input(i).empty()) node.set_input(i, read_as(from, i));
        std::vector<std::string> round;
        for (std::string& name : *node.mutable_output()) {
            if (is_fixed || name.empty() || !rounds(name) || !is_own(node)) continue;
            round.push_back(name);
            name += "/f32";
        }
        *graph_.add_node() = std::move(node);
        for (const std::string& name : round) add_rounding(name + "/f32", name);
    }

    pb::ModelProto& model_;
    pb::GraphProto& graph_;
    int64_t opset_ = 1;
    std::map<std::string, int> types_;
    std::set<std::string> fixed_, inputs_, there_;
};

}  // namespace

void round_to_bf16(onnx::pb::ModelProto& model) {
    Rounding(model).run();
}

}  // namespace vartml::test
