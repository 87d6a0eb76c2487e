// SPDX-License-Identifier: Apache-2.0
// Host memory as a memory provider.
#pragma once
#include <cstddef>
#include <memory>
#include <mutex>

#include <vartml/result.h>

#include "lib/run/memory/memory.h"

namespace vartml::runtime {

// Noncoherent memory shows a missing sync as wrong data: the device has bytes of its own, and only
// to_device() and from_device() move them.
enum class Coherence { coherent, noncoherent };

// One mapping of anonymous shared memory: page-aligned, zeroed, exportable.
class HostMemory final : public Memory {
public:
    // Errors: out_of_memory with the system's reason.
    static Result<std::shared_ptr<HostMemory>> allocate(size_t size_bytes,
                                                        Coherence coherence = Coherence::coherent);
    ~HostMemory() override;

    std::byte* device_data() const override { return device_data_ ? device_data_ : data_; }
    // Nothing for coherent memory; neither fails.
    Result<void> to_device(size_t offset, size_t size_bytes) override;
    Result<void> from_device(size_t offset, size_t size_bytes) override;
    // Of the kind of the provider's export_kind().
    int export_fd() const override;

private:
    explicit HostMemory(size_t size_bytes) : Memory(nullptr, size_bytes) {}
    bool map(std::byte*& data, int flags, int fd);
    bool touch(size_t page_bytes);

    int fd_ = -1;
    std::byte* device_data_ = nullptr;  // noncoherent memory only
    std::mutex moving_;                 // held while bytes move; a leaf lock
};

// Banks are all the same. Exports dma-bufs where the kernel makes them of our memory (udmabuf),
// else memfds; imports nothing, a mapping is enough.
std::shared_ptr<MemoryProvider> host_memory(Coherence coherence);

}  // namespace vartml::runtime
