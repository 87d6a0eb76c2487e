// SPDX-License-Identifier: Apache-2.0
// Where a model's picture lies on the frame, and pictures that take colours from the frame.
#pragma once
#include <gst/video/video.h>

#include <memory>
#include <optional>

#include <vartml/output_picture.h>
#include <vartml/preprocess.h>

#include "gst/support/in_place.h"
#include "gst/support/picture_info.h"
#include "gst/support/placement.h"

namespace vartml::gst {

// What a model's picture shows of a frame: borders that were added to the frame are cut off.
struct Shown {
    vartml::PictureCut cut;  // of the picture
    Rectangle frame;         // the same of the frame, in its pixels
    bool whole = false;      // all of the frame
    bool operator==(const Shown&) const = default;
};
// `to_frame` maps pixels of a model input of that size. A frame of unknown size is shown whole.
// Nothing where the map turns or mirrors, or nothing of the frame is shown.
std::optional<Shown> shown_part(const vartml::Affine& to_frame, unsigned model_width,
                                unsigned model_height, unsigned picture_width,
                                unsigned picture_height, FrameSize frame);

// The shape of a pixel, so that the part of the frame looks as it does there.
struct Fraction {
    int n = 1, d = 1;
};
Fraction pixel_aspect(const Shown& shown, Fraction of_frame);

// A GstVideoConverter, kept while nothing changes. Thread-safety: none.
class PictureConverter {
public:
    // Puts a part of one frame in a part of another, scaled; the rest of that stays. False where
    // GStreamer cannot.
    bool run(GstVideoFrame* src, const Rectangle& src_part, GstVideoFrame* dst,
             const Rectangle& dst_part);

private:
    struct Free {
        void operator()(GstVideoConverter* c) const { gst_video_converter_free(c); }
    };
    std::unique_ptr<GstVideoConverter, Free> converter_;
    GstVideoInfo src_{}, dst_{};
    Rectangle src_part_, dst_part_;
};

// A frame mapped for as long as it lives. Thread-safety: none.
class VideoMapping {
public:
    VideoMapping(const GstVideoInfo& info, GstBuffer* buffer, GstMapFlags flags)
        : mapped_(map_frame(&frame_, info, buffer, flags)) {}
    ~VideoMapping() {
        if (mapped_) gst_video_frame_unmap(&frame_);
    }
    VideoMapping(const VideoMapping&) = delete;
    VideoMapping& operator=(const VideoMapping&) = delete;
    explicit operator bool() const { return mapped_; }
    GstVideoFrame* frame() { return &frame_; }
    uint8_t* row(unsigned plane, int y) {
        return static_cast<uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame_, plane)) +
               ptrdiff_t{y} * GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, plane);
    }
    size_t stride(unsigned plane) const {
        return static_cast<size_t>(GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, plane));
    }

private:
    GstVideoFrame frame_;
    bool mapped_;
};

// An opacity, scaled to a part of a picture with an alpha channel (RGBA). Thread-safety: none.
class AlphaWriter {
public:
    ~AlphaWriter() { clear(); }
    void clear();
    // Writes a picture's opacity into the fourth bytes; outside of the part they become 0. Gives
    // how many values are not finite. False where there is no memory.
    bool run(vartml::OutputPicture& picture, const Shown& shown, VideoMapping& rgba,
             size_t& not_finite);

private:
    PictureConverter converter_;
    GstBuffer *small_ = nullptr, *large_ = nullptr;
    GstVideoInfo small_info_{}, large_info_{};
};

}  // namespace vartml::gst
