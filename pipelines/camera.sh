#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A camera, live: every picture is shown at its time, with the newest boxes, moved to where they are expected by then.
#   camera.sh MODEL [DEVICE]
# The HUD shows frames/s, latency, the age of results and how many frames had no new one. Cameras that send JPEG or H.264 are decoded.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 1 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
gst-launch-1.0 -q -e v4l2src "device=${2:-/dev/video0}" ! decodebin ! videoconvert ! \
    vartmlinfer "model=$1" on-late=skip ! vartmldecode ! \
    vartmltrack ! queue ! vartmloverlay hud=true hold=200000000 ! videoconvert ! autovideosink
