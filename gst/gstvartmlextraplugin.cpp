// SPDX-License-Identifier: Apache-2.0
// Registration of the plugin `vartmlextra`: where pictures come from, and what is done with
// metadata once it is there.
#include <gst/gst.h>

#include "gst/gstvartmlgallery.h"
#include "gst/gstvartmlmetajoin.h"
#include "gst/gstvartmlmetrics.h"
#include "gst/gstvartmloverlay.h"
#include "gst/gstvartmlpicture.h"
#include "gst/gstvartmlpublish.h"
#include "gst/gstvartmlroi.h"
#include "gst/gstvartmlsrc.h"
#include "gst/gstvartmltrack.h"
#include "gst/gstvartmlzones.h"

static gboolean plugin_init(GstPlugin* plugin) {
    const bool all =
        GST_ELEMENT_REGISTER(vartmlgallery, plugin) &&
        GST_ELEMENT_REGISTER(vartmlmetajoin, plugin) &&
        GST_ELEMENT_REGISTER(vartmloverlay, plugin) &&
        GST_ELEMENT_REGISTER(vartmlpicture, plugin) &&
        GST_ELEMENT_REGISTER(vartmlpublish, plugin) && GST_ELEMENT_REGISTER(vartmlroi, plugin) &&
        GST_ELEMENT_REGISTER(vartmlsrc, plugin) && GST_ELEMENT_REGISTER(vartmltrack, plugin) &&
        GST_ELEMENT_REGISTER(vartmlzones, plugin) &&
        gst_tracer_register(plugin, "vartmlmetrics", GST_TYPE_VARTML_METRICS);
    return all;
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, vartmlextra,
                  "Tracks, counts, joins, draws and publishes what vision models found in video",
                  plugin_init, VARTML_PLUGIN_VERSION, "Apache 2.0", PACKAGE, VARTML_PLUGIN_ORIGIN)
