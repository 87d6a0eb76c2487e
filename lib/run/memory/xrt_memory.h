// SPDX-License-Identifier: Apache-2.0
// Buffer objects of XRT as memory. XRT is behind the module libvartml-xrt.so, which is loaded when
// it is asked for; nothing else links XRT.
#pragma once
#include <memory>

#include <vartml/result.h>

#include "lib/run/memory/memory.h"

namespace vartml::runtime {

// The memory of one device of XRT. Its native objects are xrt::bo. Errors: unsupported where this
// build has no module or XRT is not there or does not fit it, not_found where XRT has no such
// device; each with the way out.
Result<std::shared_ptr<MemoryProvider>> xrt_memory(unsigned device_index);

// The memory of an application's own xrt::bo; null where this process does not use XRT. Errors:
// those of xrt_memory, invalid_argument for an empty xrt::bo, device with XRT's reason.
Result<std::shared_ptr<Memory>> wrap_xrt_bo(const void* bo);

// What the module exports, as the symbol `vartml_xrt`. The version is that of this struct and of
// the classes in memory.h.
struct XrtModule {
    static constexpr unsigned current = 1;
    unsigned version;
    Result<std::shared_ptr<MemoryProvider>> (*open)(unsigned device_index);
    Result<std::shared_ptr<Memory>> (*wrap)(const void* bo);
};

}  // namespace vartml::runtime
