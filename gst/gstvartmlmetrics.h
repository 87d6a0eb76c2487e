// SPDX-License-Identifier: Apache-2.0
// Tracer `vartmlmetrics`: the statistics of all elements of ours in the process, for Prometheus.
#pragma once
// GstTracer is an interface that upstream may still change.
#define GST_USE_UNSTABLE_API
#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_TYPE_VARTML_METRICS (gst_vartml_metrics_get_type())
G_DECLARE_FINAL_TYPE(GstVartmlMetrics, gst_vartml_metrics, GST, VARTML_METRICS, GstTracer)

G_END_DECLS
