// SPDX-License-Identifier: Apache-2.0
// Frames that already are the model's input tensor: which formats can be, and how such a frame
// reaches the device.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>

#include <gst/video/video.h>

#include <vartml/model.h>
#include <vartml/postprocess.h>
#include <vartml/preprocess.h>

#include "gst/infer/lane.h"
#include "gst/infer/settings.h"
#include "gst/infer/stats.h"
#include "gst/support/camera_format.h"
#include "gst/support/decoder_query.h"
#include "gst/support/error.h"
#include "gst/support/picture_info.h"

namespace vartml::gst::infer {

// Which tensors can be pictures, and what is done to a frame before it becomes one.

struct PictureExtent {
    uint32_t channels = 0, height = 0, width = 0;
};
// Channels, height and width of a CPU view that can be a picture: [1, C, H, W], [1, H, W, C] or
// [1, H, W] with C of 1 or 3, and of 4 where frames are the tensor already.
std::optional<PictureExtent> picture_extent(const vartml::TensorView& cpu, bool four_channels);

const vartml::ModelInfo::Input* sidecar_input(const vartml::ModelInfo& info,
                                              const std::string& name);

// How frames become the input `picture`: sidecar, the family of those who decode the outputs (that
// which an automatic decoder would choose where nobody answered), the input's type, and the
// property `resize-mode`. False: two decoders want different pixels; `failure` is filled.
bool choose_picture_pixels(const Settings& settings, const vartml::ModelInfo& info,
                           const vartml::ModelDescription& description, size_t picture,
                           std::span<const DecoderWish> wishes, vartml::PixelChoice& choice,
                           Failure& failure);

// What to say of a choice that nobody vouches for.
Failure pixels_doubt(const vartml::PixelChoice& choice, const std::string& input);

// The first thing in which caps do not suit the tensor; empty `field`: they do.
struct CapsDifference {
    std::string field, offered, wanted;
};

// What to say of it where frames must be the tensor.
Failure tensor_caps_failure(const CapsDifference& difference);

// Whether frames that are tensors, by their caps, can be this lane's input as they are: a camera
// made them for some model, and nothing here can make others of them. False: `failure` is filled.
bool suits_tensor(const Settings& settings, const Lane& lane, const TensorFrame& frame,
                  Failure& failure);

// Thread-safety: immutable but for the cache of imports, which locks itself.
class FrameTensor {
public:
    // Nothing where no caps name the bytes of the lane's picture (`why` says so). Video formats
    // have 8 bits, HCWNC4 with 3 or 4 channels, or NHWC or NCHW; other types and blocks are tensors
    // by their caps.
    static std::optional<FrameTensor> create(const Lane& lane, std::string& why);

    // The formats and the size that fit, for any memory; the caller owns the reference.
    GstCaps* caps() const;
    CapsDifference compare(const GstVideoInfo& info) const;
    CapsDifference compare(const TensorFrame& frame) const;
    // Of codes of red, green and blue. None where the model's own are not known.
    CapsDifference compare(const std::array<ColourCodes, 3>& codes) const;

    struct Result {
        bool failed = false;                                // the frame cannot be mapped, or is
        bool unfinished = false;                            // still written by its producer
        bool imported = false;                              // request->inputs[picture] is the frame
        bool new_import = false;                            // for the first time with this memory
        CopyReason reason = CopyReason::not_device_memory;  // of the copy, where not imported
    };
    // Puts the frame into the request: by import, or by a copy into the request's own memory.
    // Waits for the fences of a dma-buf.
    Result put(GstBuffer* buffer, const FrameFormat& format, const Lane& lane, Request* request,
               bool may_import) const;
    // The copy alone; false: the frame cannot be mapped.
    bool copy(GstBuffer* buffer, const FrameFormat& format, void* tensor) const;

    size_t size_bytes() const { return input_.view.size_bytes; }

private:
    // How a frame lies where nothing is padded.
    struct Rows {
        unsigned planes;
        size_t row_bytes, rows;  // of one plane
    };
    Rows rows_of(const FrameFormat& format) const;
    GstCaps* tensor_caps() const;

    RunnerTensor input_;
    uint32_t channels_ = 0, width_ = 0, height_ = 0;
    std::optional<vartml::ChannelOrder> order_;  // where it is no guess
    // Of red, green and blue, where the values of pixels are no guess and become int8.
    std::optional<std::array<ColourCodes, 3>> codes_;
    unsigned planes_ = 1;
    size_t row_bytes_ = 0;                 // of one plane of a picture
    std::vector<GstVideoFormat> formats_;  // pictures whose bytes are those of the tensor
};

// Whether a camera that makes such codes of red, green and blue is set for this lane's model, whose
// tensor the frames are. False: `failure` is filled.
bool suits_camera(const Settings& settings, const Lane& lane, const FrameTensor& tensor,
                  const std::array<ColourCodes, 3>& codes, Failure& failure);

}  // namespace vartml::gst::infer
