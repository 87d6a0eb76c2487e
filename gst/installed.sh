#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# After `meson install`: what is left to do so that the loader, GStreamer and Python find what was installed.
#   installed.sh PLUGINS GSTREAMERS_PLUGINS [TYPELIBS LIBRARIES]     the last two where Python does not look for them
set -eu
[ -z "${DESTDIR:-}" ] || exit 0 # a package, whose installation does it
if [ "$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi
if [ "$1" != "$2" ]; then
    echo "GStreamer looks for plugins in $2, these are in $1:"
    echo "    export GST_PLUGIN_PATH=$1"
    echo "or set up with -Dplugins_dir=$2, and they are found without it."
fi
if [ $# = 4 ]; then
    echo "Python finds GstVartml with"
    echo "    export GI_TYPELIB_PATH=$3 LD_LIBRARY_PATH=$4"
fi
