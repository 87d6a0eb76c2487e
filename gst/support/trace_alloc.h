// SPDX-License-Identifier: Apache-2.0
// Allocations of frame and tensor memory as events of an open trace.
#pragma once
#include <string_view>

#include <vartml/profile.h>

namespace vartml::gst {

inline void trace_alloc(std::string_view reason, uint64_t bytes) {
    if (!(HostTrace::flags() & trace_flag::allocs)) return;
    const TraceArg args[] = {{"bytes", bytes}, TraceArg::copy("reason", reason)};
    HostTrace::instant({.category = TraceCategory::host, .name = "allocation", .args = args},
                       HostTrace::stamp_ns());
}

}  // namespace vartml::gst
