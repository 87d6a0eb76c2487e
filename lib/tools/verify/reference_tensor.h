// SPDX-License-Identifier: Apache-2.0
// The float reference of `vartml verify`: tensors element by element, in plain loops that share
// nothing with the code under test.
#pragma once
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/session.h"

namespace vartml::verify {

// The tensor whose bytes lie as `view` says, dense in the order of its CPU view. Codes become
// (code - zero point) * scale where the CPU view is float. Errors: unsupported for views that are
// not of one tensor.
Result<TensorData> reference_values(const TensorView& view, const TensorView& cpu,
                                    const Buffer& bytes);

// Numbers as a tensor of the type given: integers rounded to the nearest even and limited.
TensorData tensor_of(DataType type, const std::vector<uint32_t>& shape,
                     const std::vector<double>& numbers);

// A tensor as the leading corner of a larger one, whose other elements are 0, those of signed
// integers -1: how an output of a data-dependent shape lies in its bound. The tensor itself where
// it does not fit.
TensorData in_bound(const TensorData& data, const std::vector<uint32_t>& bound);

}  // namespace vartml::verify
