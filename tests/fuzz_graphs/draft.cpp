// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz_graphs/draft.h"

#include <algorithm>
#include <cmath>
#include <set>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>
#pragma GCC diagnostic pop

#include "tests/fuzz_graphs/evaluate.h"

namespace vartml::fuzz_graphs {
namespace {

using test::TinyOnnx;

constexpr int64_t most_elements = 20000;
constexpr double most_of_float = 1e4, most_of_half = 500, most_of_integer = 1e9;

bool is_moderate(const TensorData& data) {
    if (count_elements(data.shape) > most_elements || data.shape.size() > cpu::max_rank)
        return false;
    const double most = data.type == DataType::fp16   ? most_of_half
                        : verify::is_float(data.type) ? most_of_float
                                                      : most_of_integer;
    return std::ranges::all_of(all_numbers(data), [&](double v) { return std::fabs(v) <= most; });
}

// Numbers that such tensors hold in models.
TensorData random_tensor(Random& random, DataType type, const Ints& shape, double low,
                         double high) {
    std::vector<double> values(static_cast<size_t>(count_elements(shape)));
    const bool round = verify::is_float(type) && random.chance(0.1);
    for (double& v : values) {
        v = random.real(low, high);
        if (round) v = std::round(v * 2) / 2;  // halves, between which operators decide
    }
    if (type == DataType::boolean)
        for (double& v : values) v = random.chance(0.5) ? 1 : 0;
    if (!verify::is_float(type))
        for (double& v : values) v = std::floor(v);
    return tensor_of(type, shape, values);
}

std::pair<double, double> usual_range(DataType type) {
    switch (type) {
        case DataType::int8:
            return {-128, 128};
        case DataType::uint8:
            return {0, 256};
        case DataType::uint16:
        case DataType::uint32:
        case DataType::uint64:
            return {0, 20};
        case DataType::int16:
        case DataType::int32:
        case DataType::int64:
            return {-10, 10};
        default:
            return {-2, 2};
    }
}

const ::onnx::OpSchema* schema_of(const std::string& kind, int opset) {
    const auto* schema = ::onnx::OpSchemaRegistry::Schema(kind, opset, "");
    return schema && !schema->Deprecated() ? schema : nullptr;
}

}  // namespace

Draft::Draft(uint64_t seed, std::string scratch) : random(seed), scratch_(std::move(scratch)) {
    static constexpr int sets[] = {9, 11, 12, 13, 15, 17, 17, 18, 19, 20, 21, 22};
    coded = random.chance(0.2);
    set_opset(coded ? 17 : sets[random.index(std::size(sets))]);
}

void Draft::set_opset(int version) {
    opset = version;
    model_.proto.clear_opset_import();
    model_.proto.set_ir_version(version >= 21 ? 10 : 8);
    for (const auto& [domain, number] : {std::pair{"", version}, std::pair{"com.microsoft", 1}}) {
        auto* set = model_.proto.add_opset_import();
        set->set_domain(domain);
        set->set_version(number);
    }
    model_.proto.mutable_graph()->set_name("random");
}

std::string Draft::new_name(const char* stem) {
    return stem + std::to_string(names_++);
}

const Tensor& Draft::keep(Tensor tensor) {
    if (!tensor.is_constant) order_.push_back(tensor.name);
    const std::string name = tensor.name;
    return tensors_[name] = std::move(tensor);
}

// ---- operands

Ints Draft::shape(int64_t least_rank, int64_t most_rank) {
    Ints shape(static_cast<size_t>(random.between(least_rank, most_rank)));
    const bool has_one_frame = random.chance(0.6);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        const bool is_side = axis + 2 >= shape.size();
        shape[axis] = is_side ? random.between(1, 13) : random.between(1, 5);
        if (shape.size() == 4 && axis == 1)
            shape[axis] = random.chance(0.2) ? random.pick<int64_t>({8, 15, 16, 17, 24, 32, 33})
                                             : random.between(1, 9);
    }
    if (has_one_frame && shape.size() > 2) shape[0] = 1;
    return shape;
}

Ints Draft::broadcast_to(const Ints& shape) {
    Ints other = shape;
    if (random.chance(0.5)) return other;
    for (int64_t& size : other)
        if (random.chance(0.4)) size = 1;
    if (random.chance(0.3))
        other.erase(other.begin(), other.begin() + random.between(0, std::ssize(other)));
    return other;
}

const Tensor& Draft::operand(const Types& types, int64_t least_rank, int64_t most_rank) {
    std::vector<const Tensor*> found;
    for (const std::string& name : order_) {
        const Tensor& t = tensors_.at(name);
        if (!t.is_end && t.rank() >= least_rank && t.rank() <= most_rank &&
            std::ranges::find(types, t.type()) != types.end())
            found.push_back(&t);
    }
    // The later ones more often: chains, and now and then a tensor that has several readers.
    if (!found.empty() && random.chance(0.9))
        return *found[std::max(random.index(found.size()), random.index(found.size()))];
    const bool has_f32 = std::ranges::find(types, DataType::float32) != types.end();
    return input(has_f32 && random.chance(0.75) ? DataType::float32 : random.pick(types),
                 shape(least_rank, most_rank));
}

const Tensor& Draft::picture(const Types& types) {
    for (int attempt = 0; attempt < 4; ++attempt) {
        const Tensor& x = random.chance(0.8) ? operand(types, 4, 4) : operand(types, 3, 5);
        if (!x.is_empty()) return x;
    }
    return input(types[0], {1, random.between(1, 9), random.between(1, 13), random.between(1, 13)});
}

const Tensor* Draft::find(DataType type, const Ints& shape) {
    for (size_t i = order_.size(); i-- > 0;) {
        const Tensor& t = tensors_.at(order_[i]);
        if (!t.is_end && t.type() == type && t.shape() == shape && random.chance(0.7)) return &t;
    }
    return nullptr;
}

const Tensor& Draft::partner(DataType type, const Ints& shape) {
    const Ints own = broadcast_to(shape);
    if (random.chance(0.6))
        if (const Tensor* t = find(type, own)) return *t;
    const auto [low, high] = usual_range(type);
    return second(type, own, low, high);
}

const Tensor& Draft::input(DataType type, const Ints& shape) {
    const auto [low, high] = usual_range(type);
    return input(type, shape, low, high);
}

const Tensor& Draft::input(DataType type, const Ints& shape, double low, double high) {
    // A size of 0 of an input means that it is not known.
    if (count_elements(shape) == 0) return constant(type, shape, low, high);
    const Tensor& t =
        keep({new_name("in"), random_tensor(random, type, shape, low, high), false, false});
    model_.feed.push_back({t.name, t.data});
    return t;
}

const Tensor& Draft::constant(DataType type, const Ints& shape) {
    const auto [low, high] = usual_range(type);
    return constant(type, shape, low, high);
}

const Tensor& Draft::constant(DataType type, const Ints& shape, double low, double high) {
    return keep({new_name("c"), random_tensor(random, type, shape, low, high), true, false});
}

const Tensor& Draft::numbers(DataType type, const Ints& shape, const std::vector<double>& values) {
    return keep({new_name("c"), tensor_of(type, shape, values), true, false});
}

const Tensor& Draft::weights(DataType type, const Ints& shape, double range) {
    if (!coded || type != DataType::float32 || shape.empty())
        return constant(type, shape, -range, range);
    const bool per_channel = random.chance(0.5);
    const Tensor& code = constant(DataType::int8, shape, -127, 128);
    const Ints channels = per_channel ? Ints{shape[0]} : Ints{};
    const Tensor& scale = constant(type, channels, range / 300, range / 100);
    const Tensor& zero =
        numbers(DataType::int8, channels,
                std::vector<double>(static_cast<size_t>(count_elements(channels)), 0));
    Request request{"DequantizeLinear", {code.name, scale.name, zero.name}};
    if (per_channel) request.attributes = {{"axis", int64_t{0}}};
    const auto made = add(request);
    return made.empty() ? constant(type, shape, -range, range) : *made[0];
}

const Tensor& Draft::second(DataType type, const Ints& shape, double low, double high) {
    if (random.chance(0.85)) return constant(type, shape, low, high);
    return input(type, shape, low, high);
}

// ---- nodes

bool Draft::has(const std::string& kind) const {
    return schema_of(kind, opset) != nullptr;
}

void Draft::write_parameters(const Request& request, pb::NodeProto& node) {
    const auto* schema = schema_of(request.kind, opset);
    const graph::OpInfo* op = graph::find_onnx_op(request.kind);
    for (const auto& [name, values] : request.parameters) {
        graph::AttributeRule rule;
        for (const graph::AttributeRule& r : graph::attribute_rules(*op))
            if (r.name == name) rule = r;
        const bool is_attribute = schema && schema->attributes().contains(name);
        if (!is_attribute) {
            const auto position = static_cast<size_t>(rule.input);
            while (static_cast<size_t>(node.input_size()) <= position) node.add_input("");
            const auto& formal = schema->inputs()[position];
            DataType type = DataType::int64;
            if (!formal.GetTypes().contains(::onnx::Utils::DataTypeUtils::ToType("tensor(int64)")))
                type = DataType::float32;
            if (formal.GetTypeStr() == "T")
                type = tensors_.at(request.inputs[0]).type();  // Clip's bounds, Pad's number
            const bool is_list = rule.kind.size() == 2;
            const Ints shape = is_list || rule.name == "k" ? Ints{std::ssize(values)} : Ints{};
            node.set_input(static_cast<int>(position), numbers(type, shape, values).name);
            continue;
        }
        auto* a = node.add_attribute();
        a->set_name(name);
        if (rule.kind == "is") {
            a->set_type(pb::AttributeProto::INTS);
            for (const double v : values) a->add_ints(static_cast<int64_t>(v));
        } else if (rule.kind == "fs") {
            a->set_type(pb::AttributeProto::FLOATS);
            for (const double v : values) a->add_floats(static_cast<float>(v));
        } else if (rule.kind == "i") {
            a->set_type(pb::AttributeProto::INT), a->set_i(static_cast<int64_t>(values[0]));
        } else {
            a->set_type(pb::AttributeProto::FLOAT), a->set_f(static_cast<float>(values[0]));
        }
    }
}

std::vector<const Tensor*> Draft::add(const Request& request) {
    TinyOnnx tiny(opset);
    std::vector<std::string> outputs;
    for (size_t i = 0; i < request.outputs; ++i) outputs.push_back(new_name("t"));
    tiny.node(request.kind, request.inputs, outputs, request.attributes, request.domain);
    pb::NodeProto node = tiny.graph().node(0);
    write_parameters(request, node);
    while (node.input_size() > 0 && node.input(node.input_size() - 1).empty())
        node.mutable_input()->RemoveLast();
    Values values;
    for (const std::string& name : node.input())
        if (!name.empty()) values[name] = tensors_.at(name).data;
    auto made = evaluate(model_.proto, node, values, scratch_);
    if (!made) {
        note_refusal(node, made.error().message);
        return {};
    }
    if (!std::ranges::all_of(*made, is_moderate)) return {};
    *model_.proto.mutable_graph()->add_node() = node;
    std::vector<const Tensor*> kept;
    for (size_t i = 0; i < outputs.size(); ++i)
        kept.push_back(&keep({outputs[i], std::move((*made)[i]), false, request.is_end}));
    return kept;
}

const Tensor* Draft::one(const Request& request) {
    const auto made = add(request);
    if (made.empty()) return nullptr;
    if (!coded || made[0]->type() != DataType::float32 || request.is_end || random.chance(0.2))
        return made[0];
    const Tensor* codes = requantise(*made[0]);
    return codes ? codes : made[0];
}

const Tensor* Draft::requantise(const Tensor& tensor) {
    double low = 0, high = 0;
    for (const double v : all_numbers(tensor.data))
        low = std::min(low, v), high = std::max(high, v);
    if (tensor.is_empty() || high == low) return nullptr;
    const bool is_signed = random.chance(0.5);
    const double scale = random.chance(0.2) ? 1.0 / 32 : (high - low) / random.real(200, 300);
    const double zero = std::clamp(std::round((is_signed ? -128 : 0) - low / scale),
                                   is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0);
    const Tensor& s = numbers(DataType::float32, {}, {scale});
    const Tensor& z = numbers(is_signed ? DataType::int8 : DataType::uint8, {},
                              {random.chance(0.3) ? (is_signed ? 0 : 128) : zero});
    const auto q = add({"QuantizeLinear", {tensor.name, s.name, z.name}});
    if (q.empty()) return nullptr;
    const auto dq = add({"DequantizeLinear", {q[0]->name, s.name, z.name}});
    return dq.empty() ? nullptr : dq[0];
}

// A refusal is one where ONNX's own rules take the node.
void Draft::note_refusal(const pb::NodeProto& node, const std::string& sentence) {
    pb::ModelProto model;
    model.set_ir_version(model_.proto.ir_version());
    *model.mutable_opset_import() = model_.proto.opset_import();
    pb::GraphProto& graph = *model.mutable_graph();
    graph.set_name("alone");
    *graph.add_node() = node;
    std::set<std::string> added;
    for (const std::string& name : node.input())
        if (!name.empty() && added.insert(name).second)
            *graph.add_initializer() = to_proto(name, tensors_.at(name).data);
    for (const std::string& name : node.output()) {
        auto* output = graph.add_output();
        output->set_name(name);
        output->mutable_type()->mutable_tensor_type();
    }
    try {
        ::onnx::ShapeInferenceOptions options{true, 1, true};
        ::onnx::shape_inference::InferShapes(model, ::onnx::OpSchemaRegistry::Instance(), options);
    } catch (const std::exception&) {
        return;
    }
    std::string text =
        sentence.starts_with(scratch_ + ": ") ? sentence.substr(scratch_.size() + 2) : sentence;
    refusals_.push_back(node.op_type() + ": " + text);
}

std::optional<Model> Draft::finish() {
    std::set<std::string> read;
    for (const auto& node : model_.proto.graph().node())
        read.insert(node.input().begin(), node.input().end());
    std::vector<std::string> outputs;
    Values values;
    for (const auto& [name, tensor] : tensors_) values[name] = tensor.data;
    std::set<std::string> inputs;
    for (const NamedTensor& input : model_.feed) inputs.insert(input.name);
    pb::GraphProto& graph = *model_.proto.mutable_graph();
    for (const auto& node : graph.node())
        for (const std::string& name : node.output())
            if (!read.contains(name) || random.chance(0.07)) outputs.push_back(name);
    if (outputs.empty()) return std::nullopt;
    for (const auto& [name, tensor] : tensors_)
        if (tensor.is_constant && read.contains(name))
            *graph.add_initializer() = to_proto(name, tensor.data);
    for (const std::string& name : inputs) graph.add_input()->set_name(name);
    Model model = part_of(model_, outputs, {}, values);
    if (model.feed.empty()) return std::nullopt;  // everything is known
    return model;
}

std::optional<Model> draft_model(uint64_t seed, const std::string& scratch,
                                 std::vector<std::string>& refusals) {
    Draft draft(seed, scratch);
    static const std::vector<std::string> operators = drafted_operators();
    const auto wanted = static_cast<size_t>(draft.random.between(1, 9));
    for (int attempt = 0; attempt < 25 && draft.node_count() < wanted; ++attempt) {
        if (draft.random.chance(0.4))
            add_pattern(draft);
        else
            add_operator(draft, draft.random.pick(operators));
    }
    refusals = draft.refusals();
    return draft.finish();
}

}  // namespace vartml::fuzz_graphs
