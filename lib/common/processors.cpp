// SPDX-License-Identifier: Apache-2.0
#include "lib/common/processors.h"

#include <sched.h>

#include <algorithm>

namespace vartml {

unsigned usable_processors() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

}  // namespace vartml
