// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/host_memory.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>
#include <unordered_map>

namespace vartml::runtime {
namespace {

constexpr const char* udmabuf_path = "/dev/udmabuf";

Error no_memory(size_t size_bytes, int error_number) {
    return {ErrorCode::out_of_memory, "cannot get " + std::to_string(size_bytes) +
                                          " bytes of host memory: " + std::strerror(error_number)};
}

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

Result<std::shared_ptr<HostMemory>> HostMemory::allocate(size_t size_bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    if (size_bytes > std::numeric_limits<size_t>::max() / 2) return no_memory(size_bytes, ENOMEM);
    const size_t rounded = (size_bytes + page - 1) / page * page;
    const int fd = memfd_create("vartml-tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return no_memory(size_bytes, errno);
    // The size is sealed: neither an importer nor udmabuf, which demands it, can see it shrink.
    void* data = MAP_FAILED;
    int reason = 0;
    if (ftruncate(fd, static_cast<off_t>(rounded)) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        data = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        reason = errno;
        close(fd);
        return no_memory(size_bytes, reason);
    }
    // Reserves the pages now: running out later would be a signal in the middle of a run.
    if (fallocate(fd, 0, 0, static_cast<off_t>(rounded)) != 0 && errno != EOPNOTSUPP) {
        reason = errno;
        munmap(data, rounded);
        close(fd);
        return no_memory(size_bytes, reason);
    }
    return std::shared_ptr<HostMemory>(new HostMemory(fd, static_cast<std::byte*>(data), rounded));
}

HostMemory::~HostMemory() {
    munmap(data_, size_bytes_);
    close(fd_);
}

int HostMemory::export_fd() const {
    const int device = open(udmabuf_path, O_RDWR | O_CLOEXEC);
    if (device >= 0) {
        udmabuf_create create{};
        create.memfd = static_cast<uint32_t>(fd_);
        create.flags = UDMABUF_FLAGS_CLOEXEC;
        create.size = size_bytes_;
        const int exported = ioctl(device, UDMABUF_CREATE, &create);
        close(device);
        if (exported >= 0) return exported;
    }
    return fcntl(fd_, F_DUPFD_CLOEXEC, 0);
}

std::string host_export_kind() {
    return access(udmabuf_path, R_OK | W_OK) == 0 ? "dma-buf" : "memfd";
}

std::shared_ptr<BufferObject> make_buffer_object(std::shared_ptr<HostMemory> memory, size_t offset,
                                                 size_t size_bytes, bool is_sub) {
    const auto forget = [](BufferObject* object) {
        {
            const std::lock_guard lock(objects().mutex);
            objects().live.erase(object);
        }
        delete object;
    };
    std::shared_ptr<BufferObject> object(
        new BufferObject{std::move(memory), offset, size_bytes, is_sub}, forget);
    const std::lock_guard lock(objects().mutex);
    objects().live.emplace(object.get(), object);
    return object;
}

std::shared_ptr<BufferObject> find_buffer_object(const void* address) {
    const std::lock_guard lock(objects().mutex);
    const auto found = objects().live.find(address);
    return found == objects().live.end() ? nullptr : found->second.lock();
}

}  // namespace vartml::runtime
