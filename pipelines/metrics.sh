#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A pipeline that Prometheus can watch: the statistics of its elements at http://127.0.0.1:PORT/metrics while it runs.
#   metrics.sh MODEL VIDEO [PORT]
# PORT is 9464 where none is given. The video plays at its own speed.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 2 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
export GST_TRACERS="vartmlmetrics(port=${3:-9464})"
gst-launch-1.0 -q -e filesrc "location=$2" ! decodebin ! videoconvert ! queue ! vartmlinfer "model=$1" ! vartmldecode ! vartmltrack ! \
    vartmlpublish method=file location=/dev/null ! fakesink sync=true
