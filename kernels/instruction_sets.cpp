// SPDX-License-Identifier: Apache-2.0
#include "kernels/instruction_sets.h"

#include <hwy/targets.h>

namespace vartml::kernels {

int64_t instruction_sets() {
    return hwy::SupportedTargets();
}

}  // namespace vartml::kernels
