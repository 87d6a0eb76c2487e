// SPDX-License-Identifier: Apache-2.0
// What tests put in place of the system. Nothing else writes here; null is the system.
#pragma once
#include <atomic>

struct perf_event_attr;

namespace vartml {

namespace device {
class Device;
}

struct TestSeams {
    std::atomic<device::Device*> device{nullptr};  // the device "fake"
    // The software NPU multiplies codes also where sums of two products saturate in 16 bits, which
    // those of small weights do not: its way of int8 runs on every x86 processor.
    std::atomic<bool> saturating_products{false};
    // renameat2 has no flags, as on some file systems.
    std::atomic<bool> plain_renames{false};
    // perf_event_open for the calling thread; errno as it sets it.
    std::atomic<int (*)(perf_event_attr& attributes, int group)> open_counter{nullptr};
};
inline TestSeams test_seams;

}  // namespace vartml
