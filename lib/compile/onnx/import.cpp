// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/import.h"

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <unordered_set>

#include "lib/base/text.h"
#include "lib/compile/onnx/bind.h"
#include "lib/compile/onnx/builder.h"
#include "lib/compile/onnx/check.h"
#include "lib/compile/onnx/foreign.h"
#include "lib/compile/onnx/functions.h"
#include "lib/compile/onnx/lower.h"
#include "lib/compile/onnx/model_file.h"
#include "lib/graph/ops.h"

namespace vartml::onnx {
namespace {

// Initialisers and inputs: a model cannot be split there.
std::set<std::string> names_before_nodes(const pb::GraphProto& graph) {
    std::set<std::string> names;
    for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
    for (const auto& input : graph.input()) names.insert(input.name());
    return names;
}

// What a sentence says of a node, without the file, the node and the way out.
std::string reason_of(const Error& error) {
    std::string text = error.message;
    if (const size_t at = text.find(": node '"); at != text.npos) text.erase(0, at + 8);
    if (const size_t at = text.find("' "); at != text.npos) text.erase(0, at + 2);
    return text.substr(0, text.find("; "));
}

void use_short_domain(google::protobuf::RepeatedPtrField<pb::NodeProto>& nodes) {
    for (auto& node : nodes) {
        node.set_domain(short_domain(node.domain()));
        for (auto& a : *node.mutable_attribute()) {
            if (a.has_g()) use_short_domain(*a.mutable_g()->mutable_node());
            for (auto& g : *a.mutable_graphs()) use_short_domain(*g.mutable_node());
        }
    }
}

class Importer {
public:
    Importer(ModelFile file, BindOptions binding, const ForeignOptions& foreign)
        : file_(std::move(file)),
          binding_(std::move(binding)),
          builder_(file_.path()),
          foreign_(builder_, foreign) {}
    Result<Imported> run();
    // What run() found out.
    bool is_open() const { return is_open_; }  // it failed for axes without a number
    bool makes_declared_outputs() const { return makes_declared_outputs_; }
    pb::ModelProto& proto() { return file_.proto(); }

private:
    void note_declared(const pb::GraphProto& graph);
    Result<void> add_inputs();
    Result<void> add_initialisers(const pb::GraphProto& graph);
    Result<void> add_nodes(const pb::GraphProto& graph);
    Result<void> add_node(const pb::NodeProto& node);
    Result<void> add_own(const pb::NodeProto& node);
    Result<void> add_if(const pb::NodeProto& node);
    Result<void> add_outputs();
    Result<Attributes> attributes(const pb::NodeProto& node) const;
    Result<void> check_border_type(const char* direction, ValueId id, int32_t declared) const;
    void count();
    Error error(ErrorCode code, const std::string& text) const {
        return {code, file_.path() + ": " + printable(text, std::string::npos)};
    }

    ModelFile file_;
    const BindOptions binding_;
    Opsets opsets_;
    Builder builder_;
    ForeignNodes foreign_;
    Imported out_;
    uint32_t nodes_in_file_ = 0;
    bool is_open_ = false, makes_declared_outputs_ = true;
};

Result<Imported> Importer::run() {
    auto signature = file_.signature();
    if (!signature) return signature.error();
    out_.signature = std::move(*signature);
    if (auto done = inline_functions(file_.path(), file_.proto()); !done) return done.error();
    use_short_domain(*file_.proto().mutable_graph()->mutable_node());
    auto opsets = check_versions(file_.path(), file_.proto(), out_.messages);
    if (!opsets) return opsets.error();
    opsets_ = std::move(*opsets);

    const pb::GraphProto& graph = file_.proto().graph();
    std::set<std::string> constants = names_before_nodes(graph);
    std::set<std::string> names = constants;
    for (const auto& node : graph.node()) {
        names.insert(node.output().begin(), node.output().end());
        if (node.op_type() == "Constant")
            constants.insert(node.output().begin(), node.output().end());
    }
    if (auto done = check_nodes(file_.path(), graph, opsets_, constants, names, foreign_.allowed());
        !done)
        return done.error();
    foreign_.begin(file_, opsets_);

    builder_.graph.name = graph.name();
    note_declared(graph);
    if (auto done = add_inputs(); !done) return done.error();
    if (auto done = add_initialisers(graph); !done) return done.error();
    if (auto done = add_nodes(graph); !done) return done.error();
    for (std::string& text : builder_.warnings)
        out_.messages.push_back({LogLevel::warning, std::move(text)});
    if (auto done = add_outputs(); !done) return done.error();
    graph::remove_dead(builder_.graph);
    count();
    for (const auto& entry : file_.proto().metadata_props())
        out_.metadata[entry.key()] = entry.value();
    out_.graph = std::move(builder_.graph);
    return std::move(out_);
}

// Tensors that the file gives a type and all dimensions.
void Importer::note_declared(const pb::GraphProto& graph) {
    const auto note = [&](const pb::ValueInfoProto& info) {
        if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) return;
        graph::Type type{data_type(info.type().tensor_type().elem_type()), {}};
        for (const auto& d : info.type().tensor_type().shape().dim()) {
            if (!d.has_dim_value() || d.dim_value() < 0) return;
            type.shape.push_back(d.dim_value());
        }
        if (type.data_type != DataType::unknown) builder_.declared.emplace(info.name(), type);
    };
    for (const auto& info : graph.output()) {
        note(info);
        if (const auto found = builder_.declared.find(info.name());
            found != builder_.declared.end())
            builder_.declared_outputs.push_back(found->second);
    }
    for (const auto& info : graph.value_info()) note(info);
}

Result<void> Importer::add_inputs() {
    for (const auto& input : file_.proto().graph().input())
        if (!is_clean_name(input.name()))
            return error(ErrorCode::bad_model,
                         "the name of input '" + input.name() + "' is not printable; rename it");
    auto inputs = bind_inputs(file_.path(), file_.proto(), binding_, out_.messages, &is_open_);
    if (!inputs) return inputs.error();
    for (BoundInput& input : *inputs) {
        if (builder_.find(input.name) != graph::none)
            return error(ErrorCode::bad_model, "has two inputs named '" + input.name + "'");
        if (input.type.data_type != DataType::unknown && input.type.elements() == 0) {
            out_.messages.push_back({LogLevel::info, file_.path() + ": input '" + input.name +
                                                         "' is " + to_string(input.type) +
                                                         ", which holds nothing: the compiled "
                                                         "model has no such input"});
            builder_.scope[input.name] =
                builder_.constant(input.name, std::move(input.type), graph::make_constant({}));
            continue;
        }
        const ValueId id =
            builder_.graph.add_value(builder_.unique_value_name(input.name), std::move(input.type));
        if (auto done = check_border_type("input", id, input.elem_type); !done) return done;
        builder_.scope[input.name] = id;
        builder_.graph.inputs.push_back(id);
    }
    return {};
}

Result<void> Importer::add_initialisers(const pb::GraphProto& graph) {
    if (graph.sparse_initializer_size() != 0)
        return error(ErrorCode::unsupported, "initialiser '" +
                                                 graph.sparse_initializer(0).values().name() +
                                                 "' is sparse; export it as a dense tensor");
    for (const auto& tensor : graph.initializer()) {
        auto value = read_tensor(file_, tensor,
                                 file_.path() + ": initialiser '" + printable(tensor.name()) + "'");
        if (!value && value.error().code == ErrorCode::unsupported && foreign_.allowed() &&
            tensor.data_location() != pb::TensorProto::EXTERNAL) {
            foreign_.keep(tensor);
            continue;
        }
        if (!value) return value.error();
        if (builder_.find(tensor.name()) != graph::none)
            return error(ErrorCode::bad_model,
                         "has two initialisers named '" + tensor.name() + "'");
        const ValueId id =
            builder_.constant(tensor.name(), std::move(value->type), std::move(value->constant));
        builder_.scope[tensor.name()] = id;
        if (is_4_bit(tensor.data_type())) builder_.four_bits.insert(id);
    }
    return {};
}

Result<void> Importer::add_nodes(const pb::GraphProto& graph) {
    std::set<std::string> known;
    for (const auto& [name, id] : builder_.scope) known.insert(name);
    foreign_.add_names(known);
    auto order = sort_nodes(file_.path(), graph, known);
    if (!order) return order.error();
    if (!std::ranges::is_sorted(*order))
        out_.messages.push_back(
            {LogLevel::warning,
             file_.path() +
                 ": nodes were not in execution order, as ONNX demands; they were sorted"});
    for (const int i : *order)
        if (auto done = add_node(graph.node(i)); !done) return done;
    return {};
}

Result<void> Importer::add_node(const pb::NodeProto& node) {
    if (node.op_type() != "Constant") ++nodes_in_file_;
    builder_.begin_node(node_name(node));
    out_.origins[builder_.node()] = {node.op_type(), domain_of(node)};
    if (foreign_.allowed() && (is_foreign(node) || foreign_.reads_any(node))) {
        auto done = foreign_.add(node, why_foreign(node));
        if (!done && is_foreign(node)) {
            const pb::GraphProto& graph = file_.proto().graph();
            return Error{done.error().code,
                         done.error().message + refused_like(file_.path(), graph, node, opsets_,
                                                             names_before_nodes(graph))};
        }
        return done;
    }
    const bool is_if = node.op_type() == "If" && domain_of(node).empty();
    Builder::Mark mark = builder_.mark(is_if);
    auto done = is_if ? add_if(node) : add_own(node);
    if (done || !foreign_.allowed() || done.error().code != ErrorCode::unsupported) return done;
    builder_.go_back(std::move(mark));
    // A form of the operator that is none of ours; our sentence stays, should ONNX Runtime refuse
    // it.
    if (auto taken = foreign_.add(node, reason_of(done.error())); !taken) return done;
    return {};
}

Result<void> Importer::add_own(const pb::NodeProto& node) {
    auto converted = attributes(node);
    if (!converted) return converted.error();
    const auto opset = opsets_.find(domain_of(node));
    OnnxNode n{.proto = node,
               .domain = domain_of(node),
               .opset = opset == opsets_.end() ? 1 : opset->second,
               .inputs = {},
               .attributes = std::move(*converted),
               .outputs = {node.output().begin(), node.output().end()}};
    for (const std::string& input : node.input())
        n.inputs.push_back(input.empty() ? graph::none : builder_.find(input));
    if (!counts_outputs(node.op_type()))
        while (!n.outputs.empty() && n.outputs.back().empty()) n.outputs.pop_back();
    lower(builder_, file_, std::move(n));
    if (builder_.error()) return *builder_.error();
    return {};
}

// Takes the branch that the condition selects. Names of the branch end with it.
Result<void> Importer::add_if(const pb::NodeProto& node) {
    const ValueId id = node.input_size() == 1 ? builder_.find(node.input(0)) : graph::none;
    if (id == graph::none)
        return error(ErrorCode::bad_model, "node '" + node_name(node) + "' (If) has " +
                                               std::to_string(node.input_size()) +
                                               " inputs, expected one, the condition");
    const auto& condition = builder_.graph.value(id).constant;
    if (!condition || condition->bytes.size() != 1)
        return Error{
            ErrorCode::unsupported,
            refusal(file_.path(), node, opsets_[""],
                    "a control-flow operator that neither the NPU nor the CPU partition runs",
                    "export the model with the branch folded, or split it at tensor '{}'",
                    node.input(0))};
    const bool taken = condition->bytes[0] != std::byte{0};
    const pb::GraphProto* branch = nullptr;
    for (const auto& attribute : node.attribute())
        if (attribute.name() == (taken ? "then_branch" : "else_branch") && attribute.has_g())
            branch = &attribute.g();
    if (!branch || branch->output_size() != node.output_size())
        return error(ErrorCode::bad_model,
                     "node '" + node_name(node) + "' (If) has no branch with its outputs");

    std::set<std::string> constants = names_before_nodes(*branch);
    std::set<std::string> names = constants;
    for (const auto& [name, value] : builder_.scope) {
        names.insert(name);
        if (builder_.graph.value(value).constant ||
            std::ranges::find(builder_.graph.inputs, value) != builder_.graph.inputs.end())
            constants.insert(name);
    }
    for (const auto& inner : branch->node())
        names.insert(inner.output().begin(), inner.output().end());
    if (auto done =
            check_nodes(file_.path(), *branch, opsets_, constants, names, foreign_.allowed());
        !done)
        return done;

    auto outer = builder_.scope;
    if (auto done = add_initialisers(*branch); !done) return done;
    if (auto done = add_nodes(*branch); !done) return done;
    for (int i = 0; i < node.output_size(); ++i) {
        const ValueId result = builder_.find(branch->output(i).name());
        if (result == graph::none)
            return error(ErrorCode::bad_model,
                         "node '" + node_name(node) +
                             "' (If) has a branch that never makes its output '" +
                             branch->output(i).name() + "'");
        if (!node.output(i).empty()) outer[node.output(i)] = result;
    }
    builder_.scope = std::move(outer);
    return {};
}

Result<Attributes> Importer::attributes(const pb::NodeProto& node) const {
    Attributes out;
    for (const auto& a : node.attribute()) {
        switch (a.type()) {
            case pb::AttributeProto::INT:
                out[a.name()] = int64_t{a.i()};
                break;
            case pb::AttributeProto::FLOAT:
                out[a.name()] = a.f();
                break;
            case pb::AttributeProto::STRING:
                out[a.name()] = a.s();
                break;
            case pb::AttributeProto::INTS:
                out[a.name()] = std::vector<int64_t>(a.ints().begin(), a.ints().end());
                break;
            case pb::AttributeProto::FLOATS:
                out[a.name()] = std::vector<float>(a.floats().begin(), a.floats().end());
                break;
            case pb::AttributeProto::STRINGS:
                out[a.name()] = graph::Strings(a.strings().begin(), a.strings().end());
                break;
            case pb::AttributeProto::TENSOR:
            case pb::AttributeProto::SPARSE_TENSOR:
                break;  // Constant and ConstantOfShape look at the file's own form
            default:
                return error(ErrorCode::unsupported, "node '" + node_name(node) + "' (" +
                                                         operator_name(node) +
                                                         ") has the attribute '" + a.name() +
                                                         "', which is no number, text or tensor");
        }
    }
    return out;
}

// Whether a shape has the rank and the numbers that the file gives; nothing said agrees.
bool agrees(const pb::TensorShapeProto& said, const graph::Type& type) {
    if (said.dim_size() == 0) return true;
    if (static_cast<size_t>(said.dim_size()) != type.shape.size()) return false;
    for (int i = 0; i < said.dim_size(); ++i)
        if (said.dim(i).dim_value() > 0 &&
            said.dim(i).dim_value() != type.shape[static_cast<size_t>(i)])
            return false;
    return true;
}

// Outputs keep their ONNX names. One that is an input, a constant or another output under a second
// name gets an Identity.
Result<void> Importer::add_outputs() {
    const pb::GraphProto& proto = file_.proto().graph();
    if (proto.output_size() == 0) return error(ErrorCode::bad_model, "has no outputs");
    graph::Graph& graph = builder_.graph;
    std::unordered_set<ValueId> taken(graph.inputs.begin(), graph.inputs.end());
    std::unordered_set<std::string> names;
    for (const ValueId id : graph.inputs) names.insert(graph.value(id).name);
    for (const auto& output : proto.output()) {
        ValueId id = builder_.find(output.name());
        if (id == graph::none && foreign_.holds(output.name()))
            return error(ErrorCode::unsupported,
                         "output '" + output.name() +
                             "' is no tensor of numbers (a sequence, strings, an optional value); "
                             "keep this part in the application");
        if (id == graph::none)
            return error(ErrorCode::bad_model, "output '" + output.name() +
                                                   "' is made by no node; export the model again");
        if (!is_clean_name(output.name()))
            return error(ErrorCode::bad_model,
                         "the name of output '" + output.name() + "' is not printable; rename it");
        if (taken.contains(id) || graph.value(id).constant) {
            graph::Node node;
            node.kind = "Identity";
            node.name = builder_.unique_node_name(output.name());
            node.sources = {node.name};
            node.inputs = {id};
            id = graph.add_value({}, graph.value(id).type);
            graph.value(id).data_dependent = graph.value(node.inputs[0]).data_dependent;
            node.outputs = {id};
            graph.nodes.push_back(std::move(node));
        }
        if (!names.insert(output.name()).second)
            return error(ErrorCode::bad_model,
                         "has two inputs or outputs named '" + output.name() +
                             "', each needs a name of its own; give the output that of an "
                             "Identity, or remove it");
        // The value that bears the name by now is another one only where this one is an alias.
        for (graph::Value& value : graph.values)
            if (&value != &graph.value(id) && value.name == output.name())
                value.name = builder_.unique_value_name(output.name());
        graph.value(id).name = output.name();
        taken.insert(id);
        graph.outputs.push_back(id);
        const pb::TypeProto_Tensor& said = output.type().tensor_type();
        if (!agrees(said.shape(), graph.value(id).type)) makes_declared_outputs_ = false;
        if (auto done = check_border_type("output", id, said.elem_type()); !done) return done;
        if (said.elem_type() != pb::TensorProto::UNDEFINED &&
            data_type(said.elem_type()) != graph.value(id).type.data_type)
            return error(ErrorCode::bad_model,
                         "output '" + output.name() + "' is declared as " +
                             elem_type_name(said.elem_type()) + ", its node makes " +
                             std::string(graph::short_name(graph.value(id).type.data_type)) +
                             "; export the model again, or insert a Cast");
    }
    return {};
}

// Inputs and outputs have the types that applications can hold, and at least one element.
Result<void> Importer::check_border_type(const char* direction, ValueId id,
                                         int32_t declared) const {
    const graph::Value& value = builder_.graph.value(id);
    const std::string what = std::string(direction) + " '" + value.name + "'";
    const bool packed = declared == pb::TensorProto::INT4 || declared == pb::TensorProto::UINT4;
    if (value.type.data_type == DataType::unknown || value.type.data_type == DataType::float64 ||
        packed)
        return error(
            ErrorCode::unsupported,
            what + " has the element type " +
                (packed || value.type.data_type == DataType::unknown ? elem_type_name(declared)
                                                                     : "DOUBLE") +
                "; accepted are FLOAT, FLOAT16, BFLOAT16, BOOL and integers of 8 to 64 bits: "
                "insert a Cast");
    if (value.type.shape.size() > 8)
        return error(ErrorCode::unsupported, what + " has the shape " + to_string(value.type) +
                                                 ", at most 8 dimensions are accepted");
    for (const int64_t d : value.type.shape)
        if (d == 0)
            return error(ErrorCode::unsupported,
                         what + " has the shape " + to_string(value.type) + " without elements");
    return {};
}

void Importer::count() {
    std::unordered_set<std::string> left;
    for (const graph::Node& node : builder_.graph.nodes) {
        left.insert(node.sources.begin(), node.sources.end());
        out_.ops += graph::count_ops(builder_.graph, node);
    }
    out_.operators = static_cast<uint32_t>(left.size());
    for (const std::string& name : left) out_.origins.try_emplace(name, Origin{"Identity", ""});
    std::erase_if(out_.origins, [&](const auto& entry) { return !left.contains(entry.first); });
    out_.folded = nodes_in_file_ > out_.operators ? nodes_in_file_ - out_.operators : 0;
}

// A model whose file leaves numbers open, to be tried with some.
struct Trial {
    std::string path;
    const ImportOptions& options;
    const pb::ModelProto& proto;

    // Whether it can be imported; `as_declared`: whether its outputs have the shapes that the file
    // gives.
    bool succeeds(const BindOptions& binding, bool* as_declared = nullptr) const {
        auto file = ModelFile::open(path);
        if (!file) return false;
        Importer importer(std::move(*file), binding, options.foreign);
        if (!importer.run()) return false;
        if (as_declared) *as_declared = importer.makes_declared_outputs();
        return true;
    }
};

// The first size for all axes without a number that gives outputs as the file has them, else the
// first with which the model can be imported; 0 if there is none.
int64_t find_example(const Trial& trial, BindOptions binding) {
    int64_t first = 0;
    for (const int64_t size : example_sizes(trial.proto)) {
        bool as_declared = false;
        binding.example = size;
        if (!trial.succeeds(binding, &as_declared)) continue;
        if (as_declared) return size;
        if (first == 0) first = size;
    }
    return first;
}

// A batch without a number may be a number inside the model all the same.
Error with_fixed_batch(const Trial& trial, BindOptions binding, Error error) {
    const std::string options = shape_options(trial.path, trial.proto, binding);
    if (error.code != ErrorCode::bad_model || options.empty()) return error;
    for (const int64_t batch : {2, 3, 4, 5, 6, 8, 10, 16, 32, 64}) {
        binding.batch = batch;
        if (!trial.succeeds(binding)) continue;
        error.message += "; inside, its batch is fixed to " + std::to_string(batch) + ": give " +
                         shape_options(trial.path, trial.proto, binding) + " to vartml compile";
        break;
    }
    return error;
}

}  // namespace

Result<Imported> import_onnx(const std::string& path, const ImportOptions& options) {
    auto file = ModelFile::open(path);
    if (!file) return file.error();
    BindOptions binding{.shapes = options.input_shapes};
    Importer importer(std::move(*file), binding, options.foreign);
    auto imported = importer.run();
    if (imported || !options.find_example) return imported;
    const Trial trial{path, options, importer.proto()};
    if (!importer.is_open()) return with_fixed_batch(trial, binding, imported.error());
    binding.example = find_example(trial, binding);
    return refuse_open_axes(path, trial.proto, binding);
}

Result<std::set<std::string>> tensor_names(const std::string& path) {
    auto file = ModelFile::open(path);
    if (!file) return file.error();
    std::set<std::string> names;
    for (const auto& node : file->proto().graph().node())
        for (const std::string& output : node.output())
            if (!output.empty()) names.insert(output);
    return names;
}

Result<std::string> model_signature(const std::string& path) {
    auto file = ModelFile::open(path);
    if (!file) return file.error();
    return file->signature();
}

Result<MapOutputs> map_outputs(const std::string& path) {
    auto file = ModelFile::open(path);
    if (!file) return file.error();
    const pb::GraphProto& graph = file->proto().graph();
    MapOutputs maps;
    for (const pb::NodeProto& node : graph.node()) {
        if (node.op_type() != "ZipMap" || node.input_size() != 1 || node.output_size() != 1)
            continue;
        const std::string& numbers = node.input(0);
        maps.numbers[node.output(0)] = numbers;
        const bool is_output =
            std::ranges::any_of(graph.output(), [&](const auto& o) { return o.name() == numbers; });
        if (!is_output && std::ranges::find(maps.inside, numbers) == maps.inside.end())
            maps.inside.push_back(numbers);
    }
    return maps;
}

}  // namespace vartml::onnx
