#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Who is in which zone of a video, for how long, and who crossed which line: drawn, and as JSON lines.
#   zones.sh MODEL VIDEO ZONES LINES [OUT.mp4]
# ZONES and LINES are "NAME=X,Y X,Y X,Y; NAME=…" in parts of the picture's width and height, or "". Seen from the first
# point of a line, in is from its left to its right.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 4 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
model=$1 video=$2 zones=$3 lines=$4
if [ $# -gt 4 ]; then
    [ ! "$5" -ef "$video" ] || { echo "$0: $5 is the video itself, which would be lost" >&2; exit 2; }
    even="video/x-raw,width=[2,16384,2],height=[2,16384,2],pixel-aspect-ratio=1/1" # what H.264 takes
    set -- videoscale ! "$even" ! x264enc speed-preset=veryfast ! h264parse ! mp4mux ! filesink "location=$5"
else
    set -- autovideosink
fi
gst-launch-1.0 -q -e filesrc "location=$video" ! decodebin ! videoconvert ! queue ! vartmlinfer "model=$model" ! \
    vartmldecode ! vartmltrack ! vartmlzones ${zones:+"zones=$zones"} ${lines:+"lines=$lines"} ! vartmlpublish add-empty=true queue-size=65536 \
    drain-timeout=10000 ! queue ! vartmloverlay ! videoconvert ! "$@"
