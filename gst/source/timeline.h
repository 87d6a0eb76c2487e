// SPDX-License-Identifier: Apache-2.0
// The one time line of a source whose connections each begin a time of their own.
#pragma once
#include <gst/gst.h>

#include <optional>

namespace vartml::gst {

/// Maps running times of a connection to running times of the element, which never go back. Not
/// thread-safe.
class Timeline {
public:
    /// The next frame is the first of a connection. What comes live keeps its time where that is
    /// plausible; what does not begins where the connection before ended, or, after an outage,
    /// now.
    void begin(bool live, bool after_outage);
    /// Running time of a frame. `time` is its running time in the connection, absent where it has
    /// none; `now` the clock's, absent while there is no clock; `duration` may be
    /// GST_CLOCK_TIME_NONE.
    GstClockTime map(std::optional<GstClockTime> time, std::optional<GstClockTime> now,
                     GstClockTime duration);
    /// What is added to times of the connection.
    GstClockTimeDiff offset() const { return offset_; }

    /// A live frame whose time is further from the clock's gets the clock's.
    static constexpr GstClockTimeDiff most_behind = 10 * GST_SECOND, most_ahead = GST_SECOND;

private:
    GstClockTimeDiff first_offset(GstClockTime time, std::optional<GstClockTime> now) const;

    bool live_ = false, after_outage_ = false, first_ = true;
    GstClockTimeDiff offset_ = 0;
    std::optional<GstClockTime> last_;  // of the last frame
    GstClockTime length_ = 0;           // of the last frame; where it has none, from the one before
    GstClockTime end_ = 0;              // where the last frame ends
};

}  // namespace vartml::gst
