#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a model does on this machine: alone, and on a video from file to detections as fast as it goes.
#   benchmark.sh MODEL VIDEO
set -eu
[ $# -ge 2 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
vartml run "$1" --time 3
start=$(date +%s.%N)
frames=$(gst-launch-1.0 -q filesrc "location=$2" ! decodebin ! queue ! vartmlinfer "model=$1" ! vartmldecode ! \
    vartmlpublish add-empty=true queue-size=65536 drain-timeout=10000 ! fakesink sync=false | wc -l)
end=$(date +%s.%N)
echo "video: $frames frames in $(awk "BEGIN { print $end - $start }") s, start of the pipeline included"
