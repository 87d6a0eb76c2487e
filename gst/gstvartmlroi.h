// SPDX-License-Identifier: Apache-2.0
// vartmlroi: detections as regions of interest, which encoders spend more bits on.
#pragma once
#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS

#define GST_TYPE_VARTML_ROI (gst_vartml_roi_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlRoi, gst_vartml_roi, GST, VARTML_ROI, GstBaseTransform)

GST_ELEMENT_REGISTER_DECLARE(vartmlroi);

G_END_DECLS
