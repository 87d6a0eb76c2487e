// SPDX-License-Identifier: Apache-2.0
// The pool that an element offers to the source of its frames.
#pragma once
#include <gst/gst.h>

namespace vartml::gst {

struct OfferedPool {
    GstBufferPool* pool = nullptr;      // the caller owns the references
    GstAllocator* allocator = nullptr;  // nullptr: plain system memory
    GstAllocationParams params;
    guint size = 0;
};

// A video pool for the caps, plain or DMA_DRM of a linear layout, with at least `min` buffers: in
// dma-bufs where this process can make them, else in system memory. Rows are as dense as the format
// has them. No pool where the caps are no video.
OfferedPool offer_pool(GstCaps* caps, guint min);

}  // namespace vartml::gst
