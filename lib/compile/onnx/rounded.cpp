// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/rounded.h"

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/shape_inference/implementation.h>
#pragma GCC diagnostic pop

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/compile/onnx/import.h"
#include "lib/compile/onnx/model_file.h"

namespace vartml::onnx {
namespace {

using Types = std::map<std::string, int32_t>;

constexpr float splitter = 65537;  // 2^16 + 1: leaves 8 of the 24 digits of a float (Veltkamp)
const char* const splitter_name = "vartml_bf16_splitter";

// What is no tensor is of the type 0, too, and known.
Types types_of(const pb::GraphProto& graph) {
    Types types;
    const auto add = [&](const auto& values) {
        for (const pb::ValueInfoProto& value : values)
            if (value.type().value_case() != pb::TypeProto::VALUE_NOT_SET &&
                (!value.type().has_tensor_type() || value.type().tensor_type().elem_type()))
                types[value.name()] = value.type().tensor_type().elem_type();
    };
    add(graph.value_info());
    add(graph.input());
    add(graph.output());
    for (const pb::TensorProto& tensor : graph.initializer())
        types[tensor.name()] = tensor.data_type();
    return types;
}

// The node and the tensor that it makes and others read, whose type is not known.
std::optional<std::pair<const pb::NodeProto*, std::string>> untyped(const pb::GraphProto& graph,
                                                                    const Types& types) {
    std::set<std::string_view> read;
    for (const pb::NodeProto& node : graph.node())
        read.insert(node.input().begin(), node.input().end());
    for (const pb::ValueInfoProto& output : graph.output()) read.insert(output.name());
    for (const pb::NodeProto& node : graph.node())
        for (const std::string& name : node.output())
            if (!name.empty() && read.contains(name) && !types.contains(name))
                return std::pair(&node, name);
    return std::nullopt;
}

// The types of all tensors. ONNX's inference ends at operators that it does not know; from there
// it goes on with what the importer knows of them.
Result<Types> infer_types(const std::string& path, const pb::ModelProto& model) {
    pb::ModelProto inferred = model;
    ::onnx::shape_inference::InferShapes(inferred);
    Types types = types_of(inferred.graph());
    if (!untyped(inferred.graph(), types)) return types;
    std::string why;
    ImportOptions options;
    options.foreign.allowed = true;
    options.find_example = false;
    const auto imported = import_onnx(path, options);
    if (imported) {
        for (const graph::Value& value : imported->graph.values) {
            const int32_t type = elem_type(value.type.data_type);
            if (!type || types.contains(value.name)) continue;
            pb::ValueInfoProto& info = *inferred.mutable_graph()->add_value_info();
            info.set_name(value.name);
            info.mutable_type()->mutable_tensor_type()->set_elem_type(type);
        }
        ::onnx::shape_inference::InferShapes(inferred);
        types = types_of(inferred.graph());
    } else {
        why = " (" + imported.error().message + ")";
    }
    const auto found = untyped(inferred.graph(), types);
    if (!found) return types;
    return Error{ErrorCode::unsupported,
                 path + ": the type of tensor '" + printable(found->second) + "', which node '" +
                     printable(found->first->name()) + "' (" + printable(found->first->op_type()) +
                     ") makes, is not known, so that its rounded twin would not round it" + why};
}

// Tensors that say how much or where; rounding them changes shapes or codes.
std::set<std::string> parameters_of(const pb::GraphProto& graph) {
    static const std::set<std::string_view> kinds = {
        "Resize", "Upsample", "QuantizeLinear", "NonMaxSuppression", "Pad", "Clip", "OneHot"};
    static const std::set<std::string_view> whole = {"Range", "DequantizeLinear", "ConstantOfShape",
                                                     "QGemm"};
    std::set<std::string> names;
    for (const pb::NodeProto& node : graph.node()) {
        const bool quantised = node.op_type().starts_with("QLinear");
        const bool all = quantised || whole.contains(node.op_type());
        if (!all && !kinds.contains(node.op_type())) continue;
        for (int i = all ? 0 : 1; i < node.input_size(); ++i) names.insert(node.input(i));
    }
    return names;
}

class Rounding {
public:
    // `has_nan`: the operator set has IsNaN and Where.
    Rounding(pb::GraphProto& graph, Types types, bool has_nan)
        : graph_(graph),
          types_(std::move(types)),
          exact_(parameters_of(graph)),
          has_nan_(has_nan) {}

    void run() {
        std::vector<pb::NodeProto> nodes(graph_.node().begin(), graph_.node().end());
        graph_.clear_node();
        round_initialisers();
        round_inputs(nodes);
        for (pb::NodeProto& node : nodes) {
            std::vector<std::string> rounded;
            for (std::string& output : *node.mutable_output()) {
                if (!is_float(output)) continue;
                rounded.push_back(output);
                output = exact_name(output);
            }
            *graph_.add_node() = std::move(node);
            for (const std::string& name : rounded) round(exact_name(name), name);
        }
        pb::TensorProto& number = *graph_.add_initializer();
        number.set_name(splitter_name);
        number.set_data_type(pb::TensorProto::FLOAT);
        number.add_float_data(splitter);
    }

private:
    static std::string exact_name(const std::string& name) { return name + "/vartml_exact"; }
    bool is_float(const std::string& name) const {
        const auto type = types_.find(name);
        return type != types_.end() && !exact_.contains(name) &&
               (type->second == pb::TensorProto::FLOAT || type->second == pb::TensorProto::FLOAT16);
    }
    void add(const char* kind, const std::vector<std::string>& inputs, const std::string& output) {
        pb::NodeProto& node = *graph_.add_node();
        node.set_op_type(kind);
        node.set_name(output + "/vartml_rounding");  // many models name a node as its output
        for (const std::string& input : inputs) node.add_input(input);
        node.add_output(output);
    }
    void cast(const std::string& from, const std::string& to, int32_t type) {
        add("Cast", {from}, to);
        pb::AttributeProto& attribute =
            *graph_.mutable_node(graph_.node_size() - 1)->add_attribute();
        attribute.set_name("to");
        attribute.set_type(pb::AttributeProto::INT);
        attribute.set_i(type);
    }
    // c = x * splitter; rounded = c - (c - x). Of what is infinite, or c is, that is no number: as
    // masks are, which stay what they are.
    void round(const std::string& from, const std::string& to) {
        const bool half = types_.at(to) == pb::TensorProto::FLOAT16;
        const std::string x = half ? to + "/vartml_wide" : from;
        if (half) cast(from, x, pb::TensorProto::FLOAT);
        const std::string result = half ? to + "/vartml_rounded" : to;
        add("Mul", {x, splitter_name}, to + "/vartml_c");
        add("Sub", {to + "/vartml_c", x}, to + "/vartml_low");
        const std::string split = has_nan_ ? to + "/vartml_split" : result;
        add("Sub", {to + "/vartml_c", to + "/vartml_low"}, split);
        if (has_nan_) {
            add("IsNaN", {split}, to + "/vartml_endless");
            add("Where", {to + "/vartml_endless", x, split}, result);
        }
        if (half) cast(result, to, pb::TensorProto::FLOAT16);
    }
    void round_initialisers() {
        std::set<std::string> changed;
        for (pb::TensorProto& tensor : *graph_.mutable_initializer()) {
            if (!is_float(tensor.name())) continue;
            changed.insert(tensor.name());
            const std::string name = tensor.name();
            tensor.set_name(exact_name(name));
            round(exact_name(name), name);
        }
        // Initialisers of old models are listed as inputs, too.
        auto& inputs = *graph_.mutable_input();
        for (int i = inputs.size(); i-- > 0;)
            if (changed.contains(inputs[i].name())) inputs.DeleteSubrange(i, 1);
    }
    // The names of inputs stay; what uses them takes the rounded ones.
    void round_inputs(std::vector<pb::NodeProto>& nodes) {
        std::set<std::string> names, stored;
        for (const pb::TensorProto& tensor : graph_.initializer()) stored.insert(tensor.name());
        for (const pb::ValueInfoProto& input : graph_.input())
            if (is_float(input.name()) && !stored.contains(input.name()))
                names.insert(input.name());
        for (pb::NodeProto& node : nodes)
            for (std::string& input : *node.mutable_input())
                if (names.contains(input)) input += "/vartml_in";
        for (const std::string& name : names) {
            types_[name + "/vartml_in"] = types_.at(name);
            round(name, name + "/vartml_in");
        }
    }

    pb::GraphProto& graph_;
    Types types_;
    const std::set<std::string> exact_;
    const bool has_nan_;
};

}  // namespace

Result<void> write_rounded(const std::string& path, const std::string& out) {
    auto file = ModelFile::open(path);
    if (!file) return file.error();
    pb::ModelProto& model = file->proto();
    for (const pb::TensorProto& tensor : model.graph().initializer())
        if (tensor.data_location() == pb::TensorProto::EXTERNAL)
            return Error{ErrorCode::unsupported,
                         path + ": has external data, which its rounded twin cannot have"};
    Types types;
    try {
        auto inferred = infer_types(path, model);
        if (!inferred) return inferred.error();
        types = std::move(*inferred);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& e) {
        return Error{ErrorCode::unsupported, path + ": types cannot be inferred: " + e.what()};
    }
    const bool has_nan =
        std::ranges::any_of(model.opset_import(), [](const pb::OperatorSetIdProto& set) {
            return (set.domain().empty() || set.domain() == "ai.onnx") && set.version() >= 9;
        });
    Rounding(*model.mutable_graph(), std::move(types), has_nan).run();
    const std::string bytes = model.SerializeAsString();
    if (bytes.empty())
        return Error{ErrorCode::unsupported, path + ": its rounded twin has more than 2 GB"};
    const Bytes piece = as_bytes(bytes);
    return write_new_file(out, std::span(&piece, 1));
}

}  // namespace vartml::onnx
