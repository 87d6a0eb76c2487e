#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Infers on a small copy of the picture and draws on the large one: the model costs what the small stream costs, and the
# large one is never scaled, mapped or copied for it.
#   join.sh MODEL VIDEO [OUT.mp4]
# Here the small stream is made by videoconvertscale; cameras with two outputs give it for nothing.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 2 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
model=$1 video=$2
if [ $# -gt 2 ]; then
    [ ! "$3" -ef "$video" ] || { echo "$0: $3 is the video itself, which would be lost" >&2; exit 2; }
    even="video/x-raw,width=[2,16384,2],height=[2,16384,2],pixel-aspect-ratio=1/1" # what H.264 takes
    set -- videoscale ! "$even" ! x264enc speed-preset=veryfast ! h264parse ! mp4mux ! filesink "location=$3"
else
    set -- autovideosink
fi
gst-launch-1.0 -q -e filesrc "location=$video" ! decodebin ! tee name=both \
    both. ! videoconvert ! queue max-size-buffers=30 ! join.sink_main \
    both. ! queue ! videoconvertscale ! video/x-raw,width=416 ! vartmlinfer "model=$model" ! vartmldecode ! queue ! \
        join.sink_meta \
    vartmlmetajoin name=join ! queue ! vartmloverlay ! videoconvert ! "$@"
