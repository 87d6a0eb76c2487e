#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Boxes of objects that are too small for the model in a whole frame, in a window or in a file.
#   tiles.sh MODEL VIDEO GRID [OUT.mp4]
# GRID is columns and rows of tiles, such as 4x3. Each tile is inferred at the size of the model's input; neighbours share
# a fifth of their side, and a box that several tiles show is drawn once. Models compiled with --batch-size take several
# tiles in a run.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 3 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
model=$1 video=$2 grid=$3
if [ $# -gt 3 ]; then
    [ ! "$4" -ef "$video" ] || { echo "$0: $4 is the video itself, which would be lost" >&2; exit 2; }
    even="video/x-raw,width=[2,16384,2],height=[2,16384,2],pixel-aspect-ratio=1/1" # what H.264 takes
    set -- videoscale ! "$even" ! x264enc speed-preset=veryfast ! h264parse ! mp4mux ! filesink "location=$4"
else
    set -- autovideosink
fi
gst-launch-1.0 -q -e filesrc "location=$video" ! decodebin ! videoconvert ! queue ! \
    vartmlinfer "model=$model" inference-region=tiles "tile-grid=$grid" ! vartmldecode ! queue ! \
    vartmloverlay ! videoconvert ! "$@"
