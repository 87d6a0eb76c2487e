// SPDX-License-Identifier: Apache-2.0
// Which control of a camera of vivid stands for which of a board's pre-processor.
#pragma once

namespace vartml::test {

struct StandIn {
    const char *preprocessor, *vivid;
};
// One of vivid's has all 32 bits; the others have 0 to 100 at least.
constexpr StandIn stand_ins[] = {
    {"preprocess_param_alpha_1", "Integer 32 Bits"},
    {"preprocess_param_alpha_2", "Brightness"},
    {"preprocess_param_alpha_3", "Contrast"},
    {"preprocess_param_beta_1", "Saturation"},
    {"preprocess_param_beta_2", "Hue"},
    {"preprocess_param_beta_3", "Alpha Component"},
    {"preprocess_int8_out_ibits", "Fill Percentage of Frame"},
};

}  // namespace vartml::test
