// SPDX-License-Identifier: Apache-2.0
// Pins what applications compile against: numbers, defaults and signatures of the vart headers.
#include <any>
#include <chrono>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <vart/vart_runner_factory.hpp>

namespace {
using namespace vart;

// The order is given by the public header; the values count up from 0.
TEST(VartEnums, CountFromZeroInTheGivenOrder) {
    const auto check = [](auto first, std::vector<std::string_view> names) {
        using E = decltype(first);
        static_assert(std::is_same_v<std::underlying_type_t<E>, int>);
        for (size_t i = 0; i < names.size(); ++i)
            EXPECT_EQ(to_string(static_cast<E>(i)), names[i]) << i;
        EXPECT_EQ(to_string(static_cast<E>(names.size())), "UNKNOWN") << names.back();
        EXPECT_EQ(to_string(static_cast<E>(-1)), "UNKNOWN") << names.back();
    };
    check(DataType{}, {"UNKNOWN", "BOOLEAN", "INT8", "UINT8", "INT16", "UINT16", "BF16", "FP16",
                       "INT32", "UINT32", "FLOAT32", "INT64", "UINT64"});
    check(MemoryLayout{},
          {"UNKNOWN", "NC",        "NCH",       "NHC",      "NHW",      "NWC",    "NHWC",
           "NCHW",    "NHWC4",     "NHWC8",     "NC4HW4",   "NC8HW8",   "HCWNC4", "HCWNC8",
           "HCWNC16", "NHW16C4WC", "NHW16WC4C", "NH2HWC4C", "NH2C4HWC", "GENERIC"});
    check(MemoryType{},
          {"UNKNOWN", "XRT_BO", "DMA_FD", "USER_POINTER_CMA", "USER_POINTER_NON_CMA"});
    check(TensorDirection{}, {"INPUT", "OUTPUT"});
    check(TensorType{}, {"CPU", "HW"});
    check(RoundingMode{}, {"UNKNOWN", "ROUND_TO_NEAREST_EVEN", "ROUND_TOWARD_ZERO"});
    check(StatusCode{}, {"SUCCESS", "FAILURE", "INVALID_INPUT", "INVALID_OUTPUT", "OUT_OF_MEMORY",
                         "RUNTIME_ERROR", "JOB_PENDING", "INVALID_JOB_ID", "RESOURCE_UNAVAILABLE",
                         "UNSUPPORTED"});
    EXPECT_EQ(static_cast<int>(RunnerType::VAIML), 0);
    EXPECT_EQ(static_cast<int>(DataType::UINT64), 12);
    EXPECT_EQ(static_cast<int>(MemoryLayout::HCWNC4), 12);
    EXPECT_EQ(static_cast<int>(MemoryLayout::GENERIC), 19);
    EXPECT_EQ(static_cast<int>(StatusCode::UNSUPPORTED), 9);
}

TEST(VartStructs, HaveTheGivenDefaults) {
    const NpuTensorInfo info;
    EXPECT_TRUE(info.name.empty());
    EXPECT_EQ(info.data_type, DataType::UNKNOWN);
    EXPECT_EQ(info.direction, TensorDirection::INPUT);
    EXPECT_EQ(info.tensor_type, TensorType::HW);
    EXPECT_EQ(info.memory_layout, MemoryLayout::UNKNOWN);
    EXPECT_TRUE(info.memory_layout_order.empty());
    EXPECT_EQ(info.size, 0u);
    EXPECT_EQ(info.size_in_bytes, 0u);
    const QuantParameters quant;
    EXPECT_EQ(quant.scale, 0.0);
    EXPECT_EQ(quant.zero_point, 0);
    EXPECT_EQ(quant.rounding_mode, RoundingMode::UNKNOWN);
    const JobHandle none;
    EXPECT_EQ(none.status, StatusCode::FAILURE);
    EXPECT_EQ(none.job_id, 0u);
    const JobHandle some(StatusCode::SUCCESS, 7);
    EXPECT_EQ(some.job_id, 7u);
    EXPECT_EQ(VARTML_VERSION, 10000);
}

using Batch = std::vector<std::vector<NpuTensor>>;
using Execute = StatusCode (Runner::*)(const Batch&, Batch&) noexcept;
using ExecuteAsync = JobHandle (Runner::*)(const Batch&, Batch&) noexcept;
using ExecuteCallback = JobHandle (Runner::*)(const Batch&, Batch&,
                                              Runner::ExecuteAsyncCallback) noexcept;
using Options = std::unordered_map<std::string, std::any>;

static_assert(std::is_same_v<decltype(&Runner::execute), Execute>);
static_assert(
    std::is_same_v<decltype(&Runner::wait),
                   StatusCode (Runner::*)(const JobHandle&, std::chrono::milliseconds) noexcept>);
static_assert(sizeof(static_cast<ExecuteAsync>(&Runner::execute_async)) > 0);
static_assert(sizeof(static_cast<ExecuteCallback>(&Runner::execute_async)) > 0);
static_assert(std::is_same_v<Runner::ExecuteAsyncCallback, std::function<void(const JobHandle&)>>);
static_assert(
    std::is_same_v<decltype(&RunnerFactory::create_runner),
                   std::shared_ptr<Runner> (*)(RunnerType, const std::string&, const Options&)>);
static_assert(std::is_same_v<decltype(&Runner::get_property),
                             std::any (Runner::*)(const std::string&) const>);
static_assert(std::is_same_v<decltype(&Runner::get_tensors_info),
                             const std::vector<NpuTensorInfo>& (Runner::*)(TensorDirection,
                                                                           TensorType) const>);
static_assert(std::is_same_v<decltype(&NpuTensor::export_buffer), int (NpuTensor::*)() const>);
static_assert(
    std::is_same_v<decltype(&NpuTensor::get_physical_address), uint64_t (NpuTensor::*)() const>);
static_assert(std::is_copy_constructible_v<NpuTensor> &&
              std::is_nothrow_move_constructible_v<NpuTensor>);
static_assert(std::is_abstract_v<Runner> && std::has_virtual_destructor_v<Runner>);
static_assert(noexcept(to_string(DataType{})) && noexcept(to_string(StatusCode{})));

// ---- fields -----------------------------------------------------------------------

template <typename Member, auto Pointer, typename Class>
constexpr bool is_field = std::is_same_v<std::remove_const_t<decltype(Pointer)>, Member Class::*>;
using Numbers = std::vector<uint32_t>;
static_assert(is_field<std::string, &NpuTensorInfo::name, NpuTensorInfo>);
static_assert(is_field<DataType, &NpuTensorInfo::data_type, NpuTensorInfo>);
static_assert(is_field<TensorDirection, &NpuTensorInfo::direction, NpuTensorInfo>);
static_assert(is_field<TensorType, &NpuTensorInfo::tensor_type, NpuTensorInfo>);
static_assert(is_field<MemoryLayout, &NpuTensorInfo::memory_layout, NpuTensorInfo>);
static_assert(is_field<Numbers, &NpuTensorInfo::memory_layout_order, NpuTensorInfo>);
static_assert(is_field<size_t, &NpuTensorInfo::size, NpuTensorInfo>);
static_assert(is_field<size_t, &NpuTensorInfo::size_in_bytes, NpuTensorInfo>);
static_assert(is_field<Numbers, &NpuTensorInfo::shape, NpuTensorInfo>);
static_assert(is_field<Numbers, &NpuTensorInfo::strides, NpuTensorInfo>);
static_assert(std::is_same_v<decltype(&NpuTensorInfo::print), void (NpuTensorInfo::*)() const>);
static_assert(is_field<double, &QuantParameters::scale, QuantParameters>);
static_assert(is_field<int32_t, &QuantParameters::zero_point, QuantParameters>);
static_assert(is_field<RoundingMode, &QuantParameters::rounding_mode, QuantParameters>);
static_assert(is_field<StatusCode, &JobHandle::status, JobHandle>);
static_assert(is_field<uint32_t, &JobHandle::job_id, JobHandle>);
static_assert(std::is_constructible_v<JobHandle, StatusCode, uint32_t>);

// ---- NpuTensor --------------------------------------------------------------------

static_assert(std::is_constructible_v<NpuTensor, const NpuTensorInfo&, void*, MemoryType>);
static_assert(std::is_constructible_v<NpuTensor, const NpuTensorInfo&, const void*, MemoryType>);
static_assert(std::is_default_constructible_v<NpuTensor> && std::is_copy_assignable_v<NpuTensor> &&
              std::is_nothrow_move_assignable_v<NpuTensor>);
template <typename T>
using Buffer = decltype(std::declval<T&>().get_buffer());
template <typename T>
using Address = decltype(std::declval<T&>().get_virtual_address());
static_assert(std::is_same_v<Buffer<NpuTensor>, void*>);
static_assert(std::is_same_v<Buffer<const NpuTensor>, const void*>);
static_assert(std::is_same_v<Address<NpuTensor>, void*>);
static_assert(std::is_same_v<Address<const NpuTensor>, const void*>);
static_assert(
    std::is_same_v<decltype(&NpuTensor::get_info), const NpuTensorInfo& (NpuTensor::*)() const>);
static_assert(
    std::is_same_v<decltype(&NpuTensor::get_memory_type), MemoryType (NpuTensor::*)() const>);
static_assert(std::is_same_v<decltype(&NpuTensor::sync_buffer), void (NpuTensor::*)() const>);
static_assert(std::is_same_v<decltype(&NpuTensor::print_info), void (NpuTensor::*)() const>);

// ---- Runner -----------------------------------------------------------------------

static_assert(
    std::is_same_v<decltype(&Runner::get_tensor_info_by_name),
                   const NpuTensorInfo& (Runner::*)(const std::string&, TensorType) const>);
static_assert(std::is_same_v<decltype(&Runner::get_quant_parameters),
                             const QuantParameters& (Runner::*)(const std::string&) const>);
static_assert(std::is_same_v<decltype(&Runner::get_num_input_tensors), size_t (Runner::*)() const>);
static_assert(
    std::is_same_v<decltype(&Runner::get_num_output_tensors), size_t (Runner::*)() const>);
using BatchSize = size_t (Runner::*)() const;
using BatchSizeOf = size_t (Runner::*)(TensorDirection) const;
static_assert(sizeof(static_cast<BatchSize>(&Runner::get_batch_size)) > 0);
static_assert(sizeof(static_cast<BatchSizeOf>(&Runner::get_batch_size)) > 0);
using Allocate = NpuTensor (Runner::*)(const NpuTensorInfo&) const;
using AllocateInBank = NpuTensor (Runner::*)(const NpuTensorInfo&, uint32_t) const;
static_assert(sizeof(static_cast<Allocate>(&Runner::allocate_npu_tensor)) > 0);
static_assert(sizeof(static_cast<AllocateInBank>(&Runner::allocate_npu_tensor)) > 0);
static_assert(
    std::is_same_v<decltype(&Runner::allocate_sub_tensor),
                   NpuTensor (Runner::*)(const NpuTensor&, const NpuTensorInfo&, size_t) const>);
// The constructor is for runners alone.
static_assert(!std::is_constructible_v<Runner, const std::string&, const Options&>);
static_assert(noexcept(to_string(MemoryLayout{})) && noexcept(to_string(MemoryType{})) &&
              noexcept(to_string(TensorDirection{})) && noexcept(to_string(TensorType{})) &&
              noexcept(to_string(RoundingMode{})));

}  // namespace
