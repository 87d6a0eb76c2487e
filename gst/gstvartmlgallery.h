// SPDX-License-Identifier: Apache-2.0
// vartmlgallery: whose embedding an object or a picture has.
#pragma once
#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS

#define GST_TYPE_VARTML_GALLERY (gst_vartml_gallery_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlGallery, gst_vartml_gallery, GST, VARTML_GALLERY, GstBaseTransform)

GST_ELEMENT_REGISTER_DECLARE(vartmlgallery);

G_END_DECLS
