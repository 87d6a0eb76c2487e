// SPDX-License-Identifier: Apache-2.0
// Video caps and frames as the library's plain descriptions of pictures.
#pragma once
#include <gst/video/video.h>

#include <optional>
#include <string>

#include <vartml/preprocess.h>
#include <vartml/result.h>

#include "gst/support/tensor_caps.h"

namespace vartml::gst {

// Formats that the pre-processing reads, in three structures: DMA_DRM, system memory, and
// memory:DMABuf in the style before GStreamer 1.24. The caller owns the reference.
GstCaps* picture_caps();
// Fourcc of the linear layout of a format, as in the caps field drm-format; "" where there is none.
std::string drm_fourcc(GstVideoFormat format);

// How frames under some caps lie in memory.
struct FrameFormat {
    GstVideoInfo info;  // for gst_video_frame_map; never a DMA_DRM info
    vartml::PictureInfo picture;
    // Frames that are no pictures: `info` has their rows as pixels of one byte, `picture` their
    // size alone.
    std::optional<TensorFrame> tensor;
};
// Errors: unsupported naming the format or modifier, or as tensor_frame().
vartml::Result<FrameFormat> frame_format(const GstCaps* caps);

// Whether they are RGB or grey of 16 to 235, which neither the pre-processing nor videoconvert
// reads as such.
bool has_limited_colours(const GstVideoInfo& info);

// In the answer to an ALLOCATION query: frames may have a GstVideoMeta, and no GstVideoCropMeta,
// whatever those behind understand. Nobody here would see that only a part of a frame is shown.
void ask_for_whole_frames(GstQuery* query);

// Unsupported where a GstVideoCropMeta says that only a part of the frame is meant.
vartml::Result<void> expect_whole_frame(GstBuffer* buffer, const GstVideoInfo& info);

// gst_video_frame_map() without a reference of its own, but also false where a GstVideoMeta places
// rows outside of the memory or one over the other.
bool map_frame(GstVideoFrame* frame, const GstVideoInfo& info, GstBuffer* buffer,
               GstMapFlags flags);

// A frame mapped for reading, unmapped by the destructor. Frames whose rows go upwards (negative
// strides) are not mapped. The buffer must outlive it.
class MappedFrame {
public:
    MappedFrame(const FrameFormat& format, GstBuffer* buffer);
    ~MappedFrame();
    MappedFrame(const MappedFrame&) = delete;
    MappedFrame& operator=(const MappedFrame&) = delete;

    bool mapped() const { return mapped_; }
    const vartml::Picture& picture() const { return picture_; }

private:
    GstVideoFrame frame_;
    bool mapped_;
    vartml::Picture picture_;
};

}  // namespace vartml::gst
