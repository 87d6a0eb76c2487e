// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/tensor_info.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <span>

#include <vart/vart_runner_factory.hpp>

#include "lib/run/vart/vart_errors.h"

namespace vart {

// Names of the enumerators of the vart interface.
namespace {

template <typename E, size_t N>
std::string_view name_of(E value, const std::array<std::string_view, N>& names) noexcept {
    const auto index = static_cast<size_t>(value);  // a negative number becomes a large one
    return index < N ? names[index] : "UNKNOWN";
}

constexpr std::array<std::string_view, 13> data_types = {
    "UNKNOWN", "BOOLEAN", "INT8",   "UINT8",   "INT16", "UINT16", "BF16",
    "FP16",    "INT32",   "UINT32", "FLOAT32", "INT64", "UINT64"};
constexpr std::array<std::string_view, 20> layouts = {
    "UNKNOWN", "NC",        "NCH",       "NHC",      "NHW",      "NWC",    "NHWC",
    "NCHW",    "NHWC4",     "NHWC8",     "NC4HW4",   "NC8HW8",   "HCWNC4", "HCWNC8",
    "HCWNC16", "NHW16C4WC", "NHW16WC4C", "NH2HWC4C", "NH2C4HWC", "GENERIC"};
constexpr std::array<std::string_view, 5> memory_types = {
    "UNKNOWN", "XRT_BO", "DMA_FD", "USER_POINTER_CMA", "USER_POINTER_NON_CMA"};
constexpr std::array<std::string_view, 2> directions = {"INPUT", "OUTPUT"};
constexpr std::array<std::string_view, 2> tensor_types = {"CPU", "HW"};
constexpr std::array<std::string_view, 3> rounding_modes = {"UNKNOWN", "ROUND_TO_NEAREST_EVEN",
                                                            "ROUND_TOWARD_ZERO"};
constexpr std::array<std::string_view, 10> status_codes = {
    "SUCCESS",       "FAILURE",     "INVALID_INPUT",  "INVALID_OUTPUT",       "OUT_OF_MEMORY",
    "RUNTIME_ERROR", "JOB_PENDING", "INVALID_JOB_ID", "RESOURCE_UNAVAILABLE", "UNSUPPORTED"};

}  // namespace

std::string_view to_string(DataType value) noexcept {
    return name_of(value, data_types);
}
std::string_view to_string(MemoryLayout value) noexcept {
    return name_of(value, layouts);
}
std::string_view to_string(MemoryType value) noexcept {
    return name_of(value, memory_types);
}
std::string_view to_string(TensorDirection value) noexcept {
    return name_of(value, directions);
}
std::string_view to_string(TensorType value) noexcept {
    return name_of(value, tensor_types);
}
std::string_view to_string(RoundingMode value) noexcept {
    return name_of(value, rounding_modes);
}
std::string_view to_string(StatusCode value) noexcept {
    return name_of(value, status_codes);
}

}  // namespace vart

namespace vartml::runtime {
namespace {

using vart::TensorDirection;
using vart::TensorType;

vart::QuantParameters quantisation_of(const TensorInfo& tensor) {
    vart::QuantParameters quant;
    quant.scale = 1.0;
    if (tensor.hw && tensor.hw->quantisation && tensor.hw->quantisation->scale > 0) {
        quant.scale = tensor.hw->quantisation->scale;
        quant.zero_point = tensor.hw->quantisation->zero_point;
        quant.rounding_mode = vart::RoundingMode::ROUND_TO_NEAREST_EVEN;
    }
    return quant;
}

}  // namespace

TensorTables::TensorTables(std::vector<TensorInfo> inputs, std::vector<TensorInfo> outputs,
                           const Options& options)
    : tensors_{std::move(inputs), std::move(outputs)},
      is_chosen_by_name_{!options.input_tensor_types.empty(),
                         !options.output_tensor_types.empty()} {
    for (const auto direction : {TensorDirection::INPUT, TensorDirection::OUTPUT}) {
        const auto side = static_cast<size_t>(direction);
        auto& [cpu, hw] = infos_[side];
        for (const TensorInfo& tensor : tensors(direction)) {
            Place place{direction, {cpu.size(), std::nullopt}, quantisation_of(tensor)};
            cpu.push_back(to_npu_info(tensor, direction, TensorType::CPU));
            if (tensor.hw) {
                place.index[1] = hw.size();
                hw.push_back(to_npu_info(tensor, direction, TensorType::HW));
            }
            // HW without a HW view: create_runner refuses it.
            const bool is_hw =
                tensor.hw && options.tensor_type(direction, tensor.name) == TensorType::HW;
            exchanged_[side].push_back(is_hw ? hw.back() : cpu.back());
            places_.emplace(tensor.name, place);
        }
    }
}

Error TensorTables::unknown(const char* call, const std::string& name) const {
    std::string text =
        std::string(call) + ": the model has no tensor " + in_quotes(name) + "; it has";
    const char* separator = " ";
    for (const auto& list : tensors_)
        for (const TensorInfo& tensor : list) {
            text += separator + in_quotes(tensor.name);
            separator = ", ";
        }
    return {ErrorCode::not_found, text};
}

Result<const vart::NpuTensorInfo*> TensorTables::find(const std::string& name,
                                                      TensorType type) const {
    const auto found = places_.find(name);
    if (found == places_.end()) return unknown("get_tensor_info_by_name", name);
    if (const auto index = found->second.index[type == TensorType::HW])
        return &infos(found->second.direction, type)[*index];
    return Error{ErrorCode::not_found,
                 "get_tensor_info_by_name: tensor " + in_quotes(name) +
                     " has no HW view, a CPU partition produces or consumes it; ask for its CPU "
                     "view"};
}

Result<const vart::QuantParameters*> TensorTables::quantisation(const std::string& name) const {
    const auto found = places_.find(name);
    if (found == places_.end()) return unknown("get_quant_parameters", name);
    return &found->second.quantisation;
}

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
