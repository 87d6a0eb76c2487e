// SPDX-License-Identifier: Apache-2.0
// The element vartmlinfer: runs a compiled model on each frame, attaches the tensors, passes the
// frame on unchanged and in order.
#pragma once
#include <gst/gst.h>

#define GST_TYPE_VARTML_INFER (gst_vartml_infer_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlInfer, gst_vartml_infer, GST, VARTML_INFER, GstElement)

GST_ELEMENT_REGISTER_DECLARE(vartmlinfer)
