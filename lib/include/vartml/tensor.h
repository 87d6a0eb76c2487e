// SPDX-License-Identifier: Apache-2.0
// Plain descriptions of tensors: data type, layout, shape, strides, quantisation. They own no
// tensor memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vartml {

/// Element types. The numbers equal those of vart::DataType (float64 and later are ours: they occur
/// inside a model only).
enum class DataType : uint8_t {
    unknown,
    boolean,
    int8,
    uint8,
    int16,
    uint16,
    bf16,
    fp16,
    int32,
    uint32,
    float32,
    int64,
    uint64,
    float64
};

/// Memory layouts. The numbers equal those of vart::MemoryLayout; the runtime here produces NHW,
/// NHWC, NCHW, HCWNC4, HCWNC8, HCWNC16 and GENERIC.
enum class Layout : uint8_t {
    unknown,
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
    NH2HWC4C,
    NH2C4HWC,
    GENERIC
};

/// Bytes of one element; 0 for unknown.
size_t size_bytes(DataType type);

/// Spelling of files and reports: "fp32", "bf16", "int8", "bool" …; "unknown".
std::string_view to_string(DataType type);
std::optional<DataType> parse_data_type(std::string_view text);

/// Enumerator name as above.
std::string_view to_string(Layout layout);
std::optional<Layout> parse_layout(std::string_view text);

/// Affine quantisation of an integer tensor: real = (q - zero_point) * scale.
struct Quantisation {
    double scale = 1.0;
    int32_t zero_point = 0;
    bool operator==(const Quantisation&) const = default;
};

/// One view of a tensor in memory: how the bytes lie. Strides count elements.
struct TensorView {
    DataType data_type = DataType::unknown;
    Layout layout = Layout::unknown;
    std::vector<uint32_t> order;  ///< GENERIC: the CPU dimension found at each position; else empty
    std::vector<uint32_t> shape;  ///< in the order of the layout, e.g. [H, C/4, W, N, 4] for HCWNC4
    std::vector<uint32_t> strides;  ///< dense row-major over `shape`
    size_t size = 0;                ///< elements, padding included
    size_t size_bytes = 0;
    std::optional<Quantisation> quantisation;  ///< integer HW views only
    bool operator==(const TensorView&) const = default;
};

/// A dense view of the shape given; fills strides, size and size_bytes.
TensorView make_view(DataType type, Layout layout, std::vector<uint32_t> shape,
                     std::vector<uint32_t> order = {});

/// An input or output of a model, in both views.
struct TensorInfo {
    std::string name;  ///< the ONNX tensor name
    TensorView cpu;    ///< as the ONNX model declares it
    std::optional<TensorView>
        hw;  ///< as the NPU reads or writes it; absent where a CPU partition does
    bool data_dependent = false;  ///< the shape is an upper bound
    std::string picture;  ///< inputs with an embedded pre-process: channel order of the bytes, such
                          ///< as "rgb"
    bool operator==(const TensorInfo&) const = default;
};

/// The HW view of a CPU view in a given layout and type (blocked layouts round channels up, NHW
/// rounds the innermost dimension up to 8). `cpu` must have rank 4 for the image layouts, rank 3
/// for NHW; blocked layouts need N = 1.
TensorView hw_view(const TensorView& cpu, Layout layout, DataType type);

}  // namespace vartml
