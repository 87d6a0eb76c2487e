#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From an RTSP camera to an RTSP server that takes streams (RECORD), with boxes.
#   rtsp.sh MODEL rtsp://CAMERA/PATH rtsp://SERVER/PATH
# The camera may go and come back; frames do not wait for the model (on-late).
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 3 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
gst-launch-1.0 -q -e vartmlsrc "uri=$2" ! videoconvert ! queue ! \
    vartmlinfer "model=$1" on-late=skip ! vartmldecode ! vartmltrack ! queue ! vartmloverlay ! videoconvert ! \
    x264enc tune=zerolatency speed-preset=ultrafast key-int-max=30 ! h264parse ! rtspclientsink "location=$3" protocols=tcp
