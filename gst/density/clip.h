// SPDX-License-Identifier: Apache-2.0
// A video as it is encoded, in memory, to be sent again and again as a camera sends it.
#pragma once
#include <gst/gst.h>

#include <memory>
#include <string>
#include <vector>

#include <vartml/result.h>

namespace vartml::gst::density {

struct Clip {
    struct UnrefCaps {
        void operator()(GstCaps* caps) const { gst_caps_unref(caps); }
    };
    struct UnrefBuffer {
        void operator()(GstBuffer* buffer) const { gst_buffer_unref(buffer); }
    };
    struct Frame {
        std::unique_ptr<GstBuffer, UnrefBuffer> buffer;
        GstClockTime pts = 0;  // from the begin of the clip
        // Frames that must come behind it before it can be shown in its turn, where the video's
        // order of decoding is another than that of showing.
        unsigned waits_for = 0;
    };
    std::unique_ptr<GstCaps, UnrefCaps> caps;
    std::vector<Frame> frames;  // in the order of decoding, the first is a key frame
    GstClockTime period = 0;    // between two frames, at the rate that was asked for
    double rate() const { return double(GST_SECOND) / double(period); }
    GstClockTime length() const { return period * frames.size(); }
};

// `rate`: frames per second; 0: the video's. Errors: invalid_argument for what is no video, has no
// key frame, no rate, two formats or too many bytes; io for what cannot be read.
Result<Clip> read_clip(const std::string& file, double rate);

}  // namespace vartml::gst::density
