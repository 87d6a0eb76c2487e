// SPDX-License-Identifier: Apache-2.0
// Metadata that waits for its pictures.
#pragma once
#include <gst/gst.h>

#include <deque>
#include <memory>
#include <optional>

namespace vartml::gst {

struct UnrefBuffer {
    void operator()(GstBuffer* buffer) const { gst_buffer_unref(buffer); }
};

// Kept metadata by running time, at most 64. Thread-safety: none.
class Matcher {
public:
    static constexpr size_t most = 64;
    struct Kept {
        GstClockTime time;
        std::shared_ptr<GstBuffer> metadata;
        int width, height;  // of the picture that it was of
        int par_n, par_d;
    };

    bool full() const { return kept_.size() >= most; }
    bool empty() const { return kept_.empty(); }
    // The oldest gives way when it is full.
    void add(Kept kept);
    // The nearest within `tolerance`, ties to the earlier; `distance` gets that of the nearest at
    // all, GST_CLOCK_TIME_NONE where there is none.
    std::optional<Kept> match(GstClockTime time, GstClockTime tolerance,
                              GstClockTime& distance) const;
    // Lets go of what no picture from `time` on can match.
    void prune(GstClockTime time, GstClockTime tolerance);
    void clear() { kept_.clear(); }

private:
    std::deque<Kept> kept_;
};

}  // namespace vartml::gst
