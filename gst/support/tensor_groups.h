// SPDX-License-Identifier: Apache-2.0
// Tensors in caps, as GStreamer has them from 1.28 on: the field `tensors` of a frame's caps names
// groups of tensors by which decoders are chosen.
#pragma once
#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gst/metadata/inference.h"

namespace vartml::gst {

// Whether this GStreamer knows such caps.
inline constexpr bool has_tensor_groups = GST_CHECK_VERSION(1, 28, 0);

// The group of whatever our own decoder reads; no other decoder claims it.
inline constexpr const char* own_group = "vartml-out";

// What all frames with these tensors have in common, beside what they are called.
struct TensorGroup {
    // What of the frame its decoders must find: they know neither borders nor regions.
    enum class Frame : uint8_t {
        any,        // ours, or none that we know
        whole,      // the whole of it was inferred
        stretched,  // the same without borders: places are parts of the frame
        same_size   // it has the size of the model's input: places are pixels of that
    };
    struct Tensor {
        std::string id;
        GQuark quark = 0;
        GstTensorDimOrder order = GST_TENSOR_DIM_ORDER_ROW_MAJOR;
        std::vector<uint32_t> dims;  // 0: may vary
        std::string type;            // as caps have it
        std::string layout;          // of a device's; "": a plain array
        bool operator==(const Tensor&) const = default;
    };
    std::string id;
    Frame frame = Frame::any;
    std::vector<Tensor> tensors;  // one per output
    bool operator==(const TensorGroup&) const = default;
};

// What the outputs of a model may be called, best first; `family` is that of their decoder ("": not
// known). The group of the sidecar; ours; that of the decoders of GStreamer that read the family.
// There is one at least.
std::vector<TensorGroup> tensor_groups(const InferenceRecord& record, std::string_view family);

// Whether the elements of a tensor lie in the order of its dimensions though it is called
// column-major. Upstream's inference elements attach what the model wrote; the ids of GStreamer's
// registry have that name where the values of one row lie together.
bool is_row_major(std::string_view tensor_id);

// Caps with the field `tensors`; `caps` is consumed. What other elements have put there stays.
GstCaps* add_group(GstCaps* caps, const TensorGroup& group);
// The same without the field.
GstCaps* without_groups(GstCaps* caps);
bool have_groups(const GstCaps* caps);
// The names of the groups in a structure of caps, in words; "" = none.
std::string group_names(const GstStructure* structure);
// The ids of the tensors in a group of caps.
std::vector<GQuark> group_tensors(const GstCaps* caps, const char* group);
// Whether the structure takes these tensors: it has no field `tensors`, or one that allows them.
bool takes_group(const GstStructure* structure, const TensorGroup& group);

// Frames of any media with our group: for the pad template of a decoder.
GstCaps* own_group_caps();

}  // namespace vartml::gst
