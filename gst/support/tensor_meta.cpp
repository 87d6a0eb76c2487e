// SPDX-License-Identifier: Apache-2.0
#include "gst/support/tensor_meta.h"

#include <algorithm>
#include <array>
#include <limits>

namespace vartml::gst {
namespace {

struct TypeRow {
    GstTensorDataType theirs;
    vartml::DataType ours;
    std::string_view name;
};
constexpr TypeRow types[] = {
    {GST_TENSOR_DATA_TYPE_INT8, vartml::DataType::int8, "int8"},
    {GST_TENSOR_DATA_TYPE_INT16, vartml::DataType::int16, "int16"},
    {GST_TENSOR_DATA_TYPE_INT32, vartml::DataType::int32, "int32"},
    {GST_TENSOR_DATA_TYPE_INT64, vartml::DataType::int64, "int64"},
    {GST_TENSOR_DATA_TYPE_UINT8, vartml::DataType::uint8, "uint8"},
    {GST_TENSOR_DATA_TYPE_UINT16, vartml::DataType::uint16, "uint16"},
    {GST_TENSOR_DATA_TYPE_UINT32, vartml::DataType::uint32, "uint32"},
    {GST_TENSOR_DATA_TYPE_UINT64, vartml::DataType::uint64, "uint64"},
    {GST_TENSOR_DATA_TYPE_FLOAT16, vartml::DataType::fp16, "float16"},
    {GST_TENSOR_DATA_TYPE_FLOAT32, vartml::DataType::float32, "float32"},
    {GST_TENSOR_DATA_TYPE_FLOAT64, vartml::DataType::float64, "float64"},
    {GST_TENSOR_DATA_TYPE_BFLOAT16, vartml::DataType::bf16, "bfloat16"},
};
constexpr auto names = [] {
    std::array<std::string_view, std::size(types)> all;
    std::ranges::transform(types, all.begin(), &TypeRow::name);
    return all;
}();

// Booleans are bytes there.
const TypeRow& row_of(vartml::DataType type) {
    const auto row = std::ranges::find(types, type, &TypeRow::ours);
    return row == std::end(types) ? *std::ranges::find(types, "uint8", &TypeRow::name) : *row;
}

// Not of 4-bit integers, and types of later versions.
vartml::DataType data_type(GstTensorDataType type) {
    const auto row = std::ranges::find(types, type, &TypeRow::theirs);
    return row == std::end(types) ? vartml::DataType::unknown : row->ours;
}

std::string name_of(const GstTensor& tensor) {
    const char* id = g_quark_to_string(tensor.id);
    return id ? id : "";
}

// Not gst_buffer_add_tensor_meta: before 1.26.6 it returns an existing one.
void add(GstBuffer* buffer, GstTensor** tensors, gsize count) {
    auto* meta = reinterpret_cast<GstTensorMeta*>(
        gst_buffer_add_meta(buffer, GST_TENSOR_META_INFO, nullptr));
    gst_tensor_meta_set(meta, static_cast<guint>(count), tensors);
}

}  // namespace

std::string_view type_name(vartml::DataType type) {
    return row_of(type).name;
}

std::span<const std::string_view> type_names() {
    return names;
}

void add_tensors(GstBuffer* buffer, std::span<const vartml::TensorView> views,
                 const TensorGroup& group, std::span<GstBuffer* const> data) {
    GstTensor** tensors = g_new0(GstTensor*, views.size());
    for (size_t i = 0; i < views.size(); ++i) {
        const vartml::TensorView& view = views[i];
        // Not gst_tensor_new_simple: it refuses a buffer that is larger than its elements.
        GstTensor* tensor = gst_tensor_alloc(view.shape.size());
        tensor->id = group.tensors[i].quark;
        tensor->layout = GST_TENSOR_LAYOUT_CONTIGUOUS;
        tensor->data_type = row_of(view.data_type).theirs;
        tensor->data = gst_buffer_ref(data[i]);
        tensor->dims_order = group.tensors[i].order;
        std::ranges::copy(view.shape, tensor->dims);
        tensors[i] = tensor;
    }
    add(buffer, tensors, views.size());
}

void copy_tensors(GstBuffer* from, GstBuffer* to) {
    for_each_tensor_meta(from, [&](const GstTensorMeta* meta) {
        if (!meta->num_tensors) return true;
        GstTensor** list = g_new(GstTensor*, meta->num_tensors);
        for (gsize i = 0; i < meta->num_tensors; ++i) list[i] = gst_tensor_copy(meta->tensors[i]);
        add(to, list, meta->num_tensors);
        return true;
    });
}

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
    if (tensor.dims_order == GST_TENSOR_DIM_ORDER_COL_MAJOR && tensor.num_dims > 1 &&
        !is_row_major(info.name)) {
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
