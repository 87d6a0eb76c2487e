// SPDX-License-Identifier: Apache-2.0
// Tells ThreadSanitizer what GLib and GStreamer order, which are not instrumented and whose locks
// are futexes: this object comes before theirs (LD_PRELOAD), says so and calls the real function.
// Without it every field that an object's lock guards looks like a race.
#include <dlfcn.h>
#include <gst/gst.h>

#undef g_once_init_enter
#undef g_once_init_leave

extern "C" {
// Of the sanitizer; programs that are not instrumented load this object too.
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);

// The next function of that name.
#define REAL(name) \
    static const auto real = reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name))

static void acquire(volatile void* address) {
    if (__tsan_acquire && address) __tsan_acquire(const_cast<void*>(address));
}
static void release(volatile void* address) {
    if (__tsan_release && address) __tsan_release(const_cast<void*>(address));
}

#define LOCK(name, Type)    \
    void name(Type* lock) { \
        REAL(name);         \
        real(lock);         \
        acquire(lock);      \
    }
#define TRY_LOCK(name, Type)               \
    gboolean name(Type* lock) {            \
        REAL(name);                        \
        const gboolean taken = real(lock); \
        if (taken) acquire(lock);          \
        return taken;                      \
    }
#define UNLOCK(name, Type)  \
    void name(Type* lock) { \
        REAL(name);         \
        release(lock);      \
        real(lock);         \
    }
LOCK(g_mutex_lock, GMutex)
TRY_LOCK(g_mutex_trylock, GMutex)
UNLOCK(g_mutex_unlock, GMutex)
LOCK(g_rec_mutex_lock, GRecMutex)
TRY_LOCK(g_rec_mutex_trylock, GRecMutex)
UNLOCK(g_rec_mutex_unlock, GRecMutex)

void g_cond_wait(GCond* condition, GMutex* lock) {
    REAL(g_cond_wait);
    release(lock);
    real(condition, lock);
    acquire(lock);
}
gboolean g_cond_wait_until(GCond* condition, GMutex* lock, gint64 end_time) {
    REAL(g_cond_wait_until);
    release(lock);
    const gboolean signalled = real(condition, lock, end_time);
    acquire(lock);
    return signalled;
}

gboolean(g_once_init_enter)(volatile void* location) {
    REAL(g_once_init_enter);
    const gboolean first = real(location);
    if (!first) acquire(location);
    return first;
}
void(g_once_init_leave)(volatile void* location, gsize result) {
    REAL(g_once_init_leave);
    release(location);
    real(location, result);
}

// Whoever gives up the last reference sees what the others did.
#define UNREF(name, Type)     \
    void name(Type* object) { \
        REAL(name);           \
        release(object);      \
        acquire(object);      \
        real(object);         \
    }
UNREF(g_object_unref, void)
UNREF(gst_object_unref, void)
UNREF(gst_mini_object_unref, GstMiniObject)

// What is posted on one bus and seen on another is rare: one address for all.
static char bus;
gboolean gst_bus_post(GstBus* self, GstMessage* message) {
    REAL(gst_bus_post);
    release(&bus);
    return real(self, message);
}
gboolean gst_element_post_message(GstElement* element, GstMessage* message) {
    REAL(gst_element_post_message);
    release(&bus);
    return real(element, message);
}
GstMessage* gst_bus_pop(GstBus* self) {
    REAL(gst_bus_pop);
    GstMessage* const message = real(self);
    acquire(&bus);
    return message;
}
GstMessage* gst_bus_pop_filtered(GstBus* self, GstMessageType types) {
    REAL(gst_bus_pop_filtered);
    GstMessage* const message = real(self, types);
    acquire(&bus);
    return message;
}
GstMessage* gst_bus_timed_pop(GstBus* self, GstClockTime timeout) {
    REAL(gst_bus_timed_pop);
    GstMessage* const message = real(self, timeout);
    acquire(&bus);
    return message;
}
GstMessage* gst_bus_timed_pop_filtered(GstBus* self, GstClockTime timeout, GstMessageType types) {
    REAL(gst_bus_timed_pop_filtered);
    GstMessage* const message = real(self, timeout, types);
    acquire(&bus);
    return message;
}

void g_async_queue_push(GAsyncQueue* queue, gpointer data) {
    REAL(g_async_queue_push);
    release(queue);
    real(queue, data);
}
gpointer g_async_queue_pop(GAsyncQueue* queue) {
    REAL(g_async_queue_pop);
    gpointer const data = real(queue);
    acquire(queue);
    return data;
}
gpointer g_async_queue_try_pop(GAsyncQueue* queue) {
    REAL(g_async_queue_try_pop);
    gpointer const data = real(queue);
    acquire(queue);
    return data;
}
gpointer g_async_queue_timeout_pop(GAsyncQueue* queue, guint64 timeout) {
    REAL(g_async_queue_timeout_pop);
    gpointer const data = real(queue, timeout);
    acquire(queue);
    return data;
}

// A pool's buffers come and go without a lock.
GstFlowReturn gst_buffer_pool_acquire_buffer(GstBufferPool* pool, GstBuffer** buffer,
                                             GstBufferPoolAcquireParams* parameters) {
    REAL(gst_buffer_pool_acquire_buffer);
    const GstFlowReturn flow = real(pool, buffer, parameters);
    if (flow == GST_FLOW_OK) acquire(*buffer);
    acquire(pool);
    return flow;
}
void gst_buffer_pool_release_buffer(GstBufferPool* pool, GstBuffer* buffer) {
    REAL(gst_buffer_pool_release_buffer);
    release(pool);
    release(buffer);
    real(pool, buffer);
}
}
