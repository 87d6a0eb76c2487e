// SPDX-License-Identifier: Apache-2.0
// vartmlpublish: what was found on frames, as JSON lines.
#pragma once
#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS

#define GST_TYPE_VARTML_PUBLISH (gst_vartml_publish_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlPublish, gst_vartml_publish, GST, VARTML_PUBLISH, GstBaseTransform)

GST_ELEMENT_REGISTER_DECLARE(vartmlpublish);

G_END_DECLS
