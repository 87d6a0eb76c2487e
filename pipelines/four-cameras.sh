#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One to four cameras, each with the boxes of a model, in one picture of 1280x720.
#   four-cameras.sh MODEL CAMERA...
# CAMERA is a device such as /dev/video0, a video, or TENSOR=PICTURE: two devices of one camera, of which the first gives
# the model's tensor and the second the picture, as boards with a pre-processor in front of V4L2 have them. Results and
# pictures meet by their time stamps: boxes are never those of another frame. Camera N has the four columns of the array
# from 4N on. One Ctrl-C ends all. OUT=FILE.mp4 in the environment records instead of showing.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 2 ] && [ $# -le 5 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
model=$1 n=0 tiles=
shift
for camera in "$@"; do
    shift # the words of each camera go behind those of the others
    tensor=auto region=
    case $camera in
        # The pre-processor stretches the whole picture. What is drawn on and put together is read by processors: plain caps.
        /dev/*=*) tensor=yes region=region=whole && set -- "$@" v4l2src "device=${camera#*=}" ! video/x-raw ! \
            queue max-size-buffers=30 ! "join$n.sink_main" v4l2src "device=${camera%%=*}" io-mode=dmabuf-import ;;
        /dev/*) set -- "$@" v4l2src "device=$camera" ! video/x-raw ;;
        *) set -- "$@" filesrc "location=$camera" ! decodebin ;;
    esac
    [ $tensor = yes ] || set -- "$@" ! videoconvert ! tee "name=camera$n" "camera$n." ! queue max-size-buffers=30 ! \
        "join$n.sink_main" "camera$n." ! queue
    set -- "$@" ! vartmlinfer "model=$model" "runner-options=options,start_column=(uint)$((4 * n))" input-is-tensor=$tensor ! \
        vartmldecode ! queue ! "join$n.sink_meta" \
        vartmlmetajoin "name=join$n" $region ! vartmloverlay ! videoconvert ! queue ! "all.sink_$n"
    tiles="$tiles sink_$n::xpos=$((n % 2 * 640)) sink_$n::ypos=$((n / 2 * 360)) sink_$n::width=640 sink_$n::height=360"
    n=$((n + 1))
done
set -- "$@" compositor name=all background=black $tiles ! video/x-raw,width=1280,height=720 ! videoconvert ! queue !
[ -n "${OUT:-}" ] || exec gst-launch-1.0 -q -e "$@" autovideosink
exec gst-launch-1.0 -q -e "$@" x264enc speed-preset=veryfast ! h264parse ! mp4mux ! filesink "location=$OUT"
