// SPDX-License-Identifier: Apache-2.0
// vartmlsrc: pictures of a camera that may go and come back.
#pragma once
#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_TYPE_VARTML_SRC (gst_vartml_src_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlSrc, gst_vartml_src, GST, VARTML_SRC, GstBin)

GST_ELEMENT_REGISTER_DECLARE(vartmlsrc);

G_END_DECLS
