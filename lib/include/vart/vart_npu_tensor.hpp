// SPDX-License-Identifier: Apache-2.0
// Tensors of the VART-ML interface: what a tensor is (NpuTensorInfo) and where its bytes are
// (NpuTensor). Compiles as C++17 and C++20. Source-compatible with the public header of the same
// name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// Version of libvartml, 10000 * major + 100 * minor + patch. Its presence tells an application
/// that it is built against libvartml and not against another VART-ML.
#define VARTML_VERSION 10000

namespace vart {

class NpuTensorPriv;

/// Element types. BF16 is the upper half of a FLOAT32. BOOLEAN: one byte, every non-zero value
/// reads as true.
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
    UINT64,
};

/// Order of the dimensions in memory, outermost first. N is the batch of the model, a number after
/// a letter the size of a group of that dimension. The runner of this library uses NHW, NHWC, NCHW,
/// HCWNC4, HCWNC8, HCWNC16 and GENERIC.
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
    HCWNC4,   ///< [H, ceil(C / 4), W, 1, 4]; channels past the last are zero
    HCWNC8,   ///< [H, ceil(C / 8), W, 1, 8]
    HCWNC16,  ///< [H, ceil(C / 16), W, 1, 16]
    NHW16C4WC,
    NHW16WC4C,
    NH2HWC4C,
    NH2C4HWC,
    GENERIC,  ///< see NpuTensorInfo::memory_layout_order
};

/// Where the bytes of a tensor are, and so whether the NPU can reach them without a copy.
enum class MemoryType {
    UNKNOWN,
    XRT_BO,            ///< a buffer object: what Runner::allocate_npu_tensor gives, or an xrt::bo
    DMA_FD,            ///< a dma-buf (or memfd) file descriptor; the data starts at offset 0
    USER_POINTER_CMA,  ///< pointer to memory that the device reaches
    USER_POINTER_NON_CMA,  ///< any other pointer (new, malloc); CPU views only
};

enum class TensorDirection {
    INPUT,
    OUTPUT,
};

/// The two views of a tensor.
enum class TensorType {
    CPU,  ///< shape, type and layout of the ONNX model; the runner converts, at the cost of a copy
    HW,   ///< what the NPU reads and writes; no copy
};

/// Name of the enumerator; "UNKNOWN" for a number outside the enumeration.
std::string_view to_string(DataType value) noexcept;
std::string_view to_string(MemoryLayout value) noexcept;
std::string_view to_string(MemoryType value) noexcept;
std::string_view to_string(TensorDirection value) noexcept;
std::string_view to_string(TensorType value) noexcept;

/// Description of a tensor in one view.
struct NpuTensorInfo {
    std::string name;  ///< the ONNX tensor name, the same in both views
    DataType data_type = DataType::UNKNOWN;
    TensorDirection direction = TensorDirection::INPUT;
    TensorType tensor_type = TensorType::HW;
    MemoryLayout memory_layout = MemoryLayout::UNKNOWN;
    /// GENERIC only: the dimension of the CPU view found at each position, shape[i] =
    /// cpu_shape[order[i]].
    std::vector<uint32_t> memory_layout_order;
    size_t size = 0;                ///< elements, padding included
    size_t size_in_bytes = 0;       ///< bytes that a buffer must hold
    std::vector<uint32_t> shape;    ///< in the order of the layout
    std::vector<uint32_t> strides;  ///< in elements; dense row-major in infos that a runner returns

    /// Writes one line with all fields to standard output.
    void print() const;
};

/// A tensor: a description and the buffer that holds its bytes. Copies are shallow: they share the
/// buffer and its reference count. Make one per buffer and use it again: a mapping is made once per
/// NpuTensor and its copies. Thread-safety: const members may be called concurrently on one object
/// or its copies; assignment as for any value type.
class NpuTensor {
public:
    /// Wraps a buffer that stays the caller's and must outlive this tensor and every run that uses
    /// it. `buffer` is the address of the data, for DMA_FD of an `int` with the descriptor (the
    /// number is copied, the descriptor must stay open), for XRT_BO of a buffer object: what
    /// get_buffer() of a runner's tensor gave or, in a process that uses XRT, an xrt::bo, which the
    /// tensor shares.
    /// \throws std::runtime_error if the buffer is null, the memory type is UNKNOWN or does not fit
    /// the view (HW with USER_POINTER_NON_CMA), or the description is not consistent; the text
    /// names the tensor and the fault.
    NpuTensor(const NpuTensorInfo& info, void* buffer, MemoryType mem_type);

    /// As above, for a buffer that must not be written. \throws std::runtime_error also if the
    /// direction is OUTPUT.
    NpuTensor(const NpuTensorInfo& info, const void* buffer, MemoryType mem_type);

    /// An empty tensor: no buffer, memory type UNKNOWN, default description.
    NpuTensor();

    /// What the constructor was given: the pointer, for XRT_BO the address of the buffer object (an
    /// xrt::bo where the runner's vartml_memory is "xrt"),
    /// for DMA_FD the address of the stored descriptor. nullptr if empty; the non-const form also
    /// for a read-only buffer.
    void* get_buffer();
    const void* get_buffer() const;

    /// Address of the first byte of data. nullptr for DMA_FD, if empty; the non-const form also for
    /// a read-only buffer.
    void* get_virtual_address();
    const void* get_virtual_address() const;

    /// Address on the device's bus; 0 where there is none (host memory, every type but XRT_BO), for
    /// a sub-tensor its own.
    uint64_t get_physical_address() const;

    /// The description given at construction; valid as long as this tensor.
    const NpuTensorInfo& get_info() const;

    /// As given at construction; XRT_BO for tensors that a runner allocated; UNKNOWN if empty.
    MemoryType get_memory_type() const;

    /// INPUT: makes what the CPU wrote visible to the device. OUTPUT: makes what the device wrote
    /// visible to the CPU. Only needed with the options `skip_in_bo_sync` and `skip_out_bo_sync`. A
    /// sub-tensor syncs its own range.
    /// \throws std::runtime_error for tensors that a runner did not allocate.
    void sync_buffer() const;

    /// A new descriptor of the buffer, which the caller closes, or -1. XRT_BO: of the whole buffer
    /// object, for a sub-tensor that of its parent; DMA_FD: a duplicate; other memory: -1.
    int export_buffer() const;

    /// Writes one line with the description and the memory type to standard output.
    void print_info() const;

private:
    friend class NpuTensorPrivAccess;
    std::shared_ptr<NpuTensorPriv> priv_;
};

}  // namespace vart
