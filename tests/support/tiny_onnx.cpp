// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiny_onnx.h"

#include <type_traits>

#include "tests/support/temp_dir.h"

namespace vartml::test {
namespace {

void set_shape(::onnx::ValueInfoProto& info, const std::vector<TinyOnnx::Dim>& shape, int type) {
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    auto* dims = tensor->mutable_shape();
    for (const TinyOnnx::Dim& dim : shape) {
        auto* d = dims->add_dim();
        if (const int* number = std::get_if<int>(&dim)) {
            d->set_dim_value(*number);
        } else if (const auto& symbol = std::get<std::string>(dim); !symbol.empty()) {
            d->set_dim_param(symbol);
        }
    }
}

void set_value(::onnx::AttributeProto& a, const TinyOnnx::Attribute& value) {
    std::visit(
        [&](const auto& v) {
            using T = std::decay_t<decltype(v)>;
            using A = ::onnx::AttributeProto;
            if constexpr (std::is_same_v<T, int64_t>) {
                a.set_type(A::INT), a.set_i(v);
            } else if constexpr (std::is_same_v<T, float>) {
                a.set_type(A::FLOAT), a.set_f(v);
            } else if constexpr (std::is_same_v<T, std::string>) {
                a.set_type(A::STRING), a.set_s(v);
            } else if constexpr (std::is_same_v<T, TinyOnnx::Ints>) {
                a.set_type(A::INTS), a.mutable_ints()->Add(v.begin(), v.end());
            } else if constexpr (std::is_same_v<T, TinyOnnx::Floats>) {
                a.set_type(A::FLOATS), a.mutable_floats()->Add(v.begin(), v.end());
            } else if constexpr (std::is_same_v<T, TinyOnnx::Strings>) {
                a.set_type(A::STRINGS), a.mutable_strings()->Add(v.begin(), v.end());
            } else if constexpr (std::is_same_v<T, ::onnx::GraphProto>) {
                a.set_type(A::GRAPH), *a.mutable_g() = v;
            } else {
                a.set_type(A::TENSOR), *a.mutable_t() = v;
            }
        },
        value);
}

}  // namespace

TinyOnnx::TinyOnnx(int opset_version, int ir_version) {
    proto_.set_ir_version(ir_version);
    proto_.mutable_graph()->set_name("tiny");
    opset("", opset_version);
}

TinyOnnx& TinyOnnx::opset(const std::string& domain, int version) {
    auto* set = proto_.add_opset_import();
    set->set_domain(domain);
    set->set_version(version);
    return *this;
}

TinyOnnx& TinyOnnx::input(const std::string& name, const std::vector<Dim>& shape, int type) {
    auto* info = proto_.mutable_graph()->add_input();
    info->set_name(name);
    set_shape(*info, shape, type);
    return *this;
}

TinyOnnx& TinyOnnx::output(const std::string& name, const std::vector<Dim>& shape, int type) {
    if (type == 0 && !shape.empty()) type = float32;
    auto* info = proto_.mutable_graph()->add_output();
    info->set_name(name);
    if (type != 0) info->mutable_type()->mutable_tensor_type()->set_elem_type(type);
    if (!shape.empty()) set_shape(*info, shape, type);
    return *this;
}

TinyOnnx& TinyOnnx::floats(const std::string& name, const Ints& shape, const Floats& values) {
    return initialiser(float_tensor(name, shape, values));
}

TinyOnnx& TinyOnnx::ints(const std::string& name, const Ints& shape, const Ints& values) {
    return initialiser(int_tensor(name, shape, values));
}

TinyOnnx& TinyOnnx::weights(const std::string& name, const Ints& shape) {
    size_t n = 1;
    for (const int64_t d : shape) n *= static_cast<size_t>(d);
    uint32_t seed = 2166136261u;
    for (const char c : name) seed = (seed ^ static_cast<uint8_t>(c)) * 16777619u;
    Floats values(n);
    for (float& v : values) {
        seed = seed * 1664525u + 1013904223u;
        v = static_cast<float>(static_cast<int>(seed >> 16 & 0xff) - 128) / 512.0f;
    }
    return floats(name, shape, values);
}

TinyOnnx& TinyOnnx::initialiser(const ::onnx::TensorProto& tensor) {
    *proto_.mutable_graph()->add_initializer() = tensor;
    return *this;
}

TinyOnnx& TinyOnnx::node(const std::string& op, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs,
                         const std::vector<std::pair<std::string, Attribute>>& attributes,
                         const std::string& domain) {
    auto* n = proto_.mutable_graph()->add_node();
    n->set_op_type(op);
    n->set_domain(domain);
    if (!outputs.empty()) n->set_name(outputs[0] + "_node");
    for (const std::string& input : inputs) n->add_input(input);
    for (const std::string& output : outputs) n->add_output(output);
    for (const auto& [name, value] : attributes) {
        auto* a = n->add_attribute();
        a->set_name(name);
        set_value(*a, value);
    }
    return *this;
}

TinyOnnx& TinyOnnx::metadata(const std::string& key, const std::string& value) {
    auto* entry = proto_.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
    return *this;
}

std::string TinyOnnx::bytes() const {
    return proto_.SerializeAsString();
}
void TinyOnnx::save(const std::string& path) const {
    spill(path, bytes());
}

::onnx::TensorProto float_tensor(const std::string& name, const TinyOnnx::Ints& shape,
                                 const TinyOnnx::Floats& values) {
    ::onnx::TensorProto t;
    t.set_name(name);
    t.set_data_type(TinyOnnx::float32);
    t.mutable_dims()->Add(shape.begin(), shape.end());
    t.mutable_float_data()->Add(values.begin(), values.end());
    return t;
}

::onnx::TensorProto int_tensor(const std::string& name, const TinyOnnx::Ints& shape,
                               const TinyOnnx::Ints& values) {
    ::onnx::TensorProto t;
    t.set_name(name);
    t.set_data_type(TinyOnnx::int64);
    t.mutable_dims()->Add(shape.begin(), shape.end());
    t.mutable_int64_data()->Add(values.begin(), values.end());
    return t;
}

}  // namespace vartml::test
