// SPDX-License-Identifier: Apache-2.0
// Writes a capture as a raw stats buffer.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

#include "lib/profiling/capture.h"
#include "lib/profiling/descriptor.h"

namespace vartml::profiling {

// What all buffers of a run have in common.
struct BufferContext {
    const Descriptor* descriptor = nullptr;
    std::array<uint8_t, 16> descriptor_id{};  // see descriptor_id_of
    std::array<uint8_t, 16> boot_id{};
    uint64_t anchor0_realtime_ns = 0;  // CLOCK_REALTIME at Capture::begin_ns
    uint32_t pid = 0;
    uint64_t peak_ops_per_s = 0, peak_bytes_per_s = 0;  // 0: not calibrated
    bool threads_pinned = false;
};

// The first 16 bytes of SHA-256 of the entry opstatsdesc.bin.
std::array<uint8_t, 16> descriptor_id_of(std::string_view descriptor_bytes);
// Of the running kernel; zeros where it has none.
std::array<uint8_t, 16> boot_id_of_kernel();

// What the buffer says of absent fields: `capture.missing`, and a line for each section that the
// level or the compilation leaves out.
std::vector<NotCaptured> missing_of(const Capture& capture, const Descriptor& descriptor);

// Writes `<path>.part` and renames it. Same input, same bytes. Errors: io; invalid_argument for a
// capture that the format does not hold.
Result<void> write_stats_buffer(const Capture& capture, const BufferContext& context,
                                const std::string& path);

}  // namespace vartml::profiling
