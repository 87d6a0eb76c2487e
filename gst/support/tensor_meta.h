// SPDX-License-Identifier: Apache-2.0
// Tensors on a buffer: GstTensorMeta of any element as the library's plain views, and their bytes.
#pragma once
#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <span>
#include <string_view>
#include <vector>

#include <vartml/postprocess.h>
#include <vartml/result.h>

#include "gst/support/tensor_groups.h"

namespace vartml::gst {

// As GStreamer names it in caps; "uint8" for what GstTensorMeta has no type for. The second: all
// such names.
std::string_view type_name(vartml::DataType type);
std::span<const std::string_view> type_names();

// Calls `function(GstTensorMeta*)` for each on the buffer, until it returns false.
template <typename Function>
void for_each_tensor_meta(GstBuffer* buffer, Function&& function) {
    gpointer state = nullptr;
    while (GstMeta* meta =
               gst_buffer_iterate_meta_filtered(buffer, &state, GST_TENSOR_META_API_TYPE)) {
        if (!function(reinterpret_cast<GstTensorMeta*>(meta))) return;
    }
}

// Adds a meta of tensors that lie as the views say, each in a buffer of its own, which it refers
// to, under the names of the group.
void add_tensors(GstBuffer* buffer, std::span<const vartml::TensorView> views,
                 const TensorGroup& group, std::span<GstBuffer* const> data);
// What a copy of a buffer has lost; the data is shared.
void copy_tensors(GstBuffer* from, GstBuffer* to);

// The tensor that a GstTensor describes: dense, in the CPU view, named by its id. An order of
// dimensions that is not set is row-major, and so are the column-major ones of GStreamer's
// registry. Errors: unsupported naming the type or the order.
vartml::Result<vartml::TensorInfo> tensor_info(const GstTensor& tensor);

// Removes the tensor metas one of whose data buffers is in `data`.
void remove_tensor_metas(GstBuffer* buffer, std::span<GstBuffer* const> data);

// Data buffers mapped for reading. Keeps its memory for the next frame; unmapped by clear() and the
// destructor.
class MappedTensors {
public:
    MappedTensors() = default;
    MappedTensors(const MappedTensors&) = delete;
    MappedTensors& operator=(const MappedTensors&) = delete;
    ~MappedTensors() { clear(); }

    void clear();
    // Maps `data` as the output `info`, whose bytes lie as `view`; both must outlive the mapping.
    // Errors: io when it cannot be mapped, bad_model when it holds fewer bytes than the view.
    vartml::Result<void> add(GstBuffer* data, const vartml::TensorInfo& info,
                             const vartml::TensorView& view);
    std::span<const vartml::OutputTensor> outputs() const { return outputs_; }

private:
    struct Mapping {
        GstBuffer* buffer;
        GstMapInfo map;
    };
    std::vector<Mapping> mappings_;
    std::vector<vartml::OutputTensor> outputs_;
};

}  // namespace vartml::gst
