#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A detector, then a second model on every box that it found: attributes, types, reading.
#   two-stage.sh DETECTOR CLASSIFIER VIDEO
# Crops of all boxes share batches. One line of JSON per frame: what the second model says is in the `attributes` of
# each object.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 3 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
gst-launch-1.0 -q filesrc "location=$3" ! decodebin ! videoconvert ! queue ! vartmlinfer "model=$1" ! vartmldecode ! queue ! \
    vartmlinfer "model=$2" inference-region=roi ! vartmldecode ! vartmlpublish add-empty=true queue-size=65536 \
    drain-timeout=10000 ! fakesink
