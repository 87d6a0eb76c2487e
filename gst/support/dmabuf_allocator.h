// SPDX-License-Identifier: Apache-2.0
// Memory in real dma-bufs: udmabuf, else the system's dma-heap.
#pragma once
#include <gst/gst.h>

namespace vartml::gst {

// An allocator of dma-buf memory, or nullptr where this process may use neither /dev/udmabuf nor
// /dev/dma_heap/system. The caller owns the reference.
GstAllocator* dmabuf_allocator_new();

}  // namespace vartml::gst
