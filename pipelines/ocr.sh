#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Reads text: a detector finds lines of it, or plates, a recogniser reads each.
#   ocr.sh DETECTOR RECOGNISER VIDEO [OUT.mp4]
# DETECTOR finds boxes (db-text of PaddleOCR, or any detector of plates), RECOGNISER was compiled with --decoder ctc-text and
# --labels DICTIONARY. One line of JSON per frame: what was read is the `text` of each object.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 3 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
detector=$1 recogniser=$2 video=$3
if [ $# -gt 3 ]; then
    [ ! "$4" -ef "$video" ] || { echo "$0: $4 is the video itself, which would be lost" >&2; exit 2; }
    even="video/x-raw,width=[2,16384,2],height=[2,16384,2],pixel-aspect-ratio=1/1" # what H.264 takes
    set -- vartmloverlay ! videoconvert ! videoscale ! "$even" ! x264enc speed-preset=veryfast ! h264parse ! mp4mux ! filesink "location=$4"
else
    set -- fakesink
fi
gst-launch-1.0 -q -e filesrc "location=$video" ! decodebin ! videoconvert ! queue ! vartmlinfer "model=$detector" ! vartmldecode ! \
    vartmltrack ! queue ! vartmlinfer "model=$recogniser" inference-region=roi roi-max=64 roi-min-size=4 roi-reinfer-interval=15 ! \
    vartmldecode ! vartmlpublish add-empty=true queue-size=65536 drain-timeout=10000 ! queue ! "$@"
