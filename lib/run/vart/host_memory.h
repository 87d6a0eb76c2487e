// SPDX-License-Identifier: Apache-2.0
// Host memory as a memory provider: what stands behind MemoryType::XRT_BO.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <vartml/result.h>

namespace vartml::runtime {

// Which memory a file descriptor stands for: two descriptors of one memory agree. 0, 0: not known.
struct MemoryIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    bool is_known() const { return inode != 0; }
    bool operator==(const MemoryIdentity&) const = default;
};

// Noncoherent memory shows a missing sync as wrong data: the device has bytes of its own, and only
// to_device() and from_device() move them.
enum class Coherence { coherent, noncoherent };

// One mapping of anonymous shared memory: page-aligned, zeroed, exportable. Unmapped with the last
// owner.
class HostMemory {
public:
    // Errors: out_of_memory with the system's reason.
    static Result<std::shared_ptr<HostMemory>> allocate(size_t size_bytes,
                                                        Coherence coherence = Coherence::coherent);
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;
    ~HostMemory();

    std::byte* data() const { return data_; }
    size_t size_bytes() const { return size_bytes_; }  // a multiple of the page size
    // What the device reads and writes; data() of coherent memory.
    std::byte* device_data() const { return device_data_ ? device_data_ : data_; }
    // A range of bytes from the CPU to the device or back; nothing for coherent memory.
    void to_device(size_t offset, size_t size_bytes);
    void from_device(size_t offset, size_t size_bytes);
    const MemoryIdentity& identity() const { return identity_; }
    // A new descriptor of the whole memory, of the kind host_export_kind(), or -1.
    int export_fd() const;

private:
    explicit HostMemory(size_t size_bytes) : size_bytes_(size_bytes) {}
    bool map(std::byte*& data, int flags, int fd);

    const size_t size_bytes_;
    int fd_ = -1;
    std::byte* data_ = nullptr;
    std::byte* device_data_ = nullptr;  // noncoherent memory only
    MemoryIdentity identity_;
    std::mutex moving_;  // held while bytes move; a leaf lock
};

// What HostMemory::export_fd gives on this machine: "dma-buf" where the kernel makes one of our
// memory (udmabuf), else "memfd".
std::string host_export_kind();

// The opaque object whose address NpuTensor::get_buffer() returns: a range of a memory.
struct BufferObject {
    std::shared_ptr<HostMemory> memory;
    size_t offset = 0, size_bytes = 0;
    bool is_sub = false;
    std::byte* data() const { return memory->data() + offset; }
    std::byte* device_data() const { return memory->device_data() + offset; }
};

// Buffer objects are known by address, so that a pointer from an application can be checked.
std::shared_ptr<BufferObject> make_buffer_object(std::shared_ptr<HostMemory> memory, size_t offset,
                                                 size_t size_bytes, bool is_sub);
// The live buffer object at that address, or nullptr.
std::shared_ptr<BufferObject> find_buffer_object(const void* address);

}  // namespace vartml::runtime
