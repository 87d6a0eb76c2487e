// SPDX-License-Identifier: Apache-2.0
// What an NpuTensor holds, and how the runtime reaches it.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include <vartml/result.h>
#include <vart/vart_npu_tensor.hpp>

#include "lib/runtime/host_memory.h"

namespace vart {

// Immutable after construction, but for the mapping of a descriptor.
class NpuTensorPriv {
public:
    ~NpuTensorPriv();
    NpuTensorPriv() = default;
    NpuTensorPriv(const NpuTensorPriv&) = delete;
    NpuTensorPriv& operator=(const NpuTensorPriv&) = delete;

    // Address of the CPU's bytes: maps a descriptor at the first call. Errors: io with the system's
    // reason.
    vartml::Result<std::byte*> map();
    // Address of the device's bytes, after map() has succeeded; the CPU's but for noncoherent
    // memory.
    std::byte* device_bytes();
    // Brackets an access of the CPU to a dma-buf; nothing for other memory. `writes`: the access
    // writes.
    void begin_cpu_access(bool writes);
    void end_cpu_access(bool writes);
    // The same around a run on device_bytes(): `writes` is true for an output. Moves the first
    // `size_bytes` of noncoherent memory to the device, or back from it.
    void begin_device_access(bool writes, size_t size_bytes);
    void end_device_access(bool writes, size_t size_bytes);

    NpuTensorInfo info;
    MemoryType memory_type = MemoryType::UNKNOWN;
    bool is_const = false;
    const void* buffer = nullptr;  // as given; DMA_FD: &fd; allocated: object.get()
    std::shared_ptr<vartml::runtime::BufferObject> object;  // XRT_BO only
    bool is_allocated = false;                              // by a runner
    int fd = -1;                                            // DMA_FD only, the caller's
    vartml::runtime::MemoryIdentity identity;               // XRT_BO and DMA_FD

private:
    std::mutex mutex_;  // guards the mapping; a leaf lock
    std::byte* mapped_ = nullptr;
    std::atomic<bool> is_dma_buf_{true};  // until the kernel says otherwise
};

// The only door from the runtime to the inside of an NpuTensor.
class NpuTensorPrivAccess {
public:
    static NpuTensorPriv* get(const NpuTensor& tensor) { return tensor.priv_.get(); }
    static NpuTensor make(std::shared_ptr<NpuTensorPriv> priv) {
        NpuTensor tensor;
        tensor.priv_ = std::move(priv);
        return tensor;
    }
};

}  // namespace vart

namespace vartml::runtime {

// A tensor over (a part of) a memory of the host provider; `info` was checked.
vart::NpuTensor make_allocated(const vart::NpuTensorInfo& info,
                               std::shared_ptr<BufferObject> object);

}  // namespace vartml::runtime
