// SPDX-License-Identifier: Apache-2.0
// What the elements that leave frames where they are share.
#pragma once
#include <gst/base/gstbasetransform.h>

#include <string>
#include <vector>

namespace vartml::gst {

// propose_allocation: the query goes downstream, GstVideoMeta is always offered, no pool is.
gboolean propose_video_meta(GstBaseTransform* base, GstQuery* decide, GstQuery* query);

// prepare_output_buffer as the base class does it, but a copy keeps upstream's tensors, which have
// no transform. `copied` tells whether the frame's memory could not be shared.
GstFlowReturn prepare_writable(GstBuffer* in, GstBuffer** out, bool& copied);

// The same for a frame that is drawn into: where the buffer or its memory is not writable, the
// frame is copied, with its strides.
GstFlowReturn prepare_drawable(GstBuffer* in, GstBuffer** out, bool& copied);

// The parts of a comma list, without spaces around them and without empty ones.
std::vector<std::string> split_list(const std::string& text);

}  // namespace vartml::gst
