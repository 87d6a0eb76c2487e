// SPDX-License-Identifier: Apache-2.0
// The parts of lower()'s table; private to lib/onnx.
#pragma once
#include <span>
#include <string_view>

#include "lib/onnx/lower.h"

namespace vartml::onnx {

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

inline constexpr std::string_view microsoft = "com.microsoft";

// Binds the first output; nothing after a failure.
void bind_first(Builder& b, const OnnxNode& n, ValueId id);
ValueId swap_last_two(Builder& b, ValueId x);

// Codes (uint8) of a tensor by its own range, as DynamicQuantizeLinear defines them.
struct Codes {
    ValueId values, scale, zero_point;
};
Codes quantise_by_range(Builder& b, ValueId x);

}  // namespace vartml::onnx
