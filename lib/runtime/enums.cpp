// SPDX-License-Identifier: Apache-2.0
// Names of the enumerators of the vart interface.
#include <array>
#include <cstddef>

#include <vart/vart_runner_factory.hpp>

namespace vart {
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
