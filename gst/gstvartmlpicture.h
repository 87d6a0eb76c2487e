// SPDX-License-Identifier: Apache-2.0
// vartmlpicture: a model's output that is a picture, as video.
#pragma once
#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS

#define GST_TYPE_VARTML_PICTURE (gst_vartml_picture_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlPicture, gst_vartml_picture, GST, VARTML_PICTURE, GstBaseTransform)

GST_ELEMENT_REGISTER_DECLARE(vartmlpicture);

G_END_DECLS
