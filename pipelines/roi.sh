#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is found keeps its detail: each detection becomes a region of interest, on which an encoder that reads them spends
# more bits.
#   roi.sh MODEL VIDEO [OUT.mp4]
# Draws the regions. ENCODER="msdkh264enc bitrate=500" or another H.264 encoder that reads them (vartmlroi in docs/elements.md
# says which) encodes with them instead; x264enc reads none.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 2 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
model=$1 video=$2 draw="vartmloverlay draw=regions !"
[ -z "${ENCODER:-}" ] || [ $# -gt 2 ] || { echo "$0: ENCODER needs OUT.mp4, which it writes" >&2; exit 2; }
[ -z "${ENCODER:-}" ] || draw=
if [ $# -gt 2 ]; then
    [ ! "$3" -ef "$video" ] || { echo "$0: $3 is the video itself, which would be lost" >&2; exit 2; }
    even="video/x-raw,width=[2,16384,2],height=[2,16384,2],pixel-aspect-ratio=1/1" # what H.264 takes
    set -- videoscale ! "$even" ! ${ENCODER:-x264enc speed-preset=veryfast} ! h264parse ! mp4mux ! filesink "location=$3"
else
    set -- autovideosink
fi
gst-launch-1.0 -q -e filesrc "location=$video" ! decodebin ! videoconvert ! queue ! vartmlinfer "model=$model" ! vartmldecode ! \
    vartmltrack ! vartmlroi expand=0.1 ! queue ! $draw videoconvert ! "$@"
