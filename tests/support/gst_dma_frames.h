// SPDX-License-Identifier: Apache-2.0
// Frames in dma-bufs, on machines without a device that makes them.
#pragma once
#include <gst/allocators/gstdmabuf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace vartml::test {

// Memory of kind dma-buf over a memfd, as a capture driver gives it; byte i is i modulo 251.
inline GstMemory* dma_memory(gsize size) {
    static GstAllocator* const allocator = [] {
        GstAllocator* a = gst_dmabuf_allocator_new();
        GST_OBJECT_FLAG_SET(a, GST_OBJECT_FLAG_MAY_BE_LEAKED);
        return a;
    }();
    const int fd = memfd_create("frame", 0);
    EXPECT_EQ(ftruncate(fd, off_t(size)), 0);
    auto* bytes =
        static_cast<guint8*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    for (gsize i = 0; i < size; ++i) bytes[i] = guint8(i % 251);
    munmap(bytes, size);
    return gst_dmabuf_allocator_alloc(allocator, fd, size);
}

inline GstBuffer* frame_of(GstMemory* memory) {
    GstBuffer* buffer = gst_buffer_new();
    gst_buffer_append_memory(buffer, memory);
    return buffer;
}

}  // namespace vartml::test
