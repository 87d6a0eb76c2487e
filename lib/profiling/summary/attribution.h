// SPDX-License-Identifier: Apache-2.0
// Divides the time of an inference among its operators: each instant equally among those that run
// then. Waits never count; conversions only where nothing else runs.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include <vartml/result.h>

#include "lib/profiling/summary/instances.h"

namespace vartml::profiling {

struct Attribution {
    double work_ns = 0, conversion_ns = 0;
};

// `done` gets each operator that is no wait and no conversion, with its part of the time. Within a
// group operators must start one after another, as they are executed; one that starts before what
// was already divided gets its part from there on.
Result<Attribution> attribute(std::vector<GroupReader>& readers, const Descriptor& descriptor,
                              uint64_t begin_ns, uint64_t end_ns,
                              const std::function<void(const Instance&, double ns)>& done);

}  // namespace vartml::profiling
