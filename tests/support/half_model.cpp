// SPDX-License-Identifier: Apache-2.0
#include "tests/support/half_model.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace vartml::test {
namespace {

namespace pb = ::onnx;

std::vector<float> floats_of(const pb::TensorProto& tensor) {
    if (tensor.raw_data().empty()) return {tensor.float_data().begin(), tensor.float_data().end()};
    std::vector<float> values(tensor.raw_data().size() / sizeof(float));
    std::memcpy(values.data(), tensor.raw_data().data(), values.size() * sizeof(float));
    return values;
}

void halve(pb::TensorProto& tensor) {
    if (tensor.data_type() != pb::TensorProto::FLOAT) return;
    std::string bytes;
    for (const float value : floats_of(tensor)) {
        const auto half = static_cast<_Float16>(std::clamp(value, -65504.0F, 65504.0F));
        bytes.append(reinterpret_cast<const char*>(&half), sizeof half);
    }
    tensor.set_data_type(pb::TensorProto::FLOAT16);
    tensor.clear_float_data();
    tensor.set_raw_data(bytes);
}

void round_to_half(pb::TensorProto& tensor) {
    if (tensor.data_type() != pb::TensorProto::FLOAT) return;
    std::string bytes;
    for (const float value : floats_of(tensor)) {
        const auto rounded =
            static_cast<float>(static_cast<_Float16>(std::clamp(value, -65504.0F, 65504.0F)));
        bytes.append(reinterpret_cast<const char*>(&rounded), sizeof rounded);
    }
    tensor.clear_float_data();
    tensor.set_raw_data(bytes);
}

// Inputs that ONNX has in float only.
std::vector<int> float_inputs(const pb::NodeProto& node) {
    if (node.op_type() == "Resize") return {1, 2};
    if (node.op_type() == "Upsample") return {1};
    if (node.op_type() == "NonMaxSuppression") return {0, 1, 3, 4};
    return {};
}

void halve_attributes(pb::NodeProto& node) {
    for (auto& attribute : *node.mutable_attribute()) {
        if (attribute.has_t()) halve(*attribute.mutable_t());
        if (node.op_type() == "Cast" && attribute.name() == "to" &&
            attribute.i() == pb::TensorProto::FLOAT)
            attribute.set_i(pb::TensorProto::FLOAT16);
        if (node.op_type() == "Constant" && attribute.name().starts_with("value_float")) {
            pb::TensorProto tensor;
            tensor.set_data_type(pb::TensorProto::FLOAT);
            if (attribute.name() == "value_float") {
                tensor.add_float_data(attribute.f());
            } else {
                tensor.add_dims(attribute.floats_size());
                for (const float f : attribute.floats()) tensor.add_float_data(f);
            }
            halve(tensor);
            attribute.Clear();
            attribute.set_name("value");
            attribute.set_type(pb::AttributeProto::TENSOR);
            *attribute.mutable_t() = tensor;
        }
    }
    if (node.op_type() != "ConstantOfShape" || node.attribute_size() != 0) return;
    auto* value = node.add_attribute();
    value->set_name("value");
    value->set_type(pb::AttributeProto::TENSOR);
    value->mutable_t()->set_data_type(pb::TensorProto::FLOAT);
    value->mutable_t()->add_dims(1);
    value->mutable_t()->add_float_data(0);
    halve(*value->mutable_t());
}

pb::NodeProto cast(const std::string& from, const std::string& to, int type) {
    pb::NodeProto node;
    node.set_op_type("Cast");
    node.set_name(to);
    node.add_input(from);
    node.add_output(to);
    auto* attribute = node.add_attribute();
    attribute->set_name("to");
    attribute->set_type(pb::AttributeProto::INT);
    attribute->set_i(type);
    return node;
}

bool is_float(const pb::ValueInfoProto& info) {
    return info.type().tensor_type().elem_type() == pb::TensorProto::FLOAT;
}
void set_type(pb::ValueInfoProto& info, int type) {
    info.mutable_type()->mutable_tensor_type()->set_elem_type(type);
}

}  // namespace

pb::ModelProto with_half_weights(pb::ModelProto model) {
    for (auto& tensor : *model.mutable_graph()->mutable_initializer()) round_to_half(tensor);
    for (auto& node : *model.mutable_graph()->mutable_node())
        for (auto& attribute : *node.mutable_attribute())
            if (attribute.has_t()) round_to_half(*attribute.mutable_t());
    return model;
}

pb::ModelProto half_twin(pb::ModelProto model, Border border) {
    pb::GraphProto& graph = *model.mutable_graph();
    std::vector<pb::NodeProto> nodes;
    std::set<std::string> initialisers;
    for (auto& tensor : *graph.mutable_initializer()) {
        initialisers.insert(tensor.name());
        halve(tensor);
    }
    for (auto& input : *graph.mutable_input()) {
        if (!is_float(input)) continue;
        const bool stays = border == Border::f32 && !initialisers.contains(input.name());
        if (!stays) {
            set_type(input, pb::TensorProto::FLOAT16);
            continue;
        }
        const std::string half = input.name() + "/half";
        nodes.push_back(cast(input.name(), half, pb::TensorProto::FLOAT16));
        for (auto& node : *graph.mutable_node())
            for (auto& name : *node.mutable_input())
                if (name == input.name()) name = half;
    }
    int casts = 0;
    for (auto& node : *graph.mutable_node()) {
        halve_attributes(node);
        for (const int i : float_inputs(node)) {
            if (i >= node.input_size() || node.input(i).empty()) continue;
            const std::string wide = node.input(i) + "/float" + std::to_string(casts++);
            nodes.push_back(cast(node.input(i), wide, pb::TensorProto::FLOAT));
            node.set_input(i, wide);
        }
        nodes.push_back(node);
    }
    for (auto& output : *graph.mutable_output()) {
        if (!is_float(output)) continue;
        if (border == Border::fp16) {
            set_type(output, pb::TensorProto::FLOAT16);
            continue;
        }
        const std::string half = output.name() + "/half";
        for (auto& node : nodes) {
            for (auto& name : *node.mutable_output())
                if (name == output.name()) name = half;
            for (auto& name : *node.mutable_input())
                if (name == output.name()) name = half;
        }
        nodes.push_back(cast(half, output.name(), pb::TensorProto::FLOAT));
    }
    graph.clear_node();
    for (const auto& node : nodes) *graph.add_node() = node;
    graph.clear_value_info();
    return model;
}

}  // namespace vartml::test
