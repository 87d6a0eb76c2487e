// SPDX-License-Identifier: Apache-2.0
// vartmlzones: who is in which zone, since when, and who crossed which line.
#pragma once
#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS

#define GST_TYPE_VARTML_ZONES (gst_vartml_zones_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlZones, gst_vartml_zones, GST, VARTML_ZONES, GstBaseTransform)

GST_ELEMENT_REGISTER_DECLARE(vartmlzones);

G_END_DECLS
