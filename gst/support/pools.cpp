// SPDX-License-Identifier: Apache-2.0
#include "gst/support/pools.h"

#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include <gst/allocators/gstdmabuf.h>
#include <gst/allocators/gstfdmemory.h>
#include <gst/gst.h>
#include <gst/video/gstvideometa.h>
#include <gst/video/gstvideopool.h>
#include <gst/video/video.h>

#include "gst/support/picture_info.h"
#include "gst/support/trace_alloc.h"

namespace vartml::gst {

namespace {

struct PoolState {
    std::shared_ptr<vart::Runner> runner;
    RunnerTensor tensor;
    std::shared_ptr<std::atomic<unsigned>> count;
};

struct GstVartmlOutputPool {
    GstBufferPool parent;
    PoolState* state;
};
struct GstVartmlOutputPoolClass {
    GstBufferPoolClass parent_class;
};

G_DEFINE_TYPE(GstVartmlOutputPool, gst_vartml_output_pool, GST_TYPE_BUFFER_POOL)

GstVartmlOutputPool* self_of(GstBufferPool* pool) {
    return reinterpret_cast<GstVartmlOutputPool*>(pool);
}

GQuark tensor_quark() {
    static const GQuark quark = g_quark_from_static_string("vartml-output-tensor");
    return quark;
}

// The memory owns the tensor: a copy of the buffer may share the memory and outlive the buffer.
void free_memory(gpointer memory) {
    delete static_cast<TensorMemory*>(memory);
}

GstFlowReturn alloc_buffer(GstBufferPool* pool, GstBuffer** buffer, GstBufferPoolAcquireParams*) {
    PoolState& state = *self_of(pool)->state;
    auto made = allocate_tensor(*state.runner, state.tensor);
    if (!made) {
        GST_ERROR_OBJECT(pool, "%s", made.error().message.c_str());
        return GST_FLOW_ERROR;
    }
    auto* memory = new TensorMemory(*std::move(made));
    const gsize size = state.tensor.info.size_in_bytes;
    *buffer = gst_buffer_new();
    // Not read-only, though nobody should write: a pool takes only writable memory back.
    gst_buffer_append_memory(*buffer, gst_memory_new_wrapped(GstMemoryFlags(0), memory->data, size,
                                                             0, size, memory, free_memory));
    gst_mini_object_set_qdata(GST_MINI_OBJECT_CAST(*buffer), tensor_quark(), &memory->tensor,
                              nullptr);
    ++*state.count;
    return GST_FLOW_OK;
}

void free_buffer(GstBufferPool* pool, GstBuffer* buffer) {
    --*self_of(pool)->state->count;
    GST_BUFFER_POOL_CLASS(gst_vartml_output_pool_parent_class)->free_buffer(pool, buffer);
}

// The pool ends: what downstream still holds does not keep the model in memory.
void flush_start(GstBufferPool* pool) {
    self_of(pool)->state->runner.reset();
}

void finalize(GObject* object) {
    PoolState* state = self_of(GST_BUFFER_POOL(object))->state;
    G_OBJECT_CLASS(gst_vartml_output_pool_parent_class)
        ->finalize(object);  // frees the buffers that are left
    delete state;
}

void gst_vartml_output_pool_init(GstVartmlOutputPool*) {}

void gst_vartml_output_pool_class_init(GstVartmlOutputPoolClass* klass) {
    klass->parent_class.alloc_buffer = alloc_buffer;
    klass->parent_class.free_buffer = free_buffer;
    klass->parent_class.flush_start = flush_start;
    G_OBJECT_CLASS(klass)->finalize = finalize;
}

}  // namespace

GstBufferPool* output_pool_new(std::shared_ptr<vart::Runner> runner, const RunnerTensor& tensor,
                               std::shared_ptr<std::atomic<unsigned>> count) {
    auto* pool = GST_BUFFER_POOL(g_object_new(gst_vartml_output_pool_get_type(), nullptr));
    gst_object_ref_sink(pool);
    self_of(pool)->state = new PoolState{std::move(runner), tensor, std::move(count)};
    GstStructure* config = gst_buffer_pool_get_config(pool);
    gst_buffer_pool_config_set_params(config, nullptr, guint(tensor.info.size_in_bytes), 0, 0);
    gst_buffer_pool_set_config(pool, config);
    gst_buffer_pool_set_active(pool, TRUE);
    return pool;
}

GstBufferPool* plain_pool_new(gsize size_bytes) {
    GstBufferPool* pool = gst_buffer_pool_new();
    GstAllocationParams params;
    gst_allocation_params_init(&params);
    params.align = 63;
    GstStructure* config = gst_buffer_pool_get_config(pool);
    gst_buffer_pool_config_set_params(config, nullptr, guint(size_bytes), 0, 0);
    gst_buffer_pool_config_set_allocator(config, nullptr, &params);
    gst_buffer_pool_set_config(pool, config);
    gst_buffer_pool_set_active(pool, TRUE);
    return pool;
}

const vart::NpuTensor& output_buffer_tensor(GstBuffer* buffer) {
    return *static_cast<const vart::NpuTensor*>(
        gst_mini_object_get_qdata(GST_MINI_OBJECT_CAST(buffer), tensor_quark()));
}

// ---- frames ----

// Memory in real dma-bufs: udmabuf, else the system's dma-heap.

// An allocator of dma-buf memory, or nullptr where this process may use neither /dev/udmabuf nor
// /dev/dma_heap/system. The caller owns the reference.
GstAllocator* dmabuf_allocator_new(gsize size);

// GStreamer's own allocator of this kind comes later than 1.26.
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

void finalize_memory(GObject* object) {
    if (self_of(object)->device >= 0) close(self_of(object)->device);
    G_OBJECT_CLASS(gst_vartml_dmabuf_allocator_parent_class)->finalize(object);
}

void gst_vartml_dmabuf_allocator_init(GstVartmlDmabufAllocator* self) {
    self->device = -1;
    GST_OBJECT_FLAG_UNSET(self, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
}

void gst_vartml_dmabuf_allocator_class_init(GstVartmlDmabufAllocatorClass* klass) {
    GST_ALLOCATOR_CLASS(klass)->alloc = alloc;
    G_OBJECT_CLASS(klass)->finalize = finalize_memory;
}

}  // namespace

GstAllocator* dmabuf_allocator_new(gsize size) {
    const auto page = static_cast<gsize>(sysconf(_SC_PAGESIZE));
    for (const Source& source : sources) {
        const int device = open(source.path, O_RDWR | O_CLOEXEC);
        if (device < 0) continue;
        // The node may be there without the right to use it, or less memory than a frame takes.
        const int probe =
            source.allocate(device, (std::max<gsize>(size, 1) + page - 1) / page * page);
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

namespace {

// GstVideoBufferPool of 1.26 does not understand DMA_DRM caps; it gets those of the linear layout.
struct GstVartmlFramePool {
    GstVideoBufferPool parent;
};
struct GstVartmlFramePoolClass {
    GstVideoBufferPoolClass parent_class;
};

G_DEFINE_TYPE(GstVartmlFramePool, gst_vartml_frame_pool, GST_TYPE_VIDEO_BUFFER_POOL)

gboolean set_config(GstBufferPool* pool, GstStructure* config) {
    GstCaps* caps = nullptr;
    guint size, min, max;
    if (gst_buffer_pool_config_get_params(config, &caps, &size, &min, &max) && caps) {
        const auto format = frame_format(caps);
        if (format && gst_video_is_dma_drm_caps(caps)) {
            GstCaps* linear = gst_video_info_to_caps(&format->info);
            gst_buffer_pool_config_set_params(config, linear, size, min, max);
            gst_caps_unref(linear);
        }
    }
    return GST_BUFFER_POOL_CLASS(gst_vartml_frame_pool_parent_class)->set_config(pool, config);
}

void gst_vartml_frame_pool_init(GstVartmlFramePool*) {}

void gst_vartml_frame_pool_class_init(GstVartmlFramePoolClass* klass) {
    GST_BUFFER_POOL_CLASS(klass)->set_config = set_config;
}

struct OfferedPool {
    GstBufferPool* pool = nullptr;      // the caller owns the references
    GstAllocator* allocator = nullptr;  // nullptr: plain system memory
    GstAllocationParams params;
    guint size = 0;
};

// A video pool for the caps, plain or DMA_DRM of a linear layout, for those of tensors one of plain
// buffers, whose rows need be no multiple of four bytes, with at least `min` buffers of at
// least `size` bytes: in dma-bufs where this process can make them, else in system memory. Rows are
// as dense as the format has them. No pool where the caps are no video.
OfferedPool offer_pool(GstCaps* caps, guint size, guint min) {
    OfferedPool offer;
    gst_allocation_params_init(&offer.params);
    auto format = frame_format(caps);
    if (!format) return offer;
    offer.size = std::max(size, guint(GST_VIDEO_INFO_SIZE(&format->info)));
    offer.allocator = dmabuf_allocator_new(offer.size);
    offer.pool = format->tensor ? gst_buffer_pool_new()
                                : GST_BUFFER_POOL(gst_object_ref_sink(
                                      g_object_new(gst_vartml_frame_pool_get_type(), nullptr)));
    if (!offer.allocator) offer.params.align = 63;
    GstStructure* config = gst_buffer_pool_get_config(offer.pool);
    gst_buffer_pool_config_set_params(config, caps, offer.size, min, 0);
    gst_buffer_pool_config_set_allocator(config, offer.allocator, &offer.params);
    if (!format->tensor)
        gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
    if (!gst_buffer_pool_set_config(offer.pool, config)) {
        gst_clear_object(&offer.pool);
        gst_clear_object(&offer.allocator);
    }
    return offer;
}

// What upstream should know of strides: 64-byte rows are read fastest; a frame that is the tensor
// has no padding at all.
GstStructure* alignment_params(bool dense) {
    const guint align = dense ? 0 : 63;
    return gst_structure_new("video-meta", "padding-top", G_TYPE_UINT, 0u, "padding-bottom",
                             G_TYPE_UINT, 0u, "padding-left", G_TYPE_UINT, 0u, "padding-right",
                             G_TYPE_UINT, 0u, "stride-align0", G_TYPE_UINT, align, "stride-align1",
                             G_TYPE_UINT, align, "stride-align2", G_TYPE_UINT, align,
                             "stride-align3", G_TYPE_UINT, align, nullptr);
}

void add_video_meta(GstQuery* query, bool dense) {
    GstStructure* params = alignment_params(dense);
    guint index;
    if (gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, &index)) {
        const GstStructure* theirs = nullptr;
        gst_query_parse_nth_allocation_meta(query, index, &theirs);
        GstStructure* both = nullptr;
        if (theirs &&
            gst_meta_api_type_aggregate_params(GST_VIDEO_META_API_TYPE, &both, theirs, params)) {
            gst_structure_free(params);
            params = both;
        }
        gst_query_remove_nth_allocation_meta(query, index);
    }
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, params);
    gst_structure_free(params);
}

void offer_own_pool(GstQuery* query, guint min) {
    GstCaps* caps = nullptr;
    gboolean need_pool = FALSE;
    gst_query_parse_allocation(query, &caps, &need_pool);
    if (!caps || !need_pool) return;
    // Upstream looks at the first of each; one without pool says what downstream needs of ours.
    const bool asked = gst_query_get_n_allocation_pools(query) > 0;
    guint size = 0, wanted = 0;
    if (asked) gst_query_parse_nth_allocation_pool(query, 0, nullptr, &size, &wanted, nullptr);
    min = std::max(min, wanted);
    OfferedPool offer = offer_pool(caps, size, min);
    if (!offer.pool) return;
    if (asked) {
        gst_query_set_nth_allocation_pool(query, 0, offer.pool, offer.size, min, 0);
    } else {
        gst_query_add_allocation_pool(query, offer.pool, offer.size, min, 0);
    }
    if (offer.allocator && gst_query_get_n_allocation_params(query) > 0) {
        gst_query_set_nth_allocation_param(query, 0, offer.allocator, &offer.params);
    } else if (offer.allocator) {
        gst_query_add_allocation_param(query, offer.allocator, &offer.params);
    }
    gst_object_unref(offer.pool);
    gst_clear_object(&offer.allocator);
}

}  // namespace

void answer_allocation(GstQuery* query, guint depth, bool dense) {
    ask_for_whole_frames(query);
    add_video_meta(query, dense);
    bool pool_offered = false;
    for (guint i = 0; i < gst_query_get_n_allocation_pools(query); ++i) {
        GstBufferPool* pool;
        guint size, min, max;
        gst_query_parse_nth_allocation_pool(query, i, &pool, &size, &min, &max);
        min += depth;
        if (max != 0) max += depth;
        gst_query_set_nth_allocation_pool(query, i, pool, size, min, max);
        pool_offered = pool_offered || pool != nullptr;
        gst_clear_object(&pool);
    }
    if (!pool_offered) offer_own_pool(query, depth + 1);
}

}  // namespace vartml::gst
