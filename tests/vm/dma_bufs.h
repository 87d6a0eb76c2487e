// SPDX-License-Identifier: Apache-2.0
// Dma-bufs of the kernel without any hardware.
#pragma once
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>

#include <cstddef>
#include <string>

namespace vartml::test {

// A DRM device of that driver, opened, or -1.
inline int open_drm(const char* driver) {
    for (int card = 0; card < 16; ++card) {
        const std::string path = "/dev/dri/card" + std::to_string(card);
        const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (fd < 0) continue;
        drmVersion* const version = drmGetVersion(fd);
        const bool found = version && std::string(version->name) == driver;
        drmFreeVersion(version);
        if (found) return fd;
        close(fd);
    }
    return -1;
}

enum class DmaBufSource { udmabuf, heap, drm_prime };

constexpr const char* name_of(DmaBufSource source) {
    constexpr const char* names[] = {"udmabuf", "heap", "drm_prime"};
    return names[static_cast<int>(source)];
}

constexpr const char* path_of(DmaBufSource source) {
    constexpr const char* paths[] = {"/dev/udmabuf", "/dev/dma_heap/system",
                                     "/dev/dri/card of vgem"};
    return paths[static_cast<int>(source)];
}

inline int open_source(DmaBufSource source) {
    return source == DmaBufSource::drm_prime ? open_drm("vgem")
                                             : open(path_of(source), O_RDWR | O_CLOEXEC);
}

inline bool may_use(DmaBufSource source) {
    const int fd = open_source(source);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

// Of whole pages; mapped as long as it lives. fd() is -1 where it could not be made.
class DmaBuf {
public:
    DmaBuf(DmaBufSource source, size_t size_bytes) {
        const size_t page = size_t(sysconf(_SC_PAGESIZE));
        size_ = (size_bytes + page - 1) / page * page;
        const int device = open_source(source);
        fd_ = source == DmaBufSource::heap        ? of_heap(device)
              : source == DmaBufSource::drm_prime ? of_prime(device)
                                                  : of_memfd(device);
        close(device);
        data_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    }
    ~DmaBuf() {
        if (data_ != MAP_FAILED) munmap(data_, size_);
        if (fd_ >= 0) close(fd_);
    }
    DmaBuf(const DmaBuf&) = delete;
    DmaBuf& operator=(const DmaBuf&) = delete;

    int fd() const { return data_ == MAP_FAILED ? -1 : fd_; }
    template <typename T>
    T* data() const {
        return static_cast<T*>(data_);
    }

private:
    int of_heap(int device) const {
        dma_heap_allocation_data request{};
        request.len = size_;
        request.fd_flags = O_RDWR | O_CLOEXEC;
        return ioctl(device, DMA_HEAP_IOCTL_ALLOC, &request) == 0 ? int(request.fd) : -1;
    }
    // A buffer of a graphics device, as one exports it.
    int of_prime(int device) const {
        drm_mode_create_dumb create{};
        create.width = unsigned(size_ / 4);
        create.height = 1;
        create.bpp = 32;
        int fd = -1;
        if (drmIoctl(device, DRM_IOCTL_MODE_CREATE_DUMB, &create) != 0 ||
            drmPrimeHandleToFD(device, create.handle, DRM_CLOEXEC | DRM_RDWR, &fd) != 0)
            return -1;
        return fd;
    }
    int of_memfd(int device) const {
        const int memory = memfd_create("dma-buf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        udmabuf_create request{};
        request.memfd = unsigned(memory);
        request.flags = UDMABUF_FLAGS_CLOEXEC;
        request.size = size_;
        const bool sealed =
            ftruncate(memory, off_t(size_)) == 0 && fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0;
        const int made = sealed ? ioctl(device, UDMABUF_CREATE, &request) : -1;
        close(memory);
        return made;
    }

    size_t size_;
    int fd_ = -1;
    void* data_ = MAP_FAILED;
};

}  // namespace vartml::test
