// SPDX-License-Identifier: Apache-2.0
// Checks of tensors and their memory: wrapping, allocation, sub-tensors, sync, export.
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "checks.h"

namespace conformance {
namespace {

using vart::DataType;
using vart::MemoryLayout;
using vart::MemoryType;
using vart::NpuTensor;
using vart::NpuTensorInfo;
using vart::TensorDirection;
using vart::TensorType;

constexpr size_t length = 4096;

NpuTensorInfo plain_info(TensorType type = TensorType::CPU,
                         TensorDirection direction = TensorDirection::INPUT) {
    NpuTensorInfo info;
    info.name = "frame";
    info.data_type = DataType::UINT8;
    info.direction = direction;
    info.tensor_type = type;
    info.memory_layout = MemoryLayout::GENERIC;
    info.memory_layout_order = {0};
    info.size = info.size_in_bytes = length;
    info.shape = {length};
    info.strides = {1};
    return info;
}

alignas(4096) std::array<std::byte, 2 * length> host;
void* const host_memory = host.data();

Seen throws_when_wrapped(const NpuTensorInfo& info, void* buffer, MemoryType type) {
    return expect_throw<std::runtime_error>([&] { NpuTensor tensor(info, buffer, type); });
}

// A descriptor that is closed at the end.
struct Descriptor {
    int fd = -1;
    ~Descriptor() {
        if (fd >= 0) close(fd);
    }
};

// Whether memory that a tensor says it has stays its own while others allocate.
Seen stays_its_own(NpuTensor& tensor) {
    const size_t size = tensor.get_info().size_in_bytes;
    std::memset(tensor.get_virtual_address(), 3, size);
    std::vector<std::vector<char>> others;
    for (int i = 0; i < 8; ++i) others.emplace_back(size, char(9));
    const bool kept = bytes_of(tensor) == std::string(size, char(3));
    return same_if(kept, kept ? "it keeps what is written" : "it is somebody else's");
}

// The input that the HW path takes, or else the CPU view.
const NpuTensorInfo& first_input(Model& model) {
    const TensorType type = model.has_hw(TensorDirection::INPUT) ? TensorType::HW : TensorType::CPU;
    return model.runner().get_tensors_info(TensorDirection::INPUT, type).at(0);
}
NpuTensor allocate(Model& model) {
    return model.runner().allocate_npu_tensor(first_input(model));
}

// Memory for two, of which only size_in_bytes says so.
NpuTensor allocate_parent(const vart::Runner& runner, const NpuTensorInfo& info) {
    NpuTensorInfo both = info;
    both.size_in_bytes *= 2;
    return runner.allocate_npu_tensor(both);
}

template <class Runner>
std::optional<NpuTensor> in_bank(const Runner& runner, const NpuTensorInfo& info, uint32_t bank) {
    if constexpr (requires { runner.allocate_npu_tensor(info, bank); })
        return runner.allocate_npu_tensor(info, bank);
    return std::nullopt;
}

Seen allocates(Model& model, TensorType type) {
    const vart::Runner& runner = model.runner();
    for (const auto direction : {TensorDirection::INPUT, TensorDirection::OUTPUT}) {
        for (const NpuTensorInfo& info : runner.get_tensors_info(direction, type)) {
            NpuTensor tensor = runner.allocate_npu_tensor(info);
            if (tensor.get_memory_type() != MemoryType::XRT_BO)
                return differs("memory type " + std::to_string(int(tensor.get_memory_type())));
            void* bytes = tensor.get_virtual_address();
            if (!bytes || !tensor.get_buffer()) return differs("no address");
            std::memset(bytes, 0x5a, info.size_in_bytes);
            if (tensor.get_info().shape != info.shape) return differs("another info");
        }
    }
    return same("XRT_BO with an address");
}

Seen exports(Model& model) {
    NpuTensor tensor = allocate(model);
    auto* bytes = static_cast<unsigned char*>(tensor.get_virtual_address());
    if (!bytes) return differs("no address");
    bytes[0] = 0xc5;
    tensor.sync_buffer();
    const Descriptor exported{tensor.export_buffer()};
    if (exported.fd < 0) return refused("-1");
    void* seen = mmap(nullptr, 1, PROT_READ, MAP_SHARED, exported.fd, 0);
    if (seen == MAP_FAILED) return differs("a descriptor that cannot be mapped");
    dma_buf_sync sync{DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ};
    const bool dma_buf = ioctl(exported.fd, DMA_BUF_IOCTL_SYNC, &sync) == 0;
    const bool equal = *static_cast<unsigned char*>(seen) == 0xc5;
    munmap(seen, 1);
    return same_if(equal, std::string(dma_buf ? "a dma-buf" : "plain memory, no dma-buf") +
                              (equal ? "" : " with other bytes"));
}

}  // namespace

std::vector<Check> memory_checks() {
    return {
        // ---- tensors over the application's memory ----
        {"tensor/empty", "nullptr, 0, UNKNOWN, -1", true,
         [](Model&) {
             NpuTensor empty;
             const bool right = !empty.get_buffer() && !empty.get_virtual_address() &&
                                empty.get_physical_address() == 0 && empty.export_buffer() == -1 &&
                                empty.get_memory_type() == MemoryType::UNKNOWN;
             return same_if(right, right ? "as expected" : "other values");
         }},
        {"tensor/wrap host memory", "CPU view over USER_POINTER_NON_CMA", true,
         [](Model&) {
             NpuTensor tensor(plain_info(), host_memory, MemoryType::USER_POINTER_NON_CMA);
             return same_if(tensor.get_buffer() == host_memory &&
                                tensor.get_virtual_address() == host_memory &&
                                tensor.get_physical_address() == 0 &&
                                tensor.get_memory_type() == MemoryType::USER_POINTER_NON_CMA,
                            "the pointer, no physical address");
         }},
        {"tensor/HW in host memory", "std::runtime_error", true,
         [](Model&) {
             return throws_when_wrapped(plain_info(TensorType::HW), host_memory,
                                        MemoryType::USER_POINTER_NON_CMA);
         }},
        {"tensor/no buffer", "std::runtime_error", true,
         [](Model&) {
             return throws_when_wrapped(plain_info(), nullptr, MemoryType::USER_POINTER_NON_CMA);
         }},
        {"tensor/unknown memory", "std::runtime_error", true,
         [](Model&) {
             return throws_when_wrapped(plain_info(), host_memory, MemoryType::UNKNOWN);
         }},
        {"tensor/no size", "std::runtime_error", false,
         [](Model&) {
             NpuTensorInfo info = plain_info();
             info.size = info.size_in_bytes = 0;
             return throws_when_wrapped(info, host_memory, MemoryType::USER_POINTER_NON_CMA);
         }},
        {"tensor/no name", "std::runtime_error", false,
         [](Model&) {
             NpuTensorInfo info = plain_info();
             info.name.clear();
             return throws_when_wrapped(info, host_memory, MemoryType::USER_POINTER_NON_CMA);
         }},
        {"tensor/larger memory", "size_in_bytes above the shape's", true,
         [](Model&) {
             NpuTensorInfo info = plain_info();
             info.size_in_bytes *= 2;
             NpuTensor tensor(info, host_memory, MemoryType::USER_POINTER_NON_CMA);
             return same("a tensor");
         }},
        {"tensor/read-only", "nullptr for writing, the pointer for reading", true,
         [](Model&) {
             NpuTensor tensor(plain_info(), const_cast<const void*>(host_memory),
                              MemoryType::USER_POINTER_NON_CMA);
             return same_if(!tensor.get_buffer() && !tensor.get_virtual_address() &&
                                std::as_const(tensor).get_buffer() == host_memory,
                            tensor.get_buffer() ? "writable" : "read-only");
         }},
        {"tensor/read-only output", "std::runtime_error", false,
         [](Model&) {
             return expect_throw<std::runtime_error>([] {
                 NpuTensor tensor(plain_info(TensorType::CPU, TensorDirection::OUTPUT),
                                  const_cast<const void*>(host_memory),
                                  MemoryType::USER_POINTER_NON_CMA);
             });
         }},
        {"tensor/copy and move", "copies share, what was moved from is empty", true,
         [](Model&) {
             NpuTensor tensor(plain_info(), host_memory, MemoryType::USER_POINTER_NON_CMA);
             NpuTensor copy = tensor, moved = std::move(tensor);
             return same_if(copy.get_buffer() == host_memory && moved.get_buffer() == host_memory &&
                                !tensor.get_buffer(),
                            "shared");
         }},
        {"tensor/sync of wrapped memory", "std::runtime_error", true,
         [](Model&) {
             const NpuTensor tensor(plain_info(), host_memory, MemoryType::USER_POINTER_NON_CMA);
             return expect_throw<std::runtime_error>([&] { tensor.sync_buffer(); });
         }},
        {"tensor/export of a pointer", "-1", true,
         [](Model&) {
             const NpuTensor tensor(plain_info(), host_memory, MemoryType::USER_POINTER_NON_CMA);
             const Descriptor exported{tensor.export_buffer()};
             return same_if(exported.fd == -1, std::to_string(exported.fd));
         }},
        {"tensor/memfd as DMA_FD", "a tensor without address", false,
         [](Model&) {
             Descriptor memory{memfd_create("vart-ml-conformance", MFD_CLOEXEC)};
             if (memory.fd < 0 || ftruncate(memory.fd, length)) return not_shown("no memfd here");
             NpuTensor tensor(plain_info(TensorType::HW), &memory.fd, MemoryType::DMA_FD);
             const void* stored = std::as_const(tensor).get_buffer();
             return same_if(!tensor.get_virtual_address() && stored &&
                                *static_cast<const int*>(stored) == memory.fd,
                            "a tensor");
         }},
        {"tensor/closed DMA_FD", "std::runtime_error", false,
         [](Model&) {
             int none = -1;
             return throws_when_wrapped(plain_info(TensorType::HW), &none, MemoryType::DMA_FD);
         }},

        // ---- memory of the runtime ----
        {"allocate/HW", "XRT_BO with an address, for each tensor", true,
         [](Model& model) {
             if (!model.has_hw()) return not_shown("the model has no HW views");
             return allocates(model, TensorType::HW);
         }},
        {"allocate/CPU", "XRT_BO with an address, for each tensor", false,
         [](Model& model) { return allocates(model, TensorType::CPU); }},
        {"allocate/zeroed", "zeros, at a page's begin", false,
         [](Model& model) {
             {
                 allocates(model, first_input(model).tensor_type);
             }
             const NpuTensor tensor = allocate(model);
             const std::string bytes = bytes_of(tensor);
             const bool zero = bytes.find_first_not_of('\0') == std::string::npos;
             const bool page =
                 reinterpret_cast<uintptr_t>(tensor.get_virtual_address()) % 4096 == 0;
             return same_if(zero && page, std::string(zero ? "zeros" : "other bytes") +
                                              (page ? "" : ", not at a page"));
         }},
        {"allocate/no size", "std::invalid_argument", true,
         [](Model& model) {
             NpuTensorInfo info = first_input(model);
             info.size = info.size_in_bytes = 0;
             return expect_throw<std::invalid_argument>(
                 [&] { model.runner().allocate_npu_tensor(info); });
         }},
        {"allocate/too much", "std::runtime_error", true,
         [](Model& model) {
             NpuTensorInfo info = first_input(model);
             info.size_in_bytes = size_t{1} << 56;
             return expect_throw<std::runtime_error>(
                 [&] { model.runner().allocate_npu_tensor(info); });
         }},
        {"allocate/bank 0", "a tensor", true,
         [](Model& model) {
             const auto tensor = in_bank(model.runner(), first_input(model), 0);
             return tensor ? same_if(tensor->get_virtual_address(), "a tensor")
                           : refused("the header does not declare it");
         }},
        {"allocate/bank 1000", "std::invalid_argument", true,
         [](Model& model) {
             bool declared = true;
             const Seen seen = expect_throw<std::invalid_argument>(
                 [&] { declared = in_bank(model.runner(), first_input(model), 1000).has_value(); });
             return declared ? seen : refused("the header does not declare it");
         }},
        {"allocate/outlives the runner", "memory that can be written", false,
         [](Model& model) {
             auto runner = model.open();
             NpuTensor tensor = runner->allocate_npu_tensor(
                 runner->get_tensors_info(TensorDirection::INPUT, TensorType::CPU).at(0));
             runner.reset();
             return stays_its_own(tensor);
         },
         true},
        {"allocate/sync", "no exception, the bytes stay", true,
         [](Model& model) {
             NpuTensor tensor = allocate(model);
             auto* bytes = static_cast<unsigned char*>(tensor.get_virtual_address());
             bytes[0] = 77;
             tensor.sync_buffer();
             return same_if(bytes[0] == 77, "synced");
         }},
        {"allocate/wrapped again", "get_buffer() as XRT_BO of another tensor", true,
         [](Model& model) {
             NpuTensor tensor = allocate(model);
             NpuTensor again(tensor.get_info(), tensor.get_buffer(), MemoryType::XRT_BO);
             return same_if(again.get_virtual_address() == tensor.get_virtual_address(),
                            "a tensor");
         }},
        {"export/allocated", "a descriptor with the tensor's bytes", true, exports},
        {"export/wrapped as DMA_FD", "a tensor, exported once more", true,
         [](Model& model) {
             NpuTensor tensor = allocate(model);
             Descriptor exported{tensor.export_buffer()};
             if (exported.fd < 0) return refused("export_buffer gives -1");
             NpuTensor wrapped(tensor.get_info(), &exported.fd, MemoryType::DMA_FD);
             const Descriptor again{wrapped.export_buffer()};
             return same_if(
                 again.fd >= 0 && again.fd != exported.fd && !wrapped.get_virtual_address(),
                 again.fd >= 0 ? "a new descriptor" : "-1");
         }},

        // ---- sub-tensors ----
        {"sub-tensor/second half", "the parent's memory at the offset", true,
         [](Model& model) {
             const NpuTensorInfo& info = first_input(model);
             NpuTensor parent = allocate_parent(model.runner(), info);
             NpuTensor sub = model.runner().allocate_sub_tensor(parent, info, info.size_in_bytes);
             auto* begin = static_cast<char*>(parent.get_virtual_address());
             std::memset(sub.get_virtual_address(), 7, info.size_in_bytes);
             sub.sync_buffer();
             return same_if(sub.get_virtual_address() == begin + info.size_in_bytes &&
                                begin[info.size_in_bytes] == 7 && begin[0] == 0 &&
                                sub.get_memory_type() == MemoryType::XRT_BO,
                            "at its offset");
         }},
        {"sub-tensor/physical address", "the parent's and the offset, or 0", true,
         [](Model& model) {
             const NpuTensorInfo& info = first_input(model);
             const NpuTensor parent = allocate_parent(model.runner(), info);
             const NpuTensor sub =
                 model.runner().allocate_sub_tensor(parent, info, info.size_in_bytes);
             const uint64_t a = parent.get_physical_address(), b = sub.get_physical_address();
             return same_if(a ? b == a + info.size_in_bytes : b == 0,
                            std::to_string(a) + " and " + std::to_string(b));
         }},
        {"sub-tensor/past the end", "std::invalid_argument", true,
         [](Model& model) {
             const NpuTensorInfo& info = first_input(model);
             const NpuTensor parent = allocate(model);
             return expect_throw<std::invalid_argument>(
                 [&] { model.runner().allocate_sub_tensor(parent, info, info.size_in_bytes); });
         }},
        {"sub-tensor/of a sub-tensor", "std::invalid_argument", true,
         [](Model& model) {
             const NpuTensorInfo& info = first_input(model);
             const NpuTensor parent = allocate_parent(model.runner(), info);
             const NpuTensor sub = model.runner().allocate_sub_tensor(parent, info, 0);
             return expect_throw<std::invalid_argument>(
                 [&] { model.runner().allocate_sub_tensor(sub, info, 0); });
         }},
        {"sub-tensor/of wrapped memory", "std::invalid_argument", true,
         [](Model& model) {
             const NpuTensor parent(plain_info(), host_memory, MemoryType::USER_POINTER_NON_CMA);
             return expect_throw<std::invalid_argument>(
                 [&] { model.runner().allocate_sub_tensor(parent, plain_info(), 0); });
         }},
        {"sub-tensor/of an empty tensor", "std::invalid_argument", true,
         [](Model& model) {
             return expect_throw<std::invalid_argument>(
                 [&] { model.runner().allocate_sub_tensor(NpuTensor(), plain_info(), 0); });
         }},
        {"sub-tensor/outlives the parent", "memory that can be written", true,
         [](Model& model) {
             const NpuTensorInfo& info = first_input(model);
             NpuTensor sub = [&] {
                 const NpuTensor parent = allocate_parent(model.runner(), info);
                 return model.runner().allocate_sub_tensor(parent, info, info.size_in_bytes);
             }();
             return stays_its_own(sub);
         },
         true},
    };
}

}  // namespace conformance
