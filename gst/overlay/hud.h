// SPDX-License-Identifier: Apache-2.0
// What a viewer wants to know of a running pipeline, as lines of text.
#pragma once
#include <gst/gst.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "gst/overlay/scene.h"
#include "gst/overlay/text.h"

namespace vartml::gst::overlay {

// Counts frames and inferences, and words them twice per second, so that they can be read.
// Thread-safety: one thread at a time.
class Hud {
public:
    // A frame passes at `now_us` of a clock that never steps.
    void count(GstBuffer* buffer, int64_t now_us);
    // Nothing has passed.
    void clear() { *this = {}; }

    // Frames per second over the last second, 95th percentiles of the whole time and the run of
    // the last inferences, share of frames without an inference, name of the model.
    unsigned num_lines() const { return num_lines_; }
    std::string_view line(unsigned i) const { return lines_[i].data(); }
    // Adds the lines at the top left. Returns how many lines of the picture they take.
    int add_to(Scene& scene, Text& text) const;

private:
    // The last values.
    struct Window {
        std::array<uint32_t, 256> values{};
        size_t count = 0;
        void add(uint64_t value);
        size_t size() const { return std::min(count, values.size()); }
        uint32_t percentile_95() const;
        double mean() const;
    };

    void count_inferences(GstBuffer* buffer);
    double frames_per_second() const;
    void word();
    [[gnu::format(printf, 2, 3)]] void add_line(const char* format, ...);

    std::array<int64_t, 1024> times_{};  // of the frames of the last second, a ring
    size_t first_ = 0, num_times_ = 0;
    Window total_us_, run_us_, age_us_, skipped_;
    guint64 last_result_ = 0;
    std::array<char, 64> model_{};
    int64_t worded_us_ = 0;
    unsigned num_lines_ = 0;
    std::array<std::array<char, 96>, 5> lines_{};
};

}  // namespace vartml::gst::overlay
