// SPDX-License-Identifier: Apache-2.0
// Host memory as a memory provider: what stands behind MemoryType::XRT_BO.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <vartml/result.h>

namespace vartml::runtime {

// One mapping of anonymous shared memory: page-aligned, zeroed, exportable. Unmapped with the last
// owner.
class HostMemory {
public:
    // Errors: out_of_memory with the system's reason.
    static Result<std::shared_ptr<HostMemory>> allocate(size_t size_bytes);
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;
    ~HostMemory();

    std::byte* data() const { return data_; }
    size_t size_bytes() const { return size_bytes_; }  // a multiple of the page size
    // A new descriptor of the whole memory, or -1: a dma-buf where the kernel offers udmabuf, else
    // the memfd itself.
    int export_fd() const;

private:
    HostMemory(int fd, std::byte* data, size_t size_bytes)
        : fd_(fd), data_(data), size_bytes_(size_bytes) {}
    int fd_;
    std::byte* data_;
    size_t size_bytes_;
};

// What HostMemory::export_fd gives on this machine: "dma-buf" or "memfd".
std::string host_export_kind();

// The opaque object whose address NpuTensor::get_buffer() returns: a range of a memory.
struct BufferObject {
    std::shared_ptr<HostMemory> memory;
    size_t offset = 0, size_bytes = 0;
    bool is_sub = false;
    std::byte* data() const { return memory->data() + offset; }
};

// Buffer objects are known by address, so that a pointer from an application can be checked.
std::shared_ptr<BufferObject> make_buffer_object(std::shared_ptr<HostMemory> memory, size_t offset,
                                                 size_t size_bytes, bool is_sub);
// The live buffer object at that address, or nullptr.
std::shared_ptr<BufferObject> find_buffer_object(const void* address);

}  // namespace vartml::runtime
