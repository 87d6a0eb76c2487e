// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/foreign.h"

#include <algorithm>
#include <functional>
#include <new>
#include <queue>
#include <unordered_map>

#include "lib/base/text.h"
#include "lib/compile/onnx/check.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/shape_inference/implementation.h>
#pragma GCC diagnostic pop

#include "lib/compile/onnx/model_file.h"
#include "lib/graph/onnxruntime.h"

namespace vartml::onnx {
namespace {

constexpr size_t max_rank = 8;

pb::TensorProto to_tensor(const std::string& name, const graph::Value& value) {
    pb::TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(elem_type(value.type.data_type));
    for (const int64_t d : value.type.shape) tensor.add_dims(d);
    const auto bytes = value.constant->bytes;
    tensor.set_raw_data(bytes.data(), bytes.size());
    return tensor;
}

// The type of a tensor that the IR holds and whose dimensions are all known; of data type unknown
// for what the IR does not hold; nothing where it is not known.
std::optional<graph::Type> type_of(const pb::TypeProto& proto) {
    if (proto.value_case() == pb::TypeProto::VALUE_NOT_SET) return std::nullopt;
    if (!proto.has_tensor_type()) return graph::Type{};
    const auto& tensor = proto.tensor_type();
    if (tensor.elem_type() == pb::TensorProto::UNDEFINED) return std::nullopt;
    const bool packed =
        tensor.elem_type() == pb::TensorProto::INT4 || tensor.elem_type() == pb::TensorProto::UINT4;
    graph::Type type{packed ? DataType::unknown : data_type(tensor.elem_type()), {}};
    if (type.data_type == DataType::unknown) return type;
    if (!tensor.has_shape()) return std::nullopt;
    for (const auto& d : tensor.shape().dim()) {
        if (!d.has_dim_value() || d.dim_value() < 0) return std::nullopt;
        type.shape.push_back(d.dim_value());
    }
    return type;
}

// Bytes of a tensor as a file has them; elements of 4 bits lie two in a byte.
uint64_t stored_bytes(const pb::TensorProto& tensor) {
    uint64_t elements = 1;
    for (const int64_t size : tensor.dims()) elements *= static_cast<uint64_t>(size);
    if (tensor.data_type() == pb::TensorProto::INT4 || tensor.data_type() == pb::TensorProto::UINT4)
        return (elements + 1) / 2;
    if (tensor.data_type() == pb::TensorProto::COMPLEX64) return elements * 8;
    if (tensor.data_type() == pb::TensorProto::COMPLEX128) return elements * 16;
    const DataType type = data_type(tensor.data_type());
    return elements * (type == DataType::unknown ? 1 : size_bytes(type));  // 8-bit floats
}

// The model of a node has no folder: elements that lie in another file come into it.
Result<void> embed(ModelFile& file, pb::TensorProto& tensor) {
    if (tensor.data_location() != pb::TensorProto::EXTERNAL) return {};
    const auto stored = file.external_bytes(tensor, stored_bytes(tensor));
    if (!stored) return stored.error();
    tensor.set_raw_data(stored->bytes.data(), stored->bytes.size());
    tensor.clear_data_location();
    tensor.clear_external_data();
    return {};
}

Result<void> embed(ModelFile& file, pb::NodeProto& node) {
    const auto all = [&](auto& several) -> Result<void> {
        for (auto& one : several)
            if (auto done = embed(file, one); !done) return done;
        return {};
    };
    const auto body = [&](pb::GraphProto& graph) -> Result<void> {
        if (auto done = all(*graph.mutable_initializer()); !done) return done;
        return all(*graph.mutable_node());
    };
    for (auto& a : *node.mutable_attribute()) {
        if (a.has_t())
            if (auto done = embed(file, *a.mutable_t()); !done) return done;
        if (auto done = all(*a.mutable_tensors()); !done) return done;
        if (a.has_g())
            if (auto done = body(*a.mutable_g()); !done) return done;
        for (auto& graph : *a.mutable_graphs())
            if (auto done = body(graph); !done) return done;
    }
    return {};
}

// By these ONNX's shape inference divides without a look. The sentence of what is wrong in the node
// or in its bodies; empty where nothing is.
std::string bad_divisor(const pb::NodeProto& node) {
    const auto in_body = [](const pb::GraphProto& graph) -> std::string {
        for (const auto& inner : graph.node())
            if (std::string found = bad_divisor(inner); !found.empty()) return found;
        return {};
    };
    for (const auto& a : node.attribute()) {
        const bool divides = a.name() == "strides" || a.name() == "num_outputs";
        const auto below_1 = [](int64_t number) { return number < 1; };
        const bool is_below_1 = a.type() == pb::AttributeProto::INT
                                    ? below_1(a.i())
                                    : std::ranges::any_of(a.ints(), below_1);
        if (divides && is_below_1)
            return "in which node '" + node_name(node) + "' (" + node.op_type() +
                   ") has a number below 1 in '" + a.name() + "'";
        std::string found = a.has_g() ? in_body(a.g()) : std::string();
        for (const auto& graph : a.graphs())
            if (found.empty()) found = in_body(graph);
        if (!found.empty()) return found;
    }
    return {};
}

}  // namespace

void ForeignNodes::begin(ModelFile& file, const Opsets& opsets) {
    file_ = &file;
    opsets_ = opsets;
    if (allowed()) read_ = read_for_outputs(file.proto().graph());
    head_.set_ir_version(std::min<int64_t>(file.proto().ir_version(), schema_ir_version));
    for (const auto& [domain, version] : opsets) {
        auto* set = head_.add_opset_import();
        set->set_domain(domain);
        set->set_version(checked_opset(domain, version));
    }
    // The map has no order, and the same model gives the same bytes.
    std::sort(head_.mutable_opset_import()->pointer_begin(),
              head_.mutable_opset_import()->pointer_end(),
              [](const auto* a, const auto* b) { return a->domain() < b->domain(); });
}

bool ForeignNodes::reads_any(const pb::NodeProto& node) const {
    return !made_.empty() &&
           std::ranges::any_of(reads(node), [&](const auto& name) { return holds(name); });
}

void ForeignNodes::keep(const pb::TensorProto& constant) {
    auto item = std::make_shared<Item>();
    item->constant = &constant;
    made_[constant.name()] = std::move(item);
}

Result<std::shared_ptr<const ForeignNodes::Item>> ForeignNodes::item_of(
    const pb::NodeProto& node) const {
    auto item = std::make_shared<Item>();
    item->node = &node;
    for (const std::string& name : reads(node)) {
        if (const auto found = made_.find(name); found != made_.end()) {
            item->items[name] = found->second;
            continue;
        }
        const ValueId id = builder_.find(name);
        if (id == graph::none) {
            builder_.fail(ErrorCode::bad_model, "reads tensor '" + name + "', which nothing makes");
            return *builder_.error();
        }
        item->values[name] = id;
    }
    return std::shared_ptr<const Item>(std::move(item));
}

// The nodes and constants that make what the item reads, then the item itself.
Result<void> ForeignNodes::collect(const std::shared_ptr<const Item>& item,
                                   std::set<const Item*>& seen, pb::GraphProto& graph,
                                   Inputs& inputs) const {
    if (!seen.insert(item.get()).second) return {};
    for (const auto& [name, before] : item->items)
        if (auto done = collect(before, seen, graph, inputs); !done) return done;
    for (const auto& [name, id] : item->values) {
        const auto known = std::ranges::find(inputs, name, &Inputs::value_type::first);
        if (known == inputs.end()) {
            inputs.emplace_back(name, id);
        } else if (known->second != id) {
            // Branches of different If nodes may give two tensors one name.
            builder_.fail(ErrorCode::unsupported,
                          "reads two tensors named '" + name + "'; give them names of their own");
            return *builder_.error();
        }
    }
    if (item->constant) {
        auto& added = *graph.add_initializer();
        added = *item->constant;
        return embed(*file_, added);
    }
    auto& added = *graph.add_node();
    added = *item->node;
    return embed(*file_, added);
}

// What the model reads: constants, and inputs of the shapes they have. A shape that depends on the
// data is open in the model that runs.
void ForeignNodes::add_values(pb::GraphProto& graph, const Inputs& inputs,
                              bool upper_bounds) const {
    for (const auto& [name, id] : inputs) {
        const graph::Value& value = builder_.graph.value(id);
        if (value.constant) {
            *graph.add_initializer() = to_tensor(name, value);
            continue;
        }
        auto* input = graph.add_input();
        input->set_name(name);
        auto* tensor = input->mutable_type()->mutable_tensor_type();
        tensor->set_elem_type(elem_type(value.type.data_type));
        for (const int64_t d : value.type.shape) {
            auto* dim = tensor->mutable_shape()->add_dim();
            if (!value.data_dependent || upper_bounds) dim->set_dim_value(d);
        }
        tensor->mutable_shape();  // rank 0 has one too
    }
}

pb::ModelProto ForeignNodes::make_model(const pb::GraphProto& graph) const {
    pb::ModelProto model = head_;
    *model.mutable_graph() = graph;
    model.mutable_graph()->set_name("part");
    return model;
}

ForeignNodes::Outputs ForeignNodes::infer(const pb::GraphProto& nodes, const Inputs& inputs,
                                          const std::vector<std::string>& names) const {
    pb::GraphProto graph = nodes;
    add_values(graph, inputs, true);
    pb::ModelProto model = make_model(graph);
    try {
        ::onnx::shape_inference::InferShapes(model, ::onnx::OpSchemaRegistry::Instance(),
                                             ::onnx::ShapeInferenceOptions(false, 0, true));
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception&) {
        // What it does not know it does not say; ONNX Runtime judges the node.
    }
    Outputs outputs;
    for (const auto& [name, id] : inputs)
        outputs.data_dependent = outputs.data_dependent || builder_.graph.value(id).data_dependent;
    for (const std::string& name : names) {
        Output& output = outputs.list.emplace_back();
        output.name = name;
        for (const auto& info : model.graph().value_info())
            if (info.name() == name) output.type = type_of(info.type());
        const auto declared = builder_.declared.find(name);
        if (output.type || declared == builder_.declared.end()) continue;
        output.type = declared->second;
        output.only_declared = true;
    }
    return outputs;
}

Error ForeignNodes::refused(const pb::NodeProto& node, const std::string& problem,
                            const std::string& way_out) const {
    const auto opset = opsets_.find(domain_of(node));
    std::string tensor = node.output_size() > 0 ? node.output(0) : std::string();
    for (const std::string& input : node.input())
        if (const ValueId id = builder_.find(input);
            id != graph::none && !builder_.graph.value(id).constant &&
            std::ranges::find(builder_.graph.inputs, id) == builder_.graph.inputs.end()) {
            tensor = input;
            break;
        }
    return {ErrorCode::unsupported,
            refusal(builder_.file(), node, opset == opsets_.end() ? 1 : opset->second, problem,
                    way_out, tensor)};
}

// ONNX Runtime's own word: whether it runs the model, and what it makes.
Result<void> ForeignNodes::ask(const pb::NodeProto& node, const std::string& model,
                               Outputs& outputs) {
    const std::string replace(outputs.unread ? take_out : replace_or_split);
    auto answer = options_.ask
                      ? options_.ask(model)
                      : Result<std::vector<ForeignOutput>>(Error{ErrorCode::not_found, {}});
    if (!answer && answer.error().code == ErrorCode::not_found) {
        if (outputs.complete() || outputs.unread) return {};
        const std::string& why = answer.error().message;
        return refused(node,
                       "which neither the NPU nor the CPU partition runs, and there is no ONNX "
                       "Runtime here that might" +
                           (why.empty() ? std::string() : " (" + why + ")"),
                       "install it (Debian: libonnxruntime1.21), replace the node with standard "
                       "operators, or split the model at tensor '{}'");
    }
    if (!answer)
        return refused(
            node,
            "which neither the NPU nor the CPU partition runs, and ONNX Runtime does not "
            "either: " +
                answer.error().message,
            replace);
    if (outputs.unread) return {};
    for (size_t i = 0; i < std::min(outputs.list.size(), answer->size()); ++i)
        if (auto done = settle(node, (*answer)[i], outputs.list[i], outputs); !done) return done;
    return {};
}

// An output whose type inference has left open, by what ONNX Runtime says.
Result<void> ForeignNodes::settle(const pb::NodeProto& node, const ForeignOutput& answer,
                                  Output& output, Outputs& outputs) {
    if (output.only_declared && output.type->data_type != DataType::unknown) {
        const bool exact = answer.has_shape && !answer.varies && answer.shape == output.type->shape;
        outputs.data_dependent = outputs.data_dependent || !exact;
        return {};
    }
    if (output.type) return {};
    const bool packed =
        answer.elem_type == pb::TensorProto::INT4 || answer.elem_type == pb::TensorProto::UINT4;
    const DataType type = packed ? DataType::unknown : data_type(answer.elem_type);
    if (type == DataType::unknown) {
        output.type = graph::Type{};
        return {};
    }
    const bool is_empty = std::ranges::find(answer.shape, 0) != answer.shape.end();
    if (!answer.has_shape || answer.varies || is_empty)
        return refused(node,
                       "whose output '" + output.name +
                           "' has a shape that depends on the data and that nothing bounds",
                       "give the tensor a shape in the model, or split it at tensor '{}'");
    output.type = graph::Type{type, answer.shape};
    return {};
}

bool ForeignNodes::Outputs::complete() const {
    return std::ranges::all_of(list, [](const Output& o) { return o.type.has_value(); });
}

Result<void> ForeignNodes::add(const pb::NodeProto& node, const std::string& why) {
    if (const std::string fault = bad_divisor(node); !fault.empty())
        return refused(node, fault, "export the model again");
    auto item = item_of(node);
    if (!item) return item.error();
    pb::GraphProto graph;
    Inputs inputs;
    std::set<const Item*> seen;
    if (auto done = collect(*item, seen, graph, inputs); !done) return done;

    // Of an output that nobody reads it may be that nothing says how large it is. Where that is all
    // of them, whether the node can be run at all is asked nevertheless.
    std::vector<std::string> names, all;
    for (const std::string& output : node.output()) {
        if (output.empty()) continue;
        all.push_back(output);
        if (read_.contains(output))
            names.push_back(output);
        else
            made_[output] = *item;  // for nodes that nobody reads either
    }
    const bool unread = names.empty();
    if (unread) names = std::move(all);
    Outputs outputs = infer(graph, inputs, names);
    outputs.unread = unread;
    add_values(graph, inputs, false);
    const bool all_kept = std::ranges::all_of(outputs.list, [](const Output& o) {
        return o.type && o.type->data_type == DataType::unknown;
    });
    if (!all_kept) {
        pb::GraphProto asked = graph;
        for (const std::string& name : names) asked.add_output()->set_name(name);
        if (auto done = ask(node, make_model(asked).SerializeAsString(), outputs); !done)
            return done;
    }
    if (unread) return {};

    std::vector<std::string> tensors;
    std::vector<graph::Type> types;
    for (const Output& output : outputs.list) {
        if (!output.type || output.type->data_type == DataType::unknown) {
            made_[output.name] = *item;
            continue;
        }
        if (output.type->shape.size() > max_rank)
            return refused(node,
                           "whose output '" + output.name + "' is " + to_string(*output.type) +
                               ", at most 8 dimensions are accepted",
                           "split the model at tensor '{}'");
        tensors.push_back(output.name);
        types.push_back(*output.type);
        graph.add_output()->set_name(output.name);
    }
    if (tensors.empty()) return {};
    const std::string model = make_model(graph).SerializeAsString();
    if (model.empty())
        return refused(node, "whose constants have more than 2147483647 bytes together",
                       "split the model at tensor '{}'");
    ValueIds ids;
    for (const auto& [name, id] : inputs)
        if (!builder_.graph.value(id).constant) ids.push_back(id);
    builder_.emit_foreign(model, ids, tensors, types, outputs.data_dependent, why);
    if (builder_.error()) return *builder_.error();
    return {};
}

std::set<std::string> reads(const pb::NodeProto& node) {
    std::set<std::string> names(node.input().begin(), node.input().end());
    names.erase("");
    for (const auto& attribute : node.attribute()) {
        if (!attribute.has_g()) continue;
        std::set<std::string> made;
        std::set<std::string> taken;
        for (const auto& input : attribute.g().input()) made.insert(input.name());
        for (const auto& tensor : attribute.g().initializer()) made.insert(tensor.name());
        for (const auto& inner : attribute.g().node()) {
            made.insert(inner.output().begin(), inner.output().end());
            taken.merge(reads(inner));
        }
        for (const auto& output : attribute.g().output()) taken.insert(output.name());
        for (const std::string& name : taken)
            if (!made.contains(name)) names.insert(name);
    }
    return names;
}

Result<std::vector<int>> sort_nodes(const std::string& file, const pb::GraphProto& graph,
                                    const std::set<std::string>& known) {
    std::unordered_map<std::string, int> producer;
    for (int i = 0; i < graph.node_size(); ++i)
        for (const std::string& output : graph.node(i).output()) {
            if (output.empty()) continue;
            if (known.contains(output) || !producer.emplace(output, i).second)
                return Error{ErrorCode::bad_model,
                             file + ": node '" + printable(node_name(graph.node(i))) +
                                 "' makes tensor '" + printable(output) +
                                 "', which exists already; export the model again"};
        }
    std::vector<std::vector<int>> readers(static_cast<size_t>(graph.node_size()));
    std::vector<int> missing(static_cast<size_t>(graph.node_size()), 0);
    for (int i = 0; i < graph.node_size(); ++i)
        for (const std::string& name : reads(graph.node(i))) {
            const auto made = producer.find(name);
            if (made != producer.end()) {
                readers[static_cast<size_t>(made->second)].push_back(i);
                ++missing[static_cast<size_t>(i)];
            } else if (!known.contains(name)) {
                return Error{
                    ErrorCode::bad_model,
                    file + ": node '" + printable(node_name(graph.node(i))) + "' reads tensor '" +
                        printable(name) +
                        "', which no node, input or initialiser makes; export the model again"};
            }
        }

    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int i = 0; i < graph.node_size(); ++i)
        if (missing[static_cast<size_t>(i)] == 0) ready.push(i);
    std::vector<int> order;
    while (!ready.empty()) {
        const int i = ready.top();
        ready.pop();
        order.push_back(i);
        for (const int reader : readers[static_cast<size_t>(i)])
            if (--missing[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
    if (order.size() == missing.size()) return order;
    for (int i = 0;; ++i)
        if (missing[static_cast<size_t>(i)] != 0)
            return Error{
                ErrorCode::bad_model,
                file + ": node '" + printable(node_name(graph.node(i))) +
                    "' stands in a cycle: it needs its own result; export the model again"};
}

}  // namespace vartml::onnx
