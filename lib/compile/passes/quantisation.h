// SPDX-License-Identifier: Apache-2.0
// What 8-bit codes mean, for the passes over quantised models. Private to the passes.
#pragma once
#include <optional>
#include <vector>

#include "lib/compile/passes/rewrite.h"

namespace vartml::compiler {

// Scale and zero point of a whole tensor of int8 or uint8: real = (code - zero) · scale.
struct Coding {
    DataType type = DataType::unknown;
    float scale = 1;
    int32_t zero = 0;
    graph::ValueId scale_id = graph::none, zero_id = graph::none;  // none: zero

    int32_t lowest() const { return type == DataType::int8 ? -128 : 0; }
    int32_t highest() const { return type == DataType::int8 ? 127 : 255; }
    int32_t code(double real) const;  // to nearest even, saturating
    double real(int32_t code) const { return static_cast<double>(code - zero) * scale; }
    bool operator==(const Coding& other) const {
        return type == other.type && scale == other.scale && zero == other.zero;
    }
};

// Of the codes that a DequantizeLinear reads or a QuantizeLinear writes; nullopt for other nodes,
// other types, a scale per channel or per block, parameters that are no constants.
std::optional<Coding> coding_of(const Rewriter& rewriter, const graph::Node* node);
// Of the codes behind a float value that a DequantizeLinear makes; `codes` becomes their value.
std::optional<Coding> codes_behind(Rewriter& rewriter, graph::ValueId real, graph::ValueId& codes);

// Scale (a float without axes) and zero point as operands of a QLinear operator.
graph::ValueId scale_operand(Rewriter& rewriter, const Coding& coding);
graph::ValueId zero_operand(Rewriter& rewriter, const Coding& coding);

// The numbers that a DequantizeLinear of constants gives; empty where something is no constant.
std::vector<double> dequantised(const Rewriter& rewriter, const graph::Node& node);

}  // namespace vartml::compiler
