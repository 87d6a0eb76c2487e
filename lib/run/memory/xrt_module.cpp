// SPDX-License-Identifier: Apache-2.0
// The module libvartml-xrt.so: the only file that sees XRT. Written against what XRT 2.13 and 2.25
// share of xrt::device and xrt::bo.
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <string>

#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>

#include "lib/run/memory/xrt_memory.h"

namespace vartml::runtime {
namespace {

Error xrt_error(const std::string& doing, const std::exception& reason) {
    return {ErrorCode::device, "XRT cannot " + doing + ": " + reason.what()};
}

// Thread-safety: that of xrt::bo, whose members used here may be called concurrently.
class XrtMemory final : public Memory {
public:
    // Errors: device with XRT's reason.
    static Result<std::shared_ptr<Memory>> create(xrt::bo bo) {
        try {
            return std::shared_ptr<Memory>(new XrtMemory(std::move(bo)));
        } catch (const std::exception& e) {
            return xrt_error("map a buffer object", e);
        }
    }
    Result<void> to_device(size_t offset, size_t size_bytes) override {
        return sync(XCL_BO_SYNC_BO_TO_DEVICE, "sync to the device", offset, size_bytes);
    }
    Result<void> from_device(size_t offset, size_t size_bytes) override {
        return sync(XCL_BO_SYNC_BO_FROM_DEVICE, "sync from the device", offset, size_bytes);
    }
    uint64_t physical_address() const override {
        try {
            return bo_.address();
        } catch (const std::exception&) {
            return 0;
        }
    }
    // XRT's own descriptor dies with its buffer object.
    int export_fd() const override {
        try {
            return fcntl(xrt::bo(bo_).export_buffer(), F_DUPFD_CLOEXEC, 0);
        } catch (const std::exception&) {
            return -1;  // of an imported one, or of a part of another
        }
    }
    const void* native() const override { return &bo_; }
    Result<std::shared_ptr<const void>> native_part(size_t offset,
                                                    size_t size_bytes) const override {
        try {
            return std::shared_ptr<const void>(std::make_shared<xrt::bo>(bo_, size_bytes, offset));
        } catch (const std::exception& e) {
            return xrt_error("make a sub-buffer of " + std::to_string(size_bytes) +
                                 " bytes at offset " + std::to_string(offset),
                             e);
        }
    }

private:
    explicit XrtMemory(xrt::bo bo) : Memory(nullptr, bo.size()), bo_(std::move(bo)) {
        data_ = static_cast<std::byte*>(bo_.map());
        const int fd = export_fd();
        if (struct stat status{}; fd >= 0 && fstat(fd, &status) == 0 && status.st_size != 0)
            identity_ = {status.st_dev, status.st_ino};
        if (fd >= 0) close(fd);
    }
    Result<void> sync(xclBOSyncDirection direction, const char* doing, size_t offset,
                      size_t size_bytes) {
        try {
            bo_.sync(direction, size_bytes, offset);
            return {};
        } catch (const std::exception& e) {
            return xrt_error(doing, e);
        }
    }

    xrt::bo bo_;
};

class XrtProvider final : public MemoryProvider {
public:
    explicit XrtProvider(unsigned index) : device_(index) {}
    std::string name() const override { return "xrt"; }

    // Host-only memory is what every device takes, NPUs nothing else.
    Result<std::shared_ptr<Memory>> allocate(size_t size_bytes, unsigned bank) override {
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        const size_t whole = (size_bytes + page - 1) / page * page;
        try {
            auto memory =
                XrtMemory::create(xrt::bo(device_, whole, xrt::bo::flags::host_only, bank));
            if (!memory) return memory;
            std::memset((*memory)->data(), 0, whole);
            if (auto zeroed = (*memory)->to_device(0, whole); !zeroed) return zeroed.error();
            return memory;
        } catch (const std::exception& e) {
            Error error = xrt_error("allocate " + std::to_string(whole) + " bytes in memory bank " +
                                        std::to_string(bank),
                                    e);
            return error;
        }
    }

    Result<std::shared_ptr<Memory>> import(int fd) override {
        try {
            return XrtMemory::create(xrt::bo(device_, static_cast<xclBufferExportHandle>(fd)));
        } catch (const std::exception& e) {
            return xrt_error("import the descriptor " + std::to_string(fd), e);
        }
    }

    // Asked of one page: XRT does not say it.
    std::string export_kind() const override {
        try {
            xrt::bo page(device_, static_cast<size_t>(sysconf(_SC_PAGESIZE)),
                         xrt::bo::flags::host_only, 0);
            dma_buf_sync sync{DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ};
            const int fd = page.export_buffer();
            if (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) != 0) return "memfd";
            sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ;
            (void)ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync);
            return "dma-buf";
        } catch (const std::exception&) {
            return "";  // exports nothing
        }
    }

private:
    const xrt::device device_;
};

Result<std::shared_ptr<MemoryProvider>> open(unsigned device_index) {
    try {
        return std::shared_ptr<MemoryProvider>(std::make_shared<XrtProvider>(device_index));
    } catch (const std::exception& e) {
        return Error{ErrorCode::not_found, "XRT cannot open device " +
                                               std::to_string(device_index) + ": " + e.what() +
                                               "; see what xrt-smi examine (xbutil in old "
                                               "versions) lists, or set xdna_device_index"};
    }
}

Result<std::shared_ptr<Memory>> wrap(const void* bo) {
    if (reinterpret_cast<uintptr_t>(bo) % alignof(xrt::bo) != 0)
        return Error{ErrorCode::invalid_argument,
                     "the address is not aligned as an xrt::bo is, expected the address of one"};
    const auto& given = *static_cast<const xrt::bo*>(bo);
    if (!given)
        return Error{ErrorCode::invalid_argument,
                     "the xrt::bo is empty, expected one with a buffer"};
    return XrtMemory::create(given);
}

}  // namespace
}  // namespace vartml::runtime

extern "C" [[gnu::visibility("default")]] const vartml::runtime::XrtModule vartml_xrt{
    vartml::runtime::XrtModule::current, vartml::runtime::open, vartml::runtime::wrap};
