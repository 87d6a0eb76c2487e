// SPDX-License-Identifier: Apache-2.0
// Stand-in for the header of the same name of AMD's VART-ML: the declarations that release 0.3.0
// has, for tests that the plugins build and run on them. given: VART ML architecture overview, and
// the names and values of the public interface.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vart {

class NpuTensorPriv;

enum class DataType {
    UNKNOWN,
    BOOLEAN,
    INT8,
    UINT8,
    INT16,
    UINT16,
    BF16,
    FP16,
    INT32,
    UINT32,
    FLOAT32,
    INT64,
    UINT64
};
enum class MemoryLayout {
    UNKNOWN,
    NC,
    NCH,
    NHC,
    NHW,
    NWC,
    NHWC,
    NCHW,
    NHWC4,
    NHWC8,
    NC4HW4,
    NC8HW8,
    HCWNC4,
    HCWNC8,
    HCWNC16,
    NHW16C4WC,
    NHW16WC4C,
    GENERIC
};
enum class MemoryType { UNKNOWN, XRT_BO, DMA_FD, USER_POINTER_CMA, USER_POINTER_NON_CMA };
enum class TensorDirection { INPUT, OUTPUT };
enum class TensorType { CPU, HW };

struct NpuTensorInfo {
    std::string name;
    DataType data_type = DataType::UNKNOWN;
    TensorDirection direction = TensorDirection::INPUT;
    TensorType tensor_type = TensorType::HW;
    MemoryLayout memory_layout = MemoryLayout::UNKNOWN;
    std::vector<uint32_t> memory_layout_order;
    size_t size = 0;
    size_t size_in_bytes = 0;
    std::vector<uint32_t> shape;
    std::vector<uint32_t> strides;
};

class NpuTensor {
public:
    NpuTensor(const NpuTensorInfo& info, void* buffer, MemoryType mem_type);
    NpuTensor(const NpuTensorInfo& info, const void* buffer, MemoryType mem_type);
    NpuTensor();
    void* get_buffer();
    const void* get_buffer() const;
    void* get_virtual_address();
    const void* get_virtual_address() const;
    uint64_t get_physical_address() const;
    const NpuTensorInfo& get_info() const;
    MemoryType get_memory_type() const;
    void sync_buffer() const;
    int export_buffer() const;

private:
    friend class NpuTensorPrivAccess;
    std::shared_ptr<NpuTensorPriv> priv_;
};

}  // namespace vart
