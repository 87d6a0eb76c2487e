// SPDX-License-Identifier: Apache-2.0
// What the elements share that leave frames where they are, and read or add metadata: caps are any,
// strides too, and nothing is dropped.
#pragma once
#include <gst/base/gstbasetransform.h>

#include <optional>
#include <string>
#include <vector>

namespace vartml::gst {

// For class_init: pads of any caps, texts, allocation: the query goes downstream, GstVideoMeta is
// always offered, no pool is.
void set_up_in_place(GstBaseTransformClass* klass, const char* name, const char* category,
                     const char* description);
// For init.
void set_up_in_place(GstBaseTransform* base);
// For finalize.
template <typename Instance>
void free_state(GObject* object) {
    delete reinterpret_cast<Instance*>(object)->state;
    G_OBJECT_CLASS(g_type_class_peek(GST_TYPE_BASE_TRANSFORM))->finalize(object);
}

// The size of a frame; 0 = not known.
struct FrameSize {
    int width = 0, height = 0;
    bool operator==(const FrameSize&) const = default;
};
FrameSize video_size(const GstCaps* caps);

// By how much `after` is larger than `before`; nothing where either is not known, or both are the
// same.
struct Growth {
    double x = 1, y = 1;
};
std::optional<Growth> growth(FrameSize before, FrameSize after);

// The time that passes from frame to frame, for what counts it: the PTS, in a segment that plays
// backwards counted the other way, so that it grows there as well. Streaming thread.
class FrameClock {
public:
    void restart() { *this = {}; }
    // Another stream, or another place in it: what was counted says nothing of it.
    void begin() {
        last_pts_ = GST_CLOCK_TIME_NONE;
        last_ = next_ = 0;
    }
    void set_caps(const GstCaps* caps);
    // When the next frame of `segment` is. One without PTS, or with that of the frame before, is as
    // long after that one as it lasts: its duration, else that of the caps' rate, else 1/30 s. Does
    // not step back where the PTS do not.
    GstClockTime time(const GstSegment& segment, const GstBuffer* buffer);
    // The PTS that such a time of the last frame's segment is.
    GstClockTime pts(GstClockTime time) const { return backwards_ ? last_of_all - time : time; }

private:
    static constexpr GstClockTime last_of_all = G_MAXINT64;

    GstClockTime frame_duration_ = GST_CLOCK_TIME_NONE;  // of the caps
    GstClockTime last_pts_ = GST_CLOCK_TIME_NONE;
    GstClockTime last_ = 0, next_ = 0;
    bool backwards_ = false;
};

// Controlled properties get what they are at the stream time of this frame.
void sync_properties(GstObject* element, const GstSegment& segment, const GstBuffer* buffer);
inline void sync_properties(GstBaseTransform* base, const GstBuffer* buffer) {
    sync_properties(GST_OBJECT(base), base->segment, buffer);
}

// Warns once since start that frames are copied.
class CopyNotice {
public:
    void restart() { told_ = false; }
    void copied(gpointer element, const char* why);

private:
    bool told_ = false;
};
inline constexpr const char* cannot_share =
    "the frame's memory cannot be shared: copied to add metadata";

// prepare_output_buffer as the base class does it, but a copy keeps upstream's tensors, which have
// no transform. `copied` tells whether the frame's memory could not be shared.
GstFlowReturn prepare_writable(GstBuffer* in, GstBuffer** out, bool& copied);

// The same for a frame that is drawn into: where the buffer or its memory is not writable, the
// frame is copied, with its strides.
GstFlowReturn prepare_drawable(GstBuffer* in, GstBuffer** out, bool& copied);

// The parts of a comma list, without spaces around them and without empty ones.
std::vector<std::string> split_list(const std::string& text);

}  // namespace vartml::gst
