// SPDX-License-Identifier: Apache-2.0
// Registration of the plugin `vartml`; the list of elements never depends on a device.
#include "gst/gstvartmldecode.h"
#include "gst/gstvartmlinfer.h"
#include "gst/gstvartmltensordec.h"
#include "gst/gstvartmltrace.h"

static gboolean plugin_init(GstPlugin* plugin) {
    gboolean done = GST_ELEMENT_REGISTER(vartmldecode, plugin);
    done = GST_ELEMENT_REGISTER(vartmlinfer, plugin) && done;
#if GST_CHECK_VERSION(1, 28, 0)
    done = GST_ELEMENT_REGISTER(vartmltensordec, plugin) && done;
#endif
    done = gst_tracer_register(plugin, "vartmltrace", GST_TYPE_VARTML_TRACE) && done;
    return done;
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, vartml,
                  "Runs compiled vision models on video", plugin_init, VARTML_PLUGIN_VERSION,
                  "Apache 2.0", PACKAGE, VARTML_PLUGIN_ORIGIN)
