// SPDX-License-Identifier: Apache-2.0
// Tracer `vartmltrace`: frame and element times of every pipeline of the process, on one time line
// with the runtime.
#pragma once
// GstTracer is an interface that upstream may still change.
#define GST_USE_UNSTABLE_API
#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_TYPE_VARTML_TRACE (gst_vartml_trace_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlTrace, gst_vartml_trace, GST, VARTML_TRACE, GstTracer)

G_END_DECLS
