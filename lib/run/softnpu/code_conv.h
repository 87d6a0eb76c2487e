// SPDX-License-Identifier: Apache-2.0
// QLinearConv of uint8 codes by our own kernels.
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

}  // namespace vartml::softnpu
