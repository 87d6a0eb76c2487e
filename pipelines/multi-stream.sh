#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Any number of videos through one model: its weights are loaded once, frames of all streams share its runs in turn.
#   multi-stream.sh MODEL VIDEO...
# One line of JSON per frame; `stream` says from which video.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 2 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
model=$1
shift
i=0
for video in "$@"; do
    shift
    set -- "$@" filesrc "location=$video" ! decodebin ! videoconvert ! queue ! \
        vartmlinfer "model=$model" model-instance-id=shared ! vartmldecode ! \
        vartmlpublish "stream-name=video-$i" add-empty=true queue-size=65536 drain-timeout=10000 ! fakesink
    i=$((i + 1))
done
gst-launch-1.0 -q "$@"
