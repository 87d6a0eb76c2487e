// SPDX-License-Identifier: Apache-2.0
// A double of libxrt_coreutil.so.2 behind XRT's public headers, with the rules of the shim of an
// NPU: host-only memory alone, two banks, imports that can be mapped for writing, exports of whole
// buffer objects of its own, whose descriptors die with them. Buffers are real dma-bufs where the
// kernel makes them (udmabuf), else sealed memfds.
#include "tests/run/xrt/fake_xrt.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>

#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>

FakeXrt fake_xrt{};

namespace {

std::mutex counting;

void count(uint64_t FakeXrt::* what) {
    const std::lock_guard lock(counting);
    ++(fake_xrt.*what);
}

[[noreturn]] void refuse(int error, const char* what) {
    throw std::system_error(error, std::generic_category(), what);
}

constexpr size_t page = 4096;
constexpr unsigned banks = 2;

}  // namespace

namespace xrt_core {
class device {};
}  // namespace xrt_core

namespace xrt {

class bo_impl {
public:
    bo_impl(size_t size_bytes, bo::flags flags, memory_group bank) : size(size_bytes) {
        if (flags != bo::flags::host_only) refuse(EINVAL, "unsupported buffer flags");
        if (bank >= banks) refuse(EINVAL, "no such memory bank");
        if (size == 0 || size % page != 0) refuse(EINVAL, "size is no whole number of pages");
        memfd_ = memfd_create("fake-xrt", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (memfd_ < 0 || ftruncate(memfd_, static_cast<off_t>(size)) != 0 ||
            fcntl(memfd_, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
            refuse(errno, "buffer");
        if (const int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC); device >= 0) {
            udmabuf_create create{};
            create.memfd = static_cast<uint32_t>(memfd_);
            create.flags = UDMABUF_FLAGS_CLOEXEC;
            create.size = size;
            dma_buf_ = ioctl(device, UDMABUF_CREATE, &create);
            close(device);
        }
        map(memfd_);
        fake_xrt.last_bank = bank;
        count(&FakeXrt::allocated);
        add_live(1);
    }
    explicit bo_impl(int fd) {
        memfd_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        const off_t end = memfd_ < 0 ? -1 : lseek(memfd_, 0, SEEK_END);
        if (end <= 0) refuse(EINVAL, "unable to import the buffer");
        size = static_cast<size_t>(end);
        map(memfd_);
        is_foreign_ = true;
        count(&FakeXrt::imported);
        add_live(1);
    }
    bo_impl(std::shared_ptr<bo_impl> whole, size_t size_bytes, size_t offset)
        : size(size_bytes), parent(std::move(whole)) {
        if (offset + size > parent->size) refuse(EINVAL, "sub-buffer out of range");
        if (fake_xrt.strict_subs && offset % page != 0) refuse(EINVAL, "sub-buffer not aligned");
        data = parent->data + offset;
        address = parent->address + offset;
        count(&FakeXrt::subs);
        add_live(1);
    }
    bo_impl(const bo_impl&) = delete;
    ~bo_impl() {
        if (!parent && data) munmap(data, size);
        if (memfd_ >= 0) close(memfd_);
        if (dma_buf_ >= 0) close(dma_buf_);
        add_live(-1);
    }
    int export_fd() const {
        if (parent || is_foreign_) refuse(EINVAL, "unable to export the buffer");
        count(&FakeXrt::exported);
        return dma_buf_ >= 0 ? dma_buf_ : memfd_;
    }

    size_t size = 0;
    std::byte* data = nullptr;
    uint64_t address = 0;
    std::shared_ptr<bo_impl> parent;

private:
    static void add_live(int change) {
        const std::lock_guard lock(counting);
        fake_xrt.live += change;
    }
    void map(int fd) {
        void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) refuse(errno, "unable to map the buffer");
        data = static_cast<std::byte*>(at);
        static std::atomic<uint64_t> next{0x100000000};
        address = next.fetch_add(size);
    }
    int memfd_ = -1, dma_buf_ = -1;
    bool is_foreign_ = false;
};

device::device(unsigned int index) {
    if (index != 0) refuse(ENODEV, "Could not open device");
    handle = std::make_shared<xrt_core::device>();
}
device::operator xclDeviceHandle() const {
    return handle.get();
}

bo::bo(xclDeviceHandle, size_t size, bo::flags flags, memory_group bank)
    : handle(std::make_shared<bo_impl>(size, flags, bank)) {}
bo::bo(xclDeviceHandle, xclBufferExportHandle fd) : handle(std::make_shared<bo_impl>(int(fd))) {}
bo::bo(const bo& parent, size_t size, size_t offset)
    : handle(std::make_shared<bo_impl>(parent.handle, size, offset)) {}
size_t bo::size() const {
    return handle->size;
}
uint64_t bo::address() const {
    return handle->address;
}
xclBufferExportHandle bo::export_buffer() {
    return handle->export_fd();
}
void* bo::map() {
    return handle->data;
}
void bo::sync(xclBOSyncDirection direction, size_t size, size_t offset) {
    if (offset + size > handle->size) refuse(EINVAL, "sync out of range");
    {
        const std::lock_guard lock(counting);
        if (fake_xrt.failing_syncs > 0) {
            --fake_xrt.failing_syncs;
            refuse(EIO, "sync failed");
        }
    }
    count(direction == XCL_BO_SYNC_BO_TO_DEVICE ? &FakeXrt::to_device : &FakeXrt::from_device);
}

#if __has_include(<xrt/xrt_hw_context.h>)
// Of later versions.
bo::~bo() {}
device::~device() {}
bo::bo(const device&, size_t size, bo::flags flags, memory_group bank)
    : handle(std::make_shared<bo_impl>(size, flags, bank)) {}
bo::bo(const device&, export_handle fd) : handle(std::make_shared<bo_impl>(int(fd))) {}
#endif

}  // namespace xrt
