// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <unordered_map>

#include "lib/run/memory/memory.h"

namespace vartml::runtime {
namespace {

// Live buffer objects. A leaf lock: nothing else is locked while it is held.
struct Objects {
    std::mutex mutex;
    std::unordered_map<const void*, std::weak_ptr<BufferObject>> live;  // guarded by mutex
};

// Never deleted: tensors may outlive static destructors.
Objects& objects() {
    static Objects* const instance = new Objects;
    return *instance;
}

}  // namespace

Result<std::shared_ptr<BufferObject>> make_buffer_object(std::shared_ptr<Memory> memory,
                                                         size_t offset, size_t size_bytes,
                                                         bool is_sub) {
    std::shared_ptr<const void> native_part;
    if (is_sub) {
        auto part = memory->native_part(offset, size_bytes);
        if (!part) return part.error();
        native_part = *std::move(part);
    }
    const auto forget = [](BufferObject* object) {
        {
            const std::lock_guard lock(objects().mutex);
            objects().live.erase(object->address());
        }
        delete object;
    };
    std::shared_ptr<BufferObject> object(
        new BufferObject{std::move(memory), offset, size_bytes, is_sub, std::move(native_part)},
        forget);
    const std::lock_guard lock(objects().mutex);
    objects().live.insert_or_assign(object->address(), object);
    return object;
}

std::shared_ptr<BufferObject> find_buffer_object(const void* address) {
    const std::lock_guard lock(objects().mutex);
    const auto found = objects().live.find(address);
    return found == objects().live.end() ? nullptr : found->second.lock();
}

}  // namespace vartml::runtime
