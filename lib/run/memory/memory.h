// SPDX-License-Identifier: Apache-2.0
// Memory that a device reaches, whoever provides it: what stands behind MemoryType::XRT_BO.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
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

// One piece of memory, given back with the last owner. Thread-safety: all members may be called
// concurrently.
class Memory {
public:
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    virtual ~Memory() = default;

    // What the CPU reads and writes.
    std::byte* data() const { return data_; }
    size_t size_bytes() const { return size_bytes_; }
    const MemoryIdentity& identity() const { return identity_; }

    // What the device reads and writes; data() of coherent memory.
    virtual std::byte* device_data() const { return data_; }
    // Make a range visible to the device, or what it wrote to the CPU. Errors: device with the
    // provider's reason.
    virtual Result<void> to_device(size_t offset, size_t size_bytes) = 0;
    virtual Result<void> from_device(size_t offset, size_t size_bytes) = 0;
    // Address on the device's bus; 0 where there is none.
    virtual uint64_t physical_address() const { return 0; }
    // A new descriptor of the whole memory, or -1.
    virtual int export_fd() const = 0;
    // The provider's own object, whose address applications exchange, and one for a range that this
    // memory must outlive; null where it has none. Errors: device with the provider's reason.
    virtual const void* native() const { return nullptr; }
    virtual Result<std::shared_ptr<const void>> native_part(size_t, size_t) const {
        return std::shared_ptr<const void>();
    }

protected:
    Memory(std::byte* data, size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}

    std::byte* data_;
    size_t size_bytes_;
    MemoryIdentity identity_;
};

// Where the tensors of a runner come from. Thread-safety: all members may be called concurrently.
class MemoryProvider {
public:
    virtual ~MemoryProvider() = default;
    virtual std::string name() const = 0;  // of option vartml_memory
    // Zeroed, page-aligned memory, of a whole number of pages, in one of the device's banks.
    // Errors: out_of_memory, device with the provider's reason.
    virtual Result<std::shared_ptr<Memory>> allocate(size_t size_bytes, unsigned bank) = 0;
    // The memory behind a dma-buf, whose descriptor stays the caller's; null where a mapping of the
    // descriptor is all that the device needs. Errors: device with the provider's reason.
    virtual Result<std::shared_ptr<Memory>> import(int fd) = 0;
    // What Memory::export_fd gives on this machine: "dma-buf" or "memfd".
    virtual std::string export_kind() const = 0;
};

// A range of a memory, which get_buffer() of a tensor stands for.
struct BufferObject {
    std::shared_ptr<Memory> memory;
    size_t offset = 0, size_bytes = 0;
    bool is_sub = false;
    std::shared_ptr<const void> native_part;  // of the provider, for a sub-range

    std::byte* data() const { return memory->data() + offset; }
    std::byte* device_data() const { return memory->device_data() + offset; }
    // What get_buffer() returns.
    const void* address() const {
        const void* const native = is_sub ? native_part.get() : memory->native();
        return native ? native : this;
    }
};

// Buffer objects are known by address, so that a pointer from an application can be checked.
// Errors: device with the provider's reason.
Result<std::shared_ptr<BufferObject>> make_buffer_object(std::shared_ptr<Memory> memory,
                                                         size_t offset, size_t size_bytes,
                                                         bool is_sub);
// The live buffer object at that address, or nullptr.
std::shared_ptr<BufferObject> find_buffer_object(const void* address);

}  // namespace vartml::runtime
