// SPDX-License-Identifier: Apache-2.0
// vartmltrack: identities of detections over the frames of a stream.
#pragma once
#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS

#define GST_TYPE_VARTML_TRACK (gst_vartml_track_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlTrack, gst_vartml_track, GST, VARTML_TRACK, GstBaseTransform)

GST_ELEMENT_REGISTER_DECLARE(vartmltrack);

G_END_DECLS
