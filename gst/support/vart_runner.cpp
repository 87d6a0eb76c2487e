// SPDX-License-Identifier: Apache-2.0
#include "gst/support/vart_runner.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "gst/support/guarded.h"
#include "gst/support/trace_alloc.h"

namespace vartml::gst {
namespace {

static_assert(int(vart::DataType::UINT64) == int(vartml::DataType::uint64));
static_assert(int(vart::DataType::BF16) == int(vartml::DataType::bf16));
static_assert(int(vart::DataType::FLOAT32) == int(vartml::DataType::float32));
static_assert(int(vart::MemoryLayout::NHWC) == int(vartml::Layout::NHWC));
static_assert(int(vart::MemoryLayout::HCWNC16) == int(vartml::Layout::HCWNC16));
static_assert(int(vart::MemoryLayout::NHW16WC4C) == int(vartml::Layout::NHW16WC4C));

// Releases differ in the layouts between NHW16WC4C and GENERIC, and so in the number of the latter.
vartml::Layout layout_of(vart::MemoryLayout layout) {
    if (layout == vart::MemoryLayout::GENERIC) return vartml::Layout::GENERIC;
    return static_cast<vartml::Layout>(layout);
}

constexpr size_t plain_alignment = 64;

vartml::Error no_memory(const RunnerTensor& tensor) {
    return {vartml::ErrorCode::out_of_memory,
            "tensor '" + tensor.info.name + "' of " + std::to_string(tensor.info.size_in_bytes) +
                " bytes has no memory that the processor can reach"};
}

}  // namespace

CreateRunner* create_runner = [](const std::string& model_path, const RunnerOptions& options) {
    return guarded([&] {
        return vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, model_path, options);
    });
};

vartml::TensorView tensor_view(const vart::NpuTensorInfo& info) {
    vartml::TensorView view;
    view.data_type = static_cast<vartml::DataType>(info.data_type);
    view.layout = layout_of(info.memory_layout);
    view.order = info.memory_layout_order;
    view.shape = info.shape;
    view.strides = info.strides;
    view.size = info.size;
    view.size_bytes = info.size_in_bytes;
    return view;
}

vartml::Result<std::vector<RunnerTensor>> runner_tensors(const vart::Runner& runner,
                                                         vart::TensorDirection direction,
                                                         vart::TensorType type) {
    return guarded([&] {
        std::vector<RunnerTensor> tensors;
        const auto& infos = runner.get_tensors_info(direction, type);
        for (size_t i = 0; i < infos.size(); ++i) {
            // Not by position: HW views are listed where there are any.
            const vart::NpuTensorInfo& cpu =
                runner.get_tensor_info_by_name(infos[i].name, vart::TensorType::CPU);
            RunnerTensor t{infos[i], tensor_view(infos[i]), tensor_view(cpu),
                           type == vart::TensorType::HW};
            if (t.hw) {
                const vart::QuantParameters& q = runner.get_quant_parameters(infos[i].name);
                // A scale of 0 or less: the runtime has no quantisation data.
                if (q.scale > 0 && t.view.data_type != t.cpu.data_type &&
                    vartml::size_bytes(t.view.data_type) <= 2 &&
                    t.view.data_type != vartml::DataType::bf16 &&
                    t.view.data_type != vartml::DataType::fp16) {
                    t.view.quantisation = vartml::Quantisation{q.scale, q.zero_point};
                }
            }
            tensors.push_back(std::move(t));
        }
        return tensors;
    });
}

vartml::Result<TensorMemory> allocate_tensor(const vart::Runner& runner,
                                             const RunnerTensor& tensor) {
    TensorMemory memory;
    if (!tensor.hw) {
        const size_t size =
            (tensor.info.size_in_bytes + plain_alignment - 1) / plain_alignment * plain_alignment;
        memory.data = std::aligned_alloc(plain_alignment, size);
        if (!memory.data) return no_memory(tensor);
        memory.owner.reset(memory.data, std::free);
        std::memset(memory.data, 0, size);
    }
    auto made = guarded([&] {
        return tensor.hw ? runner.allocate_npu_tensor(tensor.info)
                         : vart::NpuTensor(tensor.info, memory.data,
                                           vart::MemoryType::USER_POINTER_NON_CMA);
    });
    if (!made) return made.error();
    memory.tensor = *std::move(made);
    if (tensor.hw) memory.data = memory.tensor.get_virtual_address();
    if (!memory.data) return no_memory(tensor);
    trace_alloc(tensor.info.name, tensor.info.size_in_bytes);
    return memory;
}

vartml::Error status_error(vart::StatusCode status, const std::string& text) {
    using vart::StatusCode;
    vartml::ErrorCode code = vartml::ErrorCode::internal;
    switch (status) {
        case StatusCode::INVALID_INPUT:
        case StatusCode::INVALID_OUTPUT:
        case StatusCode::INVALID_JOB_ID:
            code = vartml::ErrorCode::internal;
            break;
        case StatusCode::OUT_OF_MEMORY:
            code = vartml::ErrorCode::out_of_memory;
            break;
        case StatusCode::RESOURCE_UNAVAILABLE:
            code = vartml::ErrorCode::busy;
            break;
        case StatusCode::UNSUPPORTED:
            code = vartml::ErrorCode::unsupported;
            break;
        default:
            code = vartml::ErrorCode::device;
            break;
    }
    return {code, text + " with status " + std::string(vart::to_string(status))};
}

}  // namespace vartml::gst
