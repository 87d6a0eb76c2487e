// SPDX-License-Identifier: Apache-2.0
// NpuTensor: validation at construction, accessors, export.
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "lib/run/memory/xrt_memory.h"
#include "lib/run/vart/tensor_info.h"
#include "lib/run/vart/vart_errors.h"

namespace vart {
namespace {

using vartml::Error;
using vartml::ErrorCode;
using vartml::Result;
using vartml::runtime::in_quotes;

Error fault(const NpuTensorInfo& info, const std::string& text) {
    return {ErrorCode::invalid_argument, "NpuTensor " + in_quotes(info.name) + ": " + text};
}

Result<void> check_descriptor(const NpuTensorInfo& info, int fd,
                              vartml::runtime::MemoryIdentity& identity) {
    struct stat status{};
    if (fstat(fd, &status) != 0)
        return fault(info, "descriptor " + std::to_string(fd) + " cannot be used as DMA_FD: " +
                               std::strerror(errno) + "; keep it open as long as the tensor");
    // Kernels before 5.3 report a dma-buf's size by lseek only, and give all the same inode.
    off_t size = status.st_size;
    if (size == 0)
        size = lseek(fd, 0, SEEK_END);
    else
        identity = {status.st_dev, status.st_ino};
    if (size < 0 || static_cast<size_t>(size) < info.size_in_bytes)
        return fault(info, "descriptor " + std::to_string(fd) + " is " +
                               std::to_string(size < 0 ? 0 : size) + " bytes long, expected " +
                               std::to_string(info.size_in_bytes));
    return {};
}

Result<void> check_buffer(const NpuTensorInfo& info, const void* buffer, MemoryType type,
                          NpuTensorPriv& priv) {
    switch (type) {
        case MemoryType::DMA_FD:
            priv.fd = *static_cast<const int*>(buffer);
            return check_descriptor(info, priv.fd, priv.identity);
        case MemoryType::XRT_BO:
            priv.object = vartml::runtime::find_buffer_object(buffer);
            if (!priv.object) {
                auto memory = vartml::runtime::wrap_xrt_bo(buffer);
                if (!memory) return fault(info, memory.error().message);
                if (!*memory)
                    return fault(info,
                                 "the address is no live buffer object, and this process does not "
                                 "use XRT, whose xrt::bo it could be; pass get_buffer() of a "
                                 "tensor from allocate_npu_tensor");
                const size_t size_bytes = (*memory)->size_bytes();
                priv.object = std::make_shared<vartml::runtime::BufferObject>(
                    vartml::runtime::BufferObject{*std::move(memory), 0, size_bytes, false, {}});
            }
            if (priv.object->size_bytes < info.size_in_bytes)
                return fault(info, "the buffer object holds " +
                                       std::to_string(priv.object->size_bytes) +
                                       " bytes, expected " + std::to_string(info.size_in_bytes));
            priv.identity = priv.object->memory->identity();
            return {};
        default: {
            const size_t element = vartml::runtime::element_size_bytes(info.data_type);
            if (reinterpret_cast<uintptr_t>(buffer) % element != 0)
                return fault(info, "the buffer is not aligned to the element size of " +
                                       std::to_string(element) + " bytes");
            return {};
        }
    }
}

Result<std::shared_ptr<NpuTensorPriv>> wrap(const NpuTensorInfo& info, const void* buffer,
                                            MemoryType type, bool is_const) {
    if (!buffer) return fault(info, "the buffer is null, expected the address of the data");
    if (type == MemoryType::UNKNOWN || to_string(type) == "UNKNOWN")
        return fault(info,
                     "the memory type is UNKNOWN, expected XRT_BO, DMA_FD, USER_POINTER_CMA "
                     "or USER_POINTER_NON_CMA");
    if (auto good = vartml::runtime::check_info(info); !good) return good.error();
    if (is_const && info.direction == TensorDirection::OUTPUT)
        return fault(info,
                     "an OUTPUT cannot use a const buffer, the runner writes it; pass a "
                     "pointer to writable memory");
    if (info.tensor_type == TensorType::HW && type == MemoryType::USER_POINTER_NON_CMA)
        return fault(info,
                     "TensorType HW cannot use USER_POINTER_NON_CMA memory, the NPU cannot "
                     "reach it; allocate it with allocate_npu_tensor or use TensorType CPU");
    auto priv = std::make_shared<NpuTensorPriv>();
    priv->info = info;
    priv->memory_type = type;
    priv->is_const = is_const;
    priv->buffer = buffer;
    if (auto good = check_buffer(info, buffer, type, *priv); !good) return good.error();
    if (type == MemoryType::DMA_FD) priv->buffer = &priv->fd;  // the caller's variable may die
    return priv;
}

void sync_dma_buf(int fd, uint64_t flags, std::atomic<bool>& is_dma_buf) {
    if (!is_dma_buf.load(std::memory_order_relaxed)) return;
    dma_buf_sync sync{flags};
    while (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) != 0) {
        if (errno == EINTR || errno == EAGAIN) continue;
        is_dma_buf.store(false, std::memory_order_relaxed);  // a memfd: plain, coherent memory
        return;
    }
}

}  // namespace

NpuTensorPriv::~NpuTensorPriv() {
    if (mapped_ && !imported_) munmap(mapped_, info.size_in_bytes);
}

Result<std::byte*> NpuTensorPriv::map(vartml::runtime::MemoryProvider* provider) {
    if (object) return object->data();
    if (memory_type != MemoryType::DMA_FD)
        return static_cast<std::byte*>(const_cast<void*>(buffer));
    const std::lock_guard lock(mutex_);
    if (mapped_) return mapped_;
    if (provider) {
        auto imported = provider->import(fd);
        if (!imported) return imported.error();
        if (*imported && (*imported)->size_bytes() < info.size_in_bytes)
            return Error{ErrorCode::device, "the provider '" + provider->name() + "' imports " +
                                                std::to_string((*imported)->size_bytes()) +
                                                " bytes of descriptor " + std::to_string(fd) +
                                                ", expected " + std::to_string(info.size_in_bytes)};
        if (*imported) {
            imported_ = *std::move(imported);
            return mapped_ = imported_->data();
        }
    }
    const int access =
        info.direction == TensorDirection::OUTPUT ? PROT_READ | PROT_WRITE : PROT_READ;
    void* const address = mmap(nullptr, info.size_in_bytes, access, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED)
        return Error{ErrorCode::io,
                     "cannot map descriptor " + std::to_string(fd) + ": " + std::strerror(errno)};
    mapped_ = static_cast<std::byte*>(address);
    return mapped_;
}

void NpuTensorPriv::begin_cpu_access(bool writes) {
    if (memory_type == MemoryType::DMA_FD)
        sync_dma_buf(fd, DMA_BUF_SYNC_START | (writes ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ),
                     is_dma_buf_);
}

void NpuTensorPriv::end_cpu_access(bool writes) {
    if (memory_type == MemoryType::DMA_FD)
        sync_dma_buf(fd, DMA_BUF_SYNC_END | (writes ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ),
                     is_dma_buf_);
}

std::byte* NpuTensorPriv::device_bytes() {
    return object ? object->device_data() : *map();
}

Result<void> NpuTensorPriv::begin_device_access(bool writes, size_t size_bytes) {
    begin_cpu_access(writes);  // of a dma-buf: the software NPU is a CPU
    if (writes) return {};
    if (object) return object->memory->to_device(object->offset, size_bytes);
    return imported_ ? imported_->to_device(0, size_bytes) : Result<void>();
}

Result<void> NpuTensorPriv::end_device_access(bool writes, size_t size_bytes) {
    Result<void> moved;
    if (writes && object) moved = object->memory->from_device(object->offset, size_bytes);
    if (writes && imported_) moved = imported_->from_device(0, size_bytes);
    end_cpu_access(writes);
    return moved;
}

NpuTensor::NpuTensor() = default;

NpuTensor::NpuTensor(const NpuTensorInfo& info, void* buffer, MemoryType mem_type)
    : priv_(vartml::runtime::value_or_throw_runtime(wrap(info, buffer, mem_type, false))) {}

NpuTensor::NpuTensor(const NpuTensorInfo& info, const void* buffer, MemoryType mem_type)
    : priv_(vartml::runtime::value_or_throw_runtime(wrap(info, buffer, mem_type, true))) {}

const void* NpuTensor::get_buffer() const {
    return priv_ ? priv_->buffer : nullptr;
}

void* NpuTensor::get_buffer() {
    return priv_ && !priv_->is_const ? const_cast<void*>(priv_->buffer) : nullptr;
}

const void* NpuTensor::get_virtual_address() const {
    if (!priv_ || priv_->memory_type == MemoryType::DMA_FD) return nullptr;
    return priv_->object ? priv_->object->data() : priv_->buffer;
}

void* NpuTensor::get_virtual_address() {
    if (!priv_ || priv_->is_const) return nullptr;
    return const_cast<void*>(std::as_const(*this).get_virtual_address());
}

uint64_t NpuTensor::get_physical_address() const {
    if (!priv_ || !priv_->object) return 0;
    const uint64_t address = priv_->object->memory->physical_address();
    return address ? address + priv_->object->offset : 0;
}

const NpuTensorInfo& NpuTensor::get_info() const {
    static const NpuTensorInfo none;
    return priv_ ? priv_->info : none;
}

MemoryType NpuTensor::get_memory_type() const {
    return priv_ ? priv_->memory_type : MemoryType::UNKNOWN;
}

void NpuTensor::sync_buffer() const {
    if (!priv_ || !priv_->is_allocated)
        vartml::runtime::throw_runtime(
            fault(get_info(),
                  "sync_buffer works on tensors from allocate_npu_tensor and "
                  "allocate_sub_tensor only; sync wrapped memory by its own means"));
    const auto& object = *priv_->object;
    const auto moved = priv_->info.direction == TensorDirection::INPUT
                           ? object.memory->to_device(object.offset, object.size_bytes)
                           : object.memory->from_device(object.offset, object.size_bytes);
    if (!moved) vartml::runtime::throw_runtime(fault(get_info(), moved.error().message));
}

int NpuTensor::export_buffer() const {
    if (!priv_) return -1;
    if (priv_->object) return priv_->object->memory->export_fd();
    if (priv_->memory_type == MemoryType::DMA_FD) return fcntl(priv_->fd, F_DUPFD_CLOEXEC, 0);
    return -1;
}

void NpuTensor::print_info() const {
    std::puts((vartml::runtime::to_text(get_info()) +
               " memory_type=" + std::string(to_string(get_memory_type())))
                  .c_str());
}

}  // namespace vart

namespace vartml::runtime {

vart::NpuTensor make_allocated(const vart::NpuTensorInfo& info,
                               std::shared_ptr<BufferObject> object) {
    auto priv = std::make_shared<vart::NpuTensorPriv>();
    priv->info = info;
    priv->memory_type = vart::MemoryType::XRT_BO;
    priv->is_allocated = true;
    priv->buffer = object->address();
    priv->identity = object->memory->identity();
    priv->object = std::move(object);
    return vart::NpuTensorPrivAccess::make(std::move(priv));
}

}  // namespace vartml::runtime
