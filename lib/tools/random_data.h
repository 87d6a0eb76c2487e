// SPDX-License-Identifier: Apache-2.0
// Data for inputs that nobody gave.
#pragma once
#include <cstddef>
#include <vector>

#include <vartml/tensor.h>

namespace vartml::tools {

// The same data in every run and on every machine: floats in [0, 1), bytes over their range, wider
// integers 0 or 1, which are often indices.
std::vector<std::byte> random_bytes(DataType type, size_t size_bytes, unsigned seed);

}  // namespace vartml::tools
