// SPDX-License-Identifier: Apache-2.0
// One model of a collection through all its steps.
#pragma once
#include "lib/tools/verify/collection.h"

namespace vartml::verify {

// Fills everything but `name`, `key` and `build`. Errors: io, for what is not the model's fault.
Result<void> verify_model(const CollectionRequest& request, const OnnxRuntime& reference,
                          const std::string& model, ModelRow& row);

// The value of the option --input-shape that a refusal recommends, such as "x:1,3,<height>,640", or
// "".
std::string recommended_shape(const std::string& refusal);

}  // namespace vartml::verify
