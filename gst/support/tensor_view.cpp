// SPDX-License-Identifier: Apache-2.0
// The conversion table between the tensor descriptions of vart and vartml.
#include "gst/support/vart_runner.h"

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

}  // namespace

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

}  // namespace vartml::gst
