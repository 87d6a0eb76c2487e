// SPDX-License-Identifier: Apache-2.0
// One event in a thread's ring: a header, arguments, frames, copied text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <vartml/profile.h>

namespace vartml::profiling {

struct RecordStart {
    uint32_t size = 0;  // of the whole record, a multiple of 8
    char phase = 0;     // as in the file; 0: nothing follows, it fills the end of a ring
    uint8_t category = 0, num_args = 0, num_frames = 0;
};

struct RecordHeader : RecordStart {
    const char* name = nullptr;
    uint64_t at_ns = 0;
    uint64_t extra = 0;         // duration, or the id of an async pair
    uint32_t pid = 0, tid = 0;  // 0: the ring's thread
};

struct RecordArg {
    const char* key;
    uint64_t value;  // of copied text: nothing
    uint32_t kind, size;
};

// The arrow is in the highest byte of `seq`.
struct RecordFrame {
    uint64_t flow_id, seq;
};
inline constexpr uint64_t seq_mask = (uint64_t{1} << 56) - 1;

inline constexpr size_t max_record_args = 15, max_record_frames = 64;

// What follows a header, in the writer.
struct RecordView {
    const RecordHeader* header;
    std::span<const RecordArg> args;
    std::span<const RecordFrame> frames;
    const char* text;  // of the copied arguments, one after another

    explicit RecordView(const std::byte* record)
        : header(reinterpret_cast<const RecordHeader*>(record)),
          args(reinterpret_cast<const RecordArg*>(record + sizeof(RecordHeader)), header->num_args),
          frames(reinterpret_cast<const RecordFrame*>(args.data() + args.size()),
                 header->num_frames),
          text(reinterpret_cast<const char*>(frames.data() + frames.size())) {}
};

}  // namespace vartml::profiling
