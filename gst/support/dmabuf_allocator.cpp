// SPDX-License-Identifier: Apache-2.0
// GStreamer's own allocator of this kind comes later than 1.26.
#include "gst/support/dmabuf_allocator.h"

#include <fcntl.h>
#include <gst/allocators/gstdmabuf.h>
#include <gst/allocators/gstfdmemory.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gst/support/trace_alloc.h"

namespace vartml::gst {
namespace {

class Descriptor {
public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }
    bool open() const { return fd_ >= 0; }

private:
    int fd_;
};

// A dma-buf of `size` bytes (whole pages), or -1.
int udmabuf(int device, size_t size) {
    const Descriptor memory(memfd_create("vartml-frame", MFD_ALLOW_SEALING | MFD_CLOEXEC));
    if (!memory.open() || ftruncate(memory.get(), off_t(size)) != 0) return -1;
    // The driver asks for this seal: pages must not go away under the device.
    if (fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) return -1;
    udmabuf_create create{};
    create.memfd = __u32(memory.get());
    create.flags = UDMABUF_FLAGS_CLOEXEC;
    create.size = size;
    return ioctl(device, UDMABUF_CREATE, &create);
}

int heap_buffer(int device, size_t size) {
    dma_heap_allocation_data data{};
    data.len = size;
    data.fd_flags = O_RDWR | O_CLOEXEC;
    return ioctl(device, DMA_HEAP_IOCTL_ALLOC, &data) == 0 ? int(data.fd) : -1;
}

struct Source {
    const char* path;
    int (*allocate)(int device, size_t size);
};
constexpr Source sources[] = {
    {"/dev/udmabuf", udmabuf},
    {"/dev/dma_heap/system", heap_buffer},
};

struct GstVartmlDmabufAllocator {
    GstDmaBufAllocator parent;
    int device;
    const Source* source;
};
struct GstVartmlDmabufAllocatorClass {
    GstDmaBufAllocatorClass parent_class;
};

G_DEFINE_TYPE(GstVartmlDmabufAllocator, gst_vartml_dmabuf_allocator, GST_TYPE_DMABUF_ALLOCATOR)

GstVartmlDmabufAllocator* self_of(gpointer object) {
    return static_cast<GstVartmlDmabufAllocator*>(object);
}

GstMemory* alloc(GstAllocator* allocator, gsize size, GstAllocationParams* params) {
    const auto page = gsize(sysconf(_SC_PAGESIZE));
    const gsize whole = (params->prefix + size + params->padding + page - 1) / page * page;
    const GstVartmlDmabufAllocator* self = self_of(allocator);
    const int fd = self->source->allocate(self->device, whole);
    if (fd < 0) return nullptr;
    trace_alloc("dma-buf of a frame", whole);
    GstMemory* memory = gst_fd_allocator_alloc(allocator, fd, whole, GST_FD_MEMORY_FLAG_NONE);
    if (memory) gst_memory_resize(memory, gssize(params->prefix), size);
    return memory;
}

void finalize(GObject* object) {
    if (self_of(object)->device >= 0) close(self_of(object)->device);
    G_OBJECT_CLASS(gst_vartml_dmabuf_allocator_parent_class)->finalize(object);
}

void gst_vartml_dmabuf_allocator_init(GstVartmlDmabufAllocator* self) {
    self->device = -1;
    GST_OBJECT_FLAG_UNSET(self, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
}

void gst_vartml_dmabuf_allocator_class_init(GstVartmlDmabufAllocatorClass* klass) {
    GST_ALLOCATOR_CLASS(klass)->alloc = alloc;
    G_OBJECT_CLASS(klass)->finalize = finalize;
}

}  // namespace

GstAllocator* dmabuf_allocator_new() {
    for (const Source& source : sources) {
        const int device = open(source.path, O_RDWR | O_CLOEXEC);
        if (device < 0) continue;
        // The node may be there without the right or the memory to use it.
        const int probe = source.allocate(device, size_t(sysconf(_SC_PAGESIZE)));
        if (probe < 0) {
            close(device);
            continue;
        }
        close(probe);
        auto* self = self_of(g_object_new(gst_vartml_dmabuf_allocator_get_type(), nullptr));
        self->device = device;
        self->source = &source;
        return GST_ALLOCATOR(gst_object_ref_sink(self));
    }
    return nullptr;
}

}  // namespace vartml::gst
