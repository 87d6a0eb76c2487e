// SPDX-License-Identifier: Apache-2.0
// One line about a view, for messages.
#pragma once
#include <string>

#include <vartml/tensor.h>

namespace vartml {

// "NCHW [1,3,224,224] fp32".
std::string describe(const TensorView& view);

}  // namespace vartml
