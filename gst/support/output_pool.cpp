// SPDX-License-Identifier: Apache-2.0
#include "gst/support/output_pool.h"

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

}  // namespace vartml::gst
