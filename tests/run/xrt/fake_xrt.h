// SPDX-License-Identifier: Apache-2.0
// What the double of XRT's library has seen.
#pragma once
#include <cstdint>

struct FakeXrt {
    uint64_t allocated, imported, subs, exported, to_device, from_device;  // calls so far
    int64_t live;  // buffer objects that are not given back
    uint32_t last_bank;
    bool strict_subs = false;  // their offsets must be whole pages
    int failing_syncs = 0;     // the next ones throw
};
extern FakeXrt fake_xrt;
