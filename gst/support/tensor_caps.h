// SPDX-License-Identifier: Apache-2.0
// Frames that are tensors, as caps name them: the fourccs of cameras whose hardware writes blocked
// layouts, and application/x-vartml-tensor.
#pragma once
#include <gst/gst.h>

#include <cstdint>
#include <optional>
#include <string>

#include <vartml/preprocess.h>
#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml::gst {

inline constexpr const char* tensor_media_type = "application/x-vartml-tensor";

// The tensor of one picture, N = 1. What caps do not say of its values is not known.
struct TensorFrame {
    std::string name;  // as the caps have it: "HC48", "int8 in HCWNC4"
    vartml::DataType type = vartml::DataType::unknown;
    vartml::Layout layout = vartml::Layout::unknown;
    uint32_t channels = 0, width = 0, height = 0;  // channels that hold data
    std::optional<vartml::ChannelOrder> order;
    std::optional<double> scale;
    std::optional<int> zero_point;
    uint32_t row_bytes = 0, rows = 0;  // where nothing is padded
};

// Structures for pad templates; the caller owns the reference.
GstCaps* tensor_caps();

// Those of `tensor_caps` whose frames can be a tensor of this type, layout and extent.
GstCaps* tensor_caps_of(vartml::DataType type, vartml::Layout layout, uint32_t channels,
                        uint32_t width, uint32_t height);

// Nothing for caps of pictures. Errors: unsupported or invalid_argument naming the field.
vartml::Result<std::optional<TensorFrame>> tensor_frame(const GstCaps* caps);

// The frame behind a fourcc; nothing for one of pictures.
std::optional<TensorFrame> tensor_of_fourcc(uint32_t fourcc, uint32_t width, uint32_t height);

}  // namespace vartml::gst
