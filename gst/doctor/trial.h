// SPDX-License-Identifier: Apache-2.0
// Runs the part of a pipeline that infers, with pictures of a test source and nothing behind it:
// sources, files, sinks and encoders of the user are never started.
#pragma once
#include <gst/gst.h>

namespace vartml::gst::doctor {

// Takes the elements out of `bin`. Writes what the elements say, then the end.
void try_inference(GstElement* bin);

}  // namespace vartml::gst::doctor
