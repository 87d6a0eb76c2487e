// SPDX-License-Identifier: Apache-2.0
#include "gst/decode/tensor_meta.h"

#include <algorithm>
#include <limits>

namespace vartml::gst {
namespace {

vartml::DataType data_type(GstTensorDataType type) {
    switch (type) {
        case GST_TENSOR_DATA_TYPE_INT8:
            return vartml::DataType::int8;
        case GST_TENSOR_DATA_TYPE_INT16:
            return vartml::DataType::int16;
        case GST_TENSOR_DATA_TYPE_INT32:
            return vartml::DataType::int32;
        case GST_TENSOR_DATA_TYPE_INT64:
            return vartml::DataType::int64;
        case GST_TENSOR_DATA_TYPE_UINT8:
            return vartml::DataType::uint8;
        case GST_TENSOR_DATA_TYPE_UINT16:
            return vartml::DataType::uint16;
        case GST_TENSOR_DATA_TYPE_UINT32:
            return vartml::DataType::uint32;
        case GST_TENSOR_DATA_TYPE_UINT64:
            return vartml::DataType::uint64;
        case GST_TENSOR_DATA_TYPE_FLOAT16:
            return vartml::DataType::fp16;
        case GST_TENSOR_DATA_TYPE_FLOAT32:
            return vartml::DataType::float32;
        case GST_TENSOR_DATA_TYPE_FLOAT64:
            return vartml::DataType::float64;
        case GST_TENSOR_DATA_TYPE_BFLOAT16:
            return vartml::DataType::bf16;
        default:  // 4-bit integers, and types of later versions
            return vartml::DataType::unknown;
    }
}

std::string name_of(const GstTensor& tensor) {
    const char* id = g_quark_to_string(tensor.id);
    return id ? id : "";
}

}  // namespace

vartml::Result<vartml::TensorInfo> tensor_info(const GstTensor& tensor) {
    vartml::TensorInfo info;
    info.name = name_of(tensor);
    const vartml::DataType type = data_type(tensor.data_type);
    if (type == vartml::DataType::unknown) {
        return vartml::Error{vartml::ErrorCode::unsupported,
                             "tensor '" + info.name + "' has data type " +
                                 std::to_string(tensor.data_type) +
                                 " of GstTensorDataType, which no decoder reads"};
    }
    if (tensor.dims_order == GST_TENSOR_DIM_ORDER_COL_MAJOR && tensor.num_dims > 1) {
        return vartml::Error{
            vartml::ErrorCode::unsupported,
            "tensor '" + info.name + "' is column-major, decoders read row-major tensors"};
    }
    std::vector<uint32_t> shape;
    for (gsize i = 0; i < tensor.num_dims; ++i) {
        if (tensor.dims[i] > std::numeric_limits<uint32_t>::max()) {
            return vartml::Error{vartml::ErrorCode::unsupported,
                                 "tensor '" + info.name + "' has a dimension of " +
                                     std::to_string(tensor.dims[i]) +
                                     ", expected the true size of each dimension"};
        }
        shape.push_back(static_cast<uint32_t>(tensor.dims[i]));
    }
    std::vector<uint32_t> order(shape.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    info.cpu = vartml::make_view(type, vartml::Layout::GENERIC, std::move(shape), std::move(order));
    return info;
}

void remove_tensor_metas(GstBuffer* buffer, std::span<GstBuffer* const> data) {
    const auto listed = [data](GstTensorMeta* meta) {
        for (gsize i = 0; i < meta->num_tensors; ++i) {
            if (std::ranges::find(data, meta->tensors[i]->data) != data.end()) return true;
        }
        return false;
    };
    while (true) {  // removing ends an iteration
        GstTensorMeta* found = nullptr;
        for_each_tensor_meta(buffer, [&](GstTensorMeta* meta) {
            if (listed(meta)) found = meta;
            return !found;
        });
        if (!found || !gst_buffer_remove_meta(buffer, &found->meta)) return;
    }
}

void MappedTensors::clear() {
    for (Mapping& mapping : mappings_) gst_buffer_unmap(mapping.buffer, &mapping.map);
    mappings_.clear();
    outputs_.clear();
}

vartml::Result<void> MappedTensors::add(GstBuffer* data, const vartml::TensorInfo& info,
                                        const vartml::TensorView& view) {
    Mapping mapping{data, GST_MAP_INFO_INIT};
    if (!gst_buffer_map(data, &mapping.map, GST_MAP_READ)) {
        return vartml::Error{vartml::ErrorCode::io, "the memory of tensor '" + info.name +
                                                        "' cannot be mapped for reading"};
    }
    if (mapping.map.size < view.size_bytes) {
        const std::string found = std::to_string(mapping.map.size);
        gst_buffer_unmap(data, &mapping.map);
        return vartml::Error{vartml::ErrorCode::bad_model, "tensor '" + info.name + "' holds " +
                                                               found + " bytes, its shape needs " +
                                                               std::to_string(view.size_bytes)};
    }
    mappings_.push_back(mapping);
    outputs_.push_back({mapping.map.data, info.name, &view, &info.cpu});
    return {};
}

}  // namespace vartml::gst
