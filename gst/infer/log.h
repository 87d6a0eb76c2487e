// SPDX-License-Identifier: Apache-2.0
// The debug category of vartmlinfer. INFO: model, device, caps, plan; DEBUG: decisions; LOG: each
// frame; TRACE: each region.
#pragma once
#include <gst/gst.h>

GST_DEBUG_CATEGORY_EXTERN(gst_vartml_infer_debug);
#define GST_CAT_DEFAULT gst_vartml_infer_debug
