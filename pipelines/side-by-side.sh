#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two videos through one model, side by side in one picture: each is inferred on a small copy, its objects get tracks, the
# large picture gets boxes and trails; what was found is printed as JSON lines.
#   side-by-side.sh MODEL VIDEO VIDEO [OUT.mp4]
# The model is loaded once, frames of both videos share its runs.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 3 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
model=$1 left=$2 right=$3
if [ $# -gt 3 ]; then
    for video in "$left" "$right"; do [ ! "$4" -ef "$video" ] || { echo "$0: $4 is a video that is read; it would be lost" >&2; exit 2; }; done
    set -- x264enc speed-preset=veryfast ! mp4mux ! filesink "location=$4"
else
    set -- autovideosink
fi
tiles="sink_1::xpos=640"
for n in 0 1; do tiles="$tiles sink_$n::width=640 sink_$n::height=480 sink_$n::sizing-policy=keep-aspect-ratio"; done
n=0
for video in "$left" "$right"; do
    set -- "$@" filesrc "location=$video" ! decodebin ! videoconvert ! tee "name=video$n" \
        "video$n." ! queue max-size-buffers=30 ! "join$n.sink_main" \
        "video$n." ! queue ! videoconvertscale ! video/x-raw,width=416 ! \
            vartmlinfer "model=$model" model-instance-id=both ! vartmldecode ! vartmltrack ! queue ! "join$n.sink_meta" \
        vartmlmetajoin "name=join$n" ! vartmlpublish "stream-name=$n" queue-size=65536 drain-timeout=10000 ! queue ! \
            vartmloverlay color-mode=track ! videoconvert ! queue ! "all.sink_$n"
    n=$((n + 1))
done
gst-launch-1.0 -q -e compositor name=all background=black $tiles ! video/x-raw,format=I420,width=1280,height=480 ! queue ! "$@"
