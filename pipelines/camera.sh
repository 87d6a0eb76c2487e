#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A camera, live: frames that the model has no time for pass without boxes, and the picture is never late.
#   camera.sh MODEL [DEVICE]
# The HUD shows frames/s, latency and the share of frames that were skipped. Where the camera gives JPEG, add jpegdec.
set -eu
[ $# -ge 1 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
gst-launch-1.0 -q -e v4l2src "device=${2:-/dev/video0}" ! videoconvert ! vartmlinfer "model=$1" on-late=skip ! vartmldecode ! \
    vartmltrack ! queue ! vartmloverlay hud=true hold=200000000 ! videoconvert ! autovideosink
