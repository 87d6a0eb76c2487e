// SPDX-License-Identifier: Apache-2.0
// The child process of a partition, and the memory that it shares with this one.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include <vartml/result.h>

#include "lib/common/file.h"
#include "lib/common/process.h"
#include "lib/device/device.h"
#include "lib/device/onnxruntime/protocol.h"

namespace vartml::onnxruntime {

// A file without a name that is mapped for reading and writing.
class SharedMemory {
public:
    // Errors: out_of_memory.
    static Result<SharedMemory> create(size_t size);
    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&& other) noexcept;
    ~SharedMemory();
    std::byte* data() const { return data_; }
    int fd() const { return fd_.get(); }

private:
    SharedMemory(Fd fd, std::byte* data, size_t size)
        : fd_(std::move(fd)), data_(data), size_(size) {}
    Fd fd_;
    std::byte* data_ = nullptr;
    size_t size_ = 0;
};

// Thread-safety: run() is called by one thread at a time per lane.
class Lanes {
public:
    // Starts the child for a program of OnnxRuntime nodes and waits until it has loaded them.
    // Errors: unsupported where there is no ONNX Runtime, with what to install; device with ONNX
    // Runtime's own sentence, naming the node; out_of_memory, io.
    static Result<std::unique_ptr<Lanes>> create(const device::Program& program, unsigned threads,
                                                 unsigned lanes);

    size_t size() const { return sockets_.size(); }
    const std::vector<Slot>& slots() const { return slots_; }  // inputs, then outputs
    std::byte* tensor(size_t lane, size_t slot) const;
    // Set for each input before a run, read for each output after it.
    Shape& shape(size_t lane, size_t slot) const;
    std::span<const Stamp> stamps(size_t lane) const;  // per node, of the last run
    // Errors: device, naming the node, or how the child ended.
    Result<void> run(size_t lane);
    const std::string& version() const { return version_; }

private:
    Lanes(SharedMemory memory, ServingChild child, Setup setup)
        : memory_(std::move(memory)), child_(std::move(child)), setup_(setup) {}
    Result<void> receive(size_t lane);
    Error ended();

    SharedMemory memory_;
    ServingChild child_;
    Setup setup_;
    std::vector<Slot> slots_;
    std::vector<std::string> nodes_;  // by session
    std::vector<Fd> sockets_;         // by lane
    std::string partition_, version_;
};

}  // namespace vartml::onnxruntime
