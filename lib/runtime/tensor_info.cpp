// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/tensor_info.h"

#include <array>
#include <cstdio>
#include <limits>
#include <span>

#include "lib/runtime/vart_errors.h"

namespace vartml::runtime {
namespace {

constexpr size_t max_rank = 8;

std::string list(std::span<const uint32_t> values) {
    std::string text = "[";
    for (size_t i = 0; i < values.size(); ++i) text += (i ? "," : "") + std::to_string(values[i]);
    return text + "]";
}

bool is_permutation_of_ranks(const std::vector<uint32_t>& order, size_t rank) {
    if (order.size() != rank) return false;
    uint32_t seen = 0;
    for (const uint32_t axis : order) {
        if (axis >= rank || (seen >> axis & 1u)) return false;
        seen |= 1u << axis;
    }
    return true;
}

// product(shape) * element size, or nothing if it does not fit.
bool dense_size_bytes(const vart::NpuTensorInfo& info, size_t& size_bytes) {
    size_bytes = element_size_bytes(info.data_type);
    for (const uint32_t d : info.shape)
        if (__builtin_mul_overflow(size_bytes, size_t{d}, &size_bytes)) return false;
    return true;
}

}  // namespace

std::string to_text(const vart::NpuTensorInfo& info) {
    std::string text = "name=" + clean(info.name);
    text += " direction=" + std::string(to_string(info.direction));
    text += " tensor_type=" + std::string(to_string(info.tensor_type));
    text += " data_type=" + std::string(to_string(info.data_type));
    text += " memory_layout=" + std::string(to_string(info.memory_layout));
    if (info.memory_layout == vart::MemoryLayout::GENERIC)
        text += " memory_layout_order=" + list(info.memory_layout_order);
    text += " shape=" + list(info.shape) + " strides=" + list(info.strides);
    text += " size=" + std::to_string(info.size);
    text += " size_in_bytes=" + std::to_string(info.size_in_bytes);
    return text;
}

size_t element_size_bytes(vart::DataType type) {
    // The numbers of both enumerations are the same, see lib/include/vartml/tensor.h.
    const auto number = static_cast<size_t>(type);
    return number <= static_cast<size_t>(vart::DataType::UINT64)
               ? size_bytes(static_cast<DataType>(number))
               : 0;
}

Result<void> check_info(const vart::NpuTensorInfo& info) {
    const auto fault = [&](const std::string& text) {
        return Error{ErrorCode::invalid_argument,
                     "NpuTensor " + in_quotes(info.name) + ": " + text};
    };
    if (info.name.empty()) return fault("the name is empty, expected the name of a tensor");
    if (element_size_bytes(info.data_type) == 0)
        return fault("data_type is UNKNOWN, expected the type of the elements");
    if (info.memory_layout == vart::MemoryLayout::UNKNOWN ||
        to_string(info.memory_layout) == "UNKNOWN")
        return fault("memory_layout is UNKNOWN, expected the order of the dimensions");
    if (info.shape.empty() || info.shape.size() > max_rank)
        return fault("shape has " + std::to_string(info.shape.size()) +
                     " dimensions, expected 1 to 8");
    for (const uint32_t d : info.shape)
        if (d == 0) return fault("shape " + list(info.shape) + " has a dimension of 0");
    if (info.strides.size() != info.shape.size())
        return fault("strides " + list(info.strides) + " do not match shape " + list(info.shape) +
                     ", expected one per dimension");
    if (info.memory_layout == vart::MemoryLayout::GENERIC &&
        !is_permutation_of_ranks(info.memory_layout_order, info.shape.size()))
        return fault("memory_layout_order " + list(info.memory_layout_order) +
                     " is no permutation of the dimensions of shape " + list(info.shape));
    if (info.size == 0) return fault("size is 0, expected the number of elements");
    if (info.size_in_bytes == 0) return fault("size_in_bytes is 0, expected the size of the data");
    size_t needed = 0;
    const bool fits = dense_size_bytes(info, needed);
    if (!fits || info.size_in_bytes < needed)
        return fault("size_in_bytes is " + std::to_string(info.size_in_bytes) + ", shape " +
                     list(info.shape) + " of " + std::string(to_string(info.data_type)) +
                     " needs " + (fits ? std::to_string(needed) : std::string("more")));
    return {};
}

vart::NpuTensorInfo to_npu_info(const TensorInfo& tensor, vart::TensorDirection direction,
                                vart::TensorType type) {
    const TensorView& view = type == vart::TensorType::HW ? *tensor.hw : tensor.cpu;
    vart::NpuTensorInfo info;
    info.name = tensor.name;
    info.data_type = static_cast<vart::DataType>(view.data_type);
    info.direction = direction;
    info.tensor_type = type;
    info.memory_layout = static_cast<vart::MemoryLayout>(view.layout);
    info.memory_layout_order = view.order;
    info.size = view.size;
    info.size_in_bytes = view.size_bytes;
    info.shape = view.shape;
    info.strides = view.strides;
    if (info.shape.empty()) {
        info.shape = info.strides = {1};
        if (view.layout == Layout::GENERIC) info.memory_layout_order = {0};
    }
    return info;
}

TensorView to_view(const vart::NpuTensorInfo& info) {
    return make_view(static_cast<DataType>(info.data_type), static_cast<Layout>(info.memory_layout),
                     info.shape, info.memory_layout_order);
}

}  // namespace vartml::runtime

namespace vart {

void NpuTensorInfo::print() const {
    std::puts(vartml::runtime::to_text(*this).c_str());
}

}  // namespace vart
