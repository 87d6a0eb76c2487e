#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names what is known: each object of a detector is compared with those of a gallery by what it looks like.
#   gallery.sh DETECTOR EMBEDDER GALLERY VIDEO [OUT.mp4]
# EMBEDDER says what an object looks like; compile it with --decoder embedding and the pixels that it was trained on
# (--channels, --mean, --scale), else all look alike. GALLERY is a file, which the first enrolment makes.
# ENROL=NAME gallery.sh … enrols the surest object of the first frame that has one. One line of JSON per frame: the name is
# in the `attributes` of an object. THRESHOLD (0.6) is the least cosine of an object and its name.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 4 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
detector=$1 embedder=$2 gallery=$3 video=$4 most=100
if [ $# -gt 4 ]; then
    [ ! "$5" -ef "$video" ] || { echo "$0: $5 is the video itself, which would be lost" >&2; exit 2; }
    even="video/x-raw,width=[2,16384,2],height=[2,16384,2],pixel-aspect-ratio=1/1" # what H.264 takes
    set -- vartmloverlay ! videoconvert ! videoscale ! "$even" ! x264enc speed-preset=veryfast ! h264parse ! mp4mux ! filesink "location=$5"
else
    set -- fakesink
fi
[ -z "${ENROL:-}" ] || most=1
gst-launch-1.0 -q -e filesrc "location=$video" ! decodebin ! videoconvert ! queue ! vartmlinfer "model=$detector" ! \
    vartmldecode max-detections=$most ! vartmltrack ! queue ! vartmlinfer "model=$embedder" inference-region=roi roi-reinfer-interval=15 ! \
    vartmldecode ! vartmlgallery "location=$gallery" "threshold=${THRESHOLD:-0.6}" ${ENROL:+"enrol=$ENROL"} ! \
    vartmlpublish add-empty=true queue-size=65536 drain-timeout=10000 ! queue ! "$@"
