// SPDX-License-Identifier: Apache-2.0
// vartmloverlay: draws what vision models found.
#pragma once
#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS

#define GST_TYPE_VARTML_OVERLAY (gst_vartml_overlay_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlOverlay, gst_vartml_overlay, GST, VARTML_OVERLAY, GstBaseTransform)

GST_ELEMENT_REGISTER_DECLARE(vartmloverlay);

G_END_DECLS
