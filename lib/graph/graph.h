// SPDX-License-Identifier: Apache-2.0
// The intermediate representation: a list of operators in execution order over named values. It is
// what the importer makes, what the passes change, what a program on disk holds and what a device
// loads.
//
// Operators have one canonical form whatever operator set the model declares: parameters that ONNX
// moved from attributes to constant inputs over time (axes, pads, sizes, min, max …) are attributes
// here whenever they are constant. ops.h lists them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml::graph {

// Element type and logical (ONNX) shape. Rank 0 is an empty shape.
struct Type {
    DataType data_type = DataType::unknown;
    std::vector<int64_t> shape;
    // The largest number there is where the shape has more.
    int64_t elements() const;
    size_t size_bytes() const;
    bool operator==(const Type&) const = default;
};
std::string to_string(const Type& type);     // f32[1,3,416,416]
std::string_view short_name(DataType type);  // f32, f16, bf16, f64, i8 … u64, bool
std::optional<DataType> parse_short_name(std::string_view text);

// Bytes of a constant, dense row-major in the logical shape. `owner` keeps them alive: an import
// buffer, a heap block or the mapping of a compiled model.
struct Constant {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
    template <typename T>
    std::span<const T> as() const {
        return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
    }
};
Constant make_constant(std::vector<std::byte> bytes);
template <typename T>
Constant make_constant(std::span<const T> values) {
    const auto bytes = std::as_bytes(values);
    return make_constant(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

using ValueId = int32_t;             // index into Graph::values
inline constexpr ValueId none = -1;  // absent optional input

struct Value {
    std::string name;  // the ONNX tensor name where there is one; unique in the graph
    Type type;
    std::optional<Constant> constant;
    bool data_dependent = false;  // the shape is an upper bound
};

// A type of its own: libstdc++ 14 takes a variant of std's containers alone for one that always has
// a value, and destroys a value that was never made when a copy throws (out of memory).
struct Strings : std::vector<std::string> {
    using std::vector<std::string>::vector;
};

using Attribute =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, Strings>;
using Attributes = std::map<std::string, Attribute, std::less<>>;  // sorted: one printing order

// What is computed: the ONNX type, or one of ours, and its attributes.
struct Operation {
    std::string kind;
    Attributes attributes;

    // Attribute or the default given; the type must be that of the default (checked by the verifier
    // for known operators).
    int64_t get(std::string_view key, int64_t fallback) const;
    float get(std::string_view key, float fallback) const;
    std::string get(std::string_view key, const char* fallback) const;
    std::vector<int64_t> get(std::string_view key, std::vector<int64_t> fallback) const;
    std::vector<float> get(std::string_view key, std::vector<float> fallback) const;
    bool has(std::string_view key) const { return attributes.contains(key); }
};

// One operator, and what is fused behind it, which is applied to each output element in that order.
// Operands of fused operations follow the inputs of the first in order. A fused Conv,
// ConvTranspose, Gemm or MatMul has exactly three leading inputs (data, weight, bias or none).
struct Node : Operation {
    std::vector<Operation> fused;
    std::string domain;  // "" for ONNX's own, "vartml" for ours (SiLU)
    std::string name;    // unique; the ONNX node's name, or made from its first output
    std::vector<std::string> sources;  // names of the ONNX nodes it came from
    std::vector<ValueId> inputs;       // `none` for an absent optional input
    std::vector<ValueId> outputs;

    // The kinds of all operations, as in "Conv+Add+Relu".
    std::string type() const;
    std::vector<std::string_view> kinds() const;
    // The operation that makes the output.
    const Operation& last() const { return fused.empty() ? *this : fused.back(); }
};
// How a node is written: its attributes, and those of fused operations with the kind in front
// ("Clip.max"); and back, from a node whose `kind` is such a type.
Attributes written_attributes(const Node& node);
void take_apart(Node& node);

struct Graph {
    std::string name;
    std::vector<Value> values;
    std::vector<ValueId> inputs, outputs;  // in the order of the model
    std::vector<Node> nodes;               // in execution order

    const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
    Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
    ValueId add_value(std::string name, Type type);
    ValueId add_constant(std::string name, Type type, Constant constant);
    std::string unique_name(
        std::string_view stem) const;  // stem, stem_1, …: no value or node has it
};

// Who makes and who reads each value; valid until the graph changes.
struct Uses {
    std::vector<int32_t> producer;  // node index per value, -1 for inputs and constants
    std::vector<std::vector<int32_t>>
        consumers;                // node indices per value, a node once per input position
    std::vector<bool> is_output;  // per value
};
Uses find_uses(const Graph& graph);

// Deletes nodes whose outputs nobody needs, then values nobody names; ids change. Returns the
// number of nodes deleted.
size_t remove_dead(Graph& graph);

}  // namespace vartml::graph
