#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a model does on this machine: alone, and on a video from file to detections as fast as it goes.
#   benchmark.sh MODEL VIDEO
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 2 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
vartml run "$1" --time 3
records=$(mktemp)
trap 'rm -f "$records"' EXIT
start=$(date +%s.%N)
gst-launch-1.0 -q filesrc "location=$2" ! decodebin ! videoconvert ! queue ! vartmlinfer "model=$1" ! vartmldecode ! \
    vartmlpublish add-empty=true queue-size=65536 drain-timeout=10000 ! fakesink sync=false >"$records"
end=$(date +%s.%N)
echo "video: $(wc -l <"$records") frames in $(awk "BEGIN { print $end - $start }") s, start of the pipeline included"
