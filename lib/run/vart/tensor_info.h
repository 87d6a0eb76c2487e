// SPDX-License-Identifier: Apache-2.0
// NpuTensorInfo: its text, its consistency, and its way from and to our own views.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>
#include <vart/vart_npu_tensor.hpp>
#include <vart/vart_runner_factory.hpp>

#include "lib/run/memory/memory.h"
#include "lib/run/vart/options.h"

namespace vart {

// What an NpuTensor holds, and how the runtime reaches it.

// Immutable after construction, but for the mapping of a descriptor.
class NpuTensorPriv {
public:
    ~NpuTensorPriv();
    NpuTensorPriv() = default;
    NpuTensorPriv(const NpuTensorPriv&) = delete;
    NpuTensorPriv& operator=(const NpuTensorPriv&) = delete;

    // Address of the CPU's bytes: at the first call the provider, where it does that, imports a
    // descriptor, else it is mapped. Errors: io with the system's reason, those of the provider.
    vartml::Result<std::byte*> map(vartml::runtime::MemoryProvider* provider = nullptr);
    // Address of the device's bytes, after map() has succeeded; the CPU's but for noncoherent
    // memory.
    std::byte* device_bytes();
    // Brackets an access of the CPU to a dma-buf; nothing for other memory. `writes`: the access
    // writes.
    void begin_cpu_access(bool writes);
    void end_cpu_access(bool writes);
    // The same around a run on device_bytes(): `writes` is true for an output. Moves the first
    // `size_bytes` to the device, or back from it. Errors: those of the provider.
    vartml::Result<void> begin_device_access(bool writes, size_t size_bytes);
    vartml::Result<void> end_device_access(bool writes, size_t size_bytes);

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
    std::shared_ptr<vartml::runtime::Memory> imported_;  // mapped_ is its
    std::atomic<bool> is_dma_buf_{true};                 // until the kernel says otherwise
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

// A tensor over (a part of) a memory of a provider; `info` was checked.
vart::NpuTensor make_allocated(const vart::NpuTensorInfo& info,
                               std::shared_ptr<BufferObject> object);

// What a device exchanges of a tensor.
inline const TensorView& device_view(const TensorInfo& tensor) {
    return tensor.hw ? *tensor.hw : tensor.cpu;
}
// What device and host must agree on; quantisation does not change the bytes.
inline bool same_bytes(const TensorView& a, const TensorView& b) {
    return a.data_type == b.data_type && a.size_bytes == b.size_bytes && a.strides == b.strides;
}

// What a runner knows of its model's border: every tensor in both views.

// Thread-safety: immutable.
class TensorTables {
public:
    // `options` say in which view calls exchange each tensor.
    TensorTables(std::vector<TensorInfo> inputs, std::vector<TensorInfo> outputs,
                 const Options& options);

    const std::vector<TensorInfo>& tensors(vart::TensorDirection direction) const {
        return tensors_[static_cast<size_t>(direction)];
    }
    // In ONNX order; for HW the tensors that have a HW view.
    const std::vector<vart::NpuTensorInfo>& infos(vart::TensorDirection direction,
                                                  vart::TensorType type) const {
        return infos_[static_cast<size_t>(direction)][static_cast<size_t>(type)];
    }
    // What a call takes, in ONNX order: each tensor in its view.
    const std::vector<vart::NpuTensorInfo>& exchanged(vart::TensorDirection direction) const {
        return exchanged_[static_cast<size_t>(direction)];
    }
    // Do the options choose the view of a tensor by its name?
    bool is_chosen_by_name(vart::TensorDirection direction) const {
        return is_chosen_by_name_[static_cast<size_t>(direction)];
    }
    // Errors: not_found listing the names, or naming the view that the tensor does not have.
    Result<const vart::NpuTensorInfo*> find(const std::string& name, vart::TensorType type) const;
    // Errors: not_found listing the names.
    Result<const vart::QuantParameters*> quantisation(const std::string& name) const;

private:
    struct Place {
        vart::TensorDirection direction;
        std::array<std::optional<size_t>, 2> index;  // in infos(direction, type), by type
        vart::QuantParameters quantisation;
    };
    Error unknown(const char* call, const std::string& name) const;

    std::array<std::vector<TensorInfo>, 2> tensors_;
    std::array<std::array<std::vector<vart::NpuTensorInfo>, 2>, 2> infos_;
    std::array<std::vector<vart::NpuTensorInfo>, 2> exchanged_;
    std::array<bool, 2> is_chosen_by_name_{};
    std::unordered_map<std::string, Place> places_;
};

// The line of NpuTensorInfo::print(), without newline.
std::string to_text(const vart::NpuTensorInfo& info);

// Bytes of one element; 0 for UNKNOWN.
size_t element_size_bytes(vart::DataType type);

// Is the description consistent in itself? Errors: invalid_argument naming the tensor and the first
// fault in the order name, types, shape, strides, order, sizes.
Result<void> check_info(const vart::NpuTensorInfo& info);

// The description of `tensor` in one view; rank 0 becomes [1].
vart::NpuTensorInfo to_npu_info(const TensorInfo& tensor, vart::TensorDirection direction,
                                vart::TensorType type);

// The view that a description names: layout, type and dense strides; no quantisation.
TensorView to_view(const vart::NpuTensorInfo& info);

}  // namespace vartml::runtime
