// SPDX-License-Identifier: Apache-2.0
// Runs a model on memory of another part of the system, without a copy: a DMA-BUF, as a camera or a
// video decoder hands out. The NPU reads and writes it in place.
//
// The buffers here are of a dma-heap, else of udmabuf, else of a memfd; the program says which.
//     infer-zero-copy MODEL
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <vart/vart_runner_factory.hpp>

// A descriptor that is closed with the object. A tensor copies the number only, so this must live
// as long as the tensor.
class SharedBuffer {
public:
    explicit SharedBuffer(size_t size) {
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        size = (size + page - 1) / page * page;
        if (from_dma_heap(size)) return;
        fd = memfd_create("frame", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0)
            throw std::runtime_error("no shared memory of " + std::to_string(size) + " bytes");
        to_udmabuf(size);
    }
    SharedBuffer(SharedBuffer&& other) noexcept : fd(other.fd), kind(other.kind) { other.fd = -1; }
    ~SharedBuffer() {
        if (fd >= 0) close(fd);
    }
    int fd = -1;
    const char* kind = "memfd";

private:
    bool from_dma_heap(size_t size) {
        const int heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);
        if (heap < 0) return false;
        dma_heap_allocation_data request{};
        request.len = size;
        request.fd_flags = O_RDWR | O_CLOEXEC;
        if (ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &request) == 0) {
            fd = static_cast<int>(request.fd);
            kind = "dma-heap";
        }
        close(heap);
        return fd >= 0;
    }
    void to_udmabuf(size_t size) {  // makes a dma-buf of the memfd, whose size must be sealed
        const int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
        if (device < 0) return;
        udmabuf_create request{};
        request.memfd = static_cast<uint32_t>(fd);
        request.flags = UDMABUF_FLAGS_CLOEXEC;
        request.size = size;
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
        if (const int made = ioctl(device, UDMABUF_CREATE, &request); made >= 0) {
            close(fd);
            fd = made;
            kind = "udmabuf";
        }
        close(device);
    }
};

int main(int argc, char** argv) {
    try {
        if (argc != 2) throw std::runtime_error("usage: infer-zero-copy MODEL");
        // Both views are "HW" by default: what the NPU itself reads and writes.
        const auto runner = vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, argv[1]);
        std::vector<SharedBuffer> buffers;
        std::vector<std::vector<vart::NpuTensor>> batch[2] = {{{}}, {{}}};
        for (const auto direction : {vart::TensorDirection::INPUT, vart::TensorDirection::OUTPUT})
            for (const auto& info : runner->get_tensors_info(direction, vart::TensorType::HW)) {
                buffers.emplace_back(info.size_in_bytes);
                std::cout << info.name << ": " << info.size_in_bytes << " bytes of "
                          << buffers.back().kind << '\n';
                batch[static_cast<int>(direction)][0].emplace_back(
                    info, static_cast<void*>(&buffers.back().fd), vart::MemoryType::DMA_FD);
            }
        // Make tensors once and use them again: a descriptor is mapped at its first use.
        for (int frame = 0; frame < 3; ++frame)
            if (runner->execute(batch[0], batch[1]) != vart::StatusCode::SUCCESS)
                throw std::runtime_error(
                    std::any_cast<std::string>(runner->get_property("last_error")));
        for (const char* what : {"bytes_copied_in", "bytes_copied_out"})
            std::cout << what << ": " << std::any_cast<uint64_t>(runner->get_property(what))
                      << '\n';
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 1;
    }
}
