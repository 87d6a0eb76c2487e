// SPDX-License-Identifier: Apache-2.0
// vartmldecode: tensors to analytics metadata in frame coordinates.
#pragma once
#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS

#define GST_TYPE_VARTML_DECODE (gst_vartml_decode_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlDecode, gst_vartml_decode, GST, VARTML_DECODE, GstBaseTransform)

GST_ELEMENT_REGISTER_DECLARE(vartmldecode);

// For init of an element that is one of several decoders in a row: it reads the tensors that caps
// have in the group vartml-out, and leaves all where they are.
void gst_vartml_decode_read_own_group(GstVartmlDecode* self);

G_END_DECLS
