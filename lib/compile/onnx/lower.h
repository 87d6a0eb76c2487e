// SPDX-License-Identifier: Apache-2.0
// What an ONNX node becomes where it is not taken over as it is: older operator sets, other
// domains, composite operators.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/compile/onnx/builder.h"
#include "lib/compile/onnx/model_file.h"

namespace vartml::onnx {

// A node with its inputs looked up and its attributes in the form of the IR.
struct OnnxNode {
    const pb::NodeProto& proto;
    std::string domain;
    int opset = 0;                     // of its domain
    ValueIds inputs;                   // graph::none for an absent one
    Attributes attributes;             // numbers, strings and lists of them
    std::vector<std::string> outputs;  // tensor names, "" for an absent one

    ValueId input(size_t i) const { return i < inputs.size() ? inputs[i] : graph::none; }
    bool has_output(size_t i) const { return i < outputs.size() && !outputs[i].empty(); }
    // Attribute, or the fallback where it is absent or of another type.
    template <typename T>
    T get(std::string_view key, T fallback) const {
        const auto found = attributes.find(key);
        const T* value = found == attributes.end() ? nullptr : std::get_if<T>(&found->second);
        return value ? *value : fallback;
    }
    std::string get(std::string_view key, const char* fallback) const {
        return get<std::string>(key, fallback);
    }
    const pb::AttributeProto* find(std::string_view key) const;
};

// Whether lower() knows the operator.
bool can_lower(std::string_view domain, std::string_view op);

// The operators that lower() changes, and all that it knows outside of the default domain; the
// others are taken over as they are.
struct LoweredOperator {
    std::string_view domain, op;
    bool is_kept;  // under its name; else it becomes others
};
std::vector<LoweredOperator> lowered_operators();

// Appends what the node becomes and binds its outputs; failures are in the builder.
void lower(Builder& builder, ModelFile& file, OnnxNode node);

// The parts of lower()'s table; private to lib/compile/onnx.

struct LowerRow {
    std::string_view domain, op;
    void (*handler)(Builder&, ModelFile&, OnnxNode&);
    // Of an operator that becomes others: the attributes that the handler reads, each with its kind
    // as in ops.h. '*': the node is taken over with all of them, and inference knows which.
    std::string_view attributes = "*";
};
std::span<const LowerRow> experimental_rows();  // that ONNX once had and dropped
std::span<const LowerRow> fused_rows();         // of com.microsoft: what optimisers join
std::span<const LowerRow> quantised_rows();     // of com.microsoft: what quantisers write
std::span<const LowerRow> transformer_rows();   // what sets 23 and 24 add

inline constexpr std::string_view microsoft = "com.microsoft";

// Binds the first output; nothing after a failure.
void bind_first(Builder& b, const OnnxNode& n, ValueId id);
// Fails if an output from `first` on is read: it has no counterpart here.
bool refuse_outputs(Builder& b, const OnnxNode& n, size_t first, size_t last = SIZE_MAX);
ValueId swap_last_two(Builder& b, ValueId x);
// The tensor itself where it has the type.
ValueId cast_to(Builder& b, ValueId x, DataType type);
// A scalar of the type of `like`.
ValueId number(Builder& b, float value, ValueId like);

// Codes (uint8) of a tensor by its own range, as DynamicQuantizeLinear defines them.
struct Codes {
    ValueId values, scale, zero_point;
};
Codes quantise_by_range(Builder& b, ValueId x);

}  // namespace vartml::onnx
