// SPDX-License-Identifier: Apache-2.0
// Frames that already are the model's input tensor: which formats can be, and how such a frame
// reaches the device.
#pragma once
#include <gst/video/video.h>

#include <optional>
#include <string>

#include "gst/infer/lane.h"
#include "gst/infer/stats.h"

namespace vartml::gst::infer {

// The first thing in which caps do not suit the tensor; empty `field`: they do.
struct CapsDifference {
    std::string field, offered, wanted;
};

// What to say of it where frames must be the tensor.
Failure tensor_caps_failure(const CapsDifference& difference);

// Thread-safety: immutable but for the cache of imports, which locks itself.
class FrameTensor {
public:
    // Nothing where no video format has the bytes of the lane's picture (`why` says so): it must be
    // of 8 bits, HCWNC4 with 3 or 4 channels, or NHWC or NCHW.
    static std::optional<FrameTensor> create(const Lane& lane, std::string& why);

    // The formats and the size that fit, for any memory; the caller owns the reference.
    GstCaps* caps() const;
    CapsDifference compare(const GstVideoInfo& info) const;

    struct Result {
        bool failed = false;                                // the frame cannot be mapped
        bool imported = false;                              // request->inputs[picture] is the frame
        bool new_import = false;                            // for the first time with this memory
        CopyReason reason = CopyReason::not_device_memory;  // of the copy, where not imported
    };
    // Puts the frame into the request: by import, or by a copy into the request's own memory.
    // Waits for the fences of a dma-buf.
    Result put(GstBuffer* buffer, const GstVideoInfo& info, const Lane& lane, Request* request,
               bool may_import) const;
    // The copy alone; false: the frame cannot be mapped.
    bool copy(GstBuffer* buffer, const GstVideoInfo& info, void* tensor) const;

    size_t size_bytes() const { return input_.view.size_bytes; }

private:
    RunnerTensor input_;
    uint32_t width_ = 0, height_ = 0;
    unsigned planes_ = 1;
    size_t row_bytes_ = 0;  // of one plane
    std::vector<GstVideoFormat> formats_;
};

}  // namespace vartml::gst::infer
