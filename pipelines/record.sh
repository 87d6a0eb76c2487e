#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records what is seen: the video with its boxes in files of a minute, and beside them every detection as JSON lines.
#   record.sh MODEL VIDEO FOLDER
# async-handling: without it splitmuxsink (GStreamer 1.26) loses the end of a video that ends while the pipeline starts, and
# gst-launch waits for ever.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 3 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
[ ! -e "$3/detections.jsonl" ] || { echo "$0: $3 has a recording already, which would be lost; give another folder" >&2; exit 2; }
mkdir -p "$3"
even="video/x-raw,width=[2,16384,2],height=[2,16384,2],pixel-aspect-ratio=1/1" # what H.264 takes
gst-launch-1.0 -q -e filesrc "location=$2" ! decodebin ! videoconvert ! queue ! vartmlinfer "model=$1" ! vartmldecode ! \
    vartmltrack ! vartmlpublish method=file "location=$3/detections.jsonl" ! queue ! vartmloverlay ! videoconvert ! \
    videoscale ! "$even" ! x264enc speed-preset=veryfast key-int-max=60 ! h264parse ! \
    splitmuxsink "location=$3/video-%05d.mp4" max-size-time=60000000000 async-handling=true
