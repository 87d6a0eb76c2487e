// SPDX-License-Identifier: Apache-2.0
#include "lib/run/memory/host_memory.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>

namespace vartml::runtime {
namespace {

constexpr const char* udmabuf_path = "/dev/udmabuf";

Error no_memory(size_t size_bytes, int error_number) {
    return {ErrorCode::out_of_memory, "cannot get " + std::to_string(size_bytes) +
                                          " bytes of host memory: " + std::strerror(error_number)};
}

// Whether the pages of a memfd are there, as far as its file system can tell. Until Linux 6.17 any
// signal interrupts it.
bool reserve(int memfd, off_t size) {
    int done;
    do {
        done = fallocate(memfd, 0, 0, size);
    } while (done != 0 && errno == EINTR);
    return done == 0 || errno == EOPNOTSUPP;
}

// A dma-buf of a sealed memfd, or -1.
int make_dma_buf(int memfd, size_t size_bytes) {
    const int device = open(udmabuf_path, O_RDWR | O_CLOEXEC);
    if (device < 0) return -1;
    udmabuf_create create{};
    create.memfd = static_cast<uint32_t>(memfd);
    create.flags = UDMABUF_FLAGS_CLOEXEC;
    create.size = size_bytes;
    const int exported = ioctl(device, UDMABUF_CREATE, &create);
    close(device);
    return exported;
}

// Tried once, with one page: the device may be there and refuse.
bool makes_dma_bufs() {
    static const bool works = [] {
        const auto page = sysconf(_SC_PAGESIZE);
        const int memfd = memfd_create("vartml-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (memfd < 0) return false;
        int exported = -1;
        if (ftruncate(memfd, page) == 0 && fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
            exported = make_dma_buf(memfd, static_cast<size_t>(page));
        close(memfd);
        if (exported >= 0) close(exported);
        return exported >= 0;
    }();
    return works;
}

class HostProvider final : public MemoryProvider {
public:
    explicit HostProvider(Coherence coherence) : coherence_(coherence) {}
    std::string name() const override { return "host"; }
    Result<std::shared_ptr<Memory>> allocate(size_t size_bytes, unsigned) override {
        auto memory = HostMemory::allocate(size_bytes, coherence_);
        if (!memory) return memory.error();
        return std::shared_ptr<Memory>(*std::move(memory));
    }
    Result<std::shared_ptr<Memory>> import(int) override { return std::shared_ptr<Memory>(); }
    std::string export_kind() const override { return makes_dma_bufs() ? "dma-buf" : "memfd"; }

private:
    const Coherence coherence_;
};

}  // namespace

Result<std::shared_ptr<HostMemory>> HostMemory::allocate(size_t size_bytes, Coherence coherence) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    if (size_bytes > std::numeric_limits<size_t>::max() / 2) return no_memory(size_bytes, ENOMEM);
    // Owns what follows as it comes, so that a failure leaves nothing behind.
    std::shared_ptr<HostMemory> memory(new HostMemory((size_bytes + page - 1) / page * page));
    const int fd = memory->fd_ = memfd_create("vartml-tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const auto size = static_cast<off_t>(memory->size_bytes_);
    // The size is sealed: neither an importer nor udmabuf, which demands it, can see it shrink. The
    // pages are reserved now: running out later would be a signal in the middle of a run.
    if (fd < 0 || ftruncate(fd, size) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 ||
        !memory->map(memory->data_, MAP_SHARED, fd) || !reserve(fd, size) || !memory->touch(page))
        return no_memory(size_bytes, errno);
    if (coherence == Coherence::noncoherent &&
        !memory->map(memory->device_data_, MAP_PRIVATE | MAP_ANONYMOUS, -1))
        return no_memory(size_bytes, errno);
    if (struct stat status{}; fstat(fd, &status) == 0)
        memory->identity_ = {status.st_dev, status.st_ino};
    return memory;
}

bool HostMemory::map(std::byte*& data, int flags, int fd) {
    void* const address = mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (address == MAP_FAILED) return false;
    data = static_cast<std::byte*>(address);
    return true;
}

// Linux clears a page that was only reserved when the CPU first meets it: what a device or another
// process wrote before, through the exported buffer, would be lost (measured with udmabuf of 6.12).
bool HostMemory::touch(size_t page_bytes) {
    if (madvise(data_, size_bytes_, MADV_POPULATE_WRITE) == 0) return true;
    if (errno != EINVAL) return false;
    for (size_t at = 0; at < size_bytes_; at += page_bytes)  // before Linux 5.14
        *static_cast<volatile std::byte*>(data_ + at) = std::byte{0};
    return true;
}

HostMemory::~HostMemory() {
    if (device_data_) munmap(device_data_, size_bytes_);
    if (data_) munmap(data_, size_bytes_);
    if (fd_ >= 0) close(fd_);
}

// Equal bytes stay untouched: two runs may share an input.
Result<void> HostMemory::to_device(size_t offset, size_t size_bytes) {
    if (!device_data_) return {};
    const std::lock_guard lock(moving_);
    if (std::memcmp(device_data_ + offset, data_ + offset, size_bytes) != 0)
        std::memcpy(device_data_ + offset, data_ + offset, size_bytes);
    return {};
}

Result<void> HostMemory::from_device(size_t offset, size_t size_bytes) {
    if (!device_data_) return {};
    const std::lock_guard lock(moving_);
    if (std::memcmp(data_ + offset, device_data_ + offset, size_bytes) != 0)
        std::memcpy(data_ + offset, device_data_ + offset, size_bytes);
    return {};
}

// Never a memfd where the kind is "dma-buf": a large buffer may be more than the kernel's limit.
int HostMemory::export_fd() const {
    return makes_dma_bufs() ? make_dma_buf(fd_, size_bytes_) : fcntl(fd_, F_DUPFD_CLOEXEC, 0);
}

std::shared_ptr<MemoryProvider> host_memory(Coherence coherence) {
    return std::make_shared<HostProvider>(coherence);
}

}  // namespace vartml::runtime
