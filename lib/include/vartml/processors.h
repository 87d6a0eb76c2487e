// SPDX-License-Identifier: Apache-2.0
// Which part of the machine this process may use.
#pragma once

namespace vartml {

/// Processors that this process may run on and, where control groups give it less, that their quota
/// is enough for: at least 1. A run on the software NPU has so many threads unless told otherwise.
/// Read from the system at each call. Thread-safe.
unsigned usable_processors();

/// The quota of processor time of this process's control groups (cpu.max, or cpu.cfs_quota_us of
/// version 1), the smallest of the group and those above it, in processors: 0.5 is half of one. 0:
/// there is none. Read from the system at each call. Thread-safe.
double processor_quota();

/// Seconds that the threads of this process's control group were kept from a processor because its
/// quota was used up, since it was made; 0 where there is none. Read from the system at each call.
/// Thread-safe.
double processor_throttled_s();

}  // namespace vartml
