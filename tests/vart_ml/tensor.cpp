// SPDX-License-Identifier: Apache-2.0
// Tensors of the stand-in.
#include <stdexcept>

#include <vart/vart_runner_factory.hpp>

namespace vart {

class NpuTensorPriv {
public:
    NpuTensorInfo info;
    void* buffer = nullptr;
    bool writable = true;
    MemoryType type = MemoryType::UNKNOWN;
};

namespace {

const NpuTensorPriv& shared(const std::shared_ptr<NpuTensorPriv>& priv) {
    static const NpuTensorPriv empty;
    return priv ? *priv : empty;
}

// given: "Zero-copy behavior": the device does not reach plain memory.
void check(const NpuTensorInfo& info, const void* buffer, MemoryType type) {
    if (!buffer || type == MemoryType::UNKNOWN || info.size_in_bytes == 0)
        throw std::runtime_error("tensor " + info.name + ": no buffer, no memory type or no size");
    if (info.tensor_type == TensorType::HW && type == MemoryType::USER_POINTER_NON_CMA)
        throw std::runtime_error("tensor " + info.name + ": HW with USER_POINTER_NON_CMA");
}

}  // namespace

NpuTensor::NpuTensor() = default;
NpuTensor::NpuTensor(const NpuTensorInfo& info, void* buffer, MemoryType mem_type)
    : priv_((check(info, buffer, mem_type),
             std::make_shared<NpuTensorPriv>(NpuTensorPriv{info, buffer, true, mem_type}))) {}
NpuTensor::NpuTensor(const NpuTensorInfo& info, const void* buffer, MemoryType mem_type)
    : NpuTensor(info, const_cast<void*>(buffer), mem_type) {
    priv_->writable = false;
}
void* NpuTensor::get_buffer() {
    return shared(priv_).writable ? shared(priv_).buffer : nullptr;
}
const void* NpuTensor::get_buffer() const {
    return shared(priv_).buffer;
}
void* NpuTensor::get_virtual_address() {
    return shared(priv_).type == MemoryType::DMA_FD ? nullptr : get_buffer();
}
const void* NpuTensor::get_virtual_address() const {
    return shared(priv_).type == MemoryType::DMA_FD ? nullptr : get_buffer();
}
uint64_t NpuTensor::get_physical_address() const {
    return 0;
}
const NpuTensorInfo& NpuTensor::get_info() const {
    return shared(priv_).info;
}
MemoryType NpuTensor::get_memory_type() const {
    return shared(priv_).type;
}
void NpuTensor::sync_buffer() const {}
int NpuTensor::export_buffer() const {
    return -1;
}

std::string_view to_string(StatusCode value) noexcept {
    constexpr std::string_view names[] = {
        "SUCCESS",       "FAILURE",     "INVALID_INPUT",  "INVALID_OUTPUT",       "OUT_OF_MEMORY",
        "RUNTIME_ERROR", "JOB_PENDING", "INVALID_JOB_ID", "RESOURCE_UNAVAILABLE", "UNSUPPORTED"};
    const auto i = static_cast<size_t>(value);
    return i < std::size(names) ? names[i] : "UNKNOWN";
}

}  // namespace vart
