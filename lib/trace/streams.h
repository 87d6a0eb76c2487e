// SPDX-License-Identifier: Apache-2.0
// The frames of each stream: numbers by order of first sight of a time stamp, where their arrows
// are.
#pragma once
#include <cstdint>
#include <string>

#include <vartml/profile.h>

namespace vartml::profiling {

// Thread-safety: all may be called concurrently. A known frame is found without a lock.

void stream_id(uint32_t index, std::string& id);
FrameKey frame_key(uint32_t stream, int64_t pts_ns, bool is_source, bool is_restart);
// `lane_bit` is one bit that stands for the slice's lane.
FrameArrow frame_arrow(FrameKey key, uint64_t start_ns, bool at_sink, uint64_t lane_bit);
uint64_t frame_start_ns(FrameKey key);

}  // namespace vartml::profiling
