// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz_graphs/model.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "lib/graph/numbers.h"

namespace vartml::fuzz_graphs {

namespace fs = std::filesystem;

std::vector<double> all_numbers(const TensorData& data) {
    graph::Value value;
    value.type = {data.type, data.shape};
    value.constant = graph::make_constant(data.bytes);
    return graph::read_numbers<double>(value);
}

TensorData tensor_of(DataType type, const Ints& shape, std::span<const double> numbers) {
    const graph::Constant constant = graph::write_numbers<double>(type, numbers);
    return {type, shape, {constant.bytes.begin(), constant.bytes.end()}};
}

int64_t count_elements(const Ints& shape) {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string shape_text(const Ints& shape) {
    std::string text = "[";
    for (const int64_t size : shape) text += (text.size() > 1 ? "," : "") + std::to_string(size);
    return text + "]";
}

int elem_type(DataType type) {
    for (int number = 1; number <= pb::TensorProto::BFLOAT16; ++number)
        if (onnx::data_type(number) == type) return number;
    return 0;
}

pb::TensorProto to_proto(const std::string& name, const TensorData& data) {
    pb::TensorProto proto;
    proto.set_name(name);
    proto.set_data_type(elem_type(data.type));
    proto.mutable_dims()->Add(data.shape.begin(), data.shape.end());
    proto.set_raw_data(data.bytes.data(), data.bytes.size());
    return proto;
}

TensorData from_proto(const pb::TensorProto& proto) {
    const auto* bytes = reinterpret_cast<const std::byte*>(proto.raw_data().data());
    return {onnx::data_type(proto.data_type()),
            {proto.dims().begin(), proto.dims().end()},
            {bytes, bytes + proto.raw_data().size()}};
}

static std::string attribute_text(const pb::AttributeProto& a) {
    std::string text = a.name() + "=";
    const auto list = [&](const auto& values) {
        for (const auto& v : values) text += std::to_string(v) + ",";
    };
    if (a.type() == pb::AttributeProto::INT) return text + std::to_string(a.i());
    if (a.type() == pb::AttributeProto::FLOAT) return text + std::to_string(a.f());
    if (a.type() == pb::AttributeProto::STRING) return text + a.s();
    list(a.ints());
    list(a.floats());
    for (const std::string& s : a.strings()) text += s + ",";
    return text;
}

std::string describe(const Model& model) {
    std::map<std::string, std::string> known;
    for (const auto& tensor : model.proto.graph().initializer())
        known[tensor.name()] = " " + onnx::elem_type_name(tensor.data_type()) +
                               shape_text({tensor.dims().begin(), tensor.dims().end()}) +
                               " constant";
    for (const NamedTensor& input : model.feed)
        known[input.name] =
            " " + std::string(to_string(input.data.type)) + shape_text(input.data.shape);
    std::string text;
    for (const auto& opset : model.proto.opset_import())
        text += "opset " + opset.domain() + " " + std::to_string(opset.version()) + "\n";
    for (const auto& node : model.proto.graph().node()) {
        for (int i = 0; i < node.output_size(); ++i) text += (i ? ", " : "") + node.output(i);
        text += " = " + node.op_type() + "(";
        for (int i = 0; i < node.input_size(); ++i)
            text += (i ? ", " : "") + node.input(i) + known[node.input(i)];
        text += ")";
        for (const auto& attribute : node.attribute()) text += " " + attribute_text(attribute);
        text += "\n";
    }
    text += "outputs";
    for (const auto& output : model.proto.graph().output()) text += " " + output.name();
    return text + "\n";
}

void save(const Model& model, const std::string& folder) {
    const fs::path data = fs::path(folder) / "test_data_set_0";
    fs::create_directories(data);
    std::ofstream file(fs::path(folder) / "model.onnx", std::ios::binary);
    model.proto.SerializeToOstream(&file);
    for (size_t i = 0; i < model.feed.size(); ++i) {
        std::ofstream input(data / ("input_" + std::to_string(i) + ".pb"), std::ios::binary);
        to_proto(model.feed[i].name, model.feed[i].data).SerializeToOstream(&input);
    }
}

Model load(const std::string& folder) {
    Model model;
    std::ifstream file(fs::path(folder) / "model.onnx", std::ios::binary);
    model.proto.ParseFromIstream(&file);
    for (int i = 0; i < model.proto.graph().input_size(); ++i) {
        std::ifstream input(
            fs::path(folder) / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb"),
            std::ios::binary);
        pb::TensorProto proto;
        proto.ParseFromIstream(&input);
        model.feed.push_back({model.proto.graph().input(i).name(), from_proto(proto)});
    }
    return model;
}

Model part_of(const Model& model, const std::vector<std::string>& outputs,
              const std::vector<std::string>& known, const Values& values) {
    Model part;
    const pb::GraphProto& whole = model.proto.graph();
    std::set<std::string> needed(outputs.begin(), outputs.end());
    std::vector<const pb::NodeProto*> nodes;
    const auto is_known = [&](const std::string& name) {
        return std::ranges::find(known, name) != known.end();
    };
    for (int i = whole.node_size(); i-- > 0;) {
        const auto& node = whole.node(i);
        const bool is_needed = std::ranges::any_of(node.output(), [&](const std::string& name) {
            return needed.contains(name) && !is_known(name);
        });
        if (!is_needed) continue;
        nodes.push_back(&node);
        needed.insert(node.input().begin(), node.input().end());
    }
    part.proto.set_ir_version(model.proto.ir_version());
    *part.proto.mutable_opset_import() = model.proto.opset_import();
    pb::GraphProto& graph = *part.proto.mutable_graph();
    graph.set_name("part");
    std::set<std::string> constants;
    for (const auto& tensor : whole.initializer()) constants.insert(tensor.name());
    const auto declare = [&](pb::ValueInfoProto* info, const std::string& name) {
        info->set_name(name);
        const TensorData& data = values.at(name);
        auto* type = info->mutable_type()->mutable_tensor_type();
        type->set_elem_type(elem_type(data.type));
        auto* shape = type->mutable_shape();  // there is one without dimensions, too
        for (const int64_t size : data.shape) shape->add_dim()->set_dim_value(size);
    };
    std::set<std::string> inputs(known.begin(), known.end());
    for (const auto& input : whole.input()) inputs.insert(input.name());
    for (const std::string& name : inputs) {
        if (!needed.contains(name) || constants.contains(name)) continue;
        declare(graph.add_input(), name);
        part.feed.push_back({name, values.at(name)});
    }
    for (const auto& tensor : whole.initializer())
        if (needed.contains(tensor.name())) *graph.add_initializer() = tensor;
    for (size_t i = nodes.size(); i-- > 0;) *graph.add_node() = *nodes[i];
    // No shape: it may follow from the data.
    for (const std::string& name : outputs) {
        auto* info = graph.add_output();
        info->set_name(name);
        info->mutable_type()->mutable_tensor_type()->set_elem_type(elem_type(values.at(name).type));
    }
    return part;
}

}  // namespace vartml::fuzz_graphs
