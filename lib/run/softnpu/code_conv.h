// SPDX-License-Identifier: Apache-2.0
// QLinearConv and QLinearMatMul of uint8 codes by our own kernels.
#pragma once
#include "lib/run/softnpu/int8_products.h"

namespace vartml::softnpu {

// Weights are input 3, the bias is input 8.
struct CodeConv {
    const graph::Node& node;
    Coding x, y;
    std::vector<float> scales;  // of sums, one number or one per output
    // What a result is before it becomes a code, in steps of the result.
    std::optional<kernels::Epilogue> activation;
    std::vector<float> factors;  // behind it, one number or one per output
};

// Whether the kernels run it on this processor; `weights` less their zero points fit int8.
bool runs_code_conv(const Lowering& lowering, const CodeConv& conv);
void lower_code_conv(Lowering& lowering, const CodeConv& conv);

// The same for products with a constant matrix, whose rows are the pixels of a picture one pixel
// wide: `a` rows x depth, `dst` rows x columns, dense.
bool runs_code_product(const Lowering& lowering, const CodeConv& conv);
void lower_code_product(Lowering& lowering, const CodeConv& conv, const View& a, const View& dst);

}  // namespace vartml::softnpu
