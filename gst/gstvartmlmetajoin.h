// SPDX-License-Identifier: Apache-2.0
// vartmlmetajoin: metadata of one branch on the pictures of another.
#pragma once
#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_TYPE_VARTML_META_JOIN (gst_vartml_meta_join_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlMetaJoin, gst_vartml_meta_join, GST, VARTML_META_JOIN, GstElement)

GST_ELEMENT_REGISTER_DECLARE(vartmlmetajoin);

G_END_DECLS
